#include <math.h>

#include "engine.h"

static float noise(uint64_t key)
{
    key ^= key >> 30;
    key *= 0xbf58476d1ce4e5b9u;
    key ^= key >> 27;
    key *= 0x94d049bb133111ebu;
    key ^= key >> 31;
    return (float)(int32_t)(key >> 32) / 2147483648.0f;
}

void model_fill(float *to, enum part part, int layer, int request, int first, int count)
{
    for (int t = 0; t < count; t++) {
        uint64_t token = (((uint64_t)request * LAYERS + (uint64_t)layer) * 3 + part) << 32;
        token += (uint64_t)(first + t) * TOKEN_SIZE;
        for (int i = 0; i < TOKEN_SIZE; i++)
            to[t * TOKEN_SIZE + i] = noise((token + (uint64_t)i) * 0x9e3779b97f4a7c15u) / 8;
    }
}

/* The slopes of lightning attention: 2^(-8 (i + 1) / h), as in ALiBi. */
void model_slopes(float slopes[HEADS])
{
    for (int i = 0; i < HEADS; i++)
        slopes[i] = exp2f(-8.0f * (float)(i + 1) / HEADS);
}
