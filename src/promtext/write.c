/* Writing Prometheus text 0.0.4 and OpenMetrics 1.0. ecosystem notes: HELP and TYPE order and the `_total` of counters
 * differ between the two; label values and help texts are made valid UTF-8, for one bad byte fails a whole scrape. */
#include "promtext/promtext.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const type_names[2][6] = {
    [PROMTEXT_TEXT] = {"gauge", "counter", "histogram", "gauge", "untyped", "counter"},
    [PROMTEXT_OPENMETRICS] = {"gauge", "counter", "histogram", "info", "unknown", "unknown"},
};

void promtext_init(struct promtext *p, struct buf *out, enum promtext_format format)
{
    *p = (struct promtext){.out = out, .format = format};
}

/* Text with its escapes; bytes that are no UTF-8 become U+FFFD; CR, which Prometheus cannot parse, a space. */
static void append_escaped(struct buf *out, const char *text, bool is_quote_escaped)
{
    for (size_t len = strlen(text), i = 0; i < len;) {
        unsigned char c = (unsigned char)text[i];
        size_t sequence = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        if (sequence > len - i || !str_is_utf8((struct str){text + i, sequence})) {
            (void)buf_append_str(out, "\xEF\xBF\xBD");
            sequence = 1;
        } else if (c == '\\' || c == '\n' || (c == '"' && is_quote_escaped)) {
            (void)buf_append_str(out, c == '\n' ? "\\n" : c == '"' ? "\\\"" : "\\\\");
        } else {
            (void)buf_append(out, c == '\r' ? " " : text + i, sequence);
        }
        i += sequence;
    }
}

/* In text 0.0.4 the metadata carries the name of the samples (x_total, x_info), in OpenMetrics the family's. */
static const char *metadata_suffix(const struct promtext *p)
{
    if (p->format == PROMTEXT_OPENMETRICS)
        return "";
    return p->family->type == PROMTEXT_COUNTER ? "_total" : p->family->type == PROMTEXT_INFO ? "_info" : "";
}

static void append_help(struct promtext *p)
{
    (void)buf_printf(p->out, "# HELP %s%s ", p->family->name, metadata_suffix(p));
    append_escaped(p->out, p->family->help, p->format == PROMTEXT_OPENMETRICS);
    (void)buf_append_char(p->out, '\n');
}

void promtext_begin(struct promtext *p, const struct promtext_family *family)
{
    p->family = family;
    p->is_announced = false;
}

static void announce(struct promtext *p)
{
    const struct promtext_family *family = p->family;
    if (p->is_announced)
        return;
    p->is_announced = true;
    if (p->format == PROMTEXT_TEXT)
        append_help(p);
    (void)buf_printf(p->out, "# TYPE %s%s %s\n", family->name, metadata_suffix(p), type_names[p->format][family->type]);
    if (p->format == PROMTEXT_OPENMETRICS) {
        if (family->unit && family->type != PROMTEXT_INFO)
            (void)buf_printf(p->out, "# UNIT %s %s\n", family->name, family->unit);
        append_help(p);
    }
}

static void append_labels(struct promtext *p, const struct promtext_label *labels, size_t n, const char *le)
{
    bool is_first = true;
    for (size_t i = 0; i < n; i++) {
        if (!labels[i].value || !*labels[i].value)
            continue;
        (void)buf_printf(p->out, "%c%s=\"", is_first ? '{' : ',', labels[i].name);
        append_escaped(p->out, labels[i].value, true);
        (void)buf_append_char(p->out, '"');
        is_first = false;
    }
    if (le) {
        (void)buf_printf(p->out, "%cle=\"%s\"", is_first ? '{' : ',', le);
        is_first = false;
    }
    if (!is_first)
        (void)buf_append_char(p->out, '}');
}

