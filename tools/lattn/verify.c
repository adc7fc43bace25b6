#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "commands.h"
#include "dtype.h"
#include "golden.h"
#include "options.h"
#include "report.h"
#include "table.h"

#define SEED 20240613

static const struct table_column columns[] = {
    {"device", "device", TABLE_LEFT},
    {"name", "", TABLE_JSON},
    {"op", "op", TABLE_LEFT},
    {"case", "case", TABLE_LEFT},
    {"dtype", "dtype", TABLE_LEFT},
    {"error_o", "error o", TABLE_RIGHT},
    {"limit_o", "limit", TABLE_RIGHT},
    {"error_state", "error state", TABLE_RIGHT},
    {"limit_state", "limit", TABLE_RIGHT},
    {"verdict", "verdict", TABLE_LEFT},
    {"reason", "reason", TABLE_NOTE},
    {NULL, NULL, TABLE_JSON},
};

struct verify {
    lattn_context *context;
    struct session reference; /* the judge */
    struct session *sessions; /* those judged */
    int count;
    struct table *table;
    int rows, failed;
};

/* ---- rows ------------------------------------------------------------------------------------ */

static void add_error(struct table *table, double error)
{
    if (isnan(error))
        table_none(table);
    else
        table_real(table, "%.2e", error);
}

static void add_result(struct verify *verify, const struct session *session, const char *name,
                       const struct call *call, const struct check_result *result)
{
    struct table *table = verify->table;
    table_text(table, session->label);
    table_text(table, session->info.name);
    table_text(table, call_operation_name(call->operation));
    table_text(table, name);
    table_text(table, call->precision == LATTN_PRECISION_TF32 ? "tf32" : dtype_name(call->dtype));
    add_error(table, result->error_o);
    table_real(table, "%.1e", result->limit_o);
    add_error(table, result->error_state);
    table_real(table, "%.1e", result->limit_state);
    table_text(table, result->good ? "ok" : "FAIL");
    table_text(table, result->status == LATTN_OK ? "" : library_message(result->status));
    verify->rows++;
    verify->failed += !result->good;
}

/* A device that is there but cannot be used. */
static void add_closed(struct verify *verify, const lattn_device_info *info, const char *verdict,
                       const char *reason)
{
    char label[32];
    snprintf(label, sizeof(label), "%s:%d", info->backend, info->ordinal);
    table_text(verify->table, label);
    table_text(verify->table, info->name);
    for (int i = 0; i < 7; i++)
        table_none(verify->table);
    table_text(verify->table, verdict);
    table_text(verify->table, reason);
}

static void check_devices(struct verify *verify, const char *name, const struct call *call,
                          void *const data[CALL_PARTS], const struct expected *expected)
{
    for (int i = 0; i < verify->count; i++) {
        struct session *session = &verify->sessions[i];
        progress("%d rows, %d failed; %s: %s %s, %s", verify->rows, verify->failed, session->label,
                 call_operation_name(call->operation), name, dtype_name(call->dtype));
        struct check_result result = check_call(session, call, data, expected);
        add_result(verify, session, name, call, &result);
    }
}

/* ---- what is verified ------------------------------------------------------------------------ */

static int check_by_reference(struct verify *verify, const char *name, const struct call *call,
                              void *const data[CALL_PARTS])
{
    struct expected expected;
    lattn_status status = expect_reference(&verify->reference, call, data, &expected);
    if (status != LATTN_OK)
        return complain_library(status, name);
    check_devices(verify, name, call, data, &expected);
    expected_free(&expected);
    return EXIT_DONE;
}

static int verify_case(struct verify *verify, const struct verify_case *item, lattn_dtype dtype)
{
    struct call call = item->call;
    call.dtype = dtype;
    void *data[CALL_PARTS] = {0};
    int end = EXIT_FAILED;
    if (case_inputs(&call, item->extreme_slopes, SEED + (uint64_t)dtype, data))
        end = check_by_reference(verify, item->name, &call, data);
    else
        complain(EXIT_FAILED, "%s: out of memory", item->name);
    for (int part = 0; part < CALL_PARTS; part++)
        free(data[part]);
    return end;
}

static int verify_cases_all(struct verify *verify)
{
    int end = EXIT_DONE;
    for (size_t i = 0; i < verify_case_count && end == EXIT_DONE; i++) {
        for (int dtype = LATTN_F32; dtype <= LATTN_BF16 && end == EXIT_DONE; dtype++) {
            if (verify_cases[i].dtypes & 1u << dtype)
                end = verify_case(verify, &verify_cases[i], (lattn_dtype)dtype);
        }
    }
    return end;
}

