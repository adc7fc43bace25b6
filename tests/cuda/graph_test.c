/* CUDA graphs, on a real driver: the application's context and stream are adopted, prefill and
 * decode captured, and the graph replayed with slot indices, sequence lengths and flags rewritten
 * in between. The reference device, called afresh each time, says what must come out. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <lattn/interop.h>

#include "number.h"
#include "random.h"

/* ---- the application's side of CUDA --------------------------------------------------------- */

static struct {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*get_current)(void **context);
    int (*set_current)(void *context);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*capture_begin)(void *stream, int mode);
    int (*capture_end)(void *stream, void **graph);
    int (*instantiate)(void **executable, void *graph, unsigned long long flags);
    int (*launch)(void *executable, void *stream);
    int (*graph_destroy)(void *graph);
    int (*executable_destroy)(void *executable);
} cu;

/* No driver, or no device in it: false. */
static bool find_cuda(void)
{
    const struct {
        const char *name;
        void *member;
    } wanted[] = {
        {"cuInit", &cu.init},
        {"cuDeviceGetCount", &cu.count},
        {"cuDevicePrimaryCtxRetain", &cu.retain},
        {"cuDevicePrimaryCtxRelease_v2", &cu.release},
        {"cuCtxGetCurrent", &cu.get_current},
        {"cuCtxSetCurrent", &cu.set_current},
        {"cuStreamCreate", &cu.stream_create},
        {"cuStreamDestroy_v2", &cu.stream_destroy},
        {"cuStreamBeginCapture_v2", &cu.capture_begin},
        {"cuStreamEndCapture", &cu.capture_end},
        {"cuGraphInstantiateWithFlags", &cu.instantiate},
        {"cuGraphLaunch", &cu.launch},
        {"cuGraphDestroy", &cu.graph_destroy},
        {"cuGraphExecDestroy", &cu.executable_destroy},
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        void *symbol = library ? dlsym(library, wanted[i].name) : NULL;
        if (!symbol)
            return false;
        memcpy(wanted[i].member, &symbol, sizeof(symbol));
    }
    int count = 0;
    return !cu.init(0) && !cu.count(&count) && count;
}

#define assert_cuda(call) assert_int_equal(call, 0)

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, lattn_error_message());                                      \
    } while (0)

/* ---- two devices with the same data --------------------------------------------------------- */

enum {
    HEADS = 3,
    SEQUENCES = 4,
    TOKENS = 2500, /* packed, in all: a sequence may be long enough for segments */
    SLOTS = 7,
    REPLAYS = 4,
};

enum array { Q, K, V, O, SLOPES, STARTS, FLAGS, SLOT_IN, SLOT_OUT, POOL, WORK, ARRAYS };

struct side {
    lattn_device *device;
    lattn_stream *stream;
    void *base[ARRAYS];
};

struct sides {
    lattn_context *library;
    void *context, *native; /* the application's */
    struct side cuda, reference;
    uint64_t bytes[ARRAYS];
    unsigned char *host[ARRAYS];
    struct random random;
};

static void open_sides(struct sides *sides)
{
    int32_t index;
    assert_cuda(cu.retain(&sides->context, 0));
    assert_cuda(cu.set_current(sides->context));
    assert_cuda(cu.stream_create(&sides->native, 1));
    assert_cuda(cu.set_current(NULL));

    assert_ok(lattn_context_create(NULL, &sides->library));
    const lattn_native native = lattn_native_cuda(sides->context);
    assert_ok(lattn_device_adopt(sides->library, &native, &sides->cuda.device));
    assert_ok(lattn_stream_adopt(sides->cuda.device, sides->native, &sides->cuda.stream));
    assert_ok(lattn_device_find(sides->library, "reference", 0, &index));
    assert_ok(lattn_device_open(sides->library, index, &sides->reference.device));
    assert_ok(lattn_stream_create(sides->reference.device, &sides->reference.stream));
    sides->random = random_named("cuda graph");
}

