/* Where the API server is, as a pod is told, and the credential files, which change while we run. The file of people
 * (kubeconfig) is kubeconfig.c's. */
#include "kube/kube_private.h"

#include <stdio.h>
#include <string.h>

void kube_access_fini(struct kube_access *access)
{
    char *texts[] = {access->server,    access->ns,       access->proxy,      access->ca_file,
                     access->cert_file, access->key_file, access->token_file, access->ca,
                     access->cert,      access->key,      access->token};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        free(texts[i]);
    *access = (struct kube_access){0};
}

static char *path_in(const char *dir, const char *name)
{
    size_t size = strlen(dir) + strlen(name) + 2;
    char *path = (char *)mem_new_array(size, 1);
    (void)snprintf(path, size, "%s/%s", dir, name);
    return path;
}

/* The text of a file, NULL and an error where it cannot be had or is empty. */
static char *read_text(const char *path, size_t max_bytes, struct err *e)
{
    struct buf text BUF_AUTO;
    buf_init(&text, max_bytes);
    if (file_read(path, &text, e) < 0)
        return NULL;
    struct str trimmed = str_trim((struct str){text.data ? text.data : "", text.len});
    if (trimmed.len == 0 || memchr(trimmed.ptr, '\0', trimmed.len)) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "%s is empty or no text", path);
        return NULL;
    }
    return mem_strndup(trimmed.ptr, trimmed.len);
}

/* A bearer token goes into a header line: printable ASCII without blanks. */
static int check_token(const char *token, const char *place, struct err *e)
{
    for (const char *c = token; *c; c++)
        if (*c <= ' ' || *c >= 127)
            return err_set(e, ERR_INVALID_ARGUMENT, "%s is no token: it has blanks or characters that are not ASCII",
                           place);
    return 0;
}

int kube_access_read(struct kube_access *access, struct err *e)
{
    struct {
        const char *file;
        char **text, *fresh;
    } files[] = {{access->ca_file, &access->ca, NULL},
                 {access->cert_file, &access->cert, NULL},
                 {access->key_file, &access->key, NULL},
                 {access->token_file, &access->token, NULL}};
    int rc = 0;
    for (size_t i = 0; i < ARRAY_LEN(files) && rc == 0; i++)
        if (files[i].file && !(files[i].fresh = read_text(files[i].file, KUBE_FILE_BYTES_MAX, e)))
            rc = -1;
    const char *token = files[3].fresh ? files[3].fresh : access->token;
    if (rc == 0 && token)
        rc = check_token(token, access->token_file ? access->token_file : "token", e);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        if (rc == 0 && files[i].fresh) {
            free(*files[i].text);
            *files[i].text = files[i].fresh;
        } else {
            free(files[i].fresh);
        }
    }
    return rc;
}

static char *copy_of(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

void kube_access_copy_files(const struct kube_access *access, struct kube_access *ret_copy)
{
    *ret_copy = (struct kube_access){
        .ca_file = copy_of(access->ca_file),
        .cert_file = copy_of(access->cert_file),
        .key_file = copy_of(access->key_file),
        .token_file = copy_of(access->token_file),
    };
}

static bool take_text(char **text, char **from)
{
    if (!*from || (*text && strcmp(*text, *from) == 0))
        return false;
    free(*text);
    *text = *from;
    *from = NULL;
    return true;
}

bool kube_access_take_texts(struct kube_access *access, struct kube_access *from)
{
    bool is_new = take_text(&access->ca, &from->ca);
    is_new = take_text(&access->cert, &from->cert) || is_new;
    is_new = take_text(&access->key, &from->key) || is_new;
    return take_text(&access->token, &from->token) || is_new;
}

int kube_access_in_cluster(const char *service_account_dir, struct kube_access *ret_access, struct err *e)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
    struct err ignored;
    if (!host || !*host)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "no way to the Kubernetes API: this is not a pod (KUBERNETES_SERVICE_HOST is not set), and no "
                       "kubeconfig file was given");
    bool is_v6 = strchr(host, ':') != NULL;
    struct buf server BUF_AUTO;
    buf_init(&server, 512);
    (void)buf_printf(&server, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                     port && *port ? port : "443");
    ret_access->server = mem_strdup(buf_cstr(&server));
    ret_access->ca_file = path_in(service_account_dir, "ca.crt");
    ret_access->token_file = path_in(service_account_dir, "token");
    char *ns_file MEM_AUTO = path_in(service_account_dir, "namespace");
    ret_access->ns = read_text(ns_file, 256, &ignored);
    return 0;
}
