/* Every rule on the arguments of prefill and decode: one field of a good call is broken, and the
 * call must fail with a status and a message that names the field and its value, having touched
 * nothing. */
#include <math.h>
#include <string.h>

#include "attention.h"

struct change {
    size_t offset, size; /* of a field; size 0: no change */
    bool real;
    double value; /* exact for all integers used here */
};

struct rule {
    const char *name;
    struct change changes[4];
    const char *message; /* a part of it */
    lattn_status status; /* 0: LATTN_ERROR_INVALID_ARGUMENT */
    bool run_only;       /* pointers: queries do not look at them */
    bool decode;
};

#define P(field, value)                                                                            \
    {                                                                                              \
        offsetof(lattn_prefill_params, field), sizeof(((lattn_prefill_params *)0)->field), false,  \
            value                                                                                  \
    }
#define P_REAL(field, value)                                                                       \
    {                                                                                              \
        offsetof(lattn_prefill_params, field), sizeof(float), true, value                          \
    }
#define D(field, value)                                                                            \
    {                                                                                              \
        offsetof(lattn_decode_params, field), sizeof(((lattn_decode_params *)0)->field), false,    \
            value                                                                                  \
    }

static const struct rule rules[] = {
    {"batch below 0", {P(batch, -1)}, .message = "batch = -1"},
    {"batch above 31 bits", {P(batch, 0x1p31)}, .message = "batch = 2147483648"},
    {"batch above what segments leave", {P(batch, 0x7fffffff)}, .message = "batch = 2147483647"},
    {"tokens below 0", {P(tokens, -5)}, .message = "tokens = -5"},
    {"tokens above 31 bits", {P(tokens, 0x1p31)}, .message = "tokens = 2147483648"},
    {"tokens above a whole sequence", {P(tokens, 0x7fffff00)}, .message = "tokens = 2147483392"},
    {"no heads", {P(heads, 0)}, .message = "heads = 0"},
    {"heads below 0", {P(heads, -4)}, .message = "heads = -4"},
    {"qk_heads below 0", {P(qk_heads, -2)}, .message = "qk_heads = -2"},
    {"qk_heads not a divisor", {P(qk_heads, 3)}, .message = "qk_heads = 3"},
    {"more qk_heads than heads", {P(qk_heads, 8)}, .message = "qk_heads = 8"},
    {"no d", {P(d, 0)}, .message = "d = 0"},
    {"d below 0", {P(d, -8)}, .message = "d = -8"},
    {"d above 256", {P(d, 257)}, .message = "d = 257"},
    {"e below 0", {P(e, -1)}, .message = "e = -1"},
    {"e above 256", {P(e, 300)}, .message = "e = 300"},
    {"no such dtype", {P(dtype, 3)}, .message = "dtype = 3"},
    {"no such precision", {P(precision, 2)}, .message = "precision = 2"},
    {"no such decay", {P(decay, 9)}, .message = "decay = 9"},
    {"infinite scale", {P_REAL(scale, (double)INFINITY)}, .message = "scale = inf"},
    {"NaN scale", {P_REAL(scale, (double)NAN)}, .message = "scale ="},
    {"q is NULL", {P(q.base, 0)}, .message = "q.base = NULL", .run_only = true},
    {"k is NULL", {P(k.base, 0)}, .message = "k.base = NULL", .run_only = true},
    {"v is NULL", {P(v.base, 0)}, .message = "v.base = NULL", .run_only = true},
    {"o is NULL", {P(o.base, 0)}, .message = "o.base = NULL", .run_only = true},
    {"slopes are NULL", {P(slopes.base, 0)}, .message = "slopes.base = NULL", .run_only = true},
    {"odd offset of q", {P(q.offset, 130)}, .message = "q.offset = 130"},
    {"odd offset of k", {P(k.offset, 3)}, .message = "k.offset = 3"},
    {"odd offset of v", {P(v.offset, 1)}, .message = "v.offset = 1"},
    {"odd offset of o", {P(o.offset, 127)}, .message = "o.offset = 127"},
    {"offset of q above 63 bits",
     {P(q.offset, 0x1p63)},
     .message = "q.offset = 9223372036854775808"},
    {"odd offset of slopes", {P(slopes.offset, 2)}, .message = "slopes.offset = 2"},
    {"odd offset of block_states",
     {P(block_states.offset, 6)},
     .message = "block_states.offset = 6"},
    {"odd offset of state_in", {P(state_in.offset, 2)}, .message = "state_in.offset = 2"},
    {"odd offset of state_out", {P(state_out.offset, 1)}, .message = "state_out.offset = 1"},
    {"odd offset of the workspace", {P(workspace.offset, 8)}, .message = "workspace.offset = 8"},
    {"a workspace of bytes and no base",
     {P(workspace.base, 0), P(workspace.size, 64)},
     .message = "workspace.base = NULL"},
    {"o's heads overlap",
     {P(o.stride_batch, 4096), P(o.stride_head, 8), P(o.stride_token, 8)},
     .message = "o.stride_"},
    {"o has one place for all tokens",
     {P(o.stride_batch, 4096), P(o.stride_head, 1024)},
     .message = "o.stride_token = 0"},
    {"o's batches overlap",
     {P(o.stride_batch, 1), P(o.stride_head, 1024), P(o.stride_token, 8)},
     .message = "o.stride_"},
    {"q's strides reach before its memory",
     {P(q.stride_token, -1000), P(q.stride_head, 8)},
     .message = "q.offset ="},
    {"k's strides leave the address space",
     {P(k.stride_batch, 0x1p62), P(k.stride_token, 8)},
     .message = "k.stride_batch = 4611686018427387904"},
    {"v's strides leave the address space, below",
     {P(v.stride_token, -0x1p63), P(v.stride_head, 8)},
     .message = "v.stride_token = -9223372036854775808"},
    {"state_in: no such dtype", {P(state_in.dtype, 5)}, .message = "state_in.dtype = 5"},
    {"state_out: no such dtype", {P(state_out.dtype, 4)}, .message = "state_out.dtype = 4"},
    {"state_in: slots below 0", {P(state_in.slots, -1)}, .message = "state_in.slots = -1"},
    {"state_in: a pool of no slots", {P(state_in.slots, 0)}, .message = "state_in.slots = 0"},
    {"state_out: a pool of no slots", {P(state_out.slots, 0)}, .message = "state_out.slots = 0"},
    {"state_in: fewer rows than sequences",
     {P(state_in.slot_idx.base, 0), P(state_in.slots, 1)},
     .message = "state_in.slots = 1"},
    {"state_in: no such slot type",
     {P(state_in.slot_type, 2)},
     .message = "state_in.slot_type = 2"},
    {"state_in: odd offset of slot_idx",
     {P(state_in.slot_idx.offset, 3)},
     .message = "state_in.slot_idx.offset = 3"},
    {"state_out: odd offset of 64-bit slot_idx",
     {P(state_out.slot_idx.offset, 4), P(state_out.slot_type, 1)},
     .message = "state_out.slot_idx.offset = 4"},
    {"state_out: elements overlap",
     {P(state_out.stride_slot, 4096), P(state_out.stride_head, 64), P(state_out.stride_d, 1),
      P(state_out.stride_e, 1)},
     .message = "state_out.stride_"},
    {"state_in: strides leave the address space",
     {P(state_in.stride_slot, 0x1p62), P(state_in.stride_e, 1)},
     .message = "state_in.stride_slot = 4611686018427387904"},

    {"decode: batch below 0", {D(batch, -1)}, .message = "batch = -1", .decode = true},
    {"decode: tokens below 0", {D(tokens, -1)}, .message = "tokens = -1", .decode = true},
    {"decode: nine tokens", {D(tokens, 9)}, .message = "tokens = 9", .decode = true},
    {"decode: d above 256", {D(d, 512)}, .message = "d = 512", .decode = true},
    {"decode: no such dtype", {D(dtype, 7)}, .message = "dtype = 7", .decode = true},
    {"decode: qk_heads not a divisor", {D(qk_heads, 3)}, .message = "qk_heads = 3", .decode = true},
    {"decode: q is NULL",
     {D(q.base, 0)},
     .message = "q.base = NULL",
     .run_only = true,
     .decode = true},
    {"decode: o's tokens overlap",
     {D(o.stride_batch, 4096), D(o.stride_head, 1024)},
     .message = "o.stride_token = 0",
     .decode = true},
    {"decode: no states", {D(state_in.base, 0)}, .message = "state_in.base = NULL", .decode = true},
    {"decode: odd offset of token_states",
     {D(token_states.offset, 2)},
     .message = "token_states.offset = 2",
     .decode = true},
    {"decode: too few token_states",
     {D(token_states.slots, 5)},
     .message = "token_states.slots = 5",
     .decode = true},
    {"decode: token_states of no such dtype",
     {D(token_states.dtype, 3)},
     .message = "token_states.dtype = 3",
     .decode = true},
    {"decode: token_states with slots",
     {D(token_states.slot_idx.base, 64)},
     .message = "token_states.slot_idx",
     .decode = true},
    {"decode: odd offset of the workspace",
     {D(workspace.offset, 4)},
     .message = "workspace.offset = 4",
     .decode = true},
};

