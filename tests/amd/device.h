/* Compiled before a kernel's source, makes of it a program for the emulated work-group of wave.h:
 * the compiler's AMD builtins as functions. The source itself is untouched.
 *
 * Matrix instructions follow AMD's documents: "AMD Instinct MI200" and "AMD Instinct MI300"
 * Instruction Set Architecture, chapter 7, Matrix Arithmetic Instructions; "RDNA3" and "RDNA4"
 * Instruction Set Architecture, chapter 7, VALU, Wave Matrix Multiply Accumulate (WMMA); and AMD's
 * matrix instruction calculator, which lists the same registers. Where each element lies:
 *
 *                    A[i][k], B[k][i]: lane          half of register      D[i][j]: lane, register
 *   MFMA 16x16x16    i + 16 (k / 4)                  k % 4                 j + 16 (i / 4), i % 4
 *   WMMA of gfx11    i and i + 16                    k                     j + 16 (i % 2), i / 2
 *   WMMA of gfx12    i + 16 (k / 4 % 2)              k % 4 + 4 (k / 8)     j + 16 (i / 8), i % 8
 *
 * MFMA on gfx90a takes subnormal float16 and bfloat16 for zero (MI200 document, 7.2, denormals);
 * gfx942 and WMMA do not. */
#ifndef LATTN_TESTS_AMD_DEVICE_H
#define LATTN_TESTS_AMD_DEVICE_H

#include <stdint.h>
#include <string.h>

#include "wave.h"

#define __HIP__ 1
#include "kernels/dialect.h"

/* Group memory is static, in a section that the runner fills with NaN before each group. */
#undef LATTN_LOCAL_VARIABLE
#define LATTN_LOCAL_VARIABLE static __attribute__((section("lattn_lds")))
#undef LATTN_FUNCTION
#define LATTN_FUNCTION static inline __attribute__((always_inline))
#undef LATTN_KERNEL
#define LATTN_KERNEL(threads) extern "C" __attribute__((visibility("default"))) void
#define device unused /* of attributes */

#define AMD_BUILTIN static inline __attribute__((unused))

AMD_BUILTIN unsigned __builtin_amdgcn_workgroup_id_x()
{
    return (unsigned)amd_group();
}
AMD_BUILTIN unsigned __builtin_amdgcn_workitem_id_x()
{
    return (unsigned)amd_thread();
}
AMD_BUILTIN void __builtin_amdgcn_fence(unsigned, const char *)
{
}
AMD_BUILTIN void __builtin_amdgcn_s_barrier()
{
    amd_barrier();
}

/* ---- exchanges ------------------------------------------------------------------------------ */

AMD_BUILTIN int __builtin_amdgcn_readfirstlane(int x)
{
    int result;
    amd_together(
        "readfirstlane",
        [](int lanes, const void *const in[], void *const out[]) {
            for (int i = 0; i < lanes; i++)
                memcpy(out[i], in[0], sizeof(int));
        },
        &x, &result);
    return result;
}

AMD_BUILTIN uint64_t __builtin_amdgcn_ballot_w64(bool x)
{
    uint64_t result;
    amd_together(
        "ballot",
        [](int lanes, const void *const in[], void *const out[]) {
            uint64_t votes = 0;
            for (int i = 0; i < lanes; i++)
                votes |= (uint64_t) * (const bool *)in[i] << i;
            for (int i = 0; i < lanes; i++)
                memcpy(out[i], &votes, sizeof(votes));
        },
        &x, &result);
    return result;
}
AMD_BUILTIN uint32_t __builtin_amdgcn_ballot_w32(bool x)
{
    return (uint32_t)__builtin_amdgcn_ballot_w64(x);
}

AMD_BUILTIN int __builtin_amdgcn_ds_bpermute(int address, int x)
{
    const int in[2] = {address, x};
    int result;
    amd_together(
        "ds_bpermute",
        [](int lanes, const void *const in[], void *const out[]) {
            for (int i = 0; i < lanes; i++) {
                const int from = ((const int *)in[i])[0] / 4 % lanes;
                memcpy(out[i], (const int *)in[from] + 1, sizeof(int));
            }
        },
        in, &result);
    return result;
}

/* Each lane takes a lane of the other row of 16: the one that its nibble of the selectors names. */
AMD_BUILTIN uint32_t __builtin_amdgcn_permlanex16(uint32_t, uint32_t x, uint32_t low, uint32_t high,
                                                  bool, bool)
{
    const uint32_t in[3] = {x, low, high};
    uint32_t result;
    amd_together(
        "permlanex16",
        [](int lanes, const void *const in[], void *const out[]) {
            for (int i = 0; i < lanes; i++) {
                const uint32_t *self = (const uint32_t *)in[i];
                const int from = self[1 + i % 16 / 8] >> (i % 8 * 4) & 15;
                memcpy(out[i], in[((i ^ 16) & ~15) + from], sizeof(uint32_t));
            }
        },
        in, &result);
    return result;
}

AMD_BUILTIN uint32_t __builtin_amdgcn_perm(uint32_t high, uint32_t low, uint32_t selector)
{
    const uint64_t bytes = (uint64_t)high << 32 | low;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)(bytes >> (selector >> (8 * i) & 7) * 8 & 0xff) << (8 * i);
    return result;
}

/* ---- matrix instructions -------------------------------------------------------------------- */

