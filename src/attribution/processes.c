/* The processes that the driver lists, put to pods: when /proc is looked at, what of the last look is kept, and whether
 * the driver's pids mean what /proc shows. What a look reads is look.c's, what pods do is holders.c's. */
#include "attribution/attribution_private.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MIN_NS NS_PER_S        /* between readings of the folders with names, where one is missing */
#define NAMES_MAX_NS (60 * NS_PER_S) /* where it stays missing */

enum { AGAINST = 3 /* looks in a row that end a proof */ };

struct job {
    struct attribution_processes *owner; /* NULL: it went while the job ran */
    struct attribution_look look;
    const struct snapshot *snapshot; /* a reference */
};

struct attribution_processes {
    struct net_loop *loop;
    void (*done)(void *context, const struct snapshot *looked);
    void *context;
    struct job *job;                       /* that runs */
    const struct snapshot *next;           /* to look at when it has ended; a reference or NULL */
    struct attribution_look last;          /* outcome of the last look; it owns its processes */
    int n_against;                         /* looks in a row that spoke against the proof */
    bool has_looked, is_proven;            /* proven: in a nested namespace pids were seen to mean what /proc shows */
    int64_t lists_ns;                      /* of the newest process list that was looked at */
    int64_t names_read_ns, names_delay_ns; /* when folders were read last, and how long not again */
    struct metric_series *known, *looks;
};

enum attribution_place attribution_processes_place(const struct attribution_processes *p,
                                                   const struct attribution_process *process)
{
    if (!process || !process->is_read || !(process->is_listed || p->last.is_initial))
        return ATTRIBUTION_UNTOLD;
    if (process->cgroup.is_pod || *process->name.pod)
        return ATTRIBUTION_IN_POD;
    return *process->cgroup.container_id && process->cgroup.is_relative ? ATTRIBUTION_UNTOLD : ATTRIBUTION_ON_HOST;
}

/* ---- looks ---- */

static int64_t newest_list_ns(const struct snapshot *s)
{
    int64_t ns = 0;
    for (size_t i = 0; i < s->n_devices; i++)
        if (s->devices[i].process_list.taken_ns > ns)
            ns = s->devices[i].process_list.taken_ns;
    return ns;
}

static int compare_pids(const void *left, const void *right)
{
    const struct attribution_process *a = left, *b = right;
    return a->pid < b->pid ? -1 : a->pid > b->pid;
}

const struct attribution_process *attribution_processes_find(const struct attribution_processes *p, uint32_t pid)
{
    struct attribution_process key = {.pid = pid};
    if (p->last.n_processes == 0)
        return NULL;
    return bsearch(&key, p->last.processes, p->last.n_processes, sizeof(key), compare_pids);
}

/* Each pid of the snapshot once, with what the last look knew of it. */
static void take_pids(const struct attribution_processes *p, const struct snapshot *s, struct attribution_look *look)
{
    look->processes = mem_new_array(s->n_processes + 1, sizeof(*look->processes));
    for (size_t i = 0; i < s->n_processes; i++)
        look->processes[i] =
            (struct attribution_process){.pid = s->processes[i].pid, .is_listed = s->processes[i].has_memory};
    qsort(look->processes, s->n_processes, sizeof(*look->processes), compare_pids);
    for (size_t i = 0; i < s->n_processes; i++) {
        struct attribution_process found = look->processes[i];
        struct attribution_process *last = look->n_processes ? &look->processes[look->n_processes - 1] : NULL;
        if (last && last->pid == found.pid) { /* on several devices */
            last->is_listed = last->is_listed || found.is_listed;
            continue;
        }
        const struct attribution_process *known = attribution_processes_find(p, found.pid);
        look->processes[look->n_processes] = known ? *known : found;
        look->processes[look->n_processes++].is_listed = found.is_listed;
    }
}

static void job_free(struct job *job)
{
    snapshot_unref(job->snapshot);
    free(job->look.processes);
    free(job);
}

static void run_job(void *context)
{
    struct job *job = context;
    attribution_look(&job->look);
}

static void on_job_done(void *context);

static void start(struct attribution_processes *p, const struct snapshot *s)
{
    struct job *job = mem_new(struct job);
    job->owner = p;
    job->snapshot = s;
    job->look = p->last; /* the paths */
    job->look.processes = NULL;
    job->look.n_processes = 0;
    job->look.wants_names = net_now_ns(p->loop) - p->names_read_ns >= p->names_delay_ns;
    take_pids(p, s, &job->look);
    p->lists_ns = newest_list_ns(s);
    p->job = job;
    metric_add(p->looks, 1);
    net_work(p->loop, run_job, on_job_done, job);
}

/* Names that are missing are looked for again, the longer they are missing the more seldom; a new process begins anew.
 */
static void plan_names(struct attribution_processes *p, const struct attribution_look *fresh)
{
    bool has_new = false;
    for (size_t i = 0; i < fresh->n_processes && !has_new; i++)
        has_new = !attribution_processes_find(p, fresh->processes[i].pid);
    if (fresh->has_read_names)
        p->names_read_ns = net_now_ns(p->loop);
    if (!fresh->lacks_names || has_new)
        p->names_delay_ns = NAMES_MIN_NS;
    else if (fresh->has_read_names)
        p->names_delay_ns = 2 * p->names_delay_ns < NAMES_MAX_NS ? 2 * p->names_delay_ns : NAMES_MAX_NS;
}

/* Outside of the host's pid namespace the driver's pids may be of another one than what /proc shows: then few of those
 * that it lists are found, and none in a pod. What is proven stays so until several looks speak against it: one alone
 * may have come after a short process. */
