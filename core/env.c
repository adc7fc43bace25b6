#include "env.h"

#include <stdio.h>
#include <string.h>

#include "error.h"

void *lattn_env_alloc(const struct lattn_env *env, size_t size, const char *what)
{
    void *pointer = env->allocator.alloc(env->allocator.user, size);
    if (!pointer) {
        lattn_fail(LATTN_ERROR_OUT_OF_MEMORY, "no host memory for %s (%zu bytes)", what, size);
        return NULL;
    }
    return memset(pointer, 0, size);
}

void lattn_env_free(const struct lattn_env *env, void *pointer)
{
    if (pointer)
        env->allocator.free(env->allocator.user, pointer);
}

void lattn_log(const struct lattn_env *env, lattn_log_level level, const char *format, ...)
{
    if (!env->log || level > env->log_level)
        return;
    char line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    env->log(env->log_user, level, line);
}
