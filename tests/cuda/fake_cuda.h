/* A stand-in for the CUDA driver: libcuda.so.1 without a GPU. It keeps the driver's books (contexts
 * and which is current, objects, stream captures), refuses what the driver would refuse, fails on
 * demand, and counts calls. Kernels do not run.
 *
 * A test dlopens it (LD_LIBRARY_PATH finds it) and takes its symbol `fake_cuda`. What a process
 * meets is set by its environment:
 *   FAKE_CUDA_DEVICES  compute capabilities, such as "9.0,8.6" (the default)
 *   FAKE_CUDA_DRIVER   the driver's CUDA version, 1000 major + 10 minor (default 13000)
 *   FAKE_CUDA_INIT     what cuInit returns
 *   FAKE_CUDA_MISSING  an entry point that it does not have
 *   FAKE_CUDA_IMAGE    what cuModuleLoadData returns */
#ifndef LATTN_FAKE_CUDA_H
#define LATTN_FAKE_CUDA_H

#include "backends/cuda/api.h"
#include "kernels/args.h"

struct fake_cuda_launch {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    void *memories[LATTN_MEM_COUNT];
    struct lattn_args args;
};

struct fake_cuda {
    /* Calls of one entry point, or of all (NULL), since `forget`. */
    int (*calls)(const char *name);
    void (*forget)(void);

    /* The nth call from now of `name`, or of any entry point (NULL), returns `result` and does
     * nothing else; 0 disarms. Calls that put things back (cuCtxPopCurrent, restoring the capture
     * mode) and those that name errors never fail. `fired` says whether it happened, `disarm`
     * forgets it. */
    void (*inject)(const char *name, int nth, CUresult result);
    const char *(*fired)(void);

    /* A context that the "application" owns, and what is current on this thread. */
    CUcontext (*context_create)(int device);
    void (*context_destroy)(CUcontext context);
    CUcontext (*current)(void);
    int (*depth)(void);
    void (*set_current)(CUcontext context); /* NULL: none */

    CUstream (*stream_create)(CUcontext context);
    void (*stream_destroy)(CUstream stream);

    /* Captures in the strictest mode: work that belongs to no stream ends the capture, whichever
     * thread does it, unless that thread has asked to be let off. `end` returns the number of
     * kernels captured, -1 if the capture was ended by something illegal. */
    void (*capture_begin)(CUstream stream);
    int (*capture_end)(CUstream stream);
    int (*capture_mode)(void); /* of this thread: 0 global, 2 relaxed */

    /* Objects that exist: modules, created streams, events, memories, primary contexts retained. */
    int (*live)(void);
    struct fake_cuda_launch (*last_launch)(void);
};

#endif
