/* Faults, one at a time, everywhere: each host allocation returns NULL once, each function of a
 * backend fails at each of its calls. The status comes up unchanged, nothing is left behind, and
 * the same call works when it is tried again. */
#include <string.h>

#include "core/context.h"
#include "core/error.h"
#include "fake_backend.h"
#include "fixture.h"

/* A story with every kind of call in it. Stops at the first failure, or, with `retry`, tries the
 * failed step once more. Everything is closed at the end. */
struct story {
    const struct lattn_backend *backend;
    struct allocator *allocator;
    bool retry;
    lattn_status first; /* failure, if any */
    char message[512];  /* and its message */
    const char *step;   /* and where it was */
    bool done;          /* the story reached its end */
    lattn_context *context;
    lattn_device *device, *adopted;
    lattn_stream *stream, *second;
    void *memory;
};

/* Runs one step: `call` is evaluated again for a retry. */
#define STEP(call)                                                                                 \
    do {                                                                                           \
        lattn_status status_ = (call);                                                             \
        if (status_ && !story->first) {                                                            \
            story->first = status_;                                                                \
            story->step = #call;                                                                   \
            strncpy(story->message, lattn_error_message(), sizeof(story->message) - 1);            \
        }                                                                                          \
        if (status_ && story->retry)                                                               \
            status_ = (call);                                                                      \
        if (status_)                                                                               \
            return;                                                                                \
    } while (0)

static void tell(struct story *story)
{
    const struct lattn_backend *backends[] = {story->backend};
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    lattn_native native = {sizeof(native), story->backend->name, NULL, NULL, 0};
    params.allocator = allocator_params(story->allocator);
    params.backends = story->backend->name;
    params.cache_dir = "/nowhere";
    STEP(lattn_context_create_with(backends, 1, &params, &story->context));
    STEP(lattn_device_open(story->context, 0, &story->device));
    STEP(lattn_device_adopt(story->context, &native, &story->adopted));
    STEP(lattn_stream_create(story->device, &story->stream));
    STEP(lattn_stream_adopt(story->adopted, NULL, &story->second));
    STEP(lattn_memory_alloc(story->device, 1 << 16, &story->memory));
    STEP(lattn_memory_fill(story->stream, story->memory, 0, 0, 1 << 16));

    lattn_prefill_params prefill = LATTN_PREFILL_PARAMS_INIT;
    prefill.batch = 1;
    prefill.tokens = 600;
    prefill.heads = 1;
    prefill.d = 4;
    prefill.q.base = prefill.k.base = prefill.v.base = prefill.o.base = story->memory;
    prefill.o.offset = 16384;
    prefill.slopes.base = prefill.state_out.base = story->memory;
    prefill.slopes.offset = 32768;
    prefill.state_out.offset = 33024;
    STEP(lattn_prefill_prepare(story->stream, &prefill));
    STEP(lattn_prefill_prepare(story->second, &prefill));
    STEP(lattn_prefill_workspace(story->stream, &prefill, &prefill.workspace.size));
    assert_true(prefill.workspace.size <= 16384);
    prefill.workspace.base = story->memory;
    prefill.workspace.offset = 40960;
    STEP(lattn_prefill(story->stream, &prefill));

    lattn_decode_params decode = LATTN_DECODE_PARAMS_INIT;
    decode.batch = 1;
    decode.heads = 1;
    decode.d = 4;
    decode.q = decode.k = decode.v = prefill.q;
    decode.o = prefill.o;
    decode.slopes = prefill.slopes;
    decode.state_in = prefill.state_out;
    STEP(lattn_decode_prepare(story->stream, &decode));
    STEP(lattn_decode(story->stream, &decode));
    STEP(lattn_stream_time_begin(story->stream));
    STEP(lattn_memory_copy(story->stream, story->memory, 0, story->memory, 64, 64));
    double time;
    STEP(lattn_stream_time_end(story->stream, &time));
    char bytes[64];
    STEP(lattn_memory_upload(story->stream, story->memory, 0, bytes, 64));
    STEP(lattn_memory_download(story->stream, bytes, story->memory, 0, 64));
    STEP(lattn_stream_synchronize(story->stream));
    story->done = true;
}

static void close_story(struct story *story)
{
    lattn_memory_free(story->device, story->memory);
    lattn_stream_destroy(story->second);
    lattn_stream_destroy(story->stream);
    lattn_context_destroy(story->context);
    lattn_device_close(story->adopted);
    lattn_device_close(story->device);
    assert_int_equal(atomic_load(&story->allocator->live), 0);
}

extern const struct lattn_backend lattn_backend_reference;

/* Every allocation in turn, until the story has no more of them. */
static void failing_allocations(const struct lattn_backend *backend, bool retry)
{
    long at = 0, faults = 0;
    for (bool done = false; !done;) {
        struct allocator allocator = {.fail_at = ++at};
        struct story story = {.backend = backend, .allocator = &allocator, .retry = retry};
        fake_reset();
        tell(&story);
        done = !story.first && atomic_load(&allocator.calls) < at;
        if (story.first) {
            faults++;
            if (story.first != LATTN_ERROR_OUT_OF_MEMORY)
                fail_msg("%s: %s", story.step, lattn_status_name(story.first));
            assert_non_null(strstr(story.message, "memory"));
        }
        assert_int_equal(story.done, retry || !story.first);
        close_story(&story);
        assert_int_equal(fake.live, 0);
    }
    assert_true(faults >= 6); /* the story has at least the handles' own */
}

