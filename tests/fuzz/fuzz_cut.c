/*
 * One stream of requests through the real services, whole and cut: the answers must be the same,
 * byte by byte, and so must be what was counted and issued.
 *
 *   | protocol and world | where to cut | seed of the pieces | stream, as fuzz_stream.h expands it
 * |
 *
 * The world is fixed: a clock that moves only while a request waits, two workerIds, one process
 * identity, no use of resources. A whole stream comes in blocks as large as a connection reads; a
 * cut one in two pieces, in random ones whose turns also have random quotas, and byte by byte. In
 * the latter two the session often goes over to another program between two turns, as in an
 * upgrade.
 */
#include "feed.h"
#include "fuzz_stream.h"

#include "serve/memcached/memcached.h"
#include "serve/redis/redis.h"
#include "serve/watch/process.h"
#include "support/seeded.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOW_MS      (LAYOUT_EPOCH_DEFAULT_MS + 1000)
#define HOUR_MS     INT64_C(3600000)
#define MAX_WAIT_US INT64_C(100000)
#define FLUSH_AT    ((size_t)64 << 10) /* as in net/conn.c */
#define REPLY_MAX   (NET_OUT_MAX - FLUSH_AT)
#define SENT_MAX    ((size_t)512 << 10) /* bytes of answers that are compared */
#define WAITS_MAX   100000              /* turns that may end in waiting: more are for ever */
#define SHORT       200                 /* bytes of a stream that is cut at each of them, too */

enum {
    WORLD_NAMES = 4,   /* bits 0 and 1: the protocol */
    WORLD_EMPTY = 8,   /* no workerId is held */
    WORLD_BEHIND = 16, /* the clock is far behind what was issued */
    WORLD_SMALL = 32   /* one workerId only */
};

struct cut {
    size_t first, piece; /* bytes of the first piece, and at most of each further one */
    uint64_t seed;       /* of the pieces' lengths and the turns' quotas; 0: as large as they may */
};

/* One conversation: what net/conn.c keeps of a connection, and what the client has got. */
struct talk {
    struct clock clock; /* first */
    int64_t us;
    struct serve serve;
    struct snowflake_generator gen;
    struct net_service *svc;
    void *session;
    struct seeded rng;
    struct cut cut;
    struct net_step step;
    size_t in_n, out_n; /* bytes kept: of input, and of an unfinished reply */
    size_t waits;
    size_t sent; /* bytes of answers; got holds SENT_MAX of them at most */
    bool closed;
    char in[NET_IN_MAX];
    char out[NET_OUT_MAX];
    char got[SENT_MAX + 1];
};

static bool frozen; /* what the kernel says of the process is 0 */

/* ---- the world -------------------------------------------------------------------------------
 */

int getrusage(__rusage_who_t who, struct rusage *usage)
{
    if (!frozen)
        return (int)syscall(SYS_getrusage, who, usage);
    memset(usage, 0, sizeof *usage);
    return 0;
}

void process_read(struct process *p)
{
    *p = (struct process){0};
}

static int64_t told(struct clock *c)
{
    return ((struct talk *)(void *)c)->us;
}

/* A page's nonce is the same however often it is asked for. */
static void zeros(struct rng *r, void *out, size_t n)
{
    (void)r;
    memset(out, 0, n);
}

static struct net_service *service_of(struct talk *t, enum serve_protocol p)
{
    struct net_service *svc = protocol_of(p)->make(&t->serve);
    feed_must(svc, "memory for a service");
    if (p == SERVE_REDIS)
        memset(((struct rds_service *)(void *)svc)->run_id, 'a', RDS_RUN_ID);
    return svc;
}

static void open_talk(struct talk *t, unsigned world, struct cut cut)
{
    static char orders[] = "orders", users[] = "users";
    static char *const names[] = {orders, users};
    static struct rng same = {zeros};
    struct issuer *i = &t->serve.issuer;
    struct err e;
    memset(t, 0, offsetof(struct talk, in));
    t->clock = (struct clock){told, told};
    t->us = NOW_MS * 1000;
    t->cut = cut;
    t->rng = seeded_of(cut.seed);
    t->serve.clock = &t->clock;
    t->serve.rng = &same;
    t->serve.max_connections = 4096;
    i->batch = 100;
    i->max_wait_us = MAX_WAIT_US;
    snowflake_generator_init(&t->gen, t->serve.facts.why);
    feed_must(issuer_add(i, &t->gen.base, "id:", names, world & WORLD_NAMES ? 2 : 0, &e) == ERR_OK,
              "names");
    if (!(world & WORLD_EMPTY))
        snowflake_generator_start(&t->gen, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 2);
    t->serve.facts.granted = t->gen.started;
    int64_t last = world & WORLD_BEHIND ? NOW_MS + 5000 : NOW_MS - 1;
    for (uint16_t k = 0; k < (world & WORLD_SMALL ? 1 : 2) && t->gen.started; k++)
        feed_must(snowflake_grant(&t->gen.ids, k, (uint16_t)(7 + k), last, NOW_MS + HOUR_MS, NULL),
                  "a workerId");
    for (unsigned p = 0; p < SERVE_PROTOCOLS; p++)
        t->serve.services[p] = service_of(t, (enum serve_protocol)p);
    t->svc = t->serve.services[(world & 3) % SERVE_PROTOCOLS];
    t->session = calloc(1, t->svc->session_size);
    feed_must(t->session, "memory for a session");
}

