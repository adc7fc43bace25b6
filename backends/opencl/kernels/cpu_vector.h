/* Vectors of 16 elements to and from global memory: what storage.h does, 16 at a time. */
#ifndef LATTN_CPU_VECTOR_H
#define LATTN_CPU_VECTOR_H

#include "storage.h"

/* Inlined for sure: that makes constants of arguments, and registers of tiles. */
#define CPU_FUNCTION static inline __attribute__((always_inline))

/* By bits, since compilers for CPUs without half arithmetic turn vload_half16 into 16 scalar
 * conversions: the multiplication moves the exponent's bias, subnormals included. */
CPU_FUNCTION float16 cpu_f16_to_f32(ushort16 half_bits)
{
    const uint16 bits = convert_uint16(half_bits);
    const uint16 magnitude = bits & 0x7fffu;
    const uint16 finite = as_uint16(as_float16(magnitude << 13) * 0x1p112f);
    const uint16 special = 0x7f800000u | (magnitude << 13);
    return as_float16(select(finite, special, magnitude >= 0x7c00u) | (bits & 0x8000u) << 16);
}

CPU_FUNCTION ushort16 cpu_f32_to_bf16(float16 value)
{
    const uint16 bits = as_uint16(value);
    const uint16 rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    const uint16 quieted = bits >> 16 | 0x40u;
    return convert_ushort16(select(rounded, quieted, (bits & 0x7fffffffu) > 0x7f800000u));
}

/* Compilers for CPUs store it whole, wherever it lies, where they take vstore16 apart. */
struct cpu_bits {
    ushort16 bits;
} __attribute__((packed));

CPU_FUNCTION float16 cpu_load(lattn_i32 type, LATTN_GLOBAL const void *base, lattn_i64 index)
{
    if (type == LATTN_TYPE_F32)
        return vload16(0, (LATTN_GLOBAL const float *)base + index);
    if (type == LATTN_TYPE_F16)
        return cpu_f16_to_f32(vload16(0, (LATTN_GLOBAL const ushort *)base + index));
    return as_float16(convert_uint16(vload16(0, (LATTN_GLOBAL const ushort *)base + index)) << 16);
}

CPU_FUNCTION void cpu_store(lattn_i32 type, LATTN_GLOBAL void *base, lattn_i64 index, float16 value)
{
    if (type == LATTN_TYPE_F32)
        vstore16(value, 0, (LATTN_GLOBAL float *)base + index);
    else if (type == LATTN_TYPE_F16)
        vstore_half16_rte(value, 0, (LATTN_GLOBAL half *)base + index);
    else
        ((LATTN_GLOBAL struct cpu_bits *)((LATTN_GLOBAL ushort *)base + index))->bits =
            cpu_f32_to_bf16(value);
}

/* Up to 16 elements, `stride` apart; those from `count` on are zero, and not touched in memory. */
CPU_FUNCTION float16 cpu_load_some(lattn_i32 type, LATTN_GLOBAL const void *base, lattn_i64 index,
                                   lattn_i64 stride, lattn_i32 count)
{
    float some[16];
    if (stride == 1 && count >= 16)
        return cpu_load(type, base, index);
    for (int i = 0; i < 16; i++)
        some[i] = i < count ? lattn_load(type, base, index + i * stride) : 0.0f;
    return vload16(0, some);
}

CPU_FUNCTION void cpu_store_some(lattn_i32 type, LATTN_GLOBAL void *base, lattn_i64 index,
                                 lattn_i64 stride, lattn_i32 count, float16 value)
{
    float some[16];
    if (stride == 1 && count >= 16) {
        cpu_store(type, base, index, value);
        return;
    }
    vstore16(value, 0, some);
    for (int i = 0; i < 16 && i < count; i++)
        lattn_store(type, base, index + i * stride, some[i]);
}

#endif
