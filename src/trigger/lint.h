/* Warnings about a trigger that is valid and may still not do what its author expects. Private to trigger/. */
#ifndef TRIGGER_LINT_H
#define TRIGGER_LINT_H

#include "trigger/trigger.h"

/* The part of lint's table that needs nothing but the trigger: appends to t->warnings. scaling-semantics 7 */
void trigger_lint(struct trigger *t);

#endif
