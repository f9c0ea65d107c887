/* Which addresses a guarded fetch may connect to: asked for each of them before its socket is made. Private to http. */
#ifndef HTTP_GUARD_H
#define HTTP_GUARD_H

#include "http/http.h"

#include <curl/curl.h>

enum { GUARD_ADDRESS_MAX = 64 };
struct guard {
    const char *(*fault)(void *context, const char *address); /* NULL: not guarded */
    void *context;
    const char *why; /* the first address that was refused, and why; NULL none was */
    char refused[GUARD_ADDRESS_MAX];
    bool has_tried; /* an address that was not refused */
};

/* Nothing but a good address: no proxy, no user in the URL. The guard must outlive the handle. */
void guard_set(struct guard *guard, CURL *easy);
/* All addresses were refused. */
bool guard_has_refused(const struct guard *guard);

#endif
