/* Cells in, aligned lines out. What stands in the cells is the caller's. */
#include "cli/table.h"

#include <assert.h>
#include <stdlib.h>

enum { GAP = 3 };

void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->cells.len; i++)
        free(t->cells.items[i]);
    vec_fini(&t->cells);
}

/* Characters of UTF-8, which are not its bytes. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

void table_cell(struct table *t, const char *text, bool is_number)
{
    assert(t->at < TABLE_COLUMNS_MAX);
    char *cell = mem_strdup(*text ? text : "-");
    for (char *c = cell; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    size_t width = width_of(cell);
    t->widths[t->at] = width > t->widths[t->at] ? width : t->widths[t->at];
    t->is_number[t->at++] = is_number;
    vec_push(&t->cells, cell);
}

void table_end_row(struct table *t)
{
    assert(!t->n_columns || t->n_columns == t->at);
    t->n_columns = t->at;
    t->at = 0;
}

void table_render_row(const struct table *t, size_t row, struct buf *out)
{
    for (size_t column = 0; column < t->n_columns; column++) {
        const char *text = t->cells.items[row * t->n_columns + column];
        int pad = (int)(t->widths[column] - width_of(text));
        bool is_last = column + 1 == t->n_columns;
        if (t->is_number[column])
            (void)buf_printf(out, "%*s%s", pad, "", text);
        else
            (void)buf_printf(out, "%s%*s", text, is_last ? 0 : pad, "");
        if (!is_last)
            (void)buf_printf(out, "%*s", GAP, "");
    }
}

size_t table_row_count(const struct table *t)
{
    return t->n_columns ? t->cells.len / t->n_columns : 0;
}
