/* One sentence for people from a result and what the HPA makes of it. Numbers only: no rule is decided here. */
#include "scaling/scaling.h"

#include <inttypes.h>

static void say_number(struct buf *out, const char *before, double value)
{
    char number[NUM_TEXT_MAX];
    num_format_milli(number, value);
    (void)buf_printf(out, "%s%s", before, number);
}

/* What the numbers are of: pods, or signals that are measured in parts of their targets. */
static void say_what(const struct scaling_rules *rules, const struct scaling_result *r, struct buf *out)
{
    if (r->n_parts > 0)
        (void)buf_printf(out, "busiest of %zu signals, each by its own target: ", r->n_parts);
    else
        (void)buf_printf(out, "%s of %zu%s: ", scaling_aggregation_name(rules->aggregation), r->n,
                         rules->is_weighted ? ", weighted by requests" : "");
}

static void say_interval(const struct scaling_rules *rules, const struct scaling_result *r, struct buf *out)
{
    say_what(rules, r, out);
    if (r->rule == SCALING_RULE_KNOWN) {
        say_number(out, "", r->lo);
        (void)buf_printf(out, ", asks for %" PRId64, r->asks_lo);
    } else {
        say_number(out, "at least ", r->lo);
        if (r->n_parts == 0)
            (void)buf_printf(out, " from %zu", r->n_lower);
        (void)buf_printf(out, " (asks for %" PRId64 ")", r->asks_lo);
        if (r->rule != SCALING_RULE_HOLD_PART) {
            say_number(out, ", at most ", r->hi);
            (void)buf_printf(out, " (asks for %" PRId64 ")", r->asks_hi);
        }
    }
    (void)buf_printf(out, ", present %" PRId64 ": ", r->replicas.spec);
}

/* Of a combined result: which part decided, and how many have no value. */
static void say_parts(const struct scaling_result *r, struct buf *out)
{
    if (r->n_parts == 0)
        return;
    if (r->part < r->n_parts)
        (void)buf_printf(out, "; signal %zu of %zu decides", r->part + 1, r->n_parts);
    if (r->n_failed > 0)
        (void)buf_printf(out, "; %zu of %zu signals %s no value", r->n_failed, r->n_parts,
                         r->n_failed == 1 ? "has" : "have");
}

static void say_states(const struct scaling_result *r, struct buf *out)
{
    const char *before = "; pods: ";
    for (unsigned i = 0; i < SCALING_POD_STATE_COUNT; i++) {
        if (r->counts[i] == 0)
            continue;
        (void)buf_printf(out, "%s%zu %s", before, r->counts[i], scaling_pod_state_name((enum scaling_pod_state)i));
        before = ", ";
    }
}

void scaling_say(const struct scaling_rules *rules, const struct scaling_result *r, const struct scaling_answer *answer,
                 struct buf *out)
{
    if (scaling_rule_has_interval(r->rule))
        say_interval(rules, r, out);
    (void)buf_append_str(out, scaling_rule_sentence(r->rule));
    say_parts(r, out);
    say_states(r, out);
    if (r->error.class != ERR_NONE)
        return;
    say_number(out, "; value ", r->value);
    say_number(out, " for target ", r->target);
    if (!answer || answer->error.class != ERR_NONE || r->rule == SCALING_RULE_ZERO)
        return;
    (void)buf_printf(out, "; %s", scaling_fit_sentence(answer->fit));
    if (scaling_milli(answer->value) != scaling_milli(r->value)) {
        say_number(out, " (", answer->value);
        (void)buf_append_char(out, ')');
    }
    (void)buf_printf(out, "; the HPA answers %" PRId64, answer->proposal);
}
