/* Axes of a strided tensor: how far they reach, whether elements overlap, how they are aligned. */
#ifndef LATTN_CORE_EXTENT_H
#define LATTN_CORE_EXTENT_H

#include <lattn/lattn.h>
#include <stdbool.h>

struct lattn_axis {
    const char *name;
    int64_t extent;
    int64_t stride; /* elements */
};

/* Checks that no element of tensor `name` lies beyond what 64-bit byte addresses reach, nor, below
 * its offset, before its memory; and for one that is written, that its elements are distinct. */
lattn_status lattn_check_extent(const char *name, const struct lattn_axis *axes, int count,
                                int64_t offset, size_t element, bool written);

/* Are the strides of all axes longer than 1 multiples of `bytes`? */
bool lattn_aligned(const struct lattn_axis *axes, int count, size_t element, size_t bytes);

#endif
