/* The HIP backend's vtable, around a catalogue (an array of struct lattn_kernel_row). */
#ifndef LATTN_HIP_BACKEND_H
#define LATTN_HIP_BACKEND_H

#include "device.h"

#define LATTN_HIP_BACKEND(catalog)                                                                 \
    LATTN_DRIVER_BACKEND("hip", catalog, lattn_hip_probe, lattn_hip_open, lattn_hip_close)

#endif
