/* float32 inputs in full precision. */
#include "tensor_rows.cuh"
#include "tensor_tf32.cuh"

typedef lattn_tf32<true> lattn_product_f32;

LATTN_TENSOR_FLOAT(LATTN_TENSOR_KERNEL, f32)
