/* A program with nothing around it: computes two tokens on every device that opens, and prints one
 * line, the backends it ran on, with a ! after one whose driver did not get that far. The library
 * must print nothing. */
#include <lattn/lattn.h>
#include <math.h>
#include <stdio.h>

/* d = e = 1, slope 1: o_0 = q_0 k_0 v_0, o_1 = q_1 (exp(-1) k_0 v_0 + k_1 v_1). */
static const float numbers[] = {2, 3, 5, 7, 11, 13, 1, 0, 0};

enum outcome { RIGHT, WRONG, REFUSED };

static enum outcome run(lattn_stream *stream, void *base)
{
    float o[2];
    uint64_t bytes;
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = 1;
    params.tokens = 2;
    params.heads = 1;
    params.d = 1;
    params.q.base = params.k.base = params.v.base = params.o.base = params.slopes.base = base;
    params.k.offset = 8;
    params.v.offset = 16;
    params.slopes.offset = 24;
    params.o.offset = 28;
    if (lattn_memory_upload(stream, base, 0, numbers, sizeof(numbers)) ||
        lattn_prefill_prepare(stream, &params) ||
        lattn_prefill_workspace(stream, &params, &bytes) || bytes > 64)
        return REFUSED;
    params.workspace.base = base;
    params.workspace.offset = 64;
    params.workspace.size = 64;
    if (lattn_prefill(stream, &params) ||
        lattn_memory_download(stream, o, base, params.o.offset, sizeof(o)))
        return REFUSED;
    double wanted = 3 * (exp(-1) * 5 * 11 + 7 * 13);
    return o[0] == 2 * 5 * 11 && fabs((double)o[1] - wanted) < 1e-4 ? RIGHT : WRONG;
}

int main(void)
{
    lattn_context *context;
    char line[256] = "";
    size_t used = 0;
    if (lattn_context_create(NULL, &context))
        return 2;
    for (int32_t i = 0; i < lattn_device_count(context); i++) {
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        lattn_device *device = NULL;
        lattn_stream *stream = NULL;
        void *base = NULL;
        if (lattn_device_info_get(context, i, &info))
            return 3;
        if (info.status)
            continue;
        enum outcome outcome = REFUSED;
        if (!lattn_device_open(context, i, &device) && !lattn_stream_create(device, &stream) &&
            !lattn_memory_alloc(device, 128, &base))
            outcome = run(stream, base);
        lattn_memory_free(device, base);
        lattn_stream_destroy(stream);
        lattn_device_close(device);
        if (outcome == WRONG)
            return 4;
        if (used < sizeof(line))
            used += (size_t)snprintf(line + used, sizeof(line) - used, "%s%s%s", used ? " " : "",
                                     info.backend, outcome == REFUSED ? "!" : "");
    }
    lattn_context_destroy(context);
    puts(line);
    return 0;
}
