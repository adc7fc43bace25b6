#include "attention.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

/* ---- inputs ---- */

static void put_number(struct buffer *buffer, uint64_t offset, lattn_dtype dtype, double value)
{
    unsigned char bytes[4];
    number_store(bytes, dtype, value);
    buffer_put(buffer, offset, bytes, number_size(dtype));
}

static void fill_tokens(struct attention *a, struct token_array *array, int32_t heads)
{
    size_t size = number_size(a->c->dtype);
    for (int64_t i = 0; i < a->batch; i++)
        for (int32_t head = 0; head < heads; head++)
            for (int64_t t = 0; t < a->length[i]; t++)
                for (int64_t x = 0; x < array->dim; x++)
                    put_number(array->buffer,
                               token_offset(a, array, i, head, t) + (uint64_t)x * size, a->c->dtype,
                               random_normal(&a->random));
}

/* Puts a NaN or an infinity at one place of an input, not in the first token. */
static void poison(struct attention *a)
{
    struct token_array *array = a->c->poison == POISON_Q   ? &a->q
                                : a->c->poison == POISON_K ? &a->k
                                                           : &a->v;
    int32_t heads = a->c->poison == POISON_V ? a->c->heads : a->qk_heads;
    int64_t i = random_range(&a->random, 0, a->batch - 1);
    while (a->length[i] < 2)
        i = (i + 1) % a->batch;
    int64_t t = random_range(&a->random, 1, a->length[i] - 1);
    int64_t x = random_range(&a->random, 0, array->dim - 1);
    int64_t head = random_range(&a->random, 0, heads - 1);
    bool infinite = a->c->infinite || random_chance(&a->random, 2);
    double value = infinite ? (double)INFINITY : (double)NAN;
    put_number(array->buffer,
               token_offset(a, array, i, head, t) + (uint64_t)x * number_size(a->c->dtype),
               a->c->dtype, value);
}

static void build_tokens(struct attention *a)
{
    const struct attention_case *c = a->c;
    enum layout in = c->layout == LAYOUT_REVERSED ? LAYOUT_OTHER : c->layout;
    enum layout out = in == LAYOUT_FUSED             ? LAYOUT_OTHER
                      : c->layout == LAYOUT_REVERSED ? LAYOUT_PADDED
                      : in == LAYOUT_SHARED          ? LAYOUT_DEFAULT
                                                     : in;
    int64_t size = (int64_t)number_size(c->dtype);
    int64_t batch = c->packed ? 1 : a->batch, n = a->tokens;
    int64_t guard = BUFFER_GUARD / size + (in == LAYOUT_PADDED);
    struct token_array *inputs[] = {&a->q, &a->k, &a->v};
    struct buffer *buffers[] = {&a->qkv, &a->k_buffer, &a->v_buffer};
    const char *names[] = {"q", "k", "v"};
    int32_t heads[] = {a->qk_heads, a->qk_heads, c->heads};
    int32_t dims[] = {c->d, c->d, a->e};

    if (in == LAYOUT_FUSED) {
        int64_t row = 2 * (int64_t)a->qk_heads * c->d + (int64_t)c->heads * a->e, at = guard;
        buffer_create(&a->qkv, a->fixture, "qkv", (uint64_t)((batch * n * row + 2 * guard) * size));
        for (int i = 0; i < 3; i++) {
            *inputs[i] = (struct token_array){.buffer = &a->qkv,
                                              .origin = at,
                                              .batch = n * row,
                                              .head = dims[i],
                                              .token = row,
                                              .dim = dims[i]};
            inputs[i]->tensor.stride_batch = n * row;
            inputs[i]->tensor.stride_head = dims[i];
            inputs[i]->tensor.stride_token = row;
            at += (int64_t)heads[i] * dims[i];
        }
    } else {
        for (int i = 0; i < 3; i++) {
            struct token_array *array = inputs[i];
            int64_t span = lay_out_tokens(array, in, c->packed, batch,
                                          in == LAYOUT_SHARED ? 1 : heads[i], n, dims[i]);
            array->buffer = buffers[i];
            array->origin = guard;
            if (in == LAYOUT_SHARED)
                array->head = array->tensor.stride_head = 0;
            if (c->layout == LAYOUT_REVERSED && n) {
                array->origin += (n - 1) * array->token;
                array->token = array->tensor.stride_token = -array->token;
            }
            buffer_create(buffers[i], a->fixture, names[i], (uint64_t)((span + 2 * guard) * size));
        }
    }
    int64_t span = lay_out_tokens(&a->o, out, c->packed, batch, c->heads, n, a->e);
    a->o.buffer = &a->o_buffer;
    a->o.origin = guard;
    buffer_create(&a->o_buffer, a->fixture, "o", (uint64_t)((span + 2 * guard) * size));

    for (int i = 0; i < 3; i++) {
        fill_tokens(a, inputs[i], heads[i]);
        inputs[i]->tensor.base = inputs[i]->buffer->base;
        inputs[i]->tensor.offset = (uint64_t)(inputs[i]->origin * size);
    }
    a->o.tensor.base = a->o_buffer.base;
    a->o.tensor.offset = (uint64_t)(a->o.origin * size);
    for (int64_t i = 0; i < a->batch; i++)
        for (int32_t head = 0; head < c->heads; head++)
            for (int64_t t = 0; t < a->length[i]; t++)
                buffer_open(&a->o_buffer, token_offset(a, &a->o, i, head, t),
                            (uint64_t)(a->e * size));
    if (c->poison)
        poison(a);
}

