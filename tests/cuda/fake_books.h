/* The stand-in driver's books: what exists, what is current, what is being captured, and which call
 * is to fail. */
#ifndef LATTN_FAKE_BOOKS_H
#define LATTN_FAKE_BOOKS_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "fake_cuda.h"

#define FAKE_DEVICES 8
#define FAKE_DEPTH 16

/* The driver's codes that only the stand-in names. */
enum {
    ERROR_INVALID_VALUE = 1,
    ERROR_INVALID_DEVICE = 101,
    ERROR_INVALID_CONTEXT = 201,
    ERROR_INVALID_HANDLE = 400,
    ERROR_NOT_FOUND = 500,
    ERROR_CAPTURE_UNSUPPORTED = 900,
};

struct CUstream_st {
    CUcontext context;
    bool capturing, invalid;
    int kernels;
    struct CUstream_st *next; /* in the list of captures */
};

struct CUctx_st {
    int device;
    int retained;
    bool alive;
    struct CUstream_st null_stream;
};

struct CUevent_st {
    CUcontext context;
    bool recorded;
};

struct CUfunc_st {
    CUcontext context;
    int shared;
};

struct CUmod_st {
    struct CUfunc_st function; /* whatever its name */
};

/* Of the process, guarded by `lock`. */
extern struct fake_books {
    pthread_mutex_t lock;
    struct CUctx_st primaries[FAKE_DEVICES];
    int live;
    pid_t initialised; /* the process that called cuInit */
    struct fake_cuda_launch launch;
} fake_books;

/* Of the thread. */
extern _Thread_local struct fake_thread {
    CUcontext stack[FAKE_DEPTH];
    int depth;
    int capture_mode;
} fake_thread;

CUcontext fake_current(void);

/* Each of these counts a call of `name` and returns what it must return at once, if anything: an
 * injected failure, or what the driver says when the call is out of place. */
CUresult fake_arrive(const char *name, bool can_fail);
CUresult fake_need_init(const char *name);
CUresult fake_need_context(const char *name);
CUresult fake_need_setup(const char *name);                    /* belongs to no stream */
CUresult fake_need_stream(const char *name, CUstream *stream); /* 0: the context's own */
CUresult fake_need_wait(const char *name, CUstream stream);

/* Objects that exist, those that failed to be destroyed too. */
void *fake_make(size_t size);
void fake_destroy(void *object);

#endif
