/* The wide decode kernels: states adjacent along e, or along d. */
#include "decode_one.cuh"
#include "decode_wide.cuh"

#define LATTN_DECODE_TYPE_f32 LATTN_TYPE_F32
#define LATTN_DECODE_TYPE_f16 LATTN_TYPE_F16
#define LATTN_DECODE_TYPE_bf16 LATTN_TYPE_BF16

#define LATTN_DECODE_WIDE(kind, along, along_d, D, groups)                                         \
    extern "C" __global__ void __launch_bounds__(LATTN_DECODE_GROUP(D), groups)                    \
        lattn_decode_wide_##kind##_##along##_d##D(LATTN_KERNEL_PARAMS)                             \
    {                                                                                              \
        lattn_decode_wide<LATTN_DECODE_TYPE_##kind, along_d, D>::run(                              \
            q, k, v, o, slopes, has_initial, state_in, slot_in, state_out, slot_out, kept, a);     \
    }
#define LATTN_DECODE_WIDE_BOTH(kind, D, groups)                                                    \
    LATTN_DECODE_WIDE(kind, e, false, D, groups)                                                   \
    LATTN_DECODE_WIDE(kind, d, true, D, groups)

#define LATTN_DECODE_ONE(kind, size, along, along_d, D, groups)                                    \
    extern "C" __global__ void __launch_bounds__(LATTN_DECODE_ONE_GROUP(size, D), groups)          \
        lattn_decode_one_##kind##_s##size##_##along##_d##D(LATTN_KERNEL_PARAMS)                    \
    {                                                                                              \
        lattn_decode_one<LATTN_DECODE_TYPE_##kind, size, along_d, D>::run(                         \
            q, k, v, o, slopes, has_initial, state_in, slot_in, state_out, slot_out, a);           \
    }
#define LATTN_DECODE_ONE_BOTH(kind, size, D, groups, d_min, e_min)                                 \
    LATTN_DECODE_ONE(kind, size, e, false, D, groups)                                              \
    LATTN_DECODE_ONE(kind, size, d, true, D, groups)

LATTN_DECODE_LIST(LATTN_DECODE_WIDE_BOTH, f32)
LATTN_DECODE_LIST(LATTN_DECODE_WIDE_BOTH, f16)
LATTN_DECODE_LIST(LATTN_DECODE_WIDE_BOTH, bf16)
LATTN_DECODE_ONE_LIST(LATTN_DECODE_ONE_BOTH, f32)
LATTN_DECODE_ONE_LIST(LATTN_DECODE_ONE_BOTH, f16)
LATTN_DECODE_ONE_LIST(LATTN_DECODE_ONE_BOTH, bf16)
