/* What evaluations on devices and on pages share, private to trigger/. */
#ifndef TRIGGER_EVALUATE_H
#define TRIGGER_EVALUATE_H

#include "trigger/trigger.h"

#define TRIGGER_VALUE_MAX 1e12 /* scaling-semantics 5 */

/* Everything but the texts of errors, which are read where there is an error only. */
void trigger_evaluation_begin(const struct trigger *t, int64_t now_ns, enum trigger_question asked,
                              struct trigger_evaluation *ret);
/* -1 and FAILED_PRECONDITION: the scope is measured by another program. */
int trigger_refuse_elsewhere(const struct trigger *t, struct err *e);

/* page.c: the rules of an evaluation with a feed, in sentences. */
void trigger_say_page_rule(const struct trigger_evaluation *evaluation, char rule[TRIGGER_TEXT_MAX]);
void trigger_say_page_activity(const struct trigger_evaluation *evaluation, char rule[TRIGGER_TEXT_MAX]);

#endif
