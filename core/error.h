/* The message behind lattn_error_message(). */
#ifndef LATTN_CORE_ERROR_H
#define LATTN_CORE_ERROR_H

#include <lattn/lattn.h>

/* Sets this thread's message and returns `status`, so that failing is one line:
 * `return lattn_fail(LATTN_ERROR_DEVICE, "cuStreamCreate failed: %s", name);` Cuts long ones. */
lattn_status lattn_fail(lattn_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For who goes on after a failure below: takes a copy of this thread's message, and puts it back.
 */
struct lattn_message {
    char text[512];
};
void lattn_message_save(struct lattn_message *saved);
void lattn_message_restore(const struct lattn_message *saved);

#endif
