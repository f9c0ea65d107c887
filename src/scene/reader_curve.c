/* Numbers and curves: a constant, {step}, {ramp}, {sine}, {noise}, {csv}. Values are checked against their range here,
 * so that playing never clamps and every integral stays exact. */
#include "scene/reader.h"

#include <math.h>
#include <string.h>

enum { TIME_MAX_S = 1000000000 };

struct curve_nodes {
    const struct tree_node *step, *ramp, *sine, *noise, *csv, *loop, *column, *interpolate, *scale;
};

static const struct key_rule curve_rules[] = {
    {"step", reader_defer, offsetof(struct curve_nodes, step)},
    {"ramp", reader_defer, offsetof(struct curve_nodes, ramp)},
    {"sine", reader_defer, offsetof(struct curve_nodes, sine)},
    {"noise", reader_defer, offsetof(struct curve_nodes, noise)},
    {"csv", reader_defer, offsetof(struct curve_nodes, csv)},
    {"loop", reader_defer, offsetof(struct curve_nodes, loop)},
    {"column", reader_defer, offsetof(struct curve_nodes, column)},
    {"interpolate", reader_defer, offsetof(struct curve_nodes, interpolate)},
    {"scale", reader_defer, offsetof(struct curve_nodes, scale)},
};

static int finish_points(struct reader *r, const struct tree_node *node, struct curve *c, struct curve_point *points,
                         size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (points[i].t_s <= points[i - 1].t_s)
            return reader_error(r, node, "times must rise: %g comes after %g", points[i].t_s, points[i - 1].t_s);
    curve_measure(c->kind, points, n);
    c->points = points;
    c->n_points = n;
    return 0;
}

static int read_points(struct reader *r, const struct tree_node *node, struct curve *c)
{
    if (reader_list(r, node, "the curve", SCENE_POINTS_MAX) < 0)
        return -1;
    if (node->n_children == 0)
        return reader_error(r, node, "the curve needs at least one [time, value]");
    struct curve_point *points = (struct curve_point *)reader_alloc(r, node, node->n_children, sizeof(*points));
    size_t n = 0;
    for (const struct tree_node *item = node->first; points && item; item = item->next, n++) {
        if (item->kind != TREE_LIST || item->n_children != 2)
            return reader_error(r, item, "must be [time in seconds, value]");
        if (reader_double(r, item->first, 0, TIME_MAX_S, &points[n].t_s) < 0 ||
            reader_double(r, item->first->next, -1e15, 1e15, &points[n].value) < 0)
            return -1;
        if (n && points[n].t_s <= points[n - 1].t_s)
            return reader_error(r, item, "times must rise: %g comes after %g", points[n].t_s, points[n - 1].t_s);
    }
    return points ? finish_points(r, node, c, points, n) : -1;
}

static int read_wave_number(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    bool is_time = param == offsetof(struct curve, period_s) || param == offsetof(struct curve, phase_s);
    double lowest = param == offsetof(struct curve, period_s) ? 1e-3 : is_time ? 0 : -1e15;
    return reader_double(r, node, lowest, is_time ? TIME_MAX_S : 1e15, (double *)(void *)((char *)target + param));
}

static const struct key_rule sine_rules[] = {
    {"mean", read_wave_number, offsetof(struct curve, mean)},
    {"amplitude", read_wave_number, offsetof(struct curve, amplitude)},
    {"period", read_wave_number, offsetof(struct curve, period_s)},
    {"phase", read_wave_number, offsetof(struct curve, phase_s)},
};
static const struct key_rule noise_rules[] = {
    {"mean", read_wave_number, offsetof(struct curve, mean)},
    {"amplitude", read_wave_number, offsetof(struct curve, amplitude)},
    {"every", read_wave_number, offsetof(struct curve, period_s)},
};

static int read_sine(struct reader *r, const struct tree_node *node, struct curve *c)
{
    if (reader_map(r, node, "sine", sine_rules, ARRAY_LEN(sine_rules), c) < 0)
        return -1;
    return c->period_s > 0 ? 0 : reader_error(r, node, "sine needs a period in seconds");
}

uint32_t reader_next_noise(struct reader *r)
{
    return (uint32_t)(curve_hash(r->seed + r->n_noises++) % 1024);
}

static int read_noise(struct reader *r, const struct tree_node *node, struct curve *c)
{
    c->period_s = 1;
    c->noise_offset = reader_next_noise(r);
    return reader_map(r, node, "noise", noise_rules, ARRAY_LEN(noise_rules), c);
}

/* One CSV file on its way into points: which column, and by what its values are multiplied. */
struct csv {
    struct str rest;
    const char *column; /* NULL = the second */
    size_t at, line;
    double scale;
};

static struct str csv_cell(struct str line, size_t at)
{
    struct str cell = {NULL, 0};
    for (size_t i = 0; i <= at && line.ptr; i++)
        cell = i == at ? str_trim(str_cut(&line, ',')) : (str_cut(&line, ','), cell);
    return cell;
}

/* The first line may hold names; otherwise it is data already. */
static int csv_header(struct reader *r, const struct tree_node *node, struct csv *csv)
{
    struct str copy = csv->rest, line = str_cut(&copy, '\n');
    double number;
    csv->at = 1;
    if (num_parse_double(csv_cell(line, 0), &number) == 0)
        return csv->column
                   ? reader_error(r, node, "%s has no header line to look for column `%s` in", node->text, csv->column)
                   : 0;
    csv->rest = copy;
    csv->line = 1;
    if (!csv->column)
        return 0;
    for (csv->at = 0;; csv->at++) {
        struct str cell = csv_cell(line, csv->at);
        if (!cell.ptr)
            return reader_error(r, node, "%s has no column `%s`", node->text, csv->column);
        if (str_equals(cell, csv->column))
            return 0;
    }
}

