/* Whole calls of the library on the stand-in driver: which driver calls a prefill or decode makes,
 * and how it fares in a stream capture. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <lattn/interop.h>

#include "fake_cuda.h"

static const struct fake_cuda *fake;

struct scene {
    lattn_context *library;
    CUcontext context;
    CUstream native;
    lattn_device *device;
    lattn_stream *stream;
    lattn_prefill_params prefill;
    lattn_decode_params decode;
};

#define assert_status(expected, call)                                                              \
    do {                                                                                           \
        const lattn_status status_ = (call);                                                       \
        if (status_ != (expected))                                                                 \
            fail_msg("%s: %s (%s)", #call, lattn_status_name(status_), lattn_error_message());     \
    } while (0)

static int begin(void **state)
{
    static struct scene scene;
    /* Kernels do not run, so any address serves. */
    void *memory = &scene;
    lattn_state states = {.base = memory, .slots = 2};
    scene.context = fake->context_create(0);
    scene.native = fake->stream_create(scene.context);
    const lattn_native native = lattn_native_cuda(scene.context);
    assert_status(LATTN_OK, lattn_context_create(NULL, &scene.library));
    assert_status(LATTN_OK, lattn_device_adopt(scene.library, &native, &scene.device));
    assert_status(LATTN_OK, lattn_stream_adopt(scene.device, scene.native, &scene.stream));
    scene.prefill = (lattn_prefill_params){
        .struct_size = sizeof(scene.prefill),
        .batch = 2,
        .tokens = 5000,
        .heads = 4,
        .d = 64,
        .dtype = LATTN_BF16,
        .q = {.base = memory},
        .k = {.base = memory},
        .v = {.base = memory},
        .o = {.base = memory, .offset = 1 << 30},
        .slopes = {.base = memory},
        .state_out = states,
        .workspace = {.base = memory, .size = 1 << 30},
    };
    scene.decode = (lattn_decode_params){
        .struct_size = sizeof(scene.decode),
        .batch = 2,
        .heads = 4,
        .d = 64,
        .dtype = LATTN_F32,
        .q = {.base = memory},
        .k = {.base = memory},
        .v = {.base = memory},
        .o = {.base = memory, .offset = 1 << 30},
        .slopes = {.base = memory},
        .state_in = states,
    };
    fake->set_current(NULL);
    *state = &scene;
    return 0;
}

static int end(void **state)
{
    struct scene *scene = *state;
    lattn_stream_destroy(scene->stream);
    lattn_device_close(scene->device);
    lattn_context_destroy(scene->library);
    assert_int_equal(fake->live(), 0);
    fake->stream_destroy(scene->native);
    fake->context_destroy(scene->context);
    return 0;
}

/* A prepared call makes launches and nothing else: no memory, no waiting, no question. */
static void assert_launches_alone(lattn_status (*call)(struct scene *scene), struct scene *scene)
{
    fake->forget();
    assert_status(LATTN_OK, call(scene));
    const int launches = fake->calls("cuLaunchKernel");
    assert_true(launches >= 1 && launches <= 3);
    assert_int_equal(fake->calls("cuCtxGetCurrent"), launches);
    assert_int_equal(fake->calls("cuCtxPushCurrent"), launches);
    assert_int_equal(fake->calls("cuCtxPopCurrent"), launches);
    assert_int_equal(fake->calls(NULL), 4 * launches);
    assert_ptr_equal(fake->last_launch().stream, scene->native);
    assert_null(fake->current());
}

static lattn_status prefill(struct scene *scene)
{
    return lattn_prefill(scene->stream, &scene->prefill);
}

static lattn_status decode(struct scene *scene)
{
    return lattn_decode(scene->stream, &scene->decode);
}

static void launches_alone(void **state)
{
    struct scene *scene = *state;
    assert_status(LATTN_OK, lattn_prefill_prepare(scene->stream, &scene->prefill));
    assert_status(LATTN_OK, lattn_decode_prepare(scene->stream, &scene->decode));
    assert_launches_alone(prefill, scene);
    assert_launches_alone(decode, scene);
}

/* Few heads and long sequences go by segments, and still in one launch. */
static void segments_in_one_launch(void **state)
{
    struct scene *scene = *state;
    const lattn_dtype dtypes[] = {LATTN_F32, LATTN_F16, LATTN_BF16};
    lattn_prefill_params *p = &scene->prefill;
    for (int i = 0; i < 4; i++) {
        p->dtype = dtypes[i % 3];
        p->precision = i == 3 ? LATTN_PRECISION_TF32 : LATTN_PRECISION_FULL;
        p->d = i == 2 ? 192 : 128;
        assert_status(LATTN_OK, lattn_prefill_prepare(scene->stream, p));
        fake->forget();
        assert_status(LATTN_OK, prefill(scene));
        assert_int_equal(fake->calls("cuLaunchKernel"), 1);
        const struct fake_cuda_launch launch = fake->last_launch();
        assert_true(launch.args.flags & LATTN_FLAG_CHAINED);
        assert_true(launch.args.segments > 1);
    }
}

static void capture(void **state)
{
    struct scene *scene = *state;
    fake->capture_begin(scene->native);
    assert_status(LATTN_ERROR_NOT_PREPARED, prefill(scene));
    assert_status(LATTN_ERROR_NOT_PREPARED, decode(scene));
    assert_status(LATTN_OK, lattn_prefill_prepare(scene->stream, &scene->prefill));
    assert_status(LATTN_OK, lattn_decode_prepare(scene->stream, &scene->decode));
    fake->forget();
    assert_status(LATTN_OK, prefill(scene));
    assert_status(LATTN_OK, decode(scene));
    const int launches = fake->calls("cuLaunchKernel");
    assert_int_equal(fake->capture_end(scene->native), launches);
}

static void failing_launch(void **state)
{
    struct scene *scene = *state;
    assert_status(LATTN_OK, lattn_prefill_prepare(scene->stream, &scene->prefill));
    fake->inject("cuLaunchKernel", 1, 700);
    assert_status(LATTN_ERROR_DEVICE, prefill(scene));
    assert_non_null(strstr(lattn_error_message(), "(700)"));
    fake->inject(NULL, 0, 0);
    assert_null(fake->current());
    assert_status(LATTN_OK, prefill(scene));
}

int main(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    fake = library ? dlsym(library, "fake_cuda") : NULL;
    if (!fake)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(launches_alone, begin, end),
        cmocka_unit_test_setup_teardown(segments_in_one_launch, begin, end),
        cmocka_unit_test_setup_teardown(capture, begin, end),
        cmocka_unit_test_setup_teardown(failing_launch, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
