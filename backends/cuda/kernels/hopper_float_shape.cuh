/* What the warpgroups of hopper_float.cuh share: where things lie in shared memory, who waits for
 * whom, and operands. */
#ifndef LATTN_HOPPER_FLOAT_SHAPE_CUH
#define LATTN_HOPPER_FLOAT_SHAPE_CUH

#include "hopper_float_parts.cuh"
#include "hopper_layout.cuh"
#include "state_decay.cuh"

/* D: d, padded to 64 or 128. parts: of a float32. `output`: the OUTPUT pass, else STATE, which has
 * no q and no outputs. */
template <int D, int parts, bool output> struct lattn_hopper_float_shape {
    static constexpr int C = 64, E = 64;
    static constexpr int q_stages = LATTN_HOPPER_FLOAT_Q_STAGES(D, parts), stages = 2;
    /* Of one part of a tile of q or k, and of S. */
    static constexpr uint32_t plane = C * D * 2, score_plane = C * C * 2;
    /* Rows of v are 16 bytes apart in their banks: elements of 8 columns and 4 pairs of rows do not
     * meet. */
    static constexpr int v_pitch = E + 4;
    static constexpr uint32_t k_at = q_stages * parts * plane;
    static constexpr uint32_t score_at = k_at + stages * parts * plane;
    static constexpr uint32_t v_at = score_at + parts * score_plane;
    static constexpr uint32_t v_bytes = C * v_pitch * 4;
    static constexpr uint32_t from_state_at = v_at + stages * v_bytes;
    static constexpr uint32_t tables_at = from_state_at + C * E * 4;
    static constexpr uint32_t barrier_at = tables_at + 2 * LATTN_HOPPER_TABLE;
    static_assert(barrier_at + 256 + 1024 == LATTN_HOPPER_FLOAT_SHARED(D, parts),
                  "the catalogue asks for as much");
    typedef lattn_state_io<D, E, 128> state_io;
    static_assert(state_io::bytes <= k_at, "a state is to fit where q is");
    enum { START_BARRIER = 1, STATE_BARRIER, OUTPUT_BARRIER, END_BARRIER };

    typedef float state_tile[D / 2];
    typedef float output_tile[C / 2];
    typedef uint32_t operand[parts][C / 16][4];

    /* A ring of tiles between warpgroups. */
    template <int count> struct ring {
        uint32_t at;
        __device__ __forceinline__ void init(int writers, int readers) const
        {
            for (int i = 0; i < count; i++) {
                lattn_barrier_init(full(i), writers);
                lattn_barrier_init(empty(i), readers);
            }
        }
        __device__ __forceinline__ uint32_t full(int chunk) const
        {
            return at + chunk % count * 8;
        }
        __device__ __forceinline__ uint32_t empty(int chunk) const
        {
            return at + (count + chunk % count) * 8;
        }
        __device__ __forceinline__ void wait_full(int chunk) const
        {
            lattn_barrier_wait(full(chunk), chunk / count);
        }
        __device__ __forceinline__ void wait_empty(int chunk) const
        {
            if (chunk >= count)
                lattn_barrier_wait(empty(chunk), chunk / count - 1);
        }
    };

    /* What all the jobs know. */
    struct walk {
        uint32_t base;
        ring<q_stages> q_ring;
        ring<stages> k_ring, v_ring;
        ring<1> from_state_ring;
        int columns, chunks;
        long long length;
        float slope;

        __device__ __forceinline__ void place(uint32_t memory)
        {
            base = (memory + 1023) & ~1023u;
            q_ring.at = base + barrier_at;
            k_ring.at = q_ring.at + q_stages * 16;
            v_ring.at = k_ring.at + stages * 16;
            from_state_ring.at = v_ring.at + stages * 16;
        }
        /* By one thread. */
        __device__ __forceinline__ void init(void) const
        {
            constexpr int readers = output ? 256 : 128;
            q_ring.init(128, readers);
            k_ring.init(128, readers);
            v_ring.init(128, readers);
            from_state_ring.init(128, 128);
        }
        __device__ __forceinline__ int rows(int chunk) const
        {
            return (int)min((long long)C, length - (long long)chunk * C);
        }
        __device__ __forceinline__ uint32_t q(int chunk, int part) const
        {
            return base + (chunk % q_stages * parts + part) * plane;
        }
        __device__ __forceinline__ uint32_t k(int chunk, int part) const
        {
            return base + k_at + (chunk % stages * parts + part) * plane;
        }
        __device__ __forceinline__ uint32_t score(int part) const
        {
            return base + score_at + part * score_plane;
        }
        __device__ __forceinline__ uint32_t v(int chunk, int t, int e) const
        {
            return base + v_at + chunk % stages * v_bytes + (t * v_pitch + e) * 4;
        }
        /* scale g^x and scale g^(x - 1), side by side, for x from -63 to 65; below zero as at 0. */
        __device__ __forceinline__ uint32_t output_weight(int x) const
        {
            return base + tables_at + (x + C - 1) * 8;
        }
        /* g^(63 - x) and g^(62 - x), side by side, for x from 0 to 127; beyond the end 1. */
        __device__ __forceinline__ uint32_t value_weight(int x) const
        {
            return base + tables_at + LATTN_HOPPER_TABLE + x * 8;
        }
        /* What a chunk leaves of the state before it. */
        __device__ __forceinline__ uint32_t past_at(bool last) const
        {
            return value_weight(2 * C + (last ? 1 : 0));
        }
        __device__ __forceinline__ lattn_state_decay past(int chunk) const
        {
            const uint2 x = lattn_load_shared2(past_at(chunk + 1 == chunks));
            return {__uint_as_float(x.x), __uint_as_float(x.y)};
        }
        __device__ __forceinline__ void make_tables(float scale) const
        {
            const int thread = (int)threadIdx.x % 256;
            if (threadIdx.x < 256) {
                if (thread > 2 * C)
                    return;
                const int x = thread - C + 1;
                const float weight = lattn_decay_weight(slope, max(x, 0));
                const float next = lattn_decay_weight(slope, max(x - 1, 0));
                lattn_store_shared2(output_weight(x), __float_as_uint(weight * scale),
                                    __float_as_uint(next * scale));
            } else if (thread < 2 * C) {
                const float weight = lattn_decay_weight(slope, max(C - 1 - thread, 0));
                const float next = lattn_decay_weight(slope, max(C - 2 - thread, 0));
                lattn_store_shared2(value_weight(thread), __float_as_uint(weight),
                                    __float_as_uint(next));
            } else if (thread < 2 * C + 2 && chunks) {
                const bool last = thread > 2 * C;
                const lattn_state_decay past =
                    lattn_state_decay::of(slope, last ? rows(chunks - 1) : C);
                lattn_store_shared2(past_at(last), __float_as_uint(past.keep),
                                    __float_as_uint(past.factor));
            }
        }
        /* What comes from the state: a part for each warp. */
        __device__ __forceinline__ uint32_t from_state() const
        {
            return base + from_state_at + (int)threadIdx.x % 128 / 32 * (C * 16 * 4);
        }
    };

    /* The parts of v^T, 16 columns of e a warp; with `weighed` decayed to the end of the chunk.
     * Returns zero if every element is finite, else NaN. */
    template <bool weighed>
    static __device__ __forceinline__ float values(const walk &w, int chunk, operand a)
    {
        const uint32_t weights = w.value_weight(C - w.rows(chunk) + (int)threadIdx.x % 4 * 2);
        float doubt = 0.0f;
#pragma unroll
        for (int j = 0; j < C / 16; j++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int t = j * 16 + half * 8 + (int)threadIdx.x % 4 * 2;
                const uint2 weight =
                    weighed ? lattn_load_shared2(weights + (j * 16 + half * 8) * 8) : uint2{};
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    float x =
                        __uint_as_float(lattn_load_shared(w.v(chunk, t, lattn_hopper_row(r * 2))));
                    float y = __uint_as_float(
                        lattn_load_shared(w.v(chunk, t + 1, lattn_hopper_row(r * 2))));
                    if (weighed) {
                        x *= __uint_as_float(weight.x);
                        y *= __uint_as_float(weight.y);
                    } else {
                        doubt = fmaf(x, 0.0f, fmaf(y, 0.0f, doubt));
                    }
                    uint32_t part[parts];
                    lattn_parts_of<parts>(x, y, part);
#pragma unroll
                    for (int p = 0; p < parts; p++)
                        a[p][j][half * 2 + r] = part[p];
                }
            }
        }
        return doubt;
    }
};

#endif
