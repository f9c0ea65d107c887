/* script: what simulated model servers are and do over time, as parsed from YAML. Plain data and a pure parser: no
 * clock, no sockets. The format is described in docs/enginesim.md. */
#ifndef ENGINESIM_SCRIPT_H
#define ENGINESIM_SCRIPT_H

#include "base/base.h"
#include "scene/scene.h"

enum {
    SCRIPT_SERVERS_MAX = 2000,
    SCRIPT_RANKS_MAX = 64,
    SCRIPT_FAULTS_MAX = 64, /* of one server */
    SCRIPT_PAD_MAX = 64 << 20,
    SCRIPT_LISTEN_MAX = 64,
};

/* X(name, key). To add one: a line here, its table in page_*.c, a row in docs/enginesim.md. */
#define SCRIPT_ENGINES(X)                                                                                              \
    X(VLLM, "vllm")                                                                                                    \
    X(SGLANG, "sglang")                                                                                                \
    X(TGI, "tgi")                                                                                                      \
    X(TRITON, "triton")                                                                                                \
    X(TRITON_TRTLLM, "triton-tensorrtllm")                                                                             \
    X(TRTLLM, "trtllm")                                                                                                \
    X(LLAMACPP, "llamacpp")

enum script_engine {
#define X(name, key) SCRIPT_ENGINE_##name,
    SCRIPT_ENGINES(X)
#undef X
        SCRIPT_ENGINE_COUNT
};
extern const char *const script_engines[SCRIPT_ENGINE_COUNT];

/* Which of a metric's names are on the page, where an engine has renamed some. */
enum script_names { SCRIPT_NAMES_NEW, SCRIPT_NAMES_OLD, SCRIPT_NAMES_BOTH };

/* X(name, key, what it needs beside from and until). */
#define SCRIPT_FAULTS(X)                                                                                               \
    X(STATUS, "status")             /* answers with `code` */                                                          \
    X(HTML, "html")                 /* a page for people, with 200 */                                                  \
    X(EMPTY, "empty")               /* 200 and no body */                                                              \
    X(HANG, "hang")                 /* takes the request and never answers */                                          \
    X(CLOSE, "close")               /* closes the connection instead of answering */                                   \
    X(NEVER_ENDS, "never_ends")     /* the page, then lines without an end */                                          \
    X(DRIBBLE, "dribble")           /* a byte every tenth of a second */                                               \
    X(WRONG_LENGTH, "wrong_length") /* announces more than it sends */                                                 \
    X(FREEZE, "freeze")             /* the page stays what it was */                                                   \
    X(SLOW, "slow")                 /* the engine does only `rate` of its work */                                      \
    X(CANCEL, "cancel")             /* at `from` all requests go; the KV gauge stays until the next one starts */      \
    X(RESTART, "restart")           /* at `from` all requests and counters go; no answer until `until` */

enum script_fault_kind {
#define X(name, key) SCRIPT_FAULT_##name,
    SCRIPT_FAULTS(X)
#undef X
        SCRIPT_FAULT_COUNT
};
extern const char *const script_faults[SCRIPT_FAULT_COUNT];

struct script_fault {
    enum script_fault_kind kind;
    double from_s, until_s; /* until: INFINITY = for ever; of CANCEL and RESTART: from_s = at once */
    uint32_t code;          /* of STATUS */
    double rate;            /* of SLOW */
};

struct script_server {
    enum script_engine engine;
    char listen[SCRIPT_LISTEN_MAX]; /* "127.1.0.5:8000"; unique */
    const char *path, *model;
    const char *token;              /* the page is for those who bear it; NULL: for all */
    const char *tls_cert, *tls_key; /* files beside the scenario; NULL: plaintext */
    enum script_names names;
    uint32_t ranks;        /* data-parallel ranks, each with a queue and slots of its own */
    uint32_t tensor_ranks; /* of each; SGLang repeats gauges for each of them */
    uint32_t api_servers;  /* of vLLM */
    bool has_reasons;      /* vLLM: waiting by reason */
    bool is_gzipped;       /* for clients that accept it */
    bool is_poisson;       /* requests come at random, not evenly */
    bool is_attention_dp;  /* SGLang: each data-parallel rank is the tensor rank of the same number */
    struct curve arrivals; /* requests a second, for all ranks together */
    const double *shares;  /* of each rank, adding up to 1; NULL: the rank with the fewest requests gets the next */
    double service_rate;   /* requests a second that a rank ends while all slots are taken */
    double prefill_percent;
    uint32_t slots; /* of a rank */
    double kv_per_request_percent, kv_base_percent;
    double prompt_tokens, output_tokens;
    uint32_t pad_bytes; /* the page is made at least so long */
    size_t n_faults;
    const struct script_fault *faults;
};

struct script {
    struct arena arena; /* holds everything below */
    uint64_t seed;
    bool restart_clock; /* a rewrite starts the time at 0 again */
    size_t n_servers;
    struct script_server *servers;
};

/* Where the parser gets other things from. */
struct script_source {
    const char *name; /* in front of every error: "name:line:column: ..." */
    /* Append a CSV file's content to out; 0 or -1 with e set. NULL: no CSV files. */
    int (*read_file)(void *context, const char *path, struct buf *out, struct err *e);
    void *context;
};

/* Parse `text`. Returns the script, to be freed with script_free, or NULL with e set to one line with line, column,
 * what was wrong and what is allowed. */
struct script *script_parse(const struct script_source *source, struct str text, struct err *e);
void script_free(struct script *s); /* accepts NULL */

#endif
