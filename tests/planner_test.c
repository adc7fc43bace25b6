/* The planner: what a call launches, what is refused, and that what prepare accepts and what a call
 * can do never disagree, whatever the catalogue. */
#include <string.h>

#include "core/error.h"
#include "core/tiling.h"
#include "planner_bench.h"
#include "random.h"

/* ---- what is launched ---- */

/* Rows that go block by block: state, scan, output, over ceil(n / 256) segments a sequence. */
static void blocks(void **state)
{
    (void)state;
    open_bench(NULL, 0);
    lattn_prefill_params p = some_prefill(2, 600, 3, 40);
    run(&p);
    assert_int_equal(fake.launch_count, 3);
    /* e tiles of 32: 2; d tiles of 64: 1; heads 3; segments 2 x 3. Of d tiles of 16: 3. */
    assert_launched(0, "fake_state", 2 * 1 * 3 * 6);
    assert_launched(1, "fake_scan", 3 * 3 * 2);
    assert_launched(2, "fake_output", 2 * 4 * 3 * 6);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fake.args[i].segment, 256);
        assert_int_equal(fake.args[i].segments, 3);
        assert_true(fake.args[i].flags & LATTN_FLAG_SEGMENTED);
    }
    assert_int_equal(p.workspace.size, 6 * 3 * 40 * 40 * 4);
    close_bench();
}

static void packed_blocks(void **state)
{
    (void)state;
    open_bench(NULL, 0);
    lattn_prefill_params p = some_prefill(5, 1000, 2, 16);
    p.cu_seqlens.base = somewhere;
    run(&p);
    int64_t segments = 1000 / 256 + 5;
    assert_launched(0, "fake_state", (uint64_t)(1 * 1 * 2 * segments));
    assert_launched(1, "fake_scan", 1 * 2 * 5);
    assert_launched(2, "fake_output", (uint64_t)(1 * 4 * 2 * segments));
    assert_int_equal(fake.args[0].segments, segments);
    assert_true(fake.args[0].flags & LATTN_FLAG_PACKED);
    assert_int_equal(p.workspace.size, segments * 2 * 16 * 16 * 4);
    close_bench();
}

static void decode_rows(void **state)
{
    (void)state;
    open_bench(NULL, 0);
    lattn_decode_params p = some_decode(7, 4, 100);
    assert_ok(lattn_decode_prepare(bench.stream, &p));
    assert_ok(lattn_decode(bench.stream, &p));
    assert_launched(0, "fake_decode", 2 * 4 * 7); /* e tiles of 64: 2 */
    assert_int_equal(fake.args[0].tokens, 1);
    /* In place: what is read is what is written. */
    assert_int_equal(memcmp(&fake.args[0].in, &fake.args[0].out, sizeof(fake.args[0].in)), 0);
    assert_true(fake.args[0].flags & LATTN_FLAG_STATE_OUT);
    close_bench();
}

/* No tokens: nothing to compute, but states to pass on where they are wanted. */
static void nothing_to_do(void **state)
{
    (void)state;
    open_bench(NULL, 0);
    lattn_prefill_params p = some_prefill(0, 100, 2, 16);
    run(&p);
    assert_int_equal(fake.launch_count, 0);
    p = some_prefill(3, 0, 2, 16);
    run(&p);
    assert_int_equal(fake.launch_count, 0);
    p.state_out.base = somewhere;
    run(&p);
    assert_int_equal(fake.launch_count, 1);
    assert_string_equal(fake.launched[0]->entry, "fake_scan");
    lattn_decode_params d = some_decode(0, 2, 16);
    assert_ok(lattn_decode_prepare(bench.stream, &d));
    fake.launch_count = 0;
    assert_ok(lattn_decode(bench.stream, &d));
    assert_int_equal(fake.launch_count, 0);
    close_bench();
}

