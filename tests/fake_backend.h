/* A backend without a device behind it: host memory, kernels that compute nothing, and any
 * function of the vtable made to fail at any of its calls. It counts what it hands out. */
#ifndef LATTN_TESTS_FAKE_BACKEND_H
#define LATTN_TESTS_FAKE_BACKEND_H

#include "core/backend.h"

enum fake_call {
    FAKE_PROBE,
    FAKE_OPEN,
    FAKE_ALLOC,
    FAKE_STREAM_OPEN,
    FAKE_SYNCHRONIZE,
    FAKE_COPY,
    FAKE_FILL,
    FAKE_LOAD,
    FAKE_LAUNCH,
    FAKE_TIME_BEGIN,
    FAKE_TIME_END,
    FAKE_CALLS
};

struct fake {
    int calls[FAKE_CALLS];
    int live;               /* devices, memories and streams that are out */
    enum fake_call failing; /* fails at its call number `fail_at`, from 1; 0: never */
    int fail_at;
    int32_t devices;
    struct lattn_caps caps;
    struct lattn_launch launches[8]; /* the last ones, their args below */
    struct lattn_args args[8];
    const struct lattn_kernel_row *launched[8];
    int launch_count;
};

/* The one there is. Its catalogue may be replaced. */
extern struct fake fake;
extern struct lattn_backend fake_backend;

extern const char *const fake_call_names[FAKE_CALLS];

/* All counts zero, nothing failing, one roomy device, the catalogue that has a row for all. */
void fake_reset(void);

#endif
