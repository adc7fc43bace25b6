/* Memory beyond 2^31 elements and beyond 4 GiB, on GPUs: sizes at which 32-bit index arithmetic
 * goes wrong. Inputs repeat a pattern whose period is odd, so that a wrapped index meets other
 * numbers; the slopes forget within a few hundred tokens, so that the oracle needs those alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fixture.h"
#include "number.h"
#include "oracle.h"
#include "random.h"

enum {
    HEADS = 64,
    DIM = 128,
    PERIOD = 16777213, /* elements */
    TOKENS = 262144 + 70,
    REMEMBERED = 400,
    LOOKED_AT = 24,
    SLOTS = 4200,
};

static const double slope = 0.1;

struct pattern {
    lattn_dtype dtype;
    unsigned char *bytes; /* PERIOD elements */
};

static struct pattern pattern_make(lattn_dtype dtype, const char *name)
{
    struct pattern pattern = {dtype, malloc((size_t)PERIOD * number_size(dtype))};
    struct random random = random_named(name);
    assert_non_null(pattern.bytes);
    /* Sums of four uniform numbers: near enough to normal ones, and quick. */
    for (size_t i = 0; i < PERIOD; i++) {
        const uint64_t bits = random_bits(&random);
        double sum = 0;
        for (int j = 0; j < 4; j++)
            sum += (double)((bits >> (16 * j)) & 0xffff) / 65536 - 0.5;
        number_store(pattern.bytes + i * number_size(dtype), dtype, sum);
    }
    return pattern;
}

static double pattern_at(const struct pattern *pattern, int64_t index)
{
    return number_load(pattern->bytes + (size_t)(index % PERIOD) * number_size(pattern->dtype),
                       pattern->dtype);
}

/* A memory of `count` elements, filled with the pattern; NULL pattern: with NaN. */
static void *filled(struct fixture *fixture, const struct pattern *pattern, lattn_dtype dtype,
                    uint64_t count)
{
    const uint64_t size = number_size(dtype), bytes = count * size;
    void *base = NULL;
    assert_ok(lattn_memory_alloc(fixture->device, bytes, &base));
    if (!pattern) {
        assert_ok(lattn_memory_fill(fixture->stream, base, 0, 0xff, bytes));
        return base;
    }
    const uint64_t period = PERIOD * size;
    uint64_t done = period < bytes ? period : bytes;
    assert_ok(lattn_memory_upload(fixture->stream, base, 0, pattern->bytes, done));
    while (done < bytes) { /* done stays a multiple of the period */
        const uint64_t more = done < bytes - done ? done : bytes - done;
        assert_ok(lattn_memory_copy(fixture->stream, base, done, base, 0, more));
        done += more;
    }
    return base;
}

static void gather(double *to, const struct pattern *pattern, int64_t first, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = pattern_at(pattern, first + i);
}

static void compare(const char *what, const double *expected, const double *sizes,
                    const unsigned char *got, lattn_dtype dtype, int64_t rows, double limit)
{
    for (int64_t row = 0; row < rows; row++) {
        double error = 0;
        for (int i = 0; i < DIM; i++) {
            const size_t at = (size_t)(row * DIM + i);
            const double difference =
                number_load(got + at * number_size(dtype), dtype) - expected[at];
            error += difference * difference;
        }
        if (!(sqrt(error) <= limit * sizes[row]))
            fail_msg("%s, row %d: error %g of size %g", what, (int)row, sqrt(error), sizes[row]);
    }
}

