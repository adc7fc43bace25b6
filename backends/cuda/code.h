/* Which of the device code in this build a device runs, if any. */
#ifndef LATTN_CUDA_CODE_H
#define LATTN_CUDA_CODE_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the build compiled; build.c, generated. */
struct lattn_cuda_build {
    const char *archs; /* real code: numbers as in sm_90a, separated by spaces */
    int ptx;           /* PTX, as in compute_120 */
    int toolkit;       /* CUDA version, 1000 major + 10 minor */
};
extern const struct lattn_cuda_build lattn_cuda_build;

/* Oldest compute capability, 10 major + minor. */
#define LATTN_CUDA_OLDEST 80

/* The code that a device of compute capability `capability` under a driver for CUDA `driver` runs.
 * Sets `features` (catalog.h) to what that code may use, which can be less than what the device
 * has. Otherwise returns one of the statuses DEVICE_TOO_OLD, NO_DEVICE_CODE and DRIVER_TOO_OLD and
 * writes its message to `reason`. */
lattn_status lattn_cuda_choose_code(const struct lattn_cuda_build *build, int capability,
                                    int driver, uint32_t *features, char *reason, size_t size);

#endif
