/* Any bytes as /proc/<pid>/cgroup, as /proc/<pid>/stat and as names in /var/log: what comes out has the form of an id
 * and stands in the input. */
#include "attribution/attribution_private.h"

#include <string.h>

static void check_id(struct str input, const char *id, size_t length)
{
    char plain[ATTRIBUTION_CONTAINER_MAX];
    size_t n = strlen(id);
    if (n == 0)
        return;
    if (n != length || strspn(id, "0123456789abcdef-") != n)
        abort();
    for (size_t i = 0; i <= n; i++)
        plain[i] = id[i] == '-' ? '_' : id[i];
    if (memmem(input.ptr, input.len, id, 8) == NULL && memmem(input.ptr, input.len, plain, 8) == NULL)
        abort();
}

static void check_cgroup(struct str input)
{
    struct attribution_cgroup got;
    if (!attribution_cgroup_parse(input, &got))
        return;
    if (got.is_pod != (*got.pod_uid != '\0'))
        abort();
    check_id(input, got.pod_uid, memchr(got.pod_uid, '-', sizeof(got.pod_uid)) ? 36 : 32);
    check_id(input, got.container_id, 64);
}

static void check_names(struct str input)
{
    struct attribution_pod_name name;
    struct str key;
    if (attribution_pod_folder_parse(input, &name, &key) &&
        (!*name.pod || !*name.ns || key.len == 0 || key.ptr + key.len != input.ptr + input.len))
        abort();
    if (attribution_log_link_parse(input, &name, &key) &&
        (!*name.pod || !*name.ns || key.len != 64 || key.ptr + key.len + 4 != input.ptr + input.len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str input = {size ? (const char *)data : "", size};
    uint64_t ticks;
    check_cgroup(input);
    check_names(input);
    (void)attribution_stat_parse(input, &ticks);
    return 0;
}
