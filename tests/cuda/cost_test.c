/* The planner's cost model against times measured on an H200 (docs/kernels-cuda.md): of the ways
 * that were timed, what the planner chooses takes at most a tenth more than the fastest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "backends/cuda/catalog.h"
#include "backends/cuda/catalog_tensor.h"
#include "backends/driver/portable_rows.h"
#include "core/planner.h"
#include "core/tiling.h"

const unsigned char lattn_cuda_image_hopper_bf16[1], lattn_cuda_image_hopper_f16[1],
    lattn_cuda_image_hopper_float[1], lattn_cuda_image_tensor_bf16[1],
    lattn_cuda_image_tensor_f16[1], lattn_cuda_image_tensor_tf32[1], lattn_cuda_image_tensor_f32[1],
    lattn_cuda_image_decode_wide[1];
static const unsigned char scan_image[1];

static const struct lattn_kernel_row rows[] = {TENSOR_ROWS LATTN_PORTABLE_SCAN_ROW(scan_image)};

#define BF16_E64 "lattn_hopper_output_bf16_d128_e64"
#define BF16_E128 "lattn_hopper_output_bf16_d128_e128"
#define CHAIN_E64 "lattn_hopper_chain_bf16_d128_e64"
#define CHAIN_E128 "lattn_hopper_chain_bf16_d128_e128"
#define WHOLE LATTN_WHOLE_SEQUENCE

/* d = e = 128; the times of a call are in one run, one after another. */
struct timed {
    lattn_dtype dtype;
    lattn_precision precision;
    int32_t batch, heads;
    int64_t tokens;
    struct {
        const char *entry; /* of the output row */
        int32_t segment;
        double milliseconds;
    } ways[7];
};

static const struct timed calls[] = {
    {LATTN_BF16, 0, 1, 64, 4096, {{BF16_E64, WHOLE, 0.0945}, {BF16_E128, WHOLE, 0.1411}}},
    {LATTN_BF16, 0, 1, 64, 65536, {{BF16_E64, WHOLE, 1.3089}, {BF16_E128, WHOLE, 1.8740}}},
    {LATTN_BF16, 0, 8, 64, 2048, {{BF16_E64, WHOLE, 0.3645}, {BF16_E128, WHOLE, 0.3181}}},
    {LATTN_BF16, 0, 32, 64, 1024, {{BF16_E64, WHOLE, 0.7385}, {BF16_E128, WHOLE, 0.6317}}},
    {LATTN_BF16,
     0,
     1,
     8,
     131072,
     {{CHAIN_E64, 16384, 0.5090},
      {CHAIN_E64, 8192, 0.5262},
      {CHAIN_E64, 4096, 0.5594},
      {CHAIN_E128, 16384, 0.7100},
      {CHAIN_E128, 8192, 0.4120},
      {CHAIN_E128, 4096, 0.4573}}},
    {LATTN_BF16,
     0,
     1,
     8,
     4096,
     {{CHAIN_E64, 256, 0.0558},
      {CHAIN_E64, 512, 0.0377},
      {CHAIN_E64, 1024, 0.0476},
      {BF16_E64, WHOLE, 0.0868},
      {CHAIN_E128, 256, 0.0528},
      {CHAIN_E128, 512, 0.0511},
      {CHAIN_E128, 1024, 0.0695}}},
    {LATTN_BF16,
     0,
     1,
     32,
     2048,
     {{CHAIN_E64, 512, 0.0574},
      {CHAIN_E64, 1024, 0.0469},
      {BF16_E64, WHOLE, 0.0498},
      {CHAIN_E128, 512, 0.0562},
      {CHAIN_E128, 1024, 0.0660},
      {BF16_E128, WHOLE, 0.0704}}},
    {LATTN_BF16,
     0,
     1,
     4,
     32768,
     {{CHAIN_E64, 1024, 0.1036},
      {CHAIN_E64, 2048, 0.0854},
      {CHAIN_E128, 1024, 0.0981},
      {CHAIN_E128, 2048, 0.1181}}},
    {LATTN_F32,
     LATTN_PRECISION_FULL,
     1,
     64,
     65536,
     {{"lattn_hopper_output_f32_d128", WHOLE, 5.376},
      {"lattn_tensor_output_f32_d128_w16_f1", WHOLE, 21.503}}},
    {LATTN_F32,
     LATTN_PRECISION_FULL,
     8,
     64,
     2048,
     {{"lattn_hopper_output_f32_d128", WHOLE, 1.396},
      {"lattn_tensor_output_f32_d128_w16_f1", WHOLE, 3.526}}},
    {LATTN_F32,
     LATTN_PRECISION_TF32,
     1,
     64,
     65536,
     {{"lattn_hopper_output_tf32_d128", WHOLE, 3.497},
      {"lattn_tensor_output_tf32_d128_w16_f1", WHOLE, 9.211}}},
};

static double milliseconds(const struct timed *call, const char *entry, int32_t segment)
{
    for (int i = 0; i < 7 && call->ways[i].entry; i++) {
        if (!strcmp(call->ways[i].entry, entry) && call->ways[i].segment == segment)
            return call->ways[i].milliseconds;
    }
    fail_msg("%s over segments of %d has not been timed", entry, (int)segment);
    return 0;
}

static void chosen_is_fast(void **state)
{
    (void)state;
    const struct lattn_backend backend = {
        .name = "cuda", .rows = rows, .row_count = sizeof(rows) / sizeof(*rows)};
    const struct lattn_device h200 = {
        .backend = &backend,
        .caps = {.features = LATTN_CUDA_SM80 | LATTN_CUDA_SM90 | LATTN_CUDA_SM90A,
                 .max_threads = 1024,
                 .max_shared = 227 * 1024,
                 .compute_units = 132,
                 .max_groups = INT32_MAX},
    };
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        const struct timed *call = &calls[i];
        const struct lattn_request request = {
            .kind = {.dtype = call->dtype, .precision = call->precision, .d = 128, .e = 128},
            .offers = UINT32_MAX,
            .longest = call->tokens,
            .total = call->batch * call->tokens,
            .args = {.tokens = call->tokens,
                     .sequences = call->batch,
                     .heads = call->heads,
                     .group = 1,
                     .d = 128,
                     .e = 128,
                     .flags = LATTN_FLAG_STATE_OUT},
        };
        struct lattn_plan plan;
        assert_int_equal(lattn_plan_prefill(&h200, &request, &plan), LATTN_OK);
        const struct lattn_kernel_row *output = &rows[plan.steps[plan.step_count - 1].row];
        double chosen = milliseconds(call, output->entry, plan.segment);
        for (int j = 0; j < 7 && call->ways[j].entry; j++)
            assert_true(chosen <= 1.1 * call->ways[j].milliseconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen_is_fast)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
