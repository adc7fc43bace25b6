#include "fake_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 8
#define MAX_DEPTH 16
#define MAX_NAMES 64

enum {
    ERROR_INVALID_VALUE = 1,
    ERROR_INVALID_DEVICE = 101,
    ERROR_INVALID_CONTEXT = 201,
    ERROR_INVALID_HANDLE = 400,
    ERROR_NOT_FOUND = 500,
    ERROR_CAPTURE_UNSUPPORTED = 900,
    ERROR_CAPTURE_INVALIDATED = 901,
};

struct CUstream_st {
    CUcontext context;
    bool capturing, invalid;
    int kernels;
    struct CUstream_st *next; /* in the list of captures */
};

struct CUctx_st {
    int device;
    int retained;
    bool alive;
    struct CUstream_st null_stream;
};

struct CUevent_st {
    CUcontext context;
    bool recorded;
};

struct CUfunc_st {
    CUcontext context;
    int shared;
};

struct CUmod_st {
    struct CUfunc_st function; /* whatever its name */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUctx_st primaries[MAX_DEVICES];
static struct CUstream_st *captures;
static int live_objects;
static pid_t initialised; /* the process that called cuInit */
static struct fake_cuda_launch last;

static struct {
    char name[40];
    int calls;
} counts[MAX_NAMES];

static struct {
    const char *name;
    int left;
    CUresult result;
    char fired[40];
} fault;

static _Thread_local CUcontext stack[MAX_DEPTH];
static _Thread_local int depth;
static _Thread_local int capture_mode;

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

/* ---- the books ------------------------------------------------------------------------------ */

/* Counts a call; what it must return at once, if anything. */
static CUresult arrive(const char *name, bool can_fail)
{
    pthread_mutex_lock(&lock);
    CUresult result = CUDA_SUCCESS;
    int i = 0;
    while (i < MAX_NAMES - 1 && counts[i].name[0] && strcmp(counts[i].name, name))
        i++;
    snprintf(counts[i].name, sizeof(counts[i].name), "%s", name);
    counts[i].calls++;
    if (can_fail && fault.left > 0 && (!fault.name || !strcmp(fault.name, name)) &&
        --fault.left == 0) {
        snprintf(fault.fired, sizeof(fault.fired), "%s", name);
        result = fault.result;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult need_init(const char *name)
{
    CUresult result = arrive(name, true);
    if (!result && initialised != getpid())
        result = CUDA_ERROR_NOT_INITIALIZED;
    return result;
}

static CUresult need_context(const char *name)
{
    CUresult result = need_init(name);
    if (!result && (!depth || !stack[depth - 1] || !stack[depth - 1]->alive))
        result = ERROR_INVALID_CONTEXT;
    return result;
}

/* What belongs to no stream ends every capture, unless the thread is let off. */
static CUresult need_setup(const char *name)
{
    CUresult result = need_context(name);
    if (result || capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return result;
    pthread_mutex_lock(&lock);
    for (struct CUstream_st *stream = captures; stream; stream = stream->next) {
        stream->invalid = true;
        result = ERROR_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

static CUresult find_stream(const char *name, CUstream *stream)
{
    CUresult result = need_context(name);
    if (result)
        return result;
    CUcontext context = stack[depth - 1];
    if (!*stream) {
        context->null_stream.context = context;
        *stream = &context->null_stream;
    }
    return (*stream)->context == context ? CUDA_SUCCESS : ERROR_INVALID_HANDLE;
}

/* Waiting for a stream under capture ends the capture. */
static CUresult wait_stream(const char *name, CUstream stream)
{
    CUresult result = find_stream(name, &stream);
    if (!result && stream->capturing) {
        stream->invalid = true;
        result = ERROR_CAPTURE_UNSUPPORTED;
    }
    return result;
}

/* Objects that exist, those that failed to be destroyed too. */
struct object {
    struct object *next;
    void *unused; /* keeps what follows aligned */
};

static struct object *objects;

static void *make(size_t size)
{
    struct object *object = calloc(1, sizeof(*object) + size);
    pthread_mutex_lock(&lock);
    object->next = objects;
    objects = object;
    live_objects++;
    pthread_mutex_unlock(&lock);
    return object + 1;
}

static void destroy(void *body)
{
    struct object *object = (struct object *)body - 1;
    pthread_mutex_lock(&lock);
    struct object **at = &objects;
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    live_objects--;
    pthread_mutex_unlock(&lock);
    free(object);
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
    CUresult result = arrive("cuInit", true);
    if (!result)
        result = flags ? ERROR_INVALID_VALUE : atoi(setting("FAKE_CUDA_INIT", "0"));
    if (!result && initialised && initialised != getpid())
        result = CUDA_ERROR_NOT_INITIALIZED;
    if (!result)
        initialised = getpid();
    return result;
}

EXPORT CUresult cuDriverGetVersion(int *version);
CUresult cuDriverGetVersion(int *version)
{
    *version = atoi(setting("FAKE_CUDA_DRIVER", "13000"));
    return arrive("cuDriverGetVersion", true);
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name);
CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_FAKE";
    return arrive("cuGetErrorName", false);
}

EXPORT CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetCount(int *count)
{
    *count = device_count();
    return need_init("cuDeviceGetCount");
}

EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    CUresult result = need_init("cuDeviceGet");
    if (!result && (ordinal < 0 || ordinal >= device_count()))
        result = ERROR_INVALID_DEVICE;
    return result;
}

EXPORT CUresult cuDeviceGetName(char *name, int size, CUdevice device);
CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    snprintf(name, (size_t)size, "Stand-in %d", device);
    return need_init("cuDeviceGetName");
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device);
CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    *bytes = (size_t)(device + 1) << 30;
    return need_init("cuDeviceTotalMem");
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
    return need_init("cuDeviceGetAttribute");
}

/* ---- contexts ------------------------------------------------------------------------------- */

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result = need_init("cuDevicePrimaryCtxRetain");
    if (result)
        return result;
    pthread_mutex_lock(&lock);
    primaries[device].device = device;
    primaries[device].alive = true;
    primaries[device].retained++;
    *context = &primaries[device];
    live_objects++;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease(CUdevice device)
{
    CUresult result = need_init("cuDevicePrimaryCtxRelease");
    if (result)
        return result;
    pthread_mutex_lock(&lock);
    primaries[device].alive = --primaries[device].retained > 0;
    live_objects--;
    pthread_mutex_unlock(&lock);
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxPushCurrent(CUcontext context)
{
    CUresult result = need_init("cuCtxPushCurrent");
    if (!result && (!context || !context->alive || depth == MAX_DEPTH))
        result = ERROR_INVALID_CONTEXT;
    if (!result)
        stack[depth++] = context;
    return result;
}

static CUresult fake_cuCtxPopCurrent(CUcontext *context)
{
    arrive("cuCtxPopCurrent", false);
    if (!depth)
        return ERROR_INVALID_CONTEXT;
    *context = stack[--depth];
    return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetDevice(CUdevice *device)
{
    CUresult result = need_context("cuCtxGetDevice");
    if (!result)
        *device = stack[depth - 1]->device;
    return result;
}

/* ---- memory --------------------------------------------------------------------------------- */

static CUresult fake_cuMemAlloc(CUdeviceptr *pointer, size_t bytes)
{
    CUresult result = need_setup("cuMemAlloc");
    if (result)
        return result;
    if (bytes > (size_t)1 << 30)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *pointer = (CUdeviceptr)(uintptr_t)make(bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_cuMemFree(CUdeviceptr pointer)
{
    CUresult result = need_setup("cuMemFree");
    if (result)
        return result;
    destroy((void *)(uintptr_t)pointer);
    return CUDA_SUCCESS;
}

static CUresult copy_bytes(const char *name, void *to, const void *from, size_t bytes,
                           CUstream stream)
{
    CUresult result = find_stream(name, &stream);
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
    CUresult result = find_stream("cuMemsetD8Async", &stream);
    if (!result && !stream->capturing)
        memset((void *)(uintptr_t)to, value, bytes);
    return result;
}

/* ---- streams and events --------------------------------------------------------------------- */

static CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags)
{
    CUresult result = need_setup("cuStreamCreate");
    if (result)
        return result;
    if (flags != CU_STREAM_NON_BLOCKING)
        return ERROR_INVALID_VALUE;
    *stream = make(sizeof(**stream));
    (*stream)->context = stack[depth - 1];
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamDestroy(CUstream stream)
{
    CUresult result = need_setup("cuStreamDestroy");
    if (result)
        return result;
    destroy(stream);
    return CUDA_SUCCESS;
}

static CUresult fake_cuStreamSynchronize(CUstream stream)
{
    return wait_stream("cuStreamSynchronize", stream);
}

static CUresult fake_cuStreamGetCtx(CUstream stream, CUcontext *context)
{
    CUresult result = need_context("cuStreamGetCtx");
    if (!result)
        *context = stream ? stream->context : stack[depth - 1];
    return result;
}

static CUresult fake_cuStreamIsCapturing(CUstream stream, int *status)
{
    CUresult result = find_stream("cuStreamIsCapturing", &stream);
    if (!result)
        *status = stream->capturing;
    return result;
}

static CUresult fake_cuThreadExchangeStreamCaptureMode(int *mode)
{
    const bool lifts = *mode == CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult result = arrive("cuThreadExchangeStreamCaptureMode", lifts);
    if (!result) {
        const int before = capture_mode;
        capture_mode = *mode;
        *mode = before;
    }
    return result;
}

static CUresult fake_cuEventCreate(CUevent *event, unsigned flags)
{
    CUresult result = need_context("cuEventCreate");
    if (result)
        return result;
    if (flags)
        return ERROR_INVALID_VALUE;
    *event = make(sizeof(**event));
    (*event)->context = stack[depth - 1];
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventDestroy(CUevent event)
{
    CUresult result = need_context("cuEventDestroy");
    if (result)
        return result;
    destroy(event);
    return CUDA_SUCCESS;
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream)
{
    CUresult result = find_stream("cuEventRecord", &stream);
    if (!result && event->context != stream->context)
        result = ERROR_INVALID_HANDLE;
    if (!result)
        event->recorded = true;
    return result;
}

static CUresult fake_cuEventSynchronize(CUevent event)
{
    CUresult result = need_context("cuEventSynchronize");
    return !result && !event->recorded ? ERROR_INVALID_HANDLE : result;
}

static CUresult fake_cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    CUresult result = need_context("cuEventElapsedTime");
    if (!result && (!start->recorded || !end->recorded))
        result = ERROR_INVALID_HANDLE;
    *milliseconds = 0.5f;
    return result;
}

/* ---- code ----------------------------------------------------------------------------------- */

static CUresult fake_cuModuleLoadData(CUmodule *module, const void *image)
{
    CUresult result = need_setup("cuModuleLoadData");
    if (!result)
        result = atoi(setting("FAKE_CUDA_IMAGE", "0"));
    if (result)
        return result;
    if (!image)
        return ERROR_INVALID_VALUE;
    *module = make(sizeof(**module));
    (*module)->function.context = stack[depth - 1];
    return CUDA_SUCCESS;
}

static CUresult fake_cuModuleUnload(CUmodule module)
{
    CUresult result = need_setup("cuModuleUnload");
    if (result)
        return result;
    destroy(module);
    return CUDA_SUCCESS;
}

/* An entry "absent" is in no module. */
static CUresult fake_cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CUresult result = need_setup("cuModuleGetFunction");
    if (!result && module->function.context != stack[depth - 1])
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
    return need_setup("cuFuncLoad");
}

static CUresult fake_cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 512 : -1;
    return need_context("cuFuncGetAttribute");
}

static CUresult fake_cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    CUresult result = need_context("cuFuncSetAttribute");
    if (!result && attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        result = ERROR_INVALID_VALUE;
    if (!result) {
        pthread_mutex_lock(&lock);
        function->shared = value;
        pthread_mutex_unlock(&lock);
    }
    return result;
}

static CUresult fake_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                    unsigned grid_z, unsigned block_x, unsigned block_y,
                                    unsigned block_z, unsigned shared, CUstream stream,
                                    void **parameters, void **extra)
{
    CUstream found = stream;
    CUresult result = find_stream("cuLaunchKernel", &found);
    if (!result && (function->context != found->context || extra))
        result = ERROR_INVALID_HANDLE;
    if (result)
        return result;
    pthread_mutex_lock(&lock);
    if (shared > 49152 && (int)shared > function->shared)
        result = ERROR_INVALID_VALUE;
    found->kernels += found->capturing;
    last = (struct fake_cuda_launch){.function = function,
                                     .grid = {grid_x, grid_y, grid_z},
                                     .block = {block_x, block_y, block_z},
                                     .shared = shared,
                                     .stream = stream};
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        last.memories[i] = *(void **)parameters[i];
    last.args = *(const struct lattn_args *)parameters[LATTN_MEM_COUNT];
    pthread_mutex_unlock(&lock);
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
    CUresult result = arrive("cuGetProcAddress", true);
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

/* ---- for tests ------------------------------------------------------------------------------ */

static int calls(const char *name)
{
    int sum = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_NAMES && counts[i].name[0]; i++)
        sum += !name || !strcmp(name, counts[i].name) ? counts[i].calls : 0;
    pthread_mutex_unlock(&lock);
    return sum;
}

static void forget(void)
{
    pthread_mutex_lock(&lock);
    memset(counts, 0, sizeof(counts));
    pthread_mutex_unlock(&lock);
}

static void inject(const char *name, int nth, CUresult result)
{
    pthread_mutex_lock(&lock);
    memset(&fault, 0, sizeof(fault));
    fault.name = name;
    fault.left = nth;
    fault.result = result;
    pthread_mutex_unlock(&lock);
}

static const char *fired(void)
{
    return fault.fired[0] ? fault.fired : NULL;
}

static CUcontext context_create(int device)
{
    CUcontext context = calloc(1, sizeof(*context));
    context->device = device;
    context->alive = true;
    return context;
}

static void context_destroy(CUcontext context)
{
    free(context);
}

static CUcontext current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

static int current_depth(void)
{
    return depth;
}

static void set_current(CUcontext context)
{
    depth = context ? 1 : 0;
    stack[0] = context;
}

static CUstream stream_create(CUcontext context)
{
    CUstream stream = calloc(1, sizeof(*stream));
    stream->context = context;
    return stream;
}

static void stream_destroy(CUstream stream)
{
    free(stream);
}

static void capture_begin(CUstream stream)
{
    pthread_mutex_lock(&lock);
    stream->capturing = true;
    stream->invalid = false;
    stream->kernels = 0;
    stream->next = captures;
    captures = stream;
    pthread_mutex_unlock(&lock);
}

static int capture_end(CUstream stream)
{
    pthread_mutex_lock(&lock);
    struct CUstream_st **at = &captures;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    stream->capturing = false;
    pthread_mutex_unlock(&lock);
    return stream->invalid ? -1 : stream->kernels;
}

static int thread_capture_mode(void)
{
    return capture_mode;
}

static int live(void)
{
    return live_objects;
}

static struct fake_cuda_launch last_launch(void)
{
    return last;
}

EXPORT extern const struct fake_cuda fake_cuda;
const struct fake_cuda fake_cuda = {
    .calls = calls,
    .forget = forget,
    .inject = inject,
    .fired = fired,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .current = current,
    .depth = current_depth,
    .set_current = set_current,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_mode = thread_capture_mode,
    .live = live,
    .last_launch = last_launch,
};
