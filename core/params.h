/* Public structs that grow at their end: reading the caller's, writing into the caller's. */
#ifndef LATTN_CORE_PARAMS_H
#define LATTN_CORE_PARAMS_H

#include <lattn/lattn.h>

/* Copies the caller's struct, whose first member is its struct_size, into `to` (`size` bytes):
 * members it lacks become zero; members that this library does not know must be zero. `name` is the
 * argument's name in messages. */
lattn_status lattn_params_read(void *to, size_t size, const void *from, const char *name);

/* Copies `from` (`size` bytes) into the caller's struct, as much as its struct_size has room for,
 * and leaves its struct_size as it is. */
lattn_status lattn_params_write(void *to, const void *from, size_t size, const char *name);

#endif
