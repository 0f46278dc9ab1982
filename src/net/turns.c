/*
 * Who has more to do than a turn may take.
 *
 * What a client pipelines may cost anything, so a turn has a time, not a number of requests. When
 * it is over, what the connection has not dealt with is kept, and it comes into a list:
 *
 *     LINE_LIGHT:  A | B            who is not known to take long       the line that has had less
 *     LINE_DEAR:   C | D | E        who is                              time is next; as many turns
 *                                                                       as there are in both, for
 *                                                                       ROUND_US in all;
 *                  then whoever has sent something, and again
 *
 * A single request may be dear, too, and there may be one from each of many: so whoever took long
 * with the latest ones comes into the list with the next as well, instead of having its turn when
 * it is heard; and so does, in a crowd, whoever has sent much. So whoever asks for little waits for
 * one round and for the turns of those who came at the same time and ask for little, too, however
 * many have much to do.
 *
 * And where many come at the same time who ask for little, those in the list do not wait for all of
 * them: after each ROUND_US of their turns it has its round, and so half of the time.
 */
#include "net/private.h"

#define ROUND_US INT64_C(1000)
#define TURN_MAX INT64_C(100) /* us, of one turn … */
#define TURN_MIN INT64_C(10)  /* … and where many have more to do */
#define LIGHT_US 20           /* what a few requests cost … */
#define LIGHT    64           /* … in IDs: as much is soon done, however long it seemed to take */
#define DEAR     3            /* two turns that took long */
#define DEAR_ALL 5            /* those of a crowd that took a while: no more than … */
#define DEAR_MAX 8            /* … and what as many light ones make up for */

enum turns_line {
    LINE_LIGHT,
    LINE_DEAR
};

void turns_add(struct conn *c)
{
    struct net *n = c->net;
    c->state = CONN_MORE;
    n->nturns++;
    link_append(&n->turns[c->dear > DEAR_ALL ? LINE_DEAR : LINE_LIGHT], &c->park);
    sweep_watch(c);
}

/* Whoever is out of it, for whatever reason, is not about to be read from. */
void turns_leave(struct conn *c)
{
    c->unread = false;
    if (c->state != CONN_MORE)
        return;
    c->net->nturns--;
    park_leave(c);
}

static struct conn *next_of(struct net *n, enum turns_line line)
{
    return CONTAINER(n->turns[line].next, struct conn, park);
}

/* A line that was alone owes the other one no more than one round. What is owed outlives a round,
 * as a single turn may take all of it. */
static void charge(struct net *n, enum turns_line line, int64_t us)
{
    int64_t more = n->dear_us + (line == LINE_DEAR ? us : -us);
    n->dear_us = more > ROUND_US ? ROUND_US : more < -ROUND_US ? -ROUND_US : more;
}

/* As many turns as there are waiting now: whoever comes back has to wait for the sockets. */
void turns_run(struct net *n)
{
    turns_begin(n);
    int64_t now_us = n->now_us, over_us = now_us + ROUND_US;
    for (size_t left = n->nturns; left > 0 && n->nturns > 0 && now_us < over_us; left--) {
        enum turns_line line = n->dear_us < 0 ? LINE_DEAR : LINE_LIGHT;
        if (link_empty(&n->turns[line]))
            line = !line;
        struct conn *c = next_of(n, line);
        bool unread = c->unread;
        turns_leave(c);
        conn_go_on(c, unread);
        int64_t begun_us = now_us;
        now_us = clock_mono_us(n->conf.clock);
        charge(n, line, now_us - begun_us);
    }
    n->turns_us = now_us;
}

void turns_between(struct net *n)
{
    int64_t round_us = n->round_us, since_us = n->turns_us > round_us ? n->turns_us : round_us;
    bool none = n->nturns == 0 && !park_has_woken(n);
    if (none || n->now_us - since_us <= ROUND_US)
        return;
    park_run_woken(n);
    turns_run(n);
    n->round_us = round_us; /* what came is no less for that */
}

void turns_begin(struct net *n)
{
    n->now_us = n->round_us = clock_mono_us(n->conf.clock);
}

void turns_tick(struct net *n)
{
    n->now_us = clock_mono_us(n->conf.clock);
}

/* What has come since the loop looked last has taken so long that others should have their turn. */
bool turns_crowded(const struct net *n)
{
    return n->now_us - n->round_us > ROUND_US;
}

/* A turn may seem long because the processor was somebody else's: one alone says nothing, and none
 * says anything of who has asked for little. Nobody who takes no longer than the rest of a crowd is
 * as dear as those who take long whenever they come. And who takes a while stays as dear as he is:
 * in the list, where he waits for that, there is no crowd. */
void turns_note(struct conn *c, int64_t us, bool ended, size_t work)
{
    bool counts = work > LIGHT && us > LIGHT_US;
    if (counts && us > TURN_MAX)
        c->dear = c->dear + 2 < DEAR_MAX ? (uint8_t)(c->dear + 2) : DEAR_MAX;
    else if (counts && c->dear <= DEAR_ALL)
        c->dear = (uint8_t)(c->dear + (c->dear < DEAR_ALL && turns_crowded(c->net)));
    else
        c->dear = (uint8_t)(c->dear - (ended && c->dear > 0));
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

/* It is there so that the loop does not sleep: who is left has the next round before it would. */
static void awake(struct ev_loop *loop, struct ev_idle *w, int revents)
{
    (void)loop;
    (void)w;
    (void)revents;
}

void turns_init(struct net *n)
{
    link_init(&n->turns[LINE_LIGHT]);
    link_init(&n->turns[LINE_DEAR]);
    ev_idle_init(&n->awake, awake);
    ev_idle_start(n->loop, &n->awake); /* libev's list of them is made now, while there is memory */
    ev_idle_stop(n->loop, &n->awake);
}
