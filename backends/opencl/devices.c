#include "devices.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "catalog.h"
#include "core/error.h"

enum { MAX_PLATFORMS = 32, MAX_DEVICES = 64 };

/* Entries are only ever added: a platform that fails now and works later must not renumber the
 * devices of the others. */
static struct {
    pthread_mutex_t lock;
    cl_device_id devices[MAX_DEVICES];
    int32_t count;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int32_t find_locked(cl_device_id device)
{
    for (int32_t i = 0; i < list.count; i++)
        if (list.devices[i] == device)
            return i;
    return -1;
}

/* Returns whether there was room. */
static bool add(cl_device_id device)
{
    pthread_mutex_lock(&list.lock);
    bool known = find_locked(device) >= 0;
    bool room = list.count < MAX_DEVICES;
    if (!known && room)
        list.devices[list.count++] = device;
    pthread_mutex_unlock(&list.lock);
    return known || room;
}

static void add_platform(const struct lattn_env *env, const struct lattn_opencl_api *cl,
                         cl_platform_id platform)
{
    cl_device_id found[MAX_DEVICES];
    cl_uint count = 0;
    const cl_bitfield all = 0xFFFFFFFF;
    cl_int error = cl->clGetDeviceIDs(platform, all, MAX_DEVICES, found, &count);
    if (error == LATTN_CL_DEVICE_NOT_FOUND)
        return;
    if (error) {
        lattn_log(env, LATTN_LOG_WARNING, "opencl: a platform is left out: clGetDeviceIDs: %s (%d)",
                  lattn_opencl_error_name(error), error);
        return;
    }
    for (cl_uint i = 0; i < count && i < MAX_DEVICES; i++) {
        if (!found[i] || add(found[i]))
            continue;
        lattn_log(env, LATTN_LOG_WARNING, "opencl: only the first %d devices are used",
                  MAX_DEVICES);
        return;
    }
}

int32_t lattn_opencl_devices_find(const struct lattn_env *env, const struct lattn_opencl_api *cl)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint count = 0;
    cl_int error = cl->clGetPlatformIDs(MAX_PLATFORMS, platforms, &count);
    if (error) {
        lattn_log(env,
                  error == LATTN_CL_PLATFORM_NOT_FOUND_KHR ? LATTN_LOG_INFO : LATTN_LOG_WARNING,
                  "opencl: clGetPlatformIDs: %s (%d)", lattn_opencl_error_name(error), error);
        count = 0;
    }
    for (cl_uint i = 0; i < count && i < MAX_PLATFORMS; i++)
        add_platform(env, cl, platforms[i]);
    pthread_mutex_lock(&list.lock);
    int32_t known = list.count;
    pthread_mutex_unlock(&list.lock);
    return known;
}

cl_device_id lattn_opencl_devices_get(int32_t ordinal)
{
    pthread_mutex_lock(&list.lock);
    cl_device_id device = ordinal >= 0 && ordinal < list.count ? list.devices[ordinal] : NULL;
    pthread_mutex_unlock(&list.lock);
    return device;
}

int32_t lattn_opencl_devices_number(cl_device_id device)
{
    pthread_mutex_lock(&list.lock);
    int32_t number = find_locked(device);
    pthread_mutex_unlock(&list.lock);
    return number;
}

/* A number of the device; 0 where it has none, as for another vendor's question. */
static cl_uint get_uint(const struct lattn_opencl_api *cl, cl_device_id device, cl_uint what)
{
    cl_uint value = 0;
    return cl->clGetDeviceInfo(device, what, sizeof(value), &value, NULL) ? 0 : value;
}

static cl_ulong get_ulong(const struct lattn_opencl_api *cl, cl_device_id device, cl_uint what)
{
    cl_ulong value = 0;
    return cl->clGetDeviceInfo(device, what, sizeof(value), &value, NULL) ? 0 : value;
}

/* Copies what a driver wrote, `full`, which need not be terminated, without the blanks that some
 * put around it. */
