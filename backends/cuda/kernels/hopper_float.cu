#include "hopper_float.cuh"

#define LATTN_IS_output true
#define LATTN_IS_state false

#define LATTN_HOPPER_FLOAT_KERNEL(pass, kind, D, parts)                                            \
    extern "C" __global__ void __launch_bounds__(LATTN_HOPPER_FLOAT_THREADS, 1)                    \
        lattn_hopper_##pass##_##kind##_d##D(LATTN_KERNEL_PARAMS)                                   \
    {                                                                                              \
        const lattn_memories memories = {q,       k,          v,           o,                      \
                                         slopes,  cu_seqlens, has_initial, state_in,               \
                                         slot_in, state_out,  slot_out,    work};                  \
        lattn_hopper_float<D, parts, LATTN_IS_##pass>::run(memories, a);                           \
    }

/* No other architecture has wgmma, and the catalogue offers these rows to no other. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
LATTN_HOPPER_FLOAT_LIST(LATTN_HOPPER_FLOAT_KERNEL)
#endif
