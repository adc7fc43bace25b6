#include "catalog.h"

#include "catalog_cpu.h"
#include "catalog_portable.h"

/* Best first: rows for one kind of device before those for all. */
const struct lattn_kernel_row lattn_opencl_rows[] = {
    LATTN_OPENCL_CPU_ROWS,
    LATTN_OPENCL_PORTABLE_ROWS,
};
_Static_assert(sizeof(lattn_opencl_rows) / sizeof(lattn_opencl_rows[0]) == lattn_opencl_row_count,
               "catalog.h says how many rows there are");
