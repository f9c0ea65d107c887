/* From variables to a plan, and from a plan to devices. What the schedulers and CUDA mean by their lists stands here
 * and nowhere else: Slurm's gres.conf(5) and srun(1), flux-shell's gpubind, CUDA's "environment variables" appendix. */
#include "cli/job.h"

#include <stdio.h>
#include <string.h>

const char *job_environment_name(enum job_environment environment)
{
    static const char *const names[] = {"standalone", "k8s", "slurm", "flux"};
    return names[environment];
}

static const char *word_of(job_getenv *get, void *context, const char *name)
{
    const char *text = get(context, name);
    return text ? text : "";
}

int job_environment_of(const char *word, job_getenv *get, void *context, enum job_environment *ret)
{
    static const struct {
        const char *word, *sign; /* sign: the variable that shows it */
        enum job_environment environment;
    } rows[] = {
        {"slurm", "SLURM_JOB_ID", JOB_SLURM},
        {"flux", "FLUX_JOB_ID", JOB_FLUX},
        {"k8s", "KUBERNETES_SERVICE_HOST", JOB_KUBERNETES},
        {"kubernetes", "KUBERNETES_SERVICE_HOST", JOB_KUBERNETES},
        {"standalone", NULL, JOB_STANDALONE},
    };
    bool is_auto = strcmp(word, "auto") == 0;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool is_it = is_auto ? !rows[i].sign || *word_of(get, context, rows[i].sign) : !strcmp(word, rows[i].word);
        if (!is_it)
            continue;
        *ret = rows[i].environment;
        return 0;
    }
    return -1;
}

/* ---- lists of devices ---- */

static bool is_name(struct str word)
{
    return str_has_prefix(word, "GPU-") || str_has_prefix(word, "MIG-");
}

static bool is_digits(struct str word)
{
    for (size_t i = 0; i < word.len; i++)
        if (word.ptr[i] < '0' || word.ptr[i] > '9')
            return false;
    return word.len > 0 && word.len < 6;
}

static bool read_index(struct str word, int *ret)
{
    int64_t number;
    if (!is_digits(word) || num_parse_i64(word, &number) < 0)
        return false;
    *ret = (int)number;
    return true;
}

static bool add_name(struct job_plan *plan, struct str word)
{
    static const size_t mig = sizeof("MIG-") - 1;
    struct job_device device = {.index = -1, .gi = -1, .ci = -1};
    struct str uuid = word, rest;
    if (!str_copy(device.words, sizeof(device.words), word))
        return false;
    if (str_has_prefix(word, "MIG-GPU-")) { /* MIG-GPU-uuid/gi/ci */
        rest = (struct str){word.ptr + mig, word.len - mig};
        uuid = str_cut(&rest, '/');
        struct str gi = rest.ptr ? str_cut(&rest, '/') : rest;
        if (!rest.ptr || !read_index(gi, &device.gi) || !read_index(rest, &device.ci))
            return false;
    }
    (void)str_copy(device.uuid, sizeof(device.uuid), uuid);
    vec_push(&plan->devices, device);
    return true;
}

/* "3", or "0-3" where a scheduler writes ranges. */
static bool add_indices(struct job_plan *plan, struct str word)
{
    struct str rest = word, first_text = str_cut(&rest, '-');
    int first, last;
    if (!read_index(first_text, &first))
        return false;
    last = first;
    if (rest.ptr && (!read_index(rest, &last) || last < first))
        return false;
    if ((size_t)(last - first) >= JOB_DEVICES_MAX - plan->devices.len)
        return false;
    for (int index = first; index <= last; index++) {
        struct job_device device = {.index = index, .gi = -1, .ci = -1};
        (void)snprintf(device.words, sizeof(device.words), "%d", index);
        vec_push(&plan->devices, device);
    }
    return true;
}

/* A list in CUDA's words ends at the first word that names nothing: "0,-1,1" is GPU 0. "" and "-1" are none, and so is
 * Slurm's "NoDevFiles". */
