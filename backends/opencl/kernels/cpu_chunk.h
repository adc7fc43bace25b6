/* A chunk of up to 64 tokens of one head, against one tile of the columns of its state. All of it
 * is float32 in private memory, laid out for the register tile: the elements' type and strides
 * matter to loading and storing alone.
 *
 * A panel is 32 columns, its rows one after another. Rows and columns that only fill up a tile may
 * hold anything: no sum runs over them, and they are not stored. */
#ifndef LATTN_CPU_CHUNK_H
#define LATTN_CPU_CHUNK_H

#include "cpu_tile.h"
#include "cpu_vector.h"
#include "sequence.h"
#include "tile.h"

#define CPU_CHUNK 64
#define CPU_E 128 /* columns of a state in a group */
#define CPU_PANELS (CPU_E / CPU_COLS)

/* Floats between rows: no power of two, which would put all rows into the same few cache sets. */
#define CPU_ROW (LATTN_MAX_DIM + 16)
#define CPU_SCORE_ROW (CPU_CHUNK + 16)

struct cpu_state {
    float panel[CPU_PANELS][LATTN_MAX_DIM * CPU_COLS];
} __attribute__((aligned(64)));

struct cpu_chunk {
    float q[CPU_CHUNK * CPU_ROW];
    float k[CPU_CHUNK * CPU_ROW]; /* each row decayed to the end of the chunk */
    float k_transposed[CPU_CHUNK / CPU_COLS][LATTN_MAX_DIM * CPU_COLS]; /* panels of tokens */
    float v[CPU_PANELS][CPU_CHUNK * CPU_COLS];
    float scores[CPU_CHUNK * CPU_SCORE_ROW]; /* of queries by keys, decayed */
} __attribute__((aligned(64)));

/* Powers of a head's decay, computed once. */
struct cpu_decay {
    float slope;
    float weight[CPU_CHUNK + 1];   /* [x] = of x steps */
    float distance[2 * CPU_CHUNK]; /* [CHUNK + j - t] = scale times that of t - j steps, j <= t */
};

/* Where a group's tensors and tile are. */
struct cpu_place {
    LATTN_GLOBAL const void *q, *k, *v;
    LATTN_GLOBAL void *o;
    lattn_i64 q_at, k_at, v_at, o_at; /* elements: the segment's first token */
    lattn_i64 q_stride, k_stride, v_stride, o_stride;
    lattn_i32 d, e, e_first; /* e: columns of this tile, from e_first on */
};

CPU_FUNCTION void cpu_decay_init(struct cpu_decay *decay, float slope, float scale)
{
    decay->slope = slope;
    for (int x = 0; x <= CPU_CHUNK; x++)
        decay->weight[x] = lattn_decay_weight(slope, x);
    for (int x = 0; x < 2 * CPU_CHUNK; x++)
        decay->distance[x] = x <= CPU_CHUNK ? scale * decay->weight[CPU_CHUNK - x] : 0.0f;
}

CPU_FUNCTION int cpu_round_up(int count, int unit)
{
    return (count + unit - 1) / unit * unit;
}

/* ---- loading ---- */

CPU_FUNCTION void cpu_load_q(struct cpu_chunk *chunk, const struct cpu_place *p, lattn_i64 first,
                             int tokens)
{
    for (int t = 0; t < cpu_round_up(tokens, CPU_ROWS); t++) {
        const lattn_i64 at = p->q_at + (first + t) * p->q_stride;
        for (int i = 0; i < p->d; i += 16)
            vstore16(cpu_load_some(LATTN_STORAGE, p->q, at + i, 1, t < tokens ? p->d - i : 0), 0,
                     chunk->q + t * CPU_ROW + i);
    }
}

/* v, a row of it split over the panels. */
CPU_FUNCTION void cpu_load_v(struct cpu_chunk *chunk, const struct cpu_place *p, lattn_i64 first,
                             int tokens)
{
    for (int t = 0; t < cpu_round_up(tokens, CPU_ROWS); t++) {
        const lattn_i64 at = p->v_at + (first + t) * p->v_stride;
        for (int i = 0; i < cpu_round_up(p->e, CPU_COLS); i += 16)
            vstore16(cpu_load_some(LATTN_STORAGE, p->v, at + i, 1, t < tokens ? p->e - i : 0), 0,
                     chunk->v[i / CPU_COLS] + t * CPU_COLS + i % CPU_COLS);
    }
}

CPU_FUNCTION void cpu_load_k(struct cpu_chunk *chunk, const struct cpu_place *p, lattn_i64 first,
                             int tokens, const struct cpu_decay *decay, bool transposed)
{
    for (int j = 0; j < cpu_round_up(tokens, CPU_COLS); j += 16)
        for (int i = 0; i < p->d; i += 16) {
            float16 x[16];
#pragma unroll
            for (int r = 0; r < 16; r++) {
                const int left = j + r < tokens ? p->d - i : 0;
                x[r] = cpu_load_some(LATTN_STORAGE, p->k,
                                     p->k_at + (first + j + r) * p->k_stride + i, 1, left);
                if (j + r < tokens)
                    vstore16(x[r] * decay->weight[tokens - 1 - j - r], 0,
                             chunk->k + (j + r) * CPU_ROW + i);
            }
            if (!transposed)
                continue;
            cpu_transpose(x);
#pragma unroll
            for (int r = 0; r < 16; r++)
                vstore16(x[r], 0,
                         chunk->k_transposed[j / CPU_COLS] + (i + r) * CPU_COLS + j % CPU_COLS);
        }
}

/* ---- computing ---- */

