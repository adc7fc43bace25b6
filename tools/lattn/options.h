/* The options of all subcommands, each spelled and checked in one place. */
#ifndef LATTN_TOOLS_OPTIONS_H
#define LATTN_TOOLS_OPTIONS_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stdint.h>

#include "call.h"

/* Sets of options that a subcommand takes. */
enum {
    OPTION_OUTPUT = 1,
    OPTION_BACKEND = 2,
    OPTION_DEVICE = 4,
    OPTION_DECAY = 8,
    OPTION_PRECISION = 16,
    OPTION_BLOCK_STATES = 32,
    OPTION_JSON = 64,
    OPTION_OPERATION = 128,
    OPTION_SHAPE = 256,
    OPTION_DTYPE = 512,
    OPTION_SWEEP = 1024,
};

struct options {
    const char *output;
    const char *backend; /* NULL: not given */
    int64_t device;      /* -1: not given */
    lattn_decay decay;
    lattn_precision precision;
    bool block_states, sweep, json;
    bool has_operation, has_shape, has_dtype;
    enum call_operation operation;
    int64_t shape[5]; /* b, h, n, d, e */
    lattn_dtype dtype;
    int file_count; /* arguments that are no options */
    char **files;
};

/* Reads the arguments after the subcommand `name`, of which argv[0] is skipped. Returns false when
 * the command has nothing more to do; `*status` is then how it ends. */
bool options_parse(int argc, char **argv, const char *name, unsigned accepted,
                   struct options *options, int *status);

#endif
