/* A table that people can read, or the same rows as JSON. */
#ifndef LATTN_TOOLS_TABLE_H
#define LATTN_TOOLS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

enum table_place {
    TABLE_LEFT,  /* a column, set to the left */
    TABLE_RIGHT, /* a column, set to the right */
    TABLE_NOTE,  /* on a line of its own under the row, unless it is empty */
    TABLE_JSON,  /* in JSON alone */
};

struct table_column {
    const char *key;     /* in JSON */
    const char *heading; /* for people */
    enum table_place place;
};

struct table;

/* NULL when out of memory, which later calls take as a table to ignore. `columns` ends with a key
 * of NULL and outlives the table. */
struct table *table_new(const struct table_column *columns);
void table_free(struct table *table);

/* Each adds one cell; a row is full when it has one for each column. */
void table_text(struct table *table, const char *text);
void table_integer(struct table *table, int64_t value);
/* A size: in GiB for people, blank if it is 0. */
void table_bytes(struct table *table, uint64_t bytes);
void table_flag(struct table *table, bool value);
/* `format` is for people and takes a double. What is not finite is null in JSON. */
void table_real(struct table *table, const char *format, double value);
void table_none(struct table *table);

/* Prints to stdout; false when it could not. */
bool table_print(const struct table *table, bool json);

#endif
