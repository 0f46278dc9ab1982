#include "support/net_bench.h"

#include "base/dec.h"
#include "net/addr.h"
#include "net/private.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 30000
#define PER_MS      1024u

struct session {
    uint64_t got;     /* tokens of the `take` at the front */
    int64_t until_ms; /* of the `until` at the front, or 0 */
    int64_t first;    /* word of the `ticket` at the front, when it … */
    bool came;        /* … came */
    bool known;
    uint32_t user; /* that it has said to be, or 0 */
    bool checked;  /* has a `check` at the front */
};

/* ---- the toy ----------------------------------------------------------------------------------
 */

static struct net_step more(void)
{
    return (struct net_step){.verdict = NET_MORE};
}

static struct net_step done(size_t used)
{
    return (struct net_step){.verdict = NET_DONE, .used = used};
}

static struct net_step hold(enum net_verdict verdict, int64_t until_ms, bool partial)
{
    return (struct net_step){.verdict = verdict, .until_ms = until_ms, .partial = partial};
}

static uint64_t number_of(struct span line, size_t skip)
{
    uint64_t n = 0;
    if (!dec_u64(span_skip(line, skip), &n))
        abort();
    return n;
}

static struct net_step big(struct span line, size_t used, struct buf *out)
{
    uint64_t n = number_of(line, 4);
    char *to = buf_room(out, n + 1);
    if (!to)
        abort();
    memset(to, 'x', n);
    to[n] = '\n';
    buf_took(out, n + 1);
    return done(used);
}

static struct net_step gate(struct net_bench *b, const struct net_turn *turn, size_t used,
                            bool half, struct buf *out)
{
    if (half && out->n == turn->reply_start)
        BUF_PUT_LIT(out, "half ");
    if (!b->open && turn->waited_us < b->conf.max_wait_us)
        return hold(NET_WAIT, INT64_MAX, half);
    if (b->open)
        BUF_PUT_LIT(out, "open\n");
    else
        BUF_PUT_LIT(out, "late\n");
    return done(used);
}

static struct net_step ticket(struct net_bench *b, struct session *s, struct net_turn *turn,
                              size_t used, struct buf *out)
{
    if (!s->came) {
        s->came = true;
        s->first = turn->ticket;
        if (turn->ticket == 0) {
            turn->ticket = ++b->tickets;
            turn->shared = net_turn_like(turn, b->share);
        }
    }
    if (!b->open)
        return hold(NET_WAIT, INT64_MAX, false);
    s->came = false;
    buf_printf(out, "%lld %lld\n", (long long)s->first, (long long)turn->ticket);
    return done(used);
}

static struct net_step until(struct session *s, const struct net_turn *turn, struct span line,
                             size_t used, struct buf *out)
{
    if (s->until_ms == 0)
        s->until_ms = turn->wall_ms + (int64_t)number_of(line, 6);
    if (turn->wall_ms < s->until_ms)
        return hold(NET_WAIT, s->until_ms, false);
    s->until_ms = 0;
    BUF_PUT_LIT(out, "time\n");
    return done(used);
}

static struct net_step take(struct net_bench *b, struct session *s, struct net_turn *turn,
                            struct span line, size_t used, struct buf *out)
{
    uint64_t n = number_of(line, 5);
    while (s->got < n) {
        if (turn->quota == 0)
            return hold(NET_YIELD, 0, false);
        if (turn->wall_ms != b->ms) {
            b->ms = turn->wall_ms;
            b->taken = 0;
        }
        if (b->taken == PER_MS) {
            turn->wall_ms = clock_wall_ms(turn->clock);
            if (turn->wall_ms == b->ms)
                return hold(NET_QUEUE, b->ms + 1, false);
            continue;
        }
        b->taken++;
        turn->quota--;
        s->got++;
    }
    s->got = 0;
    buf_printf(out, "took %llu\n", (unsigned long long)n);
    return done(used);
}

static struct net_step spin(struct span line, size_t used, struct buf *out)
{
    int64_t end_us = clock_mono_us(clock_system()) + (int64_t)number_of(line, 5);
    while (clock_mono_us(clock_system()) < end_us)
        ;
    BUF_PUT_LIT(out, "spun\n");
    return (struct net_step){.verdict = NET_DONE, .used = used, .cost = NET_DEAR};
}

