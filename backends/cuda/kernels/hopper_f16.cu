#include "hopper_walk.cuh"

/* No other architecture has wgmma, and the catalogue offers these rows to no other. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
LATTN_HOPPER_LIST(LATTN_HOPPER_KERNELS, f16)
#endif