/* What a kernel is told of the call. */
static void arguments(void **state)
{
    (void)state;
    open_bench(NULL, 0);
    lattn_prefill_params p = some_prefill(2, 10, 6, 8);
    p.qk_heads = 3;
    p.e = 12;
    p.dtype = LATTN_BF16;
    p.decay = LATTN_DECAY_VLLM;
    p.q.offset = 64;
    p.state_in = (lattn_state){.base = somewhere,
                               .offset = 32,
                               .dtype = LATTN_F16,
                               .slots = 9,
                               .stride_slot = 5000,
                               .stride_head = 700,
                               .stride_d = 1,
                               .stride_e = 8,
                               .slot_idx = {somewhere, 16},
                               .slot_type = LATTN_I64};
    p.has_initial = (lattn_array){somewhere, 3};
    p.block_states = (lattn_array){somewhere, 128};
    run(&p);
    const struct lattn_args *a = &fake.args[2];
    assert_int_equal(a->q.offset, 32);
    assert_int_equal(a->q.batch, 3 * 10 * 8);
    assert_int_equal(a->q.head, 10 * 8);
    assert_int_equal(a->q.token, 8);
    assert_int_equal(a->o.batch, 6 * 10 * 12);
    assert_int_equal(a->group, 2);
    assert_int_equal(a->e, 12);
    assert_true(a->scale == 1);
    assert_int_equal(a->in.offset, 16);
    assert_int_equal(a->in.slot, 5000);
    assert_int_equal(a->in.e, 8);
    assert_int_equal(a->in.slots, 9);
    assert_int_equal(a->in.type, LATTN_TYPE_F16);
    assert_int_equal(a->slot_in, 2);
    assert_int_equal(a->has_initial, 3);
    assert_int_equal(a->kept.offset, 32);
    assert_int_equal(a->flags, LATTN_FLAG_STATE_IN | LATTN_FLAG_HAS_INITIAL | LATTN_FLAG_SLOT_IN |
                                   LATTN_FLAG_SLOT_IN_64 | LATTN_FLAG_KEPT | LATTN_FLAG_VLLM |
                                   LATTN_FLAG_SEGMENTED);
    close_bench();
}

/* ---- what is refused ---- */

#define assert_unsupported(call, part)                                                             \
    do {                                                                                           \
        assert_int_equal(call, LATTN_ERROR_UNSUPPORTED);                                           \
        if (!strstr(lattn_error_message(), part))                                                  \
            fail_msg("\"%s\" lacks \"%s\"", lattn_error_message(), part);                          \
    } while (0)

static void no_row(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        DECODE("decode", .types = LATTN_TYPES_F32, .d_min = 1, .d_max = 64, .e_min = 1, .e_max = 64,
               .threads = 64),
        {.entry = "output", .pass = LATTN_PASS_OUTPUT, ANY},
        {.entry = "state", .pass = LATTN_PASS_STATE, ANY},
    };
    open_bench(rows, 3);
    lattn_decode_params d = some_decode(1, 1, 65);
    assert_unsupported(lattn_decode_prepare(bench.stream, &d), "d = 65");
    d.d = 64;
    d.dtype = LATTN_F16;
    assert_unsupported(lattn_decode_prepare(bench.stream, &d), "float16");
    lattn_prefill_params p = some_prefill(1, 10, 1, 8);
    assert_unsupported(lattn_prefill_prepare(bench.stream, &p), "scan");
    close_bench();
    fake_reset();
    fake.caps.max_threads = 32;
    open_bench(NULL, 0);
    d = some_decode(1, 1, 8);
    assert_unsupported(lattn_decode_prepare(bench.stream, &d), "256"); /* its threads */
    assert_int_equal(fake.calls[FAKE_LOAD], 0);
    close_bench();
}

static void too_many_groups(void **state)
{
    (void)state;
    fake.caps.max_groups = 1000;
    open_bench(NULL, 0);
    lattn_decode_params d = some_decode(251, 4, 8);
    assert_ok(lattn_decode_prepare(bench.stream, &d));
    assert_unsupported(lattn_decode(bench.stream, &d), "1004");
    d.batch = 250;
    assert_ok(lattn_decode(bench.stream, &d));
    close_bench();
}

/* Only what can be used is loaded, and each once for a stream. */
static void loading(void **state)
{
    (void)state;
    static const struct lattn_kernel_row rows[] = {
        DECODE("f32", .types = LATTN_TYPES_F32, ANY_SIZE),
        DECODE("aligned f32", .types = LATTN_TYPES_F32, ANY_SIZE, .needs = LATTN_NEEDS_ALIGN16),
        DECODE("bf16", .types = LATTN_TYPES_BF16, ANY_SIZE),
        WALK("walk", ANY),
    };
    open_bench(rows, 4);
    lattn_decode_params d = some_decode(1, 1, 8);
    assert_ok(lattn_decode_prepare(bench.stream, &d));
    assert_int_equal(fake.calls[FAKE_LOAD], 2);
    d.q.offset = 4;
    assert_ok(lattn_decode_prepare(bench.stream, &d));
    assert_int_equal(fake.calls[FAKE_LOAD], 2);
    d.dtype = LATTN_BF16;
    assert_ok(lattn_decode_prepare(bench.stream, &d));
    assert_int_equal(fake.calls[FAKE_LOAD], 3);
    close_bench();
}

