/* engine: fetches the metrics pages of inference engines from pods and from endpoints that users name, and keeps them
 * as signals/ reads them. It owns where a pod's page is, when it is fetched, which addresses may be asked, and every
 * limit of that. What a page means is signals' business, what a value means workload's and trigger's. */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "base/base.h"
#include "http/http.h"
#include "net/net.h"
#include "signals/signals.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- where a page is ---- */

enum { ENGINE_URL_MAX = 512, ENGINE_PORTS_MAX = 16 };
struct engine_port {
    const char *name; /* "" none */
    uint16_t number;
};
/* What the API and the trigger say of one pod's page. No text is NULL; "" is unsaid, port 0 too. */
struct engine_place {
    const char *ip;                                                 /* status.podIP, 4 or 6 */
    const char *annotated_port, *annotated_path, *annotated_scheme; /* prometheus.io/port, /path, /scheme */
    const struct engine_port *ports;                                /* containerPorts, those of GPU containers first */
    size_t n_ports;
    uint16_t port;              /* enginePort, or the port of vllmEndpoint or tritonEndpoint */
    const char *path, *scheme;  /* enginePath, engineScheme, or the endpoint's */
    bool is_port_certain;       /* enginePort: before all else; false: after what the pod says itself */
    enum signals_engine engine; /* by the profile or metric type, where it names one; else UNKNOWN */
};
/* The URL of the page: enginePort, the annotation, the container port named "metrics" or "http", an endpoint's port,
 * the engine's usual one (of a known engine whose usual port the pod has, else of place->engine). 0, or -1: the pod has
 * no address yet (FAILED_PRECONDITION), its address is one that nothing is fetched from, or an annotation or key is no
 * port, path or scheme (INVALID_ARGUMENT). */
int engine_place_url(const struct engine_place *place, char ret_url[ENGINE_URL_MAX], struct err *e);
/* The URL that a user named, as asked from namespace `ns`: a host without a dot is a Service of that namespace where
 * the program runs in a cluster (`has_cluster_dns`); localhost and addresses stay. -1 and INVALID_ARGUMENT beyond
 * ENGINE_URL_MAX. */
int engine_endpoint_url(const char *endpoint, const char *ns, bool has_cluster_dns, char ret_url[ENGINE_URL_MAX],
                        struct err *e);

/* ---- which addresses may be asked ---- */

/* May an address (numeric, as text, no port) be connected to: NULL, or why not ("is a link-local address"), static
 * text. Mapped, NAT64 and 6to4 forms count as the IPv4 address in them; the table is base's, which the text of URLs
 * shares. Link-local, metadata, unspecified, broadcast and multicast addresses never; loopback and the cluster's do.
 * `allow` and `deny` are the operator's, "10.0.0.0/8" each, NULL-terminated or NULL: deny refuses more, an
 * IPv6 address that stands for a denied IPv4 one too; a non-empty allow refuses all others. */
const char *engine_address_fault(const char *address, const char *const *allow, const char *const *deny);

/* ---- fetching ---- */

struct engine;
struct engine_config {
    struct net_loop *loop;
    struct metrics *metrics;          /* keda_gpu_scaler_engine_* */
    const char *ca_file;              /* whom https pages are trusted by; NULL the system's */
    const char *cert_file, *key_file; /* of the client, for pods; both or neither; NULL none */
    bool is_insecure;                 /* https pages are not verified */
    const char *token_file; /* "Authorization: Bearer" of pods' https pages, never of endpoints; NULL none; read anew */
    bool is_token_plain;    /* of their http pages too */
    const char *const *allow, *const *deny; /* of endpoints: see engine_address_fault */
    bool has_cluster_dns;
    int64_t timeout_ns;   /* of one fetch; 0 = 3 s */
    size_t max_pages;     /* of pods; 0 = 20,000 */
    size_t max_endpoints; /* pages of endpoints; 0 = 5,000 */
    size_t max_at_once;   /* fetches in the air; 0 = 64; of one host 1 */
};
struct engine *engine_new(const struct engine_config *config, struct err *e);
void engine_free(struct engine *e); /* accepts NULL; fetches end without a callback */
/* Files were changed: read them again. */
void engine_reload(struct engine *e);
/* Why the newest files are not in use, for the log; "" they are. Valid until the next turn. */
const char *engine_files_fault(const struct engine *e);

struct engine_want {
    const char *url;
    const char *metric;  /* a name that the user gave; "" none. Pages with different metrics are read apart */
    int64_t interval_ns; /* between two fetches, 1 s or more; the least of all that ask counts */
    bool is_endpoint;    /* named by a user: every address is checked, no token is sent */
};
/* How often a page must be read for these windows: a third of the shorter one, between 1 s and 5 s. */
int64_t engine_interval_ns(int64_t window_ns, int64_t activation_window_ns);
/* The page, fetched from now on each interval, spread in time, until nobody has asked for a minute (an endpoint: as
 * long as the longest window and KEDA's slowest poll, 15 minutes). NULL beyond the ceiling. Valid until the next turn.
 */
const struct signals_feed *engine_page(struct engine *e, const struct engine_want *want);

/* One fetch that begins after this call, for answers that must not come from an older page (reference A.12 18, 19):
 * whoever asks while it has not begun shares it. `done` is called once, never from inside, at the latest after the
 * timeout; how it went is in the feed. NULL beyond the ceiling. */
struct engine_ask;
struct engine_ask *engine_ask(struct engine *e, const struct engine_want *want, void (*done)(void *context),
                              void *context);
void engine_ask_cancel(struct engine_ask *ask); /* done is not called; not after it */

/* For people: pages known, read, failing. */
void engine_write_state(const struct engine *e, struct buf *out);

#endif
