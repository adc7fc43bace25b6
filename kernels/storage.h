/* Elements in memory: float32, float16 or bfloat16 there, float32 in registers. Where `type` is a
 * constant (q, k, v, o: LATTN_STORAGE) the choice costs nothing; states give theirs at run time. */
#ifndef LATTN_STORAGE_H
#define LATTN_STORAGE_H

#include "dialect.h"

LATTN_FUNCTION float lattn_bf16_to_f32(unsigned short bits)
{
    return lattn_float_of((unsigned int)bits << 16);
}

/* To nearest, ties to even. A NaN stays one: its quiet bit is set, lest the bits kept be zero. */
LATTN_FUNCTION unsigned short lattn_f32_to_bf16(float value)
{
    unsigned int bits = lattn_bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (unsigned short)((bits >> 16) | 0x40u);
    return (unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

LATTN_FUNCTION float lattn_load_f16(LATTN_GLOBAL const void *base, lattn_i64 index)
{
#if defined(__OPENCL_VERSION__)
    return vload_half(0, (LATTN_GLOBAL const half *)base + index);
#elif defined(__CUDACC__)
    return __half2float(((const __half *)base)[index]);
#else
    return (float)((const _Float16 *)base)[index];
#endif
}

/* To nearest, ties to even; beyond 65504 to infinity. */
LATTN_FUNCTION void lattn_store_f16(LATTN_GLOBAL void *base, lattn_i64 index, float value)
{
#if defined(__OPENCL_VERSION__)
    vstore_half_rte(value, 0, (LATTN_GLOBAL half *)base + index);
#elif defined(__CUDACC__)
    ((__half *)base)[index] = __float2half_rn(value);
#else
    ((_Float16 *)base)[index] = (_Float16)value;
#endif
}

LATTN_FUNCTION float lattn_load(lattn_i32 type, LATTN_GLOBAL const void *base, lattn_i64 index)
{
    if (type == LATTN_TYPE_F32)
        return ((LATTN_GLOBAL const float *)base)[index];
    if (type == LATTN_TYPE_F16)
        return lattn_load_f16(base, index);
    return lattn_bf16_to_f32(((LATTN_GLOBAL const unsigned short *)base)[index]);
}

LATTN_FUNCTION void lattn_store(lattn_i32 type, LATTN_GLOBAL void *base, lattn_i64 index,
                                float value)
{
    if (type == LATTN_TYPE_F32)
        ((LATTN_GLOBAL float *)base)[index] = value;
    else if (type == LATTN_TYPE_F16)
        lattn_store_f16(base, index, value);
    else
        ((LATTN_GLOBAL unsigned short *)base)[index] = lattn_f32_to_bf16(value);
}

#endif
