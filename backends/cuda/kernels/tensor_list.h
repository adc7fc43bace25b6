/* The kernels on the matrix units: one list for the files that define them and for the catalogue.
 * C, and C++ for nvcc. */
#ifndef LATTN_TENSOR_LIST_H
#define LATTN_TENSOR_LIST_H

#define LATTN_MAX_(a, b) ((a) > (b) ? (a) : (b))

/* In a group, of kernels with mma.sync and with wgmma. */
#define LATTN_TENSOR_THREADS 128
#define LATTN_HOPPER_THREADS 512

/* Is a pass of the lists OUTPUT? */
#define LATTN_IS_output true
#define LATTN_IS_state false

/* Shared memory of a state of D by W in float32; its rows are 16 bytes apart in their banks. */
#define LATTN_STATE_SHARED(D, W) (((D) * (W) + 4 * LATTN_MAX_(D, W)) * 4)

/* Of a walk with mma.sync (tensor_walk.cuh), for elements of `size` bytes. */
#define LATTN_TENSOR_SHARED_output(size, D, W, C, stages)                                          \
    LATTN_MAX_((stages) * (2 * (D) + (W)) * (C) * (size) + (C) * ((C) + (W)) * (size) +            \
                   ((size) == 2 ? (C)*32 : 0),                                                     \
               LATTN_STATE_SHARED(D, W))
#define LATTN_TENSOR_SHARED_state(size, D, W, C, stages)                                           \
    LATTN_MAX_((stages) * ((D) + (W)) * (C) * (size), LATTN_STATE_SHARED(D, W))

/* X(pass, kind, D, E, C, stages, fast, groups, e_min, e_max): d up to D; each of four warps has E
 * columns; C tokens in a chunk; `fast` needs rows at multiples of 16 bytes; `groups` run at once on
 * a multiprocessor of Hopper; meant for these e. Best first. */
#define LATTN_TENSOR_HALF(X, kind)                                                                 \
    X(output, kind, 64, 16, 64, 3, 1, 2, 1, 64)                                                    \
    X(output, kind, 64, 32, 32, 4, 1, 2, 65, 256)                                                  \
    X(output, kind, 128, 16, 64, 2, 1, 2, 1, 64)                                                   \
    X(output, kind, 128, 32, 32, 3, 1, 2, 65, 256)                                                 \
    X(output, kind, 256, 16, 32, 2, 1, 2, 1, 256)                                                  \
    X(output, kind, 64, 16, 32, 2, 0, 3, 1, 256)                                                   \
    X(output, kind, 128, 16, 32, 2, 0, 2, 1, 256)                                                  \
    X(output, kind, 256, 16, 32, 2, 0, 2, 1, 256)                                                  \
    X(state, kind, 64, 16, 64, 3, 1, 3, 1, 256)                                                    \
    X(state, kind, 128, 32, 32, 4, 1, 2, 1, 256)                                                   \
    X(state, kind, 256, 16, 32, 3, 1, 2, 1, 256)                                                   \
    X(state, kind, 64, 16, 32, 2, 0, 3, 1, 256)                                                    \
    X(state, kind, 128, 16, 32, 2, 0, 2, 1, 256)                                                   \
    X(state, kind, 256, 16, 32, 2, 0, 2, 1, 256)

#define LATTN_TENSOR_FLOAT(X, kind)                                                                \
    X(output, kind, 64, 16, 32, 3, 1, 2, 1, 256)                                                   \
    X(output, kind, 128, 16, 32, 2, 1, 2, 1, 256)                                                  \
    X(output, kind, 256, 16, 16, 2, 1, 1, 1, 256)                                                  \
    X(output, kind, 64, 16, 32, 2, 0, 2, 1, 256)                                                   \
    X(output, kind, 128, 16, 32, 2, 0, 2, 1, 256)                                                  \
    X(output, kind, 256, 16, 16, 2, 0, 1, 1, 256)                                                  \
    X(state, kind, 64, 16, 32, 3, 1, 2, 1, 256)                                                    \
    X(state, kind, 128, 16, 32, 3, 1, 2, 1, 256)                                                   \
    X(state, kind, 256, 16, 16, 3, 1, 1, 1, 256)                                                   \
    X(state, kind, 64, 16, 32, 2, 0, 2, 1, 256)                                                    \
    X(state, kind, 128, 16, 32, 2, 0, 2, 1, 256)                                                   \
    X(state, kind, 256, 16, 16, 2, 0, 1, 1, 256)

/* Of a walk with wgmma (hopper_layout.cuh), for d up to D and E columns in a group: stages of 64
 * tokens, copies of the state for each turn of outputs, a place for outputs where q's is too small,
 * tables of weights, barriers, alignment. */
