/* STATE: a segment's own state, from zero and decayed to the segment's end,
 *     WORK[segment] = sum over its L tokens j of exp(-s (L - 1 - j)) k_j v_j^T
 * One group has a tile of d x e of one segment and head. Variants: LATTN_STORAGE, LATTN_CHUNK
 * (LATTN_CHUNK^2 threads, tiles of 4 LATTN_CHUNK). */
#include "microtile.h"
#include "sequence.h"
#include "storage.h"
#include "tile.h"

LATTN_KERNEL(LATTN_CHUNK *LATTN_CHUNK) LATTN_NAME(prefill_state)(LATTN_KERNEL_PARAMS)
{
    LATTN_LOCAL_VARIABLE LATTN_ALIGNED float k_panel[LATTN_PANEL_SIZE(LATTN_CHUNK)];
    LATTN_LOCAL_VARIABLE LATTN_ALIGNED float v_panel[LATTN_PANEL_SIZE(LATTN_CHUNK)];
    const lattn_i32 tile = 4 * LATTN_CHUNK;
    const lattn_i32 y = lattn_thread_id() / LATTN_CHUNK, x = lattn_thread_id() % LATTN_CHUNK;
    struct lattn_group group;
    struct lattn_segment segment;
    struct lattn_matrix keys, values;
    float sum[4][4] = {{0.0f}};
    float slope;
    lattn_i32 length, d0, e0;
    lattn_i64 at;

    lattn_group_get(lattn_group_id(), lattn_tiles(a.e, tile), lattn_tiles(a.d, tile), 1, a.heads,
                    &group);
    lattn_segment_get(&a, cu_seqlens, group.segment, &segment);
    length = (lattn_i32)segment.length;
    d0 = group.d_tile * tile;
    e0 = group.e_tile * tile;
    slope = slopes[a.slopes + group.head];
    lattn_matrix_of(&a.k, &segment, group.head / a.group, a.d, &keys);
    lattn_matrix_of(&a.v, &segment, group.head, a.e, &values);

    for (lattn_i32 token = 0; token < length; token += LATTN_CHUNK) {
        lattn_panel_load_rows(LATTN_CHUNK, k_panel, LATTN_STORAGE, k, &keys, token, d0);
        lattn_panel_load_rows(LATTN_CHUNK, v_panel, LATTN_STORAGE, v, &values, token, e0);
        lattn_panel_decay(LATTN_CHUNK, k_panel, slope, length - 1 - token);
        lattn_barrier();
        lattn_panel_multiply(LATTN_CHUNK, y, x, sum, k_panel, v_panel);
        lattn_barrier();
    }

    if (length == 0)
        return;
    at = lattn_work_at(&a, segment.number, group.head);
#pragma unroll
    for (lattn_i32 i = 0; i < 4; i++) {
#pragma unroll
        for (lattn_i32 j = 0; j < 4; j++) {
            lattn_i32 row = d0 + 4 * y + i, column = e0 + 4 * x + j;
            if (row < a.d && column < a.e)
                work[at + (lattn_i64)row * a.e + column] = sum[i][j];
        }
    }
}
