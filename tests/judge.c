/* Compares what a call left with the oracle. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention.h"
#include "number.h"
#include "oracle.h"

/* One token's or element's error may exceed the tolerance of the whole by this much. */
#define LOCAL_FACTOR 8

double output_tolerance(const struct attention_case *c, int64_t tokens)
{
    if (c->dtype == LATTN_F16)
        return 6e-4;
    if (c->dtype == LATTN_BF16)
        return 4e-3;
    if (c->tf32)
        return 2e-3;
    return 2e-6 * sqrt(fmax(1, (double)tokens / 4096));
}

double state_tolerance(const struct attention_case *c, int64_t tokens, lattn_dtype stored)
{
    double computed = output_tolerance(c, tokens);
    return fmax(computed, stored == LATTN_F16 ? 6e-4 : stored == LATTN_BF16 ? 4e-3 : 0);
}

/* What rounding to the type may take from one element however small it is: half a step between its
 * subnormal numbers, which for float16 are within reach. */
static double rounding_floor(lattn_dtype dtype)
{
    return dtype == LATTN_F16 ? 0x1p-25 : 0;
}

static void fail_case(const struct attention *a, const char *what, int64_t i, int32_t head,
                      int64_t place, double error, double allowed)
{
    const struct attention_case *c = a->c;
    print_error("%s: %s%s %s, b %lld n %lld h %d/%d d %d e %d, layout %d, slopes %d, start %d, "
                "final %d%s%s%s, states %s/%s %d/%d\n",
                c->name, c->decode ? "decode" : "prefill", c->vllm ? " vllm" : "",
                number_name(c->dtype), (long long)a->batch, (long long)a->tokens, (int)c->heads,
                (int)a->qk_heads, (int)c->d, (int)a->e, (int)c->layout, (int)c->slopes,
                (int)c->start, (int)c->final, c->packed ? " packed" : "", c->flags ? " flags" : "",
                c->padding ? " padding" : "", number_name(c->in_dtype), number_name(c->out_dtype),
                (int)c->in_layout, (int)c->out_layout);
    fail_msg("%s of sequence %lld, head %d, at %lld: relative error %.3g, allowed %.3g", what,
             (long long)i, (int)head, (long long)place, error, allowed);
}

static double *load_tokens(const struct attention *a, const struct token_array *array, int64_t i,
                           int32_t head)
{
    size_t size = number_size(a->c->dtype);
    double *values = calloc((size_t)(a->length[i] * array->dim) + 1, sizeof(*values));
    for (int64_t t = 0; t < a->length[i]; t++) {
        const unsigned char *from = array->buffer->before + token_offset(a, array, i, head, t);
        for (int64_t x = 0; x < array->dim; x++)
            values[t * array->dim + x] = number_load(from + (size_t)x * size, a->c->dtype);
    }
    return values;
}

static double *load_initial(const struct attention *a, int64_t i, int32_t head)
{
    double *values = calloc((size_t)(a->c->d * a->e), sizeof(*values));
    for (int32_t d = 0; d < a->c->d && a->initial[i]; d++)
        for (int32_t e = 0; e < a->e; e++)
            values[d * a->e + e] =
                number_load(a->in.buffer->before + state_offset(&a->in, a->in.slots[i], head, d, e),
                            a->in.state.dtype);
    return values;
}

static void judge_output(const struct attention *a, const struct oracle *oracle, int64_t i,
                         int32_t head)
{
    double allowed = output_tolerance(a->c, a->length[i]);
    double floor = rounding_floor(a->c->dtype) * sqrt((double)a->e);
    double all_errors = 0, all_sizes = 0;
    for (int64_t t = 0; t < a->length[i]; t++) {
        const unsigned char *from = a->o_buffer.after + token_offset(a, &a->o, i, head, t);
        double errors = 0;
        for (int32_t e = 0; e < a->e; e++) {
            double got = number_load(from + (size_t)e * number_size(a->c->dtype), a->c->dtype);
            double wanted = oracle->o[t * a->e + e];
            if (!isfinite(wanted))
                continue;
            if (!isfinite(got))
                fail_case(a, "o is not finite: o", i, head, t * a->e + e, got, allowed);
            errors += (got - wanted) * (got - wanted);
        }
        double size = oracle->o_size[t];
        if (sqrt(errors) > LOCAL_FACTOR * allowed * size + floor)
            fail_case(a, "o", i, head, t, sqrt(errors) / size, LOCAL_FACTOR * allowed);
        all_errors += errors;
        all_sizes += size * size;
    }
    if (sqrt(all_errors) > allowed * sqrt(all_sizes) + floor * sqrt((double)a->length[i]))
        fail_case(a, "all o", i, head, 0, sqrt(all_errors / all_sizes), allowed);
}

