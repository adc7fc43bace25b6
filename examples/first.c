/* A first program: prefills a few tokens on the best device of this machine.
 *
 *     cc examples/first.c $(pkg-config --cflags --libs lattn) -o first */
#include <lattn/lattn.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 300, HEADS = 2, DIM = 64, COUNT = HEADS * TOKENS * DIM };

static void must(lattn_status status)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", lattn_status_name(status), lattn_error_message());
        exit(1);
    }
}

static void *upload(lattn_device *device, lattn_stream *stream, const void *host, uint64_t bytes)
{
    void *base;
    must(lattn_memory_alloc(device, bytes, &base));
    must(lattn_memory_upload(stream, base, 0, host, bytes));
    return base;
}

int main(void)
{
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    int32_t best;
    must(lattn_context_create(NULL, &context));
    must(lattn_device_find(context, "auto", 0, &best));
    must(lattn_device_open(context, best, &device));
    must(lattn_device_info_of(device, &info));
    must(lattn_stream_create(device, &stream));

    static float ones[COUNT], o[COUNT];
    const float slopes[HEADS] = {0, 0.5f}; /* the first head forgets nothing */
    for (int i = 0; i < COUNT; i++)
        ones[i] = 1;

    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = 1;
    params.tokens = TOKENS;
    params.heads = HEADS;
    params.d = DIM;
    params.scale = 1.0f / DIM;
    params.q.base = params.k.base = params.v.base = upload(device, stream, ones, sizeof(ones));
    params.slopes.base = upload(device, stream, slopes, sizeof(slopes));
    must(lattn_memory_alloc(device, sizeof(o), &params.o.base));
    must(lattn_prefill_prepare(stream, &params));
    must(lattn_prefill_workspace(stream, &params, &params.workspace.size));
    must(lattn_memory_alloc(device, params.workspace.size, &params.workspace.base));
    must(lattn_prefill(stream, &params));
    must(lattn_memory_download(stream, o, params.o.base, 0, sizeof(o)));

    const double full = (double)o[(TOKENS - 1) * DIM], fading = (double)o[COUNT - DIM];
    printf("%s, %s: after %d tokens, %.6g without decay and %.6g with\n", info.backend, info.name,
           TOKENS, full, fading); /* 300, and 1 / (1 - e^-0.5) = 2.54149 */

    lattn_memory_free(device, params.workspace.base);
    lattn_memory_free(device, params.o.base);
    lattn_memory_free(device, params.slopes.base);
    lattn_memory_free(device, params.q.base);
    lattn_stream_destroy(stream);
    lattn_device_close(device);
    lattn_context_destroy(context);
    return full > 299.99 && full < 300.01 && fading > 2.541 && fading < 2.542 ? 0 : 1;
}
