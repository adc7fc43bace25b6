/* Cases: data, kernels and launches. */
#include <pthread.h>

#include "cuda_test.h"

void data(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    unsigned char there[64], back[64];
    for (int i = 0; i < 64; i++)
        there[i] = (unsigned char)i;
    assert_status(LATTN_OK,
                  cuda.copy(scene.stream,
                            &(struct lattn_copy){LATTN_COPY_UPLOAD, scene.base, 0, there, 0, 64}));
    assert_status(LATTN_OK,
                  cuda.copy(scene.stream, &(struct lattn_copy){LATTN_COPY_DEVICE, scene.base, 40,
                                                               scene.base, 8, 16}));
    assert_status(LATTN_OK, cuda.fill(scene.stream, scene.base, 60, 7, 4));
    assert_status(LATTN_OK, cuda.copy(scene.stream, &(struct lattn_copy){LATTN_COPY_DOWNLOAD, back,
                                                                         0, scene.base, 0, 64}));
    /* Only what the host buffer takes part in waits. */
    assert_int_equal(fake->calls("cuStreamSynchronize"), 2);
    memcpy(there + 40, there + 8, 16);
    memset(there + 60, 7, 4);
    assert_memory_equal(there, back, 64);

    void *base;
    assert_status(LATTN_ERROR_DEVICE_MEMORY, cuda.alloc(scene.device, (uint64_t)1 << 40, &base));
    assert_message("1099511627776 bytes");
    scene_end(&scene);
}

void launch_call(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    void *memories[LATTN_MEM_COUNT];
    for (int i = 0; i < LATTN_MEM_COUNT; i++)
        memories[i] = (void *)(uintptr_t)(0x1000 * (i + 1));
    const struct lattn_args args = {.d = 17, .scale = 0.5f, .unused = 3};
    fake->forget();
    assert_status(LATTN_OK, cuda.launch(scene.stream, scene.kernel,
                                        &(struct lattn_launch){70000, 128, 2048, memories, &args}));
    /* Not a call more than these. */
    assert_int_equal(fake->calls(NULL), 4);
    assert_int_equal(fake->calls("cuCtxGetCurrent"), 1);
    assert_int_equal(fake->calls("cuCtxPushCurrent"), 1);
    assert_int_equal(fake->calls("cuLaunchKernel"), 1);
    assert_int_equal(fake->calls("cuCtxPopCurrent"), 1);
    const struct fake_cuda_launch launch = fake->last_launch();
    assert_ptr_equal(launch.function, scene.kernel);
    assert_ptr_equal(launch.stream, scene.native);
    const unsigned grid[] = {70000, 1, 1}, block[] = {128, 1, 1};
    assert_memory_equal(launch.grid, grid, sizeof(grid));
    assert_memory_equal(launch.block, block, sizeof(block));
    assert_int_equal(launch.shared, 2048);
    assert_memory_equal(launch.memories, memories, sizeof(memories));
    assert_memory_equal(&launch.args, &args, sizeof(args));

    /* Where the context is current already, as in an engine's own thread, it stays. */
    fake->set_current(scene.context);
    fake->forget();
    assert_status(LATTN_OK, cuda.launch(scene.stream, scene.kernel,
                                        &(struct lattn_launch){1, 128, 2048, memories, &args}));
    assert_int_equal(fake->calls(NULL), 2);
    assert_int_equal(fake->calls("cuLaunchKernel"), 1);
    fake->set_current(NULL);
    scene_end(&scene);
}

void kernels(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    void *second, *kernel;
    assert_status(LATTN_OK, cuda.stream_open(scene.device, false, NULL, &second));
    fake->forget();
    assert_status(LATTN_OK, cuda.load(second, &rows[ROW_SMALL], &kernel));
    assert_int_equal(fake->calls("cuModuleLoadData"), 0);
    assert_int_equal(fake->calls("cuFuncLoad"), 1);
    assert_int_equal(fake->calls("cuFuncSetAttribute"), 0);
    assert_status(LATTN_OK, cuda.load(second, &rows[ROW_LARGE], &kernel));
    assert_int_equal(fake->calls("cuModuleLoadData"), 1);
    assert_int_equal(fake->calls("cuFuncSetAttribute"), 1);
    void *memories[LATTN_MEM_COUNT] = {0};
    const struct lattn_args args = {0};
    assert_status(LATTN_OK, cuda.launch(second, kernel,
                                        &(struct lattn_launch){1, 256, 100000, memories, &args}));
    assert_status(LATTN_ERROR_DEVICE, cuda.load(second, &rows[ROW_ABSENT], &kernel));
    assert_message("cuModuleGetFunction of absent");
    assert_status(LATTN_ERROR_UNSUPPORTED, cuda.load(second, &rows[ROW_WIDE], &kernel));
    assert_message("512");
    assert_message("1024");
    cuda.stream_close(second);
    scene_end(&scene);
}

void old_function_load(void)
{
    meet_driver();
    struct scene scene;
    scene_begin(&scene);
    assert_int_equal(fake->calls("cuFuncLoad"), 0);
    scene_end(&scene);
}

struct worker {
    int ordinal;
    void *device, *kernels[2];
    pthread_barrier_t *barrier;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    void *memories[LATTN_MEM_COUNT] = {0};
    const struct lattn_args args = {0};
    void *stream;
    assert_status(LATTN_OK, cuda.stream_open(worker->device, false, NULL, &stream));
    pthread_barrier_wait(worker->barrier);
    for (int i = 0; i < 2; i++)
        assert_status(LATTN_OK, cuda.load(stream, &rows[i], &worker->kernels[i]));
    for (int i = 0; i < 1000; i++)
        assert_status(LATTN_OK, cuda.launch(stream, worker->kernels[i % 2],
                                            &(struct lattn_launch){1, 256, 1024, memories, &args}));
    cuda.stream_close(stream);
    assert_null(fake->current());
    return NULL;
}

/* Two threads on each of two devices. A module is loaded once a device, and no thread ever works in
 * the other device's context: the stand-in refuses that. */
void threads(void)
{
    meet_driver();
    void *devices[2];
    pthread_t thread[4];
    struct worker workers[4];
    pthread_barrier_t barrier;
    assert_int_equal(pthread_barrier_init(&barrier, NULL, 4), 0);
    for (int i = 0; i < 2; i++)
        assert_status(LATTN_OK, open_ordinal(i, &devices[i]));
    for (int i = 0; i < 4; i++) {
        workers[i] = (struct worker){.device = devices[i % 2], .barrier = &barrier};
        assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    assert_int_equal(fake->calls("cuModuleLoadData"), 4);
    assert_ptr_equal(workers[0].kernels[0], workers[2].kernels[0]);
    assert_ptr_not_equal(workers[0].kernels[0], workers[1].kernels[0]);
    for (int i = 0; i < 2; i++)
        cuda.close(devices[i]);
    pthread_barrier_destroy(&barrier);
    assert_int_equal(fake->live(), 0);
}
