/* An application with HIP objects of its own: its streams, the null stream, errors, its current
 * device after every call, and graphs of prefill and decode. The device is the last one there is,
 * and the application's current one the first. Runs on HIP's runtime and on both of its stand-ins.
 */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lattn/interop.h>

/* ---- the application's side ----------------------------------------------------------------- */

static struct {
    int (*init)(unsigned flags);
    int (*device_count)(int *count);
    int (*set_device)(int device);
    int (*get_device)(int *device);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream);
    int (*download)(void *to, void *from, size_t bytes);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, void *stream);
    int (*executable_destroy)(void *executable);
    int (*graph_destroy)(void *graph);
} hip;

static void *open_runtime(void)
{
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so"};
    void *library = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names) && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    return library;
}

/* No runtime, or no device: false. */
static bool find_hip(void)
{
    const struct {
        const char *name;
        void *member;
    } wanted[] = {
        {"hipInit", &hip.init},
        {"hipGetDeviceCount", &hip.device_count},
        {"hipSetDevice", &hip.set_device},
        {"hipGetDevice", &hip.get_device},
        {"hipStreamCreateWithFlags", &hip.stream_create},
        {"hipStreamDestroy", &hip.stream_destroy},
        {"hipStreamSynchronize", &hip.stream_wait},
        {"hipMemcpyDtoH", &hip.download},
        {"hipStreamBeginCapture", &hip.capture_begin},
        {"hipStreamEndCapture", &hip.capture_end},
        {"hipGraphInstantiateWithFlags", &hip.instantiate},
        {"hipGraphLaunch", &hip.launch},
        {"hipGraphExecDestroy", &hip.executable_destroy},
        {"hipGraphDestroy", &hip.graph_destroy},
    };
    void *library = open_runtime();
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        void *symbol = library ? dlsym(library, wanted[i].name) : NULL;
        if (!symbol) {
            print_message("no %s\n", library ? wanted[i].name : "HIP runtime");
            return false;
        }
        memcpy(wanted[i].member, &symbol, sizeof(symbol));
    }
    int count = 0;
    return !hip.init(0) && !hip.device_count(&count) && count;
}

