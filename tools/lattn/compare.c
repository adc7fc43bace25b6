#include "compare.h"

#include <math.h>

#include "dtype.h"

/* The length up to which the limits hold; rounding errors of longer sums grow as its root. */
#define LENGTH 4096

double compare_limit_o(const struct call *call)
{
    static const double limits[] = {[LATTN_F32] = 2e-6, [LATTN_F16] = 6e-4, [LATTN_BF16] = 4e-3};
    double limit = limits[call->dtype];
    if (call->dtype == LATTN_F32 && call->precision == LATTN_PRECISION_TF32)
        limit = 2e-3;
    return limit * (call->tokens > LENGTH ? sqrt((double)call->tokens / LENGTH) : 1);
}

double compare_limit_state(const struct call *call)
{
    struct call stored = *call;
    stored.dtype = call->state_dtype;
    double limit = compare_limit_o(call);
    /* A pool that stores states in fewer bits rounds them once more. */
    if (call->operation == CALL_DECODE && compare_limit_o(&stored) > limit)
        limit = compare_limit_o(&stored);
    return limit;
}

void compare_add(struct compare_sum *sum, struct compare_array got, struct compare_array want,
                 uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        double expected = dtype_load(want.dtype, want.data, i);
        double difference = dtype_load(got.dtype, got.data, i) - expected;
        sum->difference += difference * difference;
        sum->norm += expected * expected;
    }
}

double compare_error(const struct compare_sum *sum)
{
    if (!isfinite(sum->difference))
        return HUGE_VAL;
    if (sum->norm == 0)
        return sum->difference == 0 ? 0 : HUGE_VAL;
    return sqrt(sum->difference / sum->norm);
}
