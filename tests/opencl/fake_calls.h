/* The stand-in driver's objects, what its calls share, and the calls. */
#ifndef LATTN_TESTS_FAKE_CALLS_H
#define LATTN_TESTS_FAKE_CALLS_H

#include "fake_opencl.h"

/* An object starts with its count of references. */
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

/* Counts a call that can fail; returns the failure that it was told to have. */
cl_int fake_enter(const char *call);

/* Counts a call that breaks a rule of OpenCL; returns `error`. */
cl_int fake_misused(cl_int error);

void *fake_create(size_t size);
cl_int fake_retain(void *object);
cl_int fake_release(void *object);

/* What a clGet...Info returns and writes. */
cl_int fake_answer(const void *from, size_t length, size_t size, void *value, size_t *actual);
cl_int fake_answer_text(const char *text, size_t size, void *value, size_t *actual);

#define DECLARE(type, call, parameters) type fake_##call parameters;
LATTN_OPENCL_CALLS(DECLARE)
#undef DECLARE

#endif
