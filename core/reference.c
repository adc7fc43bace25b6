#include "reference.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Columns of a state that are carried at once: few enough for any thread's stack. */
#define COLUMNS 8

/* ---- elements -------------------------------------------------------------------------------- */

static double half_to_double(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    double mantissa = bits & 1023;
    double size;
    if (exponent == 31)
        size = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else
        size = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    return bits >> 15 ? -size : size;
}

/* Rounds to the nearest, ties to even. */
static uint16_t half_from_double(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    int exponent;
    frexp(size, &exponent);
    if (size == 0 || exponent < -13)
        exponent = -13;
    /* A carry out of the mantissa moves on into the exponent, as it should. */
    double units = nearbyint(ldexp(size, 11 - exponent));
    return sign | (uint16_t)(units + 1024.0 * (exponent + 13));
}

static double bfloat_to_double(uint16_t bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &word, sizeof(value));
    return (double)value;
}

/* Rounds to the nearest, ties to even, from the double: by way of float would round twice. */
static uint16_t bfloat_from_double(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7fc0;
    if (isinf(value))
        return sign | 0x7f80;
    int exponent;
    frexp(size, &exponent);
    if (size == 0 || exponent < -125)
        exponent = -125;
    double units = nearbyint(ldexp(size, 8 - exponent)) + 128.0 * (exponent + 125);
    return sign | (units >= 0x7f80 ? 0x7f80 : (uint16_t)units);
}

static double load(const void *base, int type, int64_t index)
{
    if (type == LATTN_TYPE_F32)
        return (double)((const float *)base)[index];
    uint16_t bits = ((const uint16_t *)base)[index];
    return type == LATTN_TYPE_F16 ? half_to_double(bits) : bfloat_to_double(bits);
}

static void store(void *base, int type, int64_t index, double value)
{
    if (type == LATTN_TYPE_F32)
        ((float *)base)[index] = (float)value;
    else
        ((uint16_t *)base)[index] =
            type == LATTN_TYPE_F16 ? half_from_double(value) : bfloat_from_double(value);
}

/* ---- sequences and slots --------------------------------------------------------------------- */

struct sequence {
    int64_t number;
    int64_t first, length; /* tokens */
    bool padding;
    bool starts;     /* from a state in state_in */
    int64_t in, out; /* slots */
};

static int64_t slot_of(const void *slots, int64_t offset, bool given, bool wide, int64_t sequence)
{
    if (!given)
        return sequence;
    return wide ? ((const int64_t *)slots)[offset + sequence]
                : ((const int32_t *)slots)[offset + sequence];
}

static struct sequence find_sequence(void *const *memories, const struct lattn_args *args,
                                     int64_t number)
{
    struct sequence sequence = {.number = number, .length = args->tokens};
    if (args->flags & LATTN_FLAG_PACKED) {
        const int32_t *ends = (const int32_t *)memories[LATTN_MEM_CU_SEQLENS] + args->cu_seqlens;
        sequence.first = ends[number];
        sequence.length = ends[number + 1] - ends[number];
    }
    sequence.starts = args->flags & LATTN_FLAG_STATE_IN;
    if (args->flags & LATTN_FLAG_HAS_INITIAL)
        sequence.starts =
            ((const uint8_t *)memories[LATTN_MEM_HAS_INITIAL])[args->has_initial + number];
    if (sequence.starts) {
        sequence.in =
            slot_of(memories[LATTN_MEM_SLOT_IN], args->slot_in, args->flags & LATTN_FLAG_SLOT_IN,
                    args->flags & LATTN_FLAG_SLOT_IN_64, number);
        sequence.padding = sequence.in < 0 || sequence.in >= args->in.slots;
    }
    if (args->flags & LATTN_FLAG_STATE_OUT) {
        sequence.out =
            slot_of(memories[LATTN_MEM_SLOT_OUT], args->slot_out, args->flags & LATTN_FLAG_SLOT_OUT,
                    args->flags & LATTN_FLAG_SLOT_OUT_64, number);
        sequence.padding = sequence.padding || sequence.out < 0 || sequence.out >= args->out.slots;
    }
    return sequence;
}

static int64_t token_at(const struct lattn_token_layout *layout, const struct sequence *sequence,
                        int64_t head, int64_t token)
{
    return layout->offset + sequence->number * layout->batch + head * layout->head +
           (sequence->first + token) * layout->token;
}

