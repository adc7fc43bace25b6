#include "catalog.h"

#include "catalog_cpu.h"

/* Best first: rows for one kind of device before those for all. */
const struct lattn_kernel_row lattn_opencl_rows[lattn_opencl_row_count] = {
    LATTN_OPENCL_CPU_ROWS,
};
