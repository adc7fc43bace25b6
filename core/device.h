/* An open device: a backend's object, what the planner knows of it, and its context held open. */
#ifndef LATTN_CORE_DEVICE_H
#define LATTN_CORE_DEVICE_H

#include "backend.h"
#include "context.h"

struct lattn_device {
    lattn_context *context;
    const struct lattn_backend *backend;
    struct lattn_caps caps;
    lattn_device_info info;
    void *impl;
};

#endif
