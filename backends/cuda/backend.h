/* The CUDA backend's vtable, around a catalogue (an array of struct lattn_kernel_row). */
#ifndef LATTN_CUDA_BACKEND_H
#define LATTN_CUDA_BACKEND_H

#include "core/backend.h"
#include "device.h"
#include "module.h"
#include "stream.h"

#define LATTN_CUDA_BACKEND(catalog)                                                                \
    {                                                                                              \
        .name = "cuda", .rows = (catalog), .row_count = sizeof(catalog) / sizeof((catalog)[0]),    \
        .probe = lattn_cuda_probe, .open = lattn_cuda_open, .close = lattn_cuda_close,             \
        .alloc = lattn_cuda_alloc, .release = lattn_cuda_release,                                  \
        .stream_open = lattn_cuda_stream_open, .stream_close = lattn_cuda_stream_close,            \
        .synchronize = lattn_cuda_synchronize, .copy = lattn_cuda_copy, .fill = lattn_cuda_fill,   \
        .load = lattn_cuda_load, .launch = lattn_cuda_launch, .time_begin = lattn_cuda_time_begin, \
        .time_end = lattn_cuda_time_end,                                                           \
    }

#endif
