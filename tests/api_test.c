/* The public API's own promises: structs that grow, handles, messages, lists of devices. On the
 * reference device, which is always there. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"

struct api {
    lattn_context *context;
    lattn_device *device;
    lattn_stream *stream;
};

static int open_reference(void **state)
{
    static struct api api;
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    params.backends = "reference";
    *state = &api;
    if (lattn_context_create(&params, &api.context) ||
        lattn_device_open(api.context, 0, &api.device) ||
        lattn_stream_create(api.device, &api.stream))
        return -1;
    return 0;
}

static int close_reference(void **state)
{
    struct api *api = *state;
    lattn_stream_destroy(api->stream);
    lattn_context_destroy(api->context); /* the device keeps what it needs */
    lattn_device_close(api->device);
    return 0;
}

#define assert_status(call, wanted, part) check_status(call, wanted, part, __FILE__, __LINE__)

static void check_status(lattn_status status, lattn_status wanted, const char *part,
                         const char *file, int line)
{
    const char *message = lattn_error_message();
    if (status == wanted && strstr(message, part))
        return;
    print_error("got %s: \"%s\"\n", lattn_status_name(status), message);
    _fail(file, line);
}

#define INVALID LATTN_ERROR_INVALID_ARGUMENT

static void version(void **state)
{
    char wanted[32];
    (void)state;
    snprintf(wanted, sizeof(wanted), "%d.%d.%d", LATTN_VERSION_MAJOR, LATTN_VERSION_MINOR,
             LATTN_VERSION_PATCH);
    assert_string_equal(lattn_version_string(), wanted);
}

static void status_names(void **state)
{
    (void)state;
    assert_string_equal(lattn_status_name(LATTN_OK), "LATTN_OK");
    assert_string_equal(lattn_status_name(LATTN_ERROR_DEVICE), "LATTN_ERROR_DEVICE");
    for (int i = 0; i <= LATTN_ERROR_DEVICE; i++)
        assert_int_equal(strncmp(lattn_status_name((lattn_status)i), "LATTN_", 6), 0);
    assert_non_null(lattn_status_name((lattn_status)-1));
    assert_non_null(lattn_status_name((lattn_status)1000));
}

/* ---- structs that grow ---- */

/* What a caller built against a later header passes. */
struct later_params {
    lattn_prefill_params known;
    int64_t unknown[3];
};

static lattn_prefill_params good_params(void)
{
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.heads = 1;
    params.d = 4;
    return params;
}

static void struct_size_of_zero(void **state)
{
    struct api *api = *state;
    lattn_prefill_params prefill = good_params();
    lattn_decode_params decode = LATTN_DECODE_PARAMS_INIT;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    lattn_native native = {0};
    lattn_context_params context = {0};
    lattn_context *made;
    lattn_device *device;
    uint64_t bytes;
    prefill.struct_size = decode.struct_size = info.struct_size = 0;
    assert_status(lattn_prefill(api->stream, &prefill), INVALID, "struct_size = 0");
    assert_status(lattn_prefill_prepare(api->stream, &prefill), INVALID, "struct_size = 0");
    assert_status(lattn_prefill_workspace(api->stream, &prefill, &bytes), INVALID, "struct_size");
    assert_status(lattn_decode(api->stream, &decode), INVALID, "struct_size = 0");
    assert_status(lattn_device_info_get(api->context, 0, &info), INVALID, "struct_size = 0");
    assert_status(lattn_device_adopt(api->context, &native, &device), INVALID, "struct_size = 0");
    assert_status(lattn_context_create(&context, &made), INVALID, "struct_size = 0");
    assert_null(made);
}

/* A caller built against an earlier header: what its struct lacks is zero, whatever lies there. */
static void struct_size_smaller(void **state)
{
    struct api *api = *state;
    lattn_prefill_params params = good_params();
    params.struct_size = offsetof(lattn_prefill_params, workspace);
    params.workspace.offset = 3; /* a rule broken beyond the end */
    assert_ok(lattn_prefill_prepare(api->stream, &params));
    assert_ok(lattn_prefill(api->stream, &params));
    params.struct_size = sizeof(params);
    assert_status(lattn_prefill(api->stream, &params), INVALID, "workspace.offset = 3");
    /* Too small for d: then d is zero, and that is an error by name. */
    params.struct_size = offsetof(lattn_prefill_params, d);
    assert_status(lattn_prefill_prepare(api->stream, &params), INVALID, "d = 0");

    lattn_device_info info;
    memset(&info, 0x55, sizeof(info));
    info.struct_size = offsetof(lattn_device_info, name);
    assert_ok(lattn_device_info_get(api->context, 0, &info));
    assert_string_equal(info.backend, "reference");
    assert_int_equal(info.struct_size, offsetof(lattn_device_info, name));
    for (size_t i = info.struct_size; i < sizeof(info); i++)
        assert_int_equal(((unsigned char *)&info)[i], 0x55);
}

