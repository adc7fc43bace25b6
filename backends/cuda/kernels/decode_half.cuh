/* Decode of one token on states of 16 bits. As decode_wide.cuh, but a piece has eight elements, and
 * goes from its 16 bits through float32 back to them before the next one is looked at: twice as
 * much of a state in a thread. */
#ifndef LATTN_DECODE_HALF_CUH
#define LATTN_DECODE_HALF_CUH

#include "decode_group.cuh"
#include "tensor_list.h"

/* `type`: of q, k, v, o. D: d, padded to 64, 128 or 256. A thread has eight pieces: along e, eight
 * columns of eight adjacent rows; along d, eight rows of eight adjacent columns. */
template <int type, bool along_d, int D> struct lattn_decode_half {
    static constexpr int columns = LATTN_DECODE_COLUMNS(D); /* of a group */
    static constexpr int pieces = 8, threads = LATTN_DECODE_HALF_GROUP(D), warps = threads / 32;
    static_assert(D * columns == 8 * pieces * threads, "a thread has eight pieces");
    static constexpr int lanes = (along_d ? D : columns) / 8; /* side by side */

    struct shared {
        float token[1][2 * D + columns]; /* q, k, v */
        float sums[along_d ? 1 : warps][columns];
        float decay[4];
    };
    static_assert(sizeof(shared) == LATTN_DECODE_HALF_SHARED(D, along_d ? 1 : warps),
                  "the catalogue counts on as much");

    /* A thread's first element of a line, and its first line. */
    static __device__ __forceinline__ int unit()
    {
        return (int)threadIdx.x % lanes * 8;
    }
    static __device__ __forceinline__ int line()
    {
        return (int)threadIdx.x / lanes * 8;
    }

    /* s = g s + k v and its way to memory, and the sums of q s. `of`: the states' type. */
    template <int of>
    static __device__ __forceinline__ void step(shared &memory, uint4 s[pieces], uint16_t *to,
                                                lattn_i64 to_next, int real)
    {
        const float decay = memory.decay[0];
        const float *const q = memory.token[0], *const k = q + D, *const v = k + D;
        float q8[8], along[8], sums[8] = {}; /* along: k or v of the elements of a line */
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            lattn_four(along + j, (along_d ? k : v) + unit() + j);
            lattn_four(q8 + j, q + (along_d ? unit() : line()) + j);
        }
#pragma unroll
        for (int i = 0; i < pieces; i++, to += to_next) {
            const float across = (along_d ? v : k)[line() + i];
            uint32_t *const pairs = &s[i].x;
#pragma unroll
            for (int j = 0; j < 8; j += 2) {
                float2 x = lattn_widen2(of, pairs[j / 2]);
                x.x = fmaf(along[j], across, decay * x.x);
                x.y = fmaf(along[j + 1], across, decay * x.y);
                float &low = sums[along_d ? i : j], &high = sums[along_d ? i : j + 1];
                low = fmaf(q8[along_d ? j : i], x.x, low);
                high = fmaf(q8[along_d ? j + 1 : i], x.y, high);
                pairs[j / 2] = lattn_narrow2(of, x.x, x.y);
            }
            if (i < real)
                __stcs((uint4 *)to, s[i]);
        }
        float *const sum = memory.sums[along_d ? 0 : threadIdx.x / 32];
        lattn_decode_reduce<8, along_d ? 1 : lanes, along_d ? lanes : 32>(
            sums, sum + (along_d ? line() : unit()));
    }

    static __device__ __forceinline__ void
    run(const void *q, const void *k, const void *v, void *o, const float *slopes,
        const unsigned char *has_initial, const void *state_in, const void *slot_in,
        void *state_out, const void *slot_out, const struct lattn_args &a)
    {
        __shared__ __align__(16) shared memory;
        struct lattn_group group;
        struct lattn_sequence sequence;
        struct lattn_slots slots;
        lattn_group_here(a, columns, &group);
        sequence.number = sequence.row = (lattn_i32)group.segment;
        sequence.first = 0;
        sequence.length = 1;
        lattn_decode_slots(a, has_initial, slot_in, slot_out, sequence.number, &slots);
        const int head = group.head, first_e = group.e_tile * columns, e = a.e - first_e;
        const lattn_i64 o_at = lattn_token_at(&a.o, &sequence, head, 0) + first_e;
        if (slots.padding) {
            lattn_decode_pad<type, columns, threads>(o, o_at, e, 1, a);
            return;
        }

        const lattn_i64 in_next = along_d ? a.in.e : a.in.d, out_next = along_d ? a.out.e : a.out.d;
        const int from_unit = (along_d ? 0 : first_e) + unit();
        const int from_line = (along_d ? first_e : 0) + line();
        const int real = from_unit < (along_d ? a.d : a.e) ? (along_d ? a.e : a.d) - from_line : 0;
        const uint16_t *from = (const uint16_t *)state_in + lattn_state_at(&a.in, slots.in, head) +
                               from_line * in_next + from_unit;
        uint4 s[pieces];
#pragma unroll
        for (int i = 0; i < pieces; i++, from += in_next) {
            s[i] = make_uint4(0, 0, 0, 0);
            if (i < real && slots.initial)
                s[i] = __ldcs((const uint4 *)from);
        }
        if (threadIdx.x == threads - 1)
            memory.decay[0] = lattn_decay_weight(slopes[a.slopes + head], 1);
        lattn_decode_gather<type, D, columns, warps>(memory.token, q, k, v, sequence, head, first_e,
                                                     1, a);
        __syncthreads();

        uint16_t *const to = (uint16_t *)state_out + lattn_state_at(&a.out, slots.out, head) +
                             from_line * out_next + from_unit;
        if (a.in.type == LATTN_TYPE_BF16)
            step<LATTN_TYPE_BF16>(memory, s, to, out_next, real);
        else
            step<LATTN_TYPE_F16>(memory, s, to, out_next, real);
        __syncthreads();

#pragma unroll 1
        for (int j = threadIdx.x; j < columns && j < e; j += threads) {
            float sum = 0.0f;
#pragma unroll
            for (int w = 0; w < (along_d ? 1 : warps); w++)
                sum += memory.sums[w][j];
            lattn_store(type, o, o_at + j, sum * a.scale);
        }
    }
};

#endif
