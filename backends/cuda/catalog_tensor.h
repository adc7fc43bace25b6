/* Rows of the kernels on the matrix units and of the wide decode, by the lists that define them. */
#ifndef LATTN_CUDA_CATALOG_TENSOR_H
#define LATTN_CUDA_CATALOG_TENSOR_H

#include "backends/cuda/kernels/tensor_list.h"

extern const unsigned char lattn_cuda_image_hopper_bf16[];
extern const unsigned char lattn_cuda_image_hopper_f16[];
extern const unsigned char lattn_cuda_image_hopper_float[];
extern const unsigned char lattn_cuda_image_tensor_bf16[];
extern const unsigned char lattn_cuda_image_tensor_f16[];
extern const unsigned char lattn_cuda_image_tensor_tf32[];
extern const unsigned char lattn_cuda_image_tensor_f32[];
extern const unsigned char lattn_cuda_image_decode_wide[];

#define TYPES_bf16 LATTN_TYPES_BF16
#define TYPES_f16 LATTN_TYPES_F16
#define TYPES_tf32 LATTN_TYPES_F32
#define TYPES_f32 LATTN_TYPES_F32
#define SIZE_bf16 2
#define SIZE_f16 2
#define SIZE_tf32 4
#define SIZE_f32 4
/* The least d and e: one number's rounding to 16 bits would show in fewer. */
#define LEAST_bf16 8
#define LEAST_f16 8
#define LEAST_tf32 1
#define LEAST_f32 1
#define NEEDS_bf16 0
#define NEEDS_f16 0
#define NEEDS_tf32 LATTN_NEEDS_TF32_ALLOWED
#define NEEDS_f32 0
#define PASS_output LATTN_PASS_OUTPUT
#define PASS_state LATTN_PASS_STATE
#define CAN_output (LATTN_CAN_WALK | LATTN_CAN_CHAIN)
#define CAN_state 0
#define NEEDS_output LATTN_NEEDS_RECURRENCE
#define NEEDS_state 0

/* Measured on an H200 (docs/kernels-cuda.md). */
#define PACE_output_bf16 165
#define PACE_output_f16 220
#define PACE_output_tf32 250
#define PACE_output_f32 700
#define PACE_state_bf16 140
#define PACE_state_f16 140
#define PACE_state_tf32 300
#define PACE_state_f32 600
#define PACE_hopper_output_tf32 190
#define PACE_hopper_output_f32 290
#define PACE_hopper_state_tf32 120
#define PACE_hopper_state_f32 200

