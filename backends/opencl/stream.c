/* Queues, and the copies put on them. */
#include "core/error.h"
#include "objects.h"

static lattn_status check_queue(const struct lattn_opencl_device *device, cl_command_queue queue)
{
    const struct lattn_opencl_api *cl = device->cl;
    if (!queue)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "native = NULL: must be a cl_command_queue; OpenCL has no default one");
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_ulong properties = 0;
    cl_int error =
        cl->clGetCommandQueueInfo(queue, LATTN_CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
    if (!error)
        error = cl->clGetCommandQueueInfo(queue, LATTN_CL_QUEUE_DEVICE, sizeof(id), &id, NULL);
    if (!error)
        error = cl->clGetCommandQueueInfo(queue, LATTN_CL_QUEUE_PROPERTIES, sizeof(properties),
                                          &properties, NULL);
    if (error)
        return lattn_opencl_check(error, "clGetCommandQueueInfo of native");
    const char *rule = NULL;
    if (context != device->context)
        rule = "its cl_context is not the device's; adopt that context with lattn_device_adopt";
    else if (id != device->device)
        rule = "its cl_device_id is not the device's";
    else if (properties & LATTN_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        rule = "it executes out of order; must execute in order";
    if (rule)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "native = %p: %s", (void *)queue, rule);
    return LATTN_OK;
}

static lattn_status adopt_queue(struct lattn_opencl_stream *stream, cl_command_queue queue)
{
    const struct lattn_opencl_api *cl = stream->device->cl;
    lattn_status status = check_queue(stream->device, queue);
    if (!status)
        status = lattn_opencl_check(cl->clRetainCommandQueue(queue), "clRetainCommandQueue");
    if (!status)
        stream->queue = queue;
    return status;
}

static lattn_status create_queue(struct lattn_opencl_stream *stream)
{
    const struct lattn_opencl_device *device = stream->device;
    cl_int error;
    cl_command_queue queue = device->cl->clCreateCommandQueue(
        device->context, device->device, LATTN_CL_QUEUE_PROFILING_ENABLE, &error);
    lattn_status status = lattn_opencl_check(error, "clCreateCommandQueue");
    if (!status)
        stream->queue = queue;
    return status;
}

lattn_status lattn_opencl_stream_open(void *device, bool adopt, void *native, void **stream)
{
    const struct lattn_env *env = ((struct lattn_opencl_device *)device)->env;
    struct lattn_opencl_stream *made = lattn_env_alloc(env, sizeof(*made), "an OpenCL stream");
    if (!made)
        return LATTN_ERROR_OUT_OF_MEMORY;
    made->device = device;
    made->adopted = adopt;
    lattn_status status = adopt ? adopt_queue(made, native) : create_queue(made);
    if (status) {
        lattn_env_free(env, made);
        return status;
    }
    *stream = made;
    return LATTN_OK;
}

void lattn_opencl_stream_close(void *opaque)
{
    struct lattn_opencl_stream *stream = opaque;
    const struct lattn_opencl_api *cl = stream->device->cl;
    const struct lattn_env *env = stream->device->env;
    if (!stream->adopted)
        cl->clFinish(stream->queue);
    if (stream->begin)
        cl->clReleaseEvent(stream->begin);
    /* Work still queued on an adopted queue keeps its kernels alive by itself. */
    while (stream->kernels) {
        struct lattn_opencl_kernel *kernel = stream->kernels;
        stream->kernels = kernel->next;
        cl->clReleaseKernel(kernel->kernel);
        lattn_env_free(env, kernel);
    }
    cl->clReleaseCommandQueue(stream->queue);
    lattn_env_free(env, stream);
}

lattn_status lattn_opencl_synchronize(void *opaque)
{
    struct lattn_opencl_stream *stream = opaque;
    return lattn_opencl_check(stream->device->cl->clFinish(stream->queue), "clFinish");
}

/* OpenCL may keep enqueued work back until a flush or a wait. Nobody but us can flush a queue of
 * our own, and its work should run while the caller does other things, so it is submitted at once.
 * When to flush an adopted queue is the caller's choice, as for the work it enqueues itself. */
lattn_status lattn_opencl_enqueued(const struct lattn_opencl_stream *stream, cl_int error,
                                   const char *call)
{
    if (error)
        return lattn_opencl_check(error, call);
    if (stream->adopted)
        return LATTN_OK;
    return lattn_opencl_check(stream->device->cl->clFlush(stream->queue), "clFlush");
}

static lattn_status check_size(uint64_t offset, uint64_t bytes)
{
    if (offset <= SIZE_MAX && bytes <= SIZE_MAX)
        return LATTN_OK;
    return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                      "offset = %llu, bytes = %llu: more than this process can address",
                      (unsigned long long)offset, (unsigned long long)bytes);
}

lattn_status lattn_opencl_copy(void *opaque, const struct lattn_copy *copy)
{
    struct lattn_opencl_stream *stream = opaque;
    const struct lattn_opencl_api *cl = stream->device->cl;
    uint64_t farthest = copy->to_offset > copy->from_offset ? copy->to_offset : copy->from_offset;
    lattn_status status = check_size(farthest, copy->bytes);
    if (status)
        return status;
    size_t bytes = (size_t)copy->bytes;
    size_t to_offset = (size_t)copy->to_offset, from_offset = (size_t)copy->from_offset;
    cl_mem to = copy->to, from = (void *)copy->from;
    switch (copy->kind) {
    case LATTN_COPY_UPLOAD:
        return lattn_opencl_check(
            cl->clEnqueueWriteBuffer(stream->queue, to, LATTN_CL_TRUE, to_offset, bytes,
                                     (const char *)copy->from + from_offset, 0, NULL, NULL),
            "clEnqueueWriteBuffer");
    case LATTN_COPY_DOWNLOAD:
        return lattn_opencl_check(
            cl->clEnqueueReadBuffer(stream->queue, from, LATTN_CL_TRUE, from_offset, bytes,
                                    (char *)copy->to + to_offset, 0, NULL, NULL),
            "clEnqueueReadBuffer");
    default:
        return lattn_opencl_enqueued(stream,
                                     cl->clEnqueueCopyBuffer(stream->queue, from, to, from_offset,
                                                             to_offset, bytes, 0, NULL, NULL),
                                     "clEnqueueCopyBuffer");
    }
}

lattn_status lattn_opencl_fill(void *opaque, void *base, uint64_t offset, uint8_t value,
                               uint64_t bytes)
{
    struct lattn_opencl_stream *stream = opaque;
    lattn_status status = check_size(offset, bytes);
    if (status)
        return status;
    return lattn_opencl_enqueued(
        stream,
        stream->device->cl->clEnqueueFillBuffer(stream->queue, base, &value, sizeof(value),
                                                (size_t)offset, (size_t)bytes, 0, NULL, NULL),
        "clEnqueueFillBuffer");
}
