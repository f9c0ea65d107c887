/* Bytes of a page to the series that matter: pieces of any size, a line at a time, most lines passed over by their name
 * alone. Nothing is allocated for a line; what a peer can make grow has its ceiling here. */
#include "signals/line.h"
#include "signals/page.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    SLOTS = 512,        /* of the names, a power of two, at most half full */
    NAMES_MAX = 192,    /* both parts of each row, and the user's */
    ROWS_MAX = 128,     /* of the table, one for the user's metric, one for the marks of a server */
    SINKS_MAX = 6,      /* rows that one name serves */
    PEEK = 1024,        /* a line longer than this is kept only if its name is wanted */
    JUDGED_LINES = 16,  /* lines that are read to their end only to tell whether this is a metrics page */
    SEEN_MAX = 8,       /* names for people */
    SEEN_NAME_MAX = 64, /* of one of them */
    CACHED_NAME_MAX = 255,
    CUSTOM_MAX = 128 /* of the user's metric, its end included */
};
/* Beyond it a value is no count or share that an engine could have. */
#define VALUE_MAX 1e15

struct name {
    char text[ALIAS_NAME_MAX]; /* with `_` for `:` */
    size_t len;
    unsigned sinks[SINKS_MAX];
    size_t n_sinks;
};

/* Names that are on the page, for the sentence that says that none of them will do. */
struct seen {
    char names[SEEN_MAX][SEEN_NAME_MAX];
    size_t n;
};

/* Whose series has most waiting requests. */
struct busiest {
    bool is_any, has_several; /* several names */
    double value;
    char model[64];
};

struct signals_reader {
    struct name names[NAMES_MAX];
    size_t n_names;
    uint16_t slots[SLOTS]; /* index + 1 into names; 0 free */
    char custom[CUSTOM_MAX];

    /* of the page that is read */
    struct buf line; /* what came of a line whose end has not come */
    bool is_skipping;
    size_t n_bytes, n_lines, n_kept;
    size_t n_good, n_bad;
    char last_name[CACHED_NAME_MAX + 1]; /* lines of a name follow each other */
    size_t last_len;
    const struct name *last;
    struct {
        struct page_series *items;
        size_t len, capacity;
    } series;
    bool is_found[ROWS_MAX * ALIAS_PARTS]; /* by sink: a line with it was there, whatever its value */
    bool is_custom_counter;
    uint64_t server; /* of the page's signals_page */
    struct busiest busiest[DIALECT_COUNT];
    struct seen seen, seen_of_runtimes;
    char nearest[SEEN_NAME_MAX]; /* of all names the one most like the user's */
    size_t nearest_len;          /* how much of it is the same */
    struct err refusal;          /* what was wrong with the page, once something was */
    struct line scratch;
};

/* ---- names ---- */

static uint32_t hash_name(struct str name)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)(name.ptr[i] == ':' ? '_' : name.ptr[i])) * 16777619U;
    return h ^ (h >> 15);
}

static bool is_same_name(const struct name *name, struct str text)
{
    if (name->len != text.len)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (name->text[i] != (text.ptr[i] == ':' ? '_' : text.ptr[i]))
            return false;
    return true;
}

/* The slot of the name, or the free one where it belongs. */
static uint16_t *find_slot(struct signals_reader *r, struct str text)
{
    uint32_t at = hash_name(text) & (SLOTS - 1);
    while (r->slots[at] && !is_same_name(&r->names[r->slots[at] - 1], text))
        at = (at + 1) & (SLOTS - 1);
    return &r->slots[at];
}

static void add_name(struct signals_reader *r, const char *text, unsigned sink)
{
    uint16_t *slot = find_slot(r, str_of(text));
    if (!*slot) {
        struct name *fresh = &r->names[r->n_names++];
        assert(r->n_names <= NAMES_MAX);
        *slot = (uint16_t)r->n_names;
        fresh->len = strlen(text);
        for (size_t i = 0; i < fresh->len; i++)
            fresh->text[i] = (char)(text[i] == ':' ? '_' : text[i]);
    }
    struct name *name = &r->names[*slot - 1];
    assert(name->n_sinks < SINKS_MAX);
    name->sinks[name->n_sinks++] = sink;
}

