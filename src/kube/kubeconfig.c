/* A kubeconfig file (client-go tools/clientcmd/api/v1): the current context's cluster, user and namespace. What would
 * run a program or change who we are is refused with what to use in its place; unknown fields are passed over. */
#include "kube/kube_private.h"

#include <string.h>
#include <yaml.h>

struct reader {
    yaml_document_t document;
    const char *dir; /* of the file: relative paths start here */
    struct kube_access *access;
    struct err *e;
};

static const yaml_node_t *member(struct reader *r, const yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *pair = map->data.mapping.pairs.start; pair < map->data.mapping.pairs.top; pair++) {
        const yaml_node_t *name = yaml_document_get_node(&r->document, pair->key);
        if (name && name->type == YAML_SCALAR_NODE && strcmp((const char *)name->data.scalar.value, key) == 0)
            return yaml_document_get_node(&r->document, pair->value);
    }
    return NULL;
}

/* NULL where there is none, or an empty one, or no text. */
static const char *text_of(struct reader *r, const yaml_node_t *map, const char *key)
{
    const yaml_node_t *node = member(r, map, key);
    if (!node || node->type != YAML_SCALAR_NODE || node->data.scalar.length == 0)
        return NULL;
    return (const char *)node->data.scalar.value;
}

static bool has(struct reader *r, const yaml_node_t *map, const char *key)
{
    const yaml_node_t *node = member(r, map, key);
    if (!node)
        return false;
    bool is_null = node->type == YAML_SCALAR_NODE &&
                   (node->data.scalar.length == 0 || strcmp((const char *)node->data.scalar.value, "null") == 0);
    return !is_null;
}

/* The entry called name of clusters, users or contexts: its member of the singular word. */
static const yaml_node_t *entry(struct reader *r, const char *list, const char *name, const char *member_name)
{
    const yaml_node_t *node = member(r, yaml_document_get_root_node(&r->document), list);
    if (node && node->type == YAML_SEQUENCE_NODE)
        for (const yaml_node_item_t *i = node->data.sequence.items.start; i < node->data.sequence.items.top; i++) {
            const yaml_node_t *item = yaml_document_get_node(&r->document, *i);
            const char *is = text_of(r, item, "name");
            if (is && strcmp(is, name) == 0)
                return member(r, item, member_name);
        }
    return NULL;
}

/* key-data in base64, which wins, or key, a path. */
static int read_credential(struct reader *r, const yaml_node_t *map, const char *key, char **ret_text, char **ret_file)
{
    char data_key[64];
    (void)snprintf(data_key, sizeof(data_key), "%s-data", key);
    const char *data = text_of(r, map, data_key), *path = text_of(r, map, key);
    if (data) {
        *ret_text = kube_from_base64(data);
        return *ret_text ? 0 : err_set(r->e, ERR_INVALID_ARGUMENT, "%s is not PEM text in base64", data_key);
    }
    if (path) {
        struct buf full BUF_AUTO;
        buf_init(&full, 8192);
        (void)buf_printf(&full, "%s%s%s", *path == '/' ? "" : r->dir, *path == '/' ? "" : "/", path);
        *ret_file = mem_strdup(buf_cstr(&full));
    }
    return 0;
}

static int read_server(struct reader *r, const yaml_node_t *cluster)
{
    const char *server = text_of(r, cluster, "server");
    if (!server)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "server is missing");
    if (!str_has_prefix(str_of(server), "https://") && !str_has_prefix(str_of(server), "http://"))
        return err_set(r->e, ERR_INVALID_ARGUMENT, "server \"%s\" does not begin with https:// or http://", server);
    size_t len = strlen(server);
    while (server[len - 1] == '/')
        len--;
    if (len <= strlen("https:") || server[strcspn(server, " \t\r\n?#@")])
        return err_set(r->e, ERR_INVALID_ARGUMENT, "server \"%s\" is not the address of a server", server);
    r->access->server = mem_strndup(server, len);
    return 0;
}

