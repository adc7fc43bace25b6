#include "planner_bench.h"

#include "core/context.h"

struct bench bench;

void open_bench(const struct lattn_kernel_row *rows, uint32_t count)
{
    const struct lattn_backend *backends[] = {&fake_backend};
    if (rows) {
        fake_backend.rows = rows;
        fake_backend.row_count = count;
    }
    assert_ok(lattn_context_create_with(backends, 1, NULL, &bench.context));
    assert_ok(lattn_device_open(bench.context, 0, &bench.device));
    assert_ok(lattn_stream_create(bench.device, &bench.stream));
}

void close_bench(void)
{
    lattn_stream_destroy(bench.stream);
    lattn_device_close(bench.device);
    lattn_context_destroy(bench.context);
    assert_int_equal(fake.live, 0);
}

int bench_reset(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

_Alignas(16) char somewhere[16];

lattn_prefill_params some_prefill(int64_t batch, int64_t tokens, int32_t heads, int32_t d)
{
    lattn_prefill_params p = LATTN_PREFILL_PARAMS_INIT;
    p.batch = batch;
    p.tokens = tokens;
    p.heads = heads;
    p.d = d;
    p.q.base = p.k.base = p.v.base = p.o.base = p.slopes.base = somewhere;
    return p;
}

lattn_decode_params some_decode(int64_t batch, int32_t heads, int32_t d)
{
    lattn_decode_params p = LATTN_DECODE_PARAMS_INIT;
    p.batch = batch;
    p.heads = heads;
    p.d = d;
    p.q.base = p.k.base = p.v.base = p.o.base = p.slopes.base = p.state_in.base = somewhere;
    return p;
}

void run(lattn_prefill_params *p)
{
    assert_ok(lattn_prefill_prepare(bench.stream, p));
    assert_ok(lattn_prefill_workspace(bench.stream, p, &p->workspace.size));
    p->workspace.base = p->workspace.size ? somewhere : NULL;
    fake.launch_count = 0;
    assert_ok(lattn_prefill(bench.stream, p));
}

void assert_launched(int at, const char *entry, uint64_t groups)
{
    assert_true(at < fake.launch_count);
    assert_string_equal(fake.launched[at]->entry, entry);
    assert_int_equal(fake.launches[at].groups, groups);
    assert_int_equal(fake.launches[at].threads, fake.launched[at]->threads);
    assert_int_equal(fake.launches[at].shared, fake.launched[at]->shared);
}
