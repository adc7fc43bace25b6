/* Decode with 16-byte accesses. A group has some columns of a state, with all of d, spread over its
 * threads so that neighbours read neighbouring memory, along e or along d. All of a thread's loads
 * are under way at once; a state is read and written once, however many the tokens, and is not kept
 * in the caches. */
#ifndef LATTN_DECODE_WIDE_CUH
#define LATTN_DECODE_WIDE_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#include "group.cuh"
#include "kernels/sequence.h"
#include "kernels/storage.h"
#include "tensor_list.h"

/* Four elements of a state, adjacent in memory. */
static __device__ __forceinline__ float4 lattn_load4(int type, const void *base, lattn_i64 at)
{
    if (type == LATTN_TYPE_F32)
        return __ldcs((const float4 *)((const float *)base + at));
    const uint2 x = __ldcs((const uint2 *)((const uint16_t *)base + at));
    if (type == LATTN_TYPE_BF16)
        return make_float4(__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000u),
                           __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000u));
    const float2 low = __half22float2(*(const __half2 *)&x.x);
    const float2 high = __half22float2(*(const __half2 *)&x.y);
    return make_float4(low.x, low.y, high.x, high.y);
}

static __device__ __forceinline__ void lattn_store4(int type, void *base, lattn_i64 at, float4 s)
{
    uint2 x;
    if (type == LATTN_TYPE_F32) {
        __stcs((float4 *)((float *)base + at), s);
        return;
    }
    if (type == LATTN_TYPE_BF16) {
        const __nv_bfloat162 low = __floats2bfloat162_rn(s.x, s.y);
        const __nv_bfloat162 high = __floats2bfloat162_rn(s.z, s.w);
        x = make_uint2(*(const uint32_t *)&low, *(const uint32_t *)&high);
    } else {
        const __half2 low = __floats2half2_rn(s.x, s.y), high = __floats2half2_rn(s.z, s.w);
        x = make_uint2(*(const uint32_t *)&low, *(const uint32_t *)&high);
    }
    __stcs((uint2 *)((uint16_t *)base + at), x);
}

/* `type`: of q, k, v, o. D: d, padded to 64, 128 or 256. A thread has eight times four elements:
 * along e, four columns of eight adjacent rows; along d, four rows of eight columns (with D = 256,
 * twice four rows of four). */
