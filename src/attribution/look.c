/* One look at /proc: which of the driver's processes are there, when each started, and in which cgroup it is. It runs
 * off the loop: nothing here may touch what the loop owns. */
#include "attribution/attribution_private.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES = 32768 /* of v1's list of hierarchies; more is no cgroup file */, PATH_BYTES = 320 };

/* The initial pid namespace has this number on every Linux since 3.8 (PROC_PID_INIT_INO). */
#define INITIAL_PID_NAMESPACE "pid:[4026531836]"

static bool read_file(const struct attribution_look *look, const char *who, const char *file, struct buf *out)
{
    char path[PATH_BYTES];
    buf_reset(out);
    (void)snprintf(path, sizeof(path), "%s/%s/%s", look->procfs, who, file);
    return file_read(path, out, NULL) == 0;
}

static bool read_start(const struct attribution_look *look, const char *who, struct buf *text, uint64_t *ret_ticks)
{
    return read_file(look, who, "stat", text) && attribution_stat_parse((struct str){text->data, text->len}, ret_ticks);
}

static bool read_cgroup(const struct attribution_look *look, const char *who, struct buf *text,
                        struct attribution_cgroup *ret)
{
    return read_file(look, who, "cgroup", text) && attribution_cgroup_parse((struct str){text->data, text->len}, ret);
}

static void look_at_self(struct attribution_look *look, struct buf *text, struct attribution_cgroup *ret)
{
    char path[PATH_BYTES], target[64] = "";
    uint64_t ticks;
    look->has_procfs = read_start(look, "self", text, &ticks);
    (void)snprintf(path, sizeof(path), "%s/self/ns/pid", look->procfs);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    look->is_initial = n > 0 && strcmp(target, INITIAL_PID_NAMESPACE) == 0;
    (void)read_cgroup(look, "self", text, ret);
}

/* What is gone keeps what was known of it: it is listed because it was there a moment ago. */
static void look_at(const struct attribution_look *look, struct attribution_process *p, struct buf *text)
{
    char who[16];
    uint64_t ticks;
    (void)snprintf(who, sizeof(who), "%u", p->pid);
    p->is_there = read_start(look, who, text, &ticks);
    if (!p->is_there || (p->is_read && ticks == p->start_ticks))
        return;
    *p = (struct attribution_process){.pid = p->pid, .is_listed = p->is_listed, .is_there = true, .start_ticks = ticks};
    p->is_read = read_cgroup(look, who, text, &p->cgroup);
}

void attribution_look(struct attribution_look *look)
{
    BUF_AUTO struct buf text;
    struct attribution_cgroup own = {.is_pod = false};
    buf_init(&text, FILE_BYTES);
    look->n_found = look->n_foreign = look->n_never = 0;
    look_at_self(look, &text, &own);
    for (size_t i = 0; look->has_procfs && i < look->n_processes; i++) {
        struct attribution_process *p = &look->processes[i];
        look_at(look, p, &text);
        bool counts = p->is_listed && p->is_there;
        look->n_never += p->is_listed && !p->is_there && !p->is_read;
        look->n_found += counts;
        look->n_foreign += counts && p->cgroup.is_pod && strcmp(p->cgroup.pod_uid, own.pod_uid) != 0;
    }
    attribution_find_names(look);
}
