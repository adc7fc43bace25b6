/* Sizes, strides and offsets that no memory holds, on a backend that computes nothing: refused by
 * name, or planned without a number that wraps. A build with UBSan sees those that wrap unseen. */
#include <string.h>

#include "core/device.h"
#include "planner_bench.h"
#include "random.h"

static int open_fake(void **state)
{
    bench_reset(state);
    open_bench(NULL, 0);
    return 0;
}

static int close_fake(void **state)
{
    (void)state;
    close_bench();
    return 0;
}

static void assert_refused(lattn_status status, lattn_status wanted, const char *part)
{
    assert_int_equal(status, wanted);
    if (!strstr(lattn_error_message(), part))
        fail_msg("the message is \"%s\", without \"%s\"", lattn_error_message(), part);
}

#define assert_invalid(status, part) assert_refused(status, LATTN_ERROR_INVALID_ARGUMENT, part)

/* Every pool of one slot that all share, and no tokens: all is small but the groups of the scan,
 * which pass 64 bits. */
static void groups_beyond_64_bits(void **state)
{
    (void)state;
    lattn_prefill_params p = some_prefill(0, 0, INT32_MAX, 256);
    uint64_t bytes;
    p.batch = INT32_MAX - (INT32_MAX >> 8);
    p.state_out.base = p.state_out.slot_idx.base = somewhere;
    p.state_out.slots = 1;
    assert_refused(lattn_prefill_workspace(bench.stream, &p, &bytes), LATTN_ERROR_UNSUPPORTED,
                   "fake_scan needs 18446744073709551615 groups");
}

/* Segments are numbered in 32 bits, and packed sequences have the most. */
static void sequences_leave_room_for_segments(void **state)
{
    (void)state;
    lattn_prefill_params p = some_prefill(INT32_MAX, 1 << 20, 1, 1);
    uint64_t bytes, bound;
    p.cu_seqlens.base = somewhere;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "batch = 2147483647");
    p.batch = INT32_MAX - (INT32_MAX >> 8);
    p.tokens = 0x7ffffeff;
    bench.device->caps.max_groups = UINT64_MAX - 1;
    assert_ok(lattn_prefill_workspace(bench.stream, &p, &bytes));
    assert_ok(lattn_prefill_workspace_bound(bench.stream, &p, &bound));
    assert_int_equal(bytes, 4 * (p.tokens / 256 + p.batch));
    assert_true(bound >= bytes);
    assert_true(p.tokens / 256 + p.batch <= INT32_MAX);
}

static void no_sequence_needs_no_workspace(void **state)
{
    (void)state;
    lattn_prefill_params p = some_prefill(0, 5000, 2, 8);
    uint64_t bytes;
    p.cu_seqlens.base = somewhere;
    assert_ok(lattn_prefill_workspace(bench.stream, &p, &bytes));
    assert_int_equal(bytes, 0);
    assert_ok(lattn_prefill_prepare(bench.stream, &p));
    assert_ok(lattn_prefill(bench.stream, &p));
    assert_int_equal(fake.launch_count, 0);
}

/* The first byte of each array is where it may be, the last is not. */
static void arrays_reach_beyond_63_bits(void **state)
{
    (void)state;
    const uint64_t last = INT64_MAX - 15; /* a multiple of 16 */
    const lattn_array beyond = {somewhere, last};
    uint64_t bytes;
    lattn_prefill_params good = some_prefill(20, 300, 5, 4), p = good;
    p.slopes = beyond;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "slopes.offset = 9223");
    p = good;
    p.cu_seqlens = beyond;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "cu_seqlens.offset = 9223");
    p = good;
    p.block_states = beyond;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "block_states.offset = 9223");
    p = good;
    p.workspace.offset = last + 16;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "workspace.offset = 9223");
    p = good;
    p.state_in.base = somewhere;
    p.has_initial = beyond;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "has_initial.offset = 9223");
    p.has_initial.base = NULL;
    p.state_in.slots = 20;
    p.state_in.slot_idx = beyond;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "state_in.slot_idx.offset");
    p = good;
    p.batch = p.heads = 1 << 30;
    p.tokens = 0;
    p.block_states.base = somewhere;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes),
                   "block_states: 1073741824 rows");
}

static void struct_size_never_set(void **state)
{
    (void)state;
    lattn_prefill_params p = some_prefill(1, 1, 1, 1);
    uint64_t bytes;
    p.struct_size = SIZE_MAX;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes),
                   "struct_size = 1844674407370955");
    p.struct_size = 4097;
    assert_invalid(lattn_prefill_workspace(bench.stream, &p, &bytes), "struct_size = 4097");
}

/* ---- any numbers at all ---- */

