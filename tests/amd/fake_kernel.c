#undef _POSIX_C_SOURCE
#define _GNU_SOURCE
#include "fake_kernel.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/arch.h"

#define MAGIC "__CLANG_OFFLOAD_BUNDLE__"

bool fake_code_find(const void *bundle, const char *arch, struct fake_code *code)
{
    const char *at = bundle;
    if (memcmp(at, MAGIC, strlen(MAGIC)))
        return false;
    uint64_t count, entry[3]; /* offset, size, length of the name */
    memcpy(&count, at + strlen(MAGIC), sizeof(count));
    at += strlen(MAGIC) + sizeof(count);
    for (uint64_t i = 0; i < count; i++) {
        memcpy(entry, at, sizeof(entry));
        const char *name = at + sizeof(entry);
        at = name + entry[2];
        const char *dashes = memmem(name, entry[2], "--", 2);
        if (!entry[1] || !dashes)
            continue;
        dashes += 2;
        if (lattn_hip_arch_runs(dashes, (size_t)(at - dashes), arch)) {
            *code = (struct fake_code){(const char *)bundle + entry[0], entry[1]};
            return true;
        }
    }
    return false;
}

bool fake_code_has(const struct fake_code *code, const char *entry)
{
    char symbol[96];
    const int length = snprintf(symbol, sizeof(symbol), "%c%s.kd", 0, entry);
    return memmem(code->bytes, code->size, symbol, (size_t)length + 1) != NULL;
}

/* ---- emulation ------------------------------------------------------------------------------ */

static const struct {
    const char *arch, *library;
    int wave;
} families[] = {
    {"gfx90a", "amd_kernels_gfx90a.so", 64}, {"gfx942", "amd_kernels_gfx942.so", 64},
    {"gfx11", "amd_kernels_gfx11.so", 32},   {"gfx12", "amd_kernels_gfx12.so", 32},
    {"gfx906", "amd_kernels_gfx942.so", 64}, {"gfx1030", "amd_kernels_gfx12.so", 32},
};

static void die(const char *what, const char *name)
{
    fprintf(stderr, "stand-in HIP runtime: %s %s\n", what, name);
    abort();
}

/* A library of kernels lies beside this one. */
static void *open_library(const char *name)
{
    Dl_info self;
    char path[4096];
    if (!dladdr((void *)(uintptr_t)open_library, &self))
        die("cannot find", "itself");
    const char *slash = strrchr(self.dli_fname, '/');
    snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - self.dli_fname) : 1,
             slash ? self.dli_fname : ".", name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        die("cannot open", dlerror());
    return library;
}

typedef void (*kernel_fn)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                          void *, void *, void *, void *, struct lattn_args);
typedef void (*group_run_fn)(int threads, int wave, long long group, void (*body)(void *context),
                             void *context);

struct body {
    kernel_fn kernel;
    void *const *m;
    const struct lattn_args *args;
};

static void run_lane(void *context)
{
    const struct body *body = context;
    void *const *m = body->m;
    body->kernel(m[0], m[1], m[2], m[3], m[4], m[5], m[6], m[7], m[8], m[9], m[10], m[11], m[12],
                 *body->args);
}

void fake_kernel_run(const char *arch, const char *entry, unsigned groups, unsigned threads,
                     void *const memories[LATTN_MEM_COUNT], const struct lattn_args *args)
{
    struct body body = {NULL, memories, args};
    group_run_fn group_run = NULL;
    int wave = 0;
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]) && !wave; i++) {
        if (strncmp(arch, families[i].arch, strlen(families[i].arch)))
            continue;
        wave = families[i].wave;
        void *library = open_library(families[i].library);
        void *symbol = dlsym(library, entry);
        memcpy(&body.kernel, &symbol, sizeof(symbol));
        symbol = dlsym(library, "amd_group_run");
        memcpy(&group_run, &symbol, sizeof(symbol));
    }
    if (!body.kernel || !group_run)
        die("no emulated kernel", entry);
    for (unsigned group = 0; group < groups; group++)
        group_run((int)threads, wave, group, run_lane, &body);
}