/* `buffer` holds a state whose elements `offset` finds. */
static void judge_state(const struct attention *a, const char *what, int64_t i, int32_t head,
                        int64_t step, const double *wanted, double size,
                        const struct buffer *buffer, lattn_dtype dtype,
                        uint64_t (*offset)(const struct attention *, int64_t, int32_t, int64_t,
                                           int32_t, int32_t))
{
    double allowed = state_tolerance(a->c, a->length[i], dtype);
    double floor = rounding_floor(dtype), root = sqrt((double)a->c->d * a->e);
    double typical = size / root, errors = 0;
    for (int32_t d = 0; d < a->c->d; d++)
        for (int32_t e = 0; e < a->e; e++) {
            double got = number_load(buffer->after + offset(a, i, head, step, d, e), dtype);
            double exact = wanted[d * a->e + e];
            if (!isfinite(exact))
                continue;
            if (!isfinite(got) ||
                fabs(got - exact) > LOCAL_FACTOR * allowed * fmax(fabs(exact), typical) + floor)
                fail_case(a, what, i, head, step * a->c->d * a->e + d * a->e + e,
                          fabs(got - exact) / fmax(fabs(exact), typical), LOCAL_FACTOR * allowed);
            errors += (got - exact) * (got - exact);
        }
    if (sqrt(errors) > allowed * size + floor * root)
        fail_case(a, what, i, head, step, sqrt(errors) / size, allowed);
}

static uint64_t final_place(const struct attention *a, int64_t i, int32_t head, int64_t step,
                            int32_t d, int32_t e)
{
    (void)step;
    return state_offset(&a->out, a->out.slots[i], head, d, e);
}

static uint64_t kept_place(const struct attention *a, int64_t i, int32_t head, int64_t step,
                           int32_t d, int32_t e)
{
    return kept_offset(a, i, head, step, d, e);
}

static void judge_head(const struct attention *a, int64_t i, int32_t head)
{
    const struct attention_case *c = a->c;
    int32_t group = c->heads / a->qk_heads;
    int64_t cells = (int64_t)c->d * a->e, n = a->length[i];
    double *q = load_tokens(a, &a->q, i, head / group);
    double *k = load_tokens(a, &a->k, i, head / group);
    double *v = load_tokens(a, &a->v, i, head);
    double *initial = load_initial(a, i, head);
    struct oracle oracle = {
        .tokens = n,
        .d = c->d,
        .e = a->e,
        .slope = number_load(a->slopes.before + BUFFER_GUARD + 4 * head, LATTN_F32),
        .scale = c->scale != 0 ? (double)c->scale : 1,
        .vllm = c->vllm,
        .q = q,
        .k = k,
        .v = v,
        .initial = initial,
        .every = c->decode ? 1 : 256,
    };
    int64_t states = oracle_state_count(&oracle);
    oracle.o = calloc((size_t)(n * a->e) + 1, sizeof(double));
    oracle.o_size = calloc((size_t)n + 1, sizeof(double));
    oracle.states = calloc((size_t)(states * cells), sizeof(double));
    oracle.state_size = calloc((size_t)states, sizeof(double));
    oracle_run(&oracle);

    judge_output(a, &oracle, i, head);
    if (a->out.buffer)
        judge_state(a, "the final state", i, head, 0, oracle.states + (states - 1) * cells,
                    oracle.state_size[states - 1], a->out.buffer, a->out.state.dtype, final_place);
    int64_t skip = c->decode; /* token states begin after the first token */
    for (int64_t step = 0; c->kept && step < kept_count(a, i); step++)
        judge_state(a, "a kept state", i, head, step, oracle.states + (step + skip) * cells,
                    oracle.state_size[step + skip], &a->kept_buffer,
                    c->decode ? a->kept.state.dtype : LATTN_F32, kept_place);
    free(oracle.state_size);
    free(oracle.states);
    free(oracle.o_size);
    free(oracle.o);
    free(initial);
    free(v);
    free(k);
    free(q);
}

/* The outputs of padding are zero. (buffer_check has seen that no state of it was touched.) */
static void judge_padding(const struct attention *a, int64_t i)
{
    for (int32_t head = 0; head < a->c->heads; head++)
        for (int64_t t = 0; t < a->length[i]; t++)
            for (int32_t e = 0; e < a->e; e++) {
                size_t size = number_size(a->c->dtype);
                double got = number_load(a->o_buffer.after + token_offset(a, &a->o, i, head, t) +
                                             (size_t)e * size,
                                         a->c->dtype);
                if (!(got == 0))
                    fail_case(a, "padding's o is not zero: o", i, head, t * a->e + e, got, 0);
            }
}

void attention_judge(struct attention *a)
{
    for (int64_t i = 0; i < a->batch; i++) {
        if (!a->live[i])
            judge_padding(a, i);
        for (int32_t head = 0; head < a->c->heads && a->live[i]; head++)
            judge_head(a, i, head);
    }
}
