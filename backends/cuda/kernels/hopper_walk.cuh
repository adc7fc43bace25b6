/* Prefill on Hopper's tensor cores, for bfloat16. A group walks a segment in chunks of 64 tokens
 * with four warpgroups, each with one job:
 *
 *   - one copies q, k and v into shared memory, some chunks ahead;
 *   - one keeps the state in its accumulators, state = g^64 state + (w k)^T v, and leaves a rounded
 *     copy of it in shared memory before each chunk;
 *   - two take turns with chunks: S = the masked and decayed q k^T,
 *     o = diag(g^(t+1)) q state + S v.
 */
#ifndef LATTN_HOPPER_WALK_CUH
#define LATTN_HOPPER_WALK_CUH

#include "group.cuh"
#include "hopper_wgmma.cuh"
#include "kernels/sequence.h"
#include "state_io.cuh"
#include "tensor_half.cuh"

#define LATTN_HOPPER_THREADS 512

/* D, E: d and a group's columns of e, padded to 64 or 128. */
template <int D, int E> struct lattn_hopper {
    using pairs = lattn_pairs<__nv_bfloat16>;
    static constexpr int C = 64;
    static constexpr uint32_t q_bytes = C * D * 2, k_bytes = C * D * 2, v_bytes = C * E * 2;
    static constexpr uint32_t stage_bytes = q_bytes + k_bytes + v_bytes;
    static constexpr uint32_t state_bytes = D * E * 2;
    /* Outputs leave through the place of q, or one of their own where that is too small. */
    static constexpr uint32_t staging_bytes = LATTN_HOPPER_STAGING(D, E);
    /* Copies of the state, and as many stages as there is room for. */
    static constexpr int sides = LATTN_HOPPER_SIDES(D, E), stages = LATTN_HOPPER_STAGES(D, E);
    static_assert(stage_bytes == LATTN_HOPPER_STAGE(D, E), "the catalogue counts on as much");
    /* Keys are weighed while the products of the chunk before run, where registers allow. */
    static constexpr bool ahead = D * E <= 64 * 128;
    static constexpr uint32_t state_at = stages * stage_bytes;
    static constexpr uint32_t staging_at = state_at + sides * state_bytes;
    static constexpr uint32_t barrier_at = staging_at + staging_bytes;
    static_assert(barrier_at + 256 + 1024 == LATTN_HOPPER_SHARED(D, E), "the same");
    typedef lattn_state_io<D, E, 128> state_io;
    static_assert(state_io::bytes <= stages * stage_bytes, "a state is to fit where chunks were");
    /* Named barriers: outputs of each turn, then these. */
    enum { OUTPUT_BARRIER = 1, STATE_BARRIER = 3, START_BARRIER = 4, END_BARRIER = 5 };

    typedef float state_tile[D / 64][E / 2];
    typedef float output_tile[E / 2];

    /* Of a warpgroup's 64 rows and n columns, register i of a thread. */
    static __device__ __forceinline__ int row_of(int i, int thread = threadIdx.x)
    {
        return thread % 128 / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
    }
    static __device__ __forceinline__ int column_of(int i, int thread = threadIdx.x)
    {
        return i / 4 * 8 + thread % 4 * 2 + i % 2;
    }

    struct barriers {
        uint32_t at;
        __device__ __forceinline__ uint32_t full(int stage) const
        {
            return at + stage * 8;
        }
        __device__ __forceinline__ uint32_t empty(int stage) const
        {
            return at + (stages + stage) * 8;
        }
        /* One for each turn, lest a turn takes the other's phase for its own. */
        __device__ __forceinline__ uint32_t state_full(int turn) const
        {
            return at + (2 * stages + turn) * 8;
        }
        __device__ __forceinline__ uint32_t state_empty(int side) const
        {
            return at + (2 * stages + 2 + side) * 8;
        }
    };

    /* What all the jobs know. */
    struct walk {
        uint32_t base;
        barriers barrier;
        int head, columns, chunks;
        long long length;
        float slope; /* of powers of two */
        float whole_decay;

        __device__ __forceinline__ int rows(int chunk) const
        {
            return (int)min((long long)C, length - (long long)chunk * C);
        }
        __device__ __forceinline__ uint32_t q(int chunk) const
        {
            return base + chunk % stages * stage_bytes;
        }
        __device__ __forceinline__ uint32_t k(int chunk) const
        {
            return q(chunk) + q_bytes;
        }
        __device__ __forceinline__ uint32_t v(int chunk) const
        {
            return k(chunk) + k_bytes;
        }
        __device__ __forceinline__ uint32_t state(int chunk) const
        {
            return base + state_at + chunk % sides * state_bytes;
        }
    };

    /* ---- copies ---- */

    /* A thread's share of the tiles of one tensor: 16 bytes of every few rows. Few registers are
     * left for this job, so addresses step from row to row. */
    template <int columns> struct copier {
        static constexpr int chunks = columns / 8, step = 128 / chunks;
        static_assert(step % 8 == 0, "the swizzle is to be the same in all of a thread's rows");
        const uint16_t *from; /* of the next tile */
        long long stride;
        uint32_t place;
        int row, bytes;

        __device__ __forceinline__ copier(const uint16_t *first, long long token_stride,
                                          int have_columns)
            : stride(token_stride)
        {
            const int thread = (int)threadIdx.x % 128, column = thread % chunks * 8;
            row = thread / chunks;
            bytes = max(min(have_columns - column, 8), 0) * 2;
            from = bytes ? first + row * stride + column : first;
            place = lattn_block_at<C>(row, column);
        }
        __device__ __forceinline__ void next(uint32_t tile, int rows)
        {
            const long long skip = lattn_opaque(stride * step);
#pragma unroll
            for (int i = 0; i < C / step; i++) {
                lattn_copy_async(tile + place + i * step * 128, from,
                                 row + i * step < rows ? bytes : 0);
                from += skip;
            }
        }
    };

    static __device__ __forceinline__ void copies(const walk &w, const struct lattn_args &a,
                                                  const uint16_t *q, const uint16_t *k,
                                                  const uint16_t *v)
    {
        copier<D> q_copier(q, a.q.token, a.d), k_copier(k, a.k.token, a.d);
        copier<E> v_copier(v, a.v.token, w.columns);
        for (int chunk = 0; chunk < w.chunks; chunk++) {
            const int rows = w.rows(chunk);
            if (chunk >= stages)
                lattn_barrier_wait(w.barrier.empty(chunk % stages), chunk / stages - 1);
            k_copier.next(w.k(chunk), rows);
            v_copier.next(w.v(chunk), rows);
            q_copier.next(w.q(chunk), rows);
            lattn_barrier_arrive_copies(w.barrier.full(chunk % stages));
        }
    }

    /* ---- the state ---- */

    static __device__ __forceinline__ void publish(const walk &w, int chunk, state_tile state)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        if (chunk >= sides)
            lattn_barrier_wait(w.barrier.state_empty(chunk % sides), chunk / sides - 1);
#pragma unroll
        for (int m = 0; m < D / 64; m++) {
#pragma unroll
            for (int n = 0; n < E / 8; n += 2) {
                const float *const s = &state[m][n * 4];
                lattn_stmatrix(w.state(chunk) + lattn_block_at<D>(m * 64 + warp * 16 + lane % 16,
                                                                  (n + lane / 16) * 8),
                               pairs::pack(s[0], s[1]), pairs::pack(s[2], s[3]),
                               pairs::pack(s[4], s[5]), pairs::pack(s[6], s[7]));
            }
        }
        lattn_proxy_fence();
        lattn_barrier_arrive(w.barrier.state_full(chunk % 2));
    }

    /* (w k)^T, 16 rows of d a warp, as A. */
    static __device__ __forceinline__ void weigh(const walk &w, int chunk, int rows,
                                                 uint32_t a[D / 64][C / 16][4])
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        const float slope = lattn_opaque(w.slope);
#pragma unroll
        for (int j = 0; j < C / 16; j++) {
            float weight[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int token = j * 16 + lane % 4 * 2 + i / 2 * 8 + i % 2;
                weight[i] = lattn_exp2(-(float)max(rows - 1 - token, 0) * slope);
            }
#pragma unroll
            for (int m = 0; m < D / 64; m++) {
                lattn_ldmatrix_trans(
                    a[m][j], w.k(chunk) + lattn_block_at<C>(j * 16 + lane % 8 + lane / 16 * 8,
                                                            m * 64 + warp * 16 + lane / 8 % 2 * 8));
#pragma unroll
                for (int i = 0; i < 4; i++)
                    a[m][j][i] = pairs::pack(pairs::value((uint16_t)a[m][j][i]) * weight[i / 2 * 2],
                                             pairs::value((uint16_t)(a[m][j][i] >> 16)) *
                                                 weight[i / 2 * 2 + 1]);
            }
        }
    }

    static __device__ __forceinline__ void states(const walk &w, state_tile state, float own_slope)
    {
        uint32_t a[2][D / 64][C / 16][4];
        if (ahead && w.chunks) {
            lattn_barrier_wait(w.barrier.full(0), 0);
            weigh(w, 0, w.rows(0), a[0]);
        }
        for (int chunk = 0; chunk < w.chunks; chunk += 2) {
            step(w, state, own_slope, chunk, a[0], a[1]);
            if (chunk + 1 < w.chunks)
                step(w, state, own_slope, chunk + 1, a[ahead ? 1 : 0], a[0]);
        }
    }

    static __device__ __forceinline__ void step(const walk &w, state_tile state, float own_slope,
                                                int chunk, uint32_t a[D / 64][C / 16][4],
                                                uint32_t next[D / 64][C / 16][4])
    {
        const int rows = w.rows(chunk);
        const float decay = rows == C ? w.whole_decay : lattn_decay_weight(own_slope, rows);
        publish(w, chunk, state);
        if (!ahead) {
            lattn_barrier_wait(w.barrier.full(chunk % stages), chunk / stages);
            weigh(w, chunk, rows, a);
        }
#pragma unroll
        for (int m = 0; m < D / 64; m++)
#pragma unroll
            for (int i = 0; i < E / 2; i++)
                state[m][i] *= decay;
        lattn_proxy_fence();
        lattn_wgmma_fence();
#pragma unroll
        for (int j = 0; j < C / 16; j++)
#pragma unroll
            for (int m = 0; m < D / 64; m++)
                lattn_wgmma<E>::multiply(state[m], a[m][j],
                                         lattn_operand(w.v(chunk) + j * 16 * 128, C * 128));
        lattn_wgmma_commit();
        if (ahead && chunk + 1 < w.chunks) {
            lattn_barrier_wait(w.barrier.full((chunk + 1) % stages), (chunk + 1) / stages);
            weigh(w, chunk + 1, w.rows(chunk + 1), next);
        }
        lattn_wgmma_wait<0>();
        lattn_barrier_arrive(w.barrier.empty(chunk % stages));
    }

    /* ---- outputs ---- */

    /* o = q state, started. */
    static __device__ __forceinline__ void from_state(const walk &w, int chunk, output_tile o)
    {
        lattn_wgmma_fence();
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            lattn_wgmma<E>::template multiply<true>(
                o, lattn_operand(w.q(chunk) + i / 4 * (C * 128) + i % 4 * 32, 16),
                lattn_operand(w.state(chunk) + i * 16 * 128, D * 128), i > 0);
        lattn_wgmma_commit();
    }

    static __device__ __forceinline__ void decay_rows(const walk &w, output_tile o, float scale)
    {
        const float slope = lattn_opaque(w.slope);
        const float weight[2] = {lattn_exp2((float)(-1 - row_of(0)) * slope) * scale,
                                 lattn_exp2((float)(-1 - row_of(2)) * slope) * scale};
#pragma unroll
        for (int i = 0; i < E / 2; i++)
            o[i] *= weight[i / 2 % 2];
    }

    /* S, masked, decayed and rounded, as A; and what rounding took from it. */
    static __device__ __forceinline__ void mask(const walk &w, const float s[C / 2], float scale,
                                                uint32_t a[C / 16][4], uint32_t rest[C / 16][4])
    {
        const float slope = w.slope;
        const float distance = lattn_opaque((float)(column_of(0) - row_of(0)));
#pragma unroll
        for (int i = 0; i < C / 2; i += 2) {
            /* j - t */
            const float first = distance + (float)(i / 4 * 8 - i / 2 % 2 * 8), next = first + 1.0f;
            const float low = s[i] * (lattn_exp2(first * slope) * scale);
            const float high = s[i + 1] * (lattn_exp2(next * slope) * scale);
            const float x = first <= 0.0f ? low : 0.0f, y = next <= 0.0f ? high : 0.0f;
            const uint32_t both = pairs::pack(x, y);
            a[i / 8][i / 2 % 4] = both;
            rest[i / 8][i / 2 % 4] = pairs::pack(x - pairs::value((uint16_t)both),
                                                 y - pairs::value((uint16_t)(both >> 16)));
        }
    }

    /* Has the chunk an infinite or undefined v, which would survive a product with zero? */
    template <int turn> static __device__ __forceinline__ bool v_doubtful(const walk &w, int chunk)
    {
        __nv_bfloat162 sum = {0.0f, 0.0f};
        const __nv_bfloat162 zero = {0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < C * E / 8 / 128; i++) {
            const uint4 x =
                lattn_load_shared4(w.v(chunk) + ((int)threadIdx.x % 128 + i * 128) * 16);
            sum = __hfma2(*(const __nv_bfloat162 *)&x.x, zero, sum);
            sum = __hfma2(*(const __nv_bfloat162 *)&x.y, zero, sum);
            sum = __hfma2(*(const __nv_bfloat162 *)&x.z, zero, sum);
            sum = __hfma2(*(const __nv_bfloat162 *)&x.w, zero, sum);
        }
        const float both = __low2float(sum) + __high2float(sum);
        return lattn_group_any(OUTPUT_BARRIER + turn, both != 0.0f);
    }

    /* o += S v, term by term: nothing that lies after a token is touched for it. S goes through the
     * place of q, which has been used. */
    template <int turn>
    static __device__ __forceinline__ void
    from_chunk_exactly(const walk &w, int chunk, const uint32_t a[C / 16][4], output_tile o)
    {
        const uint32_t score = w.q(chunk);
        const int thread = lattn_opaque((int)threadIdx.x);
        lattn_group_any(OUTPUT_BARRIER + turn, false);
#pragma unroll
        for (int i = 0; i < C / 2; i += 2)
            lattn_store_shared(score + (row_of(i, thread) * C + column_of(i, thread)) * 2,
                               a[i / 8][i / 2 % 4]);
        __syncwarp();
#pragma unroll 1
        for (int j = 0; j < C; j++) {
#pragma unroll
            for (int i = 0; i < E / 2; i++) {
                const int t = row_of(i, thread), e = column_of(i, thread);
                uint16_t s, v;
                asm volatile("ld.shared.u16 %0, [%1];" : "=h"(s) : "r"(score + (t * C + j) * 2));
                asm volatile("ld.shared.u16 %0, [%1];"
                             : "=h"(v)
                             : "r"(w.v(chunk) + lattn_block_at<C>(j, e)));
                if (j <= t)
                    o[i] = fmaf(pairs::value(s), pairs::value(v), o[i]);
            }
        }
    }

    /* Through shared memory, so that rows are stored in 16-byte pieces; each warp its own rows. */
    static __device__ __forceinline__ void store(const output_tile o, uint32_t staging,
                                                 uint16_t *to, long long stride, int rows,
                                                 int columns)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
