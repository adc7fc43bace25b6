#include "call.h"

#include "error.h"

static lattn_status check(lattn_stream *stream, const struct lattn_operation *operation,
                          const void *params, enum lattn_purpose purpose,
                          struct lattn_request *request)
{
    if (!stream)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "stream = NULL: must be a stream");
    return operation->rules(params, purpose, request);
}

static lattn_status check_and_plan(lattn_stream *stream, const struct lattn_operation *operation,
                                   const void *params, enum lattn_purpose purpose,
                                   struct lattn_request *request, struct lattn_plan *plan)
{
    lattn_status status = check(stream, operation, params, purpose, request);
    if (status)
        return status;
    struct lattn_plan_memo *memo = &stream->last[request->kind.decode];
    if (lattn_plan_recall(memo, request, plan))
        return LATTN_OK;
    status = operation->plan(stream->device, request, plan);
    if (!status)
        lattn_plan_remember(memo, request, plan);
    return status;
}

lattn_status lattn_call_prepare(lattn_stream *stream, const struct lattn_operation *operation,
                                const void *params)
{
    struct lattn_request request;
    lattn_status status = check(stream, operation, params, LATTN_TO_PREPARE, &request);
    return status ? status : lattn_stream_load(stream, &request.kind);
}

lattn_status lattn_call_workspace(lattn_stream *stream, const struct lattn_operation *operation,
                                  const void *params, uint64_t *bytes)
{
    if (!bytes)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "bytes = NULL: must point to a number");
    struct lattn_request request;
    struct lattn_plan plan;
    lattn_status status =
        check_and_plan(stream, operation, params, LATTN_TO_QUERY, &request, &plan);
    if (!status)
        *bytes = plan.workspace;
    return status;
}

lattn_status lattn_call_run(lattn_stream *stream, const struct lattn_operation *operation,
                            const void *params)
{
    struct lattn_request request;
    struct lattn_plan plan;
    lattn_status status = check_and_plan(stream, operation, params, LATTN_TO_RUN, &request, &plan);
    if (status)
        return status;
    if (request.workspace < plan.workspace)
        return lattn_fail(
            LATTN_ERROR_WORKSPACE, "workspace.size = %llu: must be at least %llu bytes",
            (unsigned long long)request.workspace, (unsigned long long)plan.workspace);
    return lattn_stream_run(stream, &request, &plan);
}

lattn_status lattn_call_describe(lattn_stream *stream, const struct lattn_operation *operation,
                                 const void *params, char *text, size_t size)
{
    if (!text || !size)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "text = NULL or size = 0: must have room");
    text[0] = '\0';
    struct lattn_request request;
    struct lattn_plan plan;
    lattn_status status =
        check_and_plan(stream, operation, params, LATTN_TO_QUERY, &request, &plan);
    if (!status)
        lattn_plan_describe(stream->device, &plan, text, size);
    return status;
}
