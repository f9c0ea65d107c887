/* One question to this machine's kubelet, for commands. Private to cli. */
#ifndef CLI_KUBELET_H
#define CLI_KUBELET_H

#include "base/base.h"

/* The answer of a pod-resources List call on the socket of this path, within the timeout, appended to *answer. -1 and
 * why on failure. */
int kubelet_list(const char *socket_path, int64_t timeout_ns, struct buf *answer, struct err *e);

#endif
