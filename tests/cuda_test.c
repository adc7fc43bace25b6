/* The CUDA backend's host code against the stand-in driver. Each case runs in a process of its own,
 * since a driver is opened once in a process: this program starts itself again with the case's name
 * and environment. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/cuda/backend.h"
#include "backends/cuda/catalog.h"
#include "backends/cuda/code.h"
#include "core/error.h"
#include "fake_cuda.h"

/* A build and a catalogue of our own: what is tested is the host code. */
const struct lattn_cuda_build lattn_cuda_build = {"80 86 90a", 90, 13000};

static const char image_a[] = "a", image_b[] = "b";
static const struct lattn_kernel_row rows[] = {
    {.entry = "small", .program = image_a, .threads = 256, .shared = 1024},
    {.entry = "large", .program = image_b, .threads = 256, .shared = 100000},
    {.entry = "absent", .program = image_a, .threads = 256},
    {.entry = "wide", .program = image_a, .threads = 1024},
};
static const struct lattn_backend cuda = LATTN_CUDA_BACKEND(rows);

static const struct fake_cuda *fake;

/* ---- what cases share ----------------------------------------------------------------------- */

/* Before the allocator fails on this thread; < 0: never. */
static _Thread_local int allocations_left = -1;

static void *host_alloc(void *user, size_t size)
{
    (void)user;
    if (allocations_left == 0)
        return NULL;
    allocations_left -= allocations_left > 0;
    return malloc(size);
}

static void host_free(void *user, void *pointer)
{
    (void)user;
    free(pointer);
}

static char log_text[2048];

static void test_log(void *user, lattn_log_level level, const char *message)
{
    (void)user;
    (void)level;
    strncat(log_text, message, sizeof(log_text) - strlen(log_text) - 1);
}

static const struct lattn_env env = {
    .allocator = {host_alloc, host_free, NULL}, .log = test_log, .log_level = LATTN_LOG_DEBUG};

static void meet_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(library);
    fake = dlsym(library, "fake_cuda");
    assert_non_null(fake);
}

#define assert_status(expected, call)                                                              \
    do {                                                                                           \
        const lattn_status status_ = (call);                                                       \
        if (status_ != (expected))                                                                 \
            fail_msg("%s: %s, not %s (%s)", #call, lattn_status_name(status_),                     \
                     lattn_status_name(expected), lattn_error_message());                          \
    } while (0)

#define assert_message(part)                                                                       \
    do {                                                                                           \
        if (!strstr(lattn_error_message(), part))                                                  \
            fail_msg("\"%s\" is not in \"%s\"", part, lattn_error_message());                      \
    } while (0)

struct list {
    int count;
    lattn_device_info info[8];
    int32_t rank[8];
};

static lattn_status add(void *user, const lattn_device_info *info, int32_t rank)
{
    struct list *list = user;
    assert_true(list->count < 8);
    list->info[list->count] = *info;
    list->rank[list->count++] = rank;
    return LATTN_OK;
}

static struct list probe(void)
{
    struct list list = {0};
    assert_status(LATTN_OK, cuda.probe(&env, add, &list));
    return list;
}

static lattn_status open_ordinal(int32_t ordinal, void **device)
{
    struct lattn_caps caps;
    return cuda.open(&env, ordinal, NULL, &caps, NULL, device);
}

static lattn_status adopt(CUcontext context, void **device)
{
    struct lattn_caps caps;
    lattn_device_info info;
    const lattn_native native = {sizeof(native), "cuda", context, NULL, 0};
    return cuda.open(&env, -1, &native, &caps, &info, device);
}

/* ---- cases: the driver ---------------------------------------------------------------------- */

static void no_driver(void)
{
    void *device = NULL;
    assert_int_equal(probe().count, 0);
    assert_non_null(strstr(log_text, "libcuda.so.1"));
    assert_status(LATTN_ERROR_NO_DEVICE, open_ordinal(0, &device));
    assert_message("no CUDA driver: ");
    assert_message("libcuda.so.1");
    assert_status(LATTN_ERROR_NO_DEVICE, adopt((CUcontext)&device, &device));
}

