/* The work of a group of the kernels that have no tiles of d or of tokens. A grid has fewer than
 * 2^31 groups, so 32-bit division does, which is many times as fast. */
#ifndef LATTN_GROUP_CUH
#define LATTN_GROUP_CUH

#include "kernels/tile.h"

/* Group `number` of a kernel whose groups have `columns` columns of e. */
static __device__ __forceinline__ void lattn_group_numbered(const struct lattn_args &a, int columns,
                                                            unsigned int number,
                                                            struct lattn_group *group)
{
    const unsigned int e_tiles = (unsigned int)lattn_tiles(a.e, columns);
    const unsigned int each = e_tiles * (unsigned int)a.heads;
    const unsigned int segment = number / each, rest = number - segment * each;
    const unsigned int head =
        e_tiles & (e_tiles - 1) ? rest / e_tiles : rest >> (31 - __clz((int)e_tiles));
    group->e_tile = (int)(rest - head * e_tiles);
    group->d_tile = group->token_tile = 0;
    group->head = (int)head;
    group->segment = segment;
}

static __device__ __forceinline__ void lattn_group_here(const struct lattn_args &a, int columns,
                                                        struct lattn_group *group)
{
    lattn_group_numbered(a, columns, blockIdx.x, group);
}

#endif
