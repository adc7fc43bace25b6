/* What prefill and decode share: from one tensor file to another over one device. */
#ifndef LATTN_TOOLS_APPLY_H
#define LATTN_TOOLS_APPLY_H

#include "call.h"

/* A tensor of the output file, and the part of the call that it holds. */
struct apply_output {
    const char *name;
    enum call_part part;
    lattn_dtype dtype;
    int rank;
    int64_t shape[5];
};

#define APPLY_MAX_OUTPUTS 3

/* Fills `outputs` for a call and returns how many they are. */
typedef int (*apply_outputs_fn)(const struct call *call, struct apply_output *outputs);

/* The whole subcommand; `accepted` are its options. */
int apply_command(int argc, char **argv, enum call_operation operation, unsigned accepted,
                  apply_outputs_fn list_outputs);

#endif
