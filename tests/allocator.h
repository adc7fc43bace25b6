/* A host allocator that counts, and fails when told to. Safe for threads. */
#ifndef LATTN_TESTS_ALLOCATOR_H
#define LATTN_TESTS_ALLOCATOR_H

#include <lattn/lattn.h>
#include <stdatomic.h>

struct allocator {
    atomic_long calls;   /* of alloc, so far */
    atomic_long live;    /* allocations not yet freed */
    atomic_long fail_at; /* the number of the call that returns NULL, from 1; 0: none */
};

lattn_allocator allocator_params(struct allocator *allocator);

#endif
