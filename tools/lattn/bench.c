#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "dtype.h"
#include "options.h"
#include "report.h"
#include "session.h"
#include "shapes.h"
#include "table.h"
#include "timing.h"
#include "workload.h"

static const struct table_column columns[] = {
    {"device", "device", TABLE_LEFT},
    {"name", "", TABLE_JSON},
    {"op", "op", TABLE_LEFT},
    {"shape", "b,h,n,d,e", TABLE_LEFT},
    {"dtype", "dtype", TABLE_LEFT},
    {"precision", "", TABLE_JSON},
    {"ms", "ms", TABLE_RIGHT},
    {"spread", "spread", TABLE_RIGHT},
    {"samples", "", TABLE_JSON},
    {"turns", "", TABLE_JSON},
    {"gapless", "", TABLE_JSON},
    {"bytes", "", TABLE_JSON},
    {"gb_s", "GB/s", TABLE_RIGHT},
    {"gflop_s", "GFLOP/s", TABLE_RIGHT},
    {"copy_gb_s", "copy GB/s", TABLE_RIGHT},
    {"floor_ms", "floor ms", TABLE_RIGHT},
    {"time_per_floor", "time/floor", TABLE_RIGHT},
    {"ns_per_token", "ns/(b h n)", TABLE_RIGHT},
    {"plan", "", TABLE_NOTE},
    {NULL, NULL, TABLE_JSON},
};

/* How much of a device's memory and time a measurement takes. */
struct effort {
    uint64_t copy_bytes;   /* of the buffer whose copy sets the floor */
    uint64_t rotate_bytes; /* more than the caches hold */
    uint64_t gate_bytes;   /* of the copies that calls are queued behind; 0: the host makes them */
    double seconds;        /* for one row */
    double sweep_seconds;  /* for one row of a sweep */
};

#define MIB ((uint64_t)1 << 20)

static const struct effort gpu_effort = {1024 * MIB, 512 * MIB, 64 * MIB, 0.5, 0.1};
static const struct effort cpu_effort = {256 * MIB, 128 * MIB, 0, 0.5, 0.2};

struct bench {
    struct session session;
    const struct effort *effort;
    double seconds;   /* for one row */
    double copy_rate; /* bytes read and written in a millisecond; 0: not measured yet */
    struct timing_gate gate;
    struct table *table;
};

/* ---- the floor ------------------------------------------------------------------------------- */

struct copy_work {
    lattn_stream *stream;
    void *from, *to;
    uint64_t bytes;
};

static lattn_status copy_once(void *user, uint64_t turn)
{
    const struct copy_work *work = user;
    (void)turn;
    return lattn_memory_copy(work->stream, work->to, 0, work->from, 0, work->bytes);
}

