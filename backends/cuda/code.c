#include "code.h"

#include <stdio.h>
#include <stdlib.h>

#include "catalog.h"

struct code {
    int arch;      /* 0: none */
    bool specific; /* uses what only this architecture has: the "a" of sm_90a */
    bool ptx;
};

/* Real code runs on its own architecture and on later ones of the same major number; specific code
 * on its own alone. */
static struct code find_real(const char *archs, int capability)
{
    struct code best = {0, false, false};
    for (const char *at = archs; *at;) {
        char *end;
        const int arch = (int)strtol(at, &end, 10);
        const bool specific = *end == 'a';
        const bool runs =
            arch == capability || (!specific && arch / 10 == capability / 10 && arch < capability);
        if (runs && (arch > best.arch || (arch == best.arch && specific)))
            best = (struct code){arch, specific, false};
        for (at = end + specific; *at == ' ';)
            at++;
    }
    return best;
}

static uint32_t features_of(struct code code)
{
    uint32_t features = 0;
    if (code.arch >= 80)
        features |= LATTN_CUDA_SM80;
    if (code.arch >= 90)
        features |= LATTN_CUDA_SM90;
    if (code.arch == 90 && code.specific)
        features |= LATTN_CUDA_SM90A;
    return features;
}

lattn_status lattn_cuda_choose_code(const struct lattn_cuda_build *build, int capability,
                                    int driver, uint32_t *features, char *reason, size_t size)
{
    if (capability < LATTN_CUDA_OLDEST) {
        snprintf(
            reason, size,
            "the device's compute capability %d.%d is below %d.%d, which the CUDA backend needs",
            capability / 10, capability % 10, LATTN_CUDA_OLDEST / 10, LATTN_CUDA_OLDEST % 10);
        return LATTN_ERROR_DEVICE_TOO_OLD;
    }

    struct code code = find_real(build->archs, capability);
    if (!code.arch && build->ptx <= capability)
        code = (struct code){build->ptx, false, true};
    if (!code.arch) {
        snprintf(reason, size,
                 "no code for compute capability %d.%d in this build, which has sm_ %s and PTX for "
                 "%d.%d and later",
                 capability / 10, capability % 10, build->archs, build->ptx / 10, build->ptx % 10);
        return LATTN_ERROR_NO_DEVICE_CODE;
    }

    /* Within a major version of CUDA older drivers take newer real code, but not newer PTX. */
    const int oldest = code.ptx ? build->toolkit : build->toolkit / 1000 * 1000;
    if (driver < oldest) {
        snprintf(reason, size,
                 "the driver supports CUDA %d.%d; the device code, compiled by CUDA %d.%d, needs a "
                 "driver for CUDA %d.%d or newer",
                 driver / 1000, driver % 1000 / 10, build->toolkit / 1000,
                 build->toolkit % 1000 / 10, oldest / 1000, oldest % 1000 / 10);
        return LATTN_ERROR_DRIVER_TOO_OLD;
    }
    *features = features_of(code);
    return LATTN_OK;
}
