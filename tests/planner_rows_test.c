/* The planner: which rows of a catalogue a call gets. */
#include <string.h>

#include "planner_bench.h"

/* Which decode row the call gets. */
static const char *chosen(lattn_decode_params *p)
{
    assert_ok(lattn_decode_prepare(bench.stream, p));
    fake.launch_count = 0;
    assert_ok(lattn_decode(bench.stream, p));
    assert_int_equal(fake.launch_count, 1);
    return fake.launched[0]->entry;
}

static void rows_by_type_and_size(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        DECODE("bf16", .types = LATTN_TYPES_BF16, ANY_SIZE),
        DECODE("64", .types = LATTN_TYPES_ALL, .threads = 64, .d_min = 64, .d_max = 64, .e_min = 64,
               .e_max = 64),
        DECODE("by 16", .types = LATTN_TYPES_F32, .threads = 64, .d_min = 16, .d_max = 128,
               .d_step = 16, .e_min = 1, .e_max = 128),
        DECODE("any", ANY),
    };
    open_bench(rows, 4);
    lattn_decode_params p = some_decode(1, 1, 64);
    assert_string_equal(chosen(&p), "64");
    p.dtype = LATTN_BF16;
    assert_string_equal(chosen(&p), "bf16");
    p.dtype = LATTN_F16;
    assert_string_equal(chosen(&p), "64");
    p.e = 63;
    assert_string_equal(chosen(&p), "any");
    p.dtype = LATTN_F32;
    assert_string_equal(chosen(&p), "by 16");
    p.d = 65;
    assert_string_equal(chosen(&p), "any");
    p.d = 128;
    p.e = 129;
    assert_string_equal(chosen(&p), "any");
    close_bench();
}

static void rows_by_needs(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        DECODE("tf32", ANY, .needs = LATTN_NEEDS_TF32_ALLOWED),
        DECODE("one", ANY,
               .needs = LATTN_NEEDS_ONE_TOKEN | LATTN_NEEDS_ALIGN16 | LATTN_NEEDS_STATE_E_UNIT |
                        LATTN_NEEDS_STATE_F32),
        DECODE("ed", ANY, .needs = LATTN_NEEDS_STATE_D_UNIT),
        DECODE("any", ANY),
    };
    open_bench(rows, 4);
    lattn_decode_params p = some_decode(2, 2, 64);
    assert_string_equal(chosen(&p), "one");
    p.precision = LATTN_PRECISION_TF32;
    assert_string_equal(chosen(&p), "tf32");
    p.dtype = LATTN_F16; /* no float32 products to begin with */
    p.precision = LATTN_PRECISION_FULL;
    assert_string_equal(chosen(&p), "tf32");
    p.dtype = LATTN_F32;

    lattn_decode_params good = p;
    p.tokens = 2;
    assert_string_equal(chosen(&p), "any");
    p = good;
    p.token_states.base = somewhere;
    assert_string_equal(chosen(&p), "any");
    p = good;
    p.q.offset = 4;
    assert_string_equal(chosen(&p), "any");
    p = good;
    p.q.base = somewhere + 4;
    assert_string_equal(chosen(&p), "any");
    p = good;
    p.o.stride_batch = 129;
    p.o.stride_head = 64;
    p.o.stride_token = 64;
    assert_string_equal(chosen(&p), "any");
    p.batch = 1; /* a stride over one does not matter */
    assert_string_equal(chosen(&p), "one");
    p = good;
    p.state_in.dtype = LATTN_BF16;
    assert_string_equal(chosen(&p), "any");
    p = good;
    p.state_in.offset = 8;
    assert_string_equal(chosen(&p), "any");
    p = good;
    p.state_in.base = somewhere + 8;
    assert_string_equal(chosen(&p), "any");
    p = good;
    p.state_in.stride_slot = 2 * 64 * 64;
    p.state_in.stride_head = 64 * 64;
    p.state_in.stride_d = 1;
    p.state_in.stride_e = 64;
    assert_string_equal(chosen(&p), "ed");
    p.state_in.stride_e = 65;
    p.state_in.stride_head = 64 * 65;
    p.state_in.stride_slot = 2 * 64 * 65;
    assert_string_equal(chosen(&p), "any");
    p.state_out = good.state_in; /* both must offer what a row needs */
    p.state_in = good.state_in;
    p.state_out.offset = 4;
    assert_string_equal(chosen(&p), "any");
    close_bench();
}

