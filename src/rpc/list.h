/* A circular list whose links live in their owners, for calls that leave at any time. */
#ifndef RPC_LIST_H
#define RPC_LIST_H

#include <stdbool.h>
#include <stddef.h>

/* As head: after rpc_list_init. As member: zero, or linked into one list. */
struct rpc_link {
    struct rpc_link *prev, *next;
};

static inline void rpc_list_init(struct rpc_link *head)
{
    head->prev = head->next = head;
}

static inline bool rpc_list_is_empty(const struct rpc_link *head)
{
    return head->next == head;
}

static inline bool rpc_link_is_linked(const struct rpc_link *link)
{
    return link->next != NULL;
}

static inline void rpc_list_push(struct rpc_link *head, struct rpc_link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

/* Take the link out of its list; nothing if it is in none. */
static inline void rpc_link_remove(struct rpc_link *link)
{
    if (!link->next)
        return;
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->prev = link->next = NULL;
}

/* Take the first link out and return it; NULL when there is none. */
static inline struct rpc_link *rpc_list_pop(struct rpc_link *head)
{
    struct rpc_link *first = head->next;
    if (first == head)
        return NULL;
    head->next = first->next;
    first->next->prev = head;
    first->prev = first->next = NULL;
    return first;
}

#endif
