/* `probe`: is a server healthy? For exec probes and scripts: gRPC health by default, an HTTP page with --http. */
#include "cli/cli.h"
#include "cli/client.h"
#include "http/http.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_UNREACHABLE = 2, EXIT_FAILED = 3, EXIT_NOT_SERVING = 4 }; /* as grpc_health_probe has them */

static const struct option_def probe_options[] = {
    {.name = "service",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "gRPC service: \"\" the process, nvml the driver"},
    {.name = "http",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "PATH",
     .help = "GET this page over plain HTTP instead, such as /readyz"},
    CLIENT_OPTIONS,
};

static int probe_http(const struct option_set *set, const char *address)
{
    BUF_AUTO struct buf body;
    struct err e;
    buf_init(&body, 1 << 20);
    int status = http_get_blocking(address, option_text(set, "http"), option_duration(set, "timeout"), &body, &e);
    if (status < 0) {
        (void)cli_fail(&e, "");
        return EXIT_UNREACHABLE;
    }
    struct str text = str_trim((struct str){body.data ? body.data : "", body.len});
    (void)printf("%d %.*s\n", status, (int)text.len, text.ptr);
    return status == 200 ? 0 : EXIT_NOT_SERVING;
}

static int probe_grpc(const struct option_set *set, const char *address)
{
    struct client client;
    struct err e;
    BUF_AUTO struct buf bytes;
    buf_init(&bytes, 4096);
    Grpc__Health__V1__HealthCheckRequest request;
    grpc__health__v1__health_check_request__init(&request);
    request.service = (char *)(uintptr_t)option_text(set, "service");
    int rc = client_init(&client, set, address, &e);
    bool has_dialled = rc == 0;
    if (has_dialled)
        rc = client_call(&client, "/grpc.health.v1.Health/Check", &request.base, &bytes, &e);
    client_fini(&client);
    if (rc < 0) {
        (void)cli_fail(&e, "");
        if (!has_dialled)
            return EXIT_UNREACHABLE;
        return e.class == ERR_UNAVAILABLE || e.class == ERR_DEADLINE_EXCEEDED ? EXIT_UNREACHABLE : EXIT_FAILED;
    }
    Grpc__Health__V1__HealthCheckResponse *response = grpc__health__v1__health_check_response__unpack(
        NULL, bytes.len, (const uint8_t *)(bytes.data ? bytes.data : ""));
    bool is_serving = response && response->status == GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;
    if (response)
        grpc__health__v1__health_check_response__free_unpacked(response, NULL);
    (void)printf("%s\n", is_serving ? "SERVING" : "NOT_SERVING");
    return is_serving ? 0 : EXIT_NOT_SERVING;
}

static int run_probe(struct option_set *set)
{
    const char *address = set->operands.len ? set->operands.items[0] : "127.0.0.1:6000";
    return *option_text(set, "http") ? probe_http(set, address) : probe_grpc(set, address);
}

const struct command command_probe = {
    .name = "probe",
    .summary = "Ask a server whether it is healthy",
    .usage = "[ADDRESS] [flags]",
    .max_operands = 1,
    .details = "ADDRESS is 127.0.0.1:6000 unless given.\n\n"
               "Exit status: 0 serving, 2 wrong usage or not reachable, 3 the call failed, 4 not serving.",
    .options = probe_options,
    .n_options = ARRAY_LEN(probe_options),
    .run = run_probe,
};