#pragma unroll
        for (int n = 0; n < E / 8; n += 2)
            lattn_stmatrix(
                staging + lattn_block_at<C>(warp * 16 + lane % 16, (n + lane / 16) * 8),
                pairs::pack(o[n * 4], o[n * 4 + 1]), pairs::pack(o[n * 4 + 2], o[n * 4 + 3]),
                pairs::pack(o[n * 4 + 4], o[n * 4 + 5]), pairs::pack(o[n * 4 + 6], o[n * 4 + 7]));
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 16 * E / 8 / 32; i++) {
            const int row = warp * 16 + (lane + i * 32) / (E / 8), column = lane % (E / 8) * 8;
            if (row < rows && column < columns)
                lattn_chunk_store<uint16_t, true>(to + row * stride + column,
                                                  staging + lattn_block_at<C>(row, column),
                                                  columns - column);
        }
    }

    /* s = q k^T, started. */
    static __device__ __forceinline__ void scores(const walk &w, int chunk, float s[C / 2])
    {
        lattn_wgmma_fence();
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            lattn_wgmma<C>::template multiply<false>(
                s, lattn_operand(w.q(chunk) + i / 4 * (C * 128) + i % 4 * 32, 16),
                lattn_operand(w.k(chunk) + i / 4 * (C * 128) + i % 4 * 32, 16), i > 0);
        lattn_wgmma_commit();
    }

    enum { USUALLY, FIRST, EXACTLY };

    /* o of a chunk; EXACTLY if v has what a product of matrices would spread, and with what
     * rounding took from S at the FIRST, where few tokens add up to an output. */
    template <int turn, int how>
    static __device__ __forceinline__ void output(const walk &w, int chunk, float scale,
                                                  output_tile o)
    {
        float s[C / 2];
        uint32_t score[C / 16][4], rest[C / 16][4];
        scores(w, chunk, s);
        lattn_barrier_wait(w.barrier.state_full(turn), chunk / 2);
        from_state(w, chunk, o);
        lattn_wgmma_wait<1>();
        mask(w, s, scale, score, rest);
        lattn_wgmma_wait<0>();
        lattn_barrier_arrive(w.barrier.state_empty(chunk % sides));
        decay_rows(w, o, scale);
        if (how == EXACTLY) {
            from_chunk_exactly<turn>(w, chunk, score, o);
            from_chunk_exactly<turn>(w, chunk, rest, o);
            return;
        }
        lattn_wgmma_fence();
#pragma unroll
        for (int j = 0; j < C / 16; j++) {
            const uint64_t v = lattn_operand(w.v(chunk) + j * 16 * 128, C * 128);
            lattn_wgmma<E>::multiply(o, score[j], v);
            if (how == FIRST)
                lattn_wgmma<E>::multiply(o, rest[j], v);
        }
        lattn_wgmma_commit();
        lattn_wgmma_wait<0>();
    }

    template <int turn>
    static __device__ __forceinline__ void outputs(const walk &w, const struct lattn_args &a,
                                                   uint16_t *o_to)
    {
        for (int chunk = turn; chunk < w.chunks; chunk += 2) {
            output_tile o;
            lattn_barrier_wait(w.barrier.full(chunk % stages), chunk / stages);
            lattn_proxy_fence();
            if (v_doubtful<turn>(w, chunk))
                output<turn, EXACTLY>(w, chunk, a.scale, o);
            else if (chunk == 0)
                output<turn, FIRST>(w, chunk, a.scale, o);
            else
                output<turn, USUALLY>(w, chunk, a.scale, o);
            lattn_group_any(OUTPUT_BARRIER + turn, false);
            store(o, staging_bytes ? w.base + staging_at + turn * v_bytes : w.q(chunk),
                  o_to + (long long)chunk * C * a.o.token, a.o.token, w.rows(chunk), w.columns);
            lattn_barrier_arrive(w.barrier.empty(chunk % stages));
        }
    }

    static __device__ __forceinline__ void zero(uint16_t *to, long long stride, long long rows,
                                                int columns)
    {
        for (long long i = threadIdx.x; i < rows * E; i += LATTN_HOPPER_THREADS) {
            if (i % E < columns)
                to[i / E * stride + i % E] = 0;
        }
    }

    static __device__ __forceinline__ void run(const void *q, const void *k, const void *v, void *o,
                                               const float *slopes, const int *cu_seqlens,
                                               const unsigned char *has_initial,
                                               const void *state_in, const void *slot_in,
                                               void *state_out, const void *slot_out,
                                               const float *work, const struct lattn_args &a)
    {
        extern __shared__ unsigned char memory[];
        struct lattn_group group;
        struct lattn_segment segment;
        struct lattn_slots slots;
        lattn_group_here(a, E, &group);
        lattn_segment_walk(&a, cu_seqlens, group.segment, &segment);
        const bool segmented = (a.flags & LATTN_FLAG_SEGMENTED) != 0;
        if (segmented && segment.length == 0)
            return;
        lattn_slots_get(&a, has_initial, slot_in, slot_out, segment.sequence.number, &slots);
        const int head = group.head, qk_head = head / a.group, first_e = group.e_tile * E;
        uint16_t *const o_to =
            (uint16_t *)o + lattn_token_at(&a.o, &segment.sequence, head, segment.first) + first_e;
        if (slots.padding) {
            zero(o_to, a.o.token, segment.length, a.e - first_e);
            return;
        }

        walk w;
        w.base = (lattn_shared_at(memory) + 1023) & ~1023u;
        w.barrier.at = w.base + barrier_at;
        w.head = head;
        w.columns = a.e - first_e;
        w.chunks = (int)((segment.length + C - 1) / C);
        w.length = segment.length;
        const float own_slope = slopes[a.slopes + head];
        w.slope = fminf(own_slope * 1.4426950408889634f, 1e30f);
        w.whole_decay = lattn_decay_weight(own_slope, C);
        if (threadIdx.x == 0) {
            for (int i = 0; i < stages; i++) {
                lattn_barrier_init(w.barrier.full(i), 128);
                lattn_barrier_init(w.barrier.empty(i), 256);
            }
            for (int i = 0; i < 2; i++)
                lattn_barrier_init(w.barrier.state_full(i), 128);
            for (int i = 0; i < sides; i++)
                lattn_barrier_init(w.barrier.state_empty(i), 128);
            lattn_proxy_fence();
        }
        __syncthreads();

        const int job = (int)threadIdx.x / 128;
        const bool initial = segmented || slots.initial;
        if (job == 0) {
            lattn_registers_give<40>();
            if (initial)
                lattn_group_wait<START_BARRIER, 256>();
            copies(w, a,
                   (const uint16_t *)q +
                       lattn_token_at(&a.q, &segment.sequence, qk_head, segment.first),
                   (const uint16_t *)k +
                       lattn_token_at(&a.k, &segment.sequence, qk_head, segment.first),
                   (const uint16_t *)v +
                       lattn_token_at(&a.v, &segment.sequence, head, segment.first) + first_e);
        } else if (job == 1) {
            lattn_registers_take<200>();
            const state_io io = {w.base, (int)threadIdx.x % 128};
            state_tile state = {};
            if (initial) {
                const void *const from = segmented ? work : state_in;
                const lattn_state_view view =
                    segmented ? lattn_state_view(a, segment.number, head, first_e, from)
                              : lattn_state_view(a, a.in, slots.in, head, first_e, from);
                io.load(view, from);
                lattn_copy_wait<0>();
                lattn_group_wait<STATE_BARRIER, 128>();
#pragma unroll
                for (int m = 0; m < D / 64; m++)
#pragma unroll
                    for (int i = 0; i < E / 2; i++)
                        state[m][i] = __uint_as_float(
                            lattn_load_shared(io.at(view, m * 64 + row_of(i), column_of(i))));
                lattn_group_wait<START_BARRIER, 256>();
            }
            /* The compiler serialises all products of the kernel if it can see that these registers
             * are written on one path alone. */
#pragma unroll
            for (int m = 0; m < D / 64; m++)
#pragma unroll
                for (int i = 0; i < E / 2; i++)
                    state[m][i] = lattn_opaque(state[m][i]);
            states(w, state, own_slope);
            if (!segmented && (a.flags & LATTN_FLAG_STATE_OUT)) {
                const lattn_state_view view(a, a.out, slots.out, head, first_e, state_out);
                lattn_group_wait<END_BARRIER, 384>();
#pragma unroll
                for (int m = 0; m < D / 64; m++)
#pragma unroll
                    for (int i = 0; i < E / 2; i++)
                        lattn_store_shared(io.at(view, m * 64 + row_of(i), column_of(i)),
                                           __float_as_uint(state[m][i]));
                lattn_group_wait<STATE_BARRIER, 128>();
                io.store(view, state_out);
            }
        } else {
            if (job == 2) {
                lattn_registers_take<136>();
                outputs<0>(w, a, o_to);
            } else {
                lattn_registers_take<136>();
                outputs<1>(w, a, o_to);
            }
            if (!segmented && (a.flags & LATTN_FLAG_STATE_OUT))
                lattn_group_wait<END_BARRIER, 384>();
        }
    }
};

#endif