static void apply(void *params, const struct change *change)
{
    unsigned char *field = (unsigned char *)params + change->offset;
    if (change->real) {
        float real = (float)change->value;
        memcpy(field, &real, sizeof(real));
        return;
    }
    /* 2^63 is meant for an unsigned field, and has the bits of the least signed number. */
    int64_t wide = change->value >= 0x1p63 ? INT64_MIN : (int64_t)change->value;
    int32_t narrow = (int32_t)wide;
    memcpy(field, change->size == 4 ? (void *)&narrow : (void *)&wide, change->size);
}

static void assert_refused(lattn_status status, const struct rule *rule)
{
    if (status != (rule->status ? rule->status : LATTN_ERROR_INVALID_ARGUMENT))
        fail_msg("%s: got %s (%s)", rule->name, lattn_status_name(status), lattn_error_message());
    if (!strstr(lattn_error_message(), rule->message))
        fail_msg("%s: the message is \"%s\", without \"%s\"", rule->name, lattn_error_message(),
                 rule->message);
    assert_null(strchr(lattn_error_message(), '\n'));
}

static const struct attention_case good = {
    .name = "a good call",
    .batch = 2,
    .tokens = 4,
    .heads = 4,
    .qk_heads = 2,
    .d = 8,
    .start = START_POOL,
    .final = FINAL_POOL,
    .flags = true,
    .kept = true,
};

