#include "engine.h"

#include <stdio.h>
#include <stdlib.h>

void must(lattn_status status)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", lattn_status_name(status), lattn_error_message());
        exit(1);
    }
}

static void *device_floats(struct engine *engine, uint64_t count)
{
    void *base;
    must(lattn_memory_alloc(engine->device, count * sizeof(float), &base));
    return base;
}

/* What every step's call has; the rest is filled per step. */
static lattn_prefill_params step_params(const struct engine *engine, int layer)
{
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.heads = HEADS;
    params.d = DIM;
    params.q.base = engine->q;
    params.k.base = engine->k;
    params.v.base = engine->v;
    params.o.base = engine->o;
    params.slopes.base = engine->slopes;
    params.cu_seqlens.base = engine->cu_seqlens;
    params.has_initial.base = engine->has_initial;
    params.state_in.base = engine->pool[layer];
    params.state_in.slots = SLOTS;
    params.state_in.slot_idx.base = engine->slot_idx;
    params.state_out = params.state_in;
    params.workspace.base = engine->workspace;
    params.workspace.size = engine->workspace_size;
    return params;
}

static lattn_decode_params draft_params(const struct engine *engine, int layer)
{
    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    params.batch = 1;
    params.tokens = DRAFT;
    params.heads = HEADS;
    params.d = DIM;
    /* The engine's buffers are [token, head, dim]. */
    params.q = (lattn_tensor){engine->q, 0, DRAFT * TOKEN_SIZE, DIM, TOKEN_SIZE};
    params.k = params.v = params.o = params.q;
    params.k.base = engine->k;
    params.v.base = engine->v;
    params.o.base = engine->o;
    params.slopes.base = engine->slopes;
    params.state_in.base = engine->pool[layer];
    params.state_in.slots = SLOTS;
    params.state_in.slot_idx.base = engine->slot_idx;
    params.token_states.base = engine->token_states[layer];
    return params;
}

void engine_open(struct engine *engine, lattn_context *context, int32_t device)
{
    *engine = (struct engine){0};
    must(lattn_device_open(context, device, &engine->device));
    must(lattn_stream_create(engine->device, &engine->stream));
    for (int i = 0; i < LAYERS; i++) {
        engine->pool[i] = device_floats(engine, (uint64_t)(SLOTS + 1) * STATE_SIZE);
        engine->token_states[i] = device_floats(engine, (uint64_t)DRAFT * STATE_SIZE);
        /* Slots need no clearing. NaN here shows that nothing of an unused one is ever read. */
        must(lattn_memory_fill(engine->stream, engine->pool[i], 0, 0xff,
                               (uint64_t)(SLOTS + 1) * STATE_BYTES));
    }
    engine->q = device_floats(engine, MOST_TOKENS * TOKEN_SIZE);
    engine->k = device_floats(engine, MOST_TOKENS * TOKEN_SIZE);
    engine->v = device_floats(engine, MOST_TOKENS * TOKEN_SIZE);
    engine->o = device_floats(engine, MOST_TOKENS * TOKEN_SIZE);
    engine->slopes = device_floats(engine, HEADS);
    engine->cu_seqlens = device_floats(engine, MOST_ROWS + 1);
    engine->slot_idx = device_floats(engine, MOST_ROWS);
    engine->has_initial = device_floats(engine, MOST_ROWS);
    engine->host = malloc(sizeof(float) * MOST_TOKENS * TOKEN_SIZE);
    if (!engine->host)
        must(LATTN_ERROR_OUT_OF_MEMORY);
    float slopes[HEADS];
    model_slopes(slopes);
    must(lattn_memory_upload(engine->stream, engine->slopes, 0, slopes, sizeof(slopes)));

    /* One workspace, large enough for every step, and every kernel ready before the first. */
    lattn_prefill_params largest = step_params(engine, 0);
    largest.batch = MOST_ROWS;
    largest.tokens = MOST_TOKENS;
    must(lattn_prefill_workspace_bound(engine->stream, &largest, &engine->workspace_size));
    must(lattn_memory_alloc(engine->device, engine->workspace_size, &engine->workspace));
    must(lattn_prefill_prepare(engine->stream, &largest));
    lattn_decode_params draft = draft_params(engine, 0);
    must(lattn_decode_prepare(engine->stream, &draft));
}

