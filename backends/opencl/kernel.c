/* Kernels of a stream, and their launches. */
#include "core/error.h"
#include "objects.h"

lattn_status lattn_opencl_load(void *opaque, const struct lattn_kernel_row *row, void **kernel)
{
    struct lattn_opencl_stream *stream = opaque;
    const struct lattn_opencl_device *device = stream->device;
    cl_program program;
    lattn_status status = lattn_opencl_program_get(stream->device, row, &program);
    if (status)
        return status;
    struct lattn_opencl_kernel *made = lattn_env_alloc(device->env, sizeof(*made), row->entry);
    if (!made)
        return LATTN_ERROR_OUT_OF_MEMORY;
    cl_int error;
    made->row = row;
    made->kernel = device->cl->clCreateKernel(program, row->entry, &error);
    if (error) {
        lattn_env_free(device->env, made);
        return lattn_opencl_fail(error, "clCreateKernel of %s", row->entry);
    }
    made->next = stream->kernels;
    stream->kernels = made;
    *kernel = made;
    return LATTN_OK;
}

static cl_int set_arguments(const struct lattn_opencl_api *cl, cl_kernel kernel,
                            const struct lattn_launch *launch)
{
    cl_uint at = 0;
    cl_int error = LATTN_CL_SUCCESS;
    for (; !error && at < LATTN_MEM_COUNT; at++) {
        cl_mem memory = launch->memories[at];
        error = cl->clSetKernelArg(kernel, at, sizeof(memory), &memory);
    }
    if (!error)
        error = cl->clSetKernelArg(kernel, at++, sizeof(*launch->args), launch->args);
    if (!error && launch->shared)
        error = cl->clSetKernelArg(kernel, at, launch->shared, NULL);
    return error;
}

lattn_status lattn_opencl_launch(void *opaque, void *opaque_kernel,
                                 const struct lattn_launch *launch)
{
    const struct lattn_opencl_stream *stream = opaque;
    const struct lattn_opencl_kernel *kernel = opaque_kernel;
    const struct lattn_opencl_api *cl = stream->device->cl;
    cl_int error = set_arguments(cl, kernel->kernel, launch);
    const char *call = "clSetKernelArg";
    if (!error) {
        size_t local = launch->threads;
        size_t global = (size_t)launch->groups * local;
        error = cl->clEnqueueNDRangeKernel(stream->queue, kernel->kernel, 1, NULL, &global, &local,
                                           0, NULL, NULL);
        call = "clEnqueueNDRangeKernel";
    }
    if (error)
        return lattn_opencl_fail(error, "%s of %s", call, kernel->row->entry);
    return lattn_opencl_enqueued(stream, error, call);
}
