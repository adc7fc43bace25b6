/* A stand-in for AMD's HIP runtime: libamdhip64.so.6 without a GPU. It keeps the runtime's books
 * (the current device, objects, stream captures), refuses what the runtime would refuse, fails on
 * demand and counts calls. Kernels run on the CPU: their source, compiled for the host by device.h,
 * on the work-group of wave.h.
 *
 * A test dlopens it (LD_LIBRARY_PATH finds it) and takes its symbol `fake_hip`. What a process
 * meets is set by its environment: FAKE_HIP_DEVICES  architectures, such as
 * "gfx942:sramecc+:xnack-,gfx1100" (the default) FAKE_HIP_INIT     what hipInit returns
 *   FAKE_HIP_OLD      if set, hipDeviceProp_t as it was before HIP 6 */
#ifndef LATTN_TESTS_FAKE_HIP_H
#define LATTN_TESTS_FAKE_HIP_H

#include "backends/hip/api.h"
#include "kernels/args.h"

struct fake_hip_launch {
    const char *entry;
    unsigned groups, threads, shared;
    void *stream;
    void *memories[LATTN_MEM_COUNT];
    struct lattn_args args;
};

struct fake_hip {
    /* Calls of one entry point, or of all (NULL), since `forget`. */
    int (*calls)(const char *name);
    void (*forget)(void);

    /* The nth call from now of `name`, or of any entry point (NULL), returns `result` and does
     * nothing else; 0 disarms. Calls that put things back (hipSetDevice to what was, restoring the
     * capture mode) never fail. `fired` says whether it happened, and disarms. */
    void (*fail_at)(const char *name, int nth, int result);
    const char *(*fired)(void);

    /* Of this thread. */
    int (*current)(void);
    void (*set_current)(int device);
    int (*capture_mode)(void); /* 0 global, 2 relaxed */

    /* The application's own streams. */
    void *(*stream_create)(int device);
    void (*stream_destroy)(void *stream);

    /* Captures in the strictest mode: work that belongs to no stream ends the capture, whichever
     * thread does it, unless that thread has asked to be let off. `end` returns the number of
     * kernels captured, -1 if the capture was ended by something illegal. Captured kernels do not
     * run until `replay`. */
    void (*capture_begin)(void *stream);
    int (*capture_end)(void *stream);
    void (*replay)(void);

    /* Objects that exist: modules, created streams, events, memories. */
    int (*live)(void);
    struct fake_hip_launch (*last_launch)(void);
};

#endif
