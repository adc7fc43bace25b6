/* The public decode functions; see prefill.c. */
#include "call.h"

static const struct lattn_operation decode = {lattn_rules_decode, lattn_plan_decode};

lattn_status lattn_decode_prepare(lattn_stream *stream, const lattn_decode_params *params)
{
    return lattn_call_prepare(stream, &decode, params);
}

lattn_status lattn_decode_workspace(lattn_stream *stream, const lattn_decode_params *params,
                                    uint64_t *bytes)
{
    return lattn_call_workspace(stream, &decode, params, bytes);
}

lattn_status lattn_decode(lattn_stream *stream, const lattn_decode_params *params)
{
    return lattn_call_run(stream, &decode, params);
}

lattn_status lattn_decode_describe(lattn_stream *stream, const lattn_decode_params *params,
                                   char *text, size_t size)
{
    return lattn_call_describe(stream, &decode, params, text, size);
}
