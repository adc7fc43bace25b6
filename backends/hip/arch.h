/* AMD architectures: the name of a device's, and which of the device code in this build it runs. */
#ifndef LATTN_HIP_ARCH_H
#define LATTN_HIP_ARCH_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The architectures that the build compiled, separated by spaces; build.c, generated. */
extern const char lattn_hip_archs[];

/* Finds a name such as "gfx90a:sramecc+:xnack-" in the bytes of a hipDeviceProp_t, whose layout is
 * not the same in all versions of HIP, after the device's name at its beginning. */
bool lattn_hip_arch_in(const char *properties, size_t bytes, char *arch, size_t size);

/* Does code for `built` run on a device of `arch`? Features that code names ("xnack+") must be the
 * device's; those that it does not name may be either way. */
bool lattn_hip_arch_runs(const char *built, size_t length, const char *arch);

/* Sets `features` (catalog.h) to what the code for the device may use; otherwise returns
 * LATTN_ERROR_NO_DEVICE_CODE and writes its message to `reason`. */
lattn_status lattn_hip_choose_code(const char *archs, const char *arch, uint32_t *features,
                                   char *reason, size_t size);

#endif
