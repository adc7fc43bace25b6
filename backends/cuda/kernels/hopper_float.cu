#include "hopper_float.cuh"

#define LATTN_HOPPER_FLOAT_KERNEL(pass, kind, D, parts)                                            \
    extern "C" __global__ void __launch_bounds__(LATTN_HOPPER_THREADS, 1)                          \
        lattn_hopper_##pass##_##kind##_d##D(LATTN_KERNEL_PARAMS)                                   \
    {                                                                                              \
        lattn_hopper_float<D, parts, LATTN_IS_##pass>::run(LATTN_MEMORIES, a);                     \
    }

/* No other architecture has wgmma, and the catalogue offers these rows to no other. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
LATTN_HOPPER_FLOAT_LIST(LATTN_HOPPER_FLOAT_KERNEL)
#endif
