/* Pass SCAN on a CPU: a group takes 8 rows of a head's state through the segments of one sequence.
 */
#include "cpu_vector.h"
#include "sequence.h"
#include "tile.h"

#define CPU_SCAN_ROWS 8

struct cpu_rows {
    float16 vector[CPU_SCAN_ROWS][LATTN_MAX_DIM / 16];
    lattn_i32 first, count, columns;
};

CPU_FUNCTION void cpu_rows_load(struct cpu_rows *rows, lattn_i32 type,
                                LATTN_GLOBAL const void *base, lattn_i64 at, lattn_i64 stride_d,
                                lattn_i64 stride_e)
{
    for (int r = 0; r < rows->count; r++)
        for (int n = 0; n < rows->columns; n += 16)
            rows->vector[r][n / 16] =
                cpu_load_some(type, base, at + (rows->first + r) * stride_d + n * stride_e,
                              stride_e, rows->columns - n);
}

CPU_FUNCTION void cpu_rows_store(const struct cpu_rows *rows, lattn_i32 type,
                                 LATTN_GLOBAL void *base, lattn_i64 at, lattn_i64 stride_d,
                                 lattn_i64 stride_e)
{
    for (int r = 0; r < rows->count; r++)
        for (int n = 0; n < rows->columns; n += 16)
            cpu_store_some(type, base, at + (rows->first + r) * stride_d + n * stride_e, stride_e,
                           rows->columns - n, rows->vector[r][n / 16]);
}

/* The segment's own state in WORK gives way to the state before it. */
CPU_FUNCTION void cpu_rows_exchange(struct cpu_rows *rows, LATTN_GLOBAL float *work, lattn_i64 at,
                                    float weight)
{
    for (int r = 0; r < rows->count; r++)
        for (int n = 0; n < rows->columns; n += 16) {
            const lattn_i64 here = at + (rows->first + r) * rows->columns + n;
            const int left = rows->columns - n;
            const float16 before = rows->vector[r][n / 16];
            const float16 own = cpu_load_some(LATTN_TYPE_F32, work, here, 1, left);
            cpu_store_some(LATTN_TYPE_F32, work, here, 1, left, before);
            rows->vector[r][n / 16] = fma((float16)weight, before, own);
        }
}

/* Where block states are wanted, segments are single blocks. */
LATTN_KERNEL(1) LATTN_NAME(cpu_scan)(LATTN_KERNEL_PARAMS)
{
    struct lattn_group group;
    struct lattn_sequence sequence;
    struct lattn_slots slots;
    struct cpu_rows rows;
    lattn_i64 first_segment, segments;
    float slope;

    lattn_group_get(lattn_group_id(), 1, lattn_tiles(a.d, CPU_SCAN_ROWS), 1, a.heads, &group);
    lattn_sequence_get(&a, cu_seqlens, (lattn_i32)group.segment, &sequence);
    lattn_slots_get(&a, has_initial, slot_in, slot_out, sequence.number, &slots);
    if (slots.padding)
        return;
    rows.first = group.d_tile * CPU_SCAN_ROWS;
    rows.count = min(a.d - rows.first, CPU_SCAN_ROWS);
    rows.columns = a.e;
    if (slots.initial)
        cpu_rows_load(&rows, a.in.type, state_in, lattn_state_at(&a.in, slots.in, group.head),
                      a.in.d, a.in.e);
    else
        for (int i = 0; i < CPU_SCAN_ROWS * LATTN_MAX_DIM / 16; i++)
            rows.vector[i % CPU_SCAN_ROWS][i / CPU_SCAN_ROWS] = (float16)0.0f;

    slope = slopes[a.slopes + group.head];
    first_segment = lattn_segment_first(&a, &sequence);
    segments = lattn_segment_count(&a, &sequence);
    for (lattn_i64 j = 0; j < segments; j++) {
        const lattn_i32 length =
            (lattn_i32)min(sequence.length - j * a.segment, (lattn_i64)a.segment);
        if (a.flags & LATTN_FLAG_KEPT)
            cpu_rows_store(&rows, LATTN_TYPE_F32, kept,
                           lattn_block_state_at(&a, &sequence, group.head, j), a.e, 1);
        cpu_rows_exchange(&rows, work, lattn_work_at(&a, first_segment + j, group.head),
                          lattn_decay_weight(slope, length));
    }

    if (a.flags & LATTN_FLAG_KEPT)
        cpu_rows_store(&rows, LATTN_TYPE_F32, kept,
                       lattn_block_state_at(&a, &sequence, group.head, segments), a.e, 1);
    if (a.flags & LATTN_FLAG_STATE_OUT)
        cpu_rows_store(&rows, a.out.type, state_out, lattn_state_at(&a.out, slots.out, group.head),
                       a.out.d, a.out.e);
}
