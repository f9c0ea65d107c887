/* Numbers from and to text, strictly: plain decimals, whole input, no locale. */
#ifndef BASE_NUM_H
#define BASE_NUM_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* Each reads the whole text and returns 0, or -1 and leaves *ret alone. No white space, no '+', no hex, no '_'. */

/* A finite plain decimal, [-]digits[.digits][e[+-]digits] with digits on at least one side of the point, of at most 63
 * characters. NaN, Inf and what is too large for a double are refused. */
int num_parse_double(struct str text, double *ret) __attribute__((warn_unused_result));
int num_parse_i64(struct str text, int64_t *ret) __attribute__((warn_unused_result));
int num_parse_u64(struct str text, uint64_t *ret) __attribute__((warn_unused_result));
/* true, false, 1, 0, yes, no, on, off; any case. */
int num_parse_bool(struct str text, bool *ret) __attribute__((warn_unused_result));

enum { NUM_TEXT_MAX = 32 };
/* The shortest decimal that reads back as the same double; "NaN", "+Inf", "-Inf" as Prometheus spells them. */
void num_format_double(char out[NUM_TEXT_MAX], double value);
/* For people: rounded to thousandths, as the HPA counts, without zeros at the end; from 1e15 on, and where it is no
 * number, as num_format_double. */
void num_format_milli(char out[NUM_TEXT_MAX], double value);

#endif
