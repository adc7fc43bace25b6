/* A stand-in for AMD's HIP runtime on an NVIDIA GPU: libamdhip64.so.6 whose calls are those of
 * CUDA's driver. It calls its devices gfx906, which has no matrix cores, and for the bundle of AMD
 * code it takes the portable kernels' own source, compiled by nvcc: hip_on_cuda.fatbin beside it.
 * So the HIP backend's host code and its portable kernels run on a real device. */
#undef _POSIX_C_SOURCE
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/api.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 16

/* What is not the same call under another name. */
#define CUDA_ONLY(X)                                                                               \
    X(cuInit, "cuInit", (unsigned flags))                                                          \
    X(cuDeviceGetCount, "cuDeviceGetCount", (int *count))                                          \
    X(cuDeviceGetName, "cuDeviceGetName", (char *name, int size, int device))                      \
    X(cuDeviceTotalMem, "cuDeviceTotalMem_v2", (size_t * bytes, int device))                       \
    X(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *value, int attribute, int device))       \
    X(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **context, int device))          \
    X(cuCtxGetCurrent, "cuCtxGetCurrent", (void **context))                                        \
    X(cuCtxSetCurrent, "cuCtxSetCurrent", (void *context))                                         \
    X(cuStreamGetCtx, "cuStreamGetCtx", (void *stream, void **context))                            \
    X(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *to, const void *from, size_t bytes))                 \
    X(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (void *stream, int mode))                   \
    X(cuStreamEndCapture, "cuStreamEndCapture", (void *stream, void **graph))                      \
    X(cuGraphInstantiate, "cuGraphInstantiateWithFlags",                                           \
      (void **executable, void *graph, unsigned long long flags))                                  \
    X(cuGraphLaunch, "cuGraphLaunch", (void *executable, void *stream))                            \
    X(cuGraphExecDestroy, "cuGraphExecDestroy", (void *executable))                                \
    X(cuGraphDestroy, "cuGraphDestroy", (void *graph))                                             \
    X(cuGetErrorName, "cuGetErrorName", (int error, const char **name))

static struct {
#define MEMBER(name, symbol, parameters) int(*name) parameters;
    CUDA_ONLY(MEMBER)
#undef MEMBER
#define MEMBER(member, cuda, hip, parameters) int(*cuda) parameters;
    LATTN_DRIVER_CALLS(MEMBER)
#undef MEMBER
} cu;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool complete;
static void *contexts[MAX_DEVICES]; /* primary ones, retained for good */
static void *fatbin;
static _Thread_local int current;

static void find(void *library, void *member, const char *name, bool latest)
{
    char symbol[64];
    snprintf(symbol, sizeof(symbol), "%s_v2", name);
    void *found = latest ? dlsym(library, symbol) : NULL;
    if (!found)
        found = dlsym(library, name);
    memcpy(member, &found, sizeof(found));
    complete = complete && found;
}

static void open_fatbin(void)
{
    Dl_info self;
    char path[4096];
    if (!dladdr((void *)&cu, &self))
        return;
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof(path), "%.*s/hip_on_cuda.fatbin",
             slash ? (int)(slash - self.dli_fname) : 1, slash ? self.dli_fname : ".");
    FILE *file = fopen(path, "rb");
    if (!file)
        return;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    fatbin = malloc((size_t)size);
    if (fatbin && fread(fatbin, 1, (size_t)size, file) != (size_t)size)
        fatbin = NULL;
    fclose(file);
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return;
    complete = true;
#define FIND(name, symbol, parameters) find(library, &cu.name, symbol, false);
    CUDA_ONLY(FIND)
#undef FIND
#define FIND(member, cuda, hip, parameters) find(library, &cu.cuda, #cuda, true);
    LATTN_DRIVER_CALLS(FIND)
#undef FIND
    open_fatbin();
}

/* ---- devices -------------------------------------------------------------------------------- */

EXPORT int hipInit(unsigned flags)
{
    pthread_once(&once, open_driver);
    return complete ? cu.cuInit(flags) : HIP_ERROR_NO_DEVICE;
}

EXPORT int hipRuntimeGetVersion(int *version)
{
    *version = 60000000;
    return 0;
}

EXPORT const char *hipGetErrorName(int error)
{
    const char *name = NULL;
    return complete && !cu.cuGetErrorName(error, &name) ? name : "unknown";
}

EXPORT int hipGetDeviceCount(int *count)
{
    return cu.cuDeviceGetCount(count);
}
EXPORT int hipDeviceGetName(char *name, int size, int device)
{
    return cu.cuDeviceGetName(name, size, device);
}
EXPORT int hipDeviceTotalMem(size_t *bytes, int device)
{
    return cu.cuDeviceTotalMem(bytes, device);
}

EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    enum { MULTIPROCESSOR_COUNT = 16, MAX_SHARED_MEMORY_PER_BLOCK = 8 }; /* CUDA's numbers */
    return cu.cuDeviceGetAttribute(value,
                                   attribute == HIP_ATTRIBUTE_MULTIPROCESSOR_COUNT
                                       ? MULTIPROCESSOR_COUNT
                                       : MAX_SHARED_MEMORY_PER_BLOCK,
                                   device);
}

EXPORT int hipGetDevicePropertiesR0600(void *properties, int device)
{
    (void)device;
    memset(properties, 0, 1472);
    strcpy((char *)properties + 1160, "gfx906:sramecc+:xnack-");
    return 0;
}

