/* Prefix states within one launch. Groups walk segments of the same sequences; each publishes the
 * state that its segment leaves by itself, and sums up what those before it have published:
 *
 *     state before segment j = sum over i < j of g^(tokens between i and j) own state of i
 *
 * Segments go by rows, of about the square root of their number. The last of a row publishes the
 * sum over its row instead of its own state, so that the others take the rows before theirs, and
 * the segments before them in their own.
 *
 * Who waits for whom: a group waits only for groups of lower number, and the hardware starts groups
 * in the order of their numbers, so that the lowest that has not finished runs and never waits in
 * vain. (The scans of CUB rest on the same.) A kernel must therefore be launched with a group for
 * each segment, and not let groups take several.
 *
 * All of a chain's code runs a few times in each group, and fetching it takes as long as running
 * it: there is one copy of the loop that adds states.
 *
 * WORK begins with a flag for each group and a count of those that have finished; then come the
 * states, in the order in which the threads of a group hold them. Nothing may be read there before
 * it has been written, so group 0 clears the flags, and then enters the address of WORK in a table
 * that the module begins with cleared. Two launches under way never share a WORK, and the last
 * group to finish takes the address out again. */
#ifndef LATTN_CHAIN_CUH
#define LATTN_CHAIN_CUH

#include "kernels/tile.h"
#include "tensor_mma.cuh"

/* More than there can be launches under way on a device at once, which are 128. */
#define LATTN_CHAIN_CALLS 256

static __device__ unsigned long long lattn_chain_calls[LATTN_CHAIN_CALLS];

/* What other groups write meanwhile. */
static __device__ __forceinline__ uint32_t lattn_load_relaxed(const uint32_t *from)
{
    uint32_t x;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];"
                 : "=r"(x)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return x;
}

static __device__ __forceinline__ unsigned long long
lattn_load_relaxed(const unsigned long long *from)
{
    unsigned long long x;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];"
                 : "=l"(x)
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
    return x;
}

static __device__ __forceinline__ void lattn_store_relaxed(uint32_t *to, uint32_t x)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(x)
                 : "memory");
}

/* For `threads` threads of a group, each holding `floats` of a state; thread 0 begins a warp.
 * Sync::wait() is a barrier among them. */
