/* Device code: images of the catalogue, loaded into a device once, and kernels in them. The
 * vtable's load is in driver.h; a kernel is a function of a module. */
#ifndef LATTN_DRIVER_MODULE_H
#define LATTN_DRIVER_MODULE_H

#include "driver.h"

void lattn_driver_unload_all(struct lattn_driver_device *device);

#endif
