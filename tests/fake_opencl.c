#include "fake_opencl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/args.h"

struct _cl_context {
    atomic_int references;
    cl_device_id devices[FAKE_DEVICES];
    cl_uint count;
};

struct _cl_command_queue {
    atomic_int references;
    cl_context context;
    cl_device_id device;
    cl_bitfield properties;
    cl_ulong time;
};

struct _cl_mem {
    atomic_int references;
    size_t size;
    unsigned char bytes[];
};

struct _cl_program {
    atomic_int references;
    cl_context context;
    cl_device_id built; /* for that device */
    bool binary;
    char source[];
};

struct _cl_kernel {
    atomic_int references;
    unsigned arguments;
    size_t local_bytes;
};

struct _cl_event {
    atomic_int references;
    cl_ulong time;
};

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

/* Every call that can fail begins here. */
static cl_int enter(const char *call)
{
    long number = atomic_fetch_add(&fake_opencl.calls, 1) + 1;
    if (number != fake_opencl.fail_at &&
        (!fake_opencl.fail_name || strcmp(fake_opencl.fail_name, call) != 0))
        return 0;
    fake_opencl.failed = call;
    return fake_opencl.fail_code;
}

static cl_int misused(cl_int error)
{
    atomic_fetch_add(&fake_opencl.misuse, 1);
    return error;
}

/* Objects start with their count of references. */
static void *create(size_t size)
{
    atomic_int *references = calloc(1, size);
    if (!references)
        abort();
    *references = 1;
    atomic_fetch_add(&fake_opencl.live, 1);
    return references;
}

static cl_int retain(void *object)
{
    atomic_fetch_add((atomic_int *)object, 1);
    atomic_fetch_add(&fake_opencl.live, 1);
    return 0;
}

static cl_int release(void *object)
{
    atomic_fetch_sub(&fake_opencl.live, 1);
    if (atomic_fetch_sub((atomic_int *)object, 1) == 1)
        free(object);
    return 0;
}

static cl_int answer(const void *from, size_t length, size_t size, void *value, size_t *actual)
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

static cl_int answer_text(const char *text, size_t size, void *value, size_t *actual)
{
    return answer(text, strlen(text) + 1, size, value, actual);
}

static cl_int fake_clGetPlatformIDs(cl_uint room, cl_platform_id *platforms, cl_uint *count)
{
    cl_int error = enter("clGetPlatformIDs");
    if (error)
        return error;
    for (cl_uint i = 0; i < room && i < fake_opencl.platform_count; i++)
        platforms[i] = &fake_opencl.platforms[i];
    *count = fake_opencl.platform_count;
    return *count ? 0 : LATTN_CL_PLATFORM_NOT_FOUND_KHR;
}

static cl_int fake_clGetPlatformInfo(cl_platform_id platform, cl_uint what, size_t size,
                                     void *value, size_t *actual)
{
    cl_int error = enter("clGetPlatformInfo");
    if (error)
        return error;
    return answer_text(what == LATTN_CL_PLATFORM_NAME ? platform->name : "OpenCL 3.0", size, value,
                       actual);
}

static cl_int fake_clGetDeviceIDs(cl_platform_id platform, cl_bitfield type, cl_uint room,
                                  cl_device_id *devices, cl_uint *count)
{
    (void)type;
    cl_int error = enter("clGetDeviceIDs");
    if (!error)
        error = platform->error;
    if (error)
        return error;
    for (cl_uint i = 0; i < room && i < platform->device_count; i++)
        devices[i] = &platform->devices[i];
    *count = platform->device_count;
    return *count ? 0 : LATTN_CL_DEVICE_NOT_FOUND;
}

