/* The reference as a backend: host memory, no queue, each launch done when it returns. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "error.h"
#include "reference.h"

/* Its device is the env. */

struct reference_kernel {
    void (*run)(void *const *memories, const struct lattn_args *args, int type);
    int type;
};

static const struct reference_kernel prefill_kernels[] = {
    {lattn_reference_prefill, LATTN_TYPE_F32},
    {lattn_reference_prefill, LATTN_TYPE_F16},
    {lattn_reference_prefill, LATTN_TYPE_BF16},
};

static const struct reference_kernel decode_kernels[] = {
    {lattn_reference_decode, LATTN_TYPE_F32},
    {lattn_reference_decode, LATTN_TYPE_F16},
    {lattn_reference_decode, LATTN_TYPE_BF16},
};

#define ROW(name, kernel, which, types_)                                                           \
    {                                                                                              \
        .entry = name, .program = kernel, .pass = which, .types = types_, .d_min = 1,              \
        .d_max = LATTN_MAX_DIM, .e_min = 1, .e_max = LATTN_MAX_DIM, .threads = 1,                  \
        .can = LATTN_CAN_WALK | LATTN_CAN_WALK_KEPT | LATTN_CAN_WALK_VLLM,                         \
    }

static const struct lattn_kernel_row rows[] = {
    ROW("reference_prefill_f32", &prefill_kernels[0], LATTN_PASS_OUTPUT, LATTN_TYPES_F32),
    ROW("reference_prefill_f16", &prefill_kernels[1], LATTN_PASS_OUTPUT, LATTN_TYPES_F16),
    ROW("reference_prefill_bf16", &prefill_kernels[2], LATTN_PASS_OUTPUT, LATTN_TYPES_BF16),
    ROW("reference_decode_f32", &decode_kernels[0], LATTN_PASS_DECODE, LATTN_TYPES_F32),
    ROW("reference_decode_f16", &decode_kernels[1], LATTN_PASS_DECODE, LATTN_TYPES_F16),
    ROW("reference_decode_bf16", &decode_kernels[2], LATTN_PASS_DECODE, LATTN_TYPES_BF16),
};

/* The machine's memory; 0 if unknown. An allocator of a system that overcommits refuses nothing,
 * and touching what is not there ends the process. */
static uint64_t memory_size(void)
{
#ifdef _SC_PHYS_PAGES
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0)
        return (uint64_t)pages * (uint64_t)page;
#endif
    return 0;
}

static lattn_device_info describe(void)
{
    return (lattn_device_info){
        .struct_size = sizeof(lattn_device_info),
        .backend = "reference",
        .kind = LATTN_DEVICE_CPU,
        .name = "float64 reference",
        .driver = "built in",
        .memory = memory_size(),
        .compute_units = 1,
    };
}

static lattn_status reference_probe(const struct lattn_env *env, lattn_found_fn found, void *user)
{
    (void)env;
    const lattn_device_info info = describe();
    return found(user, &info, 0);
}

static lattn_status reference_open(const struct lattn_env *env, int32_t ordinal,
                                   const lattn_native *native, struct lattn_caps *caps,
                                   lattn_device_info *info, void **device)
{
    (void)ordinal;
    if (native)
        *info = describe();
    *caps = (struct lattn_caps){
        .max_threads = 1, .compute_units = 1, .max_groups = INT64_MAX, .max_memory = memory_size()};
    *device = (void *)(uintptr_t)env;
    return LATTN_OK;
}

static void reference_close(void *device)
{
    (void)device;
}

static lattn_status reference_alloc(void *device, uint64_t bytes, void **base)
{
    if (bytes > SIZE_MAX)
        return lattn_fail(LATTN_ERROR_DEVICE_MEMORY, "bytes = %llu: more than a host address holds",
                          (unsigned long long)bytes);
    *base = lattn_env_alloc(device, (size_t)bytes, "memory of the reference device");
    return *base ? LATTN_OK : LATTN_ERROR_OUT_OF_MEMORY;
}

static void reference_release(void *device, void *base)
{
    lattn_env_free(device, base);
}

struct reference_stream {
    const struct lattn_env *env;
    struct timespec begun;
};

static lattn_status reference_stream_open(void *device, bool adopt, void *native, void **stream)
{
    if (adopt && native)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "native = %p: the reference device has no native streams, must be NULL",
                          native);
    struct reference_stream *made = lattn_env_alloc(device, sizeof(*made), "a reference stream");
    if (!made)
        return LATTN_ERROR_OUT_OF_MEMORY;
    made->env = device;
    *stream = made;
    return LATTN_OK;
}

static void reference_stream_close(void *stream)
{
    const struct reference_stream *closed = stream;
    lattn_env_free(closed->env, stream);
}

static lattn_status reference_synchronize(void *stream)
{
    (void)stream;
    return LATTN_OK;
}

static lattn_status reference_copy(void *stream, const struct lattn_copy *copy)
{
    (void)stream;
    memmove((char *)copy->to + copy->to_offset, (const char *)copy->from + copy->from_offset,
            (size_t)copy->bytes);
    return LATTN_OK;
}

static lattn_status reference_fill(void *stream, void *base, uint64_t offset, uint8_t value,
                                   uint64_t bytes)
{
    (void)stream;
    memset((char *)base + offset, value, (size_t)bytes);
    return LATTN_OK;
}

static lattn_status reference_load(void *stream, const struct lattn_kernel_row *row, void **kernel)
{
    (void)stream;
    *kernel = (void *)(uintptr_t)row->program;
    return LATTN_OK;
}

static lattn_status reference_launch(void *stream, void *kernel, const struct lattn_launch *launch)
{
    (void)stream;
    const struct reference_kernel *chosen = kernel;
    chosen->run(launch->memories, launch->args, chosen->type);
    return LATTN_OK;
}

static lattn_status reference_time_begin(void *stream)
{
    struct reference_stream *timed = stream;
    clock_gettime(CLOCK_MONOTONIC, &timed->begun);
    return LATTN_OK;
}

static lattn_status reference_time_end(void *stream, double *milliseconds)
{
    const struct reference_stream *timed = stream;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *milliseconds = (double)(now.tv_sec - timed->begun.tv_sec) * 1e3 +
                    (double)(now.tv_nsec - timed->begun.tv_nsec) * 1e-6;
    return LATTN_OK;
}

extern const struct lattn_backend lattn_backend_reference;
const struct lattn_backend lattn_backend_reference = {
    .name = "reference",
    .rows = rows,
    .row_count = sizeof(rows) / sizeof(rows[0]),
    .probe = reference_probe,
    .open = reference_open,
    .close = reference_close,
    .alloc = reference_alloc,
    .release = reference_release,
    .stream_open = reference_stream_open,
    .stream_close = reference_stream_close,
    .synchronize = reference_synchronize,
    .copy = reference_copy,
    .fill = reference_fill,
    .load = reference_load,
    .launch = reference_launch,
    .time_begin = reference_time_begin,
    .time_end = reference_time_end,
};