static void rows_by_type_of_states(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        DECODE("float", ANY, .needs = LATTN_NEEDS_STATE_F32),
        DECODE("half", ANY, .needs = LATTN_NEEDS_STATE_HALF),
        DECODE("any", ANY),
    };
    open_bench(rows, 3);
    lattn_decode_params p = some_decode(2, 2, 64);
    p.state_out = p.state_in;
    static const struct {
        lattn_dtype in, out;
        const char *row;
    } types[] = {{LATTN_F32, LATTN_F32, "float"},  {LATTN_F16, LATTN_F16, "half"},
                 {LATTN_BF16, LATTN_BF16, "half"}, {LATTN_F16, LATTN_BF16, "any"},
                 {LATTN_BF16, LATTN_F32, "any"},   {LATTN_F32, LATTN_BF16, "any"}};
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        p.state_in.dtype = types[i].in;
        p.state_out.dtype = types[i].out;
        assert_string_equal(chosen(&p), types[i].row);
    }
    p.state_in.dtype = p.state_out.dtype = LATTN_BF16;
    p.token_states = p.state_out;
    assert_string_equal(chosen(&p), "half");
    p.token_states.dtype = LATTN_F32;
    assert_string_equal(chosen(&p), "any");
    close_bench();
}

static void rows_by_number_of_groups(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        DECODE("many", ANY, .needs = LATTN_NEEDS_MANY_GROUPS, .e_tile = 16, .groups_per_unit = 3),
        DECODE("any", ANY),
    };
    fake.caps.compute_units = 2;
    open_bench(rows, 2);
    lattn_decode_params p = some_decode(3, 2, 64); /* 24 groups, and 6 at once */
    assert_string_equal(chosen(&p), "many");
    p.e = 48;
    assert_string_equal(chosen(&p), "any");
    close_bench();
}

static void rows_by_device(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        DECODE("featured", ANY, .features = 6),
        DECODE("wide", .types = LATTN_TYPES_ALL, .d_min = 1, .d_max = 256, .e_min = 1, .e_max = 256,
               .threads = 512),
        DECODE("roomy", ANY, .shared = 1024, .shared_total = 40000),
        DECODE("any", ANY),
    };
    static const struct {
        uint32_t features, threads, shared;
        const char *row;
    } devices[] = {{7, 64, 0, "featured"},
                   {5, 1024, 65536, "wide"},
                   {0, 512, 0, "wide"},
                   {2, 511, 40000, "roomy"},
                   {4, 64, 39999, "any"}};
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        fake_reset();
        fake.caps.features = devices[i].features;
        fake.caps.max_threads = devices[i].threads;
        fake.caps.max_shared = devices[i].shared;
        open_bench(rows, 4);
        lattn_decode_params p = some_decode(1, 1, 8);
        assert_string_equal(chosen(&p), devices[i].row);
        close_bench();
    }
}

#define ABLE                                                                                       \
    .pass = LATTN_PASS_OUTPUT, ANY,                                                                \
    .can = LATTN_CAN_WALK | LATTN_CAN_WALK_KEPT | LATTN_CAN_WALK_VLLM

