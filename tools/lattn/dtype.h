/* Element types: their names, sizes, and conversion to and from double. */
#ifndef LATTN_TOOLS_DTYPE_H
#define LATTN_TOOLS_DTYPE_H

#include <lattn/lattn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "f32", "f16", "bf16": as options and tables spell them. */
const char *dtype_name(lattn_dtype dtype);
bool dtype_parse(const char *name, lattn_dtype *dtype);

/* "F32", "F16", "BF16": as safetensors spells them. */
const char *dtype_tag(lattn_dtype dtype);
bool dtype_from_tag(const char *tag, lattn_dtype *dtype);

size_t dtype_size(lattn_dtype dtype);

double dtype_load(lattn_dtype dtype, const void *data, uint64_t index);

/* Rounds to nearest, ties to even. */
void dtype_store(lattn_dtype dtype, void *data, uint64_t index, double value);

#endif
