/* A small continuous-batching engine for the linear-attention layers of a hybrid model.
 *
 * Each request owns one slot of every layer's state pool. A step takes rows of any lengths, whole
 * prompts and single tokens together, in one packed call a layer. Slots are reused as they are:
 * has_initial says which rows start from nothing. */
#ifndef ENGINE_H
#define ENGINE_H

#include <lattn/lattn.h>
#include <stdbool.h>

enum {
    LAYERS = 2,
    HEADS = 8,
    DIM = 64, /* of q, k and v alike */
    SLOTS = 8,
    MOST_ROWS = SLOTS,
    MOST_TOKENS = 2048, /* in a step */
    DRAFT = 4,          /* tokens of a speculative step */
};

#define TOKEN_SIZE (HEADS * DIM)       /* floats of one token's q, k, v or o */
#define STATE_SIZE (HEADS * DIM * DIM) /* floats of one slot */
#define STATE_BYTES (STATE_SIZE * sizeof(float))

/* A request's part of a step: `count` tokens from its position `first` on. */
struct row {
    int request;
    int slot;
    int first;
    int count;
};

struct engine {
    lattn_device *device;
    lattn_stream *stream;
    void *pool[LAYERS]; /* float32 [SLOTS + 1, HEADS, DIM, DIM]: the last is for snapshots */
    void *token_states[LAYERS]; /* float32 [DRAFT, HEADS, DIM, DIM] */
    void *q, *k, *v, *o;        /* float32 [MOST_TOKENS, HEADS, DIM] */
    void *slopes;               /* float32 [HEADS] */
    void *cu_seqlens, *slot_idx, *has_initial;
    void *workspace;
    uint64_t workspace_size;
    float *host; /* a step's q, k, v or o */
};

/* Exits with the library's message: fit for an example, not for a library. */
void must(lattn_status status);

void engine_open(struct engine *engine, lattn_context *context, int32_t device);
void engine_close(struct engine *engine);

/* Runs all layers on `rows`. Calls `visit` with each layer's outputs, [tokens][HEADS][DIM]. */
typedef void (*visit_fn)(void *user, int layer, const struct row *rows, int count, const float *o);
void engine_step(struct engine *engine, const struct row *rows, int count, visit_fn visit,
                 void *user);

/* Runs DRAFT tokens of one request and keeps the state after each; `accepted` of them stand. */
void engine_speculate(struct engine *engine, const struct row *row, int accepted, visit_fn visit,
                      void *user);

/* Copies a slot's states of all layers to another: a prefix kept, or resumed. */
void engine_copy_slot(struct engine *engine, int to, int from);

/* The model's stand-in for projections: fixed pseudo-random values in (-1, 1). */
enum part { PART_Q, PART_K, PART_V };
void model_fill(float *to, enum part part, int layer, int request, int first, int count);
void model_slopes(float slopes[HEADS]);

#endif
