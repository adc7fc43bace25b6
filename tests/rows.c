/* The suite without some kernels, so that those behind them are tested on this device too:
 * LATTN_TEST_WITHOUT=a,b leaves out catalogue rows whose entry contains a or b. */
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "fixture.h"

enum { MOST_BACKENDS = 8, MOST_ROWS = 256 };

/* Views of the backends in this build, with the rows that are left. */
static struct lattn_backend views[MOST_BACKENDS];
static struct lattn_kernel_row rows[MOST_BACKENDS][MOST_ROWS];

static bool left_out(const char *entry)
{
    for (const char *list = getenv("LATTN_TEST_WITHOUT"); list && *list;) {
        char part[64] = "";
        size_t length = strcspn(list, ",");
        assert_true(length < sizeof(part));
        memcpy(part, list, length);
        if (length && strstr(entry, part))
            return true;
        list += length + (list[length] == ',');
    }
    return false;
}

lattn_status fixture_create_context(const lattn_context_params *params, lattn_context **context)
{
    const struct lattn_backend *list[MOST_BACKENDS];
    uint32_t all = 0, left = 0;
    assert_true(lattn_backend_count <= MOST_BACKENDS);
    for (uint32_t i = 0; i < lattn_backend_count; i++) {
        assert_true(lattn_backends[i]->row_count <= MOST_ROWS);
        views[i] = *lattn_backends[i];
        views[i].rows = rows[i];
        views[i].row_count = 0;
        for (uint32_t j = 0; j < lattn_backends[i]->row_count; j++)
            if (!left_out(lattn_backends[i]->rows[j].entry))
                rows[i][views[i].row_count++] = lattn_backends[i]->rows[j];
        all += lattn_backends[i]->row_count;
        left += views[i].row_count;
        list[i] = &views[i];
    }
    print_message("%u of %u kernel rows\n", left, all);
    return lattn_context_create_with(list, lattn_backend_count, params, context);
}
