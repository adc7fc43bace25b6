/* What these examples share. A failure ends them with its message; no device to run on ends them
 * with 77, which test runners take for "skipped". */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <lattn/interop.h>
#include <lattn/lattn.h>
#include <stdio.h>
#include <stdlib.h>

enum { NO_DEVICE = 77 };

static inline void must(lattn_status status)
{
    if (status == LATTN_OK)
        return;
    fprintf(stderr, "%s: %s\n", lattn_status_name(status), lattn_error_message());
    exit(status == LATTN_ERROR_NO_DEVICE ? NO_DEVICE : 1);
}

/* With q = k = v = 1 and no decay, the token at place t (from 0) sees t + 1 tokens, and each value
 * of its o is d (t + 1). Returns the exit status. */
static inline int check_counting(const float *o, int tokens, int d, int e)
{
    for (int i = 0; i < tokens * e; i++) {
        if (o[i] != (float)(d * (i / e + 1))) {
            fprintf(stderr, "o[%d] = %g: should be %d\n", i, (double)o[i], d * (i / e + 1));
            return 1;
        }
    }
    printf("%d tokens: right\n", tokens);
    return 0;
}

#endif