static void close_talk(struct talk *t)
{
    if (t->svc->close)
        t->svc->close(t->svc, t->session);
    free(t->session);
    for (unsigned p = 0; p < SERVE_PROTOCOLS; p++)
        free(t->serve.services[p]);
    names_clear(&t->serve.issuer.names);
}

/* ---- turns, as net/conn.c has them -----------------------------------------------------------
 */

static void send_ready(struct talk *t, struct buf *out, size_t ready)
{
    size_t room = SENT_MAX - (t->sent < SENT_MAX ? t->sent : SENT_MAX);
    size_t n = ready < room ? ready : room;
    if (n > 0)
        memcpy(t->got + t->sent, out->p, n);
    t->sent += ready;
    memmove(out->p, out->p + ready, out->n - ready);
    out->n -= ready;
}

static struct net_step serve_once(struct talk *t, struct span *in, struct net_turn *turn,
                                  struct buf *out)
{
    out->cap = turn->reply_start + REPLY_MAX;
    struct net_step step = t->svc->serve(t->svc, t->session, *in, turn, out);
    feed_must(step.used <= in->n, "no more is used than has come");
    feed_must(step.verdict != NET_MORE || step.used > 0 || in->n < NET_IN_MAX,
              "a full block is decided on");
    *in = span_skip(*in, step.used);
    return step;
}

/* Of a cut stream's turn: 1 to 2,048 IDs, small ones as often as large ones. */
static uint32_t quota(struct talk *t)
{
    return t->cut.seed ? 1u << seeded_in(&t->rng, 0, 11) : UINT32_MAX;
}

static void carry(struct talk *t)
{
    static char mem[256 << 10];
    struct buf b;
    bool often = t->cut.seed ? seeded_in(&t->rng, 0, 2) == 0 : t->cut.piece == 1;
    buf_init(&b, mem, sizeof mem);
    if (!often || t->step.verdict == NET_CLOSE || !t->svc->pack(t->svc, t->session, &b))
        return;
    void *next = calloc(1, t->svc->session_size);
    char *exact = malloc(b.n);
    feed_must(next && exact && !b.failed, "memory for a session");
    memcpy(exact, mem, b.n);
    feed_must(t->svc->unpack(t->svc, next, span_of(exact, b.n)), "a session is understood");
    if (t->svc->close)
        t->svc->close(t->svc, t->session);
    free(exact);
    free(t->session);
    t->session = next;
}

static void turn(struct talk *t, int64_t waited_us)
{
    char *exact = malloc(t->in_n); /* ends where the input does, for the sanitizer to watch */
    struct span in = span_of(exact, t->in_n);
    struct buf out;
    struct net_turn nt = {
        .clock = &t->clock, .wall_ms = t->us / 1000, .waited_us = waited_us, .quota = quota(t)};
    feed_must(exact || in.n == 0, "memory for the input");
    if (in.n > 0)
        memcpy(exact, t->in, in.n);
    buf_init(&out, t->out, sizeof t->out);
    out.n = t->out_n;
    do {
        nt.reply_start = 0;
        do {
            t->step = serve_once(t, &in, &nt, &out);
            if (t->step.verdict == NET_DONE)
                nt.waited_us = nt.ticket = 0;
            if (t->step.verdict == NET_DONE || !t->step.partial)
                nt.reply_start = out.n;
        } while (t->step.verdict == NET_DONE && out.n < FLUSH_AT);
        feed_must(!out.failed, "a reply fits");
        send_ready(t, &out, nt.reply_start);
    } while (t->step.verdict == NET_DONE && t->sent < SENT_MAX);
    t->out_n = out.n;
    t->in_n = in.n;
    if (in.n > 0)
        memcpy(t->in, in.p, in.n);
    free(exact);
    carry(t);
}

static bool waits(const struct talk *t)
{
    enum net_verdict v = t->step.verdict;
    return v == NET_QUEUE || v == NET_YIELD || v == NET_WAIT;
}

/* Until what has come is dealt with; the clock moves on only for those who wait for it. */
static void settle(struct talk *t)
{
    int64_t waiting_since = 0;
    turn(t, 0);
    while (waits(t) && t->sent < SENT_MAX) {
        feed_must(++t->waits < WAITS_MAX, "nobody waits for ever");
        if (t->step.verdict == NET_QUEUE) {
            feed_must(t->step.until_ms > t->us / 1000, "a wait is for a time to come");
            t->us = t->step.until_ms * 1000;
        } else if (t->step.verdict == NET_WAIT) {
            waiting_since = waiting_since ? waiting_since : t->us;
            t->us += MAX_WAIT_US;
        }
        turn(t, t->step.verdict == NET_WAIT ? t->us - waiting_since : 0);
        waiting_since = t->step.verdict == NET_WAIT ? waiting_since : 0;
    }
    t->closed = t->step.verdict == NET_CLOSE;
}

