/* The judge: lightning attention of one sequence and one v head in float64, from its definition.
 * It shares no code with the library. */
#ifndef LATTN_TESTS_ORACLE_H
#define LATTN_TESTS_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

struct oracle {
    int64_t tokens;
    int d, e;
    double slope, scale;
    bool vllm;             /* the decay rule of vLLM's prefill, else the recurrence */
    const double *q, *k;   /* [tokens][d] */
    const double *v;       /* [tokens][e] */
    const double *initial; /* [d][e]; NULL: zero */

    double *o;          /* [tokens][e] */
    double *o_size;     /* [tokens]: what |o_t| is without luck, for errors relative to it */
    double *states;     /* [tokens + 1][d][e], or, with `every`, the states before tokens 0, every,
                           2 every, ... and the final one */
    double *state_size; /* the same for the states' Frobenius norms, one number a state */
    int64_t every;      /* 0: 1 */
};

/* How many states oracle_run writes. */
int64_t oracle_state_count(const struct oracle *oracle);

void oracle_run(const struct oracle *oracle);

#endif
