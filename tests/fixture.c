#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

static struct fixture fixture;
static int32_t fixture_index;

static bool flag_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value && strcmp(value, "0") != 0;
}

enum test_effort test_effort(void)
{
    return flag_set("LATTN_TEST_QUICK")  ? TEST_QUICK
           : flag_set("LATTN_TEST_SLOW") ? TEST_SLOW
                                         : TEST_NORMAL;
}

/* Is `word` one of a comma-separated list? */
static bool listed(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (; list; list = strchr(list, ',')) {
        list += *list == ',';
        if (strncmp(list, word, length) == 0 && (list[length] == ',' || !list[length]))
            return true;
    }
    return false;
}

void check_ok(lattn_status status, const char *call, const char *file, int line)
{
    if (status == LATTN_OK)
        return;
    print_error("%s\n    %s: %s\n", call, lattn_status_name(status), lattn_error_message());
    _fail(file, line);
}

static int open_device(void **state)
{
    (void)state;
    if (lattn_device_open(fixture.context, fixture_index, &fixture.device) == LATTN_OK &&
        lattn_stream_create(fixture.device, &fixture.stream) == LATTN_OK)
        return 0;
    print_error("cannot open it: %s\n", lattn_error_message());
    return -1;
}

static int close_device(void **state)
{
    (void)state;
    lattn_stream_destroy(fixture.stream);
    lattn_device_close(fixture.device);
    fixture.stream = NULL;
    fixture.device = NULL;
    return 0;
}

static void run_device_test(void **state)
{
    const struct device_test *test = *state;
    test->run(&fixture, test->data);
}

static int run_on(int32_t index, const char *suite, const struct device_test *tests, size_t count)
{
    char title[256];
    snprintf(title, sizeof(title), "%s on %s %d: %s", suite, fixture.info.backend,
             (int)fixture.info.ordinal, fixture.info.name);
    struct CMUnitTest *list = calloc(count, sizeof(*list));
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++)
        if (tests[i].effort <= test_effort())
            list[chosen++] =
                (struct CMUnitTest){tests[i].name, run_device_test, NULL, NULL, (void *)&tests[i]};
    fixture_index = index;
    print_message("---- %s\n", title);
    int failed = _cmocka_run_group_tests(title, list, chosen, open_device, close_device);
    free(list);
    return failed;
}

static void absent(void **state)
{
    const char *reason = *state;
    print_message("%s\n", reason);
    skip();
}

static void absent_and_required(void **state)
{
    fail_msg("%s, and LATTN_TEST_REQUIRE names it", (const char *)*state);
}

/* A backend without a device that opens: one test, skipped or failed. */
static int report_absent(const char *backend, const char *reason)
{
    char text[512];
    snprintf(text, sizeof(text), "no %s device: %s", backend, reason);
    bool required = listed(getenv("LATTN_TEST_REQUIRE"), backend);
    const struct CMUnitTest list[] = {
        {backend, required ? absent_and_required : absent, NULL, NULL, text}};
    return _cmocka_run_group_tests("devices", list, 1, NULL, NULL);
}

static void nothing_left(void **state)
{
    (void)state;
    assert_int_equal(atomic_load(&fixture.allocator.live), 0);
}

int run_on_devices(const char *suite, const struct device_test *tests, size_t count, int argc,
                   char **argv)
{
    static const char *const known[] = {"cuda", "hip", "opencl", "reference"};
    const char *only = getenv("LATTN_TEST_BACKEND");
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    params.allocator = allocator_params(&fixture.allocator);
    params.backends = only;
    print_message("seed %llu (LATTN_TEST_SEED)\n", (unsigned long long)random_run_seed());
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (fixture_create_context(&params, &fixture.context) != LATTN_OK) {
        print_error("lattn_context_create: %s\n", lattn_error_message());
        return 1;
    }

    int failed = 0;
    int32_t devices = lattn_device_count(fixture.context);
    for (size_t b = 0; b < sizeof(known) / sizeof(*known); b++) {
        bool found = false;
        char reason[256] = "none was found";
        if (only && !listed(only, known[b]))
            continue;
        for (int32_t i = 0; i < devices; i++) {
            fixture.info = (lattn_device_info)LATTN_DEVICE_INFO_INIT;
            if (lattn_device_info_get(fixture.context, i, &fixture.info) != LATTN_OK ||
                strcmp(fixture.info.backend, known[b]) != 0)
                continue;
            if (fixture.info.status == LATTN_OK) {
                found = true;
                failed += run_on(i, suite, tests, count);
            } else {
                snprintf(reason, sizeof(reason), "%s", fixture.info.reason);
            }
        }
        if (!found)
            failed += report_absent(known[b], reason);
    }
    lattn_context_destroy(fixture.context);
    const struct CMUnitTest leaks[] = {cmocka_unit_test(nothing_left)};
    if (failed) /* a failed test leaves its things behind */
        return failed;
    return _cmocka_run_group_tests("host memory", leaks, 1, NULL, NULL);
}
