/* One half of a program of two halves, each on its own copy of the library: compiled twice, with
 * HALF as its function's name. */
#include <lattn/lattn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int HALF(float *o, char *message, size_t size);

/* o of one token: q = 1, k = 2, v = 3, and so o = 6. Then a failure, for its message. */
int HALF(float *o, char *message, size_t size)
{
    lattn_context_params only = LATTN_CONTEXT_PARAMS_INIT;
    only.backends = "reference";
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    if (lattn_context_create(&only, &context) || lattn_device_open(context, 0, &device) ||
        lattn_stream_create(device, &stream))
        return -1;

    float q = 1, k = 2, v = 3, slope = 0;
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = params.tokens = params.heads = params.d = 1;
    params.q.base = &q;
    params.k.base = &k;
    params.v.base = &v;
    params.o.base = o;
    params.slopes.base = &slope;
    lattn_status status = lattn_prefill_prepare(stream, &params);
    if (!status)
        status = lattn_prefill_workspace(stream, &params, &params.workspace.size);
    if (!status)
        status = lattn_memory_alloc(device, params.workspace.size, &params.workspace.base);
    if (!status)
        status = lattn_prefill(stream, &params);
    lattn_memory_free(device, params.workspace.base);

    /* An error of this copy is not one of the other's. */
    int32_t index;
    snprintf(message, size, "%s", lattn_error_message());
    if (!lattn_device_find(context, "none", 0, &index))
        return -1;
    lattn_stream_destroy(stream);
    lattn_device_close(device);
    lattn_context_destroy(context);
    return (int)status;
}
