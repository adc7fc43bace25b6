#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_PATH_LENGTH = 4096 };
static const uint64_t max_program = UINT64_C(1) << 30; /* bytes: more is not a program */

/* What a file begins with. It is read only where it was written, so in the host's byte order. */
struct header {
    char magic[8];
    struct lattn_opencl_cache_key key;
    uint64_t size; /* of the program, which follows */
    uint64_t checksum;
};
static const char magic[8] = "lattncl1";

/* FNV-1a. */
static const uint64_t basis = UINT64_C(0xcbf29ce484222325);

static uint64_t hash(uint64_t state, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        state = (state ^ at[i]) * UINT64_C(0x100000001b3);
    return state;
}

void lattn_opencl_cache_key_start(struct lattn_opencl_cache_key *key)
{
    key->words[0] = basis;
    key->words[1] = ~basis;
}

void lattn_opencl_cache_key_add(struct lattn_opencl_cache_key *key, const char *text)
{
    /* With its terminator, so that "ab", "c" and "a", "bc" differ. */
    size_t size = strlen(text) + 1;
    for (int i = 0; i < 2; i++)
        key->words[i] = hash(key->words[i], text, size);
}

static bool name_file(char *path, const struct lattn_env *env,
                      const struct lattn_opencl_cache_key *key, const char *suffix)
{
    int length = snprintf(path, MAX_PATH_LENGTH, "%s/opencl-%016" PRIx64 "%016" PRIx64 "%s",
                          env->cache_dir, key->words[0], key->words[1], suffix);
    return length > 0 && length < MAX_PATH_LENGTH;
}

static bool read_all(int file, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = read(file, (char *)to + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static bool write_all(int file, const void *from, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t count = write(file, (const char *)from + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

/* NULL unless the file is a whole and unharmed program for `key`. A file that another user could
 * have put there is not trusted: the driver would run what is in it. */
static unsigned char *read_program(const struct lattn_env *env, int file,
                                   const struct lattn_opencl_cache_key *key, size_t *size)
{
    struct stat facts;
    struct header header;
    if (fstat(file, &facts) || !S_ISREG(facts.st_mode) ||
        (facts.st_uid != geteuid() && facts.st_uid != 0) || (facts.st_mode & (S_IWGRP | S_IWOTH)))
        return NULL;
    if (!read_all(file, &header, sizeof(header)) || memcmp(header.magic, magic, sizeof(magic)) ||
        memcmp(&header.key, key, sizeof(*key)) || !header.size || header.size > max_program ||
        (uint64_t)facts.st_size != sizeof(header) + header.size)
        return NULL;
    unsigned char *program = lattn_env_alloc(env, (size_t)header.size, "a cached program");
    if (!program)
        return NULL;
    if (!read_all(file, program, (size_t)header.size) ||
        hash(basis, program, (size_t)header.size) != header.checksum) {
        lattn_env_free(env, program);
        return NULL;
    }
    *size = (size_t)header.size;
    return program;
}

unsigned char *lattn_opencl_cache_load(const struct lattn_env *env,
                                       const struct lattn_opencl_cache_key *key, size_t *size)
{
    char path[MAX_PATH_LENGTH];
    if (!name_file(path, env, key, ".bin"))
        return NULL;
    /* Non-blocking, in case it is not a file at all. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return NULL;
    unsigned char *program = read_program(env, file, key, size);
    close(file);
    if (!program)
        lattn_log(env, LATTN_LOG_DEBUG, "opencl: %s is not a program for this device", path);
    return program;
}

/* Makes the folder and those above it, for this user alone. Whether it is there then shows when a
 * file is made in it. */
static void make_folder(const char *folder)
{
    char path[MAX_PATH_LENGTH];
    if (snprintf(path, sizeof(path), "%s", folder) >= (int)sizeof(path))
        return;
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, S_IRWXU);
        *slash = '/';
    }
    mkdir(path, S_IRWXU);
}

void lattn_opencl_cache_store(const struct lattn_env *env, const struct lattn_opencl_cache_key *key,
                              const void *program, size_t size)
{
    char path[MAX_PATH_LENGTH], temporary[MAX_PATH_LENGTH];
    if (!name_file(path, env, key, ".bin") || !name_file(temporary, env, key, ".XXXXXX"))
        return;
    make_folder(env->cache_dir);
    int file = mkstemp(temporary);
    if (file < 0) {
        lattn_log(env, LATTN_LOG_DEBUG, "opencl: %s cannot be written: %s", path, strerror(errno));
        return;
    }
    fcntl(file, F_SETFD, FD_CLOEXEC);
    struct header header = {.key = *key, .size = size, .checksum = hash(basis, program, size)};
    memcpy(header.magic, magic, sizeof(magic));
    bool written = write_all(file, &header, sizeof(header)) && write_all(file, program, size);
    written = !close(file) && written;
    if (written && !rename(temporary, path))
        return;
    lattn_log(env, LATTN_LOG_DEBUG, "opencl: %s cannot be written: %s", path, strerror(errno));
    unlink(temporary);
}
