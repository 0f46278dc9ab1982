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
 * it does not take is none any more; a reply that may take any time is no work either. All else is
 * answered, or its link fails.
 */
#include "net/upstream/links.h"

#define MANY  16u   /* words: fewer are little */
#define CROWD 4096u /* words; one request may have more */

/* Up at once, and down in steps: who has asked for much may do so again. */
void crowd_ask(struct relay *r, uint32_t words)
{
    r->asks = words >= r->asks ? words : r->asks - (r->asks - words) / 8;
}

void crowd_weigh(struct relay *r, uint32_t words)
{
    if (words < MANY)
        return;
    r->words += words;
    r->up->words += words;
}

void crowd_lighten(struct relay *r, uint32_t words)
{
    if (words == 0)
        return;
    r->words -= words;
    r->up->words -= words;
    crowd_wake(r->up);
}

bool crowd_bars(const struct relay *r)
{
    bool others = r->called != CALLED_BY_CROWD && !link_empty(&r->up->crowd);
    return r->asks >= MANY && (others || r->up->words >= CROWD);
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
