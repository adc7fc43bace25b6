/* The instructions that the tensor-core kernels are made of, beside the products themselves. */
#ifndef LATTN_TENSOR_MMA_CUH
#define LATTN_TENSOR_MMA_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t lattn_shared_at(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* Four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8. */
static __device__ __forceinline__ void lattn_ldmatrix(uint32_t r[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

static __device__ __forceinline__ void lattn_ldmatrix_trans(uint32_t r[4], uint32_t at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

/* 16 bytes, of which the first `bytes` are read and the rest become zero. */
static __device__ __forceinline__ void lattn_copy_async(uint32_t to, const void *from, int bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(bytes)
                 : "memory");
}

static __device__ __forceinline__ void lattn_copy_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most `pending` of the newest groups are under way. */
template <int pending> static __device__ __forceinline__ void lattn_copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

static __device__ __forceinline__ void lattn_store_shared(uint32_t to, uint32_t x)
{
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}

static __device__ __forceinline__ void lattn_store_shared2(uint32_t to, uint32_t x, uint32_t y)
{
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(x), "r"(y) : "memory");
}

static __device__ __forceinline__ void lattn_store_shared4(uint32_t to, uint4 x)
{
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z),
                 "r"(x.w)
                 : "memory");
}

static __device__ __forceinline__ void lattn_store_global4(void *to, uint4 x)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
                 "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}

static __device__ __forceinline__ uint32_t lattn_load_shared(uint32_t from)
{
    uint32_t x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}

static __device__ __forceinline__ uint2 lattn_load_shared2(uint32_t from)
{
    uint2 x;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(from) : "memory");
    return x;
}

static __device__ __forceinline__ uint4 lattn_load_shared4(uint32_t from)
{
    uint4 x;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(from)
                 : "memory");
    return x;
}

static __device__ __forceinline__ uint16_t lattn_load_shared_half(uint32_t from)
{
    uint16_t x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(from) : "memory");
    return x;
}

/* The same value, unknown to the compiler: what is computed from it stays where it is written, and
 * does not take registers through a whole loop. */
static __device__ __forceinline__ float lattn_opaque(float x)
{
    asm volatile("" : "+f"(x));
    return x;
}

static __device__ __forceinline__ int lattn_opaque(int x)
{
    asm volatile("" : "+r"(x));
    return x;
}

static __device__ __forceinline__ long long lattn_opaque(long long x)
{
    asm volatile("" : "+l"(x));
    return x;
}

/* A slope as a rate of powers of two; finite, as zero times it must be zero. */
static __device__ __forceinline__ float lattn_slope2(float slope)
{
    return fminf(slope * 1.4426950408889634f, 1e30f);
}

/* 2^x, for x <= 0. */
static __device__ __forceinline__ float lattn_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

#endif
