/* Prefill against the oracle. */
#include "cases.h"
#include "number.h"

/* Every test below starts from this and changes what it is about. */
static const struct attention_case plain = {
    .effort = TEST_NORMAL,
    .batch = 1,
    .tokens = 130,
    .heads = 2,
    .d = 32,
    .start = START_ROWS,
    .final = FINAL_ROWS,
};

static void add_lengths(struct case_list *list)
{
    static const int64_t lengths[] = {0,   1,   2,   31,  63,  64,  65,   127,  128, 255,
                                      256, 257, 300, 511, 512, 513, 1025, 4096, 5001};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        struct attention_case c = plain;
        c.tokens = lengths[i];
        c.d = c.tokens > 1000 ? 16 : 32;
        c.heads = 9; /* every slope */
        c.kept = true;
        c.effort = c.tokens <= 2 || c.tokens == 65 || c.tokens == 257 ? TEST_QUICK : TEST_NORMAL;
        if (c.effort == TEST_QUICK) {
            c.d = 8;
            c.heads = 2;
        }
        case_add(list, c, "n %d", (int)lengths[i]);
        c.start = START_ZERO;
        c.vllm = true;
        case_add(list, c, "n %d, vllm, from zero", (int)lengths[i]);
    }
    struct attention_case c = plain;
    c.heads = 1;
    c.d = 128;
    c.tokens = 20000;
    c.slopes = SLOPES_ZERO;
    c.effort = TEST_SLOW;
    case_add(list, c, "n 20000, slope 0");
    /* The rounding of a weight just below 1 adds up over its chunks, always to one side. */
    c.heads = 4; /* so many that none is cut into segments */
    c.d = 16;
    c.tokens = 60000;
    c.slopes = SLOPES_TINY;
    c.effort = TEST_NORMAL;
    case_add(list, c, "n 60000, slope 1e-6");
}

static void add_dims(struct case_list *list)
{
    static const int32_t dims[][2] = {
        {1, 1},    {1, 256},   {256, 1},   {2, 3},     {5, 4},     {7, 33},    {8, 8},
        {16, 16},  {17, 64},   {31, 32},   {33, 31},   {48, 32},   {64, 64},   {64, 128},
        {80, 80},  {96, 80},   {100, 100}, {128, 64},  {128, 128}, {127, 129}, {65, 63},
        {160, 32}, {192, 192}, {192, 128}, {128, 256}, {256, 256}, {255, 253}, {256, 64}};
    for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++) {
            struct attention_case c = plain;
            c.d = dims[i][0];
            c.e = dims[i][1];
            c.dtype = dtype;
            c.tokens = 70 + 200 * (i % 2);
            c.kept = i % 3 == 0;
            c.effort = c.d * c.e < 300 && c.tokens == 70 ? TEST_QUICK : TEST_NORMAL;
            case_add(list, c, "d %d, e %d, %s", (int)c.d, (int)c.e, number_name(dtype));
        }
    for (int32_t d = 1; d <= 256; d++) {
        struct attention_case c = plain;
        c.d = d;
        c.e = 257 - d;
        c.effort = TEST_SLOW;
        case_add(list, c, "every d: %d", (int)d);
    }
}

/* Where few tokens add up to an output, no rounding on the way to it is averaged away. */
static void add_short(struct case_list *list)
{
    static const int32_t dims[][2] = {{8, 8}, {64, 64}, {128, 8}, {128, 128}, {256, 8}};
    for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++)
        for (lattn_dtype dtype = LATTN_F16; dtype <= LATTN_BF16; dtype++)
            for (int64_t tokens = 1; tokens <= 3; tokens++) {
                struct attention_case c = plain;
                c.d = dims[i][0];
                c.e = dims[i][1];
                c.dtype = dtype;
                c.batch = 30;
                c.tokens = tokens;
                c.start = START_ZERO;
                case_add(list, c, "short, n %d, d %d, e %d, %s", (int)tokens, (int)c.d, (int)c.e,
                         number_name(dtype));
            }
}

static void add_layouts(struct case_list *list)
{
    for (enum layout layout = LAYOUT_DEFAULT; layout < LAYOUT_COUNT; layout++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++)
            for (int32_t d = 64; d <= 128; d += 64) {
                struct attention_case c = plain;
                c.layout = layout;
                c.dtype = dtype;
                c.d = d;
                c.batch = 2;
                case_add(list, c, "layout %d, %s, d %d", layout, number_name(dtype), (int)d);
                c.packed = true;
                c.batch = 3;
                c.lengths[0] = 1;
                c.lengths[1] = 65;
                c.lengths[2] = 140;
                case_add(list, c, "layout %d, %s, d %d, packed", layout, number_name(dtype),
                         (int)d);
            }
}

static void add_slopes(struct case_list *list)
{
    for (enum slopes slopes = SLOPES_ZERO; slopes < SLOPES_COUNT; slopes++)
        for (int vllm = 0; vllm < 2; vllm++)
            for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++) {
                struct attention_case c = plain;
                c.slopes = slopes;
                c.vllm = vllm;
                c.dtype = dtype;
                c.tokens = 600;
                c.d = 64;
                c.heads = 1;
                c.kept = dtype == LATTN_F32;
                case_add(list, c, "slopes %d, %s, %s", slopes, vllm ? "vllm" : "recurrence",
                         number_name(dtype));
            }
}

