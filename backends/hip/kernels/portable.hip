/* The portable kernels for every AMD GPU, whatever the size of its waves. */
#define LATTN_CHUNK 16
#define LATTN_VARIANT 16
#include "kernels/prefill_scan.cl"
#undef LATTN_VARIANT
#undef LATTN_CHUNK

#define LATTN_STORAGE LATTN_TYPE_F32
#define LATTN_STORAGE_NAME f32
#include "backends/driver/portable_kernels.h"
#undef LATTN_STORAGE
#undef LATTN_STORAGE_NAME

#define LATTN_STORAGE LATTN_TYPE_F16
#define LATTN_STORAGE_NAME f16
#include "backends/driver/portable_kernels.h"
#undef LATTN_STORAGE
#undef LATTN_STORAGE_NAME

#define LATTN_STORAGE LATTN_TYPE_BF16
#define LATTN_STORAGE_NAME bf16
#include "backends/driver/portable_kernels.h"
