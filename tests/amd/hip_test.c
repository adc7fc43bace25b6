/* The HIP backend's host code on the stand-in runtime: what is listed, which code is chosen, and
 * that every call that fails is a status and leaves nothing behind. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/hip/arch.h"
#include "backends/hip/catalog.h"
#include "fake_hip.h"
#include <lattn/interop.h>

#define TOKENS 40
#define DIM 64

static const struct fake_hip *fake;

static lattn_context *context_with(const char *devices)
{
    const lattn_context_params params = {.struct_size = sizeof(params), .backends = "hip"};
    lattn_context *context = NULL;
    setenv("FAKE_HIP_DEVICES", devices, 1);
    assert_int_equal(lattn_context_create(&params, &context), LATTN_OK);
    return context;
}

static void assert_message(const char *part)
{
    if (!strstr(lattn_error_message(), part))
        fail_msg("\"%s\" is not in the message: %s", part, lattn_error_message());
}

/* ---- architectures -------------------------------------------------------------------------- */

static void arch_is_found_in_any_properties(void **state)
{
    (void)state;
    char properties[1024] = "gfx in a name is not it";
    char arch[64];
    assert_false(lattn_hip_arch_in(properties, sizeof(properties), arch, sizeof(arch)));
    memcpy(properties + 396, "gfx90a:sramecc+:xnack-", 23);
    assert_true(lattn_hip_arch_in(properties, sizeof(properties), arch, sizeof(arch)));
    assert_string_equal(arch, "gfx90a:sramecc+:xnack-");
    memset(properties + 396, 'g', 40);
    memcpy(properties + 777, "gfx1100", 8);
    assert_true(lattn_hip_arch_in(properties, sizeof(properties), arch, sizeof(arch)));
    assert_string_equal(arch, "gfx1100");
    memcpy(properties + 777, "gfx9\1", 6);
    assert_false(lattn_hip_arch_in(properties, sizeof(properties), arch, sizeof(arch)));
    memset(properties + 256, 'f', sizeof(properties) - 256);
    assert_false(lattn_hip_arch_in(properties, sizeof(properties), arch, sizeof(arch)));
}

