/* Products of 16-bit elements, as tensor_walk.cuh takes them: operands of 16x16 and 16x8, loaded
 * with ldmatrix. In a fragment, lane i has row i / 4 (and 8 further) and columns 2 (i % 4) and the
 * next (and 8 further). */
#ifndef LATTN_TENSOR_HALF_CUH
#define LATTN_TENSOR_HALF_CUH

#include "kernels/args.h"
#include "tensor_tile.cuh"

template <typename T> struct lattn_pairs;

/* Every finite float32 has a place in bfloat16's range, not so in float16's (`narrow`): there, what
 * is rounded on the way (states, scores) needs care. */
template <> struct lattn_pairs<__nv_bfloat16> {
    static constexpr bool narrow = false;

    static __device__ __forceinline__ uint32_t pack(float low, float high)
    {
        uint32_t x;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
        return x;
    }
    static __device__ __forceinline__ float value(uint16_t x)
    {
        return __uint_as_float((uint32_t)x << 16);
    }
    /* x times the sum of `high` and `low`, rounded once. */
    static __device__ __forceinline__ uint32_t multiply_split(uint32_t x, uint32_t high,
                                                              uint32_t low)
    {
        uint32_t y;
        asm("{\n\t.reg .b32 t;\n\tmul.rn.bf16x2 t, %1, %3;\n\tfma.rn.bf16x2 %0, %1, %2, t;\n\t}"
            : "=r"(y)
            : "r"(x), "r"(high), "r"(low));
        return y;
    }
    /* sum + 0 x: undefined if x is not finite. */
    static __device__ __forceinline__ uint32_t spoil(uint32_t sum, uint32_t x)
    {
        asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(0));
        return sum;
    }
    static __device__ __forceinline__ void multiply(float c[4], const uint32_t a[4],
                                                    const uint32_t b[2])
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};

template <> struct lattn_pairs<__half> {
    static constexpr bool narrow = true;

    static __device__ __forceinline__ uint32_t pack(float low, float high)
    {
        uint32_t x;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
        return x;
    }
    static __device__ __forceinline__ float value(uint16_t x)
    {
        return __half2float(__ushort_as_half(x));
    }
    static __device__ __forceinline__ uint32_t multiply_split(uint32_t x, uint32_t high,
                                                              uint32_t low)
    {
        uint32_t y;
        asm("{\n\t.reg .b32 t;\n\tmul.rn.f16x2 t, %1, %3;\n\tfma.rn.f16x2 %0, %1, %2, t;\n\t}"
            : "=r"(y)
            : "r"(x), "r"(high), "r"(low));
        return y;
    }
    static __device__ __forceinline__ uint32_t spoil(uint32_t sum, uint32_t x)
    {
        asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(sum) : "r"(x), "r"(0));
        return sum;
    }
    static __device__ __forceinline__ void multiply(float c[4], const uint32_t a[4],
                                                    const uint32_t b[2])
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};

template <typename T, bool is_narrow> struct lattn_half {
    typedef uint16_t element;
    typedef lattn_pairs<T> pairs;
    static constexpr bool narrow = is_narrow, exact_sums = false, split_scores = true;
    static constexpr int type = is_narrow ? LATTN_TYPE_F16 : LATTN_TYPE_BF16;

    struct operand_a {
        uint32_t r[4];
    };
    struct operand_b {
        uint32_t r[2];
    };

    static __device__ __forceinline__ void multiply(float c[4], const operand_a &a,
                                                    const operand_b &b)
    {
        pairs::multiply(c, a.r, b.r);
    }

    /* A of 16 rows and 16 columns, the sum running along rows. */
    template <int chunks>
    static __device__ __forceinline__ operand_a load_a(uint32_t tile, int row, int column)
    {
        const int lane = threadIdx.x & 31;
        operand_a a;
        lattn_ldmatrix(a.r,
                       tile + lattn_tile_at<chunks>(row + (lane & 15), column / 8 + (lane >> 4)));
        return a;
    }
    /* S as A, with v as B. */
    template <int chunks>
    static __device__ __forceinline__ operand_a load_scores(uint32_t tile, int row, int column)
    {
        return load_a<chunks>(tile, row, column);
    }
    /* The transpose of 16 rows and 16 columns as B: of the first 8 rows and the next. */
    template <int chunks>
    static __device__ __forceinline__ void load_bt(operand_b b[2], uint32_t tile, int row,
                                                   int column)
    {
        const int lane = threadIdx.x & 31;
        uint32_t r[4];
        lattn_ldmatrix(r, tile + lattn_tile_at<chunks>(row + (lane & 7) + (lane >> 4 << 3),
                                                       column / 8 + (lane >> 3 & 1)));
        b[0] = {{r[0], r[1]}};
        b[1] = {{r[2], r[3]}};
    }
    /* 16 rows and 16 columns as B: the first 8 columns and the next. */
    template <int chunks>
    static __device__ __forceinline__ void load_b(operand_b b[2], uint32_t tile, int row,
                                                  int column)
    {
        const int lane = threadIdx.x & 31;
        uint32_t r[4];
        lattn_ldmatrix_trans(
            r, tile + lattn_tile_at<chunks>(row + (lane & 15), column / 8 + (lane >> 4)));
        b[0] = {{r[0], r[1]}};
        b[1] = {{r[2], r[3]}};
    }

    /* 16 tokens and 16 columns of v: B as they are, A transposed and weighed. */
    struct values {
        uint32_t r[4];
    };
    template <int chunks>
    static __device__ __forceinline__ values load_values(uint32_t tile, int row, int column)
    {
        const int lane = threadIdx.x & 31;
        values v;
        lattn_ldmatrix_trans(v.r, tile + lattn_tile_at<chunks>(row + (lane & 7) + (lane >> 4 << 3),
                                                               column / 8 + (lane >> 3 & 1)));
        return v;
    }
    static __device__ __forceinline__ operand_b values_b(const values &v, int half)
    {
        return {{v.r[half], v.r[half + 2]}};
    }
    /* The token, of 16, that weight i of four belongs to. */
    static __device__ __forceinline__ int weight_token(int i)
    {
        return (int)(threadIdx.x & 3) * 2 + i / 2 * 8 + i % 2;
    }
    static __device__ __forceinline__ operand_a values_a(const values &v, const float w[4])
    {
        operand_a a;
#pragma unroll
        for (int i = 0; i < 4; i++)
            a.r[i] = pairs::pack(pairs::value((uint16_t)v.r[i]) * w[i / 2 * 2],
                                 pairs::value((uint16_t)(v.r[i] >> 16)) * w[i / 2 * 2 + 1]);
        return a;
    }

    /* Two accumulators side by side, of 8x8 each, as B of the transposed 16x8. */
    static __device__ __forceinline__ operand_b from_sums(float s0, float s1, float t0, float t1)
    {
        return {{pairs::pack(s0, s1), pairs::pack(t0, t1)}};
    }
    /* Two neighbours in a row of a tile. */
    static __device__ __forceinline__ void store_pair(uint32_t at, float low, float high)
    {
        lattn_store_shared(at, pairs::pack(low, high));
    }
    static __device__ __forceinline__ float rest(float x)
    {
        return x - pairs::value((uint16_t)pairs::pack(x, 0.0f));
    }
    static __device__ __forceinline__ float load_element(uint32_t at)
    {
        return pairs::value(lattn_load_shared_half(at));
    }
};

#endif
