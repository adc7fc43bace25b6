/* A CUDA stream and what goes on it. */
#ifndef LATTN_CUDA_STREAM_H
#define LATTN_CUDA_STREAM_H

#include "device.h"

struct lattn_cuda_stream {
    struct lattn_cuda_device *device;
    CUstream native;
    bool created;       /* by the backend; else the caller's */
    CUevent start, end; /* made by the first measurement */
};

/* The vtable's functions; their contracts are core/backend.h's. */
lattn_status lattn_cuda_stream_open(void *device, bool adopt, void *native, void **stream);
void lattn_cuda_stream_close(void *stream);
lattn_status lattn_cuda_synchronize(void *stream);
lattn_status lattn_cuda_copy(void *stream, const struct lattn_copy *copy);
lattn_status lattn_cuda_fill(void *stream, void *base, uint64_t offset, uint8_t value,
                             uint64_t bytes);
lattn_status lattn_cuda_launch(void *stream, void *kernel, const struct lattn_launch *launch);
lattn_status lattn_cuda_time_begin(void *stream);
lattn_status lattn_cuda_time_end(void *stream, double *milliseconds);

#endif
