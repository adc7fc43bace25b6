#include "error.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local struct lattn_message message;

lattn_status lattn_fail(lattn_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(message.text, sizeof(message.text), format, list);
    va_end(list);
    return status;
}

void lattn_message_save(struct lattn_message *saved)
{
    *saved = message;
}

void lattn_message_restore(const struct lattn_message *saved)
{
    message = *saved;
}

const char *lattn_error_message(void)
{
    return message.text;
}

const char *lattn_status_name(lattn_status status)
{
    static const char *const names[] = {
        [LATTN_OK] = "LATTN_OK",
        [LATTN_ERROR_INVALID_ARGUMENT] = "LATTN_ERROR_INVALID_ARGUMENT",
        [LATTN_ERROR_UNSUPPORTED] = "LATTN_ERROR_UNSUPPORTED",
        [LATTN_ERROR_OUT_OF_MEMORY] = "LATTN_ERROR_OUT_OF_MEMORY",
        [LATTN_ERROR_DEVICE_MEMORY] = "LATTN_ERROR_DEVICE_MEMORY",
        [LATTN_ERROR_NO_DEVICE] = "LATTN_ERROR_NO_DEVICE",
        [LATTN_ERROR_DEVICE_TOO_OLD] = "LATTN_ERROR_DEVICE_TOO_OLD",
        [LATTN_ERROR_DRIVER_TOO_OLD] = "LATTN_ERROR_DRIVER_TOO_OLD",
        [LATTN_ERROR_NO_DEVICE_CODE] = "LATTN_ERROR_NO_DEVICE_CODE",
        [LATTN_ERROR_NOT_PREPARED] = "LATTN_ERROR_NOT_PREPARED",
        [LATTN_ERROR_WORKSPACE] = "LATTN_ERROR_WORKSPACE",
        [LATTN_ERROR_BUILD] = "LATTN_ERROR_BUILD",
        [LATTN_ERROR_DEVICE] = "LATTN_ERROR_DEVICE",
    };
    if ((unsigned)status >= sizeof(names) / sizeof(names[0]))
        return "unknown status";
    return names[status];
}