#define TENSOR_ROW(what, kind, D, E, C, stages, fast, groups, least_e, most_e)                     \
    {.entry = "lattn_tensor_" #what "_" #kind "_d" #D "_w" #E "_f" #fast,                          \
     .program = lattn_cuda_image_tensor_##kind,                                                    \
     .pass = PASS_##what,                                                                          \
     .types = TYPES_##kind,                                                                        \
     .d_min = LEAST_##kind,                                                                        \
     .d_max = (D),                                                                                 \
     .e_min = LATTN_MAX_(least_e, LEAST_##kind),                                                   \
     .e_max = (most_e),                                                                            \
     .can = CAN_##what,                                                                            \
     .needs = NEEDS_##what | NEEDS_##kind | ((fast) ? LATTN_NEEDS_ALIGN16 : 0),                    \
     .features = LATTN_CUDA_SM80,                                                                  \
     .threads = LATTN_TENSOR_THREADS,                                                              \
     .shared = LATTN_TENSOR_SHARED_##what(SIZE_##kind, D, 4 * (E), C, stages),                     \
     .shared_total = LATTN_TENSOR_SHARED_##what(SIZE_##kind, D, 4 * (E), C, stages),               \
     .e_tile = 4 * (E),                                                                            \
     .groups_per_unit = (groups),                                                                  \
     .pace = PACE_##what##_##kind * ((fast) ? 1 : 2)},

#define HOPPER_ROW(what, ability, kind, D, E, least_e, most_e, percent)                            \
    {.entry = "lattn_hopper_" #what "_" #kind "_d" #D "_e" #E,                                     \
     .program = lattn_cuda_image_hopper_##kind,                                                    \
     .pass = LATTN_PASS_OUTPUT,                                                                    \
     .types = TYPES_##kind,                                                                        \
     .d_min = LEAST_##kind,                                                                        \
     .d_max = (D),                                                                                 \
     .e_min = LATTN_MAX_(least_e, LEAST_##kind),                                                   \
     .e_max = (most_e),                                                                            \
     .can = LATTN_CAN_WALK | (ability),                                                            \
     .needs = LATTN_NEEDS_RECURRENCE | LATTN_NEEDS_ALIGN16,                                        \
     .features = LATTN_CUDA_SM90A,                                                                 \
     .threads = LATTN_HOPPER_THREADS,                                                              \
     .shared = LATTN_HOPPER_SHARED(D, E),                                                          \
     .shared_total = LATTN_HOPPER_SHARED(D, E),                                                    \
     .e_tile = (E),                                                                                \
     .groups_per_unit = 1,                                                                         \
     .pace = (percent)},
#define HOPPER_ROWS(kind, D, E, least_e, most_e, percent)                                          \
    HOPPER_ROW(output, LATTN_CAN_TAKE_TURNS, kind, D, E, least_e, most_e, percent)                 \
    HOPPER_ROW(chain, LATTN_CAN_CHAIN, kind, D, E, least_e, most_e, percent)

#define HOPPER_FLOAT_ROW(what, kind, D, parts)                                                     \
    {.entry = "lattn_hopper_" #what "_" #kind "_d" #D,                                             \
     .program = lattn_cuda_image_hopper_float,                                                     \
     .pass = PASS_##what,                                                                          \
     .types = LATTN_TYPES_F32,                                                                     \
     .d_min = 4,                                                                                   \
     .d_max = (D),                                                                                 \
     .d_step = 4,                                                                                  \
     .e_min = 1,                                                                                   \
     .e_max = LATTN_MAX_DIM,                                                                       \
     .can = CAN_##what & LATTN_CAN_WALK,                                                           \
     .needs = NEEDS_##what | NEEDS_##kind | LATTN_NEEDS_ALIGN16,                                   \
     .features = LATTN_CUDA_SM90A,                                                                 \
     .threads = LATTN_HOPPER_THREADS,                                                              \
     .shared = LATTN_HOPPER_FLOAT_SHARED(D, parts),                                                \
     .shared_total = LATTN_HOPPER_FLOAT_SHARED(D, parts),                                          \
     .e_tile = 64,                                                                                 \
     .groups_per_unit = 1,                                                                         \
     .pace = PACE_hopper_##what##_##kind},

#define DECODE_ROW(name, kind, D, least_d, least_e, d_multiple, e_multiple, need, ...)             \
    {.entry = "lattn_decode_" name,                                                                \
     .program = lattn_cuda_image_decode_wide,                                                      \
     .pass = LATTN_PASS_DECODE,                                                                    \
     .types = TYPES_##kind,                                                                        \
     .d_min = (least_d),                                                                           \
     .d_max = (D),                                                                                 \
     .d_step = (d_multiple),                                                                       \
     .e_min = (least_e),                                                                           \
     .e_max = LATTN_MAX_DIM,                                                                       \
     .e_step = (e_multiple),                                                                       \
     .needs = (need),                                                                              \
     __VA_ARGS__},

#define DECODE_WIDE(kind, along, D, groups, d_multiple, e_multiple, need, rows)                    \
    DECODE_ROW("wide_" #kind "_" #along "_d" #D, kind, D, 1, 1, d_multiple, e_multiple, need,      \
               .features = LATTN_CUDA_SM80, .threads = LATTN_DECODE_GROUP(D),                      \
               .shared_total = LATTN_DECODE_SHARED(D, rows), .e_tile = LATTN_DECODE_COLUMNS(D),    \
               .groups_per_unit = (groups))
#define DECODE_WIDE_ROWS(kind, D, groups)                                                          \
    DECODE_WIDE(kind, e, D, groups, 0, 4, LATTN_NEEDS_STATE_E_UNIT, LATTN_DECODE_GROUP(D) / 32)    \
    DECODE_WIDE(kind, d, D, groups, 4, 0, LATTN_NEEDS_STATE_D_UNIT, 1)

#define NEEDS_2 LATTN_NEEDS_STATE_HALF
#define NEEDS_4 LATTN_NEEDS_STATE_F32
/* `unused`: bytes of shared memory beyond what the kernel has. */
#define DECODE_ONE(kind, size, along, D, groups, least_d, least_e, feature, need, d_multiple,      \
                   e_multiple, parts, unused)                                                      \
    DECODE_ROW("one_" #kind "_s" #size "_" #along "_d" #D, kind, D, least_d, least_e, d_multiple,  \
               e_multiple, (need) | NEEDS_##size | LATTN_NEEDS_ONE_TOKEN, .features = (feature),   \
               .threads = LATTN_DECODE_ONE_GROUP(size, D), .shared = (unused),                     \
               .shared_total = LATTN_DECODE_ONE_SHARED(size, D, parts) + (unused),                 \
               .e_tile = LATTN_DECODE_ONE_COLUMNS(size, D), .groups_per_unit = (groups))
#define DECODE_ONE_BOTH(kind, size, D, groups, least_d, least_e, feature, need, unused)            \
    DECODE_ONE(kind, size, e, D, groups, least_d, least_e, feature,                                \
               (need) | LATTN_NEEDS_STATE_E_UNIT, 0, 16 / (size),                                  \
               LATTN_DECODE_ONE_GROUP(size, D) / 32, unused)                                       \
    DECODE_ONE(kind, size, d, D, groups, least_d, least_e, feature,                                \
               (need) | LATTN_NEEDS_STATE_D_UNIT, 16 / (size), 0,                                  \
               LATTN_MAX_((D) * (size) / 512, 1), unused)
#define DECODE_ONE_ROWS(kind, size, D, groups, least_d, least_e)                                   \
    DECODE_ONE_BOTH(kind, size, D, groups, least_d, least_e, LATTN_CUDA_SM80, 0, 0)
#define DECODE_FEW_ROWS(kind, size, D, groups)                                                     \
    DECODE_ONE_BOTH(kind, size, D, groups, 1, 1, LATTN_CUDA_SM90A, LATTN_NEEDS_MANY_GROUPS,        \
                    LATTN_DECODE_FEW_SHARED(groups))

#define DECODE_ROWS(kind)                                                                          \
    LATTN_DECODE_FEW_LIST(DECODE_FEW_ROWS, kind)                                                   \
    LATTN_DECODE_ONE_LIST(DECODE_ONE_ROWS, kind)                                                   \
    LATTN_DECODE_LIST(DECODE_WIDE_ROWS, kind)

#define TENSOR_ROWS                                                                                \
    LATTN_HOPPER_LIST(HOPPER_ROWS, bf16)                                                           \
    LATTN_HOPPER_LIST(HOPPER_ROWS, f16)                                                            \
    LATTN_HOPPER_FLOAT_LIST(HOPPER_FLOAT_ROW)                                                      \
    LATTN_TENSOR_HALF(TENSOR_ROW, bf16)                                                            \
    LATTN_TENSOR_HALF(TENSOR_ROW, f16)                                                             \
    LATTN_TENSOR_FLOAT(TENSOR_ROW, tf32)                                                           \
    LATTN_TENSOR_FLOAT(TENSOR_ROW, f32)                                                            \
    DECODE_ROWS(bf16)                                                                              \
    DECODE_ROWS(f16)                                                                               \
    DECODE_ROWS(f32)

#endif
