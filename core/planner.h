/* From a checked call to the launches that compute it: which catalogue rows, how many segments,
 * which grids. The only place that decides what a device supports. */
#ifndef LATTN_CORE_PLANNER_H
#define LATTN_CORE_PLANNER_H

#include "device.h"
#include "request.h"

struct lattn_step {
    uint32_t row; /* of the catalogue */
    uint64_t groups;
};

struct lattn_plan {
    struct lattn_step steps[3];
    uint32_t step_count;
    bool segmented;     /* over segments */
    bool chained;       /* ... in one launch */
    int32_t segment;    /* tokens in a segment */
    int32_t segments;   /* as lattn_args.segments */
    uint64_t workspace; /* bytes */
};

/* Can the row be used for calls of this kind on such a device? */
bool lattn_row_serves(const struct lattn_kernel_row *row, const struct lattn_caps *caps,
                      const struct lattn_kind *kind);

/* LATTN_ERROR_UNSUPPORTED, and a message that says why, unless every call of this kind (but for
 * what a row's `needs` leave out) has rows. */
lattn_status lattn_plan_check(const struct lattn_device *device, const struct lattn_kind *kind);

lattn_status lattn_plan_prefill(const struct lattn_device *device,
                                const struct lattn_request *request, struct lattn_plan *plan);
lattn_status lattn_plan_decode(const struct lattn_device *device,
                               const struct lattn_request *request, struct lattn_plan *plan);

/* All of a request that its plan depends on, and the plan: calls of a model repeat, and choosing
 * among many rows takes longer than the rest of a call. Zeroed: nothing is remembered. */
struct lattn_plan_memo {
    bool known;
    struct lattn_kind kind;
    uint32_t offers;
    int64_t longest, total, tokens;
    int32_t sequences, heads, flags;
    struct lattn_plan plan;
};
bool lattn_plan_recall(const struct lattn_plan_memo *memo, const struct lattn_request *request,
                       struct lattn_plan *plan);
void lattn_plan_remember(struct lattn_plan_memo *memo, const struct lattn_request *request,
                         const struct lattn_plan *plan);

/* Bytes that no prefill of this kind and these heads needs more of, that has at most as many
 * sequences, and tokens in all, as the request. */
lattn_status lattn_plan_workspace_bound(const struct lattn_device *device,
                                        const struct lattn_request *request, uint64_t *bytes);

/* A line of text on the plan. */
void lattn_plan_describe(const struct lattn_device *device, const struct lattn_plan *plan,
                         char *text, size_t size);

#endif
