#include "hopper_walk.cuh"

#define LATTN_HOPPER_KERNEL(D, E, e_min, e_max)                                                    \
    extern "C" __global__ void __launch_bounds__(LATTN_HOPPER_THREADS, 1)                          \
        lattn_hopper_output_bf16_d##D##_e##E(LATTN_KERNEL_PARAMS)                                  \
    {                                                                                              \
        lattn_hopper<D, E>::run(q, k, v, o, slopes, cu_seqlens, has_initial, state_in, slot_in,    \
                                state_out, slot_out, work, a);                                     \
    }

/* No other architecture has wgmma, and the catalogue offers these rows to no other. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
LATTN_HOPPER_LIST(LATTN_HOPPER_KERNEL)
#endif
