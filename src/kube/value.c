/* Texts of the Kubernetes API that stand for numbers: quantities (apimachinery pkg/api/resource) and times (RFC 3339
 * section 5.6). Pure. */
#include "kube/kube_private.h"

#include <string.h>

enum { DIGITS_MAX = 18, EXPONENT_MAX = 40 };

/* digits * 10^decimal * 2^binary */
struct quantity {
    bool is_negative;
    uint64_t digits;
    int decimal, binary;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits with at most one point, off the front of *rest. */
static int cut_digits(struct str *rest, struct quantity *q)
{
    size_t n_digits = 0, n_significant = 0;
    bool is_after_point = false;
    for (; rest->len > 0 && (is_digit(*rest->ptr) || (*rest->ptr == '.' && !is_after_point));
         rest->ptr++, rest->len--) {
        if (*rest->ptr == '.') {
            is_after_point = true;
            continue;
        }
        n_digits++;
        n_significant += n_significant > 0 || *rest->ptr != '0';
        if (n_significant > DIGITS_MAX || n_digits > 2 * DIGITS_MAX)
            return -1;
        q->digits = q->digits * 10 + (uint64_t)(*rest->ptr - '0');
        q->decimal -= is_after_point;
    }
    return n_digits > 0 ? 0 : -1;
}

static int read_suffix(struct str suffix, struct quantity *q)
{
    static const struct {
        const char *text;
        int decimal, binary;
    } suffixes[] = {{"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0}, {"k", 3, 0},   {"M", 6, 0},
                    {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0}, {"Ki", 0, 10}, {"Mi", 0, 20},
                    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60}};
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (str_equals(suffix, suffixes[i].text)) {
            q->decimal += suffixes[i].decimal;
            q->binary = suffixes[i].binary;
            return 0;
        }
    int64_t exponent;
    if (suffix.len < 2 || (*suffix.ptr != 'e' && *suffix.ptr != 'E'))
        return -1;
    suffix = (struct str){suffix.ptr + 1, suffix.len - 1};
    if (*suffix.ptr == '+')
        suffix = (struct str){suffix.ptr + 1, suffix.len - 1};
    if (suffix.len == 0 || *suffix.ptr == '+' || num_parse_i64(suffix, &exponent) < 0 || exponent < -EXPONENT_MAX ||
        exponent > EXPONENT_MAX)
        return -1;
    q->decimal += (int)exponent;
    return 0;
}

/* Whole thousandths, rounded away from zero: exact, so that 0.07 is 70 of them and not 71. */
static double in_thousandths(const struct quantity *q)
{
    unsigned __int128 n = (unsigned __int128)q->digits << q->binary;
    int decimal = q->decimal + 3;
    bool has_rest = false;
    for (; decimal < 0 && n > 0; decimal++) {
        has_rest = has_rest || n % 10 != 0;
        n /= 10;
    }
    double thousandths = (double)(n + (has_rest ? 1 : 0));
    for (; decimal > 0; decimal--)
        thousandths *= 10;
    return thousandths;
}

int kube_parse_quantity(struct str text, double *ret)
{
    struct quantity q = {0};
    struct str rest = text;
    if (rest.len > 0 && (*rest.ptr == '-' || *rest.ptr == '+')) {
        q.is_negative = *rest.ptr == '-';
        rest = (struct str){rest.ptr + 1, rest.len - 1};
    }
    if (cut_digits(&rest, &q) < 0 || read_suffix(rest, &q) < 0)
        return -1;
    double value = in_thousandths(&q) / 1000;
    *ret = q.is_negative && value > 0 ? -value : value;
    return 0;
}

/* n digits at *at as a number; -1 when they are none. */
static int cut_number(struct str *rest, size_t n)
{
    int value = 0;
    if (rest->len < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (!is_digit(rest->ptr[i]))
            return -1;
        value = value * 10 + (rest->ptr[i] - '0');
    }
    *rest = (struct str){rest->ptr + n, rest->len - n};
    return value;
}

static bool cut_char(struct str *rest, const char *any_of)
{
    if (rest->len == 0 || !strchr(any_of, *rest->ptr) || !*rest->ptr)
        return false;
    *rest = (struct str){rest->ptr + 1, rest->len - 1};
    return true;
}

/* "2026-11-30": days since 1970-01-01 in the Gregorian calendar; years begin in March, so that leap days end them. */
static int cut_date(struct str *rest, int64_t *ret_days)
{
    static const int lengths[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = cut_number(rest, 4);
    int month = cut_char(rest, "-") ? cut_number(rest, 2) : -1;
    int day = cut_char(rest, "-") ? cut_number(rest, 2) : -1;
    if (year < 0 || month < 1 || month > 12 || day < 1 || day > lengths[month - 1])
        return -1;
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (month == 2 && day == 29 && !is_leap)
        return -1;
    int64_t y = year + 400 - (month <= 2), m = (month + 9) % 12; /* 400 years more keep divisions positive */
    int64_t days = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1;
    *ret_days = days - 719468 - 146097;
    return 0;
}

/* "14:02:19.123" in seconds; a leap second is the next minute's first. */
static int cut_clock(struct str *rest, double *ret_s)
{
    int hour = cut_number(rest, 2);
    int minute = cut_char(rest, ":") ? cut_number(rest, 2) : -1;
    int second = cut_char(rest, ":") ? cut_number(rest, 2) : -1;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return -1;
    double fraction = 0, place = 0.1;
    if (cut_char(rest, ".,")) {
        if (rest->len == 0 || !is_digit(*rest->ptr))
            return -1;
        int digit;
        while ((digit = cut_number(rest, 1)) >= 0) {
            fraction += digit * place;
            place /= 10;
        }
    }
    *ret_s = hour * 3600 + minute * 60 + second + fraction;
    return 0;
}

static int cut_offset(struct str *rest, int *ret_s)
{
    if (cut_char(rest, "Zz")) {
        *ret_s = 0;
        return 0;
    }
    int sign = rest->len > 0 && *rest->ptr == '-' ? -1 : 1;
    int hour = cut_char(rest, "+-") ? cut_number(rest, 2) : -1;
    int minute = cut_char(rest, ":") ? cut_number(rest, 2) : -1;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59)
        return -1;
    *ret_s = sign * (hour * 3600 + minute * 60);
    return 0;
}

int kube_parse_time(struct str text, double *ret_s)
{
    struct str rest = text;
    int64_t days;
    double clock_s;
    int offset_s;
    if (cut_date(&rest, &days) < 0 || !cut_char(&rest, "Tt ") || cut_clock(&rest, &clock_s) < 0 ||
        cut_offset(&rest, &offset_s) < 0 || rest.len > 0)
        return -1;
    *ret_s = (double)days * 86400 + clock_s - offset_s;
    return 0;
}
