/* What each pod does on each device: the newest readings of its own processes, or the device's where it has the device
 * alone and nobody tells processes apart. What a device reads beyond that is a family of its own, so that pods and rest
 * add up to the device; nothing is split by guess. Which process is whose was decided elsewhere. */
#include "exporter/page.h"

#include <stdio.h>
#include <string.h>

struct pod_family {
    enum snapshot_field field;
    double divisor; /* to the unit in the name */
    struct promtext_family pod, rest;
};
static const struct pod_family families[] = {
    {SNAPSHOT_UTILIZATION,
     100,
     {.name = "keda_gpu_scaler_pod_gpu_utilization_ratio",
      .help = "Share of the device's time in which kernels of the pod ran, as the driver samples it.",
      .unit = "ratio",
      .type = PROMTEXT_GAUGE},
     {.name = "keda_gpu_scaler_gpu_unattributed_utilization_ratio",
      .help = "Utilization of the device beyond that of its known processes.",
      .unit = "ratio",
      .type = PROMTEXT_GAUGE}},
    {SNAPSHOT_MEMORY_USED,
     1,
     {.name = "keda_gpu_scaler_pod_gpu_memory_used_bytes",
      .help = "Device memory in use by the pod.",
      .unit = "bytes",
      .type = PROMTEXT_GAUGE},
     {.name = "keda_gpu_scaler_gpu_unattributed_memory_bytes",
      .help = "Device memory in use beyond that of its known processes.",
      .unit = "bytes",
      .type = PROMTEXT_GAUGE}},
};

/* ---- values ---- */

/* One family on one device. */
struct place {
    const struct page *page;
    const struct snapshot_device *device;
    enum snapshot_field field;
    const struct snapshot_holder *holders;
    size_t n_holders;
    bool is_memory_common; /* other compute instances of its GPU instance report the same memory */
};

static bool shares_memory(const struct snapshot_device *a, const struct snapshot_device *b)
{
    return a->kind == SNAPSHOT_MIG && b->kind == SNAPSHOT_MIG && a->gpu_instance == b->gpu_instance &&
           strcmp(a->parent_uuid, b->parent_uuid) == 0;
}

static void take_place(const struct page *page, size_t i, enum snapshot_field field, struct place *ret)
{
    const struct snapshot *s = page->view.snapshot;
    const struct snapshot_device *d = &s->devices[i];
    bool is_common = (i > 0 && shares_memory(d - 1, d)) || (i + 1 < s->n_devices && shares_memory(d, d + 1));
    *ret = (struct place){page,
                          d,
                          field,
                          page->view.holders->holders + page->devices[i].holders.at,
                          page->devices[i].holders.len,
                          field == SNAPSHOT_MEMORY_USED && is_common};
}

/* Did the driver ever say what the holder's own processes do? */
static bool is_measured(const struct place *at, const struct snapshot_holder *h)
{
    return h->use && h->use->readings[at->field].taken_ns != 0;
}

static bool device_value(const struct place *at, double *ret)
{
    if (!snapshot_is_fresh(at->page->view.snapshot, at->device, at->field, at->page->view.now_ns))
        return false;
    *ret = at->device->readings[at->field].value;
    return true;
}

/* A device that one pod holds and nobody else is on does what the pod does. */
static bool holder_value(const struct place *at, const struct snapshot_holder *h, double *ret)
{
    if (is_measured(at, h)) {
        if (!snapshot_is_fresh(at->page->view.holders->uses, h->use, at->field, at->page->view.now_ns))
            return false;
        *ret = h->use->readings[at->field].value;
        return true;
    }
    bool is_alone = at->n_holders == 1 && h->is_listed && !h->is_shared && !at->is_memory_common;
    return is_alone && device_value(at, ret);
}

static bool is_same_pod(const struct snapshot_holder *a, const struct snapshot_holder *b)
{
    return strcmp(a->ns, b->ns) == 0 && strcmp(a->pod, b->pod) == 0 && strcmp(a->pod_uid, b->pod_uid) == 0;
}

/* All of the holders that read alike: a series must not stand twice on a page. False where there is no value, or an
 * earlier one has said it. */
static bool pod_value(const struct place *at, size_t k, double *ret)
{
    const struct snapshot_holder *h = &at->holders[k];
    bool has_value = false;
    double sum = 0, value;
    for (size_t i = k; i-- > 0 && strcmp(at->holders[i].ns, h->ns) == 0 && strcmp(at->holders[i].pod, h->pod) == 0;)
        if (is_same_pod(&at->holders[i], h))
            return false;
    for (size_t i = k;
         i < at->n_holders && strcmp(at->holders[i].ns, h->ns) == 0 && strcmp(at->holders[i].pod, h->pod) == 0; i++)
        if (is_same_pod(&at->holders[i], h) && holder_value(at, &at->holders[i], &value)) {
            sum += value;
            has_value = true;
        }
    if (has_value)
        *ret = sum;
    return has_value;
}

