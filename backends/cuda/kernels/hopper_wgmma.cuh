/* Hopper's own instructions: products by four warps at once on operands in shared memory (wgmma),
 * barriers in shared memory (mbarrier), registers moved between warps (setmaxnreg).
 *
 * Tiles that wgmma reads lie in blocks of 64 columns: rows of 128 bytes whose chunks of 16 are
 * swizzled by the row, which the hardware calls the 128-byte swizzle. */
#ifndef LATTN_HOPPER_WGMMA_CUH
#define LATTN_HOPPER_WGMMA_CUH

#include "tensor_mma.cuh"

/* Where an element lies in a tile of `rows` rows. */
template <int rows> static __device__ __forceinline__ uint32_t lattn_block_at(int row, int column)
{
    const int chunk = (column % 64 / 8) ^ (row & 7);
    return (uint32_t)(column / 64 * rows * 128 + row * 128 + chunk * 16 + column % 8 * 2);
}

/* An operand that begins at `at`. Its groups of 8 rows follow one another; `blocks` is the distance
 * of blocks of 64 columns, where columns are not the summed axis. */
static __device__ __forceinline__ uint64_t lattn_operand(uint32_t at, uint32_t blocks)
{
    return (uint64_t)((at & 0x3ffff) >> 4) | (uint64_t)(blocks >> 4) << 16 |
           (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

/* 16 columns, from 16 i on, of a tile of `rows` rows: products are summed along them. */
template <int rows>
static __device__ __forceinline__ uint64_t lattn_operand_along(uint32_t tile, int i)
{
    return lattn_operand(tile + i / 4 * (rows * 128) + i % 4 * 32, 16);
}
/* 16 rows, from 16 i on, along which products are summed. */
template <int rows>
static __device__ __forceinline__ uint64_t lattn_operand_down(uint32_t tile, int i)
{
    return lattn_operand(tile + i * 16 * 128, rows * 128);
}

static __device__ __forceinline__ void lattn_wgmma_fence(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void lattn_wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

template <int pending> static __device__ __forceinline__ void lattn_wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

/* Makes shared memory written by ordinary stores and copies visible to wgmma. */
static __device__ __forceinline__ void lattn_proxy_fence(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

static __device__ __forceinline__ void lattn_barrier_init(uint32_t at, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void lattn_barrier_arrive(uint32_t at)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
}

/* Arrives when all copies that this thread has started are done. */
static __device__ __forceinline__ void lattn_barrier_arrive_copies(uint32_t at)
{
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(at) : "memory");
}

/* Waits for the end of phase `phase` (0, 1, 2, ...). */
static __device__ __forceinline__ void lattn_barrier_wait(uint32_t at, int phase)
{
    uint32_t done;
    do {
        asm volatile("{\n\t.reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.b32 %0, 1, 0, p;\n\t}"
                     : "=r"(done)
                     : "r"(at), "r"(phase & 1)
                     : "memory");
    } while (!done);
}

/* Among the 128 threads of barrier `id`: has any of them `x`? */
static __device__ __forceinline__ bool lattn_group_any(int id, bool x)
{
    uint32_t any;
    asm volatile("{\n\t.reg .pred p, q;\n\tsetp.ne.b32 p, %1, 0;\n\t"
                 "barrier.cta.red.or.pred q, %2, 128, p;\n\tselp.b32 %0, 1, 0, q;\n\t}"
                 : "=r"(any)
                 : "r"((int)x), "r"(id)
                 : "memory");
    return any != 0;
}

template <int id, int threads> static __device__ __forceinline__ void lattn_group_wait(void)
{
    asm volatile("barrier.cta.sync %0, %1;" ::"n"(id), "n"(threads) : "memory");
}

static __device__ __forceinline__ void lattn_stmatrix(uint32_t at, uint32_t a, uint32_t b,
                                                      uint32_t c, uint32_t d)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

template <int count> static __device__ __forceinline__ void lattn_registers_give(void)
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}

template <int count> static __device__ __forceinline__ void lattn_registers_take(void)
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}

/* Products of 64 rows, n columns, and 16 along the summed axis: c (+)= A B. A comes from shared
 * memory as it lies, or from registers; B from shared memory, `transposed` if its columns are
 * adjacent. */
template <typename T, int n> struct lattn_wgmma;

#define LATTN_WGMMA_C32                                                                            \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LATTN_WGMMA_C64                                                                            \
    LATTN_WGMMA_C32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "     \
                    "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, "  \
                    "%61, %62, %63"
#define LATTN_WGMMA_8(c, i)                                                                        \
    "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]),    \
        "+f"(c[i + 6]), "+f"(c[i + 7])
#define LATTN_WGMMA_32(c, i)                                                                       \
    LATTN_WGMMA_8(c, i), LATTN_WGMMA_8(c, i + 8), LATTN_WGMMA_8(c, i + 16), LATTN_WGMMA_8(c, i + 24)
#define LATTN_WGMMA_64(c, i) LATTN_WGMMA_32(c, i), LATTN_WGMMA_32(c, i + 32)

/* p0 to p6: the numbers of the operands after c. */
#define LATTN_WGMMA_DEFINE(T, type, n, names, registers, count, p0, p1, p2, p3, p4, p5, p6)        \
    template <> struct lattn_wgmma<T, n> {                                                         \
        template <bool transposed>                                                                 \
        static __device__ __forceinline__ void multiply(float c[count], uint64_t a, uint64_t b,    \
                                                        bool accumulate)                           \
        {                                                                                          \
            asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " p2 ", 0;\n\t"                     \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " "       \
                         "{" names "}, " p0 ", " p1 ", p, 1, 1, 0, " p3 ";\n\t}"                   \
                         : registers(c, 0)                                                         \
                         : "l"(a), "l"(b), "r"((int)accumulate), "n"((int)transposed));            \
        }                                                                                          \
        template <bool transposed = true>                                                          \
        static __device__ __forceinline__ void multiply(float c[count], const uint32_t a[4],       \
                                                        uint64_t b, bool accumulate = true)        \
        {                                                                                          \
            asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " p5 ", 0;\n\t"                     \
                         "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " "       \
                         "{" names "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", p, 1, 1, " p6     \
                         ";\n\t}"                                                                  \
                         : registers(c, 0)                                                         \
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                     \
                           "r"((int)accumulate), "n"((int)transposed));                            \
        }                                                                                          \
    };
#define LATTN_WGMMA_DEFINE_BOTH(T, type)                                                           \
    LATTN_WGMMA_DEFINE(T, type, 64, LATTN_WGMMA_C32, LATTN_WGMMA_32, 32, "%32", "%33", "%34",      \
                       "%35", "%36", "%37", "%38")                                                 \
    LATTN_WGMMA_DEFINE(T, type, 128, LATTN_WGMMA_C64, LATTN_WGMMA_64, 64, "%64", "%65", "%66",     \
                       "%67", "%68", "%69", "%70")

LATTN_WGMMA_DEFINE_BOTH(__nv_bfloat16, "bf16")
LATTN_WGMMA_DEFINE_BOTH(__half, "f16")

#endif
