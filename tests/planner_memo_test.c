/* The planner: the plan of a stream's last call, which serves calls that are like it. */
#include "planner_bench.h"

struct launched {
    int count;
    const struct lattn_kernel_row *rows[3];
    uint64_t groups[3], workspace;
    int32_t segment, segments;
};

static struct launched launches_of(lattn_prefill_params p)
{
    run(&p);
    struct launched all = {.count = fake.launch_count,
                           .workspace = p.workspace.size,
                           .segment = fake.args[0].segment,
                           .segments = fake.args[0].segments};
    assert_in_range(all.count, 1, 3);
    for (int i = 0; i < all.count; i++) {
        all.rows[i] = fake.launched[i];
        all.groups[i] = fake.launches[i].groups;
    }
    return all;
}

static bool same_launches(const struct launched *a, const struct launched *b)
{
    bool same = a->count == b->count && a->workspace == b->workspace && a->segment == b->segment &&
                a->segments == b->segments;
    for (int i = 0; i < 3; i++)
        same = same && a->rows[i] == b->rows[i] && a->groups[i] == b->groups[i];
    return same;
}

/* A stream keeps the plan of its last call. A call that differs in one thing gets its own, which is
 * that of a stream that has seen no other. */
static void plans_remembered(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        WALK("tf32", ANY_SIZE, .types = LATTN_TYPES_F32,
             .needs = LATTN_NEEDS_TF32_ALLOWED | LATTN_NEEDS_ALIGN16),
        {.entry = "chain",
         .pass = LATTN_PASS_OUTPUT,
         .types = LATTN_TYPES_F32 | LATTN_TYPES_F16,
         ANY_SIZE,
         .d_step = 64,
         .can = LATTN_CAN_WALK | LATTN_CAN_CHAIN,
         .needs = LATTN_NEEDS_ALIGN16,
         .e_tile = 32},
        {.entry = "output", .pass = LATTN_PASS_OUTPUT, ANY, .token_tile = 256},
        {.entry = "state", .pass = LATTN_PASS_STATE, ANY},
        {.entry = "scan", .pass = LATTN_PASS_SCAN, ANY},
    };
    lattn_prefill_params p = some_prefill(2, 3000, 3, 64);
    p.dtype = LATTN_F16;
    p.e = 64;
    p.max_tokens = 3000;
    enum {
        SAME,
        TYPE,
        PRECISION,
        D,
        E,
        OFFERS,
        TOKENS,
        BATCH,
        HEADS,
        KEPT,
        PACKED,
        LONGEST,
        SEQUENCES,
        CALLS
    };
    lattn_prefill_params calls[CALLS];
    for (int i = 0; i < CALLS; i++)
        calls[i] = p;
    calls[TYPE].dtype = LATTN_BF16;
    calls[PRECISION].dtype = LATTN_F32;
    calls[PRECISION].precision = LATTN_PRECISION_TF32;
    calls[D].d = 48;
    calls[E].e = 80;
    calls[OFFERS].q.offset = 4;
    calls[TOKENS].tokens = 30000;
    calls[BATCH].batch = 3;
    calls[HEADS].heads = 4;
    calls[KEPT].block_states.base = somewhere;
    calls[PACKED].cu_seqlens.base = somewhere;
    calls[LONGEST] = calls[SEQUENCES] = calls[PACKED];
    calls[LONGEST].max_tokens = 256;
    calls[SEQUENCES].batch = 3;

    struct launched alone[CALLS];
    fake.caps.compute_units = 132;
    for (int i = 0; i < CALLS; i++) {
        open_bench(rows, 5);
        alone[i] = launches_of(calls[i]);
        close_bench();
    }
    open_bench(rows, 5);
    for (int i = 1; i < CALLS; i++) {
        const int before = i > PACKED ? PACKED : SAME;
        assert_false(same_launches(&alone[i], &alone[before]));
        for (int j = 0; j < 4; j++) {
            const int call = j % 2 ? i : before;
            const struct launched now = launches_of(calls[call]);
            assert_true(same_launches(&now, &alone[call]));
        }
    }
    close_bench();
}

/* Decode's plan is kept beside prefill's. */
static void plans_of_both(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {WALK("walk", ANY), DECODE("decode", ANY)};
    open_bench(rows, 2);
    lattn_prefill_params p = some_prefill(2, 100, 8, 64);
    lattn_decode_params d = some_decode(3, 8, 64);
    assert_ok(lattn_decode_prepare(bench.stream, &d));
    for (int i = 0; i < 3; i++) {
        run(&p);
        assert_launched(0, "walk", 16);
        fake.launch_count = 0;
        assert_ok(lattn_decode(bench.stream, &d));
        assert_launched(0, "decode", (uint64_t)d.batch * 8);
        d.batch += i;
    }
    close_bench();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(plans_remembered, bench_reset),
        cmocka_unit_test_setup(plans_of_both, bench_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
