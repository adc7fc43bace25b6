/* A call with random data on a device, ready to be repeated: as many sets of its arrays as keep
 * the device's caches from serving one call with what another has read. */
#ifndef LATTN_TOOLS_WORKLOAD_H
#define LATTN_TOOLS_WORKLOAD_H

#include "call.h"
#include "session.h"

struct workload {
    struct session *session;
    struct call call;
    int64_t sets;
    uint64_t stride[CALL_PARTS]; /* bytes from one set to the next */
    struct call_memory memory;   /* of the first set */
};

/* `rotate`: bytes that the sets should fill together. Needs closing only if it returns LATTN_OK. */
lattn_status workload_open(struct session *session, const struct call *call, uint64_t rotate,
                           struct workload *workload);
void workload_close(struct workload *workload);

/* A timing_work_fn: the call on the next set. */
lattn_status workload_launch(void *workload, uint64_t turn);

/* Bytes that must be moved: each input read once, each output written once. */
uint64_t workload_bytes(const struct call *call);

/* Operations counted: prefill as in chunks of 64 tokens, decode as the recurrence. */
double workload_operations(const struct call *call);

#endif
