/* The public prefill functions. The story goes on in call.c: rules.c checks, planner.c chooses the
 * passes, stream.c launches them. */
#include "call.h"
#include "error.h"

static const struct lattn_operation prefill = {lattn_rules_prefill, lattn_plan_prefill};

lattn_status lattn_prefill_prepare(lattn_stream *stream, const lattn_prefill_params *params)
{
    return lattn_call_prepare(stream, &prefill, params);
}

lattn_status lattn_prefill_workspace(lattn_stream *stream, const lattn_prefill_params *params,
                                     uint64_t *bytes)
{
    return lattn_call_workspace(stream, &prefill, params, bytes);
}

lattn_status lattn_prefill_workspace_bound(lattn_stream *stream, const lattn_prefill_params *params,
                                           uint64_t *bytes)
{
    if (!bytes)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "bytes = NULL: must point to a number");
    if (!stream)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "stream = NULL: must be a stream");
    struct lattn_request request;
    lattn_status status = lattn_rules_prefill(params, LATTN_TO_QUERY, &request);
    return status ? status : lattn_plan_workspace_bound(stream->device, &request, bytes);
}

lattn_status lattn_prefill(lattn_stream *stream, const lattn_prefill_params *params)
{
    return lattn_call_run(stream, &prefill, params);
}

lattn_status lattn_prefill_describe(lattn_stream *stream, const lattn_prefill_params *params,
                                    char *text, size_t size)
{
    return lattn_call_describe(stream, &prefill, params, text, size);
}