static cl_int fake_clGetDeviceInfo(cl_device_id device, cl_uint what, size_t size, void *value,
                                   size_t *actual)
{
    cl_int error = enter("clGetDeviceInfo");
    if (error)
        return error;
    if (what == device->mute)
        return LATTN_CL_OUT_OF_RESOURCES;
    const cl_ulong memory = UINT64_C(1) << 32, local = 32768;
    const size_t items[3] = {device->item_size, device->item_size, device->item_size};
    switch (what) {
    case LATTN_CL_DEVICE_TYPE:
        return answer(&device->type, sizeof(device->type), size, value, actual);
    case LATTN_CL_DEVICE_MAX_COMPUTE_UNITS:
        return answer(&device->units, sizeof(device->units), size, value, actual);
    case LATTN_CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT:
        return answer(&device->lanes, sizeof(device->lanes), size, value, actual);
    case LATTN_CL_DEVICE_MAX_WORK_GROUP_SIZE:
        return answer(&device->group_size, sizeof(size_t), size, value, actual);
    case LATTN_CL_DEVICE_MAX_WORK_ITEM_SIZES:
        return answer(items, sizeof(items), size, value, actual);
    case LATTN_CL_DEVICE_ADDRESS_BITS:
        return answer(&device->address_bits, sizeof(cl_uint), size, value, actual);
    case LATTN_CL_DEVICE_MAX_MEM_ALLOC_SIZE:
    case LATTN_CL_DEVICE_GLOBAL_MEM_SIZE:
        return answer(&memory, sizeof(memory), size, value, actual);
    case LATTN_CL_DEVICE_LOCAL_MEM_SIZE:
        return answer(&local, sizeof(local), size, value, actual);
    case LATTN_CL_DEVICE_PROFILING_TIMER_RESOLUTION:
        return answer(&fake_opencl.resolution, sizeof(size_t), size, value, actual);
    case LATTN_CL_DEVICE_AVAILABLE:
        return answer(&device->available, sizeof(cl_uint), size, value, actual);
    case LATTN_CL_DEVICE_COMPILER_AVAILABLE:
        return answer(&device->compiler, sizeof(cl_uint), size, value, actual);
    case LATTN_CL_DEVICE_NAME:
        return answer_text(device->name, size, value, actual);
    case LATTN_CL_DRIVER_VERSION:
        return answer_text(device->driver, size, value, actual);
    case LATTN_CL_DEVICE_VERSION:
        return answer_text(device->version, size, value, actual);
    case LATTN_CL_DEVICE_OPENCL_C_VERSION:
        return answer_text(device->language, size, value, actual);
    case LATTN_CL_DEVICE_PLATFORM:
        return answer(&device->platform, sizeof(cl_platform_id), size, value, actual);
    case LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV:
    case LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV:
        if (!device->capability[0])
            return LATTN_CL_INVALID_VALUE;
        return answer(&device->capability[what == LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV],
                      sizeof(cl_uint), size, value, actual);
    default:
        return misused(LATTN_CL_INVALID_VALUE);
    }
}

/* Devices are not created, but their references are counted. */
static cl_int fake_clRetainDevice(cl_device_id device)
{
    (void)device;
    cl_int error = enter("clRetainDevice");
    if (!error)
        atomic_fetch_add(&fake_opencl.live, 1);
    return error;
}

static cl_int fake_clReleaseDevice(cl_device_id device)
{
    (void)device;
    atomic_fetch_sub(&fake_opencl.live, 1);
    return 0;
}

static cl_context fake_clCreateContext(const intptr_t *properties, cl_uint count,
                                       const cl_device_id *devices,
                                       void (*notify)(const char *, const void *, size_t, void *),
                                       void *user, cl_int *error)
{
    (void)properties;
    (void)notify;
    (void)user;
    *error = enter("clCreateContext");
    if (*error)
        return NULL;
    cl_context context = create(sizeof(*context));
    context->count = count;
    memcpy(context->devices, devices, count * sizeof(*devices));
    return context;
}

static cl_int fake_clRetainContext(cl_context context)
{
    cl_int error = enter("clRetainContext");
    return error ? error : retain(context);
}

