/* The forms of a sample: tables for people, JSON and CSV for programs. Unknown is "-", null and empty, never 0. */
#include "cli/top.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum form { PERCENT, BYTES, RATE, CELSIUS, WATTS, HERTZ, JOULES };
enum { TABLE = TOP_VIEW_TABLE, WIDE = TOP_VIEW_WIDE, DATA = TOP_VIEW_DATA };
enum { CELL_MAX = 128, COLUMNS_MAX = 8 + TOP_VALUE_COUNT, GAP = 3 };

static const struct {
    const char *key, *header;
    enum form form;
    int view;
} values[] = {
#define X(id, key, header, family, scale, form, view) {key, header, form, view},
    TOP_VALUES(X)
#undef X
};

static const char *const kinds[] = {"gpu", "mig_parent", "mig"};

/* ---- tables ---- */

static void format_bytes(char out[CELL_MAX], double value, const char *rest)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < ARRAY_LEN(units)) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(out, CELL_MAX, "%.*f%s%s", unit ? 1 : 0, value, units[unit], rest);
}

static void format_value(char out[CELL_MAX], enum form form, double value)
{
    static const char *const units[] = {
        [PERCENT] = "%", [BYTES] = "", [RATE] = "/s", [CELSIUS] = "C", [WATTS] = "W", [HERTZ] = "MHz", [JOULES] = "J"};
    if (isnan(value))
        (void)snprintf(out, CELL_MAX, "-");
    else if (form == BYTES || form == RATE)
        format_bytes(out, value, units[form]);
    else
        (void)snprintf(out, CELL_MAX, "%.0f%s", form == HERTZ ? value / 1e6 : value, units[form]);
}

static void format_text(char out[CELL_MAX], const char *text)
{
    (void)str_copy(out, CELL_MAX, str_of(*text ? text : "-"));
    for (char *c = out; *c; c++) /* a name must not move the cursor */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
}

/* "0" of a GPU, "0.7.0" (GPU, GPU instance, compute instance) of a MIG device. */
static void format_index(char out[CELL_MAX], const struct top_device *d)
{
    if (d->index < 0)
        (void)snprintf(out, CELL_MAX, "-");
    else if (d->kind == SNAPSHOT_MIG && d->gpu_instance >= 0)
        (void)snprintf(out, CELL_MAX, "%d.%d.%d", d->index, d->gpu_instance, d->compute_instance);
    else
        (void)snprintf(out, CELL_MAX, "%d", d->index);
}

static void format_name(char out[CELL_MAX], const struct top_device *d)
{
    char name[CELL_MAX];
    bool is_mig = d->kind == SNAPSHOT_MIG && *d->mig_profile;
    (void)snprintf(name, sizeof(name), "%s%s", is_mig ? "MIG " : "", is_mig ? d->mig_profile : d->name);
    format_text(out, name);
}

struct table {
    size_t n_columns, n_rows;
    size_t widths[COLUMNS_MAX];
    bool is_number[COLUMNS_MAX]; /* right-aligned */
    VEC(char *) cells;           /* row by row, the header first */
};

/* Characters of UTF-8, which are not its bytes. */
static size_t width_of(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static void add_cell(struct table *t, size_t *column, const char *text, bool is_number)
{
    size_t width = width_of(text);
    t->widths[*column] = width > t->widths[*column] ? width : t->widths[*column];
    t->is_number[*column] = is_number;
    vec_push(&t->cells, mem_strdup(text));
    (*column)++;
}

/* d NULL: the header. */
static void add_row(struct table *t, const struct top_device *d, enum top_view view)
{
    char cell[CELL_MAX];
    size_t column = 0;
    if (d)
        format_index(cell, d);
    add_cell(t, &column, d ? cell : "GPU", false);
    if (d)
        format_name(cell, d);
    add_cell(t, &column, d ? cell : "NAME", false);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++) {
        if (values[i].view > (int)view)
            continue;
        if (d)
            format_value(cell, values[i].form, d->values[i]);
        add_cell(t, &column, d ? cell : values[i].header, true);
    }
    add_cell(t, &column, !d ? "STATUS" : d->is_lost ? "lost" : "ok", false);
    if (view != TOP_VIEW_TABLE) {
        if (d)
            format_text(cell, d->pci_bus_id);
        add_cell(t, &column, d ? cell : "BUS-ID", false);
        if (d)
            format_text(cell, d->uuid);
        add_cell(t, &column, d ? cell : "UUID", false);
    }
    t->n_columns = column;
    t->n_rows++;
}

