#include "stream.h"

#include <stdio.h>

#include "core/error.h"

static void *address(const void *base, uint64_t offset)
{
    return (char *)base + offset;
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Inside enter_setup. */
static lattn_status create_stream(struct lattn_driver_stream *stream)
{
    lattn_status status = LATTN_DRIVER_TRY(stream->device->driver, stream_create, &stream->native,
                                           LATTN_DRIVER_STREAM_NON_BLOCKING);
    stream->created = !status;
    return status;
}

/* Inside enter_setup. */
static lattn_status adopt_stream(struct lattn_driver_stream *stream, void *native)
{
    stream->native = native;
    return stream->device->driver->check_stream(stream->device, native);
}

lattn_status lattn_driver_stream_open(void *device_, bool adopt, void *native, void **opened)
{
    struct lattn_driver_device *device = device_;
    struct lattn_driver_scope scope;
    char what[32];
    snprintf(what, sizeof(what), "a %s stream", device->driver->title);
    struct lattn_driver_stream *stream = lattn_env_alloc(device->env, sizeof(*stream), what);
    if (!stream)
        return LATTN_ERROR_OUT_OF_MEMORY;
    stream->device = device;
    lattn_status status = lattn_driver_enter_setup(device, &scope);
    if (!status) {
        status = adopt ? adopt_stream(stream, native) : create_stream(stream);
        lattn_driver_leave_setup(device, &scope);
    }
    if (status)
        lattn_env_free(device->env, stream);
    else
        *opened = stream;
    return status;
}

void lattn_driver_stream_close(void *opened)
{
    struct lattn_driver_stream *stream = opened;
    const struct lattn_driver_device *device = stream->device;
    const struct lattn_driver *driver = device->driver;
    struct lattn_driver_scope scope;
    if (!lattn_driver_enter_setup(device, &scope)) {
        if (stream->created) {
            driver->call.stream_synchronize(stream->native);
            driver->call.stream_destroy(stream->native);
        }
        if (stream->start)
            driver->call.event_destroy(stream->start);
        if (stream->end)
            driver->call.event_destroy(stream->end);
        lattn_driver_leave_setup(device, &scope);
    }
    lattn_env_free(device->env, stream);
}

/* ---- waiting, copies, fills ----------------------------------------------------------------- */

/* A stream under capture cannot be waited for, and trying would end the capture. Inside enter. */
static lattn_status refuse_capture(const struct lattn_driver_stream *stream, const char *what)
{
    const struct lattn_driver *driver = stream->device->driver;
    int capturing = LATTN_DRIVER_CAPTURE_NONE;
    int result = driver->call.stream_is_capturing(stream->native, &capturing);
    if (result && result != LATTN_DRIVER_ERROR_CAPTURE_IMPLICIT)
        return driver->fail(result, driver->name.stream_is_capturing);
    if (result || capturing != LATTN_DRIVER_CAPTURE_NONE) {
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "stream: is being captured, and %s would wait for it", what);
    }
    return LATTN_OK;
}

/* Inside enter. */
static lattn_status wait_for(const struct lattn_driver_stream *stream)
{
    return LATTN_DRIVER_TRY(stream->device->driver, stream_synchronize, stream->native);
}

lattn_status lattn_driver_synchronize(void *opened)
{
    const struct lattn_driver_stream *stream = opened;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter(stream->device, &scope);
    if (status)
        return status;
    status = refuse_capture(stream, "synchronize");
    if (!status)
        status = wait_for(stream);
    lattn_driver_leave(stream->device, &scope);
    return status;
}

/* Inside enter. */
static lattn_status copy_between(const struct lattn_driver_stream *stream,
                                 const struct lattn_copy *copy)
{
    const struct lattn_driver *driver = stream->device->driver;
    void *to = address(copy->to, copy->to_offset);
    const void *from = address(copy->from, copy->from_offset);
    switch (copy->kind) {
    case LATTN_COPY_UPLOAD:
        return LATTN_DRIVER_TRY(driver, upload, to, from, copy->bytes, stream->native);
    case LATTN_COPY_DOWNLOAD:
        return LATTN_DRIVER_TRY(driver, download, to, from, copy->bytes, stream->native);
    default:
        return LATTN_DRIVER_TRY(driver, device_copy, to, from, copy->bytes, stream->native);
    }
}