static int csv_points(struct reader *r, const struct tree_node *node, struct csv *csv, struct curve *c)
{
    size_t n_lines = 1, n = 0;
    for (size_t i = 0; i < csv->rest.len; i++)
        n_lines += csv->rest.ptr[i] == '\n';
    if (n_lines > SCENE_POINTS_MAX + 1)
        return reader_error(r, node, "%s has more than %d lines", node->text, SCENE_POINTS_MAX);
    struct curve_point *points = (struct curve_point *)reader_alloc(r, node, n_lines, sizeof(*points));
    while (points && csv->rest.ptr) {
        struct str line = str_trim(str_cut(&csv->rest, '\n'));
        csv->line++;
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        struct curve_point *p = &points[n++];
        if (num_parse_double(csv_cell(line, 0), &p->t_s) < 0 || p->t_s < 0 || p->t_s > TIME_MAX_S ||
            num_parse_double(csv_cell(line, csv->at), &p->value) < 0 || fabs(p->value) > 1e15)
            return reader_error(r, node, "%s line %zu: must be a time in seconds, a comma and a number", node->text,
                                csv->line);
        p->value *= csv->scale;
    }
    if (points && n == 0)
        return reader_error(r, node, "%s has no data", node->text);
    return points ? finish_points(r, node, c, points, n) : -1;
}

static int read_csv(struct reader *r, const struct curve_nodes *nodes, struct curve *c)
{
    const struct tree_node *node = nodes->csv;
    static const char *const ways[] = {"step", "linear"};
    struct csv csv = {.scale = 1};
    size_t way = 0;
    const char *path = reader_text(r, node, 255);
    if (!path || (nodes->interpolate && reader_choice(r, nodes->interpolate, ways, 2, &way) < 0) ||
        (nodes->scale && reader_double(r, nodes->scale, -1e9, 1e9, &csv.scale) < 0))
        return -1;
    if (nodes->column && !(csv.column = reader_text(r, nodes->column, 64)))
        return -1;
    c->kind = way ? CURVE_RAMP : CURVE_STEP;
    BUF_AUTO struct buf text;
    buf_init(&text, SCENE_CSV_BYTES_MAX);
    struct err why = {0};
    if (!r->read_file)
        return reader_error(r, node, "CSV files cannot be read here");
    if (r->read_file(r->context, path, &text, &why) < 0)
        return reader_error(r, node, "%s", why.text);
    csv.rest = (struct str){text.data ? text.data : "", text.len};
    if (csv_header(r, node, &csv) < 0)
        return -1;
    return csv_points(r, node, &csv, c);
}

static int read_loop(struct reader *r, const struct tree_node *node, struct curve *c)
{
    bool is_on = false;
    if (!c->points)
        return reader_error(r, node, "loop is for step, ramp and csv");
    double last = c->points[c->n_points - 1].t_s, number;
    if (node->kind == TREE_SCALAR && num_parse_double(str_of(node->text), &number) == 0)
        return reader_double(r, node, last > 1e-3 ? last : 1e-3, TIME_MAX_S, &c->loop_s);
    if (reader_bool(r, node, &is_on) < 0)
        return -1;
    if (is_on && !(last >= 1e-3))
        return reader_error(r, node, "loop: true repeats at the last point's time, which is 0");
    c->loop_s = is_on ? last : 0;
    return 0;
}

static int read_kind(struct reader *r, const struct tree_node *node, const struct curve_nodes *n, struct curve *c)
{
    int kinds = !!n->step + !!n->ramp + !!n->sine + !!n->noise + !!n->csv;
    if (kinds != 1)
        return reader_error(r, node, "a curve needs exactly one of step, ramp, sine, noise, csv");
    if ((n->column || n->interpolate || n->scale) && !n->csv)
        return reader_error(r, node, "column, interpolate and scale are for csv");
    c->kind = n->step ? CURVE_STEP : n->ramp ? CURVE_RAMP : n->sine ? CURVE_SINE : CURVE_NOISE;
    if (n->csv)
        return read_csv(r, n, c);
    if (n->sine)
        return read_sine(r, n->sine, c);
    if (n->noise)
        return read_noise(r, n->noise, c);
    return read_points(r, n->step ? n->step : n->ramp, c);
}

int reader_curve(struct reader *r, const struct tree_node *node, double lowest, double highest, struct curve *ret)
{
    struct curve c = {.kind = CURVE_CONSTANT};
    if (node->kind == TREE_SCALAR) {
        if (reader_double(r, node, lowest, highest, &c.mean) < 0)
            return -1;
        *ret = c;
        return 0;
    }
    struct curve_nodes nodes = {0};
    if (reader_map(r, node, "a curve", curve_rules, ARRAY_LEN(curve_rules), &nodes) < 0 ||
        read_kind(r, node, &nodes, &c) < 0 || (nodes.loop && read_loop(r, nodes.loop, &c) < 0))
        return -1;
    double low, high;
    curve_bounds(&c, &low, &high);
    if (low < lowest || high > highest)
        return reader_error(r, node, "the curve goes from %g to %g; allowed is %g to %g", low, high, lowest, highest);
    *ret = c;
    return 0;
}
