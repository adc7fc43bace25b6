#define LATTN_STORAGE LATTN_TYPE_F32
#define LATTN_STORAGE_NAME f32
#include "backends/driver/portable_kernels.h"
