#include "stream.h"

#include "core/error.h"

static CUdeviceptr address(const void *base, uint64_t offset)
{
    return (CUdeviceptr)(uintptr_t)base + offset;
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Inside enter_setup. */
static lattn_status create_stream(struct lattn_cuda_stream *stream)
{
    const struct lattn_cuda_api *api = stream->device->api;
    CUresult result = api->cuStreamCreate(&stream->native, CU_STREAM_NON_BLOCKING);
    if (result)
        return lattn_cuda_fail(api, result, "cuStreamCreate");
    stream->created = true;
    return LATTN_OK;
}

/* Inside enter_setup. */
static lattn_status adopt_stream(struct lattn_cuda_stream *stream, void *native)
{
    const struct lattn_cuda_device *device = stream->device;
    CUcontext context = NULL;
    stream->native = native;
    CUresult result = device->api->cuStreamGetCtx(native, &context);
    if (result)
        return lattn_cuda_fail(device->api, result, "native: cuStreamGetCtx");
    if (context != device->context) {
        return lattn_fail(
            LATTN_ERROR_INVALID_ARGUMENT,
            "native: the stream belongs to context %p, must belong to the device's, %p",
            (void *)context, (void *)device->context);
    }
    return LATTN_OK;
}

lattn_status lattn_cuda_stream_open(void *device_, bool adopt, void *native, void **opened)
{
    struct lattn_cuda_device *device = device_;
    struct lattn_cuda_stream *stream =
        lattn_env_alloc(device->env, sizeof(*stream), "a CUDA stream");
    if (!stream)
        return LATTN_ERROR_OUT_OF_MEMORY;
    stream->device = device;
    int mode;
    lattn_status status = lattn_cuda_enter_setup(device, &mode);
    if (!status) {
        status = adopt ? adopt_stream(stream, native) : create_stream(stream);
        lattn_cuda_leave_setup(device, mode);
    }
    if (status)
        lattn_env_free(device->env, stream);
    else
        *opened = stream;
    return status;
}

void lattn_cuda_stream_close(void *opened)
{
    struct lattn_cuda_stream *stream = opened;
    const struct lattn_cuda_device *device = stream->device;
    int mode;
    if (!lattn_cuda_enter_setup(device, &mode)) {
        if (stream->created) {
            device->api->cuStreamSynchronize(stream->native);
            device->api->cuStreamDestroy(stream->native);
        }
        if (stream->start)
            device->api->cuEventDestroy(stream->start);
        if (stream->end)
            device->api->cuEventDestroy(stream->end);
        lattn_cuda_leave_setup(device, mode);
    }
    lattn_env_free(device->env, stream);
}

/* ---- waiting, copies, fills ----------------------------------------------------------------- */

/* A stream under capture cannot be waited for, and trying would end the capture. Inside enter. */
static lattn_status refuse_capture(const struct lattn_cuda_stream *stream, const char *what)
{
    const struct lattn_cuda_api *api = stream->device->api;
    int capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    CUresult result = api->cuStreamIsCapturing(stream->native, &capturing);
    if (result && result != CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)
        return lattn_cuda_fail(api, result, "cuStreamIsCapturing");
    if (result || capturing != CU_STREAM_CAPTURE_STATUS_NONE) {
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "stream: is being captured, and %s would wait for it", what);
    }
    return LATTN_OK;
}

/* Inside enter. */
static lattn_status wait_for(const struct lattn_cuda_stream *stream)
{
    CUresult result = stream->device->api->cuStreamSynchronize(stream->native);
    return result ? lattn_cuda_fail(stream->device->api, result, "cuStreamSynchronize") : LATTN_OK;
}

lattn_status lattn_cuda_synchronize(void *opened)
{
    const struct lattn_cuda_stream *stream = opened;
    lattn_status status = lattn_cuda_enter(stream->device);
    if (status)
        return status;
    status = refuse_capture(stream, "synchronize");
    if (!status)
        status = wait_for(stream);
    lattn_cuda_leave(stream->device);
    return status;
}

/* Inside enter. */
static lattn_status copy_between(const struct lattn_cuda_stream *stream,
                                 const struct lattn_copy *copy)
{
    const struct lattn_cuda_api *api = stream->device->api;
    const char *what = "cuMemcpyDtoDAsync";
    CUresult result;
    switch (copy->kind) {
    case LATTN_COPY_UPLOAD:
        what = "cuMemcpyHtoDAsync";
        result = api->cuMemcpyHtoDAsync(address(copy->to, copy->to_offset),
                                        (const char *)copy->from + copy->from_offset, copy->bytes,
                                        stream->native);
        break;
    case LATTN_COPY_DOWNLOAD:
        what = "cuMemcpyDtoHAsync";
        result = api->cuMemcpyDtoHAsync((char *)copy->to + copy->to_offset,
                                        address(copy->from, copy->from_offset), copy->bytes,
                                        stream->native);
        break;
    default:
        result = api->cuMemcpyDtoDAsync(address(copy->to, copy->to_offset),
                                        address(copy->from, copy->from_offset), copy->bytes,
                                        stream->native);
        break;
    }
    return result ? lattn_cuda_fail(api, result, what) : LATTN_OK;
}

