/* The device code of the stand-in runtime: code objects in a bundle, which it looks into as the
 * runtime does, and the emulated kernels, which it runs instead. */
#ifndef LATTN_TESTS_FAKE_KERNEL_H
#define LATTN_TESTS_FAKE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/args.h"

struct fake_code {
    const char *bytes;
    size_t size;
};

/* The code object of a bundle that a device of `arch` runs. */
bool fake_code_find(const void *bundle, const char *arch, struct fake_code *code);

/* Does it have a kernel of that name? */
bool fake_code_has(const struct fake_code *code, const char *entry);

/* Runs a kernel of the library amd_kernels_FAMILY.so beside this one. Ends the process, with a
 * message, if there is none. */
void fake_kernel_run(const char *arch, const char *entry, unsigned groups, unsigned threads,
                     void *const memories[LATTN_MEM_COUNT], const struct lattn_args *args);

#endif
