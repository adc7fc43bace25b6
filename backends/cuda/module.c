#include "module.h"

#include <stdio.h>

#include "core/error.h"
#include "stream.h"

struct lattn_cuda_module {
    const void *image;
    CUmodule native;
    struct lattn_cuda_module *next;
};

/* More group memory than this a kernel must ask for. */
#define USUAL_SHARED 49152

/* The module of an image, loaded now if it was not before. Inside the lock and enter_setup. */
static lattn_status find_module(struct lattn_cuda_device *device, const void *image,
                                CUmodule *native)
{
    for (struct lattn_cuda_module *module = device->modules; module; module = module->next) {
        if (module->image == image) {
            *native = module->native;
            return LATTN_OK;
        }
    }
    struct lattn_cuda_module *module =
        lattn_env_alloc(device->env, sizeof(*module), "a CUDA module");
    if (!module)
        return LATTN_ERROR_OUT_OF_MEMORY;
    CUresult result = device->api->cuModuleLoadData(&module->native, image);
    if (result) {
        lattn_env_free(device->env, module);
        char what[96];
        snprintf(what, sizeof(what),
                 "loading device code (cuModuleLoadData, driver for CUDA %d.%d)",
                 device->api->driver / 1000, device->api->driver % 1000 / 10);
        return lattn_cuda_fail(device->api, result, what);
    }
    module->image = image;
    module->next = device->modules;
    device->modules = module;
    *native = module->native;
    return LATTN_OK;
}

/* Everything that a launch would otherwise do on its first time. */
static lattn_status ready_kernel(const struct lattn_cuda_api *api, CUmodule module,
                                 const struct lattn_kernel_row *row, CUfunction *function)
{
    char what[128];
    int threads = 0;
    const char *step = "cuModuleGetFunction";
    CUresult result = api->cuModuleGetFunction(function, module, row->entry);
    if (!result && api->cuFuncLoad) {
        step = "cuFuncLoad";
        result = api->cuFuncLoad(*function);
    }
    if (!result && row->shared > USUAL_SHARED) {
        step = "cuFuncSetAttribute";
        result = api->cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                         (int)row->shared);
    }
    if (!result) {
        step = "cuFuncGetAttribute";
        result =
            api->cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, *function);
    }
    if (result) {
        snprintf(what, sizeof(what), "%s of %s", step, row->entry);
        return lattn_cuda_fail(api, result, what);
    }
    if ((uint32_t)threads < row->threads) {
        return lattn_fail(LATTN_ERROR_UNSUPPORTED,
                          "kernel %s: the device runs it with at most %d threads, not %u",
                          row->entry, threads, row->threads);
    }
    return LATTN_OK;
}

lattn_status lattn_cuda_load(void *opened, const struct lattn_kernel_row *row, void **kernel)
{
    struct lattn_cuda_device *device = ((struct lattn_cuda_stream *)opened)->device;
    int mode;
    lattn_status status = lattn_cuda_enter_setup(device, &mode);
    if (status)
        return status;
    CUmodule module = NULL;
    CUfunction function = NULL;
    pthread_mutex_lock(&device->lock);
    status = find_module(device, row->program, &module);
    pthread_mutex_unlock(&device->lock);
    if (!status)
        status = ready_kernel(device->api, module, row, &function);
    lattn_cuda_leave_setup(device, mode);
    *kernel = function;
    return status;
}

void lattn_cuda_unload_all(struct lattn_cuda_device *device)
{
    int mode;
    const bool entered = !lattn_cuda_enter_setup(device, &mode);
    while (device->modules) {
        struct lattn_cuda_module *module = device->modules;
        device->modules = module->next;
        if (entered)
            device->api->cuModuleUnload(module->native);
        lattn_env_free(device->env, module);
    }
    if (entered)
        lattn_cuda_leave_setup(device, mode);
}
