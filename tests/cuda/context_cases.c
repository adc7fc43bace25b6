/* Cases: what the caller's thread and process find afterwards: contexts, captures, forks. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_test.h"

/* ---- the current context --------------------------------------------------------------------- */

/* What a failure of `failed` may leave behind without the step failing: closing is void, and
 * listing goes on without the device. */
static bool may_pass(size_t i, const char *failed)
{
    static const char *const closing[] = {
        "Destroy",     "Free",       "Release",     "Unload",
        "Synchronize", "GetCurrent", "PushCurrent", "ExchangeStreamCaptureMode"};
    if (steps[i].run == step_probe)
        return true;
    for (size_t j = 0; j < sizeof(closing) / sizeof(closing[0]); j++) {
        if (steps[i].closes && strstr(failed, closing[j]))
            return true;
    }
    return false;
}

/* A step whose nth call of the driver fails, and then the same step undisturbed; before each, the
 * context `before` is current, or the scene's own. False once there is no nth call. */
static bool balance_step(size_t i, int nth, CUcontext before, bool own)
{
    struct scene scene;
    fake->set_current(NULL);
    scene_begin(&scene);
    if (own)
        before = scene.context;
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

void context_balance(void)
{
    meet_driver();
    CUcontext foreign = fake->context_create(1);
    for (size_t i = 0; i < step_count; i++) {
        for (int nth = 1; balance_step(i, nth, NULL, false); nth++)
            continue;
        for (int nth = 1; balance_step(i, nth, foreign, false); nth++)
            continue;
        for (int nth = 1; balance_step(i, nth, NULL, true); nth++)
            continue;
    }
    fake->context_destroy(foreign);
}

void host_memory(void)
{
    meet_driver();
    for (size_t i = 0; i < step_count; i++) {
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
    for (size_t i = 0; i < step_count; i++)
        assert_status(LATTN_OK, run_step(&scene, i, NULL));
    scene_end(&scene);
    return NULL;
}

void on_fresh_thread(void)
{
    meet_driver();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, fresh_thread, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

void foreign_stream(void)
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

/* ---- captures and forks ---------------------------------------------------------------------- */

void capture(void)
{
    meet_driver();
    for (size_t i = 0; i < step_count; i++) {
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
    for (size_t i = 0; i < step_count; i++)
        assert_status(LATTN_OK, run_step(&scene, i, NULL));
    scene_end(&scene);
}

void fork_after_load(void)
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

void fork_after_init(void)
{
    whole_story();
    in_child(after_fork);
    whole_story();
}
