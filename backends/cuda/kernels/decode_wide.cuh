/* Decode with 16-byte accesses. A group has some columns of a state, with all of d, spread over its
 * threads so that neighbours read neighbouring memory, along e or along d. All of a thread's loads
 * are under way at once; a state is read and written once, however many the tokens, and is not kept
 * in the caches. */
#ifndef LATTN_DECODE_WIDE_CUH
#define LATTN_DECODE_WIDE_CUH

#include "decode_group.cuh"
#include "tensor_list.h"

/* `type`: of q, k, v, o. D: d, padded to 64, 128 or 256. A thread has eight pieces, of four
 * elements that are adjacent in memory: along e, four columns of eight adjacent rows; along d, four
 * rows of eight adjacent columns (with D = 256, twice four rows of four). */
template <int type, bool along_d, int D> struct lattn_decode_wide {
    static constexpr int columns = LATTN_DECODE_COLUMNS(D); /* of a group */
    static constexpr int pieces = 8, threads = LATTN_DECODE_GROUP(D), warps = threads / 32;
    static_assert(D * columns == 4 * pieces * threads, "a thread has eight pieces");
    static constexpr int lanes = along_d ? (D == 64 ? 16 : 32) : columns / 4; /* side by side */
    static constexpr bool two_rows = along_d && D == 256;
    static constexpr int lines =
        two_rows ? pieces / 2 : pieces;               /* adjacent ones, a piece on each */
    static constexpr int width = along_d ? lines : 4; /* columns of a thread */

    struct shared {
        float token[LATTN_DECODE_TOKENS][2 * D + columns]; /* q, k, v */
        float sums[along_d ? 1 : warps][LATTN_DECODE_TOKENS][columns];
        float decay[4];
    };
    static_assert(sizeof(shared) == LATTN_DECODE_SHARED(D, along_d ? 1 : warps),
                  "the catalogue counts on as much");

    /* A thread's first row and column. */
    static __device__ __forceinline__ int row()
    {
        return along_d ? (int)threadIdx.x % lanes * 4 : (int)threadIdx.x / lanes * pieces;
    }
    static __device__ __forceinline__ int column()
    {
        return along_d ? (int)threadIdx.x / lanes * width : (int)threadIdx.x % lanes * 4;
    }

    /* A thread's pieces of one state in memory: from which element on, how far from line to line,
     * and how many lines are real; of two_rows, those of the second half apart. */
    struct place {
        lattn_i64 from, step;
        int real[2];

        __device__ __forceinline__ place(const struct lattn_state_layout &layout, lattn_i64 slot,
                                         int head, int first_e, const struct lattn_args &a)
        {
            const int rows = a.d - row(), cols = a.e - first_e - column();
            from = lattn_state_at(&layout, slot, head);
            if (along_d) {
                step = layout.e;
                from += row() + (first_e + column()) * layout.e;
                real[0] = rows > 0 ? cols : 0;
                real[1] = rows > 128 ? cols : 0;
            } else {
                step = layout.d;
                from += first_e + column() + row() * layout.d;
                real[0] = cols > 0 ? rows : 0;
            }
        }
        __device__ __forceinline__ bool has(int i) const
        {
            return i % lines < real[i / lines];
        }
        /* From piece i to the next. */
        __device__ __forceinline__ lattn_i64 next(int i) const
        {
            return i % lines < lines - 1 ? step : 128 - (lines - 1) * step;
        }
    };

    /* All loads before the first use of any. */
    static __device__ __forceinline__ void get(float s[pieces][4], const place &from, int of,
                                               const void *base)
    {
        if (of == LATTN_TYPE_F32) {
            const float *at = (const float *)base + from.from;
#pragma unroll
            for (int i = 0; i < pieces; at += from.next(i), i++) {
                if (from.has(i))
                    *(float4 *)s[i] = __ldcs((const float4 *)at);
            }
            return;
        }
        const uint16_t *at = (const uint16_t *)base + from.from;
        uint2 raw[pieces];
#pragma unroll
        for (int i = 0; i < pieces; at += from.next(i), i++) {
            raw[i] = make_uint2(0, 0);
            if (from.has(i))
                raw[i] = __ldcs((const uint2 *)at);
        }
#pragma unroll
        for (int i = 0; i < pieces; i++) {
            *(float2 *)s[i] = lattn_widen2(of, raw[i].x);
            *(float2 *)(s[i] + 2) = lattn_widen2(of, raw[i].y);
        }
    }

    static __device__ __forceinline__ void put(const float s[pieces][4], const place &to, int of,
                                               void *base)
    {
        if (of == LATTN_TYPE_F32) {
            float *at = (float *)base + to.from;
#pragma unroll
            for (int i = 0; i < pieces; at += to.next(i), i++) {
                if (to.has(i))
                    __stcs((float4 *)at, *(const float4 *)s[i]);
            }
            return;
        }
        uint16_t *at = (uint16_t *)base + to.from;
        uint2 raw[pieces];
#pragma unroll
        for (int i = 0; i < pieces; i++)
            raw[i] = make_uint2(lattn_narrow2(of, s[i][0], s[i][1]),
                                lattn_narrow2(of, s[i][2], s[i][3]));
#pragma unroll
        for (int i = 0; i < pieces; at += to.next(i), i++) {
            if (to.has(i))
                __stcs((uint2 *)at, raw[i]);
        }
    }

    /* s = g s + k v, and q s of the thread's columns. */
    static __device__ __forceinline__ void step(float s[pieces][4], const float *q, const float *k,
                                                const float *v, float decay, float sums[width])
    {
#pragma unroll
        for (int i = 0; i < width; i++)
            sums[i] = 0.0f;
#pragma unroll
        for (int four = 0; four < pieces; four += 4) {
            const int line = four % lines, first = along_d ? line : 0; /* column */
            const int at = row() + (along_d ? four / lines * 128 : line);
            float q4[4], k4[4], v4[4];
            lattn_four(q4, q + at);
            lattn_four(k4, k + at);
            lattn_four(v4, v + column() + first);
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    float &x = s[four + i][j];
                    const int r = along_d ? j : i, c = along_d ? i : j;
                    x = fmaf(k4[r], v4[c], decay * x);
                    sums[first + c] = fmaf(q4[r], x, sums[first + c]);
                }
            }
        }
    }

    static __device__ __forceinline__ void
    run(const void *q, const void *k, const void *v, void *o, const float *slopes,
        const unsigned char *has_initial, const void *state_in, const void *slot_in,
        void *state_out, const void *slot_out, void *kept, const struct lattn_args &a)
    {
        __shared__ __align__(16) shared memory;
        const lattn_decode_work w(a, columns, has_initial, slot_in, slot_out);
        const int tokens = (int)a.tokens;
        if (w.slots.padding) {
            lattn_decode_pad<type, columns, threads>(o, w.o_at, w.e, tokens, a);
            return;
        }

        __align__(16) float s[pieces][4] = {};
        if (w.slots.initial)
            get(s, place(a.in, w.slots.in, w.head, w.first_e, a), a.in.type, state_in);
        if (threadIdx.x == threads - 1)
            memory.decay[0] = lattn_decay_weight(slopes[a.slopes + w.head], 1);
        lattn_decode_gather<type, D, columns, warps>(memory.token, q, k, v, w.sequence, w.head,
                                                     w.first_e, tokens, a);
        __syncthreads();

        const float decay = memory.decay[0];
#pragma unroll 1
        for (int t = 0; t < tokens; t++) {
            float sums[width];
            const float *const token = memory.token[t];
            step(s, token, token + D, token + 2 * D, decay, sums);
            lattn_decode_reduce<width, along_d ? 1 : lanes, along_d ? lanes : 32>(
                sums, memory.sums[along_d ? 0 : threadIdx.x / 32][t] + column());
            if (a.flags & LATTN_FLAG_KEPT) {
                const lattn_i64 slot = (lattn_i64)w.sequence.number * tokens + t;
                put(s, place(a.kept, slot, w.head, w.first_e, a), a.kept.type, kept);
            }
        }
        if (a.flags & LATTN_FLAG_STATE_OUT)
            put(s, place(a.out, w.slots.out, w.head, w.first_e, a), a.out.type, state_out);
        __syncthreads();

#pragma unroll 1
        for (int i = threadIdx.x; i < tokens * columns; i += threads) {
            const int t = i / columns, j = i % columns;
            float sum = 0.0f;
#pragma unroll
            for (int part = 0; part < (along_d ? 1 : warps); part++)
                sum += memory.sums[part][t][j];
            if (j < w.e)
                lattn_store(type, o, w.o_at + t * a.o.token + j, sum * a.scale);
        }
    }
};

#endif
