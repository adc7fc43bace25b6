/* lattn on a CUDA context and stream of the program's own: one stream carries the program's fill,
 * the library's prefill and the program's copy. The context is device 0's primary one, which the
 * CUDA runtime and PyTorch use too. */
#include <cuda.h>

#include "example.h"

enum { TOKENS = 300, DIM = 64 };

static void cu(CUresult result)
{
    const char *name = "an unknown error";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "CUDA: %s\n", name);
    exit(1);
}

int main(void)
{
    CUdevice number;
    CUcontext cu_context;
    CUstream cu_stream;
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&number, 0) != CUDA_SUCCESS)
        return NO_DEVICE;
    cu(cuDevicePrimaryCtxRetain(&cu_context, number));
    cu(cuCtxSetCurrent(cu_context));
    cu(cuStreamCreate(&cu_stream, CU_STREAM_NON_BLOCKING));

    /* The program's memory, one array of which serves as q, k and v. */
    CUdeviceptr ones, o, slope, workspace = 0;
    const size_t size = TOKENS * DIM * sizeof(float);
    cu(cuMemAlloc(&ones, size));
    cu(cuMemAlloc(&o, size));
    cu(cuMemAlloc(&slope, 4));
    cu(cuMemsetD32Async(ones, 0x3f800000, TOKENS * DIM, cu_stream)); /* 1.0f */
    cu(cuMemsetD32Async(slope, 0, 1, cu_stream));

    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    const lattn_native native = lattn_native_cuda(cu_context);
    must(lattn_context_create(NULL, &context));
    must(lattn_device_adopt(context, &native, &device));
    must(lattn_stream_adopt(device, cu_stream, &stream));

    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = params.heads = 1;
    params.tokens = TOKENS;
    params.d = DIM;
    params.q.base = params.k.base = params.v.base = (void *)ones;
    params.o.base = (void *)o;
    params.slopes.base = (void *)slope;
    must(lattn_prefill_prepare(stream, &params));
    must(lattn_prefill_workspace(stream, &params, &params.workspace.size));
    if (params.workspace.size)
        cu(cuMemAlloc(&workspace, params.workspace.size));
    params.workspace.base = (void *)workspace;
    must(lattn_prefill(stream, &params));

    static float result[TOKENS * DIM];
    cu(cuMemcpyDtoHAsync(result, o, size, cu_stream));
    cu(cuStreamSynchronize(cu_stream));

    lattn_stream_destroy(stream);
    lattn_device_close(device);
    lattn_context_destroy(context);
    if (workspace)
        cu(cuMemFree(workspace));
    cu(cuMemFree(slope));
    cu(cuMemFree(o));
    cu(cuMemFree(ones));
    cu(cuStreamDestroy(cu_stream));
    cu(cuDevicePrimaryCtxRelease(number));
    return check_counting(result, TOKENS, DIM, DIM);
}
