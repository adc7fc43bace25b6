#include "random.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

uint64_t random_run_seed(void)
{
    static uint64_t seed;
    static bool known;
    if (!known) {
        const char *text = getenv("LATTN_TEST_SEED");
        struct timespec now;
        timespec_get(&now, TIME_UTC);
        seed = text ? strtoull(text, NULL, 0)
                    : ((uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec) % 100000000;
        known = true;
    }
    return seed;
}

struct random random_named(const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return (struct random){hash ^ (random_run_seed() * 0x9e3779b97f4a7c15u)};
}

/* splitmix64 */
uint64_t random_bits(struct random *random)
{
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t random_range(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(random) % (uint64_t)(high - low + 1));
}

bool random_chance(struct random *random, int in)
{
    return random_bits(random) % (uint64_t)in == 0;
}

double random_normal(struct random *random)
{
    double u = ((double)(random_bits(random) >> 11) + 1) * 0x1p-53;
    double v = (double)(random_bits(random) >> 11) * 0x1p-53;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}