static void struct_size_larger(void **state)
{
    struct api *api = *state;
    struct later_params later = {.known = good_params()};
    later.known.struct_size = sizeof(later);
    assert_ok(lattn_prefill_prepare(api->stream, &later.known));
    assert_ok(lattn_prefill(api->stream, &later.known));
    later.unknown[2] = 1;
    char size[32];
    snprintf(size, sizeof(size), "struct_size = %zu", sizeof(later));
    assert_status(lattn_prefill(api->stream, &later.known), INVALID, size);
}

/* ---- handles ---- */

static void null_handles(void **state)
{
    struct api *api = *state;
    lattn_prefill_params prefill = good_params();
    lattn_decode_params decode = LATTN_DECODE_PARAMS_INIT;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    lattn_device *device = (lattn_device *)api;
    lattn_stream *stream = (lattn_stream *)api;
    lattn_native native = {sizeof(native), "reference", NULL, NULL, 0};
    void *base = api;
    uint64_t bytes;
    int32_t index;
    double time;
    char text[8];
    assert_status(lattn_context_create(NULL, NULL), INVALID, "context = NULL");
    assert_int_equal(lattn_device_count(NULL), 0);
    assert_status(lattn_device_info_get(NULL, 0, &info), INVALID, "context = NULL");
    assert_status(lattn_device_info_get(api->context, 0, NULL), INVALID, "info = NULL");
    assert_status(lattn_device_find(NULL, NULL, 0, &index), INVALID, "context = NULL");
    assert_status(lattn_device_find(api->context, NULL, 0, NULL), INVALID, "index = NULL");
    assert_status(lattn_device_open(NULL, 0, &device), INVALID, "context = NULL");
    assert_null(device);
    assert_status(lattn_device_open(api->context, 0, NULL), INVALID, "device = NULL");
    assert_status(lattn_device_adopt(NULL, &native, &device), INVALID, "context = NULL");
    assert_status(lattn_device_adopt(api->context, NULL, &device), INVALID, "native = NULL");
    assert_status(lattn_device_adopt(api->context, &native, NULL), INVALID, "device = NULL");
    assert_status(lattn_device_info_of(NULL, &info), INVALID, "device = NULL");
    assert_status(lattn_memory_alloc(NULL, 8, &base), INVALID, "device = NULL");
    assert_null(base);
    assert_status(lattn_memory_alloc(api->device, 8, NULL), INVALID, "base = NULL");
    assert_status(lattn_stream_create(NULL, &stream), INVALID, "device = NULL");
    assert_null(stream);
    assert_status(lattn_stream_create(api->device, NULL), INVALID, "stream = NULL");
    assert_status(lattn_stream_adopt(NULL, NULL, &stream), INVALID, "device = NULL");
    assert_status(lattn_stream_synchronize(NULL), INVALID, "stream = NULL");
    assert_status(lattn_memory_upload(NULL, text, 0, text, 1), INVALID, "stream = NULL");
    assert_status(lattn_memory_download(NULL, text, text, 0, 1), INVALID, "stream = NULL");
    assert_status(lattn_memory_copy(NULL, text, 0, text, 0, 1), INVALID, "stream = NULL");
    assert_status(lattn_memory_fill(NULL, text, 0, 0, 1), INVALID, "stream = NULL");
    assert_status(lattn_memory_upload(api->stream, NULL, 0, text, 1), INVALID, "NULL");
    assert_status(lattn_memory_download(api->stream, NULL, text, 0, 1), INVALID, "NULL");
    assert_status(lattn_memory_copy(api->stream, text, 0, NULL, 0, 1), INVALID, "NULL");
    assert_status(lattn_memory_fill(api->stream, NULL, 0, 0, 1), INVALID, "base = NULL");
    assert_status(lattn_stream_time_begin(NULL), INVALID, "stream = NULL");
    assert_status(lattn_stream_time_end(NULL, &time), INVALID, "stream = NULL");
    assert_status(lattn_prefill_prepare(NULL, &prefill), INVALID, "stream = NULL");
    assert_status(lattn_prefill_prepare(api->stream, NULL), INVALID, "params = NULL");
    assert_status(lattn_prefill(NULL, &prefill), INVALID, "stream = NULL");
    assert_status(lattn_prefill(api->stream, NULL), INVALID, "params = NULL");
    assert_status(lattn_prefill_workspace(NULL, &prefill, &bytes), INVALID, "stream = NULL");
    assert_status(lattn_prefill_workspace(api->stream, &prefill, NULL), INVALID, "bytes = NULL");
    assert_status(lattn_prefill_workspace_bound(NULL, &prefill, &bytes), INVALID, "stream");
    assert_status(lattn_prefill_workspace_bound(api->stream, &prefill, NULL), INVALID, "bytes");
    assert_status(lattn_prefill_describe(NULL, &prefill, text, 8), INVALID, "stream = NULL");
    assert_status(lattn_prefill_describe(api->stream, &prefill, NULL, 8), INVALID, "text = NULL");
    assert_status(lattn_decode_prepare(NULL, &decode), INVALID, "stream = NULL");
    assert_status(lattn_decode(NULL, &decode), INVALID, "stream = NULL");
    assert_status(lattn_decode(api->stream, NULL), INVALID, "params = NULL");
    assert_status(lattn_decode_workspace(api->stream, &decode, NULL), INVALID, "bytes = NULL");
    assert_status(lattn_decode_describe(api->stream, &decode, NULL, 0), INVALID, "text = NULL");
    /* These do nothing. */
    lattn_context_destroy(NULL);
    lattn_device_close(NULL);
    lattn_stream_destroy(NULL);
    lattn_memory_free(NULL, base);
    lattn_memory_free(api->device, NULL);
}

