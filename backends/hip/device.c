#include "device.h"

#include <stdio.h>

#include "arch.h"
#include "core/error.h"

#define RANK 900 /* above the same device through OpenCL */

/* More than hipDeviceProp_t has in any version. */
#define PROPERTIES_BYTES 8192

/* ---- what differs from CUDA ----------------------------------------------------------------- */

static const struct lattn_hip_api *api_of(const struct lattn_driver_device *device)
{
    return ((const struct lattn_hip_device *)device)->api;
}

lattn_status lattn_hip_enter(const struct lattn_driver_device *device,
                             struct lattn_driver_scope *scope)
{
    const struct lattn_hip_api *api = api_of(device);
    int result = api->hipGetDevice(&scope->device);
    if (result)
        return lattn_hip_fail(result, "hipGetDevice");
    if (scope->device == device->number)
        return LATTN_OK;
    result = api->hipSetDevice(device->number);
    return result ? lattn_hip_fail(result, "hipSetDevice") : LATTN_OK;
}

void lattn_hip_leave(const struct lattn_driver_device *device,
                     const struct lattn_driver_scope *scope)
{
    if (scope->device != device->number)
        api_of(device)->hipSetDevice(scope->device);
}

lattn_status lattn_hip_check_stream(const struct lattn_driver_device *device, void *stream)
{
    const struct lattn_hip_api *api = api_of(device);
    int number = device->number;
    if (!stream || !api->hipStreamGetDevice)
        return LATTN_OK;
    int result = api->hipStreamGetDevice(stream, &number);
    if (result)
        return lattn_hip_fail(result, "native: hipStreamGetDevice");
    if (number != device->number)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "native: the stream belongs to device %d, must belong to device %d",
                          number, device->number);
    return LATTN_OK;
}

/* ---- listing -------------------------------------------------------------------------------- */

static lattn_status find_arch(const struct lattn_env *env, const struct lattn_hip_api *api,
                              int number, lattn_device_info *info)
{
    char *properties = lattn_env_alloc(env, PROPERTIES_BYTES, "the properties of a HIP device");
    if (!properties)
        return LATTN_ERROR_OUT_OF_MEMORY;
    lattn_status status = LATTN_OK;
    int result = api->hipGetDeviceProperties(properties, number);
    if (result)
        status = lattn_hip_fail(result, "hipGetDeviceProperties");
    else if (!lattn_hip_arch_in(properties, PROPERTIES_BYTES, info->arch, sizeof(info->arch)))
        status = lattn_fail(LATTN_ERROR_DEVICE, "hipGetDeviceProperties names no architecture");
    lattn_env_free(env, properties);
    return status;
}

lattn_status lattn_hip_count(const struct lattn_driver *driver, int *count)
{
    int result = ((const struct lattn_hip_api *)driver)->hipGetDeviceCount(count);
    return result ? lattn_hip_fail(result, "hipGetDeviceCount") : LATTN_OK;
}

lattn_status lattn_hip_describe(const struct lattn_env *env, const struct lattn_driver *driver,
                                int number, lattn_device_info *info,
                                struct lattn_driver_traits *traits)
{
    const struct lattn_hip_api *api = (const struct lattn_hip_api *)driver;
    const char *what = "hipDeviceGetName";
    int result = api->hipDeviceGetName(info->name, sizeof(info->name), number);
    if (!result) {
        what = "hipDeviceTotalMem";
        result = api->hipDeviceTotalMem(&traits->memory, number);
    }
    if (!result) {
        what = "hipDeviceGetAttribute";
        result = api->hipDeviceGetAttribute(&traits->compute_units,
                                            HIP_ATTRIBUTE_MULTIPROCESSOR_COUNT, number);
    }
    if (!result)
        result = api->hipDeviceGetAttribute(&traits->max_shared,
                                            HIP_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, number);
    lattn_status status = result ? lattn_hip_fail(result, what) : find_arch(env, api, number, info);
    if (status)
        return status;

    snprintf(info->backend, sizeof(info->backend), "hip");
    snprintf(info->driver, sizeof(info->driver), "HIP %d.%d", api->version / 10000000,
             api->version / 100000 % 100);
    info->status = lattn_hip_choose_code(lattn_hip_archs, info->arch, &traits->features,
                                         info->reason, sizeof(info->reason));
    return LATTN_OK;
}

lattn_status lattn_hip_probe(const struct lattn_env *env, lattn_found_fn found, void *user)
{
    const struct lattn_hip_api *api = lattn_hip_runtime();
    return lattn_driver_probe(env, api ? &api->common : NULL, RANK, found, user);
}

/* ---- opening -------------------------------------------------------------------------------- */

lattn_status lattn_hip_open(const struct lattn_env *env, int32_t ordinal,
                            const lattn_native *native, struct lattn_caps *caps,
                            lattn_device_info *info, void **device)
{
    const struct lattn_hip_api *api = lattn_hip_runtime();
    if (!api)
        return LATTN_ERROR_NO_DEVICE;
    int count = 0;
    lattn_status status = lattn_hip_count(&api->common, &count);
    if (status)
        return status;
    const int64_t number = native ? native->number : ordinal;
    if (number < 0 || number >= count)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "native.number = %lld: must be a HIP device, of which there are %d",
                          (long long)number, count);

    lattn_device_info found = {.struct_size = sizeof(found)};
    const uint64_t max_groups = UINT32_MAX / 256; /* a launch counts its threads in 32 bits */
    status = lattn_driver_find(env, &api->common, (int)number, max_groups, &found, caps);
    if (status)
        return status;

    struct lattn_hip_device *opened = lattn_env_alloc(env, sizeof(*opened), "a HIP device");
    if (!opened)
        return LATTN_ERROR_OUT_OF_MEMORY;
    lattn_driver_device_init(&opened->common, &api->common, env);
    opened->common.number = (int)number;
    opened->api = api;
    if (native)
        *info = found;
    *device = opened;
    return LATTN_OK;
}

void lattn_hip_close(void *opened)
{
    struct lattn_hip_device *device = opened;
    lattn_driver_device_end(&device->common);
    lattn_env_free(device->common.env, device);
}
