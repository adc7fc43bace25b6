/* Products of 16x16 tiles on the matrix cores, D = A B + D with float32 sums: what differs between
 * MFMA (waves of 64: gfx90a, gfx942, gfx950), WMMA of gfx11 and WMMA of gfx12 (waves of 32).
 *
 * Common to all: lane l has row l % 16 of A and column l % 16 of B, as a run of elements along the
 * inner dimension; and column l % 16 of D. So A of a matrix is B of its transpose, and a D rounded
 * to 16 bits is, by its runs of rows, B of a next product, or A of its transpose.
 *
 *            a lane's run of an operand     rows of D in a lane
 *   MFMA     4, from 4 (l / 16) on          4, from 4 (l / 16) on
 *   gfx11    all 16, in both half waves     8: every other one, from l / 16 on
 *   gfx12    8, from 8 (l / 16) on          8, from 8 (l / 16) on
 *
 * The order of the inner dimension is A's and B's to agree on: gfx12 has another one in its
 * registers, which changes no sum. */
#ifndef LATTN_HIP_MATRIX_H
#define LATTN_HIP_MATRIX_H

#include "kernels/dialect.h"
#include "kernels/storage.h"

#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
#define LATTN_MATRIX_MFMA 1
#define LATTN_MATRIX_FAMILY mfma
#define LATTN_WAVE 64
#elif defined(__GFX11__)
#define LATTN_MATRIX_GFX11 1
#define LATTN_MATRIX_FAMILY wmma
#define LATTN_WAVE 32
#elif defined(__GFX12__)
#define LATTN_MATRIX_GFX12 1
#define LATTN_MATRIX_FAMILY wmma
#define LATTN_WAVE 32
#endif

#ifdef LATTN_MATRIX_FAMILY

/* Elements of an operand in a lane, of an accumulator in a lane, and of the smallest piece in which
 * a lane reads an operand from group memory. */
#ifdef LATTN_MATRIX_MFMA
enum { lattn_operand_size = 4, lattn_accumulator_size = 4, lattn_granule = 4 };
#else
enum { lattn_accumulator_size = 8, lattn_granule = 8 };
#ifdef LATTN_MATRIX_GFX11
enum { lattn_operand_size = 16 };
#else
enum { lattn_operand_size = 8 };
#endif
#endif
enum { lattn_granule_bytes = 2 * lattn_granule };

typedef unsigned int lattn_u32;
typedef lattn_u32 lattn_u32x2 __attribute__((vector_size(8)));
typedef lattn_u32 lattn_u32x4 __attribute__((vector_size(16)));
typedef float lattn_accumulator __attribute__((vector_size(4 * lattn_accumulator_size)));

/* An operand, as pairs of elements. */
struct lattn_operand {
    lattn_u32 pair[lattn_operand_size / 2];
};

/* The same bits, as what an instruction takes. */
template <typename V> LATTN_FUNCTION V lattn_vector_of(const lattn_operand &operand)
{
    return __builtin_bit_cast(V, operand);
}

/* The value, of which the compiler knows nothing any more. What is computed from a lane's number is
 * the same for every chunk; made anew for each, it need not be kept in registers meanwhile. */
LATTN_FUNCTION int lattn_forget(int x)
{
#ifdef __AMDGCN__
    __asm__ volatile("" : "+v"(x));
#endif
    return x;
}

/* The same number in all lanes, which the compiler cannot see of a thread's number. */
LATTN_FUNCTION int lattn_wave()
{
    return __builtin_amdgcn_readfirstlane(lattn_thread_id() / LATTN_WAVE);
}

LATTN_FUNCTION bool lattn_any(bool x)
{
#if LATTN_WAVE == 64
    return __builtin_amdgcn_ballot_w64(x) != 0;
#else
    return __builtin_amdgcn_ballot_w32(x) != 0;
#endif
}