/* A call leaves the thread's current device as it was. */
static lattn_status last_status;
#define CALL(call)                                                                                 \
    do {                                                                                           \
        int number = -1;                                                                           \
        last_status = (call);                                                                      \
        assert_int_equal(hip.get_device(&number), 0);                                              \
        if (number)                                                                                \
            fail_msg("%s: another device is current", #call);                                      \
    } while (0)

/* What the application does on the library's device. */
#define assert_hip(scene, call)                                                                    \
    do {                                                                                           \
        assert_int_equal(hip.set_device((scene)->number), 0);                                      \
        const int result = (call);                                                                 \
        assert_int_equal(hip.set_device(0), 0);                                                    \
        assert_int_equal(result, 0);                                                               \
    } while (0)

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        CALL(call);                                                                                \
        if (last_status)                                                                           \
            fail_msg("%s: %s", #call, lattn_error_message());                                      \
    } while (0)

#define assert_refused(call, status, part)                                                         \
    do {                                                                                           \
        CALL(call);                                                                                \
        assert_int_equal(last_status, status);                                                     \
        if (!strstr(lattn_error_message(), part))                                                  \
            fail_msg("\"%s\" is not in the message: %s", part, lattn_error_message());             \
    } while (0)

/* ---- a prefill and a decode ----------------------------------------------------------------- */

/* Meson's exit status of a test that was left out. */
#define NO_DEVICE 77

enum { TOKENS = 1500, DIM = 64, BATCH = 3 };
enum { Q, K, V, O, STATE, SLOPES, WORK, ARRAYS };

struct scene {
    int devices, number;
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    void *native; /* the application's stream */
    void *base[ARRAYS];
    float *host; /* as long as the longest of q, k, v, o */
};

static const uint64_t row_bytes = DIM * sizeof(float);

static void open_scene(struct scene *scene)
{
    const lattn_context_params only_hip = {.struct_size = sizeof(only_hip), .backends = "hip"};
    *scene = (struct scene){0};
    assert_int_equal(hip.device_count(&scene->devices), 0);
    assert_int_equal(hip.set_device(0), 0);
    scene->number = scene->devices - 1;
    const lattn_native native = lattn_native_hip(scene->number);
    assert_ok(lattn_context_create(&only_hip, &scene->context));
    assert_ok(lattn_device_adopt(scene->context, &native, &scene->device));
    assert_hip(scene, hip.stream_create(&scene->native, 1));
    assert_ok(lattn_stream_adopt(scene->device, scene->native, &scene->stream));
    for (int i = 0; i < WORK; i++) {
        const uint64_t bytes = i <= O       ? TOKENS * row_bytes
                               : i == STATE ? BATCH * DIM * row_bytes
                                            : sizeof(float) * BATCH;
        assert_ok(lattn_memory_alloc(scene->device, bytes, &scene->base[i]));
        assert_ok(lattn_memory_fill(scene->stream, scene->base[i], 0, 0, bytes));
    }
    scene->host = malloc(TOKENS * row_bytes);
    assert_non_null(scene->host);
}

static void close_scene(struct scene *scene)
{
    for (int i = 0; i < ARRAYS; i++)
        lattn_memory_free(scene->device, scene->base[i]);
    lattn_stream_destroy(scene->stream);
    assert_hip(scene, hip.stream_wait(scene->native)); /* still the application's */
    assert_hip(scene, hip.stream_destroy(scene->native));
    lattn_device_close(scene->device);
    lattn_context_destroy(scene->context);
    free(scene->host);
}

/* One sequence of one head, in several segments: three launches. */
static lattn_prefill_params prefill_of(struct scene *scene)
{
    lattn_prefill_params p = LATTN_PREFILL_PARAMS_INIT;
    p.batch = 1;
    p.tokens = TOKENS;
    p.heads = 1;
    p.d = DIM;
    p.q.base = scene->base[Q];
    p.k.base = scene->base[K];
    p.v.base = scene->base[V];
    p.o.base = scene->base[O];
    p.state_out.base = scene->base[STATE];
    p.slopes.base = scene->base[SLOPES]; /* 0: nothing decays */
    assert_ok(lattn_prefill_workspace(scene->stream, &p, &p.workspace.size));
    assert_true(p.workspace.size > 0);
    assert_ok(lattn_memory_alloc(scene->device, p.workspace.size, &scene->base[WORK]));
    p.workspace.base = scene->base[WORK];
    return p;
}

static lattn_decode_params decode_of(const struct scene *scene)
{
    lattn_decode_params p = LATTN_DECODE_PARAMS_INIT;
    p.batch = BATCH;
    p.heads = 1;
    p.d = DIM;
    p.q.base = scene->base[Q];
    p.k.base = scene->base[K];
    p.v.base = scene->base[V];
    p.o.base = scene->base[O];
    p.state_in.base = scene->base[STATE];
    p.slopes.base = scene->base[SLOPES];
    return p;
}

static void upload_rows(const struct scene *scene, int array, int rows, float value)
{
    for (int i = 0; i < rows * DIM; i++)
        scene->host[i] = value;
    assert_ok(lattn_memory_upload(scene->stream, scene->base[array], 0, scene->host,
                                  (uint64_t)rows * row_bytes));
}

/* ---- what is refused ----------------------------------------------------------- */

static void errors_have_their_status(void **state)
{
    (void)state;
    struct scene scene;
    lattn_device *device;
    void *base;
    open_scene(&scene);
    const lattn_native beyond = lattn_native_hip(scene.devices);
    assert_refused(lattn_device_adopt(scene.context, &beyond, &device),
                   LATTN_ERROR_INVALID_ARGUMENT, "native.number = ");
    assert_refused(lattn_memory_alloc(scene.device, (uint64_t)1 << 50, &base),
                   LATTN_ERROR_DEVICE_MEMORY, "hipMalloc");
    if (scene.number > 0) {
        lattn_stream *stream;
        void *foreign;
        assert_int_equal(hip.stream_create(&foreign, 1), 0);
        assert_refused(lattn_stream_adopt(scene.device, foreign, &stream),
                       LATTN_ERROR_INVALID_ARGUMENT, "belongs to device 0");
        assert_int_equal(hip.stream_destroy(foreign), 0);
    }
    /* None of it is left behind: the device works. */
    upload_rows(&scene, Q, 1, 1);
    close_scene(&scene);
}

/* The runtime finds no code that fits the device. */
static void no_code_is_a_status(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    const lattn_decode_params p = decode_of(&scene);
    assert_refused(lattn_decode_prepare(scene.stream, &p), LATTN_ERROR_NO_DEVICE_CODE,
                   "hipModuleLoadData");
    close_scene(&scene);
}

/* ---- streams and graphs --------------------------------------------------------------------- */

/* Every q and k is 1, every v is `value`, nothing decays: token t sums t + 1 times DIM of them. */
static void assert_prefill(const struct scene *scene, float value)
{
    for (int t = 0; t < TOKENS; t++) {
        const double wanted = (double)DIM * (t + 1) * (double)value;
        for (int j = 0; j < DIM; j++)
            assert_true(fabs((double)scene->host[t * DIM + j] - wanted) <= 2e-6 * wanted);
    }
}

/* What the library launches lies in the order of the application's stream, which alone waits. */
static void the_applications_stream_is_used(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    upload_rows(&scene, Q, TOKENS, 1);
    upload_rows(&scene, K, TOKENS, 1);
    upload_rows(&scene, V, TOKENS, 2);
    const lattn_prefill_params p = prefill_of(&scene);
    assert_refused(lattn_prefill(scene.stream, &p), LATTN_ERROR_NOT_PREPARED, "prepare");
    assert_ok(lattn_prefill_prepare(scene.stream, &p));
    assert_ok(lattn_prefill(scene.stream, &p));
    assert_hip(&scene, hip.stream_wait(scene.native));
    assert_hip(&scene, hip.download(scene.host, scene.base[O], TOKENS * row_bytes));
    assert_prefill(&scene, 2);

    lattn_stream *null_stream; /* HIP's default stream */
    assert_ok(lattn_stream_adopt(scene.device, NULL, &null_stream));
    assert_ok(lattn_memory_fill(null_stream, scene.base[O], 0, 0xff, TOKENS * row_bytes));
    assert_ok(lattn_prefill_prepare(null_stream, &p));
    assert_ok(lattn_prefill(null_stream, &p));
    assert_ok(lattn_memory_download(null_stream, scene.host, scene.base[O], 0, TOKENS * row_bytes));
    assert_prefill(&scene, 2);
    lattn_stream_destroy(null_stream);
    close_scene(&scene);
}

static void *end_capture(const struct scene *scene)
{
    void *graph = NULL, *executable = NULL;
    assert_hip(scene, hip.capture_end(scene->native, &graph));
    assert_hip(scene, hip.instantiate(&executable, graph, 0));
    assert_hip(scene, hip.graph_destroy(graph));
    return executable;
}

/* Captured in the strictest mode, prepare too, and replayed with other inputs. */
static void prefill_can_be_captured(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    const lattn_prefill_params p = prefill_of(&scene);

    assert_hip(&scene, hip.capture_begin(scene.native, 0));
    assert_ok(lattn_prefill_prepare(scene.stream, &p));
    assert_ok(lattn_prefill(scene.stream, &p));
    void *memory = NULL; /* belongs to no stream, and still does not end the capture */
    assert_ok(lattn_memory_alloc(scene.device, 16, &memory));
    lattn_memory_free(scene.device, memory);
    assert_refused(lattn_stream_synchronize(scene.stream), LATTN_ERROR_INVALID_ARGUMENT, "captur");
    void *executable = end_capture(&scene);

    upload_rows(&scene, Q, TOKENS, 1);
    upload_rows(&scene, K, TOKENS, 1);
    for (int step = 1; step <= 3; step++) {
        upload_rows(&scene, V, TOKENS, (float)step);
        assert_hip(&scene, hip.launch(executable, scene.native));
        assert_ok(
            lattn_memory_download(scene.stream, scene.host, scene.base[O], 0, TOKENS * row_bytes));
        assert_prefill(&scene, (float)step);
    }
    assert_hip(&scene, hip.executable_destroy(executable));
    close_scene(&scene);
}

/* The states go on from one replay to the next. */
static void decode_can_be_captured(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    const lattn_decode_params p = decode_of(&scene);
    assert_ok(lattn_decode_prepare(scene.stream, &p));
    assert_hip(&scene, hip.capture_begin(scene.native, 0));
    assert_ok(lattn_decode(scene.stream, &p));
    void *executable = end_capture(&scene);

    float sum = 0;
    upload_rows(&scene, Q, BATCH, 1);
    upload_rows(&scene, K, BATCH, 1);
    for (int step = 1; step <= 4; step++) {
        upload_rows(&scene, V, BATCH, (float)step);
        sum += (float)step;
        assert_hip(&scene, hip.launch(executable, scene.native));
        assert_ok(
            lattn_memory_download(scene.stream, scene.host, scene.base[O], 0, BATCH * row_bytes));
        for (int i = 0; i < BATCH * DIM; i++)
            assert_true(scene.host[i] == DIM * sum);
    }
    assert_hip(&scene, hip.executable_destroy(executable));
    close_scene(&scene);
}

/* With any argument: on a runtime that lacks the kernels. */
int main(int argc, char **argv)
{
    (void)argv;
    if (!find_hip())
        return NO_DEVICE;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_their_status),
        cmocka_unit_test(the_applications_stream_is_used),
        cmocka_unit_test(prefill_can_be_captured),
        cmocka_unit_test(decode_can_be_captured),
    };
    const struct CMUnitTest without_code[] = {cmocka_unit_test(no_code_is_a_status)};
    return argc > 1 ? cmocka_run_group_tests(without_code, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
