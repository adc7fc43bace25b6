/* Prefill on Hopper's tensor cores. A group walks sequences or segments, one after another, in
 * chunks of 64 tokens, with four warpgroups that each have one job:
 *
 *   - one copies q, k and v into shared memory, some chunks ahead (hopper_copies.cuh);
 *   - one keeps the state, and leaves a copy of it before each chunk (hopper_state.cuh);
 *   - two take turns with the outputs of chunks (hopper_output.cuh).
 *
 * Nothing but the barriers of hopper_layout.cuh holds them together: while one sequence's last
 * outputs are stored, the next one's first chunks are copied.
 */
#ifndef LATTN_HOPPER_WALK_CUH
#define LATTN_HOPPER_WALK_CUH

#include "hopper_copies.cuh"
#include "hopper_output.cuh"
#include "hopper_state.cuh"

template <typename T, int D, int E, bool chains>
static __device__ __forceinline__ void lattn_hopper_walk(const lattn_memories &m,
                                                         const struct lattn_args &a)
{
    extern __shared__ unsigned char memory[];
    const lattn_hopper_layout<D, E> l = {(lattn_shared_at(memory) + 1023) & ~1023u};
    /* A multiprocessor has 512 registers for every four of these threads. */
    constexpr int for_copies = 40, for_state = D * E == 128 * 128 ? 200 : 168;
    constexpr int for_outputs = (512 - for_copies - for_state) / 2;
    if (threadIdx.x == 0)
        l.barriers_init();
    __syncthreads();
    const int job = (int)threadIdx.x / 128;
    if (job == 0) {
        lattn_registers_give<for_copies>();
        lattn_hopper_copies<D, E, chains>::run(l, m, a);
    } else if (job == 1) {
        lattn_registers_take<for_state>();
        lattn_hopper_state<T, D, E, chains>::run(l, m, a);
    } else if (job == 2) {
        lattn_registers_take<for_outputs>();
        lattn_hopper_output<T, D, E, 0, chains>::run(l, m, a);
    } else {
        lattn_registers_take<for_outputs>();
        lattn_hopper_output<T, D, E, 1, chains>::run(l, m, a);
    }
}

#define LATTN_HOPPER_TYPE_bf16 __nv_bfloat16
#define LATTN_HOPPER_TYPE_f16 __half

/* `what`: output, or chain for those that can take part in one (chain.cuh) and are slower. */
#define LATTN_HOPPER_KERNEL(what, kind, D, E, chains)                                              \
    extern "C" __global__ void __launch_bounds__(LATTN_HOPPER_THREADS, 1)                          \
        lattn_hopper_##what##_##kind##_d##D##_e##E(LATTN_KERNEL_PARAMS)                            \
    {                                                                                              \
        lattn_hopper_walk<LATTN_HOPPER_TYPE_##kind, D, E, chains>(LATTN_MEMORIES, a);              \
    }
#define LATTN_HOPPER_KERNELS(kind, D, E, e_min, e_max, pace)                                       \
    LATTN_HOPPER_KERNEL(output, kind, D, E, false)                                                 \
    LATTN_HOPPER_KERNEL(chain, kind, D, E, true)

#endif
