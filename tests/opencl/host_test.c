/* The OpenCL backend's host code over a driver that can be told to fail: every entry point missing
 * in turn, every call failing in turn, every allocation failing in turn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "world.h"

static const struct lattn_backend *const backend = &lattn_backend_opencl;

/* ---- probing -------------------------------------------------------------------------------- */

struct found {
    int count;
    lattn_device_info infos[8];
    int32_t ranks[8];
};

static lattn_status keep(void *user, const lattn_device_info *info, int32_t rank)
{
    struct found *found = user;
    assert_in_range(found->count, 0, 7);
    assert_int_equal(info->ordinal, found->count);
    found->infos[found->count] = *info;
    found->ranks[found->count++] = rank;
    return LATTN_OK;
}

static struct found probe(struct opencl_world *world)
{
    struct found found = {0};
    assert_int_equal(backend->probe(&world->env, keep, &found), LATTN_OK);
    return found;
}

/* The library is opened once in a process, so these need processes of their own, which begin
 * before this one has opened it. */
static const char *hidden;
static bool absent;

static void expect_nothing(void)
{
    struct opencl_world world;
    opencl_world_start(&world, false);
    fake_opencl.absent = absent;
    fake_opencl.hidden = hidden;
    for (int i = 0; i < 2; i++) {
        struct found found = {0};
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        struct lattn_caps caps;
        void *device = NULL;
        if (backend->probe(&world.env, keep, &found) || found.count)
            _exit(1);
        if (backend->open(&world.env, 0, NULL, &caps, &info, &device) != LATTN_ERROR_NO_DEVICE)
            _exit(2);
        if (!strstr(lattn_error_message(), hidden ? hidden : "libthere-is-none"))
            _exit(3);
    }
    if (world.allocator.live || fake_opencl.misuse || world.log_lines != 2)
        _exit(4);
}

static void absent_library_means_no_devices(void **state)
{
    (void)state;
    absent = true;
    hidden = NULL;
    assert_int_equal(opencl_in_child(expect_nothing), 0);
    absent = false;
}

static void missing_entry_point_means_no_devices(void **state)
{
    (void)state;
#define NAME(type, name, parameters) #name,
    static const char *const names[] = {LATTN_OPENCL_CALLS(NAME)};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        hidden = names[i];
        assert_int_equal(opencl_in_child(expect_nothing), 0);
    }
    hidden = NULL;
}

static void use_preloaded(void)
{
    struct opencl_world world;
    opencl_world_start(&world, false);
    fake_opencl.preloaded = true;
    if (opencl_session(&world) || !fake_opencl.launches || fake_opencl.misuse)
        _exit(1);
}

static void preloaded_library_is_the_one(void **state)
{
    (void)state;
    assert_int_equal(opencl_in_child(use_preloaded), 0);
}

static void failing_platform_stops_no_other(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, false);
    /* The first to fail is the one whose devices would have had the lowest numbers. */
    fake_opencl.platforms[0].error = LATTN_CL_OUT_OF_HOST_MEMORY;
    struct found before = probe(&world);
    assert_int_equal(before.count, 1);
    assert_string_equal(before.infos[0].driver, "Second 1.0");
    assert_int_equal(world.log_lines, 1);
    /* It recovers; the others keep their numbers. */
    fake_opencl.platforms[0].error = 0;
    struct found after = probe(&world);
    assert_int_equal(after.count, 3);
    assert_string_equal(after.infos[0].driver, "Second 1.0");
    assert_string_equal(after.infos[1].driver, "First 1.0");
    assert_string_equal(after.infos[1].name, "A device");
    assert_int_equal(after.infos[1].kind, LATTN_DEVICE_GPU);
    assert_int_equal(after.infos[2].kind, LATTN_DEVICE_CPU);
    assert_true(after.ranks[1] > after.ranks[0] && after.ranks[0] > 0);
    opencl_world_end(&world);
}

static void no_platforms_means_no_new_devices(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, false);
    int count = probe(&world).count;
    fake_opencl.platform_count = 0;
    assert_int_equal(probe(&world).count, count);
    opencl_world_end(&world);
}

static lattn_status refuse(void *user, const lattn_device_info *info, int32_t rank)
{
    (void)user;
    (void)info;
    (void)rank;
    return LATTN_ERROR_OUT_OF_MEMORY;
}

