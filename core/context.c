#include "context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "params.h"

static void *default_alloc(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static void default_free(void *user, void *pointer)
{
    (void)user;
    free(pointer);
}

static char *copy_text(const struct lattn_env *env, const char *text, const char *what)
{
    size_t size = strlen(text) + 1;
    char *copy = lattn_env_alloc(env, size, what);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* The folder that the caller names, or the user's cache folder; none if there is no home. */
static lattn_status choose_cache_dir(lattn_context *context, const char *given)
{
    if (given && !*given)
        return LATTN_OK;
    const char *base = given, *tail = "";
    if (!given) {
        base = getenv("XDG_CACHE_HOME");
        tail = "/lattn";
        if (!base || *base != '/') {
            base = getenv("HOME");
            tail = "/.cache/lattn";
        }
        if (!base || *base != '/')
            return LATTN_OK;
    }
    size_t size = strlen(base) + strlen(tail) + 1;
    context->cache_dir = lattn_env_alloc(&context->env, size, "the cache folder's name");
    if (!context->cache_dir)
        return LATTN_ERROR_OUT_OF_MEMORY;
    snprintf(context->cache_dir, size, "%s%s", base, tail);
    context->env.cache_dir = context->cache_dir;
    return LATTN_OK;
}

/* Is `name` in the comma-separated `list`? No list has every name. */
static bool listed(const char *list, const char *name)
{
    if (!list)
        return true;
    size_t length = strlen(name);
    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        if (!strncmp(item, name, length) && (item[length] == ',' || !item[length]))
            return true;
    }
    return false;
}

static lattn_status check_backend_list(const lattn_context *context, const char *list)
{
    for (const char *item = list; item; item = strchr(item, ',')) {
        item += *item == ',';
        int length = (int)strcspn(item, ",");
        bool known = false;
        for (uint32_t i = 0; i < context->backend_count; i++) {
            const char *name = context->backends[i]->name;
            known = known || (strlen(name) == (size_t)length && !strncmp(name, item, strlen(name)));
        }
        if (!known)
            return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                              "params->backends = \"%s\": this build has no backend \"%.*s\"", list,
                              length, item);
    }
    return LATTN_OK;
}

struct probe {
    lattn_context *context;
    const struct lattn_backend *backend;
};

/* Inserts a device before those of lower rank, so that equal ranks keep their order. */
static lattn_status add_device(void *user, const lattn_device_info *info, int32_t rank)
{
    struct probe *probe = user;
    lattn_context *context = probe->context;
    if (context->device_count == context->device_room) {
        int32_t room = context->device_room * 2 + 8;
        struct lattn_found_device *devices =
            lattn_env_alloc(&context->env, (size_t)room * sizeof(*devices), "the list of devices");
        if (!devices)
            return LATTN_ERROR_OUT_OF_MEMORY;
        if (context->device_count)
            memcpy(devices, context->devices, (size_t)context->device_count * sizeof(*devices));
        lattn_env_free(&context->env, context->devices);
        context->devices = devices;
        context->device_room = room;
    }
    int32_t at = context->device_count++;
    for (; at > 0 && context->devices[at - 1].rank < rank; at--)
        context->devices[at] = context->devices[at - 1];
    struct lattn_found_device *device = &context->devices[at];
    *device = (struct lattn_found_device){probe->backend, *info, rank};
    device->info.struct_size = sizeof(device->info);
    snprintf(device->info.backend, sizeof(device->info.backend), "%s", probe->backend->name);
    return LATTN_OK;
}

static lattn_status fill_context(lattn_context *context, const lattn_context_params *params)
{
    lattn_status status = choose_cache_dir(context, params->cache_dir);
    if (status)
        return status;
    if (params->backends) {
        status = check_backend_list(context, params->backends);
        if (status)
            return status;
        context->only = copy_text(&context->env, params->backends, "the list of backends");
        if (!context->only)
            return LATTN_ERROR_OUT_OF_MEMORY;
    }
    /* A driver or a device that is not there is no failure of ours, whatever the probe says. */
    struct lattn_message before;
    lattn_message_save(&before);
    for (uint32_t i = 0; i < context->backend_count; i++) {
        struct probe probe = {context, context->backends[i]};
        if (!listed(context->only, probe.backend->name))
            continue;
        status = probe.backend->probe(&context->env, add_device, &probe);
        if (status)
            return status;
    }
    lattn_message_restore(&before);
    return LATTN_OK;
}

