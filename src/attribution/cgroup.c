/* From the text of /proc/<pid>/cgroup to the pod and container that the process is in. Paths differ by cgroup version,
 * driver, runtime and by the reader's own cgroup namespace, so nothing is anchored: pod UIDs and container ids are
 * looked for wherever they stand. */
#include "attribution/attribution_private.h"

#include <string.h>

enum { UUID_CHARS = 36, STATIC_CHARS = 32 /* a static pod's: the hash of its file */, ID_CHARS = 64 };

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t hex_run(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && is_hex(at[n]))
        n++;
    return n;
}

static bool ends_name(const char *at, const char *end)
{
    return at == end || *at == '.' || *at == '/' || *at == ':' || *at == ' ';
}

/* The length of the pod UID at the front, 0 where there is none. The systemd driver writes '_' for '-'. */
static size_t uid_length(const char *at, const char *end)
{
    size_t n = hex_run(at, end);
    if (n == STATIC_CHARS)
        return ends_name(at + n, end) ? n : 0;
    if (end - at < UUID_CHARS)
        return 0;
    for (size_t i = 0; i < UUID_CHARS; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? at[i] != '-' && at[i] != '_' : !is_hex(at[i]))
            return 0;
    }
    return ends_name(at + UUID_CHARS, end) ? UUID_CHARS : 0;
}

/* The last pod of the path; returns where its name ends, NULL where there is none. A node inside a container (kind) has
 * the outer one's path before its own. */
static const char *find_pod(struct str path, struct attribution_cgroup *ret)
{
    const char *end = path.ptr + path.len, *after = NULL;
    for (const char *at = path.ptr; at + 3 < end; at++) {
        size_t n = memcmp(at, "pod", 3) == 0 ? uid_length(at + 3, end) : 0;
        if (n == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            ret->pod_uid[i] = at[3 + i] == '_' ? '-' : at[3 + i];
        ret->pod_uid[n] = '\0';
        after = at + 3 + n;
    }
    return after;
}

static bool has_before(const char *at, const char *start, const char *word)
{
    size_t n = strlen(word);
    return (size_t)(at - start) >= n && memcmp(at - n, word, n) == 0;
}

/* The first container id: what stands deeper was made inside of it (docker in a pod). conmon watches a container and is
 * none. */
static void find_container(const char *at, const char *end, struct attribution_cgroup *ret)
{
    for (const char *start = at; at < end; at++) {
        size_t n = hex_run(at, end);
        if (n == ID_CHARS && !has_before(at, start, "conmon-")) {
            memcpy(ret->container_id, at, n);
            ret->container_id[n] = '\0';
            return;
        }
        at += n;
        if (at == end)
            return;
    }
}

/* How much a line is worth where they differ: v1 and hybrid have one for each hierarchy. */
static int rank(struct str controllers, struct str path, const struct attribution_cgroup *found)
{
    bool is_usual = controllers.len == 0 || str_equals(controllers, "memory") || str_equals(controllers, "pids") ||
                    str_equals(controllers, "name=systemd");
    bool has_kubepods = memmem(path.ptr, path.len, "kubepods", 8) != NULL;
    return (*found->pod_uid ? 8 : 0) + (*found->container_id ? 4 : 0) + (has_kubepods ? 2 : 0) + (is_usual ? 1 : 0);
}

/* One line, "N:controllers:path"; the path may hold colons. */
static int read_line(struct str line, struct attribution_cgroup *ret)
{
    (void)str_cut(&line, ':');
    if (!line.ptr)
        return -1;
    struct str controllers = str_cut(&line, ':');
    if (!line.ptr)
        return -1;
    const char *end = line.ptr + line.len, *after = find_pod(line, ret);
    find_container(after ? after : line.ptr, end, ret);
    ret->is_relative = str_has_prefix(line, "/../");
    return rank(controllers, line, ret);
}

bool attribution_cgroup_parse(struct str content, struct attribution_cgroup *ret)
{
    struct attribution_cgroup best = {.is_pod = false};
    int best_rank = -1;
    while (content.ptr) {
        struct attribution_cgroup found = {.is_pod = false};
        struct str line = str_cut(&content, '\n');
        int line_rank = line.len ? read_line(line, &found) : -1;
        if (line_rank > best_rank) {
            best_rank = line_rank;
            best = found;
        }
    }
    if (best_rank < 0)
        return false;
    best.is_pod = *best.pod_uid != '\0';
    *ret = best;
    return true;
}

bool attribution_stat_parse(struct str content, uint64_t *ret_start_ticks)
{
    enum { BEFORE_START = 19 }; /* fields between the name, which may hold spaces and parentheses, and field 22 */
    const char *name_end = content.len ? memrchr(content.ptr, ')', content.len) : NULL;
    if (!name_end)
        return false;
    struct str rest = str_trim((struct str){name_end + 1, (size_t)(content.ptr + content.len - name_end - 1)});
    for (int i = 0; i < BEFORE_START && rest.ptr; i++)
        (void)str_cut(&rest, ' ');
    struct str field = rest.ptr ? str_cut(&rest, ' ') : (struct str){"", 0};
    uint64_t ticks;
    if (num_parse_u64(field, &ticks) < 0)
        return false;
    *ret_start_ticks = ticks;
    return true;
}
