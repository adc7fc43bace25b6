#include "world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/opencl/devices.h"

static const struct lattn_backend *const backend = &lattn_backend_opencl;

/* The fake takes a kernel to be in a program whose source has its name. */
static const struct lattn_opencl_program program = {"first second", "-cl-std=CL1.2"};
static const struct lattn_opencl_program broken = {"#error first", ""};
const struct lattn_kernel_row opencl_rows[OPENCL_ROWS] = {
    [OPENCL_FIRST] = {.entry = "first", .program = &program, .threads = 64},
    [OPENCL_SECOND] = {.entry = "second", .program = &program, .threads = 64, .shared = 256},
    [OPENCL_BROKEN] = {.entry = "first", .program = &broken, .threads = 64},
    [OPENCL_THIRD] = {.entry = "third", .program = &program, .threads = 64},
};

static void count_line(void *user, lattn_log_level level, const char *message)
{
    struct opencl_world *world = user;
    assert_true(level >= LATTN_LOG_ERROR && level <= LATTN_LOG_DEBUG);
    assert_null(strchr(message, '\n'));
    atomic_fetch_add(&world->log_lines, 1);
}

void opencl_world_start(struct opencl_world *world, bool cached)
{
    memset(world, 0, sizeof(*world));
    fake_opencl_reset();
    world->env = (struct lattn_env){allocator_params(&world->allocator), count_line, world,
                                    LATTN_LOG_DEBUG, NULL};
    if (cached) {
        strcpy(world->cache, "opencl-cache-XXXXXX");
        assert_non_null(mkdtemp(world->cache));
        world->env.cache_dir = world->cache;
    }
}

int opencl_list_cache(const struct opencl_world *world, opencl_path *paths, int room)
{
    DIR *folder = opendir(world->cache);
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && count < room)
            snprintf(paths[count++], sizeof(opencl_path), "%s/%s", world->cache, entry->d_name);
    closedir(folder);
    return count;
}

void opencl_world_end(struct opencl_world *world)
{
    assert_int_equal(atomic_load(&world->allocator.live), 0);
    assert_int_equal(atomic_load(&fake_opencl.live), 0);
    assert_int_equal(atomic_load(&fake_opencl.misuse), 0);
    if (!world->cache[0])
        return;
    opencl_path paths[16];
    int count = opencl_list_cache(world, paths, 16);
    for (int i = 0; i < count; i++)
        remove(paths[i]);
    assert_int_equal(rmdir(world->cache), 0);
}

int opencl_in_child(void (*scenario)(void))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        scenario();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct _cl_device_id *opencl_device_0(void)
{
    return lattn_opencl_devices_get(0);
}

static lattn_status pass(void *user, const lattn_device_info *info, int32_t rank)
{
    (void)user;
    (void)info;
    (void)rank;
    return LATTN_OK;
}

void *opencl_open(struct opencl_world *world, int32_t ordinal, struct lattn_caps *caps)
{
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    void *device = NULL;
    assert_int_equal(backend->probe(&world->env, pass, NULL), LATTN_OK);
    assert_int_equal(backend->open(&world->env, ordinal, NULL, caps, &info, &device), LATTN_OK);
    assert_non_null(device);
    return device;
}

static lattn_status use_stream(struct opencl_world *world, void *stream, void *memory)
{
    unsigned char bytes[64] = {1, 2, 3}, back[64];
    void *kernels[2];
    lattn_status status = LATTN_OK;
    for (int i = 0; !status && i < 2; i++)
        status = backend->load(stream, &opencl_rows[i], &kernels[i]);
    if (!status)
        status = backend->fill(stream, memory, 0, 7, 256);
    if (!status)
        status = backend->copy(stream,
                               &(struct lattn_copy){LATTN_COPY_UPLOAD, memory, 64, bytes, 0, 64});
    if (!status)
        status = backend->copy(
            stream, &(struct lattn_copy){LATTN_COPY_DEVICE, memory, 128, memory, 64, 64});
    if (!status)
        status = backend->copy(stream,
                               &(struct lattn_copy){LATTN_COPY_DOWNLOAD, back, 0, memory, 128, 64});
    if (!status && (memcmp(back, bytes, 64) != 0))
        fail_msg("the copy is not the original");
    if (!status)
        status = backend->time_begin(stream);
    void *memories[LATTN_MEM_COUNT] = {memory};
    struct lattn_args args = {0};
    for (int i = 0; !status && i < 2; i++) {
        struct lattn_launch launch = {3, 64, opencl_rows[i].shared, memories, &args};
        status = backend->launch(stream, kernels[i], &launch);
    }
    if (!status)
        status = backend->time_end(stream, &world->milliseconds);
    if (!status)
        status = backend->synchronize(stream);
    return status;
}

lattn_status opencl_session(struct opencl_world *world)
{
    struct lattn_caps caps;
    lattn_device_info info = LATTN_DEVICE_INFO_INIT;
    void *device = NULL, *stream = NULL, *memory = NULL;
    lattn_status status = backend->probe(&world->env, pass, NULL);
    if (!status)
        status = backend->open(&world->env, 0, NULL, &caps, &info, &device);
    if (status)
        return status;
    status = backend->alloc(device, 256, &memory);
    if (!status) {
        status = backend->stream_open(device, false, NULL, &stream);
        if (!status) {
            status = use_stream(world, stream, memory);
            backend->stream_close(stream);
        }
        backend->release(device, memory);
    }
    backend->close(device);
    return status;
}
