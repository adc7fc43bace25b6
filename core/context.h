/* A context: what it lends (env) and the devices that its backends found. */
#ifndef LATTN_CORE_CONTEXT_H
#define LATTN_CORE_CONTEXT_H

#include <stdatomic.h>

#include "backend.h"
#include "env.h"

struct lattn_found_device {
    const struct lattn_backend *backend;
    lattn_device_info info;
    int32_t rank;
};

struct lattn_context {
    struct lattn_env env;
    atomic_uint holders; /* the caller, and each open device */
    const struct lattn_backend *const *backends;
    uint32_t backend_count;
    char *only; /* the caller's list of backends, or NULL */
    char *cache_dir;
    struct lattn_found_device *devices; /* best first */
    int32_t device_count;
    int32_t device_room;
};

/* lattn_context_create over a given list of backends. */
lattn_status lattn_context_create_with(const struct lattn_backend *const *backends, uint32_t count,
                                       const lattn_context_params *params, lattn_context **context);

/* The named backend, if it is in the build and the caller's list; else NULL and a message. */
const struct lattn_backend *lattn_context_backend(const lattn_context *context, const char *name);

/* LATTN_ERROR_NO_DEVICE, and a message, unless there is a device `index`. */
lattn_status lattn_context_check_index(const lattn_context *context, int32_t index);

void lattn_context_hold(lattn_context *context);
void lattn_context_release(lattn_context *context);

#endif