static void contexts(void **state)
{
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    lattn_context *context;
    (void)state;
    params.backends = "reference,abacus";
    assert_status(lattn_context_create(&params, &context), INVALID, "abacus");
    assert_null(context);
    params.backends = NULL;
    params.allocator.alloc = (void *(*)(void *, size_t))(void (*)(void))malloc;
    assert_status(lattn_context_create(&params, &context), INVALID, "allocator.free");
    params.allocator.alloc = NULL;
    params.cache_dir = "";
    char list[] = "reference";
    params.backends = list;
    assert_ok(lattn_context_create(&params, &context));
    memset(list, 'x', 3); /* it was copied */
    int32_t index = -1;
    assert_ok(lattn_device_find(context, "reference", 0, &index));
    assert_int_equal(index, 0);
    assert_int_equal(lattn_device_count(context), 1);
    lattn_context_destroy(context);
    assert_ok(lattn_context_create(NULL, &context));
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    int32_t count = lattn_device_count(context);
    assert_true(count >= 1);
    assert_ok(lattn_device_info_get(context, count - 1, &info)); /* the reference is the last */
    assert_string_equal(info.backend, "reference");
    assert_int_equal(info.status, LATTN_OK);
    assert_true(info.name[0]);
    lattn_context_destroy(context);
}

static void finding_devices(void **state)
{
    struct api *api = *state;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    lattn_device *device;
    int32_t index = 7;
    assert_ok(lattn_device_find(api->context, NULL, 99, &index));
    assert_int_equal(index, 0);
    index = 7;
    assert_ok(lattn_device_find(api->context, "auto", 99, &index));
    assert_int_equal(index, 0);
    assert_status(lattn_device_find(api->context, "reference", 1, &index), LATTN_ERROR_NO_DEVICE,
                  "ordinal = 1");
    assert_status(lattn_device_find(api->context, "abacus", 0, &index), LATTN_ERROR_NO_DEVICE,
                  "abacus");
    assert_status(lattn_device_info_get(api->context, 1, &info), LATTN_ERROR_NO_DEVICE,
                  "index = 1");
    assert_status(lattn_device_info_get(api->context, -1, &info), LATTN_ERROR_NO_DEVICE,
                  "index = -1");
    assert_status(lattn_device_open(api->context, 1, &device), LATTN_ERROR_NO_DEVICE, "index = 1");
    assert_null(device);
    assert_ok(lattn_device_info_of(api->device, &info));
    assert_string_equal(info.backend, "reference");

    lattn_native native = {sizeof(native), "abacus", NULL, NULL, 0};
    assert_status(lattn_device_adopt(api->context, &native, &device), LATTN_ERROR_NO_DEVICE,
                  "abacus");
    native.backend = NULL;
    assert_status(lattn_device_adopt(api->context, &native, &device), INVALID,
                  "native->backend = NULL");
    native.backend = "reference";
    assert_ok(lattn_device_adopt(api->context, &native, &device));
    lattn_device_info adopted = LATTN_DEVICE_INFO_INIT;
    assert_ok(lattn_device_info_of(device, &adopted));
    assert_string_equal(adopted.name, info.name);
    assert_string_equal(adopted.driver, info.driver);
    assert_int_equal(adopted.compute_units, info.compute_units);
    lattn_stream *stream;
    assert_status(lattn_stream_adopt(device, &native, &stream), INVALID, "native = ");
    assert_ok(lattn_stream_adopt(device, NULL, &stream));
    lattn_stream_destroy(stream);
    lattn_device_close(device);
}

