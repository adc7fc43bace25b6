/* The rows for CPUs: one work-item a group, any sizes, strides and types of state. */
#ifndef LATTN_OPENCL_CATALOG_CPU_H
#define LATTN_OPENCL_CATALOG_CPU_H

#include "catalog.h"
#include "kernels/args.h"

extern const char lattn_opencl_cpu_source[];

static const struct lattn_opencl_program cpu_f32 = {
    lattn_opencl_cpu_source, "-cl-std=CL1.2 -DLATTN_STORAGE=0 -DLATTN_VARIANT=f32"};
static const struct lattn_opencl_program cpu_f16 = {
    lattn_opencl_cpu_source, "-cl-std=CL1.2 -DLATTN_STORAGE=1 -DLATTN_VARIANT=f16"};
static const struct lattn_opencl_program cpu_bf16 = {
    lattn_opencl_cpu_source, "-cl-std=CL1.2 -DLATTN_STORAGE=2 -DLATTN_VARIANT=bf16"};

/* Tiles: CPU_E of kernels/cpu_chunk.h, CPU_SCAN_ROWS of kernels/cpu_scan.cl and CPU_DECODE_E of
 * kernels/cpu_decode.cl. */
#define CPU_ROW(name, variant, in_types, in_pass, in_can, in_d_tile, in_e_tile)                    \
    {                                                                                              \
        .entry = "lattn_cpu_" #name "_" #variant, .program = &cpu_##variant, .pass = in_pass,      \
        .types = in_types, .d_min = 1, .d_max = LATTN_MAX_DIM, .e_min = 1, .e_max = LATTN_MAX_DIM, \
        .can = in_can, .features = LATTN_OPENCL_FEATURE_CPU, .threads = 1, .d_tile = in_d_tile,    \
        .e_tile = in_e_tile                                                                        \
    }
#define CPU_CAN (LATTN_CAN_WALK | LATTN_CAN_WALK_KEPT)
#define CPU_ROWS(variant, types)                                                                   \
    CPU_ROW(output, variant, types, LATTN_PASS_OUTPUT, CPU_CAN, 0, 128),                           \
        CPU_ROW(state, variant, types, LATTN_PASS_STATE, 0, 0, 128),                               \
        CPU_ROW(scan, variant, types, LATTN_PASS_SCAN, 0, 8, 0),                                   \
        CPU_ROW(decode, variant, types, LATTN_PASS_DECODE, 0, 0, 128)
#define LATTN_OPENCL_CPU_ROWS                                                                      \
    CPU_ROWS(f32, LATTN_TYPES_F32), CPU_ROWS(f16, LATTN_TYPES_F16), CPU_ROWS(bf16, LATTN_TYPES_BF16)
enum { lattn_opencl_cpu_row_count = 3 * 4 };

#endif
