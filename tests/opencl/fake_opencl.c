#include "fake_opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_calls.h"

struct fake_opencl fake_opencl;

void fake_opencl_reset(void)
{
    memset(&fake_opencl, 0, sizeof(fake_opencl));
    fake_opencl.platform_count = FAKE_PLATFORMS;
    fake_opencl.resolution = 1;
    static const char *const names[] = {"First", "Second", "Third"};
    static const cl_uint counts[] = {2, 1, 0};
    for (int p = 0; p < FAKE_PLATFORMS; p++) {
        struct _cl_platform_id *platform = &fake_opencl.platforms[p];
        platform->name = names[p];
        platform->device_count = counts[p];
        for (int d = 0; d < FAKE_DEVICES; d++)
            platform->devices[d] = (struct _cl_device_id){
                .platform = platform,
                .name = " A device\n",
                .version = "OpenCL 3.0 fake",
                .language = "OpenCL C 1.2 ",
                .driver = "1.0",
                .type = p || d ? LATTN_CL_DEVICE_TYPE_CPU : LATTN_CL_DEVICE_TYPE_GPU,
                .available = 1,
                .compiler = 1,
                .address_bits = 64,
                .units = 4,
                .lanes = 8,
                .group_size = 1024,
                .item_size = 512,
            };
    }
}

/* ---- what every call does -------------------------------------------------------------------- */

cl_int fake_enter(const char *call)
{
    long number = atomic_fetch_add(&fake_opencl.calls, 1) + 1;
    if (number != fake_opencl.fail_at &&
        (!fake_opencl.fail_name || strcmp(fake_opencl.fail_name, call) != 0))
        return 0;
    fake_opencl.failed = call;
    return fake_opencl.fail_code;
}

cl_int fake_misused(cl_int error)
{
    atomic_fetch_add(&fake_opencl.misuse, 1);
    return error;
}

void *fake_create(size_t size)
{
    atomic_int *references = calloc(1, size);
    if (!references)
        abort();
    *references = 1;
    atomic_fetch_add(&fake_opencl.live, 1);
    return references;
}

cl_int fake_retain(void *object)
{
    atomic_fetch_add((atomic_int *)object, 1);
    atomic_fetch_add(&fake_opencl.live, 1);
    return 0;
}

cl_int fake_release(void *object)
{
    atomic_fetch_sub(&fake_opencl.live, 1);
    if (atomic_fetch_sub((atomic_int *)object, 1) == 1)
        free(object);
    return 0;
}

cl_int fake_answer(const void *from, size_t length, size_t size, void *value, size_t *actual)
{
    if (actual)
        *actual = length;
    if (!value)
        return 0;
    if (size < length)
        return LATTN_CL_INVALID_VALUE;
    memcpy(value, from, length);
    return 0;
}

cl_int fake_answer_text(const char *text, size_t size, void *value, size_t *actual)
{
    return fake_answer(text, strlen(text) + 1, size, value, actual);
}

/* ---- being found ----------------------------------------------------------------------------- */

void *__wrap_dlopen(const char *name, int flags);
void *__wrap_dlsym(void *library, const char *name);
void *__real_dlopen(const char *name, int flags);
void *__real_dlsym(void *library, const char *name);

/* What is not about OpenCL is not ours: a sanitizer's runtime is linked in here, too. */
void *__wrap_dlopen(const char *name, int flags)
{
    if (!name || strcmp(name, "libOpenCL.so.1") != 0)
        return __real_dlopen(name, flags);
    if (fake_opencl.preloaded)
        atomic_fetch_add(&fake_opencl.misuse, 1);
    return fake_opencl.absent ? __real_dlopen("libthere-is-none.so.0", flags) : &fake_opencl;
}

void *__wrap_dlsym(void *library, const char *name)
{
    if (strncmp(name, "cl", 2) != 0 || name[2] < 'A' || name[2] > 'Z')
        return __real_dlsym(library, name);
    if (library != &fake_opencl && !fake_opencl.preloaded)
        return NULL;
    if (fake_opencl.hidden && !strcmp(fake_opencl.hidden, name))
        return NULL;
    void *address = NULL;
#define RETURN(type, call, parameters)                                                             \
    if (!strcmp(name, #call)) {                                                                    \
        type(*function) parameters = fake_##call;                                                  \
        memcpy(&address, &function, sizeof(address));                                              \
    }
    LATTN_OPENCL_CALLS(RETURN)
    return address;
}