static lattn_status measure_copy(struct bench *bench)
{
    struct session *session = &bench->session;
    progress("%s: copy bandwidth", session->label);
    struct copy_work work = {session->stream, NULL, NULL, bench->effort->copy_bytes};
    struct timing timing;
    /* A small device copies what a quarter of it holds. */
    while (session->info.memory && work.bytes > session->info.memory / 8)
        work.bytes /= 2;
    lattn_status status = lattn_memory_alloc(session->device, work.bytes, &work.from);
    if (status == LATTN_OK)
        status = lattn_memory_alloc(session->device, work.bytes, &work.to);
    if (status == LATTN_OK)
        status = lattn_memory_fill(session->stream, work.from, 0, 0x5a, work.bytes);
    if (status == LATTN_OK)
        status = timing_measure(session->stream, copy_once, &work, bench->seconds, NULL, &timing);
    if (status == LATTN_OK)
        bench->copy_rate = 2 * (double)work.bytes / timing.milliseconds;
    lattn_stream_synchronize(session->stream);
    lattn_memory_free(session->device, work.to);
    lattn_memory_free(session->device, work.from);
    if (status == LATTN_OK && bench->effort->gate_bytes) {
        bench->gate.bytes = bench->effort->gate_bytes;
        bench->gate.milliseconds = (double)bench->gate.bytes / bench->copy_rate;
        status = lattn_memory_alloc(session->device, bench->gate.bytes, &bench->gate.base);
    }
    return status;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void add_head(struct bench *bench, const struct call *call)
{
    char shape[128];
    snprintf(shape, sizeof(shape), "%lld,%d,%lld,%d,%d", (long long)call->batch, call->heads,
             (long long)call->tokens, call->d, call->e);
    table_text(bench->table, bench->session.label);
    table_text(bench->table, bench->session.info.name);
    table_text(bench->table, call_operation_name(call->operation));
    table_text(bench->table, shape);
    table_text(bench->table, dtype_name(call->dtype));
    table_text(bench->table, call->precision == LATTN_PRECISION_TF32 ? "tf32" : "f32");
}

static void add_row(struct bench *bench, const struct call *call, const struct timing *timing,
                    const char *plan)
{
    struct table *table = bench->table;
    double bytes = (double)workload_bytes(call), floor = bytes / bench->copy_rate;
    add_head(bench, call);
    table_real(table, "%.4g", timing->milliseconds);
    table_real(table, "%.3f", timing->spread);
    table_integer(table, timing->samples);
    table_integer(table, timing->turns);
    table_flag(table, timing->gapless);
    table_real(table, "%.0f", bytes);
    table_real(table, "%.4g", bytes / timing->milliseconds / 1e6);
    table_real(table, "%.4g", workload_operations(call) / timing->milliseconds / 1e6);
    table_real(table, "%.4g", bench->copy_rate / 1e6);
    table_real(table, "%.4g", floor);
    table_real(table, "%.3g", timing->milliseconds / floor);
    table_real(table, "%.4g",
               timing->milliseconds * 1e6 / (double)call->batch / call->heads /
                   (double)call->tokens);
    table_text(table, plan);
}

static void add_skipped(struct bench *bench, const struct call *call, const char *reason)
{
    add_head(bench, call);
    for (int i = 0; i < 12; i++)
        table_none(bench->table);
    table_text(bench->table, reason);
}

static lattn_status measure(struct bench *bench, const struct call *call)
{
    struct workload workload;
    struct timing timing;
    char plan[512];
    lattn_stream *stream = bench->session.stream;
    /* A call that cannot be made is told before anything long is done. */
    lattn_status status = call_prepare(stream, call);
    if (status == LATTN_OK)
        status = session_room(&bench->session, call, NULL);
    if (status == LATTN_OK && bench->copy_rate == 0)
        status = measure_copy(bench);
    if (status == LATTN_OK)
        status = workload_open(&bench->session, call, bench->effort->rotate_bytes, &workload);
    if (status != LATTN_OK)
        return status;
    status = call_describe(stream, call, &workload.memory, plan, sizeof(plan));
    if (status == LATTN_OK)
        status = timing_measure(stream, workload_launch, &workload, bench->seconds, &bench->gate,
                                &timing);
    if (status == LATTN_OK)
        add_row(bench, call, &timing, plan);
    workload_close(&workload);
    return status;
}

static struct call make_call(const struct options *options, const struct shape *shape)
{
    return (struct call){
        .operation = shape->operation,
        .dtype = options->has_dtype ? options->dtype : LATTN_BF16,
        .precision = options->precision,
        .batch = shape->size[0],
        .heads = (int32_t)shape->size[1],
        .qk_heads = (int32_t)shape->size[1],
        .tokens = shape->size[2],
        .d = (int32_t)shape->size[3],
        .e = (int32_t)shape->size[4],
        .slots = shape->size[0],
        .slot_type = LATTN_I32,
    };
}

static int run_shape(struct bench *bench, const struct options *options, const struct shape *shape)
{
    struct call call = make_call(options, shape);
    progress("%s: %s %lld,%d,%lld,%d,%d", bench->session.label, call_operation_name(call.operation),
             (long long)call.batch, call.heads, (long long)call.tokens, call.d, call.e);
    lattn_status status = measure(bench, &call);
    if (status == LATTN_OK)
        return EXIT_DONE;
    if (status == LATTN_ERROR_DEVICE_MEMORY && !options->has_shape) {
        add_skipped(bench, &call, library_message(status));
        return EXIT_DONE;
    }
    return complain_library(status, "bench");
}

static int run_shapes(struct bench *bench, const struct options *options)
{
    int end = EXIT_DONE;
    if (options->has_shape) {
        struct shape shape = {.operation = options->operation};
        memcpy(shape.size, options->shape, sizeof(shape.size));
        return run_shape(bench, options, &shape);
    }
    struct shape shapes[SHAPES_MAX];
    const size_t count = shapes_list(bench->session.info.kind, options->sweep, shapes);
    for (size_t i = 0; i < count && end == EXIT_DONE; i++) {
        if (!options->has_operation || shapes[i].operation == options->operation)
            end = run_shape(bench, options, &shapes[i]);
    }
    return end;
}

/* ---- the subcommand -------------------------------------------------------------------------- */

static int run(struct bench *bench, const struct options *options)
{
    bench->effort = bench->session.info.kind == LATTN_DEVICE_GPU ? &gpu_effort : &cpu_effort;
    bench->seconds = options->sweep ? bench->effort->sweep_seconds : bench->effort->seconds;
    bench->table = table_new(columns);
    int end = run_shapes(bench, options);
    progress(NULL);
    lattn_memory_free(bench->session.device, bench->gate.base);
    if (end == EXIT_DONE && !table_print(bench->table, options->json))
        end = EXIT_FAILED;
    table_free(bench->table);
    return end;
}

int command_bench(int argc, char **argv)
{
    struct options options;
    int end;
    if (!options_parse(argc, argv, "bench",
                       OPTION_BACKEND | OPTION_DEVICE | OPTION_OPERATION | OPTION_SHAPE |
                           OPTION_DTYPE | OPTION_PRECISION | OPTION_SWEEP | OPTION_JSON,
                       &options, &end))
        return end;
    if (options.sweep && options.has_shape)
        return complain(EXIT_USAGE, "bench: --sweep has shapes of its own, and takes no --shape");
    if (options.file_count > 0)
        return complain(EXIT_USAGE, "bench: %s is one argument too many", options.files[0]);
    lattn_context *context;
    lattn_status status = lattn_context_create(NULL, &context);
    if (status != LATTN_OK)
        return complain_library(status, "bench");
    struct bench bench = {0};
    int32_t index;
    if ((status = session_find(context, options.backend, options.device, &index)) != LATTN_OK ||
        (status = session_open(context, index, &bench.session)) != LATTN_OK) {
        complain_library(status, "bench");
        end = EXIT_FAILED;
    } else {
        end = run(&bench, &options);
        session_close(&bench.session);
    }
    lattn_context_destroy(context);
    return end;
}
