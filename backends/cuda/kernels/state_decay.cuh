/* What some tokens leave of a state x: keep x + factor x. The rounding of a weight near 1, the same
 * in each chunk, would add up over a long walk; that of what it lacks of 1 is less. */
#ifndef LATTN_STATE_DECAY_CUH
#define LATTN_STATE_DECAY_CUH

#include "kernels/tile.h"

struct lattn_state_decay {
    float keep, factor;

    static __device__ __forceinline__ lattn_state_decay of(float slope, int tokens)
    {
        const float weight = lattn_decay_weight(slope, tokens);
        if (weight > 0.5f)
            return {1.0f, expm1f(-slope * (float)tokens)};
        return {0.0f, weight};
    }
    /* The state after them, whose own part is `sum`. */
    __device__ __forceinline__ float step(float x, float sum) const
    {
        return fmaf(keep, x, fmaf(factor, x, sum));
    }
};

#endif
