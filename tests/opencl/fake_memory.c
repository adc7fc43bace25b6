/* The stand-in driver's buffers, waits and events. Its work is done when it is enqueued, so it
 * needs no wait lists. */
#include <string.h>

#include "fake_calls.h"

cl_mem fake_clCreateBuffer(cl_context context, cl_bitfield flags, size_t size, void *host,
                           cl_int *error)
{
    (void)context;
    (void)flags;
    (void)host;
    *error = fake_enter("clCreateBuffer");
    if (*error)
        return NULL;
    cl_mem memory = fake_create(sizeof(*memory) + size);
    memory->size = size;
    return memory;
}

cl_int fake_clReleaseMemObject(cl_mem memory)
{
    return fake_release(memory);
}

static bool inside(cl_mem memory, size_t offset, size_t size)
{
    return offset <= memory->size && size <= memory->size - offset;
}

cl_int fake_clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_uint blocking,
                                size_t offset, size_t size, void *host, cl_uint waits,
                                const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = fake_enter("clEnqueueReadBuffer");
    if (error)
        return error;
    if (!blocking || waits || list || !inside(memory, offset, size))
        return fake_misused(LATTN_CL_INVALID_VALUE);
    memcpy(host, memory->bytes + offset, size);
    return 0;
}

cl_int fake_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_uint blocking,
                                 size_t offset, size_t size, const void *host, cl_uint waits,
                                 const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = fake_enter("clEnqueueWriteBuffer");
    if (error)
        return error;
    if (!blocking || waits || list || !inside(memory, offset, size))
        return fake_misused(LATTN_CL_INVALID_VALUE);
    memcpy(memory->bytes + offset, host, size);
    return 0;
}

cl_int fake_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset,
                                size_t to_offset, size_t size, cl_uint waits, const cl_event *list,
                                cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = fake_enter("clEnqueueCopyBuffer");
    if (error)
        return error;
    if (waits || list || !inside(from, from_offset, size) || !inside(to, to_offset, size))
        return fake_misused(LATTN_CL_INVALID_VALUE);
    memmove(to->bytes + to_offset, from->bytes + from_offset, size);
    return 0;
}

cl_int fake_clEnqueueFillBuffer(cl_command_queue queue, cl_mem memory, const void *pattern,
                                size_t pattern_size, size_t offset, size_t size, cl_uint waits,
                                const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = fake_enter("clEnqueueFillBuffer");
    if (error)
        return error;
    if (waits || list || pattern_size != 1 || !inside(memory, offset, size))
        return fake_misused(LATTN_CL_INVALID_VALUE);
    memset(memory->bytes + offset, *(const unsigned char *)pattern, size);
    return 0;
}

cl_int fake_clFlush(cl_command_queue queue)
{
    (void)queue;
    atomic_fetch_add(&fake_opencl.flushes, 1);
    return fake_enter("clFlush");
}

cl_int fake_clFinish(cl_command_queue queue)
{
    (void)queue;
    atomic_fetch_add(&fake_opencl.finishes, 1);
    return fake_enter("clFinish");
}

cl_int fake_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits, const cl_event *list,
                                        cl_event *event)
{
    (void)waits;
    (void)list;
    cl_int error = fake_enter("clEnqueueMarkerWithWaitList");
    if (error)
        return error;
    *event = fake_create(sizeof(**event));
    (*event)->time = queue->time += 2000000;
    return 0;
}

cl_int fake_clWaitForEvents(cl_uint count, const cl_event *events)
{
    (void)count;
    (void)events;
    return fake_enter("clWaitForEvents");
}

cl_int fake_clReleaseEvent(cl_event event)
{
    return fake_release(event);
}

cl_int fake_clGetEventProfilingInfo(cl_event event, cl_uint what, size_t size, void *value,
                                    size_t *actual)
{
    (void)what;
    cl_int error = fake_enter("clGetEventProfilingInfo");
    if (error)
        return error;
    cl_ulong time = fake_opencl.timeless ? 0 : event->time;
    return fake_answer(&time, sizeof(time), size, value, actual);
}
