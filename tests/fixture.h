/* One suite, run on every device: what a test gets, and how tests are run on all devices there are.
 *
 *  LATTN_TEST_BACKEND=a,b  only devices of these backends
 *  LATTN_TEST_REQUIRE=a,b  a backend of these without a device is a failure, not a skip
 *  LATTN_TEST_QUICK=1      only small cases, for interpreters and memory checkers
 *  LATTN_TEST_SLOW=1       also the large cases
 *  LATTN_TEST_SEED=n       repeats the random inputs of an earlier run
 *
 * The program's first argument, if any, is a pattern ("*fused*") of the tests to run. */
#ifndef LATTN_TESTS_FIXTURE_H
#define LATTN_TESTS_FIXTURE_H

#include "allocator.h"

#include <lattn/lattn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum test_effort { TEST_QUICK, TEST_NORMAL, TEST_SLOW };

/* Tests that ask for more are left out. */
enum test_effort test_effort(void);

struct fixture {
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
    lattn_device_info info;
    struct allocator allocator; /* the context's */
};

struct device_test {
    const char *name;
    void (*run)(struct fixture *fixture, const void *data);
    const void *data;
    enum test_effort effort;
};

/* Runs the tests on every device. Returns how many failed: main's exit status. */
int run_on_devices(const char *suite, const struct device_test *tests, size_t count, int argc,
                   char **argv);

/* How the suite makes its context: context.c calls lattn_context_create; a program that links
 * rows.c and the inside of the library chooses among the kernels. */
lattn_status fixture_create_context(const lattn_context_params *params, lattn_context **context);

/* Fails the test, showing the library's message, unless `status` is LATTN_OK. */
#define assert_ok(status) check_ok(status, #status, __FILE__, __LINE__)
void check_ok(lattn_status status, const char *call, const char *file, int line);

#endif
