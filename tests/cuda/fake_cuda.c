#include "fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_books.h"

#define EXPORT __attribute__((visibility("default")))

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

/* ---- listing -------------------------------------------------------------------------------- */

static int device_count(void)
{
    int count = 0;
    for (const char *at = setting("FAKE_CUDA_DEVICES", "9.0,8.6"); at && *at; count++) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    return count;
}

static int capability_of(CUdevice device)
{
    const char *at = setting("FAKE_CUDA_DEVICES", "9.0,8.6");
    for (int i = 0; i < device; i++)
        at = strchr(at, ',') + 1;
    char *end;
    const int major = (int)strtol(at, &end, 10);
    return 10 * major + (int)strtol(end + 1, NULL, 10);
}

EXPORT CUresult cuInit(unsigned flags);
CUresult cuInit(unsigned flags)
{
    CUresult result = fake_arrive("cuInit", true);
    if (!result)
        result = flags ? ERROR_INVALID_VALUE : atoi(setting("FAKE_CUDA_INIT", "0"));
    if (!result && fake_books.initialised && fake_books.initialised != getpid())
        result = CUDA_ERROR_NOT_INITIALIZED;
    if (!result)
        fake_books.initialised = getpid();
    return result;
}

EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version)
{
    *version = atoi(setting("FAKE_CUDA_DRIVER", "13000"));
    return fake_arrive("cuDriverGetVersion", true);
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_FAKE";
    return fake_arrive("cuGetErrorName", false);
}

EXPORT CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetCount(int *count)
{
    *count = device_count();
    return fake_need_init("cuDeviceGetCount");
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    CUresult result = fake_need_init("cuDeviceGet");
    if (!result && (ordinal < 0 || ordinal >= device_count()))
        result = ERROR_INVALID_DEVICE;
    return result;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device);
CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, "Stand-in %d", device);
    return fake_need_init("cuDeviceGetName");
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    *bytes = (size_t)(device + 1) << 30;
    return fake_need_init("cuDeviceTotalMem");
}

EXPORT CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    const int capability = capability_of(device);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability / 10;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability % 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 84;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = 101376;
        break;
    default:
        return ERROR_INVALID_VALUE;
    }
    return fake_need_init("cuDeviceGetAttribute");
}

/* ---- contexts ------------------------------------------------------------------------------- */

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = fake_need_init("cuDevicePrimaryCtxRetain");
    if (result)
        return result;
    pthread_mutex_lock(&fake_books.lock);
    fake_books.primaries[device].device = device;
    fake_books.primaries[device].alive = true;
    fake_books.primaries[device].retained++;
    *context = &fake_books.primaries[device];
    fake_books.live++;
    pthread_mutex_unlock(&fake_books.lock);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult result = fake_need_init("cuDevicePrimaryCtxRelease");
    if (result)
        return result;
    pthread_mutex_lock(&fake_books.lock);
    fake_books.primaries[device].alive = --fake_books.primaries[device].retained > 0;
    fake_books.live--;
    pthread_mutex_unlock(&fake_books.lock);
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *context)
{
    *context = fake_current();
    return fake_need_init("cuCtxGetCurrent");
}

static CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    CUresult result = fake_need_init("cuCtxPushCurrent");
    if (!result && (!context || !context->alive || fake_thread.depth == FAKE_DEPTH))
        result = ERROR_INVALID_CONTEXT;
    if (!result)
        fake_thread.stack[fake_thread.depth++] = context;
    return result;
}

static CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    fake_arrive("cuCtxPopCurrent", false);
    if (!fake_thread.depth)
        return ERROR_INVALID_CONTEXT;
    *context = fake_thread.stack[--fake_thread.depth];
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetDevice(CUdevice *device)
{
    CUresult result = fake_need_context("cuCtxGetDevice");
    if (!result)
        *device = fake_current()->device;
    return result;
}

/* ---- memory --------------------------------------------------------------------------------- */

