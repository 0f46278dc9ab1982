/*
 * From a link to the clients: the bytes of a read, cut into replies.
 *
 *     what the framer wants to see again + one read
 *     [ ...ply of A | reply of A | reply of B | push to B | rep ]
 *       `------ one send --------'`------ one send -------'  `-- kept
 */
#include "net/private.h"

#include <errno.h>
#include <sys/socket.h>

#define LOUD ((size_t)64 << 10) /* bytes of a reply that should not have come on a shared link */

struct feeding {
    struct upstream_link *l;
    struct span in;   /* not framed yet */
    struct span run;  /* framed, for one client, not delivered */
    struct relay *to; /* that client; NULL: nobody */
};

/* A relay that expects no more goes with its connection. */
static void deliver(struct feeding *d)
{
    struct relay *r = d->to;
    if (d->run.n > 0 && r && r->c && !conn_deliver(r->c, d->run))
        d->to = NULL;
    d->run.n = 0;
}

/* n more bytes, which stand behind those before, for r. */
static void add(struct feeding *d, struct relay *r, size_t n)
{
    if (d->to != r)
        deliver(d);
    if (d->run.n == 0)
        d->run.p = d->in.p;
    d->to = r;
    d->run.n += n;
}

static void start_frame(struct upstream_link *l)
{
    const struct relay *o = l->owner;
    const struct expect *head = l->fifo_n > 0 ? &l->fifo[l->fifo_at] : NULL;
    uint8_t kind = head ? head->kind : l->up->svc->unasked;
    if (o && o->tunnel && !head)
        kind = FRAME_RESP_TUNNEL;
    frame_start(&l->frame, (enum frame_kind)kind, o && (!head || head->flags & UPSTREAM_NEWS));
    l->frame.own = o != NULL;
    l->frame.nonce = l->up->svc->nonce;
    l->framing = true;
    l->frame_n = 0;
}

/* A large reply makes a shared link its client's: others take a new one from now on. */
static void measure(struct upstream_link *l, struct relay *r, size_t used)
{
    l->frame_n += used;
    if (l->owner || l->frame_n + l->frame.left <= LOUD)
        return;
    r->loud = true;
    link_retire(l);
}

/* The service has something to say. It is delivered. */
static void tell(struct feeding *d, struct relay *r)
{
    struct buf out;
    struct net *n = d->l->up->net;
    deliver(d);
    if (d->l->state != LINK_OPEN || !r || !r->c)
        return;
    buf_init(&out, n->out, NET_OUT_MAX);
    r->c->svc->heard(r->c->svc, r->c->session, &d->l->frame, &out);
    if (out.failed)
        conn_close(r->c);
    else if (out.n > 0)
        (void)conn_deliver(r->c, buf_span(&out));
}

/* n frames of the first in the queue are done: it has so many fewer to wait for. */
static void answered(struct feeding *d, uint32_t n)
{
    struct upstream_link *l = d->l;
    struct expect *head = &l->fifo[l->fifo_at];
    struct relay *r = head->r;
    if (!r->c) { /* it ends here, perhaps */
        d->run.n = 0;
        d->to = NULL;
    }
    if (head->flags & UPSTREAM_PATIENT)
        l->patient -= n;
    l->replies -= n;
    head->n -= n;
    if (head->n == 0) {
        l->fifo_at = (l->fifo_at + 1) % l->fifo_cap;
        l->fifo_n--;
    }
    if (l->fifo_n == 0 && !l->owner && l->up->shared[l->lane] != l)
        l->done = true;
    relay_answered(r, n);
}

/* An acknowledgement on somebody's own link. true: it is the last that the first in the queue has.
 */
static bool acknowledged(struct upstream_link *l, struct expect *head)
{
    bool none = frame_note_ack(&l->frame, &l->owner->subs);
    if (!head || head->acks == 0)
        return false;
    if (head->acks == UPSTREAM_ACKS_ALL)
        return none && l->frame.leaves;
    return --head->acks == 0;
}

/* The frame is done. */
static void finish_frame(struct feeding *d, struct relay *r)
{
    struct upstream_link *l = d->l;
    const struct frame *f = &l->frame;
    struct expect *head = l->fifo_n > 0 ? &l->fifo[l->fifo_at] : NULL;
    bool skipped = head && (head->flags & (UPSTREAM_SKIP | UPSTREAM_FORGIVE)) == UPSTREAM_SKIP;
    l->framing = false;
    if (skipped && f->error && !f->push && r && r->c) {
        deliver(d);
        if (l->state == LINK_OPEN)
            conn_close(r->c); /* the state that it counts on could not be had */
        return;
    }
    if (!head && r && r->own)
        relay_answered(r, 0); /* it may have waited for the end */
    bool acked = f->ack && l->owner && acknowledged(l, head);
    if (!head || (f->push && !acked))
        return;
    if (head->flags & UPSTREAM_CLEARS && l->owner)
        l->owner->subs = (struct frame_subs){.n = {0}};
    answered(d, 1);
}

