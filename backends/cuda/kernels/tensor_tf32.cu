/* float32 inputs, where tf32 is allowed. */
#include "tensor_rows.cuh"
#include "tensor_tf32.cuh"

typedef lattn_tf32<false> lattn_product_tf32;

LATTN_TENSOR_FLOAT(LATTN_TENSOR_KERNEL, tf32)
