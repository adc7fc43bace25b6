/* OUTPUT of a segment of at most one block, from the state P before it, which SCAN left in WORK:
 *     o_t = scale (w_t q_t P + sum over j <= t of exp(-s (t - j)) (q_t . k_j) v_j)
 * with w_t by the decay rule. One group has a tile of tokens x e of one segment and head; it takes
 * the keys a tile at a time up to its own tokens. Variants: as prefill_state. */
#include "microtile.h"
#include "sequence.h"
#include "storage.h"
#include "tile.h"

LATTN_KERNEL(LATTN_CHUNK *LATTN_CHUNK) LATTN_NAME(prefill_output)(LATTN_KERNEL_PARAMS)
{
    /* Scores lie transposed, keys down: as the left panels of their product with v. */
    LATTN_LOCAL_VARIABLE LATTN_ALIGNED float scores[4 * LATTN_PANEL_SIZE(LATTN_CHUNK)];
    LATTN_LOCAL_VARIABLE LATTN_ALIGNED float left[LATTN_PANEL_SIZE(LATTN_CHUNK)];
    LATTN_LOCAL_VARIABLE LATTN_ALIGNED float right[LATTN_PANEL_SIZE(LATTN_CHUNK)];
    const lattn_i32 tile = 4 * LATTN_CHUNK;
    const lattn_i32 y = lattn_thread_id() / LATTN_CHUNK, x = lattn_thread_id() % LATTN_CHUNK;
    struct lattn_group group;
    struct lattn_segment segment;
    struct lattn_slots slots;
    struct lattn_matrix queries, keys, values, prefix;
    float sum[4][4] = {{0.0f}};
    float slope;
    lattn_i32 length, t0, e0;
    lattn_i64 at;

    lattn_group_get(lattn_group_id(), lattn_tiles(a.e, tile), 1, LATTN_BLOCK / tile, a.heads,
                    &group);
    lattn_segment_get(&a, cu_seqlens, group.segment, &segment);
    length = (lattn_i32)segment.length;
    t0 = group.token_tile * tile;
    e0 = group.e_tile * tile;
    if (t0 >= length)
        return;
    lattn_slots_get(&a, has_initial, slot_in, slot_out, segment.sequence.number, &slots);
    slope = slopes[a.slopes + group.head];
    lattn_matrix_of(&a.q, &segment, group.head / a.group, a.d, &queries);
    lattn_matrix_of(&a.k, &segment, group.head / a.group, a.d, &keys);
    lattn_matrix_of(&a.v, &segment, group.head, a.e, &values);
    prefix.offset = lattn_work_at(&a, segment.number, group.head);
    prefix.pitch = a.e;
    prefix.rows = a.d;
    prefix.columns = a.e;

    if (!slots.padding && (slots.initial || segment.first > 0)) {
        for (lattn_i32 d0 = 0; d0 < a.d; d0 += LATTN_CHUNK) {
            lattn_panel_load_columns(LATTN_CHUNK, left, LATTN_STORAGE, q, &queries, t0, d0);
            lattn_panel_load_rows(LATTN_CHUNK, right, LATTN_TYPE_F32, work, &prefix, d0, e0);
            lattn_barrier();
            lattn_panel_multiply(LATTN_CHUNK, y, x, sum, left, right);
            lattn_barrier();
        }
#pragma unroll
        for (lattn_i32 i = 0; i < 4; i++) {
            float weight = lattn_prefix_weight(&a, slope, t0 + 4 * y + i);
#pragma unroll
            for (lattn_i32 j = 0; j < 4; j++)
                sum[i][j] *= weight;
        }
    }

    for (lattn_i32 j0 = 0; !slots.padding && j0 <= t0; j0 += tile) {
        float score[4][4] = {{0.0f}};
        for (lattn_i32 d0 = 0; d0 < a.d; d0 += LATTN_CHUNK) {
            lattn_panel_load_columns(LATTN_CHUNK, left, LATTN_STORAGE, q, &queries, t0, d0);
            lattn_panel_load_columns(LATTN_CHUNK, right, LATTN_STORAGE, k, &keys, j0, d0);
            lattn_barrier();
            lattn_panel_multiply(LATTN_CHUNK, y, x, score, left, right);
            lattn_barrier();
        }
#pragma unroll
        for (lattn_i32 j = 0; j < 4; j++) {
            const lattn_i32 distance = t0 + 4 * y - (j0 + 4 * x + j);
            LATTN_LOCAL float *to = scores + (4 * x + j) * LATTN_PANEL_PITCH(LATTN_CHUNK) + 4 * y;
#pragma unroll
            for (lattn_i32 i = 0; i < 4; i++)
                to[i] = score[i][j] * lattn_decay_weight(slope, lattn_at_least_0(distance + i));
        }
        for (lattn_i32 j = 0; j < tile && j0 + j < length; j += LATTN_CHUNK) {
            LATTN_LOCAL float *panel = scores + j * LATTN_PANEL_PITCH(LATTN_CHUNK);
            lattn_panel_load_rows(LATTN_CHUNK, right, LATTN_STORAGE, v, &values, j0 + j, e0);
            lattn_barrier();
            if (j0 < t0)
                lattn_panel_multiply(LATTN_CHUNK, y, x, sum, panel, right);
            else
                lattn_panel_multiply_causal(LATTN_CHUNK, y, x, sum, panel, right, 4 * y - j);
            lattn_barrier();
        }
    }

    at = lattn_token_at(&a.o, &segment.sequence, group.head, segment.first);
#pragma unroll
    for (lattn_i32 i = 0; i < 4; i++) {
#pragma unroll
        for (lattn_i32 j = 0; j < 4; j++) {
            lattn_i32 row = t0 + 4 * y + i, column = e0 + 4 * x + j;
            if (row < length && column < a.e)
                lattn_store(LATTN_STORAGE, o, at + row * a.o.token + column, a.scale * sum[i][j]);
        }
    }
}
