/* A stream of the fake backend over a catalogue made up for the test, and calls to plan on it. */
#ifndef LATTN_TESTS_PLANNER_BENCH_H
#define LATTN_TESTS_PLANNER_BENCH_H

#include "fake_backend.h"
#include "fixture.h"

struct bench {
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
};
extern struct bench bench;

/* The cmocka setup of every test here. */
int bench_reset(void **state);

/* NULL rows: the catalogue that has a row for all. */
void open_bench(const struct lattn_kernel_row *rows, uint32_t count);
void close_bench(void);

/* Any aligned address will do: nothing is computed. */
extern char somewhere[16];

lattn_prefill_params some_prefill(int64_t batch, int64_t tokens, int32_t heads, int32_t d);
lattn_decode_params some_decode(int64_t batch, int32_t heads, int32_t d);

/* Prepares, gives the workspace that is asked for, and runs. */
void run(lattn_prefill_params *p);

void assert_launched(int at, const char *entry, uint64_t groups);

#define ANY_SIZE .d_min = 1, .d_max = 256, .e_min = 1, .e_max = 256, .threads = 64
#define ANY .types = LATTN_TYPES_ALL, ANY_SIZE
#define DECODE(name, ...)                                                                          \
    {                                                                                              \
        .entry = name, .pass = LATTN_PASS_DECODE, __VA_ARGS__                                      \
    }
#define WALK(name, ...)                                                                            \
    {                                                                                              \
        .entry = name, .pass = LATTN_PASS_OUTPUT, .can = LATTN_CAN_WALK, __VA_ARGS__               \
    }

#endif
