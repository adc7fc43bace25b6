/* What must hold between calls, whatever the numbers: how a sequence is cut, packed or batched
 * changes nothing beyond rounding; a rejected token leaves no trace; slope 0 is plain linear
 * attention; a call repeated gives the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "buffer.h"
#include "random.h"

/* Two ways of computing the same in float32 may differ by this much, relative to the whole. */
#define TOLERANCE 4e-6

/* One batch of float32 sequences, [b n, h, dim], so that dense and packed calls can share the
 * memory, and a pool of states. */
struct world {
    struct fixture *fixture;
    int64_t batch, tokens;
    int32_t heads, d, e;
    int64_t slots;
    float *host_q, *host_k, *host_v, *host_slopes;
    void *q, *k, *v, *o, *slopes, *states, *kept, *work;
    uint64_t work_size;
};

static void *device_floats(struct world *w, const float *host, int64_t count)
{
    void *base;
    assert_ok(lattn_memory_alloc(w->fixture->device, 4 * (uint64_t)count, &base));
    if (host)
        assert_ok(lattn_memory_upload(w->fixture->stream, base, 0, host, 4 * (uint64_t)count));
    else
        assert_ok(lattn_memory_fill(w->fixture->stream, base, 0, 0xff, 4 * (uint64_t)count));
    return base;
}

static float *random_floats(struct random *random, int64_t count)
{
    float *values = calloc((size_t)count, sizeof(*values));
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)random_normal(random);
    return values;
}

static float *fetch(struct world *w, void *base, int64_t first, int64_t count)
{
    float *values = calloc((size_t)count, sizeof(*values));
    assert_ok(lattn_memory_download(w->fixture->stream, values, base, 4 * (uint64_t)first,
                                    4 * (uint64_t)count));
    return values;
}

static int64_t output_count(const struct world *w)
{
    return w->batch * w->heads * w->tokens * w->e;
}

static int64_t state_count(const struct world *w)
{
    return (int64_t)w->heads * w->d * w->e;
}

static struct world make_world(struct fixture *fixture, const char *name, int64_t batch,
                               int64_t tokens, int32_t heads, int32_t d, int32_t e)
{
    static const float slopes[] = {0.05f, 0, 1, 0.3f, 1e-3f};
    struct random random = random_named(name);
    struct world w = {.fixture = fixture,
                      .batch = batch,
                      .tokens = tokens,
                      .heads = heads,
                      .d = d,
                      .e = e,
                      .slots = batch * 9};
    int64_t rows = batch * heads * tokens;
    w.host_q = random_floats(&random, rows * d);
    w.host_k = random_floats(&random, rows * d);
    w.host_v = random_floats(&random, rows * e);
    w.host_slopes = calloc((size_t)heads, sizeof(float));
    for (int32_t i = 0; i < heads; i++)
        w.host_slopes[i] = slopes[i % 5];
    w.q = device_floats(&w, w.host_q, rows * d);
    w.k = device_floats(&w, w.host_k, rows * d);
    w.v = device_floats(&w, w.host_v, rows * e);
    w.slopes = device_floats(&w, w.host_slopes, heads);
    w.o = device_floats(&w, NULL, rows * e);
    w.states = device_floats(&w, NULL, w.slots * state_count(&w));
    w.kept = device_floats(&w, NULL, w.slots * state_count(&w));
    return w;
}

static void end_world(struct world *w)
{
    void *bases[] = {w->q, w->k, w->v, w->o, w->slopes, w->states, w->kept, w->work};
    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++)
        lattn_memory_free(w->fixture->device, bases[i]);
    free(w->host_q);
    free(w->host_k);
    free(w->host_v);
    free(w->host_slopes);
}

/* The tokens from `first` on of every sequence. */
static lattn_tensor from_token(const struct world *w, void *base, int32_t dim, int64_t first)
{
    int64_t token = (int64_t)w->heads * dim;
    return (lattn_tensor){base, 4 * (uint64_t)(first * token), w->tokens * token, dim, token};
}