lattn_status lattn_cuda_copy(void *opened, const struct lattn_copy *copy)
{
    const struct lattn_cuda_stream *stream = opened;
    const bool waits = copy->kind != LATTN_COPY_DEVICE;
    lattn_status status = lattn_cuda_enter(stream->device);
    if (status)
        return status;
    if (waits)
        status = refuse_capture(stream, copy->kind == LATTN_COPY_UPLOAD ? "upload" : "download");
    if (!status)
        status = copy_between(stream, copy);
    if (!status && waits)
        status = wait_for(stream);
    lattn_cuda_leave(stream->device);
    return status;
}

lattn_status lattn_cuda_fill(void *opened, void *base, uint64_t offset, uint8_t value,
                             uint64_t bytes)
{
    const struct lattn_cuda_stream *stream = opened;
    const struct lattn_cuda_api *api = stream->device->api;
    lattn_status status = lattn_cuda_enter(stream->device);
    if (status)
        return status;
    CUresult result = api->cuMemsetD8Async(address(base, offset), value, bytes, stream->native);
    lattn_cuda_leave(stream->device);
    return result ? lattn_cuda_fail(api, result, "cuMemsetD8Async") : LATTN_OK;
}

/* ---- launches ------------------------------------------------------------------------------- */

lattn_status lattn_cuda_launch(void *opened, void *kernel, const struct lattn_launch *launch)
{
    const struct lattn_cuda_stream *stream = opened;
    const struct lattn_cuda_api *api = stream->device->api;
    void *parameters[LATTN_MEM_COUNT + 1]; /* the driver reads through them and writes nothing */
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        parameters[i] = (void *)&launch->memories[i];
    parameters[LATTN_MEM_COUNT] = (void *)launch->args;

    lattn_status status = lattn_cuda_enter(stream->device);
    if (status)
        return status;
    CUresult result = api->cuLaunchKernel(kernel, (unsigned)launch->groups, 1, 1, launch->threads,
                                          1, 1, launch->shared, stream->native, parameters, NULL);
    lattn_cuda_leave(stream->device);
    return result ? lattn_cuda_fail(api, result, "cuLaunchKernel") : LATTN_OK;
}

/* ---- timing --------------------------------------------------------------------------------- */

/* Inside enter. Timing measures with two events, made once. */
static lattn_status make_events(struct lattn_cuda_stream *stream)
{
    const struct lattn_cuda_api *api = stream->device->api;
    CUresult result = CUDA_SUCCESS;
    if (!stream->start)
        result = api->cuEventCreate(&stream->start, 0);
    if (!result && !stream->end)
        result = api->cuEventCreate(&stream->end, 0);
    return result ? lattn_cuda_fail(api, result, "cuEventCreate") : LATTN_OK;
}

lattn_status lattn_cuda_time_begin(void *opened)
{
    struct lattn_cuda_stream *stream = opened;
    const struct lattn_cuda_api *api = stream->device->api;
    lattn_status status = lattn_cuda_enter(stream->device);
    if (status)
        return status;
    status = refuse_capture(stream, "a measurement");
    if (!status)
        status = make_events(stream);
    if (!status) {
        CUresult result = api->cuEventRecord(stream->start, stream->native);
        if (result)
            status = lattn_cuda_fail(api, result, "cuEventRecord");
    }
    lattn_cuda_leave(stream->device);
    return status;
}

lattn_status lattn_cuda_time_end(void *opened, double *milliseconds)
{
    const struct lattn_cuda_stream *stream = opened;
    const struct lattn_cuda_api *api = stream->device->api;
    if (!stream->end)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "stream: no measurement was begun on it");
    lattn_status status = lattn_cuda_enter(stream->device);
    if (status)
        return status;
    status = refuse_capture(stream, "a measurement");
    if (!status) {
        float elapsed = 0;
        const char *what = "cuEventRecord";
        CUresult result = api->cuEventRecord(stream->end, stream->native);
        if (!result) {
            what = "cuEventSynchronize";
            result = api->cuEventSynchronize(stream->end);
        }
        if (!result) {
            what = "cuEventElapsedTime";
            result = api->cuEventElapsedTime(&elapsed, stream->start, stream->end);
        }
        if (result)
            status = lattn_cuda_fail(api, result, what);
        else
            *milliseconds = (double)elapsed;
    }
    lattn_cuda_leave(stream->device);
    return status;
}
