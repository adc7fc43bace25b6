/* Products of float32 on the tf32 units, as tensor_walk.cuh takes them. With `exact`, an operand is
 * the sum of two tf32 numbers and a product is three: what is left out is of the size of float32's
 * own rounding.
 *
 * Where both operands have the summed axis along rows of a tile, lane i takes columns 2 (i % 4) and
 * the next in place of i % 4 and i % 4 + 4: the sum is the same, an access has 64 bits, and an
 * accumulator's registers are a B operand as they are. */
#ifndef LATTN_TENSOR_TF32_CUH
#define LATTN_TENSOR_TF32_CUH

#include "kernels/args.h"
#include "tensor_tile.cuh"

template <bool exact> struct lattn_tf32 {
    typedef uint32_t element;
    static constexpr bool narrow = false, exact_sums = exact, split_scores = false;
    static constexpr int type = LATTN_TYPE_F32;
    static constexpr int parts = exact ? 2 : 1;

    /* [part][two steps of 8 along the summed axis][registers of a step] */
    struct operand_a {
        uint32_t r[parts][2][4];
    };
    struct operand_b {
        uint32_t r[parts][2][2];
    };

    static __device__ __forceinline__ uint32_t round(float x)
    {
        uint32_t y;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
        return y;
    }
    /* The units cut off what tf32 has no bits for. Adding the part of a number that this takes on
     * average is a multiplication, and several times as fast as rounding; what tf32 has the bits
     * for stays as it is, and so do NaN and infinity. */
    static __device__ __forceinline__ uint32_t uncut(float x)
    {
        return __float_as_uint(x * (1.0f + 0.7f / 2048.0f));
    }
    template <typename operand>
    static __device__ __forceinline__ void put(operand &to, int step, int i, float x)
    {
        to.r[0][step][i] = exact ? round(x) : uncut(x);
        if (exact)
            to.r[parts - 1][step][i] = round(x - __uint_as_float(to.r[0][step][i]));
    }
    template <typename operand>
    static __device__ __forceinline__ void put(operand &to, int step, int i, uint32_t x)
    {
        put(to, step, i, __uint_as_float(x));
    }

    static __device__ __forceinline__ void multiply_step(float c[4], const uint32_t a[4],
                                                         const uint32_t b[2])
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    static __device__ __forceinline__ void multiply(float c[4], const operand_a &a,
                                                    const operand_b &b)
    {
#pragma unroll
        for (int step = 0; step < 2; step++) {
            if (exact) {
                multiply_step(c, a.r[parts - 1][step], b.r[0][step]);
                multiply_step(c, a.r[0][step], b.r[parts - 1][step]);
            }
            multiply_step(c, a.r[0][step], b.r[0][step]);
        }
    }

    static __device__ __forceinline__ int lane_row()
    {
        return (int)(threadIdx.x & 31) >> 2;
    }
    static __device__ __forceinline__ int lane_column()
    {
        return (int)threadIdx.x & 3;
    }
    template <int chunks>
    static __device__ __forceinline__ uint32_t at(uint32_t tile, int row, int column)
    {
        return tile + lattn_tile_at<chunks>(row, column / 4) + column % 4 * 4;
    }

    template <int chunks>
    static __device__ __forceinline__ operand_a load_a(uint32_t tile, int row, int column)
    {
        operand_a a;
#pragma unroll
        for (int step = 0; step < 2; step++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const uint2 x = lattn_load_shared2(at<chunks>(
                    tile, row + half * 8 + lane_row(), column + step * 8 + lane_column() * 2));
                put(a, step, half, x.x);
                put(a, step, half + 2, x.y);
            }
        }
        return a;
    }
    template <int chunks>
    static __device__ __forceinline__ operand_a load_scores(uint32_t tile, int row, int column)
    {
        const int lane = threadIdx.x & 31;
        operand_a a;
#pragma unroll
        for (int step = 0; step < 2; step++) {
            uint32_t r[4];
            lattn_ldmatrix(r, tile + lattn_tile_at<chunks>(row + (lane & 15),
                                                           column / 4 + step * 2 + (lane >> 4)));
#pragma unroll
            for (int i = 0; i < 4; i++)
                put(a, step, i, r[i]);
        }
        return a;
    }
    template <int chunks>
    static __device__ __forceinline__ void load_bt(operand_b b[2], uint32_t tile, int row,
                                                   int column)
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
#pragma unroll
            for (int step = 0; step < 2; step++) {
                const uint2 x = lattn_load_shared2(at<chunks>(
                    tile, row + half * 8 + lane_row(), column + step * 8 + lane_column() * 2));
                put(b[half], step, 0, x.x);
                put(b[half], step, 1, x.y);
            }
        }
    }
    template <int chunks>
    static __device__ __forceinline__ void load_b(operand_b b[2], uint32_t tile, int row,
                                                  int column)
    {
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int step = 0; step < 2; step++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    put(b[half], step, i,
                        lattn_load_shared(at<chunks>(tile, row + step * 8 + i * 4 + lane_column(),
                                                     column + half * 8 + lane_row())));
    }

    struct values {
        uint32_t r[2][4];
    };
    template <int chunks>
    static __device__ __forceinline__ values load_values(uint32_t tile, int row, int column)
    {
        values v;
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                v.r[step][i] =
                    lattn_load_shared(at<chunks>(tile, row + step * 8 + i / 2 * 4 + lane_column(),
                                                 column + i % 2 * 8 + lane_row()));
        return v;
    }
    static __device__ __forceinline__ operand_b values_b(const values &v, int half)
    {
        operand_b b;
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                put(b, step, i, v.r[step][half + i * 2]);
        return b;
    }
    static __device__ __forceinline__ int weight_token(int i)
    {
        return i / 2 * 8 + i % 2 * 4 + lane_column();
    }
    static __device__ __forceinline__ operand_a values_a(const values &v, const float w[4])
    {
        operand_a a;
#pragma unroll
        for (int step = 0; step < 2; step++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                put(a, step, i, __uint_as_float(v.r[step][i]) * w[step * 2 + i / 2]);
        return a;
    }

    static __device__ __forceinline__ operand_b from_sums(float s0, float s1, float t0, float t1)
    {
        operand_b b;
        put(b, 0, 0, s0);
        put(b, 0, 1, s1);
        put(b, 1, 0, t0);
        put(b, 1, 1, t1);
        return b;
    }
    static __device__ __forceinline__ void store_pair(uint32_t at, float low, float high)
    {
        lattn_store_shared2(at, __float_as_uint(low), __float_as_uint(high));
    }
    static __device__ __forceinline__ float rest(float)
    {
        return 0.0f;
    }
    static __device__ __forceinline__ float load_element(uint32_t at)
    {
        return __uint_as_float(lattn_load_shared(at));
    }
};

#endif
