/* Cases: finding the driver, listing devices, and the statuses of what cannot be used. */
#include "backends/cuda/catalog.h"
#include "backends/cuda/code.h"
#include "cuda_test.h"

void no_driver(void)
{
    void *device = NULL;
    assert_int_equal(probe().count, 0);
    assert_non_null(strstr(log_text, "libcuda.so.1"));
    assert_status(LATTN_ERROR_NO_DEVICE, open_ordinal(0, &device));
    assert_message("no CUDA driver: ");
    assert_message("libcuda.so.1");
    assert_status(LATTN_ERROR_NO_DEVICE, adopt((CUcontext)&device, &device));
}

void no_device(void)
{
    void *device = NULL;
    assert_int_equal(probe().count, 0);
    assert_status(LATTN_ERROR_NO_DEVICE, open_ordinal(0, &device));
    assert_message("cuInit failed: CUDA_ERROR_NO_DEVICE (100)");
}

void listing(void)
{
    meet_driver();
    struct list list = probe();
    assert_int_equal(list.count, 5);
    static const char *const archs[] = {"9.0", "8.6", "7.5", "8.9", "11.0"};
    static const lattn_status statuses[] = {LATTN_OK, LATTN_OK, LATTN_ERROR_DEVICE_TOO_OLD,
                                            LATTN_OK, LATTN_OK};
    for (int i = 0; i < list.count; i++) {
        const lattn_device_info *info = &list.info[i];
        assert_int_equal(info->struct_size, sizeof(*info));
        assert_string_equal(info->backend, "cuda");
        assert_int_equal(info->ordinal, i);
        assert_int_equal(info->kind, LATTN_DEVICE_GPU);
        assert_string_equal(info->arch, archs[i]);
        assert_string_equal(info->driver, "CUDA 13.0");
        assert_true(info->memory == (uint64_t)(i + 1) << 30);
        assert_int_equal(info->compute_units, 84);
        assert_int_equal(info->status, statuses[i]);
    }
    assert_string_equal(list.info[1].name, "Stand-in 1");
    assert_non_null(strstr(list.info[2].reason, "7.5"));
    assert_non_null(strstr(list.info[2].reason, "8.0"));

    /* Nothing but questions was asked. */
    const int asked = fake->calls("cuInit") + fake->calls("cuDriverGetVersion") +
                      fake->calls("cuGetProcAddress") + fake->calls("cuDeviceGetCount") +
                      fake->calls("cuDeviceGet") + fake->calls("cuDeviceGetName") +
                      fake->calls("cuDeviceGetAttribute") + fake->calls("cuDeviceTotalMem");
    assert_int_equal(fake->calls(NULL), asked);
    assert_int_equal(fake->live(), 0);

    /* Opening refuses what listing said it would. */
    void *device = NULL;
    assert_status(LATTN_ERROR_DEVICE_TOO_OLD, open_ordinal(2, &device));
    assert_string_equal(lattn_error_message(), list.info[2].reason);
    CUcontext context = fake->context_create(2);
    assert_status(LATTN_ERROR_DEVICE_TOO_OLD, adopt(context, &device));
    assert_null(device);
    fake->context_destroy(context);
    assert_status(LATTN_ERROR_DEVICE, open_ordinal(5, &device));
}

void caps(void)
{
    meet_driver();
    struct lattn_caps caps;
    void *device;
    assert_status(LATTN_OK, cuda.open(&env, 0, NULL, &caps, NULL, &device));
    assert_int_equal(caps.features, LATTN_CUDA_SM80 | LATTN_CUDA_SM90 | LATTN_CUDA_SM90A);
    assert_int_equal(caps.max_threads, 1024);
    assert_int_equal(caps.max_shared, 101376);
    assert_int_equal(caps.compute_units, 84);
    assert_true(caps.max_groups == 2147483647u);
    cuda.close(device);

    CUcontext context = fake->context_create(1);
    const lattn_native native = {sizeof(native), "cuda", context, NULL, 0};
    lattn_device_info info = {0};
    assert_status(LATTN_OK, cuda.open(&env, -1, &native, &caps, &info, &device));
    assert_int_equal(caps.features, LATTN_CUDA_SM80);
    assert_int_equal(info.ordinal, 1);
    assert_string_equal(info.arch, "8.6");
    cuda.close(device);
    assert_int_equal(fake->calls("cuDevicePrimaryCtxRetain"), 1);
    assert_int_equal(fake->calls("cuDevicePrimaryCtxRelease"), 1);
    fake->context_destroy(context);

    assert_status(LATTN_ERROR_INVALID_ARGUMENT, adopt(NULL, &device));
    assert_message("native.context");
}