static void weigh(struct attribution_processes *p)
{
    bool is_against = p->last.n_never > p->last.n_found;
    p->n_against = is_against ? p->n_against + 1 : 0;
    if (p->n_against >= AGAINST)
        p->is_proven = false;
    else if (p->last.n_foreign && !is_against)
        p->is_proven = true;
}

static void on_job_done(void *context)
{
    struct job *job = context;
    struct attribution_processes *p = job->owner;
    if (!p) {
        job_free(job);
        return;
    }
    p->job = NULL;
    plan_names(p, &job->look);
    free(p->last.processes);
    p->last = job->look;
    job->look.processes = NULL;
    p->has_looked = true;
    weigh(p);
    metric_set(p->known, (double)p->last.n_processes);
    const struct snapshot *looked = job->snapshot, *next = p->next;
    job->snapshot = NULL;
    job_free(job);
    p->next = NULL;
    if (next)
        start(p, next);
    p->done(p->context, looked);
    snapshot_unref(looked);
}

static bool knows_all(const struct attribution_processes *p, const struct snapshot *s)
{
    for (size_t i = 0; i < s->n_processes; i++)
        if (!attribution_processes_find(p, s->processes[i].pid))
            return false;
    return true;
}

bool attribution_processes_look(struct attribution_processes *p, const struct snapshot *s)
{
    if (p->job) {
        snapshot_unref(p->next);
        p->next = snapshot_ref(s);
        return true;
    }
    if (p->has_looked && newest_list_ns(s) == p->lists_ns && knows_all(p, s))
        return false;
    start(p, snapshot_ref(s));
    return true;
}

/* ---- sight ---- */

/* Does the driver list processes on any device? Devices that were not asked yet decide nothing. */
static bool is_refused(const struct snapshot *s)
{
    size_t n_asked = 0;
    for (size_t i = 0; i < s->n_devices; i++) {
        const struct snapshot_device *d = &s->devices[i];
        if (d->process_list.status == SNAPSHOT_OK || d->process_list.taken_ns)
            return false;
        n_asked += d->process_list.status != SNAPSHOT_NOT_READ;
    }
    return n_asked > 0;
}

enum snapshot_sight attribution_processes_sight(const struct attribution_processes *p, const struct snapshot *s,
                                                char *text)
{
    *text = '\0';
    if (!p)
        return SNAPSHOT_SIGHT_OFF;
    if (!p->has_looked || !s)
        return SNAPSHOT_SIGHT_STARTING;
    if (!p->last.has_procfs) {
        (void)snprintf(text, SNAPSHOT_TEXT_MAX,
                       "cannot read %.80s/self/stat: mount the host's /proc there, read-only, and run as root",
                       p->last.procfs);
        return SNAPSHOT_SIGHT_NO_PROCFS;
    }
    if (is_refused(s)) {
        (void)snprintf(text, SNAPSHOT_TEXT_MAX, "the driver lists no processes on any device");
        return SNAPSHOT_SIGHT_NOT_GIVEN;
    }
    if (p->last.is_initial || p->is_proven)
        return SNAPSHOT_SIGHT_OK;
    (void)snprintf(
        text, SNAPSHOT_TEXT_MAX,
        "in a pid namespace of its own, where the driver shows no processes of other pods: set hostPID: true "
        "(chart value agent.hostPID=true)");
    return SNAPSHOT_SIGHT_NO_HOST_PIDS;
}

/* ---- new and free ---- */

static int set_path(char out[256], const char *what, const char *path, struct err *e)
{
    if (*path != '/' || !str_copy(out, 256, str_of(path)))
        return err_set(e, ERR_INVALID_ARGUMENT, "%s \"%.200s\": must be an absolute path", what, path);
    return 0;
}

static void add_metrics(struct attribution_processes *p, struct metrics *metrics)
{
    static const struct metric_desc known = {.name = "keda_gpu_scaler_processes_known",
                                             .help = "Processes on GPUs at the last look at /proc.",
                                             .kind = METRIC_GAUGE};
    static const struct metric_desc looks = {.name = "keda_gpu_scaler_process_looks",
                                             .help = "Looks at /proc for the pods of processes on GPUs.",
                                             .kind = METRIC_COUNTER};
    p->known = metric_only(metric_register(metrics, &known));
    p->looks = metric_only(metric_register(metrics, &looks));
}

struct attribution_processes *attribution_processes_new(const struct attribution_config *config,
                                                        void (*done)(void *context, const struct snapshot *looked),
                                                        void *context, struct err *e)
{
    struct attribution_processes *p = mem_new(struct attribution_processes);
    p->loop = config->loop;
    p->done = done;
    p->context = context;
    p->names_delay_ns = NAMES_MIN_NS;
    const char *pod_logs = config->pod_logs ? config->pod_logs : ATTRIBUTION_POD_LOGS;
    const char *log_links = config->log_links ? config->log_links : ATTRIBUTION_LOG_LINKS;
    if (set_path(p->last.procfs, "procfs", config->procfs, e) < 0 ||
        set_path(p->last.pod_logs, "pod logs", pod_logs, e) < 0 ||
        set_path(p->last.log_links, "log links", log_links, e) < 0) {
        free(p);
        return NULL;
    }
    add_metrics(p, config->metrics);
    return p;
}

void attribution_processes_free(struct attribution_processes *p)
{
    if (!p)
        return;
    if (p->job)
        p->job->owner = NULL; /* its end frees it */
    snapshot_unref(p->next);
    free(p->last.processes);
    free(p);
}
