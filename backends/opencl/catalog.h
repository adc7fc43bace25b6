/* The OpenCL backend's catalogue: its kernel rows, and where each row's code comes from. */
#ifndef LATTN_OPENCL_CATALOG_H
#define LATTN_OPENCL_CATALOG_H

#include "core/catalog.h"

/* What lattn_kernel_row.program points to. Rows that share a program point to the same one, which
 * is then built once for a device. */
struct lattn_opencl_program {
    const char *source;  /* OpenCL C, complete: nothing is included from outside */
    const char *options; /* for clBuildProgram, "-cl-std=..." among them; never
                            -cl-fast-relaxed-math or -cl-finite-math-only, which lose NaN */
};

/* lattn_kernel_row.features of this backend. */
#define LATTN_OPENCL_FEATURE_CPU 1u /* a CPU whose driver keeps explicit vectors */

/* A kernel takes the LATTN_MEM_COUNT memories as global pointers, then struct lattn_args by value,
 * then, in a row whose `shared` is not 0, a local pointer to that many bytes. */
extern const struct lattn_kernel_row lattn_opencl_rows[];
enum { lattn_opencl_row_count = 48 };

#endif