static void close_sides(struct sides *sides)
{
    struct side *both[] = {&sides->cuda, &sides->reference};
    for (int i = 0; i < 2; i++) {
        for (int array = 0; array < ARRAYS; array++)
            lattn_memory_free(both[i]->device, both[i]->base[array]);
        lattn_stream_destroy(both[i]->stream);
        lattn_device_close(both[i]->device);
    }
    lattn_context_destroy(sides->library);
    for (int array = 0; array < ARRAYS; array++)
        free(sides->host[array]);
    void *current = sides;
    assert_cuda(cu.get_current(&current));
    assert_null(current);
    assert_cuda(cu.set_current(sides->context));
    assert_cuda(cu.stream_destroy(sides->native));
    assert_cuda(cu.set_current(NULL));
    assert_cuda(cu.release(0));
}

static void make_array(struct sides *sides, enum array array, uint64_t bytes)
{
    sides->bytes[array] = bytes;
    sides->host[array] = calloc(1, bytes + 1);
    assert_non_null(sides->host[array]);
    assert_ok(lattn_memory_alloc(sides->cuda.device, bytes, &sides->cuda.base[array]));
    assert_ok(lattn_memory_alloc(sides->reference.device, bytes, &sides->reference.base[array]));
}

/* Puts an array's host data on both. */
static void put(struct sides *sides, enum array array)
{
    struct side *both[] = {&sides->cuda, &sides->reference};
    for (int i = 0; i < 2; i++)
        assert_ok(lattn_memory_upload(both[i]->stream, both[i]->base[array], 0, sides->host[array],
                                      sides->bytes[array]));
}

static void randomize(struct sides *sides, enum array array, lattn_dtype dtype)
{
    const size_t size = number_size(dtype);
    for (uint64_t at = 0; at < sides->bytes[array]; at += size)
        number_store(sides->host[array] + at, dtype, random_normal(&sides->random));
    put(sides, array);
}

