#include "arch.h"

#include <stdio.h>
#include <string.h>

#include "catalog.h"

/* hipDeviceProp_t begins with the device's name, in every version. */
#define NAME_BYTES 256

static bool is_digit(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static bool is_feature(char c)
{
    return (c >= 'a' && c <= 'z') || c == ':' || c == '+' || c == '-' || is_digit(c);
}

bool lattn_hip_arch_in(const char *properties, size_t bytes, char *arch, size_t size)
{
    for (size_t at = NAME_BYTES; at + 8 < bytes; at++) {
        const char *name = properties + at;
        if (memcmp(name, "gfx", 3) || !is_digit(name[3]))
            continue;
        size_t length = 4;
        while (at + length < bytes && length < size && is_feature(name[length]))
            length++;
        if (length >= size || at + length == bytes || name[length])
            continue;
        memcpy(arch, name, length + 1);
        return true;
    }
    return false;
}

/* The length of the part of `text` before the next ':'. */
static size_t part(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && text[i] != ':')
        i++;
    return i;
}

static bool has_feature(const char *arch, const char *feature, size_t length)
{
    size_t left = strlen(arch);
    for (const char *at = arch; left;) {
        const size_t size = part(at, left);
        if (size == length && !memcmp(at, feature, length))
            return true;
        const size_t step = size < left ? size + 1 : size;
        at += step;
        left -= step;
    }
    return false;
}

bool lattn_hip_arch_runs(const char *built, size_t length, const char *arch)
{
    const size_t base = part(built, length);
    if (part(arch, strlen(arch)) != base || memcmp(built, arch, base))
        return false;
    for (size_t at = base; at < length;) {
        const size_t size = part(built + at + 1, length - at - 1);
        if (!has_feature(arch, built + at + 1, size))
            return false;
        at += 1 + size;
    }
    return true;
}

static bool begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static uint32_t features_of(const char *arch)
{
    if (begins(arch, "gfx90a") || begins(arch, "gfx942") || begins(arch, "gfx950"))
        return LATTN_HIP_MFMA;
    if (begins(arch, "gfx110") || begins(arch, "gfx115") || begins(arch, "gfx120"))
        return LATTN_HIP_WMMA;
    return 0;
}

lattn_status lattn_hip_choose_code(const char *archs, const char *arch, uint32_t *features,
                                   char *reason, size_t size)
{
    for (const char *at = archs; *at;) {
        const size_t length = strcspn(at, " ");
        if (lattn_hip_arch_runs(at, length, arch)) {
            *features = features_of(arch);
            return LATTN_OK;
        }
        at += length;
        at += strspn(at, " ");
    }
    snprintf(reason, size, "no code for %s in this build, which has %s", arch, archs);
    return LATTN_ERROR_NO_DEVICE_CODE;
}
