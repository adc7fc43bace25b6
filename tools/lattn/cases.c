#include "cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"
#include "random.h"

#define F32 (1u << LATTN_F32)
#define F16 (1u << LATTN_F16)
#define BF16 (1u << LATTN_BF16)
#define ALL (F32 | F16 | BF16)

#define SHAPE(b, h, n, d_, e_) .batch = b, .heads = h, .qk_heads = h, .tokens = n, .d = d_, .e = e_
#define GROUPED(b, h, qk, n, d_, e_)                                                               \
    .batch = b, .heads = h, .qk_heads = qk, .tokens = n, .d = d_, .e = e_

const struct verify_case verify_cases[] = {
    {"one token", F32 | BF16, false, {SHAPE(2, 3, 1, 64, 64), .has_initial = true}},
    {"one block", ALL, false, {SHAPE(1, 2, 256, 64, 64), .keep_blocks = true}},
    {"one block and a token", F32, false, {SHAPE(1, 2, 257, 128, 128)}},
    {"d = e = 64", ALL, false, {SHAPE(2, 2, 1000, 64, 64)}},
    {"d = e = 128, history",
     ALL,
     false,
     {SHAPE(1, 2, 600, 128, 128), .has_initial = true, .keep_blocks = true}},
    {"d = 80, e = 48, history", ALL, false, {SHAPE(1, 3, 300, 80, 48), .has_initial = true}},
    {"d = 33, e = 17", F32 | F16, false, {SHAPE(1, 2, 130, 33, 17)}},
    {"d = e = 256", F32 | BF16, false, {SHAPE(1, 1, 300, 256, 256)}},
    {"grouped heads", ALL, false, {GROUPED(1, 8, 2, 520, 64, 64)}},
    {"extreme slopes", ALL, true, {SHAPE(1, 4, 700, 64, 64), .has_initial = true}},
    {"packed", ALL, false, {SHAPE(5, 2, 700, 64, 64), .packed = true, .has_initial = true}},
    {"packed, d = e = 128", F32 | BF16, false, {SHAPE(5, 2, 700, 128, 128), .packed = true}},
    {"long", F32 | BF16, false, {SHAPE(1, 1, 4096, 64, 64)}},
    {"vllm decay",
     ALL,
     false,
     {SHAPE(1, 2, 600, 128, 128), .decay = LATTN_DECAY_VLLM, .has_initial = true,
      .keep_blocks = true}},
    {"tf32", F32, false, {SHAPE(1, 2, 600, 128, 128), .precision = LATTN_PRECISION_TF32}},
    {"one token",
     ALL,
     false,
     {.operation = CALL_DECODE, SHAPE(5, 4, 1, 128, 128), .slots = 7, .slot_type = LATTN_I64}},
    {"d = e = 64",
     ALL,
     false,
     {.operation = CALL_DECODE, SHAPE(33, 2, 1, 64, 64), .slots = 40, .slot_type = LATTN_I32}},
    {"d = 80, e = 48",
     F32 | BF16,
     false,
     {.operation = CALL_DECODE, SHAPE(3, 2, 1, 80, 48), .slots = 4, .slot_type = LATTN_I32}},
    {"grouped heads",
     F32 | BF16,
     false,
     {.operation = CALL_DECODE, GROUPED(3, 8, 2, 1, 64, 64), .slots = 4, .slot_type = LATTN_I32}},
    {"extreme slopes",
     F32 | BF16,
     true,
     {.operation = CALL_DECODE, SHAPE(3, 4, 1, 64, 64), .slots = 3, .slot_type = LATTN_I64}},
    {"8 tokens",
     ALL,
     false,
     {.operation = CALL_DECODE, SHAPE(3, 2, 8, 128, 128), .slots = 5, .slot_type = LATTN_I32}},
};

const size_t verify_case_count = sizeof(verify_cases) / sizeof(*verify_cases);

static void fill_slopes(const struct call *call, bool extreme, float *slopes)
{
    static const float extremes[] = {0, 1e-6f, 90, 1e4f};
    for (int32_t h = 0; h < call->heads; h++)
        slopes[h] = extreme ? extremes[h % 4] : exp2f(-8.0f * (float)(h + 1) / (float)call->heads);
}

/* Lengths from empty to several blocks; the last sequence takes what is left. */
static void fill_cu_seqlens(const struct call *call, int32_t *ends)
{
    static const int32_t lengths[] = {1, 0, 257, 100};
    ends[0] = 0;
    for (int64_t i = 0; i < call->batch; i++) {
        int64_t end = ends[i] + lengths[i % 4];
        ends[i + 1] = (int32_t)(i + 1 < call->batch && end < call->tokens ? end : call->tokens);
    }
}

/* Each row a slot of its own, from the last down, and one row in three a padding row. */
static void fill_slots(const struct call *call, void *slots)
{
    for (int64_t row = 0; row < call->batch; row++) {
        int64_t slot = row % 3 == 1 ? (row % 2 ? -1 : call->slots) : call->slots - 1 - row;
        if (call->slot_type == LATTN_I64)
            ((int64_t *)slots)[row] = slot;
        else
            ((int32_t *)slots)[row] = (int32_t)slot;
    }
}

/* States that a row uses are random, the others NaN. */
static void fill_pool(const struct call *call, const void *slots, struct random *random, void *pool)
{
    uint64_t each = (uint64_t)call->heads * (uint64_t)call->d * (uint64_t)call->e;
    size_t bytes = each * dtype_size(call->state_dtype);
    memset(pool, 0xff, bytes * (size_t)call->slots);
    for (int64_t row = 0; row < call->batch; row++) {
        int64_t slot;
        if (call_slot(call, slots, row, &slot))
            random_normal(random, call->state_dtype, (char *)pool + bytes * (size_t)slot, each, 1);
    }
}

static void fill(const struct call *call, bool extreme_slopes, struct random *random,
                 enum call_part part, void *data[CALL_PARTS])
{
    uint64_t bytes = call_bytes(call, part), count = bytes / dtype_size(call->dtype);
    switch (part) {
    case CALL_Q:
    case CALL_V:
        random_normal(random, call->dtype, data[part], count, 1);
        break;
    case CALL_K:
        random_normal(random, call->dtype, data[part], count, 1 / sqrt(call->d));
        break;
    case CALL_SLOPES:
        fill_slopes(call, extreme_slopes, data[part]);
        break;
    case CALL_CU_SEQLENS:
        fill_cu_seqlens(call, data[part]);
        break;
    case CALL_SLOT_IDX:
        fill_slots(call, data[part]);
        break;
    default:
        if (call->operation == CALL_DECODE)
            fill_pool(call, data[CALL_SLOT_IDX], random, data[part]);
        else
            random_normal(random, call->state_dtype, data[part],
                          bytes / dtype_size(call->state_dtype), 1);
    }
}

bool case_inputs(const struct call *call, bool extreme_slopes, uint64_t seed,
                 void *data[CALL_PARTS])
{
    struct random random = {seed};
    for (int part = CALL_Q; part <= CALL_STATE_IN; part++) {
        uint64_t bytes = call_bytes(call, (enum call_part)part);
        if (bytes == 0)
            continue;
        data[part] = bytes < SIZE_MAX ? malloc((size_t)bytes) : NULL;
        if (!data[part])
            return false;
        fill(call, extreme_slopes, &random, (enum call_part)part, data);
    }
    return true;
}
