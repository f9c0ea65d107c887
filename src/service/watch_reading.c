/* Readings as Fleet/Watch tells them, and which of them a hub arrives at by itself. It sends nothing. */
#include "service/watch.h"

#include <math.h>

#define STATUS(name) KEDAGPUSCALER__FLEET__V1__STATUS__##name

/* Processes give their memory and how busy they keep the device, and nothing else for ever. */
static bool is_given_by_process(enum snapshot_field field)
{
    return field == SNAPSHOT_UTILIZATION || field == SNAPSHOT_MEMORY_USED;
}

static Kedagpuscaler__Fleet__V1__Status status_of(const struct watch_subject *u, enum snapshot_field field)
{
    const struct snapshot_reading *r = &u->d->readings[field];
    int64_t limit_ns = snapshot_age_limit_ns(u->s, field);
    if (r->status == SNAPSHOT_UNSUPPORTED || (u->is_use && !is_given_by_process(field)))
        return STATUS(UNSUPPORTED);
    if (u->d->is_lost)
        return STATUS(MISSING);
    int64_t asked_ns = u->asked ? u->asked[field].since_ns : u->due_from_ns;
    bool is_due = u->at_ns - (asked_ns > u->due_from_ns ? asked_ns : u->due_from_ns) > limit_ns;
    bool has_sample = r->taken_ns != 0 && r->taken_ns >= u->since_ns;
    if (!has_sample)
        return r->status == SNAPSHOT_FAILED || is_due ? STATUS(MISSING) : STATUS(NOT_YET);
    return snapshot_is_fresh(u->s, u->d, field, u->at_ns) ? STATUS(OK) : STATUS(MISSING);
}

/* As far back as the window reaches into the time that counts. Fields without a past have their newest reading. */
static int64_t clip(const struct watch_subject *u, enum snapshot_field field, int64_t window_ns)
{
    if (!snapshot_field_has_past(field))
        return 0;
    if (u->since_ns == INT64_MIN || u->at_ns - u->since_ns > window_ns)
        return window_ns;
    return u->at_ns > u->since_ns ? u->at_ns - u->since_ns : 0;
}

void watch_read(const struct watch_subject *u, const struct watch_want *want, struct watch_reading *ret)
{
    *ret = (struct watch_reading){.status = STATUS(MISSING)};
    if (want->kind != WATCH_FIELD)
        return;
    enum snapshot_field f = want->field;
    ret->status = status_of(u, f);
    if (ret->status != STATUS(OK))
        return;
    const struct snapshot_reading *r = &u->d->readings[f];
    bool is_read = snapshot_mean(u->s, u->d, f, u->at_ns, clip(u, f, want->window_ns), &ret->mean) &&
                   snapshot_peak(u->s, u->d, f, u->at_ns, clip(u, f, want->activation_window_ns), &ret->peak);
    if (!is_read) {
        *ret = (struct watch_reading){.status = STATUS(MISSING)};
        return;
    }
    ret->newest = r->value;
    ret->age_ns = u->at_ns > r->taken_ns ? u->at_ns - r->taken_ns : 0;
    (void)snapshot_total(u->s, u->d, f, &ret->integral, &ret->valid_s);
}

static bool is_same(double a, double b)
{
    return !(a < b) && !(a > b);
}

static bool is_near(double a, double b, double slack)
{
    return fabs(a - b) <= slack;
}

bool watch_goes_without_saying(const struct watch_sent *sent, const struct watch_reading *r, int64_t at_ns,
                               int64_t slack_ns)
{
    const struct watch_reading *last = &sent->reading;
    if (sent->at_ns == 0 || last->status != r->status)
        return false;
    if (r->status != STATUS(OK))
        return true;
    bool is_steady = is_same(r->newest, r->mean) && is_same(r->mean, r->peak) && is_same(r->mean, last->mean) &&
                     is_same(r->peak, last->peak);
    /* The hub lets its age stand and its valid time run: a sample that did not come would be one that did. */
    double slack_s = (double)slack_ns / (double)NS_PER_S, passed_s = (double)(at_ns - sent->at_ns) / (double)NS_PER_S;
    return is_steady && is_near((double)r->age_ns, (double)last->age_ns, (double)slack_ns) &&
           is_near(r->valid_s, last->valid_s + passed_s, slack_s) &&
           is_near(r->integral, last->integral + r->mean * passed_s, r->mean * slack_s);
}
