/* float32 as a sum of bfloat16 numbers: their products are what Hopper's matrix units do fastest,
 * and unlike products of tf32 they take operands that lie either way.
 *
 * Three parts are all of a float32; two are closer than tf32. Of the products of parts those that
 * matter are formed, the small ones first: the matrix units round towards zero each time they
 * accumulate, which costs little while a sum is small. */
#ifndef LATTN_HOPPER_FLOAT_PARTS_CUH
#define LATTN_HOPPER_FLOAT_PARTS_CUH

#include "hopper_wgmma.cuh"
#include "tensor_half.cuh"

/* Two neighbours, cut at bfloat16's length. Cut, not rounded, lest a number at the end of the range
 * become infinite. */
static __device__ __forceinline__ uint32_t lattn_part_first(float x, float y)
{
    return __byte_perm(__float_as_uint(x), __float_as_uint(y), 0x7632);
}

/* The same; x and y keep what is left of them. */
static __device__ __forceinline__ uint32_t lattn_part_take(float &x, float &y)
{
    const uint32_t part = lattn_part_first(x, y);
    x -= __uint_as_float(__float_as_uint(x) & 0xffff0000u);
    y -= __uint_as_float(__float_as_uint(y) & 0xffff0000u);
    return part;
}

/* The last part is rounded. */
template <int parts>
static __device__ __forceinline__ void lattn_parts_of(float x, float y, uint32_t part[parts])
{
#pragma unroll
    for (int i = 0; i < parts - 1; i++)
        part[i] = lattn_part_take(x, y);
    part[parts - 1] = lattn_pairs<__nv_bfloat16>::pack(x, y);
}

/* The products of parts, from the smallest to that of the first parts: f(part of a, part of b). */
template <int parts, typename F> static __device__ __forceinline__ void lattn_each_product(F f)
{
#pragma unroll
    for (int size = parts - 1; size >= 0; size--)
#pragma unroll
        for (int i = 0; i <= size; i++)
            f(i, size - i);
}

#endif
