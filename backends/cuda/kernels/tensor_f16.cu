#include "tensor_half.cuh"
#include "tensor_rows.cuh"

typedef lattn_half<__half, true> lattn_product_f16;

LATTN_TENSOR_HALF(LATTN_TENSOR_KERNEL, f16)