static void run(struct talk *t, struct span stream)
{
    size_t want = t->cut.first ? t->cut.first : t->cut.piece;
    frozen = true;
    while (stream.n > 0 && !t->closed && t->sent < SENT_MAX) {
        size_t n = want < stream.n ? want : stream.n;
        n = n < NET_IN_MAX - t->in_n ? n : NET_IN_MAX - t->in_n;
        memcpy(t->in + t->in_n, stream.p, n);
        t->in_n += n;
        stream = span_skip(stream, n);
        settle(t);
        want = t->cut.seed ? (size_t)seeded_in(&t->rng, 1, (int64_t)t->cut.piece) : t->cut.piece;
    }
    frozen = false;
    t->got[t->sent < SENT_MAX ? t->sent : SENT_MAX] = '\0';
}

/* ---- the comparison --------------------------------------------------------------------------
 */

static void show(const struct talk *whole, const struct talk *cut)
{
    size_t at = 0;
    while (at < whole->sent && at < cut->sent && at < SENT_MAX && whole->got[at] == cut->got[at])
        at++;
    size_t from = at < 80 ? 0 : at - 80;
    (void)fprintf(stderr,
                  "cut first %zu, piece %zu, seed %llu: answers differ from byte %zu on\n"
                  "whole: %zu bytes, closed %d, left %zu\n%.300s\n"
                  "cut:   %zu bytes, closed %d, left %zu\n%.300s\n",
                  cut->cut.first, cut->cut.piece, (unsigned long long)cut->cut.seed, at,
                  whole->sent, whole->closed, whole->in_n,
                  whole->got + (from < SENT_MAX ? from : 0), cut->sent, cut->closed, cut->in_n,
                  cut->got + (from < SENT_MAX ? from : 0));
}

static bool equal(const struct talk *a, const struct talk *b)
{
    const struct snowflake *g = &a->gen.ids, *h = &b->gen.ids;
    size_t n = a->sent < SENT_MAX ? a->sent : SENT_MAX;
    if (n != (b->sent < SENT_MAX ? b->sent : SENT_MAX) || memcmp(a->got, b->got, n) != 0)
        return false;
    if (n == SENT_MAX) /* where it was ended may depend on the cut */
        return true;
    return a->closed == b->closed && (a->closed || a->in_n == b->in_n) &&
           g->stats.issued == h->stats.issued && g->last_ms == h->last_ms && a->us == b->us &&
           memcmp(a->serve.requests, b->serve.requests, sizeof a->serve.requests) == 0;
}

static void compare(unsigned world, struct span stream, struct cut cut, const struct talk *whole)
{
    static struct talk t;
    open_talk(&t, world, cut);
    run(&t, stream);
    if (!equal(whole, &t)) {
        show(whole, &t);
        feed_must(false, "a stream that is cut is answered as it is whole");
    }
    close_talk(&t);
}

/* Where the corpus is to lead, after the protocols. */
enum {
    WAITS = SERVE_PROTOCOLS,
    META,
    BINARY,
    PLACES
};

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {
        [SERVE_MEMCACHED] = "expected IDs by memcached, found none",
        [SERVE_REDIS] = "expected IDs by RESP, found none",
        [SERVE_HTTP] = "expected IDs by HTTP, found none",
        [WAITS] = "expected a request that waits, found none",
        [META] = "expected meta commands, found none",
        [BINARY] = "expected IDs by memcached's binary protocol, found none"};
    return feed_unreached(names, PLACES);
}

static void note_places(unsigned world, struct span stream, const struct talk *whole)
{
    const uint64_t(*requests)[SERVE_RESULTS] = whole->serve.requests[SERVE_MEMCACHED];
    bool issued = whole->gen.ids.stats.issued > 0;
    unsigned protocol = (world & 3) % SERVE_PROTOCOLS;
    if (issued)
        feed_reached(protocol);
    if (whole->us > NOW_MS * 1000)
        feed_reached(WAITS);
    if (requests[MC_META_GET][SERVE_OK] > 0 && requests[MC_META_SET][SERVE_REFUSED] > 0)
        feed_reached(META);
    if (issued && protocol == SERVE_MEMCACHED && stream.p[0] == MCB_REQUEST)
        feed_reached(BINARY);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct talk whole;
    struct feed in = {data, size};
    unsigned world = feed_u8(&in);
    size_t at = feed_u16(&in);
    uint64_t seed = 1 + feed_u8(&in);
    struct span stream = fuzz_expand(in.p, in.n);
    open_talk(&whole, world, (struct cut){0, SIZE_MAX, 0});
    run(&whole, stream);
    note_places(world, stream, &whole);
    if (stream.n > 0) {
        compare(world, stream, (struct cut){1 + at % stream.n, SIZE_MAX, 0}, &whole);
        compare(world, stream, (struct cut){0, stream.n / 4 + 2, seed}, &whole);
        if (stream.n < SHORT)
            compare(world, stream, (struct cut){0, 1, 0}, &whole);
    }
    close_talk(&whole);
    return 0;
}
