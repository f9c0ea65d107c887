/* Columns for people: as wide as their widest cell, counted in characters; nothing is cut. Private to cli. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 48 };

/* All zero is an empty one. */
struct table {
    size_t n_columns, at; /* at: the column of the next cell */
    size_t widths[TABLE_COLUMNS_MAX];
    bool is_number[TABLE_COLUMNS_MAX]; /* right-aligned */
    VEC(char *) cells;                 /* row by row, the header first */
};
void table_fini(struct table *t);

/* The next cell of the row; control characters become "?", "" becomes "-": a name must not move the cursor. Every row
 * has the columns of the first. */
void table_cell(struct table *t, const char *text, bool is_number);
void table_end_row(struct table *t);

/* One row as a line without its end; row 0 is the header. */
void table_render_row(const struct table *t, size_t row, struct buf *out);
size_t table_row_count(const struct table *t);

#endif
