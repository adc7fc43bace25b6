/* The portable kernels that depend on the element type, in the variants of portable_rows.h.
 * Included once for each type, after defining LATTN_STORAGE and its name, LATTN_STORAGE_NAME. */
#undef LATTN_SUFFIX_
#undef LATTN_SUFFIX
#define LATTN_SUFFIX_(storage, size) storage##_##size
#define LATTN_SUFFIX(storage, size) LATTN_SUFFIX_(storage, size)

#define LATTN_CHUNK 16
#define LATTN_VARIANT LATTN_SUFFIX(LATTN_STORAGE_NAME, 16)
#include "kernels/prefill_output.cl"
#include "kernels/prefill_state.cl"
#undef LATTN_VARIANT
#undef LATTN_CHUNK

#define LATTN_DECODE_E 32
#define LATTN_DECODE_D 64
#define LATTN_VARIANT LATTN_SUFFIX(LATTN_STORAGE_NAME, 64)
#include "kernels/decode.cl"
#undef LATTN_VARIANT
#undef LATTN_DECODE_D

#define LATTN_DECODE_D 128
#define LATTN_VARIANT LATTN_SUFFIX(LATTN_STORAGE_NAME, 128)
#include "kernels/decode.cl"
#undef LATTN_VARIANT
#undef LATTN_DECODE_D

#define LATTN_DECODE_D 256
#define LATTN_VARIANT LATTN_SUFFIX(LATTN_STORAGE_NAME, 256)
#include "kernels/decode.cl"
#undef LATTN_VARIANT
#undef LATTN_DECODE_D
#undef LATTN_DECODE_E
