/* The message behind lattn_error_message(). */
#ifndef LATTN_CORE_ERROR_H
#define LATTN_CORE_ERROR_H

#include <lattn/lattn.h>

/* Sets this thread's message and returns `status`, so that failing is one line:
 * `return lattn_fail(LATTN_ERROR_DEVICE, "cuStreamCreate failed: %s", name);` Cuts long ones. */
lattn_status lattn_fail(lattn_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
