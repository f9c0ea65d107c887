/* host: simulated servers on sockets: one listener each, their pages from models that follow the clock, faults of the
 * wire, and the scenario's file, which is read again when it changes. */
#ifndef ENGINESIM_HOST_H
#define ENGINESIM_HOST_H

#include "enginesim/model.h"

#include "net/net.h"

struct host;
/* Read the scenario and listen. metrics and loop must outlive it. NULL and an error when the file is bad or an address
 * cannot be had. */
struct host *host_new(struct net_loop *loop, struct metrics *metrics, const char *path, struct err *e);
/* Before the loop. Accepts NULL. */
void host_free(struct host *h);
/* "127.1.0.5:8000 vllm /metrics", one line a server, with the ports that the system chose. */
void host_describe(const struct host *h, struct buf *out);

#endif
