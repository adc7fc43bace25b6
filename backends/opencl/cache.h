/* Built programs on disk: env->cache_dir/opencl-KEY.bin, for an env that has a cache_dir. The cache
 * only ever saves time. Whatever is wrong with it (no folder, no rights, no space, a file that is
 * not what its name says) is a line in the debug log, and the program is built again. */
#ifndef LATTN_OPENCL_CACHE_H
#define LATTN_OPENCL_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "core/env.h"

/* Two different 64-bit hashes of everything that the program depends on. */
struct lattn_opencl_cache_key {
    uint64_t words[2];
};

void lattn_opencl_cache_key_start(struct lattn_opencl_cache_key *key);
void lattn_opencl_cache_key_add(struct lattn_opencl_cache_key *key, const char *text);

/* The program stored under `key`, to be freed with lattn_env_free, or NULL. */
unsigned char *lattn_opencl_cache_load(const struct lattn_env *env,
                                       const struct lattn_opencl_cache_key *key, size_t *size);

/* Stores it, all of it or nothing, whoever else reads or writes there. */
void lattn_opencl_cache_store(const struct lattn_env *env, const struct lattn_opencl_cache_key *key,
                              const void *program, size_t size);

#endif
