/* Private to the explanation: what explain.c takes from explain_page.c. */
#ifndef WORKLOAD_EXPLAIN_H
#define WORKLOAD_EXPLAIN_H

#include "workload/look.h"

typedef void (*workload_told)(void *context, const char *id, const char *sentence);

/* The words of both forms. */
void workload_put_number(struct buf *out, const char *before, double value, const char *after);
void workload_put_age(struct buf *out, double seconds);

/* By what the shown pods are measured: of several signals the one that decided, or the first. */
const struct trigger *workload_trigger_of_pods(const struct workload_answer *a);

/* By what the pods are measured, and each of several signals with the one that decides. */
void workload_put_signals(const struct workload_answer *a, struct buf *out);
/* The line about a pod's page: one where there is a word to say of it, else none. */
size_t workload_count_page_lines(const struct workload_input *in);
void workload_put_page(const struct workload_input *in, struct buf *out);

/* Members of the whole object, and the member `page` of a pod. */
void workload_signals_json(const struct workload_answer *a, struct json *out);
void workload_page_json(const struct workload_input *in, struct json *out);

/* Warnings about pages; ids are public. */
void workload_tell_pages(const struct workload_answer *a, workload_told told, void *context);

#endif
