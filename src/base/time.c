/* Clocks, durations and their texts. The only file that reads the wall clock. */
#include "base/time.h"

#include "base/num.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t clock_ns(clockid_t id)
{
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t time_mono_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t time_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

void time_format_rfc3339(char out[TIME_RFC3339_MAX], int64_t wall_ns)
{
    int64_t below_second = (wall_ns % NS_PER_S + NS_PER_S) % NS_PER_S;
    time_t seconds = (time_t)((wall_ns - below_second) / NS_PER_S);
    struct tm utc = {0};
    (void)gmtime_r(&seconds, &utc);
    size_t len = strftime(out, TIME_RFC3339_MAX - 8, "%Y-%m-%dT%H:%M:%S", &utc);
    (void)snprintf(out + len, TIME_RFC3339_MAX - len, ".%03dZ", (int)(below_second / NS_PER_MS));
}

/* A duration under a second: in the largest unit of which it has at least one, rounded down. */
static void format_short(char out[TIME_DURATION_MAX], int64_t ns)
{
    bool is_us = ns < NS_PER_MS && ns >= NS_PER_US, is_ns = ns < NS_PER_US && ns > 0;
    int64_t unit = is_us ? NS_PER_US : is_ns ? 1 : NS_PER_MS;
    (void)snprintf(out, TIME_DURATION_MAX, "%" PRId64 "%s", ns / unit, is_us ? "us" : is_ns ? "ns" : "ms");
}

void time_format_duration(char out[TIME_DURATION_MAX], int64_t ns)
{
    if (ns < NS_PER_S) {
        format_short(out, ns);
        return;
    }
    int64_t minutes = ns / (60 * NS_PER_S), ms = ns % (60 * NS_PER_S) / NS_PER_MS;
    size_t len = 0;
    if (minutes >= 60)
        len += (size_t)snprintf(out + len, TIME_DURATION_MAX - len, "%" PRId64 "h", minutes / 60);
    if (minutes % 60)
        len += (size_t)snprintf(out + len, TIME_DURATION_MAX - len, "%" PRId64 "m", minutes % 60);
    if (ms)
        (void)snprintf(out + len, TIME_DURATION_MAX - len, "%.5gs", (double)ms / 1000);
}

/* Nanoseconds of the unit at the front of the text and its length; 0 if there is none. "ms" before "m". */
static double unit_ns(const char *text, size_t *ret_len)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1},   {"us", 1e3}, {"\xC2\xB5s", 1e3}, {"\xCE\xBCs", 1e3},
                 {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},        {"h", 3600e9}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t len = strlen(units[i].name);
        if (strncmp(text, units[i].name, len) == 0) {
            *ret_len = len;
            return units[i].ns;
        }
    }
    return 0;
}

int time_parse_duration(const char *text, int64_t *ret_ns)
{
    if (strcmp(text, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    long double total = 0; /* exact to the nanosecond over the whole range */
    if (!*text)
        return -1;
    while (*text) {
        size_t digits = strspn(text, "0123456789."), unit_len = 0;
        double number, unit = unit_ns(text + digits, &unit_len);
        if (digits == 0 || unit <= 0 || num_parse_double((struct str){text, digits}, &number) < 0)
            return -1;
        total += (long double)number * (long double)unit;
        text += digits + unit_len;
    }
    if (!(total < 9.2e18L))
        return -1;
    *ret_ns = (int64_t)llroundl(total);
    return 0;
}
