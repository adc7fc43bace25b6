/* Prefill on Hopper: the job that copies q, k and v into shared memory, as far ahead as there are
 * stages, across the ends of sequences too. */
#ifndef LATTN_HOPPER_COPIES_CUH
#define LATTN_HOPPER_COPIES_CUH

#include "hopper_layout.cuh"

template <int D, int E, bool chains> struct lattn_hopper_copies {
    typedef lattn_hopper_layout<D, E> layout;
    typedef lattn_hopper_work<layout::C, chains> work;
    static constexpr int C = layout::C;

    /* A thread's share of the tiles of tensors with so many columns: 16 bytes of every few rows. */
    template <int columns> struct share {
        static constexpr int pieces = columns / 8, step = 128 / pieces;
        static_assert(step % 8 == 0, "the swizzle is to be the same in all of a thread's rows");
        uint32_t place;
        int row, bytes;

        __device__ __forceinline__ share(int have_columns)
        {
            const int thread = (int)threadIdx.x % 128, column = thread % pieces * 8;
            row = thread / pieces;
            bytes = max(min(have_columns - column, 8), 0) * 2;
            place = lattn_block_at<C>(row, column);
        }
        __device__ __forceinline__ const uint16_t *first(const void *tensor, long long at,
                                                         long long stride) const
        {
            const int column = (int)threadIdx.x % pieces * 8;
            return (const uint16_t *)tensor + at + (bytes ? row * stride + column : 0);
        }
        /* Few registers are left for this job, so addresses step from row to row. */
        __device__ __forceinline__ void copy(uint32_t tile, const uint16_t *&from, long long stride,
                                             int rows) const
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

    static __device__ __forceinline__ void run(const layout &l, const lattn_memories &m,
                                               const struct lattn_args &a)
    {
        lattn_ring<layout::stages> ring;
        const unsigned int count = work::count(a, E);
        int passes = 0; /* to go over the same piece of work; found out again for each */
        for (unsigned int number = blockIdx.x; number < count; number += passes ? 0 : gridDim.x) {
            work w;
            if (!w.get(m, a, number, E) || w.slots.padding)
                continue;
            passes = passes ? passes - 1 : w.passes() - 1;
            const int qk_head = w.head / a.group;
            const share<D> of_qk(a.d);
            const share<E> of_v(a.e - w.first_e);
            const uint16_t *q = of_qk.first(m.q, w.at(a.q, qk_head), a.q.token);
            const uint16_t *k = of_qk.first(m.k, w.at(a.k, qk_head), a.k.token);
            const uint16_t *v = of_v.first(m.v, w.at(a.v, w.head) + w.first_e, a.v.token);
            for (int left = (int)w.segment.length; left > 0; left -= C) {
                lattn_barrier_wait(l.empty(ring.stage), ring.phase ^ 1);
                of_qk.copy(l.k(ring.stage), k, a.k.token, left);
                of_v.copy(l.v(ring.stage), v, a.v.token, left);
                /* Nothing is read of q before the last pass. */
                of_qk.copy(l.q(ring.stage), q, a.q.token, passes ? 0 : left);
                lattn_barrier_arrive_copies(l.full(ring.stage));
                ring.step(1);
            }
        }
    }
};

#endif
