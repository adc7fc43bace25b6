#include "golden.h"

/* A result that was itself computed in the precision that we judge errs as much as ours may. */
#define SEED_TOLERANCE 2

const char *golden_kind_name(enum golden_kind kind)
{
    return kind == GOLDEN_EXACT ? "exact" : "seed";
}

struct result {
    const char *name;
    enum call_part part;
    int rank;
    int64_t shape[5];
};

static int list_results(const struct call *call, enum golden_kind kind, struct result *results)
{
    bool exact = kind == GOLDEN_EXACT;
    int64_t b = call->batch, h = call->heads, n = call->tokens, d = call->d, e = call->e;
    if (call->operation == CALL_DECODE) {
        results[0] = (struct result){exact ? "exact_o" : "seed_o", CALL_O, 2, {b, h * e}};
        results[1] = (struct result){
            exact ? "exact_cache" : "seed_cache", CALL_STATE_IN, 4, {call->slots, h, d, e}};
        return 2;
    }
    results[0] = (struct result){exact ? "exact_o" : "seed_o", CALL_O, 4, {b, h, n, e}};
    if (exact)
        results[1] = (struct result){"exact_state", CALL_STATE_OUT, 4, {b, h, d, e}};
    else
        results[1] = (struct result){"seed_kv", CALL_KEPT, 5, {b, h, call_blocks(call) + 1, d, e}};
    return 2;
}

int golden_expect(const struct input *input, enum golden_kind kind, struct call *call,
                  struct expected *expected, bool *found)
{
    struct result results[2];
    *expected = (struct expected){.tolerance = kind == GOLDEN_SEED ? SEED_TOLERANCE : 1};
    *found = false;
    if (kind == GOLDEN_SEED && call->operation == CALL_PREFILL)
        call->decay = LATTN_DECAY_VLLM;
    int count = list_results(call, kind, results);
    for (int i = 0; i < count; i++) {
        void *data;
        lattn_dtype dtype;
        int end = input_expected(input, results[i].name, results[i].rank, results[i].shape, &dtype,
                                 &data);
        if (end != EXIT_DONE)
            return end;
        if (!data)
            continue;
        expected->part[results[i].part] = (struct compare_array){dtype, data};
        call->keep_blocks = call->keep_blocks || results[i].part == CALL_KEPT;
        *found = true;
    }
    return EXIT_DONE;
}
