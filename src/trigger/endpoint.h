/* The part of the endpoint guard that needs no name resolution, private to trigger/. */
#ifndef TRIGGER_ENDPOINT_H
#define TRIGGER_ENDPOINT_H

#include "base/base.h"

/* Is the URL one that an engine's page may be fetched from? NULL if so, else what is wrong with it, as the end of a
 * sentence, in static storage: not http(s), no host, userinfo, port, or a host that is link-local, multicast,
 * unspecified or a cloud's metadata service, in whatever spelling. Private and loopback addresses are allowed. Names
 * that resolve to such addresses are for whoever connects to refuse. reference A.12 "URL guard", B.6 #65 */
const char *trigger_endpoint_fault(struct str url);

#endif
