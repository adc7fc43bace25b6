/* The OpenCL backend over the drivers of this machine: what reaches a kernel, the caller's objects,
 * many threads, the cache, and what a real compiler's refusal looks like. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <unistd.h>

#include "allocator.h"
#include "backends/opencl/api.h"
#include "backends/opencl/catalog.h"
#include "core/backend.h"

extern const struct lattn_backend lattn_backend_opencl;
extern const char opencl_test_source[];
static const struct lattn_backend *const backend = &lattn_backend_opencl;

enum { SCALE, REVERSE, NANS, BROKEN, ROWS };
static struct lattn_opencl_program program = {NULL, "-cl-std=CL1.2"};
static const struct lattn_opencl_program broken = {
    "__kernel void broken(__global float *o)\n{\n    o[0] = no_such_thing;\n}\n", "-cl-std=CL1.2"};
static const struct lattn_kernel_row rows[ROWS] = {
    [SCALE] = {.entry = "test_scale", .program = &program, .threads = 64},
    [REVERSE] = {.entry = "test_reverse", .program = &program, .threads = 256, .shared = 1024},
    [NANS] = {.entry = "test_nan", .program = &program, .threads = 64},
    [BROKEN] = {.entry = "broken", .program = &broken, .threads = 1},
};

static struct allocator allocator;
static char compiler_said[512];

static void listen(void *user, lattn_log_level level, const char *message)
{
    (void)user;
    if (level == LATTN_LOG_ERROR && strstr(message, "no_such_thing"))
        snprintf(compiler_said, sizeof(compiler_said), "%s", message);
}

static struct lattn_env env = {.log = listen, .log_level = LATTN_LOG_DEBUG};

/* The devices that can be opened. */
static int32_t ordinals[16];
static int device_count;

static lattn_status keep(void *user, const lattn_device_info *info, int32_t rank)
{
    (void)user;
    assert_true(info->name[0] && info->driver[0]);
    assert_true(rank > 0);
    if (info->status)
        assert_true(info->reason[0]);
    else if (device_count < 16)
        ordinals[device_count++] = info->ordinal;
    return LATTN_OK;
}

static int find_devices(void **state)
{
    (void)state;
    program.source = opencl_test_source;
    env.allocator = allocator_params(&allocator);
    if (backend->probe(&env, keep, NULL))
        return -1;
    const char *required = getenv("LATTN_TEST_REQUIRE");
    if (!device_count && required && strstr(required, "opencl")) {
        print_error("no OpenCL device can be opened\n");
        return -1;
    }
    return 0;
}

/* ---- a device with a stream and two memories ------------------------------------------------- */

enum { COUNT = 1024 };

struct bench {
    struct lattn_caps caps;
    lattn_device_info info;
    void *device, *stream, *q, *o;
};

static void bench_open(struct bench *bench, int32_t ordinal)
{
    *bench = (struct bench){.info = LATTN_DEVICE_INFO_INIT};
    assert_int_equal(backend->open(&env, ordinal, NULL, &bench->caps, &bench->info, &bench->device),
                     LATTN_OK);
    assert_int_equal(backend->stream_open(bench->device, false, NULL, &bench->stream), LATTN_OK);
    assert_int_equal(backend->alloc(bench->device, COUNT * 8, &bench->q), LATTN_OK);
    assert_int_equal(backend->alloc(bench->device, COUNT * 8, &bench->o), LATTN_OK);
}

static void bench_close(struct bench *bench)
{
    backend->release(bench->device, bench->q);
    backend->release(bench->device, bench->o);
    backend->stream_close(bench->stream);
    backend->close(bench->device);
    assert_int_equal(atomic_load(&allocator.live), 0);
}

static void upload(void *stream, void *base, uint64_t offset, const void *from, uint64_t bytes)
{
    assert_int_equal(backend->copy(stream, &(struct lattn_copy){LATTN_COPY_UPLOAD, base, offset,
                                                                from, 0, bytes}),
                     LATTN_OK);
}

static void download(void *stream, void *to, void *base, uint64_t offset, uint64_t bytes)
{
    assert_int_equal(backend->copy(stream, &(struct lattn_copy){LATTN_COPY_DOWNLOAD, to, 0, base,
                                                                offset, bytes}),
                     LATTN_OK);
}

static void *load(void *stream, int row)
{
    void *kernel = NULL;
    if (backend->load(stream, &rows[row], &kernel))
        fail_msg("%s", lattn_error_message());
    return kernel;
}

