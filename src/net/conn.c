/*
 * A connection's turn:
 *
 *     kept input + one read          requests, one by one         one write
 *     [ half | new bytes ........ ] -> serve -> serve -> serve -> [ reply reply reply ]
 *                                                    |                     |
 *                       half a request is kept <-----'    what the kernel  '-> is kept: FLUSHING
 *                                                         does not take
 *
 * Both blocks belong to the net: only what has to outlive the turn is copied out of them.
 */
#include "net/private.h"
#include "net/upstream/links.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLUSH_AT  ((size_t)64 << 10) /* output is sent before it grows beyond this and a reply */
#define LOOK      128                /* IDs issued between two looks at the clock … */
#define LOOK_MUCH 16                 /* … where many have had a turn since the loop looked */
#define HEAR_FROM 4096               /* bytes unread: behind fewer an end shows by itself */
#define AT_ONCE   512                /* bytes dealt with as they come, however many come */
#define PER_ID    16                 /* bytes taken or written that cost as much as one, about */
#define REPLY_MAX (NET_OUT_MAX - FLUSH_AT) /* bytes of a reply, whatever stands before it */

/* ---- life -------------------------------------------------------------------------------------
 */

void conn_close(struct conn *c)
{
    if (c->state == CONN_DEAD)
        return;
    struct net *n = c->net;
    turns_leave(c);
    link_remove(&c->park);
    sweep_forget(c);
    idle_leave(c);
    ev_io_stop(n->loop, &c->rd);
    ev_io_stop(n->loop, &c->wr);
    c->state = CONN_DEAD;
    if (c->relay) /* it asks who that was, and what has not been taken */
        relay_closed(c);
    net_hang_up(n, c->rd.fd);
    kept_free(n, &c->in);
    kept_free(n, &c->out);
    n->bytes -= c->held;
    c->held = 0;
    if (c->svc->close)
        c->svc->close(c->svc, c->session);
    c->svc->connections--;
    n->connections--;
    n->shared -= link_empty(&c->slot);
    link_remove(&c->slot);
    room_leave(c);
    link_remove(&c->all);
    link_append(&n->dead, &c->all);
    sweep_slack(n);
}

void conn_end(struct conn *c, enum net_end why)
{
    c->svc->ended[why]++;
    conn_close(c);
}

/* ---- output -----------------------------------------------------------------------------------
 */

/* Sends what it can: the number of bytes the kernel took, or -1 where the connection is broken. */
static ssize_t send_some(struct conn *c, const char *p, size_t n)
{
    size_t sent = 0;
    while (sent < n) {
        ssize_t r = send(c->rd.fd, p + sent, n - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0 && errno == EAGAIN)
            break;
        if (r < 0)
            return -1;
        sent += (size_t)r;
    }
    if (sent > 0)
        idle_touch(c);
    if (sent > 0 && (c->eof || c->state != CONN_READING)) /* else what it says is heard at once */
        c->active_us = clock_mono_us(c->net->conf.clock);
    c->svc->bytes_out += sent;
    return (ssize_t)sent;
}

/* Until the client has taken what is kept. */
static void await_taking(struct conn *c)
{
    c->state = CONN_FLUSHING;
    ev_io_stop(c->net->loop, &c->rd);
    ev_io_start(c->net->loop, &c->wr);
    sweep_watch(c);
}

/* Sends the first `ready` bytes of out, and moves what follows them to its front. What the kernel
 * does not take is kept, and the connection is FLUSHING; false then, or when it is closed. */
static bool flush(struct conn *c, struct buf *out, size_t ready)
{
    ssize_t sent = send_some(c, out->p, ready);
    if (sent < 0) {
        conn_close(c);
        return false;
    }
    if ((size_t)sent == ready) {
        out->n -= ready;
        if (out->n > 0)
            memmove(out->p, out->p + ready, out->n);
        return true;
    }
    if (!kept_set(c->net, &c->out, span_of(out->p + sent, out->n - (size_t)sent))) {
        conn_close(c);
        return false;
    }
    c->out_held = (uint32_t)(out->n - ready);
    await_taking(c);
    return false;
}

/* ---- the turn ---------------------------------------------------------------------------------
 */