static void read_cuda(struct job_plan *plan, const char *name, const char *text)
{
    struct str rest = str_of(text);
    plan->source = name;
    while (rest.ptr && plan->devices.len < JOB_DEVICES_MAX) {
        struct str word = str_trim(str_cut(&rest, ','));
        if (!word.len || str_equals(word, "-1") || str_equals(word, "NoDevFiles"))
            break;
        if (is_name(word) ? add_name(plan, word) : add_indices(plan, word))
            continue;
        (void)str_copy(plan->unread, sizeof(plan->unread), word);
        break;
    }
    plan->choice = plan->devices.len || *plan->unread ? JOB_LIST : JOB_NONE;
}

/* A scheduler's list goes on after a word that names nothing. */
static void read_list(struct job_plan *plan, const char *name, const char *text)
{
    struct str rest = str_of(text);
    plan->source = name;
    plan->choice = JOB_LIST;
    while (rest.ptr && plan->devices.len < JOB_DEVICES_MAX) {
        struct str word = str_trim(str_cut(&rest, ','));
        if (word.len && !(is_name(word) ? add_name(plan, word) : add_indices(plan, word)) && !*plan->unread)
            (void)str_copy(plan->unread, sizeof(plan->unread), word);
    }
}

static enum job_order cuda_order(job_getenv *get, void *context)
{
    return strcmp(word_of(get, context, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID") == 0 ? JOB_ORDER_PCI : JOB_ORDER_FASTEST;
}

/* UUIDs in CUDA_VISIBLE_DEVICES are the most exact answer and win. Slurm's own variables count the node's GPUs; the
 * others count those that the job's cgroup shows. */
static void choose(struct job_plan *plan, job_getenv *get, void *context)
{
    static const char *const own[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"};
    const char *cuda = get(context, "CUDA_VISIBLE_DEVICES");
    plan->order = cuda_order(get, context);
    if (cuda && is_name(str_trim(str_of(cuda)))) {
        read_cuda(plan, "CUDA_VISIBLE_DEVICES", cuda);
        return;
    }
    for (size_t i = 0; plan->environment == JOB_SLURM && i < ARRAY_LEN(own); i++) {
        const char *text = word_of(get, context, own[i]);
        if (!*text)
            continue;
        plan->order = JOB_ORDER_NODE;
        read_list(plan, own[i], text);
        return;
    }
    const char *ordinal = word_of(get, context, "GPU_DEVICE_ORDINAL");
    if (plan->environment == JOB_SLURM && *ordinal)
        read_cuda(plan, "GPU_DEVICE_ORDINAL", ordinal);
    else if (cuda)
        read_cuda(plan, "CUDA_VISIBLE_DEVICES", cuda);
}

/* ---- the plan ---- */

struct word {
    char *out;
    const char *name;
};

static void copy_words(const struct word *words, size_t n, job_getenv *get, void *context)
{
    for (size_t i = 0; i < n; i++)
        (void)str_copy(words[i].out, JOB_WORD_MAX, str_of(word_of(get, context, words[i].name)));
}

static void read_context(struct job_plan *plan, job_getenv *get, void *context)
{
    const struct word slurm[] = {
        {plan->node, "SLURMD_NODENAME"}, {plan->job_id, "SLURM_JOB_ID"}, {plan->partition, "SLURM_JOB_PARTITION"}};
    const struct word flux[] = {{plan->job_id, "FLUX_JOB_ID"}, {plan->flux_uri, "FLUX_URI"}};
    const struct word pod[] = {{plan->node, "NODE_NAME"}, {plan->pod, "POD_NAME"}, {plan->ns, "POD_NAMESPACE"}};
    const char *rank = NULL;
    int64_t number;
    switch (plan->environment) {
    case JOB_SLURM: /* SLURMD_NODENAME is what Slurm sets; SLURM_NODENAME what the reference implementation read */
        copy_words(slurm, ARRAY_LEN(slurm), get, context);
        if (*word_of(get, context, "SLURM_NODENAME"))
            (void)str_copy(plan->node, JOB_WORD_MAX, str_of(word_of(get, context, "SLURM_NODENAME")));
        rank = get(context, "SLURM_PROCID");
        break;
    case JOB_FLUX:
        copy_words(flux, ARRAY_LEN(flux), get, context);
        rank = get(context, "FLUX_TASK_RANK");
        break;
    case JOB_KUBERNETES:
        copy_words(pod, ARRAY_LEN(pod), get, context);
        break;
    case JOB_STANDALONE:
        break;
    }
    if (rank && num_parse_i64(str_of(rank), &number) == 0 && number >= 0)
        plan->task_rank = number;
}

void job_plan_init(struct job_plan *plan, enum job_environment environment, int64_t device_index, const char *host_name,
                   job_getenv *get, void *context)
{
    *plan = (struct job_plan){.environment = environment, .task_rank = -1};
    read_context(plan, get, context);
    if (!*plan->node)
        (void)str_copy(plan->node, sizeof(plan->node), str_of(host_name));
    if (device_index >= 0) {
        char text[24];
        (void)snprintf(text, sizeof(text), "%lld", (long long)device_index);
        read_list(plan, "--device", text);
    } else if (environment == JOB_SLURM || environment == JOB_FLUX) {
        choose(plan, get, context);
    }
}

void job_plan_fini(struct job_plan *plan)
{
    vec_fini(&plan->devices);
}

void job_plan_describe(const struct job_plan *plan, struct buf *out)
{
    if (plan->choice == JOB_ALL) {
        (void)buf_append_str(out, "all GPUs");
        return;
    }
    for (size_t i = 0; i < plan->devices.len; i++)
        (void)buf_printf(out, "%s%s", i ? ", " : "", plan->devices.items[i].words);
    if (*plan->unread)
        (void)buf_printf(out, "%s\"%s\"?", plan->devices.len ? ", " : "", plan->unread);
    (void)buf_printf(out, "%s (%s)", plan->choice == JOB_NONE ? "none" : "", plan->source);
}

/* ---- devices ---- */

struct match {
    const struct job_seen *seen;
    size_t n, n_gpus;
    bool *is_chosen;
    const size_t *gpus; /* places of GPUs, in the order that the plan's integers count in */
    struct buf *note;
};

static void choose_gpu(const struct match *m, size_t at)
{
    m->is_chosen[at] = true;
    for (size_t i = at + 1; i < m->n && *m->seen[i].parent_uuid; i++)
        m->is_chosen[i] = true;
}

static bool begins(const char *uuid, const char *beginning)
{
    return strncmp(uuid, beginning, strlen(beginning)) == 0;
}

/* By UUID, or by a beginning that only one device has. */
static bool choose_named(const struct match *m, const struct job_device *wanted)
{
    size_t n_found = 0, found = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct job_seen *s = &m->seen[i];
        bool is_it = wanted->gi < 0 ? begins(s->uuid, wanted->uuid)
                                    : begins(s->parent_uuid, wanted->uuid) && *s->parent_uuid && s->gi == wanted->gi &&
                                          s->ci == wanted->ci;
        n_found += is_it;
        found = is_it ? i : found;
    }
    if (n_found == 1 && *m->seen[found].parent_uuid)
        m->is_chosen[found] = true;
    else if (n_found == 1)
        choose_gpu(m, found);
    return n_found == 1;
}

/* Does CUDA count as the bus does? By speed where there are several models, which NVML does not rank. */
static bool has_several_models(const struct match *m)
{
    for (size_t i = 1; i < m->n_gpus; i++)
        if (strcmp(m->seen[m->gpus[i]].model, m->seen[m->gpus[0]].model) != 0)
            return true;
    return false;
}

static int compare_places(const struct match *m, enum job_order order, size_t a, size_t b)
{
    const struct job_seen *x = &m->seen[a], *y = &m->seen[b];
    if (order != JOB_ORDER_NODE && *x->pci_bus_id && *y->pci_bus_id)
        return strcmp(x->pci_bus_id, y->pci_bus_id); /* of one width and case: NVML writes both */
    return x->index - y->index;
}

/* Insertion into `gpus`, for there are few. */
static void put_in_order(struct match *m, enum job_order order, size_t *gpus)
{
    for (size_t i = 0; i < m->n; i++) {
        if (*m->seen[i].parent_uuid)
            continue;
        size_t at = m->n_gpus++;
        for (; at && compare_places(m, order, gpus[at - 1], i) > 0; at--)
            gpus[at] = gpus[at - 1];
        gpus[at] = i;
    }
}

/* Slurm counts the node's GPUs; a cgroup shows the job's alone, counted from 0. A list of as many as there are is
 * exactly those. */
static bool is_whole_list(const struct job_plan *plan, size_t n_gpus)
{
    bool has_beyond = false;
    if (plan->order != JOB_ORDER_NODE || plan->environment != JOB_SLURM || plan->devices.len != n_gpus ||
        strcmp(plan->source, "--device") == 0)
        return false;
    for (size_t i = 0; i < plan->devices.len; i++)
        has_beyond = has_beyond || plan->devices.items[i].index >= (int)n_gpus;
    return has_beyond;
}

static bool choose_index(const struct match *m, enum job_order order, int index)
{
    if (order != JOB_ORDER_NODE) {
        if ((size_t)index < m->n_gpus)
            choose_gpu(m, m->gpus[index]);
        return (size_t)index < m->n_gpus;
    }
    for (size_t i = 0; i < m->n_gpus; i++)
        if (m->seen[m->gpus[i]].index == index) {
            choose_gpu(m, m->gpus[i]);
            return true;
        }
    return false;
}

static size_t choose_list(const struct job_plan *plan, const struct match *m)
{
    size_t n_missing = 0;
    bool has_index = false;
    for (size_t i = 0; i < plan->devices.len; i++) {
        const struct job_device *wanted = &plan->devices.items[i];
        has_index = has_index || wanted->index >= 0;
        if (wanted->index < 0 ? choose_named(m, wanted) : choose_index(m, plan->order, wanted->index))
            continue;
        (void)buf_printf(m->note, "%s%s", n_missing++ ? ", " : "not here: ", wanted->words);
    }
    if (*plan->unread)
        (void)buf_printf(m->note, "%s\"%s\"", n_missing++ ? ", " : "not here: ", plan->unread);
    if (n_missing)
        (void)buf_printf(m->note, " (%s)", plan->source);
    if (has_index && plan->order == JOB_ORDER_FASTEST && has_several_models(m))
        (void)buf_printf(m->note,
                         "%sthe GPUs are of several models and CUDA counts them by speed, which is not known here: "
                         "%s was read in PCI order; CUDA_DEVICE_ORDER=PCI_BUS_ID makes it certain",
                         n_missing ? "; " : "", plan->source);
    return n_missing;
}

size_t job_match(const struct job_plan *plan, const struct job_seen *seen, size_t n, bool *ret_is_chosen,
                 struct buf *note)
{
    MEM_AUTO size_t *gpus = mem_new_array(n + 1, sizeof(*gpus));
    struct match m = {.seen = seen, .n = n, .is_chosen = ret_is_chosen, .gpus = gpus, .note = note};
    put_in_order(&m, plan->order, gpus);
    bool is_all = plan->choice == JOB_ALL || (plan->choice == JOB_LIST && is_whole_list(plan, m.n_gpus));
    for (size_t i = 0; i < n; i++)
        ret_is_chosen[i] = is_all;
    return plan->choice == JOB_LIST && !is_all ? choose_list(plan, &m) : 0;
}
