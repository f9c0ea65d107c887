/* wire: what a peer that asks for a page can meet besides an answer: silence, a page without an end, one byte at a
 * time, a length that is not true. Private to host: it stands before its HTTP server and takes over single connections.
 */
#ifndef ENGINESIM_WIRE_H
#define ENGINESIM_WIRE_H

#include "enginesim/script.h"

#include "net/net.h"

struct wire {
    struct net_protocol protocol; /* for struct net_listen_config.http1 */
    const struct net_protocol *server;
    const char *path; /* of the page: other requests are not touched */
    /* What those who ask for the page must bear; NULL: nothing. */
    const char *(*token)(void *context);
    /* Which fault is on now; SCRIPT_FAULT_COUNT: none. */
    enum script_fault_kind (*judge)(void *context);
    /* The page as it is now. */
    void (*page)(void *context, struct buf *out);
    void *context;
};
/* Fill in the protocol; the rest is the caller's. The wire must outlive its connections. */
void wire_init(struct wire *w);

#endif
