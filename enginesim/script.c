/* Scenario files of simulated model servers: the keys, their ranges and defaults. */
#include "enginesim/script.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define X(name, key) key,
const char *const script_engines[SCRIPT_ENGINE_COUNT] = {SCRIPT_ENGINES(X)};
const char *const script_faults[SCRIPT_FAULT_COUNT] = {SCRIPT_FAULTS(X)};
#undef X

struct parser {
    struct reader reader; /* first: the rules' functions get this one */
    struct script *script;
};

static struct script *script_of(struct reader *r)
{
    return CONTAINER_OF(r, struct parser, reader)->script;
}

/* ---- faults ---- */

static int read_fault_kind(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    size_t at = 0;
    (void)param;
    if (reader_choice(r, node, script_faults, SCRIPT_FAULT_COUNT, &at) < 0)
        return -1;
    ((struct script_fault *)target)->kind = (enum script_fault_kind)at;
    return 0;
}

static int read_time(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return reader_double(r, node, 0, 1e9, (double *)(void *)((char *)target + param));
}

static int read_rate(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return reader_double(r, node, 0, 1, (double *)(void *)((char *)target + param));
}

static int read_code(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return reader_u32(r, node, 200, 599, (uint32_t *)(void *)((char *)target + param));
}

static const struct key_rule fault_rules[] = {
    {"fault", read_fault_kind, 0},
    {"from", read_time, offsetof(struct script_fault, from_s)},
    {"until", read_time, offsetof(struct script_fault, until_s)},
    {"code", read_code, offsetof(struct script_fault, code)},
    {"rate", read_rate, offsetof(struct script_fault, rate)},
};

static int read_fault(struct reader *r, const struct tree_node *node, struct script_fault *f)
{
    *f = (struct script_fault){.kind = SCRIPT_FAULT_COUNT, .until_s = (double)INFINITY, .rate = -1};
    if (reader_map(r, node, "a fault", fault_rules, ARRAY_LEN(fault_rules), f) < 0)
        return -1;
    if (f->kind == SCRIPT_FAULT_COUNT)
        return reader_error(r, node, "which fault? `fault:` is missing");
    if (isinf(f->until_s) && (f->kind == SCRIPT_FAULT_CANCEL || f->kind == SCRIPT_FAULT_RESTART))
        f->until_s = f->from_s;
    else if (f->until_s <= f->from_s)
        return reader_error(r, node, "until (%g) must be after from (%g)", f->until_s, f->from_s);
    if ((f->kind == SCRIPT_FAULT_STATUS) != (f->code != 0))
        return reader_error(r, node, "code belongs to the fault status, which needs it");
    if (f->rate >= 0 && f->kind != SCRIPT_FAULT_SLOW)
        return reader_error(r, node, "rate belongs to the fault slow");
    f->rate = fmax(f->rate, 0);
    return 0;
}

static int read_faults(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    struct script_server *s = (struct script_server *)target;
    (void)param;
    if (reader_list(r, node, "faults", SCRIPT_FAULTS_MAX) < 0)
        return -1;
    struct script_fault *faults = (struct script_fault *)reader_alloc(r, node, node->n_children, sizeof(*faults));
    for (const struct tree_node *item = node->first; faults && item; item = item->next)
        if (read_fault(r, item, &faults[s->n_faults++]) < 0)
            return -1;
    s->faults = faults;
    return faults ? 0 : -1;
}

/* ---- a server's keys ---- */

static int read_engine(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    size_t at = 0;
    (void)param;
    if (reader_choice(r, node, script_engines, SCRIPT_ENGINE_COUNT, &at) < 0)
        return -1;
    ((struct script_server *)target)->engine = (enum script_engine)at;
    return 0;
}

static int read_names(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    static const char *const names[] = {"new", "old", "both"};
    size_t at = 0;
    (void)param;
    if (reader_choice(r, node, names, ARRAY_LEN(names), &at) < 0)
        return -1;
    ((struct script_server *)target)->names = (enum script_names)at;
    return 0;
}

static int read_listen(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    const char *text = reader_text(r, node, SCRIPT_LISTEN_MAX - 1);
    if (!text)
        return -1;
    if (!strchr(text, ':'))
        return reader_error(r, node, "must be an address like 127.1.0.5:8000");
    (void)str_copy(((struct script_server *)target)->listen, SCRIPT_LISTEN_MAX, str_of(text));
    return 0;
}

static int read_text(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    const char *text = reader_text(r, node, 200);
    char *copy = text ? arena_strndup(r->arena, text, strlen(text)) : NULL;
    if (text && !copy)
        return reader_error(r, node, "the scenario needs too much memory");
    if (copy && param == offsetof(struct script_server, path) && copy[0] != '/')
        return reader_error(r, node, "must begin with /");
    if (copy)
        memcpy((char *)target + param, &copy, sizeof(copy));
    return copy ? 0 : -1;
}

static int read_flag(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return reader_bool(r, node, (bool *)((char *)target + param));
}