/* How much to read behind n bytes: where others have more to do, no more than is soon done. */
static size_t room_behind(const struct net *net, size_t n)
{
    size_t room = NET_IN_MAX - n, some = n > NET_BLOCK ? n : NET_BLOCK;
    return net->nturns > 0 && some < room ? some : room;
}

/* Reads once behind what was kept. false: nothing came, or the connection is closed. *full: there
 * may be more. */
static bool fill(struct conn *c, size_t *n, bool *full)
{
    size_t room = conn_is_stranger(c) ? NET_BLOCK - *n : room_behind(c->net, *n);
    ssize_t r = net_recv(c->net, c->rd.fd, c->net->in + *n, room);
    if (r > 0) {
        idle_touch(c);
        *n += (size_t)r;
        *full = (size_t)r == room;
        c->svc->bytes_in += (uint64_t)r;
        return true;
    }
    if (r < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (r < 0) {
        conn_close(c);
        return false;
    }
    c->eof = true;
    return true;
}

/* Bytes that have come, and were not read. */
static size_t arrived(const struct conn *c)
{
    int n = 0;
    return ioctl(c->rd.fd, FIONREAD, &n) == 0 && n > 0 ? (size_t)n : 0;
}

/* There is something, and room for it. Behind what was read before a few bytes may fill a socket:
 * the kernel counts a segment as a whole until all of it is read. */
static bool may_hear(struct conn *c)
{
    size_t before = kept_span(&c->in).n;
    return c->state != CONN_DEAD && before + NET_IN_MAX <= NET_HEARD_MAX &&
           arrived(c) >= (before > 0 ? 1 : HEAR_FROM) &&
           memory_has_room(c, kept_more(&c->in, NET_IN_MAX));
}

size_t conn_hear(struct conn *c)
{
    struct net *n = c->net;
    size_t heard = 0;
    ssize_t r;
    while (may_hear(c) && (r = net_recv(n, c->rd.fd, n->in, NET_IN_MAX)) > 0) {
        idle_touch(c);
        heard += (size_t)r;
        c->svc->bytes_in += (uint64_t)r;
        if (!kept_add(n, &c->in, span_of(n->in, (size_t)r)))
            conn_close(c);
        memory_check(n);
    }
    if (heard > 0)
        c->active_us = clock_mono_us(n->conf.clock);
    return heard;
}

/* What is kept of the input, as much of it as a turn takes: what is left of it stays where it is.
 */
static size_t take_input(struct conn *c)
{
    struct net *n = c->net;
    struct span have = kept_span(&c->in);
    if (have.n <= NET_IN_MAX)
        return kept_take(n, &c->in, n->in);
    memcpy(n->in, have.p, NET_IN_MAX);
    c->in.at += NET_IN_MAX;
    return NET_IN_MAX;
}

/* The end of what was taken, before what is left. */
static bool give_back_input(struct conn *c, struct span rest)
{
    if (!c->in.p)
        return kept_set(c->net, &c->in, rest);
    c->in.at -= (uint32_t)rest.n;
    return true;
}

struct turn {
    struct span in;
    size_t ready;    /* bytes of out that may be sent: all but an unfinished reply */
    uint64_t served; /* requests answered */
    bool ended;      /* one was dealt with, to its end: answered or forwarded */
    size_t work;     /* in IDs, about, as far as it is known beforehand */
    bool full;       /* the read filled the block: more may have arrived … */
    bool more;       /* … or is kept behind it */
    bool came;       /* it begins with what the client has just sent */
    bool over;       /* its time is */
    int left;        /* until the next look at the clock, in IDs */
    int64_t over_us; /* monotonic */
    struct net_step step;
};

static bool is_over(struct conn *c, struct turn *t)
{
    t->left = LOOK;
    t->over = clock_mono_us(c->net->conf.clock) >= t->over_us;
    return t->over;
}

uint32_t net_turn_like(const struct net_turn *t, uint32_t most)
{
    uint32_t n = 0;
    struct span behind = t->behind;
    for (; t->front.n > 0 && n < most && span_starts(behind, t->front); n++)
        behind = span_skip(behind, t->front.n);
    return n;
}

/* Serves requests until one cannot be, the output is large enough to be sent first, or the time is
 * over. */
static void serve_all(struct conn *c, struct turn *t, struct net_turn *nt, struct buf *out)
{
    size_t had = out->n;
    do {
        out->cap = nt->reply_start + REPLY_MAX;
        t->step = c->svc->serve(c->svc, c->session, t->in, nt, out);
        t->in = span_skip(t->in, t->step.used);
        if (c->relay && !t->step.begun && (t->step.used > 0 || t->step.verdict == NET_MORE))
            relay_whole(c->relay);
        bool done = t->step.verdict == NET_DONE;
        if (done || t->step.verdict == NET_CLOSE)
            t->served += t->step.used > 0 && !t->step.passed; /* else a part of a long one */
        t->ended |= done && t->step.used > 0 && !t->step.begun;
        if (done) {
            net_turn_answered(nt);
            c->waiting_us = 0;
        }
        if (done || !t->step.partial)
            nt->reply_start = out->n;
        if (done && t->in.n == 0)
            t->step.verdict = NET_MORE;
        t->left -= 1 + t->step.cost;
        t->work += 1 + t->step.cost;
    } while (t->step.verdict == NET_DONE && out->n < FLUSH_AT && (t->left > 0 || !is_over(c, t)));
    t->work += (out->n - had) / PER_ID;
    t->ready = nt->reply_start;
    if (out->failed) /* a reply that never fits: the services have answers for that, but if not */
        t->step.verdict = NET_CLOSE;
}

static void park(struct conn *c, const struct net_step *step, bool came)
{
    struct net *n = c->net;
    c->until_ms = step->verdict == NET_YIELD ? 0 : step->until_ms;
    if (c->parked_us == 0)
        c->parked_us = clock_mono_us(n->conf.clock);
    if (step->verdict == NET_WAIT)
        park_wait(c);
    else if (step->verdict == NET_HOLD)
        park_hold(c);
    else
        park_queue(c, came && step->verdict == NET_QUEUE ? QUEUE_CAME : QUEUE_MORE);
}

/* What is left when nothing more can be served: to read on, to wait, or to close. */
static void settle_state(struct conn *c, const struct turn *t)
{
    struct net *n = c->net;
    enum net_verdict v = t->step.verdict;
    if (c->state != CONN_READING)
        return;
    bool last = !t->more && (c->eof || (n->draining && !t->full));
    if (v == NET_BEHIND || (last && v == NET_MORE && c->relay && relay_waits(c))) {
        c->state = CONN_BEHIND;
        sweep_watch(c);
        relay_behind(c);
        return;
    }
    if (v == NET_CLOSE || (last && v == NET_MORE) || c->closing) {
        conn_close(c);
    } else if (v == NET_MORE && !t->more) {
        ev_io_start(n->loop, &c->rd);
    } else if (v == NET_MORE || v == NET_DONE || (v == NET_YIELD && t->step.cost == NET_DEAR)) {
        turns_add(c);
    } else {
        park(c, &t->step, t->came);
    }
}

/* The first request answered is the one that was held up, if one was. */
static void count(struct conn *c, const struct turn *t, int64_t started_us)
{
    int64_t now_us = c->net->now_us = clock_mono_us(c->net->conf.clock);
    turns_note(c, now_us - started_us, t->ended, t->work);
    if (t->served == 0)
        return;
    uint64_t held_up = c->parked_us > 0;
    if (held_up)
        histogram_add(&c->svc->duration, now_us - c->parked_us, 1);
    histogram_add(&c->svc->duration, now_us - started_us, t->served - held_up);
    c->parked_us = 0;
}

/* What is not whole yet began with this turn, unless nothing of it has come since. */
static void note_begun(struct conn *c, const struct turn *t, int64_t now_us)
{
    bool within = t->step.verdict == NET_MORE && (t->in.n > 0 || t->step.begun);
    if (!within)
        c->begun_us = 0;
    else if (c->begun_us == 0 || t->served > 0 || t->step.used > 0)
        c->begun_us = now_us;
    c->passing = within && t->step.begun;
    if (within && c->net->conf.request_timeout_us > 0)
        sweep_watch(c);
}

/* It is read from then. */
static void await_turn(struct conn *c)
{
    ev_io_stop(c->net->loop, &c->rd);
    c->unread = true;
    turns_add(c);
}

/* Where many have come, whoever asks for much waits, whatever is known of it: what it has sent
 * stays in the kernel, as it would be copied for nothing. */
static bool asks_much(const struct conn *c)
{
    return turns_crowded(c->net) && kept_span(&c->in).n + arrived(c) > AT_ONCE;
}

static void turn(struct conn *c, bool may_read, uint32_t quota)
{
    struct net *n = c->net;
    struct buf out;
    struct turn t = {.in = {n->in, 0}, .came = may_read};
    t.in.n = take_input(c);
    t.more = c->in.p != NULL;
    t.full = t.more || (may_read && t.in.n == NET_IN_MAX);
    if (t.in.n >= NET_BLOCK && may_read && conn_is_stranger(c)) { /* a login has not as much */
        conn_end(c, NET_END_LOGIN);
        return;
    }
    if (may_read && !t.full && !fill(c, &t.in.n, &t.full) && c->state == CONN_DEAD)
        return;
    t.work = t.in.n / PER_ID;
    buf_init(&out, n->out, NET_OUT_MAX);
    out.n = kept_take(n, &c->out, n->out);
    turns_came(n);
    int64_t now_us = n->now_us;
    bool crowded = turns_crowded(n);
    t.over_us = crowded ? 0 : now_us + turns_length_us(n);
    t.left = crowded ? LOOK_MUCH : LOOK;
    struct net_turn nt = {.clock = n->conf.clock,
                          .wall_ms = clock_wall_ms(n->conf.clock),
                          .waited_us = c->waiting_us ? now_us - c->waiting_us : 0,
                          .ticket = c->ticket,
                          .shared = c->shared,
                          .keys = c->keys,
                          .keys_each = c->keys_each,
                          .whose = c->whose,
                          .quota = quota,
                          .conn = c};
    if (may_read)
        c->active_us = now_us;
    do
        serve_all(c, &t, &nt, &out);
    while (flush(c, &out, t.ready) && (nt.reply_start = 0, t.step.verdict == NET_DONE) && !t.over &&
           !is_over(c, &t));
    c->ticket = nt.ticket;
    c->shared = nt.shared;
    c->keys = nt.keys;
    c->keys_each = nt.keys_each;
    c->whose = nt.whose;
    if (c->relay && c->state != CONN_DEAD)
        relay_send(c);
    count(c, &t, now_us);
    if (c->state != CONN_DEAD) {
        c->closing = t.step.verdict == NET_CLOSE;
        if (c->closing)
            kept_free(n, &c->in);
        bool kept = c->closing || give_back_input(c, t.in);
        if (kept && c->state == CONN_READING) /* else flush has kept all of the output */
            kept = kept_set(n, &c->out, buf_span(&out));
        if (kept) {
            note_begun(c, &t, now_us);
            settle_state(c, &t);
        } else {
            conn_close(c);
        }
    }
    if (c->relay && c->state != CONN_DEAD)
        relay_settled(c);
    if (c->state != CONN_DEAD)
        conn_note_user(c);
    if (c->svc->holds)
        memory_note(c);
    memory_check(n);
    if (n->conf.settle)
        n->conf.settle(n->conf.arg);
    if (n->conf.busy_poll_us > 0 && t.served > 0)
        net_spin(n, now_us);
}

void conn_resume(struct conn *c, uint32_t quota)
{
    turn(c, false, quota);
}

/* With what it had no time for; in a drain, what has arrived since has to be looked for, too. */
void conn_go_on(struct conn *c, bool unread)
{
    turn(c, unread || c->net->draining, park_quota(c->net));
}

/* Between turns: bytes from upstream, behind those that the client has not taken yet. */
bool conn_deliver(struct conn *c, struct span bytes)
{
    ssize_t sent = c->out.n > 0 ? 0 : send_some(c, bytes.p, bytes.n);
    if (sent < 0) {
        conn_close(c);
        return false;
    }
    size_t left = bytes.n - (size_t)sent;
    if (left == 0)
        return true;
    if (c->state != CONN_FLUSHING)
        c->out_held = 0;
    if (!kept_add(c->net, &c->out, span_skip(bytes, (size_t)sent))) {
        conn_close(c);
        return false;
    }
    if (c->state != CONN_FLUSHING) {
        turns_leave(c);
        link_remove(&c->park);
        await_taking(c);
    }
    return true;
}

static void readable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)revents;
    struct conn *c = CONTAINER(w, struct conn, rd);
    turns_between(c->net);
    if (c->state != CONN_READING) { /* not before: most send nothing while they wait */
        ev_io_stop(loop, w);
        return;
    }
    if (turns_waits(c) || asks_much(c)) {
        await_turn(c);
        return;
    }
    turn(c, true, park_quota(c->net));
}

