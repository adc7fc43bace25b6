/* The OpenCL backend: any device whose driver has OpenCL 1.2 and a compiler. */
#include "core/backend.h"

#include "devices.h"
#include "objects.h"

static lattn_status probe(const struct lattn_env *env, lattn_found_fn found, void *user)
{
    const char *why;
    const struct lattn_opencl_api *cl = lattn_opencl_api_get(&why);
    if (!cl) {
        lattn_log(env, LATTN_LOG_INFO, "opencl: no devices: %s", why);
        return LATTN_OK;
    }
    int32_t count = lattn_opencl_devices_find(env, cl);
    for (int32_t i = 0; i < count; i++) {
        cl_device_id device = lattn_opencl_devices_get(i);
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        info.ordinal = i;
        lattn_opencl_device_describe(cl, device, &info);
        lattn_status status = found(user, &info, lattn_opencl_device_rank(cl, device));
        if (status)
            return status;
    }
    return LATTN_OK;
}

const struct lattn_backend lattn_backend_opencl = {
    .name = "opencl",
    .rows = lattn_opencl_rows,
    .row_count = lattn_opencl_row_count,
    .probe = probe,
    .open = lattn_opencl_open,
    .close = lattn_opencl_close,
    .alloc = lattn_opencl_alloc,
    .release = lattn_opencl_release,
    .stream_open = lattn_opencl_stream_open,
    .stream_close = lattn_opencl_stream_close,
    .synchronize = lattn_opencl_synchronize,
    .copy = lattn_opencl_copy,
    .fill = lattn_opencl_fill,
    .load = lattn_opencl_load,
    .launch = lattn_opencl_launch,
    .time_begin = lattn_opencl_time_begin,
    .time_end = lattn_opencl_time_end,
};