static struct net_step toy(struct net_service *svc, void *session, struct span in,
                           struct net_turn *turn, struct buf *out)
{
    struct net_bench *b = (struct net_bench *)svc;
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end)
        return in.n == NET_IN_MAX ? (struct net_step){.verdict = NET_CLOSE, .used = in.n} : more();
    struct span line = span_of(in.p, (size_t)(end - in.p));
    size_t used = line.n + 1;
    if (span_starts(line, SPAN("big ")))
        return big(line, used, out);
    if (span_eq(line, SPAN("wait")) || span_eq(line, SPAN("half")))
        return gate(b, turn, used, line.p[0] == 'h', out);
    turn->front = span_of(in.p, used);
    turn->behind = span_skip(in, used);
    if (span_eq(line, SPAN("ticket")))
        return ticket(b, session, turn, used, out);
    if (span_eq(line, SPAN("piece")) && b->pieces == 0)
        return hold(NET_WAIT, INT64_MAX, false);
    b->pieces -= span_eq(line, SPAN("piece"));
    if (span_eq(line, SPAN("hold")) && !b->open)
        return hold(NET_HOLD, 0, false);
    if (span_eq(line, SPAN("check"))) {
        ((struct session *)session)->checked = !b->open;
        if (!b->open)
            return hold(NET_HOLD, 0, false);
    }
    if (span_starts(line, SPAN("until ")))
        return until(session, turn, line, used, out);
    if (span_starts(line, SPAN("take ")))
        return take(b, session, turn, line, used, out);
    if (span_eq(line, SPAN("login")) || span_starts(line, SPAN("login "))) {
        ((struct session *)session)->known = true;
        ((struct session *)session)->user = line.n > 6 ? (uint32_t)number_of(line, 6) : 0;
        BUF_PUT_LIT(out, "welcome\n");
        return done(used);
    }
    if (span_starts(line, SPAN("spin ")))
        return spin(line, used, out);
    if (span_eq(line, SPAN("close"))) {
        BUF_PUT_LIT(out, "bye\n");
        return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
    }
    buf_put(out, in.p, used);
    return done(used);
}

static void session_opened(struct net_service *svc, void *session, uint8_t tag)
{
    (void)session;
    ((struct net_bench *)svc)->tag = tag;
}

static bool is_stranger(const struct net_service *svc, const void *session)
{
    return ((const struct net_bench *)svc)->strangers && !((const struct session *)session)->known;
}

static uint32_t user_of(const struct net_service *svc, const void *session)
{
    (void)svc;
    return ((const struct session *)session)->user;
}

static bool is_checked(const struct net_service *svc, const void *session)
{
    (void)svc;
    return ((const struct session *)session)->checked;
}

