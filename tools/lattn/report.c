#include "report.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int complain(enum exit_status status, const char *format, ...)
{
    char line[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    for (char *c = line; *c; c++) {
        if (iscntrl((unsigned char)*c))
            *c = '?';
    }
    progress(NULL);
    fprintf(stderr, "lattn: %s\n", line);
    return status;
}

const char *library_message(lattn_status status)
{
    /* Which may have been for memory of our own, of which the library knows nothing. */
    return status == LATTN_ERROR_OUT_OF_MEMORY ? "out of memory" : lattn_error_message();
}

int complain_library(lattn_status status, const char *subject)
{
    enum exit_status end = status == LATTN_ERROR_INVALID_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
    return complain(end, "%s: %s (%s)", subject, library_message(status),
                    lattn_status_name(status));
}

void progress(const char *format, ...)
{
    static bool shown;
    if (!isatty(STDERR_FILENO) || (!format && !shown))
        return;
    fputs("\r\033[K", stderr);
    shown = format != NULL;
    if (format) {
        va_list list;
        va_start(list, format);
        vfprintf(stderr, format, list);
        va_end(list);
    }
    fflush(stderr);
}

int finish_output(enum exit_status status)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return complain(EXIT_FAILED, "standard output: %s", strerror(errno));
    return status;
}
