/* Certificates and the token: read off the loop when they change, as Kubernetes renews both, and kept as they were
 * where the newest are unfit. */
#include "engine/private.h"

#include <string.h>

#define LOOK_NS (10 * NS_PER_S)
enum { FILE_BYTES_MAX = 1 << 20 };
enum file { FILE_CA, FILE_CERT, FILE_KEY, FILE_TOKEN, FILES };
static const char *const options[FILES] = {"--engine-ca-file", "--engine-cert-file", "--engine-key-file",
                                           "--engine-token-file"};

/* One set, as it was read. */
struct reading {
    struct file_stamp stamps[FILES];
    struct buf texts[FILES];
    struct err error;
    bool is_new, is_bad;
};

/* Off the loop: reads what is not as `known` is. */
struct look {
    struct engine_files *files; /* NULL: gone meanwhile */
    char *paths[FILES];
    struct file_stamp known[FILES];
    struct reading reading;
};

struct engine_files {
    struct net_loop *loop;
    char *paths[FILES]; /* NULL none */
    struct file_stamp stamps[FILES];
    struct buf texts[FILES];
    struct buf header;
    char error[ERR_TEXT_MAX];
    bool is_insecure, is_again; /* look once more when this look is over */
    struct look *look;
    struct net_timer *timer;
    void (*changed)(void *context);
    void *context;
};

static void reading_fini(struct reading *reading)
{
    for (size_t i = 0; i < FILES; i++)
        buf_fini(&reading->texts[i]);
}

/* Nothing that would end a header's line. */
static bool is_token(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7F)
            return false;
    return text.len > 0;
}

static int read_one(const char *path, enum file file, struct reading *reading)
{
    struct buf *text = &reading->texts[file];
    if (file_read(path, text, &reading->error) < 0)
        return err_wrap(&reading->error, "%s", options[file]);
    if (file == FILE_TOKEN && !is_token(str_trim((struct str){text->data, text->len})))
        return err_set(&reading->error, ERR_INVALID_ARGUMENT, "%s: %s does not hold one token", options[file], path);
    return 0;
}

/* All of them, if one changed: a certificate and its key belong together. */
static void read_all(char *const paths[FILES], const struct file_stamp known[FILES], struct reading *reading)
{
    for (size_t i = 0; i < FILES; i++) {
        buf_init(&reading->texts[i], FILE_BYTES_MAX);
        if (paths[i] && file_stamp(paths[i], &reading->stamps[i]) < 0)
            reading->is_new = true;
        reading->is_new |= memcmp(&reading->stamps[i], &known[i], sizeof(known[i])) != 0;
    }
    for (size_t i = 0; i < FILES && reading->is_new && !reading->is_bad; i++)
        reading->is_bad = paths[i] && read_one(paths[i], (enum file)i, reading) < 0;
    for (size_t i = 0; i < FILES && reading->is_new; i++) { /* else halves of two sets: the next look reads them */
        struct file_stamp now = {0};
        if (paths[i])
            (void)file_stamp(paths[i], &now);
        reading->is_new = memcmp(&reading->stamps[i], &now, sizeof(now)) == 0;
    }
}

static void take(struct engine_files *files, struct reading *reading)
{
    for (size_t i = 0; i < FILES; i++) {
        buf_fini(&files->texts[i]);
        files->texts[i] = reading->texts[i];
        buf_init(&reading->texts[i], 0);
        files->stamps[i] = reading->stamps[i];
    }
    *files->error = '\0';
    buf_reset(&files->header);
    struct buf *token = &files->texts[FILE_TOKEN];
    struct str text = str_trim((struct str){token->data, token->len});
    if (files->paths[FILE_TOKEN])
        (void)buf_printf(&files->header, "Authorization: Bearer %.*s", (int)text.len, text.ptr);
}

/* ---- later on ---- */

static void look_work(void *context)
{
    struct look *look = (struct look *)context;
    read_all(look->paths, look->known, &look->reading);
}

static void look_done(void *context)
{
    struct look *look = (struct look *)context;
    struct engine_files *files = look->files;
    if (files) {
        files->look = NULL;
        if (look->reading.is_new && look->reading.is_bad)
            (void)str_copy(files->error, sizeof(files->error), str_of(look->reading.error.text));
        else if (look->reading.is_new)
            take(files, &look->reading);
        if (look->reading.is_new && !look->reading.is_bad)
            files->changed(files->context);
        if (files->is_again)
            engine_files_look(files);
    }
    reading_fini(&look->reading);
    for (size_t i = 0; i < FILES; i++)
        free(look->paths[i]);
    free(look);
}

void engine_files_look(struct engine_files *files)
{
    files->is_again = files->look != NULL;
    if (files->look)
        return;
    struct look *look = mem_new(struct look);
    look->files = files;
    for (size_t i = 0; i < FILES; i++) {
        look->paths[i] = files->paths[i] ? mem_strdup(files->paths[i]) : NULL;
        look->known[i] = files->stamps[i];
    }
    files->look = look;
    net_work(files->loop, look_work, look_done, look);
}

static void look_again(void *context)
{
    engine_files_look((struct engine_files *)context);
}

/* ---- life ---- */

struct engine_files *engine_files_new(const struct engine_config *config, void (*changed)(void *context), void *context,
                                      struct err *e)
{
    const char *const paths[FILES] = {config->ca_file, config->cert_file, config->key_file, config->token_file};
    struct engine_files *files = mem_new(struct engine_files);
    struct reading reading = {0};
    bool has_any = false;
    files->loop = config->loop;
    files->is_insecure = config->is_insecure;
    files->changed = changed;
    files->context = context;
    buf_init(&files->header, FILE_BYTES_MAX);
    for (size_t i = 0; i < FILES; i++) {
        files->paths[i] = paths[i] ? mem_strdup(paths[i]) : NULL;
        has_any |= paths[i] != NULL;
    }
    files->timer = net_timer_new(files->loop, look_again, files);
    read_all(files->paths, files->stamps, &reading);
    if (reading.is_bad || !config->cert_file != !config->key_file) {
        if (!reading.is_bad)
            (void)err_set(&reading.error, ERR_INVALID_ARGUMENT, "%s and %s belong together", options[FILE_CERT],
                          options[FILE_KEY]);
        *e = reading.error;
        reading_fini(&reading);
        engine_files_free(files);
        return NULL;
    }
    take(files, &reading);
    reading_fini(&reading);
    if (has_any)
        net_timer_start(files->timer, LOOK_NS, LOOK_NS);
    return files;
}

void engine_files_free(struct engine_files *files)
{
    if (!files)
        return;
    if (files->look)
        files->look->files = NULL;
    net_timer_free(files->timer);
    buf_fini(&files->header);
    for (size_t i = 0; i < FILES; i++) {
        buf_fini(&files->texts[i]);
        free(files->paths[i]);
    }
    free(files);
}

static struct str text_of(const struct engine_files *files, enum file file)
{
    return (struct str){files->texts[file].data, files->texts[file].len};
}

struct http_client_tls engine_files_tls(const struct engine_files *files)
{
    return (struct http_client_tls){.ca = text_of(files, FILE_CA),
                                    .cert = text_of(files, FILE_CERT),
                                    .key = text_of(files, FILE_KEY),
                                    .is_insecure = files->is_insecure};
}

const char *engine_files_header(const struct engine_files *files)
{
    return files->header.len > 0 ? files->header.data : NULL;
}

const char *engine_files_token_path(const struct engine_files *files)
{
    return files->paths[FILE_TOKEN];
}

const char *engine_files_error(const struct engine_files *files)
{
    return files->error;
}
