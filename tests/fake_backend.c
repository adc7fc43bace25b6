#include "fake_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

struct fake fake;

const char *const fake_call_names[FAKE_CALLS] = {
    "probe", "open", "alloc",  "stream_open", "synchronize", "copy",
    "fill",  "load", "launch", "time_begin",  "time_end",
};

/* Counts a call. True if it is the one that fails. */
static bool fails(enum fake_call call)
{
    return ++fake.calls[call] == fake.fail_at && fake.failing == call;
}

static lattn_status failure(enum fake_call call)
{
    return lattn_fail(LATTN_ERROR_DEVICE, "fake %s failed", fake_call_names[call]);
}

static lattn_status fake_probe(const struct lattn_env *env, lattn_found_fn found, void *user)
{
    (void)env;
    if (fails(FAKE_PROBE))
        return failure(FAKE_PROBE);
    for (int32_t i = 0; i < fake.devices; i++) {
        lattn_device_info info = {.ordinal = i, .kind = LATTN_DEVICE_OTHER, .name = "fake"};
        lattn_status status = found(user, &info, 10 * i);
        if (status)
            return status;
    }
    return LATTN_OK;
}

static lattn_status hand_out(enum fake_call call, size_t size, void **object)
{
    if (fails(call))
        return failure(call);
    *object = calloc(1, size);
    fake.live++;
    return LATTN_OK;
}

static void take_back(void *object)
{
    free(object);
    fake.live--;
}

static lattn_status fake_open(const struct lattn_env *env, int32_t ordinal,
                              const lattn_native *native, struct lattn_caps *caps,
                              lattn_device_info *info, void **device)
{
    (void)env;
    (void)ordinal;
    (void)native;
    (void)info;
    *caps = fake.caps;
    return hand_out(FAKE_OPEN, 1, device);
}

static lattn_status fake_alloc(void *device, uint64_t bytes, void **base)
{
    (void)device;
    return hand_out(FAKE_ALLOC, bytes, base);
}

static void fake_release(void *device, void *base)
{
    (void)device;
    take_back(base);
}

static lattn_status fake_stream_open(void *device, bool adopt, void *native, void **stream)
{
    (void)device;
    (void)adopt;
    (void)native;
    return hand_out(FAKE_STREAM_OPEN, 1, stream);
}

static lattn_status fake_synchronize(void *stream)
{
    (void)stream;
    return fails(FAKE_SYNCHRONIZE) ? failure(FAKE_SYNCHRONIZE) : LATTN_OK;
}

static lattn_status fake_copy(void *stream, const struct lattn_copy *copy)
{
    (void)stream;
    if (fails(FAKE_COPY))
        return failure(FAKE_COPY);
    memmove((char *)copy->to + copy->to_offset, (const char *)copy->from + copy->from_offset,
            copy->bytes);
    return LATTN_OK;
}

static lattn_status fake_fill(void *stream, void *base, uint64_t offset, uint8_t value,
                              uint64_t bytes)
{
    (void)stream;
    if (fails(FAKE_FILL))
        return failure(FAKE_FILL);
    memset((char *)base + offset, value, bytes);
    return LATTN_OK;
}

static lattn_status fake_load(void *stream, const struct lattn_kernel_row *row, void **kernel)
{
    (void)stream;
    if (fails(FAKE_LOAD))
        return failure(FAKE_LOAD);
    *kernel = (void *)(uintptr_t)row;
    return LATTN_OK;
}

static lattn_status fake_launch(void *stream, void *kernel, const struct lattn_launch *launch)
{
    (void)stream;
    if (fails(FAKE_LAUNCH))
        return failure(FAKE_LAUNCH);
    int at = fake.launch_count++ % 8;
    fake.launches[at] = *launch;
    fake.args[at] = *launch->args;
    fake.launched[at] = kernel;
    return LATTN_OK;
}

static lattn_status fake_time_begin(void *stream)
{
    (void)stream;
    return fails(FAKE_TIME_BEGIN) ? failure(FAKE_TIME_BEGIN) : LATTN_OK;
}

static lattn_status fake_time_end(void *stream, double *milliseconds)
{
    (void)stream;
    *milliseconds = 1;
    return fails(FAKE_TIME_END) ? failure(FAKE_TIME_END) : LATTN_OK;
}

#define ANY .types = LATTN_TYPES_ALL, .d_min = 1, .d_max = 256, .e_min = 1, .e_max = 256

static const struct lattn_kernel_row all_rows[] = {
    {.entry = "fake_output",
     .pass = LATTN_PASS_OUTPUT,
     ANY,
     .threads = 64,
     .shared = 1024,
     .shared_total = 2048,
     .e_tile = 32,
     .token_tile = 64},
    {.entry = "fake_state",
     .pass = LATTN_PASS_STATE,
     ANY,
     .threads = 128,
     .e_tile = 32,
     .d_tile = 64},
    {.entry = "fake_scan", .pass = LATTN_PASS_SCAN, ANY, .threads = 32, .d_tile = 16},
    {.entry = "fake_decode", .pass = LATTN_PASS_DECODE, ANY, .threads = 256, .e_tile = 64},
};

struct lattn_backend fake_backend;

void fake_reset(void)
{
    fake = (struct fake){
        .devices = 1,
        .caps = {.max_threads = 1024,
                 .max_shared = 65536,
                 .compute_units = 8,
                 .max_groups = 0x7fffffff},
    };
    fake_backend = (struct lattn_backend){
        .name = "fake",
        .rows = all_rows,
        .row_count = sizeof(all_rows) / sizeof(*all_rows),
        .probe = fake_probe,
        .open = fake_open,
        .close = take_back,
        .alloc = fake_alloc,
        .release = fake_release,
        .stream_open = fake_stream_open,
        .stream_close = take_back,
        .synchronize = fake_synchronize,
        .copy = fake_copy,
        .fill = fake_fill,
        .load = fake_load,
        .launch = fake_launch,
        .time_begin = fake_time_begin,
        .time_end = fake_time_end,
    };
}
