/* Safetensors files: eight bytes with the length of a JSON header, the header, and the bytes of the
 * tensors. Files are read as if an enemy had written them. Functions that return false have put
 * one line, without the file's name, into `error`. */
#ifndef LATTN_TOOLS_SAFETENSORS_H
#define LATTN_TOOLS_SAFETENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAFETENSORS_PREFIX 8
#define SAFETENSORS_MAX_HEADER 100000000
#define SAFETENSORS_MAX_RANK 8

struct safetensors_error {
    char text[400];
};

struct safetensors_tensor {
    char *name;
    const char *dtype; /* static, as in the file: "F32", "I64", ... */
    int rank;
    uint64_t shape[SAFETENSORS_MAX_RANK];
    uint64_t begin, end; /* bytes, from the end of the header */
};

/* What a header says; all zero is empty. */
struct safetensors_index {
    size_t count;
    struct safetensors_tensor *tensors; /* in the order of their bytes */
};

/* Reads the first SAFETENSORS_PREFIX bytes of a file of `file_size` bytes. */
bool safetensors_header_length(const unsigned char *prefix, uint64_t file_size, uint64_t *length,
                               struct safetensors_error *error);

/* Reads a header, in a file with `data_size` bytes after it. The tensors must cover those bytes
 * exactly, without overlap and without holes. */
bool safetensors_parse(const char *header, size_t length, uint64_t data_size,
                       struct safetensors_index *index, struct safetensors_error *error);

void safetensors_index_clear(struct safetensors_index *index);

/* NULL if there is none of that name. */
const struct safetensors_tensor *safetensors_find(const struct safetensors_index *index,
                                                  const char *name);

/* An open file: its index, and its tensors on demand. It stays readable when another file takes its
 * name. */
struct safetensors_file {
    int descriptor;
    uint64_t data_start;
    struct safetensors_index index;
};

bool safetensors_open(const char *path, struct safetensors_file *file,
                      struct safetensors_error *error);
void safetensors_close(struct safetensors_file *file);

/* `data` takes end - begin bytes. */
bool safetensors_read(const struct safetensors_file *file, const struct safetensors_tensor *tensor,
                      void *data, struct safetensors_error *error);

struct safetensors_output {
    const char *name;
    const char *dtype;
    int rank;
    uint64_t shape[SAFETENSORS_MAX_RANK];
    const void *data;
};

struct safetensors_metadata {
    const char *key, *value;
};

/* Writes the file beside `path` and renames it into place once all of it is on disk: `path` holds
 * what it held before, or all of the new file. */
bool safetensors_write(const char *path, const struct safetensors_output *tensors, size_t count,
                       const struct safetensors_metadata *metadata, size_t metadata_count,
                       struct safetensors_error *error);

/* Whether `path` can be written in that way, as far as can be told now. */
bool safetensors_writable(const char *path, struct safetensors_error *error);

/* Removes the file that a write in progress has left. For handlers of signals. */
void safetensors_abandon(void);

/* Bits of one element; 0 for a type that safetensors does not have. */
unsigned safetensors_dtype_bits(const char *dtype);

bool safetensors_fail(struct safetensors_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
