#include "tensor_half.cuh"
#include "tensor_rows.cuh"

typedef lattn_half<__nv_bfloat16, false> lattn_product_bf16;

LATTN_TENSOR_HALF(LATTN_TENSOR_KERNEL, bf16)
