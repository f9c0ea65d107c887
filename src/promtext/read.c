/* Reading an exposition page, either format: line by line, tolerant of what other exporters write, never of what could
 * be misread. A `}` inside a label value, long lines and timestamps are fine; a broken line is counted and passed over.
 */
#include "promtext/promtext.h"

#include <math.h>
#include <string.h>

enum { SCRATCH_MAX = 64 << 10 };

/* Unescaped label values of one line, for the views of its sample. Fixed address: values must not move. */
struct scratch {
    char bytes[SCRATCH_MAX];
    size_t len;
};

static bool is_name_char(char c, bool is_first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
           (!is_first && c >= '0' && c <= '9');
}

static struct str take_name(struct str *in)
{
    size_t len = 0;
    while (len < in->len && is_name_char(in->ptr[len], len == 0))
        len++;
    struct str name = {in->ptr, len};
    *in = (struct str){in->ptr + len, in->len - len};
    return name;
}

static void skip_blanks(struct str *in)
{
    while (in->len && (in->ptr[0] == ' ' || in->ptr[0] == '\t'))
        *in = (struct str){in->ptr + 1, in->len - 1};
}

static bool take_char(struct str *in, char c)
{
    if (!in->len || in->ptr[0] != c)
        return false;
    *in = (struct str){in->ptr + 1, in->len - 1};
    return true;
}

/* A quoted value with its escapes undone; false when the quote never closes or the scratch is full. */
static bool take_quoted(struct str *in, struct scratch *scratch, struct str *ret)
{
    if (!take_char(in, '"'))
        return false;
    char *start = scratch->bytes + scratch->len;
    size_t len = 0, i = 0;
    for (; i < in->len && in->ptr[i] != '"'; i++) {
        char c = in->ptr[i];
        if (c == '\\' && i + 1 < in->len) {
            c = in->ptr[++i];
            c = c == 'n' ? '\n' : c;
        }
        if (scratch->len + len >= SCRATCH_MAX)
            return false;
        start[len++] = c;
    }
    if (i == in->len)
        return false;
    *in = (struct str){in->ptr + i + 1, in->len - i - 1};
    scratch->len += len;
    *ret = (struct str){start, len};
    return true;
}

static bool take_labels(struct str *in, struct scratch *scratch, struct promtext_read_sample *sample)
{
    if (!take_char(in, '{'))
        return true;
    for (skip_blanks(in); !take_char(in, '}'); skip_blanks(in)) {
        if (sample->n_labels == PROMTEXT_LABELS_MAX)
            return false;
        struct str name = take_name(in), value;
        skip_blanks(in);
        if (name.len == 0 || !take_char(in, '='))
            return false;
        skip_blanks(in);
        if (!take_quoted(in, scratch, &value))
            return false;
        sample->labels[sample->n_labels].name = name;
        sample->labels[sample->n_labels++].value = value;
        skip_blanks(in);
        if (!take_char(in, ',') && !(in->len && in->ptr[0] == '}'))
            return false;
    }
    return true;
}

static bool read_value(struct str text, double *ret)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {
        {"NaN", (double)NAN}, {"Inf", (double)INFINITY}, {"+Inf", (double)INFINITY}, {"-Inf", -(double)INFINITY}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_equals_nocase(text, words[i].word)) {
            *ret = words[i].value;
            return true;
        }
    if (text.len && text.ptr[0] == '+')
        text = (struct str){text.ptr + 1, text.len - 1};
    return num_parse_double(text, ret) == 0;
}

static struct str take_word(struct str *in)
{
    skip_blanks(in);
    size_t len = 0;
    while (len < in->len && in->ptr[len] != ' ' && in->ptr[len] != '\t')
        len++;
    struct str word = {in->ptr, len};
    *in = (struct str){in->ptr + len, in->len - len};
    return word;
}

/* Milliseconds in text 0.0.4 (whole), seconds in OpenMetrics (with a fraction or not): a number below 1e11 is seconds.
 */
static bool read_timestamp(struct str word, struct promtext_read_sample *sample)
{
    double stamp;
    if (num_parse_double(word, &stamp) < 0 || fabs(stamp) > 9e15)
        return false;
    sample->has_timestamp = true;
    sample->timestamp_ms = (int64_t)(fabs(stamp) < 1e11 ? stamp * 1000 : stamp);
    return true;
}

/* name[{labels}] value [timestamp] [# exemplar] */
static bool read_line(struct str line, struct scratch *scratch, struct promtext_read_sample *sample)
{
    scratch->len = 0;
    sample->n_labels = 0;
    sample->has_timestamp = false;
    sample->name = take_name(&line);
    skip_blanks(&line);
    if (sample->name.len == 0 || !take_labels(&line, scratch, sample) || !read_value(take_word(&line), &sample->value))
        return false;
    struct str stamp = take_word(&line);
    if (stamp.len && stamp.ptr[0] != '#' && !read_timestamp(stamp, sample))
        return false;
    skip_blanks(&line);
    return line.len == 0 || line.ptr[0] == '#' || (stamp.len && stamp.ptr[0] == '#');
}

int promtext_read(struct str page, void (*sample)(void *context, const struct promtext_read_sample *sample),
                  void *context, size_t *ret_bad_lines, struct err *e)
{
    MEM_AUTO struct scratch *scratch = mem_new(struct scratch);
    MEM_AUTO struct promtext_read_sample *read = mem_new(struct promtext_read_sample);
    size_t good = 0, bad = 0;
    while (page.ptr) {
        struct str line = str_trim(str_cut(&page, '\n'));
        if (line.len == 0 || line.ptr[0] == '#')
            continue;
        if (read_line(line, scratch, read)) {
            good++;
            sample(context, read);
        } else {
            bad++;
        }
    }
    *ret_bad_lines = bad;
    if (bad && !good)
        return err_set(e, ERR_INVALID_ARGUMENT, "not a metrics page: none of its %zu lines is a sample", bad);
    return 0;
}
