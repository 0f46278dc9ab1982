/*
 * From a link to the clients: the bytes of a read, cut into replies.
 *
 *     what the framer wants to see again + one read
 *     [ ...ply of A | reply of A | reply of B | push to B | rep ]
 *       `------ one send --------'`------ one send -------'  `-- kept
 *
 * What a service is told of in parts, and adds to, is put together first: the parts are many.
 */
#include "net/upstream/links.h"

#include <errno.h>
#include <sys/socket.h>

#define LOUD    ((size_t)64 << 10) /* bytes of a reply that should not have come on a shared link */
#define GATHER  ((size_t)64 << 10) /* bytes put together before they are sent */
#define AVERAGE 32                 /* replies that count */

struct feeding {
    struct upstream_link *l;
    struct span in;   /* not framed yet */
    struct buf told;  /* in net.out: for one client, not delivered … */
    struct span run;  /* … and behind that, framed */
    struct relay *to; /* that client; NULL: nobody */
};

/* A relay that expects no more goes with its connection. */
static void deliver(struct feeding *d)
{
    const struct span all[] = {buf_span(&d->told), d->run};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].n > 0 && d->to && d->to->c && !conn_deliver(d->to->c, all[i]))
            d->to = NULL;
    d->told.n = d->run.n = 0;
}