/* The value of lane l ^ distance. */
LATTN_FUNCTION lattn_u32 lattn_exchange(int lane, lattn_u32 x, int distance)
{
    return (lattn_u32)__builtin_amdgcn_ds_bpermute(4 * (lane ^ distance), (int)x);
}

/* ---- 16-bit elements ------------------------------------------------------------------------ */

/* Bytes by number, 0 to 3 of `low` and 4 to 7 of `high`. */
LATTN_FUNCTION lattn_u32 lattn_bytes(lattn_u32 high, lattn_u32 low, lattn_u32 which)
{
    return __builtin_amdgcn_perm(high, low, which);
}

struct lattn_bf16 {
    /* Every float32 has a place in bfloat16's range. In float16's not: there, what is made on the
     * way (states, scores) needs care. */
    static constexpr bool narrow = false;

    LATTN_FUNCTION float low(lattn_u32 pair)
    {
        return lattn_float_of(pair << 16);
    }
    LATTN_FUNCTION float high(lattn_u32 pair)
    {
        return lattn_float_of(pair & 0xffff0000u);
    }
    /* To nearest, ties away from zero: half the cost of ties to even, for values that only enter a
     * sum. A NaN that any 16-bit input or any arithmetic makes stays one. */
    LATTN_FUNCTION lattn_u32 pack(float low, float high)
    {
        return lattn_bytes(lattn_bits_of(high) + 0x8000u, lattn_bits_of(low) + 0x8000u,
                           0x07060302u);
    }
    LATTN_FUNCTION lattn_u32 round_pair(float low, float high)
    {
        return lattn_f32_to_bf16(low) | (lattn_u32)lattn_f32_to_bf16(high) << 16;
    }
    LATTN_FUNCTION lattn_accumulator multiply(const lattn_operand &a, const lattn_operand &b,
                                              lattn_accumulator c)
    {
        typedef short vector __attribute__((vector_size(2 * lattn_operand_size)));
#if defined(LATTN_MATRIX_MFMA)
        return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(lattn_vector_of<vector>(a),
                                                         lattn_vector_of<vector>(b), c, 0, 0, 0);
#elif defined(LATTN_MATRIX_GFX11)
        return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(lattn_vector_of<vector>(a),
                                                           lattn_vector_of<vector>(b), c);
#else
        return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(lattn_vector_of<vector>(a),
                                                                 lattn_vector_of<vector>(b), c);
#endif
    }
};

struct lattn_f16 {
    static constexpr bool narrow = true;

    LATTN_FUNCTION float low(lattn_u32 pair)
    {
        return (float)__builtin_bit_cast(_Float16, (unsigned short)pair);
    }
    LATTN_FUNCTION float high(lattn_u32 pair)
    {
        return (float)__builtin_bit_cast(_Float16, (unsigned short)(pair >> 16));
    }
    LATTN_FUNCTION lattn_u32 pack(float low, float high)
    {
        return __builtin_bit_cast(unsigned short, (_Float16)low) |
               (lattn_u32) __builtin_bit_cast(unsigned short, (_Float16)high) << 16;
    }
    LATTN_FUNCTION lattn_u32 round_pair(float low, float high)
    {
        return pack(low, high);
    }
    LATTN_FUNCTION lattn_accumulator multiply(const lattn_operand &a, const lattn_operand &b,
                                              lattn_accumulator c)
    {
        typedef _Float16 vector __attribute__((vector_size(2 * lattn_operand_size)));
#if defined(LATTN_MATRIX_MFMA)
        return __builtin_amdgcn_mfma_f32_16x16x16f16(lattn_vector_of<vector>(a),
                                                     lattn_vector_of<vector>(b), c, 0, 0, 0);
#elif defined(LATTN_MATRIX_GFX11)
        return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(lattn_vector_of<vector>(a),
                                                          lattn_vector_of<vector>(b), c);
#else
        return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(lattn_vector_of<vector>(a),
                                                                lattn_vector_of<vector>(b), c);
#endif
    }
};

