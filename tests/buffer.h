/* A device memory whose every byte is accounted for. What no one has put there is a NaN in any
 * element type, and different everywhere; after the calls under test, bytes that were not opened
 * for writing must be the ones that were there before. */
#ifndef LATTN_TESTS_BUFFER_H
#define LATTN_TESTS_BUFFER_H

#include "fixture.h"

/* Bytes that layouts leave free at the front and the end of a buffer. A multiple of 16. */
#define BUFFER_GUARD 128

struct buffer {
    struct fixture *fixture;
    const char *name;
    void *base; /* NULL: the buffer does not exist */
    uint64_t size;
    unsigned char *before; /* what is uploaded */
    unsigned char *after;  /* what came back */
    unsigned char *open;   /* 1: this byte may change */
};

void buffer_create(struct buffer *buffer, struct fixture *fixture, const char *name, uint64_t size);
void buffer_free(struct buffer *buffer);

/* Opens bytes for writing. */
void buffer_open(struct buffer *buffer, uint64_t offset, uint64_t bytes);
void buffer_put(struct buffer *buffer, uint64_t offset, const void *data, uint64_t bytes);

void buffer_upload(struct buffer *buffer);

/* Fetches the buffer and fails the test if a closed byte changed. */
void buffer_check(struct buffer *buffer);

#endif
