/* Programs of a device: taken from the cache on disk, or built from source. */
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "objects.h"

struct lattn_opencl_built {
    struct lattn_opencl_built *next;
    const struct lattn_opencl_program *recipe;
    cl_program program;
};

static cl_int build(const struct lattn_opencl_device *device, cl_program program,
                    const struct lattn_opencl_program *recipe)
{
    return device->cl->clBuildProgram(program, 1, &device->device, recipe->options, NULL, NULL);
}

/* The program from the cache, or NULL where there is none that the driver takes. */
static cl_program build_cached(const struct lattn_opencl_device *device,
                               const struct lattn_opencl_cache_key *key,
                               const struct lattn_opencl_program *recipe)
{
    const struct lattn_opencl_api *cl = device->cl;
    size_t size;
    unsigned char *bytes = lattn_opencl_cache_load(device->env, key, &size);
    if (!bytes)
        return NULL;
    cl_int taken = 0, error;
    cl_program program =
        cl->clCreateProgramWithBinary(device->context, 1, &device->device, &size,
                                      &(const unsigned char *){bytes}, &taken, &error);
    lattn_env_free(device->env, bytes);
    if (!error) {
        error = taken ? taken : build(device, program, recipe);
        if (!error)
            return program;
        cl->clReleaseProgram(program);
    }
    lattn_log(device->env, LATTN_LOG_DEBUG, "opencl: the driver refused a cached program: %s (%d)",
              lattn_opencl_error_name(error), error);
    return NULL;
}

/* Passes the compiler's log to the caller's, line by line, and returns its first line that speaks
 * of an error, else its first line. Cuts `log` into lines. */
static const char *report(const struct lattn_env *env, char *log)
{
    const char *first = NULL, *wrong = NULL;
    while (*log) {
        size_t length = strcspn(log, "\r\n");
        bool last = !log[length];
        log[length] = '\0';
        if (length) {
            lattn_log(env, LATTN_LOG_ERROR, "opencl: %s", log);
            if (!first)
                first = log;
            if (!wrong && strstr(log, "error"))
                wrong = log;
        }
        log += length + !last;
    }
    return wrong ? wrong : first ? first : "the compiler gave no reason";
}

static lattn_status fail_build(const struct lattn_opencl_device *device, cl_program program,
                               const struct lattn_kernel_row *row, cl_int error)
{
    const struct lattn_opencl_api *cl = device->cl;
    size_t size = 0;
    char *log = NULL;
    if (!cl->clGetProgramBuildInfo(program, device->device, LATTN_CL_PROGRAM_BUILD_LOG, 0, NULL,
                                   &size))
        log = lattn_env_alloc(device->env, size + 1, "a build log");
    if (log)
        cl->clGetProgramBuildInfo(program, device->device, LATTN_CL_PROGRAM_BUILD_LOG, size, log,
                                  NULL);
    lattn_status status = lattn_fail(
        lattn_opencl_status(error), "kernel %s: clBuildProgram failed: %s (%d): %s", row->entry,
        lattn_opencl_error_name(error), error, log ? report(device->env, log) : "no build log");
    lattn_env_free(device->env, log);
    return status;
}

static lattn_status build_source(const struct lattn_opencl_device *device,
                                 const struct lattn_kernel_row *row, cl_program *program)
{
    const struct lattn_opencl_program *recipe = row->program;
    cl_int error;
    cl_program made = device->cl->clCreateProgramWithSource(
        device->context, 1, &(const char *){recipe->source}, NULL, &error);
    if (error)
        return lattn_opencl_fail(error, "clCreateProgramWithSource for %s", row->entry);
    error = build(device, made, recipe);
    if (error) {
        lattn_status status = fail_build(device, made, row, error);
        device->cl->clReleaseProgram(made);
        return status;
    }
    *program = made;
    return LATTN_OK;
}

/* A program belongs to every device of its context, and asks for the binaries of all of them at
 * once, in the order of its devices; NULL skips those that were not built. */
static void store(const struct lattn_opencl_device *device,
                  const struct lattn_opencl_cache_key *key, cl_program program)
{
    enum { MAX_DEVICES = 64 };
    const struct lattn_opencl_api *cl = device->cl;
    cl_device_id devices[MAX_DEVICES];
    size_t sizes[MAX_DEVICES];
    unsigned char *binaries[MAX_DEVICES] = {NULL};
    size_t bytes = 0;
    if (cl->clGetProgramInfo(program, LATTN_CL_PROGRAM_DEVICES, sizeof(devices), devices, &bytes) ||
        cl->clGetProgramInfo(program, LATTN_CL_PROGRAM_BINARY_SIZES, sizeof(sizes), sizes, NULL))
        return;
    size_t count = bytes / sizeof(devices[0]), mine = 0;
    while (mine < count && devices[mine] != device->device)
        mine++;
    if (mine == count || !sizes[mine])
        return;
    binaries[mine] = lattn_env_alloc(device->env, sizes[mine], "a program to cache");
    if (!binaries[mine])
        return;
    /* The exact size: Mesa 22 aborts the process for a larger one. */
    if (!cl->clGetProgramInfo(program, LATTN_CL_PROGRAM_BINARIES, count * sizeof(binaries[0]),
                              binaries, NULL))
        lattn_opencl_cache_store(device->env, key, binaries[mine], sizes[mine]);
    lattn_env_free(device->env, binaries[mine]);
}

static lattn_status add_locked(struct lattn_opencl_device *device,
                               const struct lattn_kernel_row *row, cl_program *program)
{
    const struct lattn_opencl_program *recipe = row->program;
    struct lattn_opencl_built *built =
        lattn_env_alloc(device->env, sizeof(*built), "an OpenCL program");
    if (!built)
        return LATTN_ERROR_OUT_OF_MEMORY;
    built->recipe = recipe;
    struct lattn_opencl_cache_key key = device->key;
    if (device->cached) {
        lattn_opencl_cache_key_add(&key, recipe->options);
        lattn_opencl_cache_key_add(&key, recipe->source);
        built->program = build_cached(device, &key, recipe);
    }
    if (!built->program) {
        lattn_status status = build_source(device, row, &built->program);
        if (status) {
            lattn_env_free(device->env, built);
            return status;
        }
        if (device->cached)
            store(device, &key, built->program);
    }
    built->next = device->built;
    device->built = built;
    *program = built->program;
    return LATTN_OK;
}

lattn_status lattn_opencl_program_get(struct lattn_opencl_device *device,
                                      const struct lattn_kernel_row *row, cl_program *program)
{
    lattn_status status = LATTN_OK;
    pthread_mutex_lock(&device->lock);
    const struct lattn_opencl_built *built = device->built;
    while (built && built->recipe != row->program)
        built = built->next;
    if (built)
        *program = built->program;
    else
        status = add_locked(device, row, program);
    pthread_mutex_unlock(&device->lock);
    return status;
}

void lattn_opencl_programs_release(struct lattn_opencl_device *device)
{
    while (device->built) {
        struct lattn_opencl_built *built = device->built;
        device->built = built->next;
        device->cl->clReleaseProgram(built->program);
        lattn_env_free(device->env, built);
    }
}
