/*
 * Who is idle for too long (idle_timeout), as Redis' own timeout has it.
 *
 *     net.quiet:   A | B | C        by the latest byte, either way; longest ago first
 *
 * Whoever waits for us, for a server, or to be told something is silent and not idle. Whoever does
 * not take what is there for it is idle, whatever it waits for.
 */
#include "net/private.h"
#include "net/upstream/links.h"

#include <sys/ioctl.h>

/* How long the process was stopped shows in a timer that is late, which one that was set for long
 * after is not: so many times within the limit one comes, and once a second at most. */
#define LOOKS    8
#define LOOK_MIN INT64_C(1000000)

/* Megabytes of what was sent may be with the kernel, which seldom asks for more then: there are
 * fewer than when we looked last, or we have not since any were sent. */
static bool is_taking(struct conn *c)
{
    int left = 0;
    if (ioctl(c->rd.fd, TIOCOUTQ, &left) < 0 || left == 0 || left == c->untaken)
        return false;
    c->untaken = left;
    return true;
}

static bool is_idle(struct conn *c)
{
    if (is_taking(c))
        return false;
    if (c->state != CONN_READING)
        return c->state == CONN_FLUSHING;
    if (c->svc->listens && c->svc->listens(c->svc, c->session))
        return false;
    return !c->relay || !relay_is_served(c);
}

static void to_end(struct conn *c)
{
    c->moved_us = clock_mono_us(c->net->conf.clock);
    link_remove(&c->quiet);
    link_append(&c->net->quiet, &c->quiet);
}

static struct conn *quietest(const struct net *n)
{
    return CONTAINER(n->quiet.next, struct conn, quiet);
}

static int64_t next_look_us(const struct net *n)
{
    int64_t us = n->conf.idle_timeout_us / LOOKS;
    return us > LOOK_MIN ? us : LOOK_MIN;
}

/* For the first in the list. One that runs fires too early at worst, and is set anew then. */
static void set_timer(struct net *n)
{
    if (n->conf.idle_timeout_us == 0 || link_empty(&n->quiet) || ev_is_active(&n->idle))
        return;
    int64_t now = clock_mono_us(n->conf.clock);
    int64_t left = quietest(n)->moved_us + n->conf.idle_timeout_us - now;
    left = left < next_look_us(n) ? left : next_look_us(n);
    left = left > 1000 ? left : 1000;
    n->idle_due_us = now + left;
    ev_timer_set(&n->idle, (double)left / 1e6, 0.);
    ev_timer_start(n->loop, &n->idle);
}

static void timed_out(struct ev_loop *loop, struct ev_timer *w, int revents)
{
    (void)loop;
    (void)revents;
    struct net *n = CONTAINER(w, struct net, idle);
    int64_t now = clock_mono_us(n->conf.clock), limit = now - n->conf.idle_timeout_us;
    int64_t still_us = net_stood_still(n->idle_due_us, now);
    for (struct link *l = n->quiet.next; still_us > 0 && l != &n->quiet; l = l->next)
        net_excuse(&CONTAINER(l, struct conn, quiet)->moved_us, still_us, now);
    while (!link_empty(&n->quiet) && quietest(n)->moved_us <= limit) {
        struct conn *c = quietest(n);
        if (is_idle(c))
            conn_end(c, NET_END_IDLE);
        else
            to_end(c);
    }
    set_timer(n);
}

void idle_init(struct net *n)
{
    ev_init(&n->idle, timed_out);
}

void idle_enter(struct conn *c)
{
    c->moved_us = c->since_us;
    link_append(&c->net->quiet, &c->quiet);
    set_timer(c->net);
}

void idle_leave(struct conn *c)
{
    link_remove(&c->quiet);
    if (link_empty(&c->net->quiet))
        ev_timer_stop(c->net->loop, &c->net->idle);
}

void idle_touch(struct conn *c)
{
    if (c->net->conf.idle_timeout_us == 0)
        return;
    c->untaken = 0;
    to_end(c);
}

/* Without a limit nobody is noted: their time begins with it. */
void idle_reconfigure(struct net *n, int64_t timeout_us)
{
    int64_t now = clock_mono_us(n->conf.clock);
    bool begins = n->conf.idle_timeout_us == 0;
    for (struct link *l = n->quiet.next; begins && l != &n->quiet; l = l->next)
        CONTAINER(l, struct conn, quiet)->moved_us = now;
    n->conf.idle_timeout_us = timeout_us;
    ev_timer_stop(n->loop, &n->idle);
    set_timer(n);
}
