/* What CUDA's driver and AMD's HIP runtime have in common, which is nearly everything: the same
 * calls under other names. The vtable's functions for memory, streams, kernels and time are written
 * once, here, over a table of them. */
#ifndef LATTN_DRIVER_H
#define LATTN_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "core/backend.h"

/* X(member, CUDA's name, HIP's name, parameters). All return an int, 0 for success. CUDA's device
 * pointers are integers of a pointer's size, and its handles are pointers. */
#define LATTN_DRIVER_CALLS(X)                                                                      \
    X(memory_alloc, cuMemAlloc, hipMalloc, (void **pointer, size_t bytes))                         \
    X(memory_free, cuMemFree, hipFree, (void *pointer))                                            \
    X(upload, cuMemcpyHtoDAsync, hipMemcpyHtoDAsync,                                               \
      (void *to, const void *from, size_t bytes, void *stream))                                    \
    X(download, cuMemcpyDtoHAsync, hipMemcpyDtoHAsync,                                             \
      (void *to, const void *from, size_t bytes, void *stream))                                    \
    X(device_copy, cuMemcpyDtoDAsync, hipMemcpyDtoDAsync,                                          \
      (void *to, const void *from, size_t bytes, void *stream))                                    \
    X(fill, cuMemsetD8Async, hipMemsetD8Async,                                                     \
      (void *to, unsigned char value, size_t bytes, void *stream))                                 \
    X(stream_create, cuStreamCreate, hipStreamCreateWithFlags, (void **stream, unsigned flags))    \
    X(stream_destroy, cuStreamDestroy, hipStreamDestroy, (void *stream))                           \
    X(stream_synchronize, cuStreamSynchronize, hipStreamSynchronize, (void *stream))               \
    X(stream_is_capturing, cuStreamIsCapturing, hipStreamIsCapturing, (void *stream, int *status)) \
    X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode,                                    \
      hipThreadExchangeStreamCaptureMode, (int *mode))                                             \
    X(event_create, cuEventCreate, hipEventCreateWithFlags, (void **event, unsigned flags))        \
    X(event_destroy, cuEventDestroy, hipEventDestroy, (void *event))                               \
    X(event_record, cuEventRecord, hipEventRecord, (void *event, void *stream))                    \
    X(event_synchronize, cuEventSynchronize, hipEventSynchronize, (void *event))                   \
    X(event_elapsed, cuEventElapsedTime, hipEventElapsedTime,                                      \
      (float *milliseconds, void *start, void *end))                                               \
    X(module_load, cuModuleLoadData, hipModuleLoadData, (void **module, const void *image))        \
    X(module_unload, cuModuleUnload, hipModuleUnload, (void *module))                              \
    X(module_function, cuModuleGetFunction, hipModuleGetFunction,                                  \
      (void **function, void *module, const char *name))                                           \
    X(function_attribute, cuFuncGetAttribute, hipFuncGetAttribute,                                 \
      (int *value, int attribute, void *function))                                                 \
    X(launch, cuLaunchKernel, hipModuleLaunchKernel,                                               \
      (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,        \
       unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,       \
       void **extra))

/* Values that the two share. */
enum {
    LATTN_DRIVER_STREAM_NON_BLOCKING = 1,
    LATTN_DRIVER_CAPTURE_RELAXED = 2,
    LATTN_DRIVER_CAPTURE_NONE = 0,
    LATTN_DRIVER_ERROR_CAPTURE_IMPLICIT = 906,
    LATTN_DRIVER_FUNCTION_MAX_THREADS = 0,
};

struct lattn_driver_device;

/* What a thread had before it entered a device. */
struct lattn_driver_scope {
    bool entered; /* CUDA: another context was current, and the device's lies on top of it */
    int device;   /* HIP */
    int capture_mode;
};

/* What a device is besides its lattn_device_info: what planning and choosing code take. */
struct lattn_driver_traits {
    size_t memory;
    int compute_units;
    int max_shared;
    uint32_t features; /* of the code that it runs, as in its backend's catalogue */
};

struct lattn_driver {
    const char *title; /* "CUDA" or "HIP" */
    struct {
#define LATTN_DRIVER_MEMBER(member, cuda, hip, parameters) int(*member) parameters;
        LATTN_DRIVER_CALLS(LATTN_DRIVER_MEMBER)
#undef LATTN_DRIVER_MEMBER
    } call;
    struct {
#define LATTN_DRIVER_MEMBER(member, cuda, hip, parameters) const char *member;
        LATTN_DRIVER_CALLS(LATTN_DRIVER_MEMBER)
#undef LATTN_DRIVER_MEMBER
    } name;
    char version[64];    /* in messages: "driver for CUDA 13.0" */
    const char *missing; /* an entry point that the driver lacks, so that no device can be opened;
                            NULL: none */

    /* The number of devices. */
    lattn_status (*count)(const struct lattn_driver *driver, int *count);

