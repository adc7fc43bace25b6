/* lattn on a HIP device and stream of the program's own: one stream carries the program's fill, the
 * library's prefill and the program's copy. */
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>

#include "example.h"

enum { TOKENS = 300, DIM = 64 };

static void hip(hipError_t error)
{
    if (error != hipSuccess) {
        fprintf(stderr, "HIP: %s\n", hipGetErrorName(error));
        exit(1);
    }
}

int main(void)
{
    int devices = 0;
    hipStream_t hip_stream;
    if (hipGetDeviceCount(&devices) != hipSuccess || devices == 0)
        return NO_DEVICE;
    hip(hipSetDevice(0));
    hip(hipStreamCreateWithFlags(&hip_stream, hipStreamNonBlocking));

    /* The program's memory, one array of which serves as q, k and v. */
    void *ones, *o, *slope, *workspace = NULL;
    const size_t size = TOKENS * DIM * sizeof(float);
    hip(hipMalloc(&ones, size));
    hip(hipMalloc(&o, size));
    hip(hipMalloc(&slope, 4));
    hip(hipMemsetD32Async(ones, 0x3f800000, TOKENS * DIM, hip_stream)); /* 1.0f */
    hip(hipMemsetD32Async(slope, 0, 1, hip_stream));

    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    const lattn_native native = lattn_native_hip(0);
    must(lattn_context_create(NULL, &context));
    must(lattn_device_adopt(context, &native, &device));
    must(lattn_stream_adopt(device, hip_stream, &stream));

    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = params.heads = 1;
    params.tokens = TOKENS;
    params.d = DIM;
    params.q.base = params.k.base = params.v.base = ones;
    params.o.base = o;
    params.slopes.base = slope;
    must(lattn_prefill_prepare(stream, &params));
    must(lattn_prefill_workspace(stream, &params, &params.workspace.size));
    if (params.workspace.size)
        hip(hipMalloc(&workspace, params.workspace.size));
    params.workspace.base = workspace;
    must(lattn_prefill(stream, &params));

    static float result[TOKENS * DIM];
    hip(hipMemcpyAsync(result, o, size, hipMemcpyDeviceToHost, hip_stream));
    hip(hipStreamSynchronize(hip_stream));

    lattn_stream_destroy(stream);
    lattn_device_close(device);
    lattn_context_destroy(context);
    hip(hipFree(workspace));
    hip(hipFree(slope));
    hip(hipFree(o));
    hip(hipFree(ones));
    hip(hipStreamDestroy(hip_stream));
    return check_counting(result, TOKENS, DIM, DIM);
}
