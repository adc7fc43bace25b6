/* Prefill on Hopper: what its jobs (hopper_walk.cuh) know in common. Where things are in shared
 * memory, the barriers between the jobs, and the pieces of work that a group takes one by one. */
#ifndef LATTN_HOPPER_LAYOUT_CUH
#define LATTN_HOPPER_LAYOUT_CUH

#include "group.cuh"
#include "hopper_wgmma.cuh"
#include "kernels/sequence.h"
#include "state_io.cuh"
#include "tensor_half.cuh"

struct lattn_memories {
    const void *q, *k, *v;
    void *o;
    const float *slopes;
    const int *cu_seqlens;
    const unsigned char *has_initial;
    const void *state_in, *slot_in;
    void *state_out;
    const void *slot_out;
    float *work;
};
/* A kernel's own. */
#define LATTN_MEMORIES                                                                             \
    (lattn_memories{q, k, v, o, slopes, cu_seqlens, has_initial, state_in, slot_in, state_out,     \
                    slot_out, work})

/* D, E: d and a group's columns of e, padded to 64 or 128. */
template <int D, int E> struct lattn_hopper_layout {
    static constexpr int C = 64; /* tokens of a chunk */
    static constexpr uint32_t q_bytes = C * D * 2, k_bytes = C * D * 2, v_bytes = C * E * 2;
    static constexpr uint32_t stage_bytes = q_bytes + k_bytes + v_bytes;
    static constexpr int stages = LATTN_HOPPER_STAGES(D, E);
    static_assert(stage_bytes == LATTN_HOPPER_STAGE(D, E), "the catalogue counts on as much");
    /* One rounded copy of the state for each turn of outputs. Between sequences the same place
     * holds 64 rows of a state in float32, on their way to or from memory. */
    static constexpr uint32_t copy_bytes = D * E * 2;
    typedef lattn_state_io<64, E, 128> state_io;
    static_assert(state_io::bytes <= LATTN_HOPPER_STATES(D, E), "the same");

    /* Outputs leave through the place of q, or one of their own where that is too small. */
    static constexpr uint32_t staging_bytes = LATTN_HOPPER_STAGING(D, E);

    static constexpr uint32_t states_at = stages * stage_bytes;
    static constexpr uint32_t staging_at = states_at + LATTN_HOPPER_STATES(D, E);
    static constexpr uint32_t tables_at = staging_at + staging_bytes;
    static constexpr uint32_t barriers_at = tables_at + LATTN_HOPPER_TABLES;
    static_assert(barriers_at + 256 + 1024 == LATTN_HOPPER_SHARED(D, E), "the same");

    /* Named barriers of 128 threads: outputs of each turn, the state. */
    enum { OUTPUT_BARRIER = 1, STATE_BARRIER = 3 };

    uint32_t base;

    __device__ __forceinline__ uint32_t q(int stage) const
    {
        return base + stage * stage_bytes;
    }
    __device__ __forceinline__ uint32_t k(int stage) const
    {
        return q(stage) + q_bytes;
    }
    __device__ __forceinline__ uint32_t v(int stage) const
    {
        return k(stage) + k_bytes;
    }
    __device__ __forceinline__ uint32_t state(int turn) const
    {
        return base + states_at + turn * copy_bytes;
    }
    __device__ __forceinline__ uint32_t staging(int stage, int turn) const
    {
        return staging_bytes ? base + staging_at + turn * v_bytes : q(stage);
    }
    /* Weights of the outputs of each turn, and of the state. */
    __device__ __forceinline__ uint32_t table(int job) const
    {
        return base + tables_at + job * LATTN_HOPPER_TABLE;
    }

    /* ---- barriers between the jobs ---- */

    __device__ __forceinline__ uint32_t full(int stage) const
    {
        return base + barriers_at + stage * 8;
    }
    __device__ __forceinline__ uint32_t empty(int stage) const
    {
        return full(stages + stage);
    }
    __device__ __forceinline__ uint32_t state_full(int turn) const
    {
        return full(2 * stages + turn);
    }
    __device__ __forceinline__ uint32_t state_empty(int turn) const
    {
        return full(2 * stages + 2 + turn);
    }
    /* For float16: the largest exponents that the warps of the state's job have seen, and the
     * exponent that a copy of the state is divided by. */
    __device__ __forceinline__ uint32_t warp_exponents(int turn) const
    {
        return base + barriers_at + 128 + turn * 16;
    }
    __device__ __forceinline__ uint32_t state_exponent(int turn) const
    {
        return base + barriers_at + 160 + turn * 4;
    }
    static_assert((2 * stages + 4) * 8 <= 128, "the barriers come before these");

    /* By one thread. Every thread of a job arrives: by one for its warp, racecheck would see no
     * order. */
    __device__ __forceinline__ void barriers_init() const
    {
        for (int i = 0; i < stages; i++) {
            lattn_barrier_init(full(i), 128);
            lattn_barrier_init(empty(i), 256);
        }
        for (int i = 0; i < 2; i++) {
            lattn_barrier_init(state_full(i), 128);
            lattn_barrier_init(state_empty(i), 128);
        }
        lattn_proxy_fence();
    }
};

