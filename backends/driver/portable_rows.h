/* The rows of the portable kernels (portable_kernels.h) for groups of 256 threads: every d and e,
 * any strides, any states. `image` is the program that has them. */
#ifndef LATTN_DRIVER_PORTABLE_ROWS_H
#define LATTN_DRIVER_PORTABLE_ROWS_H

#include "core/catalog.h"
#include "kernels/args.h"

#define LATTN_ANY_SIZE .d_min = 1, .d_max = LATTN_MAX_DIM, .e_min = 1, .e_max = LATTN_MAX_DIM

#define LATTN_PORTABLE_DECODE_ROW(name, set, image, least, dim)                                    \
    {                                                                                              \
        .entry = "lattn_decode_" #name "_" #dim, .program = (image), .pass = LATTN_PASS_DECODE,    \
        .types = (set), .d_min = (least), .d_max = (dim), .e_min = 1, .e_max = LATTN_MAX_DIM,      \
        .threads = 256, .shared_total = 4 * (2 * (dim) + 32 * 33), .e_tile = 32                    \
    }

/* Of one element type. */
#define LATTN_PORTABLE_ROWS(name, set, image)                                                      \
    {.entry = "lattn_prefill_state_" #name "_16",                                                  \
     .program = (image),                                                                           \
     .pass = LATTN_PASS_STATE,                                                                     \
     .types = (set),                                                                               \
     LATTN_ANY_SIZE,                                                                               \
     .threads = 256,                                                                               \
     .shared_total = 8704,                                                                         \
     .d_tile = 64,                                                                                 \
     .e_tile = 64,                                                                                 \
     .groups_per_unit = 4},                                                                        \
        {.entry = "lattn_prefill_output_" #name "_16",                                             \
         .program = (image),                                                                       \
         .pass = LATTN_PASS_OUTPUT,                                                                \
         .types = (set),                                                                           \
         LATTN_ANY_SIZE,                                                                           \
         .threads = 256,                                                                           \
         .shared_total = 26112,                                                                    \
         .token_tile = 64,                                                                         \
         .e_tile = 64,                                                                             \
         .groups_per_unit = 3},                                                                    \
        LATTN_PORTABLE_DECODE_ROW(name, set, image, 1, 64),                                        \
        LATTN_PORTABLE_DECODE_ROW(name, set, image, 65, 128),                                      \
        LATTN_PORTABLE_DECODE_ROW(name, set, image, 129, 256)

/* Of all. */
#define LATTN_PORTABLE_SCAN_ROW(image)                                                             \
    {                                                                                              \
        .entry = "lattn_prefill_scan_16", .program = (image), .pass = LATTN_PASS_SCAN,             \
        .types = LATTN_TYPES_ALL, LATTN_ANY_SIZE, .threads = 128, .d_tile = 2, .e_tile = 64,       \
        .groups_per_unit = 8                                                                       \
    }

#endif
