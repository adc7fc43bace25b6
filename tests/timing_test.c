/* The command's clock, over a device of whom every time is known: it stands in for the library
 * here. Its host takes longer to launch a turn than the device to do it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "timing.h"

#define LAUNCH 0.020 /* milliseconds, of the host */
#define TURN 0.004   /* of the device */
#define COPY 0.100

static struct {
    double free;  /* when the device has done what it was given */
    double begin; /* when the timed work began */
    uint64_t turns;
    int fail_at; /* the turn whose launch fails; 0: none */
} device;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void enqueue(double host, double duration)
{
    const double end = now() + host;
    while (now() < end)
        continue;
    device.free = (device.free > now() ? device.free : now()) + duration;
}

lattn_status lattn_memory_copy(lattn_stream *stream, void *to, uint64_t to_offset, const void *from,
                               uint64_t from_offset, uint64_t bytes)
{
    (void)stream;
    assert_ptr_equal(to, from);
    assert_true(to_offset >= from_offset + bytes); /* they do not overlap */
    enqueue(0, COPY);
    return LATTN_OK;
}

lattn_status lattn_stream_time_begin(lattn_stream *stream)
{
    (void)stream;
    device.begin = device.free > now() ? device.free : now();
    return LATTN_OK;
}

lattn_status lattn_stream_time_end(lattn_stream *stream, double *milliseconds)
{
    (void)stream;
    *milliseconds = device.free - device.begin;
    while (now() < device.free)
        continue;
    return LATTN_OK;
}

static lattn_status turn(void *user, uint64_t number)
{
    assert_null(user);
    assert_int_equal(number, device.turns);
    device.turns++;
    if (device.fail_at && device.turns == (uint64_t)device.fail_at)
        return LATTN_ERROR_DEVICE;
    enqueue(LAUNCH, TURN);
    return LATTN_OK;
}

static int reset(void **state)
{
    (void)state;
    device.free = 0;
    device.turns = 0;
    device.fail_at = 0;
    return 0;
}

static char memory[64];

static void without_a_gate_launches_count(void **state)
{
    (void)state;
    struct timing timing;
    assert_int_equal(timing_measure(NULL, turn, NULL, 0.02, NULL, &timing), LATTN_OK);
    assert_true(timing.milliseconds >= LAUNCH);
    assert_false(timing.gapless);
    assert_true(timing.samples >= 5);
}

static void behind_a_gate_they_do_not(void **state)
{
    (void)state;
    const struct timing_gate gate = {memory, sizeof(memory), COPY};
    struct timing timing;
    assert_int_equal(timing_measure(NULL, turn, NULL, 0.02, &gate, &timing), LATTN_OK);
    assert_true(timing.milliseconds > 0.99 * TURN && timing.milliseconds < 1.01 * TURN);
    assert_true(timing.spread < 0.01);
    assert_true(timing.turns > 1);
}

static void a_gate_that_opens_too_early_is_told(void **state)
{
    (void)state;
    const struct timing_gate gate = {memory, sizeof(memory), 1e-6}; /* a copy counted as nothing */
    struct timing timing;
    assert_int_equal(timing_measure(NULL, turn, NULL, 0.02, &gate, &timing), LATTN_OK);
    assert_false(timing.gapless);
}

static void a_failed_launch_is_passed_on(void **state)
{
    (void)state;
    const struct timing_gate gate = {memory, sizeof(memory), COPY};
    struct timing timing;
    const int turns[] = {1, 2, 3, 60};
    for (size_t i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
        reset(NULL);
        device.fail_at = turns[i];
        assert_int_equal(timing_measure(NULL, turn, NULL, 0.02, &gate, &timing),
                         LATTN_ERROR_DEVICE);
        assert_int_equal(device.turns, turns[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_gate_launches_count, reset),
        cmocka_unit_test_setup(behind_a_gate_they_do_not, reset),
        cmocka_unit_test_setup(a_gate_that_opens_too_early_is_told, reset),
        cmocka_unit_test_setup(a_failed_launch_is_passed_on, reset),
    };
    return cmocka_run_group_tests_name("timing", tests, NULL, NULL);
}
