#include "dtype.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *tag;
    size_t size;
    int fraction_bits;
    int lowest_exponent; /* of the smallest normal number */
} types[] = {
    [LATTN_F32] = {"f32", "F32", 4, 23, -126},
    [LATTN_F16] = {"f16", "F16", 2, 10, -14},
    [LATTN_BF16] = {"bf16", "BF16", 2, 7, -126},
};

const char *dtype_name(lattn_dtype dtype)
{
    return types[dtype].name;
}

bool dtype_parse(const char *name, lattn_dtype *dtype)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if (strcmp(name, types[i].name) == 0) {
            *dtype = (lattn_dtype)i;
            return true;
        }
    }
    return false;
}

const char *dtype_tag(lattn_dtype dtype)
{
    return types[dtype].tag;
}

bool dtype_from_tag(const char *tag, lattn_dtype *dtype)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        if (strcmp(tag, types[i].tag) == 0) {
            *dtype = (lattn_dtype)i;
            return true;
        }
    }
    return false;
}

size_t dtype_size(lattn_dtype dtype)
{
    return types[dtype].size;
}

/* Both 16-bit types are a sign, an exponent and a fraction, as IEEE 754 has them. */
static double load16(lattn_dtype dtype, uint16_t bits)
{
    int fraction_bits = types[dtype].fraction_bits;
    int exponent_mask = (1 << (15 - fraction_bits)) - 1;
    int exponent = (bits >> fraction_bits) & exponent_mask;
    int fraction = bits & ((1 << fraction_bits) - 1);
    double value;
    if (exponent == exponent_mask)
        value = fraction ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        value = ldexp(fraction, types[dtype].lowest_exponent - fraction_bits);
    else
        value = ldexp(fraction + (1 << fraction_bits),
                      exponent - 1 + types[dtype].lowest_exponent - fraction_bits);
    return bits & 0x8000 ? -value : value;
}

static uint16_t store16(lattn_dtype dtype, double value)
{
    int fraction_bits = types[dtype].fraction_bits;
    uint16_t infinity = (uint16_t)(0x7fff & ~((1 << fraction_bits) - 1));
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    if (isnan(value))
        return (uint16_t)(sign | infinity | 1 << (fraction_bits - 1));
    if (isinf(value))
        return (uint16_t)(sign | infinity);
    if (value == 0)
        return sign;
    int exponent;
    frexp(value, &exponent);
    exponent--;
    int lowest = types[dtype].lowest_exponent;
    if (exponent < lowest)
        exponent = lowest;
    /* In units of the last place; a fraction that rounds up to the next power of two carries into
     * the exponent by itself. */
    double ulps = nearbyint(ldexp(fabs(value), fraction_bits - exponent));
    double bits = ulps + ldexp(exponent - lowest, fraction_bits);
    return (uint16_t)(sign | (bits >= infinity ? infinity : (uint16_t)bits));
}

double dtype_load(lattn_dtype dtype, const void *data, uint64_t index)
{
    if (dtype == LATTN_F32)
        return (double)((const float *)data)[index];
    return load16(dtype, ((const uint16_t *)data)[index]);
}

void dtype_store(lattn_dtype dtype, void *data, uint64_t index, double value)
{
    if (dtype == LATTN_F32)
        ((float *)data)[index] = (float)value;
    else
        ((uint16_t *)data)[index] = store16(dtype, value);
}