    /* Fills `traits`, and of `info` the strings, and the status and reason of code that there is
     * not. */
    lattn_status (*describe)(const struct lattn_env *env, const struct lattn_driver *driver,
                             int number, lattn_device_info *info,
                             struct lattn_driver_traits *traits);

    /* Sets the message "WHAT failed: NAME (code)" and returns the status that goes with it. */
    lattn_status (*fail)(int result, const char *what);

    /* Make the device the thread's current one, and put back what was. */
    lattn_status (*enter)(const struct lattn_driver_device *device,
                          struct lattn_driver_scope *scope);
    void (*leave)(const struct lattn_driver_device *device, const struct lattn_driver_scope *scope);

    /* Refuses a caller's stream that is not the device's. */
    lattn_status (*check_stream)(const struct lattn_driver_device *device, void *stream);

    /* What a kernel needs before its first launch, beyond being found. NULL: nothing. */
    lattn_status (*ready)(const struct lattn_driver_device *device, void *function,
                          const struct lattn_kernel_row *row);
};

struct lattn_driver_module;

/* The beginning of a backend's own device struct. */
struct lattn_driver_device {
    const struct lattn_driver *driver;
    const struct lattn_env *env;
    void *context; /* CUDA's */
    int number;
    pthread_mutex_t lock;
    struct lattn_driver_module *modules; /* guarded by lock */
};

void lattn_driver_device_init(struct lattn_driver_device *device, const struct lattn_driver *driver,
                              const struct lattn_env *env);
/* Unloads the modules. */
void lattn_driver_device_end(struct lattn_driver_device *device);

/* Every use of a device stands between enter and leave. The "setup" pair is for work that belongs
 * to no stream (memory, modules, objects): it also lifts the ban on such work that a stream capture
 * by anyone in the process puts on the thread, and which would otherwise end that capture. */
lattn_status lattn_driver_enter(const struct lattn_driver_device *device,
                                struct lattn_driver_scope *scope);
void lattn_driver_leave(const struct lattn_driver_device *device,
                        const struct lattn_driver_scope *scope);
lattn_status lattn_driver_enter_setup(const struct lattn_driver_device *device,
                                      struct lattn_driver_scope *scope);
void lattn_driver_leave_setup(const struct lattn_driver_device *device,
                              const struct lattn_driver_scope *scope);

/* result = driver->call.MEMBER(...), as a status with its message. */
#define LATTN_DRIVER_TRY(driver_, member, ...)                                                     \
    lattn_driver_check(driver_, (driver_)->call.member(__VA_ARGS__), (driver_)->name.member)
lattn_status lattn_driver_check(const struct lattn_driver *driver, int result, const char *what);

/* Fails for a driver with a `missing` entry point. */
lattn_status lattn_driver_fail_missing(const struct lattn_driver *driver);

/* Probes (core/backend.h) a driver that may be NULL, after lattn_fail(). */
lattn_status lattn_driver_probe(const struct lattn_env *env, const struct lattn_driver *driver,
                                int32_t rank, lattn_found_fn found, void *user);

/* Describes one device, to open it. Fails if it cannot be used. */
lattn_status lattn_driver_find(const struct lattn_env *env, const struct lattn_driver *driver,
                               int number, uint64_t max_groups, lattn_device_info *info,
                               struct lattn_caps *caps);

/* The vtable's functions; their contracts are core/backend.h's. */
lattn_status lattn_driver_alloc(void *device, uint64_t bytes, void **base);
void lattn_driver_release(void *device, void *base);
lattn_status lattn_driver_stream_open(void *device, bool adopt, void *native, void **stream);
void lattn_driver_stream_close(void *stream);
lattn_status lattn_driver_synchronize(void *stream);
lattn_status lattn_driver_copy(void *stream, const struct lattn_copy *copy);
lattn_status lattn_driver_fill(void *stream, void *base, uint64_t offset, uint8_t value,
                               uint64_t bytes);
lattn_status lattn_driver_load(void *stream, const struct lattn_kernel_row *row, void **kernel);
lattn_status lattn_driver_launch(void *stream, void *kernel, const struct lattn_launch *launch);
lattn_status lattn_driver_time_begin(void *stream);
lattn_status lattn_driver_time_end(void *stream, double *milliseconds);

/* A backend's vtable around its catalogue, an array of struct lattn_kernel_row. */
#define LATTN_DRIVER_BACKEND(name_, catalog, probe_, open_, close_)                                \
    {                                                                                              \
        .name = name_, .rows = (catalog), .row_count = sizeof(catalog) / sizeof((catalog)[0]),     \
        .probe = probe_, .open = open_, .close = close_, .alloc = lattn_driver_alloc,              \
        .release = lattn_driver_release, .stream_open = lattn_driver_stream_open,                  \
        .stream_close = lattn_driver_stream_close, .synchronize = lattn_driver_synchronize,        \
        .copy = lattn_driver_copy, .fill = lattn_driver_fill, .load = lattn_driver_load,           \
        .launch = lattn_driver_launch, .time_begin = lattn_driver_time_begin,                      \
        .time_end = lattn_driver_time_end,                                                         \
    }

#endif