/* What lies in an array on the two devices, as one relative error. */
static double difference(struct sides *sides, enum array array, lattn_dtype dtype)
{
    const size_t size = number_size(dtype);
    double error = 0, norm = 0;
    unsigned char *expected = malloc(sides->bytes[array]);
    assert_non_null(expected);
    assert_ok(lattn_memory_download(sides->cuda.stream, sides->host[array], sides->cuda.base[array],
                                    0, sides->bytes[array]));
    assert_ok(lattn_memory_download(sides->reference.stream, expected, sides->reference.base[array],
                                    0, sides->bytes[array]));
    for (uint64_t at = 0; at < sides->bytes[array]; at += size) {
        const double want = number_load(expected + at, dtype);
        error += pow(number_load(sides->host[array] + at, dtype) - want, 2);
        norm += want * want;
    }
    free(expected);
    return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

/* ---- what a graph reads anew at each replay -------------------------------------------------- */

/* Random cuts of the tokens into sequences, empty ones and unused tail tokens among them. */
static void cut_sequences(struct sides *sides)
{
    int32_t *starts = (int32_t *)(void *)sides->host[STARTS];
    for (int i = 0; i <= SEQUENCES; i++)
        starts[i] = (int32_t)random_range(&sides->random, 0, TOKENS);
    for (int i = 0; i <= SEQUENCES; i++) {
        for (int j = i + 1; j <= SEQUENCES; j++) {
            if (starts[j] < starts[i]) {
                const int32_t lower = starts[j];
                starts[j] = starts[i];
                starts[i] = lower;
            }
        }
    }
    starts[0] = 0;
    if (random_chance(&sides->random, 2))
        starts[2] = starts[1];
    put(sides, STARTS);
}

/* A different slot for each sequence, now and then one that means padding. */
static void choose_slots(struct sides *sides, enum array array)
{
    int32_t *slots = (int32_t *)(void *)sides->host[array];
    int32_t order[SLOTS];
    for (int i = 0; i < SLOTS; i++) {
        const int j = (int)random_range(&sides->random, 0, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int i = 0; i < SEQUENCES; i++)
        slots[i] = random_chance(&sides->random, 4) ? (i % 2 ? -1 : SLOTS + i) : order[i];
    put(sides, array);
}

static void rewrite(struct sides *sides, lattn_dtype dtype)
{
    for (enum array array = Q; array <= V; array++)
        randomize(sides, array, dtype);
    cut_sequences(sides);
    choose_slots(sides, SLOT_IN);
    memcpy(sides->host[SLOT_OUT], sides->host[SLOT_IN], sides->bytes[SLOT_IN]);
    put(sides, SLOT_OUT);
    for (int i = 0; i < SEQUENCES; i++)
        sides->host[FLAGS][i] = (unsigned char)random_chance(&sides->random, 2);
    put(sides, FLAGS);
    /* What no call writes must not differ either. */
    memset(sides->host[O], 0, sides->bytes[O]);
    put(sides, O);
}

/* ---- the calls ------------------------------------------------------------------------------- */

struct kind {
    const char *name;
    bool decode;
    lattn_dtype dtype;
    int32_t dim;
    double limit; /* twice the limit of one device, since both round */
};

union params {
    lattn_prefill_params prefill;
    lattn_decode_params decode;
};

static void fill_params(union params *params, const struct kind *kind, const struct side *side,
                        uint64_t workspace)
{
    const lattn_state pool = {
        .base = side->base[POOL],
        .slots = SLOTS,
        .slot_idx = {side->base[SLOT_IN], 0},
    };
    lattn_state out = pool;
    out.slot_idx.base = side->base[SLOT_OUT];
    if (kind->decode) {
        params->decode = (lattn_decode_params){
            .struct_size = sizeof(params->decode),
            .batch = SEQUENCES,
            .heads = HEADS,
            .d = kind->dim,
            .dtype = kind->dtype,
            .q = {.base = side->base[Q]},
            .k = {.base = side->base[K]},
            .v = {.base = side->base[V]},
            .o = {.base = side->base[O]},
            .slopes = {side->base[SLOPES], 0},
            .state_in = pool,
            .has_initial = {side->base[FLAGS], 0},
        };
        return;
    }
    params->prefill = (lattn_prefill_params){
        .struct_size = sizeof(params->prefill),
        .batch = SEQUENCES,
        .tokens = TOKENS,
        .heads = HEADS,
        .d = kind->dim,
        .dtype = kind->dtype,
        .q = {.base = side->base[Q]},
        .k = {.base = side->base[K]},
        .v = {.base = side->base[V]},
        .o = {.base = side->base[O]},
        .slopes = {side->base[SLOPES], 0},
        .cu_seqlens = {side->base[STARTS], 0},
        .state_in = pool,
        .has_initial = {side->base[FLAGS], 0},
        .state_out = out,
        .workspace = {side->base[WORK], 0, workspace},
    };
}

static lattn_status prepare(lattn_stream *stream, const struct kind *kind,
                            const union params *params)
{
    return kind->decode ? lattn_decode_prepare(stream, &params->decode)
                        : lattn_prefill_prepare(stream, &params->prefill);
}

static lattn_status call(lattn_stream *stream, const struct kind *kind, const union params *params)
{
    return kind->decode ? lattn_decode(stream, &params->decode)
                        : lattn_prefill(stream, &params->prefill);
}

static void make_data(struct sides *sides, const struct kind *kind)
{
    const uint64_t tokens = kind->decode ? SEQUENCES : TOKENS;
    const uint64_t vectors = tokens * HEADS * (uint64_t)kind->dim * number_size(kind->dtype);
    for (enum array array = Q; array <= O; array++)
        make_array(sides, array, vectors);
    make_array(sides, SLOPES, HEADS * sizeof(float));
    make_array(sides, STARTS, (SEQUENCES + 1) * sizeof(int32_t));
    make_array(sides, FLAGS, SEQUENCES);
    make_array(sides, SLOT_IN, SEQUENCES * sizeof(int32_t));
    make_array(sides, SLOT_OUT, SEQUENCES * sizeof(int32_t));
    make_array(sides, POOL, (uint64_t)SLOTS * HEADS * kind->dim * kind->dim * sizeof(float));
    make_array(sides, WORK, (uint64_t)16 << 20);
    float *slopes = (float *)(void *)sides->host[SLOPES];
    for (int i = 0; i < HEADS; i++)
        slopes[i] = 0.02f * (float)(i * i);
    put(sides, SLOPES);
    randomize(sides, POOL, LATTN_F32);
}

static void replay(void **state)
{
    const struct kind *kind = *state;
    struct sides sides = {0};
    open_sides(&sides);
    make_data(&sides, kind);
    union params cuda, reference;
    fill_params(&cuda, kind, &sides.cuda, sides.bytes[WORK]);
    fill_params(&reference, kind, &sides.reference, sides.bytes[WORK]);
    assert_ok(prepare(sides.reference.stream, kind, &reference));

    /* Mode 0 is the strict one: unsafe work of any thread ends the capture. */
    void *graph = NULL, *executable = NULL;
    assert_cuda(cu.capture_begin(sides.native, 0));
    assert_int_equal(call(sides.cuda.stream, kind, &cuda), LATTN_ERROR_NOT_PREPARED);
    assert_int_equal(lattn_stream_synchronize(sides.cuda.stream), LATTN_ERROR_INVALID_ARGUMENT);
    assert_ok(prepare(sides.cuda.stream, kind, &cuda));
    assert_ok(call(sides.cuda.stream, kind, &cuda));
    assert_cuda(cu.capture_end(sides.native, &graph));
    assert_non_null(graph);

    assert_cuda(cu.set_current(sides.context));
    assert_cuda(cu.instantiate(&executable, graph, 0));
    for (int i = 0; i < REPLAYS; i++) {
        assert_cuda(cu.set_current(NULL));
        rewrite(&sides, kind->dtype);
        assert_ok(call(sides.reference.stream, kind, &reference));
        assert_cuda(cu.set_current(sides.context));
        assert_cuda(cu.launch(executable, sides.native));
        assert_cuda(cu.set_current(NULL));
        const double o = difference(&sides, O, kind->dtype);
        const double pool = difference(&sides, POOL, LATTN_F32);
        if (!(o <= kind->limit && pool <= kind->limit))
            fail_msg("%s, replay %d: error of o %g, of the states %g", kind->name, i, o, pool);
    }
    assert_cuda(cu.set_current(sides.context));
    assert_cuda(cu.executable_destroy(executable));
    assert_cuda(cu.graph_destroy(graph));
    assert_cuda(cu.set_current(NULL));
    close_sides(&sides);
}

static void absent(void **state)
{
    (void)state;
    const char *required = getenv("LATTN_TEST_REQUIRE");
    if (required && strstr(required, "cuda"))
        fail_msg("%s", "no CUDA device, and LATTN_TEST_REQUIRE names it");
    skip();
}

int main(void)
{
    static struct kind kinds[] = {
        {"prefill, f32", false, LATTN_F32, 64, 4e-6},
        {"prefill, bf16", false, LATTN_BF16, 128, 8e-3},
        {"prefill, f16, odd", false, LATTN_F16, 40, 1.2e-3},
        {"decode, f32", true, LATTN_F32, 128, 4e-6},
        {"decode, bf16", true, LATTN_BF16, 64, 8e-3},
    };
    enum { KINDS = sizeof(kinds) / sizeof(*kinds) };
    const bool found = find_cuda();
    struct CMUnitTest tests[KINDS];
    for (int i = 0; i < KINDS; i++)
        tests[i] =
            (struct CMUnitTest){kinds[i].name, found ? replay : absent, NULL, NULL, &kinds[i]};
    return _cmocka_run_group_tests("CUDA graphs", tests, KINDS, NULL, NULL);
}
