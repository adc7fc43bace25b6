/* An OpenCL driver that computes nothing, for tests of the host code: it checks how it is called,
 * counts the objects that live, and fails when told to. It stands behind dlopen and dlsym (linked
 * with --wrap), so that the library finds it as it finds a real one. */
#ifndef LATTN_TESTS_FAKE_OPENCL_H
#define LATTN_TESTS_FAKE_OPENCL_H

#include <stdatomic.h>
#include <stdbool.h>

#include "backends/opencl/api.h"

enum { FAKE_PLATFORMS = 3, FAKE_DEVICES = 2 /* of each platform */ };

struct _cl_device_id {
    cl_platform_id platform;
    const char *name, *version, *language, *driver;
    cl_ulong type;
    cl_uint available, compiler;
    cl_uint address_bits;
    cl_uint units, lanes;
    cl_uint capability[2]; /* as NVIDIA numbers it; 0: not NVIDIA's */
    size_t group_size, item_size;
    cl_uint mute; /* the question to this device that fails; 0: none */
};

struct _cl_platform_id {
    const char *name;
    cl_int error; /* of clGetDeviceIDs */
    cl_uint device_count;
    struct _cl_device_id devices[FAKE_DEVICES];
};

struct fake_opencl {
    bool absent;        /* there is no library */
    bool preloaded;     /* the process has it already */
    const char *hidden; /* the entry point it lacks, or NULL */
    cl_uint platform_count;
    struct _cl_platform_id platforms[FAKE_PLATFORMS];
    bool timeless;        /* events have no times */
    size_t resolution;    /* of the devices' timer */
    bool refuse_binaries; /* clBuildProgram fails for programs from binaries */
    long fail_at;         /* the number of the call that fails, from 1; 0: none */
    cl_int fail_code;
    const char *fail_name; /* the call that always fails with fail_code; NULL: none */

    /* What happened. Calls that release are not counted, for they do not fail. */
    atomic_long calls;
    atomic_long live;   /* references to objects */
    atomic_long misuse; /* calls that break a rule of OpenCL */
    atomic_long from_source, from_binary, builds;
    atomic_long flushes, finishes, launches;
    _Atomic(const char *) failed; /* the call that failed last */
    atomic_size_t global, local;  /* of the last launch */
    atomic_uint arguments;        /* bits of those set for it */
    atomic_size_t local_bytes;    /* of its local argument */
};
extern struct fake_opencl fake_opencl;

/* One platform with one GPU and a CPU, one with a CPU, one without devices; nothing fails. */
void fake_opencl_reset(void);

#endif
