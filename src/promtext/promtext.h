/* promtext: Prometheus text 0.0.4 and OpenMetrics 1.0: write one, read both. Well-formed by construction: order of
 * lines, escapes, UTF-8, suffixes and float spellings are this module's; names and values are the caller's. No I/O. */
#ifndef PROMTEXT_PROMTEXT_H
#define PROMTEXT_PROMTEXT_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- writing ---- */

enum promtext_format { PROMTEXT_TEXT, PROMTEXT_OPENMETRICS };
enum promtext_type {
    PROMTEXT_GAUGE,
    PROMTEXT_COUNTER,
    PROMTEXT_HISTOGRAM,
    PROMTEXT_INFO,
    PROMTEXT_UNKNOWN,
    PROMTEXT_BARE_COUNTER, /* of a foreign name without _total: a counter in text, `unknown` in OpenMetrics */
};

struct promtext_label {
    const char *name, *value; /* values are escaped, invalid UTF-8 replaced; an empty value is left out */
};

struct promtext_family {
    const char *name; /* without _total or _info */
    const char *help;
    const char *unit; /* the name's suffix, or NULL */
    enum promtext_type type;
};

struct promtext {
    struct buf *out;
    enum promtext_format format;
    const struct promtext_family *family;
    bool is_announced;       /* the family's HELP and TYPE are out */
    struct str name, suffix; /* of the family and its samples */
};

void promtext_init(struct promtext *p, struct buf *out, enum promtext_format format);
/* The samples that follow are of this family, which must stay until the next. Its HELP and TYPE (and UNIT) lines come
 * with the first of them: a family without samples is not on the page. All samples of a family follow each other. */
void promtext_begin(struct promtext *p, const struct promtext_family *family);
/* One sample of a gauge, counter (as name_total), info (as name_info, value 1), unknown or bare counter. NaN is left
 * out: absent. */
void promtext_sample(struct promtext *p, const struct promtext_label *labels, size_t n_labels, double value);
/* The same where many samples share their first labels: `shared` is what promtext_share appended for them. */
void promtext_sample_shared(struct promtext *p, struct str shared, const struct promtext_label *labels, size_t n_labels,
                            double value);
/* Append labels as they stand between the braces, escaped once for all samples. Returns what was appended, valid while
 * `to` is not appended to; empty where all values are. */
struct str promtext_share(struct buf *to, const struct promtext_label *labels, size_t n_labels);
/* One histogram series: cumulative counts per bound, then +Inf, sum, count. */
struct promtext_histogram {
    const double *bounds, *cumulative;
    size_t n_bounds;
    double sum, count;
};
void promtext_histogram(struct promtext *p, const struct promtext_label *labels, size_t n_labels,
                        const struct promtext_histogram *h);
/* OpenMetrics ends with "# EOF"; text with nothing. */
void promtext_end(struct promtext *p);

/* The best format that an Accept header allows; text where it names neither. */
enum promtext_format promtext_negotiate(struct str accept);
/* The full Content-Type of a format, static text. */
const char *promtext_content_type(enum promtext_format format);

/* ---- reading ---- */

enum { PROMTEXT_LABELS_MAX = 64 };

/* One sample line; views into a scratch that lives until the callback returns. */
struct promtext_read_sample {
    struct str name; /* as it stands, with any suffix */
    struct {
        struct str name, value; /* value unescaped */
    } labels[PROMTEXT_LABELS_MAX];
    size_t n_labels;
    double value; /* NaN and infinities are possible here */
    bool has_timestamp;
    int64_t timestamp_ms;
};
/* Calls sample for each sample line of a page in either format; comments are passed over. A line that cannot be read is
 * counted in *ret_bad_lines and passed over. Returns 0, or -1 when the page is no exposition at all (HTML, binary):
 * not one good line and at least one bad. */
int promtext_read(struct str page, void (*sample)(void *context, const struct promtext_read_sample *sample),
                  void *context, size_t *ret_bad_lines, struct err *e);

#endif