static void memory(void **state)
{
    struct api *api = *state;
    void *base = api;
    char in[] = "0123456789", out[11] = "";
    assert_ok(lattn_memory_alloc(api->device, 0, &base));
    assert_null(base);
    lattn_memory_free(api->device, base);
    assert_ok(lattn_memory_alloc(api->device, 32, &base));
    assert_ok(lattn_memory_fill(api->stream, base, 0, 'x', 32));
    assert_ok(lattn_memory_upload(api->stream, base, 3, in, 10));
    assert_ok(lattn_memory_copy(api->stream, base, 20, base, 5, 4));
    assert_ok(lattn_memory_download(api->stream, out, base, 18, 8));
    assert_string_equal(out, "xx2345xx");
    /* Nothing to move is no error, whatever the pointers. */
    assert_ok(lattn_memory_upload(api->stream, NULL, 0, NULL, 0));
    assert_ok(lattn_memory_download(api->stream, NULL, NULL, 0, 0));
    assert_ok(lattn_memory_fill(api->stream, NULL, 0, 0, 0));
    lattn_memory_free(api->device, base);
    /* More than the machine has, which no allocator needs to be asked for. */
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    assert_ok(lattn_device_info_of(api->device, &info));
    assert_true(info.memory > 0);
    assert_status(lattn_memory_alloc(api->device, info.memory + 1, &base),
                  LATTN_ERROR_DEVICE_MEMORY, "largest memory");
    assert_null(base);
    /* More than there can be. */
    lattn_status status = lattn_memory_alloc(api->device, UINT64_MAX / 2, &base);
    assert_true(status == LATTN_ERROR_OUT_OF_MEMORY || status == LATTN_ERROR_DEVICE_MEMORY);
    assert_null(base);
    double time = -1;
    assert_status(lattn_stream_time_end(api->stream, &time), INVALID, "no measurement");
    assert_ok(lattn_stream_time_begin(api->stream));
    assert_ok(lattn_stream_time_end(api->stream, &time));
    assert_true(time >= 0);
    assert_status(lattn_stream_time_end(api->stream, &time), INVALID, "no measurement");
}

/* ---- messages ---- */

static void *first_message(void *unused)
{
    (void)unused;
    return (void *)(lattn_error_message()[0] == '\0' ? "none" : "some");
}

static void messages_are_a_threads_own(void **state)
{
    struct api *api = *state;
    pthread_t thread;
    void *message;
    lattn_prefill_params params = good_params();
    params.d = -77;
    assert_status(lattn_prefill_prepare(api->stream, &params), INVALID, "d = -77");
    assert_int_equal(pthread_create(&thread, NULL, first_message, NULL), 0);
    pthread_join(thread, &message);
    assert_string_equal(message, "none");
    assert_non_null(strstr(lattn_error_message(), "d = -77"));
}

static void descriptions_are_cut(void **state)
{
    struct api *api = *state;
    lattn_prefill_params params = good_params();
    char text[64];
    memset(text, '#', sizeof(text));
    params.batch = params.tokens = 3;
    assert_ok(lattn_prefill_describe(api->stream, &params, text, 6));
    assert_int_equal(strlen(text), 5);
    assert_int_equal(text[6], '#');
    assert_ok(lattn_prefill_describe(api->stream, &params, text, 1));
    assert_string_equal(text, "");
}

/* ---- the log ---- */

static void count_lines(void *user, lattn_log_level level, const char *message)
{
    int *lines = user;
    assert_true(level <= LATTN_LOG_DEBUG);
    assert_null(strchr(message, '\n'));
    ++*lines;
}

static void log_lines(void **state)
{
    lattn_context_params params = LATTN_CONTEXT_PARAMS_INIT;
    lattn_context *context;
    int lines = 0;
    (void)state;
    params.log = count_lines;
    params.log_user = &lines;
    params.log_level = LATTN_LOG_DEBUG;
    assert_ok(lattn_context_create(&params, &context));
    lattn_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version),
        cmocka_unit_test(status_names),
        cmocka_unit_test(struct_size_of_zero),
        cmocka_unit_test(struct_size_smaller),
        cmocka_unit_test(struct_size_larger),
        cmocka_unit_test(null_handles),
        cmocka_unit_test(contexts),
        cmocka_unit_test(finding_devices),
        cmocka_unit_test(memory),
        cmocka_unit_test(messages_are_a_threads_own),
        cmocka_unit_test(descriptions_are_cut),
        cmocka_unit_test(log_lines),
    };
    return cmocka_run_group_tests(tests, open_reference, close_reference);
}
