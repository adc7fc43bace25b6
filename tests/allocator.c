#include "allocator.h"

#include <stdlib.h>

static void *counted_alloc(void *user, size_t size)
{
    struct allocator *allocator = user;
    if (atomic_fetch_add(&allocator->calls, 1) + 1 == atomic_load(&allocator->fail_at))
        return NULL;
    void *pointer = malloc(size);
    if (pointer)
        atomic_fetch_add(&allocator->live, 1);
    return pointer;
}

static void counted_free(void *user, void *pointer)
{
    struct allocator *allocator = user;
    if (pointer)
        atomic_fetch_sub(&allocator->live, 1);
    free(pointer);
}

lattn_allocator allocator_params(struct allocator *allocator)
{
    return (lattn_allocator){counted_alloc, counted_free, allocator};
}
