/* Text helpers. */
#include "base/str.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct str str_of(const char *text)
{
    return (struct str){text, strlen(text)};
}

bool str_equals(struct str a, const char *b)
{
    size_t len = strlen(b);
    return a.len == len && (len == 0 || memcmp(a.ptr, b, len) == 0);
}

bool str_equals_nocase(struct str a, const char *b)
{
    size_t len = strlen(b);
    return a.len == len && (len == 0 || strncasecmp(a.ptr, b, len) == 0);
}

bool str_has_prefix(struct str text, const char *prefix)
{
    size_t len = strlen(prefix);
    return text.len >= len && (len == 0 || memcmp(text.ptr, prefix, len) == 0);
}

bool str_has_suffix(struct str text, const char *suffix)
{
    size_t len = strlen(suffix);
    return text.len >= len && (len == 0 || memcmp(text.ptr + text.len - len, suffix, len) == 0);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

struct str str_trim(struct str text)
{
    while (text.len > 0 && is_space(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && is_space(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

struct str str_cut(struct str *rest, char separator)
{
    const char *at = rest->len ? memchr(rest->ptr, separator, rest->len) : NULL;
    struct str head = *rest;
    if (!at) {
        *rest = (struct str){NULL, 0};
        return head;
    }
    head.len = (size_t)(at - head.ptr);
    rest->ptr = at + 1;
    rest->len -= head.len + 1;
    return head;
}

bool str_copy(char *out, size_t size, struct str text)
{
    size_t len = text.len < size ? text.len : size - 1;
    if (len)
        memcpy(out, text.ptr, len);
    out[len] = '\0';
    return len == text.len;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int str_percent_byte(struct str text)
{
    if (text.len < 3 || text.ptr[0] != '%')
        return -1;
    int high = hex_digit(text.ptr[1]), low = hex_digit(text.ptr[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void str_lower(char *text)
{
    for (; *text; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text - 'A' + 'a');
}

/* Length of the UTF-8 sequence that starts at s, or 0 if it is malformed (RFC 3629: no overlong forms, no surrogates).
 */
static size_t utf8_sequence(const unsigned char *s, size_t left)
{
    if (s[0] < 0x80)
        return s[0] != 0;
    size_t len = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || len > left)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    bool is_overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool is_outside = (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F);
    return is_overlong || is_outside ? 0 : len;
}

bool str_is_utf8(struct str text)
{
    const unsigned char *s = (const unsigned char *)text.ptr;
    for (size_t i = 0; i < text.len;) {
        size_t len = utf8_sequence(s + i, text.len - i);
        if (!len)
            return false;
        i += len;
    }
    return true;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Optimal string alignment distance over three rolling rows. */
size_t str_distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    size_t rows = strlen(a), columns = strlen(b);
    if (rows > MAX || columns > MAX)
        return SIZE_MAX;
    size_t cost[3][MAX + 1];
    for (size_t j = 0; j <= columns; j++)
        cost[0][j] = j;
    for (size_t i = 1; i <= rows; i++) {
        size_t *row = cost[i % 3], *above = cost[(i - 1) % 3], *above2 = cost[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (ca != cb));
            bool is_swap =
                i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) && tolower((unsigned char)a[i - 2]) == cb;
            if (is_swap && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return cost[rows % 3][columns];
}

const char *str_nearest(const char *word, const char *const *candidates, size_t n)
{
    size_t limit = strlen(word) / 3;
    limit = limit < 1 ? 1 : limit > 3 ? 3 : limit;
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t distance = str_distance(word, candidates[i]);
        if (distance <= limit) {
            best = candidates[i];
            limit = distance - (distance > 0);
        }
        if (distance == 0)
            break;
    }
    return best;
}

size_t str_control_len(struct str text)
{
    const unsigned char *c = (const unsigned char *)text.ptr;
    if (text.len == 0)
        return 0;
    if (c[0] < 0x20 || c[0] == 0x7F)
        return 1;
    return text.len > 1 && c[0] == 0xC2 && c[1] >= 0x80 && c[1] < 0xA0 ? 2 : 0;
}
