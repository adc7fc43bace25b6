/* The warpgroup of hopper_float.cuh that keeps the state, 64 rows of e by d in its accumulators. */
#ifndef LATTN_HOPPER_FLOAT_STATE_CUH
#define LATTN_HOPPER_FLOAT_STATE_CUH

#include "hopper_float_shape.cuh"

template <int D, int parts, bool output>
struct lattn_hopper_float_state : lattn_hopper_float_shape<D, parts, output> {
    using shape = lattn_hopper_float_shape<D, parts, output>;
    using shape::C, shape::values;
    using walk = typename shape::walk;
    using output_tile = typename shape::output_tile;
    using operand = typename shape::operand;
    using state_tile = typename shape::state_tile;

    /* o^T = state^T q^T, started. The state's parts are taken 32 rows of d at a time, for all
     * products but those of first parts, which come last. */
    static __device__ __forceinline__ void from_state(const walk &w, int chunk,
                                                      const state_tile state, output_tile o)
    {
        uint32_t a[2][parts][2][4], first[D / 16][4];
#pragma unroll
        for (int i = 0; i < D / 32; i++) {
#pragma unroll
            for (int j = 0; j < 8; j++) {
                uint32_t part[parts];
                lattn_parts_of<parts>(state[i * 16 + j * 2], state[i * 16 + j * 2 + 1], part);
#pragma unroll
                for (int p = 0; p < parts; p++)
                    a[i % 2][p][j / 4][j % 4] = part[p];
            }
            lattn_wgmma_fence();
            lattn_each_product<parts>([&](int x, int y) {
                if (x + y == 0)
                    return;
#pragma unroll
                for (int j = 0; j < 2; j++)
                    lattn_wgmma<__nv_bfloat16, C>::template multiply<false>(
                        o, a[i % 2][x][j], lattn_operand_along<C>(w.q(chunk, y), i * 2 + j),
                        !(i == 0 && j == 0 && x == 0 && y == parts - 1));
            });
            lattn_wgmma_commit();
            if (i > 0)
                lattn_wgmma_wait<1>();
        }
#pragma unroll
        for (int i = 0; i < D / 4; i++)
            first[i / 4][i % 4] = lattn_part_first(state[i * 2], state[i * 2 + 1]);
        lattn_wgmma_fence();
#pragma unroll
        for (int i = 0; i < D / 16; i++)
            lattn_wgmma<__nv_bfloat16, C>::template multiply<false>(
                o, first[i], lattn_operand_along<C>(w.q(chunk, 0), i), true);
        lattn_wgmma_commit();
    }

    /* sum = (w v)^T k for `width` columns of d from `first_d` on, started. */
    template <int width>
    static __device__ __forceinline__ void from_values(const walk &w, int chunk, int first_d,
                                                       const operand a, float sum[width / 2])
    {
#pragma unroll
        for (int i = 0; i < width / 2; i++)
            sum[i] = 0.0f;
        lattn_wgmma_fence();
        lattn_each_product<parts>([&](int x, int y) {
#pragma unroll
            for (int j = 0; j < C / 16; j++)
                lattn_wgmma<__nv_bfloat16, width>::multiply(
                    sum, a[x][j],
                    lattn_operand_down<C>(w.k(chunk, y) + first_d / 64 * (C * 128), j));
        });
        lattn_wgmma_commit();
    }

    /* To the outputs. */
    static __device__ __forceinline__ void hand_over(const walk &w, int chunk, const output_tile o)
    {
        w.from_state_ring.wait_empty(chunk);
#pragma unroll
        for (int i = 0; i < C / 2; i += 4)
            lattn_store_shared4(w.from_state() + (i * 8 + (int)threadIdx.x % 32) * 16,
                                make_uint4(__float_as_uint(o[i]), __float_as_uint(o[i + 1]),
                                           __float_as_uint(o[i + 2]), __float_as_uint(o[i + 3])));
        lattn_barrier_arrive(w.from_state_ring.full(chunk));
    }

    static __device__ __forceinline__ void states(const walk &w, state_tile state)
    {
        /* Beside outputs there are registers for half of the sums at a time. */
        constexpr int width = output ? 64 : D;
        for (int chunk = 0; chunk < w.chunks; chunk++) {
            output_tile o;
            operand v;
            float sum[D / width][width / 2];
            if (output) {
                w.q_ring.wait_full(chunk);
                from_state(w, chunk, state, o);
            }
            w.v_ring.wait_full(chunk);
            values<true>(w, chunk, v);
            lattn_barrier_arrive(w.v_ring.empty(chunk));
            if (output) {
                lattn_wgmma_wait<0>();
                lattn_barrier_arrive(w.q_ring.empty(chunk));
            }
            w.k_ring.wait_full(chunk);
            from_values<width>(w, chunk, 0, v, sum[0]);
            if (output)
                hand_over(w, chunk, o);
            if (width < D)
                from_values<width>(w, chunk, width, v, sum[D / width - 1]);
            const lattn_state_decay past = w.past(chunk);
#pragma unroll
            for (int i = 0; i < D / 2; i++) {
                if (i == 0 && width < D)
                    lattn_wgmma_wait<1>();
                if (i == D / 2 - width / 2)
                    lattn_wgmma_wait<0>();
                state[i] = past.step(state[i], sum[i / (width / 2)][i % (width / 2)]);
            }
            lattn_barrier_arrive(w.k_ring.empty(chunk));
        }
    }
};

#endif
