/* Sentences for people, private to trigger/: numbers and foreign texts as they may stand in them, cut to fit. */
#ifndef TRIGGER_TEXT_H
#define TRIGGER_TEXT_H

#include "trigger/trigger.h"

/* A text of others as it may stand in our sentences: printable, valid UTF-8, cut to what a line bears. */
enum { TRIGGER_SHOWN_MAX = 84 };
void trigger_show(char out[TRIGGER_SHOWN_MAX], struct str text);

/* When something was read: "not read yet" below 0, "read under 1s ago", "read 12s ago". */
enum { TRIGGER_AGE_MAX = TIME_DURATION_MAX + 16 };
void trigger_show_age(char out[TRIGGER_AGE_MAX], int64_t age_ns);

/* A value of this metric with its unit: "14 requests", "80 %"; a metric without a unit is a number alone. */
enum { TRIGGER_VALUE_TEXT_MAX = NUM_TEXT_MAX + 16 };
void trigger_show_value(char out[TRIGGER_VALUE_TEXT_MAX], double value, const char *unit);

/* A sentence cut to fit between characters, with "..." where it was cut. */
void trigger_fit(char out[TRIGGER_TEXT_MAX], struct str text);

/* Append a sentence to a list of TRIGGER_WARNINGS_MAX; dropped when the list is full. */
void trigger_warn(char (*warnings)[TRIGGER_TEXT_MAX], size_t *n, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
