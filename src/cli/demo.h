/* The demo's state, shared by what runs it and what shows it. Private to cli. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "agent/agent.h"
#include "cli/cli.h"
#include "http/http.h"
#include "proto/proto.h"
#include "rpc/rpc.h"
#include "scaling/scaling.h"

#include <sys/types.h>

#ifndef CLI_NVMLSIM_DIR
#define CLI_NVMLSIM_DIR "/usr/lib/keda-gpu-scaler/nvmlsim" /* the build passes the installed place */
#endif

enum { DEMO_GPUS = 8, DEMO_SLOTS = 8, DEMO_WINDOW = 5, DEMO_ENTRIES_MAX = 24, DEMO_LINES = 14 };
/* Up to this step the load is high. */
enum { DEMO_HIGH_STEPS = 22 };
/* Simulated GPUs have so many steps to give their first value; then they will not give one later. */
enum { DEMO_PATIENCE = 5 };

struct demo;

/* With --engine: the workload is model servers behind one page, which is what scales them. */
struct demo_engine {
    const char *name;   /* of --engine; "" none: GPU readings scale */
    const char *played; /* what the simulation calls it */
    char scenario[280], address[64];
    pid_t child;
    int input; /* of the child, which ends when it is closed; 0 none */
    struct http_client *http;
    struct http_fetch *fetch;
    void (*then)(struct demo *d);
    struct buf state;
    /* of the newest state */
    double waiting, running, kv_percent, busy_percent[DEMO_GPUS], batch_percent[DEMO_GPUS];
};

/* A corner of a load over the steps of the demo. */
struct demo_point {
    double step, value;
};

struct demo {
    bool is_real, is_forever;
    bool has_own_metadata;    /* of the user: nothing is known of how it ought to go */
    bool is_live, has_colour; /* stdout is a terminal that can be redrawn; and be coloured */
    bool is_utf8;             /* the locale can show more than ASCII */
    bool is_over, is_ending;  /* it ended by itself; it ends, and what is still open no longer counts */
    bool is_unread;           /* nobody reads stdout any more */
    int64_t step_ns;
    char name[8];
    char folder[256], scenario[280], library[600], address[128];
    /* what is asked */
    Externalscaler__ScaledObjectRef ref;
    Externalscaler__ScaledObjectRef__ScalerMetadataEntry entries[DEMO_ENTRIES_MAX], *rows[DEMO_ENTRIES_MAX];
    char keys[DEMO_ENTRIES_MAX][64], values[DEMO_ENTRIES_MAX][256];
    struct demo_engine engine;
    struct net_loop *loop;
    struct net_timer *timer;
    struct net_signal *signals[2]; /* that end it, whoever sends them */
    struct rpc_client *rpc;
    bool is_asking;
    int64_t asked_ns, slowest_ns;
    /* what came back in this step */
    struct err error;
    char metric[256];
    double value, target;
    bool is_active;
    /* the workload and its HPA */
    double load; /* percent of one GPU; with an engine requests a second */
    int n_waits; /* questions before the first reading */
    int step, replicas, next_replicas, highest, errors;
    int settled; /* replicas when the high load ends */
    int64_t proposals[DEMO_WINDOW];
    char why[320];
    /* the live view */
    char lines[DEMO_LINES][480];
    int n_lines, n_drawn; /* kept; rows on the screen that the next view replaces */
};

/* The load at a step, which repeats after the last point's. */
double demo_curve_at(const struct demo_point *points, size_t n, double step);

/* ---- with --engine ---- */

/* Requests a second at this step. */
double demo_engine_demand(const struct demo *d);
/* Start the simulated engine in d->folder; demo_engine_stop also after a failure. Blocks until its page is there. */
int demo_engine_start(struct demo *d, struct err *e);
void demo_engine_stop(struct demo *d);
/* Let it have d->replicas and d->load from now on. */
int demo_engine_write(const struct demo *d, struct err *e);
/* Read what it does, then call `then`, once, unless the loop ends before. */
int demo_engine_look(struct demo *d, struct net_loop *loop, void (*then)(struct demo *d), struct err *e);
void demo_engine_leave_loop(struct demo *d);

/* What stdout can show, and the first lines on it. */
void demo_show_start(struct demo *d);
/* One step's line, or the whole view on a terminal. Sets is_unread where it could not be written. */
void demo_show(struct demo *d);
/* A sentence about how it went. Returns the exit code: 0 if the replicas followed the load and nothing failed, 130
 * after an interrupt. */
int demo_verdict(const struct demo *d);

#endif