static void no_device(void)
{
    void *device = NULL;
    assert_int_equal(probe().count, 0);
    assert_status(LATTN_ERROR_NO_DEVICE, open_ordinal(0, &device));
    assert_message("cuInit failed: CUDA_ERROR_NO_DEVICE (100)");
}

static void listing(void)
{
    meet_driver();
    struct list list = probe();
    assert_int_equal(list.count, 5);
    static const char *const archs[] = {"9.0", "8.6", "7.5", "8.9", "11.0"};
    static const lattn_status statuses[] = {LATTN_OK, LATTN_OK, LATTN_ERROR_DEVICE_TOO_OLD,
                                            LATTN_OK, LATTN_OK};
    for (int i = 0; i < list.count; i++) {
        const lattn_device_info *info = &list.info[i];
        assert_int_equal(info->struct_size, sizeof(*info));
        assert_string_equal(info->backend, "cuda");
        assert_int_equal(info->ordinal, i);
        assert_int_equal(info->kind, LATTN_DEVICE_GPU);
        assert_string_equal(info->arch, archs[i]);
        assert_string_equal(info->driver, "CUDA 13.0");
        assert_true(info->memory == (uint64_t)(i + 1) << 30);
        assert_int_equal(info->compute_units, 84);
        assert_int_equal(info->status, statuses[i]);
    }
    assert_string_equal(list.info[1].name, "Stand-in 1");
    assert_non_null(strstr(list.info[2].reason, "7.5"));
    assert_non_null(strstr(list.info[2].reason, "8.0"));

    /* Nothing but questions was asked. */
    const int asked = fake->calls("cuInit") + fake->calls("cuDriverGetVersion") +
                      fake->calls("cuGetProcAddress") + fake->calls("cuDeviceGetCount") +
                      fake->calls("cuDeviceGet") + fake->calls("cuDeviceGetName") +
                      fake->calls("cuDeviceGetAttribute") + fake->calls("cuDeviceTotalMem");
    assert_int_equal(fake->calls(NULL), asked);
    assert_int_equal(fake->live(), 0);

    /* Opening refuses what listing said it would. */
    void *device = NULL;
    assert_status(LATTN_ERROR_DEVICE_TOO_OLD, open_ordinal(2, &device));
    assert_string_equal(lattn_error_message(), list.info[2].reason);
    CUcontext context = fake->context_create(2);
    assert_status(LATTN_ERROR_DEVICE_TOO_OLD, adopt(context, &device));
    assert_null(device);
    fake->context_destroy(context);
    assert_status(LATTN_ERROR_DEVICE, open_ordinal(5, &device));
}

static void caps(void)
{
    meet_driver();
    struct lattn_caps caps;
    void *device;
    assert_status(LATTN_OK, cuda.open(&env, 0, NULL, &caps, NULL, &device));
    assert_int_equal(caps.features, LATTN_CUDA_SM80 | LATTN_CUDA_SM90 | LATTN_CUDA_SM90A);
    assert_int_equal(caps.max_threads, 1024);
    assert_int_equal(caps.max_shared, 101376);
    assert_int_equal(caps.compute_units, 84);
    assert_true(caps.max_groups == 2147483647u);
    cuda.close(device);

    CUcontext context = fake->context_create(1);
    const lattn_native native = {sizeof(native), "cuda", context, NULL, 0};
    lattn_device_info info = {0};
    assert_status(LATTN_OK, cuda.open(&env, -1, &native, &caps, &info, &device));
    assert_int_equal(caps.features, LATTN_CUDA_SM80);
    assert_int_equal(info.ordinal, 1);
    assert_string_equal(info.arch, "8.6");
    cuda.close(device);
    assert_int_equal(fake->calls("cuDevicePrimaryCtxRetain"), 1);
    assert_int_equal(fake->calls("cuDevicePrimaryCtxRelease"), 1);
    fake->context_destroy(context);

    assert_status(LATTN_ERROR_INVALID_ARGUMENT, adopt(NULL, &device));
    assert_message("native.context");
}

