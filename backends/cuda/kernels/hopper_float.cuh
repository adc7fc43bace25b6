/* Prefill on Hopper's tensor cores, for float32, by products of bfloat16 parts. A group walks a
 * segment in chunks of 64 tokens for 64 columns of e, with four warpgroups:
 *
 *   - two load q and k, and leave their parts in shared memory; v goes there as it is;
 *   - one keeps the state, transposed, in its accumulators: from_state^T = state^T q^T, then
 *     state^T = g^64 state^T + (w v)^T k;
 *   - one has the outputs: S = the masked and decayed q k^T,
 *     o^T = from_state^T diag(g^(t+1)) + v^T S^T.
 *
 * Transposed, an accumulator has the layout of an operand in registers, so the state is never
 * written out: its parts are taken where it lies. So are those of v, which comes from shared memory
 * in float32. What the matrix units sum over a chunk is added in float32 to what was before. */
#ifndef LATTN_HOPPER_FLOAT_CUH
#define LATTN_HOPPER_FLOAT_CUH

#include "hopper_float_load.cuh"
#include "hopper_float_output.cuh"
#include "hopper_float_state.cuh"

template <int D, int parts, bool output>
struct lattn_hopper_float : lattn_hopper_float_shape<D, parts, output> {
    using shape = lattn_hopper_float_shape<D, parts, output>;
    using shape::C, shape::E;
    using shape::START_BARRIER, shape::STATE_BARRIER, shape::END_BARRIER;
    using walk = typename shape::walk;
    using state_io = typename shape::state_io;
    using state_tile = typename shape::state_tile;

    static __device__ __forceinline__ void run(const lattn_memories &m, const struct lattn_args &a)
    {
        extern __shared__ unsigned char memory[];
        struct lattn_group group;
        struct lattn_segment segment;
        struct lattn_slots slots;
        lattn_group_here(a, E, &group);
        if (output)
            lattn_segment_walk(&a, m.cu_seqlens, group.segment, &segment);
        else
            lattn_segment_get(&a, m.cu_seqlens, group.segment, &segment);
        const bool segmented = !output || (a.flags & LATTN_FLAG_SEGMENTED);
        if (segmented && segment.length == 0)
            return;
        lattn_slots_get(&a, m.has_initial, m.slot_in, m.slot_out, segment.sequence.number, &slots);
        const int head = group.head, qk_head = head / a.group, first_e = group.e_tile * E;
        float *const o_to =
            (float *)m.o + lattn_token_at(&a.o, &segment.sequence, head, segment.first) + first_e;
        if (slots.padding) {
            if (output)
                lattn_rows_zero<E>(o_to, a.o.token, segment.length, a.e - first_e, threadIdx.x,
                                   LATTN_HOPPER_THREADS);
            return;
        }

        walk w;
        w.place(lattn_shared_at(memory));
        w.columns = a.e - first_e;
        w.chunks = (int)((segment.length + C - 1) / C);
        w.length = segment.length;
        w.slope = m.slopes[a.slopes + head];
        w.make_tables(a.scale);
        if (threadIdx.x == 0) {
            w.init();
            lattn_proxy_fence();
        }
        __syncthreads();

        /* A multiprocessor has 512 registers for every four of these threads. */
        constexpr int for_loads = 88, for_state = parts == 3 ? 208 : 192;
        constexpr int for_outputs = 512 - 2 * for_loads - for_state;
        const int job = (int)threadIdx.x / 128;
        const bool initial = output && (segmented || slots.initial);
        const bool final = !output || (!segmented && (a.flags & LATTN_FLAG_STATE_OUT));
        const auto at = [&](const void *tensor, const lattn_token_layout &layout, int of_head) {
            return (const float *)tensor +
                   lattn_token_at(&layout, &segment.sequence, of_head, segment.first);
        };
        if (job == 0) {
            lattn_registers_give<for_loads>();
            lattn_hopper_float_load<D, parts, output>::k_and_v(
                w, at(m.k, a.k, qk_head), a.k.token, a.d, at(m.v, a.v, head) + first_e, a.v.token);
        } else if (job == 1) {
            lattn_registers_give<for_loads>();
            if (output)
                lattn_hopper_float_load<D, parts, output>::q(w, at(m.q, a.q, qk_head), a.q.token,
                                                             a.d, initial);
        } else if (job == 2) {
            lattn_registers_take<for_state>();
            const state_io io = {w.base, (int)threadIdx.x % 128};
            state_tile state = {};
            if (initial) {
                const void *const from = segmented ? m.work : m.state_in;
                const lattn_state_view view =
                    segmented ? lattn_state_view(a, segment.number, head, first_e, from)
                              : lattn_state_view(a, a.in, slots.in, head, first_e, from);
                io.load(view, from);
                lattn_copy_wait<0>();
                lattn_group_wait<STATE_BARRIER, 128>();
#pragma unroll
                for (int i = 0; i < D / 2; i++)
                    state[i] = __uint_as_float(lattn_load_shared(
                        io.at(view, lattn_hopper_column(i), lattn_hopper_row(i))));
                lattn_group_wait<START_BARRIER, 256>();
            }
            lattn_hopper_float_state<D, parts, output>::states(w, state);
            if (final) {
                void *const to = output ? m.state_out : m.work;
                const lattn_state_view view =
                    output ? lattn_state_view(a, a.out, slots.out, head, first_e, to)
                           : lattn_state_view(a, segment.number, head, first_e, to);
                if (output)
                    lattn_group_wait<END_BARRIER, 256>();
#pragma unroll
                for (int i = 0; i < D / 2; i++)
                    lattn_store_shared(io.at(view, lattn_hopper_column(i), lattn_hopper_row(i)),
                                       __float_as_uint(state[i]));
                lattn_group_wait<STATE_BARRIER, 128>();
                io.store(view, to);
            }
        } else if constexpr (output) {
            lattn_registers_take<for_outputs>();
            lattn_hopper_float_output<D, parts>::outputs(w, a, o_to);
            if (final)
                lattn_group_wait<END_BARRIER, 256>();
        }
    }
};

#endif
