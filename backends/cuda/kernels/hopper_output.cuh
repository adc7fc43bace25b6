/* Prefill on Hopper: the two jobs that take turns with the outputs of chunks. S = the masked and
 * decayed q k^T, o = diag(g^(t+1)) q state + S v. */
#ifndef LATTN_HOPPER_OUTPUT_CUH
#define LATTN_HOPPER_OUTPUT_CUH

#include "hopper_layout.cuh"

template <typename T, int D, int E, int turn, bool chains> struct lattn_hopper_output {
    typedef lattn_hopper_layout<D, E> layout;
    typedef lattn_hopper_work<layout::C, chains> work;
    typedef lattn_pairs<T> pairs;
    typedef float tile[E / 2];
    typedef uint32_t packed_tile[E / 4];
    static constexpr int C = layout::C;

    /* Have the registers room for q as an operand and for the weights of scores? */
    static constexpr bool roomy = D * E < 128 * 128;

    const layout &l;
    float slope; /* of powers of two */
    float scale;
    uint32_t table, pairs_at;
    uint2 pair[roomy ? C / 8 + 1 : 1];
    int phase; /* of the copies of the state */
    lattn_ring<layout::stages> ring;

    static __device__ __forceinline__ bool any(bool x)
    {
        return lattn_group_any(layout::OUTPUT_BARRIER + turn, x);
    }

    /* ---- weights: w[x] = scale g^(63 - x), x to 63, then 0 ---- */

    /* A pair of weights begins at an even x or at an odd one, so the table is there twice, in
     * other banks. */
    static constexpr uint32_t second = 512 + 64;
    __device__ __forceinline__ void make_table()
    {
        const int x = (int)threadIdx.x % 128;
        const float w = x < 64 ? lattn_exp2(-(float)max(63 - x, 0) * slope) * scale : 0.0f;
        any(false);
        lattn_store_shared(table + x * 4, __float_as_uint(w));
        if (x < 127)
            lattn_store_shared(table + second + x * 4 + 4, __float_as_uint(w));
        any(false);
        const int first = 63 - lattn_hopper_row(0) + lattn_hopper_column(0);
        pairs_at = table + (first % 2 ? second + (first + 1) * 4 : first * 4);
        if (roomy) {
#pragma unroll
            for (int n = 0; n <= C / 8; n++)
                pair[n] = lattn_load_shared2(pairs_at + (n - 1) * 8 * 4);
        }
    }

    /* ---- products ---- */

    typedef uint32_t q_tile[roomy ? D / 16 : 1][4];

    /* q as A: in registers, so that shared memory is read once for both products, or in place. */
    __device__ __forceinline__ void load_q(q_tile q) const
    {
        if (!roomy)
            return;
        const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        const uint32_t at =
            l.q(ring.stage) + lattn_block_at<C>(warp * 16 + lane % 16, lane / 16 * 8);
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            lattn_ldmatrix(q[i], (at ^ i % 4 * 32) + i / 4 * C * 128);
    }

    template <int n, bool transposed>
    __device__ __forceinline__ void multiply_q(float *c, const q_tile q, int i, uint64_t b) const
    {
        const uint64_t a = lattn_operand_along<C>(l.q(ring.stage), i);
        if (roomy)
            lattn_wgmma<T, n>::template multiply<transposed>(c, q[roomy ? i : 0], b, i > 0);
        else
            lattn_wgmma<T, n>::template multiply<transposed>(c, a, b, i > 0);
    }

    /* s = q k^T, started. */
    __device__ __forceinline__ void scores(const q_tile q, float s[C / 2]) const
    {
        lattn_wgmma_fence();
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            multiply_q<C, false>(s, q, i, lattn_operand_along<C>(l.k(ring.stage), i));
        lattn_wgmma_commit();
    }

    /* o = q state, started. */
    __device__ __forceinline__ void from_state(const q_tile q, tile o) const
    {
        lattn_wgmma_fence();
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            multiply_q<E, true>(o, q, i, lattn_operand_down<D>(l.state(turn), i));
        lattn_wgmma_commit();
    }

    /* `factor`: of rows of scores. */
    __device__ __forceinline__ void decay_rows(tile o, const float factor[2]) const
    {
        const float rate = lattn_opaque(slope);
        float weight[2] = {lattn_exp2((float)(-1 - lattn_hopper_row(0)) * rate) * scale,
                           lattn_exp2((float)(-1 - lattn_hopper_row(2)) * rate) * scale};
        if (pairs::narrow) {
            const float power = lattn_power((int)lattn_load_shared(l.state_exponent(turn)));
            weight[0] *= power * factor[0];
            weight[1] *= power * factor[1];
        }
#pragma unroll
        for (int i = 0; i < E / 2; i++)
            o[i] *= weight[i / 2 % 2];
    }

    /* S, masked and decayed. */
    __device__ __forceinline__ void mask(float s[C / 2]) const
    {
        const int ahead = lattn_opaque(lattn_hopper_column(0) - lattn_hopper_row(0)); /* j - t */
        uint2 before = roomy ? pair[0] : lattn_load_shared2(pairs_at - 8 * 4);
#pragma unroll
        for (int n = 0; n < C / 8; n++) {
            const uint2 here = roomy ? pair[n + 1] : lattn_load_shared2(pairs_at + n * 8 * 4);
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const uint2 w = half ? before : here;
                const int i = n * 4 + half * 2, step = n * 8 - half * 8;
                s[i] = ahead <= -step ? s[i] * __uint_as_float(w.x) : 0.0f;
                s[i + 1] = ahead < -step ? s[i + 1] * __uint_as_float(w.y) : 0.0f;
            }
            before = here;
        }
    }

    /* What brings a thread's two rows of S into float16's range. */
    static __device__ __forceinline__ void range_factors(const float s[C / 2], float factor[2],
                                                         float inverse[2])
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float most = 0.0f;
#pragma unroll
            for (int i = half * 2; i < C / 2; i += 4)
                most = fmaxf(most, fmaxf(fabsf(s[i]), fabsf(s[i + 1])));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
            most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
            /* Not beyond 2^32, lest the state's part, multiplied too, overflows. */
            const int exponent = lattn_exponent(__float_as_uint(most), 127 - 32);
            factor[half] = lattn_power(254 - exponent);
            inverse[half] = lattn_power(exponent);
        }
    }

    /* S rounded, as A; and what rounding took from its first 16 columns: a sequence's first outputs
     * are sums of so few scores that it would show. */
    static __device__ __forceinline__ void round(const float s[C / 2], const float factor[2],
                                                 uint32_t a[C / 16][4], uint32_t rest[4])
    {
#pragma unroll
        for (int i = 0; i < C / 2; i += 2) {
            const float x = pairs::narrow ? s[i] * factor[i / 2 % 2] : s[i];
            const float y = pairs::narrow ? s[i + 1] * factor[i / 2 % 2] : s[i + 1];
            const uint32_t both = pairs::pack(x, y);
            a[i / 8][i / 2 % 4] = both;
            if (i < 8)
                rest[i / 2] = pairs::pack(x - pairs::value((uint16_t)both),
                                          y - pairs::value((uint16_t)(both >> 16)));
        }
    }

    /* o += S v. */
    __device__ __forceinline__ void from_chunk(const uint32_t score[C / 16][4],
                                               const uint32_t rest[4], tile o) const
    {
        const uint32_t v = l.v(ring.stage);
        lattn_wgmma_fence();
        lattn_wgmma<T, E>::multiply(o, rest, lattn_operand_down<C>(v, 0));
#pragma unroll
        for (int j = 0; j < C / 16; j++)
            lattn_wgmma<T, E>::multiply(o, score[j], lattn_operand_down<C>(v, j));
        lattn_wgmma_commit();
        lattn_wgmma_wait<0>();
    }

    /* ---- what matrices would spread ---- */

    static __device__ __forceinline__ void pack(const tile o, const float inverse[2],
                                                packed_tile packed)
    {
#pragma unroll
        for (int i = 0; i < E / 4; i++) {
            const float x = pairs::narrow ? o[2 * i] * inverse[i % 2] : o[2 * i];
            const float y = pairs::narrow ? o[2 * i + 1] * inverse[i % 2] : o[2 * i + 1];
            packed[i] = pairs::pack(x, y);
        }
    }

    static __device__ __forceinline__ bool finite(const uint32_t *of, int count)
    {
        uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < count; i++)
            sum = pairs::spoil(sum, of[i]);
        return (sum & 0x7fff7fff) == 0;
    }

    /* Has the chunk an infinite or undefined v, which survives a product with zero? */
    __device__ __forceinline__ bool v_doubtful() const
    {
        bool all = true;
#pragma unroll 1
        for (int i = (int)threadIdx.x % 128; i < C * E / 8; i += 128) {
            const uint4 x = lattn_load_shared4(l.v(ring.stage) + i * 16);
            const uint32_t words[4] = {x.x, x.y, x.z, x.w};
            all = all && finite(words, 4);
        }
        return any(!all);
    }

    /* o += S v, term by term, for the first 16 `blocks` columns of S: nothing that lies after a
     * token is touched for it. S goes through the place of q, which has been used. */
    __device__ __forceinline__ void add_terms(const uint32_t *score, int blocks, tile o) const
    {
        const uint32_t place = l.q(ring.stage);
        any(false);
#pragma unroll
        for (int i = 0; i < blocks * 8; i += 2)
            lattn_store_shared(place + (lattn_hopper_row(i) * C + lattn_hopper_column(i)) * 2,
                               score[i / 2]);
        __syncwarp();
#pragma unroll 1
        for (int j = 0; j < blocks * 16; j++) {
            const int thread = lattn_opaque((int)threadIdx.x);
#pragma unroll
            for (int i = 0; i < E / 2; i++) {
                const int t = lattn_hopper_row(i, thread), e = lattn_hopper_column(i, thread);
                const float s = pairs::value(lattn_load_shared_half(place + (t * C + j) * 2));
                const float v =
                    pairs::value(lattn_load_shared_half(l.v(ring.stage) + lattn_block_at<C>(j, e)));
                if (j <= t)
                    o[i] = fmaf(s, v, o[i]);
            }
        }
    }

    __device__ __forceinline__ void again_exactly(const uint32_t score[C / 16][4],
                                                  const uint32_t rest[4], const float factor[2],
                                                  const float inverse[2], packed_tile packed) const
    {
        tile o;
        q_tile q;
        load_q(q);
        from_state(q, o);
        lattn_wgmma_wait<0>();
        decay_rows(o, factor);
        add_terms(score[0], C / 16, o);
        add_terms(rest, 1, o);
        pack(o, inverse, packed);
    }

    /* ---- one chunk ---- */

    /* Through `staging`, so that whole rows are stored in 16-byte pieces; each warp its own. */
    __device__ __forceinline__ void store(const packed_tile o, uint16_t *to, long long stride,
                                          int rows, int columns) const
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        const uint32_t staging = l.staging(ring.stage, turn);
        const uint32_t at = staging + lattn_block_at<C>(warp * 16 + lane % 16, lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < E / 8; n += 2)
            lattn_stmatrix((at ^ n % 8 * 16) + n / 8 * C * 128, o[n * 2], o[n * 2 + 1],
                           o[n * 2 + 2], o[n * 2 + 3]);
        __syncwarp();
        constexpr int step = 32 / (E / 8); /* rows at a time */
        const int row = warp * 16 + lane / (E / 8), column = lane % (E / 8) * 8;
        const uint32_t from = staging + lattn_block_at<C>(row, column);
        to += row * stride + column;
        const long long skip = lattn_opaque(stride * step);
        if (rows == C && columns >= E) {
#pragma unroll
            for (int i = 0; i < 16; i += step) {
                lattn_store_global4(to, lattn_load_shared4((from ^ i % 8 * 16) + i * 128));
                to += skip;
            }
            return;
        }
