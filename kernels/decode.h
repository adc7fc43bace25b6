/* How a group of decode holds a tile of a state: d up to LATTN_DECODE_D by E columns, spread over
 * threads (y, x), y < 8, x < E, so that neighbouring threads read neighbouring memory: along e, or
 * along d where a pool's d are adjacent ([e, d]). Along e, element i of a thread is row 8 i + y of
 * column x. Along d, a thread has E / 8 columns, 8 apart from y on, and of each the rows E apart
 * from x on. `width` is E, a constant. */
#ifndef LATTN_DECODE_H
#define LATTN_DECODE_H

#include "sequence.h"
#include "storage.h"

LATTN_FUNCTION lattn_i32 lattn_decode_row(lattn_i32 width, bool along_d, lattn_i32 i)
{
    const lattn_i32 y = lattn_thread_id() / width, x = lattn_thread_id() % width;
    return along_d ? i / (width / 8) * width + x : 8 * i + y;
}

LATTN_FUNCTION lattn_i32 lattn_decode_column(lattn_i32 width, bool along_d, lattn_i32 i)
{
    const lattn_i32 y = lattn_thread_id() / width, x = lattn_thread_id() % width;
    return along_d ? i % (width / 8) * 8 + y : x;
}

/* The tile from column e0 on of the state at `at`; zero beyond [d, e]. */
LATTN_FUNCTION void lattn_decode_load(lattn_i32 width, bool along_d, const struct lattn_args *a,
                                      lattn_i32 elements, float *state,
                                      LATTN_GLOBAL const void *base,
                                      const struct lattn_state_layout *layout, lattn_i64 at,
                                      lattn_i32 e0)
{
#pragma unroll
    for (lattn_i32 i = 0; i < elements; i++) {
        lattn_i32 row = lattn_decode_row(width, along_d, i);
        lattn_i32 column = e0 + lattn_decode_column(width, along_d, i);
        state[i] = row < a->d && column < a->e
                       ? lattn_load(layout->type, base, at + row * layout->d + column * layout->e)
                       : 0.0f;
    }
}

LATTN_FUNCTION void lattn_decode_store(lattn_i32 width, bool along_d, const struct lattn_args *a,
                                       lattn_i32 elements, const float *state,
                                       LATTN_GLOBAL void *base,
                                       const struct lattn_state_layout *layout, lattn_i64 at,
                                       lattn_i32 e0)
{
#pragma unroll
    for (lattn_i32 i = 0; i < elements; i++) {
        lattn_i32 row = lattn_decode_row(width, along_d, i);
        lattn_i32 column = e0 + lattn_decode_column(width, along_d, i);
        if (row < a->d && column < a->e)
            lattn_store(layout->type, base, at + row * layout->d + column * layout->e, state[i]);
    }
}

#endif