/* A Ray worker exports its engine's metrics under names of its own. */
static const struct name *find_name(struct signals_reader *r, struct str text)
{
    uint16_t slot = *find_slot(r, text);
    if (!slot && str_has_prefix(text, "ray_vllm_"))
        slot = *find_slot(r, (struct str){text.ptr + strlen("ray_"), text.len - strlen("ray_")});
    return slot ? &r->names[slot - 1] : NULL;
}

/* By their value or a label they tell one server from another. Case: reference B.1 16 */
static const char *const server_marks[] = {"process_start_time_seconds", "nv_gpu_memory_total_bytes"};

struct signals_reader *signals_reader_new(const char *metric)
{
    struct signals_reader *r = mem_new(struct signals_reader);
    char name[ALIAS_NAME_MAX];
    assert(aliases_len + 1 < ROWS_MAX);
    for (size_t i = 0; i < aliases_len; i++)
        for (int part = 0; part < ALIAS_PARTS; part++)
            if (alias_name(&aliases[i], part, name))
                add_name(r, name, (unsigned)i * ALIAS_PARTS + (unsigned)part);
    unsigned custom = (unsigned)aliases_len * ALIAS_PARTS;
    if (metric && *metric && str_copy(r->custom, sizeof(r->custom), str_of(metric))) {
        add_name(r, r->custom, custom);
        (void)snprintf(name, sizeof(name), "%s_total", r->custom);
        add_name(r, name, custom + 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(server_marks); i++)
        add_name(r, server_marks[i], custom + ALIAS_PARTS);
    buf_init(&r->line, SIGNALS_LINE_MAX);
    return r;
}

void signals_reader_free(struct signals_reader *r)
{
    if (!r)
        return;
    buf_fini(&r->line);
    vec_fini(&r->series);
    free(r);
}

void signals_reader_begin(struct signals_reader *r)
{
    buf_reset(&r->line);
    r->is_skipping = r->is_custom_counter = false;
    r->server = 0;
    r->n_bytes = r->n_lines = r->n_kept = r->n_good = r->n_bad = r->last_len = r->series.len = 0;
    r->last = NULL;
    r->seen.n = r->seen_of_runtimes.n = 0;
    r->nearest_len = 0;
    memset(r->busiest, 0, sizeof(r->busiest));
    r->refusal.class = ERR_NONE;
    memset(r->is_found, 0, sizeof(r->is_found));
}

/* ---- one line ---- */

static bool is_of_runtime(struct str name)
{
    static const char *const prefixes[] = {"python_", "process_", "go_",     "promhttp_",
                                           "http_",   "jvm_",     "nv_gpu_", "nv_cpu_"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (str_has_prefix(name, prefixes[i]))
            return true;
    return false;
}

static void note_seen(struct signals_reader *r, struct str name)
{
    static const char *const suffixes[] = {"_bucket", "_sum", "_count", "_created", "_total"};
    struct seen *seen = is_of_runtime(name) ? &r->seen_of_runtimes : &r->seen;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++)
        if (str_has_suffix(name, suffixes[i]) && name.len > strlen(suffixes[i])) {
            name.len -= strlen(suffixes[i]);
            break;
        }
    if (seen->n == SEEN_MAX || (seen->n && str_equals(name, seen->names[seen->n - 1])))
        return;
    (void)str_copy(seen->names[seen->n++], SEEN_NAME_MAX, name);
}

/* How much two names have in common at the front and at the end. */
static size_t likeness(struct str a, const char *b)
{
    size_t len = strlen(b), front = 0, end = 0;
    while (front < a.len && front < len && a.ptr[front] == b[front])
        front++;
    while (front + end < a.len && front + end < len && a.ptr[a.len - 1 - end] == b[len - 1 - end])
        end++;
    return front + end;
}

static void note_nearest(struct signals_reader *r, struct str name)
{
    size_t len = likeness(name, r->custom);
    if (len <= r->nearest_len || len * 2 < strlen(r->custom))
        return;
    r->nearest_len = len;
    (void)str_copy(r->nearest, sizeof(r->nearest), name);
}

/* Which of our names a line has; NULL none. Buckets of one histogram cost no more than a comparison. */
static const struct name *name_of(struct signals_reader *r, struct str text)
{
    size_t len = r->last_len;
    if (len && text.len > len && memcmp(text.ptr, r->last_name, len) == 0 &&
        (text.ptr[len] == '{' || text.ptr[len] == ' '))
        return r->last;
    len = line_name_len(text);
    struct str name = {text.ptr, len};
    r->last = len ? find_name(r, name) : NULL;
    r->last_len = len <= CACHED_NAME_MAX ? len : 0;
    memcpy(r->last_name, text.ptr, r->last_len);
    if (len && *r->custom)
        note_nearest(r, name);
    if (len && (!r->last || *r->custom))
        note_seen(r, name);
    return r->last;
}

static uint64_t hash_text(uint64_t h, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        h = (h ^ (unsigned char)text.ptr[i]) * 1099511628211ULL;
    return h;
}

/* Of the labels that tell series apart, in any order. */
static uint64_t key_of(const struct line *line, enum dialect dialect, bool is_level)
{
    uint64_t key = 0;
    for (size_t i = 0; i < line->n_labels; i++) {
        const struct line_label *l = &line->labels[i];
        if (l->value.len == 0 || !alias_label_counts(dialect, is_level, l->name))
            continue;
        uint64_t h = hash_text(hash_text(14695981039346656037ULL, l->name) * 31, l->value);
        h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ULL;
        key += h ^ (h >> 32);
    }
    return key;
}

static bool has_label(const struct line *line, const char *label, const char *value)
{
    for (size_t i = 0; i < line->n_labels; i++)
        if (str_equals(line->labels[i].name, label))
            return str_equals(line->labels[i].value, value);
    return false;
}

/* NaN, infinities and what is below 0 or beyond all reason is absent, not zero. Cases O04, O53 */
static bool is_value(const struct line *line)
{
    return line->is_number && line->value >= 0 && line->value <= VALUE_MAX;
}

/* Case O51: which model it is that drives the value. */
static void note_model(struct signals_reader *r, enum dialect dialect, const struct line *line)
{
    static const char *const labels[] = {"model_name", "model", "deployment"};
    struct busiest *b = &r->busiest[dialect];
    char model[sizeof(b->model)] = "";
    for (size_t i = 0; i < ARRAY_LEN(labels) && !*model; i++)
        line_label_text(line, labels[i], model, sizeof(model));
    b->has_several |= b->is_any && strcmp(b->model, model) != 0;
    if (!b->is_any || line->value > b->value) {
        b->value = line->value;
        memcpy(b->model, model, sizeof(model));
    }
    b->is_any = true;
}

/* In any order of lines. */
static void note_server(struct signals_reader *r, const struct line *line)
{
    uint64_t h = hash_text(14695981039346656037ULL, (struct str){(const char *)&line->value, sizeof(line->value)});
    r->server += key_of(line, DIALECT_COUNT, false) * 31 + h;
}

static void keep(struct signals_reader *r, unsigned sink, const struct line *line)
{
    size_t row = sink / ALIAS_PARTS;
    if (row > aliases_len) {
        note_server(r, line);
        return;
    }
    bool is_custom = row >= aliases_len;
    const struct alias *a = is_custom ? NULL : &aliases[row];
    if (a && a->label && !has_label(line, a->label, a->value))
        return;
    r->is_found[sink] = true;
    if (!is_value(line))
        return;
    enum dialect dialect = a ? a->dialect : DIALECT_COUNT;
    struct page_series s = {sink, key_of(line, dialect, a && a->kind == ALIAS_LEVEL), line->value};
    vec_push(&r->series, s);
    if (a && a->quantity == QUANTITY_WAITING)
        note_model(r, dialect, line);
}

static int refuse(struct signals_reader *r, struct err *e, const char *what, long most)
{
    (void)err_set(&r->refusal, ERR_RESOURCE_EXHAUSTED, "the page has more than %ld %s", most, what);
    return err_set(e, r->refusal.class, "%s", r->refusal.text);
}

static int take_wanted(struct signals_reader *r, const struct name *name, struct str text, struct err *e)
{
    struct line *line = &r->scratch;
    if (!line_read(text, line)) {
        r->n_bad++;
        return 0;
    }
    r->n_good++;
    if (++r->n_kept > SIGNALS_SERIES_MAX)
        return refuse(r, e, "series of metrics that matter", SIGNALS_SERIES_MAX);
    for (size_t i = 0; i < name->n_sinks; i++)
        keep(r, name->sinks[i], line);
    return 0;
}

/* Is it the name and the suffix that the user gave, whichever way colons are written? */
static bool is_custom(const struct signals_reader *r, struct str name, const char *suffix)
{
    size_t len = strlen(r->custom);
    if (len != name.len + strlen(suffix) || !str_has_suffix((struct str){r->custom, len}, suffix))
        return false;
    for (size_t i = 0; i < name.len; i++)
        if ((name.ptr[i] == ':' ? '_' : name.ptr[i]) != (r->custom[i] == ':' ? '_' : r->custom[i]))
            return false;
    return true;
}

/* "# TYPE name kind" of the user's metric: cumulative kinds count as their rate. */
static void note_type(struct signals_reader *r, struct str text)
{
    static const char *const suffixes[] = {"", "_total", "_sum", "_count", "_bucket"};
    (void)str_cut(&text, ' ');
    if (!text.ptr || !str_equals(str_cut(&text, ' '), "TYPE") || !text.ptr)
        return;
    struct str name = str_cut(&text, ' '), kind = str_trim(text);
    for (size_t i = 0; kind.ptr && i < ARRAY_LEN(suffixes); i++)
        if (is_custom(r, name, suffixes[i]))
            r->is_custom_counter =
                i < 2 ? str_equals(kind, "counter") : str_equals(kind, "histogram") || str_equals(kind, "summary");
}

static int take_line(struct signals_reader *r, struct str text, struct err *e)
{
    if (++r->n_lines > SIGNALS_LINES_MAX)
        return refuse(r, e, "lines", SIGNALS_LINES_MAX);
    while (text.len && (text.ptr[0] == ' ' || text.ptr[0] == '\t'))
        text = (struct str){text.ptr + 1, text.len - 1};
    if (text.len && text.ptr[text.len - 1] == '\r')
        text.len--;
    if (text.len == 0)
        return 0;
    if (text.ptr[0] == '#') {
        if (*r->custom)
            note_type(r, text);
        return 0;
    }
    const struct name *name = name_of(r, text);
    if (name)
        return take_wanted(r, name, text, e);
    if (r->n_good + r->n_bad < JUDGED_LINES)
        *(line_read(text, &r->scratch) ? &r->n_good : &r->n_bad) += 1;
    return 0;
}

/* ---- pieces ---- */

/* Is a line of which only the front came one that must be read whole? */
static bool is_wanted(struct signals_reader *r)
{
    struct str text = {r->line.data, r->line.len};
    while (text.len && (text.ptr[0] == ' ' || text.ptr[0] == '\t'))
        text = (struct str){text.ptr + 1, text.len - 1};
    if (text.len && text.ptr[0] == '#')
        return false;
    if (name_of(r, text))
        return true;
    size_t len = line_name_len(text);
    bool is_good = len && len < text.len && (text.ptr[len] == '{' || text.ptr[len] == ' ');
    if (r->n_good + r->n_bad < JUDGED_LINES)
        *(is_good ? &r->n_good : &r->n_bad) += 1;
    return false;
}

/* A piece of a line that did not come whole, or is long: those that nobody wants are not kept. */
static int add_piece(struct signals_reader *r, struct str piece, struct err *e)
{
    if (r->is_skipping)
        return 0;
    bool was_short = r->line.len <= PEEK;
    size_t first = was_short && piece.len > PEEK + 1 - r->line.len ? PEEK + 1 - r->line.len : piece.len;
    if (buf_append(&r->line, piece.ptr, first) < 0)
        return refuse(r, e, "bytes in one line", SIGNALS_LINE_MAX);
    if (was_short && r->line.len > PEEK && !is_wanted(r)) {
        r->is_skipping = true;
        return 0;
    }
    if (buf_append(&r->line, piece.ptr + first, piece.len - first) < 0)
        return refuse(r, e, "bytes in one line", SIGNALS_LINE_MAX);
    return 0;
}

static int end_line(struct signals_reader *r, struct err *e)
{
    struct str text = {r->line.data, r->is_skipping ? 0 : r->line.len};
    int result = take_line(r, text, e);
    r->is_skipping = false;
    buf_reset(&r->line);
    return result;
}

int signals_reader_feed(struct signals_reader *r, const char *bytes, size_t len, struct err *e)
{
    if (r->refusal.class != ERR_NONE)
        return err_set(e, r->refusal.class, "%s", r->refusal.text);
    if (len > SIGNALS_PAGE_BYTES_MAX - r->n_bytes)
        return refuse(r, e, "bytes", SIGNALS_PAGE_BYTES_MAX);
    r->n_bytes += len;
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        struct str piece = {bytes, end ? (size_t)(end - bytes) : len};
        bool is_begun = r->line.len || r->is_skipping || !end || piece.len > PEEK;
        if (is_begun ? add_piece(r, piece, e) < 0 || (end && end_line(r, e) < 0) : take_line(r, piece, e) < 0)
            return -1;
        bytes += piece.len + (end != NULL);
        len -= piece.len + (end != NULL);
    }
    return 0;
}