/* Does the driver say of every process on the device what it has of the field? Of none at all, it does. */
static bool is_told(const struct place *at)
{
    const struct snapshot *s = at->page->view.snapshot;
    const struct snapshot_device *d = at->device;
    bool is_memory = at->field == SNAPSHOT_MEMORY_USED;
    enum snapshot_status status = is_memory ? d->process_list.status : d->process_utilization.status;
    int64_t taken_ns = is_memory ? d->process_list.taken_ns : d->process_utilization.taken_ns;
    if (at->page->view.holders->sight != SNAPSHOT_SIGHT_OK || status != SNAPSHOT_OK ||
        at->page->view.now_ns - taken_ns > snapshot_age_limit_ns(s, at->field))
        return false;
    for (size_t i = 0; i < s->n_processes; i++) {
        const struct snapshot_process *p = &s->processes[i];
        if (p->device_id == d->id && !(is_memory ? p->has_memory : p->has_utilization))
            return false;
    }
    return true;
}

/* What the device reads beyond its pods; the readings are not of one moment, so that the pods may be ahead: then 0. */
static bool rest_value(const struct place *at, double *ret)
{
    double device, value, sum = 0;
    bool is_known = false;
    if (at->is_memory_common || !device_value(at, &device))
        return false;
    for (size_t k = 0; k < at->n_holders; k++)
        if (holder_value(at, &at->holders[k], &value)) {
            sum += value;
            is_known = is_known || is_measured(at, &at->holders[k]);
        }
    if (!is_known && (sum > 0 || !is_told(at)))
        return false;
    *ret = device > sum ? device - sum : 0;
    return true;
}

/* ---- families ---- */

static void render_family(struct page *page, const struct pod_family *row)
{
    promtext_begin(&page->text, &row->pod);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        struct place at;
        take_place(page, i, row->field, &at);
        if (at.device->is_lost || at.n_holders == 0)
            continue;
        for (size_t k = 0; k < at.n_holders; k++) {
            double value;
            if (!pod_value(&at, k, &value))
                continue;
            const struct promtext_label labels[] = {{"pod_namespace", at.holders[k].ns},
                                                    {"pod_name", at.holders[k].pod},
                                                    {"pod_uid", at.holders[k].pod_uid}};
            page_sample(page, i, labels, ARRAY_LEN(labels), value / row->divisor);
        }
    }
}

static void render_rest(struct page *page, const struct pod_family *row)
{
    promtext_begin(&page->text, &row->rest);
    for (size_t i = 0; i < page->view.snapshot->n_devices; i++) {
        struct place at;
        double value;
        take_place(page, i, row->field, &at);
        if (rest_value(&at, &value))
            page_sample(page, i, NULL, 0, value / row->divisor);
    }
}

/* Can processes be told apart, and how many could not? */
static void render_sight(struct page *page)
{
    static const struct promtext_family state = {.name = "keda_gpu_scaler_process_sight",
                                                 .help = "1 for how well processes can be told apart by pod.",
                                                 .type = PROMTEXT_GAUGE};
    static const struct promtext_family count = {.name = "keda_gpu_scaler_processes_unattributed",
                                                 .help = "Processes on GPUs whose pod could not be told.",
                                                 .type = PROMTEXT_GAUGE};
#define X(id, name) SNAPSHOT_SIGHT_##id,
    static const enum snapshot_sight sights[] = {SNAPSHOT_SIGHT_STATES(X)};
#undef X
    const struct snapshot_holders *holders = page->view.holders;
    promtext_begin(&page->text, &state);
    for (size_t i = 0; i < ARRAY_LEN(sights); i++) {
        struct promtext_label label = {"state", snapshot_sight_name(sights[i])};
        promtext_sample(&page->text, &label, 1, holders->sight == sights[i]);
    }
    promtext_begin(&page->text, &count);
    if (holders->sight == SNAPSHOT_SIGHT_OK)
        promtext_sample(&page->text, NULL, 0, (double)holders->n_unattributed);
}

/* Holders and devices are in the same order; a device that has come or gone since costs one search. */
void pods_prepare(struct page *page)
{
    const struct snapshot *s = page->view.snapshot;
    const struct snapshot_holders *holders = page->view.holders;
    size_t i = 0, first = 0;
    while (first < holders->n_holders) {
        size_t next = first + 1, searched = 0;
        while (next < holders->n_holders && holders->holders[next].device_id == holders->holders[first].device_id)
            next++;
        for (; searched < s->n_devices && s->devices[i].id != holders->holders[first].device_id; searched++)
            i = (i + 1) % s->n_devices;
        if (searched < s->n_devices)
            page->devices[i].holders = (struct page_span){first, next - first};
        first = next;
    }
}

void pods_render(struct page *page)
{
    render_sight(page);
    for (size_t i = 0; i < ARRAY_LEN(families); i++) {
        render_family(page, &families[i]);
        render_rest(page, &families[i]);
    }
}