struct amd_bf16 {
    static float value(uint16_t bits)
    {
        const uint32_t wide = (uint32_t)bits << 16;
        float x;
        memcpy(&x, &wide, sizeof(x));
        return x;
    }
    static bool subnormal(uint16_t bits)
    {
        return !(bits & 0x7f80);
    }
};

struct amd_f16 {
    static float value(uint16_t bits)
    {
        _Float16 x;
        memcpy(&x, &bits, sizeof(x));
        return (float)x;
    }
    static bool subnormal(uint16_t bits)
    {
        return !(bits & 0x7c00);
    }
};

#ifdef __gfx90a__
#define AMD_FLUSHES true
#else
#define AMD_FLUSHES false
#endif

struct amd_mfma {
    enum { operand = 4, accumulator = 4, copies = 1 };
    static int operand_lane(int i, int k)
    {
        return i + 16 * (k / 4);
    }
    static int operand_half(int k)
    {
        return k % 4;
    }
    static int result_lane(int i, int j)
    {
        return j + 16 * (i / 4);
    }
    static int result_register(int i)
    {
        return i % 4;
    }
};

struct amd_wmma_gfx11 {
    enum { operand = 16, accumulator = 8, copies = 2 };
    static int operand_lane(int i, int)
    {
        return i;
    }
    static int operand_half(int k)
    {
        return k;
    }
    static int result_lane(int i, int j)
    {
        return j + 16 * (i % 2);
    }
    static int result_register(int i)
    {
        return i / 2;
    }
};

struct amd_wmma_gfx12 {
    enum { operand = 8, accumulator = 8, copies = 1 };
    static int operand_lane(int i, int k)
    {
        return i + 16 * (k / 4 % 2);
    }
    static int operand_half(int k)
    {
        return k % 4 + 4 * (k / 8);
    }
    static int result_lane(int i, int j)
    {
        return j + 16 * (i / 8);
    }
    static int result_register(int i)
    {
        return i % 8;
    }
};

template <typename Layout> struct amd_registers {
    uint16_t a[Layout::operand], b[Layout::operand];
    float c[Layout::accumulator];
};

/* gfx11: what a lane of one half wave has, its partner of the other must have too. */
template <typename Layout> static void amd_check_copies(const void *const in[])
{
    for (int i = 0; Layout::copies > 1 && i < 16; i++)
        if (memcmp(in[i], in[i + 16], 2 * sizeof(uint16_t) * Layout::operand))
            amd_die("WMMA of gfx11: the half waves' operands differ");
}

template <typename Layout, typename T>
static void amd_multiply(int, const void *const in[], void *const out[])
{
    typedef amd_registers<Layout> registers;
    float a[16][16], b[16][16], d[16][16];
    amd_check_copies<Layout>(in);
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++) {
            const registers *lane = (const registers *)in[Layout::operand_lane(i, k)];
            const uint16_t x = lane->a[Layout::operand_half(k)];
            const uint16_t y = lane->b[Layout::operand_half(k)];
            a[i][k] = AMD_FLUSHES && T::subnormal(x) ? 0.0f : T::value(x);
            b[k][i] = AMD_FLUSHES && T::subnormal(y) ? 0.0f : T::value(y);
        }
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            d[i][j] =
                ((const registers *)in[Layout::result_lane(i, j)])->c[Layout::result_register(i)];
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < 16; k++)
            for (int j = 0; j < 16; j++)
                d[i][j] += a[i][k] * b[k][j];
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++)
            ((float *)out[Layout::result_lane(i, j)])[Layout::result_register(i)] = d[i][j];
}

template <typename Layout, typename T, typename V, typename C>
static C amd_matrix(const char *what, V a, V b, C c)
{
    static_assert(sizeof(V) == 2 * Layout::operand && sizeof(C) == 4 * Layout::accumulator,
                  "registers of the instruction");
    amd_registers<Layout> registers;
    memcpy(registers.a, &a, sizeof(a));
    memcpy(registers.b, &b, sizeof(b));
    memcpy(registers.c, &c, sizeof(c));
    amd_together(what, amd_multiply<Layout, T>, &registers, &c);
    return c;
}

template <typename V, typename C>
static C __builtin_amdgcn_mfma_f32_16x16x16f16(V a, V b, C c, int, int, int)
{
    return amd_matrix<amd_mfma, amd_f16>("mfma_f32_16x16x16f16", a, b, c);
}
template <typename V, typename C>
static C __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(V a, V b, C c, int, int, int)
{
    return amd_matrix<amd_mfma, amd_bf16>("mfma_f32_16x16x16bf16_1k", a, b, c);
}
template <typename V, typename C> static C __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(V a, V b, C c)
{
    return amd_matrix<amd_wmma_gfx11, amd_f16>("wmma_f32_16x16x16_f16_w32", a, b, c);
}
template <typename V, typename C>
static C __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(V a, V b, C c)
{
    return amd_matrix<amd_wmma_gfx11, amd_bf16>("wmma_f32_16x16x16_bf16_w32", a, b, c);
}
template <typename V, typename C>
static C __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(V a, V b, C c)
{
    return amd_matrix<amd_wmma_gfx12, amd_f16>("wmma_f32_16x16x16_f16_w32_gfx12", a, b, c);
}
template <typename V, typename C>
static C __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(V a, V b, C c)
{
    return amd_matrix<amd_wmma_gfx12, amd_bf16>("wmma_f32_16x16x16_bf16_w32_gfx12", a, b, c);
}

#endif