static cl_int fake_clReleaseContext(cl_context context)
{
    return release(context);
}

static cl_int fake_clGetContextInfo(cl_context context, cl_uint what, size_t size, void *value,
                                    size_t *actual)
{
    cl_int error = enter("clGetContextInfo");
    if (error)
        return error;
    if (what != LATTN_CL_CONTEXT_DEVICES)
        return misused(LATTN_CL_INVALID_VALUE);
    return answer(context->devices, context->count * sizeof(cl_device_id), size, value, actual);
}

static cl_command_queue fake_clCreateCommandQueue(cl_context context, cl_device_id device,
                                                  cl_bitfield properties, cl_int *error)
{
    *error = enter("clCreateCommandQueue");
    if (*error)
        return NULL;
    cl_command_queue queue = create(sizeof(*queue));
    queue->context = context;
    queue->device = device;
    queue->properties = properties;
    return queue;
}

static cl_int fake_clRetainCommandQueue(cl_command_queue queue)
{
    cl_int error = enter("clRetainCommandQueue");
    return error ? error : retain(queue);
}

static cl_int fake_clReleaseCommandQueue(cl_command_queue queue)
{
    return release(queue);
}

static cl_int fake_clGetCommandQueueInfo(cl_command_queue queue, cl_uint what, size_t size,
                                         void *value, size_t *actual)
{
    cl_int error = enter("clGetCommandQueueInfo");
    if (error)
        return error;
    switch (what) {
    case LATTN_CL_QUEUE_CONTEXT:
        return answer(&queue->context, sizeof(queue->context), size, value, actual);
    case LATTN_CL_QUEUE_DEVICE:
        return answer(&queue->device, sizeof(queue->device), size, value, actual);
    case LATTN_CL_QUEUE_PROPERTIES:
        return answer(&queue->properties, sizeof(queue->properties), size, value, actual);
    default:
        return misused(LATTN_CL_INVALID_VALUE);
    }
}

static cl_int fake_clFlush(cl_command_queue queue)
{
    (void)queue;
    atomic_fetch_add(&fake_opencl.flushes, 1);
    return enter("clFlush");
}

static cl_int fake_clFinish(cl_command_queue queue)
{
    (void)queue;
    atomic_fetch_add(&fake_opencl.finishes, 1);
    return enter("clFinish");
}

static cl_mem fake_clCreateBuffer(cl_context context, cl_bitfield flags, size_t size, void *host,
                                  cl_int *error)
{
    (void)context;
    (void)flags;
    (void)host;
    *error = enter("clCreateBuffer");
    if (*error)
        return NULL;
    cl_mem memory = create(sizeof(*memory) + size);
    memory->size = size;
    return memory;
}

static cl_int fake_clReleaseMemObject(cl_mem memory)
{
    return release(memory);
}

static bool inside(cl_mem memory, size_t offset, size_t size)
{
    return offset <= memory->size && size <= memory->size - offset;
}

/* The fake's work is done when it is enqueued, so it needs no wait lists. */
static cl_int fake_clEnqueueReadBuffer(cl_command_queue queue, cl_mem memory, cl_uint blocking,
                                       size_t offset, size_t size, void *host, cl_uint waits,
                                       const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = enter("clEnqueueReadBuffer");
    if (error)
        return error;
    if (!blocking || waits || list || !inside(memory, offset, size))
        return misused(LATTN_CL_INVALID_VALUE);
    memcpy(host, memory->bytes + offset, size);
    return 0;
}

static cl_int fake_clEnqueueWriteBuffer(cl_command_queue queue, cl_mem memory, cl_uint blocking,
                                        size_t offset, size_t size, const void *host, cl_uint waits,
                                        const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = enter("clEnqueueWriteBuffer");
    if (error)
        return error;
    if (!blocking || waits || list || !inside(memory, offset, size))
        return misused(LATTN_CL_INVALID_VALUE);
    memcpy(memory->bytes + offset, host, size);
    return 0;
}

