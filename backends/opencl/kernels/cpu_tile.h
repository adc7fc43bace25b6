/* The register tile of the CPU kernels: 8 rows of 32 columns, in 16 vectors of 16 floats. One
 * work-item does all; a vector is one AVX-512 register, or two or four smaller ones. */
#ifndef LATTN_CPU_TILE_H
#define LATTN_CPU_TILE_H

#include "cpu_vector.h"

#define CPU_ROWS 8
#define CPU_COLS 32

typedef float16 cpu_tile[CPU_ROWS][2];

CPU_FUNCTION void cpu_tile_zero(cpu_tile c)
{
#pragma unroll
    for (int r = 0; r < CPU_ROWS; r++)
        c[r][0] = c[r][1] = (float16)0.0f;
}

/* panel = factor panel + c, or with `keep`, panel = panel + factor panel + c */
CPU_FUNCTION void cpu_tile_add(cpu_tile c, float *panel, float factor, bool keep)
{
#pragma unroll
    for (int r = 0; r < CPU_ROWS; r++)
#pragma unroll
        for (int half_row = 0; half_row < 2; half_row++) {
            float *row = panel + r * CPU_COLS;
            const float16 old = vload16(half_row, row);
            const float16 sum = keep ? old + c[r][half_row] : c[r][half_row];
            vstore16(fma((float16)factor, old, sum), half_row, row);
        }
}

CPU_FUNCTION void cpu_tile_store(cpu_tile c, float *panel)
{
#pragma unroll
    for (int r = 0; r < CPU_ROWS; r++) {
        vstore16(c[r][0], 0, panel + r * CPU_COLS);
        vstore16(c[r][1], 1, panel + r * CPU_COLS);
    }
}

/* c[r] += sum over x < n of a[r * row + x * step] b[x], b a panel of rows of 32. */
CPU_FUNCTION void cpu_tile_multiply(cpu_tile c, const float *a, int row, int step, const float *b,
                                    int n)
{
    for (int x = 0; x < n; x++) {
        const float16 b0 = vload16(0, b + x * CPU_COLS);
        const float16 b1 = vload16(1, b + x * CPU_COLS);
#pragma unroll
        for (int r = 0; r < CPU_ROWS; r++) {
            const float16 s = (float16)a[r * row + x * step];
            c[r][0] = fma(s, b0, c[r][0]);
            c[r][1] = fma(s, b1, c[r][1]);
        }
    }
}

/* The same with the lower triangle of an 8 x 8 square of a: row r takes x <= r alone, so that what
 * b holds further down, NaN too, does not reach it. */
CPU_FUNCTION void cpu_tile_multiply_triangle(cpu_tile c, const float *a, int row, const float *b)
{
#pragma unroll
    for (int x = 0; x < CPU_ROWS; x++) {
        const float16 b0 = vload16(0, b + x * CPU_COLS);
        const float16 b1 = vload16(1, b + x * CPU_COLS);
#pragma unroll
        for (int r = x; r < CPU_ROWS; r++) {
            const float16 s = (float16)a[r * row + x];
            c[r][0] = fma(s, b0, c[r][0]);
            c[r][1] = fma(s, b1, c[r][1]);
        }
    }
}

/* Transposes 16 x 16 in registers. Each round interleaves rows i and i + 8, which rotates the
 * eight bits of (row, column) left by one; four rounds exchange row and column. */
CPU_FUNCTION void cpu_transpose(float16 x[16])
{
#pragma unroll
    for (int round = 0; round < 4; round++) {
        float16 y[16];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            y[2 * i].even = x[i].lo;
            y[2 * i].odd = x[i + 8].lo;
            y[2 * i + 1].even = x[i].hi;
            y[2 * i + 1].odd = x[i + 8].hi;
        }
#pragma unroll
        for (int i = 0; i < 16; i++)
            x[i] = y[i];
    }
}

#endif
