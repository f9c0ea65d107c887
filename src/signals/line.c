/* Reading one line: strict about what could be misread, tolerant of what exporters write (a `}` inside a label's value,
 * timestamps, exemplars, blanks). Numbers are base's. */
#include "signals/line.h"

#include <string.h>

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
}

size_t line_name_len(struct str text)
{
    size_t len = 0;
    if (text.len && text.ptr[0] >= '0' && text.ptr[0] <= '9')
        return 0;
    while (len < text.len && is_name_char(text.ptr[len]))
        len++;
    return len;
}

static struct str take(struct str *in, size_t len)
{
    struct str taken = {in->ptr, len};
    *in = (struct str){in->ptr + len, in->len - len};
    return taken;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static void skip_blanks(struct str *in)
{
    while (in->len && is_blank(in->ptr[0]))
        (void)take(in, 1);
}

static bool take_char(struct str *in, char c)
{
    if (!in->len || in->ptr[0] != c)
        return false;
    (void)take(in, 1);
    return true;
}

static struct str take_word(struct str *in)
{
    size_t len = 0;
    skip_blanks(in);
    while (len < in->len && !is_blank(in->ptr[len]))
        len++;
    return take(in, len);
}

/* "..." with \" inside; the value without the quotes. */
static bool take_quoted(struct str *in, struct str *ret)
{
    if (!take_char(in, '"'))
        return false;
    size_t len = 0;
    while (len < in->len && in->ptr[len] != '"')
        len += in->ptr[len] == '\\' ? 2 : 1;
    if (len >= in->len)
        return false;
    *ret = take(in, len);
    return take_char(in, '"');
}

static bool take_labels(struct str *in, struct line *line)
{
    if (!take_char(in, '{'))
        return true;
    for (skip_blanks(in); !take_char(in, '}'); skip_blanks(in)) {
        if (line->n_labels == LINE_LABELS_MAX)
            return false;
        struct line_label *label = &line->labels[line->n_labels++];
        label->name = take(in, line_name_len(*in));
        skip_blanks(in);
        if (label->name.len == 0 || !take_char(in, '='))
            return false;
        skip_blanks(in);
        if (!take_quoted(in, &label->value))
            return false;
        skip_blanks(in);
        if (!take_char(in, ',') && !(in->len && in->ptr[0] == '}'))
            return false;
    }
    return true;
}

static bool read_value(struct str word, struct line *line)
{
    static const char *const others[] = {"NaN", "Inf", "+Inf", "-Inf"};
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (str_equals_nocase(word, others[i]))
            return true;
    if (word.len > 1 && word.ptr[0] == '+' && word.ptr[1] != '-')
        (void)take(&word, 1);
    line->is_number = num_parse_double(word, &line->value) == 0;
    return line->is_number;
}

/* After the value: nothing, a timestamp, an exemplar behind a '#', or both. */
static bool is_end(struct str rest)
{
    double stamp;
    struct str word = take_word(&rest);
    if (word.len == 0 || word.ptr[0] == '#')
        return true;
    if (num_parse_double(word, &stamp) < 0)
        return false;
    skip_blanks(&rest);
    return rest.len == 0 || rest.ptr[0] == '#';
}

bool line_read(struct str text, struct line *ret)
{
    ret->n_labels = 0;
    ret->is_number = false;
    ret->value = 0;
    ret->name = take(&text, line_name_len(text));
    size_t rest = text.len;
    skip_blanks(&text);
    if (ret->name.len == 0 || !take_labels(&text, ret))
        return false;
    if (text.len == rest) /* neither blanks nor labels between name and value */
        return false;
    return read_value(take_word(&text), ret) && is_end(text);
}

void line_label_text(const struct line *line, const char *label, char *out, size_t size)
{
    size_t len = 0;
    for (size_t i = 0; i < line->n_labels; i++) {
        struct str value = line->labels[i].value;
        if (!str_equals(line->labels[i].name, label))
            continue;
        for (size_t k = 0; k < value.len && len + 1 < size; k++) {
            char c = value.ptr[k];
            if (c == '\\' && k + 1 < value.len)
                c = value.ptr[++k] == 'n' ? ' ' : value.ptr[k];
            size_t control = str_control_len((struct str){&value.ptr[k], value.len - k});
            out[len++] = control ? '?' : c;
            k += control > 1;
        }
    }
    out[len] = '\0';
}
