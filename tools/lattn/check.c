#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"

static const enum call_part outputs[] = {CALL_O, CALL_STATE_OUT, CALL_KEPT, CALL_STATE_IN};

static bool is_wanted(const struct call *call, enum call_part part)
{
    return call_bytes(call, part) > 0 && (part != CALL_STATE_IN || call->operation == CALL_DECODE);
}

static void free_outputs(struct host_arrays *arrays)
{
    for (int part = 0; part < CALL_PARTS; part++)
        free(arrays->output[part]);
}

/* Runs the call into fresh arrays, which are the caller's when the status is LATTN_OK. */
static lattn_status run(struct session *session, const struct call *call,
                        void *const data[CALL_PARTS], struct host_arrays *arrays)
{
    lattn_status status = LATTN_OK;
    *arrays = (struct host_arrays){0};
    for (int part = 0; part < CALL_PARTS; part++)
        arrays->input[part] = data[part];
    for (size_t i = 0; i < sizeof(outputs) / sizeof(*outputs); i++) {
        if (!is_wanted(call, outputs[i]))
            continue;
        arrays->output[outputs[i]] = malloc((size_t)call_bytes(call, outputs[i]));
        if (!arrays->output[outputs[i]])
            status = LATTN_ERROR_OUT_OF_MEMORY;
    }
    if (status == LATTN_OK)
        status = session_run(session, call, arrays);
    if (status != LATTN_OK)
        free_outputs(arrays);
    return status;
}

/* ---- the judge ------------------------------------------------------------------------------- */

static lattn_dtype part_dtype(const struct call *call, enum call_part part)
{
    return part == CALL_STATE_IN ? call->state_dtype : call->dtype;
}

static bool is_float_input(enum call_part part)
{
    return part == CALL_Q || part == CALL_K || part == CALL_V || part == CALL_STATE_IN;
}

/* The float inputs of `call` as those of `wide`; the others are shared. */
static bool widen(const struct call *call, const struct call *wide, void *const data[CALL_PARTS],
                  void *wide_data[CALL_PARTS])
{
    for (int part = 0; part < CALL_PARTS; part++) {
        wide_data[part] = data[part];
        if (!is_float_input((enum call_part)part) || !data[part])
            continue;
        uint64_t bytes = call_bytes(wide, (enum call_part)part);
        float *values = malloc((size_t)bytes);
        wide_data[part] = values;
        if (!values)
            return false;
        lattn_dtype dtype = part_dtype(call, (enum call_part)part);
        for (uint64_t i = 0; i < bytes / sizeof(float); i++)
            values[i] = (float)dtype_load(dtype, data[part], i);
    }
    return true;
}

lattn_status expect_reference(struct session *reference, const struct call *call,
                              void *const data[CALL_PARTS], struct expected *expected)
{
    struct call wide = *call;
    wide.dtype = wide.state_dtype = LATTN_F32;
    void *wide_data[CALL_PARTS] = {0};
    struct host_arrays arrays;
    *expected = (struct expected){.tolerance = 1};
    lattn_status status = LATTN_ERROR_OUT_OF_MEMORY;
    if (widen(call, &wide, data, wide_data))
        status = run(reference, &wide, wide_data, &arrays);
    for (int part = 0; part < CALL_PARTS; part++) {
        if (is_float_input((enum call_part)part))
            free(wide_data[part]);
        if (status == LATTN_OK)
            expected->part[part] = (struct compare_array){LATTN_F32, arrays.output[part]};
    }
    return status;
}

void expected_free(struct expected *expected)
{
    for (int part = 0; part < CALL_PARTS; part++)
        free((void *)(uintptr_t)expected->part[part].data);
    *expected = (struct expected){0};
}

/* ---- comparison ------------------------------------------------------------------------------ */

static bool all_zero(const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

static double decode_error_o(const struct call *call, void *const data[CALL_PARTS],
                             struct compare_array got, struct compare_array want)
{
    struct compare_sum sum = {0};
    uint64_t each = call_bytes(call, CALL_O) / dtype_size(call->dtype) / (uint64_t)call->batch;
    size_t bytes = (size_t)each * dtype_size(call->dtype);
    for (int64_t row = 0; row < call->batch; row++) {
        int64_t slot;
        if (call_slot(call, data[CALL_SLOT_IDX], row, &slot))
            compare_add(&sum, got, want, each * (uint64_t)row, each);
        else if (!all_zero((const unsigned char *)got.data + bytes * (size_t)row, bytes))
            return HUGE_VAL;
    }
    return compare_error(&sum);
}

static double decode_error_state(const struct call *call, void *const data[CALL_PARTS],
                                 struct compare_array got, struct compare_array want)
{
    struct compare_sum sum = {0};
    uint64_t each = (uint64_t)call->heads * (uint64_t)call->d * (uint64_t)call->e;
    size_t bytes = (size_t)each * dtype_size(call->state_dtype);
    bool *live = calloc((size_t)call->slots, sizeof(*live));
    if (!live)
        return HUGE_VAL;
    for (int64_t row = 0; row < call->batch; row++) {
        int64_t slot;
        if (!call_slot(call, data[CALL_SLOT_IDX], row, &slot))
            continue;
        live[slot] = true;
        compare_add(&sum, got, want, each * (uint64_t)slot, each);
    }
    double error = compare_error(&sum);
    for (int64_t slot = 0; slot < call->slots; slot++) {
        size_t at = bytes * (size_t)slot;
        if (!live[slot] &&
            memcmp((const char *)got.data + at, (const char *)data[CALL_STATE_IN] + at, bytes) != 0)
            error = HUGE_VAL;
    }
    free(live);
    return error;
}

/* NaN where nothing is expected. */
static double part_error(const struct call *call, void *const data[CALL_PARTS],
                         const struct expected *expected, const struct host_arrays *arrays,
                         enum call_part part)
{
    struct compare_array want = expected->part[part];
    if (!want.data || !is_wanted(call, part))
        return (double)NAN;
    struct compare_array got = {LATTN_F32, arrays->output[part]};
    if (part == CALL_O || part == CALL_STATE_IN)
        got.dtype = part_dtype(call, part);
    if (call->operation == CALL_DECODE)
        return part == CALL_O ? decode_error_o(call, data, got, want)
                              : decode_error_state(call, data, got, want);
    struct compare_sum sum = {0};
    compare_add(&sum, got, want, 0, call_bytes(call, part) / dtype_size(got.dtype));
    return compare_error(&sum);
}

struct check_result check_call(struct session *session, const struct call *call,
                               void *const data[CALL_PARTS], const struct expected *expected)
{
    struct check_result result = {.error_o = (double)NAN, .error_state = (double)NAN};
    struct host_arrays arrays;
    result.limit_o = expected->tolerance * compare_limit_o(call);
    result.limit_state = expected->tolerance * compare_limit_state(call);
    result.status = run(session, call, data, &arrays);
    if (result.status != LATTN_OK)
        return result;
    result.error_o = part_error(call, data, expected, &arrays, CALL_O);
    static const enum call_part states[] = {CALL_STATE_OUT, CALL_KEPT, CALL_STATE_IN};
    for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++)
        result.error_state =
            fmax(result.error_state, part_error(call, data, expected, &arrays, states[i]));
    result.good = !(result.error_o > result.limit_o) && !(result.error_state > result.limit_state);
    free_outputs(&arrays);
    return result;
}
