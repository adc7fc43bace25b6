#define LATTN_STORAGE LATTN_TYPE_BF16
#define LATTN_STORAGE_NAME bf16
#include "backends/driver/portable_kernels.h"