/* o = factor * q on `stream`, and checks it. Not with cmocka: it also runs in threads. */
static bool scales(void *stream, void *kernel, void *q, void *o, float factor)
{
    float in[COUNT], out[COUNT + 4];
    for (int i = 0; i < COUNT; i++)
        in[i] = (float)i;
    struct lattn_args args = {.tokens = COUNT - 24, .scale = factor, .flags = 77};
    args.q.offset = 24;
    args.o.offset = 0;
    void *memories[LATTN_MEM_COUNT] = {NULL};
    memories[LATTN_MEM_Q] = q;
    memories[LATTN_MEM_O] = o;
    memories[LATTN_MEM_WORK] = q;
    struct lattn_launch launch = {COUNT / 64, 64, 0, memories, &args};
    struct lattn_copy up = {LATTN_COPY_UPLOAD, q, 0, in, 0, sizeof(in)};
    struct lattn_copy down = {LATTN_COPY_DOWNLOAD, out, 0, o, 0, sizeof(out)};
    if (backend->copy(stream, &up) || backend->fill(stream, o, 0, 0xFF, sizeof(out)) ||
        backend->launch(stream, kernel, &launch) || backend->copy(stream, &down))
        return false;
    for (int i = 0; i < COUNT - 24; i++)
        if (out[i] != factor * in[i + 24])
            return false;
    const float *facts = &out[COUNT - 24];
    return facts[0] == (float)sizeof(struct lattn_args) && facts[1] == 77 && facts[2] == 1 &&
           facts[3] == COUNT / 64 && isnan(out[COUNT]);
}

static void skip_without_devices(void)
{
    if (!device_count)
        skip();
}

static void arguments_reach_the_kernel(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        assert_int_equal(bench.info.ordinal, ordinals[d]);
        assert_true(bench.caps.max_threads >= 256 && bench.caps.max_shared >= 16384);
        assert_true(bench.caps.compute_units > 0 && bench.caps.max_groups >= 65535);
        void *kernel = load(bench.stream, SCALE);
        for (int i = 1; i < 4; i++)
            assert_true(scales(bench.stream, kernel, bench.q, bench.o, (float)i));
        bench_close(&bench);
    }
}

static void group_memory_reaches_the_kernel(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        float in[COUNT], out[COUNT];
        for (int i = 0; i < COUNT; i++)
            in[i] = (float)i;
        upload(bench.stream, bench.q, 0, in, sizeof(in));
        struct lattn_args args = {0};
        void *memories[LATTN_MEM_COUNT] = {NULL};
        memories[LATTN_MEM_Q] = bench.q;
        memories[LATTN_MEM_O] = bench.o;
        struct lattn_launch launch = {COUNT / 256, 256, rows[REVERSE].shared, memories, &args};
        assert_int_equal(backend->launch(bench.stream, load(bench.stream, REVERSE), &launch),
                         LATTN_OK);
        download(bench.stream, out, bench.o, 0, sizeof(out));
        for (int i = 0; i < COUNT; i++)
            assert_true(out[i] == in[i / 256 * 256 + 255 - i % 256]);
        bench_close(&bench);
    }
}

static void nan_and_inf_are_themselves(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        float in[2] = {NAN, INFINITY}, out[4];
        upload(bench.stream, bench.q, 0, in, sizeof(in));
        struct lattn_args args = {0};
        void *memories[LATTN_MEM_COUNT] = {NULL};
        memories[LATTN_MEM_Q] = bench.q;
        memories[LATTN_MEM_O] = bench.o;
        struct lattn_launch launch = {1, 64, 0, memories, &args};
        assert_int_equal(backend->launch(bench.stream, load(bench.stream, NANS), &launch),
                         LATTN_OK);
        download(bench.stream, out, bench.o, 0, sizeof(out));
        assert_true(isnan(out[0]) && out[1] == 1 && out[2] == 1 && isnan(out[3]));
        bench_close(&bench);
    }
}

static void copies_and_fills(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        unsigned char in[301], out[400];
        for (int i = 0; i < 301; i++)
            in[i] = (unsigned char)(i * 7);
        assert_int_equal(backend->fill(bench.stream, bench.o, 0, 0xA5, 400), LATTN_OK);
        assert_int_equal(backend->fill(bench.stream, bench.o, 399, 0x11, 1), LATTN_OK);
        upload(bench.stream, bench.q, 3, in, sizeof(in));
        assert_int_equal(
            backend->copy(bench.stream,
                          &(struct lattn_copy){LATTN_COPY_DEVICE, bench.o, 17, bench.q, 4, 300}),
            LATTN_OK);
        download(bench.stream, out, bench.o, 0, sizeof(out));
        for (int i = 0; i < 399; i++)
            assert_int_equal(out[i], i < 17 || i >= 317 ? 0xA5 : in[i - 16]);
        assert_int_equal(out[399], 0x11);
        /* Past the end: refused by the driver, with its call's name. */
        assert_int_equal(backend->fill(bench.stream, bench.o, COUNT * 8, 0, 1), LATTN_ERROR_DEVICE);
        assert_non_null(strstr(lattn_error_message(), "clEnqueueFillBuffer failed: CL_"));
        bench_close(&bench);
    }
}

