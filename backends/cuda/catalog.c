/* The CUDA backend's kernel rows. */
#include "catalog.h"

#include "backend.h"

/* The images that meson.build makes of kernels/ *.cu. */
extern const unsigned char lattn_cuda_image_portable_scan[];
extern const unsigned char lattn_cuda_image_portable_f32[];
extern const unsigned char lattn_cuda_image_portable_f16[];
extern const unsigned char lattn_cuda_image_portable_bf16[];

#define ANY_SIZE .d_min = 1, .d_max = LATTN_MAX_DIM, .e_min = 1, .e_max = LATTN_MAX_DIM

/* kernels/portable.cuh for one element type: every d and e, any strides, any states. */
#define PORTABLE_DECODE(name, set, least, dim)                                                     \
    {                                                                                              \
        .entry = "lattn_decode_" #name "_" #dim, .program = lattn_cuda_image_portable_##name,      \
        .pass = LATTN_PASS_DECODE, .types = (set), .d_min = (least), .d_max = (dim), .e_min = 1,   \
        .e_max = LATTN_MAX_DIM, .threads = 256, .shared_total = 4 * (2 * (dim) + 32 * 33),         \
        .e_tile = 32                                                                               \
    }
#define PORTABLE(name, set)                                                                        \
    {.entry = "lattn_prefill_state_" #name "_16",                                                  \
     .program = lattn_cuda_image_portable_##name,                                                  \
     .pass = LATTN_PASS_STATE,                                                                     \
     .types = (set),                                                                               \
     ANY_SIZE,                                                                                     \
     .threads = 256,                                                                               \
     .shared_total = 8704,                                                                         \
     .d_tile = 64,                                                                                 \
     .e_tile = 64,                                                                                 \
     .groups_per_unit = 4},                                                                        \
        {.entry = "lattn_prefill_output_" #name "_16",                                             \
         .program = lattn_cuda_image_portable_##name,                                              \
         .pass = LATTN_PASS_OUTPUT,                                                                \
         .types = (set),                                                                           \
         ANY_SIZE,                                                                                 \
         .threads = 256,                                                                           \
         .shared_total = 26112,                                                                    \
         .token_tile = 64,                                                                         \
         .e_tile = 64,                                                                             \
         .groups_per_unit = 3},                                                                    \
        PORTABLE_DECODE(name, set, 1, 64), PORTABLE_DECODE(name, set, 65, 128),                    \
        PORTABLE_DECODE(name, set, 129, 256)

static const struct lattn_kernel_row rows[] = {
    PORTABLE(f32, LATTN_TYPES_F32),
    PORTABLE(f16, LATTN_TYPES_F16),
    PORTABLE(bf16, LATTN_TYPES_BF16),
    {.entry = "lattn_prefill_scan_16",
     .program = lattn_cuda_image_portable_scan,
     .pass = LATTN_PASS_SCAN,
     .types = LATTN_TYPES_ALL,
     ANY_SIZE,
     .threads = 128,
     .d_tile = 2,
     .e_tile = 64,
     .groups_per_unit = 8},
};

extern const struct lattn_backend lattn_backend_cuda;
const struct lattn_backend lattn_backend_cuda = LATTN_CUDA_BACKEND(rows);
