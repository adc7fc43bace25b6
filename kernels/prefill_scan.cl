/* SCAN: from the segments' own states to the state before each, along a sequence,
 *     P = initial state;  for each segment: P, WORK[segment] = exp(-s L) P + WORK[segment], P
 * and hands out the final state and the block states that are wanted. Elements of a state know
 * nothing of each other: each thread follows one. Variants: LATTN_CHUNK (a tile of 4 LATTN_CHUNK of
 * e, and 2 of d). */
#include "sequence.h"
#include "storage.h"
#include "tile.h"

/* Own states that are read before the first of them is needed. */
#define LATTN_SCAN_AHEAD 4

LATTN_KERNEL(8 * LATTN_CHUNK) LATTN_NAME(prefill_scan)(LATTN_KERNEL_PARAMS)
{
    const lattn_i32 tile = 4 * LATTN_CHUNK;
    struct lattn_group group;
    struct lattn_sequence sequence;
    struct lattn_slots slots;
    lattn_i32 row, column;
    lattn_i64 element, count, at, step;
    float slope, whole, state = 0.0f;

    lattn_group_get(lattn_group_id(), lattn_tiles(a.e, tile), lattn_tiles(a.d, 2), 1, a.heads,
                    &group);
    lattn_sequence_get(&a, cu_seqlens, (lattn_i32)group.segment, &sequence);
    lattn_slots_get(&a, has_initial, slot_in, slot_out, sequence.number, &slots);
    row = group.d_tile * 2 + lattn_thread_id() / tile;
    column = group.e_tile * tile + lattn_thread_id() % tile;
    if (slots.padding || row >= a.d || column >= a.e)
        return;
    element = (lattn_i64)row * a.e + column;
    slope = slopes[a.slopes + group.head];
    whole = lattn_decay_weight(slope, a.segment);
    if (slots.initial)
        state = lattn_load(a.in.type, state_in,
                           lattn_state_at(&a.in, slots.in, group.head) + row * a.in.d +
                               column * a.in.e);

    count = lattn_segment_count(&a, &sequence);
    at = lattn_work_at(&a, lattn_segment_first(&a, &sequence), group.head) + element;
    step = (lattn_i64)a.heads * a.d * a.e;
    for (lattn_i64 first = 0; first < count; first += LATTN_SCAN_AHEAD) {
        float own[LATTN_SCAN_AHEAD];
#pragma unroll
        for (lattn_i32 i = 0; i < LATTN_SCAN_AHEAD; i++)
            own[i] = first + i < count ? work[at + i * step] : 0.0f;
#pragma unroll
        for (lattn_i32 i = 0; i < LATTN_SCAN_AHEAD; i++) {
            lattn_i64 left = sequence.length - (first + i) * a.segment;
            if (left <= 0)
                break;
            work[at + i * step] = state;
            if (a.flags & LATTN_FLAG_KEPT)
                ((LATTN_GLOBAL float *)
                     kept)[element +
                           lattn_block_state_at(&a, &sequence, group.head,
                                                (first + i) * (a.segment / LATTN_BLOCK))] = state;
            state =
                (left < a.segment ? lattn_decay_weight(slope, (lattn_i32)left) : whole) * state +
                own[i];
        }
        at += LATTN_SCAN_AHEAD * step;
    }

    if (a.flags & LATTN_FLAG_KEPT)
        ((LATTN_GLOBAL float *)
             kept)[element +
                   lattn_block_state_at(&a, &sequence, group.head,
                                        (sequence.length + LATTN_BLOCK - 1) / LATTN_BLOCK)] = state;
    if (a.flags & LATTN_FLAG_STATE_OUT)
        lattn_store(a.out.type, state_out,
                    lattn_state_at(&a.out, slots.out, group.head) + row * a.out.d +
                        column * a.out.e,
                    state);
}
