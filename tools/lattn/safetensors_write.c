#define _XOPEN_SOURCE 700 /* realpath */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "safetensors.h"

/* The file being written, for safetensors_abandon(); "" when there is none. */
static char unfinished[PATH_MAX + 16];

void safetensors_abandon(void)
{
    if (unfinished[0])
        unlink(unfinished);
}

/* What is to be replaced. */
struct target {
    char path[PATH_MAX]; /* of the file itself, where a link to one was named */
    char folder[PATH_MAX];
    mode_t mode; /* of the file there is, or as the user's mask has it */
};

static bool resolve(const char *path, struct target *target, struct safetensors_error *error)
{
    struct stat status;
    if (stat(path, &status) == 0) {
        if (!S_ISREG(status.st_mode))
            return safetensors_fail(error, "the output must be a regular file");
        if (!realpath(path, target->path))
            return safetensors_fail(error, "%s", strerror(errno));
        target->mode = status.st_mode & 0777;
    } else if (errno != ENOENT) {
        return safetensors_fail(error, "%s", strerror(errno));
    } else {
        if (path[0] == '\0' || path[strlen(path) - 1] == '/' || strlen(path) >= PATH_MAX)
            return safetensors_fail(error, "the output must be a regular file");
        strcpy(target->path, path);
        mode_t mask = umask(0);
        umask(mask);
        target->mode = 0666 & ~mask;
    }
    strcpy(target->folder, target->path);
    char *slash = strrchr(target->folder, '/');
    if (!slash)
        strcpy(target->folder, ".");
    else
        slash[slash == target->folder] = '\0';
    return true;
}

bool safetensors_writable(const char *path, struct safetensors_error *error)
{
    struct target target;
    if (!resolve(path, &target, error))
        return false;
    struct stat status;
    if (stat(target.folder, &status) != 0 || access(target.folder, W_OK | X_OK) != 0)
        return safetensors_fail(error, "folder of the output: %s", strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return safetensors_fail(error, "folder of the output: %s", strerror(ENOTDIR));
    return true;
}

static uint64_t output_bytes(const struct safetensors_output *tensor)
{
    uint64_t bits = safetensors_dtype_bits(tensor->dtype);
    for (int i = 0; i < tensor->rank; i++)
        bits *= tensor->shape[i];
    return bits / 8;
}

/* The k-th tensor to lie in the file: wide elements first, so that all are aligned. */
static const struct safetensors_output *in_order(const struct safetensors_output *tensors,
                                                 size_t count, size_t k)
{
    for (unsigned bits = 64; bits >= 8; bits /= 2) {
        for (size_t i = 0; i < count; i++) {
            if (safetensors_dtype_bits(tensors[i].dtype) == bits && k-- == 0)
                return &tensors[i];
        }
    }
    return NULL;
}

/* The header, padded to a multiple of 8 bytes; NULL when out of memory. */
static char *make_header(const struct safetensors_output *tensors, size_t count,
                         const struct safetensors_metadata *metadata, size_t metadata_count)
{
    json_t *root = json_object(), *notes = json_object();
    int bad = json_object_set_new(root, "__metadata__", notes);
    for (size_t i = 0; i < metadata_count; i++)
        bad |= json_object_set_new(notes, metadata[i].key, json_string(metadata[i].value));
    uint64_t at = 0;
    for (size_t k = 0; k < count; k++) {
        const struct safetensors_output *tensor = in_order(tensors, count, k);
        uint64_t end = at + output_bytes(tensor);
        json_t *shape = json_array();
        for (int i = 0; i < tensor->rank; i++)
            bad |= json_array_append_new(shape, json_integer((json_int_t)tensor->shape[i]));
        bad |=
            json_object_set_new(root, tensor->name,
                                json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensor->dtype, "shape",
                                          shape, "data_offsets", (json_int_t)at, (json_int_t)end));
        at = end;
    }
    char *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    if (!text)
        return NULL;
    size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    char *header = malloc(padded + 1);
    if (header) {
        memcpy(header, text, length);
        memset(header + length, ' ', padded - length);
        header[padded] = '\0';
    }
    free(text);
    return header;
}

static bool write_all(int descriptor, const void *data, uint64_t size,
                      struct safetensors_error *error)
{
    const unsigned char *from = data;
    while (size > 0) {
        ssize_t done = write(descriptor, from, size < (1u << 30) ? (size_t)size : 1u << 30);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return safetensors_fail(error, "%s", strerror(errno));
        from += done;
        size -= (uint64_t)done;
    }
    return true;
}

static bool write_content(int descriptor, const char *header, mode_t mode,
                          const struct safetensors_output *tensors, size_t count,
                          struct safetensors_error *error)
{
    unsigned char prefix[SAFETENSORS_PREFIX];
    uint64_t length = strlen(header);
    for (int i = 0; i < SAFETENSORS_PREFIX; i++)
        prefix[i] = (unsigned char)(length >> (8 * i));
    if (!write_all(descriptor, prefix, sizeof(prefix), error) ||
        !write_all(descriptor, header, length, error))
        return false;
    for (size_t k = 0; k < count; k++) {
        const struct safetensors_output *tensor = in_order(tensors, count, k);
        if (!write_all(descriptor, tensor->data, output_bytes(tensor), error))
            return false;
    }
    if (fchmod(descriptor, mode) != 0 || fsync(descriptor) != 0)
        return safetensors_fail(error, "%s", strerror(errno));
    return true;
}

/* The new name is on disk when its folder is; a file system that cannot sync one still has it. */
static void sync_folder(const char *path)
{
    int folder = open(path, O_RDONLY | O_CLOEXEC);
    if (folder >= 0) {
        fsync(folder);
        close(folder);
    }
}

/* A new file in the target's folder, named in `unfinished` before a signal can end the program. */
static int create_unfinished(const char *folder)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    char name[sizeof(unfinished)];
    snprintf(name, sizeof(name), "%s/.lattn.XXXXXX", folder);
    int descriptor = mkstemp(name);
    int failure = errno;
    if (descriptor >= 0)
        strcpy(unfinished, name);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = failure;
    return descriptor;
}

static bool replace(const struct target *target, const char *header,
                    const struct safetensors_output *tensors, size_t count,
                    struct safetensors_error *error)
{
    int descriptor = create_unfinished(target->folder);
    if (descriptor < 0)
        return safetensors_fail(error, "%s", strerror(errno));
    bool good = write_content(descriptor, header, target->mode, tensors, count, error);
    if (close(descriptor) != 0 && good)
        good = safetensors_fail(error, "%s", strerror(errno));
    if (good && rename(unfinished, target->path) != 0)
        good = safetensors_fail(error, "%s", strerror(errno));
    if (!good)
        unlink(unfinished);
    unfinished[0] = '\0';
    if (good)
        sync_folder(target->folder);
    return good;
}

bool safetensors_write(const char *path, const struct safetensors_output *tensors, size_t count,
                       const struct safetensors_metadata *metadata, size_t metadata_count,
                       struct safetensors_error *error)
{
    struct target target;
    if (!resolve(path, &target, error))
        return false;
    char *header = make_header(tensors, count, metadata, metadata_count);
    if (!header)
        return safetensors_fail(error, "out of memory");
    bool good = replace(&target, header, tensors, count, error);
    free(header);
    return good;
}
