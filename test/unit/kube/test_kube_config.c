/* Where the API server is and with what credentials: as a pod is told, and from kubeconfig files. */
#include "kube/kube_private.h"

#include "support.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/test-kube-XXXXXX";

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"token", "ca.crt", "namespace", "config", "tok"};
    char path[256];
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    return rmdir(dir);
}

static void put_file(const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* "" for NULL. */
static const char *text(const char *maybe)
{
    return maybe ? maybe : "";
}

static void test_a_pod_is_told_by_variables_and_files(void **state)
{
    static const struct {
        const char *host, *port, *server;
    } cases[] = {{"10.96.0.1", "443", "https://10.96.0.1:443"},
                 {"fd00::1", "6443", "https://[fd00::1]:6443"},
                 {"kubernetes.default", "", "https://kubernetes.default:443"}};
    (void)state;
    put_file("token", "secret.token\n");
    put_file("ca.crt", "PEM\n");
    put_file("namespace", "gpu-system");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_access access KUBE_ACCESS_AUTO = {0};
        struct err e = {0};
        (void)setenv("KUBERNETES_SERVICE_HOST", cases[i].host, 1);
        (void)setenv("KUBERNETES_SERVICE_PORT", cases[i].port, 1);
        assert_int_equal(kube_access_in_cluster(dir, &access, &e), 0);
        assert_string_equal(access.server, cases[i].server);
        assert_string_equal(access.ns, "gpu-system");
        assert_null(access.token);
        assert_int_equal(kube_access_read(&access, &e), 0);
        assert_string_equal(access.token, "secret.token");
        assert_string_equal(access.ca, "PEM");
    }
}

static void test_no_pod_is_an_error_that_says_so(void **state)
{
    struct kube_access access KUBE_ACCESS_AUTO = {0};
    struct err e = {0};
    (void)state;
    (void)unsetenv("KUBERNETES_SERVICE_HOST");
    assert_int_equal(kube_access_in_cluster(dir, &access, &e), -1);
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(e.text, "KUBERNETES_SERVICE_HOST"));
}

static void test_files_are_read_again_and_bad_ones_change_nothing(void **state)
{
    struct kube_access access KUBE_ACCESS_AUTO = {0}, fresh KUBE_ACCESS_AUTO = {0};
    struct err e = {0};
    (void)state;
    put_file("token", "one");
    put_file("ca.crt", "CA1");
    (void)setenv("KUBERNETES_SERVICE_HOST", "h", 1);
    assert_int_equal(kube_access_in_cluster(dir, &access, &e), 0);
    assert_int_equal(kube_access_read(&access, &e), 0);
    kube_access_copy_files(&access, &fresh);
    assert_int_equal(kube_access_read(&fresh, &e), 0);
    assert_false(kube_access_take_texts(&access, &fresh));
    put_file("token", "two");
    assert_int_equal(kube_access_read(&fresh, &e), 0);
    assert_true(kube_access_take_texts(&access, &fresh));
    assert_string_equal(access.token, "two");
    static const char *const bad[] = {"", " \n", "two words", "line\nline"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        put_file("token", bad[i]);
        put_file("ca.crt", "CA2");
        assert_int_equal(kube_access_read(&access, &e), -1);
        assert_string_equal(access.token, "two");
        assert_string_equal(access.ca, "CA1");
        assert_null(strstr(e.text, "two words")); /* a token is in no message */
    }
}

#define CONFIG(cluster, user)                                                                                          \
    "apiVersion: v1\nkind: Config\ncurrent-context: c\npreferences: {}\ncontexts:\n- name: other\n  context: "         \
    "{cluster: none}\n"                                                                                                \
    "- name: c\n  context:\n    cluster: k\n    user: u\n    namespace: ns1\nclusters:\n- name: k\n  "                 \
    "cluster: " cluster "\nusers:\n- name: u\n  user: " user "\n"