/* The outputs of LOOKED_AT tokens from `first` on, of one head of [h, n, dim]. */
static void check_prefill(struct fixture *fixture, const struct pattern patterns[3], void *o,
                          int head, int64_t first)
{
    const int64_t start = first > REMEMBERED ? first - REMEMBERED : 0;
    const int64_t tokens = first + LOOKED_AT - start;
    const int64_t at = ((int64_t)head * TOKENS + start) * DIM;
    double *numbers = malloc(sizeof(double) * (size_t)(tokens * (4 * DIM + 1) + 2 * DIM * DIM + 2));
    assert_non_null(numbers);
    double *inputs[3], *expected = numbers + 3 * tokens * DIM;
    for (int i = 0; i < 3; i++) {
        inputs[i] = numbers + i * tokens * DIM;
        gather(inputs[i], &patterns[i], at, tokens * DIM);
    }
    struct oracle oracle = {
        .tokens = tokens,
        .d = DIM,
        .e = DIM,
        .slope = slope,
        .scale = 1,
        .q = inputs[0],
        .k = inputs[1],
        .v = inputs[2],
        .o = expected,
        .o_size = expected + tokens * DIM,
        .states = expected + tokens * (DIM + 1),
        .state_size = expected + tokens * (DIM + 1) + 2 * DIM * DIM,
        .every = tokens,
    };
    oracle_run(&oracle);

    unsigned char got[LOOKED_AT * DIM * 2];
    const int64_t skipped = first - start;
    assert_ok(lattn_memory_download(fixture->stream, got, o, (uint64_t)(at + skipped * DIM) * 2,
                                    sizeof(got)));
    compare("o", expected + skipped * DIM, oracle.o_size + skipped, got, LATTN_BF16, LOOKED_AT,
            8e-3);
    free(numbers);
}

static void prefill(struct fixture *fixture, const void *data)
{
    (void)data;
    if (fixture->info.kind != LATTN_DEVICE_GPU)
        skip();
    const uint64_t count = (uint64_t)HEADS * TOKENS * DIM;
    struct pattern patterns[3];
    static const char *const names[] = {"large q", "large k", "large v"};
    lattn_prefill_params params = {
        .struct_size = sizeof(params),
        .batch = 1,
        .tokens = TOKENS,
        .heads = HEADS,
        .d = DIM,
        .dtype = LATTN_BF16,
    };
    lattn_tensor *inputs[3] = {&params.q, &params.k, &params.v};
    for (int i = 0; i < 3; i++) {
        patterns[i] = pattern_make(LATTN_BF16, names[i]);
        inputs[i]->base = filled(fixture, &patterns[i], LATTN_BF16, count);
    }
    params.o.base = filled(fixture, NULL, LATTN_BF16, count);

    float slopes[HEADS];
    for (int i = 0; i < HEADS; i++)
        slopes[i] = (float)slope;
    assert_ok(lattn_memory_alloc(fixture->device, sizeof(slopes), &params.slopes.base));
    assert_ok(lattn_memory_upload(fixture->stream, params.slopes.base, 0, slopes, sizeof(slopes)));
    assert_ok(lattn_prefill_workspace(fixture->stream, &params, &params.workspace.size));
    if (params.workspace.size)
        assert_ok(
            lattn_memory_alloc(fixture->device, params.workspace.size, &params.workspace.base));
    assert_ok(lattn_prefill_prepare(fixture->stream, &params));
    assert_ok(lattn_prefill(fixture->stream, &params));

    static const int heads[] = {0, 1, 31, 32, 62, 63};
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        check_prefill(fixture, patterns, params.o.base, heads[i], 0);
        check_prefill(fixture, patterns, params.o.base, heads[i], 131072);
        check_prefill(fixture, patterns, params.o.base, heads[i], TOKENS - LOOKED_AT);
    }

    void *const bases[] = {params.q.base, params.k.base,      params.v.base,
                           params.o.base, params.slopes.base, params.workspace.base};
    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++)
        lattn_memory_free(fixture->device, bases[i]);
    for (int i = 0; i < 3; i++)
        free(patterns[i].bytes);
}

enum { ROWS = 6 };

