/* Prefill and decode against golden files: what the Triton kernels that this library ports wrote on
 * their own hardware (seed_*), and the float64 recurrence (exact_*). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "number.h"
#include "safetensors.h"

/* What was rounded twice, by the Triton kernels and by ours, may differ by both roundings. */
static double tolerance(lattn_dtype dtype)
{
    return dtype == LATTN_F32 ? 2e-6 : dtype == LATTN_F16 ? 6e-4 : 6e-3;
}

struct golden {
    struct fixture *fixture;
    struct safetensors_file file;
};

static const struct safetensors_tensor *find(const struct golden *g, const char *name)
{
    const struct safetensors_tensor *tensor = safetensors_find(&g->file.index, name);
    if (!tensor)
        fail_msg("no tensor %s", name);
    return tensor;
}

static unsigned char *read_tensor(const struct golden *g, const char *name)
{
    const struct safetensors_tensor *tensor = find(g, name);
    struct safetensors_error error;
    unsigned char *bytes = malloc(tensor->end - tensor->begin);
    if (!safetensors_read(&g->file, tensor, bytes, &error))
        fail_msg("%s: %s", name, error.text);
    return bytes;
}

static lattn_dtype dtype_of(const struct safetensors_tensor *tensor)
{
    return strcmp(tensor->dtype, "F32") == 0   ? LATTN_F32
           : strcmp(tensor->dtype, "F16") == 0 ? LATTN_F16
                                               : LATTN_BF16;
}

/* A tensor of the file, as device memory. */
static void *upload(const struct golden *g, const char *name)
{
    const struct safetensors_tensor *tensor = find(g, name);
    unsigned char *bytes = read_tensor(g, name);
    uint64_t size = tensor->end - tensor->begin;
    void *base;
    assert_ok(lattn_memory_alloc(g->fixture->device, size, &base));
    assert_ok(lattn_memory_upload(g->fixture->stream, base, 0, bytes, size));
    free(bytes);
    return base;
}

/* Device memory of NaN, for outputs. */
static void *room(const struct golden *g, uint64_t bytes)
{
    void *base;
    assert_ok(lattn_memory_alloc(g->fixture->device, bytes, &base));
    assert_ok(lattn_memory_fill(g->fixture->stream, base, 0, 0xff, bytes));
    return base;
}

/* Compares device memory of `dtype` with a tensor, in parts of `part` elements, each by itself;
 * with `skip`, not the parts it marks. */
static void compare(const struct golden *g, const char *name, const void *base, lattn_dtype dtype,
                    uint64_t part, const bool *skip)
{
    const struct safetensors_tensor *tensor = find(g, name);
    lattn_dtype file_dtype = dtype_of(tensor);
    uint64_t count = (tensor->end - tensor->begin) / number_size(file_dtype);
    unsigned char *wanted = read_tensor(g, name), *got = malloc(count * number_size(dtype));
    double allowed = fmax(tolerance(dtype), tolerance(dtype_of(find(g, "q"))));
    assert_ok(lattn_memory_download(g->fixture->stream, got, base, 0, count * number_size(dtype)));
    for (uint64_t first = 0; first < count; first += part) {
        double errors = 0, sizes = 0;
        if (skip && skip[first / part])
            continue;
        for (uint64_t i = first; i < first + part; i++) {
            double a = number_load(got + i * number_size(dtype), dtype);
            double b = number_load(wanted + i * number_size(file_dtype), file_dtype);
            errors += (a - b) * (a - b);
            sizes += b * b;
        }
        if (!(sqrt(errors) <= allowed * sqrt(sizes)))
            fail_msg("%s, part %llu: relative error %.3g, allowed %.3g", name,
                     (unsigned long long)(first / part), sqrt(errors / sizes), allowed);
    }
    free(got);
    free(wanted);
}

static void open_golden(struct golden *g, struct fixture *fixture, const char *name)
{
    struct safetensors_error error;
    char path[512];
    g->fixture = fixture;
    snprintf(path, sizeof(path), "%s/%s.safetensors", GOLDEN_FOLDER, name);
    if (!safetensors_open(path, &g->file, &error))
        fail_msg("%s: %s", path, error.text);
}

