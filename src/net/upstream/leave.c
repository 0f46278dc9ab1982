/*
 * A client's own link whose client has gone, with requests that are not sent yet. Whoever wants no
 * replies (noreply, CLIENT REPLY OFF) goes as soon as he has said all, and a server that he had
 * said it to would carry it out. So the link stays until the last byte is sent, for as long as the
 * server takes some; what it says meanwhile is for nobody. It is the first that makes room.
 */
#include "net/upstream/links.h"

#include <errno.h>

/* All ports are 28,232, and whoever uses them up has nobody else get a link. So many within a
 * minute are about half of them; who goes beyond that, with requests of which nothing tells that
 * they were carried out, says good-bye without a word. */
#define ORDERLY   8000u
#define ORDERLY_S 100 /* and more, each second */

bool leave_orderly(struct farewells *f, int64_t now_us)
{
    int64_t over = (now_us - f->at_us) / (1000000 / ORDERLY_S);
    f->n -= over < f->n ? (uint32_t)over : f->n;
    f->at_us = f->n > 0 ? f->at_us + over * (1000000 / ORDERLY_S) : now_us;
    if (f->n >= ORDERLY)
        return false;
    f->n++;
    return true;
}

static void push(struct upstream_link *l)
{
    if (link_write(l) != EAGAIN)
        link_close(l);
}

static void writable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)loop;
    (void)revents;
    push(CONTAINER(w, struct upstream_link, wr));
}

/* Or a server that waits until it is read would take no more. */
static void readable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    char nobody[4096];
    (void)loop;
    (void)revents;
    ssize_t r = recv(w->fd, nobody, sizeof nobody, MSG_DONTWAIT);
    if (r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR))
        link_close(CONTAINER(w, struct upstream_link, rd));
}

void link_leave(struct upstream_link *l)
{
    struct net *n = l->up->net;
    if (l->state != LINK_OPEN || l->owner->broken || kept_span(&l->out).n == 0) {
        link_close(l);
        return;
    }
    link_remove(&l->dirty);
    kept_free(n, &l->in);
    l->state = LINK_LEAVING;
    l->owner = NULL;
    l->stalled = NULL;
    l->fifo_n = l->replies = l->patient = 0;
    l->since_us = upstream_now_us(l->up);
    n->leaving++;
    ev_set_cb(&l->rd, readable);
    ev_set_cb(&l->wr, writable);
    ev_io_start(n->loop, &l->rd);
    ev_io_start(n->loop, &l->wr);
    upstream_tick(l->up);
    push(l);
}

void leave_ended(struct upstream_link *l)
{
    l->up->net->leaving--;
    if (kept_span(&l->out).n > 0)
        upstream_unsent(l->up, kept_span(&l->out).n);
}

bool leave_makes_room(struct upstream *up)
{
    for (struct link *i = up->links.next; i != &up->links; i = i->next) {
        struct upstream_link *l = CONTAINER(i, struct upstream_link, all);
        if (l->state != LINK_LEAVING)
            continue;
        link_close(l);
        return true;
    }
    return false;
}

void leave_at_once(struct net *n)
{
    for (struct link *u = n->upstreams.next; u != &n->upstreams; u = u->next)
        while (leave_makes_room(CONTAINER(u, struct upstream, all)))
            ;
}
