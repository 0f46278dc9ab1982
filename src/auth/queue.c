#include "auth/queue.h"

#include <stdlib.h>

#define AGAIN_EACH 4u /* of so many picks one is of those that come again */

struct queue_party {
    struct link turn; /* first: in queue.turn */
    struct link fresh, again;
    struct queue_party *next; /* in its bucket */
    struct queue_peer peer;
    size_t n; /* entries, delayed ones included */
    unsigned picks;
};

static struct queue_party **bucket_of(struct queue *q, const struct queue_peer *peer)
{
    uint64_t mixed =
        (peer->id[0] ^ (peer->id[1] * UINT64_C(0x9e3779b97f4a7c15))) * UINT64_C(0xbf58476d1ce4e5b9);
    return &q->bucket[mixed >> 56];
}

static struct queue_party *party_of(struct queue *q, const struct queue_peer *peer)
{
    struct queue_party **bucket = bucket_of(q, peer), *p = *bucket;
    while (p && (p->peer.id[0] != peer->id[0] || p->peer.id[1] != peer->id[1]))
        p = p->next;
    if (p || !(p = calloc(1, sizeof *p)))
        return p;
    link_init(&p->turn);
    link_init(&p->fresh);
    link_init(&p->again);
    p->peer = *peer;
    p->next = *bucket;
    *bucket = p;
    return p;
}

static bool is_ready(const struct queue_party *p)
{
    return !link_empty(&p->fresh) || !link_empty(&p->again);
}

/* It is among those whose turn comes if it has somebody ready, and lives while it has anybody. */
static void settle(struct queue *q, struct queue_party *p)
{
    struct queue_party **at = bucket_of(q, &p->peer);
    if (is_ready(p) && link_empty(&p->turn))
        link_append(&q->turn, &p->turn);
    if (!is_ready(p))
        link_remove(&p->turn);
    if (p->n > 0)
        return;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    free(p);
}

void queue_init(struct queue *q)
{
    *q = (struct queue){.bucket = {NULL}};
    link_init(&q->turn);
    for (unsigned i = 0; i < QUEUE_DELAYS; i++)
        link_init(&q->delayed[i]);
}

bool queue_put(struct queue *q, struct queue_entry *e, const struct queue_peer *peer,
               unsigned refused, int64_t now_us)
{
    unsigned delay = refused < QUEUE_DELAYS ? refused : QUEUE_DELAYS;
    e->party = party_of(q, peer);
    if (!e->party)
        return false;
    e->party->n++;
    e->due_us = delay > 0 ? now_us + (QUEUE_DELAY_US << (delay - 1)) : 0;
    link_append(delay > 0 ? &q->delayed[delay - 1] : &e->party->fresh, &e->place);
    settle(q, e->party);
    return true;
}

/* Each list of those who are delayed is in the order in which they are due. */
static void end_delays(struct queue *q, int64_t now_us)
{
    for (unsigned i = 0; i < QUEUE_DELAYS; i++) {
        struct link *head = &q->delayed[i];
        while (!link_empty(head)) {
            struct queue_entry *e = (struct queue_entry *)(void *)head->next;
            if (e->due_us > now_us)
                break;
            link_remove(&e->place);
            link_append(&e->party->again, &e->place);
            settle(q, e->party);
        }
    }
}

struct queue_entry *queue_take(struct queue *q, int64_t now_us)
{
    end_delays(q, now_us);
    if (link_empty(&q->turn))
        return NULL;
    struct queue_party *p = (struct queue_party *)(void *)q->turn.next;
    bool again = link_empty(&p->fresh) || (!link_empty(&p->again) && ++p->picks % AGAIN_EACH == 0);
    struct link *first = again ? p->again.next : p->fresh.next;
    link_remove(&p->turn); /* to the end, if it has more */
    queue_remove(q, (struct queue_entry *)(void *)first);
    return (struct queue_entry *)(void *)first;
}

int64_t queue_due_us(const struct queue *q)
{
    int64_t due = INT64_MAX;
    for (unsigned i = 0; i < QUEUE_DELAYS; i++) {
        const struct link *head = &q->delayed[i];
        const struct queue_entry *e = (const struct queue_entry *)(const void *)head->next;
        if (!link_empty(head) && e->due_us < due)
            due = e->due_us;
    }
    return due;
}

void queue_remove(struct queue *q, struct queue_entry *e)
{
    struct queue_party *p = e->party;
    link_remove(&e->place);
    e->party = NULL;
    p->n--;
    settle(q, p);
}

struct queue_entry *queue_any(const struct queue *q)
{
    for (unsigned i = 0; i < QUEUE_DELAYS; i++)
        if (!link_empty(&q->delayed[i]))
            return (struct queue_entry *)(void *)q->delayed[i].next;
    if (link_empty(&q->turn))
        return NULL;
    const struct queue_party *p = (const struct queue_party *)(const void *)q->turn.next;
    return (struct queue_entry *)(void *)(link_empty(&p->fresh) ? p->again.next : p->fresh.next);
}
