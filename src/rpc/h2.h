/* What the server's and the client's HTTP/2 sessions share: feeding nghttp2 and taking its output, and the budgets that
 * no peer may pass (grpc-http2.md section 4). It knows frames, not calls. No socket and no clock: bytes and `now` come
 * in. */
#ifndef RPC_H2_H
#define RPC_H2_H

#include "base/base.h"
#include "net/net.h"

#include <nghttp2/nghttp2.h>

/* What a session needs from whoever carries its bytes. */
struct rpc_env {
    void *context;
    const struct net_limits *limits;
    const char *peer;
    void (*wake)(void *context);  /* output or ended calls wait: pull before this turn ends */
    void (*again)(void *context); /* input was left: call receive with no bytes in the next turn, with none before */
    void (*limit_hit)(void *context, enum net_limit limit);
    void (*established)(void *context); /* preface and SETTINGS are there; once */
};

/* Tokens come back at `rate` a second up to `burst`. */
struct rpc_bucket {
    int64_t used_ns; /* the time that the used tokens are worth */
    int64_t last_ns;
};
/* Take one token: false when there is none. */
bool rpc_bucket_take(struct rpc_bucket *b, int64_t now_ns, int64_t rate, int64_t burst);

enum { RPC_FRAME_HEAD_BYTES = 9, RPC_PRIORITY_BYTES = 5, RPC_ENDED_IDS = 64 };

struct rpc_h2 {
    nghttp2_session *ng;
    struct rpc_env env;
    bool is_server;
    bool is_closing; /* GOAWAY is queued or the session failed: take nothing more, send what is there, close */
    bool is_dead;    /* no use in sending either */
    bool is_established, is_settings_acked;
    bool has_answered; /* HEADERS or DATA were sent since the last ping */
    int ping_strikes;
    int pings_out; /* ours that await an ACK */
    int64_t now_ns;
    int64_t opened_ns, last_read_ns, last_ping_ns, ping_sent_ns, headers_since_ns; /* 0 = none */
    struct rpc_bucket glitches, resets;
    uint32_t n_told_causes; /* invalid frames counted as glitches whose RST_STREAM is still to come */
    int64_t window_credit;
    int64_t block_bytes, frames_in_turn;
    int64_t pages_in_turn;      /* GET and HEAD requests, which the owner counts */
    struct buf rest;            /* input beyond this turn's frames */
    size_t scan_skip, scan_len; /* bytes until the next frame's header; bytes of it that came */
    uint8_t scan_head[RPC_FRAME_HEAD_BYTES + 4];
    uint32_t *ended_ids; /* server: RPC_ENDED_IDS streams that the peer ended last, by (id >> 1) % RPC_ENDED_IDS */
};

/* The session's settings, as both ends send them at once. window_bytes 0 = 65,535. */
struct rpc_h2_config {
    const struct rpc_env *env;
    const nghttp2_session_callbacks *callbacks;
    const nghttp2_option *option;
    bool is_server;
    bool has_no_tables; /* the peer's headers are not to be remembered */
    nghttp2_mem *mem;   /* NULL = the heap; copied, but for what it points to */
    size_t window_bytes;
    int64_t now_ns;
};
/* h is the callbacks' user_data. */
void rpc_h2_init(struct rpc_h2 *h, const struct rpc_h2_config *config);
void rpc_h2_fini(struct rpc_h2 *h);
/* Callbacks and options for many sessions, with this file's part of them set; the owner adds its own and frees both. */
nghttp2_session_callbacks *rpc_h2_callbacks_new(void);
nghttp2_option *rpc_h2_option_new(bool is_server, const struct net_limits *limits);

/* Feed bytes. 0, or -1 when the connection is to be closed once its output is sent. */
int rpc_h2_receive(struct rpc_h2 *h, const uint8_t *bytes, size_t len, int64_t now_ns);
/* The next bytes to send, valid until the next call of any function here; 0 when there are none. */
size_t rpc_h2_pull(struct rpc_h2 *h, const uint8_t **ret_bytes);
/* Deadlines of the connection itself: SETTINGS ACK, headers, keepalive (INT64_MAX = none). */
void rpc_h2_tick(struct rpc_h2 *h, int64_t now_ns, int64_t keepalive_ns);
/* When rpc_h2_tick will next have something to do. */
int64_t rpc_h2_next_ns(const struct rpc_h2 *h, int64_t keepalive_ns);

/* End the session: GOAWAY with this code and text, then nothing more is read. Counts the limit when it is one
 * (NET_LIMIT_COUNT = none). Returns what an nghttp2 callback returns to stop reading. */
int rpc_h2_trip(struct rpc_h2 *h, enum net_limit limit, uint32_t code, const char *text);
/* Count something useless that the peer made us do; 0, or rpc_h2_trip's value once it is too much. */
int rpc_h2_glitch(struct rpc_h2 *h);
/* To be called from the owner's callbacks for every frame received and sent. 0 or rpc_h2_trip's value. */
int rpc_h2_on_frame_recv(struct rpc_h2 *h, const nghttp2_frame *frame);
void rpc_h2_on_frame_send(struct rpc_h2 *h, const nghttp2_frame *frame);
/* For an owner with a callback of its own for frames that nghttp2 refuses. */
int rpc_h2_on_invalid_frame(struct rpc_h2 *h);
void rpc_h2_ping(struct rpc_h2 *h, const uint8_t opaque[8]);
static inline int64_t rpc_h2_limit(const struct rpc_h2 *h, enum net_limit limit)
{
    return h->env.limits->values[limit];
}
static inline void rpc_h2_hit(const struct rpc_h2 *h, enum net_limit limit)
{
    h->env.limit_hit(h->env.context, limit);
}

#endif
