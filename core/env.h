/* What a context lends to everything below it: host memory, the log, the cache folder. */
#ifndef LATTN_CORE_ENV_H
#define LATTN_CORE_ENV_H

#include <lattn/lattn.h>
#include <stdarg.h>
#include <stddef.h>

struct lattn_env {
    lattn_allocator allocator;
    lattn_log_fn log;
    void *log_user;
    lattn_log_level log_level;
    const char *cache_dir; /* NULL: no cache */
};

/* Zeroed memory, or NULL after lattn_fail(LATTN_ERROR_OUT_OF_MEMORY). `what` names it. */
void *lattn_env_alloc(const struct lattn_env *env, size_t size, const char *what);
void lattn_env_free(const struct lattn_env *env, void *pointer);

/* Passes a line to the caller's log, if it wants that level. */
void lattn_log(const struct lattn_env *env, lattn_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
