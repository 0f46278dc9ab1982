/*
 * Memory that outlives a turn. Most of it is small and soon free again, so a few blocks of one size
 * go from one to the next: a request that comes in pieces costs no allocation.
 */
#include "net/private.h"

#include <stdlib.h>

#define SPARE 32 /* blocks not given back to the system: 128 KiB at most */

/* A block without an owner. */
struct spare {
    struct spare *next;
};

static char *take(struct net *n, size_t size, uint32_t *cap)
{
    struct spare *s = n->spare;
    *cap = size > NET_BLOCK ? (uint32_t)size : NET_BLOCK;
    bool spare = *cap == NET_BLOCK && s;
    char *p = spare ? (char *)s : malloc(*cap);
    if (spare) {
        n->spare = s->next;
        n->nspare--;
    }
    if (p)
        memory_add(n, *cap);
    return p;
}

static void give(struct net *n, char *p, uint32_t cap)
{
    struct spare *s = (struct spare *)(void *)p;
    n->bytes -= p ? cap : 0;
    if (!p || cap != NET_BLOCK || n->nspare == SPARE) {
        free(p);
        return;
    }
    s->next = n->spare;
    n->spare = s;
    n->nspare++;
}

void blocks_free(struct net *n)
{
    for (struct spare *s = n->spare, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    n->spare = NULL;
    n->nspare = 0;
}

void kept_free(struct net *n, struct kept *k)
{
    give(n, k->p, k->cap);
    *k = (struct kept){NULL, 0, 0, 0};
}

/* A block of size bytes at least, with bytes in it, takes the place of k's. */
static bool replace(struct net *n, struct kept *k, size_t size, struct span bytes)
{
    uint32_t cap;
    char *p = take(n, size, &cap);
    if (!p)
        return false;
    if (bytes.n > 0)
        memcpy(p, bytes.p, bytes.n);
    kept_free(n, k);
    *k = (struct kept){p, 0, (uint32_t)bytes.n, cap};
    return true;
}

bool kept_replace(struct net *n, struct kept *k, struct span bytes)
{
    if (bytes.n > 0)
        return replace(n, k, bytes.n, bytes);
    kept_free(n, k);
    return true;
}

/* For n bytes, and more behind them: no more than is ever heard, where they are no more. */
static size_t size_for(size_t n)
{
    return n <= NET_HEARD_MAX && 2 * n > NET_HEARD_MAX ? NET_HEARD_MAX : 2 * n;
}

size_t kept_more(const struct kept *k, size_t n)
{
    size_t size = k->n + n > k->cap ? size_for(kept_span(k).n + n) : 0;
    return size > k->cap ? size - k->cap : 0;
}

bool kept_add(struct net *n, struct kept *k, struct span bytes)
{
    struct span have = kept_span(k);
    if (k->n + bytes.n > k->cap && !replace(n, k, size_for(have.n + bytes.n), have))
        return false;
    if (bytes.n > 0)
        memcpy(k->p + k->n, bytes.p, bytes.n);
    k->n += (uint32_t)bytes.n;
    return true;
}
