/* Names of pods from what the kubelet leaves in /var/log, without the API server: folders named by UID, links named by
 * container id. Names hold no '_', so it separates them. */
#include "attribution/attribution_private.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { ENTRIES_MAX = 65536 /* of one folder, more are not looked at */, ID_CHARS = 64 };

static bool keep_names(struct attribution_pod_name *ret, struct str ns, struct str pod)
{
    bool fits = ns.len && ns.len <= ATTRIBUTION_NAME_MAX && pod.len && pod.len <= ATTRIBUTION_NAME_MAX;
    if (!fits || memchr(ns.ptr, '\0', ns.len) || memchr(pod.ptr, '\0', pod.len))
        return false;
    return str_copy(ret->ns, sizeof(ret->ns), ns) && str_copy(ret->pod, sizeof(ret->pod), pod);
}

bool attribution_pod_folder_parse(struct str name, struct attribution_pod_name *ret, struct str *ret_uid)
{
    struct str ns = str_cut(&name, '_');
    struct str pod = name.ptr ? str_cut(&name, '_') : name;
    if (!name.ptr || name.len == 0 || name.len >= ATTRIBUTION_UID_MAX || !keep_names(ret, ns, pod))
        return false;
    *ret_uid = name;
    return true;
}

bool attribution_log_link_parse(struct str name, struct attribution_pod_name *ret, struct str *ret_id)
{
    if (!str_has_suffix(name, ".log"))
        return false;
    name.len -= strlen(".log");
    struct str pod = str_cut(&name, '_');
    struct str ns = name.ptr ? str_cut(&name, '_') : name;
    /* What is left is "<container>-<id>"; the container's name may hold '-' too. */
    if (!name.ptr || name.len < ID_CHARS + 2 || name.ptr[name.len - ID_CHARS - 1] != '-' || !keep_names(ret, ns, pod))
        return false;
    *ret_id = (struct str){name.ptr + name.len - ID_CHARS, ID_CHARS};
    return true;
}

/* ---- the folders ---- */

static bool is_nameless(const struct attribution_process *p)
{
    return p->is_read && !*p->name.pod && (p->cgroup.is_pod || *p->cgroup.container_id);
}

/* A pod has many processes, and each of them its name. */
static void take_names_of_siblings(struct attribution_look *look)
{
    for (size_t i = 0; i < look->n_processes; i++) {
        struct attribution_process *p = &look->processes[i];
        for (size_t k = 0; is_nameless(p) && p->cgroup.is_pod && k < look->n_processes; k++) {
            const struct attribution_process *q = &look->processes[k];
            if (*q->name.pod && strcmp(q->cgroup.pod_uid, p->cgroup.pod_uid) == 0)
                p->name = q->name;
        }
    }
}

static size_t count_nameless(const struct attribution_look *look)
{
    size_t n = 0;
    for (size_t i = 0; i < look->n_processes; i++)
        n += is_nameless(&look->processes[i]);
    return n;
}

static void name_all(struct attribution_look *look, bool is_link, const char *entry)
{
    struct attribution_pod_name name;
    struct str key;
    if (is_link ? !attribution_log_link_parse(str_of(entry), &name, &key)
                : !attribution_pod_folder_parse(str_of(entry), &name, &key))
        return;
    for (size_t i = 0; i < look->n_processes; i++) {
        struct attribution_process *p = &look->processes[i];
        const char *own = is_link ? p->cgroup.container_id : p->cgroup.pod_uid;
        if (is_nameless(p) && str_equals(key, own))
            p->name = name;
    }
}

static void read_folder(struct attribution_look *look, bool is_link)
{
    DIR *folder = opendir(is_link ? look->log_links : look->pod_logs);
    if (!folder)
        return; /* not mounted: pods stay without names */
    const struct dirent *entry;
    for (size_t n = 0; n < ENTRIES_MAX && (entry = readdir(folder)); n++)
        name_all(look, is_link, entry->d_name);
    (void)closedir(folder);
}

void attribution_find_names(struct attribution_look *look)
{
    take_names_of_siblings(look);
    look->has_read_names = look->wants_names && count_nameless(look);
    if (look->has_read_names)
        read_folder(look, false);
    if (look->has_read_names && count_nameless(look))
        read_folder(look, true);
    look->lacks_names = count_nameless(look) > 0;
}
