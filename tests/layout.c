/* Where the elements of a case lie. */
#include "attention.h"
#include "number.h"

uint64_t token_offset(const struct attention *a, const struct token_array *array, int64_t i,
                      int64_t head, int64_t t)
{
    int64_t at = array->origin + head * array->head;
    if (a->c->packed)
        at += (a->first[i] + t) * array->token;
    else
        at += i * array->batch + t * array->token;
    return (uint64_t)at * number_size(a->c->dtype);
}

uint64_t state_offset(const struct state_array *array, int64_t row, int64_t head, int64_t d,
                      int64_t e)
{
    int64_t at =
        array->origin + row * array->slot + head * array->head + d * array->d + e * array->e;
    return (uint64_t)at * number_size(array->state.dtype);
}

int64_t kept_count(const struct attention *a, int64_t i)
{
    return a->c->decode ? a->tokens : (a->length[i] + ATTENTION_BLOCK - 1) / ATTENTION_BLOCK + 1;
}

uint64_t kept_offset(const struct attention *a, int64_t i, int64_t head, int64_t step, int64_t d,
                     int64_t e)
{
    int64_t heads = a->c->heads;
    if (a->c->decode)
        return state_offset(&a->kept, i * a->tokens + step, head, d, e);
    int64_t row = a->c->packed ? (a->first[i] / ATTENTION_BLOCK + 2 * i + step) * heads + head
                               : (i * heads + head) * kept_count(a, i) + step;
    return BUFFER_GUARD + 4 * (uint64_t)((row * a->c->d + d) * a->e + e);
}

int64_t lay_out_tokens(struct token_array *array, enum layout layout, bool packed, int64_t batch,
                       int64_t heads, int64_t tokens, int64_t dim)
{
    int64_t odd = layout == LAYOUT_PADDED, wide = layout == LAYOUT_PADDED_ALIGNED;
    bool token_major = packed != (layout == LAYOUT_OTHER);
    int64_t row = dim + 3 * odd + 8 * wide;
    array->dim = dim;
    if (token_major) {
        array->head = row;
        array->token = heads * row + 5 * odd + 16 * wide;
        array->batch = tokens * array->token + 7 * odd;
    } else {
        array->token = row;
        array->head = tokens * row + 5 * odd + 16 * wide;
        array->batch = heads * array->head + 7 * odd;
    }
    if (layout != LAYOUT_DEFAULT)
        array->tensor = (lattn_tensor){
            .stride_batch = array->batch, .stride_head = array->head, .stride_token = array->token};
    return batch * array->batch;
}

int64_t lay_out_states(struct state_array *array, enum state_layout layout, int64_t slots,
                       int64_t heads, int64_t d, int64_t e)
{
    int64_t span = 0;
    switch (layout) {
    case STATE_TRANSPOSED:
    case STATE_GAPS_TRANSPOSED:
        array->d = 1;
        array->e = d;
        array->head = d * e;
        break;
    case STATE_PADDED:
        array->e = 1;
        array->d = e + 3;
        array->head = d * (e + 3) + 1;
        break;
    case STATE_SPREAD:
        array->d = 2;
        array->e = 2 * d + 1;
        array->slot = e * (2 * d + 1) + 2;
        array->head = slots * array->slot;
        span = heads * array->head;
        break;
    default:
        array->e = 1;
        array->d = e;
        array->head = d * e;
        break;
    }
    if (!span) {
        array->slot = heads * array->head;
        if (layout == STATE_PADDED)
            array->slot += 5;
        if (layout == STATE_GAPS || layout == STATE_GAPS_TRANSPOSED)
            array->slot = (array->slot + 7) / 8 * 8 + 64;
        span = slots * array->slot;
    }
    if (layout != STATE_DEFAULT) {
        array->state.stride_slot = array->slot;
        array->state.stride_head = array->head;
        array->state.stride_d = array->d;
        array->state.stride_e = array->e;
    }
    return span;
}