static lattn_status load_and_fail(void *stream, const struct lattn_kernel_row *row, void **kernel)
{
    (void)stream;
    *kernel = (void *)(uintptr_t)row;
    return lattn_fail(LATTN_ERROR_UNSUPPORTED, "kernel %s does not run here", row->entry);
}

/* A kernel that failed to load stays unloaded, whatever the backend left in its place. */
static void loading_that_fails(void **state)
{
    (void)state;
    fake_backend.load = load_and_fail;
    open_bench(NULL, 0);
    lattn_decode_params d = some_decode(1, 1, 8);
    for (int i = 0; i < 2; i++)
        assert_unsupported(lattn_decode_prepare(bench.stream, &d), "does not run here");
    assert_int_equal(lattn_decode(bench.stream, &d), LATTN_ERROR_NOT_PREPARED);
    close_bench();
}

/* ---- any catalogue, any call ---- */

static struct lattn_kernel_row random_row(struct random *r, enum lattn_pass pass)
{
    static const char *const names[] = {"state", "scan", "output", "decode"};
    struct lattn_kernel_row row = {.entry = names[pass], .pass = pass, ANY};
    if (random_chance(r, 3))
        row.types = (uint32_t)random_range(r, 1, 7);
    if (random_chance(r, 3))
        row.d_max = (uint16_t)random_range(r, 1, 256);
    if (random_chance(r, 3))
        row.needs = (uint32_t)random_range(r, 0, 127);
    if (pass == LATTN_PASS_OUTPUT)
        row.can = (uint32_t)random_range(r, 0, 15) | (random_chance(r, 2) ? LATTN_CAN_CHAIN : 0);
    static const uint16_t tiles[] = {0, 16, 32, 64};
    row.e_tile = tiles[random_range(r, 0, 3)];
    if (pass != LATTN_PASS_OUTPUT)
        row.d_tile = tiles[random_range(r, 0, 3)];
    if (pass == LATTN_PASS_OUTPUT && !(row.can & LATTN_CAN_WALK))
        row.token_tile = tiles[random_range(r, 1, 3)];
    row.groups_per_unit = (uint16_t)random_range(r, 0, 8);
    row.pace = (uint16_t)(random_chance(r, 2) ? 0 : random_range(r, 100, 1000));
    return row;
}

/* What prepare accepts runs with what it loaded, or is refused as unsupported; the workspace is
 * what the passes need and the bound covers it; a launch never exceeds what it is told. */
