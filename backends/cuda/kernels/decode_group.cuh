/* What the wide decode kernels share: where a group's states are, its tokens, its sums. */
#ifndef LATTN_DECODE_GROUP_CUH
#define LATTN_DECODE_GROUP_CUH

#include <cuda_bf16.h>
#include <stdint.h>

#include "group.cuh"
#include "kernels/sequence.h"
#include "kernels/storage.h"

/* As lattn_slots_get, but what it loads is under way at once. */
static __device__ __forceinline__ void lattn_decode_slots(const struct lattn_args &a,
                                                          const unsigned char *has_initial,
                                                          const void *slot_in, const void *slot_out,
                                                          int sequence, struct lattn_slots *slots)
{
    const bool in = a.flags & LATTN_FLAG_SLOT_IN, out = a.flags & LATTN_FLAG_SLOT_OUT;
    const int wide_in = a.flags & LATTN_FLAG_SLOT_IN_64 ? 1 : 0;
    const int wide_out = a.flags & LATTN_FLAG_SLOT_OUT_64 ? 1 : 0;
    uint32_t in_low = 0, in_high = 0, out_low = 0, out_high = 0;
    unsigned char initial = 1;
    if (in) {
        const uint32_t *const at = (const uint32_t *)slot_in + ((a.slot_in + sequence) << wide_in);
        in_low = at[0], in_high = at[wide_in];
    }
    if (out) {
        const uint32_t *const at =
            (const uint32_t *)slot_out + ((a.slot_out + sequence) << wide_out);
        out_low = at[0], out_high = at[wide_out];
    }
    if (a.flags & LATTN_FLAG_HAS_INITIAL)
        initial = has_initial[a.has_initial + sequence];
    slots->in = slots->out = sequence;
    if (in)
        slots->in = wide_in ? (lattn_i64)((uint64_t)in_high << 32 | in_low) : (int)in_low;
    if (out)
        slots->out = wide_out ? (lattn_i64)((uint64_t)out_high << 32 | out_low) : (int)out_low;
    slots->initial = (a.flags & LATTN_FLAG_STATE_IN) && initial;
    /* Negative ones are large, unsigned. */
    slots->padding =
        (slots->initial && (uint64_t)slots->in >= (uint64_t)a.in.slots) ||
        ((a.flags & LATTN_FLAG_STATE_OUT) && (uint64_t)slots->out >= (uint64_t)a.out.slots);
}

/* What a group has: a sequence's tokens, for a head and for `e` columns from `first_e` on. */
struct lattn_decode_work {
    struct lattn_sequence sequence;
    struct lattn_slots slots;
    int head, first_e, e;
    lattn_i64 o_at; /* where its outputs begin */

    __device__ __forceinline__ lattn_decode_work(const struct lattn_args &a, int columns,
                                                 const unsigned char *has_initial,
                                                 const void *slot_in, const void *slot_out)
    {
        struct lattn_group group;
        lattn_group_here(a, columns, &group);
        sequence.number = sequence.row = (lattn_i32)group.segment;
        sequence.first = 0;
        sequence.length = a.tokens;
        lattn_decode_slots(a, has_initial, slot_in, slot_out, sequence.number, &slots);
        head = group.head;
        first_e = group.e_tile * columns;
        e = a.e - first_e;
        o_at = lattn_token_at(&a.o, &sequence, head, 0) + first_e;
    }
};

template <int type> struct lattn_bits {
    typedef uint16_t of;
};
template <> struct lattn_bits<LATTN_TYPE_F32> {
    typedef float of;
};

/* q, k and v of every token, as float32; zero beyond d and e. A warp takes whole vectors. */
template <int type, int D, int columns, int warps>
static __device__ __forceinline__ void
lattn_decode_gather(float (*token)[2 * D + columns], const void *q, const void *k, const void *v,
                    const struct lattn_sequence &sequence, int head, int first_e, int tokens,
                    const struct lattn_args &a)
{
    typedef typename lattn_bits<type>::of bits;
    const struct lattn_token_layout *const layouts = &a.q; /* and k's and v's */
    const int lane = threadIdx.x % 32;
    const int qk_head = a.group == 1 ? head : (int)((unsigned int)head / (unsigned int)a.group);
#pragma unroll 1
    for (int vector = threadIdx.x / 32; vector < 3 * tokens; vector += warps) {
        const int t = vector / 3, which = vector % 3;
        const bool of_v = which == 2;
        const int real = of_v ? min(a.e - first_e, columns) : a.d;
        const bits *const from =
            (const bits *)(of_v    ? v
                           : which ? k
                                   : q) +
            lattn_token_at(&layouts[which], &sequence, of_v ? head : qk_head, t) +
            (of_v ? first_e : 0) + lane;
        bits x[D / 32];
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
            x[i] = 0;
            if (i * 32 + lane < real)
                x[i] = from[i * 32];
        }
        float *const to = token[t] + which * D + lane;
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
            if (i * 32 < columns || !of_v)
                to[i * 32] = lattn_load(type, &x[i], 0);
        }
    }
}

/* Sums over the lanes of a warp that share columns, `first` apart and together `last`, into `to`.
 * Lanes exchange halves of what they have until each has one column, if there are as many lanes. */
template <int width, int first, int last>
static __device__ __forceinline__ void lattn_decode_reduce(float sums[width], float *to)
{
    constexpr int halvings = last / first < width ? last / first : width;
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int n = 1; n < halvings; n *= 2) {
        const int kept = width / (2 * n);
        const bool upper = lane & first * n;
        to += upper ? kept : 0;
#pragma unroll
        for (int i = 0; i < kept; i++) {
            const float mine = upper ? sums[kept + i] : sums[i];
            const float given = upper ? sums[i] : sums[kept + i];
            sums[i] = mine + __shfl_xor_sync(0xffffffffu, given, first * n);
        }
    }
#pragma unroll
    for (int n = halvings; n < last / first; n *= 2)
        sums[0] += __shfl_xor_sync(0xffffffffu, sums[0], first * n);
    if (lane & (last - 1) & ~(first * halvings - 1))
        return;
#pragma unroll
    for (int i = 0; i < width / halvings; i++)
        to[i] = sums[i];
}

/* Four numbers from shared memory, at once. */
static __device__ __forceinline__ void lattn_four(float to[4], const float *from)
{
    const float4 x = *(const float4 *)from;
    to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
}

/* Two numbers of 16 bits, as float32 and back. */
static __device__ __forceinline__ float2 lattn_widen2(int type, uint32_t x)
{
    if (type == LATTN_TYPE_BF16)
        return make_float2(__uint_as_float(x << 16), __uint_as_float(x & 0xffff0000u));
    return __half22float2(*(const __half2 *)&x);
}

static __device__ __forceinline__ uint32_t lattn_narrow2(int type, float low, float high)
{
    if (type == LATTN_TYPE_BF16) {
        const __nv_bfloat162 x = __floats2bfloat162_rn(low, high);
        return *(const uint32_t *)&x;
    }
    const __half2 x = __floats2half2_rn(low, high);
    return *(const uint32_t *)&x;
}

/* Zero outputs, of a padding row. */
template <int type, int columns, int threads>
static __device__ __forceinline__ void lattn_decode_pad(void *o, lattn_i64 o_at, int e, int tokens,
                                                        const struct lattn_args &a)
{
#pragma unroll 1
    for (int i = threadIdx.x; i < tokens * columns; i += threads) {
        if (i % columns < e)
            lattn_store(type, o, o_at + i / columns * a.o.token + i % columns, 0.0f);
    }
}

#endif
