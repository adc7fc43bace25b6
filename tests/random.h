/* Random numbers that are the same on every machine for the same seed. */
#ifndef LATTN_TESTS_RANDOM_H
#define LATTN_TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t state;
};

/* The seed of this run: LATTN_TEST_SEED, else fresh. The same all through a process. */
uint64_t random_run_seed(void);

/* A generator of its own for `name`, so that one test can be repeated without the others. */
struct random random_named(const char *name);

uint64_t random_bits(struct random *random);
int64_t random_range(struct random *random, int64_t low, int64_t high); /* both included */
bool random_chance(struct random *random, int in);                      /* one in so many */
double random_normal(struct random *random);

#endif
