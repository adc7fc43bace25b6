/* One language for device code: what OpenCL C 1.2, CUDA and HIP spell differently. The kernels that
 * include this are C, so that all three compile them. HIP is compiled by clang alone, without the
 * ROCm headers and libraries. */
#ifndef LATTN_DIALECT_H
#define LATTN_DIALECT_H

#include "args.h"

#if defined(__OPENCL_VERSION__)

#define LATTN_KERNEL(threads) __kernel __attribute__((reqd_work_group_size(threads, 1, 1))) void
/* Always: PoCL 3.1 miscomputes calls that pass private arrays between barriers. */
#define LATTN_FUNCTION static inline __attribute__((always_inline))
#define LATTN_GLOBAL __global        /* qualifies what a pointer to device memory points to */
#define LATTN_LOCAL __local          /* qualifies what a pointer to group memory points to */
#define LATTN_LOCAL_VARIABLE __local /* declares group memory at the top of a kernel */
#define LATTN_RESTRICT restrict
#define LATTN_BY_VALUE const

#define lattn_group_id() ((lattn_i64)get_group_id(0))
#define lattn_thread_id() ((lattn_i32)get_local_id(0))
#define lattn_barrier() barrier(CLK_LOCAL_MEM_FENCE)
#define lattn_exp(x) exp(x)
#define lattn_bits_of(x) as_uint(x)
#define lattn_float_of(bits) as_float(bits)

#elif defined(__CUDACC__) || defined(__HIP__)

#if defined(__CUDACC__)

#include <cuda_fp16.h>

#define LATTN_KERNEL(threads) extern "C" __global__ void __launch_bounds__(threads)
#define LATTN_FUNCTION static __device__ __forceinline__
#define LATTN_LOCAL_VARIABLE __shared__
#define LATTN_BY_VALUE const __grid_constant__

#define lattn_group_id() ((lattn_i64)blockIdx.x)
#define lattn_thread_id() ((lattn_i32)threadIdx.x)
#define lattn_barrier() __syncthreads()
#define lattn_exp(x) expf(x)
#define lattn_bits_of(x) __float_as_uint(x)
#define lattn_float_of(bits) __uint_as_float(bits)

#else

#define LATTN_KERNEL(threads)                                                                      \
    extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads))) void
#define LATTN_FUNCTION static inline __attribute__((device, always_inline))
#define LATTN_LOCAL_VARIABLE __attribute__((shared))
#define LATTN_BY_VALUE const

#define lattn_group_id() ((lattn_i64)__builtin_amdgcn_workgroup_id_x())
#define lattn_thread_id() ((lattn_i32)__builtin_amdgcn_workitem_id_x())
#define lattn_barrier()                                                                            \
    do {                                                                                           \
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");                                     \
        __builtin_amdgcn_s_barrier();                                                              \
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");                                     \
    } while (0)
#define lattn_exp(x) __builtin_expf(x)
#define lattn_bits_of(x) __builtin_bit_cast(unsigned int, x)
#define lattn_float_of(bits) __builtin_bit_cast(float, bits)

#endif

#define LATTN_GLOBAL
#define LATTN_LOCAL
#define LATTN_RESTRICT __restrict__

#else
#error "no dialect for this compiler"
#endif

/* The parameters of every kernel: LATTN_MEM_COUNT memories in the order of lattn_memory_slot, then
 * the arguments. state_in and state_out may be one memory, so they are not restrict. */
#define LATTN_KERNEL_PARAMS                                                                        \
    LATTN_GLOBAL const void *LATTN_RESTRICT q, LATTN_GLOBAL const void *LATTN_RESTRICT k,          \
        LATTN_GLOBAL const void *LATTN_RESTRICT v, LATTN_GLOBAL void *LATTN_RESTRICT o,            \
        LATTN_GLOBAL const float *LATTN_RESTRICT slopes,                                           \
        LATTN_GLOBAL const int *LATTN_RESTRICT cu_seqlens,                                         \
        LATTN_GLOBAL const unsigned char *LATTN_RESTRICT has_initial,                              \
        LATTN_GLOBAL const void *state_in, LATTN_GLOBAL const void *LATTN_RESTRICT slot_in,        \
        LATTN_GLOBAL void *state_out, LATTN_GLOBAL const void *LATTN_RESTRICT slot_out,            \
        LATTN_GLOBAL void *LATTN_RESTRICT kept, LATTN_GLOBAL float *LATTN_RESTRICT work,           \
        LATTN_BY_VALUE struct lattn_args a

/* Of group memory that is read four floats at a time. */
#define LATTN_ALIGNED __attribute__((aligned(16)))

/* A kernel file is compiled once for each variant: LATTN_VARIANT is the end of its kernels' names,
 * so that all variants can be in one program. */
#define LATTN_JOIN_(name, variant) lattn_##name##_##variant
#define LATTN_JOIN(name, variant) LATTN_JOIN_(name, variant)
#define LATTN_NAME(name) LATTN_JOIN(name, LATTN_VARIANT)

#endif
