#include "timing.h"

#include <stdlib.h>
#include <time.h>

#define MAX_SAMPLES 31
#define MIN_SAMPLES 5
/* A sample shorter than this would measure the clock. */
#define SAMPLE_MILLISECONDS 2.0
#define MAX_TURNS 2000
/* Behind a gate, all turns must fit into the driver's queue (some hundreds of launches). */
#define MAX_GATED_TURNS 128
#define MAX_GATE_COPIES 256
#define GATE_TRIES 4

struct measurement {
    lattn_stream *stream;
    timing_work_fn work;
    void *user;
    const struct timing_gate *gate;
    uint64_t turn;
    double hold; /* milliseconds for which the gate keeps the device busy */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static lattn_status close_gate(const struct measurement *m)
{
    const uint64_t half = m->gate->bytes / 2;
    lattn_status status = LATTN_OK;
    for (double held = 0; held < m->hold && status == LATTN_OK; held += m->gate->milliseconds)
        status = lattn_memory_copy(m->stream, m->gate->base, half, m->gate->base, 0, half);
    return status;
}

/* `queued`: what the host took to put it all on the queue. */
static lattn_status take_sample(struct measurement *m, int64_t turns, double *milliseconds,
                                double *queued)
{
    const double start = now();
    lattn_status status = close_gate(m);
    if (status == LATTN_OK)
        status = lattn_stream_time_begin(m->stream);
    for (int64_t i = 0; i < turns && status == LATTN_OK; i++)
        status = m->work(m->user, m->turn++);
    if (status != LATTN_OK)
        return status;
    *queued = now() - start;
    status = lattn_stream_time_end(m->stream, milliseconds);
    *milliseconds /= (double)turns;
    return status;
}

/* Samples again with a gate that holds longer, if this one opened too early. */
static lattn_status take_gated(struct measurement *m, int64_t turns, double *milliseconds,
                               bool *gapless)
{
    const double most = m->gate->milliseconds * MAX_GATE_COPIES;
    bool held = false;
    lattn_status status = LATTN_OK;
    for (int i = 0; i < GATE_TRIES && !held && status == LATTN_OK; i++) {
        double queued;
        status = take_sample(m, turns, milliseconds, &queued);
        held = queued < m->hold;
        if (!held)
            m->hold = 1.5 * queued < most ? 1.5 * queued : most;
    }
    *gapless = *gapless && held;
    return status;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

lattn_status timing_measure(lattn_stream *stream, timing_work_fn work, void *user, double seconds,
                            const struct timing_gate *gate, struct timing *timing)
{
    static const struct timing_gate none = {0};
    struct measurement m = {stream, work, user, gate ? gate : &none, 0, 0};
    const bool gated = m.gate->base != NULL;
    const double most = gated ? MAX_GATED_TURNS : MAX_TURNS;
    double samples[MAX_SAMPLES], first, queued;
    /* The first turn pays for what is only paid once. */
    lattn_status status = take_sample(&m, 1, &first, &queued);
    if (status == LATTN_OK)
        status = take_sample(&m, 1, &first, &queued);
    if (status != LATTN_OK)
        return status;
    double turns = first > 0 ? SAMPLE_MILLISECONDS / first + 1 : most;
    timing->turns = (int64_t)(turns < most ? turns : most);
    double count = first > 0 ? seconds * 1e3 / (first * (double)timing->turns) : MAX_SAMPLES;
    timing->samples = count < MAX_SAMPLES ? (int)count : MAX_SAMPLES;
    if (timing->samples < MIN_SAMPLES)
        timing->samples = MIN_SAMPLES;
    timing->gapless = gated;
    for (int i = 0; i < timing->samples && status == LATTN_OK; i++) {
        if (gated)
            status = take_gated(&m, timing->turns, &samples[i], &timing->gapless);
        else
            status = take_sample(&m, timing->turns, &samples[i], &queued);
    }
    if (status != LATTN_OK)
        return status;
    qsort(samples, (size_t)timing->samples, sizeof(*samples), ascending);
    timing->milliseconds = samples[timing->samples / 2];
    timing->spread =
        (samples[timing->samples * 3 / 4] - samples[timing->samples / 4]) / timing->milliseconds;
    return LATTN_OK;
}