static void session_closed(struct net_service *svc, void *session)
{
    (void)session;
    ((struct net_bench *)svc)->closed++;
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

static void settle(void *arg)
{
    ((struct net_bench *)arg)->settled++;
}

void net_bench_init(struct net_bench *b)
{
    memset(b, 0, sizeof *b);
    b->svc = (struct net_service){.name = "toy",
                                  .session_size = sizeof(struct session),
                                  .serve = toy,
                                  .open = session_opened,
                                  .stranger = is_stranger,
                                  .user = user_of,
                                  .checked = is_checked,
                                  .close = session_closed,
                                  .refusal = SPAN("full\n")};
    b->conf = (struct net_config){.clock = clock_system(),
                                  .connections = 100,
                                  .max_wait_us = 100000,
                                  .settle = settle,
                                  .arg = b};
    b->door.mode = 0600;
}

static void notified(void *arg)
{
    struct net_bench *b = arg;
    (void)pthread_mutex_lock(&b->lock);
    bool last = b->fn && b->halted;
    if (b->fn)
        b->fn(b, b->arg);
    b->fn = NULL;
    (void)pthread_cond_signal(&b->done);
    (void)pthread_mutex_unlock(&b->lock);
    if (last)
        pthread_exit(NULL); /* what else is ready in this turn of the loop stays undone */
}

static void *run(void *arg)
{
    net_run(((struct net_bench *)arg)->net);
    return NULL;
}

void net_bench_start(struct net_bench *b, const char *address)
{
    net_bench_inherit(b, span_of(NULL, 0), address);
}

void net_bench_inherit(struct net_bench *b, struct span records, const char *address)
{
    struct err e = {.text = ""};
    struct span where = span_str(address ? address : "tcp://127.0.0.1:0");
    assert_int_equal(net_new(&b->conf, &b->net, &e), ERR_OK);
    net_on_notify(b->net, notified, b);
    net_inherit(b->net, records);
    if (net_listen(b->net, where, &b->door, &b->svc, b->address, sizeof b->address, &e))
        fail_msg("%s", e.text);
    (void)pthread_mutex_init(&b->lock, NULL);
    (void)pthread_cond_init(&b->done, NULL);
    b->halted = false;
    assert_int_equal(pthread_create(&b->thread, NULL, run, b), 0);
    b->running = true;
}

void net_bench_call(struct net_bench *b, void (*fn)(struct net_bench *, void *), void *arg)
{
    (void)pthread_mutex_lock(&b->lock);
    b->fn = fn;
    b->arg = arg;
    net_notify(b->net);
    while (b->fn)
        (void)pthread_cond_wait(&b->done, &b->lock);
    (void)pthread_mutex_unlock(&b->lock);
}

static void do_nothing(struct net_bench *b, void *unused)
{
    (void)b;
    (void)unused;
}

void net_bench_halt(struct net_bench *b, void (*fn)(struct net_bench *, void *), void *arg)
{
    (void)pthread_mutex_lock(&b->lock);
    b->halted = true;
    (void)pthread_mutex_unlock(&b->lock);
    net_bench_call(b, fn ? fn : do_nothing, arg);
    (void)pthread_join(b->thread, NULL);
}

static void do_listen(struct net_bench *b, void *arg)
{
    struct err e;
    struct net_door door = {.mode = 0600};
    assert_int_equal(net_listen(b->net, span_str(arg), &door, &b->svc, NULL, 0, &e), ERR_OK);
}

void net_bench_inside(struct net_bench *b, struct net_bench *inside)
{
    (void)snprintf(inside->address, sizeof inside->address, "unix:/tmp/sidflake-inside-%ld",
                   (long)getpid());
    net_bench_call(b, do_listen, inside->address);
}

static void do_open(struct net_bench *b, void *arg)
{
    (void)arg;
    b->open = true;
    net_wake(b->net);
    for (struct link *l = b->net->all.next, *next; l != &b->net->all; l = next) {
        next = l->next;
        net_wake_one(CONTAINER(l, struct conn, all));
    }
}

void net_bench_open_gate(struct net_bench *b)
{
    net_bench_call(b, do_open, NULL);
}

static void drained(void *arg)
{
    __atomic_store_n(&((struct net_bench *)arg)->drained, true, __ATOMIC_SEQ_CST);
}

static void do_drain(struct net_bench *b, void *arg)
{
    net_drain(b->net, *(int64_t *)arg, drained, b);
}

void net_bench_drain(struct net_bench *b, int64_t grace_us)
{
    net_bench_call(b, do_drain, &grace_us);
}

static void do_count(struct net_bench *b, void *arg)
{
    assert_true(net_connections(b->net) == b->svc.connections);
    *(uint64_t *)arg = b->svc.connections;
}

uint64_t net_bench_connections(struct net_bench *b)
{
    uint64_t n = 0;
    net_bench_call(b, do_count, &n);
    return n;
}

struct counts {
    uint64_t bytes_in, accepted, turns;
};

static void do_counts(struct net_bench *b, void *arg)
{
    *(struct counts *)arg = (struct counts){b->svc.bytes_in, b->svc.accepted, b->settled};
}

static struct counts counts(struct net_bench *b)
{
    struct counts c;
    net_bench_call(b, do_counts, &c);
    return c;
}

struct ended {
    enum net_end why;
    uint64_t n;
};

static void do_ended(struct net_bench *b, void *arg)
{
    struct ended *e = arg;
    e->n = b->svc.ended[e->why];
}

uint64_t net_bench_ended(struct net_bench *b, enum net_end why)
{
    struct ended e = {.why = why};
    net_bench_call(b, do_ended, &e);
    return e.n;
}

uint64_t net_bench_bytes_in(struct net_bench *b)
{
    return counts(b).bytes_in;
}

uint64_t net_bench_accepted(struct net_bench *b)
{
    return counts(b).accepted;
}

uint64_t net_bench_turns(struct net_bench *b)
{
    return counts(b).turns;
}

static void do_break(struct net_bench *b, void *arg)
{
    (void)arg;
    net_break(b->net);
}

void net_bench_stop(struct net_bench *b)
{
    if (!b->running)
        return;
    if (!b->halted) {
        net_bench_call(b, do_break, NULL);
        (void)pthread_join(b->thread, NULL);
    }
    b->running = false;
    net_free(b->net);
    (void)pthread_cond_destroy(&b->done);
    (void)pthread_mutex_destroy(&b->lock);
}

int net_bench_begin(void **state)
{
    net_bench_init(*state);
    return 0;
}

int net_bench_end(void **state)
{
    net_bench_stop(*state);
    return 0;
}

/* ---- clients ----------------------------------------------------------------------------------
 */

int dial(const struct net_bench *b)
{
    struct addr a;
    struct err e = {.text = ""};
    int fd;
    assert_int_equal(addr_parse(span_str(b->address), &a, &e), ERR_OK);
    if (addr_connect(&a, PATIENCE_MS * INT64_C(1000), &fd, &e))
        fail_msg("%s", e.text);
    return fd;
}

/* write(2), so that a test may count what the loop sends. */
void say(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t r = write(fd, text, n);
        assert_true(r > 0);
        text += r;
        n -= (size_t)r;
    }
}

void expect(int fd, const char *text)
{
    char found[4096];
    size_t want = strlen(text), n = 0;
    assert_true(want < sizeof found);
    while (n < want) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int comes = poll(&p, 1, PATIENCE_MS);
        ssize_t r = comes == 1 ? read(fd, found + n, want - n) : -1;
        if (r <= 0) {
            found[n] = '\0';
            fail_msg("expected \"%s\", found \"%s\" and then %s", text, found,
                     r == 0       ? "the end"
                     : comes == 0 ? "nothing"
                                  : strerror(errno));
        }
        n += (size_t)r;
    }
    found[n] = '\0';
    assert_string_equal(found, text);
}

void expect_end(int fd)
{
    char c;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    ssize_t r = read(fd, &c, 1);
    if (r > 0)
        fail_msg("expected the end, found '%c'", c);
    assert_true(r == 0 || errno == ECONNRESET);
}

void expect_silence(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, ms), 0);
}
