/* Certificates in Secrets: two reads, a decision, and the writes that follow from it, each over the version that was
 * read. Runs a loop of its own until that is done. */
#include "cli/cert.h"
#include "kube/kube.h"

#include <stdio.h>
#include <string.h>

enum { TRIES_MAX = 4 };

static const char ca_crt[] = "ca.crt", tls_crt[] = "tls.crt", tls_key[] = "tls.key";

/* One Secret as it was read. */
struct place {
    const char *name;
    char *version; /* "" there is none */
    bool is_helms; /* Helm would delete it with the release's next revision */
};

struct session {
    struct net_loop *loop;
    struct kube *kube;
    const char *ns;
    struct place end, authority;
    /* of the call under way */
    struct place *place;
    struct cert_store *store;
    int rc;
    struct err error;
};

static struct buf *text_for(const struct session *s, const char *key)
{
    struct net_pem *pem = s->place == &s->authority ? &s->store->authority : &s->store->end;
    if (strcmp(key, ca_crt) == 0)
        return s->place == &s->authority ? NULL : &s->store->trusted;
    return strcmp(key, tls_crt) == 0 ? &pem->cert : &pem->key;
}

static void take_version(struct place *place, const char *version)
{
    free(place->version);
    place->version = mem_strdup(version);
}

static void on_read(void *context, const struct kube_secret *secret, const struct err *error)
{
    struct session *s = (struct session *)context;
    s->rc = error && error->class != ERR_NOT_FOUND ? -1 : 0;
    if (error)
        s->error = *error;
    take_version(s->place, secret ? secret->meta.resource_version : "");
    s->place->is_helms = secret && secret->is_helms && !secret->is_kept;
    for (size_t i = 0; secret && i < secret->n_items; i++) {
        struct buf *text = text_for(s, secret->items[i].key);
        if (text)
            (void)buf_append_str(text, secret->items[i].value); /* what is too long is no certificate */
    }
    net_loop_stop(s->loop);
}

static void on_written(void *context, const struct kube_secret *secret, const struct err *error)
{
    struct session *s = (struct session *)context;
    s->rc = error ? -1 : 0;
    if (error)
        s->error = *error;
    if (secret)
        take_version(s->place, secret->meta.resource_version);
    net_loop_stop(s->loop);
}

static int finish(struct session *s, struct err *e)
{
    net_loop_run(s->loop);
    return s->rc == 0 ? 0 : err_set(e, s->error.class, "%s", s->error.text);
}

static int read_place(struct session *s, struct place *place, struct err *e)
{
    static const char *const keys[] = {ca_crt, tls_crt, tls_key, NULL};
    s->place = place;
    kube_secret_get(s->kube, &(struct kube_secret_name){s->ns, place->name, keys}, on_read, s);
    return finish(s, e);
}

/* is_whole: with its content; else only the mark that it is to stay. */
static int write_place(struct session *s, struct place *place, bool is_whole, struct err *e)
{
    static const struct kube_pair labels[] = {{"app.kubernetes.io/name", "keda-gpu-scaler"},
                                              {"app.kubernetes.io/part-of", "keda-gpu-scaler"},
                                              {"app.kubernetes.io/component", "cert"}};
    static const struct kube_pair kept[] = {{"helm.sh/resource-policy", "keep"}};
    static const char *const keys[] = {ca_crt, tls_crt, tls_key};
    struct kube_secret secret = {.meta = {.ns = s->ns, .name = place->name},
                                 .type = "kubernetes.io/tls",
                                 .annotations = kept,
                                 .n_annotations = ARRAY_LEN(kept)};
    s->place = place;
    secret.meta.resource_version = place->version;
    if (!*place->version) {
        secret.labels = labels;
        secret.n_labels = ARRAY_LEN(labels);
    }
    for (size_t i = 0; is_whole && i < ARRAY_LEN(keys); i++) {
        struct buf *text = text_for(s, keys[i]);
        if (text)
            secret.items[secret.n_items++] = (struct kube_pair){keys[i], buf_cstr(text)};
    }
    kube_secret_put(s->kube, &secret, on_written, s);
    return finish(s, e);
}

/* The authority first: a key that signed something is never lost. */
static int write_back(struct session *s, const struct cert_result *result, struct err *e)
{
    if (result->has_new_authority && write_place(s, &s->authority, true, e) < 0)
        return -1;
    if (result->outcome != CERT_KEPT)
        return write_place(s, &s->end, true, e);
    return s->end.is_helms ? write_place(s, &s->end, false, e) : 0;
}

static int try_once(struct session *s, const struct cert_wish *wish, struct cert_result *ret, struct err *e)
{
    cert_store_fini(s->store);
    cert_store_init(s->store);
    if (read_place(s, &s->end, e) < 0 || read_place(s, &s->authority, e) < 0 || cert_renew(s->store, wish, ret, e) < 0)
        return -1;
    return write_back(s, ret, e);
}

static int run(struct session *s, const struct cert_wish *wish, struct cert_result *ret, struct err *e)
{
    int rc = -1;
    for (int i = 0; i < TRIES_MAX && rc < 0; i++) {
        rc = try_once(s, wish, ret, e);
        if (rc < 0 && e->class != ERR_FAILED_PRECONDITION)
            break;
    }
    return rc;
}

int cert_secrets_renew(const struct cert_secrets *secrets, const struct cert_wish *wish, struct cert_store *ret_store,
                       struct cert_result *ret, struct err *e)
{
    struct session s = {.store = ret_store};
    int rc = -1;
    s.end.name = secrets->name;
    s.authority.name = secrets->authority;
    s.loop = net_loop_new(NULL, e);
    if (!s.loop)
        return -1;
    const struct kube_config config = {
        .loop = s.loop, .kubeconfig = secrets->kubeconfig, .timeout_ns = secrets->timeout_ns};
    s.kube = kube_new(&config, e);
    if (s.kube) {
        s.ns = secrets->ns ? secrets->ns : kube_namespace(s.kube);
        rc = run(&s, wish, ret, e);
    }
    kube_free(s.kube);
    net_loop_free(s.loop);
    free(s.end.version);
    free(s.authority.version);
    return rc;
}
