/* Device time of work that is put on a stream again and again. */
#ifndef LATTN_TOOLS_TIMING_H
#define LATTN_TOOLS_TIMING_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stdint.h>

/* Puts the work on the stream; `turn` counts from 0 over all calls. */
typedef lattn_status (*timing_work_fn)(void *user, uint64_t turn);

/* What keeps a device busy while the host puts the turns of a sample on its queue: copies of memory
 * that is there for nothing else. The turns then follow one another as fast as the device can take
 * them, however slow the host is to launch them. */
struct timing_gate {
    void *base;          /* NULL: no gate */
    uint64_t bytes;      /* read and written by one copy */
    double milliseconds; /* that one copy takes */
};

struct timing {
    double milliseconds; /* of one turn: the median of the samples */
    double spread;       /* distance of their quartiles, as a part of the median */
    int samples;
    int64_t turns; /* in a sample: many where one is short */
    bool gapless;  /* every sample was on the queue before its first turn could begin */
};

/* Takes samples for about `seconds`. `gate` may be NULL. */
lattn_status timing_measure(lattn_stream *stream, timing_work_fn work, void *user, double seconds,
                            const struct timing_gate *gate, struct timing *timing);

#endif
