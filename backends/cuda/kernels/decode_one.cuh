/* Decode of one token on states of one type. As decode_wide.cuh, but what a thread has of a state
 * stays as it was read, in pieces of 16 bytes, and each goes back to memory as soon as it is dealt
 * with: states of 16 bits need no registers for 32. */
#ifndef LATTN_DECODE_ONE_CUH
#define LATTN_DECODE_ONE_CUH

#include "decode_group.cuh"
#include "tensor_list.h"

/* A piece as float32 and back. `of`: the states' type. */
template <int of> static __device__ __forceinline__ void lattn_piece_open(float *x, const uint4 &s)
{
    if (of == LATTN_TYPE_F32) {
        *(uint4 *)x = s;
        return;
    }
    const uint32_t *const pairs = &s.x;
#pragma unroll
    for (int i = 0; i < 4; i++)
        *(float2 *)(x + 2 * i) = lattn_widen2(of, pairs[i]);
}

template <int of> static __device__ __forceinline__ void lattn_piece_close(uint4 &s, const float *x)
{
    if (of == LATTN_TYPE_F32) {
        s = *(const uint4 *)x;
        return;
    }
    uint32_t *const pairs = &s.x;
#pragma unroll
    for (int i = 0; i < 4; i++)
        pairs[i] = lattn_narrow2(of, x[2 * i], x[2 * i + 1]);
}

/* `type`: of q, k, v, o. size: bytes of a state's element. D: d, padded to 64, 128 or 256. A line
 * is what adjoins in memory, a row of the state along e, a column along d; a thread has a piece of
 * each of eight adjacent lines. */
template <int type, int size, bool along_d, int D> struct lattn_decode_one {
    static constexpr int columns = LATTN_DECODE_ONE_COLUMNS(size, D); /* of a group */
    static constexpr int lines = 8, units = 16 / size;                /* elements of a piece */
    static constexpr int threads = LATTN_DECODE_ONE_GROUP(size, D), warps = threads / 32;
    static_assert(D * columns == units * lines * threads, "a thread has eight pieces");
    static constexpr int lanes = (along_d ? D : columns) / units; /* side by side on a line */
    static constexpr int parts = along_d ? LATTN_MAX_(lanes / 32, 1) : warps; /* of a sum */
    static constexpr int sums_of_thread = along_d ? lines : units;

    struct shared {
        float token[1][2 * D + columns]; /* q, k, v */
        float sums[parts][columns];
        float decay[4];
    };
    static_assert(sizeof(shared) == LATTN_DECODE_ONE_SHARED(size, D, parts),
                  "the catalogue counts on as much");

    /* A thread's first element of a line, and its first line. */
    static __device__ __forceinline__ int unit()
    {
        return (int)threadIdx.x % lanes * units;
    }
    static __device__ __forceinline__ int line()
    {
        return (int)threadIdx.x / lanes * lines;
    }

    /* s = g s + k v and its way to memory, and the sums of q s. */
    template <int of>
    static __device__ __forceinline__ void step(shared &memory, uint4 s[lines], char *to,
                                                lattn_i64 to_next, int real)
    {
        const float decay = memory.decay[0];
        const float *const q = memory.token[0], *const k = q + D, *const v = k + D;
        /* k or v, of the elements of a line and of the lines; q of the rows; the columns' sums. */
        float along[units], across[lines], weights[along_d ? units : lines];
        float sums[sums_of_thread] = {};
#pragma unroll
        for (int j = 0; j < units; j += 4)
            lattn_four(along + j, (along_d ? k : v) + unit() + j);
#pragma unroll
        for (int i = 0; i < lines; i += 4)
            lattn_four(across + i, (along_d ? v : k) + line() + i);
#pragma unroll
        for (int i = 0; i < (along_d ? units : lines); i += 4)
            lattn_four(weights + i, q + (along_d ? unit() : line()) + i);
#pragma unroll
        for (int i = 0; i < lines; i++, to += to_next) {
            __align__(16) float x[units];
            lattn_piece_open<of>(x, s[i]);
#pragma unroll
            for (int j = 0; j < units; j++) {
                float &sum = sums[along_d ? i : j];
                x[j] = fmaf(along[j], across[i], decay * x[j]);
                sum = fmaf(weights[along_d ? j : i], x[j], sum);
            }
            lattn_piece_close<of>(s[i], x);
            if (i < real)
                __stcs((uint4 *)to, s[i]);
        }
        float *const part = memory.sums[threadIdx.x / 32 % parts];
        lattn_decode_reduce < sums_of_thread, along_d ? 1 : lanes,
            along_d &&lanes<32 ? lanes : 32>(sums, part + (along_d ? line() : unit()));
    }

    static __device__ __forceinline__ void
    run(const void *q, const void *k, const void *v, void *o, const float *slopes,
        const unsigned char *has_initial, const void *state_in, const void *slot_in,
        void *state_out, const void *slot_out, const struct lattn_args &a)
    {
        __shared__ __align__(16) shared memory;
        const lattn_decode_work w(a, columns, has_initial, slot_in, slot_out);
        if (w.slots.padding) {
            lattn_decode_pad<type, columns, threads>(o, w.o_at, w.e, 1, a);
            return;
        }

        /* From line to line; the thread's first element; lines there are from there on. */
        const lattn_i64 in_next = along_d ? a.in.e : a.in.d, out_next = along_d ? a.out.e : a.out.d;
        const int first_unit = (along_d ? 0 : w.first_e) + unit();
        const int first_line = (along_d ? w.first_e : 0) + line();
        const int real =
            first_unit < (along_d ? a.d : a.e) ? (along_d ? a.e : a.d) - first_line : 0;
        const char *from =
            (const char *)state_in +
            (lattn_state_at(&a.in, w.slots.in, w.head) + first_line * in_next + first_unit) * size;
        uint4 s[lines];
#pragma unroll
        for (int i = 0; i < lines; i++, from += in_next * size) {
            s[i] = make_uint4(0, 0, 0, 0);
            if (i < real && w.slots.initial)
                s[i] = __ldcs((const uint4 *)from);
        }
        if (threadIdx.x == threads - 1)
            memory.decay[0] = lattn_decay_weight(slopes[a.slopes + w.head], 1);
        lattn_decode_gather<type, D, columns, warps>(memory.token, q, k, v, w.sequence, w.head,
                                                     w.first_e, 1, a);
        __syncthreads();

        const lattn_i64 to_first = lattn_state_at(&a.out, w.slots.out, w.head);
        char *const to = (char *)state_out + (to_first + first_line * out_next + first_unit) * size;
        if (size == 4)
            step<LATTN_TYPE_F32>(memory, s, to, out_next * size, real);
        else if (a.in.type == LATTN_TYPE_BF16)
            step<LATTN_TYPE_BF16>(memory, s, to, out_next * size, real);
        else
            step<LATTN_TYPE_F16>(memory, s, to, out_next * size, real);
        __syncthreads();

#pragma unroll 1
        for (int j = threadIdx.x; j < columns && j < w.e; j += threads) {
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < parts; i++)
                sum += memory.sums[i][j];
            lattn_store(type, o, w.o_at + j, sum * a.scale);
        }
    }
};

#endif