static void walking_rows(void **state)
{
    (void)state;
    static const struct lattn_kernel_row walk[] = {WALK("walk", ANY, .token_tile = 0)};
    open_bench(walk, 1);
    lattn_prefill_params p = some_prefill(2, 5000, 3, 16);
    run(&p);
    assert_int_equal(fake.launch_count, 1);
    assert_launched(0, "walk", 2 * 3);
    assert_int_equal(p.workspace.size, 0);
    assert_false(fake.args[0].flags & LATTN_FLAG_SEGMENTED);
    assert_true(fake.args[0].segment >= 5000);
    /* It cannot keep block states, nor follow vllm's rule, and has no company that could. */
    p.block_states.base = somewhere;
    assert_int_equal(lattn_prefill(bench.stream, &p), LATTN_ERROR_UNSUPPORTED);
    p.block_states.base = NULL;
    p.decay = LATTN_DECAY_VLLM;
    assert_int_equal(lattn_prefill(bench.stream, &p), LATTN_ERROR_UNSUPPORTED);
    close_bench();

    static const struct lattn_kernel_row able[] = {
        {.entry = "strict", ABLE, .needs = LATTN_NEEDS_RECURRENCE}, /* not for vllm's rule */
        {.entry = "able", ABLE},
    };
    open_bench(able, 2);
    p.block_states.base = somewhere;
    run(&p);
    assert_launched(0, "able", 2 * 3);
    p.decay = LATTN_DECAY_RECURRENCE;
    run(&p);
    assert_launched(0, "strict", 2 * 3);
    close_bench();
}

static void chaining_rows(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        {.entry = "chain",
         .pass = LATTN_PASS_OUTPUT,
         .types = LATTN_TYPES_ALL,
         .d_min = 1,
         .d_max = 64,
         .e_min = 1,
         .e_max = 256,
         .threads = 64,
         .can = LATTN_CAN_WALK | LATTN_CAN_CHAIN,
         .e_tile = 32},
        {.entry = "output", .pass = LATTN_PASS_OUTPUT, ANY, .token_tile = 256},
        {.entry = "state", .pass = LATTN_PASS_STATE, ANY},
        {.entry = "scan", .pass = LATTN_PASS_SCAN, ANY},
    };
    fake.caps.compute_units = 132;
    open_bench(rows, 4);
    /* Few heads and long sequences: one launch, of a group for each segment. Tiles of e: 2. */
    lattn_prefill_params p = some_prefill(1, 65536, 3, 40);
    p.state_out.base = somewhere;
    run(&p);
    assert_int_equal(fake.launch_count, 1);
    const struct lattn_args *a = &fake.args[0];
    assert_true(a->segments > 1);
    assert_launched(0, "chain", 2 * 3 * (uint64_t)a->segments);
    assert_int_equal(a->segments, (65536 + a->segment - 1) / a->segment);
    assert_int_equal(a->flags, LATTN_FLAG_STATE_OUT | LATTN_FLAG_CHAINED);
    char text[200];
    assert_ok(lattn_prefill_describe(bench.stream, &p, text, sizeof(text)));
    assert_non_null(strstr(text, ", chained: chain x "));
    /* Whole sequences where there are enough. */
    p.heads = 132;
    run(&p);
    assert_launched(0, "chain", 2 * 132);
    assert_int_equal(p.workspace.size, 0);
    /* What a chain does not do. */
    p.heads = 3;
    p.d = 65;
    p.e = 40;
    run(&p);
    assert_int_equal(fake.launch_count, 3);
    p.d = 40;
    p.block_states.base = somewhere;
    run(&p);
    assert_int_equal(fake.launch_count, 3);
    p.block_states.base = NULL;
    p.decay = LATTN_DECAY_VLLM;
    run(&p);
    assert_int_equal(fake.launch_count, 3);
    close_bench();
}

/* Of rows that tell their pace, the one that is expected to be done first: with half of e in a
 * group twice as many units have work. A row that does not tell is never preferred to one before
 * it. */
static void rows_by_pace(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        WALK("narrow", ANY, .e_tile = 32, .pace = 130),
        WALK("untold", ANY),
        WALK("wide", ANY, .pace = 120),
    };
    fake.caps.compute_units = 16;
    open_bench(rows, 3);
    lattn_prefill_params p = some_prefill(1, 5000, 8, 64);
    run(&p);
    assert_launched(0, "narrow", 16);
    p = some_prefill(8, 5000, 8, 64);
    run(&p);
    assert_launched(0, "wide", 64);
    close_bench();
}