static void driver_too_old(void)
{
    meet_driver();
    struct list list = probe();
    assert_int_equal(list.count, 2);
    assert_int_equal(list.info[0].status, LATTN_ERROR_DRIVER_TOO_OLD);
    void *device;
    assert_status(LATTN_ERROR_DRIVER_TOO_OLD, open_ordinal(0, &device));
    assert_message("12.4");
    assert_message("13.0");
    assert_int_equal(fake->live(), 0);
}

static void entry_point_missing(void)
{
    meet_driver();
    struct list list = probe();
    assert_int_equal(list.count, 2);
    assert_int_equal(list.info[0].status, LATTN_ERROR_DRIVER_TOO_OLD);
    assert_non_null(strstr(list.info[0].reason, "cuFuncSetAttribute"));
    void *device;
    assert_status(LATTN_ERROR_DRIVER_TOO_OLD, open_ordinal(0, &device));
    CUcontext context = fake->context_create(0);
    assert_status(LATTN_ERROR_DRIVER_TOO_OLD, adopt(context, &device));
    assert_message("cuFuncSetAttribute");
    fake->context_destroy(context);
}

static void code_choice(void)
{
    static const struct lattn_cuda_build specific = {"80 90a", 90, 12080};
    static const struct {
        int capability, driver;
        lattn_status status;
        uint32_t features;
        const char *parts[2];
    } cases[] = {
        {80, 12000, LATTN_OK, LATTN_CUDA_SM80, {""}},
        {89, 12000, LATTN_OK, LATTN_CUDA_SM80, {""}},
        {90, 12000, LATTN_OK, LATTN_CUDA_SM80 | LATTN_CUDA_SM90 | LATTN_CUDA_SM90A, {""}},
        {90, 11080, LATTN_ERROR_DRIVER_TOO_OLD, 0, {"11.8", "12.0"}},
        {120, 12080, LATTN_OK, LATTN_CUDA_SM80 | LATTN_CUDA_SM90, {""}},
        {120, 12070, LATTN_ERROR_DRIVER_TOO_OLD, 0, {"12.7", "12.8"}},
        {79, 12080, LATTN_ERROR_DEVICE_TOO_OLD, 0, {"7.9", "8.0"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t features = 0;
        char reason[256] = "";
        const lattn_status status = lattn_cuda_choose_code(
            &specific, cases[i].capability, cases[i].driver, &features, reason, sizeof(reason));
        assert_int_equal(status, cases[i].status);
        assert_int_equal(features, cases[i].features);
        for (int j = 0; j < 2 && cases[i].parts[j]; j++)
            assert_non_null(strstr(reason, cases[i].parts[j]));
    }

    static const struct lattn_cuda_build newest = {"100", 120, 13000};
    uint32_t features = 0;
    char reason[256];
    assert_int_equal(lattn_cuda_choose_code(&newest, 86, 13000, &features, reason, sizeof(reason)),
                     LATTN_ERROR_NO_DEVICE_CODE);
    assert_non_null(strstr(reason, "8.6"));
    assert_non_null(strstr(reason, "sm_ 100"));
}

static void load_with(lattn_status expected, const char *part)
{
    meet_driver();
    void *device, *stream, *kernel;
    assert_status(LATTN_OK, open_ordinal(0, &device));
    assert_status(LATTN_OK, cuda.stream_open(device, false, NULL, &stream));
    assert_status(expected, cuda.load(stream, &rows[0], &kernel));
    assert_message(part);
    assert_message("13.0");
    cuda.stream_close(stream);
    cuda.close(device);
    assert_int_equal(fake->live(), 0);
}

static void image_without_code(void)
{
    load_with(LATTN_ERROR_NO_DEVICE_CODE, "(209)");
}

static void image_too_new(void)
{
    load_with(LATTN_ERROR_DRIVER_TOO_OLD, "(222)");
}

/* ---- cases: contexts ------------------------------------------------------------------------ */

static unsigned char host[64];

/* One of each service, as steps: each is run under every failure that can befall it. */
struct scene {
    CUcontext context;
    CUstream native;
    void *device, *stream, *kernel, *base;
    int live; /* objects before it */
};

typedef lattn_status (*step_fn)(struct scene *scene);

static lattn_status step_probe(struct scene *scene)
{
    struct list list = {0};
    (void)scene;
    return cuda.probe(&env, add, &list);
}

static lattn_status step_open(struct scene *scene)
{
    void *device;
    (void)scene;
    lattn_status status = open_ordinal(1, &device);
    if (!status)
        cuda.close(device);
    return status;
}

static lattn_status step_adopt(struct scene *scene)
{
    void *device;
    lattn_status status = adopt(scene->context, &device);
    if (!status)
        cuda.close(device);
    return status;
}

static lattn_status step_alloc(struct scene *scene)
{
    void *base;
    lattn_status status = cuda.alloc(scene->device, 32, &base);
    if (!status)
        cuda.release(scene->device, base);
    return status;
}

static lattn_status step_stream(struct scene *scene)
{
    void *stream;
    lattn_status status = cuda.stream_open(scene->device, false, NULL, &stream);
    if (!status)
        cuda.stream_close(stream);
    return status;
}

static lattn_status step_stream_adopt(struct scene *scene)
{
    void *stream;
    lattn_status status = cuda.stream_open(scene->device, true, scene->native, &stream);
    if (!status)
        cuda.stream_close(stream);
    return status;
}

static lattn_status step_load(struct scene *scene)
{
    void *kernel;
    return cuda.load(scene->stream, &rows[1], &kernel);
}

static lattn_status step_launch(struct scene *scene)
{
    static void *memories[LATTN_MEM_COUNT];
    static const struct lattn_args args;
    return cuda.launch(scene->stream, scene->kernel,
                       &(struct lattn_launch){2, 256, 1024, memories, &args});
}

static lattn_status step_upload(struct scene *scene)
{
    return cuda.copy(scene->stream,
                     &(struct lattn_copy){LATTN_COPY_UPLOAD, scene->base, 0, host, 0, 32});
}

static lattn_status step_download(struct scene *scene)
{
    return cuda.copy(scene->stream,
                     &(struct lattn_copy){LATTN_COPY_DOWNLOAD, host, 0, scene->base, 0, 32});
}

static lattn_status step_copy(struct scene *scene)
{
    return cuda.copy(scene->stream,
                     &(struct lattn_copy){LATTN_COPY_DEVICE, scene->base, 32, scene->base, 0, 32});
}

static lattn_status step_fill(struct scene *scene)
{
    return cuda.fill(scene->stream, scene->base, 0, 1, 32);
}

static lattn_status step_synchronize(struct scene *scene)
{
    return cuda.synchronize(scene->stream);
}

static lattn_status step_time(struct scene *scene)
{
    double milliseconds = 0;
    lattn_status status = cuda.time_begin(scene->stream);
    if (!status)
        status = cuda.time_end(scene->stream, &milliseconds);
    if (!status)
        assert_true(milliseconds > 0);
    return status;
}

static const struct {
    const char *name;
    step_fn run;
    bool waits;  /* which a capture forbids */
    bool closes; /* what it made */
    bool keeps;  /* what it made, also when a later part of it fails */
} steps[] = {
    {"probe", step_probe, .waits = false},
    {"open", step_open, .closes = true},
    {"adopt", step_adopt, .closes = true},
    {"alloc", step_alloc, .closes = true},
    {"stream", step_stream, .closes = true},
    {"adopt stream", step_stream_adopt, .closes = true},
    {"load", step_load, .keeps = true},
    {"launch", step_launch, .waits = false},
    {"upload", step_upload, .waits = true},
    {"download", step_download, .waits = true},
    {"copy", step_copy, .waits = false},
    {"fill", step_fill, .waits = false},
    {"synchronize", step_synchronize, .waits = true},
    {"time", step_time, .waits = true, .keeps = true},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void scene_begin(struct scene *scene)
{
    scene->live = fake->live();
    scene->context = fake->context_create(0);
    scene->native = fake->stream_create(scene->context);
    assert_status(LATTN_OK, adopt(scene->context, &scene->device));
    assert_status(LATTN_OK, cuda.stream_open(scene->device, true, scene->native, &scene->stream));
    assert_status(LATTN_OK, cuda.load(scene->stream, &rows[0], &scene->kernel));
    assert_status(LATTN_OK, cuda.alloc(scene->device, 64, &scene->base));
}

static void scene_end(struct scene *scene)
{
    cuda.release(scene->device, scene->base);
    cuda.stream_close(scene->stream);
    cuda.close(scene->device);
    assert_int_equal(fake->live(), scene->live);
    fake->stream_destroy(scene->native);
    fake->context_destroy(scene->context);
}

/* Runs a step, which must leave the thread as it found it. */
static lattn_status run_step(struct scene *scene, size_t i, CUcontext before)
{
    fake->set_current(before);
    const int depth = fake->depth();
    const lattn_status status = steps[i].run(scene);
    if (fake->current() != before || fake->depth() != depth)
        fail_msg("%s left another context current", steps[i].name);
    if (fake->capture_mode())
        fail_msg("%s left another capture mode", steps[i].name);
    return status;
}

/* What a failure of `failed` may leave behind without the step failing: closing is void, and
 * listing goes on without the device. */
static bool may_pass(size_t i, const char *failed)
{
    static const char *const closing[] = {"Destroy",
                                          "Free",
                                          "Release",
                                          "Unload",
                                          "Synchronize",
                                          "PushCurrent",
                                          "ExchangeStreamCaptureMode"};
    if (steps[i].run == step_probe)
        return true;
    for (size_t j = 0; j < sizeof(closing) / sizeof(closing[0]); j++) {
        if (steps[i].closes && strstr(failed, closing[j]))
            return true;
    }
    return false;
}

/* A step whose nth call of the driver fails, and then the same step undisturbed. False once there
 * is no nth call. */
static bool balance_step(size_t i, int nth, CUcontext before)
{
    struct scene scene;
    fake->set_current(NULL);
    scene_begin(&scene);
    const int live = fake->live();
    fake->inject(NULL, nth, 999);
    const lattn_status status = run_step(&scene, i, before);
    const char *failed = fake->fired();
    if (status && !failed)
        fail_msg("%s: %s", steps[i].name, lattn_error_message());
    if (status && !strstr(lattn_error_message(), "(999)"))
        fail_msg("%s, %s failing: message \"%s\"", steps[i].name, failed, lattn_error_message());
    if (!status && failed && !may_pass(i, failed))
        fail_msg("%s passed though %s failed", steps[i].name, failed);
    if (status && !steps[i].keeps && fake->live() != live)
        fail_msg("%s lost an object when %s failed", steps[i].name, failed);

    const bool more = failed != NULL;
    fake->inject(NULL, 0, 0);
    if (run_step(&scene, i, before))
        fail_msg("%s, after a failure: %s", steps[i].name, lattn_error_message());
    fake->set_current(NULL);
    if (!status && !steps[i].keeps)
        scene.live += fake->live() - live; /* what could not be destroyed */
    scene_end(&scene);
    return more;
}

static void context_balance(void)
{
    meet_driver();
    CUcontext foreign = fake->context_create(1);
    for (size_t i = 0; i < STEPS; i++) {
        for (int nth = 1; balance_step(i, nth, NULL); nth++)
            continue;
        for (int nth = 1; balance_step(i, nth, foreign); nth++)
            continue;
    }
    fake->context_destroy(foreign);
}

static void host_memory(void)
{
    meet_driver();
    for (size_t i = 0; i < STEPS; i++) {
        for (int left = 0;; left++) {
            struct scene scene;
            fake->set_current(NULL);
            scene_begin(&scene);
            const int live = fake->live();
            allocations_left = left;
            const lattn_status status = run_step(&scene, i, NULL);
            const bool reached = allocations_left == 0;
            allocations_left = -1;
            if (status) {
                assert_int_equal(status, LATTN_ERROR_OUT_OF_MEMORY);
                assert_int_equal(fake->live(), live);
            }
            assert_status(LATTN_OK, run_step(&scene, i, NULL));
            scene_end(&scene);
            if (!status || !reached)
                break;
        }
    }
}

static void *fresh_thread(void *argument)
{
    struct scene scene;
    (void)argument;
    assert_null(fake->current());
    scene_begin(&scene);
    for (size_t i = 0; i < STEPS; i++)
        assert_status(LATTN_OK, run_step(&scene, i, NULL));
    scene_end(&scene);
    return NULL;
}

static void on_fresh_thread(void)
{
    meet_driver();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fresh_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void foreign_stream(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    CUcontext other = fake->context_create(1);
    CUstream theirs = fake->stream_create(other);
    void *stream;
    assert_status(LATTN_ERROR_INVALID_ARGUMENT,
                  cuda.stream_open(scene.device, true, theirs, &stream));
    assert_message("context");
    /* The default stream is the device's own. */
    assert_status(LATTN_OK, cuda.stream_open(scene.device, true, NULL, &stream));
    assert_status(LATTN_OK, cuda.synchronize(stream));
    cuda.stream_close(stream);
    fake->stream_destroy(theirs);
    fake->context_destroy(other);
    scene_end(&scene);
}

/* ---- cases: work ---------------------------------------------------------------------------- */

static void data(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    unsigned char there[64], back[64];
    for (int i = 0; i < 64; i++)
        there[i] = (unsigned char)i;
    assert_status(LATTN_OK,
                  cuda.copy(scene.stream,
                            &(struct lattn_copy){LATTN_COPY_UPLOAD, scene.base, 0, there, 0, 64}));
    assert_status(LATTN_OK,
                  cuda.copy(scene.stream, &(struct lattn_copy){LATTN_COPY_DEVICE, scene.base, 40,
                                                               scene.base, 8, 16}));
    assert_status(LATTN_OK, cuda.fill(scene.stream, scene.base, 60, 7, 4));
    assert_status(LATTN_OK, cuda.copy(scene.stream, &(struct lattn_copy){LATTN_COPY_DOWNLOAD, back,
                                                                         0, scene.base, 0, 64}));
    memcpy(there + 40, there + 8, 16);
    memset(there + 60, 7, 4);
    assert_memory_equal(there, back, 64);

    void *base;
    assert_status(LATTN_ERROR_DEVICE_MEMORY, cuda.alloc(scene.device, (uint64_t)1 << 40, &base));
    assert_message("1099511627776 bytes");
    scene_end(&scene);
}

static void launch_call(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    void *memories[LATTN_MEM_COUNT];
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        memories[i] = (void *)(uintptr_t)(0x1000 * (i + 1));
    const struct lattn_args args = {.d = 17, .scale = 0.5f, .unused = 3};
    fake->forget();
    assert_status(LATTN_OK, cuda.launch(scene.stream, scene.kernel,
                                        &(struct lattn_launch){70000, 128, 2048, memories, &args}));
    /* Not a call more than these. */
    assert_int_equal(fake->calls(NULL), 3);
    assert_int_equal(fake->calls("cuCtxPushCurrent"), 1);
    assert_int_equal(fake->calls("cuLaunchKernel"), 1);
    assert_int_equal(fake->calls("cuCtxPopCurrent"), 1);
    const struct fake_cuda_launch launch = fake->last_launch();
    assert_ptr_equal(launch.function, scene.kernel);
    assert_ptr_equal(launch.stream, scene.native);
    const unsigned grid[] = {70000, 1, 1}, block[] = {128, 1, 1};
    assert_memory_equal(launch.grid, grid, sizeof(grid));
    assert_memory_equal(launch.block, block, sizeof(block));
    assert_int_equal(launch.shared, 2048);
    assert_memory_equal(launch.memories, memories, sizeof(memories));
    assert_memory_equal(&launch.args, &args, sizeof(args));
    scene_end(&scene);
}

static void kernels(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    void *second, *kernel;
    assert_status(LATTN_OK, cuda.stream_open(scene.device, false, NULL, &second));
    fake->forget();
    assert_status(LATTN_OK, cuda.load(second, &rows[0], &kernel));
    assert_int_equal(fake->calls("cuModuleLoadData"), 0);
    assert_int_equal(fake->calls("cuFuncLoad"), 1);
    assert_int_equal(fake->calls("cuFuncSetAttribute"), 0);
    assert_status(LATTN_OK, cuda.load(second, &rows[1], &kernel));
    assert_int_equal(fake->calls("cuModuleLoadData"), 1);
    assert_int_equal(fake->calls("cuFuncSetAttribute"), 1);
    void *memories[LATTN_MEM_COUNT] = {0};
    const struct lattn_args args = {0};
    assert_status(LATTN_OK, cuda.launch(second, kernel,
                                        &(struct lattn_launch){1, 256, 100000, memories, &args}));
    assert_status(LATTN_ERROR_DEVICE, cuda.load(second, &rows[2], &kernel));
    assert_message("cuModuleGetFunction of absent");
    assert_status(LATTN_ERROR_UNSUPPORTED, cuda.load(second, &rows[3], &kernel));
    assert_message("512");
    assert_message("1024");
    cuda.stream_close(second);
    scene_end(&scene);
}

static void old_function_load(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    assert_int_equal(fake->calls("cuFuncLoad"), 0);
    scene_end(&scene);
}

struct worker {
    int ordinal;
    void *device, *kernels[2];
    pthread_barrier_t *barrier;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    void *memories[LATTN_MEM_COUNT] = {0};
    const struct lattn_args args = {0};
    void *stream;
    assert_status(LATTN_OK, cuda.stream_open(worker->device, false, NULL, &stream));
    pthread_barrier_wait(worker->barrier);
    for (int i = 0; i < 2; i++)
        assert_status(LATTN_OK, cuda.load(stream, &rows[i], &worker->kernels[i]));
    for (int i = 0; i < 1000; i++)
        assert_status(LATTN_OK, cuda.launch(stream, worker->kernels[i % 2],
                                            &(struct lattn_launch){1, 256, 1024, memories, &args}));
    cuda.stream_close(stream);
    assert_null(fake->current());
    return NULL;
}

/* Two threads on each of two devices. A module is loaded once a device, and no thread ever works in
 * the other device's context: the stand-in refuses that. */
static void threads(void)
{
    meet_driver();
    void *devices[2];
    pthread_t thread[4];
    struct worker workers[4];
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 4), 0);
    for (int i = 0; i < 2; i++)
        assert_status(LATTN_OK, open_ordinal(i, &devices[i]));
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){.device = devices[i % 2], .barrier = &barrier};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(fake->calls("cuModuleLoadData"), 4);
    assert_ptr_equal(workers[0].kernels[0], workers[2].kernels[0]);
    assert_ptr_not_equal(workers[0].kernels[0], workers[1].kernels[0]);
    for (int i = 0; i < 2; i++)
        cuda.close(devices[i]);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(fake->live(), 0);
}

/* ---- cases: capture and fork ---------------------------------------------------------------- */

static void capture(void)
{
    meet_driver();
    for (size_t i = 0; i < STEPS; i++) {
        struct scene scene;
        fake->set_current(NULL);
        scene_begin(&scene);
        fake->capture_begin(scene.native);
        const lattn_status status = run_step(&scene, i, NULL);
        const int captured = fake->capture_end(scene.native);
        if (captured < 0)
            fail_msg("%s ended the capture", steps[i].name);
        assert_int_equal(captured, steps[i].run == step_launch);
        if (steps[i].waits) {
            assert_int_equal(status, LATTN_ERROR_INVALID_ARGUMENT);
            assert_message("captured");
        } else if (status) {
            fail_msg("%s during a capture: %s", steps[i].name, lattn_error_message());
        }
        scene_end(&scene);
    }
}

/* Runs in a child process; its exit status is the number of failures. */
static void in_child(void (*body)(void))
{
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        body();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void whole_story(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    for (size_t i = 0; i < STEPS; i++)
        assert_status(LATTN_OK, run_step(&scene, i, NULL));
    scene_end(&scene);
}

static void fork_after_load(void)
{
    /* Being loaded does nothing: the driver is not even open. */
    assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));
    in_child(whole_story);
    whole_story();
}