static CUresult fake_cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
    CUresult result = fake_need_setup("cuMemAlloc");
    if (result)
        return result;
    if (bytes > (size_t)1 << 30)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = (CUdeviceptr)(uintptr_t)fake_make(bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemFree(CUdeviceptr pointer)
{
    CUresult result = fake_need_setup("cuMemFree");
    if (result)
        return result;
    fake_destroy((void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

static CUresult copy_bytes(const char *name, void *to, const void *from, size_t bytes,
                           CUstream stream)
{
    CUresult result = fake_need_stream(name, &stream);
    if (!result && !stream->capturing)
        memcpy(to, from, bytes);
    return result;
}

static CUresult fake_cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes,
                                       CUstream stream)
{
    return copy_bytes("cuMemcpyHtoDAsync", (void *)(uintptr_t)to, from, bytes, stream);
}

static CUresult fake_cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy_bytes("cuMemcpyDtoHAsync", to, (void *)(uintptr_t)from, bytes, stream);
}

static CUresult fake_cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                       CUstream stream)
{
    return copy_bytes("cuMemcpyDtoDAsync", (void *)(uintptr_t)to, (void *)(uintptr_t)from, bytes,
                      stream);
}

static CUresult fake_cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes,
                                     CUstream stream)
{
    CUresult result = fake_need_stream("cuMemsetD8Async", &stream);
    if (!result && !stream->capturing)
        memset((void *)(uintptr_t)to, value, bytes);
    return result;
}

/* ---- streams and events --------------------------------------------------------------------- */

static CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags)
{
    CUresult result = fake_need_setup("cuStreamCreate");
    if (result)
        return result;
    if (flags != CU_STREAM_NON_BLOCKING)
        return ERROR_INVALID_VALUE;
    *stream = fake_make(sizeof(**stream));
    (*stream)->context = fake_current();
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamDestroy(CUstream stream)
{
    CUresult result = fake_need_setup("cuStreamDestroy");
    if (result)
        return result;
    fake_destroy(stream);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamSynchronize(CUstream stream)
{
    return fake_need_wait("cuStreamSynchronize", stream);
}

static CUresult fake_cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    CUresult result = fake_need_context("cuStreamGetCtx");
    if (!result)
        *context = stream ? stream->context : fake_current();
    return result;
}

static CUresult fake_cuStreamIsCapturing(CUstream stream, int *status)
{
    CUresult result = fake_need_stream("cuStreamIsCapturing", &stream);
    if (!result)
        *status = stream->capturing;
    return result;
}

static CUresult fake_cuThreadExchangeStreamCaptureMode(int *mode)
{
    const bool lifts = *mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = fake_arrive("cuThreadExchangeStreamCaptureMode", lifts);
    if (!result) {
        const int before = fake_thread.capture_mode;
        fake_thread.capture_mode = *mode;
        *mode = before;
    }
    return result;
}

static CUresult fake_cuEventCreate(CUevent *event, unsigned flags)
{
    CUresult result = fake_need_context("cuEventCreate");
    if (result)
        return result;
    if (flags)
        return ERROR_INVALID_VALUE;
    *event = fake_make(sizeof(**event));
    (*event)->context = fake_current();
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    CUresult result = fake_need_context("cuEventDestroy");
    if (result)
        return result;
    fake_destroy(event);
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    CUresult result = fake_need_stream("cuEventRecord", &stream);
    if (!result && event->context != stream->context)
        result = ERROR_INVALID_HANDLE;
    if (!result)
        event->recorded = true;
    return result;
}

static CUresult fake_cuEventSynchronize(CUevent event)
{
    CUresult result = fake_need_context("cuEventSynchronize");
    return !result && !event->recorded ? ERROR_INVALID_HANDLE : result;
}

static CUresult fake_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUresult result = fake_need_context("cuEventElapsedTime");
    if (!result && (!start->recorded || !end->recorded))
        result = ERROR_INVALID_HANDLE;
    *milliseconds = 0.5f;
    return result;
}

