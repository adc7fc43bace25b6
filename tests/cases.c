#include "cases.h"

#include <stdio.h>
#include <stdlib.h>

void case_add(struct case_list *list, struct attention_case c, const char *format, ...)
{
    char name[128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, sizeof(name), format, arguments);
    va_end(arguments);
    char *copy = calloc((size_t)length + 1, 1);
    snprintf(copy, (size_t)length + 1, "%s", name);
    c.name = copy;
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 64;
        list->cases = realloc(list->cases, list->room * sizeof(*list->cases));
    }
    list->cases[list->count++] = c;
}

/* Head sizes that kernels are made for, or any others. */
static int32_t random_dim(struct random *random)
{
    static const int32_t usual[] = {1, 16, 32, 64, 64, 80, 96, 128, 128, 192, 256};
    return random_chance(random, 2) ? usual[random_range(random, 0, 10)]
                                    : (int32_t)random_range(random, 1, 256);
}

void case_add_random(struct case_list *list, bool decode, int number)
{
    char name[64];
    snprintf(name, sizeof(name), "random %s %d", decode ? "decode" : "prefill", number);
    struct random random = random_named(name);
    struct random *r = &random;
    bool small = test_effort() == TEST_QUICK;
    struct attention_case c = {.decode = decode};
    c.dtype = (lattn_dtype)random_range(r, 0, 2);
    c.d = small ? (int32_t)random_range(r, 1, 24) : random_dim(r);
    c.e = random_chance(r, 2) ? c.d : small ? (int32_t)random_range(r, 1, 24) : random_dim(r);
    c.qk_heads = (int32_t)random_range(r, 1, 3);
    c.heads = c.qk_heads * (int32_t)random_range(r, 1, 3);
    c.batch = random_range(r, 1, 4);
    c.packed = !decode && random_chance(r, 2);
    c.tokens = decode ? random_range(r, 1, 8) : random_range(r, 0, small ? 40 : 600);
    if (c.packed) {
        c.batch = random_range(r, 1, MAX_LENGTHS);
        for (int64_t i = 0; i < c.batch; i++)
            c.lengths[i] = random_chance(r, 3) ? (int32_t)random_range(r, 0, 1)
                                               : (int32_t)random_range(r, 0, small ? 40 : 300);
    }
    c.vllm = !decode && random_chance(r, 3);
    c.tf32 = random_chance(r, 4);
    c.scale = random_chance(r, 2) ? 0 : 0.37f;
    c.slopes = (enum slopes)random_range(r, 0, SLOPES_COUNT - 1);
    c.layout = (enum layout)random_range(r, 0, LAYOUT_COUNT - 1);
    c.start = (enum start)random_range(r, decode ? START_ROWS : START_ZERO, START_POOL);
    c.flags = random_chance(r, 2);
    c.final = (enum final)random_range(r, FINAL_NONE,
                                       c.start == START_POOL   ? FINAL_MOVED
                                       : c.start == START_ROWS ? FINAL_IN_PLACE
                                                               : FINAL_POOL);
    c.padding = random_chance(r, 2);
    c.wide_slots = random_chance(r, 2);
    c.in_dtype = (lattn_dtype)random_range(r, 0, 2);
    c.out_dtype = (lattn_dtype)random_range(r, 0, 2);
    c.in_layout = (enum state_layout)random_range(r, 0, STATE_LAYOUT_COUNT - 1);
    c.out_layout = (enum state_layout)random_range(r, 0, STATE_LAYOUT_COUNT - 1);
    c.kept = random_chance(r, 2);
    case_add(list, c, "%s", name);
}

int case_run(struct case_list *list, const char *suite, int argc, char **argv)
{
    struct device_test *tests = calloc(list->count, sizeof(*tests));
    for (size_t i = 0; i < list->count; i++)
        tests[i] = (struct device_test){list->cases[i].name, attention_test, &list->cases[i],
                                        list->cases[i].effort};
    int failed = run_on_devices(suite, tests, list->count, argc, argv);
    free(tests);
    for (size_t i = 0; i < list->count; i++)
        free((char *)list->cases[i].name);
    free(list->cases);
    return failed;
}