/* Whole numbers and others, with their ranges, by where they are stored. */
static const struct {
    size_t offset;
    uint32_t lowest, highest;
} whole_ranges[] = {
    {offsetof(struct script_server, ranks), 1, SCRIPT_RANKS_MAX},
    {offsetof(struct script_server, tensor_ranks), 1, SCRIPT_RANKS_MAX},
    {offsetof(struct script_server, api_servers), 1, 64},
    {offsetof(struct script_server, slots), 1, 4096},
    {offsetof(struct script_server, pad_bytes), 0, SCRIPT_PAD_MAX},
};
static const struct {
    size_t offset;
    double lowest, highest;
} number_ranges[] = {
    {offsetof(struct script_server, service_rate), 1e-4, 1e4},
    {offsetof(struct script_server, prefill_percent), 0, 99},
    {offsetof(struct script_server, kv_per_request_percent), 0, 100},
    {offsetof(struct script_server, kv_base_percent), 0, 99},
    {offsetof(struct script_server, prompt_tokens), 1, 1e7},
    {offsetof(struct script_server, output_tokens), 1, 1e6},
};

static int read_whole(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    size_t i = 0;
    while (whole_ranges[i].offset != param)
        i++;
    return reader_u32(r, node, whole_ranges[i].lowest, whole_ranges[i].highest,
                      (uint32_t *)(void *)((char *)target + param));
}

static int read_number(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    size_t i = 0;
    while (number_ranges[i].offset != param)
        i++;
    return reader_double(r, node, number_ranges[i].lowest, number_ranges[i].highest,
                         (double *)(void *)((char *)target + param));
}

static int read_arrivals(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return reader_curve(r, node, 0, 1e5, &((struct script_server *)target)->arrivals);
}

struct draft {
    struct script_server server; /* first: most rules fill this */
    uint32_t count;
    const struct tree_node *shares, *listen;
};

static int read_listen_node(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)reader_defer(r, node, target, param);
    return read_listen(r, node, target, 0);
}

static int read_count(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    return reader_u32(r, node, 1, SCRIPT_SERVERS_MAX, (uint32_t *)(void *)((char *)target + param));
}

#define AT(member) offsetof(struct script_server, member)
static const struct key_rule server_rules[] = {
    {"engine", read_engine, 0},
    {"listen", read_listen_node, offsetof(struct draft, listen)},
    {"count", read_count, offsetof(struct draft, count)},
    {"path", read_text, AT(path)},
    {"model", read_text, AT(model)},
    {"token", read_text, AT(token)},
    {"tls_cert", read_text, AT(tls_cert)},
    {"tls_key", read_text, AT(tls_key)},
    {"names", read_names, 0},
    {"ranks", read_whole, AT(ranks)},
    {"tensor_ranks", read_whole, AT(tensor_ranks)},
    {"api_servers", read_whole, AT(api_servers)},
    {"waiting_by_reason", read_flag, AT(has_reasons)},
    {"gzip", read_flag, AT(is_gzipped)},
    {"poisson", read_flag, AT(is_poisson)},
    {"attention_dp", read_flag, AT(is_attention_dp)},
    {"arrivals", read_arrivals, 0},
    {"shares", reader_defer, offsetof(struct draft, shares)},
    {"service_rate", read_number, AT(service_rate)},
    {"prefill_percent", read_number, AT(prefill_percent)},
    {"slots", read_whole, AT(slots)},
    {"kv_per_request_percent", read_number, AT(kv_per_request_percent)},
    {"kv_base_percent", read_number, AT(kv_base_percent)},
    {"prompt_tokens", read_number, AT(prompt_tokens)},
    {"output_tokens", read_number, AT(output_tokens)},
    {"pad_bytes", read_whole, AT(pad_bytes)},
    {"faults", read_faults, 0},
};
#undef AT

static int read_shares(struct reader *r, const struct tree_node *node, struct script_server *s)
{
    double sum = 0;
    size_t n = 0;
    if (reader_list(r, node, "shares", SCRIPT_RANKS_MAX) < 0)
        return -1;
    if (node->n_children != s->ranks)
        return reader_error(r, node, "shares has %zu entries for %u ranks", node->n_children, s->ranks);
    double *shares = (double *)reader_alloc(r, node, node->n_children, sizeof(*shares));
    for (const struct tree_node *item = node->first; shares && item; item = item->next, n++) {
        if (reader_double(r, item, 0, 1e6, &shares[n]) < 0)
            return -1;
        sum += shares[n];
    }
    if (shares && !(sum > 0))
        return reader_error(r, node, "shares must not all be 0");
    for (size_t i = 0; shares && i < n; i++)
        shares[i] /= sum;
    s->shares = shares;
    return shares ? 0 : -1;
}

