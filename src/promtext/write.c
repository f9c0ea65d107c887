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

enum { SHARED_MAX = 65536 };

void promtext_init(struct promtext *p, struct buf *out, enum promtext_format format)
{
    *p = (struct promtext){.out = out, .format = format};
}

/* ---- pieces ---- */

static void append(struct buf *out, const char *text)
{
    (void)buf_append(out, text, strlen(text));
}

/* How far the text stands as it is: printable ASCII without quotes and backslashes. */
static size_t plain_length(const char *text)
{
    size_t n = 0;
    while (text[n] >= ' ' && text[n] <= '~' && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

/* Text with its escapes; bytes that are no UTF-8 become U+FFFD; CR, which Prometheus cannot parse, a space. */
static void append_escaped(struct buf *out, const char *text, bool is_quote_escaped)
{
    size_t i = plain_length(text), len = i + strlen(text + i);
    (void)buf_append(out, text, i);
    while (i < len) {
        unsigned char c = (unsigned char)text[i];
        size_t sequence = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        if (sequence > len - i || !str_is_utf8((struct str){text + i, sequence})) {
            append(out, "\xEF\xBF\xBD");
            sequence = 1;
        } else if (c == '\\' || c == '\n' || (c == '"' && is_quote_escaped)) {
            append(out, c == '\n' ? "\\n" : c == '"' ? "\\\"" : "\\\\");
        } else {
            (void)buf_append(out, c == '\r' ? " " : text + i, sequence);
        }
        i += sequence;
    }
}

/* ---- a family's lines ---- */

/* In text 0.0.4 the metadata carries the name of the samples (x_total, x_info), in OpenMetrics the family's. */
static void append_metadata(struct promtext *p, const char *word)
{
    append(p->out, word);
    (void)buf_append(p->out, p->name.ptr, p->name.len);
    if (p->format == PROMTEXT_TEXT)
        (void)buf_append(p->out, p->suffix.ptr, p->suffix.len);
    (void)buf_append_char(p->out, ' ');
}

static void append_help(struct promtext *p)
{
    append_metadata(p, "# HELP ");
    append_escaped(p->out, p->family->help, p->format == PROMTEXT_OPENMETRICS);
    (void)buf_append_char(p->out, '\n');
}

void promtext_begin(struct promtext *p, const struct promtext_family *family)
{
    p->family = family;
    p->is_announced = false;
    p->name = str_of(family->name);
    p->suffix = str_of(family->type == PROMTEXT_COUNTER ? "_total" : family->type == PROMTEXT_INFO ? "_info" : "");
}

static void announce(struct promtext *p)
{
    const struct promtext_family *family = p->family;
    p->is_announced = true;
    if (p->format == PROMTEXT_TEXT)
        append_help(p);
    append_metadata(p, "# TYPE ");
    append(p->out, type_names[p->format][family->type]);
    (void)buf_append_char(p->out, '\n');
    if (p->format != PROMTEXT_OPENMETRICS)
        return;
    if (family->unit && family->type != PROMTEXT_INFO) {
        append_metadata(p, "# UNIT ");
        append(p->out, family->unit);
        (void)buf_append_char(p->out, '\n');
    }
    append_help(p);
}

/* Labels between braces, behind those that stand there already. */
static void append_labels(struct buf *out, bool is_first, const struct promtext_label *labels, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!labels[i].value || !*labels[i].value)
            continue;
        if (!is_first)
            (void)buf_append_char(out, ',');
        append(out, labels[i].name);
        (void)buf_append(out, "=\"", 2);
        append_escaped(out, labels[i].value, true);
        (void)buf_append_char(out, '"');
        is_first = false;
    }
}

struct str promtext_share(struct buf *to, const struct promtext_label *labels, size_t n_labels)
{
    size_t from = to->len;
    append_labels(to, true, labels, n_labels);
    return (struct str){to->data ? to->data + from : "", to->len - from};
}

static void append_line(struct promtext *p, struct str suffix, struct str shared, const struct promtext_label *labels,
                        size_t n, double value)
{
    char number[NUM_TEXT_MAX];
    struct buf *out = p->out;
    if (!p->is_announced)
        announce(p);
    (void)buf_append(out, p->name.ptr, p->name.len);
    (void)buf_append(out, suffix.ptr, suffix.len);
    size_t before = out->len;
    (void)buf_append_char(out, '{');
    (void)buf_append(out, shared.ptr, shared.len);
    append_labels(out, shared.len == 0, labels, n);
    if (out->len == before + 1)
        out->len = before; /* no labels, no braces */
    else
        (void)buf_append_char(out, '}');
    num_format_double(number, value);
    (void)buf_append_char(out, ' ');
    append(out, number);
    (void)buf_append_char(out, '\n');
}

void promtext_sample_shared(struct promtext *p, struct str shared, const struct promtext_label *labels, size_t n_labels,
                            double value)
{
    if (!isnan(value))
        append_line(p, p->suffix, shared, labels, n_labels, value);
}

void promtext_sample(struct promtext *p, const struct promtext_label *labels, size_t n_labels, double value)
{
    promtext_sample_shared(p, (struct str){"", 0}, labels, n_labels, value);
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
    const struct str bucket = str_of("_bucket");
    char text[NUM_TEXT_MAX];
    const struct promtext_label le = {"le", text};
    BUF_AUTO struct buf shared;
    buf_init(&shared, SHARED_MAX);
    struct str all = promtext_share(&shared, labels, n_labels);
    for (size_t i = 0; i < h->n_bounds; i++) {
        format_bound(p, h->bounds[i], text);
        append_line(p, bucket, all, &le, 1, h->cumulative[i]);
    }
    append_line(p, bucket, all, &(struct promtext_label){"le", "+Inf"}, 1, h->count);
    append_line(p, str_of("_sum"), all, NULL, 0, h->sum);
    append_line(p, str_of("_count"), all, NULL, 0, h->count);
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
