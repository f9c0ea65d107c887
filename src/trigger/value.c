/* Reads single values of metadata and words their refusals. It knows keys only as names for its sentences. */
#include "trigger/value.h"

#include <math.h>
#include <string.h>

enum { LIST_BYTES = 620 };

int trigger_refuse(const struct trigger_value *v, enum trigger_key key, const char *what, struct err *e)
{
    char shown_key[TRIGGER_SHOWN_MAX], shown[TRIGGER_SHOWN_MAX];
    trigger_show(shown_key, v->key);
    trigger_show(shown, v->text);
    return err_set(e, ERR_INVALID_ARGUMENT, "metadata %s: \"%s\" %s; allowed: %s", shown_key, shown, what,
                   trigger_key_facts(key)->allowed);
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The names in alphabetical order with commas between, and the one nearest to the text, or "" where none is near. */
struct offer {
    char list[LIST_BYTES], hint[TRIGGER_SHOWN_MAX + 24];
};

static struct offer make_offer(struct trigger_choices choices, struct str text)
{
    struct offer offer = {.hint = ""};
    MEM_AUTO const char **names = (const char **)mem_new_array(choices.n, sizeof(*names));
    size_t n = 0;
    for (size_t i = 0; i < choices.n; i++)
        if (choices.names[i])
            names[n++] = choices.names[i];
    qsort(names, n, sizeof(*names), compare_names);

    BUF_AUTO struct buf list;
    buf_init(&list, LIST_BYTES - 1);
    for (size_t i = 0; i < n; i++)
        (void)buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    (void)str_copy(offer.list, sizeof(offer.list), str_of(buf_cstr(&list)));

    char typed[TRIGGER_SHOWN_MAX];
    trigger_show(typed, text);
    const char *nearest = str_nearest(typed, names, n);
    if (nearest) {
        BUF_AUTO struct buf hint;
        buf_init(&hint, sizeof(offer.hint) - 1);
        (void)buf_printf(&hint, "did you mean \"%s\"? ", nearest);
        (void)str_copy(offer.hint, sizeof(offer.hint), str_of(buf_cstr(&hint)));
    }
    return offer;
}

int trigger_refuse_choice(const struct trigger_value *v, enum trigger_choice choice, struct err *e)
{
    char shown_key[TRIGGER_SHOWN_MAX], shown[TRIGGER_SHOWN_MAX];
    trigger_show(shown_key, v->key);
    trigger_show(shown, v->text);
    struct offer offer = make_offer(trigger_choices(choice), v->text);
    return err_set(e, ERR_INVALID_ARGUMENT, "metadata %s: \"%s\" is not known; %sallowed: %s", shown_key, shown,
                   offer.hint, offer.list);
}

int trigger_refuse_key(struct str key, struct err *e)
{
    char shown[TRIGGER_SHOWN_MAX];
    trigger_show(shown, key);
    struct offer offer = make_offer(trigger_choices(TRIGGER_CHOICE_KEY), key);
    return err_set(e, ERR_INVALID_ARGUMENT, "metadata key \"%s\" is not known; %sknown keys: %s", shown, offer.hint,
                   offer.list);
}

int trigger_read_number(const struct trigger_value *v, enum trigger_key key, struct trigger_range range, double *ret,
                        struct err *e)
{
    double number = 0;
    if (num_parse_double(v->text, &number) < 0)
        return trigger_refuse(v, key, "is not a plain decimal number", e);
    if (!(number >= range.low && number <= range.high))
        return trigger_refuse(v, key, "is out of range", e);
    *ret = fabs(number); /* "-0" is 0 */
    return 0;
}

int trigger_read_duration(const struct trigger_value *v, enum trigger_key key, struct trigger_range range,
                          int64_t *ret_ns, struct err *e)
{
    char text[64];
    int64_t ns = 0;
    double seconds = 0;
    if (num_parse_double(v->text, &seconds) < 0) {
        bool is_whole = str_copy(text, sizeof(text), v->text) && strlen(text) == v->text.len;
        if (!is_whole || time_parse_duration(text, &ns) < 0)
            return trigger_refuse(v, key, "is not a duration", e);
        seconds = (double)ns / (double)NS_PER_S;
    }
    if (!(seconds >= range.low && seconds <= range.high))
        return trigger_refuse(v, key, "is out of range", e);
    *ret_ns = llround(seconds * (double)NS_PER_S);
    return 0;
}

int trigger_read_choice(const struct trigger_value *v, enum trigger_choice choice, size_t *ret_place, struct err *e)
{
    struct trigger_choices choices = trigger_choices(choice);
    for (size_t i = 0; i < choices.n; i++) {
        if (!choices.names[i] || !str_equals(v->text, choices.names[i]))
            continue;
        *ret_place = i;
        return 0;
    }
    return trigger_refuse_choice(v, choice, e);
}

static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F)
            return false;
    return str_is_utf8(text);
}

int trigger_read_text(const struct trigger_value *v, enum trigger_key key, size_t size, char *ret_text, struct err *e)
{
    if (v->text.len == 0)
        return trigger_refuse(v, key, "is empty", e);
    if (v->text.len >= size)
        return trigger_refuse(v, key, "is too long", e);
    if (!is_printable(v->text))
        return trigger_refuse(v, key, "has characters that cannot be printed", e);
    (void)str_copy(ret_text, size, v->text);
    return 0;
}
