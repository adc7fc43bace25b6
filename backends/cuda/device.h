/* An open CUDA device: a context, and what backends/driver keeps of it. */
#ifndef LATTN_CUDA_DEVICE_H
#define LATTN_CUDA_DEVICE_H

#include <stdbool.h>

#include "api.h"
#include "backends/driver/driver.h"

struct lattn_cuda_device {
    struct lattn_driver_device common; /* first: the vtable's functions see this */
    const struct lattn_cuda_api *api;
    bool retained; /* the context is the device's primary one; else it is the caller's */
};

/* The functions of struct lattn_driver. A kernel is a CUfunction. */
lattn_status lattn_cuda_enter(const struct lattn_driver_device *device,
                              struct lattn_driver_scope *scope);
void lattn_cuda_leave(const struct lattn_driver_device *device,
                      const struct lattn_driver_scope *scope);
lattn_status lattn_cuda_check_stream(const struct lattn_driver_device *device, void *stream);
lattn_status lattn_cuda_count(const struct lattn_driver *driver, int *count);
lattn_status lattn_cuda_describe(const struct lattn_env *env, const struct lattn_driver *driver,
                                 int number, lattn_device_info *info,
                                 struct lattn_driver_traits *traits);
lattn_status lattn_cuda_ready_kernel(const struct lattn_driver_device *device, void *function,
                                     const struct lattn_kernel_row *row);

/* The vtable's functions; their contracts are core/backend.h's. */
lattn_status lattn_cuda_probe(const struct lattn_env *env, lattn_found_fn found, void *user);
lattn_status lattn_cuda_open(const struct lattn_env *env, int32_t ordinal,
                             const lattn_native *native, struct lattn_caps *caps,
                             lattn_device_info *info, void **device);
void lattn_cuda_close(void *device);

#endif
