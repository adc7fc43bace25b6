#include "fake_books.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NAMES 64

struct fake_books fake_books = {.lock = PTHREAD_MUTEX_INITIALIZER};
_Thread_local struct fake_thread fake_thread;

static struct CUstream_st *captures;

static struct {
    char name[40];
    int calls;
} counts[MAX_NAMES];

static struct {
    const char *name;
    int left;
    CUresult result;
    char fired[40];
} fault;

/* ---- for the driver's entry points ----------------------------------------------------------- */

CUcontext fake_current(void)
{
    return fake_thread.depth ? fake_thread.stack[fake_thread.depth - 1] : NULL;
}

/* Counts a call; what it must return at once, if anything. */
CUresult fake_arrive(const char *name, bool can_fail)
{
    pthread_mutex_lock(&fake_books.lock);
    CUresult result = CUDA_SUCCESS;
    int i = 0;
    while (i < MAX_NAMES - 1 && counts[i].name[0] && strcmp(counts[i].name, name))
        i++;
    snprintf(counts[i].name, sizeof(counts[i].name), "%s", name);
    counts[i].calls++;
    if (can_fail && fault.left > 0 && (!fault.name || !strcmp(fault.name, name)) &&
        --fault.left == 0) {
        snprintf(fault.fired, sizeof(fault.fired), "%s", name);
        result = fault.result;
    }
    pthread_mutex_unlock(&fake_books.lock);
    return result;
}

CUresult fake_need_init(const char *name)
{
    CUresult result = fake_arrive(name, true);
    if (!result && fake_books.initialised != getpid())
        result = CUDA_ERROR_NOT_INITIALIZED;
    return result;
}

CUresult fake_need_context(const char *name)
{
    CUresult result = fake_need_init(name);
    if (!result && (!fake_current() || !fake_current()->alive))
        result = ERROR_INVALID_CONTEXT;
    return result;
}

/* What belongs to no stream ends every capture, unless the thread is let off. */
CUresult fake_need_setup(const char *name)
{
    CUresult result = fake_need_context(name);
    if (result || fake_thread.capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return result;
    pthread_mutex_lock(&fake_books.lock);
    for (struct CUstream_st *stream = captures; stream; stream = stream->next) {
        stream->invalid = true;
        result = ERROR_CAPTURE_UNSUPPORTED;
    }
    pthread_mutex_unlock(&fake_books.lock);
    return result;
}

CUresult fake_need_stream(const char *name, CUstream *stream)
{
    CUresult result = fake_need_context(name);
    if (result)
        return result;
    CUcontext context = fake_current();
    if (!*stream) {
        context->null_stream.context = context;
        *stream = &context->null_stream;
    }
    return (*stream)->context == context ? CUDA_SUCCESS : ERROR_INVALID_HANDLE;
}

/* Waiting for a stream under capture ends the capture. */
CUresult fake_need_wait(const char *name, CUstream stream)
{
    CUresult result = fake_need_stream(name, &stream);
    if (!result && stream->capturing) {
        stream->invalid = true;
        result = ERROR_CAPTURE_UNSUPPORTED;
    }
    return result;
}

struct object {
    struct object *next;
    void *unused; /* keeps what follows aligned */
};

static struct object *objects;

void *fake_make(size_t size)
{
    struct object *object = calloc(1, sizeof(*object) + size);
    pthread_mutex_lock(&fake_books.lock);
    object->next = objects;
    objects = object;
    fake_books.live++;
    pthread_mutex_unlock(&fake_books.lock);
    return object + 1;
}

void fake_destroy(void *body)
{
    struct object *object = (struct object *)body - 1;
    pthread_mutex_lock(&fake_books.lock);
    struct object **at = &objects;
    while (*at != object)
        at = &(*at)->next;
    *at = object->next;
    fake_books.live--;
    pthread_mutex_unlock(&fake_books.lock);
    free(object);
}

/* ---- for tests ------------------------------------------------------------------------------ */

static int calls(const char *name)
{
    int sum = 0;
    pthread_mutex_lock(&fake_books.lock);
    for (int i = 0; i < MAX_NAMES && counts[i].name[0]; i++)
        sum += !name || !strcmp(name, counts[i].name) ? counts[i].calls : 0;
    pthread_mutex_unlock(&fake_books.lock);
    return sum;
}

static void forget(void)
{
    pthread_mutex_lock(&fake_books.lock);
    memset(counts, 0, sizeof(counts));
    pthread_mutex_unlock(&fake_books.lock);
}

static void inject(const char *name, int nth, CUresult result)
{
    pthread_mutex_lock(&fake_books.lock);
    memset(&fault, 0, sizeof(fault));
    fault.name = name;
    fault.left = nth;
    fault.result = result;
    pthread_mutex_unlock(&fake_books.lock);
}

static const char *fired(void)
{
    return fault.fired[0] ? fault.fired : NULL;
}

static CUcontext context_create(int device)
{
    CUcontext context = calloc(1, sizeof(*context));
    context->device = device;
    context->alive = true;
    return context;
}

static void context_destroy(CUcontext context)
{
    free(context);
}

static int current_depth(void)
{
    return fake_thread.depth;
}

static void set_current(CUcontext context)
{
    fake_thread.depth = context ? 1 : 0;
    fake_thread.stack[0] = context;
}

static CUstream stream_create(CUcontext context)
{
    CUstream stream = calloc(1, sizeof(*stream));
    stream->context = context;
    return stream;
}

static void stream_destroy(CUstream stream)
{
    free(stream);
}

static void capture_begin(CUstream stream)
{
    pthread_mutex_lock(&fake_books.lock);
    stream->capturing = true;
    stream->invalid = false;
    stream->kernels = 0;
    stream->next = captures;
    captures = stream;
    pthread_mutex_unlock(&fake_books.lock);
}

static int capture_end(CUstream stream)
{
    pthread_mutex_lock(&fake_books.lock);
    struct CUstream_st **at = &captures;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    stream->capturing = false;
    pthread_mutex_unlock(&fake_books.lock);
    return stream->invalid ? -1 : stream->kernels;
}

static int thread_capture_mode(void)
{
    return fake_thread.capture_mode;
}

static int live(void)
{
    return fake_books.live;
}

static struct fake_cuda_launch last_launch(void)
{
    return fake_books.launch;
}

__attribute__((visibility("default"))) extern const struct fake_cuda fake_cuda;
const struct fake_cuda fake_cuda = {
    .calls = calls,
    .forget = forget,
    .inject = inject,
    .fired = fired,
    .context_create = context_create,
    .context_destroy = context_destroy,
    .current = fake_current,
    .depth = current_depth,
    .set_current = set_current,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_mode = thread_capture_mode,
    .live = live,
    .last_launch = last_launch,
};