static void build_sequences(struct attention *a)
{
    const struct attention_case *c = a->c;
    int64_t at = c->packed ? random_range(&a->random, 0, 3) : 0;
    size_t room = (size_t)a->batch + 1;
    int32_t *cu = calloc(room, sizeof(*cu));
    a->first = calloc(room, sizeof(*a->first));
    a->length = calloc(room, sizeof(*a->length));
    a->initial = calloc(room, sizeof(*a->initial));
    a->live = calloc(room, sizeof(*a->live));
    cu[0] = (int32_t)at;
    for (int64_t i = 0; i < a->batch; i++) {
        a->first[i] = at;
        a->length[i] = c->packed ? c->lengths[i] : c->tokens;
        at += c->packed ? a->length[i] : 0;
        cu[i + 1] = (int32_t)at;
        a->initial[i] = c->start != START_ZERO && !(c->flags && i % 2 == 0);
    }
    a->tokens = c->packed ? at + random_range(&a->random, 0, 3) : c->tokens;
    if (c->packed) {
        buffer_create(&a->cu_seqlens, a->fixture, "cu_seqlens", 2 * BUFFER_GUARD + 4 * room);
        buffer_put(&a->cu_seqlens, BUFFER_GUARD, cu, 4 * room);
    }
    free(cu);
    if (c->flags) {
        buffer_create(&a->flags, a->fixture, "has_initial", 2 * BUFFER_GUARD + room);
        for (int64_t i = 0; i < a->batch; i++)
            buffer_put(&a->flags, BUFFER_GUARD + (uint64_t)i, &a->initial[i], 1);
    }
}

static void build_slopes(struct attention *a)
{
    static const float fixed[SLOPES_COUNT] = {0, 0, 1e-6f, 0.1f, 1, 90, 1e4f};
    static const float mixed[] = {0.1f, 0, 1e4f, 1, 1e-6f, 90, 0.01f, 0.5f, 0.001f};
    int64_t turn = random_range(&a->random, 0, 8);
    buffer_create(&a->slopes, a->fixture, "slopes", 2 * BUFFER_GUARD + 4 * (uint64_t)a->c->heads);
    for (int32_t head = 0; head < a->c->heads; head++)
        put_number(&a->slopes, BUFFER_GUARD + 4 * (uint64_t)head, LATTN_F32,
                   (double)(a->c->slopes ? fixed[a->c->slopes] : mixed[(turn + head) % 9]));
}