static char *trim(char *text, size_t size, cl_int error, const char *full, size_t length)
{
    length = error ? 0 : strnlen(full, length);
    while (length && (full[0] == ' ' || full[0] == '\n')) {
        full++;
        length--;
    }
    while (length && (full[length - 1] == ' ' || full[length - 1] == '\n'))
        length--;
    snprintf(text, size, "%.*s", (int)length, full);
    return text;
}

char *lattn_opencl_device_text(const struct lattn_opencl_api *cl, cl_device_id device, cl_uint what,
                               char *text, size_t size)
{
    char full[1024] = "";
    cl_int error = cl->clGetDeviceInfo(device, what, sizeof(full), full, NULL);
    return trim(text, size, error, full, sizeof(full));
}

char *lattn_opencl_platform_text(const struct lattn_opencl_api *cl, cl_device_id device,
                                 cl_uint what, char *text, size_t size)
{
    char full[1024] = "";
    cl_platform_id platform = NULL;
    cl_int error =
        cl->clGetDeviceInfo(device, LATTN_CL_DEVICE_PLATFORM, sizeof(platform), &platform, NULL);
    if (!error)
        error = cl->clGetPlatformInfo(platform, what, sizeof(full), full, NULL);
    return trim(text, size, error, full, sizeof(full));
}

/* Sets status and reason. A device that cannot be used is still listed, with why. */
static void judge(const struct lattn_opencl_api *cl, cl_device_id device, lattn_device_info *info)
{
    info->status = LATTN_OK;
    info->reason[0] = '\0';
    cl_uint available = 0, compiler = 0;
    cl_int error =
        cl->clGetDeviceInfo(device, LATTN_CL_DEVICE_AVAILABLE, sizeof(available), &available, NULL);
    if (!error)
        error = cl->clGetDeviceInfo(device, LATTN_CL_DEVICE_COMPILER_AVAILABLE, sizeof(compiler),
                                    &compiler, NULL);
    if (error) {
        info->status = lattn_opencl_status(error);
        snprintf(info->reason, sizeof(info->reason), "%s: clGetDeviceInfo failed: %s (%d)",
                 info->name, lattn_opencl_error_name(error), error);
        return;
    }
    if (!available) {
        info->status = LATTN_ERROR_NO_DEVICE;
        snprintf(info->reason, sizeof(info->reason), "%s: its driver says it is not available",
                 info->name);
        return;
    }
    if (!compiler) {
        info->status = LATTN_ERROR_NO_DEVICE_CODE;
        snprintf(info->reason, sizeof(info->reason),
                 "%s: its driver has no compiler, and the kernels are built from source",
                 info->name);
        return;
    }
    char version[64], language[64];
    lattn_opencl_device_text(cl, device, LATTN_CL_DEVICE_VERSION, version, sizeof(version));
    lattn_opencl_device_text(cl, device, LATTN_CL_DEVICE_OPENCL_C_VERSION, language,
                             sizeof(language));
    int major[2] = {0}, minor[2] = {0};
    sscanf(version, "OpenCL %d.%d", &major[0], &minor[0]);
    sscanf(language, "OpenCL C %d.%d", &major[1], &minor[1]);
    for (int i = 0; i < 2; i++) {
        if (major[i] > 1 || (major[i] == 1 && minor[i] >= 2))
            continue;
        info->status = LATTN_ERROR_DEVICE_TOO_OLD;
        snprintf(info->reason, sizeof(info->reason), "%s: has \"%s\", needs OpenCL%s 1.2",
                 info->name, i ? language : version, i ? " C" : "");
        return;
    }
}

static bool is_nvidia(const struct lattn_opencl_api *cl, cl_device_id device)
{
    char platform[64];
    lattn_opencl_platform_text(cl, device, LATTN_CL_PLATFORM_NAME, platform, sizeof(platform));
    return !strcmp(platform, "NVIDIA CUDA");
}

