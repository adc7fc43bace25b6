#include "shapes.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const struct shape gpu_shapes[] = {
    {CALL_PREFILL, {1, 64, 4096, 128, 128}},  {CALL_PREFILL, {1, 64, 65536, 128, 128}},
    {CALL_PREFILL, {8, 64, 2048, 128, 128}},  {CALL_PREFILL, {32, 64, 1024, 128, 128}},
    {CALL_PREFILL, {1, 8, 131072, 128, 128}}, {CALL_PREFILL, {16, 16, 4096, 64, 64}},
    {CALL_DECODE, {1, 64, 1, 128, 128}},      {CALL_DECODE, {16, 64, 1, 128, 128}},
    {CALL_DECODE, {64, 64, 1, 128, 128}},     {CALL_DECODE, {256, 64, 1, 128, 128}},
};

static const struct shape cpu_shapes[] = {
    {CALL_PREFILL, {1, 4, 1024, 128, 128}}, {CALL_PREFILL, {1, 2, 4096, 64, 64}},
    {CALL_PREFILL, {4, 4, 256, 64, 64}},    {CALL_DECODE, {1, 8, 1, 128, 128}},
    {CALL_DECODE, {16, 8, 1, 128, 128}},
};

/* Zero ends a list. */
struct sweep {
    int64_t sequences[8];    /* b of prefill */
    int64_t heads[8];        /* h of prefill, beside `sequences` */
    int64_t tokens[8];       /* n of prefill */
    int64_t most;            /* b * h * n */
    int64_t rows[12];        /* b of decode */
    int64_t row_heads, size; /* h of decode; d = e of all */
};

static const struct sweep gpu_sweep = {
    .sequences = {1, 1, 1, 1, 4, 16},
    .heads = {4, 8, 32, 64, 64, 64},
    .tokens = {128, 512, 2048, 8192, 32768},
    .most = 1 << 22,
    .rows = {1, 2, 4, 8, 16, 32, 64, 128, 256},
    .row_heads = 64,
    .size = 128,
};

static const struct sweep cpu_sweep = {
    .sequences = {1, 1, 4},
    .heads = {1, 4, 4},
    .tokens = {64, 256, 1024, 4096},
    .most = 1 << 14,
    .rows = {1, 4, 16, 64},
    .row_heads = 8,
    .size = 64,
};

static size_t list_sweep(const struct sweep *sweep, struct shape *shapes)
{
    const int64_t d = sweep->size;
    size_t count = 0;
    for (size_t i = 0; sweep->heads[i]; i++) {
        const int64_t b = sweep->sequences[i], h = sweep->heads[i];
        for (const int64_t *n = sweep->tokens; *n && b * h * *n <= sweep->most; n++)
            shapes[count++] = (struct shape){CALL_PREFILL, {b, h, *n, d, d}};
    }
    for (const int64_t *rows = sweep->rows; *rows; rows++)
        shapes[count++] = (struct shape){CALL_DECODE, {*rows, sweep->row_heads, 1, d, d}};
    return count;
}

size_t shapes_list(lattn_device_kind kind, bool sweep, struct shape shapes[SHAPES_MAX])
{
    const bool gpu = kind == LATTN_DEVICE_GPU;
    if (sweep)
        return list_sweep(gpu ? &gpu_sweep : &cpu_sweep, shapes);
    if (gpu)
        memcpy(shapes, gpu_shapes, sizeof(gpu_shapes));
    else
        memcpy(shapes, cpu_shapes, sizeof(cpu_shapes));
    return gpu ? COUNT(gpu_shapes) : COUNT(cpu_shapes);
}