/* A service can write behind it. */
static void gather(struct feeding *d)
{
    if (d->told.n + d->run.n > GATHER)
        deliver(d);
    if (d->run.n > 0)
        buf_put_span(&d->told, d->run);
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

/* What the frame under way answers, or the next one; NULL: nothing. */
static struct expect *due(struct upstream_link *l)
{
    return l->fifo_n > 0 && !(l->framing && l->unasked) ? &l->fifo[l->fifo_at] : NULL;
}

static void start_frame(struct upstream_link *l)
{
    const struct relay *o = l->owner;
    const struct expect *head = due(l);
    uint8_t kind = head ? head->kind : l->up->svc->unasked;
    if (o && o->tunnel && !head)
        kind = FRAME_RESP_TUNNEL;
    frame_start(&l->frame, (enum frame_kind)kind, o && (!head || head->flags & UPSTREAM_NEWS));
    l->frame.own = o != NULL;
    l->frame.nonce = l->up->svc->nonce;
    l->framing = true;
    l->unasked = !head;
    l->frame_n = 0;
}

/* A client that gets a large reply on a shared link has its next request on a link of its own. The
 * shared one is replaced, so that others do not wait for the rest of that reply. */
static void measure(struct upstream_link *l, struct relay *r, size_t used)
{
    l->frame_n += used;
    size_t size = l->frame_n + l->frame.left;
    if (l->fifo_n > 0 && !l->frame.push)
        relay_measure(r, 0, size);
    if (l->owner || size <= LOUD)
        return;
    r->loud = true;
    link_replace(l);
}

/* Shows the frame to the service, and has what it writes for the client. true: it has more. */
static bool tell_some(struct feeding *d, struct relay *r)
{
    gather(d);
    if (d->l->state != LINK_OPEN || !r || !r->c)
        return false;
    struct conn *c = r->c;
    size_t had = d->told.n;
    bool more = c->svc->heard(c->svc, c->session, &d->l->frame, &d->told);
    if (c->svc->holds && d->l->frame.part.n == 0) /* what was there for this reply is given back */
        memory_note(c);
    if (!d->told.failed)
        return more;
    buf_truncate(&d->told, had);
    deliver(d);
    d->to = NULL;
    conn_close(c); /* if that has not */
    return false;
}

static void tell(struct feeding *d, struct relay *r)
{
    while (tell_some(d, r))
        continue;
}

/* A moving average of the size of a reply on a link. */
static uint32_t average(uint32_t known, uint32_t n, size_t bytes)
{
    int64_t each = (int64_t)(bytes / n), weight = n < AVERAGE ? n : AVERAGE;
    each = each < UINT32_MAX ? each : UINT32_MAX;
    return (uint32_t)((int64_t)known + (each - (int64_t)known) * weight / AVERAGE);
}

/* n replies to the head of the queue have come, of so many bytes in all. */
static void answered(struct feeding *d, uint32_t n, size_t bytes)
{
    struct upstream_link *l = d->l;
    struct expect *head = &l->fifo[l->fifo_at];
    struct relay *r = head->r;
    if (!r->c) { /* it ends here, perhaps */
        d->told.n = d->run.n = 0;
        d->to = NULL;
    }
    if (head->flags & UPSTREAM_PATIENT)
        l->patient -= n;
    l->replies -= n;
    l->orphans -= r->c ? 0 : n;
    l->size = average(l->size, n, bytes);
    relay_measure(r, n, bytes);
    head->n -= n;
    if (head->n == 0) {
        crowd_lighten(l->up, head);
        l->fifo_at = (l->fifo_at + 1) % l->fifo_cap;
        l->fifo_n--;
    }
    if (l->fifo_n == 0 && !l->owner && l->up->shared[l->lane] != l)
        l->done = true;
    relay_answered(r, n);
}

/* An acknowledgement of SUBSCRIBE and its kin, on a client's own link. true: it is the last one
 * that the head of the queue waits for. */
static bool acknowledged(struct upstream_link *l, struct expect *head)
{
    bool none = frame_note_ack(&l->frame, &l->owner->subs);
    if (!head || head->acks == 0)
        return false;
    if (head->acks == UPSTREAM_ACKS_ALL)
        return none;
    return --head->acks == 0;
}

/* The first reply shows whether the server serves or refuses us. reply: empty, if it came in parts.
 */
static void hear(struct upstream_link *l, struct span reply)
{
    if ((!l->heard || !l->up->stats.up) && !greet_is_refusal(l, reply))
        upstream_heard(l);
}

static void hear_frame(struct upstream_link *l, struct span reply)
{
    hear(l, reply);
    if (l->frame.error && !l->owner) /* of a client's own script, perhaps */
        greet_note_fault(l, reply);
}

/* The frame is done. */
static void finish_frame(struct feeding *d, struct relay *r)
{
    struct upstream_link *l = d->l;
    const struct frame *f = &l->frame;
    struct expect *head = due(l);
    bool skipped = head && (head->flags & (UPSTREAM_SKIP | UPSTREAM_FORGIVE)) == UPSTREAM_SKIP;
    l->framing = false;
    if (skipped && f->error && r && r->c) {
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
    if (head->flags & UPSTREAM_TELL)
        tell(d, r);
    if (l->state != LINK_OPEN)
        return;
    if (head->flags & UPSTREAM_CLEARS && l->owner)
        l->owner->subs = (struct frame_subs){.n = {0}};
    answered(d, 1, l->frame_n);
}

/* All short replies that have come for the head of the queue, at once: pipelines have many. */
static void take_run(struct feeding *d)
{
    struct upstream_link *l = d->l;
    const struct expect *head = due(l);
    uint32_t n;
    if (!head || head->flags != 0)
        return;
    size_t used = frame_run((enum frame_kind)head->kind, d->in, head->n, &n);
    if (n == 0)
        return;
    hear(l, span_of(d->in.p, used));
    add(d, head->r, used);
    d->in = span_skip(d->in, used);
    answered(d, n, used);
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
        const struct expect *head = due(l);
        struct relay *r = head ? head->r : l->owner;
        if (!r) {
            deliver(d);
            link_fail(l, "it sent something unasked");
            return false;
        }
        bool begins = l->frame_n == 0;
        v = l->up->svc->frame(&l->frame, d->in, &used);
        if (v == FRAME_DONE)
            hear_frame(l, span_of(d->in.p, begins ? used : 0));
        else if (v == FRAME_MORE && begins && used > 0 && !l->heard)
            (void)greet_is_refusal(l, span_of(d->in.p, used)); /* that of MN may never come */
        /* A reply that is skipped is not for the client. An error in its place is. */
        bool skipped = head && head->flags & UPSTREAM_SKIP && !l->frame.push &&
                       (!l->frame.error || head->flags & UPSTREAM_FORGIVE);
        if (!skipped)
            add(d, r, used - l->frame.drop);
        measure(l, r, used);
        if (skipped || (l->frame.drop > 0 && v != FRAME_PART))
            deliver(d);
        d->in = span_skip(d->in, used);
        if (v == FRAME_BAD) {
            deliver(d);
            if (!l->heard && l->state == LINK_OPEN)
                upstream_unserved(l, GREET_ALIEN, true);
            link_fail(l, GREET_ALIEN);
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

/* What r does not take is no work for the server. */
static void pause_reading(struct upstream_link *l, struct relay *r)
{
    ev_io_stop(l->up->net->loop, &l->rd);
    crowd_forget(l, r);
    if (l->owner)
        return;
    int64_t now = clock_mono_us(l->up->net->conf.clock);
    r->loud = true;
    cut_pause_begins(l, r, now);
    if (!cut_slow(l, now) && cut_hurries(l->up, now))
        upstream_tick_anew(l->up);
}

void feed(struct upstream_link *l)
{
    struct net *n = l->up->net;
    size_t kept = l->in.n;
    if (l->owner && l->owner->c->state != CONN_READING && l->owner->c->state != CONN_BEHIND) {
        pause_reading(l, l->owner); /* until it takes more: relay_settled */
        return;
    }
    ssize_t got = recv(l->rd.fd, n->up + kept, NET_IN_MAX - kept, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got == 0 && l->fifo_n == 0) {
        link_ended(l);
        return;
    }
    if (got <= 0) {
        link_fail(l, got < 0 ? strerror(errno) : "it closed the connection");
        return;
    }
    (void)kept_take(n, &l->in, n->up);
    l->since_us = clock_mono_us(n->conf.clock);
    struct feeding d = {.l = l, .in = span_of(n->up, kept + (size_t)got)};
    buf_init(&d.told, n->out, NET_OUT_MAX);
    if (!frame_all(&d))
        return;
    if (l->done)
        link_retire(l);
    else if (!kept_set(n, &l->in, d.in))
        link_spoil(l);
    else if (overflows(l, d.to))
        pause_reading(l, d.to);
}