#define COMMON(p, w, first)                                                                        \
    do {                                                                                           \
        (p).batch = (w)->batch;                                                                    \
        (p).heads = (w)->heads;                                                                    \
        (p).d = (w)->d;                                                                            \
        (p).e = (w)->e;                                                                            \
        (p).q = from_token(w, (w)->q, (w)->d, first);                                              \
        (p).k = from_token(w, (w)->k, (w)->d, first);                                              \
        (p).v = from_token(w, (w)->v, (w)->e, first);                                              \
        (p).o = from_token(w, (w)->o, (w)->e, first);                                              \
        (p).slopes.base = (w)->slopes;                                                             \
    } while (0)

/* Prepares, finds room and runs. */
static void run_prefill(struct world *w, lattn_prefill_params *params)
{
    uint64_t bytes;
    assert_ok(lattn_prefill_prepare(w->fixture->stream, params));
    assert_ok(lattn_prefill_workspace(w->fixture->stream, params, &bytes));
    if (bytes > w->work_size) {
        assert_ok(lattn_stream_synchronize(w->fixture->stream));
        lattn_memory_free(w->fixture->device, w->work);
        assert_ok(lattn_memory_alloc(w->fixture->device, bytes, &w->work));
        w->work_size = bytes;
    }
    params->workspace = (lattn_workspace){w->work, 0, w->work_size};
    if (!w->work)
        params->workspace.size = 0;
    assert_ok(lattn_prefill(w->fixture->stream, params));
}

/* Tokens `first` to `last`, the states in the pool's first rows; from zero if first is 0. */
static void prefill_piece(struct world *w, int64_t first, int64_t last)
{
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    COMMON(params, w, first);
    params.tokens = last - first;
    params.state_out.base = w->states;
    if (first)
        params.state_in = params.state_out;
    run_prefill(w, &params);
}

static void decode_piece(struct world *w, int64_t first, int64_t last)
{
    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    COMMON(params, w, first);
    params.tokens = (int32_t)(last - first);
    params.state_in.base = w->states;
    assert_ok(lattn_decode_prepare(w->fixture->stream, &params));
    assert_ok(lattn_decode(w->fixture->stream, &params));
}

static void assert_close(const char *what, const float *got, const float *wanted, int64_t count)
{
    double errors = 0, sizes = 0;
    for (int64_t i = 0; i < count; i++) {
        double error = (double)got[i] - (double)wanted[i];
        errors += error * error; /* a NaN stays one */
        sizes += (double)wanted[i] * (double)wanted[i];
    }
    if (!(sqrt(errors) <= TOLERANCE * sqrt(sizes)))
        fail_msg("%s differ by %.3g, allowed %.3g", what, sqrt(errors / sizes), TOLERANCE);
}

/* Runs all tokens in one call, and takes what came out; o and the states are NaN again. */
static void whole(struct world *w, float **o, float **states)
{
    prefill_piece(w, 0, w->tokens);
    *o = fetch(w, w->o, 0, output_count(w));
    *states = fetch(w, w->states, 0, w->batch * state_count(w));
    assert_ok(lattn_memory_fill(w->fixture->stream, w->o, 0, 0xff, 4 * (uint64_t)output_count(w)));
    assert_ok(lattn_memory_fill(w->fixture->stream, w->states, 0, 0xff,
                                4 * (uint64_t)(w->slots * state_count(w))));
}

static void compare(struct world *w, float *o, float *states)
{
    float *got_o = fetch(w, w->o, 0, output_count(w));
    float *got_states = fetch(w, w->states, 0, w->batch * state_count(w));
    assert_close("outputs", got_o, o, output_count(w));
    assert_close("states", got_states, states, w->batch * state_count(w));
    free(got_o);
    free(got_states);
    free(o);
    free(states);
    end_world(w);
}

