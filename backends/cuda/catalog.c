/* The CUDA backend's kernel rows. */
#include "catalog.h"

#include "backend.h"
#include "backends/driver/portable_rows.h"
#include "catalog_tensor.h"

/* The images that meson.build makes of kernels/ *.cu. */
extern const unsigned char lattn_cuda_image_portable_scan[];
extern const unsigned char lattn_cuda_image_portable_f32[];
extern const unsigned char lattn_cuda_image_portable_f16[];
extern const unsigned char lattn_cuda_image_portable_bf16[];

static const struct lattn_kernel_row rows[] = {
    /* TENSOR_ROWS brings its own commas. */
    TENSOR_ROWS LATTN_PORTABLE_ROWS(f32, LATTN_TYPES_F32, lattn_cuda_image_portable_f32),
    LATTN_PORTABLE_ROWS(f16, LATTN_TYPES_F16, lattn_cuda_image_portable_f16),
    LATTN_PORTABLE_ROWS(bf16, LATTN_TYPES_BF16, lattn_cuda_image_portable_bf16),
    LATTN_PORTABLE_SCAN_ROW(lattn_cuda_image_portable_scan),
};

extern const struct lattn_backend lattn_backend_cuda;
const struct lattn_backend lattn_backend_cuda = LATTN_CUDA_BACKEND(rows);
