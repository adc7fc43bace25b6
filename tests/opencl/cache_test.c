/* What the OpenCL backend's disk cache does with files that are not what they should be, and with
 * folders that are no use. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "world.h"

/* Builds the program in a fresh device; returns whether the cache served it. */
static bool served(struct opencl_world *world)
{
    long before = fake_opencl.from_source;
    long binaries = fake_opencl.from_binary;
    assert_int_equal(opencl_session(world), LATTN_OK);
    bool from_cache = fake_opencl.from_source == before;
    assert_int_equal(fake_opencl.from_binary - binaries, from_cache ? 1 : 0);
    return from_cache;
}

static size_t read_file(const char *path, unsigned char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, room, file);
    fclose(file);
    return size;
}

static void write_file(const char *path, const unsigned char *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

static void cache_serves_the_same_program_and_no_other(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    opencl_path paths[8];
    assert_false(served(&world));
    assert_true(served(&world));
    assert_int_equal(opencl_list_cache(&world, paths, 8), 1);
    struct stat facts;
    assert_int_equal(stat(paths[0], &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    /* Another driver, another device, another platform's version: each its own program. */
    opencl_device_0()->driver = "1.1";
    assert_false(served(&world));
    assert_true(served(&world));
    opencl_device_0()->name = "Another device";
    assert_false(served(&world));
    opencl_device_0()->platform->name = "Another platform";
    assert_false(served(&world));
    assert_int_equal(opencl_list_cache(&world, paths, 8), 4);
    opencl_world_end(&world);
}

static void drivers_that_cache_are_left_to_it(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    assert_int_equal(opencl_session(&world), LATTN_OK);
    opencl_device_0()->platform->name = "Portable Computing Language";
    opencl_path paths[2];
    assert_int_equal(opencl_list_cache(&world, paths, 2), 1);
    assert_int_equal(remove(paths[0]), 0);
    assert_false(served(&world));
    assert_false(served(&world));
    assert_int_equal(opencl_list_cache(&world, paths, 2), 0);
    opencl_world_end(&world);
}

static void harmed_files_are_replaced(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    assert_false(served(&world));
    opencl_path paths[2];
    assert_int_equal(opencl_list_cache(&world, paths, 2), 1);
    unsigned char good[512], bad[600];
    size_t size = read_file(paths[0], good, sizeof(good));
    assert_true(size > 40 && size < sizeof(good));
    for (size_t cut = 0; cut < size; cut++) {
        write_file(paths[0], good, cut);
        assert_false(served(&world));
        assert_true(served(&world));
    }
    for (size_t at = 0; at < size; at++) {
        memcpy(bad, good, size);
        bad[at] ^= (unsigned char)(1u << (at % 8));
        write_file(paths[0], bad, size);
        assert_false(served(&world));
        assert_true(served(&world));
    }
    memcpy(bad, good, size);
    memset(bad + size, 0, sizeof(bad) - size);
    write_file(paths[0], bad, sizeof(bad));
    assert_false(served(&world));
    assert_true(served(&world));
    unsigned char again[512];
    assert_int_equal(read_file(paths[0], again, sizeof(again)), size);
    assert_memory_equal(again, good, size);
    assert_int_equal(opencl_list_cache(&world, paths, 2), 1); /* and no temporary file stays */
    opencl_world_end(&world);
}

static void refused_binaries_are_built_from_source(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    assert_false(served(&world));
    fake_opencl.refuse_binaries = true;
    assert_int_equal(opencl_session(&world), LATTN_OK);
    assert_int_equal(fake_opencl.from_binary, 1);
    assert_int_equal(fake_opencl.from_source, 2);
    fake_opencl.refuse_binaries = false;
    fake_opencl.fail_name = "clCreateProgramWithBinary";
    fake_opencl.fail_code = LATTN_CL_INVALID_BINARY;
    assert_int_equal(opencl_session(&world), LATTN_OK);
    assert_int_equal(fake_opencl.from_source, 3);
    opencl_world_end(&world);
}

static void useless_folders_are_no_error(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    char name[512], deep[5000];
    /* A folder below a file; one that no path can name; one that is not there and is made. */
    snprintf(name, sizeof(name), "%s/file", world.cache);
    write_file(name, (const unsigned char *)"x", 1);
    char below[600];
    snprintf(below, sizeof(below), "%s/lattn", name);
    world.env.cache_dir = below;
    assert_false(served(&world));
    assert_false(served(&world));
    memset(deep, 'a', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    world.env.cache_dir = deep;
    assert_false(served(&world));
    assert_int_equal(remove(name), 0);
    world.env.cache_dir = below;
    assert_false(served(&world));
    assert_true(served(&world));
    struct stat facts;
    assert_int_equal(stat(below, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    assert_int_equal(stat(name, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0700);
    /* Read-only: what is there serves, and what is not is built. Root may write all the same. */
    assert_int_equal(chmod(below, 0500), 0);
    assert_true(served(&world));
    opencl_device_0()->driver = "1.1";
    assert_false(served(&world));
    if (geteuid() != 0)
        assert_false(served(&world));
    assert_int_equal(chmod(below, 0700), 0);
    char command[700];
    snprintf(command, sizeof(command), "rm -r %s", name);
    assert_int_equal(system(command), 0);
    opencl_world_end(&world);
}

static void strange_files_are_not_read(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    assert_false(served(&world));
    opencl_path paths[2];
    assert_int_equal(opencl_list_cache(&world, paths, 2), 1);
    /* Those that another user could have written. */
    for (mode_t others = S_IWGRP; others; others = others == S_IWGRP ? S_IWOTH : 0) {
        assert_int_equal(chmod(paths[0], S_IRUSR | S_IWUSR | others), 0);
        assert_false(served(&world));
        assert_true(served(&world));
    }
    /* A pipe, which would wait for a writer for ever. */
    assert_int_equal(remove(paths[0]), 0);
    assert_int_equal(mkfifo(paths[0], 0600), 0);
    assert_false(served(&world));
    assert_true(served(&world));
    /* A folder, which a file cannot replace. */
    assert_int_equal(remove(paths[0]), 0);
    assert_int_equal(mkdir(paths[0], 0700), 0);
    assert_false(served(&world));
    assert_false(served(&world));
    assert_int_equal(opencl_list_cache(&world, paths, 2), 1);
    opencl_world_end(&world);
}

static struct opencl_world full_world;

static void fill_the_disk(void)
{
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {20, 20};
    if (setrlimit(RLIMIT_FSIZE, &limit))
        _exit(1);
    if (opencl_session(&full_world))
        _exit(2);
}

static void full_disk_is_no_error(void **state)
{
    (void)state;
    opencl_world_start(&full_world, true);
    assert_int_equal(opencl_in_child(fill_the_disk), 0);
    opencl_path paths[2];
    assert_int_equal(opencl_list_cache(&full_world, paths, 2), 0);
    opencl_world_end(&full_world);
}

static void *run_session(void *user)
{
    for (int i = 0; i < 20; i++)
        if (opencl_session(user))
            return user;
    return NULL;
}

static void threads_share_the_folder(void **state)
{
    (void)state;
    struct opencl_world world;
    opencl_world_start(&world, true);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_session, &world), 0);
    for (int i = 0; i < 8; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    opencl_path paths[2];
    assert_int_equal(opencl_list_cache(&world, paths, 2), 1);
    assert_true(served(&world));
    opencl_world_end(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_serves_the_same_program_and_no_other),
        cmocka_unit_test(drivers_that_cache_are_left_to_it),
        cmocka_unit_test(harmed_files_are_replaced),
        cmocka_unit_test(refused_binaries_are_built_from_source),
        cmocka_unit_test(useless_folders_are_no_error),
        cmocka_unit_test(strange_files_are_not_read),
        cmocka_unit_test(full_disk_is_no_error),
        cmocka_unit_test(threads_share_the_folder),
    };
    return cmocka_run_group_tests_name("opencl cache", tests, NULL, NULL);
}