void driver_too_old(void)
{
    meet_driver();
    struct list list = probe();
    assert_int_equal(list.count, 2);
    assert_int_equal(list.info[0].status, LATTN_ERROR_DRIVER_TOO_OLD);
    void *device;
    assert_status(LATTN_ERROR_DRIVER_TOO_OLD, open_ordinal(0, &device));
    assert_message("12.4");
    assert_message("13.0");
    assert_int_equal(fake->live(), 0);
}

void entry_point_missing(void)
{
    meet_driver();
    struct list list = probe();
    assert_int_equal(list.count, 2);
    assert_int_equal(list.info[0].status, LATTN_ERROR_DRIVER_TOO_OLD);
    assert_non_null(strstr(list.info[0].reason, "cuCtxPushCurrent"));
    void *device;
    assert_status(LATTN_ERROR_DRIVER_TOO_OLD, open_ordinal(0, &device));
    CUcontext context = fake->context_create(0);
    assert_status(LATTN_ERROR_DRIVER_TOO_OLD, adopt(context, &device));
    assert_message("cuCtxPushCurrent");
    fake->context_destroy(context);
}

void code_choice(void)
{
    static const struct lattn_cuda_build specific = {"80 90a", 90, 12080};
    static const struct {
        int capability, driver;
        lattn_status status;
        uint32_t features;
        const char *parts[2];
    } cases[] = {
        {80, 12000, LATTN_OK, LATTN_CUDA_SM80, {""}},
        {89, 12000, LATTN_OK, LATTN_CUDA_SM80, {""}},
        {90, 12000, LATTN_OK, LATTN_CUDA_SM80 | LATTN_CUDA_SM90 | LATTN_CUDA_SM90A, {""}},
        {90, 11080, LATTN_ERROR_DRIVER_TOO_OLD, 0, {"11.8", "12.0"}},
        {120, 12080, LATTN_OK, LATTN_CUDA_SM80 | LATTN_CUDA_SM90, {""}},
        {120, 12070, LATTN_ERROR_DRIVER_TOO_OLD, 0, {"12.7", "12.8"}},
        {79, 12080, LATTN_ERROR_DEVICE_TOO_OLD, 0, {"7.9", "8.0"}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t features = 0;
        char reason[256] = "";
        const lattn_status status = lattn_cuda_choose_code(
            &specific, cases[i].capability, cases[i].driver, &features, reason, sizeof(reason));
        assert_int_equal(status, cases[i].status);
        assert_int_equal(features, cases[i].features);
        for (int j = 0; j < 2 && cases[i].parts[j]; j++)
            assert_non_null(strstr(reason, cases[i].parts[j]));
    }

    static const struct lattn_cuda_build newest = {"100a", 120, 13000};
    uint32_t features = 0;
    char reason[256];
    assert_int_equal(lattn_cuda_choose_code(&newest, 86, 13000, &features, reason, sizeof(reason)),
                     LATTN_ERROR_NO_DEVICE_CODE);
    assert_non_null(strstr(reason, "8.6"));
    assert_non_null(strstr(reason, "sm_ 100a"));
    /* Specific code is for its own architecture alone. */
    assert_int_equal(lattn_cuda_choose_code(&newest, 103, 13000, &features, reason, sizeof(reason)),
                     LATTN_ERROR_NO_DEVICE_CODE);
    assert_int_equal(lattn_cuda_choose_code(&newest, 100, 13000, &features, reason, sizeof(reason)),
                     LATTN_OK);
}

static void load_with(lattn_status expected, const char *part)
{
    meet_driver();
    void *device, *stream, *kernel;
    assert_status(LATTN_OK, open_ordinal(0, &device));
    assert_status(LATTN_OK, cuda.stream_open(device, false, NULL, &stream));
    assert_status(expected, cuda.load(stream, &rows[ROW_SMALL], &kernel));
    assert_message(part);
    assert_message("13.0");
    cuda.stream_close(stream);
    cuda.close(device);
    assert_int_equal(fake->live(), 0);
}

void image_without_code(void)
{
    load_with(LATTN_ERROR_NO_DEVICE_CODE, "(209)");
}

void image_too_new(void)
{
    load_with(LATTN_ERROR_DRIVER_TOO_OLD, "(222)");
}
