/* lattn on an OpenCL queue and buffers of the program's own: one in-order queue carries the
 * program's fill, the library's prefill and the program's read. */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "example.h"

enum { TOKENS = 300, DIM = 64 };

static void cl(cl_int error)
{
    if (error != CL_SUCCESS) {
        fprintf(stderr, "OpenCL error %d\n", error);
        exit(1);
    }
}

static cl_mem buffer(cl_context context, size_t size)
{
    cl_int error;
    cl_mem memory = clCreateBuffer(context, CL_MEM_READ_WRITE, size, NULL, &error);
    cl(error);
    return memory;
}

static void fill(cl_command_queue queue, cl_mem memory, float value, size_t size)
{
    cl(clEnqueueFillBuffer(queue, memory, &value, sizeof(value), 0, size, 0, NULL, NULL));
}

int main(void)
{
    cl_platform_id platform;
    cl_device_id id;
    cl_int error;
    if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
        clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL) != CL_SUCCESS)
        return NO_DEVICE;
    cl_context cl_ctx = clCreateContext(NULL, 1, &id, NULL, NULL, &error);
    cl(error);
    cl_command_queue queue = clCreateCommandQueue(cl_ctx, id, 0, &error);
    cl(error);

    /* The program's buffers, one of which serves as q, k and v. */
    const size_t size = TOKENS * DIM * sizeof(float);
    cl_mem ones = buffer(cl_ctx, size), o = buffer(cl_ctx, size), slope = buffer(cl_ctx, 4);
    fill(queue, ones, 1, size);
    fill(queue, slope, 0, 4);

    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    const lattn_native native = lattn_native_opencl(cl_ctx, id);
    must(lattn_context_create(NULL, &context));
    must(lattn_device_adopt(context, &native, &device));
    must(lattn_stream_adopt(device, queue, &stream));

    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = params.heads = 1;
    params.tokens = TOKENS;
    params.d = DIM;
    params.q.base = params.k.base = params.v.base = ones; /* a cl_mem; .offset is in bytes */
    params.o.base = o;
    params.slopes.base = slope;
    must(lattn_prefill_prepare(stream, &params));
    must(lattn_prefill_workspace(stream, &params, &params.workspace.size));
    cl_mem workspace = params.workspace.size ? buffer(cl_ctx, params.workspace.size) : NULL;
    params.workspace.base = workspace;
    must(lattn_prefill(stream, &params));

    static float result[TOKENS * DIM];
    cl(clEnqueueReadBuffer(queue, o, CL_TRUE, 0, size, result, 0, NULL, NULL));

    lattn_stream_destroy(stream);
    lattn_device_close(device);
    lattn_context_destroy(context);
    if (workspace)
        clReleaseMemObject(workspace);
    clReleaseMemObject(slope);
    clReleaseMemObject(o);
    clReleaseMemObject(ones);
    clReleaseCommandQueue(queue);
    clReleaseContext(cl_ctx);
    return check_counting(result, TOKENS, DIM, DIM);
}
