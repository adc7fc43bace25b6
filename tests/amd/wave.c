/* Fibers are made by makecontext and switched by _setjmp and _longjmp, which save no signal mask
 * and so cost some nanoseconds. */
#undef _POSIX_C_SOURCE
#define _GNU_SOURCE
#include "wave.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_BYTES (256 * 1024)

struct lane {
    jmp_buf at;
    bool started, waiting, done;
    const char *what; /* that it waits for */
    const void *input;
    void *output;
};

static struct lane lanes[AMD_MAX_THREADS];
static char *stacks;
static jmp_buf home;
static int current, count, wave_size, at_barrier, finished;
static int arrived[AMD_MAX_THREADS]; /* by wave */
static long long group_number;
static void (*group_body)(void *context);
static void *group_context;

void amd_die(const char *what)
{
    fprintf(stderr, "emulated group %lld, thread %d of %d: %s\n", group_number, current, count,
            what);
    for (int i = 0; i < count; i++)
        if (lanes[i].waiting &&
            (i == 0 || !lanes[i - 1].waiting || lanes[i].what != lanes[i - 1].what))
            fprintf(stderr, "  thread %d and on wait for %s\n", i, lanes[i].what);
    abort();
}

static void enter(int next);

/* The next lane that can go on; the current one if none can. */
static int next_lane(void)
{
    for (int i = 1; i < count; i++) {
        const int next = current + i < count ? current + i : current + i - count;
        if (!lanes[next].done && !lanes[next].waiting)
            return next;
    }
    return current;
}

/* A fiber runs the bodies of one lane of group after group. */
static void fiber(void)
{
    for (;;) {
        group_body(group_context);
        lanes[current].done = true;
        finished++;
        if (finished < count && next_lane() == current)
            amd_die("returned, and the others wait for it");
        if (_setjmp(lanes[current].at) == 0) {
            if (finished == count)
                _longjmp(home, 1);
            enter(next_lane());
        }
    }
}

static void enter(int next)
{
    current = next;
    if (lanes[next].started)
        _longjmp(lanes[next].at, 1);
    lanes[next].started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)next * STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL;
    makecontext(&context, fiber, 0);
    setcontext(&context);
}

/* Lets the others run until this lane waits no more. */
static void wait_for(const char *what)
{
    struct lane *self = &lanes[current];
    self->waiting = true;
    self->what = what;
    if (next_lane() == current)
        amd_die("nobody can go on");
    if (_setjmp(self->at) == 0)
        enter(next_lane());
}

/* Group memory: what kernels have declared, in one section. A group finds no zeros in it, but NaN.
 */
extern char group_memory_begin[] __asm__("__start_lattn_lds") __attribute__((weak));
extern char group_memory_end[] __asm__("__stop_lattn_lds") __attribute__((weak));

void amd_group_run(int threads, int wave, long long group, void (*body)(void *context),
                   void *context)
{
    if (!stacks) {
        stacks = mmap(NULL, (size_t)AMD_MAX_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED)
            abort();
    }
    count = threads;
    wave_size = wave;
    group_number = group;
    group_body = body;
    group_context = context;
    at_barrier = finished = 0;
    for (int i = 0; i < threads; i++) {
        lanes[i].waiting = lanes[i].done = false;
        arrived[i] = 0;
    }
    if (group_memory_begin)
        memset(group_memory_begin, 0xff, (size_t)(group_memory_end - group_memory_begin));
    if (_setjmp(home) == 0)
        enter(0);
}

int amd_thread(void)
{
    return current;
}

long long amd_group(void)
{
    return group_number;
}

int amd_wave_size(void)
{
    return wave_size;
}

void amd_barrier(void)
{
    if (finished)
        amd_die("some threads returned before a barrier");
    if (++at_barrier < count) {
        wait_for("a barrier");
        return;
    }
    at_barrier = 0;
    for (int i = 0; i < count; i++)
        lanes[i].waiting = false;
}

void amd_together(const char *what, amd_combine combine, const void *input, void *output)
{
    const int wave = current / wave_size, first = wave * wave_size;
    const int size = count - first < wave_size ? count - first : wave_size;
    lanes[current].input = input;
    lanes[current].output = output;
    if (++arrived[wave] < size) {
        wait_for(what);
        return;
    }
    arrived[wave] = 0;
    const void *inputs[AMD_MAX_WAVE];
    void *outputs[AMD_MAX_WAVE];
    for (int i = 0; i < size; i++) {
        if (first + i != current && lanes[first + i].what != what)
            amd_die(what);
        inputs[i] = lanes[first + i].input;
        outputs[i] = lanes[first + i].output;
        lanes[first + i].waiting = false;
    }
    combine(size, inputs, outputs);
}
