/* Decode against the oracle. */
#include "cases.h"
#include "number.h"

/* Every test below starts from this and changes what it is about. */
static const struct attention_case plain = {
    .effort = TEST_NORMAL,
    .decode = true,
    .batch = 3,
    .tokens = 1,
    .heads = 3,
    .d = 64,
    .start = START_POOL,
};

static void add_dims(struct case_list *list)
{
    static const int32_t dims[][2] = {{1, 1},     {1, 256},   {256, 1},   {2, 3},     {7, 33},
                                      {16, 16},   {17, 64},   {31, 32},   {64, 64},   {64, 128},
                                      {96, 80},   {128, 64},  {128, 128}, {127, 129}, {192, 192},
                                      {128, 256}, {256, 256}, {255, 253}, {256, 64}};
    for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++)
            for (int64_t tokens = 1; tokens <= 4; tokens += 3) {
                struct attention_case c = plain;
                c.d = dims[i][0];
                c.e = dims[i][1];
                c.dtype = dtype;
                c.tokens = tokens;
                c.kept = tokens > 1;
                c.effort = c.d * c.e < 300 ? TEST_QUICK : TEST_NORMAL;
                case_add(list, c, "d %d, e %d, %s, %d tokens", (int)c.d, (int)c.e,
                         number_name(dtype), (int)tokens);
            }
    for (int32_t d = 1; d <= 256; d++) {
        struct attention_case c = plain;
        c.d = d;
        c.e = 257 - d;
        c.effort = TEST_SLOW;
        case_add(list, c, "every d: %d", (int)d);
    }
}

static void add_tokens(struct case_list *list)
{
    for (int64_t tokens = 1; tokens <= 8; tokens++)
        for (int kind = 0; kind < 4; kind++) {
            struct attention_case c = plain;
            c.tokens = tokens;
            c.d = 32;
            c.heads = 9; /* every slope */
            c.kept = kind > 0;
            c.final = kind == 2 ? FINAL_MOVED : kind == 3 ? FINAL_POOL : FINAL_NONE;
            c.flags = kind == 1;
            c.layout = (enum layout)((tokens + kind) % LAYOUT_COUNT);
            c.scale = kind == 3 ? 0.25f : 0;
            case_add(list, c, "%d tokens, kind %d", (int)tokens, kind);
        }
}

static void add_layouts(struct case_list *list)
{
    for (enum layout layout = LAYOUT_DEFAULT; layout < LAYOUT_COUNT; layout++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++)
            for (int64_t tokens = 1; tokens <= 3; tokens += 2) {
                struct attention_case c = plain;
                c.layout = layout;
                c.dtype = dtype;
                c.tokens = tokens;
                case_add(list, c, "layout %d, %s, %d tokens", layout, number_name(dtype),
                         (int)tokens);
            }
}

static void add_states(struct case_list *list)
{
    for (enum start start = START_ROWS; start <= START_POOL; start++)
        for (enum final final = FINAL_NONE; final <= FINAL_MOVED; final++)
            for (int options = 0; options < 8; options++) {
                struct attention_case c = plain;
                if (final == FINAL_MOVED && start != START_POOL)
                    continue;
                c.start = start;
                c.final = final;
                c.flags = options & 1;
                c.padding = options & 2;
                c.wide_slots = options & 4;
                c.batch = 7;
                c.tokens = options % 3 + 1;
                c.kept = options >= 3;
                c.d = 16;
                c.effort = options == 3 ? TEST_QUICK : TEST_NORMAL;
                case_add(list, c, "start %d, final %d, options %d", start, final, options);
            }
    for (enum state_layout layout = STATE_DEFAULT; layout < STATE_LAYOUT_COUNT; layout++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++)
            for (int32_t d = 24; d <= 128; d += 40) {
                struct attention_case c = plain;
                c.in_dtype = dtype;
                c.in_layout = layout;
                c.out_dtype = (lattn_dtype)((dtype + layout) % 3);
                c.out_layout = (enum state_layout)((layout + d / 40) % STATE_LAYOUT_COUNT);
                c.final = d == 64 ? FINAL_NONE : FINAL_POOL;
                c.d = d;
                c.tokens = d == 24 ? 3 : 1;
                c.kept = d == 24;
                case_add(list, c, "state layout %d, %s, d %d", layout, number_name(dtype), (int)d);
            }
}

static void add_rest(struct case_list *list)
{
    static const int32_t heads[][2] = {{1, 1}, {8, 2}, {6, 3}, {4, 1}, {64, 8}, {64, 64}};
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
        struct attention_case c = plain;
        c.heads = heads[i][0];
        c.qk_heads = heads[i][1];
        c.d = 32;
        c.layout = i % 2 ? LAYOUT_FUSED : LAYOUT_DEFAULT;
        case_add(list, c, "h %d over %d", (int)c.heads, (int)c.qk_heads);
    }
    for (enum slopes slopes = SLOPES_ZERO; slopes < SLOPES_COUNT; slopes++) {
        struct attention_case c = plain;
        c.slopes = slopes;
        c.tokens = slopes;
        case_add(list, c, "slopes %d", slopes);
    }
    for (enum poison poison = POISON_Q; poison <= POISON_V; poison++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++) {
            struct attention_case c = plain;
            c.poison = poison;
            c.dtype = dtype;
            c.tokens = 5;
            c.kept = true;
            case_add(list, c, "poison %d, %s", poison, number_name(dtype));
        }
    struct attention_case c = plain;
    c.batch = 0;
    c.effort = TEST_QUICK;
    case_add(list, c, "b 0");
    c = plain;
    c.batch = 70;
    c.d = 16;
    c.padding = true;
    case_add(list, c, "b 70");
    c = plain;
    c.tf32 = true;
    case_add(list, c, "tf32");
    c.scale = 0.3f;
    case_add(list, c, "scale");
}

int main(int argc, char **argv)
{
    struct case_list list = {0};
    add_dims(&list);
    add_tokens(&list);
    add_layouts(&list);
    add_states(&list);
    add_rest(&list);
    for (int i = 0; i < (test_effort() == TEST_QUICK ? 8 : 60); i++)
        case_add_random(&list, true, i);
    return case_run(&list, "decode", argc, argv);
}