/* A row of a decode call: the state of its slot and its output, for the last head. */
static void check_decode(struct fixture *fixture, const struct pattern *tokens,
                         const struct pattern *states, const lattn_decode_params *params, int row,
                         int64_t slot)
{
    const int64_t head = HEADS - 1;
    const int64_t at = (row * (int64_t)HEADS + head) * DIM;
    const int64_t state_at = (slot * HEADS + head) * DIM * DIM;
    enum { STATE = DIM * DIM };
    double *numbers = malloc(sizeof(double) * (4 * DIM + 3 * STATE + 3));
    unsigned char *got = malloc(STATE * 4);
    assert_non_null(numbers);
    assert_non_null(got);
    double *q = numbers, *k = q + DIM, *v = k + DIM, *o = v + DIM, *initial = o + DIM,
           *after = initial + STATE, *sizes = after + 2 * STATE;
    gather(q, tokens, at, DIM);
    gather(k, tokens, at + 1, DIM);
    gather(v, tokens, at + 2, DIM);
    gather(initial, states, state_at, STATE);
    struct oracle oracle = {.tokens = 1,
                            .d = DIM,
                            .e = DIM,
                            .slope = slope,
                            .scale = 1,
                            .q = q,
                            .k = k,
                            .v = v,
                            .initial = initial,
                            .o = o,
                            .o_size = sizes,
                            .states = after,
                            .state_size = sizes + 1};
    oracle_run(&oracle);
    assert_ok(
        lattn_memory_download(fixture->stream, got, params->o.base, (uint64_t)at * 4, DIM * 4));
    compare("o", o, sizes, got, LATTN_F32, 1, 4e-6);
    assert_ok(lattn_memory_download(fixture->stream, got, params->state_in.base,
                                    (uint64_t)state_at * 4, STATE * 4));
    double row_sizes[DIM];
    for (int i = 0; i < DIM; i++)
        row_sizes[i] = sizes[2];
    compare("state", after + STATE, row_sizes, got, LATTN_F32, DIM, 4e-6);
    free(got);
    free(numbers);
}

static void decode(struct fixture *fixture, const void *data)
{
    (void)data;
    if (fixture->info.kind != LATTN_DEVICE_GPU)
        skip();
    static const int32_t slots[ROWS] = {0, SLOTS - 1, 2047, 2048, SLOTS, 4097};
    struct pattern tokens = pattern_make(LATTN_F32, "large tokens");
    struct pattern states = pattern_make(LATTN_F32, "large states");
    lattn_decode_params params = {
        .struct_size = sizeof(params),
        .batch = ROWS,
        .heads = HEADS,
        .d = DIM,
        .dtype = LATTN_F32,
        .state_in = {.slots = SLOTS},
    };
    const uint64_t count = ROWS * HEADS * DIM;
    params.q.base = filled(fixture, &tokens, LATTN_F32, count + 2);
    params.k.base = params.v.base = params.q.base;
    params.k.offset = 4;
    params.v.offset = 8;
    params.o.base = filled(fixture, NULL, LATTN_F32, count);
    params.state_in.base = filled(fixture, &states, LATTN_F32, (uint64_t)SLOTS * HEADS * DIM * DIM);
    float slopes[HEADS];
    for (int i = 0; i < HEADS; i++)
        slopes[i] = (float)slope;
    assert_ok(lattn_memory_alloc(fixture->device, sizeof(slopes), &params.slopes.base));
    assert_ok(lattn_memory_upload(fixture->stream, params.slopes.base, 0, slopes, sizeof(slopes)));
    assert_ok(lattn_memory_alloc(fixture->device, sizeof(slots), &params.state_in.slot_idx.base));
    assert_ok(lattn_memory_upload(fixture->stream, params.state_in.slot_idx.base, 0, slots,
                                  sizeof(slots)));
    assert_ok(lattn_decode_prepare(fixture->stream, &params));
    assert_ok(lattn_decode(fixture->stream, &params));

    for (int row = 0; row < ROWS; row++) {
        if (slots[row] < SLOTS)
            check_decode(fixture, &tokens, &states, &params, row, slots[row]);
    }
    /* The slot past the end is padding. */
    float zeros[DIM], padding[DIM];
    memset(zeros, 0, sizeof(zeros));
    assert_ok(lattn_memory_download(fixture->stream, padding, params.o.base,
                                    (uint64_t)4 * HEADS * DIM * 4, sizeof(padding)));
    assert_memory_equal(padding, zeros, sizeof(zeros));

    void *const bases[] = {params.q.base, params.o.base, params.slopes.base, params.state_in.base,
                           params.state_in.slot_idx.base};
    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++)
        lattn_memory_free(fixture->device, bases[i]);
    free(tokens.bytes);
    free(states.bytes);
}

int main(int argc, char **argv)
{
    static const struct device_test tests[] = {
        {"prefill past 2^31 elements", prefill, NULL, TEST_SLOW},
        {"decode in a pool past 2^32 elements", decode, NULL, TEST_SLOW},
    };
    return run_on_devices("large", tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
