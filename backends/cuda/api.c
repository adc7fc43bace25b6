#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "device.h"

#define PINNED_VERSION 12000
#define FUNC_LOAD_VERSION 12040

typedef CUresult (*get_proc_fn)(const char *name, void **function, int version,
                                unsigned long long flags, int *found);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct lattn_cuda_api api;
static char problem[256]; /* why there is no driver; "": there is one */

/* ISO C has no conversion from an object pointer to a function pointer; POSIX promises the bits. */
static void store(void *member, void *symbol)
{
    memcpy(member, &symbol, sizeof(symbol));
}

static void *find(get_proc_fn get_proc, const char *name, int version)
{
    void *function = NULL;
    if (get_proc(name, &function, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM, NULL))
        return NULL;
    return function;
}

static void find_working(void *library)
{
    get_proc_fn get_proc = NULL;
    void *symbol = dlsym(library, "cuGetProcAddress_v2");
    if (!symbol) {
        api.common.missing = "cuGetProcAddress_v2";
        return;
    }
    store(&get_proc, symbol);

#define FIND(name, parameters)                                                                     \
    store(&api.name, find(get_proc, #name, PINNED_VERSION));                                       \
    if (!api.name)                                                                                 \
        api.common.missing = #name;
    LATTN_CUDA_WORKING(FIND)
#undef FIND
    store(&api.cuFuncLoad, find(get_proc, "cuFuncLoad", FUNC_LOAD_VERSION));
}

static lattn_status fail(CUresult result, const char *what)
{
    return lattn_cuda_fail(&api, result, what);
}

/* What backends/driver needs. */
static void name_common(void)
{
    struct lattn_driver *common = &api.common;
#define TAKE(member, cuda, hip, parameters)                                                        \
    memcpy(&common->call.member, &api.cuda, sizeof(common->call.member));                          \
    common->name.member = #cuda;
    LATTN_DRIVER_CALLS(TAKE)
#undef TAKE
    common->title = "CUDA";
    common->fail = fail;
    common->enter = lattn_cuda_enter;
    common->leave = lattn_cuda_leave;
    common->check_stream = lattn_cuda_check_stream;
    common->ready = lattn_cuda_ready_kernel;
    common->count = lattn_cuda_count;
    common->describe = lattn_cuda_describe;
    snprintf(common->version, sizeof(common->version), "driver for CUDA %d.%d", api.driver / 1000,
             api.driver % 1000 / 10);
}

static void open_driver(void)
{
    /* Not libcuda.so: that name finds the toolkit's stub. */
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(problem, sizeof(problem), "no CUDA driver: %s", reason ? reason : "unknown");
        return;
    }
#define FIND(name, symbol, parameters)                                                             \
    store(&api.name, dlsym(library, symbol));                                                      \
    if (!api.name) {                                                                               \
        snprintf(problem, sizeof(problem), "no CUDA driver: libcuda.so.1 has no %s", symbol);      \
        return;                                                                                    \
    }
    LATTN_CUDA_LISTING(FIND)
#undef FIND
    CUresult result = api.cuDriverGetVersion(&api.driver);
    if (result) {
        snprintf(problem, sizeof(problem), "no CUDA driver: cuDriverGetVersion failed (%d)",
                 result);
        return;
    }
    find_working(library);
    name_common();
}

const struct lattn_cuda_api *lattn_cuda_driver(void)
{
    pthread_once(&once, open_driver);
    if (problem[0]) {
        lattn_fail(LATTN_ERROR_NO_DEVICE, "%s", problem);
        return NULL;
    }
    /* Each time, since it costs nothing and only this tells a process that forked after its parent
     * had initialised CUDA that it cannot use it. */
    CUresult result = api.cuInit(0);
    if (result) {
        lattn_cuda_fail(&api, result, "no CUDA device: cuInit");
        return NULL;
    }
    return &api;
}

lattn_status lattn_cuda_fail(const struct lattn_cuda_api *cu, CUresult result, const char *what)
{
    lattn_status status = LATTN_ERROR_DEVICE;
    const char *name = NULL;
    const char *hint = "";
    if (cu->cuGetErrorName(result, &name) || !name)
        name = "unknown error";
    switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
        status = LATTN_ERROR_DEVICE_MEMORY;
        break;
    case CUDA_ERROR_NOT_INITIALIZED:
        hint = "; a process forked after CUDA was initialised cannot use it";
        break;
    case CUDA_ERROR_NO_DEVICE:
        status = LATTN_ERROR_NO_DEVICE;
        break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
        status = LATTN_ERROR_NO_DEVICE_CODE;
        break;
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
        status = LATTN_ERROR_DRIVER_TOO_OLD;
        break;
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
        status = LATTN_ERROR_BUILD;
        break;
    }
    return lattn_fail(status, "%s failed: %s (%d)%s", what, name, result, hint);
}
