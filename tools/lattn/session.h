/* A device with a stream, and host arrays run through it. */
#ifndef LATTN_TOOLS_SESSION_H
#define LATTN_TOOLS_SESSION_H

#include <lattn/lattn.h>

#include "call.h"

struct session {
    lattn_device *device;
    lattn_stream *stream;
    lattn_device_info info;
    char label[32]; /* "cuda:0" */
};

/* Whether `name` is one of --backend. */
bool backend_known(const char *name);

/* The device that --backend and --device name: `ordinal` counts within `backend`, or over all
 * devices without one; -1 is the first usable. */
lattn_status session_find(lattn_context *context, const char *backend, int64_t ordinal,
                          int32_t *index);

/* `session` needs closing only if this returns LATTN_OK. */
lattn_status session_open(lattn_context *context, int32_t index, struct session *session);
void session_close(struct session *session);

/* Host arrays by part: inputs are read, outputs written. NULL where the call has none, or where an
 * output is not wanted. CALL_STATE_IN of a decode is read, and written to outputs. */
struct host_arrays {
    const void *input[CALL_PARTS];
    void *output[CALL_PARTS];
};

/* Whether there is room for all arrays of a call, before any is allocated: they may fit one by one,
 * and a system that overcommits gives out what it does not have. `arrays` are those that the host
 * has already, or NULL. */
lattn_status session_room(struct session *session, const struct call *call,
                          const struct host_arrays *arrays);

/* Does the whole of a call: memory, copies, launch. Outputs hold NaN wherever the device wrote
 * nothing. */
lattn_status session_run(struct session *session, const struct call *call,
                         const struct host_arrays *arrays);

#endif
