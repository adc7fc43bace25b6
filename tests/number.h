/* The library's element types, to and from double. Conversions of the tests' own. */
#ifndef LATTN_TESTS_NUMBER_H
#define LATTN_TESTS_NUMBER_H

#include <lattn/lattn.h>

size_t number_size(lattn_dtype dtype);
const char *number_name(lattn_dtype dtype);
void number_store(void *to, lattn_dtype dtype, double value); /* rounds to nearest even */
double number_load(const void *from, lattn_dtype dtype);

#endif
