/* The part of the CUDA driver API that the backend uses, declared here so that neither CUDA's
 * headers nor its libraries are needed to build it, and opened at run time. */
#ifndef LATTN_CUDA_API_H
#define LATTN_CUDA_API_H

#include <lattn/lattn.h>
#include <stddef.h>

#include "backends/driver/driver.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

/* Values of the driver's ABI. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,

    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

    CU_STREAM_NON_BLOCKING = LATTN_DRIVER_STREAM_NON_BLOCKING,
    CU_STREAM_CAPTURE_MODE_RELAXED = LATTN_DRIVER_CAPTURE_RELAXED,

    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1, /* stream 0 is the legacy default stream */
};

/* X(name, symbol, parameters): what listing devices takes. Found by the exported symbol, so that a
 * driver too old for the rest can still be described. */
#define LATTN_CUDA_LISTING(X)                                                                      \
    X(cuInit, "cuInit", (unsigned flags))                                                          \
    X(cuDriverGetVersion, "cuDriverGetVersion", (int *version))                                    \
    X(cuGetErrorName, "cuGetErrorName", (CUresult error, const char **name))                       \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                          \
    X(cuDeviceGet, "cuDeviceGet", (CUdevice * device, int ordinal))                                \
    X(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, CUdevice device))                 \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, CUdevice device))  \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, CUdevice device))

/* X(name, parameters): the rest, each as it was in CUDA 12.0, whatever the driver's own version. */
#define LATTN_CUDA_WORKING(X)                                                                      \
    X(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                            \
    X(cuDevicePrimaryCtxRelease, (CUdevice device))                                                \
    X(cuCtxGetCurrent, (CUcontext * context))                                                      \
    X(cuCtxPushCurrent, (CUcontext context))                                                       \
    X(cuCtxPopCurrent, (CUcontext * context))                                                      \
    X(cuCtxGetDevice, (CUdevice * device))                                                         \
    X(cuMemAlloc, (CUdeviceptr * pointer, size_t bytes))                                           \
    X(cuMemFree, (CUdeviceptr pointer))                                                            \
    X(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))        \
    X(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))              \
    X(cuMemcpyDtoDAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))        \
    X(cuMemsetD8Async, (CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream))       \
    X(cuStreamCreate, (CUstream * stream, unsigned flags))                                         \
    X(cuStreamDestroy, (CUstream stream))                                                          \
    X(cuStreamSynchronize, (CUstream stream))                                                      \
    X(cuStreamGetCtx, (CUstream stream, CUcontext * context))                                      \
    X(cuStreamIsCapturing, (CUstream stream, int *status))                                         \
    X(cuThreadExchangeStreamCaptureMode, (int *mode))                                              \
    X(cuEventCreate, (CUevent * event, unsigned flags))                                            \
    X(cuEventDestroy, (CUevent event))                                                             \
    X(cuEventRecord, (CUevent event, CUstream stream))                                             \
    X(cuEventSynchronize, (CUevent event))                                                         \
    X(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                       \
    X(cuModuleLoadData, (CUmodule * module, const void *image))                                    \
    X(cuModuleUnload, (CUmodule module))                                                           \
    X(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))             \
    X(cuFuncGetAttribute, (int *value, int attribute, CUfunction function))                        \
    X(cuFuncSetAttribute, (CUfunction function, int attribute, int value))                         \
    X(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,     \
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,      \
                       CUstream stream, void **parameters, void **extra))

struct lattn_cuda_api {
    /* First: its functions see this. The same entry points, by what they do. */
    struct lattn_driver common;
#define LATTN_CUDA_MEMBER(name, symbol, parameters) CUresult(*name) parameters;
    LATTN_CUDA_LISTING(LATTN_CUDA_MEMBER)
#undef LATTN_CUDA_MEMBER
#define LATTN_CUDA_MEMBER(name, parameters) CUresult(*name) parameters;
    LATTN_CUDA_WORKING(LATTN_CUDA_MEMBER)
#undef LATTN_CUDA_MEMBER
    CUresult (*cuFuncLoad)(CUfunction function); /* NULL before CUDA 12.4 */

    int driver; /* the CUDA version that the driver supports, 1000 major + 10 minor */
};

/* The driver, opened by the first call and initialised; NULL after lattn_fail(NO_DEVICE) if there
 * is none. Any thread may call it. Creates no context. */
const struct lattn_cuda_api *lattn_cuda_driver(void);

/* Sets the message "WHAT failed: NAME (code)" and returns the status that goes with the code. */
lattn_status lattn_cuda_fail(const struct lattn_cuda_api *api, CUresult result, const char *what);

#endif