/* ---- the recurrence -------------------------------------------------------------------------- */

/* A few columns, from `e` on, of one head's state as it moves through a sequence. */
struct walk {
    void *const *memories;
    const struct lattn_args *args;
    int type; /* of q, k, v, o */
    const struct sequence *sequence;
    int64_t head;
    int e, columns;
    double decay;
    double state[LATTN_MAX_DIM][COLUMNS];  /* S_t; under the vllm rule, of this block alone */
    double prefix[LATTN_MAX_DIM][COLUMNS]; /* vllm rule: the state before this block */
};

typedef double columns[COLUMNS];

static void load_state(struct walk *walk, columns *state)
{
    const struct lattn_state_layout *in = &walk->args->in;
    for (int i = 0; i < walk->args->d; i++) {
        for (int c = 0; c < walk->columns; c++) {
            int64_t at = in->offset + walk->sequence->in * in->slot + walk->head * in->head +
                         i * in->d + (walk->e + c) * in->e;
            state[i][c] =
                walk->sequence->starts ? load(walk->memories[LATTN_MEM_STATE_IN], in->type, at) : 0;
        }
    }
}

static void store_state(const struct walk *walk, columns *state, enum lattn_memory_slot memory,
                        const struct lattn_state_layout *to, int64_t slot)
{
    for (int i = 0; i < walk->args->d; i++) {
        for (int c = 0; c < walk->columns; c++) {
            int64_t at = to->offset + slot * to->slot + walk->head * to->head + i * to->d +
                         (walk->e + c) * to->e;
            store(walk->memories[memory], to->type, at, state[i][c]);
        }
    }
}

/* The state moves on by one token, and its product with q goes to `o`. */
static void step(struct walk *walk, int64_t token, double o[COLUMNS])
{
    const struct lattn_args *args = walk->args;
    int64_t qk_head = walk->head / args->group;
    int64_t q = token_at(&args->q, walk->sequence, qk_head, token);
    int64_t k = token_at(&args->k, walk->sequence, qk_head, token);
    int64_t v = token_at(&args->v, walk->sequence, walk->head, token) + walk->e;
    double values[COLUMNS];
    for (int c = 0; c < walk->columns; c++) {
        values[c] = load(walk->memories[LATTN_MEM_V], walk->type, v + c);
        o[c] = 0;
    }
    for (int i = 0; i < args->d; i++) {
        double key = load(walk->memories[LATTN_MEM_K], walk->type, k + i);
        double query = load(walk->memories[LATTN_MEM_Q], walk->type, q + i);
        for (int c = 0; c < walk->columns; c++) {
            walk->state[i][c] = walk->decay * walk->state[i][c] + key * values[c];
            o[c] += query * walk->state[i][c];
        }
    }
}

static void store_output(const struct walk *walk, int64_t token, const double o[COLUMNS])
{
    const struct lattn_args *args = walk->args;
    int64_t at = token_at(&args->o, walk->sequence, walk->head, token) + walk->e;
    for (int c = 0; c < walk->columns; c++)
        store(walk->memories[LATTN_MEM_O], walk->type, at + c, (double)args->scale * o[c]);
}

/* The vllm rule's term from before the block: exp(-s t) q P, t counted within the block. */
static void add_prefix(const struct walk *walk, int64_t token, double o[COLUMNS])
{
    const struct lattn_args *args = walk->args;
    int64_t q = token_at(&args->q, walk->sequence, walk->head / args->group, token);
    double weight = pow(walk->decay, (double)(token % LATTN_BLOCK));
    for (int c = 0; c < walk->columns; c++) {
        double sum = 0;
        for (int i = 0; i < args->d; i++)
            sum += load(walk->memories[LATTN_MEM_Q], walk->type, q + i) * walk->prefix[i][c];
        o[c] += weight * sum;
    }
}

/* The state before a token, of all tokens so far. */
static void join(const struct walk *walk, int64_t in_block, columns *whole)
{
    double weight = pow(walk->decay, (double)in_block);
    for (int i = 0; i < walk->args->d; i++) {
        for (int c = 0; c < walk->columns; c++)
            whole[i][c] = weight * walk->prefix[i][c] + walk->state[i][c];
    }
}

