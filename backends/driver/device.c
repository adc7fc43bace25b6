#include <inttypes.h>
#include <stdio.h>

#include "core/error.h"
#include "driver.h"
#include "module.h"

void lattn_driver_device_init(struct lattn_driver_device *device, const struct lattn_driver *driver,
                              const struct lattn_env *env)
{
    device->driver = driver;
    device->env = env;
    pthread_mutex_init(&device->lock, NULL);
}

void lattn_driver_device_end(struct lattn_driver_device *device)
{
    lattn_driver_unload_all(device);
    pthread_mutex_destroy(&device->lock);
}

lattn_status lattn_driver_check(const struct lattn_driver *driver, int result, const char *what)
{
    return result ? driver->fail(result, what) : LATTN_OK;
}

/* ---- the thread's current device ------------------------------------------------------------ */

lattn_status lattn_driver_enter(const struct lattn_driver_device *device,
                                struct lattn_driver_scope *scope)
{
    return device->driver->enter(device, scope);
}

void lattn_driver_leave(const struct lattn_driver_device *device,
                        const struct lattn_driver_scope *scope)
{
    device->driver->leave(device, scope);
}

lattn_status lattn_driver_enter_setup(const struct lattn_driver_device *device,
                                      struct lattn_driver_scope *scope)
{
    lattn_status status = lattn_driver_enter(device, scope);
    if (status)
        return status;
    scope->capture_mode = LATTN_DRIVER_CAPTURE_RELAXED;
    status = LATTN_DRIVER_TRY(device->driver, exchange_capture_mode, &scope->capture_mode);
    if (status)
        lattn_driver_leave(device, scope);
    return status;
}

void lattn_driver_leave_setup(const struct lattn_driver_device *device,
                              const struct lattn_driver_scope *scope)
{
    int mode = scope->capture_mode;
    device->driver->call.exchange_capture_mode(&mode);
    lattn_driver_leave(device, scope);
}

/* ---- memory --------------------------------------------------------------------------------- */

lattn_status lattn_driver_alloc(void *opened, uint64_t bytes, void **base)
{
    const struct lattn_driver_device *device = opened;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter_setup(device, &scope);
    if (status)
        return status;
    void *pointer = NULL;
    int result = device->driver->call.memory_alloc(&pointer, bytes);
    lattn_driver_leave_setup(device, &scope);
    if (result) {
        char what[64];
        snprintf(what, sizeof(what), "%s of %" PRIu64 " bytes", device->driver->name.memory_alloc,
                 bytes);
        return device->driver->fail(result, what);
    }
    *base = pointer;
    return LATTN_OK;
}

void lattn_driver_release(void *opened, void *base)
{
    const struct lattn_driver_device *device = opened;
    struct lattn_driver_scope scope;
    if (lattn_driver_enter_setup(device, &scope))
        return;
    device->driver->call.memory_free(base);
    lattn_driver_leave_setup(device, &scope);
}