/* The address of the i-th server of several: "127.1.0.250:8000" and 10 give "127.1.1.4:8000". */
static int step_address(struct reader *r, const struct tree_node *node, uint32_t i, char listen[SCRIPT_LISTEN_MAX])
{
    struct in_addr ip;
    char *colon = strrchr(listen, ':');
    char host[INET_ADDRSTRLEN], port[SCRIPT_LISTEN_MAX];
    (void)str_copy(port, sizeof(port), str_of(colon));
    *colon = '\0';
    if (inet_pton(AF_INET, listen, &ip) != 1)
        return reader_error(r, node, "with count it must be an IPv4 address and a port");
    ip.s_addr = htonl(ntohl(ip.s_addr) + i);
    (void)inet_ntop(AF_INET, &ip, host, sizeof(host));
    (void)snprintf(listen, SCRIPT_LISTEN_MAX, "%s%.8s", host, port);
    return 0;
}

static int add_server(struct reader *r, const struct tree_node *node, const struct script_server *server)
{
    struct script *s = script_of(r);
    for (size_t i = 0; i < s->n_servers; i++)
        if (!strcmp(s->servers[i].listen, server->listen) && !str_has_suffix(str_of(server->listen), ":0"))
            return reader_error(r, node, "two servers listen on %s", server->listen);
    s->servers[s->n_servers++] = *server;
    return 0;
}

static int read_server(struct reader *r, const struct tree_node *node)
{
    struct draft d = {.count = 1,
                      .server = {.path = "/metrics",
                                 .model = "sim/chat-8b",
                                 .ranks = 1,
                                 .tensor_ranks = 1,
                                 .api_servers = 1,
                                 .service_rate = 2,
                                 .prefill_percent = 10,
                                 .slots = 16,
                                 .kv_per_request_percent = 5,
                                 .prompt_tokens = 500,
                                 .output_tokens = 200,
                                 .engine = SCRIPT_ENGINE_COUNT}};
    if (reader_map(r, node, "a server", server_rules, ARRAY_LEN(server_rules), &d) < 0)
        return -1;
    if (d.server.engine == SCRIPT_ENGINE_COUNT || !d.listen)
        return reader_error(r, node, "a server needs `engine:` and `listen:`");
    if (!d.server.tls_cert != !d.server.tls_key)
        return reader_error(r, node, "tls_cert and tls_key belong together");
    if (d.server.kv_base_percent + d.server.kv_per_request_percent > 100)
        return reader_error(r, node, "not one request fits into the KV cache");
    if (d.shares && read_shares(r, d.shares, &d.server) < 0)
        return -1;
    if (script_of(r)->n_servers + d.count > SCRIPT_SERVERS_MAX)
        return reader_error(r, node, "more than %d servers", SCRIPT_SERVERS_MAX);
    for (uint32_t i = 0; i < d.count; i++) {
        struct script_server server = d.server;
        if (d.count > 1 && step_address(r, d.listen, i, server.listen) < 0)
            return -1;
        if (add_server(r, d.listen, &server) < 0)
            return -1;
    }
    return 0;
}

/* ---- the top ---- */

struct top {
    const struct tree_node *servers;
    uint32_t seed;
    bool restart_clock;
};

static int read_seed(struct reader *r, const struct tree_node *node, void *target, size_t param)
{
    (void)param;
    return reader_u32(r, node, 0, UINT32_MAX, &((struct top *)target)->seed);
}

static const struct key_rule top_rules[] = {
    {"seed", read_seed, 0},
    {"restart_clock", read_flag, offsetof(struct top, restart_clock)},
    {"servers", reader_defer, offsetof(struct top, servers)},
};

static int read_all(struct reader *r, const struct tree_node *root)
{
    struct top top = {0};
    struct script *s = script_of(r);
    if (reader_map(r, root, "a scenario", top_rules, ARRAY_LEN(top_rules), &top) < 0)
        return -1;
    if (!top.servers)
        return reader_error(r, root, "a scenario needs `servers:` (a list, which may be empty)");
    r->seed = s->seed = top.seed;
    s->restart_clock = top.restart_clock;
    if (reader_list(r, top.servers, "servers", SCRIPT_SERVERS_MAX) < 0)
        return -1;
    s->servers = (struct script_server *)reader_alloc(r, root, SCRIPT_SERVERS_MAX, sizeof(*s->servers));
    if (!s->servers)
        return -1;
    for (const struct tree_node *item = top.servers->first; item; item = item->next)
        if (read_server(r, item) < 0)
            return -1;
    return 0;
}

struct script *script_parse(const struct script_source *source, struct str text, struct err *e)
{
    ARENA_AUTO struct arena nodes;
    arena_init(&nodes, SCENE_BYTES_MAX);
    const struct tree_node *root = tree_parse(source->name, text, &nodes, e);
    if (!root)
        return NULL;
    struct script *s = mem_new(struct script);
    arena_init(&s->arena, SCENE_BYTES_MAX);
    struct parser p = {.reader = {.name = source->name,
                                  .arena = &s->arena,
                                  .e = e,
                                  .read_file = source->read_file,
                                  .context = source->context},
                       .script = s};
    if (read_all(&p.reader, root) < 0) {
        script_free(s);
        return NULL;
    }
    return s;
}

void script_free(struct script *s)
{
    if (!s)
        return;
    arena_fini(&s->arena);
    free(s);
}
