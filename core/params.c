#include "params.h"

#include <string.h>

#include "error.h"

/* More than any struct of the API will be: what a struct_size that was never set may well hold. */
#define MOST_SIZE 4096

static lattn_status read_size(const void *from, const char *name, size_t *size)
{
    if (!from)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT, "%s = NULL: must be a struct", name);
    memcpy(size, from, sizeof(*size));
    if (*size < sizeof(*size) || *size > MOST_SIZE)
        return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                          "%s->struct_size = %zu: must be the struct's sizeof", name, *size);
    return LATTN_OK;
}

lattn_status lattn_params_read(void *to, size_t size, const void *from, const char *name)
{
    size_t given = 0;
    lattn_status status = read_size(from, name, &given);
    if (status)
        return status;
    const unsigned char *bytes = from;
    for (size_t i = size; i < given; i++) {
        if (bytes[i])
            return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                              "%s->struct_size = %zu: this library knows %zu bytes, and byte %zu "
                              "beyond them is not zero",
                              name, given, size, i);
    }
    memset(to, 0, size);
    memcpy(to, from, given < size ? given : size);
    return LATTN_OK;
}

lattn_status lattn_params_write(void *to, const void *from, size_t size, const char *name)
{
    size_t given = 0;
    lattn_status status = read_size(to, name, &given);
    if (status)
        return status;
    size_t first = sizeof(given);
    size_t last = given < size ? given : size;
    memcpy((char *)to + first, (const char *)from + first, last - first);
    return LATTN_OK;
}