static void too_much_memory_is_a_status(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        /* Core refuses what is above the device's limit; some drivers would take it. */
        const uint64_t bytes = UINT64_C(1) << 62;
        assert_in_range(bench.caps.max_memory, 1, bytes - 1);
        void *base = NULL;
        lattn_status status = backend->alloc(bench.device, bytes, &base);
        if (status == LATTN_OK) {
            backend->release(bench.device, base);
        } else {
            assert_int_equal(status, LATTN_ERROR_DEVICE_MEMORY);
            assert_non_null(strstr(lattn_error_message(), "4611686018427387904 bytes"));
            assert_null(base);
        }
        bench_close(&bench);
    }
}

static void time_is_measured(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        void *kernel = load(bench.stream, SCALE);
        double milliseconds = -1;
        for (int i = 0; i < 2; i++) {
            assert_int_equal(backend->time_begin(bench.stream), LATTN_OK);
            for (int j = 0; j < 10; j++)
                assert_true(scales(bench.stream, kernel, bench.q, bench.o, 2));
            assert_int_equal(backend->time_end(bench.stream, &milliseconds), LATTN_OK);
            assert_true(milliseconds > 0 && milliseconds < 60000);
        }
        bench_close(&bench);
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

struct worker {
    void *device;
    pthread_t thread;
    int number;
    bool right;
};

static void *work(void *user)
{
    struct worker *worker = user;
    void *stream, *kernel, *q, *o;
    if (backend->stream_open(worker->device, false, NULL, &stream))
        return NULL;
    if (!backend->alloc(worker->device, COUNT * 8, &q)) {
        if (!backend->alloc(worker->device, COUNT * 8, &o)) {
            worker->right = !backend->load(stream, &rows[SCALE], &kernel);
            for (int i = 0; i < 20 && worker->right; i++)
                worker->right = scales(stream, kernel, q, o, (float)(worker->number * 100 + i));
            backend->release(worker->device, o);
        }
        backend->release(worker->device, q);
    }
    backend->stream_close(stream);
    return NULL;
}

static void threads_launch_on_their_own_streams(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        if (strstr(bench.info.driver, "Oclgrind")) { /* an interpreter for one thread */
            bench_close(&bench);
            continue;
        }
        struct worker workers[8];
        for (int i = 0; i < 8; i++) {
            workers[i] = (struct worker){.device = bench.device, .number = i};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (int i = 0; i < 8; i++)
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        for (int i = 0; i < 8; i++)
            assert_true(workers[i].right);
        bench_close(&bench);
    }
}

/* ---- the caller's objects -------------------------------------------------------------------- */

static void adopts_the_callers_objects(void **state)
{
    (void)state;
    skip_without_devices();
    const char *why;
    const struct lattn_opencl_api *cl = lattn_opencl_api_get(&why);
    cl_platform_id platforms[16];
    cl_uint count = 0;
    assert_int_equal(cl->clGetPlatformIDs(16, platforms, &count), 0);
    int adopted = 0;
    for (cl_uint p = 0; p < count && p < 16; p++) {
        cl_device_id id;
        cl_uint ids = 0;
        if (cl->clGetDeviceIDs(platforms[p], 0xFFFFFFFF, 1, &id, &ids) || !ids)
            continue;
        cl_int error;
        cl_context context = cl->clCreateContext(NULL, 1, &id, NULL, NULL, &error);
        assert_int_equal(error, 0);
        cl_context other = cl->clCreateContext(NULL, 1, &id, NULL, NULL, &error);
        assert_int_equal(error, 0);
        /* Neither queue profiles. */
        cl_command_queue queue = cl->clCreateCommandQueue(context, id, 0, &error);
        assert_int_equal(error, 0);
        cl_command_queue stray = cl->clCreateCommandQueue(other, id, 0, &error);
        assert_int_equal(error, 0);
        cl_command_queue unordered = cl->clCreateCommandQueue(
            context, id, LATTN_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error);
        if (error)
            unordered = NULL; /* the device has none */
        cl_mem q = cl->clCreateBuffer(context, LATTN_CL_MEM_READ_WRITE, COUNT * 8, NULL, &error);
        assert_int_equal(error, 0);
        cl_mem o = cl->clCreateBuffer(context, LATTN_CL_MEM_READ_WRITE, COUNT * 8, NULL, &error);
        assert_int_equal(error, 0);

        struct lattn_caps caps;
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        lattn_native native = {sizeof(native), "opencl", context, id, 0};
        void *device = NULL, *stream = NULL;
        if (!backend->open(&env, 0, &native, &caps, &info, &device)) {
            adopted++;
            assert_int_equal(backend->stream_open(device, true, stray, &stream),
                             LATTN_ERROR_INVALID_ARGUMENT);
            assert_int_equal(backend->stream_open(device, true, unordered, &stream),
                             LATTN_ERROR_INVALID_ARGUMENT);
            assert_null(stream);
            assert_int_equal(backend->stream_open(device, true, queue, &stream), LATTN_OK);
            assert_true(scales(stream, load(stream, SCALE), q, o, 3));
            double milliseconds = -1;
            assert_int_equal(backend->time_begin(stream), LATTN_OK);
            assert_int_equal(backend->time_end(stream, &milliseconds), LATTN_OK);
            assert_true(milliseconds >= 0);
            backend->stream_close(stream);
            backend->close(device);
        }
        /* Still the caller's, and alive. */
        assert_int_equal(cl->clFinish(queue), 0);
        cl->clReleaseMemObject(q);
        cl->clReleaseMemObject(o);
        if (unordered)
            cl->clReleaseCommandQueue(unordered);
        cl->clReleaseCommandQueue(stray);
        cl->clReleaseCommandQueue(queue);
        cl->clReleaseContext(other);
        cl->clReleaseContext(context);
    }
    assert_true(adopted > 0);
    assert_int_equal(atomic_load(&allocator.live), 0);
}

/* ---- building -------------------------------------------------------------------------------- */

static void compiler_is_quoted(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        struct bench bench;
        bench_open(&bench, ordinals[d]);
        void *kernel = NULL;
        compiler_said[0] = '\0';
        assert_int_equal(backend->load(bench.stream, &rows[BROKEN], &kernel), LATTN_ERROR_BUILD);
        assert_non_null(strstr(lattn_error_message(), "kernel broken: clBuildProgram failed: CL_"));
        assert_null(strchr(lattn_error_message(), '\n'));
        assert_non_null(strstr(compiler_said, "no_such_thing"));
        assert_null(kernel);
        bench_close(&bench);
    }
}

