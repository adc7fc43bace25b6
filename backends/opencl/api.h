/* The part of the OpenCL API that the backend uses, declared here so that building needs no OpenCL
 * headers, and its entry points, found at run time. Types and values are those of Khronos' cl.h;
 * tests/opencl_abi.c holds the two against each other. */
#ifndef LATTN_OPENCL_API_H
#define LATTN_OPENCL_API_H

#include <lattn/lattn.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_ulong cl_bitfield;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

enum {
    LATTN_CL_SUCCESS = 0,
    LATTN_CL_TRUE = 1,

    LATTN_CL_PLATFORM_VERSION = 0x0901,
    LATTN_CL_PLATFORM_NAME = 0x0902,

    LATTN_CL_DEVICE_TYPE = 0x1000,
    LATTN_CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    LATTN_CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    LATTN_CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
    LATTN_CL_DEVICE_ADDRESS_BITS = 0x100D,
    LATTN_CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    LATTN_CL_DEVICE_GLOBAL_MEM_SIZE = 0x101F,
    LATTN_CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    LATTN_CL_DEVICE_PROFILING_TIMER_RESOLUTION = 0x1025,
    LATTN_CL_DEVICE_AVAILABLE = 0x1027,
    LATTN_CL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    LATTN_CL_DEVICE_NAME = 0x102B,
    LATTN_CL_DRIVER_VERSION = 0x102D,
    LATTN_CL_DEVICE_VERSION = 0x102F,
    LATTN_CL_DEVICE_PLATFORM = 0x1031,
    LATTN_CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT = 0x103A,
    LATTN_CL_DEVICE_OPENCL_C_VERSION = 0x103D,
    LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MAJOR_NV = 0x4000,
    LATTN_CL_DEVICE_COMPUTE_CAPABILITY_MINOR_NV = 0x4001,

    LATTN_CL_DEVICE_TYPE_CPU = 1 << 1,
    LATTN_CL_DEVICE_TYPE_GPU = 1 << 2,

    LATTN_CL_CONTEXT_DEVICES = 0x1081,

    LATTN_CL_QUEUE_CONTEXT = 0x1090,
    LATTN_CL_QUEUE_DEVICE = 0x1091,
    LATTN_CL_QUEUE_PROPERTIES = 0x1093,
    LATTN_CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE = 1 << 0,
    LATTN_CL_QUEUE_PROFILING_ENABLE = 1 << 1,

    LATTN_CL_MEM_READ_WRITE = 1 << 0,

    LATTN_CL_PROGRAM_DEVICES = 0x1163,
    LATTN_CL_PROGRAM_BINARY_SIZES = 0x1165,
    LATTN_CL_PROGRAM_BINARIES = 0x1166,
    LATTN_CL_PROGRAM_BUILD_LOG = 0x1183,

    LATTN_CL_PROFILING_COMMAND_END = 0x1283,
};