template <int type, bool along_d, int D> struct lattn_decode_wide {
    static constexpr int columns = LATTN_DECODE_COLUMNS(D); /* of a group */
    static constexpr int pieces = 8, threads = LATTN_DECODE_GROUP(D), warps = threads / 32;
    static_assert(D * columns == 4 * pieces * threads, "a thread has eight pieces");
    static constexpr int lanes = along_d ? (D == 64 ? 16 : 32) : columns / 4; /* side by side */
    static constexpr bool two_rows = along_d && D == 256, two_columns = along_d && !two_rows;

    struct shared {
        float q[LATTN_DECODE_TOKENS][D], k[LATTN_DECODE_TOKENS][D];
        float v[LATTN_DECODE_TOKENS][columns];
        float sums[along_d ? 1 : warps][LATTN_DECODE_TOKENS][columns];
    };
    static_assert(sizeof(shared) == LATTN_DECODE_SHARED(D, along_d ? 1 : warps),
                  "the catalogue counts on as much");

    /* A thread's first row and column, and where its pieces are from there. */
    static __device__ __forceinline__ int row()
    {
        return along_d ? (int)threadIdx.x % lanes * 4 : (int)threadIdx.x / lanes * pieces;
    }
    static __device__ __forceinline__ int column()
    {
        return along_d ? (int)threadIdx.x / lanes * (two_columns ? 8 : 4)
                       : (int)threadIdx.x % lanes * 4;
    }
    static __device__ __forceinline__ int row_step(int i)
    {
        return two_rows ? i / 4 * 128 : along_d ? 0 : i;
    }
    static __device__ __forceinline__ int column_step(int i)
    {
        return two_rows ? i % 4 : along_d ? i : 0;
    }

    /* Of piece i, in memory. */
    static __device__ __forceinline__ lattn_i64 at(const struct lattn_state_layout &layout, int i)
    {
        return along_d ? (column() + column_step(i)) * layout.e + row() + row_step(i)
                       : (row() + row_step(i)) * layout.d + column();
    }
    static __device__ __forceinline__ bool real(int i, int d, int e)
    {
        return row() + row_step(i) < d && column() + column_step(i) < e;
    }

    static __device__ __forceinline__ void put(const float4 s[pieces],
                                               const struct lattn_state_layout &layout, void *base,
                                               lattn_i64 from, int d, int e)
    {
#pragma unroll
        for (int i = 0; i < pieces; i++) {
            if (real(i, d, e))
                lattn_store4(layout.type, base, from + at(layout, i), s[i]);
        }
    }

    /* The tokens, as float32; zero beyond d and e. */
    static __device__ __forceinline__ void gather(shared &memory, const void *q, const void *k,
                                                  const void *v,
                                                  const struct lattn_sequence &sequence, int head,
                                                  int tokens, int first_e,
                                                  const struct lattn_args &a)
    {
        const lattn_i64 q_at = lattn_token_at(&a.q, &sequence, head / a.group, 0);
        const lattn_i64 k_at = lattn_token_at(&a.k, &sequence, head / a.group, 0);
        const lattn_i64 v_at = lattn_token_at(&a.v, &sequence, head, 0) + first_e;
#pragma unroll 4
        for (int i = threadIdx.x; i < tokens * 2 * D; i += threads) {
            const int t = i / (2 * D), j = i % D;
            const bool of_k = i % (2 * D) >= D;
            const lattn_i64 from = of_k ? k_at + t * a.k.token : q_at + t * a.q.token;
            (of_k ? memory.k : memory.q)[t][j] =
                j < a.d ? lattn_load(type, of_k ? k : q, from + j) : 0.0f;
        }
        for (int i = threadIdx.x; i < tokens * columns; i += threads) {
            const int t = i / columns, j = i % columns;
            memory.v[t][j] =
                first_e + j < a.e ? lattn_load(type, v, v_at + t * a.v.token + j) : 0.0f;
        }
    }

    /* s = g s + k v, and q s of the thread's four columns (or eight: two_columns). */
    static __device__ __forceinline__ void step(float4 s[pieces], const float *q, const float *k,
                                                const float *v, float decay, float4 sums[2])
    {
        sums[0] = sums[1] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int at = row() + (two_rows ? half * 128 : along_d ? 0 : half * 4);
            const float4 q4 = *(const float4 *)(q + at), k4 = *(const float4 *)(k + at);
            const float4 v4 = *(const float4 *)(v + column() + (two_columns ? half * 4 : 0));
            float4 &sum = sums[two_columns ? half : 0];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float4 &x = s[half * 4 + i];
                if (along_d) {
                    const float y = i == 0 ? v4.x : i == 1 ? v4.y : i == 2 ? v4.z : v4.w;
                    float &out = i == 0 ? sum.x : i == 1 ? sum.y : i == 2 ? sum.z : sum.w;
                    x.x = fmaf(k4.x, y, decay * x.x);
                    x.y = fmaf(k4.y, y, decay * x.y);
                    x.z = fmaf(k4.z, y, decay * x.z);
                    x.w = fmaf(k4.w, y, decay * x.w);
                    out = fmaf(q4.x, x.x, fmaf(q4.y, x.y, fmaf(q4.z, x.z, fmaf(q4.w, x.w, out))));
                } else {
                    const float y = i == 0 ? k4.x : i == 1 ? k4.y : i == 2 ? k4.z : k4.w;
                    const float z = i == 0 ? q4.x : i == 1 ? q4.y : i == 2 ? q4.z : q4.w;
                    x.x = fmaf(y, v4.x, decay * x.x);
                    x.y = fmaf(y, v4.y, decay * x.y);
                    x.z = fmaf(y, v4.z, decay * x.z);
                    x.w = fmaf(y, v4.w, decay * x.w);
                    sum.x = fmaf(z, x.x, sum.x);
                    sum.y = fmaf(z, x.y, sum.y);
                    sum.z = fmaf(z, x.z, sum.z);
                    sum.w = fmaf(z, x.w, sum.w);
                }
            }
        }
    }

    /* Sums over the lanes of a warp that share four columns, into `to`. Lanes exchange halves of
     * what they have until each has one column. */
    static __device__ __forceinline__ void reduce(float4 sum, float *to)
    {
        constexpr int first = along_d ? 1 : lanes, last = along_d ? lanes : 32;
        const int lane = threadIdx.x % 32;
        const bool upper = lane & first, odd = lane & first * 2;
        float2 pair = upper ? make_float2(sum.z, sum.w) : make_float2(sum.x, sum.y);
        pair.x += __shfl_xor_sync(0xffffffffu, upper ? sum.x : sum.z, first);
        pair.y += __shfl_xor_sync(0xffffffffu, upper ? sum.y : sum.w, first);
        to += upper ? 2 : 0;
        if (first * 2 < last) {
            float one = odd ? pair.y : pair.x;
            one += __shfl_xor_sync(0xffffffffu, odd ? pair.x : pair.y, first * 2);
#pragma unroll
            for (int i = first * 4; i < last; i *= 2)
                one += __shfl_xor_sync(0xffffffffu, one, i);
            if (!(lane & (last - 1) & ~(first * 4 - 1)))
                to[odd ? 1 : 0] = one;
        } else {
            *(float2 *)to = pair;
        }
    }

    static __device__ __forceinline__ void
    run(const void *q, const void *k, const void *v, void *o, const float *slopes,
        const unsigned char *has_initial, const void *state_in, const void *slot_in,
        void *state_out, const void *slot_out, void *kept, const struct lattn_args &a)
    {
        __shared__ __align__(16) shared memory;
        struct lattn_group group;
        struct lattn_sequence sequence;
        struct lattn_slots slots;
        lattn_group_here(a, columns, &group);
        lattn_sequence_get(&a, NULL, (lattn_i32)group.segment, &sequence);
        lattn_slots_get(&a, has_initial, slot_in, slot_out, sequence.number, &slots);
        const int head = group.head, tokens = (int)a.tokens, first_e = group.e_tile * columns;
        const int e = a.e - first_e;
        const lattn_i64 o_at = lattn_token_at(&a.o, &sequence, head, 0) + first_e;
        if (slots.padding) {
            for (int i = threadIdx.x; i < tokens * columns; i += threads) {
                if (i % columns < e)
                    lattn_store(type, o, o_at + i / columns * a.o.token + i % columns, 0.0f);
            }
            return;
        }

        float4 s[pieces];
        const lattn_i64 in_at =
            lattn_state_at(&a.in, slots.in, head) + first_e * (along_d ? a.in.e : 1);
#pragma unroll
        for (int i = 0; i < pieces; i++) {
            s[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (slots.initial && real(i, a.d, e))
                s[i] = lattn_load4(a.in.type, state_in, in_at + at(a.in, i));
        }
        gather(memory, q, k, v, sequence, head, tokens, first_e, a);
        const float decay = lattn_decay_weight(slopes[a.slopes + head], 1);
        __syncthreads();

        for (int t = 0; t < tokens; t++) {
            float4 sums[2];
            step(s, memory.q[t], memory.k[t], memory.v[t], decay, sums);
            float *const to = memory.sums[along_d ? 0 : threadIdx.x / 32][t] + column();
            reduce(sums[0], to);
            if (two_columns)
                reduce(sums[1], to + 4);
            if (a.flags & LATTN_FLAG_KEPT)
                put(s, a.kept, kept,
                    lattn_state_at(&a.kept, (lattn_i64)sequence.number * tokens + t, head) +
                        first_e * (along_d ? a.kept.e : 1),
                    a.d, e);
        }
        if (a.flags & LATTN_FLAG_STATE_OUT)
            put(s, a.out, state_out,
                lattn_state_at(&a.out, slots.out, head) + first_e * (along_d ? a.out.e : 1), a.d,
                e);
        __syncthreads();

        for (int i = threadIdx.x; i < tokens * columns; i += threads) {
            const int t = i / columns, j = i % columns;
            float sum = 0.0f;
#pragma unroll
            for (int w = 0; w < (along_d ? 1 : warps); w++)
                sum += memory.sums[w][t][j];
            if (j < e)
                lattn_store(type, o, o_at + t * a.o.token + j, sum * a.scale);
        }
    }
};

#endif
