/* The OpenCL backend on the caller's objects, and on queues and devices that cannot tell the time,
 * over the fake driver. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "world.h"

static const struct lattn_backend *const backend = &lattn_backend_opencl;

static const struct lattn_opencl_api *native_api(void)
{
    const char *why;
    const struct lattn_opencl_api *cl = lattn_opencl_api_get(&why);
    assert_non_null(cl);
    return cl;
}

static lattn_status adopt(struct opencl_world *world, void *context, void *id, void **device)
{
    lattn_native native = {sizeof(native), "opencl", context, id, 0};
    struct lattn_caps caps;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    lattn_status status = backend->open(&world->env, 0, &native, &caps, &info, device);
    if (!status)
        assert_string_equal(info.name, "A device");
    return status;
}

static void adopts_only_what_fits(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, false);
    const struct lattn_opencl_api *cl = native_api();
    cl_device_id pair[2] = {&fake_opencl.platforms[0].devices[0],
                            &fake_opencl.platforms[0].devices[1]};
    cl_int error;
    cl_context context = cl->clCreateContext(NULL, 2, pair, NULL, NULL, &error);
    cl_context other = cl->clCreateContext(NULL, 1, pair, NULL, NULL, &error);
    void *device = NULL, *stream = NULL;
    assert_int_equal(adopt(&world, NULL, pair[0], &device), LATTN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(lattn_error_message(), "native->context = NULL: must be a cl_context");
    assert_int_equal(adopt(&world, context, NULL, &device), LATTN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(lattn_error_message(), "native->device = NULL: must be a cl_device_id");
    assert_int_equal(adopt(&world, other, pair[1], &device), LATTN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(lattn_error_message(), "not a device of native->context"));
    assert_null(device);
    assert_int_equal(adopt(&world, context, pair[1], &device), LATTN_OK);

    const struct {
        cl_context context;
        cl_device_id device;
        cl_ulong properties;
        const char *why;
    } queues[] = {
        {context, pair[0], 0, "its cl_device_id"},
        {other, pair[0], 0, "its cl_context"},
        {context, pair[1], LATTN_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, "out of order"},
    };
    for (int i = 0; i < 3; i++) {
        cl_command_queue queue = cl->clCreateCommandQueue(queues[i].context, queues[i].device,
                                                          queues[i].properties, &error);
        assert_int_equal(backend->stream_open(device, true, queue, &stream),
                         LATTN_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(lattn_error_message(), queues[i].why));
        cl->clReleaseCommandQueue(queue);
    }
    assert_int_equal(backend->stream_open(device, true, NULL, &stream),
                     LATTN_ERROR_INVALID_ARGUMENT);
    assert_null(stream);
    backend->close(device);
    cl->clReleaseContext(other);
    cl->clReleaseContext(context);
    opencl_world_end(&world);
}

static void adopted_queue_stays_the_callers(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    const struct lattn_opencl_api *cl = native_api();
    cl_device_id pair[2] = {&fake_opencl.platforms[0].devices[0],
                            &fake_opencl.platforms[0].devices[1]};
    cl_int error;
    cl_context context = cl->clCreateContext(NULL, 2, pair, NULL, NULL, &error);
    cl_command_queue queue = cl->clCreateCommandQueue(context, pair[1], 0, &error);
    void *device, *stream, *kernel;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(adopt(&world, context, pair[1], &device), LATTN_OK);
        assert_int_equal(backend->stream_open(device, true, queue, &stream), LATTN_OK);
        assert_int_equal(backend->load(stream, &opencl_rows[OPENCL_FIRST], &kernel), LATTN_OK);
        void *memories[LATTN_MEM_COUNT] = {NULL};
        struct lattn_args args = {0};
        struct lattn_launch launch = {1, 64, 0, memories, &args};
        assert_int_equal(backend->launch(stream, kernel, &launch), LATTN_OK);
        backend->stream_close(stream);
        backend->close(device);
    }
    /* Never flushed nor waited for by the library; its binary is the second of the context's. */
    assert_int_equal(fake_opencl.flushes, 0);
    assert_int_equal(fake_opencl.finishes, 0);
    assert_int_equal(fake_opencl.from_source, 1);
    assert_int_equal(fake_opencl.from_binary, 1);
    assert_int_equal(fake_opencl.live, 2); /* the caller's context and queue */
    cl->clReleaseCommandQueue(queue);
    cl->clReleaseContext(context);
    opencl_world_end(&world);
}

static void time_needs_no_profiling(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, false);
    struct lattn_caps caps;
    void *device = opencl_open(&world, 0, &caps), *stream;
    double milliseconds;
    /* Events that carry no times, a device that has no timer: by the host's clock. (The fake's own
     * would say 2 ms.) */
    for (int i = 0; i < 2; i++) {
        fake_opencl.timeless = i == 0;
        fake_opencl.resolution = i == 0;
        assert_int_equal(backend->stream_open(device, false, NULL, &stream), LATTN_OK);
        assert_int_equal(backend->time_begin(stream), LATTN_OK);
        nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
        milliseconds = -1;
        assert_int_equal(backend->time_end(stream, &milliseconds), LATTN_OK);
        assert_true(milliseconds >= 3 && milliseconds < 1000);
        backend->stream_close(stream);
    }
    /* One begun and never ended leaks nothing. */
    fake_opencl.resolution = 1;
    assert_int_equal(backend->stream_open(device, false, NULL, &stream), LATTN_OK);
    assert_int_equal(backend->time_begin(stream), LATTN_OK);
    assert_int_equal(backend->time_begin(stream), LATTN_OK);
    backend->stream_close(stream);
    backend->close(device);
    opencl_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adopts_only_what_fits),
        cmocka_unit_test(adopted_queue_stays_the_callers),
        cmocka_unit_test(time_needs_no_profiling),
    };
    return cmocka_run_group_tests_name("opencl on the caller's objects", tests, NULL, NULL);
}