static void allocations_on_the_reference(void **state)
{
    (void)state;
    failing_allocations(&lattn_backend_reference, false);
}

static void allocations_tried_again(void **state)
{
    (void)state;
    failing_allocations(&lattn_backend_reference, true);
}

static void allocations_over_a_fake(void **state)
{
    (void)state;
    fake_reset();
    failing_allocations(&fake_backend, false);
    failing_allocations(&fake_backend, true);
}

/* Every call of every vtable function in turn. */
static void failing_calls(bool retry)
{
    for (int call = 0; call < FAKE_CALLS; call++) {
        int reached = 0;
        for (int at = 1;; at++) {
            struct allocator allocator = {0};
            struct story story = {
                .backend = &fake_backend, .allocator = &allocator, .retry = retry};
            fake_reset();
            fake.failing = (enum fake_call)call;
            fake.fail_at = at;
            tell(&story);
            bool hit = fake.calls[call] >= at;
            reached += hit;
            if (hit) {
                assert_int_equal(story.first, LATTN_ERROR_DEVICE);
                assert_non_null(strstr(story.message, fake_call_names[call]));
            } else {
                assert_int_equal(story.first, LATTN_OK);
            }
            assert_int_equal(story.done, retry || !hit);
            close_story(&story);
            assert_int_equal(fake.live, 0);
            if (!hit)
                break;
        }
        if (!reached)
            fail_msg("the story never calls %s", fake_call_names[call]);
    }
}

static void backend_calls(void **state)
{
    (void)state;
    failing_calls(false);
}

static void backend_calls_tried_again(void **state)
{
    (void)state;
    failing_calls(true);
}

/* A launch that fails in the middle: the passes before it were launched, those after it not. */
static void launches_stop_at_a_failure(void **state)
{
    (void)state;
    struct allocator allocator = {0};
    struct story story = {.backend = &fake_backend, .allocator = &allocator};
    fake_reset();
    fake.failing = FAKE_LAUNCH;
    fake.fail_at = 2;
    tell(&story);
    assert_int_equal(fake.calls[FAKE_LAUNCH], 2);
    close_story(&story);
}

/* The first device listed is the one of the highest rank; others keep their order. */
static void ranks(void **state)
{
    (void)state;
    struct allocator allocator = {0};
    const struct lattn_backend *backends[] = {&fake_backend, &lattn_backend_reference};
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    lattn_context *context;
    int32_t index;
    fake_reset();
    fake.devices = 20;
    params.allocator = allocator_params(&allocator);
    assert_ok(lattn_context_create_with(backends, 2, &params, &context));
    assert_int_equal(lattn_device_count(context), 21);
    for (int32_t i = 0; i < 20; i++) {
        assert_ok(lattn_device_info_get(context, i, &info));
        assert_string_equal(info.backend, "fake");
        assert_int_equal(info.ordinal, 19 - i);
        assert_ok(lattn_device_find(context, "fake", info.ordinal, &index));
        assert_int_equal(index, i);
    }
    assert_ok(lattn_device_info_get(context, 20, &info));
    assert_string_equal(info.backend, "reference");
    lattn_context_destroy(context);
    assert_int_equal(atomic_load(&allocator.live), 0);
}

static lattn_status probe_nothing(const struct lattn_env *env, lattn_found_fn found, void *user)
{
    (void)env;
    (void)found;
    (void)user;
    lattn_fail(LATTN_ERROR_NO_DEVICE, "no driver");
    return LATTN_OK;
}

/* The message is that of the last call that failed, and finding no driver is no failure. */
static void probes_leave_the_message(void **state)
{
    (void)state;
    struct lattn_backend without = {.name = "without", .probe = probe_nothing};
    const struct lattn_backend *backends[] = {&without, &lattn_backend_reference};
    lattn_context *context;
    assert_int_equal(lattn_device_info_get(NULL, 0, NULL), LATTN_ERROR_INVALID_ARGUMENT);
    assert_string_equal(lattn_error_message(), "context = NULL: must be a context");
    assert_ok(lattn_context_create_with(backends, 2, NULL, &context));
    assert_string_equal(lattn_error_message(), "context = NULL: must be a context");
    lattn_context_destroy(context);
}

static void no_devices(void **state)
{
    (void)state;
    const struct lattn_backend *backends[] = {&fake_backend};
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    lattn_context *context;
    lattn_device *device;
    fake_reset();
    fake.devices = 0;
    assert_ok(lattn_context_create_with(backends, 1, NULL, &context));
    assert_int_equal(lattn_device_count(context), 0);
    assert_int_equal(lattn_device_info_get(context, 0, &info), LATTN_ERROR_NO_DEVICE);
    assert_string_equal(lattn_error_message(), "index = 0: there are no devices");
    assert_int_equal(lattn_device_open(context, 0, &device), LATTN_ERROR_NO_DEVICE);
    assert_string_equal(lattn_error_message(), "index = 0: there are no devices");
    lattn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_on_the_reference),
        cmocka_unit_test(allocations_tried_again),
        cmocka_unit_test(allocations_over_a_fake),
        cmocka_unit_test(backend_calls),
        cmocka_unit_test(backend_calls_tried_again),
        cmocka_unit_test(launches_stop_at_a_failure),
        cmocka_unit_test(ranks),
        cmocka_unit_test(probes_leave_the_message),
        cmocka_unit_test(no_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
