/* A stream: a backend's queue, and the kernels made ready on it. */
#ifndef LATTN_CORE_STREAM_H
#define LATTN_CORE_STREAM_H

#include "device.h"
#include "planner.h"

struct lattn_stream {
    lattn_device *device;
    void *impl;
    bool timing;                    /* a measurement has begun */
    struct lattn_plan_memo last[2]; /* of prefill, of decode */
    void *kernels[];                /* by row of the catalogue; NULL: not loaded */
};

/* Loads every kernel that a request of this kind can use. */
lattn_status lattn_stream_load(lattn_stream *stream, const struct lattn_kind *kind);

/* Launches a plan. LATTN_ERROR_NOT_PREPARED if a kernel of it is not loaded, before any launch. */
lattn_status lattn_stream_run(lattn_stream *stream, const struct lattn_request *request,
                              const struct lattn_plan *plan);

#endif
