/* What both formats demand of a page, as one check: the rules of text 0.0.4 and OpenMetrics 1.0 that a scraper refuses
 * a page for, and those that promtool complains about. Fails the test with the line that breaks one. */
#ifndef TEST_PROMTEXT_PAGE_H
#define TEST_PROMTEXT_PAGE_H

#include "promtext/promtext.h"

#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_NAMES_MAX = 512, PAGE_SERIES_MAX = 8192 };

struct page_check {
    enum promtext_format format;
    struct str line;
    struct str families[PAGE_NAMES_MAX];
    size_t n_families, n_samples; /* of the current family */
    bool has_help, has_type, has_unit;
    struct str type;
    struct str series[PAGE_SERIES_MAX];
    size_t n_series;
    double bucket; /* of the last line, where that is one; else NaN */
};

#define PAGE_FAIL(c, rule) fail_msg("%s: %.*s", (rule), (int)(c)->line.len, (c)->line.ptr)
#define PAGE_DEMAND(c, condition)                                                                                      \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            PAGE_FAIL((c), #condition);                                                                                \
    } while (0)

static inline bool page_is_same(struct str a, struct str b)
{
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

static inline bool page_is_name(struct str name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (size_t i = 0; i < name.len; i++)
        if (!strchr(allowed, name.ptr[i]))
            return false;
    return name.len > 0 && !(name.ptr[0] >= '0' && name.ptr[0] <= '9');
}

/* The family that samples must belong to; a new one ends the old one. */
static inline void page_enter(struct page_check *c, struct str name)
{
    if (c->n_families > 0 && page_is_same(c->families[c->n_families - 1], name))
        return;
    PAGE_DEMAND(c, c->n_families == 0 || (c->n_samples > 0 && c->has_help && c->has_type));
    for (size_t i = 0; i < c->n_families; i++)
        PAGE_DEMAND(c, !page_is_same(c->families[i], name)); /* each family once */
    PAGE_DEMAND(c, c->n_families < PAGE_NAMES_MAX && page_is_name(name));
    c->families[c->n_families++] = name;
    c->n_samples = 0;
    c->has_help = c->has_type = c->has_unit = false;
    c->bucket = (double)NAN;
}

static inline void page_check_comment(struct page_check *c)
{
    struct str rest = {c->line.ptr + 2, c->line.len - 2};
    struct str word = str_cut(&rest, ' '), name = str_cut(&rest, ' ');
    PAGE_DEMAND(c, rest.ptr && rest.len > 0);
    page_enter(c, name);
    PAGE_DEMAND(c, c->n_samples == 0);
    bool is_open_metrics = c->format == PROMTEXT_OPENMETRICS;
    if (str_equals(word, "HELP")) {
        PAGE_DEMAND(c, !c->has_help && (c->has_type || !is_open_metrics));
        c->has_help = true;
    } else if (str_equals(word, "TYPE")) {
        PAGE_DEMAND(c, !c->has_type);
        c->has_type = true;
        c->type = rest;
    } else {
        PAGE_DEMAND(c, str_equals(word, "UNIT") && is_open_metrics && c->has_type && !c->has_help && !c->has_unit);
        PAGE_DEMAND(c, name.len > rest.len && name.ptr[name.len - rest.len - 1] == '_' &&
                           memcmp(name.ptr + name.len - rest.len, rest.ptr, rest.len) == 0);
        c->has_unit = true;
    }
}

/* {name="value",...}, each name once, values not empty. Returns where it ends. */
static inline size_t page_check_labels(const struct page_check *c, size_t at)
{
    const struct str *l = &c->line;
    struct str names[16];
    size_t n = 0;
    for (;;) {
        size_t start = at + 1;
        const char *equals = memchr(l->ptr + start, '=', l->len - start);
        PAGE_DEMAND(c, equals && n < ARRAY_LEN(names));
        names[n] = (struct str){l->ptr + start, (size_t)(equals - l->ptr) - start};
        PAGE_DEMAND(c, page_is_name(names[n]));
        for (size_t i = 0; i < n; i++)
            PAGE_DEMAND(c, !page_is_same(names[i], names[n]));
        n++;
        at = (size_t)(equals - l->ptr) + 1;
        PAGE_DEMAND(c, at + 1 < l->len && l->ptr[at] == '"' && l->ptr[at + 1] != '"');
        for (at++; at < l->len && l->ptr[at] != '"'; at++)
            if (l->ptr[at] == '\\') {
                at++;
                PAGE_DEMAND(c, at < l->len && strchr("\\\"n", l->ptr[at]));
            }
        PAGE_DEMAND(c, at + 1 < l->len);
        at++;
        if (l->ptr[at] == '}')
            return at + 1;
        PAGE_DEMAND(c, l->ptr[at] == ',');
    }
}

/* Is it the family's name with a suffix that its type allows in this format? Those of dcgm-exporter have their own. */
static inline bool page_is_of_family(const struct page_check *c, struct str name)
{
    static const struct {
        const char *type, *suffixes[4];
    } rows[] = {
        {"counter", {"_total"}}, {"info", {"_info"}}, {"histogram", {"_bucket", "_sum", "_count"}},
        {"gauge", {""}},         {"unknown", {""}},   {"untyped", {""}},
    };
    struct str family = c->families[c->n_families - 1];
    if (name.len < family.len || memcmp(name.ptr, family.ptr, family.len) != 0)
        return false;
    struct str suffix = {name.ptr + family.len, name.len - family.len};
    bool is_counter_of_text = c->format == PROMTEXT_TEXT && str_equals(c->type, "counter");
    if (is_counter_of_text)
        return suffix.len == 0 && (str_has_suffix(name, "_total") || str_has_prefix(name, "DCGM_FI_"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (size_t k = 0; str_equals(c->type, rows[i].type) && k < 4 && rows[i].suffixes[k]; k++)
            if (str_equals(suffix, rows[i].suffixes[k]))
                return true;
    return false;
}

static inline void page_check_value(struct page_check *c, struct str name, struct str text)
{
    double value = 0;
    PAGE_DEMAND(c, num_parse_double(text, &value) == 0); /* NaN and Inf have no place on our pages */
    bool is_count = str_equals(c->type, "counter") || str_has_suffix(name, "_bucket") || str_has_suffix(name, "_count");
    PAGE_DEMAND(c, !is_count || value >= 0);
    bool is_bucket = str_equals(c->type, "histogram") && str_has_suffix(name, "_bucket");
    PAGE_DEMAND(c, !is_bucket || isnan(c->bucket) || value >= c->bucket);
    if (str_equals(c->type, "histogram") && str_has_suffix(name, "_count"))
        PAGE_DEMAND(c, !(value < c->bucket) && !(value > c->bucket)); /* +Inf is the last bucket */
    if (is_bucket)
        c->bucket = value;
    else if (str_has_suffix(name, "_count"))
        c->bucket = (double)NAN; /* the next series begins */
}

static inline void page_check_sample(struct page_check *c)
{
    size_t name_len = 0;
    while (name_len < c->line.len && c->line.ptr[name_len] != '{' && c->line.ptr[name_len] != ' ')
        name_len++;
    struct str name = {c->line.ptr, name_len};
    PAGE_DEMAND(c, c->n_families > 0 && c->has_type && page_is_of_family(c, name));
    size_t at = name_len < c->line.len && c->line.ptr[name_len] == '{' ? page_check_labels(c, name_len) : name_len;
    PAGE_DEMAND(c, at < c->line.len && c->line.ptr[at] == ' ');
    page_check_value(c, name, (struct str){c->line.ptr + at + 1, c->line.len - at - 1});
    struct str series = {c->line.ptr, at};
    PAGE_DEMAND(c, c->n_series < PAGE_SERIES_MAX);
    for (size_t i = 0; i < c->n_series; i++)
        PAGE_DEMAND(c, !page_is_same(c->series[i], series)); /* each series once */
    c->series[c->n_series++] = series;
    c->n_samples++;
}

/* Check a whole page. Returns how many families it has. */
static inline size_t page_check(struct str page, enum promtext_format format)
{
    struct page_check *c = calloc(1, sizeof(*c));
    assert_non_null(c);
    c->format = format;
    assert_true(page.len > 0 && page.ptr[page.len - 1] == '\n' && str_is_utf8(page));
    assert_null(memchr(page.ptr, '\r', page.len));
    struct str rest = {page.ptr, page.len - 1};
    bool has_ended = false;
    while (rest.ptr) {
        c->line = str_cut(&rest, '\n');
        PAGE_DEMAND(c, c->line.len > 0 && !has_ended);
        if (format == PROMTEXT_OPENMETRICS && str_equals(c->line, "# EOF"))
            has_ended = true;
        else if (str_has_prefix(c->line, "# "))
            page_check_comment(c);
        else
            page_check_sample(c);
    }
    PAGE_DEMAND(c, has_ended == (format == PROMTEXT_OPENMETRICS));
    PAGE_DEMAND(c, c->n_families == 0 || (c->n_samples > 0 && c->has_help && c->has_type));
    size_t n = c->n_families;
    free(c);
    return n;
}

#endif