lattn_status lattn_driver_copy(void *opened, const struct lattn_copy *copy)
{
    const struct lattn_driver_stream *stream = opened;
    const bool waits = copy->kind != LATTN_COPY_DEVICE;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter(stream->device, &scope);
    if (status)
        return status;
    if (waits)
        status = refuse_capture(stream, copy->kind == LATTN_COPY_UPLOAD ? "upload" : "download");
    if (!status)
        status = copy_between(stream, copy);
    if (!status && waits)
        status = wait_for(stream);
    lattn_driver_leave(stream->device, &scope);
    return status;
}

lattn_status lattn_driver_fill(void *opened, void *base, uint64_t offset, uint8_t value,
                               uint64_t bytes)
{
    const struct lattn_driver_stream *stream = opened;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter(stream->device, &scope);
    if (status)
        return status;
    status = LATTN_DRIVER_TRY(stream->device->driver, fill, address(base, offset), value, bytes,
                              stream->native);
    lattn_driver_leave(stream->device, &scope);
    return status;
}

/* ---- launches ------------------------------------------------------------------------------- */

lattn_status lattn_driver_launch(void *opened, void *kernel, const struct lattn_launch *launch)
{
    const struct lattn_driver_stream *stream = opened;
    void *parameters[LATTN_MEM_COUNT + 1]; /* the driver reads through them and writes nothing */
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        parameters[i] = (void *)&launch->memories[i];
    parameters[LATTN_MEM_COUNT] = (void *)launch->args;

    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter(stream->device, &scope);
    if (status)
        return status;
    status =
        LATTN_DRIVER_TRY(stream->device->driver, launch, kernel, (unsigned)launch->groups, 1, 1,
                         launch->threads, 1, 1, launch->shared, stream->native, parameters, NULL);
    lattn_driver_leave(stream->device, &scope);
    return status;
}

/* ---- timing --------------------------------------------------------------------------------- */

/* Inside enter. Timing measures with two events, made once. */
static lattn_status make_events(struct lattn_driver_stream *stream)
{
    const struct lattn_driver *driver = stream->device->driver;
    lattn_status status = LATTN_OK;
    if (!stream->start)
        status = LATTN_DRIVER_TRY(driver, event_create, &stream->start, 0);
    if (!status && !stream->end)
        status = LATTN_DRIVER_TRY(driver, event_create, &stream->end, 0);
    return status;
}

lattn_status lattn_driver_time_begin(void *opened)
{
    struct lattn_driver_stream *stream = opened;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter(stream->device, &scope);
    if (status)
        return status;
    status = refuse_capture(stream, "a measurement");
    if (!status)
        status = make_events(stream);
    if (!status)
        status =
            LATTN_DRIVER_TRY(stream->device->driver, event_record, stream->start, stream->native);
    lattn_driver_leave(stream->device, &scope);
    return status;
}

lattn_status lattn_driver_time_end(void *opened, double *milliseconds)
{
    const struct lattn_driver_stream *stream = opened;
    const struct lattn_driver *driver = stream->device->driver;
    struct lattn_driver_scope scope;
    lattn_status status = lattn_driver_enter(stream->device, &scope);
    if (status)
        return status;
    float elapsed = 0;
    status = refuse_capture(stream, "a measurement");
    if (!status)
        status = LATTN_DRIVER_TRY(driver, event_record, stream->end, stream->native);
    if (!status)
        status = LATTN_DRIVER_TRY(driver, event_synchronize, stream->end);
    if (!status)
        status = LATTN_DRIVER_TRY(driver, event_elapsed, &elapsed, stream->start, stream->end);
    if (!status)
        *milliseconds = (double)elapsed;
    lattn_driver_leave(stream->device, &scope);
    return status;
}