static void after_fork(void)
{
    void *device;
    assert_int_equal(probe().count, 0);
    assert_status(LATTN_ERROR_NO_DEVICE, open_ordinal(0, &device));
    assert_message("forked");
}

static void fork_after_init(void)
{
    whole_story();
    in_child(after_fork);
    whole_story();
}

/* ---- running the cases ---------------------------------------------------------------------- */

/* A folder whose libcuda.so.1 is no library, so that there is no driver on any machine. */
static char broken[] = "/tmp/lattn-cuda-XXXXXX";

static const struct {
    const char *name;
    void (*run)(void);
    const char *variable, *value;
} cases[] = {
    {"no_driver", no_driver, "LD_LIBRARY_PATH", broken},
    {"no_device", no_device, "FAKE_CUDA_INIT", "100"},
    {"listing", listing, "FAKE_CUDA_DEVICES", "9.0,8.6,7.5,8.9,11.0"},
    {"caps", caps, NULL, NULL},
    {"driver_too_old", driver_too_old, "FAKE_CUDA_DRIVER", "12040"},
    {"entry_point_missing", entry_point_missing, "FAKE_CUDA_MISSING", "cuFuncSetAttribute"},
    {"code_choice", code_choice, NULL, NULL},
    {"image_without_code", image_without_code, "FAKE_CUDA_IMAGE", "209"},
    {"image_too_new", image_too_new, "FAKE_CUDA_IMAGE", "222"},
    {"context_balance", context_balance, NULL, NULL},
    {"host_memory", host_memory, NULL, NULL},
    {"on_fresh_thread", on_fresh_thread, NULL, NULL},
    {"foreign_stream", foreign_stream, NULL, NULL},
    {"data", data, NULL, NULL},
    {"launch_call", launch_call, NULL, NULL},
    {"kernels", kernels, NULL, NULL},
    {"old_function_load", old_function_load, "FAKE_CUDA_MISSING", "cuFuncLoad"},
    {"threads", threads, NULL, NULL},
    {"capture", capture, NULL, NULL},
    {"fork_after_load", fork_after_load, NULL, NULL},
    {"fork_after_init", fork_after_init, NULL, NULL},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int make_broken(void **state)
{
    char path[64];
    (void)state;
    if (!mkdtemp(broken))
        return -1;
    snprintf(path, sizeof(path), "%s/libcuda.so.1", broken);
    FILE *file = fopen(path, "w");
    if (!file || fputs("no library\n", file) < 0)
        return -1;
    return fclose(file);
}

static int remove_broken(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof(path), "%s/libcuda.so.1", broken);
    return unlink(path) || rmdir(broken);
}

static void spawn(void **state)
{
    const size_t i = (size_t)(uintptr_t)*state;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        if (cases[i].variable)
            setenv(cases[i].variable, cases[i].value, 1);
        execl("/proc/self/exe", "cuda_test", cases[i].name, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("case %s failed", cases[i].name);
}

static void run_case(void **state)
{
    cases[(size_t)(uintptr_t)*state].run();
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[CASES];
    for (size_t i = 0; i < CASES; i++) {
        tests[i] = (struct CMUnitTest){cases[i].name, spawn, NULL, NULL, (void *)(uintptr_t)i};
        if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
            tests[0] =
                (struct CMUnitTest){cases[i].name, run_case, NULL, NULL, (void *)(uintptr_t)i};
            return _cmocka_run_group_tests(argv[1], tests, 1, NULL, NULL);
        }
    }
    return _cmocka_run_group_tests("cuda", tests, CASES, make_broken, remove_broken);
}
