#include "number.h"

#include <math.h>
#include <string.h>

size_t number_size(lattn_dtype dtype)
{
    return dtype == LATTN_F32 ? 4 : 2;
}

const char *number_name(lattn_dtype dtype)
{
    return dtype == LATTN_F32 ? "f32" : dtype == LATTN_F16 ? "f16" : "bf16";
}

static uint16_t half_bits(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value))
        return 0x7e00;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14)
        return sign | (uint16_t)rint(size * 0x1p24);
    int exponent;
    double fraction = frexp(size, &exponent);
    /* A fraction that rounds up to 1 carries into the exponent, as it should. */
    return sign | (uint16_t)(((exponent + 13) << 10) + (int)rint(fraction * 2048));
}

static double half_value(uint16_t bits)
{
    int exponent = bits >> 10 & 31;
    int fraction = bits & 1023;
    double size = exponent == 31 ? (fraction ? (double)NAN : (double)INFINITY)
                  : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                 : ldexp(fraction, -24);
    return bits & 0x8000 ? -size : size;
}

void number_store(void *to, lattn_dtype dtype, double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    uint16_t half;
    if (dtype == LATTN_F32) {
        memcpy(to, &single, sizeof(single));
        return;
    }
    if (dtype == LATTN_F16)
        half = half_bits(value);
    else if (isnan(value))
        half = 0x7fc0;
    else
        half = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    memcpy(to, &half, sizeof(half));
}

double number_load(const void *from, lattn_dtype dtype)
{
    float single;
    uint16_t half;
    if (dtype == LATTN_F32) {
        memcpy(&single, from, sizeof(single));
        return (double)single;
    }
    memcpy(&half, from, sizeof(half));
    if (dtype == LATTN_F16)
        return half_value(half);
    uint32_t bits = (uint32_t)half << 16;
    memcpy(&single, &bits, sizeof(single));
    return (double)single;
}