/* ---- states ---- */

static bool in_range(const struct state_array *array, int64_t slot)
{
    return slot >= 0 && slot < array->state.slots;
}

static void create_states(struct attention *a, struct state_array *array, struct buffer *buffer,
                          const char *name, lattn_dtype dtype, enum state_layout layout,
                          int64_t slots)
{
    int64_t size = (int64_t)number_size(dtype);
    int64_t guard = BUFFER_GUARD / size + (layout == STATE_PADDED);
    array->state.dtype = dtype;
    array->state.slots = slots;
    int64_t span = lay_out_states(array, layout, slots, a->c->heads, a->c->d, a->e);
    array->buffer = buffer;
    array->origin = guard;
    array->slots = calloc((size_t)a->batch + 1, sizeof(*array->slots));
    for (int64_t i = 0; i < a->batch; i++)
        array->slots[i] = i;
    buffer_create(buffer, a->fixture, name, (uint64_t)((span + 2 * guard) * size));
    array->state.base = buffer->base;
    array->state.offset = (uint64_t)(guard * size);
}

/* Different slots for all sequences, from a random place on. */
static void draw_slots(struct attention *a, struct state_array *array, int64_t skip)
{
    int64_t stride = array->state.slots - 1; /* coprime to the number of slots */
    for (int64_t i = 0; i < a->batch; i++)
        array->slots[i] = (skip + i) * stride % array->state.slots;
}

static void break_slot(struct attention *a, struct state_array *array, int64_t i)
{
    int64_t count = array->state.slots;
    int64_t narrow[] = {-1, count, -1, count + 7, INT32_MIN, INT32_MAX};
    int64_t wide[] = {-1, count, -1, INT64_MAX, INT64_MIN, (int64_t)1 << 32};
    array->slots[i] = (a->c->wide_slots ? wide : narrow)[random_range(&a->random, 0, 5)];
}

static void put_slots(struct attention *a, struct state_array *array, struct buffer *buffer,
                      const char *name)
{
    uint64_t size = a->c->wide_slots ? 8 : 4;
    buffer_create(buffer, a->fixture, name, 2 * BUFFER_GUARD + size * (uint64_t)a->batch);
    for (int64_t i = 0; i < a->batch; i++) {
        int32_t narrow = (int32_t)array->slots[i];
        buffer_put(buffer, BUFFER_GUARD + size * (uint64_t)i,
                   size == 8 ? (const void *)&array->slots[i] : (const void *)&narrow, size);
    }
    array->state.slot_idx = (lattn_array){buffer->base, BUFFER_GUARD};
    array->state.slot_type = a->c->wide_slots ? LATTN_I64 : LATTN_I32;
}

static void open_state(struct attention *a, const struct state_array *array, int64_t row)
{
    for (int32_t head = 0; head < a->c->heads; head++)
        for (int32_t d = 0; d < a->c->d; d++)
            for (int32_t e = 0; e < a->e; e++)
                buffer_open(array->buffer, state_offset(array, row, head, d, e),
                            number_size(array->state.dtype));
}

static void fill_state(struct attention *a, const struct state_array *array, int64_t row)
{
    for (int32_t head = 0; head < a->c->heads; head++)
        for (int32_t d = 0; d < a->c->d; d++)
            for (int32_t e = 0; e < a->e; e++)
                put_number(array->buffer, state_offset(array, row, head, d, e), array->state.dtype,
                           2 * random_normal(&a->random));
}

