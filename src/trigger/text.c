/* How numbers and foreign texts look in sentences. Knows nothing of triggers but the sizes of their texts. */
#include "trigger/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_BYTES = 72 };

/* The longest length up to `limit` at which a cut falls between characters. */
static size_t cut_at(struct str text, size_t limit)
{
    if (text.len <= limit)
        return text.len;
    size_t len = limit;
    while (len > 0 && ((unsigned char)text.ptr[len] & 0xC0) == 0x80)
        len--;
    return len;
}

void trigger_show(char out[TRIGGER_SHOWN_MAX], struct str text)
{
    bool is_utf8 = str_is_utf8(text);
    size_t len = is_utf8 ? cut_at(text, SHOWN_BYTES) : text.len < SHOWN_BYTES ? text.len : SHOWN_BYTES;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool is_shown = c >= 0x80 ? is_utf8 : c >= 0x20 && c != 0x7F && c != '"';
        out[i] = is_shown ? (char)c : '?';
    }
    bool is_cut = len < text.len;
    memcpy(out + len, is_cut ? "..." : "", is_cut ? 4 : 1);
}

void trigger_show_age(char out[TRIGGER_AGE_MAX], int64_t age_ns)
{
    char age[TIME_DURATION_MAX] = "under 1s";
    if (age_ns >= NS_PER_S)
        time_format_duration(age, age_ns / NS_PER_S * NS_PER_S);
    if (age_ns < 0)
        (void)str_copy(out, TRIGGER_AGE_MAX, str_of("not read yet"));
    else
        (void)snprintf(out, TRIGGER_AGE_MAX, "read %s ago", age);
}

void trigger_show_value(char out[TRIGGER_VALUE_TEXT_MAX], double value, const char *unit)
{
    char number[NUM_TEXT_MAX];
    num_format_milli(number, value);
    (void)snprintf(out, TRIGGER_VALUE_TEXT_MAX, "%s%s%s", number, unit[0] ? " " : "", unit);
}

void trigger_fit(char out[TRIGGER_TEXT_MAX], struct str text)
{
    if (str_copy(out, TRIGGER_TEXT_MAX, text))
        return;
    size_t len = cut_at(text, TRIGGER_TEXT_MAX - sizeof("..."));
    memcpy(out + len, "...", sizeof("..."));
}

void trigger_warn(char (*warnings)[TRIGGER_TEXT_MAX], size_t *n, const char *format, ...)
{
    if (*n == TRIGGER_WARNINGS_MAX)
        return;
    char text[2 * TRIGGER_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    trigger_fit(warnings[(*n)++], str_of(text));
}
