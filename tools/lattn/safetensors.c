#include "safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool safetensors_fail(struct safetensors_error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof(error->text), format, list);
    va_end(list);
    return false;
}

static const struct {
    const char *name;
    unsigned bits;
} dtypes[] = {
    {"BOOL", 8},    {"U8", 8},   {"I8", 8},   {"F8_E4M3", 8}, {"F8_E5M2", 8},
    {"F8_E8M0", 8}, {"U16", 16}, {"I16", 16}, {"F16", 16},    {"BF16", 16},
    {"U32", 32},    {"I32", 32}, {"F32", 32}, {"U64", 64},    {"I64", 64},
    {"F64", 64},    {"C64", 64}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

/* The static name and the bits of a dtype; NULL if there is none. */
static const char *find_dtype(const char *name, unsigned *bits)
{
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(*dtypes); i++) {
        if (strcmp(dtypes[i].name, name) == 0) {
            *bits = dtypes[i].bits;
            return dtypes[i].name;
        }
    }
    return NULL;
}

unsigned safetensors_dtype_bits(const char *dtype)
{
    unsigned bits = 0;
    find_dtype(dtype, &bits);
    return bits;
}

/* ---- the header ------------------------------------------------------------------------------ */

bool safetensors_header_length(const unsigned char *prefix, uint64_t file_size, uint64_t *length,
                               struct safetensors_error *error)
{
    if (file_size < SAFETENSORS_PREFIX)
        return safetensors_fail(error, "%" PRIu64 " bytes: a safetensors file has 8 at least",
                                file_size);
    uint64_t value = 0;
    for (int i = 0; i < SAFETENSORS_PREFIX; i++)
        value |= (uint64_t)prefix[i] << (8 * i);
    if (value > SAFETENSORS_MAX_HEADER)
        return safetensors_fail(error, "header of %" PRIu64 " bytes: the most is %d", value,
                                SAFETENSORS_MAX_HEADER);
    if (value > file_size - SAFETENSORS_PREFIX)
        return safetensors_fail(error, "header of %" PRIu64 " bytes in a file of %" PRIu64, value,
                                file_size);
    *length = value;
    return true;
}

/* A count of bytes or elements: an integer that is not negative. */
static bool parse_size(const json_t *value, uint64_t *size)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *size = (uint64_t)json_integer_value(value);
    return true;
}

static bool parse_shape(const char *name, const json_t *shape, struct safetensors_tensor *tensor,
                        struct safetensors_error *error)
{
    if (!json_is_array(shape))
        return safetensors_fail(error, "tensor %s: shape must be an array", name);
    if (json_array_size(shape) > SAFETENSORS_MAX_RANK)
        return safetensors_fail(error, "tensor %s: shape has %zu dimensions, the most is %d", name,
                                json_array_size(shape), SAFETENSORS_MAX_RANK);
    tensor->rank = (int)json_array_size(shape);
    for (int i = 0; i < tensor->rank; i++) {
        if (!parse_size(json_array_get(shape, (size_t)i), &tensor->shape[i]))
            return safetensors_fail(error, "tensor %s: shape[%d] must be an integer >= 0", name, i);
    }
    return true;
}

static bool parse_offsets(const char *name, const json_t *offsets, uint64_t data_size,
                          struct safetensors_tensor *tensor, struct safetensors_error *error)
{
    if (!json_is_array(offsets) || json_array_size(offsets) != 2 ||
        !parse_size(json_array_get(offsets, 0), &tensor->begin) ||
        !parse_size(json_array_get(offsets, 1), &tensor->end))
        return safetensors_fail(error, "tensor %s: data_offsets must be two integers >= 0", name);
    if (tensor->begin > tensor->end || tensor->end > data_size)
        return safetensors_fail(error,
                                "tensor %s: data_offsets [%" PRIu64 ", %" PRIu64
                                "] do not lie within the file's %" PRIu64 " bytes of data",
                                name, tensor->begin, tensor->end, data_size);
    return true;
}

/* The shape and the dtype must make just the bytes that the offsets span. */
static bool check_size(const char *name, const struct safetensors_tensor *tensor, unsigned bits,
                       struct safetensors_error *error)
{
    uint64_t total = bits;
    for (int i = 0; i < tensor->rank; i++) {
        uint64_t size = tensor->shape[i];
        if (size != 0 && total > UINT64_MAX / size)
            return safetensors_fail(error, "tensor %s: shape has more elements than 64 bits count",
                                    name);
        total *= size;
    }
    if (total % 8 != 0 || total / 8 != tensor->end - tensor->begin)
        return safetensors_fail(error,
                                "tensor %s: data_offsets span %" PRIu64
                                " bytes, its shape and dtype %s make %" PRIu64,
                                name, tensor->end - tensor->begin, tensor->dtype, total / 8);
    return true;
}

static bool parse_tensor(const char *name, const json_t *entry, uint64_t data_size,
                         struct safetensors_tensor *tensor, struct safetensors_error *error)
{
    if (!json_is_object(entry))
        return safetensors_fail(error, "tensor %s: its entry must be an object", name);
    const json_t *dtype = json_object_get(entry, "dtype");
    if (!json_is_string(dtype))
        return safetensors_fail(error, "tensor %s: dtype must be a string", name);
    unsigned bits;
    tensor->dtype = find_dtype(json_string_value(dtype), &bits);
    if (!tensor->dtype)
        return safetensors_fail(error, "tensor %s: dtype %.40s is unknown", name,
                                json_string_value(dtype));
    if (json_object_size(entry) != 3)
        return safetensors_fail(error, "tensor %s: its entry must have dtype, shape, data_offsets",
                                name);
    return parse_shape(name, json_object_get(entry, "shape"), tensor, error) &&
           parse_offsets(name, json_object_get(entry, "data_offsets"), data_size, tensor, error) &&
           check_size(name, tensor, bits, error);
}

