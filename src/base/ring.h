/*
 * A doubly linked ring with a head; an element off any list points to itself.
 */
#ifndef SIDFLAKE_BASE_RING_H
#define SIDFLAKE_BASE_RING_H

#include <stdbool.h>
#include <stddef.h>

struct link {
    struct link *prev, *next;
};

static inline void link_init(struct link *l)
{
    l->prev = l->next = l;
}

static inline bool link_empty(const struct link *l)
{
    return l->next == l;
}

static inline void link_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    link_init(l);
}

static inline void link_append(struct link *head, struct link *l)
{
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

/* What is in from goes into to, which need not be anything before.
 *
 * For walks in which a step may close others: the first of to goes back to the end of from, and
 * then is dealt with, until to is empty. A next that was saved before the step may be on another
 * list after it, and the walk would never come back. */
static inline void link_take(struct link *to, struct link *from)
{
    link_append(from, to);
    link_remove(from);
}

static inline struct link *link_take_first(struct link *left, struct link *back)
{
    struct link *l = left->next;
    link_remove(l);
    link_append(back, l);
    return l;
}

static inline void link_prepend(struct link *head, struct link *l)
{
    link_append(head->next, l);
}

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
