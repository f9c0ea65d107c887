/* One sample line of a metrics page, in place: nothing is copied or allocated. */
#ifndef SIGNALS_LINE_H
#define SIGNALS_LINE_H

#include "base/base.h"

enum { LINE_LABELS_MAX = 64 };

struct line_label {
    struct str name, value; /* the value as it is written, escapes and all */
};
struct line {
    struct str name;
    struct line_label labels[LINE_LABELS_MAX];
    size_t n_labels;
    bool is_number; /* false: NaN or an infinity */
    double value;
};

/* How long the metric's name at the front of the text is; 0 none. */
size_t line_name_len(struct str text);
/* name{label="value",...} value [timestamp] [# exemplar], to its end; text has no line end. False where it is anything
 * else. Views live as long as the text. */
bool line_read(struct str text, struct line *ret);
/* The value of a label with its escapes undone, what could command a terminal as '?', cut to fit; "" none. */
void line_label_text(const struct line *line, const char *label, char *out, size_t size);

#endif
