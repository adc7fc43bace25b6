/* What the cases share: a build and a catalogue of our own, since what is tested is the host code,
 * and every service of the backend as a step. */
#include <dlfcn.h>
#include <stdlib.h>

#include "backends/cuda/backend.h"
#include "backends/cuda/code.h"
#include "cuda_test.h"

const struct lattn_cuda_build lattn_cuda_build = {"80 86 90a", 90, 13000};

static const char image_a[] = "a", image_b[] = "b";

const struct lattn_kernel_row rows[] = {
    [ROW_SMALL] = {.entry = "small", .program = image_a, .threads = 256, .shared = 1024},
    [ROW_LARGE] = {.entry = "large", .program = image_b, .threads = 256, .shared = 100000},
    [ROW_ABSENT] = {.entry = "absent", .program = image_a, .threads = 256},
    [ROW_WIDE] = {.entry = "wide", .program = image_a, .threads = 1024},
};
const struct lattn_backend cuda = LATTN_CUDA_BACKEND(rows);

const struct fake_cuda *fake;

/* ---- the host side --------------------------------------------------------------------------- */

_Thread_local int allocations_left = -1;

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

char log_text[2048];

static void test_log(void *user, lattn_log_level level, const char *message)
{
    (void)user;
    (void)level;
    strncat(log_text, message, sizeof(log_text) - strlen(log_text) - 1);
}

const struct lattn_env env = {
    .allocator = {host_alloc, host_free, NULL}, .log = test_log, .log_level = LATTN_LOG_DEBUG};

void meet_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    assert_non_null(library);
    fake = dlsym(library, "fake_cuda");
    assert_non_null(fake);
}

lattn_status list_add(void *user, const lattn_device_info *info, int32_t rank)
{
    struct list *list = user;
    assert_true(list->count < 8);
    list->info[list->count] = *info;
    list->rank[list->count++] = rank;
    return LATTN_OK;
}

struct list probe(void)
{
    struct list list = {0};
    assert_status(LATTN_OK, cuda.probe(&env, list_add, &list));
    return list;
}

lattn_status open_ordinal(int32_t ordinal, void **device)
{
    struct lattn_caps caps;
    return cuda.open(&env, ordinal, NULL, &caps, NULL, device);
}

lattn_status adopt(CUcontext context, void **device)
{
    struct lattn_caps caps;
    lattn_device_info info;
    const lattn_native native = {sizeof(native), "cuda", context, NULL, 0};
    return cuda.open(&env, -1, &native, &caps, &info, device);
}

/* ---- scenes and steps ------------------------------------------------------------------------ */

static unsigned char host[64];

lattn_status step_probe(struct scene *scene)
{
    struct list list = {0};
    (void)scene;
    return cuda.probe(&env, list_add, &list);
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
    return cuda.load(scene->stream, &rows[ROW_LARGE], &kernel);
}

lattn_status step_launch(struct scene *scene)
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

const struct step steps[] = {
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
const size_t step_count = sizeof(steps) / sizeof(steps[0]);

void scene_begin(struct scene *scene)
{
    scene->live = fake->live();
    scene->context = fake->context_create(0);
    scene->native = fake->stream_create(scene->context);
    assert_status(LATTN_OK, adopt(scene->context, &scene->device));
    assert_status(LATTN_OK, cuda.stream_open(scene->device, true, scene->native, &scene->stream));
    assert_status(LATTN_OK, cuda.load(scene->stream, &rows[ROW_SMALL], &scene->kernel));
    assert_status(LATTN_OK, cuda.alloc(scene->device, 64, &scene->base));
}

void scene_end(struct scene *scene)
{
    cuda.release(scene->device, scene->base);
    cuda.stream_close(scene->stream);
    cuda.close(scene->device);
    assert_int_equal(fake->live(), scene->live);
    fake->stream_destroy(scene->native);
    fake->context_destroy(scene->context);
}

lattn_status run_step(struct scene *scene, size_t i, CUcontext before)
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
