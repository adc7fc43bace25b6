/* The portable kernel that does not depend on the element type. */
#define LATTN_CHUNK 16
#define LATTN_VARIANT 16
#include "kernels/prefill_scan.cl"