/* HIP's current device is a number, and its context is the device's primary one. */
EXPORT int hipSetDevice(int device)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int result = device >= 0 && device < MAX_DEVICES ? 0 : HIP_ERROR_INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    if (!result && !contexts[device])
        result = cu.cuDevicePrimaryCtxRetain(&contexts[device], device);
    pthread_mutex_unlock(&lock);
    if (!result)
        result = cu.cuCtxSetCurrent(contexts[device]);
    if (!result)
        current = device;
    return result;
}

static int device_of(void *context, int *device)
{
    for (*device = 0; *device < MAX_DEVICES && contexts[*device] != context; (*device)++)
        ;
    return *device < MAX_DEVICES ? 0 : HIP_ERROR_INVALID_DEVICE;
}

EXPORT int hipGetDevice(int *device)
{
    void *context = NULL;
    const int result = cu.cuCtxGetCurrent(&context);
    if (result || context)
        return result ? result : device_of(context, device);
    *device = current;
    return hipSetDevice(current);
}

EXPORT int hipStreamGetDevice(void *stream, int *device)
{
    void *context = NULL;
    const int result = cu.cuStreamGetCtx(stream, &context);
    return result ? result : device_of(context, device);
}

/* ---- code ----------------------------------------------------------------------------------- */

EXPORT int hipModuleLoadData(void **module, const void *image)
{
    (void)image;
    return fatbin ? cu.cuModuleLoadData(module, fatbin) : HIP_ERROR_NO_BINARY_FOR_GPU;
}

/* ---- the rest, call for call ---------------------------------------------------------------- */

EXPORT int hipMalloc(void **pointer, size_t bytes)
{
    return cu.cuMemAlloc(pointer, bytes);
}
EXPORT int hipFree(void *pointer)
{
    return cu.cuMemFree(pointer);
}
EXPORT int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream)
{
    return cu.cuMemcpyHtoDAsync(to, from, bytes, stream);
}
EXPORT int hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *stream)
{
    return cu.cuMemcpyDtoHAsync(to, from, bytes, stream);
}
EXPORT int hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, void *stream)
{
    return cu.cuMemcpyDtoDAsync(to, from, bytes, stream);
}
EXPORT int hipMemsetD8Async(void *to, unsigned char value, size_t bytes, void *stream)
{
    return cu.cuMemsetD8Async(to, value, bytes, stream);
}
EXPORT int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    return cu.cuStreamCreate(stream, flags);
}
EXPORT int hipStreamDestroy(void *stream)
{
    return cu.cuStreamDestroy(stream);
}
EXPORT int hipStreamSynchronize(void *stream)
{
    return cu.cuStreamSynchronize(stream);
}
EXPORT int hipStreamIsCapturing(void *stream, int *status)
{
    return cu.cuStreamIsCapturing(stream, status);
}
EXPORT int hipThreadExchangeStreamCaptureMode(int *mode)
{
    return cu.cuThreadExchangeStreamCaptureMode(mode);
}
EXPORT int hipEventCreateWithFlags(void **event, unsigned flags)
{
    return cu.cuEventCreate(event, flags);
}
EXPORT int hipEventDestroy(void *event)
{
    return cu.cuEventDestroy(event);
}
EXPORT int hipEventRecord(void *event, void *stream)
{
    return cu.cuEventRecord(event, stream);
}
EXPORT int hipEventSynchronize(void *event)
{
    return cu.cuEventSynchronize(event);
}
EXPORT int hipEventElapsedTime(float *milliseconds, void *start, void *end)
{
    return cu.cuEventElapsedTime(milliseconds, start, end);
}
EXPORT int hipModuleUnload(void *module)
{
    return cu.cuModuleUnload(module);
}
EXPORT int hipModuleGetFunction(void **function, void *module, const char *name)
{
    return cu.cuModuleGetFunction(function, module, name);
}
EXPORT int hipFuncGetAttribute(int *value, int attribute, void *function)
{
    return cu.cuFuncGetAttribute(value, attribute, function);
}
EXPORT int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned tx,
                                 unsigned ty, unsigned tz, unsigned shared, void *stream,
                                 void **parameters, void **extra)
{
    return cu.cuLaunchKernel(function, x, y, z, tx, ty, tz, shared, stream, parameters, extra);
}

/* ---- what applications and tests use besides ------------------------------------------------- */

EXPORT int hipMemcpyDtoH(void *to, const void *from, size_t bytes)
{
    return cu.cuMemcpyDtoH(to, from, bytes);
}
EXPORT int hipStreamBeginCapture(void *stream, int mode)
{
    return cu.cuStreamBeginCapture(stream, mode);
}
EXPORT int hipStreamEndCapture(void *stream, void **graph)
{
    return cu.cuStreamEndCapture(stream, graph);
}
EXPORT int hipGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
    return cu.cuGraphInstantiate(executable, graph, flags);
}
EXPORT int hipGraphLaunch(void *executable, void *stream)
{
    return cu.cuGraphLaunch(executable, stream);
}
EXPORT int hipGraphExecDestroy(void *executable)
{
    return cu.cuGraphExecDestroy(executable);
}
EXPORT int hipGraphDestroy(void *graph)
{
    return cu.cuGraphDestroy(graph);
}