static void probe_fails_only_with_its_taker(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, false);
    assert_int_equal(backend->probe(&world.env, refuse, NULL), LATTN_ERROR_OUT_OF_MEMORY);
    long calls = 0;
    for (long at = 1; at == 1 || at <= calls; at++) {
        fake_opencl_reset();
        fake_opencl.fail_at = at;
        fake_opencl.fail_code = LATTN_CL_OUT_OF_RESOURCES;
        struct found found = probe(&world);
        assert_int_equal(found.count, 3);
        calls = fake_opencl.calls;
    }
    assert_true(calls > 20);
    opencl_world_end(&world);
}

static void unusable_devices_are_listed_with_why(void **state)
{
    (void)state;
    const struct {
        struct _cl_device_id change;
        lattn_status status;
        const char *why;
    } cases[] = {
        {{.available = 0, .compiler = 1}, LATTN_ERROR_NO_DEVICE, "not available"},
        {{.available = 1, .compiler = 0}, LATTN_ERROR_NO_DEVICE_CODE, "no compiler"},
        {{.available = 1, .compiler = 1, .version = "OpenCL 1.1 old"},
         LATTN_ERROR_DEVICE_TOO_OLD,
         "\"OpenCL 1.1 old\", needs OpenCL 1.2"},
        {{.available = 1, .compiler = 1, .language = "OpenCL C 1.1"},
         LATTN_ERROR_DEVICE_TOO_OLD,
         "\"OpenCL C 1.1\", needs OpenCL C 1.2"},
        {{.available = 1, .compiler = 1, .version = "nonsense"}, LATTN_ERROR_DEVICE_TOO_OLD, "1.2"},
        {{.available = 1, .compiler = 1, .mute = LATTN_CL_DEVICE_AVAILABLE},
         LATTN_ERROR_DEVICE,
         "CL_OUT_OF_RESOURCES (-5)"},
        {{.available = 1, .compiler = 1, .mute = LATTN_CL_DEVICE_COMPILER_AVAILABLE},
         LATTN_ERROR_DEVICE,
         "CL_OUT_OF_RESOURCES (-5)"},
        {{.available = 1, .compiler = 1, .mute = LATTN_CL_DEVICE_VERSION},
         LATTN_ERROR_DEVICE_TOO_OLD,
         "\"\""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct opencl_world world;
        opencl_world_start(&world, false);
        struct _cl_device_id *device = opencl_device_0();
        device->available = cases[i].change.available;
        device->compiler = cases[i].change.compiler;
        device->mute = cases[i].change.mute;
        if (cases[i].change.version)
            device->version = cases[i].change.version;
        if (cases[i].change.language)
            device->language = cases[i].change.language;
        struct found found = probe(&world);
        assert_int_equal(found.infos[0].status, cases[i].status);
        assert_non_null(strstr(found.infos[0].reason, cases[i].why));
        assert_int_equal(found.infos[1].status, LATTN_OK);
        struct lattn_caps caps;
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        void *opened = NULL;
        assert_int_equal(backend->open(&world.env, 0, NULL, &caps, &info, &opened),
                         cases[i].status);
        assert_string_equal(lattn_error_message(), found.infos[0].reason);
        assert_null(opened);
        opencl_world_end(&world);
    }
}

static void caps_are_the_devices_limits(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, false);
    struct lattn_caps caps;
    backend->close(opencl_open(&world, 0, &caps));
    assert_int_equal(caps.features, LATTN_OPENCL_FEATURE_CPU);
    assert_int_equal(caps.max_threads, 512); /* the tighter of the group's and the axis' */
    assert_int_equal(caps.max_shared, 32768);
    assert_int_equal(caps.compute_units, 4);
    assert_int_equal(caps.max_groups, INT32_MAX);
    assert_int_equal(caps.max_memory, UINT64_C(1) << 32);

    opencl_device_0()->address_bits = 32;
    backend->close(opencl_open(&world, 0, &caps));
    assert_int_equal(caps.max_groups, UINT32_MAX / 512);

    opencl_device_0()->type = LATTN_CL_DEVICE_TYPE_GPU;
    backend->close(opencl_open(&world, 0, &caps));
    assert_int_equal(caps.features, 0);
    /* Only NVIDIA's own driver is asked for its architecture. */
    opencl_device_0()->capability[0] = 7;
    opencl_device_0()->capability[1] = 5;
    assert_string_equal(probe(&world).infos[0].arch, "");
    fake_opencl.platforms[1].name = "NVIDIA CUDA";
    assert_string_equal(probe(&world).infos[0].arch, "sm_75");
    opencl_world_end(&world);
}

