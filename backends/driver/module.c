#include "module.h"

#include <stdio.h>

#include "core/error.h"
#include "stream.h"

struct lattn_driver_module {
    const void *image;
    void *native;
    struct lattn_driver_module *next;
};

/* The module of an image, loaded now if it was not before. Inside the lock and enter_setup. */
static lattn_status find_module(struct lattn_driver_device *device, const void *image,
                                void **native)
{
    const struct lattn_driver *driver = device->driver;
    char what[128];
    for (struct lattn_driver_module *module = device->modules; module; module = module->next) {
        if (module->image == image) {
            *native = module->native;
            return LATTN_OK;
        }
    }
    snprintf(what, sizeof(what), "a %s module", driver->title);
    struct lattn_driver_module *module = lattn_env_alloc(device->env, sizeof(*module), what);
    if (!module)
        return LATTN_ERROR_OUT_OF_MEMORY;
    int result = driver->call.module_load(&module->native, image);
    if (result) {
        lattn_env_free(device->env, module);
        snprintf(what, sizeof(what), "loading device code (%s, %s)", driver->name.module_load,
                 driver->version);
        return driver->fail(result, what);
    }
    module->image = image;
    module->next = device->modules;
    device->modules = module;
    *native = module->native;
    return LATTN_OK;
}

/* Everything that a launch would otherwise do on its first time. */
static lattn_status ready_kernel(const struct lattn_driver_device *device, void *module,
                                 const struct lattn_kernel_row *row, void **function)
{
    const struct lattn_driver *driver = device->driver;
    char what[128];
    int threads = 0;
    snprintf(what, sizeof(what), "%s of %s", driver->name.module_function, row->entry);
    lattn_status status = lattn_driver_check(
        driver, driver->call.module_function(function, module, row->entry), what);
    if (!status && driver->ready)
        status = driver->ready(device, *function, row);
    if (status)
        return status;
    snprintf(what, sizeof(what), "%s of %s", driver->name.function_attribute, row->entry);
    status = lattn_driver_check(
        driver,
        driver->call.function_attribute(&threads, LATTN_DRIVER_FUNCTION_MAX_THREADS, *function),
        what);
    if (!status && (uint32_t)threads < row->threads)
        return lattn_fail(LATTN_ERROR_UNSUPPORTED,
                          "kernel %s: the device runs it with at most %d threads, not %u",
                          row->entry, threads, row->threads);
    return status;
}

lattn_status lattn_driver_load(void *opened, const struct lattn_kernel_row *row, void **kernel)
{
    struct lattn_driver_device *device = ((struct lattn_driver_stream *)opened)->device;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter_setup(device, &scope);
    if (status)
        return status;
    void *module = NULL, *function = NULL;
    pthread_mutex_lock(&device->lock);
    status = find_module(device, row->program, &module);
    pthread_mutex_unlock(&device->lock);
    if (!status)
        status = ready_kernel(device, module, row, &function);
    lattn_driver_leave_setup(device, &scope);
    if (!status)
        *kernel = function;
    return status;
}

void lattn_driver_unload_all(struct lattn_driver_device *device)
{
    struct lattn_driver_scope scope;
    const bool entered = !lattn_driver_enter_setup(device, &scope);
    while (device->modules) {
        struct lattn_driver_module *module = device->modules;
        device->modules = module->next;
        if (entered)
            device->driver->call.module_unload(module->native);
        lattn_env_free(device->env, module);
    }
    if (entered)
        lattn_driver_leave_setup(device, &scope);
}
