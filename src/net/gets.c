/* The table of GET and HEAD handlers, shared by HTTP/1.1 and HTTP/2. Matching and the answers for what is not there; no
 * bytes of either protocol. */
#include "net/net.h"

#include <string.h>

enum { BODY_MAX_BYTES = 64 << 20 };

struct get_entry {
    char *path;
    size_t len;
    bool is_prefix;
    void (*handler)(void *context, const struct net_get_request *request, struct net_get_response *response);
    void *context;
};

struct net_gets {
    VEC(struct get_entry) entries;
};

struct net_gets *net_gets_new(void)
{
    return mem_new(struct net_gets);
}

void net_gets_free(struct net_gets *gets)
{
    if (!gets)
        return;
    for (size_t i = 0; i < gets->entries.len; i++)
        free(gets->entries.items[i].path);
    vec_fini(&gets->entries);
    free(gets);
}

void net_gets_add(struct net_gets *gets, const char *path,
                  void (*handler)(void *context, const struct net_get_request *request,
                                  struct net_get_response *response),
                  void *context)
{
    size_t len = strlen(path);
    struct get_entry entry = {
        .path = mem_strdup(path),
        .len = len,
        .is_prefix = len > 1 && path[len - 1] == '/',
        .handler = handler,
        .context = context,
    };
    vec_push(&gets->entries, entry);
}

int net_gets_decode_path(char *path, size_t *len)
{
    size_t to = 0;
    for (size_t from = 0; from < *len; from++, to++) {
        path[to] = path[from];
        if (path[from] != '%')
            continue;
        int byte = str_percent_byte((struct str){path + from, *len - from});
        if (byte < 0x20 || byte == 0x7f)
            return -1;
        path[to] = (char)byte;
        from += 2;
    }
    *len = to;
    return 0;
}

static bool matches(const struct get_entry *entry, struct str path)
{
    if (entry->is_prefix)
        return str_has_prefix(path, entry->path);
    return str_equals(path, entry->path);
}

static const struct get_entry *find(const struct net_gets *gets, struct str path)
{
    const struct get_entry *best = NULL;
    for (size_t i = 0; i < gets->entries.len; i++) {
        const struct get_entry *entry = &gets->entries.items[i];
        if ((!best || entry->len > best->len) && matches(entry, path))
            best = entry;
    }
    return best;
}

static void answer_not_found(const struct net_gets *gets, struct net_get_response *response)
{
    response->status = 404;
    (void)buf_append_str(&response->body, "not found. There is:\n");
    for (size_t i = 0; i < gets->entries.len; i++)
        (void)buf_printf(&response->body, "  %s\n", gets->entries.items[i].path);
}

static void replace_overflowed(struct net_get_response *response)
{
    response->status = 500;
    response->content_type = "text/plain; charset=utf-8";
    response->content_encoding = NULL;
    response->extra[0] = '\0';
    buf_fini(&response->body);
    buf_init(&response->body, BODY_MAX_BYTES);
    (void)buf_append_str(&response->body, "the answer is larger than the limit\n");
}

void net_gets_answer(const struct net_gets *gets, const struct net_get_request *request,
                     struct net_get_response *response)
{
    *response = (struct net_get_response){.status = 200, .content_type = "text/plain; charset=utf-8"};
    buf_init(&response->body, BODY_MAX_BYTES);
    const struct get_entry *entry = find(gets, request->path);
    if (entry)
        entry->handler(entry->context, request, response);
    else
        answer_not_found(gets, response);
    if (response->body.is_overflowed)
        replace_overflowed(response);
}
