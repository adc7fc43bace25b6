#include "buffer.h"

#include <stdlib.h>
#include <string.h>

/* Odd bytes 7f or ff over even ones from 81 on: a NaN in f32, f16 and bf16, a value out of range
 * as an index, true as a flag. */
static unsigned char canary(uint64_t offset)
{
    uint64_t mix = offset * 0x9e3779b97f4a7c15u >> 40;
    return (unsigned char)(offset & 1 ? 0x7f | (mix & 0x80) : 0x81 | (mix & 0x7e));
}

void buffer_create(struct buffer *buffer, struct fixture *fixture, const char *name, uint64_t size)
{
    *buffer = (struct buffer){.fixture = fixture, .name = name, .size = size};
    buffer->before = malloc(size);
    buffer->after = malloc(size);
    buffer->open = calloc(size, 1);
    for (uint64_t i = 0; i < size; i++)
        buffer->before[i] = canary(i);
    assert_ok(lattn_memory_alloc(fixture->device, size, &buffer->base));
}

void buffer_free(struct buffer *buffer)
{
    if (!buffer->base)
        return;
    lattn_memory_free(buffer->fixture->device, buffer->base);
    free(buffer->before);
    free(buffer->after);
    free(buffer->open);
    *buffer = (struct buffer){0};
}

void buffer_open(struct buffer *buffer, uint64_t offset, uint64_t bytes)
{
    assert_true(offset + bytes <= buffer->size);
    memset(buffer->open + offset, 1, bytes);
}

void buffer_put(struct buffer *buffer, uint64_t offset, const void *data, uint64_t bytes)
{
    assert_true(offset + bytes <= buffer->size);
    memcpy(buffer->before + offset, data, bytes);
}

void buffer_upload(struct buffer *buffer)
{
    if (buffer->base)
        assert_ok(lattn_memory_upload(buffer->fixture->stream, buffer->base, 0, buffer->before,
                                      buffer->size));
}

void buffer_check(struct buffer *buffer)
{
    if (!buffer->base)
        return;
    assert_ok(lattn_memory_download(buffer->fixture->stream, buffer->after, buffer->base, 0,
                                    buffer->size));
    for (uint64_t i = 0; i < buffer->size; i++)
        if (buffer->after[i] != buffer->before[i] && !buffer->open[i])
            fail_msg("%s: byte %llu of %llu was written, and is no part of the result",
                     buffer->name, (unsigned long long)i, (unsigned long long)buffer->size);
}
