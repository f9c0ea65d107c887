/* What an agent shows beside the daemon's pages: /metrics, and the driver's state under ?verbose, which is never a
 * reason to leave the Service. */
#include "agent/agent_private.h"

void agent_write_driver(void *context, struct buf *out)
{
    const struct agent *a = context;
    const struct snapshot *s = a->snapshot;
    int64_t stuck_ns = s ? snapshot_stuck_ns(s, net_now_ns(a->loop)) : 0;
    if (stuck_ns) { /* whatever the last snapshot says of the driver is as old as it */
        char age[TIME_DURATION_MAX];
        time_format_duration(age, stuck_ns / NS_PER_S * NS_PER_S);
        (void)buf_printf(out, "[-]nvml hangs (information only): no sampling cycle has ended for %s\n", age);
        return;
    }
    bool is_ok = s && s->driver == SNAPSHOT_DRIVER_OK;
    (void)buf_printf(out, "[%c]nvml %s (information only)%s%s\n", is_ok ? '+' : '-',
                     s ? snapshot_driver_state_name(s->driver) : "starting", s && *s->driver_text ? ": " : "",
                     s ? s->driver_text : "");
}

static void metrics_page(void *context, const struct net_get_request *request, struct net_get_response *response)
{
    struct agent *a = context;
    struct exporter_view view = {.snapshot = a->snapshot, .now_ns = net_now_ns(a->loop), .wall_ns = time_wall_ns()};
    if (a->attribution) {
        view.owners = attribution_owners(a->attribution);
        view.holders = attribution_holders(a->attribution);
    }
    view.entries = agent_entries_evaluate(a->entries, a->snapshot, view.now_ns, &view.n_entries);
    daemon_answer_metrics(a->exporter, &view, request, response);
}

void agent_add_pages(struct agent *a)
{
    net_gets_add(daemon_gets(a->daemon), "/metrics", metrics_page, a);
}
