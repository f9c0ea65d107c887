/* Which addresses an endpoint may have: base's table first, which no option lifts, then the operator's lists. */
#include "engine/private.h"

static int read_list(struct engine_lists *lists, bool is_allow, const char *const *texts, struct err *e)
{
    for (; texts && *texts; texts++) {
        struct ip_prefix prefix;
        if (ip_prefix_parse(str_of(*texts), &prefix, e) < 0)
            return err_wrap(e, is_allow ? "--endpoint-allow" : "--endpoint-deny");
        if (is_allow)
            vec_push(&lists->allow, prefix);
        else
            vec_push(&lists->deny, prefix);
    }
    return 0;
}

int engine_lists_init(struct engine_lists *lists, const char *const *allow, const char *const *deny, struct err *e)
{
    *lists = (struct engine_lists){0};
    if (read_list(lists, true, allow, e) == 0 && read_list(lists, false, deny, e) == 0)
        return 0;
    engine_lists_fini(lists);
    return -1;
}

void engine_lists_fini(struct engine_lists *lists)
{
    vec_fini(&lists->allow);
    vec_fini(&lists->deny);
}

static bool is_in(const struct ip_prefix *prefixes, size_t n, const struct ip *ip)
{
    for (size_t i = 0; i < n; i++)
        if (ip_prefix_has(&prefixes[i], ip))
            return true;
    return false;
}

const char *engine_lists_fault(const struct engine_lists *lists, const char *address)
{
    struct ip ip, v4;
    if (ip_parse(str_of(address), &ip) < 0)
        return "is no IP address";
    const char *fault = ip_fault(&ip);
    if (fault)
        return fault;
    if (is_in(lists->deny.items, lists->deny.len, &ip) ||
        (ip_v4_of(&ip, &v4) && is_in(lists->deny.items, lists->deny.len, &v4)))
        return "is denied by --endpoint-deny";
    if (lists->allow.len > 0 && !is_in(lists->allow.items, lists->allow.len, &ip))
        return "is not among those of --endpoint-allow";
    return NULL;
}

const char *engine_address_fault(const char *address, const char *const *allow, const char *const *deny)
{
    struct engine_lists lists;
    if (engine_lists_init(&lists, allow, deny, NULL) < 0)
        return "cannot be judged: --endpoint-allow or --endpoint-deny has an entry that is no prefix";
    const char *fault = engine_lists_fault(&lists, address);
    engine_lists_fini(&lists);
    return fault;
}
