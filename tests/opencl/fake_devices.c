/* The stand-in driver's platforms, devices, contexts and queues. */
#include <string.h>

#include "fake_calls.h"

cl_int fake_clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    cl_int error = fake_enter("clGetPlatformIDs");
    if (error)
        return error;
    for (cl_uint i = 0; i < room && i < fake_opencl.platform_count; i++)
        platforms[i] = &fake_opencl.platforms[i];
    *count = fake_opencl.platform_count;
    return *count ? 0 : LATTN_CL_PLATFORM_NOT_FOUND_KHR;
}

cl_int fake_clGetPlatformInfo(cl_platform_id platform, cl_uint what, size_t size, void *value,
                              size_t *actual)
{
    cl_int error = fake_enter("clGetPlatformInfo");
    if (error)
        return error;
    return fake_answer_text(what == LATTN_CL_PLATFORM_NAME ? platform->name : "OpenCL 3.0", size,
                            value, actual);
}

cl_int fake_clGetDeviceIDs(cl_platform_id platform, cl_bitfield type, cl_uint room,
                           cl_device_id *devices, cl_uint *count)
{
    (void)type;
    cl_int error = fake_enter("clGetDeviceIDs");
    if (!error)
        error = platform->error;
    if (error)
        return error;
    for (cl_uint i = 0; i < room && i < platform->device_count; i++)
        devices[i] = &platform->devices[i];
    *count = platform->device_count;
    return *count ? 0 : LATTN_CL_DEVICE_NOT_FOUND;
}

cl_int fake_clGetDeviceInfo(cl_device_id device, cl_uint what, size_t size, void *value,
                            size_t *actual)
{
    cl_int error = fake_enter("clGetDeviceInfo");
    if (error)
        return error;
    if (what == device->mute)
        return LATTN_CL_OUT_OF_RESOURCES;
    const cl_ulong memory = UINT64_C(1) << 32, local = 32768;
    const size_t items[3] = {device->item_size, device->item_size, device->item_size};
    switch (what) {
    case LATTN_CL_DEVICE_TYPE:
        return fake_answer(&device->type, sizeof(device->type), size, value, actual);
    case LATTN_CL_DEVICE_MAX_COMPUTE_UNITS:
        return fake_answer(&device->units, sizeof(device->units), size, value, actual);
    case LATTN_CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
        return fake_answer(&device->lanes, sizeof(device->lanes), size, value, actual);
    case LATTN_CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return fake_answer(&device->group_size, sizeof(size_t), size, value, actual);
    case LATTN_CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return fake_answer(items, sizeof(items), size, value, actual);
    case LATTN_CL_DEVICE_ADDRESS_BITS:
        return fake_answer(&device->address_bits, sizeof(cl_uint), size, value, actual);
    case LATTN_CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case LATTN_CL_DEVICE_GLOBAL_MEM_SIZE:
        return fake_answer(&memory, sizeof(memory), size, value, actual);
    case LATTN_CL_DEVICE_LOCAL_MEM_SIZE:
        return fake_answer(&local, sizeof(local), size, value, actual);
    case LATTN_CL_DEVICE_PROFILING_TIMER_RESOLUTION:
        return fake_answer(&fake_opencl.resolution, sizeof(size_t), size, value, actual);
    case LATTN_CL_DEVICE_AVAILABLE:
        return fake_answer(&device->available, sizeof(cl_uint), size, value, actual);
    case LATTN_CL_DEVICE_COMPILER_AVAILABLE:
        return fake_answer(&device->compiler, sizeof(cl_uint), size, value, actual);
    case LATTN_CL_DEVICE_NAME:
        return fake_answer_text(device->name, size, value, actual);
    case LATTN_CL_DRIVER_VERSION:
        return fake_answer_text(device->driver, size, value, actual);
    case LATTN_CL_DEVICE_VERSION:
        return fake_answer_text(device->version, size, value, actual);
    case LATTN_CL_DEVICE_OPENCL_C_VERSION:
        return fake_answer_text(device->language, size, value, actual);
    case LATTN_CL_DEVICE_PLATFORM:
        return fake_answer(&device->platform, sizeof(cl_platform_id), size, value, actual);
    case LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV:
    case LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV:
        if (!device->capability[0])
            return LATTN_CL_INVALID_VALUE;
        return fake_answer(&device->capability[what == LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV],
                           sizeof(cl_uint), size, value, actual);
    default:
        return fake_misused(LATTN_CL_INVALID_VALUE);
    }
}

/* Devices are not created, but their references are counted. */
cl_int fake_clRetainDevice(cl_device_id device)
{
    (void)device;
    cl_int error = fake_enter("clRetainDevice");
    if (!error)
        atomic_fetch_add(&fake_opencl.live, 1);
    return error;
}

cl_int fake_clReleaseDevice(cl_device_id device)
{
    (void)device;
    atomic_fetch_sub(&fake_opencl.live, 1);
    return 0;
}

cl_context fake_clCreateContext(const intptr_t *properties, cl_uint count,
                                const cl_device_id *devices,
                                void (*notify)(const char *, const void *, size_t, void *),
                                void *user, cl_int *error)
{
    (void)properties;
    (void)notify;
    (void)user;
    *error = fake_enter("clCreateContext");
    if (*error)
        return NULL;
    cl_context context = fake_create(sizeof(*context));
    context->count = count;
    memcpy(context->devices, devices, count * sizeof(*devices));
    return context;
}

cl_int fake_clRetainContext(cl_context context)
{
    cl_int error = fake_enter("clRetainContext");
    return error ? error : fake_retain(context);
}

cl_int fake_clReleaseContext(cl_context context)
{
    return fake_release(context);
}

cl_int fake_clGetContextInfo(cl_context context, cl_uint what, size_t size, void *value,
                             size_t *actual)
{
    cl_int error = fake_enter("clGetContextInfo");
    if (error)
        return error;
    if (what != LATTN_CL_CONTEXT_DEVICES)
        return fake_misused(LATTN_CL_INVALID_VALUE);
    return fake_answer(context->devices, context->count * sizeof(cl_device_id), size, value,
                       actual);
}

cl_command_queue fake_clCreateCommandQueue(cl_context context, cl_device_id device,
                                           cl_bitfield properties, cl_int *error)
{
    *error = fake_enter("clCreateCommandQueue");
    if (*error)
        return NULL;
    cl_command_queue queue = fake_create(sizeof(*queue));
    queue->context = context;
    queue->device = device;
    queue->properties = properties;
    return queue;
}

cl_int fake_clRetainCommandQueue(cl_command_queue queue)
{
    cl_int error = fake_enter("clRetainCommandQueue");
    return error ? error : fake_retain(queue);
}

cl_int fake_clReleaseCommandQueue(cl_command_queue queue)
{
    return fake_release(queue);
}

cl_int fake_clGetCommandQueueInfo(cl_command_queue queue, cl_uint what, size_t size, void *value,
                                  size_t *actual)
{
    cl_int error = fake_enter("clGetCommandQueueInfo");
    if (error)
        return error;
    switch (what) {
    case LATTN_CL_QUEUE_CONTEXT:
        return fake_answer(&queue->context, sizeof(queue->context), size, value, actual);
    case LATTN_CL_QUEUE_DEVICE:
        return fake_answer(&queue->device, sizeof(queue->device), size, value, actual);
    case LATTN_CL_QUEUE_PROPERTIES:
        return fake_answer(&queue->properties, sizeof(queue->properties), size, value, actual);
    default:
        return fake_misused(LATTN_CL_INVALID_VALUE);
    }
}
