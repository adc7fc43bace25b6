/* A decode step in a CUDA graph: prepared once, captured once, launched for every token. The graph
 * holds addresses, so each step puts its q, k and v where the captured call found them. */
#include <cuda.h>

#include "example.h"

enum { STEPS = 20, DIM = 64 };

static void cu(CUresult result)
{
    const char *name = "an unknown error";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "CUDA: %s\n", name);
    exit(1);
}

static CUdeviceptr array(size_t count, unsigned bits, CUstream stream)
{
    CUdeviceptr memory;
    cu(cuMemAlloc(&memory, count * 4));
    cu(cuMemsetD32Async(memory, bits, count, stream));
    return memory;
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
    CUdeviceptr ones = array(DIM, 0x3f800000, cu_stream); /* 1.0f: q, k and v */
    CUdeviceptr o = array(DIM, 0, cu_stream);
    CUdeviceptr slope = array(1, 0, cu_stream);
    CUdeviceptr state = array(DIM * DIM, 0, cu_stream);

    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    const lattn_native native = lattn_native_cuda(cu_context);
    must(lattn_context_create(NULL, &context));
    must(lattn_device_adopt(context, &native, &device));
    must(lattn_stream_adopt(device, cu_stream, &stream));

    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    params.batch = params.heads = 1;
    params.d = DIM;
    params.q.base = params.k.base = params.v.base = (void *)ones;
    params.o.base = (void *)o;
    params.slopes.base = (void *)slope;
    params.state_in.base = (void *)state;
    must(lattn_decode_prepare(stream, &params)); /* loads kernels, which a capture may not */

    CUgraph graph;
    CUgraphExec step;
    cu(cuStreamBeginCapture(cu_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    must(lattn_decode(stream, &params));
    cu(cuStreamEndCapture(cu_stream, &graph));
    cu(cuGraphInstantiateWithFlags(&step, graph, 0));

    static float result[STEPS * DIM];
    for (int i = 0; i < STEPS; i++) {
        cu(cuGraphLaunch(step, cu_stream));
        cu(cuMemcpyDtoHAsync(result + i * DIM, o, DIM * sizeof(float), cu_stream));
    }
    cu(cuStreamSynchronize(cu_stream));

    cu(cuGraphExecDestroy(step));
    cu(cuGraphDestroy(graph));
    lattn_stream_destroy(stream);
    lattn_device_close(device);
    lattn_context_destroy(context);
    cu(cuMemFree(state));
    cu(cuMemFree(slope));
    cu(cuMemFree(o));
    cu(cuMemFree(ones));
    cu(cuStreamDestroy(cu_stream));
    cu(cuDevicePrimaryCtxRelease(number));
    return check_counting(result, STEPS, DIM, DIM);
}