/* scores[t][j] = scale exp(-s (t - j)) q_t . k_j, wherever a tile reaches j <= t. */
CPU_FUNCTION void cpu_scores(struct cpu_chunk *chunk, const struct cpu_decay *decay, int tokens,
                             int d)
{
    for (int t = 0; t < tokens; t += CPU_ROWS)
        for (int j = 0; j < t + CPU_ROWS; j += CPU_COLS) {
            const float *weight = decay->distance + CPU_CHUNK + j - t;
            cpu_tile c;
            cpu_tile_zero(c);
            cpu_tile_multiply(c, chunk->q + t * CPU_ROW, CPU_ROW, 1,
                              chunk->k_transposed[j / CPU_COLS], d);
#pragma unroll
            for (int r = 0; r < CPU_ROWS; r++) {
                float *row = chunk->scores + (t + r) * CPU_SCORE_ROW + j;
                vstore16(c[r][0] * vload16(0, weight - r), 0, row);
                vstore16(c[r][1] * vload16(1, weight - r), 1, row);
            }
        }
}

/* o of the chunk: enter[t] q_t S + sum of scores[t][j] v_j over j <= t. `back` shifts the weight of
 * the state: exp(-s (t + 1 - back)). */
CPU_FUNCTION void cpu_outputs(const struct cpu_chunk *chunk, const struct cpu_state *state,
                              const struct cpu_place *p, const struct cpu_decay *decay, float scale,
                              int back, lattn_i64 first, int tokens)
{
    for (int n = 0; n < p->e; n += CPU_COLS)
        for (int t = 0; t < tokens; t += CPU_ROWS) {
            const float *v = chunk->v[n / CPU_COLS];
            const float *scores = chunk->scores + t * CPU_SCORE_ROW;
            cpu_tile c;
            cpu_tile_zero(c);
            cpu_tile_multiply(c, chunk->q + t * CPU_ROW, CPU_ROW, 1, state->panel[n / CPU_COLS],
                              p->d);
#pragma unroll
            for (int r = 0; r < CPU_ROWS; r++) {
                const float weight = scale * decay->weight[t + r + 1 - back];
                c[r][0] *= weight;
                c[r][1] *= weight;
            }
            cpu_tile_multiply(c, scores, CPU_SCORE_ROW, 1, v, t);
            cpu_tile_multiply_triangle(c, scores + t, CPU_SCORE_ROW, v + t * CPU_COLS);
#pragma unroll
            for (int r = 0; r < CPU_ROWS; r++)
                if (t + r < tokens) {
                    const lattn_i64 at = p->o_at + (first + t + r) * p->o_stride + n;
                    cpu_store_some(LATTN_STORAGE, p->o, at, 1, p->e - n, c[r][0]);
                    cpu_store_some(LATTN_STORAGE, p->o, at + 16, 1, p->e - n - 16, c[r][1]);
                }
        }
}

/* S = exp(-s (tokens - back)) S + sum of k_j v_j^T, k decayed. The sum is made by itself, so that
 * a long sequence rounds at the state's size once a chunk, and not once a token. */
CPU_FUNCTION void cpu_advance(struct cpu_state *state, const struct cpu_chunk *chunk,
                              const struct cpu_place *p, const struct cpu_decay *decay, int back,
                              int tokens)
{
    const int steps = tokens - back;
    const float weight = decay->weight[steps];
    /* Near 1 a weight's rounding, the same in each chunk, would add up; that of weight - 1 is less.
     */
    const bool slow = steps > 0 && weight > 0.5f;
    const float factor = slow ? expm1(-decay->slope * (float)steps) : weight;
    for (int n = 0; n < p->e; n += CPU_COLS)
        for (int i = 0; i < p->d; i += CPU_ROWS) {
            float *s = state->panel[n / CPU_COLS] + i * CPU_COLS;
            cpu_tile c;
            cpu_tile_zero(c);
            cpu_tile_multiply(c, chunk->k + i, 1, CPU_ROW, chunk->v[n / CPU_COLS], tokens);
            cpu_tile_add(c, s, factor, slow);
        }
}

/* ---- states ---- */

CPU_FUNCTION void cpu_state_zero(struct cpu_state *state, const struct cpu_place *p)
{
    for (int n = 0; n < p->e; n += CPU_COLS)
        for (int i = 0; i < cpu_round_up(p->d, CPU_ROWS) * CPU_COLS; i += 16)
            vstore16((float16)0.0f, 0, state->panel[n / CPU_COLS] + i);
}

/* The tile's part of a state in memory whose element [0, 0] is at `at`. */
CPU_FUNCTION void cpu_state_load(struct cpu_state *state, const struct cpu_place *p, lattn_i32 type,
                                 LATTN_GLOBAL const void *base, lattn_i64 at, lattn_i64 stride_d,
                                 lattn_i64 stride_e)
{
    at += p->e_first * stride_e;
    for (int i = 0; i < p->d; i++)
        for (int n = 0; n < p->e; n += 16)
            vstore16(
                cpu_load_some(type, base, at + i * stride_d + n * stride_e, stride_e, p->e - n), 0,
                state->panel[n / CPU_COLS] + i * CPU_COLS + n % CPU_COLS);
}

CPU_FUNCTION void cpu_state_store(const struct cpu_state *state, const struct cpu_place *p,
                                  lattn_i32 type, LATTN_GLOBAL void *base, lattn_i64 at,
                                  lattn_i64 stride_d, lattn_i64 stride_e)
{
    at += p->e_first * stride_e;
    for (int i = 0; i < p->d; i++)
        for (int n = 0; n < p->e; n += 16)
            cpu_store_some(type, base, at + i * stride_d + n * stride_e, stride_e, p->e - n,
                           vload16(0, state->panel[n / CPU_COLS] + i * CPU_COLS + n % CPU_COLS));
}

#endif