lattn_status lattn_context_create_with(const struct lattn_backend *const *backends, uint32_t count,
                                       const lattn_context_params *given, lattn_context **context)
{
    if (!context)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "context = NULL: must point to a handle");
    *context = NULL;
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    if (given) {
        lattn_status status = lattn_params_read(&params, sizeof(params), given, "params");
        if (status)
            return status;
    }
    if (!params.allocator.alloc != !params.allocator.free)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "params->allocator.%s = NULL: give both functions or neither",
                          params.allocator.alloc ? "free" : "alloc");
    struct lattn_env env = {
        .allocator = params.allocator,
        .log = params.log,
        .log_user = params.log_user,
        .log_level = params.log_level ? params.log_level : LATTN_LOG_WARNING,
    };
    if (!env.allocator.alloc)
        env.allocator = (lattn_allocator){default_alloc, default_free, NULL};
    lattn_context *made = lattn_env_alloc(&env, sizeof(*made), "a context");
    if (!made)
        return LATTN_ERROR_OUT_OF_MEMORY;
    made->env = env;
    made->backends = backends;
    made->backend_count = count;
    atomic_init(&made->holders, 1);
    lattn_status status = fill_context(made, &params);
    if (status) {
        lattn_context_release(made);
        return status;
    }
    *context = made;
    return LATTN_OK;
}

lattn_status lattn_context_create(const lattn_context_params *params, lattn_context **context)
{
    return lattn_context_create_with(lattn_backends, lattn_backend_count, params, context);
}

void lattn_context_destroy(lattn_context *context)
{
    if (context)
        lattn_context_release(context);
}

void lattn_context_hold(lattn_context *context)
{
    atomic_fetch_add(&context->holders, 1);
}

void lattn_context_release(lattn_context *context)
{
    if (atomic_fetch_sub(&context->holders, 1) != 1)
        return;
    struct lattn_env env = context->env;
    lattn_env_free(&env, context->devices);
    lattn_env_free(&env, context->only);
    lattn_env_free(&env, context->cache_dir);
    lattn_env_free(&env, context);
}

const struct lattn_backend *lattn_context_backend(const lattn_context *context, const char *name)
{
    for (uint32_t i = 0; i < context->backend_count; i++) {
        const struct lattn_backend *backend = context->backends[i];
        if (!strcmp(backend->name, name) && listed(context->only, name))
            return backend;
    }
    lattn_fail(LATTN_ERROR_NO_DEVICE,
               "backend = \"%s\": not in this build, or not in the context's list", name);
    return NULL;
}

lattn_status lattn_context_check_index(const lattn_context *context, int32_t index)
{
    if (!context->device_count)
        return lattn_fail(LATTN_ERROR_NO_DEVICE, "index = %d: there are no devices", index);
    if (index < 0 || index >= context->device_count)
        return lattn_fail(LATTN_ERROR_NO_DEVICE, "index = %d: there are devices 0 to %d", index,
                          context->device_count - 1);
    return LATTN_OK;
}

int32_t lattn_device_count(const lattn_context *context)
{
    return context ? context->device_count : 0;
}

lattn_status lattn_device_info_get(const lattn_context *context, int32_t index,
                                   lattn_device_info *info)
{
    if (!context)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "context = NULL: must be a context");
    lattn_status status = lattn_context_check_index(context, index);
    if (status)
        return status;
    return lattn_params_write(info, &context->devices[index].info, sizeof(*info), "info");
}

lattn_status lattn_device_find(const lattn_context *context, const char *backend, int32_t ordinal,
                               int32_t *index)
{
    if (!context)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "context = NULL: must be a context");
    if (!index)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "index = NULL: must point to a number");
    bool any = !backend || !strcmp(backend, "auto");
    if (!any && !lattn_context_backend(context, backend))
        return LATTN_ERROR_NO_DEVICE;
    int32_t count = 0;
    for (int32_t i = 0; i < context->device_count; i++) {
        const struct lattn_found_device *device = &context->devices[i];
        if (any ? device->info.status == LATTN_OK
                : !strcmp(device->backend->name, backend) && device->info.ordinal == ordinal) {
            *index = i;
            return LATTN_OK;
        }
        count += any || !strcmp(device->backend->name, backend);
    }
    if (any)
        return lattn_fail(LATTN_ERROR_NO_DEVICE, "none of the %d devices found can be opened",
                          count);
    return lattn_fail(LATTN_ERROR_NO_DEVICE, "ordinal = %d: backend \"%s\" has %d devices here",
                      ordinal, backend, count);
}
