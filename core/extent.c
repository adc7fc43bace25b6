#include "extent.h"

#include "error.h"

#define MOST_AXES 4

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Distinct if, taken from the smallest stride up, each axis steps over all that is within. This
 * refuses some exotic layouts that do not overlap. */
static lattn_status check_distinct(const char *name, const struct lattn_axis *axes, int count)
{
    struct lattn_axis sorted[MOST_AXES];
    int used = 0;
    for (int i = 0; i < count; i++) {
        if (axes[i].extent < 2)
            continue;
        int at = used++;
        for (; at > 0 && magnitude(sorted[at - 1].stride) > magnitude(axes[i].stride); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = axes[i];
    }
    int64_t reach = 0;
    for (int i = 0; i < used; i++) {
        if (magnitude(sorted[i].stride) <= reach)
            return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                              "%s.stride_%s = %lld: elements of an output would overlap (more than "
                              "%lld is needed)",
                              name, sorted[i].name, (long long)sorted[i].stride, (long long)reach);
        reach += (sorted[i].extent - 1) * magnitude(sorted[i].stride);
    }
    return LATTN_OK;
}

lattn_status lattn_check_extent(const char *name, const struct lattn_axis *axes, int count,
                                int64_t offset, size_t element, bool written)
{
    int64_t above = offset, below = offset;
    for (int i = 0; i < count; i++) {
        if (axes[i].extent <= 0)
            return LATTN_OK;
    }
    for (int i = 0; i < count; i++) {
        int64_t reach;
        bool wraps = axes[i].stride == INT64_MIN ||
                     __builtin_mul_overflow(axes[i].extent - 1, axes[i].stride, &reach) ||
                     (reach > 0 ? __builtin_add_overflow(above, reach, &above)
                                : __builtin_add_overflow(below, reach, &below));
        if (wraps || above > INT64_MAX / (int64_t)element - 1)
            return lattn_fail(LATTN_ERROR_INVALID_ARGUMENT,
                              "%s.stride_%s = %lld: %lld of them reach beyond 2^63 bytes", name,
                              axes[i].name, (long long)axes[i].stride, (long long)axes[i].extent);
    }
    if (below < 0)
        return lattn_fail(
            LATTN_ERROR_INVALID_ARGUMENT,
            "%s.offset = %llu: negative strides reach %llu elements before the memory", name,
            (unsigned long long)offset * element, -(unsigned long long)below);
    return written ? check_distinct(name, axes, count) : LATTN_OK;
}

bool lattn_aligned(const struct lattn_axis *axes, int count, size_t element, size_t bytes)
{
    for (int i = 0; i < count; i++) {
        if (axes[i].extent > 1 && axes[i].stride % (int64_t)(bytes / element))
            return false;
    }
    return true;
}