static void close_all(struct buffer *buffer)
{
    if (buffer->base)
        memset(buffer->open, 0, buffer->size);
}

static void rule_test(struct fixture *fixture, const void *data)
{
    const struct rule *rule = data;
    struct attention_case c = good;
    struct attention a;
    uint64_t bytes;
    char text[64];
    c.decode = rule->decode;
    attention_build(&a, fixture, &c);
    attention_run(&a); /* it is good, and prepared */
    buffer_upload(&a.o_buffer);
    buffer_upload(&a.out_buffer);
    buffer_upload(&a.kept_buffer);
    void *params = rule->decode ? (void *)&a.decode : (void *)&a.prefill;
    for (int i = 0; i < 4 && rule->changes[i].size; i++)
        apply(params, &rule->changes[i]);

    lattn_stream *stream = fixture->stream;
    if (rule->decode) {
        assert_refused(lattn_decode(stream, &a.decode), rule);
        if (!rule->run_only) {
            assert_refused(lattn_decode_workspace(stream, &a.decode, &bytes), rule);
            assert_refused(lattn_decode_describe(stream, &a.decode, text, sizeof(text)), rule);
        }
    } else {
        assert_refused(lattn_prefill(stream, &a.prefill), rule);
        if (!rule->run_only) {
            assert_refused(lattn_prefill_workspace(stream, &a.prefill, &bytes), rule);
            assert_refused(lattn_prefill_workspace_bound(stream, &a.prefill, &bytes), rule);
            assert_refused(lattn_prefill_describe(stream, &a.prefill, text, sizeof(text)), rule);
        }
    }
    close_all(&a.o_buffer);
    close_all(&a.out_buffer);
    close_all(&a.kept_buffer);
    buffer_check(&a.o_buffer);
    buffer_check(&a.out_buffer);
    buffer_check(&a.kept_buffer);
    attention_free(&a);
}