static void prefill(struct fixture *fixture, const void *data)
{
    struct golden g;
    open_golden(&g, fixture, data);
    const uint64_t *q = find(&g, "q")->shape, *v = find(&g, "v")->shape;
    lattn_dtype dtype = dtype_of(find(&g, "q"));
    uint64_t heads = q[0] * q[1], cells = q[3] * v[3], blocks = (q[2] + 255) / 256 + 1;
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    params.batch = (int64_t)q[0];
    params.heads = (int32_t)q[1];
    params.tokens = (int64_t)q[2];
    params.d = (int32_t)q[3];
    params.e = (int32_t)v[3];
    params.dtype = dtype;
    params.q.base = upload(&g, "q");
    params.k.base = upload(&g, "k");
    params.v.base = upload(&g, "v");
    params.o.base = room(&g, heads * q[2] * v[3] * number_size(dtype));
    params.slopes.base = upload(&g, "slopes");
    if (safetensors_find(&g.file.index, "kv_history"))
        params.state_in.base = upload(&g, "kv_history");
    params.state_out.base = room(&g, heads * cells * 4);
    params.block_states.base = room(&g, heads * blocks * cells * 4);
    assert_ok(lattn_prefill_prepare(fixture->stream, &params));
    for (int decay = LATTN_DECAY_RECURRENCE; decay <= LATTN_DECAY_VLLM; decay++) {
        params.decay = (lattn_decay)decay;
        assert_ok(lattn_prefill_workspace(fixture->stream, &params, &params.workspace.size));
        if (params.workspace.size && !params.workspace.base)
            params.workspace.base = room(&g, params.workspace.size);
        assert_ok(lattn_prefill(fixture->stream, &params));
        compare(&g, decay ? "seed_o" : "exact_o", params.o.base, dtype, q[2] * v[3], NULL);
        compare(&g, "exact_state", params.state_out.base, LATTN_F32, cells, NULL);
        compare(&g, "seed_kv", params.block_states.base, LATTN_F32, blocks * cells, NULL);
    }
    void *bases[] = {
        params.q.base,        params.k.base,        params.v.base,         params.o.base,
        params.slopes.base,   params.state_in.base, params.state_out.base, params.block_states.base,
        params.workspace.base};
    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++)
        lattn_memory_free(fixture->device, bases[i]);
    safetensors_close(&g.file);
}

static void decode(struct fixture *fixture, const void *data)
{
    struct golden g;
    open_golden(&g, fixture, data);
    const uint64_t *q = find(&g, "q")->shape, *cache = find(&g, "cache_in")->shape;
    lattn_dtype dtype = dtype_of(find(&g, "q"));
    unsigned char *slots = read_tensor(&g, "slot_idx");
    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    params.batch = (int64_t)q[0];
    params.heads = (int32_t)q[1];
    params.d = (int32_t)q[3];
    params.dtype = dtype;
    params.q.base = upload(&g, "q");
    params.k.base = upload(&g, "k");
    params.v.base = upload(&g, "v");
    uint64_t outputs = q[0] * q[1] * q[3];
    params.o.base = room(&g, outputs * number_size(dtype));
    params.slopes.base = upload(&g, "slopes");
    params.state_in.base = upload(&g, "cache_in");
    params.state_in.slots = (int64_t)cache[0];
    params.state_in.slot_idx.base = upload(&g, "slot_idx");
    params.state_in.slot_type = LATTN_I64;
    assert_ok(lattn_decode_prepare(fixture->stream, &params));
    assert_ok(lattn_decode(fixture->stream, &params));

    bool padding[64] = {false};
    unsigned char *o = malloc(outputs * number_size(dtype));
    assert_true(q[0] <= 64);
    assert_ok(
        lattn_memory_download(fixture->stream, o, params.o.base, 0, outputs * number_size(dtype)));
    for (uint64_t i = 0; i < q[0]; i++) {
        int64_t slot;
        memcpy(&slot, slots + 8 * i, 8);
        padding[i] = slot < 0;
        for (uint64_t x = 0; padding[i] && x < q[1] * q[3]; x++)
            assert_true(number_load(o + (i * q[1] * q[3] + x) * number_size(dtype), dtype) == 0);
    }
    compare(&g, "exact_o", params.o.base, dtype, q[1] * q[3], padding);
    compare(&g, "seed_o", params.o.base, dtype, q[1] * q[3], padding);
    compare(&g, "exact_cache", params.state_in.base, LATTN_F32, cache[2] * cache[3], NULL);
    compare(&g, "seed_cache", params.state_in.base, LATTN_F32, cache[2] * cache[3], NULL);
    free(o);
    free(slots);
    void *bases[] = {params.q.base,
                     params.k.base,
                     params.v.base,
                     params.o.base,
                     params.slopes.base,
                     params.state_in.base,
                     params.state_in.slot_idx.base};
    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++)
        lattn_memory_free(fixture->device, bases[i]);
    safetensors_close(&g.file);
}

int main(int argc, char **argv)
{
    static const struct device_test tests[] = {
        {"p_f32_n1", prefill, "p_f32_n1", TEST_NORMAL},
        {"p_f32_e32", prefill, "p_f32_e32", TEST_NORMAL},
        {"p_f32_d64", prefill, "p_f32_d64", TEST_NORMAL},
        {"p_f32_d128_hist", prefill, "p_f32_d128_hist", TEST_NORMAL},
        {"p_f16_d64", prefill, "p_f16_d64", TEST_NORMAL},
        {"p_bf16_d128_hist", prefill, "p_bf16_d128_hist", TEST_NORMAL},
        {"d_f32", decode, "d_f32", TEST_NORMAL},
        {"d_bf16", decode, "d_bf16", TEST_NORMAL},
    };
    return run_on_devices("golden", tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
