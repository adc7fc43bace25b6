/* Host time of one prepared call, in microseconds: what lattn_prefill and lattn_decode take to put
 * their work on a stream, without the device's own time.
 *
 *     host_cost [BACKEND]
 *
 * Calls go out in bursts short enough for the driver's queue, with a wait between them that is not
 * counted; the figure is the median burst. */
#include <lattn/lattn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BURST = 50, BURSTS = 101 };

struct setup {
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    void *memory; /* serves as every array */
};

static bool failed(const char *what)
{
    fprintf(stderr, "host_cost: %s: %s\n", what, lattn_error_message());
    return false;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef lattn_status (*call_fn)(lattn_stream *stream, const void *params);

static lattn_status call_prefill(lattn_stream *stream, const void *params)
{
    return lattn_prefill(stream, params);
}

static lattn_status call_decode(lattn_stream *stream, const void *params)
{
    return lattn_decode(stream, params);
}

static bool measure(const struct setup *setup, const char *name, call_fn call, const void *params)
{
    double bursts[BURSTS];
    for (int i = 0; i < BURSTS; i++) {
        const double start = now();
        for (int j = 0; j < BURST; j++) {
            if (call(setup->stream, params))
                return failed(name);
        }
        bursts[i] = (now() - start) / BURST;
        if (lattn_stream_synchronize(setup->stream))
            return failed(name);
    }
    qsort(bursts, BURSTS, sizeof(bursts[0]), ascending);
    printf("%-44s %8.2f us   (best %.2f, worst %.2f)\n", name, bursts[BURSTS / 2], bursts[0],
           bursts[BURSTS - 1]);
    return true;
}

static bool prefill(const struct setup *setup, const char *name, int64_t tokens, lattn_dtype dtype)
{
    lattn_prefill_params params = {
        .struct_size = sizeof(params),
        .batch = 1,
        .tokens = tokens,
        .heads = 8,
        .d = 128,
        .dtype = dtype,
        .q = {.base = setup->memory},
        .k = {.base = setup->memory},
        .v = {.base = setup->memory},
        .o = {.base = setup->memory, .offset = (uint64_t)32 << 20},
        .slopes = {setup->memory, (uint64_t)96 << 20},
        .state_out = {.base = setup->memory, .offset = (uint64_t)64 << 20},
        .workspace = {setup->memory, (uint64_t)128 << 20, (uint64_t)64 << 20},
    };
    if (lattn_prefill_prepare(setup->stream, &params))
        return failed(name);
    return measure(setup, name, call_prefill, &params);
}

static bool decode(const struct setup *setup, const char *name, int64_t batch, lattn_dtype dtype)
{
    lattn_decode_params params = {
        .struct_size = sizeof(params),
        .batch = batch,
        .heads = 8,
        .d = 128,
        .dtype = dtype,
        .q = {.base = setup->memory},
        .k = {.base = setup->memory},
        .v = {.base = setup->memory},
        .o = {.base = setup->memory, .offset = (uint64_t)32 << 20},
        .slopes = {setup->memory, (uint64_t)96 << 20},
        .state_in = {.base = setup->memory, .offset = (uint64_t)128 << 20},
    };
    if (lattn_decode_prepare(setup->stream, &params))
        return failed(name);
    return measure(setup, name, call_decode, &params);
}

static bool open_setup(struct setup *setup, const char *backend)
{
    const uint64_t bytes = (uint64_t)256 << 20;
    int32_t index;
    lattn_device_info info = {.struct_size = sizeof(info)};
    if (lattn_context_create(NULL, &setup->context) ||
        lattn_device_find(setup->context, backend, 0, &index) ||
        lattn_device_open(setup->context, index, &setup->device) ||
        lattn_stream_create(setup->device, &setup->stream) ||
        lattn_memory_alloc(setup->device, bytes, &setup->memory) ||
        lattn_memory_fill(setup->stream, setup->memory, 0, 0, bytes) ||
        lattn_device_info_of(setup->device, &info))
        return failed("opening");
    printf("host cost of one prepared call, %s, %s, h 8, d = e = 128\n", info.backend, info.name);
    return true;
}

int main(int argc, char **argv)
{
    struct setup setup = {0};
    const bool ok = open_setup(&setup, argc > 1 ? argv[1] : NULL) &&
                    decode(&setup, "decode, 1 row, bf16", 1, LATTN_BF16) &&
                    decode(&setup, "decode, 64 rows, bf16", 64, LATTN_BF16) &&
                    decode(&setup, "decode, 1 row, f32", 1, LATTN_F32) &&
                    prefill(&setup, "prefill, 256 tokens, bf16", 256, LATTN_BF16) &&
                    prefill(&setup, "prefill, 4096 tokens, bf16", 4096, LATTN_BF16) &&
                    prefill(&setup, "prefill, 4096 tokens, f32", 4096, LATTN_F32);
    if (setup.device)
        lattn_memory_free(setup.device, setup.memory);
    lattn_stream_destroy(setup.stream);
    lattn_device_close(setup.device);
    lattn_context_destroy(setup.context);
    return ok ? 0 : 1;
}
