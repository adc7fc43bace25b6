/* The HIP backend's kernel rows: those of kernels/matrix.hip, then the portable ones. */
#include "catalog.h"

#include "backend.h"
#include "backends/driver/portable_rows.h"

/* The bundles that meson.build makes of kernels/ *.hip. */
extern const unsigned char lattn_hip_image_matrix[];
extern const unsigned char lattn_hip_image_portable[];

/* Group memory of kernels/matrix_walk.h: k and v transposed, and for outputs q and k. */
#define STATE_BYTES(d, e) (64 * ((d) + (e)))
#define OUTPUT_BYTES(d, e) (STATE_BYTES(d, e) + 128 * (d))

#define MATRIX_ROW(family, feature, which, name, set, least, dim, tile, size, in_threads, at_once) \
    .entry = "lattn_" #family "_" #which "_" #name "_d" #dim "_e" #tile,                           \
    .program = lattn_hip_image_matrix, .types = (set), .d_min = (least), .d_max = (dim),           \
    .d_step = 8, .e_min = 8, .e_max = LATTN_MAX_DIM, .e_step = 8, .features = (feature),           \
    .threads = (in_threads), .shared_total = (size), .e_tile = (tile),                             \
    .groups_per_unit = (at_once)

#define MATRIX_ROWS(family, feature, name, set, least, dim, tile, threads, outputs, states)        \
    {MATRIX_ROW(family, feature, output, name, set, least, dim, tile, OUTPUT_BYTES(dim, tile),     \
                threads, outputs),                                                                 \
     .pass = LATTN_PASS_OUTPUT, .can = LATTN_CAN_WALK | LATTN_CAN_WALK_KEPT,                       \
     .needs = LATTN_NEEDS_ALIGN16 | LATTN_NEEDS_STATE_F32 | LATTN_NEEDS_RECURRENCE},               \
    {                                                                                              \
        MATRIX_ROW(family, feature, state, name, set, least, dim, tile, STATE_BYTES(dim, tile),    \
                   threads, states),                                                               \
            .pass = LATTN_PASS_STATE, .needs = LATTN_NEEDS_ALIGN16                                 \
    }

/* Groups at once on a compute unit, as registers and group memory allow (docs/kernels-hip.md). */
#define MFMA_ROWS(name, set)                                                                       \
    MATRIX_ROWS(mfma, LATTN_HIP_MFMA, name, set, 8, 64, 64, 256, 4, 8),                            \
        MATRIX_ROWS(mfma, LATTN_HIP_MFMA, name, set, 72, 128, 128, 256, 2, 4),                     \
        MATRIX_ROWS(mfma, LATTN_HIP_MFMA, name, set, 136, 256, 64, 256, 1, 3)
#define WMMA_ROWS(feature, name, set)                                                              \
    MATRIX_ROWS(wmma, feature, name, set, 8, 64, 64, 128, 8, 8),                                   \
        MATRIX_ROWS(wmma, feature, name, set, 72, 128, 128, 256, 3, 4)

static const struct lattn_kernel_row rows[] = {
    MFMA_ROWS(f16, LATTN_TYPES_F16),
    MFMA_ROWS(bf16, LATTN_TYPES_BF16),
    WMMA_ROWS(LATTN_HIP_WMMA, f16, LATTN_TYPES_F16),
    WMMA_ROWS(LATTN_HIP_WMMA, bf16, LATTN_TYPES_BF16),
    LATTN_PORTABLE_ROWS(f32, LATTN_TYPES_F32, lattn_hip_image_portable),
    LATTN_PORTABLE_ROWS(f16, LATTN_TYPES_F16, lattn_hip_image_portable),
    LATTN_PORTABLE_ROWS(bf16, LATTN_TYPES_BF16, lattn_hip_image_portable),
    LATTN_PORTABLE_SCAN_ROW(lattn_hip_image_portable),
};

extern const struct lattn_backend lattn_backend_hip;
const struct lattn_backend lattn_backend_hip = LATTN_HIP_BACKEND(rows);
