/* The CUDA backend's vtable, around a catalogue (an array of struct lattn_kernel_row). */
#ifndef LATTN_CUDA_BACKEND_H
#define LATTN_CUDA_BACKEND_H

#include "device.h"

#define LATTN_CUDA_BACKEND(catalog)                                                                \
    LATTN_DRIVER_BACKEND("cuda", catalog, lattn_cuda_probe, lattn_cuda_open, lattn_cuda_close)

#endif
