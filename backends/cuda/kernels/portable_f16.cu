#define LATTN_STORAGE LATTN_TYPE_F16
#define LATTN_STORAGE_NAME f16
#include "backends/driver/portable_kernels.h"