static bool parse_metadata(const json_t *metadata, struct safetensors_error *error)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return safetensors_fail(error, "__metadata__ must be an object");
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value)
    {
        if (!json_is_string(value))
            return safetensors_fail(error, "__metadata__: %.80s must be a string", key);
    }
    return true;
}

static int by_bytes(const void *left, const void *right)
{
    const struct safetensors_tensor *a = left, *b = right;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static bool check_cover(const struct safetensors_index *index, uint64_t data_size,
                        struct safetensors_error *error)
{
    uint64_t at = 0;
    for (size_t i = 0; i < index->count; i++) {
        const struct safetensors_tensor *tensor = &index->tensors[i];
        if (tensor->begin != at)
            return safetensors_fail(
                error, "tensor %.200s: data_offsets begin at %" PRIu64 ", %s at %" PRIu64,
                tensor->name, tensor->begin,
                tensor->begin < at ? "inside the tensor that ends" : "after a hole that starts",
                at);
        at = tensor->end;
    }
    if (at != data_size)
        return safetensors_fail(error, "%" PRIu64 " bytes after the last tensor", data_size - at);
    return true;
}

static bool parse_entries(json_t *root, uint64_t data_size, struct safetensors_index *index,
                          struct safetensors_error *error)
{
    const char *name;
    json_t *entry;
    if (!json_is_object(root))
        return safetensors_fail(error, "header must be a JSON object");
    index->tensors = calloc(json_object_size(root) + 1, sizeof(*index->tensors));
    if (!index->tensors)
        return safetensors_fail(error, "out of memory");
    json_object_foreach(root, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            if (!parse_metadata(entry, error))
                return false;
            continue;
        }
        struct safetensors_tensor *tensor = &index->tensors[index->count++];
        tensor->name = strdup(name);
        if (!tensor->name)
            return safetensors_fail(error, "out of memory");
        char shown[96];
        snprintf(shown, sizeof(shown), "%s", name);
        if (!parse_tensor(shown, entry, data_size, tensor, error))
            return false;
    }
    qsort(index->tensors, index->count, sizeof(*index->tensors), by_bytes);
    return check_cover(index, data_size, error);
}

bool safetensors_parse(const char *header, size_t length, uint64_t data_size,
                       struct safetensors_index *index, struct safetensors_error *error)
{
    *index = (struct safetensors_index){0};
    if (length == 0 || header[0] != '{')
        return safetensors_fail(error, "header must be a JSON object");
    json_error_t reason;
    json_t *root = json_loadb(header, length, JSON_REJECT_DUPLICATES, &reason);
    if (!root)
        return safetensors_fail(error, "header is no valid JSON: %s (byte %d)", reason.text,
                                reason.position);
    bool good = parse_entries(root, data_size, index, error);
    json_decref(root);
    if (!good)
        safetensors_index_clear(index);
    return good;
}

void safetensors_index_clear(struct safetensors_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        free(index->tensors[i].name);
    free(index->tensors);
    *index = (struct safetensors_index){0};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors_index *index,
                                                  const char *name)
{
    for (size_t i = 0; i < index->count; i++) {
        if (strcmp(index->tensors[i].name, name) == 0)
            return &index->tensors[i];
    }
    return NULL;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool read_at(int descriptor, uint64_t offset, void *data, uint64_t size,
                    struct safetensors_error *error)
{
    unsigned char *to = data;
    while (size > 0) {
        size_t part = size < (1u << 30) ? (size_t)size : 1u << 30;
        ssize_t got = pread(descriptor, to, part, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return safetensors_fail(error, "%s", strerror(errno));
        if (got == 0)
            return safetensors_fail(error, "the file became shorter while it was read");
        to += got;
        offset += (uint64_t)got;
        size -= (uint64_t)got;
    }
    return true;
}

static bool open_index(struct safetensors_file *file, struct safetensors_error *error)
{
    struct stat status;
    if (fstat(file->descriptor, &status) != 0)
        return safetensors_fail(error, "%s", strerror(errno));
    if (!S_ISREG(status.st_mode))
        return safetensors_fail(error, "not a regular file");
    uint64_t size = (uint64_t)status.st_size, length = 0;
    unsigned char prefix[SAFETENSORS_PREFIX] = {0};
    uint64_t there = size < sizeof(prefix) ? size : sizeof(prefix);
    if (!read_at(file->descriptor, 0, prefix, there, error) ||
        !safetensors_header_length(prefix, size, &length, error))
        return false;
    file->data_start = SAFETENSORS_PREFIX + length;
    char *header = malloc((size_t)length + 1);
    if (!header)
        return safetensors_fail(error, "out of memory");
    bool good =
        read_at(file->descriptor, SAFETENSORS_PREFIX, header, length, error) &&
        safetensors_parse(header, (size_t)length, size - file->data_start, &file->index, error);
    free(header);
    return good;
}

bool safetensors_open(const char *path, struct safetensors_file *file,
                      struct safetensors_error *error)
{
    *file = (struct safetensors_file){.descriptor = -1};
    /* Without O_NONBLOCK a FIFO would wait for its writer. */
    file->descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (file->descriptor < 0)
        return safetensors_fail(error, "%s", strerror(errno));
    if (!open_index(file, error)) {
        safetensors_close(file);
        return false;
    }
    return true;
}

void safetensors_close(struct safetensors_file *file)
{
    safetensors_index_clear(&file->index);
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}

bool safetensors_read(const struct safetensors_file *file, const struct safetensors_tensor *tensor,
                      void *data, struct safetensors_error *error)
{
    return read_at(file->descriptor, file->data_start + tensor->begin, data,
                   tensor->end - tensor->begin, error);
}
