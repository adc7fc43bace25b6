/* The part of AMD's HIP runtime that the backend uses, declared here so that neither ROCm's headers
 * nor its libraries are needed to build it, and opened at run time. */
#ifndef LATTN_HIP_API_H
#define LATTN_HIP_API_H

#include <lattn/lattn.h>
#include <stddef.h>

#include "backends/driver/driver.h"

/* Values of the runtime's ABI: errors and attributes, the same from HIP 5 to 7. */
enum {
    HIP_SUCCESS = 0,
    HIP_ERROR_OUT_OF_MEMORY = 2,
    HIP_ERROR_NOT_INITIALIZED = 3,
    HIP_ERROR_NO_DEVICE = 100,
    HIP_ERROR_INVALID_DEVICE = 101,
    HIP_ERROR_INVALID_IMAGE = 200,
    HIP_ERROR_NO_BINARY_FOR_GPU = 209,

    HIP_ATTRIBUTE_MULTIPROCESSOR_COUNT = 63,
    HIP_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 74,
};

/* X(name, parameters): what listing devices takes. A runtime too old for the rest can still be
 * described. */
#define LATTN_HIP_LISTING(X)                                                                       \
    X(hipInit, (unsigned flags))                                                                   \
    X(hipRuntimeGetVersion, (int *version))                                                        \
    X(hipGetDeviceCount, (int *count))                                                             \
    X(hipDeviceGetName, (char *name, int size, int device))                                        \
    X(hipDeviceGetAttribute, (int *value, int attribute, int device))                              \
    X(hipDeviceTotalMem, (size_t * bytes, int device))                                             \
    X(hipGetDevice, (int *device))                                                                 \
    X(hipSetDevice, (int device))

struct lattn_hip_api {
    struct lattn_driver common; /* first: its functions see this */
#define LATTN_HIP_MEMBER(name, parameters) int(*name) parameters;
    LATTN_HIP_LISTING(LATTN_HIP_MEMBER)
#undef LATTN_HIP_MEMBER
    const char *(*hipGetErrorName)(int error);
    /* Only for the architecture's name. The struct it fills has changed with HIP 6, under another
     * symbol; see lattn_hip_arch_in. */
    int (*hipGetDeviceProperties)(void *properties, int device);
    int (*hipStreamGetDevice)(void *stream, int *device); /* NULL before HIP 5.6 */

    int version; /* 10000000 major + 100000 minor + patch */
};

/* The runtime, opened by the first call and initialised; NULL after lattn_fail(NO_DEVICE) if there
 * is none, or no AMD GPU. Any thread may call it. */
const struct lattn_hip_api *lattn_hip_runtime(void);

/* Sets the message "WHAT failed: NAME (code)" and returns the status that goes with the code. */
lattn_status lattn_hip_fail(int result, const char *what);

#endif
