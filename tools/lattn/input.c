#include "input.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"

/* What the library takes (lattn.h). */
#define MAX_DIM 256
#define MAX_SEQUENCES 2139095040
#define MAX_TOKENS 2147483391

/* ---- one tensor ------------------------------------------------------------------------------ */

/* Sizes that the file itself decides: any from 1 on, and any at all. */
enum { SOME = -1, ANY = -2 };

/* What a tensor must be. */
struct wanted {
    const char *name;
    const char *layout; /* "[b, h, n, d]" */
    int rank;
    int64_t shape[SAFETENSORS_MAX_RANK];
};

static void print_shape(char *text, size_t size, int rank, const uint64_t *shape)
{
    size_t at = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < rank && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%" PRIu64, i ? ", " : "", shape[i]);
    if (at < size)
        snprintf(text + at, size - at, "]");
}

static bool shape_fits(const struct safetensors_tensor *tensor, const struct wanted *wanted)
{
    if (tensor->rank != wanted->rank)
        return false;
    for (int i = 0; i < wanted->rank; i++) {
        uint64_t found = tensor->shape[i];
        int64_t must = wanted->shape[i];
        if (found > INT64_MAX || (must == SOME && found == 0) ||
            (must >= 0 && found != (uint64_t)must))
            return false;
    }
    return true;
}

/* The tensor, or NULL after a complaint. */
static const struct safetensors_tensor *find(const struct input *input, const struct wanted *wanted)
{
    const struct safetensors_tensor *tensor = safetensors_find(&input->file.index, wanted->name);
    if (!tensor) {
        complain(EXIT_USAGE, "%s: tensor %s is missing", input->path, wanted->name);
        return NULL;
    }
    if (shape_fits(tensor, wanted))
        return tensor;
    uint64_t sizes[SAFETENSORS_MAX_RANK];
    bool all_known = true, empty = false;
    for (int i = 0; i < wanted->rank; i++) {
        sizes[i] = (uint64_t)wanted->shape[i];
        all_known = all_known && wanted->shape[i] >= 0;
        empty = empty ||
                (tensor->rank == wanted->rank && wanted->shape[i] == SOME && tensor->shape[i] == 0);
    }
    char found[200], must[200] = "";
    print_shape(found, sizeof(found), tensor->rank, tensor->shape);
    if (all_known)
        print_shape(must, sizeof(must), wanted->rank, sizes);
    complain(EXIT_USAGE, "%s: tensor %s: shape %s must be %s%s%s%s", input->path, wanted->name,
             found, wanted->layout, all_known ? " = " : "", must,
             empty ? ", of which only b and n may be 0" : "");
    return NULL;
}

/* The type of a tensor of floats; complains of any other. */
static bool dtype_of(const struct input *input, const struct safetensors_tensor *tensor,
                     lattn_dtype *dtype)
{
    if (dtype_from_tag(tensor->dtype, dtype))
        return true;
    complain(EXIT_USAGE, "%s: tensor %s: dtype %s must be F32, F16 or BF16", input->path,
             tensor->name, tensor->dtype);
    return false;
}

static bool read_tensor(const struct input *input, const struct safetensors_tensor *tensor,
                        void **data)
{
    struct safetensors_error error;
    uint64_t bytes = tensor->end - tensor->begin;
    *data = bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (!*data) {
        complain(EXIT_FAILED, "%s: tensor %s: no memory for %" PRIu64 " bytes", input->path,
                 tensor->name, bytes);
        return false;
    }
    if (!safetensors_read(&input->file, tensor, *data, &error)) {
        complain(EXIT_USAGE, "%s: tensor %s: %s", input->path, tensor->name, error.text);
        return false;
    }
    return true;
}

/* ---- the tensors of a call ------------------------------------------------------------------- */