static void build_states(struct attention *a)
{
    const struct attention_case *c = a->c;
    bool in_place = c->final == FINAL_IN_PLACE || (c->decode && c->final == FINAL_NONE);
    bool in_pool = c->start == START_POOL;
    bool out_pool = c->final == FINAL_POOL || c->final == FINAL_MOVED || (in_place && in_pool);
    int64_t pool = 2 * a->batch + 3;

    if (c->start != START_ZERO) {
        create_states(a, &a->in, &a->in_buffer, "state_in", c->in_dtype, c->in_layout,
                      in_pool ? pool : a->batch);
        if (in_pool)
            draw_slots(a, &a->in, random_range(&a->random, 0, pool));
    }
    if (in_place || c->final == FINAL_MOVED) {
        a->out = a->in;
        a->out.slots = calloc((size_t)a->batch + 1, sizeof(*a->out.slots));
        memcpy(a->out.slots, a->in.slots, sizeof(*a->out.slots) * (size_t)a->batch);
    } else if (c->final != FINAL_NONE) {
        create_states(a, &a->out, &a->out_buffer, "state_out", c->out_dtype, c->out_layout,
                      out_pool ? pool : a->batch);
    }
    if (c->final == FINAL_POOL)
        draw_slots(a, &a->out, random_range(&a->random, 0, pool));
    if (c->final == FINAL_MOVED)
        for (int64_t i = 0; i < a->batch; i++) /* the slots after those that are read */
            a->out.slots[i] = (a->in.slots[i] + a->batch * (pool - 1)) % pool;
    /* Sequences may share a prefix that no one writes. */
    if (in_pool && (c->final == FINAL_POOL || c->final == FINAL_ROWS) && a->batch > 3)
        a->in.slots[3] = a->in.slots[1];

    for (int64_t i = 0; i < a->batch && c->padding; i++) {
        bool both = in_place && in_pool;
        if (i % 3 == 2 && out_pool)
            break_slot(a, &a->out, i);
        if (both)
            a->in.slots[i] = a->out.slots[i];
        else if (in_pool && (i % 4 == 3 || !a->initial[i]))
            break_slot(a, &a->in, i);
    }
    for (int64_t i = 0; i < a->batch; i++) {
        bool read = a->initial[i] && in_range(&a->in, a->in.slots[i]);
        a->live[i] =
            (!a->out.buffer || in_range(&a->out, a->out.slots[i])) && (!a->initial[i] || read);
        if (read)
            fill_state(a, &a->in, a->in.slots[i]);
        if (a->live[i] && a->out.buffer)
            open_state(a, &a->out, a->out.slots[i]);
    }
    if (in_pool)
        put_slots(a, &a->in, &a->in_slots, "slot_idx of state_in");
    if (out_pool && in_place)
        a->out.state = a->in.state;
    else if (out_pool)
        put_slots(a, &a->out, &a->out_slots, "slot_idx of state_out");
    if (!in_pool && random_chance(&a->random, 2))
        a->in.state.slots = 0; /* means batch */
}

