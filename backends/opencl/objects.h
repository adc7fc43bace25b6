/* What the vtable's `device` and `stream` are in this backend. */
#ifndef LATTN_OPENCL_OBJECTS_H
#define LATTN_OPENCL_OBJECTS_H

#include <pthread.h>
#include <time.h>

#include "api.h"
#include "cache.h"
#include "catalog.h"
#include "core/backend.h"

struct lattn_opencl_built; /* a program built for a device */

struct lattn_opencl_device {
    const struct lattn_env *env;
    const struct lattn_opencl_api *cl;
    cl_context context;
    cl_device_id device;
    struct lattn_opencl_cache_key key; /* of device and driver; a program's goes on from it */
    bool cached;                       /* its programs are, on disk */
    pthread_mutex_t lock;              /* of `built` */
    struct lattn_opencl_built *built;
};

/* How a stream's queue can be timed; found out by the first measurement. */
enum lattn_opencl_clock {
    LATTN_OPENCL_CLOCK_UNKNOWN,
    LATTN_OPENCL_CLOCK_DEVICE, /* its events carry the device's times */
    LATTN_OPENCL_CLOCK_HOST,   /* they do not: wait, and read the host's clock */
};

struct lattn_opencl_stream {
    struct lattn_opencl_device *device;
    cl_command_queue queue;
    bool adopted;
    struct lattn_opencl_kernel *kernels; /* those loaded, to be released with the stream */
    enum lattn_opencl_clock clock;
    cl_event begin; /* of a measurement by the device's clock */
    struct timespec host_begin;
};

/* A kernel of one stream: setting arguments is not thread-safe in OpenCL, so streams share none. */
struct lattn_opencl_kernel {
    struct lattn_opencl_kernel *next;
    const struct lattn_kernel_row *row;
    cl_kernel kernel;
};

/* device.c */
lattn_status lattn_opencl_open(const struct lattn_env *env, int32_t ordinal,
                               const lattn_native *native, struct lattn_caps *caps,
                               lattn_device_info *info, void **device);
void lattn_opencl_close(void *device);
lattn_status lattn_opencl_alloc(void *device, uint64_t bytes, void **base);
void lattn_opencl_release(void *device, void *base);

/* stream.c */
lattn_status lattn_opencl_stream_open(void *device, bool adopt, void *native, void **stream);
void lattn_opencl_stream_close(void *stream);
lattn_status lattn_opencl_synchronize(void *stream);
lattn_status lattn_opencl_copy(void *stream, const struct lattn_copy *copy);
lattn_status lattn_opencl_fill(void *stream, void *base, uint64_t offset, uint8_t value,
                               uint64_t bytes);
/* Ends every call that puts work on the stream without waiting for it; `error` is the enqueue's. */
lattn_status lattn_opencl_enqueued(const struct lattn_opencl_stream *stream, cl_int error,
                                   const char *call);

/* timing.c */
lattn_status lattn_opencl_time_begin(void *stream);
lattn_status lattn_opencl_time_end(void *stream, double *milliseconds);

/* program.c: the row's program, built for the device by the first call that asks for it. It stays
 * the device's. */
lattn_status lattn_opencl_program_get(struct lattn_opencl_device *device,
                                      const struct lattn_kernel_row *row, cl_program *program);
void lattn_opencl_programs_release(struct lattn_opencl_device *device);

/* kernel.c */
lattn_status lattn_opencl_load(void *stream, const struct lattn_kernel_row *row, void **kernel);
lattn_status lattn_opencl_launch(void *stream, void *kernel, const struct lattn_launch *launch);

#endif
