/* `cert`: make, keep and renew the certificates of a cluster that has no other authority: the chart's Job and CronJob,
 * or a folder of files. */
#include "cli/cert.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#define HOURS (3600 * NS_PER_S)

static const struct option_def cert_options[] = {
    {.name = "name",
     .kind = OPTION_LIST,
     .fallback = "",
     .metavar = "NAME",
     .help = "DNS name or IP address of the certificate; may be repeated"},
    {.name = "common-name",
     .kind = OPTION_TEXT,
     .fallback = CLI_PROGRAM,
     .metavar = "NAME",
     .help = "subject of the certificate, for people"},
    {.name = "out-dir",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "PATH",
     .help = "keep ca.crt, ca.key, tls.crt and tls.key in this folder"},
    {.name = "secret",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "keep ca.crt, tls.crt and tls.key in this Secret of Kubernetes"},
    {.name = "ca-secret",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "keep the authority and its key in this one (default: that of --secret with -ca)"},
    {.name = "namespace",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "NAME",
     .help = "namespace of the Secrets (default: this pod's, or the kubeconfig's)"},
    {.name = "kubeconfig",
     .kind = OPTION_TEXT,
     .fallback = "",
     .metavar = "FILE",
     .help = "kubeconfig file (default: the service account of this pod)"},
    {.name = "validity",
     .kind = OPTION_DURATION,
     .fallback = "8760h",
     .metavar = "D",
     .help = "how long a new certificate lasts",
     .min = HOURS,
     .max = 87600 * HOURS},
    {.name = "ca-validity",
     .kind = OPTION_DURATION,
     .fallback = "87600h",
     .metavar = "D",
     .help = "how long a new authority lasts",
     .min = HOURS,
     .max = 262800 * HOURS},
    {.name = "renew-before",
     .kind = OPTION_DURATION,
     .fallback = "1440h",
     .metavar = "D",
     .help = "make a new certificate when the former one lasts no longer than this",
     .min = 0,
     .max = 87600 * HOURS},
    {.name = "timeout",
     .kind = OPTION_DURATION,
     .fallback = "10s",
     .metavar = "D",
     .help = "longest time for each request to the API server",
     .min = NS_PER_MS,
     .max = 3600 * NS_PER_S},
};

static int read_wish(const struct option_set *set, struct cert_wish *ret, struct err *e)
{
    size_t n;
    char *const *names = option_list(set, "name", &n);
    *ret = (struct cert_wish){.common_name = option_text(set, "common-name"),
                              .names = (const char *const *)names,
                              .n_names = n,
                              .now_s = time_wall_ns() / NS_PER_S,
                              .valid_s = option_duration(set, "validity") / NS_PER_S,
                              .authority_valid_s = option_duration(set, "ca-validity") / NS_PER_S,
                              .renew_before_s = option_duration(set, "renew-before") / NS_PER_S};
    if (n == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "a certificate needs a --name");
    if (ret->renew_before_s >= ret->valid_s || ret->renew_before_s >= ret->authority_valid_s)
        return err_set(e, ERR_INVALID_ARGUMENT, "--renew-before must be less than --validity and --ca-validity");
    if (!*option_text(set, "out-dir") == !*option_text(set, "secret"))
        return err_set(e, ERR_INVALID_ARGUMENT, "either --out-dir or --secret says where certificates are kept");
    return 0;
}

static int renew_files(const char *folder, const struct cert_wish *wish, struct cert_store *store,
                       struct cert_result *ret, struct err *e)
{
    if (cert_files_read(folder, store, e) < 0 || cert_renew(store, wish, ret, e) < 0)
        return -1;
    return ret->outcome == CERT_KEPT ? 0 : cert_files_write(folder, store, e);
}

static int renew_secrets(const struct option_set *set, const struct cert_wish *wish, struct cert_store *store,
                         struct cert_result *ret, struct err *e)
{
    char authority[256];
    const char *name = option_text(set, "secret"), *given = option_text_or_null(set, "ca-secret");
    (void)snprintf(authority, sizeof(authority), "%s-ca", name);
    const struct cert_secrets secrets = {.kubeconfig = option_text_or_null(set, "kubeconfig"),
                                         .ns = option_text_or_null(set, "namespace"),
                                         .name = name,
                                         .authority = given ? given : authority,
                                         .timeout_ns = option_duration(set, "timeout")};
    if (strcmp(secrets.name, secrets.authority) == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "--secret and --ca-secret must be two Secrets");
    return cert_secrets_renew(&secrets, wish, store, ret, e);
}

static void say(const struct cert_store *store, const struct cert_result *result)
{
    char end[TIME_RFC3339_MAX];
    time_format_rfc3339(end, net_cert_until_s(&store->end.cert) * NS_PER_S);
    switch (result->outcome) {
    case CERT_KEPT:
        (void)printf("kept: the certificate is fit until %s\n", end);
        break;
    case CERT_ANNOUNCED:
        (void)printf(
            "announced: a new authority is in ca.crt beside the former one; give it to those who trust copies of "
            "ca.crt. The certificate stays for now, until %s at most; why: %s\n",
            end, result->why.text);
        break;
    case CERT_MADE:
        (void)printf("made: a certificate until %s by %s authority; why: %s\n", end,
                     result->has_new_authority ? "a new" : "the same", result->why.text);
        break;
    }
}

static int run(struct option_set *set)
{
    struct cert_wish wish;
    struct cert_store store;
    struct cert_result result;
    struct err e;
    if (read_wish(set, &wish, &e) < 0)
        return cli_fail(&e, "keda-gpu-scaler cert --help shows the flags");
    cert_store_init(&store);
    const char *folder = option_text_or_null(set, "out-dir");
    int rc = folder ? renew_files(folder, &wish, &store, &result, &e) : renew_secrets(set, &wish, &store, &result, &e);
    if (rc == 0)
        say(&store, &result);
    cert_store_fini(&store);
    return rc == 0 ? 0 : cli_fail(&e, "");
}

const struct command command_cert = {
    .name = "cert",
    .summary = "Make and renew a certificate and its authority",
    .usage = "[flags] --name NAME (--out-dir PATH | --secret NAME)",
    .details =
        "Keeps what is there while it lasts, belongs together and has every name; else makes what is missing, with "
        "the\n"
        "authority that is there where its key is. A new authority is put into ca.crt first; its certificates follow\n"
        "when half of --renew-before is left, or at once where there is no other. Keys are P-256.\n\n"
        "Exit status: 0 there is a fit certificate, or a new authority was announced; else it says what failed.",
    .options = cert_options,
    .n_options = ARRAY_LEN(cert_options),
    .run = run,
};
