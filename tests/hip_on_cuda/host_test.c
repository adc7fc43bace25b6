/* The HIP backend's host code on a real device, through the stand-in runtime: what is listed, the
 * application's streams, errors, the current device, and graphs of prefill and decode. */
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
    int (*current)(void **context);
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
} app;

static bool find_calls(void)
{
    const struct {
        const char *library, *name;
        void *member;
    } wanted[] = {
        {"libcuda.so.1", "cuCtxGetCurrent", &app.current},
        {"libamdhip64.so.6", "hipSetDevice", &app.set_device},
        {"libamdhip64.so.6", "hipGetDevice", &app.get_device},
        {"libamdhip64.so.6", "hipStreamCreateWithFlags", &app.stream_create},
        {"libamdhip64.so.6", "hipStreamDestroy", &app.stream_destroy},
        {"libamdhip64.so.6", "hipStreamSynchronize", &app.stream_wait},
        {"libcuda.so.1", "cuMemcpyDtoH_v2", &app.download},
        {"libcuda.so.1", "cuStreamBeginCapture_v2", &app.capture_begin},
        {"libcuda.so.1", "cuStreamEndCapture", &app.capture_end},
        {"libcuda.so.1", "cuGraphInstantiateWithFlags", &app.instantiate},
        {"libcuda.so.1", "cuGraphLaunch", &app.launch},
        {"libcuda.so.1", "cuGraphExecDestroy", &app.executable_destroy},
        {"libcuda.so.1", "cuGraphDestroy", &app.graph_destroy},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        void *library = dlopen(wanted[i].library, RTLD_NOW);
        void *symbol = library ? dlsym(library, wanted[i].name) : NULL;
        if (!symbol) {
            print_error("%s has no %s\n", wanted[i].library, wanted[i].name);
            return false;
        }
        memcpy(wanted[i].member, &symbol, sizeof(symbol));
    }
    return true;
}

/* A call leaves the thread's current device as it was, and CUDA's current context beneath. */
static lattn_status last_status;
#define CALL(call)                                                                                 \
    do {                                                                                           \
        void *before = NULL, *after = NULL;                                                        \
        int number = -1;                                                                           \
        assert_int_equal(app.current(&before), 0);                                                 \
        last_status = (call);                                                                      \
        assert_int_equal(app.current(&after), 0);                                                  \
        assert_int_equal(app.get_device(&number), 0);                                              \
        if (number || before != after)                                                             \
            fail_msg("%s: another device is current", #call);                                      \
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

enum { TOKENS = 1500, DIM = 64, BATCH = 3 };
enum { Q, K, V, O, STATE, SLOPES, WORK, ARRAYS };

struct scene {
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
    const lattn_native native = lattn_native_hip(0);
    *scene = (struct scene){0};
    assert_int_equal(lattn_context_create(&only_hip, &scene->context), LATTN_OK);
    assert_int_equal(app.set_device(0), 0);
    assert_ok(lattn_device_adopt(scene->context, &native, &scene->device));
    assert_int_equal(app.stream_create(&scene->native, 1), 0);
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
    assert_int_equal(app.stream_wait(scene->native), 0); /* still the application's */
    assert_int_equal(app.stream_destroy(scene->native), 0);
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

/* ---- listing, and what is refused ----------------------------------------------------------- */

static void the_device_is_described(void **state)
{
    (void)state;
    struct scene scene;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    open_scene(&scene);
    assert_ok(lattn_device_info_get(scene.context, 0, &info));
    assert_string_equal(info.backend, "hip");
    assert_string_equal(info.arch, "gfx906:sramecc+:xnack-");
    assert_int_equal(info.status, LATTN_OK);
    assert_true(info.memory > (uint64_t)1 << 30);
    assert_true(info.compute_units > 1);
    close_scene(&scene);
}

static void errors_have_their_status(void **state)
{
    (void)state;
    struct scene scene;
    lattn_device *device;
    void *base;
    open_scene(&scene);
    const lattn_native beyond = lattn_native_hip(64);
    assert_refused(lattn_device_adopt(scene.context, &beyond, &device),
                   LATTN_ERROR_INVALID_ARGUMENT, "native.number = 64");
    assert_refused(lattn_memory_alloc(scene.device, (uint64_t)1 << 50, &base),
                   LATTN_ERROR_DEVICE_MEMORY, "hipMalloc");
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
        const double wanted = (double)DIM * (t + 1) * value;
        for (int j = 0; j < DIM; j++)
            assert_true(fabs(scene->host[t * DIM + j] - wanted) <= 2e-6 * wanted);
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
    assert_int_equal(app.stream_wait(scene.native), 0);
    assert_int_equal(app.download(scene.host, scene.base[O], TOKENS * row_bytes), 0);
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
    assert_int_equal(app.capture_end(scene->native, &graph), 0);
    assert_int_equal(app.instantiate(&executable, graph, 0), 0);
    assert_int_equal(app.graph_destroy(graph), 0);
    return executable;
}

/* Captured in the strictest mode, prepare too, and replayed with other inputs. */
static void prefill_can_be_captured(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    const lattn_prefill_params p = prefill_of(&scene);

    assert_int_equal(app.capture_begin(scene.native, 0), 0);
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
        assert_int_equal(app.launch(executable, scene.native), 0);
        assert_ok(
            lattn_memory_download(scene.stream, scene.host, scene.base[O], 0, TOKENS * row_bytes));
        assert_prefill(&scene, (float)step);
    }
    assert_int_equal(app.executable_destroy(executable), 0);
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
    assert_int_equal(app.capture_begin(scene.native, 0), 0);
    assert_ok(lattn_decode(scene.stream, &p));
    void *executable = end_capture(&scene);

    float sum = 0;
    upload_rows(&scene, Q, BATCH, 1);
    upload_rows(&scene, K, BATCH, 1);
    for (int step = 1; step <= 4; step++) {
        upload_rows(&scene, V, BATCH, (float)step);
        sum += (float)step;
        assert_int_equal(app.launch(executable, scene.native), 0);
        assert_ok(
            lattn_memory_download(scene.stream, scene.host, scene.base[O], 0, BATCH * row_bytes));
        for (int i = 0; i < BATCH * DIM; i++)
            assert_true(scene.host[i] == DIM * sum);
    }
    assert_int_equal(app.executable_destroy(executable), 0);
    close_scene(&scene);
}

/* With any argument: on a runtime that lacks the kernels. */
int main(int argc, char **argv)
{
    (void)argv;
    if (!find_calls())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_is_described),
        cmocka_unit_test(errors_have_their_status),
        cmocka_unit_test(the_applications_stream_is_used),
        cmocka_unit_test(prefill_can_be_captured),
        cmocka_unit_test(decode_can_be_captured),
    };
    const struct CMUnitTest without_code[] = {cmocka_unit_test(no_code_is_a_status)};
    return argc > 1 ? cmocka_run_group_tests(without_code, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