/* ---- a whole session, and everything that can fail in it ------------------------------------- */

static void session_works(void **state)
{
    (void)state;
    for (int cached = 0; cached < 2; cached++) {
        struct opencl_world world;
        opencl_world_start(&world, cached);
        assert_int_equal(opencl_session(&world), LATTN_OK);
        assert_true(world.milliseconds == 2); /* between one marker of the fake's and the next */
        assert_int_equal(fake_opencl.launches, 2);
        assert_int_equal(fake_opencl.global, 192);
        assert_int_equal(fake_opencl.local, 64);
        assert_int_equal(fake_opencl.arguments, (1u << (LATTN_MEM_COUNT + 2)) - 1);
        assert_int_equal(fake_opencl.local_bytes, 256);
        /* Two kernels of one program: built once. */
        assert_int_equal(fake_opencl.builds, 1);
        /* Fill, copy and two launches on a queue of our own. */
        assert_int_equal(fake_opencl.flushes, 4);
        opencl_world_end(&world);
    }
}

/* A failing call fails the session with its name and error, or, where it only serves to save time
 * or to find out something optional, changes nothing; and nothing leaks. */
static void every_call_can_fail(void **state)
{
    (void)state;
    static const cl_int codes[] = {LATTN_CL_OUT_OF_RESOURCES,
                                   LATTN_CL_MEM_OBJECT_ALLOCATION_FAILURE,
                                   LATTN_CL_BUILD_PROGRAM_FAILURE, -9999};
    static const lattn_status statuses[] = {LATTN_ERROR_DEVICE, LATTN_ERROR_DEVICE_MEMORY,
                                            LATTN_ERROR_BUILD, LATTN_ERROR_DEVICE};
    for (int cached = 0; cached < 2; cached++) {
        struct opencl_world world;
        opencl_world_start(&world, cached);
        int failures = 0;
        for (long at = 1;; at++) {
            int code = (int)(at % 4);
            fake_opencl_reset();
            fake_opencl.fail_at = at;
            fake_opencl.fail_code = codes[code];
            lattn_status status = opencl_session(&world);
            assert_int_equal(fake_opencl.live, 0);
            assert_int_equal(world.allocator.live, 0);
            if (!fake_opencl.failed)
                break;
            if (!status)
                continue;
            failures++;
            if (status == LATTN_ERROR_DEVICE_TOO_OLD) /* it could not tell its version */
                continue;
            assert_int_equal(status, statuses[code]);
            assert_non_null(strstr(lattn_error_message(), fake_opencl.failed));
            char number[16];
            snprintf(number, sizeof(number), "(%d)", codes[code]);
            assert_non_null(strstr(lattn_error_message(), number));
        }
        assert_true(failures > 40);
        opencl_world_end(&world);
    }
}

static void every_allocation_can_fail(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    int failures = 0;
    for (long at = 1;; at++) {
        fake_opencl_reset();
        /* Without and with a cached program, the paths differ. */
        opencl_path paths[4];
        if (at % 2 && opencl_list_cache(&world, paths, 4))
            remove(paths[0]);
        atomic_store(&world.allocator.calls, 0);
        atomic_store(&world.allocator.fail_at, (at + 1) / 2);
        lattn_status status = opencl_session(&world);
        assert_int_equal(fake_opencl.live, 0);
        assert_int_equal(world.allocator.live, 0);
        if (world.allocator.calls < world.allocator.fail_at)
            break;
        if (status) {
            failures++;
            assert_int_equal(status, LATTN_ERROR_OUT_OF_MEMORY);
            assert_non_null(strstr(lattn_error_message(), "no host memory for"));
        }
    }
    assert_true(failures >= 8);
    opencl_world_end(&world);
}

