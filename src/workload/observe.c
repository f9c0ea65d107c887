/* One look at the pods of a workload: what the API says of each, with what its devices say, as scaling takes it, and
 * why a reading is missing. It keeps what this hub remembers of them up to date. */
#include "workload/look.h"

#include <math.h>
#include <string.h>

/* The kubelet has given the device before the container starts; the agent learns of it within this time. */
static const double listed_within_s = 13; /* a List each 10 s, then a sample and an update */
/* How far the hub's sighting of a change may be from the API's time of it (whole seconds, and a watch's delay). */
static const double seen_within_s = 3;

enum scaling_kind workload_kind(enum trigger_metric metric)
{
    switch (trigger_metric_source(metric)) {
    case SNAPSHOT_UTILIZATION:
        return SCALING_KIND_UTILIZATION;
    case TRIGGER_SOURCE_MEMORY_PERCENT:
        return SCALING_KIND_MEMORY_PERCENT;
    case SNAPSHOT_MEMORY_USED:
        return SCALING_KIND_MEMORY_SIZE;
    case SNAPSHOT_TEMPERATURE:
        return SCALING_KIND_TEMPERATURE;
    default:
        return strcmp(trigger_metric_unit(metric), "%") == 0 ? SCALING_KIND_RATIO : SCALING_KIND_ADDITIVE;
    }
}

bool workload_is_memory(enum trigger_metric metric)
{
    enum scaling_kind kind = workload_kind(metric);
    return kind == SCALING_KIND_MEMORY_PERCENT || kind == SCALING_KIND_MEMORY_SIZE;
}