#pragma unroll 1
        for (int i = 0; i < 16; i += step) {
            if (row + i < rows && column < columns)
                lattn_chunk_store<uint16_t, true>(to, (from ^ i % 8 * 16) + i * 128,
                                                  columns - column);
            to += skip;
        }
    }

    __device__ __forceinline__ void chunk(uint16_t *to, long long stride, int rows, int columns)
    {
        float s[C / 2];
        tile o;
        q_tile q;
        packed_tile packed;
        uint32_t score[C / 16][4], rest[4];
        float factor[2] = {1.0f, 1.0f}, inverse[2] = {1.0f, 1.0f};
        lattn_barrier_wait(l.full(ring.stage), ring.phase);
        lattn_proxy_fence();
        load_q(q);
        scores(q, s);
        lattn_barrier_wait(l.state_full(turn), phase);
        from_state(q, o);
        lattn_wgmma_wait<1>();
        mask(s);
        if (pairs::narrow)
            range_factors(s, factor, inverse);
        round(s, factor, score, rest);
        lattn_wgmma_wait<0>();
        decay_rows(o, factor);
        from_chunk(score, rest, o);
        pack(o, inverse, packed);
        if (any(!finite(packed, E / 4)) && v_doubtful())
            again_exactly(score, rest, factor, inverse, packed);
        lattn_barrier_arrive(l.state_empty(turn));
        phase ^= 1;
        store(packed, to, stride, rows, columns);
        lattn_barrier_arrive(l.empty(ring.stage));
    }

    /* Of a pass without outputs. */
    __device__ __forceinline__ void pass_over() const
    {
        lattn_barrier_wait(l.full(ring.stage), ring.phase);
        lattn_barrier_arrive(l.empty(ring.stage));
    }

    /* ---- all chunks ---- */

    static __device__ __forceinline__ void run(const layout &l, const lattn_memories &m,
                                               const struct lattn_args &a)
    {
        lattn_hopper_output job = {l, 0.0f, a.scale, l.table(turn), 0, {}, 0, {}};
        const unsigned int count = work::count(a, E);
        int first = turn; /* chunks of the other turn come before */
        if (turn)
            job.ring.step(1);
        for (unsigned int number = blockIdx.x; number < count; number += gridDim.x) {
            work w;
            if (!w.get(m, a, number, E))
                continue;
            uint16_t *const to = (uint16_t *)m.o + w.at(a.o, w.head) + w.first_e;
            const int columns = a.e - w.first_e;
            if (w.slots.padding) {
                lattn_rows_zero<E>(to, a.o.token, w.segment.length, columns,
                                   (int)threadIdx.x % 128 + turn * 128, 256);
                continue;
            }
            job.slope = lattn_slope2(m.slopes[a.slopes + w.head]);
            job.make_table();
            for (int pass = w.passes(); pass > 0; pass--) {
                int chunk = first;
                for (; chunk < w.chunks; chunk += 2) {
                    if (pass == 1)
                        job.chunk(to + (long long)chunk * C * a.o.token, a.o.token, w.rows(chunk),
                                  columns);
                    else
                        job.pass_over();
                    job.ring.step(2);
                }
                first = chunk - w.chunks;
            }
        }
    }
};

#endif