/* ---- accumulators --------------------------------------------------------------------------- */

LATTN_FUNCTION lattn_accumulator lattn_zero()
{
    lattn_accumulator zero = {};
    return zero;
}

/* The value, computed by here and not when it is used. */
LATTN_FUNCTION lattn_accumulator lattn_settled(lattn_accumulator x)
{
#ifdef __AMDGCN__
    __asm__ volatile("" : "+v"(x));
#endif
    return x;
}

/* The row of element i. */
LATTN_FUNCTION int lattn_row(int lane, int i)
{
#ifdef LATTN_MATRIX_GFX11
    return 2 * i + lane / 16;
#else
    return lattn_accumulator_size * (lane / 16) + i;
#endif
}

/* The rounded pairs of an accumulator, as an operand. */
LATTN_FUNCTION lattn_operand lattn_operand_of(int lane,
                                              const lattn_u32 pairs[lattn_accumulator_size / 2])
{
    (void)lane;
    lattn_operand operand;
#ifdef LATTN_MATRIX_GFX11
    /* Rows alternate between the half waves: each takes the other's and shuffles the two. */
    const lattn_u32 lows = lane < 16 ? 0x05040100u : 0x01000504u;
    const lattn_u32 highs = lows + 0x02020202u;
#pragma unroll
    for (int i = 0; i < lattn_accumulator_size / 2; i++) {
        const lattn_u32 other = __builtin_amdgcn_permlanex16(pairs[i], pairs[i], 0x76543210u,
                                                             0xfedcba98u, false, false);
        operand.pair[2 * i] = lattn_bytes(other, pairs[i], lows);
        operand.pair[2 * i + 1] = lattn_bytes(other, pairs[i], highs);
    }
#else
#pragma unroll
    for (int i = 0; i < lattn_accumulator_size / 2; i++)
        operand.pair[i] = pairs[i];
#endif
    return operand;
}

template <typename T>
LATTN_FUNCTION lattn_operand lattn_round(int lane, const lattn_accumulator &x, float factor)
{
    lattn_u32 pairs[lattn_accumulator_size / 2];
#pragma unroll
    for (int i = 0; i < lattn_accumulator_size / 2; i++)
        pairs[i] = T::pack(x[2 * i] * factor, x[2 * i + 1] * factor);
    return lattn_operand_of(lane, pairs);
}

/* What lattn_round takes from it, rounded too; nothing where that is not finite. */
template <typename T>
LATTN_FUNCTION lattn_operand lattn_rest(int lane, const lattn_accumulator &x, float factor)
{
    lattn_u32 pairs[lattn_accumulator_size / 2];
#pragma unroll
    for (int i = 0; i < lattn_accumulator_size / 2; i++) {
        const float low = x[2 * i] * factor, high = x[2 * i + 1] * factor;
        const lattn_u32 rounded = T::pack(low, high);
        const float low_rest = low - T::low(rounded), high_rest = high - T::high(rounded);
        pairs[i] = T::pack(low_rest * 0.0f == 0.0f ? low_rest : 0.0f,
                           high_rest * 0.0f == 0.0f ? high_rest : 0.0f);
    }
    return lattn_operand_of(lane, pairs);
}

/* The granule of an operand of lattn_operand_of that this lane stores, if all lanes store theirs:
 * inner elements from lattn_granule * (lane / 16) on. */
LATTN_FUNCTION void lattn_own_granule(int lane, const lattn_operand &operand,
                                      lattn_u32 granule[lattn_granule / 2])
{
    (void)lane;
#pragma unroll
    for (int i = 0; i < lattn_granule / 2; i++) {
#ifdef LATTN_MATRIX_GFX11
        granule[i] = lane < 16 ? operand.pair[i] : operand.pair[lattn_granule / 2 + i];
#else
        granule[i] = operand.pair[i];
#endif
    }
}

#endif
#endif