void lattn_opencl_device_describe(const struct lattn_opencl_api *cl, cl_device_id device,
                                  lattn_device_info *info)
{
    cl_ulong type = get_ulong(cl, device, LATTN_CL_DEVICE_TYPE);
    info->kind = type & LATTN_CL_DEVICE_TYPE_GPU   ? LATTN_DEVICE_GPU
                 : type & LATTN_CL_DEVICE_TYPE_CPU ? LATTN_DEVICE_CPU
                                                   : LATTN_DEVICE_OTHER;
    lattn_opencl_device_text(cl, device, LATTN_CL_DEVICE_NAME, info->name, sizeof(info->name));
    info->arch[0] = '\0';
    if (is_nvidia(cl, device))
        snprintf(info->arch, sizeof(info->arch), "sm_%u%u",
                 get_uint(cl, device, LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV),
                 get_uint(cl, device, LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV));
    char platform[64], version[48];
    lattn_opencl_platform_text(cl, device, LATTN_CL_PLATFORM_NAME, platform, sizeof(platform));
    lattn_opencl_device_text(cl, device, LATTN_CL_DRIVER_VERSION, version, sizeof(version));
    snprintf(info->driver, sizeof(info->driver), "%s %s", platform, version);
    info->memory = get_ulong(cl, device, LATTN_CL_DEVICE_GLOBAL_MEM_SIZE);
    info->compute_units = (int32_t)get_uint(cl, device, LATTN_CL_DEVICE_MAX_COMPUTE_UNITS);
    judge(cl, device, info);
}

int32_t lattn_opencl_device_rank(const struct lattn_opencl_api *cl, cl_device_id device)
{
    enum { GPU = 500, OTHER = 200, CPU = 100, MOST_LANES = 99 };
    cl_ulong type = get_ulong(cl, device, LATTN_CL_DEVICE_TYPE);
    int32_t kind = type & LATTN_CL_DEVICE_TYPE_GPU   ? GPU
                   : type & LATTN_CL_DEVICE_TYPE_CPU ? CPU
                                                     : OTHER;
    /* Among devices of a kind, the wider one: two drivers of one CPU differ in their vectors. */
    cl_ulong lanes = (cl_ulong)get_uint(cl, device, LATTN_CL_DEVICE_MAX_COMPUTE_UNITS) *
                     get_uint(cl, device, LATTN_CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    return kind + (int32_t)(lanes < MOST_LANES ? lanes : MOST_LANES);
}

lattn_status lattn_opencl_device_caps(const struct lattn_opencl_api *cl, cl_device_id device,
                                      struct lattn_caps *caps)
{
    cl_ulong type = 0, local = 0;
    size_t threads = 0, sizes[16] = {0};
    cl_uint bits = 0, units = 0;
    const struct {
        cl_uint what;
        size_t size;
        void *value;
    } questions[] = {
        {LATTN_CL_DEVICE_TYPE, sizeof(type), &type},
        {LATTN_CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(threads), &threads},
        {LATTN_CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(sizes), sizes},
        {LATTN_CL_DEVICE_LOCAL_MEM_SIZE, sizeof(local), &local},
        {LATTN_CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(units), &units},
        {LATTN_CL_DEVICE_ADDRESS_BITS, sizeof(bits), &bits},
        {LATTN_CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(caps->max_memory), &caps->max_memory},
    };
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
        cl_int error = cl->clGetDeviceInfo(device, questions[i].what, questions[i].size,
                                           questions[i].value, NULL);
        lattn_status status = lattn_opencl_check(error, "clGetDeviceInfo");
        if (status)
            return status;
    }
    /* A driver that runs a CPU as if it were a GPU, an item a lane, says that its vectors are 1. */
    if ((type & LATTN_CL_DEVICE_TYPE_CPU) &&
        get_uint(cl, device, LATTN_CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT) >= 4)
        caps->features |= LATTN_OPENCL_FEATURE_CPU;
    /* The device's own limits. What a kernel says of itself (CL_KERNEL_WORK_GROUP_SIZE) is a hint
     * on some drivers: Mesa's says 32 and runs 1024. */
    size_t most = threads < sizes[0] ? threads : sizes[0];
    caps->max_threads = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
    caps->max_shared = local < UINT32_MAX ? (uint32_t)local : UINT32_MAX;
    caps->compute_units = units ? units : 1;
    /* Work items are numbered in the device's size_t. */
    caps->max_groups = bits >= 64 && sizeof(size_t) >= 8
                           ? INT32_MAX
                           : UINT32_MAX / (caps->max_threads ? caps->max_threads : 1);
    return LATTN_OK;
}
