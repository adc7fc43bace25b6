/* Products of tiles through group memory. A group of C x C threads computes a tile of T x T
 * results, T = 4 C, a micro-tile of 4 x 4 in each thread: thread (y, x) has rows 4 y and on,
 * columns 4 x and on. The inner dimension goes C at a time through two panels in group memory: C
 * rows of T floats, the next row T + 4 on, so that a thread reads its four with one load. `chunk`
 * is C, a constant. */
#ifndef LATTN_MICROTILE_H
#define LATTN_MICROTILE_H

#include "dialect.h"
#include "sequence.h"
#include "storage.h"
#include "tile.h"

/* From one row of a panel to the next. */
#define LATTN_PANEL_PITCH(chunk) (4 * (chunk) + 4)
#define LATTN_PANEL_SIZE(chunk) ((chunk)*LATTN_PANEL_PITCH(chunk))

/* A matrix in memory whose columns are adjacent; what is outside [rows, columns] reads as zero, and
 * is not touched. */
struct lattn_matrix {
    lattn_i64 offset, pitch; /* elements */
    lattn_i32 rows, columns;
};

/* The tokens of a segment, down, and their dims in a head of q, k or v. */
LATTN_FUNCTION void lattn_matrix_of(const struct lattn_token_layout *layout,
                                    const struct lattn_segment *segment, lattn_i32 head,
                                    lattn_i32 dims, struct lattn_matrix *matrix)
{
    matrix->offset = lattn_token_at(layout, &segment->sequence, head, segment->first);
    matrix->pitch = layout->token;
    matrix->rows = (lattn_i32)segment->length;
    matrix->columns = dims;
}

/* panel[i][j] = matrix[row + i][column + j]: the inner dimension runs down the matrix. */
LATTN_FUNCTION void lattn_panel_load_rows(lattn_i32 chunk, LATTN_LOCAL float *panel, lattn_i32 type,
                                          LATTN_GLOBAL const void *base,
                                          const struct lattn_matrix *matrix, lattn_i32 row,
                                          lattn_i32 column)
{
    lattn_i32 j = lattn_thread_id() % (4 * chunk), i = lattn_thread_id() / (4 * chunk);
#pragma unroll
    for (lattn_i32 step = 0; step < 4; step++, i += chunk / 4) {
        float value = 0.0f;
        if (row + i < matrix->rows && column + j < matrix->columns)
            value = lattn_load(type, base, matrix->offset + (row + i) * matrix->pitch + column + j);
        panel[i * LATTN_PANEL_PITCH(chunk) + j] = value;
    }
}

/* Decays row i of a panel of lattn_panel_load_rows by `steps - i` steps; rows beyond `steps` are
 * zero and stay so. Each thread takes the elements it loaded. */
LATTN_FUNCTION void lattn_panel_decay(lattn_i32 chunk, LATTN_LOCAL float *panel, float slope,
                                      lattn_i32 steps)
{
    lattn_i32 j = lattn_thread_id() % (4 * chunk), i = lattn_thread_id() / (4 * chunk);
#pragma unroll
    for (lattn_i32 step = 0; step < 4; step++, i += chunk / 4)
        if (i <= steps)
            panel[i * LATTN_PANEL_PITCH(chunk) + j] *= lattn_decay_weight(slope, steps - i);
}

/* panel[i][j] = matrix[row + j][column + i]: the inner dimension runs along the matrix. */
LATTN_FUNCTION void lattn_panel_load_columns(lattn_i32 chunk, LATTN_LOCAL float *panel,
                                             lattn_i32 type, LATTN_GLOBAL const void *base,
                                             const struct lattn_matrix *matrix, lattn_i32 row,
                                             lattn_i32 column)
{
    lattn_i32 i = lattn_thread_id() % chunk, j = lattn_thread_id() / chunk;
#pragma unroll
    for (lattn_i32 step = 0; step < 4; step++, j += chunk) {
        float value = 0.0f;
        if (row + j < matrix->rows && column + i < matrix->columns)
            value = lattn_load(type, base, matrix->offset + (row + j) * matrix->pitch + column + i);
        panel[i * LATTN_PANEL_PITCH(chunk) + j] = value;
    }
}

LATTN_FUNCTION void lattn_load4(float to[4], LATTN_LOCAL const float *from)
{
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
    to[3] = from[3];
}

LATTN_FUNCTION void lattn_row_multiply(float sum[4], float x, const float y[4])
{
    sum[0] += x * y[0];
    sum[1] += x * y[1];
    sum[2] += x * y[2];
    sum[3] += x * y[3];
}

/* sum += left^T right, for the panels' rows. */
LATTN_FUNCTION void lattn_panel_multiply(lattn_i32 chunk, lattn_i32 y, lattn_i32 x, float sum[4][4],
                                         LATTN_LOCAL const float *left,
                                         LATTN_LOCAL const float *right)
{
#pragma unroll
    for (lattn_i32 i = 0; i < chunk; i++) {
        float down[4], along[4];
        lattn_load4(down, left + i * LATTN_PANEL_PITCH(chunk) + 4 * y);
        lattn_load4(along, right + i * LATTN_PANEL_PITCH(chunk) + 4 * x);
#pragma unroll
        for (lattn_i32 row = 0; row < 4; row++)
            lattn_row_multiply(sum[row], down[row], along);
    }
}

/* The same, but row i of the panels counts only in the rows of `sum` that are not before it: the
 * first of this thread's rows is `ahead` rows after the first of the panels. The other products are
 * not formed, for what is masked may be NaN. */
LATTN_FUNCTION void lattn_panel_multiply_causal(lattn_i32 chunk, lattn_i32 y, lattn_i32 x,
                                                float sum[4][4], LATTN_LOCAL const float *left,
                                                LATTN_LOCAL const float *right, lattn_i32 ahead)
{
    for (lattn_i32 i = 0; i < chunk; i++) {
        float down[4], along[4];
        lattn_load4(down, left + i * LATTN_PANEL_PITCH(chunk) + 4 * y);
        lattn_load4(along, right + i * LATTN_PANEL_PITCH(chunk) + 4 * x);
#pragma unroll
        for (lattn_i32 row = 0; row < 4; row++)
            if (i <= ahead + row)
                lattn_row_multiply(sum[row], down[row], along);
    }
}

#endif