static cl_int fake_clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                       size_t from_offset, size_t to_offset, size_t size,
                                       cl_uint waits, const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = enter("clEnqueueCopyBuffer");
    if (error)
        return error;
    if (waits || list || !inside(from, from_offset, size) || !inside(to, to_offset, size))
        return misused(LATTN_CL_INVALID_VALUE);
    memmove(to->bytes + to_offset, from->bytes + from_offset, size);
    return 0;
}

static cl_int fake_clEnqueueFillBuffer(cl_command_queue queue, cl_mem memory, const void *pattern,
                                       size_t pattern_size, size_t offset, size_t size,
                                       cl_uint waits, const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = enter("clEnqueueFillBuffer");
    if (error)
        return error;
    if (waits || list || pattern_size != 1 || !inside(memory, offset, size))
        return misused(LATTN_CL_INVALID_VALUE);
    memset(memory->bytes + offset, *(const unsigned char *)pattern, size);
    return 0;
}

static cl_int fake_clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint waits,
                                               const cl_event *list, cl_event *event)
{
    (void)waits;
    (void)list;
    cl_int error = enter("clEnqueueMarkerWithWaitList");
    if (error)
        return error;
    *event = create(sizeof(**event));
    (*event)->time = queue->time += 2000000;
    return 0;
}

static cl_int fake_clWaitForEvents(cl_uint count, const cl_event *events)
{
    (void)count;
    (void)events;
    return enter("clWaitForEvents");
}

static cl_int fake_clReleaseEvent(cl_event event)
{
    return release(event);
}

static cl_int fake_clGetEventProfilingInfo(cl_event event, cl_uint what, size_t size, void *value,
                                           size_t *actual)
{
    (void)what;
    cl_int error = enter("clGetEventProfilingInfo");
    if (error)
        return error;
    cl_ulong time = fake_opencl.timeless ? 0 : event->time;
    return answer(&time, sizeof(time), size, value, actual);
}

static cl_program create_program(cl_context context, const char *source, size_t length)
{
    cl_program program = create(sizeof(*program) + length + 1);
    program->context = context;
    memcpy(program->source, source, length);
    return program;
}

static cl_program fake_clCreateProgramWithSource(cl_context context, cl_uint count,
                                                 const char **texts, const size_t *lengths,
                                                 cl_int *error)
{
    (void)lengths;
    *error = enter("clCreateProgramWithSource");
    if (!*error && count != 1)
        *error = misused(LATTN_CL_INVALID_VALUE);
    if (*error)
        return NULL;
    atomic_fetch_add(&fake_opencl.from_source, 1);
    return create_program(context, texts[0], strlen(texts[0]));
}

/* A binary is "fake " and the source. */
static const char prefix[] = "fake ";
enum { PREFIX = sizeof(prefix) - 1 };

static cl_program fake_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                                 const cl_device_id *devices, const size_t *sizes,
                                                 const unsigned char **binaries, cl_int *taken,
                                                 cl_int *error)
{
    (void)devices;
    (void)count;
    *error = enter("clCreateProgramWithBinary");
    if (!*error && (sizes[0] < PREFIX || memcmp(binaries[0], prefix, PREFIX) != 0))
        *error = *taken = LATTN_CL_INVALID_BINARY;
    if (*error)
        return NULL;
    *taken = 0;
    atomic_fetch_add(&fake_opencl.from_binary, 1);
    cl_program program =
        create_program(context, (const char *)binaries[0] + PREFIX, sizes[0] - PREFIX);
    program->binary = true;
    return program;
}

static cl_int fake_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                                  const char *options, void (*notify)(cl_program, void *),
                                  void *user)
{
    (void)options;
    (void)notify;
    (void)user;
    cl_int error = enter("clBuildProgram");
    if (error)
        return error;
    if (count != 1)
        return misused(LATTN_CL_INVALID_VALUE);
    atomic_fetch_add(&fake_opencl.builds, 1);
    if (strstr(program->source, "#error") || (program->binary && fake_opencl.refuse_binaries))
        return LATTN_CL_BUILD_PROGRAM_FAILURE;
    program->built = devices[0];
    return 0;
}