static void build_failure_says_what_the_compiler_said(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    struct lattn_caps caps;
    void *device = opencl_open(&world, 0, &caps), *stream, *kernel = NULL;
    assert_int_equal(backend->stream_open(device, false, NULL, &stream), LATTN_OK);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(backend->load(stream, &opencl_rows[OPENCL_BROKEN], &kernel),
                         LATTN_ERROR_BUILD);
        assert_string_equal(lattn_error_message(),
                            "kernel first: clBuildProgram failed: CL_BUILD_PROGRAM_FAILURE (-11): "
                            "line 7: error: no such thing");
        assert_int_equal(world.log_lines, 3 * i);
    }
    /* No log to be had, or no memory for it. */
    fake_opencl.fail_name = "clGetProgramBuildInfo";
    fake_opencl.fail_code = LATTN_CL_OUT_OF_HOST_MEMORY;
    assert_int_equal(backend->load(stream, &opencl_rows[OPENCL_BROKEN], &kernel),
                     LATTN_ERROR_BUILD);
    assert_non_null(strstr(lattn_error_message(), "(-11): no build log"));
    fake_opencl.fail_name = NULL;
    atomic_store(&world.allocator.fail_at, world.allocator.calls + 2);
    assert_int_equal(backend->load(stream, &opencl_rows[OPENCL_BROKEN], &kernel),
                     LATTN_ERROR_BUILD);
    assert_non_null(strstr(lattn_error_message(), "(-11): no build log"));
    /* A kernel that its program lacks. */
    assert_int_equal(backend->load(stream, &opencl_rows[OPENCL_THIRD], &kernel),
                     LATTN_ERROR_DEVICE);
    assert_string_equal(lattn_error_message(),
                        "clCreateKernel of third failed: CL_INVALID_KERNEL_NAME (-46)");
    assert_null(kernel);
    /* None of which harms the next. */
    assert_int_equal(backend->load(stream, &opencl_rows[OPENCL_FIRST], &kernel), LATTN_OK);
    backend->stream_close(stream);
    backend->close(device);
    opencl_world_end(&world);
}

static void every_error_has_its_name(void **state)
{
    (void)state;
#define CHECK(name, value)                                                                         \
    assert_string_equal(lattn_opencl_error_name(value), #name);                                    \
    assert_int_not_equal(lattn_opencl_check(value, "clThis"), LATTN_OK);                           \
    assert_string_equal(lattn_error_message(), "clThis failed: " #name " (" #value ")");
    LATTN_OPENCL_ERRORS(CHECK)
    assert_int_equal(lattn_opencl_check(0, "clThis"), LATTN_OK);
    assert_int_equal(lattn_opencl_status(LATTN_CL_DEVICE_NOT_AVAILABLE), LATTN_ERROR_NO_DEVICE);
    assert_int_equal(lattn_opencl_status(LATTN_CL_INVALID_BUFFER_SIZE), LATTN_ERROR_DEVICE_MEMORY);
    assert_int_equal(lattn_opencl_status(LATTN_CL_COMPILER_NOT_AVAILABLE), LATTN_ERROR_BUILD);
    assert_int_equal(lattn_opencl_check(-4242, "clThat"), LATTN_ERROR_DEVICE);
    assert_string_equal(lattn_error_message(), "clThat failed: unknown (-4242)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, while the library is not open yet. */
        cmocka_unit_test(absent_library_means_no_devices),
        cmocka_unit_test(missing_entry_point_means_no_devices),
        cmocka_unit_test(preloaded_library_is_the_one),
        cmocka_unit_test(failing_platform_stops_no_other),
        cmocka_unit_test(no_platforms_means_no_new_devices),
        cmocka_unit_test(probe_fails_only_with_its_taker),
        cmocka_unit_test(unusable_devices_are_listed_with_why),
        cmocka_unit_test(caps_are_the_devices_limits),
        cmocka_unit_test(session_works),
        cmocka_unit_test(every_call_can_fail),
        cmocka_unit_test(every_allocation_can_fail),
        cmocka_unit_test(build_failure_says_what_the_compiler_said),
        cmocka_unit_test(every_error_has_its_name),
    };
    return cmocka_run_group_tests_name("opencl host code", tests, NULL, NULL);
}
