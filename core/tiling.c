#include "tiling.h"

#include "error.h"

int64_t lattn_segment_count(const struct lattn_request *request, int32_t segment)
{
    const struct lattn_args *args = &request->args;
    if (!args->sequences)
        return 0;
    if (args->flags & LATTN_FLAG_PACKED)
        return args->tokens / segment + args->sequences;
    /* A whole sequence counts even when empty: its states are still to be passed on. */
    if (segment == LATTN_WHOLE_SEQUENCE)
        return args->sequences;
    return lattn_ceil_div(args->tokens, segment) * args->sequences;
}

static int64_t tiles(int64_t extent, uint16_t tile)
{
    return tile ? lattn_ceil_div(extent, tile) : 1;
}

uint64_t lattn_groups_of(const struct lattn_kernel_row *row, const struct lattn_request *request,
                         int32_t segment)
{
    const struct lattn_args *args = &request->args;
    bool whole = row->pass == LATTN_PASS_SCAN || row->pass == LATTN_PASS_DECODE;
    /* No overflow up to here: 2^16 tiles, 2^31 heads. */
    int64_t each = tiles(args->e, row->e_tile) * tiles(args->d, row->d_tile) * args->heads;
    int64_t count = whole ? args->sequences : lattn_segment_count(request, segment);
    int64_t groups;
    if (row->pass == LATTN_PASS_OUTPUT &&
        __builtin_mul_overflow(count, tiles(segment, row->token_tile), &count))
        return UINT64_MAX;
    return __builtin_mul_overflow(each, count, &groups) ? UINT64_MAX : (uint64_t)groups;
}

lattn_status lattn_states_size(int64_t count, int64_t heads, int64_t d, int64_t e, uint64_t *bytes)
{
    int64_t size;
    if (__builtin_mul_overflow(count, heads * d * e * (int64_t)sizeof(float), &size))
        return lattn_fail(LATTN_ERROR_UNSUPPORTED,
                          "the prefix states of %lld segments and %lld heads pass 2^63 bytes",
                          (long long)count, (long long)heads);
    *bytes = (uint64_t)size;
    return LATTN_OK;
}

lattn_status lattn_chain_size(const struct lattn_kernel_row *row, uint64_t groups, uint64_t *bytes)
{
    uint64_t state = (uint64_t)row->d_max * (row->e_tile ? row->e_tile : row->e_max);
    int64_t size;
    /* A flag takes as much as an element; states begin at a multiple of 16 bytes. */
    if (__builtin_mul_overflow(groups, (state + 1) * sizeof(float), &size) ||
        __builtin_add_overflow(size, 16, &size))
        return lattn_fail(LATTN_ERROR_UNSUPPORTED, "the states of %llu groups pass 2^63 bytes",
                          (unsigned long long)groups);
    *bytes = groups ? (groups / 4 + 1) * 16 + groups * state * sizeof(float) : 0;
    return LATTN_OK;
}