static void add_heads(struct case_list *list)
{
    static const int32_t heads[][2] = {{1, 1}, {3, 3}, {8, 2},  {6, 3},
                                       {4, 1}, {5, 5}, {64, 8}, {64, 64}};
    for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++)
        for (int packed = 0; packed < 2; packed++) {
            struct attention_case c = plain;
            c.heads = heads[i][0];
            c.qk_heads = heads[i][1];
            c.packed = packed;
            c.batch = 2;
            c.lengths[0] = 70;
            c.lengths[1] = 5;
            c.tokens = 70;
            c.layout = i % 2 ? LAYOUT_FUSED : LAYOUT_DEFAULT;
            c.effort = c.heads == 4 ? TEST_QUICK : TEST_NORMAL;
            c.d = c.heads == 4 ? 8 : 32;
            case_add(list, c, "h %d over %d%s", (int)c.heads, (int)c.qk_heads,
                     packed ? ", packed" : "");
        }
}

static void add_packed(struct case_list *list)
{
    static const struct {
        int count;
        int32_t lengths[MAX_LENGTHS];
    } sets[] = {{0, {0}},
                {1, {0}},
                {3, {0, 0, 0}},
                {4, {1, 1, 1, 1}},
                {5, {1, 0, 37, 0, 2}},
                {9, {1, 1, 300, 0, 64, 257, 0, 1, 255}},
                {2, {512, 256}},
                {12, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 513}},
                {3, {0, 1000, 1}},
                {2, {2049, 700}}};
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
        for (int kind = 0; kind < 4; kind++) {
            struct attention_case c = plain;
            c.packed = true;
            c.batch = sets[i].count;
            c.vllm = kind == 3;
            c.kept = kind != 1;
            c.dtype = kind == 2 ? LATTN_BF16 : LATTN_F32;
            c.flags = kind != 3;
            c.start = START_POOL;
            c.final = kind ? FINAL_IN_PLACE : FINAL_POOL;
            c.padding = kind == 1 || kind == 2;
            c.effort = i < 5 && kind < 2 ? TEST_QUICK : TEST_NORMAL;
            c.d = c.effort == TEST_QUICK ? 8 : 32;
            for (int j = 0; j < sets[i].count; j++)
                c.lengths[j] = sets[i].lengths[j];
            case_add(list, c, "packed set %d, kind %d", (int)i, kind);
        }
}

static void add_states(struct case_list *list)
{
    for (enum start start = START_ZERO; start <= START_POOL; start++)
        for (enum final final = FINAL_NONE; final <= FINAL_MOVED; final++)
            for (int options = 0; options < 4; options++) {
                struct attention_case c = plain;
                if (final >= FINAL_IN_PLACE && start == START_ZERO)
                    continue;
                if (final == FINAL_MOVED && start != START_POOL)
                    continue;
                c.start = start;
                c.final = final;
                c.flags = options & 1;
                c.padding = options & 2;
                c.wide_slots = options == 3;
                c.batch = 5;
                c.tokens = options ? 40 : 300;
                c.kept = options == 1;
                c.d = 16;
                c.effort = options == 3 ? TEST_QUICK : TEST_NORMAL;
                case_add(list, c, "start %d, final %d, options %d", start, final, options);
            }
    for (enum state_layout layout = STATE_DEFAULT; layout < STATE_LAYOUT_COUNT; layout++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++)
            for (int32_t d = 24; d <= 128; d += 40) {
                struct attention_case c = plain;
                c.in_dtype = dtype;
                c.out_dtype = (lattn_dtype)((dtype + layout) % 3);
                c.in_layout = layout;
                c.out_layout = (enum state_layout)((layout + d / 40) % STATE_LAYOUT_COUNT);
                c.start = START_POOL;
                c.final = d == 64 ? FINAL_IN_PLACE : FINAL_POOL;
                c.batch = 3;
                c.d = d;
                c.tokens = d == 24 ? 300 : 65;
                c.packed = dtype == LATTN_F16;
                c.lengths[0] = 300;
                c.lengths[2] = 1;
                case_add(list, c, "state layout %d, %s, d %d", layout, number_name(dtype), (int)d);
            }
}

