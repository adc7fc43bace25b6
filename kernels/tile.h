/* How a group finds its work, and the decay. */
#ifndef LATTN_TILE_H
#define LATTN_TILE_H

#include "dialect.h"

/* The work of a group: its number counts, fastest first, tiles of e, of d, of tokens, heads, and
 * segments (or sequences). */
struct lattn_group {
    lattn_i32 e_tile, d_tile, token_tile, head;
    lattn_i64 segment;
};

LATTN_FUNCTION lattn_i32 lattn_tiles(lattn_i32 length, lattn_i32 tile)
{
    return (length + tile - 1) / tile;
}

LATTN_FUNCTION void lattn_group_get(lattn_i64 number, lattn_i32 e_tiles, lattn_i32 d_tiles,
                                    lattn_i32 token_tiles, lattn_i32 heads,
                                    struct lattn_group *group)
{
    group->e_tile = (lattn_i32)(number % e_tiles);
    number /= e_tiles;
    group->d_tile = (lattn_i32)(number % d_tiles);
    number /= d_tiles;
    group->token_tile = (lattn_i32)(number % token_tiles);
    number /= token_tiles;
    group->head = (lattn_i32)(number % heads);
    group->segment = number / heads;
}

LATTN_FUNCTION lattn_i32 lattn_at_least_0(lattn_i32 value)
{
    return value < 0 ? 0 : value;
}

/* What `distance` >= 0 steps leave of a term. The argument of exp is never above 0, so this is
 * never above 1, whatever the slope. Zero steps leave it whole, even when the slope is infinite. */
LATTN_FUNCTION float lattn_decay_weight(float slope, lattn_i32 distance)
{
    return distance == 0 ? 1.0f : lattn_exp(-slope * (float)distance);
}

/* The weight of the state before a segment in the output of its token `token`: the vllm rule
 * counts one step too few, and from the block. */
LATTN_FUNCTION float lattn_prefix_weight(const struct lattn_args *a, float slope, lattn_i32 token)
{
    return lattn_decay_weight(slope, a->flags & LATTN_FLAG_VLLM ? token : token + 1);
}

#endif