/* q, k and v: the shape of the call. */
static int load_tokens(struct input *input)
{
    struct call *call = &input->call;
    bool decode = call->operation == CALL_DECODE;
    struct wanted wanted = {.name = "q",
                            .layout = decode ? "[B, h, 1, d]" : "[b, h, n, d]",
                            .rank = 4,
                            .shape = {ANY, SOME, decode ? 1 : ANY, SOME}};
    const struct safetensors_tensor *q = find(input, &wanted);
    if (!q || !dtype_of(input, q, &call->dtype))
        return EXIT_USAGE;
    wanted.name = "k";
    for (int i = 0; i < 4; i++)
        wanted.shape[i] = (int64_t)q->shape[i];
    const struct safetensors_tensor *k = find(input, &wanted);
    wanted = (struct wanted){.name = "v",
                             .layout = decode ? "[B, h, 1, e]" : "[b, h, n, e]",
                             .rank = 4,
                             .shape = {wanted.shape[0], SOME, wanted.shape[2], SOME}};
    const struct safetensors_tensor *v = k ? find(input, &wanted) : NULL;
    if (!v)
        return EXIT_USAGE;
    if (strcmp(k->dtype, q->dtype) != 0 || strcmp(v->dtype, q->dtype) != 0) {
        const struct safetensors_tensor *odd = strcmp(k->dtype, q->dtype) != 0 ? k : v;
        return complain(EXIT_USAGE, "%s: tensor %s: dtype %s must be that of q, %s", input->path,
                        odd->name, odd->dtype, q->dtype);
    }
    if (q->shape[3] > MAX_DIM || v->shape[3] > MAX_DIM) {
        const struct safetensors_tensor *wide = q->shape[3] > MAX_DIM ? q : v;
        return complain(EXIT_USAGE, "%s: tensor %s: %s = %" PRIu64 " must be 1 to %d", input->path,
                        wide->name, wide == q ? "d" : "e", wide->shape[3], MAX_DIM);
    }
    if (q->shape[0] > MAX_SEQUENCES || q->shape[2] > MAX_TOKENS)
        return complain(EXIT_USAGE,
                        "%s: tensor q: [%" PRIu64 ", h, %" PRIu64 ", d] must have at most %d "
                        "sequences of %d tokens",
                        input->path, q->shape[0], q->shape[2], MAX_SEQUENCES, MAX_TOKENS);
    if (v->shape[1] > INT32_MAX || q->shape[1] > v->shape[1] || v->shape[1] % q->shape[1] != 0)
        return complain(EXIT_USAGE,
                        "%s: tensor v: its %" PRIu64 " heads must be a multiple of the %" PRIu64
                        " of q",
                        input->path, v->shape[1], q->shape[1]);
    call->batch = (int64_t)q->shape[0];
    call->tokens = (int64_t)q->shape[2];
    call->heads = (int32_t)v->shape[1];
    call->qk_heads = (int32_t)q->shape[1];
    call->d = (int32_t)q->shape[3];
    call->e = (int32_t)v->shape[3];
    if (!read_tensor(input, q, &input->data[CALL_Q]) ||
        !read_tensor(input, k, &input->data[CALL_K]) ||
        !read_tensor(input, v, &input->data[CALL_V]))
        return EXIT_FAILED;
    return EXIT_DONE;
}

static int load_slopes(struct input *input)
{
    struct wanted wanted = {"slopes", "[h]", 1, {input->call.heads}};
    const struct safetensors_tensor *slopes = find(input, &wanted);
    if (!slopes)
        return EXIT_USAGE;
    if (strcmp(slopes->dtype, "F32") != 0)
        return complain(EXIT_USAGE, "%s: tensor slopes: dtype %s must be F32", input->path,
                        slopes->dtype);
    if (!read_tensor(input, slopes, &input->data[CALL_SLOPES]))
        return EXIT_FAILED;
    const float *values = input->data[CALL_SLOPES];
    for (int32_t i = 0; i < input->call.heads; i++) {
        if (!(values[i] >= 0) || isinf(values[i]))
            return complain(EXIT_USAGE, "%s: tensor slopes: [%d] = %g must be finite and >= 0",
                            input->path, i, (double)values[i]);
    }
    return EXIT_DONE;
}

/* kv_history, or the cache of a decode. */
static int load_state(struct input *input)
{
    struct call *call = &input->call;
    struct wanted wanted = {
        "kv_history", "[b, h, d, e]", 4, {call->batch, call->heads, call->d, call->e}};
    if (call->operation == CALL_DECODE) {
        wanted.name = "cache_in";
        wanted.layout = "[slots, h, d, e]";
        const struct safetensors_tensor *cache = safetensors_find(&input->file.index, wanted.name);
        /* The slots are what it has; the rest of its shape is known. */
        wanted.shape[0] =
            cache && cache->rank == 4 && cache->shape[0] > 0 && cache->shape[0] <= INT64_MAX
                ? (int64_t)cache->shape[0]
                : SOME;
        call->slots = wanted.shape[0];
    } else if (!safetensors_find(&input->file.index, wanted.name)) {
        return EXIT_DONE;
    }
    const struct safetensors_tensor *state = find(input, &wanted);
    if (!state || !dtype_of(input, state, &call->state_dtype))
        return EXIT_USAGE;
    call->has_initial = call->operation == CALL_PREFILL;
    return read_tensor(input, state, &input->data[CALL_STATE_IN]) ? EXIT_DONE : EXIT_FAILED;
}

