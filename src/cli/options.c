/* Options: parsing flags, environment and file values against one table, and showing that table. */
#include "cli/cli.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void option_set_init(struct option_set *set, const struct option_def *defs, size_t n, const char *env_prefix)
{
    *set = (struct option_set){.defs = defs, .n = n, .env_prefix = env_prefix};
    set->values = (struct option_value *)mem_new_array(n, sizeof(*set->values));
}

static void clear(struct option_value *value)
{
    for (size_t i = 0; i < value->texts.len; i++)
        free(value->texts.items[i]);
    value->texts.len = 0;
}

void option_set_fini(struct option_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        clear(&set->values[i]);
        vec_fini(&set->values[i].texts);
    }
    free(set->values);
    vec_fini(&set->operands);
}

static size_t find(const struct option_set *set, struct str name)
{
    size_t i = 0;
    while (i < set->n && !str_equals(name, set->defs[i].name))
        i++;
    return i;
}

static int check_number(const struct option_def *def, int64_t number, struct err *e)
{
    bool is_bounded = def->min || def->max;
    if (is_bounded ? number >= def->min && number <= def->max : number >= 0)
        return 0;
    if (def->kind == OPTION_INT)
        return err_set(e, ERR_INVALID_ARGUMENT, "must be from %" PRId64 " to %" PRId64, def->min,
                       is_bounded ? def->max : INT64_MAX);
    char least[TIME_DURATION_MAX], most[TIME_DURATION_MAX];
    time_format_duration(least, def->min);
    time_format_duration(most, def->max);
    return err_set(e, ERR_INVALID_ARGUMENT, "must be from %s to %s", least, most);
}

static bool is_choice(const char *choices, const char *value)
{
    struct str rest = str_of(choices);
    while (rest.ptr)
        if (str_equals(str_cut(&rest, '|'), value))
            return true;
    return false;
}

/* Is the text a value of this option? The error says what is allowed. */
static int check_value(const struct option_def *def, const char *text, struct err *e)
{
    int64_t number;
    bool yes;
    switch (def->kind) {
    case OPTION_INT:
        if (num_parse_i64(str_of(text), &number) < 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "is not a whole number");
        return check_number(def, number, e);
    case OPTION_DURATION:
        if (time_parse_duration(text, &number) < 0)
            return err_set(e, ERR_INVALID_ARGUMENT, "is not a duration such as 300ms, 5s or 1m30s");
        return check_number(def, number, e);
    case OPTION_BOOL:
        return num_parse_bool(str_of(text), &yes) == 0 ? 0
                                                       : err_set(e, ERR_INVALID_ARGUMENT, "is neither true nor false");
    case OPTION_CHOICE:
        return is_choice(def->choices, text) ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "is not one of %s", def->choices);
    case OPTION_LIST:
        return *text ? 0 : err_set(e, ERR_INVALID_ARGUMENT, "is empty");
    case OPTION_TEXT:
        break;
    }
    return 0;
}

static int set_value(struct option_set *set, size_t at, enum option_origin origin, const char *text, struct err *e)
{
    const struct option_def *def = &set->defs[at];
    struct option_value *value = &set->values[at];
    if (check_value(def, text, e) < 0)
        return -1;
    if (origin < value->origin)
        return 0; /* something stronger has spoken */
    if (origin > value->origin || def->kind != OPTION_LIST)
        clear(value);
    value->origin = origin;
    vec_push(&value->texts, mem_strdup(text));
    return 0;
}

/* The refusal of a name that is in no row. `dashes` are those that it was written with, `proper` those of a flag; both
 * "" for a key of a file. */
static int unknown_name(const struct option_set *set, struct str name, const char *dashes, const char *proper,
                        struct err *e)
{
    char word[64];
    (void)str_copy(word, sizeof(word), name);
    const char *what = *proper ? "flag" : "key", *names[64];
    size_t n = 0;
    for (size_t i = 0; i < set->n && n < ARRAY_LEN(names); i++)
        if (*proper || !set->defs[i].is_flag_only)
            names[n++] = set->defs[i].name;
    const char *near = str_nearest(word, names, n);
    if (near)
        return err_set(e, ERR_INVALID_ARGUMENT, "unknown %s %s%s (did you mean %s%s?)", what, dashes, word, proper,
                       near);
    return err_set(e, ERR_INVALID_ARGUMENT, "unknown %s %s%s; --help lists the flags", what, dashes, word);
}

