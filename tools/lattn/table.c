#include "table.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cell {
    char *text;
    json_t *value;
};

struct table {
    const struct table_column *columns;
    size_t width;
    struct cell *cells;
    size_t count, room;
    bool broken; /* ran out of memory */
};

struct table *table_new(const struct table_column *columns)
{
    struct table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->columns = columns;
    while (columns[table->width].key)
        table->width++;
    return table;
}

void table_free(struct table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->count; i++) {
        free(table->cells[i].text);
        json_decref(table->cells[i].value);
    }
    free(table->cells);
    free(table);
}

/* Takes `value`. */
static void add(struct table *table, const char *text, json_t *value)
{
    if (table && table->count == table->room) {
        size_t room = table->room * 2 + 64;
        struct cell *cells = realloc(table->cells, room * sizeof(*cells));
        if (cells) {
            table->cells = cells;
            table->room = room;
        }
    }
    char *copy = strdup(text);
    if (!table || !copy || !value || table->count == table->room) {
        free(copy);
        json_decref(value);
        if (table)
            table->broken = true;
        return;
    }
    table->cells[table->count++] = (struct cell){copy, value};
}

void table_text(struct table *table, const char *text)
{
    json_t *value = json_string(text);
    /* What a driver calls its device need not be UTF-8. */
    add(table, text, value ? value : json_string("?"));
}

void table_integer(struct table *table, int64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRId64, value);
    add(table, text, json_integer(value));
}

void table_bytes(struct table *table, uint64_t bytes)
{
    char text[32] = "";
    if (bytes > 0)
        snprintf(text, sizeof(text), "%.1f GiB", (double)bytes / (1 << 30));
    add(table, text, json_integer((json_int_t)bytes));
}

void table_flag(struct table *table, bool value)
{
    add(table, value ? "yes" : "no", json_boolean(value));
}

void table_real(struct table *table, const char *format, double value)
{
    char text[64];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), format, value);
#pragma GCC diagnostic pop
    add(table, text, isfinite(value) ? json_real(value) : json_null());
}

void table_none(struct table *table)
{
    add(table, "", json_null());
}

static bool print_json(const struct table *table)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < table->count; i += table->width) {
        json_t *row = json_object();
        for (size_t c = 0; c < table->width; c++)
            json_object_set(row, table->columns[c].key, table->cells[i + c].value);
        json_array_append_new(rows, row);
    }
    int bad = json_dumpf(rows, stdout, JSON_INDENT(2));
    json_decref(rows);
    putchar('\n');
    return bad == 0;
}

static bool is_column(const struct table_column *column)
{
    return column->place == TABLE_LEFT || column->place == TABLE_RIGHT;
}

static size_t column_width(const struct table *table, size_t column)
{
    size_t width = strlen(table->columns[column].heading);
    for (size_t i = column; i < table->count; i += table->width) {
        size_t length = strlen(table->cells[i].text);
        width = length > width ? length : width;
    }
    return width;
}

/* The cells of a row, or with NULL the headings, without blanks at the end of the line. */
static void print_line(const struct table *table, const struct cell *row)
{
    size_t blanks = 0;
    for (size_t c = 0; c < table->width; c++) {
        const struct table_column *column = &table->columns[c];
        if (!is_column(column))
            continue;
        const char *text = row ? row[c].text : column->heading;
        size_t pad = column_width(table, c) - strlen(text);
        blanks += column->place == TABLE_RIGHT ? pad : 0;
        if (*text) {
            printf("%*s%s", (int)blanks, "", text);
            blanks = 0;
        }
        blanks += 2 + (column->place == TABLE_LEFT ? pad : 0);
    }
    putchar('\n');
}

bool table_print(const struct table *table, bool json)
{
    if (!table || table->broken) {
        fputs("lattn: out of memory for a table\n", stderr);
        return false;
    }
    if (json)
        return print_json(table);
    print_line(table, NULL);
    for (size_t i = 0; i < table->count; i += table->width) {
        print_line(table, &table->cells[i]);
        for (size_t c = 0; c < table->width; c++) {
            if (table->columns[c].place == TABLE_NOTE && table->cells[i + c].text[0])
                printf("    %s\n", table->cells[i + c].text);
        }
    }
    return true;
}
