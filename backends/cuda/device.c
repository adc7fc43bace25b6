#include "device.h"

#include <stdio.h>

#include "catalog.h"
#include "code.h"
#include "core/error.h"

#define RANK 1000 /* above the same device through OpenCL */

/* ---- what differs from HIP ------------------------------------------------------------------ */

static const struct lattn_cuda_api *api_of(const struct lattn_driver_device *device)
{
    return ((const struct lattn_cuda_device *)device)->api;
}

lattn_status lattn_cuda_enter(const struct lattn_driver_device *device,
                              struct lattn_driver_scope *scope)
{
    const struct lattn_cuda_api *api = api_of(device);
    CUcontext current = NULL;
    const char *what = "cuCtxGetCurrent";
    CUresult result = api->cuCtxGetCurrent(&current);
    scope->entered = current != device->context;
    if (!result && scope->entered) {
        what = "cuCtxPushCurrent";
        result = api->cuCtxPushCurrent(device->context);
    }
    return result ? lattn_cuda_fail(api, result, what) : LATTN_OK;
}

void lattn_cuda_leave(const struct lattn_driver_device *device,
                      const struct lattn_driver_scope *scope)
{
    CUcontext context;
    if (scope->entered)
        api_of(device)->cuCtxPopCurrent(&context);
}

lattn_status lattn_cuda_check_stream(const struct lattn_driver_device *device, void *stream)
{
    const struct lattn_cuda_api *api = api_of(device);
    CUcontext context = NULL;
    CUresult result = api->cuStreamGetCtx(stream, &context);
    if (result)
        return lattn_cuda_fail(api, result, "native: cuStreamGetCtx");
    if (context != device->context) {
        return lattn_fail(
            LATTN_ERROR_INVALID_ARGUMENT,
            "native: the stream belongs to context %p, must belong to the device's, %p",
            (void *)context, device->context);
    }
    return LATTN_OK;
}

/* More group memory than this a kernel must ask for. */
#define USUAL_SHARED 49152

lattn_status lattn_cuda_ready_kernel(const struct lattn_driver_device *device, void *function,
                                     const struct lattn_kernel_row *row)
{
    const struct lattn_cuda_api *api = api_of(device);
    char what[128];
    const char *step = "cuFuncLoad";
    CUresult result = api->cuFuncLoad ? api->cuFuncLoad(function) : CUDA_SUCCESS;
    if (!result && row->shared > USUAL_SHARED) {
        step = "cuFuncSetAttribute";
        result = api->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         (int)row->shared);
    }
    if (!result)
        return LATTN_OK;
    snprintf(what, sizeof(what), "%s of %s", step, row->entry);
    return lattn_cuda_fail(api, result, what);
}

/* ---- listing -------------------------------------------------------------------------------- */

lattn_status lattn_cuda_count(const struct lattn_driver *driver, int *count)
{
    const struct lattn_cuda_api *api = (const struct lattn_cuda_api *)driver;
    CUresult result = api->cuDeviceGetCount(count);
    return result ? lattn_cuda_fail(api, result, "cuDeviceGetCount") : LATTN_OK;
}

lattn_status lattn_cuda_describe(const struct lattn_env *env, const struct lattn_driver *driver,
                                 int number, lattn_device_info *info,
                                 struct lattn_driver_traits *traits)
{
    const struct lattn_cuda_api *api = (const struct lattn_cuda_api *)driver;
    int major = 0, minor = 0;
    CUdevice device = 0;
    (void)env;
    const char *what = "cuDeviceGet";
    CUresult result = api->cuDeviceGet(&device, number);
    if (!result) {
        what = "cuDeviceGetName";
        result = api->cuDeviceGetName(info->name, sizeof(info->name), device);
    }
    if (!result) {
        what = "cuDeviceTotalMem";
        result = api->cuDeviceTotalMem(&traits->memory, device);
    }
    const struct {
        int attribute;
        int *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &traits->compute_units},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &traits->max_shared},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && !result; i++) {
        what = "cuDeviceGetAttribute";
        result = api->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device);
    }
    if (result)
        return lattn_cuda_fail(api, result, what);

    snprintf(info->backend, sizeof(info->backend), "cuda");
    snprintf(info->arch, sizeof(info->arch), "%d.%d", major, minor);
    snprintf(info->driver, sizeof(info->driver), "CUDA %d.%d", api->driver / 1000,
             api->driver % 1000 / 10);
    info->status = lattn_cuda_choose_code(&lattn_cuda_build, 10 * major + minor, api->driver,
                                          &traits->features, info->reason, sizeof(info->reason));
    return LATTN_OK;
}

