/* How the command ends, and what it says then. */
#ifndef LATTN_TOOLS_REPORT_H
#define LATTN_TOOLS_REPORT_H

#include <lattn/lattn.h>

enum exit_status {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, /* ran, and failed */
    EXIT_USAGE = 2,  /* bad usage or bad input */
};

/* Prints "lattn: MESSAGE" as one line on stderr, whatever bytes the message holds, and returns
 * `status`, so that giving up is one statement. */
int complain(enum exit_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for a failed library call: its message after `subject` (a file, a device). A broken rule
 * of an argument is bad input, anything else a failure. */
int complain_library(lattn_status status, const char *subject);

/* Why a library call failed. */
const char *library_message(lattn_status status);

/* Shows what long work is at, on a terminal only; NULL wipes the line. */
void progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What stdout could not take, it must not seem to have taken. */
int finish_output(enum exit_status status);

#endif
