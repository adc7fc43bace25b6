/* States between memory and registers, by way of shared memory: memory is read and written in its
 * own order, 16 bytes at a time where it can be, by a short loop; what each thread takes from
 * shared memory is its own affair. (Straight-line code for the hundred elements of a thread would
 * be run once, and fetching it would take longer than the state.) */
#ifndef LATTN_STATE_IO_CUH
#define LATTN_STATE_IO_CUH

#include "kernels/sequence.h"
#include "kernels/storage.h"
#include "tensor_list.h"
#include "tensor_mma.cuh"

/* The columns of a state from `first_e` on, in memory. */
struct lattn_state_view {
    int type, d, e; /* real ones */
    lattn_i64 at, d_stride, e_stride;
    bool along_d; /* adjacent along d, else (if at all) along e */
    bool wide;    /* in pieces of 16 bytes */

    __device__ __forceinline__ void finish(const void *base)
    {
        const lattn_i64 inner = along_d ? d_stride : e_stride,
                        outer = along_d ? e_stride : d_stride;
        wide = type == LATTN_TYPE_F32 && inner == 1 &&
               !(((lattn_i64)(uintptr_t)base / 4 | at | outer) & 3);
    }
    /* In a pool. */
    __device__ __forceinline__ lattn_state_view(const struct lattn_args &a,
                                                const struct lattn_state_layout &layout,
                                                lattn_i64 slot, int head, int first_e,
                                                const void *base)
        : type(layout.type), d(a.d), e(a.e - first_e),
          at(lattn_state_at(&layout, slot, head) + first_e * layout.e), d_stride(layout.d),
          e_stride(layout.e), along_d(layout.d == 1 && layout.e != 1)
    {
        finish(base);
    }
    /* In WORK. */
    __device__ __forceinline__ lattn_state_view(const struct lattn_args &a, lattn_i64 segment,
                                                int head, int first_e, const void *base)
        : type(LATTN_TYPE_F32), d(a.d), e(a.e - first_e),
          at(lattn_work_at(&a, segment, head) + first_e), d_stride(a.e), e_stride(1), along_d(false)
    {
        finish(base);
    }
};

/* A state of D by `columns` in shared memory, in the order of `view`, for `threads` threads. */
template <int D, int columns, int threads> struct lattn_state_io {
    static constexpr int pieces = D * columns / 4;
    static constexpr int bytes = LATTN_STATE_SHARED(D, columns);

    uint32_t base;
    int thread;

    /* Of an element. */
    __device__ __forceinline__ uint32_t at(const lattn_state_view &view, int d, int e) const
    {
        return base + (uint32_t)(view.along_d ? e * (D + 4) + d : d * (columns + 4) + e) * 4;
    }
    /* The first element of piece i, and how many elements are real from there on, which may be more
     * than four, or fewer than none. (Not clamped: ptxas 13.0 takes max(min(x, 4), 0) == 4 for
     * x < 4.) */
    static __device__ __forceinline__ int place(const lattn_state_view &view, int i, int *d, int *e)
    {
        *d = view.along_d ? i * 4 % D : i * 4 / columns;
        *e = view.along_d ? i * 4 / D : i * 4 % columns;
        return view.along_d ? (*e < view.e ? view.d - *d : 0) : (*d < view.d ? view.e - *e : 0);
    }

    /* All zero where there is nothing real. The caller waits for copies (lattn_copy_commit is
     * done) and synchronises. */
    __device__ __forceinline__ void load(const lattn_state_view &view, const void *from) const
    {
#pragma unroll 4
        for (int i = thread; i < pieces; i += threads) {
            int d, e;
            const int have = place(view, i, &d, &e);
            const lattn_i64 first = view.at + d * view.d_stride + e * view.e_stride;
            if (view.wide) {
                lattn_copy_async(at(view, d, e), (const float *)from + (have > 0 ? first : view.at),
                                 have >= 4  ? 16
                                 : have > 0 ? have * 4
                                            : 0);
                continue;
            }
            uint32_t x[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                x[j] = j < have ? __float_as_uint(lattn_load(
                                      view.type, from,
                                      first + j * (view.along_d ? view.d_stride : view.e_stride)))
                                : 0;
            lattn_store_shared4(at(view, d, e), make_uint4(x[0], x[1], x[2], x[3]));
        }
        lattn_copy_commit();
    }

    __device__ __forceinline__ void store(const lattn_state_view &view, void *to) const
    {
#pragma unroll 2
        for (int i = thread; i < pieces; i += threads) {
            int d, e;
            const int have = place(view, i, &d, &e);
            const lattn_i64 first = view.at + d * view.d_stride + e * view.e_stride;
            const uint4 x = lattn_load_shared4(at(view, d, e));
            if (view.wide && have >= 4) {
                lattn_store_global4((float *)to + first, x);
                continue;
            }
            const uint32_t words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (j < have)
                    lattn_store(view.type, to,
                                first + j * (view.along_d ? view.d_stride : view.e_stride),
                                __uint_as_float(words[j]));
            }
        }
    }
};

#endif
