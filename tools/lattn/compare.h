/* How far a result may lie from the truth, and how far it does. */
#ifndef LATTN_TOOLS_COMPARE_H
#define LATTN_TOOLS_COMPARE_H

#include "call.h"

/* The limits of the relative L2 error, from dtype, precision and length alone. */
double compare_limit_o(const struct call *call);
double compare_limit_state(const struct call *call);

/* Sums for a relative L2 error; all zero to begin with. */
struct compare_sum {
    double difference, norm; /* squares */
};

/* An array of floats of some type. */
struct compare_array {
    lattn_dtype dtype;
    const void *data; /* NULL: there is none */
};

/* Takes in `count` elements from `first` on. */
void compare_add(struct compare_sum *sum, struct compare_array got, struct compare_array want,
                 uint64_t first, uint64_t count);

/* Infinite if what was got has a NaN or an infinity. */
double compare_error(const struct compare_sum *sum);

#endif