#define LATTN_HOPPER_STAGE(D, E) (64 * (2 * (D) + (E)) * 2)
#define LATTN_HOPPER_STATES(D, E) LATTN_MAX_(2 * (D) * (E)*2, LATTN_STATE_SHARED(64, E))
#define LATTN_HOPPER_STAGING(D, E) ((E) > (D) ? 2 * 64 * (E)*2 : 0)
#define LATTN_HOPPER_TABLE (1024 + 128)
#define LATTN_HOPPER_TABLES (3 * LATTN_HOPPER_TABLE)
#define LATTN_HOPPER_FIXED(D, E)                                                                   \
    (LATTN_HOPPER_STATES(D, E) + LATTN_HOPPER_STAGING(D, E) + LATTN_HOPPER_TABLES + 256 + 1024)
#define LATTN_HOPPER_FIT(D, E) ((227 * 1024 - LATTN_HOPPER_FIXED(D, E)) / LATTN_HOPPER_STAGE(D, E))
#define LATTN_HOPPER_STAGES(D, E) (LATTN_HOPPER_FIT(D, E) < 6 ? LATTN_HOPPER_FIT(D, E) : 6)
#define LATTN_HOPPER_SHARED(D, E)                                                                  \
    (LATTN_HOPPER_STAGES(D, E) * LATTN_HOPPER_STAGE(D, E) + LATTN_HOPPER_FIXED(D, E))

/* X(kind, D, E, e_min, e_max, pace) */
#define LATTN_HOPPER_LIST(X, kind)                                                                 \
    X(kind, 64, 64, 1, 64, 120)                                                                    \
    X(kind, 64, 128, 65, 256, 125)                                                                 \
    X(kind, 128, 64, 1, 256, 130)                                                                  \
    X(kind, 128, 128, 65, 256, 120)

/* Of a walk with wgmma in float32 (hopper_float.cuh), of `parts` parts an element: tiles of q, k
 * and S by parts, of v and of what comes from the state, tables of weights, barriers, alignment. */
#define LATTN_HOPPER_FLOAT_Q_STAGES(D, parts) ((D) * (parts) <= 256 ? 2 : 1)
#define LATTN_HOPPER_FLOAT_SHARED(D, parts)                                                        \
    ((LATTN_HOPPER_FLOAT_Q_STAGES(D, parts) + 2) * (parts)*64 * (D)*2 + (parts)*64 * 64 * 2 +      \
     2 * 64 * (64 + 4) * 4 + 64 * 64 * 4 + 2 * LATTN_HOPPER_TABLE + 256 + 1024)

/* X(pass, kind, D, parts): groups of 64 columns. */
#define LATTN_HOPPER_FLOAT_LIST(X)                                                                 \
    X(output, tf32, 64, 2)                                                                         \
    X(output, tf32, 128, 2)                                                                        \
    X(output, f32, 64, 3)                                                                          \
    X(output, f32, 128, 3)                                                                         \
    X(state, tf32, 64, 2)                                                                          \
    X(state, tf32, 128, 2)                                                                         \
    X(state, f32, 64, 3)                                                                           \
    X(state, f32, 128, 3)

/* Decode (decode_wide.cuh): shared memory of a group, along e and along d. */
#define LATTN_DECODE_COLUMNS(D) ((D) == 256 ? 32 : 64)
#define LATTN_DECODE_GROUP(D) ((D)*LATTN_DECODE_COLUMNS(D) / 32)
#define LATTN_DECODE_SHARED(D, rows)                                                               \
    ((2 * (D) + LATTN_DECODE_COLUMNS(D) * (1 + (rows))) * 8 * 4 + 16)

/* One token, states of `size` bytes an element (decode_one.cuh). `parts`: of a sum. */
#define LATTN_DECODE_ONE_COLUMNS(size, D) ((size) == 2 && (D) == 128 ? 128 : 64)
#define LATTN_DECODE_ONE_GROUP(size, D) ((D)*LATTN_DECODE_ONE_COLUMNS(size, D) * (size) / 128)
#define LATTN_DECODE_ONE_SHARED(size, D, parts)                                                    \
    ((2 * (D) + LATTN_DECODE_ONE_COLUMNS(size, D) * (1 + (parts))) * 4 + 16)

/* X(kind, D, groups) */
#define LATTN_DECODE_LIST(X, kind)                                                                 \
    X(kind, 64, 8)                                                                                 \
    X(kind, 128, 4)                                                                                \
    X(kind, 256, 4)

/* X(kind, size, D, groups, d_min, e_min): meant for d and e from there on. */
#define LATTN_DECODE_ONE_LIST(X, kind)                                                             \
    X(kind, 4, 64, 8, 1, 1)                                                                        \
    X(kind, 4, 128, 4, 1, 1)                                                                       \
    X(kind, 4, 256, 2, 1, 1)                                                                       \
    X(kind, 2, 64, 8, 1, 1)                                                                        \
    X(kind, 2, 128, 2, 1, 65)                                                                      \
    X(kind, 2, 256, 2, 129, 1)

/* X(kind, size, D, groups): these are faster on Hopper with so few at once, where there are many.
 * Shared memory that nobody uses sees to that. */
#define LATTN_DECODE_FEW_LIST(X, kind)                                                             \
    X(kind, 4, 64, 4)                                                                              \
    X(kind, 4, 128, 2)
#define LATTN_DECODE_FEW_SHARED(groups) (180 * 1024 / (groups))

#endif