static void test_a_kubeconfig_is_read(void **state)
{
    static const struct {
        const char *yaml, *server, *ca, *ca_file, *token, *token_file, *cert, *key, *cert_file, *proxy;
        bool is_insecure;
    } cases[] = {
        {CONFIG("{server: 'https://h:6443/', certificate-authority-data: UEVN}", "{token: abc}"), "https://h:6443",
         "PEM", "", "abc", "", "", "", "", "", false},
        {CONFIG("{server: 'https://h/k8s/c-1', certificate-authority: ca.crt, proxy-url: 'http://p:1'}",
                "{tokenFile: /t}"),
         "https://h/k8s/c-1", "", "DIR/ca.crt", "", "/t", "", "", "", "http://p:1", false},
        {CONFIG("{server: 'http://127.0.0.1:1', insecure-skip-tls-verify: true}",
                "{client-certificate-data: Q0VS, client-key-data: S0VZ}"),
         "http://127.0.0.1:1", "", "", "", "", "CER", "KEY", "", "", true},
        {CONFIG("{server: 'https://h'}", "{client-certificate: /c, client-key: /k, exec: null}"), "https://h", "", "",
         "", "", "", "", "/c", "", false},
        {"{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":\"k\"}}],\"clusters\":[{"
         "\"name\":\"k\","
         "\"cluster\":{\"server\":\"https://j\"}}]}",
         "https://j", "", "", "", "", "", "", "", "", false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_access access KUBE_ACCESS_AUTO = {0};
        struct err e = {0};
        if (kube_access_parse(str_of(cases[i].yaml), "DIR", &access, &e) < 0)
            fail_msg("case %zu: %s", i, e.text);
        assert_string_equal(access.server, cases[i].server);
        assert_string_equal(text(access.ca), cases[i].ca);
        assert_string_equal(text(access.ca_file), cases[i].ca_file);
        assert_string_equal(text(access.token), cases[i].token);
        assert_string_equal(text(access.token_file), cases[i].token_file);
        assert_string_equal(text(access.cert), cases[i].cert);
        assert_string_equal(text(access.key), cases[i].key);
        assert_string_equal(text(access.cert_file), cases[i].cert_file);
        assert_string_equal(text(access.proxy), cases[i].proxy);
        assert_int_equal(access.is_insecure, cases[i].is_insecure);
    }
}

static void test_a_kubeconfig_that_cannot_be_used_is_refused_with_the_reason(void **state)
{
    static const struct {
        const char *yaml, *want; /* part of the text */
    } cases[] = {
        {"", "current-context is not set"},
        {"[]", "current-context is not set"},
        {"a: [", "line "},
        {"current-context: x", "there is no context \"x\" with a cluster"},
        {"current-context: c\ncontexts: [{name: c, context: {cluster: k}}]", "there is no cluster \"k\""},
        {CONFIG("{}", "{token: t}"), "cluster \"k\": server is missing"},
        {CONFIG("{server: 'ftp://h'}", "{token: t}"), "server \"ftp://h\" does not begin with https:// or http://"},
        {CONFIG("{server: 'https://'}", "{token: t}"), "is not the address of a server"},
        {CONFIG("{server: 'https://user@h'}", "{token: t}"), "is not the address of a server"},
        {CONFIG("{server: 'https://h', certificate-authority-data: '%'}", "{token: t}"),
         "cluster \"k\": certificate-authority-data is not PEM text in base64"},
        {CONFIG("{server: 'https://h', tls-server-name: x}", "{token: t}"), "tls-server-name is not supported"},
        {CONFIG("{server: 'https://h', insecure-skip-tls-verify: perhaps}", "{token: t}"),
         "insecure-skip-tls-verify is neither true nor false"},
        {CONFIG("{server: 'https://h'}", "{exec: {command: aws}}"),
         "user \"u\": exec: plugins are not run: use a service account"},
        {CONFIG("{server: 'https://h'}", "{auth-provider: {name: gcp}}"),
         "user \"u\": auth-provider: providers are not built in"},
        {CONFIG("{server: 'https://h'}", "{username: a, password: b}"), "API servers take no passwords"},
        {CONFIG("{server: 'https://h'}", "{token: t, as: admin}"), "impersonation is not supported"},
        {CONFIG("{server: 'https://h'}", "{client-certificate: c}"), "come together or not at all"},
        {"current-context: c\ncontexts: [{name: c, context: {cluster: k, user: v}}]\nclusters: [{name: k, cluster: "
         "{server: "
         "'https://h'}}]",
         "there is no user \"v\""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct kube_access access KUBE_ACCESS_AUTO = {0};
        struct err e = {0};
        assert_int_equal(kube_access_parse(str_of(cases[i].yaml), ".", &access, &e), -1);
        assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
        if (!strstr(e.text, cases[i].want))
            fail_msg("case %zu: \"%s\" does not say \"%s\"", i, e.text, cases[i].want);
    }
}

static void test_a_client_is_made_of_a_file_and_names_it_in_errors(void **state)
{
    struct err e = {0};
    char path[256];
    (void)state;
    struct net_loop *loop = net_loop_new(NULL, &e);
    (void)snprintf(path, sizeof(path), "%s/config", dir);
    put_file("config", CONFIG("{server: 'https://h'}", "{tokenFile: tok}"));
    struct kube_config config = {.loop = loop, .kubeconfig = path};
    assert_null(kube_new(&config, &e)); /* tok is not there */
    assert_int_equal(e.class, ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(e.text, "/tok"));
    put_file("tok", "t");
    struct kube *k = kube_new(&config, &e);
    assert_non_null(k);
    assert_string_equal(kube_server(k), "https://h");
    assert_string_equal(kube_namespace(k), "ns1");
    double now_s = 7;
    assert_false(kube_now_s(k, &now_s));
    assert_double_same(now_s, 7);
    kube_free(k);
    config.kubeconfig = "/nonexistent/config";
    assert_null(kube_new(&config, &e));
    assert_non_null(strstr(e.text, "/nonexistent/config"));
    kube_free(NULL);
    net_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pod_is_told_by_variables_and_files),
        cmocka_unit_test(test_no_pod_is_an_error_that_says_so),
        cmocka_unit_test(test_files_are_read_again_and_bad_ones_change_nothing),
        cmocka_unit_test(test_a_kubeconfig_is_read),
        cmocka_unit_test(test_a_kubeconfig_that_cannot_be_used_is_refused_with_the_reason),
        cmocka_unit_test(test_a_client_is_made_of_a_file_and_names_it_in_errors),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
