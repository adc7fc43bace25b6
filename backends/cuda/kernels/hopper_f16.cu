#include "hopper_walk.cuh"

#define HOPPER_KERNELS(D, E, e_min, e_max, pace)                                                   \
    LATTN_HOPPER_KERNEL(output, __half, f16, D, E, false)                                          \
    LATTN_HOPPER_KERNEL(chain, __half, f16, D, E, true)

/* No other architecture has wgmma, and the catalogue offers these rows to no other. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
LATTN_HOPPER_LIST(HOPPER_KERNELS)
#endif
