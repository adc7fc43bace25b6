/* What `lattn bench` measures when it is not told. */
#ifndef LATTN_TOOLS_SHAPES_H
#define LATTN_TOOLS_SHAPES_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stddef.h>

#include "call.h"

struct shape {
    enum call_operation operation;
    int64_t size[5]; /* b, h, n, d, e */
};

#define SHAPES_MAX 64

/* Shapes that fit the kind of device: typical ones, or a sweep over lengths for each of several
 * numbers of heads, by which to see how time grows. Returns how many. */
size_t shapes_list(lattn_device_kind kind, bool sweep, struct shape shapes[SHAPES_MAX]);

#endif
