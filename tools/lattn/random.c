#include "random.h"

#include <math.h>

#include "dtype.h"

#define TWO_PI 6.283185307179586

uint64_t random_bits(struct random *random)
{
    uint64_t x = random->state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* In (0, 1], so that its logarithm is finite. */
static double uniform(struct random *random)
{
    return ldexp((double)(random_bits(random) >> 11) + 1, -53);
}

void random_normal(struct random *random, lattn_dtype dtype, void *data, uint64_t count,
                   double scale)
{
    for (uint64_t i = 0; i < count; i += 2) {
        double radius = scale * sqrt(-2 * log(uniform(random)));
        double angle = TWO_PI * uniform(random);
        dtype_store(dtype, data, i, radius * cos(angle));
        if (i + 1 < count)
            dtype_store(dtype, data, i + 1, radius * sin(angle));
    }
}
