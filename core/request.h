/* A checked call: what rules.c makes of the caller's params, and planner.c and stream.c work from.
 */
#ifndef LATTN_CORE_REQUEST_H
#define LATTN_CORE_REQUEST_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/args.h"

/* What decides which kernels a call can use, whatever its lengths, strides and options. */
struct lattn_kind {
    bool decode;
    lattn_dtype dtype;
    lattn_precision precision;
    int32_t d, e;
};

struct lattn_request {
    struct lattn_kind kind;
    uint32_t offers;        /* the LATTN_NEEDS_ that the call meets */
    int64_t longest;        /* no sequence is longer */
    int64_t total;          /* tokens of all sequences together */
    uint64_t workspace;     /* bytes given */
    struct lattn_args args; /* all but segment, segments and how segments go together */
    void *memories[LATTN_MEM_COUNT];
};

#endif
