/* A graph of HIP calls: decode, captured on the application's own stream after prepare, and
 * replayed with other inputs. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lattn/interop.h>

enum { BATCH = 3, DIM = 64, STEPS = 4 };

static int (*capture_begin)(void *stream, int mode);
static int (*capture_end)(void *stream, void **graph);
static int (*instantiate)(void **executable, void *graph, unsigned long long flags);
static int (*graph_launch)(void *executable, void *stream);
static int (*stream_create)(void **stream, unsigned flags);

static void find(void *library, void *member, const char *name)
{
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        printf("no %s\n", name);
        exit(1);
    }
    memcpy(member, &found, sizeof(found));
}

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int result = (int)(call);                                                            \
        if (result) {                                                                              \
            printf("%s: %d %s\n", #call, result, lattn_error_message());                           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW),
         *runtime = dlopen("libamdhip64.so.6", RTLD_NOW);
    find(driver, &capture_begin, "cuStreamBeginCapture_v2");
    find(driver, &capture_end, "cuStreamEndCapture");
    find(driver, &instantiate, "cuGraphInstantiateWithFlags");
    find(driver, &graph_launch, "cuGraphLaunch");
    find(runtime, &stream_create, "hipStreamCreateWithFlags");

    const lattn_context_params only_hip = {.struct_size = sizeof(only_hip), .backends = "hip"};
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    const lattn_native native = lattn_native_hip(0);
    CHECK(lattn_context_create(&only_hip, &context));
    CHECK(lattn_device_adopt(context, &native, &device));
    void *base, *own;
    const uint64_t row = DIM * sizeof(float), rows = BATCH * row, state = BATCH * DIM * row;
    CHECK(lattn_memory_alloc(device, 4 * rows + state + 4, &base));
    CHECK(stream_create(&own, 1));
    CHECK(lattn_stream_adopt(device, own, &stream));
    CHECK(lattn_memory_fill(stream, base, 0, 0, 4 * rows + state + 4));

    lattn_decode_params p = LATTN_DECODE_PARAMS_INIT;
    p.batch = BATCH;
    p.heads = 1;
    p.d = DIM;
    p.q = (lattn_tensor){base, 0, 0, 0, 0};
    p.k = (lattn_tensor){base, rows, 0, 0, 0};
    p.v = (lattn_tensor){base, 2 * rows, 0, 0, 0};
    p.o = (lattn_tensor){base, 3 * rows, 0, 0, 0};
    p.state_in = (lattn_state){.base = base, .offset = 4 * rows};
    p.slopes = (lattn_array){base, 4 * rows + state}; /* 0: nothing decays */
    CHECK(lattn_decode_prepare(stream, &p));
    void *graph, *executable;
    CHECK(capture_begin(own, 0));
    CHECK(lattn_decode(stream, &p));
    if (lattn_stream_synchronize(stream) != LATTN_ERROR_INVALID_ARGUMENT)
        return printf("a stream under capture was waited for\n"), 1;
    CHECK(capture_end(own, &graph));
    CHECK(instantiate(&executable, graph, 0));

    /* q = k = 1 and v = the step: o is DIM times the sum of the steps so far. */
    static float inputs[3][BATCH][DIM], o[BATCH][DIM];
    float sum = 0;
    for (int step = 1; step <= STEPS; step++) {
        for (int i = 0; i < BATCH * DIM; i++) {
            inputs[0][i / DIM][i % DIM] = inputs[1][i / DIM][i % DIM] = 1;
            inputs[2][i / DIM][i % DIM] = (float)step;
        }
        sum += (float)step;
        CHECK(lattn_memory_upload(stream, base, 0, inputs, sizeof(inputs)));
        CHECK(graph_launch(executable, own));
        CHECK(lattn_memory_download(stream, o, base, 3 * rows, sizeof(o)));
        for (int i = 0; i < BATCH * DIM; i++)
            if (o[i / DIM][i % DIM] != DIM * sum)
                return printf("step %d: %g, wanted %g\n", step, (double)o[i / DIM][i % DIM],
                              (double)(DIM * sum)),
                       1;
    }
    lattn_stream_destroy(stream);
    lattn_memory_free(device, base);
    lattn_device_close(device);
    lattn_context_destroy(context);
    printf("graph replayed %d times\n", STEPS);
    return 0;
}
