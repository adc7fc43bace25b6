/* The stand-in driver's programs and kernels. */
#include <string.h>

#include "fake_calls.h"
#include "kernels/args.h"

static cl_program create_program(cl_context context, const char *source, size_t length)
{
    cl_program program = fake_create(sizeof(*program) + length + 1);
    program->context = context;
    memcpy(program->source, source, length);
    return program;
}

cl_program fake_clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts,
                                          const size_t *lengths, cl_int *error)
{
    (void)lengths;
    *error = fake_enter("clCreateProgramWithSource");
    if (!*error && count != 1)
        *error = fake_misused(LATTN_CL_INVALID_VALUE);
    if (*error)
        return NULL;
    atomic_fetch_add(&fake_opencl.from_source, 1);
    return create_program(context, texts[0], strlen(texts[0]));
}

/* A binary is "fake " and the source. */
static const char prefix[] = "fake ";
enum { PREFIX = sizeof(prefix) - 1 };

cl_program fake_clCreateProgramWithBinary(cl_context context, cl_uint count,
                                          const cl_device_id *devices, const size_t *sizes,
                                          const unsigned char **binaries, cl_int *taken,
                                          cl_int *error)
{
    (void)devices;
    (void)count;
    *error = fake_enter("clCreateProgramWithBinary");
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

cl_int fake_clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
                           const char *options, void (*notify)(cl_program, void *), void *user)
{
    (void)options;
    (void)notify;
    (void)user;
    cl_int error = fake_enter("clBuildProgram");
    if (error)
        return error;
    if (count != 1)
        return fake_misused(LATTN_CL_INVALID_VALUE);
    atomic_fetch_add(&fake_opencl.builds, 1);
    if (strstr(program->source, "#error") || (program->binary && fake_opencl.refuse_binaries))
        return LATTN_CL_BUILD_PROGRAM_FAILURE;
    program->built = devices[0];
    return 0;
}

cl_int fake_clGetProgramInfo(cl_program program, cl_uint what, size_t size, void *value,
                             size_t *actual)
{
    cl_int error = fake_enter("clGetProgramInfo");
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
        return fake_answer(context->devices, context->count * sizeof(cl_device_id), size, value,
                           actual);
    case LATTN_CL_PROGRAM_BINARY_SIZES:
        return fake_answer(sizes, context->count * sizeof(size_t), size, value, actual);
    case LATTN_CL_PROGRAM_BINARIES: /* as strict as some drivers are */
        return size == context->count * sizeof(char *) ? 0 : fake_misused(LATTN_CL_INVALID_VALUE);
    default:
        return fake_misused(LATTN_CL_INVALID_VALUE);
    }
}

cl_int fake_clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_uint what,
                                  size_t size, void *value, size_t *actual)
{
    (void)program;
    (void)device;
    (void)what;
    cl_int error = fake_enter("clGetProgramBuildInfo");
    if (error)
        return error;
    return fake_answer_text("one warning\n\nline 7: error: no such thing\nline 8: error: another\n",
                            size, value, actual);
}

cl_int fake_clReleaseProgram(cl_program program)
{
    return fake_release(program);
}

cl_kernel fake_clCreateKernel(cl_program program, const char *name, cl_int *error)
{
    *error = fake_enter("clCreateKernel");
    if (!*error && !program->built)
        *error = fake_misused(LATTN_CL_INVALID_PROGRAM_EXECUTABLE);
    if (!*error && !strstr(program->source, name))
        *error = LATTN_CL_INVALID_KERNEL_NAME;
    return *error ? NULL : fake_create(sizeof(struct _cl_kernel));
}

cl_int fake_clReleaseKernel(cl_kernel kernel)
{
    return fake_release(kernel);
}

cl_int fake_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value)
{
    cl_int error = fake_enter("clSetKernelArg");
    if (error)
        return error;
    if (index > LATTN_MEM_COUNT + 1)
        return fake_misused(LATTN_CL_INVALID_ARG_INDEX);
    size_t wanted = index < LATTN_MEM_COUNT ? sizeof(cl_mem) : sizeof(struct lattn_args);
    bool shared = index == LATTN_MEM_COUNT + 1;
    if (shared ? value != NULL : size != wanted)
        return fake_misused(LATTN_CL_INVALID_ARG_SIZE);
    kernel->arguments |= 1u << index;
    if (shared)
        kernel->local_bytes = size;
    return 0;
}

cl_int fake_clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint axes,
                                   const size_t *offset, const size_t *global, const size_t *local,
                                   cl_uint waits, const cl_event *list, cl_event *event)
{
    (void)queue;
    (void)event;
    cl_int error = fake_enter("clEnqueueNDRangeKernel");
    if (error)
        return error;
    if (axes != 1 || offset || waits || list || !*local || *global % *local)
        return fake_misused(LATTN_CL_INVALID_VALUE);
    atomic_fetch_add(&fake_opencl.launches, 1);
    fake_opencl.global = *global;
    fake_opencl.local = *local;
    fake_opencl.arguments = kernel->arguments;
    fake_opencl.local_bytes = kernel->local_bytes;
    return 0;
}