static void features_of_code_must_be_the_devices(void **state)
{
    (void)state;
    static const struct {
        const char *built, *device;
        bool runs;
    } cases[] = {
        {"gfx90a", "gfx90a", true},
        {"gfx90a", "gfx90a:sramecc+:xnack-", true},
        {"gfx90a:xnack-", "gfx90a:sramecc+:xnack-", true},
        {"gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-", true},
        {"gfx90a:xnack+", "gfx90a:sramecc+:xnack-", false},
        {"gfx90a:xnack+", "gfx90a", false},
        {"gfx90", "gfx90a", false},
        {"gfx90a", "gfx90", false},
        {"gfx1100", "gfx1101", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_int_equal(
            lattn_hip_arch_runs(cases[i].built, strlen(cases[i].built), cases[i].device),
            cases[i].runs);
}

static void code_is_chosen_by_architecture(void **state)
{
    (void)state;
    const char *archs = "gfx906 gfx90a:xnack+ gfx942 gfx1100 gfx1200 gfx1250";
    char reason[256];
    uint32_t features = 77;
    assert_int_equal(lattn_hip_choose_code(archs, "gfx906:xnack-", &features, reason, 256),
                     LATTN_OK);
    assert_int_equal(features, 0);
    assert_int_equal(lattn_hip_choose_code(archs, "gfx942:xnack-", &features, reason, 256),
                     LATTN_OK);
    assert_int_equal(features, LATTN_HIP_MFMA);
    assert_int_equal(lattn_hip_choose_code(archs, "gfx1100", &features, reason, 256), LATTN_OK);
    assert_int_equal(features, LATTN_HIP_WMMA);
    assert_int_equal(lattn_hip_choose_code(archs, "gfx1200", &features, reason, 256), LATTN_OK);
    assert_int_equal(features, LATTN_HIP_WMMA);
    /* Other matrix instructions than gfx1200's. */
    assert_int_equal(lattn_hip_choose_code(archs, "gfx1250", &features, reason, 256), LATTN_OK);
    assert_int_equal(features, 0);
    assert_int_equal(lattn_hip_choose_code(archs, "gfx90a:xnack-", &features, reason, 256),
                     LATTN_ERROR_NO_DEVICE_CODE);
    assert_non_null(strstr(reason, "gfx90a:xnack-"));
    assert_non_null(strstr(reason, archs));
}

/* ---- listing -------------------------------------------------------------------------------- */

static void no_gpu_is_no_device(void **state)
{
    (void)state;
    static const char *const refusals[] = {"100", "101", "3"};
    for (int i = 0; i < 3; i++) {
        setenv("FAKE_HIP_INIT", refusals[i], 1);
        lattn_context *context = context_with("gfx942");
        assert_int_equal(lattn_device_count(context), 0);
        lattn_device *device;
        const lattn_native native = lattn_native_hip(0);
        assert_int_not_equal(lattn_device_adopt(context, &native, &device), LATTN_OK);
        assert_message("hipInit failed");
        lattn_context_destroy(context);
    }
    unsetenv("FAKE_HIP_INIT");
    lattn_context *context = context_with("");
    assert_int_equal(lattn_device_count(context), 0);
    lattn_context_destroy(context);
}

static void devices_are_described(void **state)
{
    (void)state;
    for (int old = 0; old < 2; old++) {
        if (old)
            setenv("FAKE_HIP_OLD", "1", 1);
        lattn_context *context = context_with("gfx942:sramecc+:xnack-,gfx803,gfx1100");
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        assert_int_equal(lattn_device_count(context), 3);
        assert_int_equal(lattn_device_info_get(context, 0, &info), LATTN_OK);
        assert_string_equal(info.backend, "hip");
        assert_string_equal(info.arch, "gfx942:sramecc+:xnack-");
        assert_string_equal(info.driver, "HIP 6.2");
        assert_int_equal(info.status, LATTN_OK);
        assert_int_equal(info.memory, (uint64_t)1 << 34);

        int32_t index;
        lattn_device *device;
        assert_int_equal(lattn_device_find(context, "hip", 1, &index), LATTN_OK);
        assert_int_equal(lattn_device_open(context, index, &device), LATTN_ERROR_NO_DEVICE_CODE);
        assert_message("gfx803");
        assert_message("gfx942");
        assert_int_equal(lattn_device_find(context, "hip", 2, &index), LATTN_OK);
        assert_int_equal(lattn_device_open(context, index, &device), LATTN_OK);
        lattn_device_close(device);
        lattn_context_destroy(context);
    }
    unsetenv("FAKE_HIP_OLD");
}

static void a_device_that_fails_is_left_out(void **state)
{
    (void)state;
    static const char *const calls[] = {"hipDeviceGetName", "hipDeviceTotalMem",
                                        "hipDeviceGetAttribute", "hipGetDeviceProperties"};
    for (int i = 0; i < 4; i++) {
        fake->fail_at(calls[i], 1, 999);
        lattn_context *context = context_with("gfx942,gfx1100");
        assert_non_null(fake->fired());
        assert_int_equal(lattn_device_count(context), 1);
        lattn_context_destroy(context);
    }
    fake->fail_at("hipGetDeviceCount", 1, 999);
    lattn_context *context = context_with("gfx942,gfx1100");
    assert_non_null(fake->fired());
    assert_int_equal(lattn_device_count(context), 0);
    lattn_context_destroy(context);
}

/* ---- a whole session ------------------------------------------------------------------------ */

struct session {
    lattn_device *device;
    lattn_stream *stream;
    void *memory;
    unsigned short o[TOKENS * DIM];
};

static lattn_prefill_params prefill_of(const struct session *s)
{
    const uint64_t tensor = TOKENS * DIM * 2;
    lattn_prefill_params p = LATTN_PREFILL_PARAMS_INIT;
    p.batch = 1;
    p.tokens = TOKENS;
    p.heads = 1;
    p.d = DIM;
    p.dtype = LATTN_BF16;
    p.q = (lattn_tensor){s->memory, 0, 0, 0, 0};
    p.k = (lattn_tensor){s->memory, tensor, 0, 0, 0};
    p.v = (lattn_tensor){s->memory, 2 * tensor, 0, 0, 0};
    p.o = (lattn_tensor){s->memory, 3 * tensor, 0, 0, 0};
    p.slopes = (lattn_array){s->memory, 4 * tensor};
    return p;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        status = (call);                                                                           \
        if (status)                                                                                \
            return status;                                                                         \
    } while (0)

/* Device 1, while the thread's own is device 0. */
static lattn_status run_session(struct session *s, lattn_context *context, void *native)
{
    static unsigned short ones[3 * TOKENS * DIM];
    const float slope = 0;
    const uint64_t bytes = 4 * TOKENS * DIM * 2 + sizeof(slope);
    lattn_status status;
    double milliseconds;
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++)
        ones[i] = 0x3f80;
    const lattn_native number = lattn_native_hip(1);
    TRY(lattn_device_adopt(context, &number, &s->device));
    TRY(native ? lattn_stream_adopt(s->device, native, &s->stream)
               : lattn_stream_create(s->device, &s->stream));
    TRY(lattn_memory_alloc(s->device, bytes, &s->memory));
    TRY(lattn_memory_fill(s->stream, s->memory, 0, 0xff, bytes));
    TRY(lattn_memory_upload(s->stream, s->memory, 0, ones, sizeof(ones)));
    TRY(lattn_memory_upload(s->stream, s->memory, bytes - 4, &slope, sizeof(slope)));
    const lattn_prefill_params p = prefill_of(s);
    TRY(lattn_prefill_prepare(s->stream, &p));
    TRY(lattn_stream_time_begin(s->stream));
    TRY(lattn_prefill(s->stream, &p));
    TRY(lattn_stream_time_end(s->stream, &milliseconds));
    TRY(lattn_memory_copy(s->stream, s->memory, 0, s->memory, sizeof(ones), sizeof(s->o)));
    TRY(lattn_memory_download(s->stream, s->o, s->memory, 0, sizeof(s->o)));
    return lattn_stream_synchronize(s->stream);
}

static void end_session(struct session *s)
{
    if (s->memory)
        lattn_memory_free(s->device, s->memory);
    lattn_stream_destroy(s->stream);
    lattn_device_close(s->device);
}

/* Every q, k and v is 1 and nothing decays: token t sums t + 1 terms of 64. */
static void assert_outputs(const struct session *s)
{
    for (int t = 0; t < TOKENS; t++) {
        const uint32_t bits = (uint32_t)s->o[t * DIM + 5] << 16;
        float got;
        memcpy(&got, &bits, sizeof(got));
        assert_true(got > 63.5f * (float)(t + 1) && got < 64.5f * (float)(t + 1));
    }
}

static void every_failure_is_a_status(void **state)
{
    (void)state;
    lattn_context *context = context_with("gfx1100,gfx942:sramecc+:xnack-");
    int failures = 0;
    for (int nth = 1;; nth++) {
        struct session s = {0};
        fake->set_current(0);
        fake->fail_at(NULL, nth, 999);
        const lattn_status status = run_session(&s, context, NULL);
        const char *fired = fake->fired();
        if (fired) {
            const bool none = !strcmp(fired, "hipInit"); /* as if there were no runtime */
            assert_int_equal(status, none ? LATTN_ERROR_NO_DEVICE : LATTN_ERROR_DEVICE);
            assert_message("failed: hipErrorUnknown (999)");
            failures++;
        } else {
            assert_int_equal(status, LATTN_OK);
            assert_outputs(&s);
        }
        assert_int_equal(fake->current(), 0);
        assert_int_equal(fake->capture_mode(), 0);
        end_session(&s);
        assert_int_equal(fake->current(), 0);
        assert_int_equal(fake->live(), 0);
        if (!fired)
            break;
    }
    assert_true(failures > 40);
    lattn_context_destroy(context);
}

static void errors_have_their_status(void **state)
{
    (void)state;
    static const struct {
        const char *call;
        int error;
        lattn_status status;
    } cases[] = {
        {"hipMalloc", 2, LATTN_ERROR_DEVICE_MEMORY},
        {"hipModuleLoadData", 209, LATTN_ERROR_NO_DEVICE_CODE},
        {"hipModuleLoadData", 200, LATTN_ERROR_NO_DEVICE_CODE},
        {"hipSetDevice", 100, LATTN_ERROR_NO_DEVICE},
        {"hipModuleGetFunction", 500, LATTN_ERROR_DEVICE},
    };
    lattn_context *context = context_with("gfx1100,gfx942");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct session s = {0};
        fake->fail_at(cases[i].call, 1, cases[i].error);
        assert_int_equal(run_session(&s, context, NULL), cases[i].status);
        assert_non_null(fake->fired());
        assert_message(cases[i].call);
        end_session(&s);
    }
    lattn_context_destroy(context);
}