/* Error codes, each under its name in OpenCL. */
#define LATTN_OPENCL_ERRORS(ERROR)                                                                 \
    ERROR(CL_DEVICE_NOT_FOUND, -1)                                                                 \
    ERROR(CL_DEVICE_NOT_AVAILABLE, -2)                                                             \
    ERROR(CL_COMPILER_NOT_AVAILABLE, -3)                                                           \
    ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4)                                                    \
    ERROR(CL_OUT_OF_RESOURCES, -5)                                                                 \
    ERROR(CL_OUT_OF_HOST_MEMORY, -6)                                                               \
    ERROR(CL_PROFILING_INFO_NOT_AVAILABLE, -7)                                                     \
    ERROR(CL_MEM_COPY_OVERLAP, -8)                                                                 \
    ERROR(CL_BUILD_PROGRAM_FAILURE, -11)                                                           \
    ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET, -13)                                                    \
    ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14)                                       \
    ERROR(CL_COMPILE_PROGRAM_FAILURE, -15)                                                         \
    ERROR(CL_LINKER_NOT_AVAILABLE, -16)                                                            \
    ERROR(CL_LINK_PROGRAM_FAILURE, -17)                                                            \
    ERROR(CL_INVALID_VALUE, -30)                                                                   \
    ERROR(CL_INVALID_PLATFORM, -32)                                                                \
    ERROR(CL_INVALID_DEVICE, -33)                                                                  \
    ERROR(CL_INVALID_CONTEXT, -34)                                                                 \
    ERROR(CL_INVALID_QUEUE_PROPERTIES, -35)                                                        \
    ERROR(CL_INVALID_COMMAND_QUEUE, -36)                                                           \
    ERROR(CL_INVALID_MEM_OBJECT, -38)                                                              \
    ERROR(CL_INVALID_BINARY, -42)                                                                  \
    ERROR(CL_INVALID_BUILD_OPTIONS, -43)                                                           \
    ERROR(CL_INVALID_PROGRAM, -44)                                                                 \
    ERROR(CL_INVALID_PROGRAM_EXECUTABLE, -45)                                                      \
    ERROR(CL_INVALID_KERNEL_NAME, -46)                                                             \
    ERROR(CL_INVALID_KERNEL_DEFINITION, -47)                                                       \
    ERROR(CL_INVALID_KERNEL, -48)                                                                  \
    ERROR(CL_INVALID_ARG_INDEX, -49)                                                               \
    ERROR(CL_INVALID_ARG_VALUE, -50)                                                               \
    ERROR(CL_INVALID_ARG_SIZE, -51)                                                                \
    ERROR(CL_INVALID_KERNEL_ARGS, -52)                                                             \
    ERROR(CL_INVALID_WORK_DIMENSION, -53)                                                          \
    ERROR(CL_INVALID_WORK_GROUP_SIZE, -54)                                                         \
    ERROR(CL_INVALID_WORK_ITEM_SIZE, -55)                                                          \
    ERROR(CL_INVALID_GLOBAL_OFFSET, -56)                                                           \
    ERROR(CL_INVALID_EVENT_WAIT_LIST, -57)                                                         \
    ERROR(CL_INVALID_EVENT, -58)                                                                   \
    ERROR(CL_INVALID_OPERATION, -59)                                                               \
    ERROR(CL_INVALID_BUFFER_SIZE, -61)                                                             \
    ERROR(CL_INVALID_GLOBAL_WORK_SIZE, -63)                                                        \
    ERROR(CL_INVALID_PROPERTY, -64)                                                                \
    ERROR(CL_PLATFORM_NOT_FOUND_KHR, -1001)

#define LATTN_OPENCL_ERROR_ENUMERATOR(name, value) LATTN_##name = (value),
enum { LATTN_OPENCL_ERRORS(LATTN_OPENCL_ERROR_ENUMERATOR) };

/* The entry points, all of OpenCL 1.2. clCreateCommandQueue is the one for queues that every
 * version has. */