/* What prepare looks at, it refuses too. */
static void prepare_test(struct fixture *fixture, const void *data)
{
    static const struct {
        int32_t d, e;
        lattn_dtype dtype;
        const char *message;
    } bad[] = {{0, 8, LATTN_F32, "d = 0"},
               {257, 8, LATTN_F32, "d = 257"},
               {8, 999, LATTN_F16, "e = 999"},
               {8, 8, (lattn_dtype)3, "dtype = 3"}};
    (void)data;
    for (int i = 0; i < 4; i++) {
        lattn_prefill_params prefill = LATTN_PREFILL_PARAMS_INIT;
        lattn_decode_params decode = LATTN_DECODE_PARAMS_INIT;
        struct rule rule = {.name = "prepare", .message = bad[i].message};
        prefill.d = decode.d = bad[i].d;
        prefill.e = decode.e = bad[i].e;
        prefill.dtype = decode.dtype = bad[i].dtype;
        assert_refused(lattn_prefill_prepare(fixture->stream, &prefill), &rule);
        assert_refused(lattn_decode_prepare(fixture->stream, &decode), &rule);
    }
}

/* packed-only rules: the good call, packed. */
static void packed_test(struct fixture *fixture, const void *data)
{
    struct attention_case c = good;
    struct attention a;
    (void)data;
    c.packed = true;
    c.lengths[0] = 3;
    c.lengths[1] = 4;
    attention_build(&a, fixture, &c);
    attention_run(&a);
    struct rule rule = {.name = "max_tokens above tokens", .message = "max_tokens = 1000"};
    a.prefill.max_tokens = 1000;
    assert_refused(lattn_prefill(fixture->stream, &a.prefill), &rule);
    a.prefill.max_tokens = -1;
    rule.message = "max_tokens = -1";
    assert_refused(lattn_prefill(fixture->stream, &a.prefill), &rule);
    a.prefill.max_tokens = 0;
    rule = (struct rule){.name = "odd cu_seqlens", .message = "cu_seqlens.offset = 2"};
    a.prefill.cu_seqlens.offset = 2;
    assert_refused(lattn_prefill(fixture->stream, &a.prefill), &rule);
    attention_free(&a);
}

/* A workspace one byte short, none at all, and a stream on which nothing was prepared. */
static void state_of_the_stream_test(struct fixture *fixture, const void *data)
{
    struct attention_case c = good;
    struct attention a;
    (void)data;
    c.tokens = 600; /* block states need segments, and they a workspace, where no kernel walks */
    attention_build(&a, fixture, &c);
    lattn_stream *bare;
    assert_ok(lattn_stream_create(fixture->device, &bare));
    struct rule rule = {
        .name = "nothing prepared", .message = "prepare", .status = LATTN_ERROR_NOT_PREPARED};
    uint64_t bytes;
    assert_ok(lattn_prefill_workspace(bare, &a.prefill, &bytes));
    void *base = NULL;
    if (bytes)
        assert_ok(lattn_memory_alloc(fixture->device, bytes, &base));
    a.prefill.workspace = (lattn_workspace){base, 0, bytes};
    assert_refused(lattn_prefill(bare, &a.prefill), &rule);
    a.decode.tokens = 1;
    assert_refused(lattn_decode(bare, &a.decode), &rule);
    lattn_stream_destroy(bare);
    assert_ok(lattn_prefill_prepare(fixture->stream, &a.prefill));
    if (bytes) {
        rule = (struct rule){.name = "a short workspace",
                             .message = "workspace.size",
                             .status = LATTN_ERROR_WORKSPACE};
        a.prefill.workspace.size = bytes - 1;
        assert_refused(lattn_prefill(fixture->stream, &a.prefill), &rule);
        a.prefill.workspace = (lattn_workspace){0};
        assert_refused(lattn_prefill(fixture->stream, &a.prefill), &rule);
        lattn_memory_free(fixture->device, base);
    }
    attention_free(&a);
}

int main(int argc, char **argv)
{
    enum { count = sizeof(rules) / sizeof(*rules) };
    struct device_test tests[count + 3];
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct device_test){rules[i].name, rule_test, &rules[i], TEST_NORMAL};
    tests[count] = (struct device_test){"prepare", prepare_test, NULL, TEST_QUICK};
    tests[count + 1] = (struct device_test){"packed", packed_test, NULL, TEST_QUICK};
    tests[count + 2] = (struct device_test){"prepared, and with a workspace",
                                            state_of_the_stream_test, NULL, TEST_QUICK};
    return run_on_devices("rules", tests, count + 3, argc, argv);
}