static int read_cluster(struct reader *r, const yaml_node_t *cluster)
{
    const char *insecure = text_of(r, cluster, "insecure-skip-tls-verify"), *proxy = text_of(r, cluster, "proxy-url");
    if (has(r, cluster, "tls-server-name"))
        return err_set(r->e, ERR_INVALID_ARGUMENT,
                       "tls-server-name is not supported: use a server address that its certificate names");
    if (insecure && num_parse_bool(str_of(insecure), &r->access->is_insecure) < 0)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "insecure-skip-tls-verify is neither true nor false");
    r->access->proxy = proxy ? mem_strdup(proxy) : NULL;
    if (read_server(r, cluster) < 0)
        return -1;
    return read_credential(r, cluster, "certificate-authority", &r->access->ca, &r->access->ca_file);
}

static int refuse_others(struct reader *r, const yaml_node_t *user)
{
    static const struct {
        const char *key, *instead;
    } others[] = {
        {"exec", "plugins are not run: use a service account's token (token or tokenFile), or a client certificate"},
        {"auth-provider", "providers are not built in: use a service account's token, or a client certificate"},
        {"username", "API servers take no passwords any more: use a service account's token, or a client certificate"},
        {"as", "impersonation is not supported: use the credentials of a user who may read what is needed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (has(r, user, others[i].key))
            return err_set(r->e, ERR_INVALID_ARGUMENT, "%s: %s", others[i].key, others[i].instead);
    return 0;
}

static int read_user(struct reader *r, const yaml_node_t *user)
{
    struct kube_access *access = r->access;
    const char *token = text_of(r, user, "token");
    char *unused = NULL;
    if (refuse_others(r, user) < 0 ||
        read_credential(r, user, "client-certificate", &access->cert, &access->cert_file) < 0 ||
        read_credential(r, user, "client-key", &access->key, &access->key_file) < 0)
        return -1;
    bool has_cert = access->cert || access->cert_file, has_key = access->key || access->key_file;
    if (has_cert != has_key)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "client-certificate and client-key come together or not at all");
    access->token = token ? mem_strdup(token) : NULL;
    return read_credential(r, user, "tokenFile", &unused, &access->token_file);
}

static int read_contexts(struct reader *r)
{
    const yaml_node_t *root = yaml_document_get_root_node(&r->document);
    const char *name = text_of(r, root, "current-context");
    if (!name)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "current-context is not set");
    const yaml_node_t *context = entry(r, "contexts", name, "context");
    const char *cluster_name = text_of(r, context, "cluster"), *user_name = text_of(r, context, "user");
    const char *ns = text_of(r, context, "namespace");
    if (!context || !cluster_name)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "there is no context \"%s\" with a cluster", name);
    const yaml_node_t *cluster = entry(r, "clusters", cluster_name, "cluster");
    if (!cluster)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "there is no cluster \"%s\"", cluster_name);
    r->access->ns = ns ? mem_strdup(ns) : NULL;
    if (read_cluster(r, cluster) < 0)
        return err_wrap(r->e, "cluster \"%s\"", cluster_name);
    const yaml_node_t *user = user_name ? entry(r, "users", user_name, "user") : NULL;
    if (user_name && !user)
        return err_set(r->e, ERR_INVALID_ARGUMENT, "there is no user \"%s\"", user_name);
    if (user && read_user(r, user) < 0)
        return err_wrap(r->e, "user \"%s\"", user_name);
    return 0;
}

int kube_access_parse(struct str text, const char *dir, struct kube_access *ret_access, struct err *e)
{
    struct reader r = {.dir = dir, .access = ret_access, .e = e};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        abort(); /* only when there is no memory */
    yaml_parser_set_input_string(&parser, (const unsigned char *)text.ptr, text.len);
    if (!yaml_parser_load(&parser, &r.document)) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "line %zu: %s", parser.problem_mark.line + 1,
                      parser.problem ? parser.problem : "not YAML");
        yaml_parser_delete(&parser);
        return -1;
    }
    int rc = read_contexts(&r);
    yaml_document_delete(&r.document);
    yaml_parser_delete(&parser);
    return rc;
}

int kube_access_kubeconfig(const char *path, struct kube_access *ret_access, struct err *e)
{
    struct buf text BUF_AUTO;
    buf_init(&text, KUBE_FILE_BYTES_MAX);
    if (file_read(path, &text, e) < 0)
        return -1;
    const char *slash = strrchr(path, '/');
    char *dir MEM_AUTO = slash ? mem_strndup(path, (size_t)(slash - path)) : mem_strdup(".");
    if (kube_access_parse((struct str){text.data ? text.data : "", text.len}, dir, ret_access, e) < 0)
        return err_wrap(e, "%s", path);
    return 0;
}
