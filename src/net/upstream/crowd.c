/*
 * Requests of many words: `get` and MGET of many keys, EXISTS, MSET. A server looks these up one
 * after the other, however short the reply is, and deals with nothing else meanwhile. So what all
 * together have of them under way there, over all links, is bounded. Who asks for more waits in a
 * line, and who asks for little goes by; what is much and what is very much have a line each.
 *
 *     little    --------------------------------------------> the server
 *     much      --> line, first come first served --> CROWD words, or one request
 *     very much --> line, likewise                --> CROWD words, or one request
 *
 * A round of the server takes the longer the more ask for little, and only one CROWD goes there in
 * each; so it is larger then, by less work than those have anyway.
 *
 * There is always one who goes on. What a client has not sent to its end is no work yet, and what
 * it does not take is none any more; a reply that may take any time is no work either, and what
 * would stand behind it is not sent. A link that is silent keeps nobody back for long: a server may
 * take more links than it serves. All else is answered, or its link fails.
 */
#include "net/upstream/links.h"

#define MUCH      16u             /* words: fewer are little */
#define VERY_MUCH 512u            /* words */
#define CROWD     4096u           /* words … */
#define BESIDE    8u              /* … and for each reply that those who share expect */
#define SILENT_US INT64_C(500000) /* so long may somebody's own link be, and keep others back */

static unsigned line_of(uint32_t words)
{
    return words >= VERY_MUCH;
}

static bool has_room(const struct upstream *up, const struct crowd *c)
{
    uint64_t replies = 0;
    for (unsigned i = 0; i < UPSTREAM_SHARED; i++)
        replies += up->shared[i] ? up->shared[i]->replies : 0;
    return c->words < CROWD + BESIDE * replies;
}

static void wake(struct upstream *up, struct crowd *c)
{
    if (has_room(up, c) && !link_empty(&c->line) && link_empty(&c->roomy))
        link_append(&up->net->uncrowded, &c->roomy);
}

void crowd_lighten(struct upstream *up, struct expect *x)
{
    struct crowd *c = &up->crowd[line_of(x->words)];
    c->words -= x->words;
    x->words = 0;
    wake(up, c);
}

void crowd_ask(struct relay *r, uint32_t words)
{
    r->part += words >= MUCH ? words : 0;
}

/* Its reply is the latest that is expected, if that has not come before it was whole. */
void crowd_whole(struct relay *r)
{
    struct upstream_link *l = r->l;
    if (r->part > 0 && r->pending > 0) {
        struct expect *x = &l->fifo[(l->fifo_at + l->fifo_n - 1) % l->fifo_cap];
        x->words = r->part;
        l->up->crowd[line_of(x->words)].words += x->words;
    }
    r->part = 0;
}

void crowd_forget(struct upstream_link *l, const struct relay *r)
{
    for (uint32_t i = 0; i < l->fifo_n; i++) {
        struct expect *x = &l->fifo[(l->fifo_at + i) % l->fifo_cap];
        if (x->r == r && x->words > 0)
            crowd_lighten(l->up, x);
    }
}

void crowd_look(struct upstream_link *l, int64_t now)
{
    if (l->owner && now - l->since_us > SILENT_US)
        crowd_forget(l, l->owner);
}

bool crowd_holds(const struct relay *r, uint32_t words)
{
    return words >= MUCH && r->own && r->l->patient > 0;
}

/* A turn in one line is none in the other, whatever stands behind the request that waited. */
static enum relay_called caller(const struct upstream *up, const struct crowd *c)
{
    return c == up->crowd ? CALLED_BY_MUCH : CALLED_BY_VERY_MUCH;
}

bool crowd_bars(const struct relay *r, const struct upstream *up, uint32_t words)
{
    const struct crowd *c = &up->crowd[line_of(words)];
    bool others = r->called != caller(up, c) && !link_empty(&c->line);
    return words >= MUCH && (others || !has_room(up, c));
}

enum upstream_ready crowd_enter(struct relay *r, struct upstream *up, uint32_t words)
{
    r->crowd = &up->crowd[line_of(words)];
    if (r->pending == 0 && !r->own)
        r->l = NULL; /* it may be gone by then */
    return UPSTREAM_BUSY;
}

void crowd_wait(struct relay *r, struct upstream *up)
{
    link_append(&r->crowd->line, &r->c->park);
    wake(up, r->crowd);
}

void crowd_call(struct crowd *c)
{
    struct conn *first = CONTAINER(c->line.next, struct conn, park);
    link_remove(&c->roomy);
    if (link_empty(&c->line) || !has_room(first->svc->upstream, c))
        return;
    struct upstream *up = first->svc->upstream;
    relay_go_on(first, caller(up, c));
    wake(up, c);
}