static int load_slots(struct input *input)
{
    struct call *call = &input->call;
    struct wanted wanted = {"slot_idx", "[B]", 1, {call->batch}};
    const struct safetensors_tensor *slots = find(input, &wanted);
    if (!slots)
        return EXIT_USAGE;
    if (strcmp(slots->dtype, "I64") != 0 && strcmp(slots->dtype, "I32") != 0)
        return complain(EXIT_USAGE, "%s: tensor slot_idx: dtype %s must be I64 or I32", input->path,
                        slots->dtype);
    call->slot_type = slots->dtype[1] == '6' ? LATTN_I64 : LATTN_I32;
    if (!read_tensor(input, slots, &input->data[CALL_SLOT_IDX]))
        return EXIT_FAILED;
    bool *taken = calloc((size_t)call->slots, sizeof(*taken));
    if (!taken)
        return complain(EXIT_FAILED, "%s: out of memory", input->path);
    int end = EXIT_DONE;
    for (int64_t row = 0; row < call->batch && end == EXIT_DONE; row++) {
        int64_t slot;
        if (!call_slot(call, input->data[CALL_SLOT_IDX], row, &slot))
            continue;
        if (taken[slot])
            end = complain(EXIT_USAGE,
                           "%s: tensor slot_idx: two rows must not have one slot, %" PRId64,
                           input->path, slot);
        taken[slot] = true;
    }
    free(taken);
    return end;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int open_file(const char *path, struct input *input)
{
    struct safetensors_error error;
    *input = (struct input){.path = path};
    if (!safetensors_open(path, &input->file, &error))
        return complain(EXIT_USAGE, "%s: %s", path, error.text);
    return EXIT_DONE;
}

static int load(struct input *input, enum call_operation operation)
{
    input->call.operation = operation;
    int end = load_tokens(input);
    if (end == EXIT_DONE)
        end = load_slopes(input);
    if (end == EXIT_DONE)
        end = load_state(input);
    if (end == EXIT_DONE && operation == CALL_DECODE)
        end = load_slots(input);
    if (end != EXIT_DONE)
        input_close(input);
    return end;
}

int input_open(const char *path, enum call_operation operation, struct input *input)
{
    int end = open_file(path, input);
    return end == EXIT_DONE ? load(input, operation) : end;
}

int input_open_any(const char *path, struct input *input)
{
    int end = open_file(path, input);
    if (end != EXIT_DONE)
        return end;
    bool decode = safetensors_find(&input->file.index, "cache_in") != NULL;
    return load(input, decode ? CALL_DECODE : CALL_PREFILL);
}

void input_close(struct input *input)
{
    safetensors_close(&input->file);
    for (int part = 0; part < CALL_PARTS; part++)
        free(input->data[part]);
}

void *input_output(const struct input *input, enum call_part part)
{
    uint64_t bytes = call_bytes(&input->call, part);
    void *data = bytes < SIZE_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (!data)
        complain(EXIT_FAILED, "%s: no memory for the output's %" PRIu64 " bytes", input->path,
                 bytes);
    return data;
}

int input_expected(const struct input *input, const char *name, int rank, const int64_t *shape,
                   lattn_dtype *dtype, void **data)
{
    *data = NULL;
    const struct safetensors_tensor *tensor = safetensors_find(&input->file.index, name);
    if (!tensor)
        return EXIT_DONE;
    struct wanted wanted = {.name = name, .layout = "that of the result", .rank = rank};
    for (int i = 0; i < rank; i++)
        wanted.shape[i] = shape[i];
    if (!find(input, &wanted) || !dtype_of(input, tensor, dtype))
        return EXIT_USAGE;
    if (!read_tensor(input, tensor, data)) {
        free(*data);
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}
