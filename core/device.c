#include "device.h"

#include <stdio.h>

#include "error.h"
#include "params.h"

static lattn_status open_device(lattn_context *context, const struct lattn_backend *backend,
                                const lattn_device_info *info, const lattn_native *native,
                                lattn_device **device)
{
    lattn_device *made = lattn_env_alloc(&context->env, sizeof(*made), "a device");
    if (!made)
        return LATTN_ERROR_OUT_OF_MEMORY;
    made->context = context;
    made->backend = backend;
    made->info = *info;
    lattn_status status =
        backend->open(&context->env, info->ordinal, native, &made->caps, &made->info, &made->impl);
    if (status) {
        lattn_env_free(&context->env, made);
        return status;
    }
    lattn_context_hold(context);
    *device = made;
    return LATTN_OK;
}

static lattn_status check_handles(lattn_context *context, lattn_device **device)
{
    if (!device)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "device = NULL: must point to a handle");
    *device = NULL;
    if (!context)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "context = NULL: must be a context");
    return LATTN_OK;
}

lattn_status lattn_device_open(lattn_context *context, int32_t index, lattn_device **device)
{
    lattn_status status = check_handles(context, device);
    if (status)
        return status;
    status = lattn_context_check_index(context, index);
    if (status)
        return status;
    const struct lattn_found_device *found = &context->devices[index];
    if (found->info.status)
        return lattn_fail(found->info.status, "%s", found->info.reason);
    return open_device(context, found->backend, &found->info, NULL, device);
}

lattn_status lattn_device_adopt(lattn_context *context, const lattn_native *given,
                                lattn_device **device)
{
    lattn_status status = check_handles(context, device);
    if (status)
        return status;
    lattn_native native;
    status = lattn_params_read(&native, sizeof(native), given, "native");
    if (status)
        return status;
    if (!native.backend)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "native->backend = NULL: must name a backend");
    const struct lattn_backend *backend = lattn_context_backend(context, native.backend);
    if (!backend)
        return LATTN_ERROR_NO_DEVICE;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    snprintf(info.backend, sizeof(info.backend), "%s", backend->name);
    return open_device(context, backend, &info, &native, device);
}

void lattn_device_close(lattn_device *device)
{
    if (!device)
        return;
    lattn_context *context = device->context;
    device->backend->close(device->impl);
    lattn_env_free(&context->env, device);
    lattn_context_release(context);
}

lattn_status lattn_device_info_of(const lattn_device *device, lattn_device_info *info)
{
    if (!device)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "device = NULL: must be an open device");
    return lattn_params_write(info, &device->info, sizeof(*info), "info");
}

lattn_status lattn_memory_alloc(lattn_device *device, uint64_t bytes, void **base)
{
    if (!base)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "base = NULL: must point to a base");
    *base = NULL;
    if (!device)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "device = NULL: must be an open device");
    if (!bytes)
        return LATTN_OK;
    uint64_t most = device->caps.max_memory;
    if (most && bytes > most)
        return lattn_fail(LATTN_ERROR_DEVICE_MEMORY,
                          "bytes = %llu: the device's largest memory is %llu bytes",
                          (unsigned long long)bytes, (unsigned long long)most);
    return device->backend->alloc(device->impl, bytes, base);
}

void lattn_memory_free(lattn_device *device, void *base)
{
    if (device && base)
        device->backend->release(device->impl, base);
}
