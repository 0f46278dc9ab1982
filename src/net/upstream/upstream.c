/*
 * Real servers: where they are, whether they can be reached, and what is overdue.
 */
#include "net/addr.h"
#include "net/upstream/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define TICK_HURRY  INT64_C(2000)
#define TICK_MAX_US INT64_C(250000)
#define TRY_MIN_US  INT64_C(250000)
#define LOOK_US     INT64_C(1000000) /* that a link waits for a name, if it need not */

/* ---- the timer: runs while something is expected -----------------------------------------------
 */

/* The one reply that is due is that to the request of which the client has not sent all: it has its
 * own time for that, as it has in a crowd, and the server's begins with the last byte. */
static bool owes_rest(const struct upstream_link *l)
{
    const struct relay *o = l->owner;
    bool has_time = o && o->owes && (o->c->passing || o->crowd);
    return has_time && l->replies == 1 && kept_span(&l->out).n == 0;
}

/* The client waits for the end of something that it did not ask for. */
static bool owes_end(const struct upstream_link *l)
{
    return l->owner && l->owner->c->state == CONN_BEHIND && relay_hears_unasked(l->owner);
}

/* The next address has to have its time, too, and one that drops all takes it whole. RFC 8305
 * recommends 250 ms. */
static bool is_next_due(const struct upstream_link *l, int64_t now)
{
    if (l->state != LINK_CONNECTING || l->tries >= l->up->naddr)
        return false;
    int64_t each = l->up->timeout_us / l->up->naddr;
    return now - l->tried_us > (each > TRY_MIN_US ? each : TRY_MIN_US);
}

/* What is wrong with a link, or NULL. *busy: it has to be looked at again. */
static const char *overdue(struct upstream_link *l, int64_t now, bool *busy)
{
    bool late = now - l->since_us > l->up->timeout_us;
    if (l->state == LINK_LOOKING) {
        *busy = true;
        bool long_ago = now - l->since_us > LOOK_US || 2 * (now - l->since_us) > l->up->timeout_us;
        if (long_ago && find_has(l->up)) /* what was found before will do */
            link_found(l);
        return late && l->state == LINK_LOOKING ? "no answer in time" : NULL;
    }
    if (l->state < LINK_OPEN) {
        *busy = true;
        late |= is_next_due(l, now);
        return !late                      ? NULL
               : l->state == LINK_PROBING ? "no reply in time"
                                          : "the connection timed out";
    }
    if (l->stalled) {
        *busy = true;
        l->since_us = now;
        (void)cut_slow(l, now);
        return NULL;
    }
    bool untaken = l->fifo_n == 0 && ev_is_active(&l->wr);
    bool due = l->fifo_n > 0 ? l->patient == 0 : untaken || owes_end(l);
    if (!due || !ev_is_active(&l->rd))
        return NULL;
    *busy = true;
    return !late || owes_rest(l) ? NULL
           : untaken             ? "what it was sent is not taken in time"
                                 : "no reply in time";
}

static void ticked(struct ev_loop *loop, struct ev_timer *w, int revents)
{
    (void)revents;
    struct upstream *up = CONTAINER(w, struct upstream, tick);
    int64_t now = upstream_now_us(up), still_us = net_stood_still(up->due_us, now);
    bool busy = false, doubt = false;
    struct link left;
    link_take(&left, &up->links);
    while (!link_empty(&left)) {
        struct upstream_link *l =
            CONTAINER(link_take_first(&left, &up->links), struct upstream_link, all);
        net_excuse(&l->since_us, still_us, now);
        net_excuse(&l->tried_us, still_us, now);
        net_excuse(&l->stalled_us, still_us, now);
        if (leave_waits(l, now)) {
            busy = true;
            continue;
        }
        crowd_look(l, now);
        const char *why = overdue(l, now, &busy);
        bool own = l->owner ? l->state == LINK_OPEN : l->state == LINK_LEAVING;
        doubt |= why && (l->owner || own);
        if (why && own) /* those who share may have theirs */
            upstream_unanswered(up, why);
        if (why)
            link_fail(l, why);
    }
    if (doubt)
        upstream_doubt(up);
    find_follow(up);
    if (busy)
        upstream_tick_anew(up);
    else
        ev_timer_stop(loop, w);
    net_go_on(up->net);
}

