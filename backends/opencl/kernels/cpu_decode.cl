/* Pass DECODE on a CPU: a group takes a head of a sequence and up to 128 columns of its state
 * through the tokens, reading and writing each element of the state once. */
#include "cpu_vector.h"
#include "sequence.h"
#include "tile.h"

#define CPU_DECODE_E 128

/* What the tokens bring, in float32. */
struct cpu_tokens {
    float q[LATTN_DECODE_TOKENS][LATTN_MAX_DIM];
    float k[LATTN_DECODE_TOKENS][LATTN_MAX_DIM];
    float v[LATTN_DECODE_TOKENS][CPU_DECODE_E];
    float o[LATTN_DECODE_TOKENS][CPU_DECODE_E];
} __attribute__((aligned(64)));

/* The group's part of the states. */
struct cpu_states {
    LATTN_GLOBAL const void *in;
    LATTN_GLOBAL void *out, *kept;
    lattn_i64 in_at, out_at, kept_at[LATTN_DECODE_TOKENS];
    lattn_i32 d, e;
    float decay;
    bool initial;
};

CPU_FUNCTION void cpu_row_load(float *row, LATTN_GLOBAL const void *base, lattn_i64 at,
                               lattn_i32 count)
{
    for (int i = 0; i < count; i += 16)
        vstore16(cpu_load_some(LATTN_STORAGE, base, at + i, 1, count - i), 0, row + i);
}

/* How the state lies in memory; a constant where speed matters, for the compiler to fold. */
struct cpu_form {
    lattn_i32 in_type, out_type, tokens;
    lattn_i64 in_stride, out_stride; /* within a vector */
    bool along_d;                    /* a vector is of one column, else of one row */
    bool keeps;
};

/* Takes 16 elements of the state, from row i and column n on, through the tokens. */
CPU_FUNCTION void cpu_step(const struct lattn_args *a, const struct cpu_states *s,
                           const struct cpu_form *form, struct cpu_tokens *x, int i, int n)
{
    const int count = form->along_d ? s->d - i : s->e - n;
    float16 state = (float16)0.0f;
    if (s->initial)
        state = cpu_load_some(form->in_type, s->in, s->in_at + i * a->in.d + n * a->in.e,
                              form->in_stride, count);
    for (int t = 0; t < form->tokens; t++) {
        state *= s->decay;
        if (form->along_d) {
            state = fma(vload16(0, x->k[t] + i), (float16)x->v[t][n], state);
            const float16 y = vload16(0, x->q[t] + i) * state;
            const float8 y8 = y.lo + y.hi;
            const float4 y4 = y8.lo + y8.hi;
            x->o[t][n] += y4.x + y4.y + y4.z + y4.w;
        } else {
            state = fma(vload16(0, x->v[t] + n), (float16)x->k[t][i], state);
            vstore16(fma((float16)x->q[t][i], state, vload16(0, x->o[t] + n)), 0, x->o[t] + n);
        }
        if (form->keeps)
            cpu_store_some(a->kept.type, s->kept, s->kept_at[t] + i * a->kept.d + n * a->kept.e,
                           form->along_d ? a->kept.d : a->kept.e, count, state);
    }
    cpu_store_some(form->out_type, s->out, s->out_at + i * a->out.d + n * a->out.e,
                   form->out_stride, count, state);
}

CPU_FUNCTION void cpu_steps(const struct lattn_args *a, const struct cpu_states *s,
                            const struct cpu_form *form, struct cpu_tokens *x)
{
    if (form->along_d)
        for (int n = 0; n < s->e; n++)
            for (int i = 0; i < s->d; i += 16)
                cpu_step(a, s, form, x, i, n);
    else
        for (int i = 0; i < s->d; i++)
            for (int n = 0; n < s->e; n += 16)
                cpu_step(a, s, form, x, i, n);
}

/* Both states of one type and with adjacent elements: the compiler makes a loop of each. */
CPU_FUNCTION void cpu_steps_plain(const struct lattn_args *a, const struct cpu_states *s,
                                  struct cpu_tokens *x, lattn_i32 type, bool along_d)
{
    const struct cpu_form form = {type, type, (lattn_i32)a->tokens, 1, 1, along_d, false};
    cpu_steps(a, s, &form, x);
}