/* Cut anywhere into calls of prefill and decode, with no wait between them. */
static void cuts(struct fixture *fixture, const void *data)
{
    (void)data;
    struct random random = random_named("cuts");
    int64_t tokens = test_effort() == TEST_QUICK ? 40 : 700;
    struct world w = make_world(fixture, "cuts", 2, tokens, 3, 24, 40);
    float *o, *states;
    whole(&w, &o, &states);
    for (int64_t first = 0, last; first < w.tokens; first = last) {
        bool decode = first && random_chance(&random, 2);
        last = first + (decode ? random_range(&random, 1, 8) : random_range(&random, 0, 300));
        last = last < w.tokens ? last : w.tokens;
        if (first == 0 || !decode)
            prefill_piece(&w, first, last);
        else
            decode_piece(&w, first, last);
    }
    compare(&w, o, states);
}

static void decode_all(struct fixture *fixture, const void *data)
{
    (void)data;
    int64_t tokens = test_effort() == TEST_QUICK ? 12 : 270;
    struct world w = make_world(fixture, "decode all", 2, tokens, 2, 64, 64);
    float *o, *states;
    whole(&w, &o, &states);
    prefill_piece(&w, 0, 1);
    for (int64_t t = 1; t < w.tokens; t++)
        decode_piece(&w, t, t + 1);
    compare(&w, o, states);
}

static void packed(struct fixture *fixture, const void *data)
{
    (void)data;
    int64_t tokens = test_effort() == TEST_QUICK ? 30 : 300;
    struct world w = make_world(fixture, "packed", 3, tokens, 2, 32, 16);
    float *o, *states;
    whole(&w, &o, &states);
    int32_t cu[4];
    for (int i = 0; i < 4; i++)
        cu[i] = (int32_t)(i * tokens);
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    COMMON(params, &w, 0);
    params.tokens = w.batch * tokens;
    assert_ok(lattn_memory_alloc(fixture->device, sizeof(cu), &params.cu_seqlens.base));
    assert_ok(lattn_memory_upload(fixture->stream, params.cu_seqlens.base, 0, cu, sizeof(cu)));
    params.state_out.base = w.states;
    run_prefill(&w, &params);
    assert_ok(lattn_stream_synchronize(fixture->stream));
    lattn_memory_free(fixture->device, params.cu_seqlens.base);
    compare(&w, o, states);
}

/* Each sequence by itself, without the others of its batch. */
static void one_by_one(struct fixture *fixture, const void *data)
{
    (void)data;
    int64_t tokens = test_effort() == TEST_QUICK ? 30 : 520;
    struct world w = make_world(fixture, "one by one", 3, tokens, 2, 32, 32);
    float *o, *states;
    whole(&w, &o, &states);
    for (int64_t i = 0; i < 3; i++) {
        lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
        COMMON(params, &w, i * tokens);
        params.batch = 1;
        params.tokens = tokens;
        params.state_out.base = w.states;
        params.state_out.offset = 4 * (uint64_t)(i * state_count(&w));
        run_prefill(&w, &params);
    }
    compare(&w, o, states);
}

/* ---- speculative decoding ---- */

enum { SEQUENCES = 3, DRAFTED = 5 };

/* Copies rows of dense [b n, h, dim] into draft's [b, h, DRAFTED, dim]: the sequence's next
 * `accepted` tokens, and noise after them, as wrong drafts are. */
static void draft_tokens(const struct world *w, float *draft, const float *host, int32_t dim,
                         int64_t i, int64_t first, int64_t accepted, struct random *random)
{
    for (int32_t head = 0; head < w->heads; head++)
        for (int64_t t = 0; t < DRAFTED; t++)
            for (int32_t x = 0; x < dim; x++)
                draft[((i * w->heads + head) * DRAFTED + t) * dim + x] =
                    t < accepted ? host[((i * w->tokens + first + t) * w->heads + head) * dim + x]
                                 : (float)random_normal(random);
}

/* Five tokens a call, of which each sequence accepts some: the next call starts from the accepted
 * row of token_states. A sequence that has ended is padding. */