static int64_t some_stride(struct random *random)
{
    static const int64_t strides[] = {0,
                                      1,
                                      -1,
                                      256,
                                      -257,
                                      (int64_t)1 << 31,
                                      (int64_t)1 << 40,
                                      (int64_t)1 << 61,
                                      -((int64_t)1 << 61),
                                      (int64_t)1 << 62,
                                      -((int64_t)1 << 62),
                                      INT64_MAX,
                                      INT64_MIN + 1,
                                      INT64_MIN};
    return strides[random_range(random, 0, sizeof(strides) / sizeof(*strides) - 1)];
}

static int64_t some_size(struct random *random)
{
    static const int64_t sizes[] = {0, 1, 2, 256, 1 << 20, 1 << 30, 0x7ffffeff, INT32_MAX};
    return sizes[random_range(random, 0, sizeof(sizes) / sizeof(*sizes) - 1)];
}

static uint64_t some_offset(struct random *random)
{
    return random_chance(random, 3) ? (uint64_t)some_stride(random) & ~(uint64_t)15 : 0;
}

static lattn_tensor some_tensor(struct random *random)
{
    lattn_tensor tensor = {.base = somewhere, .offset = some_offset(random)};
    if (random_chance(random, 2)) {
        tensor.stride_batch = some_stride(random);
        tensor.stride_head = some_stride(random);
        tensor.stride_token = some_stride(random);
    }
    return tensor;
}

static lattn_array some_array(struct random *random)
{
    return (lattn_array){random_chance(random, 2) ? somewhere : NULL, some_offset(random)};
}

static lattn_state some_state(struct random *random)
{
    lattn_state state = {.base = random_chance(random, 3) ? NULL : somewhere,
                         .offset = some_offset(random),
                         .dtype = (lattn_dtype)random_range(random, 0, 2),
                         .slots = random_chance(random, 2) ? 1 : some_stride(random),
                         .slot_idx = some_array(random),
                         .slot_type = (lattn_index_type)random_range(random, 0, 1)};
    if (random_chance(random, 2)) {
        state.stride_slot = some_stride(random);
        state.stride_head = some_stride(random);
        state.stride_d = some_stride(random);
        state.stride_e = some_stride(random);
    }
    return state;
}

static void assert_an_answer(lattn_status status)
{
    assert_true(status == LATTN_OK || status == LATTN_ERROR_INVALID_ARGUMENT ||
                status == LATTN_ERROR_UNSUPPORTED);
}

static void any_prefill(struct random *random)
{
    lattn_prefill_params p = LATTN_PREFILL_PARAMS_INIT;
    p.batch = some_size(random);
    p.tokens = some_size(random);
    p.heads = (int32_t)some_size(random);
    p.qk_heads = random_chance(random, 4);
    p.d = (int32_t)random_range(random, 1, random_chance(random, 2) ? 1 : 256);
    p.e = (int32_t)random_range(random, 1, random_chance(random, 2) ? 1 : 256);
    p.dtype = (lattn_dtype)random_range(random, 0, 2);
    p.decay = (lattn_decay)random_range(random, 0, 1);
    p.q = some_tensor(random);
    p.k = some_tensor(random);
    p.v = some_tensor(random);
    p.o = some_tensor(random);
    p.slopes = some_array(random);
    p.cu_seqlens = some_array(random);
    p.state_in = some_state(random);
    p.state_out = some_state(random);
    p.has_initial = some_array(random);
    p.block_states = some_array(random);
    p.workspace.offset = some_offset(random);
    uint64_t bytes, bound;
    lattn_status status = lattn_prefill_workspace(bench.stream, &p, &bytes);
    assert_an_answer(status);
    if (status == LATTN_OK && lattn_prefill_workspace_bound(bench.stream, &p, &bound) == LATTN_OK)
        assert_true(bound >= bytes);
}

static void any_decode(struct random *random)
{
    lattn_decode_params p = LATTN_DECODE_PARAMS_INIT;
    p.batch = some_size(random);
    p.tokens = (int32_t)random_range(random, 0, 8);
    p.heads = (int32_t)some_size(random);
    p.d = (int32_t)random_range(random, 1, 256);
    p.e = (int32_t)random_range(random, 0, 256);
    p.dtype = (lattn_dtype)random_range(random, 0, 2);
    p.q = some_tensor(random);
    p.k = some_tensor(random);
    p.v = some_tensor(random);
    p.o = some_tensor(random);
    p.slopes = some_array(random);
    p.state_in = some_state(random);
    p.state_out = some_state(random);
    p.has_initial = some_array(random);
    p.token_states = some_state(random);
    uint64_t bytes;
    assert_an_answer(lattn_decode_workspace(bench.stream, &p, &bytes));
}

static void any_numbers(void **state)
{
    (void)state;
    struct random random = random_named("numbers");
    for (int i = 0; i < 50000; i++) {
        any_prefill(&random);
        any_decode(&random);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_beyond_64_bits, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(sequences_leave_room_for_segments, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(no_sequence_needs_no_workspace, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(arrays_reach_beyond_63_bits, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(struct_size_never_set, open_fake, close_fake),
        cmocka_unit_test_setup_teardown(any_numbers, open_fake, close_fake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
