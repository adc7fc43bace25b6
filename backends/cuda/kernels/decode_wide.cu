/* The wide decode kernels: states adjacent along e, or along d. */
#include "decode_half.cuh"
#include "decode_wide.cuh"

#define LATTN_DECODE_KERNELS(kind, type, along, along_d, D, groups, half_groups)                   \
    extern "C" __global__ void __launch_bounds__(LATTN_DECODE_GROUP(D), groups)                    \
        lattn_decode_wide_##kind##_##along##_d##D(LATTN_KERNEL_PARAMS)                             \
    {                                                                                              \
        lattn_decode_wide<type, along_d, D>::run(q, k, v, o, slopes, has_initial, state_in,        \
                                                 slot_in, state_out, slot_out, kept, a);           \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(LATTN_DECODE_HALF_GROUP(D), half_groups)          \
        lattn_decode_half_##kind##_##along##_d##D(LATTN_KERNEL_PARAMS)                             \
    {                                                                                              \
        lattn_decode_half<type, along_d, D>::run(q, k, v, o, slopes, has_initial, state_in,        \
                                                 slot_in, state_out, slot_out, a);                 \
    }
#define LATTN_DECODE_BOTH(kind, D, groups, half_groups)                                            \
    LATTN_DECODE_KERNELS(kind, LATTN_DECODE_TYPE_##kind, e, false, D, groups, half_groups)         \
    LATTN_DECODE_KERNELS(kind, LATTN_DECODE_TYPE_##kind, d, true, D, groups, half_groups)
#define LATTN_DECODE_TYPE_f32 LATTN_TYPE_F32
#define LATTN_DECODE_TYPE_f16 LATTN_TYPE_F16
#define LATTN_DECODE_TYPE_bf16 LATTN_TYPE_BF16

LATTN_DECODE_LIST(LATTN_DECODE_BOTH, f32)
LATTN_DECODE_LIST(LATTN_DECODE_BOTH, f16)
LATTN_DECODE_LIST(LATTN_DECODE_BOTH, bf16)
