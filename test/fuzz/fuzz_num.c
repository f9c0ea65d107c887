/* Numbers, booleans and durations from text: whatever is accepted must survive being written and read again. */
#include "base/base.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void number_round_trip(struct str text)
{
    double value = 0, again = 0;
    if (num_parse_double(text, &value) < 0)
        return;
    char written[NUM_TEXT_MAX];
    num_format_double(written, value);
    check(isfinite(value) && num_parse_double(str_of(written), &again) == 0);
    check(!(again < value) && !(again > value));
}

static void duration_round_trip(const char *text)
{
    int64_t ns = -1, again = -1;
    if (time_parse_duration(text, &ns) < 0)
        return;
    check(ns >= 0);
    char written[TIME_DURATION_MAX];
    time_format_duration(written, ns);
    check(time_parse_duration(written, &again) == 0 && again <= ns + NS_PER_MS && again >= ns - NS_PER_MS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    MEM_AUTO char *copy = mem_strndup((const char *)data, size);
    int64_t i = 0;
    uint64_t u = 0;
    bool b = false;
    number_round_trip(text);
    duration_round_trip(copy);
    if (num_parse_i64(text, &i) == 0 && data[0] != '-')
        check(num_parse_u64(text, &u) == 0 && u == (uint64_t)i);
    if (num_parse_bool(text, &b) == 0)
        check(size > 0 && size < 6);
    (void)str_distance(copy, "utilisation");
    return 0;
}