static int verify_golden(struct verify *verify, const struct input *input, const char *base)
{
    bool any = false;
    int end = EXIT_DONE;
    for (int kind = 0; kind < GOLDEN_KINDS && end == EXIT_DONE; kind++) {
        struct expected expected;
        struct call call = input->call;
        bool found;
        end = golden_expect(input, (enum golden_kind)kind, &call, &expected, &found);
        if (end == EXIT_DONE && found) {
            char name[256];
            snprintf(name, sizeof(name), "%s, %s", base, golden_kind_name((enum golden_kind)kind));
            check_devices(verify, name, &call, input->data, &expected);
        }
        any = any || found;
        expected_free(&expected);
    }
    /* A file of inputs alone is judged like our own cases. */
    if (end == EXIT_DONE && !any)
        end = check_by_reference(verify, base, &input->call, input->data);
    return end;
}

static int verify_file(struct verify *verify, const char *path)
{
    struct input input;
    int end = input_open_any(path, &input);
    if (end != EXIT_DONE)
        return end;
    const char *slash = strrchr(path, '/');
    end = verify_golden(verify, &input, slash ? slash + 1 : path);
    input_close(&input);
    return end;
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool is_wanted(const struct options *options, int32_t index, const lattn_device_info *info)
{
    bool any = !options->backend || strcmp(options->backend, "auto") == 0;
    if (!any && strcmp(options->backend, info->backend) != 0)
        return false;
    return options->device < 0 || options->device == (any ? index : info->ordinal);
}

/* What cannot be opened for a reason known beforehand is passed over, unless it was asked for. */
static void open_device(struct verify *verify, const struct options *options, int32_t index,
                        const lattn_device_info *info)
{
    bool asked = options->backend || options->device >= 0;
    if (info->status != LATTN_OK && !asked) {
        add_closed(verify, info, "skipped", info->reason);
        return;
    }
    lattn_status status = session_open(verify->context, index, &verify->sessions[verify->count]);
    if (status == LATTN_OK) {
        verify->count++;
    } else {
        add_closed(verify, info, "FAIL", library_message(status));
        verify->rows++;
        verify->failed++;
    }
}

static int open_devices(struct verify *verify, const struct options *options)
{
    int32_t count = lattn_device_count(verify->context), judge;
    verify->sessions = calloc((size_t)count + 1, sizeof(*verify->sessions));
    if (!verify->sessions)
        return complain(EXIT_FAILED, "verify: out of memory");
    for (int32_t i = 0; i < count; i++) {
        lattn_device_info info = LATTN_DEVICE_INFO_INIT;
        lattn_status status = lattn_device_info_get(verify->context, i, &info);
        if (status != LATTN_OK)
            return complain_library(status, "verify");
        if (is_wanted(options, i, &info))
            open_device(verify, options, i, &info);
    }
    if (verify->count + verify->failed == 0)
        return complain(EXIT_FAILED, "verify: this machine has no such device (see lattn devices)");
    lattn_status status = lattn_device_find(verify->context, "reference", 0, &judge);
    if (status == LATTN_OK)
        status = session_open(verify->context, judge, &verify->reference);
    return status == LATTN_OK ? EXIT_DONE : complain_library(status, "reference");
}

static int run(struct verify *verify, const struct options *options)
{
    int end = open_devices(verify, options);
    if (end != EXIT_DONE)
        return end;
    if (options->file_count == 0)
        end = verify_cases_all(verify);
    for (int i = 0; i < options->file_count && end == EXIT_DONE; i++)
        end = verify_file(verify, options->files[i]);
    session_close(&verify->reference);
    progress(NULL);
    if (end != EXIT_DONE)
        return end;
    if (!table_print(verify->table, options->json))
        return EXIT_FAILED;
    if (!options->json)
        printf("\n%d rows, %d failed\n", verify->rows, verify->failed);
    return verify->failed ? EXIT_FAILED : EXIT_DONE;
}

int command_verify(int argc, char **argv)
{
    struct options options;
    int end;
    if (!options_parse(argc, argv, "verify", OPTION_BACKEND | OPTION_DEVICE | OPTION_JSON, &options,
                       &end))
        return end;
    struct verify verify = {.table = table_new(columns)};
    lattn_status status = lattn_context_create(NULL, &verify.context);
    end = status == LATTN_OK ? run(&verify, &options) : complain_library(status, "verify");
    for (int i = 0; i < verify.count; i++)
        session_close(&verify.sessions[i]);
    free(verify.sessions);
    table_free(verify.table);
    lattn_context_destroy(verify.context);
    return end;
}
