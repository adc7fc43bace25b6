/* DECODE: a few steps of the recurrence on one state of a pool,
 *     S = exp(-s) S + k_t v_t^T;  o_t = scale q_t S
 * One group has a tile of e of one sequence and head, and all of d: its part of the state stays in
 * registers from the first token to the last (decode.h says how). Variants: LATTN_STORAGE,
 * LATTN_DECODE_D (64, 128 or 256: d is at most that), LATTN_DECODE_E (8 or 32: the tile of e; 8
 * threads for each of it). */
#include "decode.h"
#include "sequence.h"
#include "storage.h"
#include "tile.h"

#define LATTN_DECODE_ELEMENTS (LATTN_DECODE_D / 8) /* of the state, in a thread */
#define LATTN_DECODE_SPLIT (LATTN_DECODE_E / 8)    /* columns a thread has along d */

LATTN_KERNEL(8 * LATTN_DECODE_E) LATTN_NAME(decode)(LATTN_KERNEL_PARAMS)
{
    LATTN_LOCAL_VARIABLE float q_row[LATTN_DECODE_D];
    LATTN_LOCAL_VARIABLE float k_row[LATTN_DECODE_D];
    LATTN_LOCAL_VARIABLE float parts[LATTN_DECODE_E * (LATTN_DECODE_E + 1)];
    const lattn_i32 thread = lattn_thread_id();
    const lattn_i32 y = thread / LATTN_DECODE_E, x = thread % LATTN_DECODE_E;
    const bool along_d = a.in.d == 1 && a.in.e != 1;
    const lattn_i32 tokens = (lattn_i32)a.tokens;
    struct lattn_group group;
    struct lattn_sequence sequence;
    struct lattn_slots slots;
    float state[LATTN_DECODE_ELEMENTS];
    float decay;
    lattn_i32 e0;

    lattn_group_get(lattn_group_id(), lattn_tiles(a.e, LATTN_DECODE_E), 1, 1, a.heads, &group);
    lattn_sequence_get(&a, cu_seqlens, (lattn_i32)group.segment, &sequence);
    lattn_slots_get(&a, has_initial, slot_in, slot_out, sequence.number, &slots);
    e0 = group.e_tile * LATTN_DECODE_E;
    if (slots.padding) {
        for (lattn_i32 t = 0; t < tokens; t++)
            if (thread < LATTN_DECODE_E && e0 + thread < a.e)
                lattn_store(LATTN_STORAGE, o,
                            lattn_token_at(&a.o, &sequence, group.head, t) + e0 + thread, 0.0f);
        return;
    }
    decay = lattn_decay_weight(slopes[a.slopes + group.head], 1);

#pragma unroll
    for (lattn_i32 i = 0; i < LATTN_DECODE_ELEMENTS; i++)
        state[i] = 0.0f;
    if (slots.initial)
        lattn_decode_load(LATTN_DECODE_E, along_d, &a, LATTN_DECODE_ELEMENTS, state, state_in,
                          &a.in, lattn_state_at(&a.in, slots.in, group.head), e0);

    for (lattn_i32 t = 0; t < tokens; t++) {
        float v_part[LATTN_DECODE_SPLIT], sum[LATTN_DECODE_SPLIT];
        const lattn_i64 q_at = lattn_token_at(&a.q, &sequence, group.head / a.group, t);
        const lattn_i64 k_at = lattn_token_at(&a.k, &sequence, group.head / a.group, t);
        const lattn_i64 v_at = lattn_token_at(&a.v, &sequence, group.head, t);
        for (lattn_i32 i = thread; i < a.d; i += 8 * LATTN_DECODE_E) {
            q_row[i] = lattn_load(LATTN_STORAGE, q, q_at + i);
            k_row[i] = lattn_load(LATTN_STORAGE, k, k_at + i);
        }
#pragma unroll
        for (lattn_i32 i = 0; i < LATTN_DECODE_SPLIT; i++) {
            lattn_i32 column = e0 + lattn_decode_column(LATTN_DECODE_E, along_d, i);
            v_part[i] = column < a.e ? lattn_load(LATTN_STORAGE, v, v_at + column) : 0.0f;
            sum[i] = 0.0f;
        }
        lattn_barrier();

#pragma unroll
        for (lattn_i32 i = 0; i < LATTN_DECODE_ELEMENTS; i++) {
            lattn_i32 row = lattn_decode_row(LATTN_DECODE_E, along_d, i);
            if (row < a.d) {
                state[i] = decay * state[i] + k_row[row] * v_part[i % LATTN_DECODE_SPLIT];
                sum[i % LATTN_DECODE_SPLIT] += q_row[row] * state[i];
            }
        }
        if (a.flags & LATTN_FLAG_KEPT)
            lattn_decode_store(
                LATTN_DECODE_E, along_d, &a, LATTN_DECODE_ELEMENTS, state, kept, &a.kept,
                lattn_state_at(&a.kept, (lattn_i64)sequence.number * tokens + t, group.head), e0);

            /* parts[i][column]: i < LATTN_DECODE_E along d, else i < 8. */
#pragma unroll
        for (lattn_i32 i = 0; i < LATTN_DECODE_SPLIT; i++) {
            if (along_d)
                parts[x * (LATTN_DECODE_E + 1) + lattn_decode_column(LATTN_DECODE_E, along_d, i)] =
                    sum[i];
            else if (i > 0)
                sum[0] += sum[i];
        }
        if (!along_d)
            parts[y * (LATTN_DECODE_E + 1) + x] = sum[0];
        lattn_barrier();
        if (thread < LATTN_DECODE_E && e0 + thread < a.e) {
            float total = 0.0f;
            for (lattn_i32 i = 0; i < (along_d ? LATTN_DECODE_E : 8); i++)
                total += parts[i * (LATTN_DECODE_E + 1) + thread];
            lattn_store(LATTN_STORAGE, o,
                        lattn_token_at(&a.o, &sequence, group.head, t) + e0 + thread,
                        a.scale * total);
        }
    }
    if (a.flags & LATTN_FLAG_STATE_OUT)
        lattn_decode_store(LATTN_DECODE_E, along_d, &a, LATTN_DECODE_ELEMENTS, state, state_out,
                           &a.out, lattn_state_at(&a.out, slots.out, group.head), e0);
}