void upstream_tick_anew(struct upstream *up)
{
    int64_t us = up->timeout_us / 4 < TICK_MAX_US ? up->timeout_us / 4 : TICK_MAX_US;
    int64_t now = upstream_now_us(up);
    if (cut_hurries(up, now) && us > TICK_HURRY)
        us = TICK_HURRY;
    up->due_us = now + us;
    up->tick.repeat = (double)us / 1e6;
    ev_timer_again(up->net->loop, &up->tick);
}

void upstream_tick(struct upstream *up)
{
    if (!ev_is_active(&up->tick))
        upstream_tick_anew(up);
}

/* ---- servers ----------------------------------------------------------------------------------
 */

enum err_code upstream_new(struct net *n, struct net_service *svc, const struct upstream_config *c,
                           struct err *e)
{
    struct addr a;
    enum err_code r = addr_parse(c->address, &a, e);
    struct upstream *up = r ? NULL : calloc(1, sizeof *up);
    if (!r && !up)
        r = err_set(e, ERR_NOMEM, "no memory for an upstream");
    if (!r && !n->up) {
        n->up = mmap(NULL, NET_IN_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (n->up == MAP_FAILED) {
            n->up = NULL;
            r = err_errno(e, errno, "no memory for an upstream");
        }
    }
    if (!r && !(up->text = strndup(c->address.p, c->address.n)))
        r = err_set(e, ERR_NOMEM, "no memory for an upstream");
    if (!r) {
        up->net = n;
        r = find_begin(up, &a, c->look_up, e);
    }
    if (r) {
        if (up)
            free(up->text);
        free(up);
        return r;
    }
    up->svc = svc;
    up->timeout_us = c->timeout_us;
    up->buffer = c->buffer;
    up->others_max = c->connections;
    up->stats.most = c->connections;
    link_init(&up->links);
    for (unsigned i = 0; i < CROWDS; i++) {
        link_init(&up->crowd[i].line);
        link_init(&up->crowd[i].roomy);
    }
    link_append(&n->upstreams, &up->all);
    ev_init(&up->tick, ticked);
    svc->upstream = up;
    return ERR_OK;
}

/* After all connections: what is left is shared, and expected by nobody. */
void upstreams_free(struct net *n)
{
    while (!link_empty(&n->upstreams)) {
        struct upstream *up = CONTAINER(n->upstreams.next, struct upstream, all);
        while (!link_empty(&up->links))
            link_drop(CONTAINER(up->links.next, struct upstream_link, all));
        ev_timer_stop(n->loop, &up->tick);
        find_end(up);
        up->svc->upstream = NULL;
        link_remove(&up->all);
        while (!link_empty(&n->broken))
            link_free(CONTAINER(n->broken.next, struct upstream_link, all));
        greetings_free(up);
        free(up->text);
        free(up);
    }
}

const struct upstream_stats *upstream_stats(const struct net_service *svc)
{
    return svc && svc->upstream ? &svc->upstream->stats : NULL;
}

const char *upstream_why(const struct net_service *svc)
{
    return svc->upstream->why;
}

const char *upstream_denial(const struct net_service *svc)
{
    return svc->upstream->denial;
}

const char *upstream_fault(const struct net_service *svc)
{
    return svc->upstream->fault;
}

enum upstream_outdated upstream_outdated(const struct net_service *svc)
{
    const struct upstream *up = svc->upstream;
    enum upstream_outdated r = UPSTREAM_PRESENT;
    for (unsigned i = 0; i < UPSTREAM_SHARED && r <= UPSTREAM_CROWDED; i++) {
        bool tried = up->unready[i].until_us > 0;
        if (!up->shared[i] || up->next[i])
            continue;
        if (up->astray[i] && tried)
            r = UPSTREAM_ASTRAY;
        else if (up->shared[i]->outdated)
            r = tried ? UPSTREAM_OUTDATED : UPSTREAM_CROWDED;
    }
    return r;
}

const char *upstream_address(const struct net_service *svc)
{
    return svc->upstream->text;
}