static cl_int fake_clGetProgramInfo(cl_program program, cl_uint what, size_t size, void *value,
                                    size_t *actual)
{
    cl_int error = enter("clGetProgramInfo");
    if (error)
        return error;
    cl_context context = program->context;
    size_t sizes[FAKE_DEVICES] = {0}, length = PREFIX + strlen(program->source);
    for (cl_uint i = 0; i < context->count; i++) {
        if (context->devices[i] != program->built)
            continue;
        sizes[i] = length;
        unsigned char *binary =
            what == LATTN_CL_PROGRAM_BINARIES ? ((unsigned char **)value)[i] : NULL;
        if (binary) {
            memcpy(binary, prefix, PREFIX);
            memcpy(binary + PREFIX, program->source, length - PREFIX);
        }
    }
    switch (what) {
    case LATTN_CL_PROGRAM_DEVICES:
        return answer(context->devices, context->count * sizeof(cl_device_id), size, value, actual);
    case LATTN_CL_PROGRAM_BINARY_SIZES:
        return answer(sizes, context->count * sizeof(size_t), size, value, actual);
    case LATTN_CL_PROGRAM_BINARIES: /* as strict as some drivers are */
        return size == context->count * sizeof(char *) ? 0 : misused(LATTN_CL_INVALID_VALUE);
    default:
        return misused(LATTN_CL_INVALID_VALUE);
    }
}

static cl_int fake_clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_uint what,
                                         size_t size, void *value, size_t *actual)
{
    (void)program;
    (void)device;
    (void)what;
    cl_int error = enter("clGetProgramBuildInfo");
    if (error)
        return error;
    return answer_text("one warning\n\nline 7: error: no such thing\nline 8: error: another\n",
                       size, value, actual);
}

static cl_int fake_clReleaseProgram(cl_program program)
{
    return release(program);
}

static cl_kernel fake_clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    *error = enter("clCreateKernel");
    if (!*error && !program->built)
        *error = misused(LATTN_CL_INVALID_PROGRAM_EXECUTABLE);
    if (!*error && !strstr(program->source, name))
        *error = LATTN_CL_INVALID_KERNEL_NAME;
    return *error ? NULL : create(sizeof(struct _cl_kernel));
}

static cl_int fake_clReleaseKernel(cl_kernel kernel)
{
    return release(kernel);
}

static cl_int fake_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    cl_int error = enter("clSetKernelArg");
    if (error)
        return error;
    if (index > LATTN_MEM_COUNT + 1)
        return misused(LATTN_CL_INVALID_ARG_INDEX);
    size_t wanted = index < LATTN_MEM_COUNT ? sizeof(cl_mem) : sizeof(struct lattn_args);
    bool shared = index == LATTN_MEM_COUNT + 1;
    if (shared ? value != NULL : size != wanted)
        return misused(LATTN_CL_INVALID_ARG_SIZE);
    kernel->arguments |= 1u << index;
    if (shared)
        kernel->local_bytes = size;
    return 0;
}

static cl_int fake_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint axes,
                                          const size_t *offset, const size_t *global,
                                          const size_t *local, cl_uint waits, const cl_event *list,
                                          cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = enter("clEnqueueNDRangeKernel");
    if (error)
        return error;
    if (axes != 1 || offset || waits || list || !*local || *global % *local)
        return misused(LATTN_CL_INVALID_VALUE);
    atomic_fetch_add(&fake_opencl.launches, 1);
    fake_opencl.global = *global;
    fake_opencl.local = *local;
    fake_opencl.arguments = kernel->arguments;
    fake_opencl.local_bytes = kernel->local_bytes;
    return 0;
}

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
