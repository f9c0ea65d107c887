/* Numbers from and to text. */
#include "base/num.h"

#include "base/alloc.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies text into a NUL-terminated buffer for strto*; false if it is empty or too long to be a number. */
static bool to_cstr(struct str text, char out[64])
{
    return text.len > 0 && text.len < 64 && str_copy(out, 64, text);
}

/* [-]digits[.digits][e[+-]digits], digits on at least one side of the point. */
static bool is_plain_decimal(const char *s)
{
    s += *s == '-';
    size_t whole = strspn(s, "0123456789");
    s += whole;
    size_t fraction = 0;
    if (*s == '.') {
        fraction = strspn(s + 1, "0123456789");
        s += 1 + fraction;
    }
    if (whole + fraction == 0)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        s += *s == '+' || *s == '-';
        size_t exponent = strspn(s, "0123456789");
        if (exponent == 0)
            return false;
        s += exponent;
    }
    return *s == '\0';
}

int num_parse_double(struct str text, double *ret)
{
    char s[64];
    if (!to_cstr(text, s) || strlen(s) != text.len || !is_plain_decimal(s))
        return -1;
    double value = strtod(s, NULL); /* LC_NUMERIC stays "C": the program never calls setlocale */
    if (!isfinite(value))
        return -1;
    *ret = value;
    return 0;
}

int num_parse_i64(struct str text, int64_t *ret)
{
    char s[64];
    if (!to_cstr(text, s) || strlen(s) != text.len)
        return -1;
    const char *digits = s + (*s == '-');
    if (!*digits || digits[strspn(digits, "0123456789")])
        return -1;
    errno = 0;
    long long value = strtoll(s, NULL, 10);
    if (errno)
        return -1;
    *ret = value;
    return 0;
}

int num_parse_u64(struct str text, uint64_t *ret)
{
    char s[64];
    if (!to_cstr(text, s) || strlen(s) != text.len || s[strspn(s, "0123456789")])
        return -1;
    errno = 0;
    unsigned long long value = strtoull(s, NULL, 10);
    if (errno)
        return -1;
    *ret = value;
    return 0;
}

int num_parse_bool(struct str text, bool *ret)
{
    static const char *const words[2][4] = {{"false", "0", "no", "off"}, {"true", "1", "yes", "on"}};
    for (int value = 0; value < 2; value++)
        for (int i = 0; i < 4; i++)
            if (str_equals_nocase(text, words[value][i])) {
                *ret = value;
                return 0;
            }
    return -1;
}

/* m / 10^point in plain digits: 1234 and 2 is "12.34", 5 and 3 is "0.005". m < 1e15. */
static void write_decimal(char out[NUM_TEXT_MAX], bool is_negative, uint64_t m, int point)
{
    char digits[NUM_TEXT_MAX];
    int n = 0;
    do {
        digits[n++] = (char)('0' + m % 10);
        m /= 10;
    } while (m || n <= point);
    if (is_negative)
        *out++ = '-';
    while (n > 0) {
        *out++ = digits[--n];
        if (n == point && n > 0)
            *out++ = '.';
    }
    *out = '\0';
}

/* The common case, without a trial for each number of digits: a decimal of at most 15 digits is one double and no
 * other's, and both it and the power of ten are exact, so that the division is rounded as reading it is. Returns false
 * where there is no such decimal, or where %g would write an exponent. */
static bool write_short(char out[NUM_TEXT_MAX], double value)
{
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    double size = fabs(value);
    if (!(size < 1e15) || (size > 0 && size < 1e-4))
        return false;
    for (int point = 0; point < (int)ARRAY_LEN(tens); point++) {
        double scaled = size * tens[point] + 0.5;
        if (!(scaled < 1e15))
            return false;
        uint64_t m = (uint64_t)scaled;
        double back = (double)m / tens[point];
        if (back < size || back > size)
            continue;
        write_decimal(out, value < 0, m, point);
        return true;
    }
    return false;
}

void num_format_double(char out[NUM_TEXT_MAX], double value)
{
    if (isnan(value) || isinf(value)) {
        (void)snprintf(out, NUM_TEXT_MAX, "%s", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        return;
    }
    if (write_short(out, value))
        return;
    bool is_long = fabs(value) >= 0.1 && fabs(value) < 1e14; /* or write_short had written it */
    int fewest = is_long                 ? 16
                 : fabs(value) < DBL_MIN ? 1
                                         : 6; /* %g drops zeros at the end, but subnormals have fewer */
    for (int digits = fewest; digits <= 17; digits++) {
        (void)snprintf(out, NUM_TEXT_MAX, "%.*g", digits, value);
        double back = strtod(out, NULL);
        if (!(back < value) && !(back > value))
            return;
    }
}

void num_format_milli(char out[NUM_TEXT_MAX], double value)
{
    if (!(fabs(value) < 1e15)) {
        num_format_double(out, value);
        return;
    }
    (void)snprintf(out, NUM_TEXT_MAX, "%.3f", value);
    char *end = out + strlen(out);
    while (end[-1] == '0')
        *--end = '\0';
    if (end[-1] == '.')
        end[-1] = '\0';
    if (strcmp(out, "-0") == 0)
        (void)memmove(out, out + 1, sizeof("0"));
}
