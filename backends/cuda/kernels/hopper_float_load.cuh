/* The loading warpgroups of hopper_float.cuh: one has q, the other k and v. q and k come by way of
 * registers, where their parts are taken; v is copied as it is. */
#ifndef LATTN_HOPPER_FLOAT_LOAD_CUH
#define LATTN_HOPPER_FLOAT_LOAD_CUH

#include "hopper_float_shape.cuh"

template <int D, int parts, bool output> struct lattn_hopper_float_load {
    using shape = lattn_hopper_float_shape<D, parts, output>;
    using walk = typename shape::walk;
    static constexpr int C = shape::C, E = shape::E;

    /* A tile of q or k in quarters. A thread has four columns of every few rows, and holds as many
     * quarters as there are registers for, asked for in good time. */
    static constexpr int step = 128 / (D / 4), count = C / 4 / step;
    static constexpr int held = D * parts <= 256 ? 4 : 2;
    typedef float4 quarter[count];

    struct loader {
        const float *from; /* a thread's first element of the next tile to ask for */
        long long stride;
        uint32_t place;
        int row, d;
        quarter x[held];

        __device__ __forceinline__ loader(const float *first, long long token_stride, int have_d)
            : stride(token_stride), d(have_d)
        {
            const int thread = (int)threadIdx.x % 128, column = thread % (D / 4) * 4;
            row = column < d ? thread / (D / 4) : C;
            from = first + thread / (D / 4) * stride + column;
            place = lattn_block_at<C>(thread / (D / 4), column);
        }

        __device__ __forceinline__ void ask(int i, const float *tile, int rows)
        {
            const long long skip = lattn_opaque(stride * step);
            const float *at = tile + i * count * skip;
#pragma unroll
            for (int j = 0; j < count; j++) {
                x[i % held][j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if ((i * count + j) * step < rows - row)
                    x[i % held][j] = __ldg((const float4 *)at);
                at += skip;
            }
        }

        __device__ __forceinline__ void put(int i, uint32_t tile) const
        {
            static_assert(step % 4 == 0, "the swizzle is to differ in one bit between rows");
#pragma unroll
            for (int j = 0; j < count; j++) {
                const int rows = (i * count + j) * step;
                const uint32_t at = tile + (place ^ rows % 8 * 16) + rows * 128;
                const float4 &y = x[i % held][j];
                uint32_t low[parts], high[parts];
                lattn_parts_of<parts>(y.x, y.y, low);
                lattn_parts_of<parts>(y.z, y.w, high);
#pragma unroll
                for (int p = 0; p < parts; p++)
                    lattn_store_shared2(at + p * shape::plane, low[p], high[p]);
            }
        }

        /* The rows of the tile that are asked for late come as far as the L2. */
        __device__ __forceinline__ void prefetch(int rows) const
        {
            constexpr int lines = D / 32;
            const int thread = (int)threadIdx.x % 128;
            const int i = C * held / 4 + thread / lines, column = thread % lines * 32;
            const long long own = thread / (D / 4) * stride + thread % (D / 4) * 4;
            if (held < 4 && i < rows && column < d)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(
                    __cvta_generic_to_global(from - own + i * stride + column)));
        }

        __device__ __forceinline__ void ask_first(int rows)
        {
#pragma unroll
            for (int i = 0; i < held; i++)
                ask(i, from, rows);
            prefetch(rows);
        }

        /* Puts a tile of `rows` rows where it belongs, and asks for the next. */
        __device__ __forceinline__ void pass(uint32_t tile, uint32_t full, int rows, int next_rows)
        {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                put(i, tile);
                if (i + held < 4)
                    ask(i + held, from, rows);
            }
            lattn_proxy_fence();
            lattn_barrier_arrive(full);
            from += stride * C;
            ask_first(next_rows);
        }
    };

    static __device__ __forceinline__ int next_rows(const walk &w, int chunk)
    {
        return chunk + 1 < w.chunks ? w.rows(chunk + 1) : 0;
    }

    /* An initial state goes by way of the place of q. */
    static __device__ __forceinline__ void q(const walk &w, const float *from, long long stride,
                                             int d, bool initial)
    {
        loader tiles(from, stride, d);
        tiles.ask_first(next_rows(w, -1));
        if (initial)
            lattn_group_wait<shape::START_BARRIER, 256>();
        for (int chunk = 0; chunk < w.chunks; chunk++) {
            w.q_ring.wait_empty(chunk);
            tiles.pass(w.q(chunk, 0), w.q_ring.full(chunk), w.rows(chunk), next_rows(w, chunk));
        }
    }

    static __device__ __forceinline__ void copy_v(const walk &w, int chunk, const float *from,
                                                  long long stride)
    {
        constexpr int v_step = 128 / (E / 4);
        const int thread = (int)threadIdx.x % 128, column = thread % (E / 4) * 4;
        const int bytes = max(min(w.columns - column, 4), 0) * 4, row = thread / (E / 4);
        const uint32_t to = w.v(chunk, row, column);
        const long long skip = lattn_opaque(stride * v_step);
        const int rows = w.rows(chunk) - row;
        from += bytes ? row * stride + column : 0;
#pragma unroll
        for (int i = 0; i < C / v_step; i++) {
            lattn_copy_async(to + i * v_step * shape::v_pitch * 4, from,
                             i * v_step < rows ? bytes : 0);
            from += skip;
        }
    }

    static __device__ __forceinline__ void k_and_v(const walk &w, const float *k,
                                                   long long k_stride, int d, const float *v,
                                                   long long v_stride)
    {
        loader tiles(k, k_stride, d);
        tiles.ask_first(next_rows(w, -1));
        for (int chunk = 0; chunk < w.chunks; chunk++) {
            w.v_ring.wait_empty(chunk);
            copy_v(w, chunk, v, v_stride);
            lattn_barrier_arrive_copies(w.v_ring.full(chunk));
            v += v_stride * C;
            w.k_ring.wait_empty(chunk);
            tiles.pass(w.k(chunk, 0), w.k_ring.full(chunk), w.rows(chunk), next_rows(w, chunk));
        }
    }
};

#endif
