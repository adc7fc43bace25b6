/* Prefill on Hopper: the job that keeps the state in its accumulators, state = g^64 state +
 * (w k)^T v, and leaves a rounded copy of it for the outputs before each chunk. */
#ifndef LATTN_HOPPER_STATE_CUH
#define LATTN_HOPPER_STATE_CUH

#include <math.h>

#include "chain.cuh"
#include "hopper_layout.cuh"

template <typename T, int D, int E, bool chains> struct lattn_hopper_state {
    typedef lattn_hopper_layout<D, E> layout;
    typedef lattn_hopper_work<layout::C, chains> work;
    typedef typename layout::state_io state_io;
    typedef lattn_pairs<T> pairs;
    typedef float tile[D / 64][E / 2];
    static constexpr int C = layout::C;

    const layout &l;
    float own_slope, whole_decay;
    uint32_t table;
    int turn;      /* of the outputs of the next chunk */
    int published; /* for each turn, whether an odd number of copies of the state */
    lattn_ring<layout::stages> ring;

    struct barrier {
        static __device__ __forceinline__ void wait()
        {
            lattn_group_wait<layout::STATE_BARRIER, 128>();
        }
    };
    static __device__ __forceinline__ void wait_all()
    {
        barrier::wait();
    }
    static constexpr int floats = D * E / 128;
    typedef lattn_chain<floats, 128, barrier> chain;
    static_assert(chain::shared_bytes <= LATTN_HOPPER_STATES(D, E), "states pass through there");

    /* ---- weights: w[x] = g^(63 - x), x to 63, then 1 ---- */

    /* Pairs of weights as two numbers of 16 bits each: the product with them is rounded once. */
    __device__ __forceinline__ void make_table() const
    {
        const int x = (int)threadIdx.x % 128;
        const float slope = lattn_slope2(own_slope);
        const float w = lattn_exp2(-(float)max(63 - x, 0) * slope);
        const float next = lattn_exp2(-(float)max(62 - x, 0) * slope);
        const uint32_t high = pairs::pack(w, next);
        const uint32_t low = pairs::pack(w - pairs::value((uint16_t)high),
                                         next - pairs::value((uint16_t)(high >> 16)));
        wait_all();
        lattn_store_shared2(table + x * 8, high, low);
        wait_all();
    }

    /* (w k)^T, 16 rows of d a warp, as A. */
    __device__ __forceinline__ void weigh(uint32_t k, uint32_t weights, uint32_t a[C / 16][4]) const
    {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int j = 0; j < C / 16; j++) {
            lattn_ldmatrix_trans(
                a[j], k + lattn_block_at<C>(j * 16 + lane % 8 + lane / 16 * 8,
                                            (int)threadIdx.x % 128 / 32 * 16 + lane / 8 % 2 * 8));
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                const uint2 w = lattn_load_shared2(weights + (j * 16 + i * 4) * 8);
                a[j][i] = pairs::multiply_split(a[j][i], w.x, w.y);
                a[j][i + 1] = pairs::multiply_split(a[j][i + 1], w.x, w.y);
            }
        }
    }

    /* ---- one chunk ---- */

    __device__ __forceinline__ void wait_empty(int of_turn) const
    {
        lattn_barrier_wait(l.state_empty(of_turn), (published >> of_turn & 1) ^ 1);
    }

    /* The largest of a warp's elements, or of those that are finite. */
    template <bool finite> static __device__ __forceinline__ uint32_t largest(const tile state)
    {
        float most = 0.0f;
#pragma unroll
        for (int m = 0; m < D / 64; m++)
#pragma unroll
            for (int i = 0; i < E / 2; i++) {
                const float x = fabsf(state[m][i]);
                if (!finite || x < INFINITY)
                    most = fmaxf(most, x);
            }
        return __reduce_max_sync(0xffffffffu, __float_as_uint(most));
    }

    /* What to multiply the state by to bring it into float16's range, the same in all threads. An
     * infinite column is not to take the others out of it. */
    __device__ __forceinline__ float range_factor(const tile state) const
    {
        const int warp = threadIdx.x % 128 / 32;
        uint32_t bits = largest<false>(state);
        if (bits >= __float_as_uint(INFINITY))
            bits = largest<true>(state);
        if (threadIdx.x % 32 == 0)
            lattn_store_shared(l.warp_exponents(turn) + warp * 4, bits);
        wait_all();
        const uint4 x = lattn_load_shared4(l.warp_exponents(turn));
        const int exponent = lattn_exponent(max(max(x.x, x.y), max(x.z, x.w)), 4);
        if (threadIdx.x % 128 == 0)
            lattn_store_shared(l.state_exponent(turn), (uint32_t)exponent);
        return lattn_power(254 - exponent);
    }

    __device__ __forceinline__ void publish(const tile state)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
        const uint32_t to = l.state(turn) + lattn_block_at<D>(warp * 16 + lane % 16, lane / 16 * 8);
        wait_empty(turn);
        const float factor = pairs::narrow ? range_factor(state) : 1.0f;
