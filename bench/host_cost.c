/* Host time of one prepared call, in microseconds: what lattn_prefill and lattn_decode take to put
 * their work on a stream, without the device's own time. Also what the first prepare takes, which
 * loads the kernels.
 *
 *     host_cost [BACKEND]
 *
 * For CUDA it also measures the driver's own share, a bare cuLaunchKernel, and all is measured as
 * in an engine, with the context current on the thread. Calls go out in bursts short enough for the
 * driver's queue, with a wait between them that is not counted; the figure is the median burst. */
#include <dlfcn.h>
#include <lattn/lattn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/args.h"

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

/* 0: it worked. */
typedef int (*call_fn)(lattn_stream *stream, const void *params);

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

/* ---- the library's calls --------------------------------------------------------------------- */

static int call_prefill(lattn_stream *stream, const void *params)
{
    return lattn_prefill(stream, params);
}

static int call_decode(lattn_stream *stream, const void *params)
{
    return lattn_decode(stream, params);
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
    char plan[160];
    const double start = now();
    if (lattn_prefill_prepare(setup->stream, &params))
        return failed(name);
    printf("%-44s %8.2f us\n", "  its prepare, once", now() - start);
    if (lattn_prefill_describe(setup->stream, &params, plan, sizeof(plan)))
        return failed(name);
    printf("  %s\n", plan);
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
    const double start = now();
    if (lattn_decode_prepare(setup->stream, &params))
        return failed(name);
    printf("%-44s %8.2f us\n", "  its prepare, once", now() - start);
    return measure(setup, name, call_decode, &params);
}

/* ---- the driver's share ---------------------------------------------------------------------- */

static struct {
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*module_load)(void **module, const void *image);
    int (*get_function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                  void *stream, void **parameters, void **extra);
} cu;

static int call_launch(lattn_stream *stream, const void *function)
{
    static void *memories[LATTN_MEM_COUNT];
    static struct lattn_args args;
    void *parameters[LATTN_MEM_COUNT + 1];
    (void)stream;
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        parameters[i] = &memories[i];
    parameters[LATTN_MEM_COUNT] = &args;
    return cu.launch((void *)(uintptr_t)function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL);
}

/* Kernels that do nothing: with no parameters, and with those of ours. */
static bool bare_launches(const struct setup *setup)
{
    const struct {
        const char *name;
        void *member;
    } wanted[] = {
        {"cuDevicePrimaryCtxRetain", &cu.retain}, {"cuCtxSetCurrent", &cu.set_current},
        {"cuModuleLoadData", &cu.module_load},    {"cuModuleGetFunction", &cu.get_function},
        {"cuLaunchKernel", &cu.launch},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        void *symbol = library ? dlsym(library, wanted[i].name) : NULL;
        if (!symbol)
            return failed(wanted[i].name);
        memcpy(wanted[i].member, &symbol, sizeof(symbol));
    }

    char ptx[2048] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry none() { ret; }\n.visible .entry ours(";
    size_t end = strlen(ptx);
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        end += (size_t)snprintf(ptx + end, sizeof(ptx) - end, ".param .u64 m%d, ", i);
    snprintf(ptx + end, sizeof(ptx) - end, ".param .align 8 .b8 args[%zu]) { ret; }\n",
             sizeof(struct lattn_args));

    void *context, *module, *none, *ours;
    if (cu.retain(&context, 0) || cu.set_current(context) || cu.module_load(&module, ptx) ||
        cu.get_function(&none, module, "none") || cu.get_function(&ours, module, "ours"))
        return failed("a kernel that does nothing");
    return measure(setup, "cuLaunchKernel alone, no parameters", call_launch, none) &&
           measure(setup, "cuLaunchKernel alone, a kernel's parameters", call_launch, ours);
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
    const char *backend = argc > 1 ? argv[1] : NULL;
    const bool ok = open_setup(&setup, backend) &&
                    (!backend || strcmp(backend, "cuda") != 0 || bare_launches(&setup)) &&
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
