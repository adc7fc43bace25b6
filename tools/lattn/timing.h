/* Device time of work that is put on a stream again and again. */
#ifndef LATTN_TOOLS_TIMING_H
#define LATTN_TOOLS_TIMING_H

#include <lattn/lattn.h>
#include <stdint.h>

/* Puts the work on the stream; `turn` counts from 0 over all calls. */
typedef lattn_status (*timing_work_fn)(void *user, uint64_t turn);

struct timing {
    double milliseconds; /* of one turn: the median of the samples */
    double spread;       /* distance of their quartiles, as a part of the median */
    int samples;
    int64_t turns; /* in a sample: many where one is short */
};

/* Takes samples for about `seconds`. */
lattn_status timing_measure(lattn_stream *stream, timing_work_fn work, void *user, double seconds,
                            struct timing *timing);

#endif