static void any_catalogue(void **state)
{
    (void)state;
    struct random random = random_named("any catalogue"), *r = &random;
    int ran = 0, refused = 0, chains = 0;
    for (int i = 0; i < 3000; i++) {
        struct lattn_kernel_row rows[7];
        uint32_t count = (uint32_t)random_range(r, 1, 7);
        for (uint32_t j = 0; j < count; j++)
            rows[j] = random_row(r, (enum lattn_pass)random_range(r, 0, LATTN_PASS_OUTPUT));
        fake_reset();
        fake.caps.compute_units = (uint32_t)random_range(r, 1, 132);
        open_bench(rows, count);
        lattn_prefill_params p =
            some_prefill(random_range(r, 1, 5), random_range(r, 1, 20000),
                         (int32_t)random_range(r, 1, random_chance(r, 2) ? 4 : 64),
                         (int32_t)random_range(r, 1, 256));
        p.dtype = (lattn_dtype)random_range(r, 0, 2);
        p.decay = (lattn_decay)random_range(r, 0, 1);
        p.q.offset = random_chance(r, 2) ? 16 : 4;
        if (random_chance(r, 2))
            p.cu_seqlens.base = somewhere;
        if (random_chance(r, 2))
            p.block_states.base = somewhere;
        if (random_chance(r, 2))
            p.state_out.base = somewhere;
        lattn_status status = lattn_prefill_prepare(bench.stream, &p);
        uint64_t bytes = 0, bound = 0;
        lattn_status query = lattn_prefill_workspace(bench.stream, &p, &bytes);
        p.workspace = (lattn_workspace){bytes ? somewhere : NULL, 0, bytes};
        lattn_status launched = lattn_prefill(bench.stream, &p);
        if (status == LATTN_OK && query == LATTN_OK) {
            ran++;
            assert_ok(launched);
            assert_ok(lattn_prefill_workspace_bound(bench.stream, &p, &bound));
            assert_true(bytes <= bound);
            for (int j = 0; j < fake.launch_count; j++) {
                const struct lattn_args *a = &fake.args[j];
                const struct lattn_kernel_row *row = fake.launched[j];
                bool segmented = a->flags & LATTN_FLAG_SEGMENTED;
                bool chained = a->flags & LATTN_FLAG_CHAINED;
                assert_true(row->types >> p.dtype & 1);
                assert_true(p.d <= row->d_max);
                assert_true(fake.launches[j].groups > 0);
                assert_int_equal(segmented, fake.launch_count > 1 || row->pass == LATTN_PASS_SCAN);
                assert_int_equal(segmented || chained, bytes > 0);
                if (chained) {
                    assert_int_equal(row->can & (LATTN_CAN_WALK | LATTN_CAN_CHAIN),
                                     LATTN_CAN_WALK | LATTN_CAN_CHAIN);
                    assert_false(segmented || p.block_states.base || p.decay);
                    assert_int_equal(a->segment % LATTN_BLOCK, 0);
                    /* A flag for each group, a count, and a padded state for each. */
                    uint64_t groups = fake.launches[j].groups;
                    uint64_t columns = row->e_tile ? row->e_tile : row->e_max;
                    assert_int_equal(bytes,
                                     (groups / 4 + 1) * 16 + groups * row->d_max * columns * 4);
                    chains++;
                    continue;
                }
                if (!segmented) {
                    assert_true(row->can & LATTN_CAN_WALK);
                    assert_true(!p.block_states.base || (row->can & LATTN_CAN_WALK_KEPT));
                    assert_true(!p.decay || (row->can & LATTN_CAN_WALK_VLLM));
                    continue;
                }
                assert_int_equal(a->segment % LATTN_BLOCK, 0);
                if (p.block_states.base || p.decay ||
                    (row->pass == LATTN_PASS_OUTPUT && !(row->can & LATTN_CAN_WALK)))
                    assert_int_equal(a->segment, LATTN_BLOCK);
                int64_t total = p.cu_seqlens.base ? a->segments : a->segments * p.batch;
                assert_int_equal(bytes,
                                 (uint64_t)total * (uint64_t)(p.heads * 4) * (uint64_t)(p.d * p.d));
            }
        } else {
            refused++;
            if (status != LATTN_OK)
                assert_int_equal(status, LATTN_ERROR_UNSUPPORTED);
            assert_int_not_equal(launched, LATTN_OK);
        }
        close_bench();
    }
    /* The draw is not all of one kind. */
    assert_true(ran > 300 && refused > 300 && chains > 10);
}

/* The numbers of packed segments (kernels/args.h) are all different and below args.segments. */
static void segment_numbers(void **state)
{
    (void)state;
    struct random random = random_named("segments"), *r = &random;
    for (int i = 0; i < 2000; i++) {
        int64_t segment = 256 << random_range(r, 0, 4), sequences = random_range(r, 1, 20);
        int64_t at = random_range(r, 0, 400), last = -1, number = 0;
        for (int64_t s = 0; s < sequences; s++) {
            int64_t length = random_chance(r, 3) ? random_range(r, 0, 2) : random_range(r, 0, 3000);
            for (int64_t j = 0; j < (length + segment - 1) / segment; j++) {
                number = at / segment + s + j;
                assert_true(number > last);
                last = number;
            }
            at += length;
        }
        struct lattn_request request = {.args = {.tokens = at + random_range(r, 0, 400),
                                                 .sequences = (lattn_i32)sequences,
                                                 .flags = LATTN_FLAG_PACKED}};
        assert_true(last < lattn_segment_count(&request, (int32_t)segment));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(blocks, bench_reset),
        cmocka_unit_test_setup(packed_blocks, bench_reset),
        cmocka_unit_test_setup(decode_rows, bench_reset),
        cmocka_unit_test_setup(nothing_to_do, bench_reset),
        cmocka_unit_test_setup(arguments, bench_reset),
        cmocka_unit_test_setup(no_row, bench_reset),
        cmocka_unit_test_setup(too_many_groups, bench_reset),
        cmocka_unit_test_setup(loading, bench_reset),
        cmocka_unit_test_setup(loading_that_fails, bench_reset),
        cmocka_unit_test_setup(any_catalogue, bench_reset),
        cmocka_unit_test_setup(segment_numbers, bench_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
