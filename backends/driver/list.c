#include <stdio.h>

#include "core/error.h"
#include "driver.h"

lattn_status lattn_driver_fail_missing(const struct lattn_driver *driver)
{
    return lattn_fail(LATTN_ERROR_DRIVER_TOO_OLD, "the %s lacks %s, which the %s backend needs",
                      driver->version, driver->missing, driver->title);
}

static lattn_status describe(const struct lattn_env *env, const struct lattn_driver *driver,
                             int number, lattn_device_info *info,
                             struct lattn_driver_traits *traits)
{
    lattn_status status = driver->describe(env, driver, number, info, traits);
    if (status)
        return status;
    info->ordinal = number;
    info->kind = LATTN_DEVICE_GPU;
    info->memory = traits->memory;
    info->compute_units = traits->compute_units;
    if (!info->status && driver->missing) {
        info->status = lattn_driver_fail_missing(driver);
        snprintf(info->reason, sizeof(info->reason), "%s", lattn_error_message());
    }
    return LATTN_OK;
}

lattn_status lattn_driver_probe(const struct lattn_env *env, const struct lattn_driver *driver,
                                int32_t rank, lattn_found_fn found, void *user)
{
    int count = 0;
    if (!driver || driver->count(driver, &count)) {
        lattn_log(env, LATTN_LOG_INFO, "%s", lattn_error_message());
        return LATTN_OK;
    }
    for (int i = 0; i < count; i++) {
        struct lattn_driver_traits traits = {0};
        lattn_device_info info = {.struct_size = sizeof(info)};
        if (describe(env, driver, i, &info, &traits)) {
            lattn_log(env, LATTN_LOG_WARNING, "%s device %d is left out: %s", driver->title, i,
                      lattn_error_message());
            continue;
        }
        lattn_status status = found(user, &info, rank);
        if (status)
            return status;
    }
    return LATTN_OK;
}

lattn_status lattn_driver_find(const struct lattn_env *env, const struct lattn_driver *driver,
                               int number, uint64_t max_groups, lattn_device_info *info,
                               struct lattn_caps *caps)
{
    struct lattn_driver_traits traits = {0};
    lattn_status status = describe(env, driver, number, info, &traits);
    if (!status && info->status)
        status = lattn_fail(info->status, "%s", info->reason);
    if (status)
        return status;
    *caps = (struct lattn_caps){
        .features = traits.features,
        .max_threads = 1024,
        .max_shared = (uint32_t)traits.max_shared,
        .compute_units = (uint32_t)traits.compute_units,
        .max_groups = max_groups,
    };
    return LATTN_OK;
}
