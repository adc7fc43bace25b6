/* What a way to compute a prefill costs: the planner's cost model. */
#ifndef LATTN_CORE_COST_H
#define LATTN_CORE_COST_H

#include "backend.h"
#include "request.h"

/* The rows at hand, and what the call lets the output row do. */
struct lattn_choice {
    const struct lattn_kernel_row *output, *state, *scan; /* the latter two NULL: no scan */
    bool may_walk;                                        /* whole sequences */
    bool may_lengthen;                                    /* segments of more than one block */
    bool may_chain;                                       /* segments without a scan */
};

/* The segment length that the model expects to be fastest, or LATTN_WHOLE_SEQUENCE; and the time
 * it expects then, to be compared with other choices for the same call. */
int32_t lattn_choose_segment(const struct lattn_caps *caps, const struct lattn_request *request,
                             const struct lattn_choice *choice, double *cost);

#endif
