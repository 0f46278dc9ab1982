/*
 * Who has more to do than a turn may take.
 *
 * What a client pipelines may cost anything, so a turn has a time, not a number of requests. When
 * it is over, what the connection has not dealt with is kept, and it comes into this list:
 *
 *     net.turns:   A | B | C            each once, in order, for ROUND_US in all;
 *                  then whoever has sent something, and again
 *
 * A single request may be dear, too, and there may be one from each of many: so whoever took long
 * with the latest ones comes into the list with the next as well, instead of having its turn when
 * it is heard. So whoever asks for little waits for one round and for the turns of those who came
 * at the same time and ask for little, too, however many have much to do.
 */
#include "net/private.h"

#define ROUND_US INT64_C(1000)
#define TURN_MAX INT64_C(100) /* us, of one turn … */
#define TURN_MIN INT64_C(10)  /* … and where many have more to do */
#define LIGHT_US 20           /* what a few requests cost */
#define DEAR     3            /* two turns that took long */
#define DEAR_MAX 8            /* … and what as many light ones make up for */

void turns_add(struct conn *c)
{
    struct net *n = c->net;
    c->state = CONN_MORE;
    n->nturns++;
    link_append(&n->turns, &c->park);
    sweep_watch(c);
    if (!ev_is_active(&n->awake))
        ev_idle_start(n->loop, &n->awake);
}

/* Whoever is out of it, for whatever reason, is not about to be read from. */
void turns_leave(struct conn *c)
{
    c->unread = false;
    if (c->state != CONN_MORE)
        return;
    struct net *n = c->net;
    park_leave(c);
    n->nturns--;
    if (link_empty(&n->turns)) /* turns_run's own mark is in it while that runs */
        ev_idle_stop(n->loop, &n->awake);
}

/* Whoever comes to the list meanwhile is behind the end. */
void turns_run(struct net *n)
{
    int64_t now_us = clock_mono_us(n->conf.clock), over_us = now_us + ROUND_US;
    n->now_us = n->round_us = now_us;
    link_append(&n->turns, &n->turns_end);
    while (n->turns.next != &n->turns_end && now_us < over_us) {
        struct conn *c = CONTAINER(n->turns.next, struct conn, park);
        bool unread = c->unread;
        turns_leave(c);
        conn_go_on(c, unread);
        now_us = clock_mono_us(n->conf.clock);
    }
    link_remove(&n->turns_end);
    if (link_empty(&n->turns))
        ev_idle_stop(n->loop, &n->awake);
}

/* What has come since the loop looked last has taken so long that others should have their turn. */
bool turns_crowded(const struct net *n)
{
    return n->now_us - n->round_us > ROUND_US;
}

/* A turn may seem long because the processor was somebody else's, so one alone says nothing. */
void turns_note(struct conn *c, int64_t us, bool ended)
{
    unsigned more = us > TURN_MAX ? 2 : us > LIGHT_US && turns_crowded(c->net) ? 1 : 0;
    if (more == 0)
        c->dear = (uint8_t)(c->dear - (ended && c->dear > 0));
    else if (c->dear < DEAR_MAX)
        c->dear = (uint8_t)(c->dear + more);
}

/* Not heard at once: it is one of those who take long, or one of many who take a while. */
bool turns_waits(const struct conn *c)
{
    return c->dear >= DEAR;
}

int64_t turns_length_us(const struct net *n)
{
    int64_t us = ROUND_US / (int64_t)(n->nturns + 1);
    return us > TURN_MAX ? TURN_MAX : us < TURN_MIN ? TURN_MIN : us;
}

/* It is there so that the loop does not sleep: turns_run is called before it would. */
static void awake(struct ev_loop *loop, struct ev_idle *w, int revents)
{
    (void)loop;
    (void)w;
    (void)revents;
}

void turns_init(struct net *n)
{
    link_init(&n->turns);
    link_init(&n->turns_end);
    ev_idle_init(&n->awake, awake);
    ev_idle_start(n->loop, &n->awake); /* libev's list of them is made now, while there is memory */
    ev_idle_stop(n->loop, &n->awake);
}
