#include "timing.h"

#include <stdlib.h>

#define MAX_SAMPLES 31
#define MIN_SAMPLES 5
#define MAX_TURNS 2000
/* A sample shorter than this would measure the clock. */
#define SAMPLE_MILLISECONDS 2.0

static lattn_status take_sample(lattn_stream *stream, timing_work_fn work, void *user,
                                uint64_t *turn, int64_t turns, double *milliseconds)
{
    lattn_status status = lattn_stream_time_begin(stream);
    if (status != LATTN_OK)
        return status;
    lattn_status worked = LATTN_OK;
    for (int64_t i = 0; i < turns && worked == LATTN_OK; i++)
        worked = work(user, (*turn)++);
    if (worked != LATTN_OK)
        return worked;
    status = lattn_stream_time_end(stream, milliseconds);
    *milliseconds /= (double)turns;
    return status;
}

static int ascending(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

lattn_status timing_measure(lattn_stream *stream, timing_work_fn work, void *user, double seconds,
                            struct timing *timing)
{
    double samples[MAX_SAMPLES], first;
    uint64_t turn = 0;
    /* The first turn pays for what is only paid once. */
    lattn_status status = take_sample(stream, work, user, &turn, 1, &first);
    if (status == LATTN_OK)
        status = take_sample(stream, work, user, &turn, 1, &first);
    if (status != LATTN_OK)
        return status;
    double turns = first > 0 ? SAMPLE_MILLISECONDS / first + 1 : MAX_TURNS;
    timing->turns = turns < MAX_TURNS ? (int64_t)turns : MAX_TURNS;
    double count = first > 0 ? seconds * 1e3 / (first * (double)timing->turns) : MAX_SAMPLES;
    timing->samples = count < MAX_SAMPLES ? (int)count : MAX_SAMPLES;
    if (timing->samples < MIN_SAMPLES)
        timing->samples = MIN_SAMPLES;
    for (int i = 0; i < timing->samples && status == LATTN_OK; i++)
        status = take_sample(stream, work, user, &turn, timing->turns, &samples[i]);
    if (status != LATTN_OK)
        return status;
    qsort(samples, (size_t)timing->samples, sizeof(*samples), ascending);
    timing->milliseconds = samples[timing->samples / 2];
    timing->spread =
        (samples[timing->samples * 3 / 4] - samples[timing->samples / 4]) / timing->milliseconds;
    return LATTN_OK;
}