static void render_cell(const struct table *t, size_t row, size_t column, struct buf *out)
{
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

void top_render_table(const struct top_sample *sample, enum top_view view, bool has_colour, struct buf *out)
{
    struct table t = {0};
    add_row(&t, NULL, view);
    for (size_t i = 0; i < sample->devices.len; i++)
        add_row(&t, &sample->devices.items[i], view);
    for (size_t row = 0; row < t.n_rows; row++) {
        bool is_red = has_colour && row && sample->devices.items[row - 1].is_lost;
        (void)buf_append_str(out, is_red ? "\033[31m" : "");
        for (size_t column = 0; column < t.n_columns; column++)
            render_cell(&t, row, column, out);
        (void)buf_append_str(out, is_red ? "\033[0m\n" : "\n");
    }
    for (size_t i = 0; i < t.cells.len; i++)
        free(t.cells.items[i]);
    vec_fini(&t.cells);
}

/* ---- JSON ---- */

static void kv_text(struct json *j, const char *key, const char *text)
{
    json_kv_string(j, key, *text ? text : NULL);
}

static void kv_number(struct json *j, const char *key, int number)
{
    json_key(j, key);
    if (number < 0)
        json_null(j);
    else
        json_i64(j, number);
}

static void collected_at(const struct top_sample *sample, char out[TIME_RFC3339_MAX])
{
    out[0] = '\0';
    if (sample->collected_ns)
        time_format_rfc3339(out, sample->collected_ns);
}

static void render_device(const struct top_device *d, struct json *j)
{
    json_object_begin(j);
    kv_number(j, "index", d->index);
    kv_text(j, "uuid", d->uuid);
    kv_text(j, "name", d->name);
    json_kv_string(j, "kind", kinds[d->kind]);
    kv_text(j, "parent_uuid", d->parent_uuid);
    kv_number(j, "gpu_instance", d->gpu_instance);
    kv_number(j, "compute_instance", d->compute_instance);
    kv_text(j, "mig_profile", d->mig_profile);
    kv_text(j, "pci_bus_id", d->pci_bus_id);
    kv_text(j, "serial", d->serial);
    json_kv_string(j, "status", d->is_lost ? "lost" : "ok");
    json_kv_double(j, "age_seconds", d->age_seconds);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        json_kv_double(j, values[i].key, d->values[i]);
    json_object_end(j);
}

void top_render_json(const struct top_sample *sample, int indent, struct buf *out)
{
    struct json j;
    char time[TIME_RFC3339_MAX];
    collected_at(sample, time);
    json_init(&j, out, indent);
    json_object_begin(&j);
    json_kv_i64(&j, "schema_version", 1);
    kv_text(&j, "collected_at", time);
    kv_text(&j, "node", sample->node);
    kv_text(&j, "driver_version", sample->driver_version);
    json_kv_string(&j, "driver_state", sample->state);
    json_key(&j, "devices");
    json_array_begin(&j);
    for (size_t i = 0; i < sample->devices.len; i++)
        render_device(&sample->devices.items[i], &j);
    json_array_end(&j);
    json_object_end(&j);
    (void)buf_append_char(out, '\n');
}

/* ---- CSV ---- */

void top_render_csv_header(struct buf *out)
{
    (void)buf_append_str(out, "collected_at,node,driver_version,index,uuid,name,kind,parent_uuid,gpu_instance,"
                              "compute_instance,mig_profile,pci_bus_id,serial,status,age_seconds");
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        (void)buf_printf(out, ",%s", values[i].key);
    (void)buf_append_char(out, '\n');
}

/* Quoted where it must be; quotes are doubled. RFC 4180, 2.5 to 2.7 */
static void csv_text(struct buf *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        (void)buf_append_str(out, text);
        return;
    }
    (void)buf_append_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            (void)buf_append_char(out, '"');
        (void)buf_append_char(out, *text);
    }
    (void)buf_append_char(out, '"');
}

static void csv_number(struct buf *out, double value)
{
    char text[NUM_TEXT_MAX];
    (void)buf_append_char(out, ',');
    if (isnan(value))
        return;
    num_format_double(text, value);
    (void)buf_append_str(out, text);
}

static double or_nan(int number)
{
    return number < 0 ? (double)NAN : number;
}

static void csv_row(const struct top_sample *sample, const struct top_device *d, struct buf *out)
{
    char time[TIME_RFC3339_MAX];
    collected_at(sample, time);
    csv_text(out, time);
    const char *const before[] = {sample->node, sample->driver_version};
    for (size_t i = 0; i < ARRAY_LEN(before); i++) {
        (void)buf_append_char(out, ',');
        csv_text(out, before[i]);
    }
    csv_number(out, or_nan(d->index));
    const char *const texts[] = {d->uuid, d->name, kinds[d->kind], d->parent_uuid};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        (void)buf_append_char(out, ',');
        csv_text(out, texts[i]);
    }
    csv_number(out, or_nan(d->gpu_instance));
    csv_number(out, or_nan(d->compute_instance));
    const char *const more[] = {d->mig_profile, d->pci_bus_id, d->serial, d->is_lost ? "lost" : "ok"};
    for (size_t i = 0; i < ARRAY_LEN(more); i++) {
        (void)buf_append_char(out, ',');
        csv_text(out, more[i]);
    }
    csv_number(out, d->age_seconds);
    for (size_t i = 0; i < TOP_VALUE_COUNT; i++)
        csv_number(out, d->values[i]);
    (void)buf_append_char(out, '\n');
}

void top_render_csv(const struct top_sample *sample, struct buf *out)
{
    for (size_t i = 0; i < sample->devices.len; i++)
        csv_row(sample, &sample->devices.items[i], out);
}
