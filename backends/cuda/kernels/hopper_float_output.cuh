/* The warpgroup of hopper_float.cuh that has the outputs, 64 columns of e by 64 tokens. */
#ifndef LATTN_HOPPER_FLOAT_OUTPUT_CUH
#define LATTN_HOPPER_FLOAT_OUTPUT_CUH

#include "hopper_float_shape.cuh"

template <int D, int parts>
struct lattn_hopper_float_output : lattn_hopper_float_shape<D, parts, true> {
    using shape = lattn_hopper_float_shape<D, parts, true>;
    using shape::C, shape::values;
    using walk = typename shape::walk;
    using output_tile = typename shape::output_tile;
    using operand = typename shape::operand;
    /* Scores are multiplied while the outputs before them are stored, where registers allow. */
    static constexpr bool ahead = parts == 2;

    /* s = q k^T, started. */
    static __device__ __forceinline__ void scores(const walk &w, int chunk, float s[C / 2])
    {
        lattn_wgmma_fence();
        lattn_each_product<parts>([&](int x, int y) {
#pragma unroll
            for (int i = 0; i < D / 16; i++)
                lattn_wgmma<__nv_bfloat16, C>::template multiply<false>(
                    s, lattn_operand_along<C>(w.q(chunk, x), i),
                    lattn_operand_along<C>(w.k(chunk, y), i),
                    !(i == 0 && x == 0 && y == parts - 1));
        });
        lattn_wgmma_commit();
    }

    /* Beyond the last chunk they are of anything, and not used: products in a branch would make the
     * compiler serialise all of them. */
    static __device__ __forceinline__ void next_scores(const walk &w, int chunk, float s[C / 2])
    {
        if (chunk < w.chunks) {
            w.k_ring.wait_full(chunk);
            w.q_ring.wait_full(chunk);
        }
        scores(w, chunk, s);
    }

