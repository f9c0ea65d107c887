/* Clocks, durations and their texts. Decisions take `now` as a parameter; only programs and net read the clock. */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdint.h>

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

/* Nanoseconds of CLOCK_MONOTONIC: for ages and deadlines; not comparable between machines. */
int64_t time_mono_ns(void);
/* Nanoseconds since 1970 UTC: for people only. */
int64_t time_wall_ns(void);

enum { TIME_RFC3339_MAX = 32, TIME_DURATION_MAX = 32 };
/* "2026-11-30T14:02:19.123Z" of a wall-clock time. */
void time_format_rfc3339(char out[TIME_RFC3339_MAX], int64_t wall_ns);
/* Go style, as short as exact to the millisecond (rounded down): "300ms", "5s", "1.5s", "1m30s", "1h"; under a
 * millisecond "250us" or "20ns". time_parse_duration reads it back when it is not negative. */
void time_format_duration(char out[TIME_DURATION_MAX], int64_t ns);
/* Reads a Go duration ("300ms", "1.5s", "1m30s", "20us", "20µs", "0"); no sign. Returns 0, or -1 for
 * anything else or over 291 years. */
int time_parse_duration(const char *text, int64_t *ret_ns) __attribute__((warn_unused_result));

#endif
