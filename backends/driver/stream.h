/* A stream and what goes on it. */
#ifndef LATTN_DRIVER_STREAM_H
#define LATTN_DRIVER_STREAM_H

#include "driver.h"

struct lattn_driver_stream {
    struct lattn_driver_device *device;
    void *native;
    bool created;      /* by the backend; else the caller's */
    void *start, *end; /* events, made by the first measurement */
};

#endif