/* Block states are contiguous float32; lattn.h says which row is whose. */
static void keep_block(struct walk *walk, columns *state, int64_t block)
{
    const struct lattn_args *args = walk->args;
    int64_t size = (int64_t)args->d * args->e;
    int64_t number = walk->sequence->number;
    struct lattn_state_layout to = {.offset = args->kept.offset, .d = args->e, .e = 1};
    int64_t row;
    if (args->flags & LATTN_FLAG_PACKED) {
        to.slot = size * args->heads;
        to.head = size;
        row = walk->sequence->first / LATTN_BLOCK + 2 * number + block;
    } else {
        int64_t rows = (args->tokens + LATTN_BLOCK - 1) / LATTN_BLOCK + 1;
        to.slot = size;
        to.head = size * rows;
        row = number * args->heads * rows + block;
    }
    store_state(walk, state, LATTN_MEM_KEPT, &to, row);
}

static void walk_prefill(struct walk *walk)
{
    const struct lattn_args *args = walk->args;
    const bool vllm = args->flags & LATTN_FLAG_VLLM;
    const bool kept = args->flags & LATTN_FLAG_KEPT;
    const int64_t length = walk->sequence->length;
    memset(walk->prefix, 0, sizeof(walk->prefix));
    load_state(walk, walk->state);
    columns whole[LATTN_MAX_DIM];
    int64_t in_block = 0;
    for (int64_t token = 0; token < length; token++, in_block++) {
        if (token % LATTN_BLOCK == 0) {
            join(walk, in_block, whole);
            if (kept)
                keep_block(walk, whole, token / LATTN_BLOCK);
            if (vllm) {
                memcpy(walk->prefix, whole, sizeof(whole));
                memset(walk->state, 0, sizeof(walk->state));
            }
            in_block = 0;
        }
        double o[COLUMNS];
        step(walk, token, o);
        if (vllm)
            add_prefix(walk, token, o);
        store_output(walk, token, o);
    }
    join(walk, in_block, whole);
    if (kept)
        keep_block(walk, whole, (length + LATTN_BLOCK - 1) / LATTN_BLOCK);
    if (args->flags & LATTN_FLAG_STATE_OUT)
        store_state(walk, whole, LATTN_MEM_STATE_OUT, &args->out, walk->sequence->out);
}

static void walk_decode(struct walk *walk)
{
    const struct lattn_args *args = walk->args;
    load_state(walk, walk->state);
    for (int64_t token = 0; token < args->tokens; token++) {
        double o[COLUMNS];
        step(walk, token, o);
        store_output(walk, token, o);
        if (args->flags & LATTN_FLAG_KEPT)
            store_state(walk, walk->state, LATTN_MEM_KEPT, &args->kept,
                        walk->sequence->number * args->tokens + token);
    }
    store_state(walk, walk->state, LATTN_MEM_STATE_OUT, &args->out, walk->sequence->out);
}

static void zero_outputs(struct walk *walk)
{
    static const double zeros[COLUMNS];
    for (int64_t token = 0; token < walk->sequence->length; token++)
        store_output(walk, token, zeros);
}

static void for_all(void *const *memories, const struct lattn_args *args, int type,
                    void (*visit)(struct walk *))
{
    const float *slopes = (const float *)memories[LATTN_MEM_SLOPES] + args->slopes;
    struct walk walk = {.memories = memories, .args = args, .type = type};
    for (int64_t i = 0; i < args->sequences; i++) {
        const struct sequence sequence = find_sequence(memories, args, i);
        walk.sequence = &sequence;
        for (walk.head = 0; walk.head < args->heads; walk.head++) {
            walk.decay = sequence.length ? exp(-(double)slopes[walk.head]) : 1;
            for (walk.e = 0; walk.e < args->e; walk.e += COLUMNS) {
                walk.columns = args->e - walk.e < COLUMNS ? args->e - walk.e : COLUMNS;
                if (sequence.padding)
                    zero_outputs(&walk);
                else
                    visit(&walk);
            }
        }
    }
}

void lattn_reference_prefill(void *const *memories, const struct lattn_args *args, int type)
{
    for_all(memories, args, type, walk_prefill);
}

void lattn_reference_decode(void *const *memories, const struct lattn_args *args, int type)
{
    for_all(memories, args, type, walk_decode);
}
