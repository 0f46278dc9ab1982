/*
 * Requests of many words: `get` and MGET of many keys, EXISTS, MSET. A server looks these up one
 * after the other, however short the reply is, and deals with nothing else meanwhile. So what all
 * together may have of them under way there, over all links, is bounded. Who asks for more waits in
 * a line, and who asks for little goes by.
 *
 *     asks for much --> the crowd --first come, first served--> up to CROWD words under way -->
 * done asks for little ------------------------------------------------------------------------>
 * done
 *
 * There is always one who goes on. What a client has not sent to its end is no work yet, and what
 * it does not take is none any more; a reply that may take any time is no work either, and what
 * would stand behind it is not sent. All else is answered, or its link fails.
 */
#include "net/upstream/links.h"

#define MANY  16u   /* words: fewer are little */
#define CROWD 4096u /* words; one request may have more */

uint32_t crowd_counts(uint32_t words)
{
    return words >= MANY ? words : 0;
}

void crowd_weigh(struct relay *r, uint32_t words)
{
    r->words += words;
    r->up->words += words;
}

/* Replies come in their order: what is answered and not under way is not whole. */
void crowd_lighten(struct relay *r, uint32_t words)
{
    uint32_t whole = words < r->words ? words : r->words;
    if (words == 0)
        return;
    r->part -= words - whole;
    r->words -= whole;
    r->up->words -= whole;
    crowd_wake(r->up);
}

void crowd_forget(struct upstream_link *l, struct relay *r)
{
    for (uint32_t i = 0; i < l->fifo_n && (r->words > 0 || r->part > 0); i++) {
        struct expect *x = &l->fifo[(l->fifo_at + i) % l->fifo_cap];
        if (x->r != r)
            continue;
        crowd_lighten(r, x->words);
        x->words = 0;
    }
}

bool crowd_holds(const struct relay *r, uint32_t words)
{
    return words >= MANY && r->own && r->l->patient > 0;
}

bool crowd_bars(const struct relay *r, uint32_t words)
{
    bool others = r->called != CALLED_BY_CROWD && !link_empty(&r->up->crowd);
    return words >= MANY && (others || r->up->words >= CROWD);
}

void crowd_enter(struct relay *r)
{
    r->crowded = true;
    if (r->pending == 0 && !r->own)
        r->l = NULL; /* it may be gone by then */
}

void crowd_wake(struct upstream *up)
{
    if (up->words < CROWD && !link_empty(&up->crowd) && link_empty(&up->roomy))
        link_append(&up->net->uncrowded, &up->roomy);
}

void crowd_call(struct upstream *up)
{
    link_remove(&up->roomy);
    if (up->words >= CROWD || link_empty(&up->crowd))
        return;
    relay_go_on(CONTAINER(up->crowd.next, struct conn, park), CALLED_BY_CROWD);
    crowd_wake(up);
}
