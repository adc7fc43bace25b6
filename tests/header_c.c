/* The public headers as C11, and as the first thing included. */
#include <lattn/lattn.h>

#include <lattn/interop.h>

#include "header_test.h"

const struct header_view header_view_c = HEADER_VIEW;