static void append_line(struct promtext *p, const char *suffix, const struct promtext_label *labels, size_t n,
                        const char *le, double value)
{
    char number[NUM_TEXT_MAX];
    announce(p);
    num_format_double(number, value);
    (void)buf_printf(p->out, "%s%s", p->family->name, suffix);
    append_labels(p, labels, n, le);
    (void)buf_printf(p->out, " %s\n", number);
}

void promtext_sample(struct promtext *p, const struct promtext_label *labels, size_t n_labels, double value)
{
    if (isnan(value))
        return;
    const char *suffix = p->family->type == PROMTEXT_COUNTER ? "_total"
                         : p->family->type == PROMTEXT_INFO  ? "_info"
                                                             : "";
    append_line(p, suffix, labels, n_labels, NULL, value);
}

/* `le` is a canonical float in OpenMetrics ("1.0"), the shortest form in text ("1"). */
static void format_bound(const struct promtext *p, double bound, char out[NUM_TEXT_MAX])
{
    num_format_double(out, bound);
    bool is_whole = strspn(out, "-0123456789") == strlen(out);
    if (p->format == PROMTEXT_OPENMETRICS && is_whole && strlen(out) + 3 < NUM_TEXT_MAX)
        memcpy(out + strlen(out), ".0", 3);
}

void promtext_histogram(struct promtext *p, const struct promtext_label *labels, size_t n_labels,
                        const struct promtext_histogram *h)
{
    char le[NUM_TEXT_MAX];
    for (size_t i = 0; i < h->n_bounds; i++) {
        format_bound(p, h->bounds[i], le);
        append_line(p, "_bucket", labels, n_labels, le, h->cumulative[i]);
    }
    append_line(p, "_bucket", labels, n_labels, "+Inf", h->count);
    append_line(p, "_sum", labels, n_labels, NULL, h->sum);
    append_line(p, "_count", labels, n_labels, NULL, h->count);
}

void promtext_end(struct promtext *p)
{
    if (p->format == PROMTEXT_OPENMETRICS)
        (void)buf_append_str(p->out, "# EOF\n");
}

/* ---- negotiation ---- */

/* q of one Accept element, 1 when absent or unreadable. */
static double quality(struct str element)
{
    (void)str_cut(&element, ';');
    while (element.ptr) {
        struct str value = str_trim(str_cut(&element, ';')), key = str_cut(&value, '=');
        double q;
        if (str_equals_nocase(str_trim(key), "q") && value.ptr && num_parse_double(str_trim(value), &q) == 0)
            return q;
    }
    return 1;
}

/* What of ours one element names; -1 nothing. Versions other than 1.0.0 and 0.0.1 of OpenMetrics are not ours. */
static int format_of(struct str element)
{
    struct str type = str_trim(str_cut(&element, ';'));
    if (str_equals_nocase(type, "text/plain") || str_equals(type, "*/*") || str_equals_nocase(type, "text/*"))
        return PROMTEXT_TEXT;
    if (!str_equals_nocase(type, "application/openmetrics-text"))
        return -1;
    while (element.ptr) {
        struct str value = str_trim(str_cut(&element, ';')), key = str_cut(&value, '=');
        if (str_equals_nocase(str_trim(key), "version") && value.ptr && !str_equals(str_trim(value), "1.0.0"))
            return -1;
    }
    return PROMTEXT_OPENMETRICS;
}

enum promtext_format promtext_negotiate(struct str accept)
{
    double best[2] = {0, 0};
    while (accept.ptr) {
        struct str element = str_cut(&accept, ',');
        int format = format_of(element);
        double q = format < 0 ? 0 : quality(element);
        if (format >= 0 && q > best[format])
            best[format] = q;
    }
    return best[PROMTEXT_OPENMETRICS] > 0 && best[PROMTEXT_OPENMETRICS] >= best[PROMTEXT_TEXT] ? PROMTEXT_OPENMETRICS
                                                                                               : PROMTEXT_TEXT;
}

const char *promtext_content_type(enum promtext_format format)
{
    return format == PROMTEXT_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores"
               : "text/plain; version=0.0.4; charset=utf-8";
}