CPU_FUNCTION void cpu_steps_choose(const struct lattn_args *a, const struct cpu_states *s,
                                   struct cpu_tokens *x)
{
    struct cpu_form form;
    form.in_type = a->in.type;
    form.out_type = a->out.type;
    form.tokens = (lattn_i32)a->tokens;
    form.along_d = a->out.d == 1 && a->out.e != 1;
    form.in_stride = form.along_d ? a->in.d : a->in.e;
    form.out_stride = form.along_d ? a->out.d : a->out.e;
    form.keeps = (a->flags & LATTN_FLAG_KEPT) != 0;
    if (form.keeps || form.in_type != form.out_type || form.in_stride != 1 || form.out_stride != 1)
        cpu_steps(a, s, &form, x);
    else if (form.in_type == LATTN_TYPE_F32 && !form.along_d)
        cpu_steps_plain(a, s, x, LATTN_TYPE_F32, false);
    else if (form.in_type == LATTN_TYPE_F32)
        cpu_steps_plain(a, s, x, LATTN_TYPE_F32, true);
    else if (form.in_type == LATTN_TYPE_F16 && !form.along_d)
        cpu_steps_plain(a, s, x, LATTN_TYPE_F16, false);
    else if (form.in_type == LATTN_TYPE_F16)
        cpu_steps_plain(a, s, x, LATTN_TYPE_F16, true);
    else if (!form.along_d)
        cpu_steps_plain(a, s, x, LATTN_TYPE_BF16, false);
    else
        cpu_steps_plain(a, s, x, LATTN_TYPE_BF16, true);
}

LATTN_KERNEL(1) LATTN_NAME(cpu_decode)(LATTN_KERNEL_PARAMS)
{
    struct lattn_group group;
    struct lattn_sequence sequence;
    struct lattn_slots slots;
    struct cpu_tokens x;
    struct cpu_states s;
    const lattn_i32 tokens = (lattn_i32)a.tokens;
    lattn_i32 e_first;

    lattn_group_get(lattn_group_id(), lattn_tiles(a.e, CPU_DECODE_E), 1, 1, a.heads, &group);
    lattn_sequence_get(&a, cu_seqlens, (lattn_i32)group.segment, &sequence);
    lattn_slots_get(&a, has_initial, slot_in, slot_out, sequence.number, &slots);
    e_first = group.e_tile * CPU_DECODE_E;
    s.d = a.d;
    s.e = min(a.e - e_first, CPU_DECODE_E);
    for (int t = 0; t < tokens; t++)
        for (int n = 0; n < CPU_DECODE_E; n += 16)
            vstore16((float16)0.0f, 0, x.o[t] + n);

    if (!slots.padding) {
        const lattn_i32 qk_head = group.head / a.group;
        s.in = state_in;
        s.out = state_out;
        s.kept = kept;
        s.in_at = lattn_state_at(&a.in, slots.in, group.head) + e_first * a.in.e;
        s.out_at = lattn_state_at(&a.out, slots.out, group.head) + e_first * a.out.e;
        s.decay = lattn_decay_weight(slopes[a.slopes + group.head], 1);
        s.initial = slots.initial;
        for (int t = 0; t < tokens; t++) {
            s.kept_at[t] = lattn_state_at(&a.kept, sequence.number * a.tokens + t, group.head) +
                           e_first * a.kept.e;
            cpu_row_load(x.q[t], q, lattn_token_at(&a.q, &sequence, qk_head, t), s.d);
            cpu_row_load(x.k[t], k, lattn_token_at(&a.k, &sequence, qk_head, t), s.d);
            cpu_row_load(x.v[t], v, lattn_token_at(&a.v, &sequence, group.head, t) + e_first, s.e);
        }
        cpu_steps_choose(&a, &s, &x);
    }

    for (int t = 0; t < tokens; t++) {
        const lattn_i64 at = lattn_token_at(&a.o, &sequence, group.head, t) + e_first;
        for (int n = 0; n < s.e; n += 16)
            cpu_store_some(LATTN_STORAGE, o, at + n, 1, s.e - n, vload16(0, x.o[t] + n) * a.scale);
    }
}