    /* The parts of S, masked and decayed, to shared memory. */
    static __device__ __forceinline__ void mask(const walk &w, float s[C / 2])
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        const int distance = lattn_opaque(lattn_hopper_row(0) - lattn_hopper_column(0));
        const uint32_t weights = w.output_weight(distance);
#pragma unroll
        for (int i = 0; i < C / 2; i += 2) {
            const int less = i / 4 * 8 - i / 2 % 2 * 8; /* t - j is distance - less */
            const uint2 weight = lattn_load_shared2(weights - less * 8);
            const float x = s[i] * __uint_as_float(weight.x);
            const float y = s[i + 1] * __uint_as_float(weight.y);
            s[i] = distance >= less ? x : 0.0f;
            s[i + 1] = distance >= less + 1 ? y : 0.0f;
        }
#pragma unroll
        for (int n = 0; n < C / 8; n += 2) {
            uint32_t part[4][parts];
#pragma unroll
            for (int i = 0; i < 4; i++)
                lattn_parts_of<parts>(s[n * 4 + i * 2], s[n * 4 + i * 2 + 1], part[i]);
#pragma unroll
            for (int p = 0; p < parts; p++)
                lattn_stmatrix(w.score(p) +
                                   lattn_block_at<C>(warp * 16 + lane % 16, (n + lane / 16) * 8),
                               part[0][p], part[1][p], part[2][p], part[3][p]);
        }
        lattn_proxy_fence();
    }

    /* o^T = v^T S^T, started. */
    static __device__ __forceinline__ void from_chunk(const walk &w, const operand v, output_tile o)
    {
        lattn_wgmma_fence();
        lattn_each_product<parts>([&](int x, int y) {
#pragma unroll
            for (int j = 0; j < C / 16; j++)
                lattn_wgmma<__nv_bfloat16, C>::template multiply<false>(
                    o, v[x][j], lattn_operand(w.score(y) + j * 32, 16),
                    !(j == 0 && x == 0 && y == parts - 1));
        });
        lattn_wgmma_commit();
    }

    static __device__ __forceinline__ float score_at_token(const walk &w, int t, int j)
    {
        float sum = 0.0f;
#pragma unroll
        for (int p = parts - 1; p >= 0; p--) {
            uint16_t x;
            asm volatile("ld.shared.u16 %0, [%1];"
                         : "=h"(x)
                         : "r"(w.score(p) + lattn_block_at<C>(t, j)));
            sum += __uint_as_float((uint32_t)x << 16);
        }
        return sum;
    }

    /* The same, term by term: nothing that lies after a token is touched for it, since an infinite
     * or undefined v would survive a product with zero. */
    static __device__ __forceinline__ void from_chunk_exactly(const walk &w, int chunk,
                                                              output_tile o)
    {
#pragma unroll
        for (int i = 0; i < C / 2; i++)
            o[i] = 0.0f;
#pragma unroll 1
        for (int j = 0; j < C; j++) {
#pragma unroll
            for (int i = 0; i < C / 2; i++) {
                const float v =
                    __uint_as_float(lattn_load_shared(w.v(chunk, j, lattn_hopper_row(i))));
                if (j <= lattn_hopper_column(i))
                    o[i] = fmaf(score_at_token(w, lattn_hopper_column(i), j), v, o[i]);
            }
        }
    }

    static __device__ __forceinline__ void add_from_state(const walk &w, output_tile o)
    {
        const uint32_t weights = w.output_weight(lattn_hopper_column(0) + 2);
#pragma unroll
        for (int i = 0; i < C / 2; i += 4) {
            const uint4 x =
                lattn_load_shared4(w.from_state() + (i * 8 + (int)threadIdx.x % 32) * 16);
            const uint2 weight = lattn_load_shared2(weights + i / 4 * 8 * 8);
            const float low = __uint_as_float(weight.y), high = __uint_as_float(weight.x);
            o[i] = fmaf(__uint_as_float(x.x), low, o[i]);
            o[i + 1] = fmaf(__uint_as_float(x.y), high, o[i + 1]);
            o[i + 2] = fmaf(__uint_as_float(x.z), low, o[i + 2]);
            o[i + 3] = fmaf(__uint_as_float(x.w), high, o[i + 3]);
        }
    }

    /* Through the warp's place for what came from the state, so that memory is written in pieces of
     * 16 bytes: 32 pairs of tokens by 16 columns, swizzled. */
    static __device__ __forceinline__ void store(const walk &w, const output_tile o, float *to,
                                                 long long stride, int rows)
    {
        const int lane = threadIdx.x % 32, pair = lane % 4;
        const uint32_t put = w.from_state() + pair * 128 + (pair * 8 + lane / 4) * 4;
        __syncwarp();
#pragma unroll
        for (int i = 0; i < C / 2; i++)
            lattn_store_shared((put ^ (i % 2 * 64 + i / 2 % 2 * 32)) + i / 4 * 512,
                               __float_as_uint(o[i]));
        __syncwarp();
        const int row = lane / 4, column = (int)threadIdx.x % 128 / 32 * 16 + lane % 4 * 4;
        const uint32_t take =
            w.from_state() + row / 2 * 128 + ((row % 2 * 16 + lane % 4 * 4) ^ row / 2 * 8) * 4;
        const long long skip = lattn_opaque(stride * 8);
        to += row * stride + column;
        if (w.columns - column >= 4) {
#pragma unroll
            for (int i = 0; i < C / 8; i++) {
                if (i * 8 < rows - row)
                    lattn_store_global4(to, lattn_load_shared4(take + i * 512));
                to += skip;
            }
        } else {
            for (int i = row; i < rows; i += 8) {
                for (int e = 0; e < w.columns - column; e++)
                    to[e] = __uint_as_float(lattn_load_shared(take + i / 8 * 512 + e * 4));
                to += skip;
            }
        }
    }

    static __device__ __forceinline__ void outputs(const walk &w, const struct lattn_args &a,
                                                   float *to)
    {
        float s[C / 2];
        next_scores(w, 0, s);
        for (int chunk = 0; chunk < w.chunks; chunk++) {
            output_tile o;
            operand v;
            w.v_ring.wait_full(chunk);
            /* All warps are past the products of the chunk before, when S may be overwritten. */
            const bool doubtful =
                lattn_group_any(shape::OUTPUT_BARRIER, values<false>(w, chunk, v) != 0.0f);
            lattn_wgmma_wait<0>();
            lattn_barrier_arrive(w.q_ring.empty(chunk));
            lattn_barrier_arrive(w.k_ring.empty(chunk));
            mask(w, s);
            lattn_group_wait<shape::OUTPUT_BARRIER, 128>();
            from_chunk(w, v, o);
            if (ahead) {
                next_scores(w, chunk + 1, s);
                lattn_wgmma_wait<1>();
            } else {
                lattn_wgmma_wait<0>();
            }
            if (doubtful)
                from_chunk_exactly(w, chunk, o);
            lattn_barrier_arrive(w.v_ring.empty(chunk));
            w.from_state_ring.wait_full(chunk);
            add_from_state(w, o);
            store(w, o, to, a.o.token, w.rows(chunk));
            lattn_barrier_arrive(w.from_state_ring.empty(chunk));
            to += a.o.token * C;
            if (!ahead)
                next_scores(w, chunk + 1, s);
        }
        lattn_wgmma_wait<0>();
    }
};

#endif