static void writable(struct ev_loop *loop, struct ev_io *w, int revents)
{
    (void)revents;
    struct conn *c = CONTAINER(w, struct conn, wr);
    if (c->state != CONN_FLUSHING)
        return;
    uint32_t end = c->out.n - c->out_held;
    ssize_t sent = send_some(c, c->out.p + c->out.at, end - c->out.at);
    if (sent < 0) {
        conn_close(c);
        return;
    }
    c->out.at += (uint32_t)sent;
    if (c->out.at < end)
        return;
    ev_io_stop(loop, w);
    c->state = CONN_READING;
    if (c->closing)
        conn_close(c);
    else
        turn(c, false, park_quota(c->net));
}

/* ---- birth ------------------------------------------------------------------------------------
 */

void conn_refuse(const struct net *n, struct net_service *svc, int fd, struct span why)
{
    svc->refused++;
    if (why.n > 0)
        (void)send(fd, why.p, why.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    net_hang_up(n, fd);
}

struct conn *conn_new(struct net *n, struct net_service *svc, int fd, uint8_t tag)
{
    struct conn *c = calloc(1, sizeof *c + svc->session_size);
    if (!c)
        return NULL;
    c->net = n;
    c->walk = n->walk;
    c->svc = svc;
    c->tag = tag;
    c->state = CONN_READING;
    c->active_us = c->since_us = clock_mono_us(n->conf.clock);
    link_init(&c->park);
    link_init(&c->watch);
    link_init(&c->slot);
    link_init(&c->place);
    link_append(&n->all, &c->all);
    svc->connections++;
    n->connections++;
    memory_add(n, 0);
    n->shared += svc->slots == 0;
    if (svc->slots > 0)
        link_append(&n->slotted, &c->slot);
    if (svc->open)
        svc->open(svc, c->session, tag);
    ev_io_init(&c->rd, readable, fd, EV_READ);
    ev_io_init(&c->wr, writable, fd, EV_WRITE);
    ev_io_start(n->loop, &c->rd);
    idle_enter(c);
    c->stranger = svc->stranger && svc->stranger(svc, c->session);
    if (c->stranger && n->conf.login_timeout_us > 0)
        sweep_watch(c);
    room_enter(c, svc->slots > 0 ? ROOM_SLOTTED : c->stranger ? ROOM_STRANGERS : ROOM_GUESTS);
    return c;
}

void conn_accepted(struct net *n, struct net_service *svc, int fd, uint8_t tag)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* a no-op on unix sockets */
    if (room_for(n, svc, fd) && conn_new(n, svc, fd, tag))
        svc->accepted++;
    else
        conn_refuse(n, svc, fd, svc->refusal);
    leave_places(n);
}

/* What another program had read but not dealt with, and written but not sent; the last held bytes
 * of out belong to an unfinished reply. Nothing is served before the loop runs. */
void conn_restore(struct conn *c, struct span in, struct span out, size_t held, bool look)
{
    if (!kept_set(c->net, &c->in, in) || !kept_set(c->net, &c->out, out)) {
        conn_close(c);
        return;
    }
    c->out_held = (uint32_t)held;
    conn_note_user(c);
    if (out.n == held && in.n == 0 && !c->eof && !c->closing && !look)
        return;
    ev_io_stop(c->net->loop, &c->rd);
    if (out.n > held) {
        await_taking(c);
    } else { /* what is there may be a whole request, or the service knows what is owed */
        park_queue(c, QUEUE_CAME);
    }
}

/* One more look for what has arrived; then it is closed as soon as all of that is answered. */
void conn_drain(struct conn *c)
{
    if (c->state == CONN_READING)
        turn(c, true, UINT32_MAX);
}