#define LATTN_OPENCL_CALLS(CALL)                                                                   \
    CALL(cl_int, clGetPlatformIDs, (cl_uint, cl_platform_id *, cl_uint *))                         \
    CALL(cl_int, clGetPlatformInfo, (cl_platform_id, cl_uint, size_t, void *, size_t *))           \
    CALL(cl_int, clGetDeviceIDs,                                                                   \
         (cl_platform_id, cl_bitfield, cl_uint, cl_device_id *, cl_uint *))                        \
    CALL(cl_int, clGetDeviceInfo, (cl_device_id, cl_uint, size_t, void *, size_t *))               \
    CALL(cl_int, clRetainDevice, (cl_device_id))                                                   \
    CALL(cl_int, clReleaseDevice, (cl_device_id))                                                  \
    CALL(cl_context, clCreateContext,                                                              \
         (const intptr_t *, cl_uint, const cl_device_id *,                                         \
          void (*)(const char *, const void *, size_t, void *), void *, cl_int *))                 \
    CALL(cl_int, clRetainContext, (cl_context))                                                    \
    CALL(cl_int, clReleaseContext, (cl_context))                                                   \
    CALL(cl_int, clGetContextInfo, (cl_context, cl_uint, size_t, void *, size_t *))                \
    CALL(cl_command_queue, clCreateCommandQueue,                                                   \
         (cl_context, cl_device_id, cl_bitfield, cl_int *))                                        \
    CALL(cl_int, clRetainCommandQueue, (cl_command_queue))                                         \
    CALL(cl_int, clReleaseCommandQueue, (cl_command_queue))                                        \
    CALL(cl_int, clGetCommandQueueInfo, (cl_command_queue, cl_uint, size_t, void *, size_t *))     \
    CALL(cl_int, clFlush, (cl_command_queue))                                                      \
    CALL(cl_int, clFinish, (cl_command_queue))                                                     \
    CALL(cl_mem, clCreateBuffer, (cl_context, cl_bitfield, size_t, void *, cl_int *))              \
    CALL(cl_int, clReleaseMemObject, (cl_mem))                                                     \
    CALL(cl_int, clEnqueueReadBuffer,                                                              \
         (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint, const cl_event *,    \
          cl_event *))                                                                             \
    CALL(cl_int, clEnqueueWriteBuffer,                                                             \
         (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint,                \
          const cl_event *, cl_event *))                                                           \
    CALL(cl_int, clEnqueueCopyBuffer,                                                              \
         (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *,     \
          cl_event *))                                                                             \
    CALL(cl_int, clEnqueueFillBuffer,                                                              \
         (cl_command_queue, cl_mem, const void *, size_t, size_t, size_t, cl_uint,                 \
          const cl_event *, cl_event *))                                                           \
    CALL(cl_int, clEnqueueMarkerWithWaitList,                                                      \
         (cl_command_queue, cl_uint, const cl_event *, cl_event *))                                \
    CALL(cl_int, clWaitForEvents, (cl_uint, const cl_event *))                                     \
    CALL(cl_int, clReleaseEvent, (cl_event))                                                       \
    CALL(cl_int, clGetEventProfilingInfo, (cl_event, cl_uint, size_t, void *, size_t *))           \
    CALL(cl_program, clCreateProgramWithSource,                                                    \
         (cl_context, cl_uint, const char **, const size_t *, cl_int *))                           \
    CALL(cl_program, clCreateProgramWithBinary,                                                    \
         (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **,       \
          cl_int *, cl_int *))                                                                     \
    CALL(cl_int, clBuildProgram,                                                                   \
         (cl_program, cl_uint, const cl_device_id *, const char *, void (*)(cl_program, void *),   \
          void *))                                                                                 \
    CALL(cl_int, clGetProgramInfo, (cl_program, cl_uint, size_t, void *, size_t *))                \
    CALL(cl_int, clGetProgramBuildInfo,                                                            \
         (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *))                            \
    CALL(cl_int, clReleaseProgram, (cl_program))                                                   \
    CALL(cl_kernel, clCreateKernel, (cl_program, const char *, cl_int *))                          \
    CALL(cl_int, clReleaseKernel, (cl_kernel))                                                     \
    CALL(cl_int, clSetKernelArg, (cl_kernel, cl_uint, size_t, const void *))                       \
    CALL(cl_int, clEnqueueNDRangeKernel,                                                           \
         (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,    \
          cl_uint, const cl_event *, cl_event *))

#define LATTN_OPENCL_CALL_MEMBER(type, name, parameters) type(*name) parameters;
struct lattn_opencl_api {
    LATTN_OPENCL_CALLS(LATTN_OPENCL_CALL_MEMBER)
};

/* The entry points of the OpenCL that the process has, else of libOpenCL.so.1, opened once and
 * never closed; NULL, with the reason in *why (static storage), where there is none or one is
 * missing. */
const struct lattn_opencl_api *lattn_opencl_api_get(const char **why);

/* The status that an error code stands for, and its name, "unknown" if it has none here. */
lattn_status lattn_opencl_status(cl_int error);
const char *lattn_opencl_error_name(cl_int error);

/* Fails with that status and the message "<what> failed: <name> (<error>)". */
lattn_status lattn_opencl_fail(cl_int error, const char *what, ...)
    __attribute__((format(printf, 2, 3)));

/* LATTN_OK for CL_SUCCESS; else a failure of that call. */
lattn_status lattn_opencl_check(cl_int error, const char *call);

#endif