/* ---- the end ---- */

static void list_seen(const struct signals_reader *r, struct buf *out)
{
    const struct seen *seen = r->seen.n ? &r->seen : &r->seen_of_runtimes;
    for (size_t i = 0; i < seen->n; i++)
        (void)buf_printf(out, "%s%s", i ? ", " : "", seen->names[i]);
}

/* What the user asked for, what is most like it, and what else there is. Cases O28, O56 */
static char *describe_missing(const struct signals_reader *r)
{
    BUF_AUTO struct buf out;
    buf_init(&out, ALIAS_NAME_MAX + (SEEN_MAX + 2) * (SEEN_NAME_MAX + 2));
    (void)buf_printf(&out, "%s (", r->custom);
    if (r->nearest_len)
        (void)buf_printf(&out, "is it %s? ", r->nearest);
    (void)buf_append_str(&out, "The page has ");
    list_seen(r, &out);
    (void)buf_append_char(&out, ')');
    return mem_strdup(buf_cstr(&out));
}

static int no_rule(const struct signals_reader *r, struct err *e)
{
    BUF_AUTO struct buf there;
    buf_init(&there, SEEN_MAX * (SEEN_NAME_MAX + 2));
    list_seen(r, &there);
    return err_set(e, ERR_NOT_FOUND, "the page is of no engine that is known (no %s); it has %s",
                   alias_names(QUANTITY_WAITING, DIALECT_COUNT), buf_cstr(&there));
}

