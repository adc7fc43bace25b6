/* Runs the cases. Each has a process of its own, since a driver is opened once in a process: this
 * program starts itself again with the case's name and environment. */
#include "cuda_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A folder whose libcuda.so.1 is no library, so that there is no driver on any machine. */
static char broken[] = "/tmp/lattn-cuda-XXXXXX";

static const struct {
    const char *name;
    void (*run)(void);
    const char *variable, *value;
} cases[] = {
    {"no_driver", no_driver, NULL, NULL},
    {"no_device", no_device, "FAKE_CUDA_INIT", "100"},
    {"listing", listing, "FAKE_CUDA_DEVICES", "9.0,8.6,7.5,8.9,11.0"},
    {"caps", caps, NULL, NULL},
    {"driver_too_old", driver_too_old, "FAKE_CUDA_DRIVER", "12040"},
    {"entry_point_missing", entry_point_missing, "FAKE_CUDA_MISSING", "cuCtxPushCurrent"},
    {"code_choice", code_choice, NULL, NULL},
    {"image_without_code", image_without_code, "FAKE_CUDA_IMAGE", "209"},
    {"image_too_new", image_too_new, "FAKE_CUDA_IMAGE", "222"},
    {"context_balance", context_balance, NULL, NULL},
    {"host_memory", host_memory, NULL, NULL},
    {"on_fresh_thread", on_fresh_thread, NULL, NULL},
    {"foreign_stream", foreign_stream, NULL, NULL},
    {"data", data, NULL, NULL},
    {"launch_call", launch_call, NULL, NULL},
    {"kernels", kernels, NULL, NULL},
    {"old_function_load", old_function_load, "FAKE_CUDA_MISSING", "cuFuncLoad"},
    {"threads", threads, NULL, NULL},
    {"capture", capture, NULL, NULL},
    {"fork_after_load", fork_after_load, NULL, NULL},
    {"fork_after_init", fork_after_init, NULL, NULL},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static int make_broken(void **state)
{
    char path[64];
    (void)state;
    if (!mkdtemp(broken))
        return -1;
    snprintf(path, sizeof(path), "%s/libcuda.so.1", broken);
    FILE *file = fopen(path, "w");
    if (!file || fputs("no library\n", file) < 0)
        return -1;
    return fclose(file);
}

static int remove_broken(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof(path), "%s/libcuda.so.1", broken);
    return unlink(path) || rmdir(broken);
}

/* Before the folders that are searched already: the program itself needs those. */
static void search_first(const char *folder)
{
    char folders[4096];
    const char *rest = getenv("LD_LIBRARY_PATH");
    snprintf(folders, sizeof(folders), "%s:%s", folder, rest ? rest : "");
    setenv("LD_LIBRARY_PATH", folders, 1);
}

static void spawn(void **state)
{
    const size_t i = (size_t)(uintptr_t)*state;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        if (cases[i].run == no_driver)
            search_first(broken);
        else if (cases[i].variable)
            setenv(cases[i].variable, cases[i].value, 1);
        execl("/proc/self/exe", "cuda_test", cases[i].name, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        fail_msg("case %s failed", cases[i].name);
}

static void run_case(void **state)
{
    cases[(size_t)(uintptr_t)*state].run();
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[CASES];
    for (size_t i = 0; i < CASES; i++) {
        tests[i] = (struct CMUnitTest){cases[i].name, spawn, NULL, NULL, (void *)(uintptr_t)i};
        if (argc > 1 && !strcmp(argv[1], cases[i].name)) {
            tests[0] =
                (struct CMUnitTest){cases[i].name, run_case, NULL, NULL, (void *)(uintptr_t)i};
            return _cmocka_run_group_tests(argv[1], tests, 1, NULL, NULL);
        }
    }
    return _cmocka_run_group_tests("cuda", tests, CASES, make_broken, remove_broken);
}