/* The place of a chunk among the stages; the jobs count on from one piece of work to the next. */
template <int stages> struct lattn_ring {
    int stage = 0, phase = 0;

    __device__ __forceinline__ void step(int chunks)
    {
        stage += chunks;
        if (stage >= stages) {
            stage -= stages;
            phase ^= 1;
        }
    }
};

/* A sequence or segment, for one head and some columns of e. `chains`: may it be of a chain? */
template <int C, bool chains> struct lattn_hopper_work {
    struct lattn_segment segment;
    struct lattn_slots slots;
    int head, first_e, chunks;
    bool segmented, chained, last; /* `last` of its sequence */

    /* How many there are: fewer than 2^31, as groups are. */
    static __device__ __forceinline__ unsigned int count(const struct lattn_args &a, int columns)
    {
        const bool packed = a.flags & LATTN_FLAG_PACKED;
        const bool segments = a.flags & (LATTN_FLAG_SEGMENTED | (chains ? LATTN_FLAG_CHAINED : 0));
        const long long walks = !segments ? a.sequences
                                : packed  ? a.segments
                                          : (long long)a.segments * a.sequences;
        return (unsigned int)(walks * a.heads * lattn_tiles(a.e, columns));
    }
    /* False if there is nothing to do. */
    __device__ __forceinline__ bool get(const lattn_memories &m, const struct lattn_args &a,
                                        unsigned int number, int columns)
    {
        struct lattn_group group;
        lattn_group_numbered(a, columns, number, &group);
        head = group.head;
        first_e = group.e_tile * columns;
        segmented = (a.flags & LATTN_FLAG_SEGMENTED) != 0;
        chained = chains && (a.flags & LATTN_FLAG_CHAINED);
        lattn_segment_walk(&a, m.cu_seqlens, group.segment, &segment);
        lattn_slots_get(&a, m.has_initial, m.slot_in, m.slot_out, segment.sequence.number, &slots);
        chunks = (int)((segment.length + C - 1) / C);
        last = segment.first + segment.length == segment.sequence.length;
        /* A chain passes on the state of an empty sequence, too. */
        return chunks || !(segmented || (chained && segment.first != 0));
    }
    /* Does the state before it come from other groups, or do others need its own? */
    __device__ __forceinline__ bool linked() const
    {
        return chained && !(segment.first == 0 && last);
    }
    /* Passes over its tokens: one more for the state that the segment leaves by itself, without
     * outputs. */
    __device__ __forceinline__ int passes() const
    {
        return linked() && !last ? 2 : 1;
    }
    __device__ __forceinline__ int rows(int chunk) const
    {
        return (int)min((long long)C, segment.length - (long long)chunk * C);
    }
    __device__ __forceinline__ long long at(const struct lattn_token_layout &layout,
                                            int of_head) const
    {
        return lattn_token_at(&layout, &segment.sequence, of_head, segment.first);
    }
};

/* Of a number that is not negative, the exponent (as bits have it) that brings it to about 2^14
 * when divided out, near float16's largest. */
static __device__ __forceinline__ int lattn_exponent(uint32_t bits, int least)
{
    return min(max((int)(bits >> 23) - 14, least), 236);
}
static __device__ __forceinline__ float lattn_power(int exponent)
{
    return __uint_as_float((uint32_t)exponent << 23);
}

/* Of a warpgroup's 64 rows and n columns of accumulators, register i of a thread. */
static __device__ __forceinline__ int lattn_hopper_row(int i, int thread = threadIdx.x)
{
    return thread % 128 / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}
static __device__ __forceinline__ int lattn_hopper_column(int i, int thread = threadIdx.x)
{
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

#endif
