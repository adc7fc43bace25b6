#include "api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct lattn_opencl_api api;
static char missing[256]; /* why `api` cannot be used; "" if it can */

static void *find(void *library, const char *name)
{
    void *address = dlsym(library, name);
    if (!address && !missing[0])
        snprintf(missing, sizeof(missing), "libOpenCL.so.1 has no %s", name);
    return address;
}

/* memcpy because ISO C has no cast from an object pointer to a function pointer. */
#define FIND(type, name, parameters)                                                               \
    memcpy(&api.name, &(void *){find(library, #name)}, sizeof(api.name));

static void open_library(void)
{
    /* A process that has OpenCL already, linked or preloaded (as a debugger does), keeps to that
     * one: the caller's objects come from it. */
    void *library = dlopen(NULL, RTLD_NOW);
    if (!library || !dlsym(library, "clGetPlatformIDs"))
        library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        snprintf(missing, sizeof(missing), "%s",
                 reason ? reason : "libOpenCL.so.1 cannot be opened");
        return;
    }
    LATTN_OPENCL_CALLS(FIND)
}

const struct lattn_opencl_api *lattn_opencl_api_get(const char **why)
{
    pthread_once(&once, open_library);
    *why = missing;
    return missing[0] ? NULL : &api;
}

const char *lattn_opencl_error_name(cl_int error)
{
#define CASE(name, value)                                                                          \
    case value:                                                                                    \
        return #name;
    switch (error) {
        LATTN_OPENCL_ERRORS(CASE)
    default:
        return "unknown";
    }
}

lattn_status lattn_opencl_status(cl_int error)
{
    switch (error) {
    case LATTN_CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case LATTN_CL_INVALID_BUFFER_SIZE: /* larger than the device's largest buffer */
        return LATTN_ERROR_DEVICE_MEMORY;
    case LATTN_CL_DEVICE_NOT_FOUND:
    case LATTN_CL_DEVICE_NOT_AVAILABLE:
        return LATTN_ERROR_NO_DEVICE;
    case LATTN_CL_COMPILER_NOT_AVAILABLE:
    case LATTN_CL_BUILD_PROGRAM_FAILURE:
    case LATTN_CL_COMPILE_PROGRAM_FAILURE:
    case LATTN_CL_LINKER_NOT_AVAILABLE:
    case LATTN_CL_LINK_PROGRAM_FAILURE:
    case LATTN_CL_INVALID_BUILD_OPTIONS:
        return LATTN_ERROR_BUILD;
    default:
        return error ? LATTN_ERROR_DEVICE : LATTN_OK;
    }
}

lattn_status lattn_opencl_fail(cl_int error, const char *what, ...)
{
    char text[256];
    va_list list;
    va_start(list, what);
    vsnprintf(text, sizeof(text), what, list);
    va_end(list);
    return lattn_fail(lattn_opencl_status(error), "%s failed: %s (%d)", text,
                      lattn_opencl_error_name(error), error);
}

lattn_status lattn_opencl_check(cl_int error, const char *call)
{
    return error ? lattn_opencl_fail(error, "%s", call) : LATTN_OK;
}