static void rollback(struct fixture *fixture, const void *data)
{
    (void)data;
    struct random random = random_named("rollback");
    int64_t tokens = test_effort() == TEST_QUICK ? 20 : 64;
    struct world w = make_world(fixture, "rollback", SEQUENCES, tokens, 2, 20, 28);
    int64_t cells = state_count(&w), drafts = (int64_t)SEQUENCES * w.heads * DRAFTED;
    float *o, *states;
    whole(&w, &o, &states);
    prefill_piece(&w, 0, 1);
    float *got = fetch(&w, w.o, 0, output_count(&w));
    float *got_states = calloc((size_t)(SEQUENCES * cells), sizeof(float));
    float *draft = calloc((size_t)(drafts * w.e), sizeof(float)); /* e > d */

    lattn_decode_params params = LATTN_DECODE_PARAMS_INIT;
    params.batch = SEQUENCES;
    params.tokens = DRAFTED;
    params.heads = w.heads;
    params.d = w.d;
    params.e = w.e;
    params.q.base = device_floats(&w, NULL, drafts * w.d);
    params.k.base = device_floats(&w, NULL, drafts * w.d);
    params.v.base = device_floats(&w, NULL, drafts * w.e);
    params.o.base = device_floats(&w, NULL, drafts * w.e);
    params.slopes.base = w.slopes;
    params.state_in = (lattn_state){.base = w.states, .slots = w.slots};
    params.state_in.slot_idx.base = device_floats(&w, NULL, SEQUENCES);
    params.state_out.base = device_floats(&w, NULL, SEQUENCES * cells);
    params.token_states.base = w.kept;
    assert_ok(lattn_decode_prepare(fixture->stream, &params));

    int64_t at[SEQUENCES] = {1, 1, 1}, accepted[SEQUENCES];
    int32_t rows[SEQUENCES] = {0, 1, 2};
    while (at[0] < tokens || at[1] < tokens || at[2] < tokens) {
        lattn_stream *stream = fixture->stream;
        for (int i = 0; i < SEQUENCES; i++) {
            int64_t left = tokens - at[i];
            accepted[i] = random_range(&random, left < 1 ? 0 : 1, left < DRAFTED ? left : DRAFTED);
        }
        struct {
            const float *host;
            int32_t dim;
            void *base;
        } inputs[] = {{w.host_q, w.d, params.q.base},
                      {w.host_k, w.d, params.k.base},
                      {w.host_v, w.e, params.v.base}};
        for (int x = 0; x < 3; x++) {
            for (int i = 0; i < SEQUENCES; i++)
                draft_tokens(&w, draft, inputs[x].host, inputs[x].dim, i, at[i], accepted[i],
                             &random);
            assert_ok(lattn_memory_upload(stream, inputs[x].base, 0, draft,
                                          4 * (uint64_t)(drafts * inputs[x].dim)));
        }
        assert_ok(
            lattn_memory_upload(stream, params.state_in.slot_idx.base, 0, rows, sizeof(rows)));
        assert_ok(lattn_decode(stream, &params));
        float *out = fetch(&w, params.o.base, 0, drafts * w.e);
        for (int i = 0; i < SEQUENCES; i++) {
            for (int64_t t = 0; t < accepted[i]; t++)
                for (int32_t head = 0; head < w.heads; head++)
                    memcpy(got + ((i * tokens + at[i] + t) * w.heads + head) * w.e,
                           out + ((i * w.heads + head) * DRAFTED + t) * w.e, 4 * (size_t)w.e);
            at[i] += accepted[i];
            rows[i] = (int32_t)(i * DRAFTED + accepted[i] - 1);
            if (at[i] < tokens)
                continue;
            if (accepted[i]) {
                float *last = fetch(&w, params.token_states.base, rows[i] * cells, cells);
                memcpy(got_states + i * cells, last, 4 * (size_t)cells);
                free(last);
            }
            rows[i] = -1;
        }
        free(out);
        /* The rows just written are the next call's states. */
        void *written = params.token_states.base;
        params.token_states.base = params.state_in.base;
        params.state_in.base = written;
    }
    assert_close("outputs", got, o, output_count(&w));
    assert_close("states", got_states, states, SEQUENCES * cells);
    void *bases[] = {params.q.base,
                     params.k.base,
                     params.v.base,
                     params.o.base,
                     params.state_in.slot_idx.base,
                     params.state_out.base};
    for (int i = 0; i < 6; i++)
        lattn_memory_free(fixture->device, bases[i]);
    free(draft);
    free(got_states);
    free(got);
    free(o);
    free(states);
    end_world(&w);
}