static void build_kept(struct attention *a)
{
    const struct attention_case *c = a->c;
    if (c->decode) {
        create_states(a, &a->kept, &a->kept_buffer, "token_states", c->out_dtype, c->out_layout,
                      a->batch * a->tokens);
    } else {
        int64_t rows = c->packed
                           ? a->tokens / ATTENTION_BLOCK + 2 * a->batch
                           : a->batch * ((a->tokens + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK + 1);
        buffer_create(&a->kept_buffer, a->fixture, "block_states",
                      2 * BUFFER_GUARD + 4 * (uint64_t)(rows * c->heads * c->d * a->e));
    }
    for (int64_t i = 0; i < a->batch; i++)
        for (int32_t head = 0; head < c->heads && a->live[i]; head++)
            for (int64_t step = 0; step < kept_count(a, i); step++)
                for (int32_t d = 0; d < c->d; d++)
                    for (int32_t e = 0; e < a->e; e++)
                        buffer_open(&a->kept_buffer, kept_offset(a, i, head, step, d, e),
                                    c->decode ? number_size(c->out_dtype) : 4);
}

/* ---- the call ---- */

/* What the two params structs have in common, by name. */
#define FILL_PARAMS(p)                                                                             \
    do {                                                                                           \
        (p)->batch = a->batch;                                                                     \
        (p)->heads = c->heads;                                                                     \
        (p)->qk_heads = c->qk_heads;                                                               \
        (p)->d = c->d;                                                                             \
        (p)->e = c->e;                                                                             \
        (p)->dtype = c->dtype;                                                                     \
        (p)->precision = c->tf32 ? LATTN_PRECISION_TF32 : LATTN_PRECISION_FULL;                    \
        (p)->scale = c->scale;                                                                     \
        (p)->q = a->q.tensor;                                                                      \
        (p)->k = a->k.tensor;                                                                      \
        (p)->v = a->v.tensor;                                                                      \
        (p)->o = a->o.tensor;                                                                      \
        (p)->slopes = (lattn_array){a->slopes.base, BUFFER_GUARD};                                 \
        (p)->state_in = a->in.state;                                                               \
        (p)->state_out = a->out.state;                                                             \
        if (c->flags)                                                                              \
            (p)->has_initial = (lattn_array){a->flags.base, BUFFER_GUARD};                         \
    } while (0)

static void fold(void **base, uint64_t *offset)
{
    if (!*base)
        return;
    *base = (char *)*base + *offset;
    *offset = 0;
}

/* Where a base is an address (lattn/interop.h), an offset may as well be part of it, and leave a
 * base that is aligned to its elements and to nothing more. */
#define FOLD_OFFSETS(p)                                                                            \
    do {                                                                                           \
        fold(&(p)->q.base, &(p)->q.offset);                                                        \
        fold(&(p)->k.base, &(p)->k.offset);                                                        \
        fold(&(p)->v.base, &(p)->v.offset);                                                        \
        fold(&(p)->o.base, &(p)->o.offset);                                                        \
        fold(&(p)->slopes.base, &(p)->slopes.offset);                                              \
        fold(&(p)->has_initial.base, &(p)->has_initial.offset);                                    \
        fold(&(p)->state_in.base, &(p)->state_in.offset);                                          \
        fold(&(p)->state_in.slot_idx.base, &(p)->state_in.slot_idx.offset);                        \
        fold(&(p)->state_out.base, &(p)->state_out.offset);                                        \
        fold(&(p)->state_out.slot_idx.base, &(p)->state_out.slot_idx.offset);                      \
    } while (0)

static void fold_offsets(struct attention *a)
{
    FOLD_OFFSETS(&a->prefill);
    FOLD_OFFSETS(&a->decode);
    fold(&a->prefill.cu_seqlens.base, &a->prefill.cu_seqlens.offset);
    fold(&a->prefill.block_states.base, &a->prefill.block_states.offset);
    fold(&a->decode.token_states.base, &a->decode.token_states.offset);
}

void attention_build(struct attention *a, struct fixture *fixture, const struct attention_case *c)
{
    *a = (struct attention){.fixture = fixture, .c = c, .random = random_named(c->name)};
    a->batch = c->batch;
    a->qk_heads = c->qk_heads ? c->qk_heads : c->heads;
    a->e = c->e ? c->e : c->d;
    build_sequences(a);
    build_slopes(a);
    build_tokens(a);
    build_states(a);
    if (c->kept)
        build_kept(a);
    a->prefill = (lattn_prefill_params)LATTN_PREFILL_PARAMS_INIT;
    a->decode = (lattn_decode_params)LATTN_DECODE_PARAMS_INIT;
    FILL_PARAMS(&a->prefill);
    FILL_PARAMS(&a->decode);
    a->prefill.decay = c->vllm ? LATTN_DECAY_VLLM : LATTN_DECAY_RECURRENCE;
    a->prefill.tokens = a->tokens;
    a->decode.tokens = (int32_t)c->tokens;
    if (c->decode && c->final == FINAL_NONE)
        a->decode.state_out = (lattn_state){0};
    if (c->packed)
        a->prefill.cu_seqlens = (lattn_array){a->cu_seqlens.base, BUFFER_GUARD};
    for (int64_t i = 0; c->packed && i < a->batch && a->batch % 2; i++)
        if (a->length[i] > a->prefill.max_tokens)
            a->prefill.max_tokens = a->length[i];
    if (c->decode)
        a->decode.token_states = a->kept.state;
    else if (c->kept)
        a->prefill.block_states = (lattn_array){a->kept_buffer.base, BUFFER_GUARD};
    /* Negative strides reach back as far as the offset, and no farther. */
    if (strcmp(fixture->info.backend, "opencl") != 0 && c->layout != LAYOUT_REVERSED &&
        random_chance(&a->random, 2))
        fold_offsets(a);
}

/* Asks for the workspace and gives exactly that much, between guards. */
static void give_workspace(struct attention *a)
{
    lattn_stream *stream = a->fixture->stream;
    uint64_t bytes = 0, bound = 0;
    if (a->c->decode) {
        assert_ok(lattn_decode_workspace(stream, &a->decode, &bytes));
    } else {
        assert_ok(lattn_prefill_workspace(stream, &a->prefill, &bytes));
        assert_ok(lattn_prefill_workspace_bound(stream, &a->prefill, &bound));
        assert_true(bytes <= bound);
    }
    if (!bytes)
        return;
    buffer_create(&a->work, a->fixture, "workspace", bytes + 2 * BUFFER_GUARD);
    buffer_open(&a->work, BUFFER_GUARD, bytes);
    a->prefill.workspace = (lattn_workspace){a->work.base, BUFFER_GUARD, bytes};
    a->decode.workspace = a->prefill.workspace;
}

static struct buffer *buffer_number(struct attention *a, int i)
{
    struct buffer *all[] = {&a->qkv,        &a->k_buffer,   &a->v_buffer,  &a->o_buffer,
                            &a->slopes,     &a->cu_seqlens, &a->flags,     &a->in_buffer,
                            &a->out_buffer, &a->in_slots,   &a->out_slots, &a->kept_buffer,
                            &a->work};
    return i < (int)(sizeof(all) / sizeof(*all)) ? all[i] : NULL;
}

void attention_run(struct attention *a)
{
    lattn_stream *stream = a->fixture->stream;
    atomic_long *calls = &a->fixture->allocator.calls;
    char text[512] = "";
    if (a->c->decode)
        assert_ok(lattn_decode_prepare(stream, &a->decode));
    else
        assert_ok(lattn_prefill_prepare(stream, &a->prefill));
    give_workspace(a);
    for (int i = 0; buffer_number(a, i); i++)
        buffer_upload(buffer_number(a, i));
    if (a->c->decode)
        assert_ok(lattn_decode_describe(stream, &a->decode, text, sizeof(text)));
    else
        assert_ok(lattn_prefill_describe(stream, &a->prefill, text, sizeof(text)));
    assert_true(text[0] && !strchr(text, '\n'));

    long before = atomic_load(calls);
    if (a->c->decode)
        assert_ok(lattn_decode(stream, &a->decode));
    else
        assert_ok(lattn_prefill(stream, &a->prefill));
    assert_int_equal(atomic_load(calls), before);
    assert_ok(lattn_stream_synchronize(stream));
    for (int i = 0; buffer_number(a, i); i++)
        buffer_check(buffer_number(a, i));
}

void attention_free(struct attention *a)
{
    for (int i = 0; buffer_number(a, i); i++)
        buffer_free(buffer_number(a, i));
    free(a->in.slots);
    free(a->out.slots);
    free(a->kept.slots);
    free(a->first);
    free(a->length);
    free(a->initial);
    free(a->live);
}

void attention_test(struct fixture *fixture, const void *data)
{
    struct attention a;
    attention_build(&a, fixture, data);
    attention_run(&a);
    attention_judge(&a);
    attention_free(&a);
}
