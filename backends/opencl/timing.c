/* Device time between two points of a stream. */
#include "objects.h"

/* The device's time, in nanoseconds, when an event ended. */
static cl_int end_time(const struct lattn_opencl_api *cl, cl_event event, cl_ulong *time)
{
    *time = 0;
    cl_int error = cl->clGetEventProfilingInfo(event, LATTN_CL_PROFILING_COMMAND_END, sizeof(*time),
                                               time, NULL);
    return !error && !*time ? LATTN_CL_PROFILING_INFO_NOT_AVAILABLE : error;
}

/* A marker's event says when everything before it had finished, if the queue profiles, the device
 * has a timer (Mesa's software device has none, and makes times up), and the driver times markers.
 * The way to know the last is to try one. */
static lattn_status find_clock(struct lattn_opencl_stream *stream)
{
    const struct lattn_opencl_api *cl = stream->device->cl;
    cl_ulong properties = 0, time;
    size_t resolution = 0;
    lattn_status status =
        lattn_opencl_check(cl->clGetCommandQueueInfo(stream->queue, LATTN_CL_QUEUE_PROPERTIES,
                                                     sizeof(properties), &properties, NULL),
                           "clGetCommandQueueInfo");
    if (status)
        return status;
    stream->clock = LATTN_OPENCL_CLOCK_HOST;
    cl_event marker;
    if (!(properties & LATTN_CL_QUEUE_PROFILING_ENABLE) ||
        cl->clGetDeviceInfo(stream->device->device, LATTN_CL_DEVICE_PROFILING_TIMER_RESOLUTION,
                            sizeof(resolution), &resolution, NULL) ||
        !resolution || cl->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker))
        return LATTN_OK;
    if (!cl->clWaitForEvents(1, &marker) && !end_time(cl, marker, &time))
        stream->clock = LATTN_OPENCL_CLOCK_DEVICE;
    cl->clReleaseEvent(marker);
    return LATTN_OK;
}

lattn_status lattn_opencl_time_begin(void *opaque)
{
    struct lattn_opencl_stream *stream = opaque;
    const struct lattn_opencl_api *cl = stream->device->cl;
    if (stream->begin)
        cl->clReleaseEvent(stream->begin);
    stream->begin = NULL;
    lattn_status status = LATTN_OK;
    if (stream->clock == LATTN_OPENCL_CLOCK_UNKNOWN)
        status = find_clock(stream);
    if (status)
        return status;
    if (stream->clock == LATTN_OPENCL_CLOCK_DEVICE) {
        cl_event begin;
        status = lattn_opencl_check(cl->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &begin),
                                    "clEnqueueMarkerWithWaitList");
        if (!status)
            stream->begin = begin;
    } else {
        status = lattn_opencl_synchronize(stream);
        clock_gettime(CLOCK_MONOTONIC, &stream->host_begin);
    }
    return status;
}

static lattn_status device_time(const struct lattn_opencl_stream *stream, double *milliseconds)
{
    const struct lattn_opencl_api *cl = stream->device->cl;
    cl_event end;
    lattn_status status =
        lattn_opencl_check(cl->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &end),
                           "clEnqueueMarkerWithWaitList");
    if (status)
        return status;
    cl_ulong from = 0, to = 0;
    status = lattn_opencl_check(cl->clWaitForEvents(1, &end), "clWaitForEvents");
    if (!status)
        status = lattn_opencl_check(end_time(cl, stream->begin, &from), "clGetEventProfilingInfo");
    if (!status)
        status = lattn_opencl_check(end_time(cl, end, &to), "clGetEventProfilingInfo");
    cl->clReleaseEvent(end);
    if (!status)
        *milliseconds = to > from ? (double)(to - from) * 1e-6 : 0;
    return status;
}

static lattn_status host_time(struct lattn_opencl_stream *stream, double *milliseconds)
{
    lattn_status status = lattn_opencl_synchronize(stream);
    if (status)
        return status;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *milliseconds = (double)(now.tv_sec - stream->host_begin.tv_sec) * 1e3 +
                    (double)(now.tv_nsec - stream->host_begin.tv_nsec) * 1e-6;
    return LATTN_OK;
}

lattn_status lattn_opencl_time_end(void *opaque, double *milliseconds)
{
    struct lattn_opencl_stream *stream = opaque;
    return stream->clock == LATTN_OPENCL_CLOCK_DEVICE ? device_time(stream, milliseconds)
                                                      : host_time(stream, milliseconds);
}
