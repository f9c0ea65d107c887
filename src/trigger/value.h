/* Values of metadata, private to trigger/: one pair read as a number, a duration, a choice or a text, or refused with
 * the key, the value, what is allowed and the nearest name. */
#ifndef TRIGGER_VALUE_H
#define TRIGGER_VALUE_H

#include "trigger/facts.h"
#include "trigger/text.h"

/* What the metadata gives for a key. key.ptr is NULL where it gives nothing. */
struct trigger_value {
    struct str key;  /* as it was typed: an alias, a FromEnv form */
    struct str text; /* without the white space around it */
};

/* INVALID_ARGUMENT: key, value and `what` is wrong, and what the table allows for the key. Returns -1. */
int trigger_refuse(const struct trigger_value *v, enum trigger_key key, const char *what, struct err *e);
/* The same for a name that is none of the choices: lists them in order and names the nearest. */
int trigger_refuse_choice(const struct trigger_value *v, enum trigger_choice choice, struct err *e);
/* A key that is not known. Returns -1. */
int trigger_refuse_key(struct str key, struct err *e);

struct trigger_range {
    double low, high; /* both allowed */
};
/* Each returns 0, or -1 and the refusal; *ret is untouched then. */
int trigger_read_number(const struct trigger_value *v, enum trigger_key key, struct trigger_range range, double *ret,
                        struct err *e);
/* A duration in seconds or as Go writes it; the range is in seconds. */
int trigger_read_duration(const struct trigger_value *v, enum trigger_key key, struct trigger_range range,
                          int64_t *ret_ns, struct err *e);
/* The place of the value among the choices. */
int trigger_read_choice(const struct trigger_value *v, enum trigger_choice choice, size_t *ret_place, struct err *e);
/* 1 to size - 1 printable characters, copied. */
int trigger_read_text(const struct trigger_value *v, enum trigger_key key, size_t size, char *ret_text, struct err *e);

#endif
