/* HIP devices: by number, with the thread's current device put back after every use. */
#ifndef LATTN_HIP_DEVICE_H
#define LATTN_HIP_DEVICE_H

#include "api.h"

struct lattn_hip_device {
    struct lattn_driver_device common; /* first: the vtable's functions see this */
    const struct lattn_hip_api *api;
};

/* The functions of struct lattn_driver. */
lattn_status lattn_hip_enter(const struct lattn_driver_device *device,
                             struct lattn_driver_scope *scope);
void lattn_hip_leave(const struct lattn_driver_device *device,
                     const struct lattn_driver_scope *scope);
lattn_status lattn_hip_check_stream(const struct lattn_driver_device *device, void *stream);
lattn_status lattn_hip_count(const struct lattn_driver *driver, int *count);
lattn_status lattn_hip_describe(const struct lattn_env *env, const struct lattn_driver *driver,
                                int number, lattn_device_info *info,
                                struct lattn_driver_traits *traits);

/* The vtable's functions; their contracts are core/backend.h's. */
lattn_status lattn_hip_probe(const struct lattn_env *env, lattn_found_fn found, void *user);
lattn_status lattn_hip_open(const struct lattn_env *env, int32_t ordinal,
                            const lattn_native *native, struct lattn_caps *caps,
                            lattn_device_info *info, void **device);
void lattn_hip_close(void *device);

#endif