/* The first dialect of which the page has a name of its own. */
static enum dialect dialect_of(const struct signals_reader *r)
{
    enum dialect first = DIALECT_COUNT;
    for (size_t i = 0; i < aliases_len; i++)
        if ((r->is_found[i * ALIAS_PARTS] || r->is_found[i * ALIAS_PARTS + 1]) && aliases[i].dialect < first)
            first = aliases[i].dialect;
    return first;
}

struct signals_page *signals_reader_end(struct signals_reader *r, struct err *e)
{
    if (r->refusal.class == ERR_NONE && (r->line.len || r->is_skipping))
        (void)end_line(r, NULL);
    if (r->refusal.class != ERR_NONE) {
        (void)err_set(e, r->refusal.class, "%s", r->refusal.text);
        return NULL;
    }
    if (r->n_bad && !r->n_good) {
        (void)err_set(e, ERR_INVALID_ARGUMENT, "not a metrics page: none of its first %zu lines is a sample", r->n_bad);
        return NULL;
    }
    enum dialect dialect = dialect_of(r);
    size_t custom = aliases_len * ALIAS_PARTS;
    bool is_empty = !r->n_good, has_custom = r->is_found[custom] || r->is_found[custom + 1];
    if (is_empty || (dialect == DIALECT_COUNT && !*r->custom)) {
        (void)(is_empty ? err_set(e, ERR_NOT_FOUND, "the page is empty") : no_rule(r, e));
        return NULL;
    }
    bool is_counter = r->is_custom_counter || str_has_suffix(str_of(r->custom), "_total");
    struct signals_page *page = page_new(dialect, r->series.items, r->series.len, is_counter);
    page->server = r->server;
    if (dialect < DIALECT_COUNT && r->busiest[dialect].has_several)
        memcpy(page->model, r->busiest[dialect].model, sizeof(page->model));
    if (*r->custom && !has_custom)
        page->missing = describe_missing(r);
    return page;
}
