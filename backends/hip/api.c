#include "api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "device.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct lattn_hip_api api;
static char problem[256]; /* why there is no runtime; "": there is one */

/* ISO C has no conversion from an object pointer to a function pointer; POSIX promises the bits. */
static void store(void *member, void *symbol)
{
    memcpy(member, &symbol, sizeof(symbol));
}

static void find_working(void *library)
{
    struct lattn_driver *common = &api.common;
#define FIND(member, cuda, hip, parameters)                                                        \
    store(&common->call.member, dlsym(library, #hip));                                             \
    common->name.member = #hip;                                                                    \
    if (!common->call.member)                                                                      \
        common->missing = #hip;
    LATTN_DRIVER_CALLS(FIND)
#undef FIND
    store(&api.hipStreamGetDevice, dlsym(library, "hipStreamGetDevice"));
    common->title = "HIP";
    common->fail = lattn_hip_fail;
    common->enter = lattn_hip_enter;
    common->leave = lattn_hip_leave;
    common->check_stream = lattn_hip_check_stream;
    common->count = lattn_hip_count;
    common->describe = lattn_hip_describe;
    snprintf(common->version, sizeof(common->version), "runtime of HIP %d.%d",
             api.version / 10000000, api.version / 100000 % 100);
}

static void open_runtime(void)
{
    /* ROCm's own packages leave it to the user to tell the linker of their folder. */
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so", "/opt/rocm/lib/libamdhip64.so"};
    void *library = NULL;
    const char *name = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !library; i++) {
        name = names[i];
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        const char *reason = dlerror();
        snprintf(problem, sizeof(problem), "no HIP runtime: %s", reason ? reason : "unknown");
        return;
    }
#define FIND(member, parameters)                                                                   \
    store(&api.member, dlsym(library, #member));                                                   \
    if (!api.member)                                                                               \
        snprintf(problem, sizeof(problem), "no HIP runtime: %s has no %s", name, #member);
    LATTN_HIP_LISTING(FIND)
    FIND(hipGetErrorName, )
#undef FIND
    void *properties = dlsym(library, "hipGetDevicePropertiesR0600");
    if (!properties)
        properties = dlsym(library, "hipGetDeviceProperties");
    store(&api.hipGetDeviceProperties, properties);
    if (!properties)
        snprintf(problem, sizeof(problem), "no HIP runtime: %s has no hipGetDeviceProperties",
                 name);
    if (problem[0])
        return;
    int result = api.hipRuntimeGetVersion(&api.version);
    if (result) {
        snprintf(problem, sizeof(problem), "no HIP runtime: hipRuntimeGetVersion failed (%d)",
                 result);
        return;
    }
    find_working(library);
}

const struct lattn_hip_api *lattn_hip_runtime(void)
{
    pthread_once(&once, open_runtime);
    if (problem[0]) {
        lattn_fail(LATTN_ERROR_NO_DEVICE, "%s", problem);
        return NULL;
    }
    int result = api.hipInit(0);
    if (result) {
        lattn_hip_fail(result, "no HIP device: hipInit");
        return NULL;
    }
    return &api;
}

lattn_status lattn_hip_fail(int result, const char *what)
{
    lattn_status status = LATTN_ERROR_DEVICE;
    const char *name = api.hipGetErrorName(result);
    switch (result) {
    case HIP_ERROR_OUT_OF_MEMORY:
        status = LATTN_ERROR_DEVICE_MEMORY;
        break;
    case HIP_ERROR_NO_DEVICE:
    case HIP_ERROR_INVALID_DEVICE:
        status = LATTN_ERROR_NO_DEVICE;
        break;
    case HIP_ERROR_INVALID_IMAGE:
    case HIP_ERROR_NO_BINARY_FOR_GPU:
        status = LATTN_ERROR_NO_DEVICE_CODE;
        break;
    }
    return lattn_fail(status, "%s failed: %s (%d)", what, name ? name : "unknown error", result);
}