lattn_status lattn_cuda_probe(const struct lattn_env *env, lattn_found_fn found, void *user)
{
    const struct lattn_cuda_api *api = lattn_cuda_driver();
    return lattn_driver_probe(env, api ? &api->common : NULL, RANK, found, user);
}

/* ---- opening -------------------------------------------------------------------------------- */

/* The number of the device that the caller's context is on. */
static lattn_status find_device(const struct lattn_cuda_device *device, CUdevice *number,
                                int *ordinal)
{
    const struct lattn_cuda_api *api = device->api;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter(&device->common, &scope);
    if (status)
        return status;
    CUresult result = api->cuCtxGetDevice(number);
    lattn_driver_leave(&device->common, &scope);
    if (result)
        return lattn_cuda_fail(api, result, "cuCtxGetDevice");

    int count = 0;
    result = api->cuDeviceGetCount(&count);
    for (int i = 0; i < count && !result; i++) {
        CUdevice other;
        result = api->cuDeviceGet(&other, i);
        if (!result && other == *number) {
            *ordinal = i;
            return LATTN_OK;
        }
    }
    if (result)
        return lattn_cuda_fail(api, result, "cuDeviceGet");
    return lattn_fail(LATTN_ERROR_NO_DEVICE,
                      "native.context: its device is not among the %d listed", count);
}

static lattn_status open_device(const struct lattn_env *env, struct lattn_cuda_device *device,
                                int32_t ordinal, const lattn_native *native,
                                struct lattn_caps *caps, lattn_device_info *info)
{
    const struct lattn_cuda_api *api = device->api;
    lattn_status status = LATTN_OK;
    CUresult result = CUDA_SUCCESS;
    if (native && api->common.missing)
        return lattn_driver_fail_missing(&api->common);
    if (native) {
        device->common.context = native->context;
        status = find_device(device, &device->common.number, &ordinal);
    } else {
        result = api->cuDeviceGet(&device->common.number, ordinal);
        if (result)
            status = lattn_cuda_fail(api, result, "cuDeviceGet");
    }
    if (status)
        return status;

    status = lattn_driver_find(env, &api->common, ordinal, INT32_MAX, info, caps);
    if (status)
        return status;

    if (!native) {
        CUcontext context = NULL;
        result = api->cuDevicePrimaryCtxRetain(&context, device->common.number);
        if (result)
            return lattn_cuda_fail(api, result, "cuDevicePrimaryCtxRetain");
        device->common.context = context;
        device->retained = true;
    }
    return LATTN_OK;
}

lattn_status lattn_cuda_open(const struct lattn_env *env, int32_t ordinal,
                             const lattn_native *native, struct lattn_caps *caps,
                             lattn_device_info *info, void **device)
{
    if (native && !native->context)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "native.context: is NULL, must be a CUcontext");
    const struct lattn_cuda_api *api = lattn_cuda_driver();
    if (!api)
        return LATTN_ERROR_NO_DEVICE;

    struct lattn_cuda_device *opened = lattn_env_alloc(env, sizeof(*opened), "a CUDA device");
    if (!opened)
        return LATTN_ERROR_OUT_OF_MEMORY;
    opened->api = api;
    opened->common.driver = &api->common;
    lattn_device_info found = {.struct_size = sizeof(found)};
    lattn_status status = open_device(env, opened, ordinal, native, caps, &found);
    if (status) {
        lattn_env_free(env, opened);
        return status;
    }
    if (native)
        *info = found;
    lattn_driver_device_init(&opened->common, &api->common, env);
    *device = opened;
    return LATTN_OK;
}

void lattn_cuda_close(void *opened)
{
    struct lattn_cuda_device *device = opened;
    lattn_driver_device_end(&device->common);
    if (device->retained)
        device->api->cuDevicePrimaryCtxRelease(device->common.number);
    lattn_env_free(device->common.env, device);
}