/* Short replies for the first in the queue, as far as they are there: all at once. */
static void take_run(struct feeding *d)
{
    const struct upstream_link *l = d->l;
    const struct expect *head = l->fifo_n > 0 ? &l->fifo[l->fifo_at] : NULL;
    uint32_t n;
    if (!head || head->flags != 0 || (l->owner && l->owner->tunnel))
        return;
    size_t used = frame_run((enum frame_kind)head->kind, d->in, head->n, &n);
    if (n == 0)
        return;
    add(d, head->r, used);
    d->in = span_skip(d->in, used);
    answered(d, n);
}

/* Frames what has come, as far as it goes. false: the link is broken. */
static bool frame_all(struct feeding *d)
{
    struct upstream_link *l = d->l;
    enum frame_verdict v = FRAME_DONE;
    while ((v == FRAME_PART || (v == FRAME_DONE && d->in.n > 0)) && l->state == LINK_OPEN) {
        size_t used;
        if (!l->framing) {
            take_run(d);
            if (d->in.n == 0)
                break;
            start_frame(l);
        }
        const struct expect *head = l->fifo_n > 0 ? &l->fifo[l->fifo_at] : NULL;
        struct relay *r = head ? head->r : l->owner;
        if (!r) {
            deliver(d);
            link_fail(l, "it sent something unasked");
            return false;
        }
        v = l->up->svc->frame(&l->frame, d->in, &used);
        /* An error is the answer to what it keeps from being done. */
        bool skipped = head && head->flags & UPSTREAM_SKIP && !l->frame.push &&
                       (!l->frame.error || head->flags & UPSTREAM_FORGIVE);
        if (!skipped)
            add(d, r, used - l->frame.drop);
        measure(l, r, used);
        if (skipped || l->frame.drop > 0 || v == FRAME_PART)
            deliver(d);
        d->in = span_skip(d->in, used);
        if (v == FRAME_BAD) {
            deliver(d);
            link_fail(l, "it does not speak the protocol");
            return false;
        }
        if (v == FRAME_PART && l->state == LINK_OPEN)
            tell(d, r);
        else if (v == FRAME_DONE && l->state == LINK_OPEN)
            finish_frame(d, r);
    }
    deliver(d);
    return l->state == LINK_OPEN;
}

/* A client that does not take its reply. */
static bool overflows(const struct upstream_link *l, const struct relay *r)
{
    return r && r->c && r->c->state == CONN_FLUSHING &&
           (r->own || (r->pending > 0 && kept_span(&r->c->out).n > l->up->buffer));
}

static void pause_reading(struct upstream_link *l, struct relay *r)
{
    int64_t now = clock_mono_us(l->up->net->conf.clock);
    if (now < l->up->hurry_us && link_others_wait(l, r)) {
        conn_close(r->c);
        return;
    }
    if (!l->owner && upstream_end_stall(l, r, now, 0))
        return;
    ev_io_stop(l->up->net->loop, &l->rd);
    if (l->owner)
        return;
    r->loud = true;
    l->stalled = r;
    l->stalled_us = now;
}

void feed(struct upstream_link *l)
{
    struct net *n = l->up->net;
    size_t kept = l->in.n;
    if (l->owner && l->owner->c->state != CONN_READING && l->owner->c->state != CONN_BEHIND) {
        ev_io_stop(n->loop, &l->rd); /* until it takes more: relay_settled */
        return;
    }
    ssize_t got = recv(l->rd.fd, n->up + kept, NET_IN_MAX - kept, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        link_fail(l, got < 0 ? strerror(errno) : "it closed the connection");
        return;
    }
    (void)kept_take(n, &l->in, n->up);
    if (!l->heard)
        upstream_heard(l->up, l->lane);
    l->heard = true;
    l->since_us = clock_mono_us(n->conf.clock);
    struct feeding d = {.l = l, .in = span_of(n->up, kept + (size_t)got)};
    if (!frame_all(&d))
        return;
    if (l->done) {
        link_wake(l);
        link_close(l);
    } else if (!kept_set(n, &l->in, d.in))
        link_spoil(l);
    else if (overflows(l, d.to))
        pause_reading(l, d.to);
}