static void add_poison(struct case_list *list)
{
    for (enum poison poison = POISON_Q; poison <= POISON_V; poison++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++)
            for (int kind = 0; kind < 6; kind++) {
                struct attention_case c = plain;
                c.poison = poison;
                c.dtype = dtype;
                c.packed = kind % 2;
                c.vllm = kind == 4;
                c.d = kind < 2 ? 64 : kind < 4 ? 128 : 20;
                c.tokens = kind == 0 ? 600 : 100;
                c.lengths[0] = 290;
                c.lengths[1] = 33;
                c.batch = 2;
                c.slopes = kind == 2 ? SLOPES_HUGE : SLOPES_MIXED;
                c.kept = kind == 3;
                case_add(list, c, "poison %d, %s, kind %d", poison, number_name(dtype), kind);
            }
    /* An infinite column of a state, which is not to take the others out of a narrow type's range.
     */
    for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype++)
        for (int kind = 0; kind < 2; kind++) {
            struct attention_case c = plain;
            c.poison = POISON_V;
            c.infinite = true;
            c.dtype = dtype;
            c.d = kind ? 128 : 64;
            c.heads = c.qk_heads = kind ? 3 : 70; /* over segments, and whole */
            c.tokens = kind ? 600 : 200;
            c.batch = 1;
            case_add(list, c, "infinity, %s, kind %d", number_name(dtype), kind);
        }
    struct attention_case c = plain;
    c.poison = POISON_V;
    c.tokens = 40;
    c.d = 8;
    c.effort = TEST_QUICK;
    case_add(list, c, "poison, small");
}

/* Few heads and long sequences, so that a device with many units cuts them into segments: an empty
 * one at the beginning and at the end, one of a single token, one that just passes a segment, and
 * one of many segments. */
static void add_segments(struct case_list *list)
{
    static const int32_t lengths[] = {0, 257, 1, 0, 2600, 700, 0};
    static const int32_t dims[][2] = {{40, 48}, {64, 72}, {128, 128}, {120, 40}, {200, 24}};
    enum { SEQUENCES = sizeof(lengths) / sizeof(*lengths) };
    for (size_t i = 0; i < sizeof(dims) / sizeof(*dims); i++)
        for (int kind = 0; kind < 4; kind++) {
            struct attention_case c = plain;
            c.packed = kind != 3;
            c.batch = c.packed ? SEQUENCES : 1;
            c.tokens = 2600;
            for (int j = 0; c.packed && j < SEQUENCES; j++)
                c.lengths[j] = lengths[j];
            c.d = dims[i][0];
            c.e = dims[i][1];
            c.dtype = kind == 3 ? LATTN_BF16 : (lattn_dtype)kind;
            c.tf32 = kind == 0 && i % 2;
            c.layout = kind == 2 ? LAYOUT_FUSED : LAYOUT_DEFAULT;
            c.heads = 2;
            c.qk_heads = 1 + (int32_t)i % 2;
            c.slopes = kind == 1 ? SLOPES_ZERO : SLOPES_MIXED;
            c.start = kind == 3 ? START_ZERO : START_POOL;
            c.final = kind == 0 ? FINAL_IN_PLACE : kind == 1 ? FINAL_POOL : FINAL_ROWS;
            c.flags = kind == 0;
            c.padding = kind == 1 && i % 2;
            case_add(list, c, "segments, d %d, e %d, kind %d", (int)c.d, (int)c.e, kind);
        }
}

static void add_rest(struct case_list *list)
{
    struct attention_case c = plain;
    c.batch = 0;
    c.effort = TEST_QUICK;
    case_add(list, c, "b 0");
    c.kept = true;
    c.start = START_POOL;
    c.final = FINAL_POOL;
    case_add(list, c, "b 0 with a pool");
    c = plain;
    c.scale = 0.125f;
    c.batch = 3;
    case_add(list, c, "scale");
    c.scale = -2;
    c.tokens = 300;
    c.vllm = true;
    case_add(list, c, "negative scale, vllm");
    for (int32_t d = 64; d <= 128; d += 64) {
        c = plain;
        c.tf32 = true;
        c.d = d;
        c.tokens = 520;
        case_add(list, c, "tf32, d %d", (int)d);
        c.vllm = true;
        c.kept = true;
        case_add(list, c, "tf32, d %d, vllm", (int)d);
        c.dtype = LATTN_BF16;
        case_add(list, c, "tf32 named for bf16, d %d", (int)d);
    }
    /* Few heads and long sequences, many heads and short ones: different plans. */
    static const int64_t shapes[][3] = {{1, 1, 3000}, {1, 2, 2048}, {16, 4, 20}, {2, 16, 260}};
    for (int i = 0; i < 4; i++)
        for (lattn_dtype dtype = LATTN_F32; dtype <= LATTN_BF16; dtype += 2) {
            c = plain;
            c.batch = shapes[i][0];
            c.heads = (int32_t)shapes[i][1];
            c.tokens = shapes[i][2];
            c.d = 64;
            c.dtype = dtype;
            c.start = START_POOL;
            c.final = FINAL_IN_PLACE;
            c.flags = i % 2;
            case_add(list, c, "b %d h %d n %d, %s", (int)c.batch, (int)c.heads, (int)c.tokens,
                     number_name(dtype));
        }
}

int main(int argc, char **argv)
{
    struct case_list list = {0};
    add_lengths(&list);
    add_dims(&list);
    add_short(&list);
    add_layouts(&list);
    add_slopes(&list);
    add_heads(&list);
    add_packed(&list);
    add_states(&list);
    add_poison(&list);
    add_segments(&list);
    add_rest(&list);
    for (int i = 0; i < (test_effort() == TEST_QUICK ? 6 : 40); i++)
        case_add_random(&list, false, i);
    return case_run(&list, "prefill", argc, argv);
}
