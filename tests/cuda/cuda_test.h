/* The CUDA backend's host code against the stand-in driver: what its cases share. */
#ifndef LATTN_CUDA_TEST_H
#define LATTN_CUDA_TEST_H

#include <lattn/lattn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/backend.h"
#include "fake_cuda.h"

/* The backend under test, around a catalogue of our own. */
enum { ROW_SMALL, ROW_LARGE, ROW_ABSENT, ROW_WIDE };
extern const struct lattn_kernel_row rows[];
extern const struct lattn_backend cuda;
extern const struct lattn_env env;

/* Allocations before the host allocator fails on this thread; < 0: never. */
extern _Thread_local int allocations_left;
extern char log_text[2048];

/* The stand-in driver, once meet_driver has opened it. */
extern const struct fake_cuda *fake;
void meet_driver(void);

#define assert_status(expected, call)                                                              \
    do {                                                                                           \
        const lattn_status status_ = (call);                                                       \
        if (status_ != (expected))                                                                 \
            fail_msg("%s: %s, not %s (%s)", #call, lattn_status_name(status_),                     \
                     lattn_status_name(expected), lattn_error_message());                          \
    } while (0)

#define assert_message(part)                                                                       \
    do {                                                                                           \
        if (!strstr(lattn_error_message(), part))                                                  \
            fail_msg("\"%s\" is not in \"%s\"", part, lattn_error_message());                      \
    } while (0)

struct list {
    int count;
    lattn_device_info info[8];
    int32_t rank[8];
};
lattn_status list_add(void *user, const lattn_device_info *info, int32_t rank);
struct list probe(void);

lattn_status open_ordinal(int32_t ordinal, void **device);
lattn_status adopt(CUcontext context, void **device);

/* A device on the application's context, with its stream, a kernel and 64 bytes of memory. */
struct scene {
    CUcontext context;
    CUstream native;
    void *device, *stream, *kernel, *base;
    int live; /* objects before it */
};
void scene_begin(struct scene *scene);
void scene_end(struct scene *scene);

/* Each service of the backend once, as a step on a scene. */
struct step {
    const char *name;
    lattn_status (*run)(struct scene *scene);
    bool waits;  /* which a capture forbids */
    bool closes; /* what it made */
    bool keeps;  /* what it made, also when a later part of it fails */
};
extern const struct step steps[];
extern const size_t step_count;
lattn_status step_probe(struct scene *scene);
lattn_status step_launch(struct scene *scene);

/* Runs a step, which must leave the thread as it found it. */
lattn_status run_step(struct scene *scene, size_t i, CUcontext before);

/* The cases, each run in a process of its own. */
void no_driver(void);
void no_device(void);
void listing(void);
void caps(void);
void driver_too_old(void);
void entry_point_missing(void);
void code_choice(void);
void image_without_code(void);
void image_too_new(void);
void context_balance(void);
void host_memory(void);
void on_fresh_thread(void);
void foreign_stream(void);
void data(void);
void launch_call(void);
void kernels(void);
void old_function_load(void);
void threads(void);
void capture(void);
void fork_after_load(void);
void fork_after_init(void);

#endif