/* ---- other properties ---- */

/* With slope 0, o_t = sum_{j <= t} (q_t . k_j) v_j: causal linear attention. */
static void plain_linear_attention(struct fixture *fixture, const void *data)
{
    (void)data;
    int64_t tokens = test_effort() == TEST_QUICK ? 30 : 400;
    struct world w = make_world(fixture, "plain", 1, tokens, 1, 32, 48);
    memset(w.host_slopes, 0, 4);
    assert_ok(lattn_memory_upload(fixture->stream, w.slopes, 0, w.host_slopes, 4));
    float *o, *states;
    whole(&w, &o, &states);
    float *wanted = calloc((size_t)(tokens * w.e), sizeof(float));
    for (int64_t t = 0; t < tokens; t++)
        for (int32_t x = 0; x < w.e; x++) {
            double sum = 0;
            for (int64_t j = 0; j <= t; j++) {
                double score = 0;
                for (int32_t i = 0; i < w.d; i++)
                    score += (double)w.host_q[t * w.d + i] * (double)w.host_k[j * w.d + i];
                sum += score * (double)w.host_v[j * w.e + x];
            }
            wanted[t * w.e + x] = (float)sum;
        }
    assert_close("outputs", o, wanted, tokens * w.e);
    free(wanted);
    free(states);
    free(o);
    end_world(&w);
}

/* The state before block i is the final state of the first 256 i tokens. */
static void block_states_are_prefixes(struct fixture *fixture, const void *data)
{
    (void)data;
    struct world w = make_world(fixture, "blocks", 1, 600, 2, 16, 16);
    lattn_prefill_params params = LATTN_PREFILL_PARAMS_INIT;
    COMMON(params, &w, 0);
    params.tokens = w.tokens;
    params.block_states.base = w.kept; /* [1, h, 4, d, e], of 9 rows' room */
    run_prefill(&w, &params);
    int64_t cells = (int64_t)w.d * w.e;
    float *blocks = fetch(&w, w.kept, 0, w.heads * 4 * cells);
    for (int i = 1; i < 4; i++) {
        prefill_piece(&w, 0, i * 256 < w.tokens ? i * 256 : w.tokens);
        float *state = fetch(&w, w.states, 0, state_count(&w));
        for (int32_t head = 0; head < w.heads; head++)
            assert_close("block states", blocks + (head * 4 + i) * cells, state + head * cells,
                         cells);
        free(state);
    }
    free(blocks);
    end_world(&w);
}

static void same_bits_twice(struct fixture *fixture, const void *data)
{
    (void)data;
    struct world w =
        make_world(fixture, "twice", 2, test_effort() == TEST_QUICK ? 30 : 1100, 2, 64, 64);
    float *o, *states, *o_again, *states_again;
    whole(&w, &o, &states);
    whole(&w, &o_again, &states_again);
    assert_memory_equal(o, o_again, 4 * (size_t)output_count(&w));
    assert_memory_equal(states, states_again, 4 * (size_t)(w.batch * state_count(&w)));
    free(o);
    free(states);
    free(o_again);
    free(states_again);
    end_world(&w);
}

int main(int argc, char **argv)
{
    static const struct device_test tests[] = {
        {"a sequence cut anywhere", cuts, NULL, TEST_QUICK},
        {"prefill is decode repeated", decode_all, NULL, TEST_QUICK},
        {"packed is dense", packed, NULL, TEST_QUICK},
        {"a batch is its sequences", one_by_one, NULL, TEST_QUICK},
        {"a rejected draft leaves no trace", rollback, NULL, TEST_QUICK},
        {"slope 0 is linear attention", plain_linear_attention, NULL, TEST_QUICK},
        {"block states are states of prefixes", block_states_are_prefixes, NULL, TEST_NORMAL},
        {"the same bits twice", same_bits_twice, NULL, TEST_QUICK},
    };
    return run_on_devices("properties", tests, sizeof(tests) / sizeof(*tests), argc, argv);
}