#pragma unroll
        for (int m = 0; m < D / 64; m++) {
#pragma unroll
            for (int n = 0; n < E / 8; n += 2) {
                float s[8];
#pragma unroll
                for (int i = 0; i < 8; i++)
                    s[i] = pairs::narrow ? state[m][n * 4 + i] * factor : state[m][n * 4 + i];
                /* The swizzle flips what bits n has of an address. */
                lattn_stmatrix((to ^ n % 8 * 16) + n / 8 * D * 128 + m * 64 * 128,
                               pairs::pack(s[0], s[1]), pairs::pack(s[2], s[3]),
                               pairs::pack(s[4], s[5]), pairs::pack(s[6], s[7]));
            }
        }
        lattn_proxy_fence();
        lattn_barrier_arrive(l.state_full(turn));
        published ^= 1 << turn;
    }

    /* `visible`: to outputs, which there are in the last pass alone. */
    __device__ __forceinline__ void step(tile state, int rows, bool visible)
    {
        const int lane = threadIdx.x % 32;
        const float decay = rows == C ? whole_decay : lattn_decay_weight(own_slope, rows);
        const uint32_t weights = table + (lane % 4 * 2 + C - rows) * 8;
        uint32_t a[D / 64][C / 16][4];
        if (visible)
            publish(state);
#pragma unroll
        for (int m = 0; m < D / 64; m++)
#pragma unroll
            for (int i = 0; i < E / 2; i++)
                state[m][i] *= decay;
        lattn_barrier_wait(l.full(ring.stage), ring.phase);
        lattn_proxy_fence();
#pragma unroll
        for (int m = 0; m < D / 64; m++) {
            weigh(l.k(ring.stage) + m * C * 128, weights, a[m]);
            lattn_wgmma_fence();
#pragma unroll
            for (int j = 0; j < C / 16; j++)
                lattn_wgmma<T, E>::multiply(state[m], a[m][j],
                                            lattn_operand_down<C>(l.v(ring.stage), j));
            lattn_wgmma_commit();
        }
        lattn_wgmma_wait<0>();
        lattn_barrier_arrive(l.empty(ring.stage));
        ring.step(1);
        turn ^= 1;
    }

    /* ---- the ends of a sequence: 64 rows of d at a time, through the place of the copies ---- */

    static __device__ __forceinline__ lattn_state_view part(lattn_state_view view, int m)
    {
        view.at += m * 64 * view.d_stride;
        view.d -= m * 64;
        return view;
    }

    /* A thread's elements of 64 rows lie in shared memory a few distances apart. */
    struct elements {
        uint32_t first, next, lower, step; /* the next column, 8 rows further, 8 columns further */

        __device__ __forceinline__ elements(const state_io &io, const lattn_state_view &view)
        {
            const int thread = lattn_opaque((int)threadIdx.x);
            const int d = lattn_hopper_row(0, thread), e = lattn_hopper_column(0, thread);
            first = io.at(view, d, e);
            next = io.at(view, 0, 1) - io.at(view, 0, 0);
            lower = io.at(view, 8, 0) - io.at(view, 0, 0);
            step = 8 * next;
        }
        __device__ __forceinline__ uint32_t operator[](int i) const
        {
            return first + i / 4 * step + i / 2 % 2 * lower + i % 2 * next;
        }
    };

    __device__ __forceinline__ void load(const lattn_state_view &view, const void *from,
                                         tile state) const
    {
        const state_io io = {l.state(0), (int)threadIdx.x % 128};
        wait_empty(0);
        wait_empty(1);
#pragma unroll
        for (int m = 0; m < D / 64; m++) {
            io.load(part(view, m), from);
            lattn_copy_wait<0>();
            wait_all();
            const elements at(io, view);
#pragma unroll
            for (int i = 0; i < E / 2; i++)
                state[m][i] = __uint_as_float(lattn_load_shared(at[i]));
            wait_all();
        }
    }

    __device__ __forceinline__ void store(const lattn_state_view &view, void *to,
                                          const tile state) const
    {
        const state_io io = {l.state(0), (int)threadIdx.x % 128};
        wait_empty(0);
        wait_empty(1);
#pragma unroll
        for (int m = 0; m < D / 64; m++) {
            const elements at(io, view);
#pragma unroll
            for (int i = 0; i < E / 2; i++)
                lattn_store_shared(at[i], __float_as_uint(state[m][i]));
            wait_all();
            io.store(part(view, m), to);
            wait_all();
        }
    }

    static __device__ __forceinline__ void clear(tile state)
    {
#pragma unroll
        for (int m = 0; m < D / 64; m++)
#pragma unroll
            for (int i = 0; i < E / 2; i++)
                state[m][i] = 0.0f;
    }

    __device__ __forceinline__ void walk(const lattn_memories &m, const struct lattn_args &a,
                                         const work &w, chain &link)
    {
        tile state;
        float(&flat)[floats] = *(float(*)[floats])state;
        clear(state);
        if (w.segmented) {
            load(lattn_state_view(a, w.segment.number, w.head, w.first_e, m.work), m.work, state);
        } else if (w.slots.initial && (!w.chained || w.segment.first == 0)) {
            load(lattn_state_view(a, a.in, w.slots.in, w.head, w.first_e, m.state_in), m.state_in,
                 state);
        }
        own_slope = m.slopes[a.slopes + w.head];
        whole_decay = lattn_decay_weight(own_slope, C);
        make_table();
        int next = chain::STEPS;
        if (w.linked()) {
            link.enter((int)(w.segment.first / a.segment),
                       (int)lattn_segment_count(&a, &w.segment.sequence));
            if (w.segment.first == 0 && w.slots.initial)
                link.keep_initial(flat);
            next = w.last ? chain::IN_ROW : chain::OWN;
        }
        /* The steps to the state before a segment, then its outputs. One loop, so that there is one
         * copy of what a chunk takes. */
#pragma unroll 1
        for (; next <= chain::STEPS; next++) {
            /* (A first segment's own state begins with the initial one, which is at hand.) */
            if (next != chain::OWN && next != chain::STEPS) {
                link.wait_begun();
                link.add(next, w.slots.initial, flat, own_slope, l.state(0));
            }
            /* The compiler serialises all products of the kernel if it can see that these registers
             * are written on one path alone. */
#pragma unroll
            for (int i = 0; i < D / 64; i++)
#pragma unroll
                for (int j = 0; j < E / 2; j++)
                    state[i][j] = lattn_opaque(state[i][j]);
            if (next == chain::OWN || next == chain::STEPS) {
                for (int chunk = 0; chunk < w.chunks; chunk++)
                    step(state, w.rows(chunk), next == chain::STEPS);
            } else if (next == chain::ROW) {
                link.publish(flat);
                clear(state);
            }
        }
        if (!w.segmented && w.last && (a.flags & LATTN_FLAG_STATE_OUT))
            store(lattn_state_view(a, a.out, w.slots.out, w.head, w.first_e, m.state_out),
                  m.state_out, state);
    }

    static __device__ __forceinline__ void run(const layout &l, const lattn_memories &m,
                                               const struct lattn_args &a)
    {
        lattn_hopper_state job = {l, 0.0f, 0.0f, l.table(2), 0, 0, {}};
        const bool chained = chains && (a.flags & LATTN_FLAG_CHAINED);
        chain link(m.work, a, E, (int)threadIdx.x % 128);
        if (chained)
            link.begin();
        const unsigned int count = work::count(a, E);
        for (unsigned int number = blockIdx.x; number < count; number += gridDim.x) {
            work w;
            if (w.get(m, a, number, E) && !w.slots.padding)
                job.walk(m, a, w, link);
        }
        if (chained)
            link.end();
    }
};

#endif
