/* What rows of the CUDA catalogue may ask of a device (lattn_kernel_row.features): what the code
 * that it runs was compiled for. */
#ifndef LATTN_CUDA_CATALOG_H
#define LATTN_CUDA_CATALOG_H

#define LATTN_CUDA_SM80                                                                            \
    1 /* compute capability 8.0 or later: mma.sync on bfloat16, tf32; cp.async */
#define LATTN_CUDA_SM90 2  /* 9.0 or later: cp.async.bulk, clusters */
#define LATTN_CUDA_SM90A 4 /* 9.0 alone: wgmma */

#endif
