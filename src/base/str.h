/* Text helpers: views into text that somebody else owns, and near matches for typos. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

/* A view: len bytes, not NUL-terminated, owned elsewhere. */
struct str {
    const char *ptr;
    size_t len;
};

struct str str_of(const char *text);
bool str_equals(struct str a, const char *b);
bool str_equals_nocase(struct str a, const char *b); /* ASCII only */
bool str_has_prefix(struct str text, const char *prefix);
bool str_has_suffix(struct str text, const char *suffix);
/* Without leading and trailing ASCII white space. */
struct str str_trim(struct str text);
/* Cut the part before the first `separator` off *rest and return it; the whole rest when there is none, after which
 * rest->ptr is NULL. Loop while rest->ptr. */
struct str str_cut(struct str *rest, char separator);
/* A NUL-terminated copy into out[size], cut to fit; returns false when it was cut. size > 0. */
bool str_copy(char *out, size_t size, struct str text);
/* The byte that "%XX" at the front of text stands for; -1 when there is no such escape. */
int str_percent_byte(struct str text);
/* ASCII lower case in place. */
void str_lower(char *text);
/* Is the text valid UTF-8 without NUL bytes? */
bool str_is_utf8(struct str text);
/* How many bytes at its front are a control, which could command a terminal: 1, 2 (U+0080 to U+009F in UTF-8), 0 none.
 */
size_t str_control_len(struct str text);
/* Edit distance (insert, delete, substitute, swap neighbours), both case-folded; SIZE_MAX for texts over 64 bytes. */
size_t str_distance(const char *a, const char *b);
/* The candidate nearest to `word`, or NULL when none is within a third of its length (at least 1, at most 3 edits). */
const char *str_nearest(const char *word, const char *const *candidates, size_t n);

#endif
