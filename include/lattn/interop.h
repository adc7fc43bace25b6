/* The caller's native objects, by backend. No vendor header is needed: handles travel as void *.
 *
 *  backend   lattn_device_adopt            lattn_stream_adopt    a memory base is
 *  cuda      CUcontext                     CUstream (0: legacy)  a CUdeviceptr, as a pointer
 *  hip       device number                 hipStream_t (0: null) a device pointer
 *  opencl    cl_context and cl_device_id   cl_command_queue      a cl_mem
 *  reference nothing                       nothing (NULL)        a host pointer
 */
#ifndef LATTN_INTEROP_H
#define LATTN_INTEROP_H

#include <lattn/lattn.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline lattn_native lattn_native_cuda(void *cu_context)
{
    lattn_native native = {sizeof(native), "cuda", cu_context, NULL, 0};
    return native;
}

static inline lattn_native lattn_native_hip(int device)
{
    lattn_native native = {sizeof(native), "hip", NULL, NULL, device};
    return native;
}

static inline lattn_native lattn_native_opencl(void *context, void *device)
{
    lattn_native native = {sizeof(native), "opencl", context, device, 0};
    return native;
}

#ifdef __cplusplus
}
#endif

#endif
