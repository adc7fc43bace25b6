/* Lists the rows of the HIP catalogue for check_code.py: entry, threads, bytes of group memory. */
#include <stdio.h>

#include "backends/hip/backend.h"

extern const struct lattn_backend lattn_backend_hip;

int main(void)
{
    for (uint32_t i = 0; i < lattn_backend_hip.row_count; i++) {
        const struct lattn_kernel_row *row = &lattn_backend_hip.rows[i];
        printf("%s %u %u\n", row->entry, (unsigned)row->threads, (unsigned)row->shared_total);
    }
    return 0;
}