/* ---- code ----------------------------------------------------------------------------------- */

static CUresult fake_cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult result = fake_need_setup("cuModuleLoadData");
    if (!result)
        result = atoi(setting("FAKE_CUDA_IMAGE", "0"));
    if (result)
        return result;
    if (!image)
        return ERROR_INVALID_VALUE;
    /* Slow, as it is, so that threads meet here. */
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    *module = fake_make(sizeof(**module));
    (*module)->function.context = fake_current();
    return CUDA_SUCCESS;
}

static CUresult fake_cuModuleUnload(CUmodule module)
{
    CUresult result = fake_need_setup("cuModuleUnload");
    if (result)
        return result;
    fake_destroy(module);
    return CUDA_SUCCESS;
}

/* An entry "absent" is in no module. */
static CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = fake_need_setup("cuModuleGetFunction");
    if (!result && module->function.context != fake_current())
        result = ERROR_INVALID_HANDLE;
    if (!result && !strcmp(name, "absent"))
        result = ERROR_NOT_FOUND;
    if (!result)
        *function = &module->function;
    return result;
}

static CUresult fake_cuFuncLoad(CUfunction function)
{
    (void)function;
    return fake_need_setup("cuFuncLoad");
}

static CUresult fake_cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 512 : -1;
    return fake_need_context("cuFuncGetAttribute");
}

static CUresult fake_cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    CUresult result = fake_need_context("cuFuncSetAttribute");
    if (!result && attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        result = ERROR_INVALID_VALUE;
    if (!result) {
        pthread_mutex_lock(&fake_books.lock);
        /* One function stands for all of its module's: the largest need is met. */
        if (value > function->shared)
            function->shared = value;
        pthread_mutex_unlock(&fake_books.lock);
    }
    return result;
}

static CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                    unsigned grid_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, unsigned shared, CUstream stream,
                                    void **parameters, void **extra)
{
    CUstream found = stream;
    CUresult result = fake_need_stream("cuLaunchKernel", &found);
    if (!result && (function->context != found->context || extra))
        result = ERROR_INVALID_HANDLE;
    if (result)
        return result;
    pthread_mutex_lock(&fake_books.lock);
    if (shared > 49152 && (int)shared > function->shared)
        result = ERROR_INVALID_VALUE;
    found->kernels += found->capturing;
    fake_books.launch = (struct fake_cuda_launch){.function = function,
                                                  .grid = {grid_x, grid_y, grid_z},
                                                  .block = {block_x, block_y, block_z},
                                                  .shared = shared,
                                                  .stream = stream};
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        fake_books.launch.memories[i] = *(void **)parameters[i];
    fake_books.launch.args = *(const struct lattn_args *)parameters[LATTN_MEM_COUNT];
    pthread_mutex_unlock(&fake_books.lock);
    return result;
}

/* ---- entry points by name ------------------------------------------------------------------- */

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                                    unsigned long long flags, int *found);
CUresult cuGetProcAddress_v2(const char *name, void **function, int version,
                             unsigned long long flags, int *found)
{
    static const struct {
        const char *name;
        int version;
        void (*function)(void);
    } table[] = {
#define ROW(name, parameters) {#name, 12000, (void (*)(void))fake_##name},
        LATTN_CUDA_WORKING(ROW)
#undef ROW
            {"cuFuncLoad", 12040, (void (*)(void))fake_cuFuncLoad},
    };
    (void)found;
    *function = NULL;
    CUresult result = fake_arrive("cuGetProcAddress", true);
    if (result)
        return result;
    if (!strcmp(name, setting("FAKE_CUDA_MISSING", "")) ||
        flags != CU_GET_PROC_ADDRESS_LEGACY_STREAM)
        return ERROR_NOT_FOUND;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (!strcmp(name, table[i].name) && version == table[i].version) {
            memcpy(function, &table[i].function, sizeof(*function));
            return CUDA_SUCCESS;
        }
    }
    return ERROR_NOT_FOUND;
}
