/* The rows of the portable kernels (kernels/), for every device: any sizes, strides and types of
 * state. Two variants of each, for groups of 256 threads, and for groups of 64 with less than 8 KiB
 * of group memory where the device allows no more. */
#ifndef LATTN_OPENCL_CATALOG_PORTABLE_H
#define LATTN_OPENCL_CATALOG_PORTABLE_H

#include "catalog.h"
#include "kernels/args.h"

extern const char lattn_opencl_prefill_source[];
extern const char lattn_opencl_decode_source[];

#define PORTABLE_OPTIONS(type, variant)                                                            \
    "-cl-std=CL1.2 -DLATTN_STORAGE=LATTN_TYPE_" #type " -DLATTN_VARIANT=" variant

/* ---- prefill: C x C threads, tiles of 4 C ---- */

#define PREFILL_PROGRAM(name, type, c)                                                             \
    static const struct lattn_opencl_program prefill_##name##_##c = {                              \
        lattn_opencl_prefill_source, PORTABLE_OPTIONS(type, #name "_" #c) " -DLATTN_CHUNK=" #c}
PREFILL_PROGRAM(f32, F32, 16);
PREFILL_PROGRAM(f32, F32, 8);
PREFILL_PROGRAM(f16, F16, 16);
PREFILL_PROGRAM(f16, F16, 8);
PREFILL_PROGRAM(bf16, BF16, 16);
PREFILL_PROGRAM(bf16, BF16, 8);

/* Bytes of `count` panels of kernels/microtile.h. */
#define PREFILL_PANELS(count, c) ((count) * (c) * (4 * (c) + 4) * 4)

#define PREFILL_ROW(name, type, c, which, in_pass, in_threads, in_shared, t_tile, in_d_tile,       \
                    in_e_tile)                                                                     \
    {                                                                                              \
        .entry = "lattn_prefill_" #which "_" #name "_" #c, .program = &prefill_##name##_##c,       \
        .pass = in_pass, .types = LATTN_TYPES_##type, .d_min = 1, .d_max = LATTN_MAX_DIM,          \
        .e_min = 1, .e_max = LATTN_MAX_DIM, .threads = in_threads, .shared_total = in_shared,      \
        .token_tile = t_tile, .d_tile = in_d_tile, .e_tile = in_e_tile                             \
    }
#define PREFILL_ROWS(name, type, c)                                                                \
    PREFILL_ROW(name, type, c, state, LATTN_PASS_STATE, (c) * (c), PREFILL_PANELS(2, c), 0,        \
                4 * (c), 4 * (c)),                                                                 \
        PREFILL_ROW(name, type, c, scan, LATTN_PASS_SCAN, 8 * (c), 0, 0, 2, 4 * (c)),              \
        PREFILL_ROW(name, type, c, output, LATTN_PASS_OUTPUT, (c) * (c), PREFILL_PANELS(6, c),     \
                    4 * (c), 0, 4 * (c))

/* ---- decode: d up to D, 8 E threads, tiles of E ---- */

#define DECODE_PROGRAM(name, type, d, e)                                                           \
    static const struct lattn_opencl_program decode_##name##_##d##_##e = {                         \
        lattn_opencl_decode_source,                                                                \
        PORTABLE_OPTIONS(type, #name "_" #d "_" #e) " -DLATTN_DECODE_D=" #d                        \
                                                    " -DLATTN_DECODE_E=" #e}
#define DECODE_PROGRAMS(name, type)                                                                \
    DECODE_PROGRAM(name, type, 64, 32);                                                            \
    DECODE_PROGRAM(name, type, 128, 32);                                                           \
    DECODE_PROGRAM(name, type, 256, 32);                                                           \
    DECODE_PROGRAM(name, type, 64, 8);                                                             \
    DECODE_PROGRAM(name, type, 128, 8);                                                            \
    DECODE_PROGRAM(name, type, 256, 8)
DECODE_PROGRAMS(f32, F32);
DECODE_PROGRAMS(f16, F16);
DECODE_PROGRAMS(bf16, BF16);

#define DECODE_ROW(name, type, least, d, e)                                                        \
    {                                                                                              \
        .entry = "lattn_decode_" #name "_" #d "_" #e, .program = &decode_##name##_##d##_##e,       \
        .pass = LATTN_PASS_DECODE, .types = LATTN_TYPES_##type, .d_min = least, .d_max = d,        \
        .e_min = 1, .e_max = LATTN_MAX_DIM, .threads = 8 * (e),                                    \
        .shared_total = (2 * (d) + (e) * ((e) + 1)) * 4, .e_tile = e                               \
    }
#define DECODE_ROWS(name, type, e)                                                                 \
    DECODE_ROW(name, type, 1, 64, e), DECODE_ROW(name, type, 65, 128, e),                          \
        DECODE_ROW(name, type, 129, 256, e)

#define PORTABLE_ROWS(name, type)                                                                  \
    PREFILL_ROWS(name, type, 16), PREFILL_ROWS(name, type, 8), DECODE_ROWS(name, type, 32),        \
        DECODE_ROWS(name, type, 8)
#define LATTN_OPENCL_PORTABLE_ROWS                                                                 \
    PORTABLE_ROWS(f32, F32), PORTABLE_ROWS(f16, F16), PORTABLE_ROWS(bf16, BF16)

#endif
