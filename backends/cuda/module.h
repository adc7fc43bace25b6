/* Device code: images of the catalogue, loaded into a context once, and kernels in them. */
#ifndef LATTN_CUDA_MODULE_H
#define LATTN_CUDA_MODULE_H

#include "device.h"

/* The vtable's load: a kernel is a CUfunction. */
lattn_status lattn_cuda_load(void *stream, const struct lattn_kernel_row *row, void **kernel);

/* Inside enter and leave. */
void lattn_cuda_unload_all(struct lattn_cuda_device *device);

#endif