/* The row of a short form: -o json, -o=json, and -ojson for choices. *value is moved behind the letter. */
static size_t find_letter(const struct option_set *set, struct str name, struct str *value)
{
    size_t at = 0;
    while (at < set->n && (!name.len || set->defs[at].letter != name.ptr[0]))
        at++;
    if (at == set->n || name.len == 1)
        return at;
    bool is_joined =
        set->defs[at].kind == OPTION_CHOICE && !value->ptr && is_choice(set->defs[at].choices, name.ptr + 1);
    if (is_joined)
        *value = str_of(name.ptr + 1);
    return is_joined ? at : set->n;
}

/* -h, --help and -V, --version belong to main and never reach here. */
static int parse_flag(struct option_set *set, int argc, char **argv, int *i, struct err *e)
{
    const char *arg = argv[*i];
    struct str value = str_of(arg + (arg[1] == '-' ? 2 : 1)), name = str_cut(&value, '=');
    size_t at = find(set, name);
    if (at == set->n && arg[1] != '-')
        at = find_letter(set, name, &value);
    if (at == set->n)
        return unknown_name(set, name, arg[1] == '-' ? "--" : "-", "--", e);
    const struct option_def *def = &set->defs[at];
    const char *text = value.ptr;
    if (!text && def->kind == OPTION_BOOL) {
        text = "true";
    } else if (!text) {
        if (*i + 1 >= argc)
            return err_set(e, ERR_INVALID_ARGUMENT, "--%s needs a value (%s)", def->name, def->metavar);
        text = argv[++*i];
    }
    if (set_value(set, at, OPTION_FLAG, text, e) == 0)
        return 0;
    return err_wrap(e, "--%s \"%s\"", def->name, text);
}

int option_set_parse(struct option_set *set, int argc, char **argv, struct err *e)
{
    bool is_rest = false;
    for (int i = 1; i < argc; i++) {
        bool is_flag = !is_rest && argv[i][0] == '-' && argv[i][1];
        if (is_flag && strcmp(argv[i], "--") == 0)
            is_rest = true;
        else if (!is_flag)
            vec_push(&set->operands, argv[i]);
        else if (parse_flag(set, argc, argv, &i, e) < 0)
            return -1;
    }
    return 0;
}

