/* A List call over a client of its own, which lives as long as the call. */
#include "cli/kubelet.h"

#include "cli/client.h"

#include <stdio.h>

int kubelet_list(const char *socket_path, int64_t timeout_ns, struct buf *answer, struct err *e)
{
    static const struct option_def dialling[] = {CLIENT_OPTIONS};
    char address[512];
    struct option_set set;
    struct client client;
    Grpc__Health__V1__HealthCheckRequest nothing; /* as empty as the request of List */
    grpc__health__v1__health_check_request__init(&nothing);
    (void)snprintf(address, sizeof(address), "unix:%s", socket_path);
    option_set_init(&set, dialling, ARRAY_LEN(dialling), NULL);
    int rc = client_init(&client, &set, address, e);
    if (rc == 0) {
        client.timeout_ns = timeout_ns;
        rc = client_call(&client, "/v1.PodResourcesLister/List", &nothing.base, answer, e);
    }
    client_fini(&client);
    option_set_fini(&set);
    return rc;
}
