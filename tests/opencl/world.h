/* What the tests of the OpenCL backend's host code share: a world that counts what it lends, and a
 * session that does everything a backend does. */
#ifndef LATTN_TESTS_OPENCL_WORLD_H
#define LATTN_TESTS_OPENCL_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "allocator.h"
#include "backends/opencl/catalog.h"
#include "core/backend.h"
#include "fake_opencl.h"

extern const struct lattn_backend lattn_backend_opencl;

/* Rows over the fake driver. */
enum opencl_row { OPENCL_FIRST, OPENCL_SECOND, OPENCL_BROKEN, OPENCL_THIRD, OPENCL_ROWS };
extern const struct lattn_kernel_row opencl_rows[OPENCL_ROWS];

struct opencl_world {
    struct allocator allocator;
    atomic_int log_lines;
    double milliseconds; /* that the last session measured */
    char cache[64];      /* its folder; "" for none */
    struct lattn_env env;
};

void opencl_world_start(struct opencl_world *world, bool cached);

/* Checks that nothing lives on and that no rule of OpenCL was broken; removes the cache. */
void opencl_world_end(struct opencl_world *world);

/* Paths of the files in the cache folder; returns how many there are, `room` at most. */
typedef char opencl_path[320];
int opencl_list_cache(const struct opencl_world *world, opencl_path *paths, int room);

/* Runs `scenario` in a process of its own and returns its exit status. */
int opencl_in_child(void (*scenario)(void));

/* The fake's device that has number 0, once it has been probed. */
struct _cl_device_id *opencl_device_0(void);

/* Probes, and opens a device. */
void *opencl_open(struct opencl_world *world, int32_t ordinal, struct lattn_caps *caps);

/* Probes, opens device 0, copies, fills, loads, launches, times, and closes all of it. Returns the
 * first failure. */
lattn_status opencl_session(struct opencl_world *world);

#endif
