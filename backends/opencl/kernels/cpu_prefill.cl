/* Prefill on a CPU. A group is one work-item and walks its tokens in chunks of 64, the state in
 * private memory; caches keep it. */
#include "cpu_chunk.h"

/* The group's place in the tensors, from its segment on. */
CPU_FUNCTION void cpu_place_get(const struct lattn_args *a, LATTN_GLOBAL const void *q,
                                LATTN_GLOBAL const void *k, LATTN_GLOBAL const void *v,
                                LATTN_GLOBAL void *o, const struct lattn_segment *segment,
                                const struct lattn_group *group, struct cpu_place *p)
{
    const lattn_i32 qk_head = group->head / a->group;
    p->q = q;
    p->k = k;
    p->v = v;
    p->o = o;
    p->d = a->d;
    p->e_first = group->e_tile * CPU_E;
    p->e = min(a->e - p->e_first, CPU_E);
    p->q_at = lattn_token_at(&a->q, &segment->sequence, qk_head, segment->first);
    p->k_at = lattn_token_at(&a->k, &segment->sequence, qk_head, segment->first);
    p->v_at = lattn_token_at(&a->v, &segment->sequence, group->head, segment->first) + p->e_first;
    p->o_at = lattn_token_at(&a->o, &segment->sequence, group->head, segment->first) + p->e_first;
    p->q_stride = a->q.token;
    p->k_stride = a->k.token;
    p->v_stride = a->v.token;
    p->o_stride = a->o.token;
}

/* Pass STATE. */
LATTN_KERNEL(1) LATTN_NAME(cpu_state)(LATTN_KERNEL_PARAMS)
{
    struct lattn_group group;
    struct lattn_segment segment;
    struct cpu_place p;
    struct cpu_decay decay;
    struct cpu_state state;
    struct cpu_chunk chunk;

    lattn_group_get(lattn_group_id(), lattn_tiles(a.e, CPU_E), 1, 1, a.heads, &group);
    lattn_segment_get(&a, cu_seqlens, group.segment, &segment);
    if (segment.length == 0)
        return;
    cpu_place_get(&a, q, k, v, o, &segment, &group, &p);
    cpu_decay_init(&decay, slopes[a.slopes + group.head], a.scale);
    cpu_state_zero(&state, &p);
    for (lattn_i64 first = 0; first < segment.length; first += CPU_CHUNK) {
        const int tokens = (int)min(segment.length - first, (lattn_i64)CPU_CHUNK);
        cpu_load_k(&chunk, &p, first, tokens, &decay, false);
        cpu_load_v(&chunk, &p, first, tokens);
        cpu_advance(&state, &chunk, &p, &decay, 0, tokens);
    }
    cpu_state_store(&state, &p, LATTN_TYPE_F32, work, lattn_work_at(&a, segment.number, group.head),
                    a.e, 1);
}

CPU_FUNCTION void cpu_zero_outputs(const struct cpu_place *p, lattn_i64 tokens)
{
    for (lattn_i64 t = 0; t < tokens; t++)
        for (int n = 0; n < p->e; n += 16)
            cpu_store_some(LATTN_STORAGE, p->o, p->o_at + t * p->o_stride + n, 1, p->e - n,
                           (float16)0.0f);
}

/* Pass OUTPUT. Segments of the vllm rule are single blocks, so what enters a segment is what enters
 * a block: there that state counts one step less, and until the end of the segment `back` keeps it
 * so. */
LATTN_KERNEL(1) LATTN_NAME(cpu_output)(LATTN_KERNEL_PARAMS)
{
    const bool segmented = (a.flags & LATTN_FLAG_SEGMENTED) != 0;
    const bool keeps = !segmented && (a.flags & LATTN_FLAG_KEPT) != 0;
    const bool hands_on = !segmented && (a.flags & LATTN_FLAG_STATE_OUT) != 0;
    struct lattn_group group;
    struct lattn_segment segment;
    struct lattn_slots slots;
    struct cpu_place p;
    struct cpu_decay decay;
    struct cpu_state state;
    struct cpu_chunk chunk;
    lattn_i64 first;

    lattn_group_get(lattn_group_id(), lattn_tiles(a.e, CPU_E), 1, 1, a.heads, &group);
    lattn_segment_walk(&a, cu_seqlens, group.segment, &segment);
    lattn_slots_get(&a, has_initial, slot_in, slot_out, segment.sequence.number, &slots);
    cpu_place_get(&a, q, k, v, o, &segment, &group, &p);
    if (slots.padding) {
        cpu_zero_outputs(&p, segment.length);
        return;
    }
    if (segment.length == 0 && segmented)
        return;
    cpu_decay_init(&decay, slopes[a.slopes + group.head], a.scale);
    if (segmented)
        cpu_state_load(&state, &p, LATTN_TYPE_F32, work,
                       lattn_work_at(&a, segment.number, group.head), a.e, 1);
    else if (slots.initial)
        cpu_state_load(&state, &p, a.in.type, state_in, lattn_state_at(&a.in, slots.in, group.head),
                       a.in.d, a.in.e);
    else
        cpu_state_zero(&state, &p);

    for (first = 0; first < segment.length; first += CPU_CHUNK) {
        const int tokens = (int)min(segment.length - first, (lattn_i64)CPU_CHUNK);
        const int back = (a.flags & LATTN_FLAG_VLLM) && first == 0;
        const bool last = first + CPU_CHUNK >= segment.length;
        if (keeps && first % LATTN_BLOCK == 0)
            cpu_state_store(
                &state, &p, LATTN_TYPE_F32, kept,
                lattn_block_state_at(&a, &segment.sequence, group.head, first / LATTN_BLOCK), a.e,
                1);
        cpu_load_q(&chunk, &p, first, tokens);
        cpu_load_k(&chunk, &p, first, tokens, &decay, true);
        cpu_load_v(&chunk, &p, first, tokens);
        cpu_scores(&chunk, &decay, tokens, p.d);
        cpu_outputs(&chunk, &state, &p, &decay, a.scale, back, first, tokens);
        if (!last || hands_on || keeps)
            cpu_advance(&state, &chunk, &p, &decay, back, tokens);
    }

    if (keeps)
        cpu_state_store(&state, &p, LATTN_TYPE_F32, kept,
                        lattn_block_state_at(&a, &segment.sequence, group.head,
                                             (segment.length + LATTN_BLOCK - 1) / LATTN_BLOCK),
                        a.e, 1);
    if (hands_on)
        cpu_state_store(&state, &p, a.out.type, state_out,
                        lattn_state_at(&a.out, slots.out, group.head), a.out.d, a.out.e);
}