/* A launch that the device cannot take is no choice, however fast it would be. */
static void rows_by_most_groups(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        WALK("wide", ANY, .pace = 130),
        WALK("narrow", ANY, .e_tile = 32, .pace = 120),
    };
    fake.caps.compute_units = 16;
    fake.caps.max_groups = 1000;
    open_bench(rows, 2);
    lattn_prefill_params p = some_prefill(60, 5000, 8, 64);
    run(&p);
    assert_launched(0, "narrow", 960);
    p.batch++;
    p.heads = 16;
    run(&p);
    assert_launched(0, "wide", 976);
    close_bench();
}

/* No more groups than run at once, if they can share the work; sequences that differ in length are
 * not shared out beforehand. */
static void rows_that_take_turns(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        {.entry = "turns",
         .pass = LATTN_PASS_OUTPUT,
         .can = LATTN_CAN_WALK | LATTN_CAN_TAKE_TURNS,
         .groups_per_unit = 2,
         ANY},
    };
    fake.caps.compute_units = 10;
    open_bench(rows, 1);
    lattn_prefill_params p = some_prefill(2, 100, 8, 64);
    run(&p);
    assert_launched(0, "turns", 16);
    p.batch = 50;
    run(&p);
    assert_launched(0, "turns", 20);
    p.cu_seqlens.base = somewhere;
    run(&p);
    assert_launched(0, "turns", 400);
    close_bench();
}

/* A row made for a larger d is no better for a smaller one, though a unit has it to itself. */
static void rows_by_padding(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        WALK("128", .types = LATTN_TYPES_ALL, .d_min = 1, .d_max = 128, .e_min = 1, .e_max = 256,
             .threads = 64, .groups_per_unit = 2, .pace = 120),
        WALK("256", ANY, .groups_per_unit = 1, .pace = 120),
    };
    fake.caps.compute_units = 132;
    open_bench(rows, 2);
    lattn_prefill_params p = some_prefill(1, 4096, 4, 128);
    run(&p);
    assert_launched(0, "128", 4);
    p.d = 129;
    run(&p);
    assert_launched(0, "256", 4);
    close_bench();
}

/* Three launches of faster rows instead of one, where the work is long enough to hide the host. */
static void one_launch_or_three(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        WALK("fast", ANY, .groups_per_unit = 1, .pace = 120),
        {.entry = "chain",
         .pass = LATTN_PASS_OUTPUT,
         ANY,
         .can = LATTN_CAN_WALK | LATTN_CAN_CHAIN,
         .groups_per_unit = 1,
         .pace = 400},
        {.entry = "state", .pass = LATTN_PASS_STATE, ANY, .pace = 120},
        {.entry = "scan", .pass = LATTN_PASS_SCAN, ANY, .e_tile = 64, .d_tile = 2},
    };
    fake.caps.compute_units = 132;
    open_bench(rows, 4);
    lattn_prefill_params p = some_prefill(1, 4096, 8, 128);
    run(&p);
    assert_int_equal(fake.launch_count, 1);
    assert_string_equal(fake.launched[0]->entry, "chain");
    p.tokens = 131072;
    run(&p);
    assert_int_equal(fake.launch_count, 3);
    assert_string_equal(fake.launched[2]->entry, "fast");
    close_bench();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(rows_by_type_and_size, bench_reset),
        cmocka_unit_test_setup(rows_by_needs, bench_reset),
        cmocka_unit_test_setup(rows_by_type_of_states, bench_reset),
        cmocka_unit_test_setup(rows_by_number_of_groups, bench_reset),
        cmocka_unit_test_setup(rows_by_device, bench_reset),
        cmocka_unit_test_setup(walking_rows, bench_reset),
        cmocka_unit_test_setup(chaining_rows, bench_reset),
        cmocka_unit_test_setup(rows_by_pace, bench_reset),
        cmocka_unit_test_setup(rows_by_most_groups, bench_reset),
        cmocka_unit_test_setup(rows_by_padding, bench_reset),
        cmocka_unit_test_setup(one_launch_or_three, bench_reset),
        cmocka_unit_test_setup(rows_that_take_turns, bench_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