/* Runs a kernel from source, then from the cache. PoCL keeps its own. */
static void cached_programs_run(void **state)
{
    (void)state;
    skip_without_devices();
    char folder[] = "opencl-cache-XXXXXX";
    assert_non_null(mkdtemp(folder));
    env.cache_dir = folder;
    int expected = 0;
    for (int d = 0; d < device_count; d++) {
        for (int i = 0; i < 3; i++) {
            struct bench bench;
            bench_open(&bench, ordinals[d]);
            assert_true(scales(bench.stream, load(bench.stream, SCALE), bench.q, bench.o, 5));
            expected += i == 0 && !strstr(bench.info.driver, "Portable Computing Language");
            bench_close(&bench);
        }
    }
    env.cache_dir = NULL;
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    int files = 0;
    for (struct dirent *entry; (entry = readdir(listing));) {
        if (entry->d_name[0] == '.')
            continue;
        char path[512];
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        assert_int_equal(remove(path), 0);
        files++;
    }
    closedir(listing);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(files, expected);
}

static void allocations_can_fail(void **state)
{
    (void)state;
    skip_without_devices();
    for (int d = 0; d < device_count; d++) {
        int failures = 0;
        for (long at = 1;; at++) {
            atomic_store(&allocator.calls, 0);
            atomic_store(&allocator.fail_at, at);
            struct lattn_caps caps;
            lattn_device_info info = LATTN_DEVICE_INFO_INIT;
            void *device, *stream, *kernel;
            lattn_status status = backend->open(&env, ordinals[d], NULL, &caps, &info, &device);
            if (!status) {
                status = backend->stream_open(device, false, NULL, &stream);
                if (!status) {
                    status = backend->load(stream, &rows[SCALE], &kernel);
                    backend->stream_close(stream);
                }
                backend->close(device);
            }
            bool reached = atomic_load(&allocator.calls) >= at;
            atomic_store(&allocator.fail_at, 0);
            assert_int_equal(atomic_load(&allocator.live), 0);
            if (!reached)
                break;
            assert_int_equal(status, LATTN_ERROR_OUT_OF_MEMORY);
            failures++;
        }
        assert_int_equal(failures, 4); /* a device, a stream, a program and a kernel */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_reach_the_kernel),
        cmocka_unit_test(group_memory_reaches_the_kernel),
        cmocka_unit_test(nan_and_inf_are_themselves),
        cmocka_unit_test(copies_and_fills),
        cmocka_unit_test(too_much_memory_is_a_status),
        cmocka_unit_test(time_is_measured),
        cmocka_unit_test(threads_launch_on_their_own_streams),
        cmocka_unit_test(adopts_the_callers_objects),
        cmocka_unit_test(compiler_is_quoted),
        cmocka_unit_test(cached_programs_run),
        cmocka_unit_test(allocations_can_fail),
    };
    return cmocka_run_group_tests_name("opencl", tests, find_devices, NULL);
}