void engine_close(struct engine *engine)
{
    void *memories[] = {engine->q,        engine->k,           engine->v,
                        engine->o,        engine->slopes,      engine->cu_seqlens,
                        engine->slot_idx, engine->has_initial, engine->workspace};
    for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); i++)
        lattn_memory_free(engine->device, memories[i]);
    for (int i = 0; i < LAYERS; i++) {
        lattn_memory_free(engine->device, engine->pool[i]);
        lattn_memory_free(engine->device, engine->token_states[i]);
    }
    free(engine->host);
    lattn_stream_destroy(engine->stream);
    lattn_device_close(engine->device);
}

static void upload_part(struct engine *engine, void *to, enum part part, int layer,
                        const struct row *rows, int count)
{
    uint64_t used = 0;
    for (int i = 0; i < count; i++) {
        model_fill(engine->host + used, part, layer, rows[i].request, rows[i].first, rows[i].count);
        used += (uint64_t)rows[i].count * TOKEN_SIZE;
    }
    must(lattn_memory_upload(engine->stream, to, 0, engine->host, used * sizeof(float)));
}

static void upload_tokens(struct engine *engine, int layer, const struct row *rows, int count)
{
    upload_part(engine, engine->q, PART_Q, layer, rows, count);
    upload_part(engine, engine->k, PART_K, layer, rows, count);
    upload_part(engine, engine->v, PART_V, layer, rows, count);
}

static void download_outputs(struct engine *engine, int tokens)
{
    must(lattn_memory_download(engine->stream, engine->host, engine->o, 0,
                               (uint64_t)tokens * TOKEN_SIZE * sizeof(float)));
}

void engine_step(struct engine *engine, const struct row *rows, int count, visit_fn visit,
                 void *user)
{
    int32_t ends[MOST_ROWS + 1] = {0}, slots[MOST_ROWS];
    uint8_t has_initial[MOST_ROWS];
    for (int i = 0; i < count; i++) {
        ends[i + 1] = ends[i] + rows[i].count;
        slots[i] = rows[i].slot;
        has_initial[i] = rows[i].first > 0;
    }
    const size_t used = (size_t)count;
    must(lattn_memory_upload(engine->stream, engine->cu_seqlens, 0, ends,
                             (used + 1) * sizeof(ends[0])));
    must(lattn_memory_upload(engine->stream, engine->slot_idx, 0, slots, used * sizeof(slots[0])));
    must(lattn_memory_upload(engine->stream, engine->has_initial, 0, has_initial, used));
    for (int layer = 0; layer < LAYERS; layer++) {
        upload_tokens(engine, layer, rows, count);
        lattn_prefill_params params = step_params(engine, layer);
        params.batch = count;
        params.tokens = ends[count];
        must(lattn_prefill(engine->stream, &params));
        download_outputs(engine, ends[count]);
        visit(user, layer, rows, count, engine->host);
    }
}

void engine_speculate(struct engine *engine, const struct row *row, int accepted, visit_fn visit,
                      void *user)
{
    const struct row stands = {row->request, row->slot, row->first, accepted};
    const int32_t slot = row->slot;
    must(lattn_memory_upload(engine->stream, engine->slot_idx, 0, &slot, sizeof(slot)));
    for (int layer = 0; layer < LAYERS; layer++) {
        upload_tokens(engine, layer, row, 1);
        lattn_decode_params params = draft_params(engine, layer);
        must(lattn_decode(engine->stream, &params));
        download_outputs(engine, accepted);
        visit(user, layer, &stands, 1, engine->host);
        /* Rolled back: the slot takes the state after the last token that stands. */
        must(lattn_memory_copy(engine->stream, engine->pool[layer], (uint64_t)slot * STATE_BYTES,
                               engine->token_states[layer], (uint64_t)(accepted - 1) * STATE_BYTES,
                               STATE_BYTES));
    }
}

void engine_copy_slot(struct engine *engine, int to, int from)
{
    for (int layer = 0; layer < LAYERS; layer++)
        must(lattn_memory_copy(engine->stream, engine->pool[layer], (uint64_t)to * STATE_BYTES,
                               engine->pool[layer], (uint64_t)from * STATE_BYTES, STATE_BYTES));
}
