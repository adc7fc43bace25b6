/* The arithmetic of blocks, segments and tiles: how many there are. */
#ifndef LATTN_CORE_TILING_H
#define LATTN_CORE_TILING_H

#include "catalog.h"
#include "request.h"

/* The segment length that stands for "each sequence is one segment": more tokens than any has, and
 * a multiple of LATTN_BLOCK like every other. */
#define LATTN_WHOLE_SEQUENCE 0x7fffff00

static inline int64_t lattn_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Numbers of segments there are for a segment length, over all sequences (kernels/args.h says how
 * they are numbered). */
int64_t lattn_segment_count(const struct lattn_request *request, int32_t segment);

/* Groups in a launch of the row; UINT64_MAX if that many cannot be counted. */
uint64_t lattn_groups_of(const struct lattn_kernel_row *row, const struct lattn_request *request,
                         int32_t segment);

/* Bytes of `count` float32 states for each head. */
lattn_status lattn_states_size(int64_t count, int64_t heads, int64_t d, int64_t e, uint64_t *bytes);

/* Bytes of WORK for a chain (LATTN_CAN_CHAIN) of so many groups: a flag for each and a count, then
 * a padded state for each. */
lattn_status lattn_chain_size(const struct lattn_kernel_row *row, uint64_t groups, uint64_t *bytes);

#endif