static void the_callers_stream_is_used_and_kept(void **state)
{
    (void)state;
    lattn_context *context = context_with("gfx1100,gfx942");
    struct session s = {0};
    void *stream = fake->stream_create(1);
    assert_int_equal(run_session(&s, context, stream), LATTN_OK);
    assert_ptr_equal(fake->last_launch().stream, stream);
    assert_outputs(&s);
    fake->forget();
    end_session(&s);
    assert_int_equal(fake->calls("hipStreamDestroy"), 0);
    assert_int_equal(fake->calls("hipStreamSynchronize"), 0);

    s = (struct session){0};
    void *foreign = fake->stream_create(0);
    assert_int_equal(run_session(&s, context, foreign), LATTN_ERROR_INVALID_ARGUMENT);
    assert_message("belongs to device 0, must belong to device 1");
    end_session(&s);
    const lattn_native beyond = lattn_native_hip(2);
    lattn_device *device;
    assert_int_equal(lattn_device_adopt(context, &beyond, &device), LATTN_ERROR_INVALID_ARGUMENT);
    assert_message("native.number = 2");
    fake->stream_destroy(foreign);
    fake->stream_destroy(stream);
    lattn_context_destroy(context);
}

/* After prepare, a call can be captured, and waits and makes nothing. */
static void calls_can_be_captured(void **state)
{
    (void)state;
    lattn_context *context = context_with("gfx1100,gfx942");
    struct session s = {0};
    void *stream = fake->stream_create(1);
    assert_int_equal(run_session(&s, context, stream), LATTN_OK);
    const lattn_prefill_params p = prefill_of(&s);
    static unsigned short ones[3 * TOKENS * DIM];
    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++)
        ones[i] = 0x3f80;
    assert_int_equal(lattn_memory_upload(s.stream, s.memory, 0, ones, sizeof(ones)), LATTN_OK);
    assert_int_equal(lattn_memory_fill(s.stream, s.memory, sizeof(ones), 0xff, sizeof(s.o)),
                     LATTN_OK);

    fake->capture_begin(stream);
    fake->forget();
    assert_int_equal(lattn_prefill(s.stream, &p), LATTN_OK);
    assert_int_equal(fake->calls(NULL), fake->calls("hipModuleLaunchKernel") +
                                            fake->calls("hipGetDevice") +
                                            fake->calls("hipSetDevice"));
    assert_int_equal(lattn_stream_synchronize(s.stream), LATTN_ERROR_INVALID_ARGUMENT);
    void *memory = NULL; /* belongs to no stream, and still does not end the capture */
    assert_int_equal(lattn_memory_alloc(s.device, 16, &memory), LATTN_OK);
    lattn_memory_free(s.device, memory);
    assert_true(fake->capture_end(stream) > 0);

    fake->replay();
    assert_int_equal(lattn_memory_download(s.stream, s.o, s.memory, sizeof(ones), sizeof(s.o)),
                     LATTN_OK);
    assert_outputs(&s);
    end_session(&s);
    fake->stream_destroy(stream);
    lattn_context_destroy(context);
}

int main(void)
{
    void *library = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_LOCAL);
    fake = library ? dlsym(library, "fake_hip") : NULL;
    if (!fake)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arch_is_found_in_any_properties),
        cmocka_unit_test(features_of_code_must_be_the_devices),
        cmocka_unit_test(code_is_chosen_by_architecture),
        cmocka_unit_test(no_gpu_is_no_device),
        cmocka_unit_test(devices_are_described),
        cmocka_unit_test(a_device_that_fails_is_left_out),
        cmocka_unit_test(every_failure_is_a_status),
        cmocka_unit_test(errors_have_their_status),
        cmocka_unit_test(the_callers_stream_is_used_and_kept),
        cmocka_unit_test(calls_can_be_captured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
