/* An open CUDA device: a context and the modules loaded into it. */
#ifndef LATTN_CUDA_DEVICE_H
#define LATTN_CUDA_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "api.h"
#include "core/backend.h"

struct lattn_cuda_module;

struct lattn_cuda_device {
    const struct lattn_cuda_api *api;
    const struct lattn_env *env;
    CUdevice number;
    CUcontext context;
    bool retained; /* the context is the device's primary one; else it is the caller's */
    pthread_mutex_t lock;
    struct lattn_cuda_module *modules; /* guarded by lock */
};

/* Every use of a device stands between enter and leave, which make its context the thread's current
 * one and put back what was current before. The "setup" pair is for work that belongs to no stream
 * (memory, modules, objects): it also lifts the ban on such work that a stream capture by anyone in
 * the process puts on the thread, and which would otherwise end that capture. */
lattn_status lattn_cuda_enter(const struct lattn_cuda_device *device);
void lattn_cuda_leave(const struct lattn_cuda_device *device);
lattn_status lattn_cuda_enter_setup(const struct lattn_cuda_device *device, int *capture_mode);
void lattn_cuda_leave_setup(const struct lattn_cuda_device *device, int capture_mode);

/* The vtable's functions; their contracts are core/backend.h's. */
lattn_status lattn_cuda_probe(const struct lattn_env *env, lattn_found_fn found, void *user);
lattn_status lattn_cuda_open(const struct lattn_env *env, int32_t ordinal,
                             const lattn_native *native, struct lattn_caps *caps,
                             lattn_device_info *info, void **device);
void lattn_cuda_close(void *device);
lattn_status lattn_cuda_alloc(void *device, uint64_t bytes, void **base);
void lattn_cuda_release(void *device, void *base);

#endif
