/* Reproducible random numbers (splitmix64). */
#ifndef LATTN_TOOLS_RANDOM_H
#define LATTN_TOOLS_RANDOM_H

#include <lattn/lattn.h>
#include <stdint.h>

struct random {
    uint64_t state; /* any seed will do */
};

uint64_t random_bits(struct random *random);

/* `count` values of the normal distribution, times `scale`, rounded to `dtype`. */
void random_normal(struct random *random, lattn_dtype dtype, void *data, uint64_t count,
                   double scale);

#endif