static void env_name(const struct option_set *set, const char *name, char out[128])
{
    int len = snprintf(out, 128, "%s%s", set->env_prefix, name);
    for (int i = 0; i < len && i < 127; i++)
        out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

/* A list in a variable is separated by commas. */
static int set_list(struct option_set *set, size_t at, const char *text, struct err *e)
{
    struct str rest = str_of(text);
    while (rest.ptr) {
        struct str part = str_trim(str_cut(&rest, ','));
        MEM_AUTO char *item = mem_strndup(part.ptr ? part.ptr : "", part.len);
        if (part.len && set_value(set, at, OPTION_ENVIRONMENT, item, e) < 0)
            return -1;
    }
    return 0;
}

/* What Kubernetes sets for a Service, which none of our values begins with. */
static bool is_service_link(const char *text)
{
    static const char *const starts[] = {"tcp://", "udp://", "sctp://"};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (str_has_prefix(str_of(text), starts[i]))
            return true;
    return false;
}

int option_set_environment(struct option_set *set, struct err *e)
{
    for (size_t i = 0; set->env_prefix && i < set->n; i++) {
        char name[128];
        env_name(set, set->defs[i].name, name);
        const char *text = getenv(name);
        if (!text || !*text || is_service_link(text))
            continue;
        int rc = set->defs[i].kind == OPTION_LIST ? set_list(set, i, text, e)
                                                  : set_value(set, i, OPTION_ENVIRONMENT, text, e);
        if (rc < 0)
            return err_wrap(e, "environment variable %s \"%s\"", name, text);
    }
    return 0;
}

int option_set_file_key(const struct option_set *set, const char *name, bool *ret_is_list, struct err *e)
{
    size_t at = find(set, str_of(name));
    if (at == set->n)
        return unknown_name(set, str_of(name), "", "", e);
    if (set->defs[at].is_flag_only)
        return err_set(e, ERR_INVALID_ARGUMENT, "--%s has no meaning in a file", name);
    *ret_is_list = set->defs[at].kind == OPTION_LIST;
    return 0;
}

int option_set_file_value(struct option_set *set, const char *name, const char *value, struct err *e)
{
    size_t at = find(set, str_of(name));
    if (at == set->n)
        abort(); /* option_set_file_key was not asked: our own bug */
    if (set_value(set, at, OPTION_FILE, value, e) == 0)
        return 0;
    return err_wrap(e, "%s \"%s\"", name, value);
}

static const struct option_value *value_of(const struct option_set *set, const char *name,
                                           const struct option_def **ret)
{
    size_t at = find(set, str_of(name));
    if (at == set->n)
        abort(); /* a name that is not in the table is our own bug */
    *ret = &set->defs[at];
    return &set->values[at];
}

const char *option_text(const struct option_set *set, const char *name)
{
    const struct option_def *def;
    const struct option_value *value = value_of(set, name, &def);
    return value->texts.len ? value->texts.items[0] : def->fallback;
}

const char *option_text_or_null(const struct option_set *set, const char *name)
{
    const char *text = option_text(set, name);
    return *text ? text : NULL;
}

int64_t option_int(const struct option_set *set, const char *name)
{
    int64_t number = 0;
    return num_parse_i64(str_of(option_text(set, name)), &number) == 0 ? number : 0;
}

int64_t option_duration(const struct option_set *set, const char *name)
{
    int64_t ns = 0;
    return time_parse_duration(option_text(set, name), &ns) == 0 ? ns : 0;
}

bool option_bool(const struct option_set *set, const char *name)
{
    bool yes = false;
    return num_parse_bool(str_of(option_text(set, name)), &yes) == 0 && yes;
}

char *const *option_list(const struct option_set *set, const char *name, size_t *ret_n)
{
    const struct option_def *def;
    const struct option_value *value = value_of(set, name, &def);
    *ret_n = value->texts.len;
    return value->texts.items;
}

bool option_is_set(const struct option_set *set, const char *name)
{
    const struct option_def *def;
    return value_of(set, name, &def)->origin != OPTION_DEFAULT;
}

void option_help(const struct option_def *defs, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        char left[64];
        (void)snprintf(left, sizeof(left), "--%s%s%s", defs[i].name, defs[i].metavar ? " " : "",
                       defs[i].metavar ? defs[i].metavar : "");
        char letter[8] = "    ";
        if (defs[i].letter)
            (void)snprintf(letter, sizeof(letter), "-%c, ", defs[i].letter);
        (void)buf_printf(out, "  %s%-30s %s", letter, left, defs[i].help);
        if (defs[i].choices)
            (void)buf_printf(out, ": %s", defs[i].choices);
        bool is_off = defs[i].kind == OPTION_BOOL && strcmp(defs[i].fallback, "false") == 0;
        if (*defs[i].fallback && !is_off)
            (void)buf_printf(out, " (default %s)", defs[i].fallback);
        (void)buf_append_char(out, '\n');
    }
}

void option_print(const struct option_set *set, struct buf *out)
{
    static const char *const origins[] = {"default", "file", "environment", "flag"};
    for (size_t i = 0; i < set->n; i++) {
        const struct option_value *value = &set->values[i];
        (void)buf_printf(out, "%s%s: ", set->defs[i].is_flag_only ? "# " : "", set->defs[i].name);
        bool is_list = set->defs[i].kind == OPTION_LIST;
        if (is_list)
            (void)buf_append_char(out, '[');
        for (size_t k = 0; k < value->texts.len; k++) {
            (void)buf_append_str(out, k ? ", " : "");
            json_quote(out, value->texts.items[k], strlen(value->texts.items[k]));
        }
        if (value->texts.len == 0 && !is_list)
            json_quote(out, set->defs[i].fallback, strlen(set->defs[i].fallback));
        (void)buf_printf(out, "%s # %s\n", is_list ? "]" : "", origins[value->origin]);
    }
}
