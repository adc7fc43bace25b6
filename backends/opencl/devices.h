/* The OpenCL devices of this machine: their numbers, and what they say of themselves. */
#ifndef LATTN_OPENCL_DEVICES_H
#define LATTN_OPENCL_DEVICES_H

#include "api.h"
#include "core/backend.h"

/* Finds devices of all platforms and returns how many are known. A platform that fails is logged
 * and left out. A device keeps its number as long as the process lives. */
int32_t lattn_opencl_devices_find(const struct lattn_env *env, const struct lattn_opencl_api *cl);

/* Device number `ordinal`, or NULL. */
cl_device_id lattn_opencl_devices_get(int32_t ordinal);

/* The number of a device, or -1 for one that is not in the list, such as a sub-device. */
int32_t lattn_opencl_devices_number(cl_device_id device);

/* Fills everything in `info` but ordinal and backend, and sets `status` and `reason` to whether the
 * backend can use the device. */
void lattn_opencl_device_describe(const struct lattn_opencl_api *cl, cl_device_id device,
                                  lattn_device_info *info);

/* Among the devices of all backends; above 0, the reference's. */
int32_t lattn_opencl_device_rank(const struct lattn_opencl_api *cl, cl_device_id device);

lattn_status lattn_opencl_device_caps(const struct lattn_opencl_api *cl, cl_device_id device,
                                      struct lattn_caps *caps);

/* Texts of a device and of its platform, trimmed; "" where there is none. They return `text`. */
char *lattn_opencl_device_text(const struct lattn_opencl_api *cl, cl_device_id device, cl_uint what,
                               char *text, size_t size);
char *lattn_opencl_platform_text(const struct lattn_opencl_api *cl, cl_device_id device,
                                 cl_uint what, char *text, size_t size);

#endif
