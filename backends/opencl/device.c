/* Opening, adopting and closing devices, and their memory. */
#include <lattn/lattn.h>
#include <string.h>

#include "core/error.h"
#include "devices.h"
#include "objects.h"

static lattn_status open_own(struct lattn_opencl_device *device, int32_t ordinal)
{
    const struct lattn_opencl_api *cl = device->cl;
    device->device = lattn_opencl_devices_get(ordinal);
    if (!device->device)
        return lattn_fail(LATTN_ERROR_NO_DEVICE, "opencl has no device %d", ordinal);
    lattn_status status = lattn_opencl_check(cl->clRetainDevice(device->device), "clRetainDevice");
    if (status) {
        device->device = NULL;
        return status;
    }
    cl_int error;
    device->context = cl->clCreateContext(NULL, 1, &device->device, NULL, NULL, &error);
    return lattn_opencl_check(error, "clCreateContext");
}

/* Is the device one of the context's? */
static lattn_status check_member(const struct lattn_opencl_device *device, cl_context context,
                                 cl_device_id wanted)
{
    const struct lattn_opencl_api *cl = device->cl;
    size_t size = 0;
    cl_int error = cl->clGetContextInfo(context, LATTN_CL_CONTEXT_DEVICES, 0, NULL, &size);
    lattn_status status = lattn_opencl_check(error, "clGetContextInfo of native->context");
    if (status)
        return status;
    cl_device_id *members = lattn_env_alloc(device->env, size, "a context's devices");
    if (!members)
        return LATTN_ERROR_OUT_OF_MEMORY;
    error = cl->clGetContextInfo(context, LATTN_CL_CONTEXT_DEVICES, size, members, NULL);
    status = lattn_opencl_check(error, "clGetContextInfo of native->context");
    bool found = false;
    for (size_t i = 0; !status && i < size / sizeof(*members); i++)
        found = found || members[i] == wanted;
    lattn_env_free(device->env, members);
    if (!status && !found)
        status =
            lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                       "native->device = %p: is not a device of native->context", (void *)wanted);
    return status;
}

static lattn_status open_adopted(struct lattn_opencl_device *device, const lattn_native *native)
{
    const struct lattn_opencl_api *cl = device->cl;
    if (!native->context || !native->device)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "native->%s = NULL: must be a %s",
                          native->context ? "device" : "context",
                          native->context ? "cl_device_id" : "cl_context");
    cl_context context = native->context;
    cl_device_id id = native->device;
    lattn_status status = check_member(device, context, id);
    if (status)
        return status;
    status = lattn_opencl_check(cl->clRetainDevice(id), "clRetainDevice");
    if (status)
        return status;
    device->device = id;
    status = lattn_opencl_check(cl->clRetainContext(context), "clRetainContext");
    if (status)
        return status;
    device->context = context;
    return LATTN_OK;
}

/* PoCL caches every kernel itself, and when it is asked for a program's binary it first compiles
 * all of the program's kernels in several variants, which takes far longer than the build. */
static bool wants_cache(const struct lattn_opencl_device *device)
{
    char platform[64];
    lattn_opencl_platform_text(device->cl, device->device, LATTN_CL_PLATFORM_NAME, platform,
                               sizeof(platform));
    return device->env->cache_dir && strcmp(platform, "Portable Computing Language") != 0;
}

/* Everything that a program built for this device depends on, but the program. */
static void start_key(struct lattn_opencl_device *device)
{
    static const cl_uint platform[] = {LATTN_CL_PLATFORM_NAME, LATTN_CL_PLATFORM_VERSION};
    static const cl_uint own[] = {LATTN_CL_DEVICE_NAME, LATTN_CL_DEVICE_VERSION,
                                  LATTN_CL_DRIVER_VERSION};
    char text[1024];
    lattn_opencl_cache_key_start(&device->key);
    lattn_opencl_cache_key_add(&device->key, lattn_version_string());
    for (size_t i = 0; i < sizeof(platform) / sizeof(platform[0]); i++)
        lattn_opencl_cache_key_add(&device->key,
                                   lattn_opencl_platform_text(device->cl, device->device,
                                                              platform[i], text, sizeof(text)));
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        lattn_opencl_cache_key_add(
            &device->key,
            lattn_opencl_device_text(device->cl, device->device, own[i], text, sizeof(text)));
}

static lattn_status fill(struct lattn_opencl_device *device, int32_t ordinal,
                         const lattn_native *native, struct lattn_caps *caps,
                         lattn_device_info *info)
{
    lattn_status status = native ? open_adopted(device, native) : open_own(device, ordinal);
    if (status)
        return status;
    lattn_opencl_device_describe(device->cl, device->device, info);
    info->ordinal = lattn_opencl_devices_number(device->device);
    if (info->status)
        return lattn_fail(info->status, "%s", info->reason);
    device->cached = wants_cache(device);
    if (device->cached)
        start_key(device);
    return lattn_opencl_device_caps(device->cl, device->device, caps);
}

lattn_status lattn_opencl_open(const struct lattn_env *env, int32_t ordinal,
                               const lattn_native *native, struct lattn_caps *caps,
                               lattn_device_info *info, void **device)
{
    const char *why;
    const struct lattn_opencl_api *cl = lattn_opencl_api_get(&why);
    if (!cl)
        return lattn_fail(LATTN_ERROR_NO_DEVICE, "no OpenCL driver: %s", why);
    struct lattn_opencl_device *made = lattn_env_alloc(env, sizeof(*made), "an OpenCL device");
    if (!made)
        return LATTN_ERROR_OUT_OF_MEMORY;
    made->env = env;
    made->cl = cl;
    if (pthread_mutex_init(&made->lock, NULL)) {
        lattn_env_free(env, made);
        return lattn_fail(LATTN_ERROR_OUT_OF_MEMORY, "pthread_mutex_init failed");
    }
    struct lattn_caps found = {0};
    lattn_status status = fill(made, ordinal, native, &found, info);
    if (status) {
        lattn_opencl_close(made);
        return status;
    }
    *caps = found;
    *device = made;
    return LATTN_OK;
}

void lattn_opencl_close(void *opaque)
{
    struct lattn_opencl_device *device = opaque;
    lattn_opencl_programs_release(device);
    if (device->context)
        device->cl->clReleaseContext(device->context);
    if (device->device)
        device->cl->clReleaseDevice(device->device);
    pthread_mutex_destroy(&device->lock);
    lattn_env_free(device->env, device);
}

lattn_status lattn_opencl_alloc(void *opaque, uint64_t bytes, void **base)
{
    struct lattn_opencl_device *device = opaque;
    if (bytes > SIZE_MAX)
        return lattn_fail(LATTN_ERROR_DEVICE_MEMORY,
                          "bytes = %llu: more than this process can address",
                          (unsigned long long)bytes);
    cl_int error;
    cl_mem memory = device->cl->clCreateBuffer(device->context, LATTN_CL_MEM_READ_WRITE,
                                               (size_t)bytes, NULL, &error);
    if (error)
        return lattn_opencl_fail(error, "clCreateBuffer of %llu bytes", (unsigned long long)bytes);
    *base = memory;
    return LATTN_OK;
}

void lattn_opencl_release(void *opaque, void *base)
{
    struct lattn_opencl_device *device = opaque;
    device->cl->clReleaseMemObject(base);
}
