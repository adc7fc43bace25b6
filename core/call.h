/* What prefill and decode have in common: check, plan, then prepare, query, run or describe. */
#ifndef LATTN_CORE_CALL_H
#define LATTN_CORE_CALL_H

#include "planner.h"
#include "rules.h"
#include "stream.h"

/* An operation of the library. `params` is its public struct. */
struct lattn_operation {
    lattn_status (*rules)(const void *params, enum lattn_purpose purpose,
                          struct lattn_request *request);
    lattn_status (*plan)(const struct lattn_device *device, const struct lattn_request *request,
                         struct lattn_plan *plan);
};

/* The bodies of the public functions; the contracts are in lattn.h. */
lattn_status lattn_call_prepare(lattn_stream *stream, const struct lattn_operation *operation,
                                const void *params);
lattn_status lattn_call_workspace(lattn_stream *stream, const struct lattn_operation *operation,
                                  const void *params, uint64_t *bytes);
lattn_status lattn_call_run(lattn_stream *stream, const struct lattn_operation *operation,
                            const void *params);
lattn_status lattn_call_describe(lattn_stream *stream, const struct lattn_operation *operation,
                                 const void *params, char *text, size_t size);

#endif