template <int floats, int threads, typename Sync> struct lattn_chain {
    static constexpr int pieces = floats / 4, batch = 4; /* of 16 bytes, and those copied as one */
    static constexpr int batches = pieces / batch;
    static_assert(pieces % batch == 0, "whole batches");
    /* Of shared memory, for states on their way. */
    static constexpr int shared_bytes = floats * threads * 4;

    uint32_t *flags;
    float4 *states;
    unsigned int step; /* from a segment's group to the next segment's */
    int thread;
    int place, count; /* of the segment in its sequence, and how many there are */
    int row;          /* segments in a row */
    int segment;      /* tokens in a segment */
    bool begun;

    __device__ __forceinline__ lattn_chain(float *work, const struct lattn_args &a, int columns,
                                           int thread_number)
        : flags((uint32_t *)(work + a.work)), states((float4 *)(flags + ((gridDim.x + 4) & ~3u))),
          step((unsigned int)(a.heads * lattn_tiles(a.e, columns))), thread(thread_number),
          place(0), count(1), row(2), segment(a.segment), begun(false)
    {
    }

    /* ---- the launch ---- */

    __device__ __forceinline__ unsigned long long call() const
    {
        return (unsigned long long)(uintptr_t)flags;
    }
    __device__ __forceinline__ unsigned int call_at(unsigned int i) const
    {
        return ((unsigned int)(call() >> 8) + i) % LATTN_CHAIN_CALLS;
    }

    /* Before anything else, by all threads. */
    __device__ __forceinline__ void begin() const
    {
        if (blockIdx.x != 0)
            return;
        for (unsigned int i = thread; i <= gridDim.x; i += threads)
            flags[i] = 0;
        Sync::wait();
        if (thread != 0)
            return;
        __threadfence();
        for (unsigned int i = 0; atomicCAS(&lattn_chain_calls[call_at(i)], 0, call()) != 0; i++) {
        }
    }

    /* Until the flags are clear; by all threads, before any of the following. */
    __device__ __forceinline__ void wait_begun()
    {
        if (begun || thread >= 32)
            return;
        for (unsigned int i = thread;; i += 32) {
            const bool here = lattn_load_relaxed(&lattn_chain_calls[call_at(i)]) == call();
            if (__any_sync(0xffffffffu, here))
                break;
        }
        __threadfence();
        begun = true;
    }

    /* After anything else, by all threads. */
    __device__ __forceinline__ void end()
    {
        wait_begun();
        if (thread != 0 || atomicAdd(&flags[gridDim.x], 1) != gridDim.x - 1)
            return;
        for (unsigned int i = 0; atomicCAS(&lattn_chain_calls[call_at(i)], call(), 0) != call();
             i++) {
        }
    }

    /* ---- the states of a sequence's segments ---- */

    /* This group has segment `number` of `all`. */
    __device__ __forceinline__ void enter(int number, int all)
    {
        place = number;
        count = all;
        while ((long long)row * row < all)
            row *= 2;
    }
    __device__ __forceinline__ bool last() const
    {
        return place + 1 == count;
    }

    /* Of another segment of the sequence. */
    __device__ __forceinline__ unsigned int group_of(int other) const
    {
        return blockIdx.x - (unsigned int)(place - other) * step;
    }
    __device__ __forceinline__ float4 *state_of(int other) const
    {
        return states + (size_t)group_of(other) * pieces * threads + thread;
    }
    __device__ __forceinline__ void write(float4 *to, const float state[floats]) const
    {
#pragma unroll
        for (int i = 0; i < pieces; i++)
            to[i * threads] =
                make_float4(state[i * 4], state[i * 4 + 1], state[i * 4 + 2], state[i * 4 + 3]);
    }

    /* By the first segment's group, unless it is the only one: the sequence's initial state. Its
     * place is the last segment's, which publishes none. */
    __device__ __forceinline__ void keep_initial(const float state[floats]) const
    {
        write(state_of(count - 1), state);
        __threadfence();
    }

    __device__ __forceinline__ void publish(const float state[floats]) const
    {
        write(state_of(place), state);
        Sync::wait();
        if (thread == 0) {
            __threadfence();
            lattn_store_relaxed(&flags[blockIdx.x], 1);
        }
    }

    /* The steps to the state before a segment, in order. After OWN the caller adds the segment's
     * own state, after ROW it publishes the state and sets it to zero, unless the segment is the
     * last: that one begins with the third. */
    enum { OWN, ROW, IN_ROW, ROWS, STEPS };

    /* Adds to the state what the step asks for. Each thread passes its own elements through its own
     * part of `shared`, so nobody waits for anybody. */
    __device__ __forceinline__ void add(int what, bool initial, float state[floats], float slope,
                                        uint32_t shared) const
    {
        const int in_row = place % row;
        /* The segments first, first + apart, ..., n of them, and the distance from the first. */
        int first = place - in_row, apart = 1, n = in_row, distance = in_row;
        if (what == ROWS) {
            first = row - 1;
            apart = row;
            n = place / row;
            distance = place - row + 1;
        } else if (place == 0) {
            first = count - 1;
            n = initial && what != ROW;
            distance = what == OWN ? 2 : 1;
        } else if (what != IN_ROW) {
            n = what == ROW && in_row == row - 1 ? in_row : 0;
            distance = in_row + 1;
        }
        if (n == 0)
            return;
        if (place > 0 && thread < 32) {
            for (int i = thread; i < n; i += 32) {
                while (lattn_load_relaxed(&flags[group_of(first + i * apart)]) == 0)
                    __nanosleep(32);
            }
            __threadfence();
        }
        Sync::wait();

        const uint32_t mine = shared + thread * 16;
        const float4 *from = state_of(first);
        const long long next = (long long)apart * step * pieces * threads;
        auto copy = [&](int b) {
#pragma unroll
            for (int i = b * batch; i < (b + 1) * batch; i++)
                lattn_copy_async(mine + i * threads * 16, from + i * threads, 16);
            lattn_copy_commit();
        };
#pragma unroll
        for (int b = 0; b < batches; b++)
            copy(b);
#pragma unroll 1
        for (int i = 0; i < n; i++) {
            const float weight = lattn_decay_weight(slope, (distance - 1) * segment);
            distance -= apart;
            /* The last is copied once more, and nobody reads it. */
            from += i + 1 < n ? next : 0;
#pragma unroll
            for (int b = 0; b < batches; b++) {
                lattn_copy_wait<batches - 1>();
#pragma unroll
                for (int j = b * batch; j < (b + 1) * batch; j++) {
                    const uint4 x = lattn_load_shared4(mine + j * threads * 16);
                    state[j * 4] = fmaf(weight, __uint_as_float(x.x), state[j * 4]);
                    state[j * 4 + 1] = fmaf(weight, __uint_as_float(x.y), state[j * 4 + 1]);
                    state[j * 4 + 2] = fmaf(weight, __uint_as_float(x.z), state[j * 4 + 2]);
                    state[j * 4 + 3] = fmaf(weight, __uint_as_float(x.w), state[j * 4 + 3]);
                }
                copy(b);
            }
        }
        lattn_copy_wait<0>();
        Sync::wait();
    }

    /* Through shared memory, each thread its own. */
    __device__ __forceinline__ void put(const float state[floats], uint32_t shared) const
    {
#pragma unroll
        for (int i = 0; i < pieces; i++)
            lattn_store_shared4(
                shared + (i * threads + thread) * 16,
                make_uint4(__float_as_uint(state[i * 4]), __float_as_uint(state[i * 4 + 1]),
                           __float_as_uint(state[i * 4 + 2]), __float_as_uint(state[i * 4 + 3])));
    }
    __device__ __forceinline__ void get(float state[floats], uint32_t shared) const
    {
#pragma unroll
        for (int i = 0; i < pieces; i++) {
            const uint4 x = lattn_load_shared4(shared + (i * threads + thread) * 16);
            state[i * 4] = __uint_as_float(x.x);
            state[i * 4 + 1] = __uint_as_float(x.y);
            state[i * 4 + 2] = __uint_as_float(x.z);
            state[i * 4 + 3] = __uint_as_float(x.w);
        }
        Sync::wait();
    }
};

#endif
