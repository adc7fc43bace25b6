#undef _POSIX_C_SOURCE
#define _GNU_SOURCE
#include "fake_hip.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_kernel.h"

#define EXPORT __attribute__((visibility("default")))
#define MAX_DEVICES 8
#define MAX_NAMES 64
#define MAX_CAPTURED 16

enum {
    ERROR_INVALID_VALUE = 1,
    ERROR_INVALID_HANDLE = 400,
    ERROR_NOT_FOUND = 500,
    ERROR_CAPTURE_UNSUPPORTED = 900,
    ERROR_CAPTURE_INVALIDATED = 901,
};

struct stream {
    int device;
    bool capturing, invalid;
    int kernels;
};

struct module {
    int device;
    struct fake_code code;
};

struct function {
    struct module *module;
    char entry[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int live_objects, captures;
static struct stream null_stream, *captured_stream;
static struct fake_hip_launch last, captured[MAX_CAPTURED];
static int captured_on[MAX_CAPTURED], captured_count;
static struct {
    char name[48];
    int calls;
} counts[MAX_NAMES];
static struct {
    const char *name;
    int left, result;
    char fired[48];
} fault;

static _Thread_local int current_device, capture_mode;

/* ---- devices -------------------------------------------------------------------------------- */

static int device_count(char archs[MAX_DEVICES][64])
{
    const char *list = getenv("FAKE_HIP_DEVICES");
    int count = 0;
    for (const char *at = list ? list : "gfx942:sramecc+:xnack-,gfx1100";
         *at && count < MAX_DEVICES;) {
        const size_t length = strcspn(at, ",");
        snprintf(archs[count++], 64, "%.*s", (int)length, at);
        at += length + (at[length] == ',');
    }
    return count;
}

static void arch_of(int device, char arch[64])
{
    char archs[MAX_DEVICES][64];
    const int count = device_count(archs);
    snprintf(arch, 64, "%s", device < count ? archs[device] : "");
}

static bool is_device(int device)
{
    char archs[MAX_DEVICES][64];
    return device >= 0 && device < device_count(archs);
}

/* ---- books ---------------------------------------------------------------------------------- */

static void count_call(const char *name)
{
    for (int i = 0; i < MAX_NAMES; i++) {
        if (!counts[i].name[0])
            snprintf(counts[i].name, sizeof(counts[i].name), "%s", name);
        if (!strcmp(counts[i].name, name)) {
            counts[i].calls++;
            break;
        }
    }
}

/* A call that puts something back, and so never fails: nobody could do anything about it. */
static void enter_surely(const char *name)
{
    pthread_mutex_lock(&lock);
    count_call(name);
    pthread_mutex_unlock(&lock);
}

/* Counts a call. Returns what it shall fail with, or 0. */
static int enter(const char *name)
{
    int result = 0;
    pthread_mutex_lock(&lock);
    count_call(name);
    if (fault.left > 0 && (!fault.name || !strcmp(fault.name, name)) && --fault.left == 0) {
        snprintf(fault.fired, sizeof(fault.fired), "%s", name);
        result = fault.result;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* Work that belongs to no stream: ends a capture, unless this thread is let off. */
static int enter_unsafe(const char *name)
{
    int result = enter(name);
    if (!result && captures && capture_mode != LATTN_DRIVER_CAPTURE_RELAXED) {
        captured_stream->invalid = true;
        result = ERROR_CAPTURE_UNSUPPORTED;
    }
    return result;
}

#define ENTER(name)                                                                                \
    do {                                                                                           \
        const int entered = enter(name);                                                           \
        if (entered)                                                                               \
            return entered;                                                                        \
    } while (0)
#define ENTER_UNSAFE(name)                                                                         \
    do {                                                                                           \
        const int entered = enter_unsafe(name);                                                    \
        if (entered)                                                                               \
            return entered;                                                                        \
    } while (0)

static void *make(size_t bytes)
{
    void *made = calloc(1, bytes ? bytes : 1);
    __atomic_add_fetch(&live_objects, made != NULL, __ATOMIC_SEQ_CST);
    return made;
}

static void unmake(void *made)
{
    __atomic_sub_fetch(&live_objects, made != NULL, __ATOMIC_SEQ_CST);
    free(made);
}

/* The null stream is the current device's. */
static struct stream *stream_of(void *stream)
{
    if (stream)
        return stream;
    null_stream.device = current_device;
    return &null_stream;
}

/* ---- the runtime: devices ------------------------------------------------------------------- */

EXPORT int hipInit(unsigned flags)
{
    ENTER("hipInit");
    const char *result = getenv("FAKE_HIP_INIT");
    return result ? atoi(result) : flags ? ERROR_INVALID_VALUE : 0;
}

EXPORT int hipRuntimeGetVersion(int *version)
{
    ENTER("hipRuntimeGetVersion");
    *version = 60240000;
    return 0;
}

EXPORT const char *hipGetErrorName(int error)
{
    switch (error) {
    case HIP_ERROR_OUT_OF_MEMORY:
        return "hipErrorOutOfMemory";
    case HIP_ERROR_NO_DEVICE:
        return "hipErrorNoDevice";
    case HIP_ERROR_NO_BINARY_FOR_GPU:
        return "hipErrorNoBinaryForGpu";
    default:
        return "hipErrorUnknown";
    }
}

EXPORT int hipGetDeviceCount(int *count)
{
    char archs[MAX_DEVICES][64];
    ENTER("hipGetDeviceCount");
    *count = device_count(archs);
    return *count ? 0 : HIP_ERROR_NO_DEVICE;
}

EXPORT int hipDeviceGetName(char *name, int size, int device)
{
    ENTER("hipDeviceGetName");
    snprintf(name, (size_t)size, "gfx stand-in %d", device);
    return is_device(device) ? 0 : HIP_ERROR_INVALID_DEVICE;
}

EXPORT int hipDeviceTotalMem(size_t *bytes, int device)
{
    ENTER("hipDeviceTotalMem");
    *bytes = (size_t)1 << 34;
    return is_device(device) ? 0 : HIP_ERROR_INVALID_DEVICE;
}

EXPORT int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    ENTER("hipDeviceGetAttribute");
    if (attribute == HIP_ATTRIBUTE_MULTIPROCESSOR_COUNT)
        *value = 4;
    else if (attribute == HIP_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
        *value = 65536;
    else
        return ERROR_INVALID_VALUE;
    return is_device(device) ? 0 : HIP_ERROR_INVALID_DEVICE;
}

/* The struct has grown in front of the architecture: 396 bytes before HIP 6, 1160 since. */
static int properties_at(const char *name, char *properties, int device, size_t bytes, size_t at)
{
    ENTER(name);
    if (!is_device(device))
        return HIP_ERROR_INVALID_DEVICE;
    memset(properties, 0, bytes);
    snprintf(properties, 256, "gfx stand-in %d", device);
    arch_of(device, properties + at);
    return 0;
}

EXPORT int hipGetDeviceProperties(void *properties, int device)
{
    return properties_at("hipGetDeviceProperties", properties, device, 792, 396);
}

EXPORT int hipGetDevicePropertiesR0600(void *properties, int device)
{
    if (getenv("FAKE_HIP_OLD"))
        return hipGetDeviceProperties(properties, device);
    return properties_at("hipGetDeviceProperties", properties, device, 1472, 1160);
}

EXPORT int hipGetDevice(int *device)
{
    ENTER("hipGetDevice");
    *device = current_device;
    return 0;
}

EXPORT int hipSetDevice(int device)
{
    if (device == 0) /* what the tests' own thread has */
        enter_surely("hipSetDevice");
    else
        ENTER("hipSetDevice");
    if (!is_device(device))
        return HIP_ERROR_INVALID_DEVICE;
    current_device = device;
    return 0;
}

/* ---- memory --------------------------------------------------------------------------------- */

EXPORT int hipMalloc(void **pointer, size_t bytes)
{
    ENTER_UNSAFE("hipMalloc");
    *pointer = bytes > (size_t)1 << 34 ? NULL : make(bytes);
    return *pointer ? 0 : HIP_ERROR_OUT_OF_MEMORY;
}

EXPORT int hipFree(void *pointer)
{
    ENTER_UNSAFE("hipFree");
    unmake(pointer);
    return 0;
}

static int copy(const char *name, void *to, const void *from, size_t bytes, void *stream)
{
    ENTER(name);
    if (stream_of(stream)->device != current_device)
        return ERROR_INVALID_HANDLE;
    memcpy(to, from, bytes);
    return 0;
}

EXPORT int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *stream)
{
    return copy("hipMemcpyHtoDAsync", to, from, bytes, stream);
}
EXPORT int hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *stream)
{
    return copy("hipMemcpyDtoHAsync", to, from, bytes, stream);
}
EXPORT int hipMemcpyDtoDAsync(void *to, const void *from, size_t bytes, void *stream)
{
    return copy("hipMemcpyDtoDAsync", to, from, bytes, stream);
}

EXPORT int hipMemsetD8Async(void *to, unsigned char value, size_t bytes, void *stream)
{
    ENTER("hipMemsetD8Async");
    if (stream_of(stream)->device != current_device)
        return ERROR_INVALID_HANDLE;
    memset(to, value, bytes);
    return 0;
}

/* ---- streams and events --------------------------------------------------------------------- */

EXPORT int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    ENTER_UNSAFE("hipStreamCreateWithFlags");
    if (flags != LATTN_DRIVER_STREAM_NON_BLOCKING)
        return ERROR_INVALID_VALUE;
    struct stream *made = make(sizeof(*made));
    made->device = current_device;
    *stream = made;
    return 0;
}

EXPORT int hipStreamDestroy(void *stream)
{
    ENTER_UNSAFE("hipStreamDestroy");
    unmake(stream);
    return 0;
}

EXPORT int hipStreamGetDevice(void *stream, int *device)
{
    ENTER("hipStreamGetDevice");
    *device = stream_of(stream)->device;
    return 0;
}

EXPORT int hipStreamSynchronize(void *stream)
{
    ENTER("hipStreamSynchronize");
    if (!stream_of(stream)->capturing)
        return 0;
    stream_of(stream)->invalid = true;
    return ERROR_CAPTURE_UNSUPPORTED;
}

EXPORT int hipStreamIsCapturing(void *stream, int *status)
{
    ENTER("hipStreamIsCapturing");
    if (!stream && captures)
        return LATTN_DRIVER_ERROR_CAPTURE_IMPLICIT;
    *status = stream_of(stream)->capturing;
    return 0;
}

EXPORT int hipThreadExchangeStreamCaptureMode(int *mode)
{
    if (*mode == LATTN_DRIVER_CAPTURE_RELAXED)
        ENTER("hipThreadExchangeStreamCaptureMode");
    else
        enter_surely("hipThreadExchangeStreamCaptureMode");
    const int before = capture_mode;
    capture_mode = *mode;
    *mode = before;
    return 0;
}

EXPORT int hipEventCreateWithFlags(void **event, unsigned flags)
{
    ENTER_UNSAFE("hipEventCreateWithFlags");
    *event = make(sizeof(int));
    return flags ? ERROR_INVALID_VALUE : 0;
}
EXPORT int hipEventDestroy(void *event)
{
    ENTER_UNSAFE("hipEventDestroy");
    unmake(event);
    return 0;
}
EXPORT int hipEventRecord(void *event, void *stream)
{
    ENTER("hipEventRecord");
    *(int *)event = 1;
    return stream_of(stream)->device == current_device ? 0 : ERROR_INVALID_HANDLE;
}
EXPORT int hipEventSynchronize(void *event)
{
    ENTER("hipEventSynchronize");
    return *(int *)event ? 0 : ERROR_INVALID_HANDLE;
}
EXPORT int hipEventElapsedTime(float *milliseconds, void *start, void *end)
{
    ENTER("hipEventElapsedTime");
    *milliseconds = 1.5f;
    return *(int *)start && *(int *)end ? 0 : ERROR_INVALID_HANDLE;
}

/* ---- code ----------------------------------------------------------------------------------- */

EXPORT int hipModuleLoadData(void **module, const void *image)
{
    char arch[64];
    ENTER_UNSAFE("hipModuleLoadData");
    arch_of(current_device, arch);
    struct fake_code code;
    if (!fake_code_find(image, arch, &code))
        return HIP_ERROR_NO_BINARY_FOR_GPU;
    struct module *made = make(sizeof(*made));
    made->device = current_device;
    made->code = code;
    *module = made;
    return 0;
}

EXPORT int hipModuleUnload(void *module)
{
    ENTER_UNSAFE("hipModuleUnload");
    unmake(module);
    return 0;
}

/* Functions stay, as a kernel's name does. */
EXPORT int hipModuleGetFunction(void **function, void *module, const char *name)
{
    static struct function functions[256];
    static int used;
    ENTER_UNSAFE("hipModuleGetFunction");
    if (!fake_code_has(&((struct module *)module)->code, name))
        return ERROR_NOT_FOUND;
    pthread_mutex_lock(&lock);
    struct function *made = &functions[used++ % 256];
    made->module = module;
    snprintf(made->entry, sizeof(made->entry), "%s", name);
    pthread_mutex_unlock(&lock);
    *function = made;
    return 0;
}

EXPORT int hipFuncGetAttribute(int *value, int attribute, void *function)
{
    ENTER("hipFuncGetAttribute");
    (void)function;
    *value = 1024;
    return attribute == LATTN_DRIVER_FUNCTION_MAX_THREADS ? 0 : ERROR_INVALID_VALUE;
}

static void run(const struct fake_hip_launch *launch, int device)
{
    char arch[64];
    arch_of(device, arch);
    pthread_mutex_lock(&lock); /* one emulated group at a time */
    fake_kernel_run(arch, launch->entry, launch->groups, launch->threads, launch->memories,
                    &launch->args);
    pthread_mutex_unlock(&lock);
}

EXPORT int hipModuleLaunchKernel(void *function_, unsigned x, unsigned y, unsigned z,
                                 unsigned threads, unsigned threads_y, unsigned threads_z,
                                 unsigned shared, void *stream_, void **parameters, void **extra)
{
    struct function *function = function_;
    struct stream *stream = stream_of(stream_);
    ENTER("hipModuleLaunchKernel");
    if (function->module->device != current_device || stream->device != current_device)
        return ERROR_INVALID_HANDLE;
    if (!x || y != 1 || z != 1 || threads_y != 1 || threads_z != 1 || extra ||
        (uint64_t)x * threads > UINT32_MAX)
        return ERROR_INVALID_VALUE;
    struct fake_hip_launch launch = {.entry = function->entry,
                                     .groups = x,
                                     .threads = threads,
                                     .shared = shared,
                                     .stream = stream_};
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        launch.memories[i] = *(void **)parameters[i];
    memcpy(&launch.args, parameters[LATTN_MEM_COUNT], sizeof(launch.args));
    last = launch;
    if (stream->capturing) {
        if (captured_count < MAX_CAPTURED) {
            captured_on[captured_count] = current_device;
            captured[captured_count++] = launch;
        }
        stream->kernels++;
    } else {
        run(&launch, current_device);
    }
    return 0;
}

/* ---- what tests use ------------------------------------------------------------------------- */

static int control_calls(const char *name)
{
    int calls = 0;
    for (int i = 0; i < MAX_NAMES && counts[i].name[0]; i++)
        calls += !name || !strcmp(counts[i].name, name) ? counts[i].calls : 0;
    return calls;
}

static void control_forget(void)
{
    memset(counts, 0, sizeof(counts));
}

static void control_fail(const char *name, int nth, int result)
{
    fault.name = name;
    fault.left = nth;
    fault.result = result;
    fault.fired[0] = '\0';
}

static const char *control_fired(void)
{
    fault.left = 0;
    return fault.fired[0] ? fault.fired : NULL;
}

static int control_current(void)
{
    return current_device;
}
static void control_set_current(int device)
{
    current_device = device;
}
static int control_capture_mode(void)
{
    return capture_mode;
}

static void *control_stream_create(int device)
{
    struct stream *stream = calloc(1, sizeof(*stream));
    stream->device = device;
    return stream;
}
static void control_stream_destroy(void *stream)
{
    free(stream);
}

static void control_capture_begin(void *stream)
{
    captured_stream = stream;
    *captured_stream = (struct stream){.device = captured_stream->device, .capturing = true};
    captured_count = 0;
    captures++;
}

static int control_capture_end(void *stream)
{
    captures--;
    ((struct stream *)stream)->capturing = false;
    return ((struct stream *)stream)->invalid ? -1 : ((struct stream *)stream)->kernels;
}

static void control_replay(void)
{
    for (int i = 0; i < captured_count; i++)
        run(&captured[i], captured_on[i]);
}

static int control_live(void)
{
    return live_objects;
}
static struct fake_hip_launch control_last_launch(void)
{
    return last;
}

EXPORT const struct fake_hip fake_hip = {
    .calls = control_calls,
    .forget = control_forget,
    .fail_at = control_fail,
    .fired = control_fired,
    .current = control_current,
    .set_current = control_set_current,
    .capture_mode = control_capture_mode,
    .stream_create = control_stream_create,
    .stream_destroy = control_stream_destroy,
    .capture_begin = control_capture_begin,
    .capture_end = control_capture_end,
    .replay = control_replay,
    .live = control_live,
    .last_launch = control_last_launch,
};