static enum scaling_on_missing on_missing_of(const struct trigger *t)
{
    switch (t->on_missing) {
    case TRIGGER_MISSING_ERROR:
        return SCALING_MISSING_IS_ERROR;
    case TRIGGER_MISSING_IGNORE:
        return SCALING_IGNORE_MISSING;
    case TRIGGER_MISSING_CONSERVATIVE:
        break;
    }
    return SCALING_CONSERVATIVE;
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

struct scaling_rules workload_rules(const struct trigger *t, const struct workload_facts *facts)
{
    return (struct scaling_rules){.aggregation = t->aggregation,
                                  .target = fmax(0.001, (double)scaling_milli(t->target) / 1000),
                                  .window_s = seconds(t->window_ns),
                                  .warmup_s = seconds(t->warmup_ns),
                                  .ceiling = scaling_kind_ceiling(workload_kind(t->metric)),
                                  .is_memory = workload_is_memory(t->metric),
                                  .is_engine = trigger_metric_is_engine(t->metric),
                                  .is_job = facts->is_job,
                                  .is_training = strcmp(t->profile, "training") == 0,
                                  .on_missing = on_missing_of(t),
                                  .activation = t->activation};
}

static void set_signals(struct look *look)
{
    const struct trigger *t = look->trigger;
    struct workload_memory *m = look->memory;
    look->signals[ASKED_METRIC] =
        (struct signal){.kind = workload_kind(t->metric),
                        .asked = &m->asked[ASKED_METRIC],
                        .is_memory_percent = trigger_metric_source(t->metric) == TRIGGER_SOURCE_MEMORY_PERCENT,
                        .is_of_board = trigger_metric_is_of_board(t->metric),
                        .divisor = trigger_metric_divisor(t->metric)};
    look->signals[ASKED_UTILIZATION] =
        (struct signal){.kind = SCALING_KIND_UTILIZATION, .asked = &m->asked[ASKED_UTILIZATION], .divisor = 1};
    look->n_signals = m->n_asked;
}

/* ---- what the API says ---- */

static enum scaling_phase phase_of(enum kube_phase phase)
{
    static const enum scaling_phase phases[] = {[KUBE_PENDING] = SCALING_PHASE_PENDING,
                                                [KUBE_RUNNING] = SCALING_PHASE_RUNNING,
                                                [KUBE_SUCCEEDED] = SCALING_PHASE_SUCCEEDED,
                                                [KUBE_FAILED] = SCALING_PHASE_FAILED,
                                                [KUBE_PHASE_UNKNOWN] = SCALING_PHASE_UNKNOWN};
    return phases[phase];
}

static struct scaling_maybe age_of(const struct workload_facts *facts, bool is_there, double at_s)
{
    return is_there && at_s > 0 ? workload_known(facts->api_now_s - at_s) : (struct scaling_maybe){.is_known = false};
}

static struct scaling_pod pod_of(const struct workload_facts *facts, const struct workload_pod *p)
{
    return (struct scaling_pod){.phase = phase_of(p->phase),
                                .is_deleted = p->is_deleted,
                                .is_ready = p->has_condition && p->is_ready,
                                .created_age_s = facts->api_now_s - p->created_s,
                                .condition_age_s = age_of(facts, p->has_condition, p->condition_s),
                                .started_age_s = age_of(facts, true, p->started_s),
                                .was_first_ready_seen = p->was_first_ready_seen,
                                .has_gpu = p->requests_gpu,
                                .group = p->group,
                                .reading = SCALING_READ_MISSING};
}

double workload_ready_age_s(const struct scaling_pod *pod)
{
    return fmax(0, pod->condition_age_s.is_known ? pod->condition_age_s.value : pod->created_age_s);
}

/* ---- why a reading is missing ---- */

enum { REASON_BYTES = 1024 };

/* Words of agents and drivers are in it: what is no text must not reach a terminal or begin a line. */
const char *workload_keep_text(const struct look *look, struct buf *text)
{
    char *kept = arena_strndup(look->arena, buf_cstr(text), text->len);
    for (char *c = kept; c && *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7F)
            *c = '?';
    return kept ? kept : "";
}

/* The node's own words, as far as they are known. */
static void say_node(const struct fleet_node *node, struct buf *text)
{
    if (node->state != FLEET_NODE_UP)
        (void)buf_printf(text, "; its agent is %s%s%s", fleet_node_state_name(node->state), node->text[0] ? ": " : "",
                         node->text);
    else if (node->driver_text[0])
        (void)buf_printf(text, "; driver: %s", node->driver_text);
}

static void say_device(const struct workload_device *wd, struct buf *text)
{
    (void)buf_printf(text, "GPU %d", wd->device->index);
    if (wd->device->kind == SNAPSHOT_MIG)
        (void)buf_printf(text, " MIG %s", wd->device->mig_profile[0] ? wd->device->mig_profile : wd->device->uuid);
    (void)buf_printf(text, " of node %s", wd->node->name);
}

static void say_no_device(const struct workload_input *input, size_t n_held, struct buf *text)
{
    const struct fleet_node *node = input->node;
    if (!input->pod->node[0])
        (void)buf_append_str(text, "it is not scheduled to a node yet");
    else if (!node)
        (void)buf_printf(text, "node %s has no agent", input->pod->node);
    else if (n_held > 0)
        (void)buf_printf(text, "none of its GPUs on node %s is asked for by gpuIndex, gpuUUID or gpuProduct",
                         node->name);
    else if (!node->is_synced)
        (void)buf_printf(text, "the agent of node %s has not answered yet", node->name);
    else if (node->owners[0] && strcmp(node->owners, "ok") != 0)
        (void)buf_printf(text, "the agent of node %s does not know which pods hold its GPUs: %s", node->name,
                         node->owners_text[0] ? node->owners_text : node->owners);
    else if (input->pod->requests_gpu)
        (void)buf_printf(text, "the agent of node %s lists no GPU of it", node->name);
    else
        (void)buf_append_str(text, "it requests no GPU and holds none");
    if (node)
        say_node(node, text);
}

static void say_shared(const struct workload_device *wd, struct buf *text)
{
    (void)buf_printf(text, " has %u holders, %u of them of this workload, and their parts cannot be told apart",
                     wd->counted.holders, wd->counted.own_holders);
    if (wd->node->sight_text[0])
        (void)buf_printf(text, ": %s", wd->node->sight_text);
}

static void say_why(const struct workload_device *wd, const char *metric, struct buf *text)
{
    say_device(wd, text);
    if (wd->device->lost_reason[0])
        (void)buf_printf(text, " is lost: %s", wd->device->lost_reason);
    else if (wd->counted.reading == SCALING_READ_UNSUPPORTED)
        (void)buf_printf(text, " does not have %s", metric);
    else if (wd->counted.reading == SCALING_READ_NOT_YET)
        (void)buf_append_str(text, ": its first sample is not due yet");
    else if (wd->counted.reading == SCALING_READ_OK)
        say_shared(wd, text);
    else if (wd->age_s < 0)
        (void)buf_append_str(text, " was never read");
    else
        (void)buf_printf(text, " was last read %.0f s ago", wd->age_s);
    if (wd->counted.reading == SCALING_READ_MISSING)
        say_node(wd->node, text);
}

/* Of the first device that is the reason. */
static const struct workload_device *find_reason(const struct workload_input *input, enum scaling_reading reading)
{
    for (size_t i = 0; i < input->n_devices; i++) {
        enum scaling_reading device = input->devices[i].counted.reading;
        bool is_reason = reading == SCALING_READ_UNSHARED
                             ? device == SCALING_READ_OK && input->devices[i].counted.holders > 1
                             : device == reading;
        if (is_reason)
            return &input->devices[i];
    }
    return NULL;
}

static void explain_reading(const struct look *look, struct workload_input *input, enum scaling_reading reading,
                            size_t n_held)
{
    if (reading == SCALING_READ_OK)
        return;
    BUF_AUTO struct buf text;
    buf_init(&text, REASON_BYTES);
    const struct workload_device *reason = find_reason(input, reading);
    if (input->n_devices == 0)
        say_no_device(input, n_held, &text);
    else if (reason)
        say_why(reason, trigger_metric_name(look->trigger->metric), &text);
    else
        (void)buf_append_str(&text, scaling_reading_sentence(reading));
    input->text = workload_keep_text(look, &text);
}

/* ---- what the devices say ---- */

/* Without a device: it may just not be listed yet, none of it may be asked for, or nobody can say. */
static enum scaling_reading reading_without_device(const struct workload_input *input, const struct scaling_pod *pod,
                                                   size_t n_held)
{
    if (n_held > 0)
        return SCALING_READ_UNSUPPORTED;
    bool is_new = pod->started_age_s.is_known && pod->started_age_s.value < listed_within_s;
    bool is_heard = input->node && input->node->state == FLEET_NODE_UP && input->node->is_synced;
    return is_heard && is_new && pod->has_gpu ? SCALING_READ_NOT_YET : SCALING_READ_MISSING;
}

static bool is_shared(const struct workload_input *input)
{
    for (size_t i = 0; i < input->n_devices; i++)
        if (input->devices[i].counted.holders > 1)
            return true;
    return false;
}

static struct scaling_maybe load_of(const struct look *look, struct workload_input *input, const struct signal *signal,
                                    enum span span, struct scaling_device *scratch)
{
    struct scaling_pod_value value;
    workload_read_devices(look, input, signal, span, scratch, &value);
    return value.reading == SCALING_READ_OK ? workload_known(value.value) : (struct scaling_maybe){.is_known = false};
}

bool workload_is_change_seen(const struct look *look, const struct workload_pod *p, const struct scaling_pod *pod)
{
    double seen_s = seconds(look->now_ns - p->ready_seen_ns);
    return p->ready_seen_ns > 0 && fabs(seen_s - workload_ready_age_s(pod)) <= seen_within_s;
}

/* The mean since Ready, where it matters. Where the change was not seen it stays unknown: what scaling makes of it is a
 * lower end too. */
static struct scaling_maybe since_ready(const struct look *look, struct workload_input *input,
                                        const struct signal *signal, const struct scaling_pod *pod,
                                        struct scaling_device *scratch)
{
    if (!pod->is_ready || !workload_is_change_seen(look, input->pod, pod))
        return (struct scaling_maybe){.is_known = false};
    return load_of(look, input, signal, SPAN_SINCE_READY, scratch);
}

static struct scaling_load read_load(const struct look *look, struct workload_input *input, const struct signal *signal,
                                     const struct scaling_pod *pod, struct scaling_device *scratch)
{
    struct scaling_load load = {.peak = load_of(look, input, signal, SPAN_PEAK, scratch)};
    bool is_fresh = pod->is_ready && workload_ready_age_s(pod) < look->rules.window_s;
    load.window = load_of(look, input, signal, SPAN_WINDOW, scratch);
    load.since_ready = is_fresh ? since_ready(look, input, signal, pod, scratch) : load.window;
    return load;
}

/* The peak bounds the mean since a Ready that was not seen, if it reaches as far back, and if the value of a pod grows
 * with that of its devices: of a shared device it does not. */
static void bound_fresh(const struct look *look, const struct workload_input *input, struct scaling_pod *pod)
{
    double age_s = workload_ready_age_s(pod);
    bool is_fresh = pod->is_ready && age_s < look->rules.window_s;
    if (!is_fresh || pod->load.since_ready.is_known || !pod->load.peak.is_known || is_shared(input) ||
        age_s > seconds(look->trigger->activation_window_ns))
        return;
    pod->bound = workload_known(fmax(look->rules.target, fmax(pod->load.window.value, pod->load.peak.value)));
}

/* Since when the pod is Ready; of one that no longer is, since it last became so, if this hub saw that. */
static struct scaling_maybe memory_age(const struct look *look, const struct workload_pod *p,
                                       const struct scaling_pod *pod)
{
    if (pod->is_ready)
        return workload_known(workload_ready_age_s(pod));
    return age_of(look->facts, p->ready_since_s > 0, p->ready_since_s);
}

static void read_memory(const struct look *look, struct workload_input *input, struct scaling_pod *pod,
                        struct pod_memory *m, struct scaling_device *scratch)
{
    if (!input->devices[0].holder)
        workload_note_memory(m, pod->load.window.value, look->now_ns);
    struct scaling_maybe age_s = memory_age(look, input->pod, pod);
    workload_read_memory(look, input, m, age_s.value, &pod->memory);
    if (!age_s.is_known) { /* a hub with a past may know that it is honest, so this one must not say that it is not */
        pod->reading = SCALING_READ_UNDECIDED;
        pod->bound = workload_known(fmax(look->rules.target, pod->load.window.value));
    }
    if (look->n_signals > ASKED_UTILIZATION)
        pod->memory.utilization = read_load(look, input, &look->signals[ASKED_UTILIZATION], pod, scratch);
}

/* What it held while its agent was heard it holds; an agent that was never heard may know of one. */
static bool holds_gpu(const struct workload_input *input, struct pod_memory *m, size_t n_held)
{
    m->has_held |= n_held > 0;
    return m->has_held || (input->node && !input->node->is_synced);
}

static struct scaling_maybe at_most(struct scaling_maybe value, double most)
{
    value.value = fmin(value.value, most);
    return value;
}

/* In a profile that goes by pages, a pod whose page has no such signal, as when nothing waits: as a server whose memory
 * says nothing. Its utilisation lets it shrink, never grow. 2.7 */
static bool read_in_place_of_page(const struct look *look, size_t index, struct scaling_pod *pod)
{
    struct workload_input *input = &look->inputs[index];
    const struct signal *signal = &look->signals[look->n_signals - 1]; /* utilisation, of all such profiles */
    size_t n_held;
    if (!workload_find_devices(look, index, &n_held))
        return false;
    struct scaling_device *scratch =
        (struct scaling_device *)arena_alloc(look->arena, (input->n_devices + 1) * sizeof(*scratch));
    if (!scratch)
        return false;
    struct scaling_pod_value value = {.reading = SCALING_READ_MISSING};
    if (input->n_devices > 0)
        workload_read_devices(look, input, signal, SPAN_WINDOW, scratch, &value);
    for (size_t i = 0; i < input->n_devices; i++)
        input->devices[i] = (struct workload_device){.node = input->devices[i].node,
                                                     .device = input->devices[i].device,
                                                     .holder = input->devices[i].holder,
                                                     .counted = scratch[i],
                                                     .age_s = -1};
    pod->reading = value.reading;
    pod->bound = workload_known(look->rules.target);
    if (value.reading != SCALING_READ_OK) {
        explain_reading(look, input, pod->reading, n_held);
        return true;
    }
    pod->load = read_load(look, input, signal, pod, scratch);
    pod->load.window = at_most(pod->load.window, look->rules.target);
    pod->load.since_ready = at_most(pod->load.since_ready, look->rules.target);
    pod->load.in_flight = workload_in_flight(look, input->page);
    return true;
}

static bool read_pod(const struct look *look, size_t index, struct scaling_pod *pod, struct pod_memory *m)
{
    if (look->mode == WORKLOAD_BY_PAGE)
        return workload_read_page(look, index, pod, m) || read_in_place_of_page(look, index, pod);
    struct workload_input *input = &look->inputs[index];
    size_t n_held;
    if (!workload_find_devices(look, index, &n_held))
        return false;
    pod->has_gpu |= holds_gpu(input, m, n_held);
    if (input->n_devices == 0) {
        pod->reading = reading_without_device(input, pod, n_held);
        explain_reading(look, input, pod->reading, n_held);
        return true;
    }
    struct scaling_device *scratch =
        (struct scaling_device *)arena_alloc(look->arena, input->n_devices * sizeof(*scratch));
    if (!scratch)
        return false;
    struct scaling_pod_value value;
    workload_read_devices(look, input, &look->signals[ASKED_METRIC], SPAN_WINDOW, scratch, &value);
    pod->reading = value.reading;
    if (value.reading == SCALING_READ_UNSHARED)
        pod->bound = workload_known(value.bound);
    if (value.reading == SCALING_READ_OK) {
        pod->load = read_load(look, input, &look->signals[ASKED_METRIC], pod, scratch);
        bound_fresh(look, input, pod);
        if (look->rules.is_memory)
            read_memory(look, input, pod, m, scratch);
    }
    explain_reading(look, input, pod->reading, n_held);
    return true;
}

/* ---- what is remembered ---- */

static void remember(const struct look *look, struct pod_memory *m, struct scaling_pod *pod)
{
    bool is_missing = pod->reading != SCALING_READ_OK && scaling_ought_to_be_read(&look->rules, pod);
    if (!is_missing)
        m->missing_since_ns = -1;
    else if (m->missing_since_ns < 0)
        m->missing_since_ns = look->now_ns;
    pod->missing_for_s = is_missing ? seconds(look->now_ns - m->missing_since_ns) : 0;
    if (pod->reading == SCALING_READ_OK)
        m->last_good = pod->load.window;
    pod->last_good = m->last_good;
}

/* Has the pod what a replica of its group is measured by: a GPU, or the page that only leaders have? */
static bool has_source(const struct look *look, const struct scaling_pod *all, size_t index)
{
    return look->mode == WORKLOAD_BY_PAGE ? look->facts->pods[index]->worker <= 0 : all[index].has_gpu;
}

/* A member that has it not, beside others of its group that have (a leader that only coordinates), has no load that
 * could be read. */
static bool is_counted(const struct look *look, const struct scaling_pod *all, size_t index)
{
    if (all[index].group < 0 || has_source(look, all, index))
        return true;
    for (size_t i = 0; i < look->facts->n_pods; i++)
        if (all[i].group == all[index].group && has_source(look, all, i))
            return false;
    return true;
}

/* Moves those that count together; inputs follow them. */
static bool keep_counted(struct look *look, struct scaling_pod *all, size_t n)
{
    bool *counted = (bool *)arena_alloc(look->arena, n + 1);
    if (!counted)
        return false;
    for (size_t i = 0; i < n; i++)
        counted[i] = is_counted(look, all, i);
    for (size_t i = 0; i < n; i++) {
        look->inputs[i].counted = NULL;
        if (!counted[i])
            continue;
        all[look->n_pods] = all[i];
        look->inputs[i].counted = &all[look->n_pods++];
    }
    return true;
}

/* What the API says of it, and its page. */
static bool begin_pod(struct look *look, size_t index, struct scaling_pod *pod)
{
    struct workload_pod *p = look->facts->pods[index];
    workload_pod_forget_marks(p, look->now_ns);
    look->inputs[index] =
        (struct workload_input){.pod = p,
                                .node = p->node[0] ? look->fleet->find_node(look->fleet->context, p->node) : NULL,
                                .text = "",
                                .page_text = ""};
    *pod = pod_of(look->facts, p);
    return !workload_reads_pages(look->trigger) ||
           workload_find_page(look, index, pod, workload_pod_memory(look->memory, p));
}

bool workload_observe(struct look *look)
{
    const struct workload_facts *facts = look->facts;
    size_t n = facts->n_pods;
    struct scaling_pod *all = (struct scaling_pod *)arena_alloc(look->arena, (n + 1) * sizeof(*all));
    look->inputs = (struct workload_input *)arena_alloc(look->arena, (n + 1) * sizeof(*look->inputs));
    if (!all || !look->inputs)
        return false;
    set_signals(look);
    look->memory->looks++;
    for (size_t i = 0; i < n; i++)
        if (!begin_pod(look, i, &all[i]))
            return false;
    workload_choose_mode(look);
    for (size_t i = 0; i < n; i++) {
        struct pod_memory *m = workload_pod_memory(look->memory, facts->pods[i]);
        if (!read_pod(look, i, &all[i], m))
            return false;
        remember(look, m, &all[i]);
    }
    look->n_ready = scaling_count_ready(all, n);
    look->n_pods = 0;
    look->pods = all;
    if (!keep_counted(look, all, n))
        return false;
    workload_watch_places(look);
    return true;
}
