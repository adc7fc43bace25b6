/* The cases of verify, and fresh random inputs for them. */
#ifndef LATTN_TOOLS_CASES_H
#define LATTN_TOOLS_CASES_H

#include "call.h"

struct verify_case {
    const char *name;
    unsigned dtypes;     /* a bit for each lattn_dtype to run it with */
    bool extreme_slopes; /* from no decay to nothing but decay */
    struct call call;    /* but for dtype */
};

extern const struct verify_case verify_cases[];
extern const size_t verify_case_count;

/* Fills data[part] (to be freed) for each input of the call; false when out of memory. Slots that
 * no row uses hold NaN. */
bool case_inputs(const struct call *call, bool extreme_slopes, uint64_t seed,
                 void *data[CALL_PARTS]);

#endif
