/* Defines the kernels that tensor_list.h lists for one kind of product, lattn_product_<kind>. */
#ifndef LATTN_TENSOR_ROWS_CUH
#define LATTN_TENSOR_ROWS_CUH

#include "tensor_walk.cuh"

#define LATTN_TENSOR_KERNEL(pass, kind, D, E, C, stages, fast, groups, e_min, e_max)               \
    extern "C" __global__ void __launch_bounds__(LATTN_TENSOR_THREADS, groups)                     \
        lattn_tensor_##pass##_##kind##_d##D##_w##E##_f##fast(LATTN_KERNEL_PARAMS)                  \
    {                                                                                              \
        typedef lattn_walk<lattn_product_##kind, D, E, C, stages, fast, LATTN_IS_##pass> walk;     \
        static_assert(walk::shared == LATTN_TENSOR_SHARED_##pass(walk::size, D, 4 * E, C, stages), \
                      "the catalogue asks for as much");                                           \
        walk::run(q, k, v, o, slopes, cu_seqlens, has_initial, state_in, slot_in, state_out,       \
                  slot_out, work, a);                                                              \
    }

#endif
