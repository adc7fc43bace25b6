/* What rows of the HIP catalogue may ask of a device (lattn_kernel_row.features): its matrix
 * instructions. */
#ifndef LATTN_HIP_CATALOG_H
#define LATTN_HIP_CATALOG_H

#define LATTN_HIP_MFMA 1u /* gfx90a and later of gfx9: waves of 64 */
#define LATTN_HIP_WMMA 2u /* gfx11 and gfx12: waves of 32 */

#endif
