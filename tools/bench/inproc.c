/*
 * Measures without sockets, in one process:
 *
 *   inproc serve PROTOCOL REQUESTS DEPTH   PROTOCOL: memcached, redis, or memcached-differ,
 *                                          redis-differ: no key is that of the request before;
 *                                          the service's own serve, fed DEPTH requests at a time
 *                                          from memory, as a connection would; under callgrind the
 *                                          difference of two runs is exact, per request
 *                                          memcached-seq, redis-seq: numbers of a block in hand;
 *                                          redis-twitter, redis-sonyflake: in that layout;
 *                                          redis-borrow, redis-hold: with that option
 *   inproc numbers NUMBERS                 a sequence alone, one number per call
 *   inproc ids virtual|real MEMBERS IDS    the generator alone, one ID per call
 *   inproc some virtual|real MEMBERS IDS   … and up to 1,024 per call
 *
 * Prints one line of JSON.
 */
#include "base/dec.h"
#include "ids/sequence_table.h"
#include "serve/serve.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EPOCH_MS   LAYOUT_EPOCH_DEFAULT_MS
#define START_MS   (EPOCH_MS + INT64_C(10000000000))
#define FOR_EVER   (EPOCH_MS + INT64_C(200000000000))
#define SESSION    4096 /* bytes; more than any service's session has */
#define DEPTH_MAX  1024
#define MEMBER_MAX 16

/* A clock that stands until it is moved. */
struct still_clock {
    struct clock clock;
    int64_t ms;
};

static int64_t still_us(struct clock *c)
{
    return ((struct still_clock *)(void *)c)->ms * 1000;
}

static struct still_clock still = {{still_us, still_us}, START_MS};

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void grant(struct snowflake *s, uint32_t members, int64_t last)
{
    static volatile uint64_t mark[MEMBER_MAX];
    for (uint32_t i = 0; i < members; i++)
        (void)snowflake_grant(s, i + 1, (uint16_t)(100 + i), last, FOR_EVER, &mark[i]);
}

/* ---- serve ------------------------------------------------------------------------------------
 */

static char out_block[NET_OUT_MAX];
static _Alignas(16) char session[SESSION];

/* One turn of a connection, in a unit of time of its own: all requests of the block. Returns how
 * many were answered. */
static uint64_t serve_block(struct net_service *svc, struct span in, int64_t unit_ms)
{
    struct buf out;
    still.ms += unit_ms;
    struct net_turn turn = {.clock = &still.clock, .wall_ms = still.ms, .quota = UINT32_MAX};
    uint64_t served = 0;
    buf_init(&out, out_block, sizeof out_block);
    for (;;) {
        struct net_step step = svc->serve(svc, session, in, &turn, &out);
        if (step.verdict != NET_DONE)
            break;
        in = span_skip(in, step.used);
        turn.reply_start = out.n;
        served++;
    }
    return in.n == 0 && !out.failed ? served : 0;
}

#define GET_ID SPAN("*2\r\n$3\r\nGET\r\n$9\r\nid:")

/* What is sent: head, a name of six bytes, tail. */
static const struct {
    const char *protocol;
    const struct protocol *speaks;
    struct span head;
    bool differ;
    const char *layout; /* NULL: the usual one */
    bool borrow, hold;
} kinds[] = {
    {"memcached", &protocol_memcached, SPAN("get id:")},
    {"memcached-differ", &protocol_memcached, SPAN("get id:"), .differ = true},
    {"redis", &protocol_redis, GET_ID},
    {"redis-differ", &protocol_redis, GET_ID, .differ = true},
    {"memcached-seq", &protocol_memcached, SPAN("get seq:")},
    {"redis-seq", &protocol_redis, SPAN("*2\r\n$3\r\nGET\r\n$10\r\nseq:")},
    {"redis-twitter", &protocol_redis, GET_ID, .layout = "twitter"},
    {"redis-sonyflake", &protocol_redis, GET_ID, .layout = "sonyflake"},
    {"redis-borrow", &protocol_redis, GET_ID, .borrow = true},
    {"redis-hold", &protocol_redis, GET_ID, .hold = true},
};

#define KINDS (sizeof kinds / sizeof *kinds)

static size_t kind_of(const char *protocol)
{
    size_t i = 0;
    while (i < KINDS && strcmp(kinds[i].protocol, protocol) != 0)
        i++;
    return i;
}

static struct span make_block(size_t kind, uint64_t depth)
{
    static char mem[DEPTH_MAX * 64];
    struct buf block;
    buf_init(&block, mem, sizeof mem);
    for (uint64_t i = 0; i < depth; i++) {
        buf_put_span(&block, kinds[kind].head);
        if (kinds[kind].differ)
            buf_put_u64(&block, 100000 + i);
        else
            BUF_PUT_LIT(&block, "orders");
        BUF_PUT_LIT(&block, "\r\n");
    }
    return buf_span(&block);
}

/* Blocks until as many requests are served. false: a request was not answered as it must be. */
static bool serve_all(struct net_service *svc, struct span block, uint64_t requests, uint64_t depth,
                      int64_t unit_ms)
{
    uint64_t served = 0;
    int64_t begin = now_ns();
    while (served < requests) {
        uint64_t n = serve_block(svc, block, unit_ms);
        if (n != depth) {
            fprintf(stderr, "inproc: expected %ju replies, found %ju\n", (uintmax_t)depth,
                    (uintmax_t)n);
            return false;
        }
        served += n;
    }
    double seconds = (double)(now_ns() - begin) / 1e9;
    printf("{\"requests\": %ju, \"rate\": %.0f}\n", (uintmax_t)served, (double)served / seconds);
    return true;
}

/* A block that lasts for ever, of a sequence that is at its hundred millionth number. */
static bool add_sequence(struct sequence_table *t)
{
    static const struct sequence_name orders = {"orders", "", ""};
    static volatile uint64_t mark;
    const int64_t first = 100000000;
    sequence_table_init(t,
                        &(struct sequence_options){
                            .counters = 16, .lasts_ms = 60000, .max = 1000000, .prefix = "seq:"});
    if (!sequence_table_adopt(t, 0, &orders))
        return false;
    sequence_table_known(t, 0, &(struct sequence_facts){.start = 1, .increment = 1});
    sequence_table_grant(t, 0, 0,
                         &(struct sequence_block){first, first, INT64_C(1) << 42, 1, &mark});
    return true;
}

static bool long_way(struct generator *g, int64_t *number)
{
    int64_t ticket = 0;
    struct generator_ask ask = {.mono_ms = 0, .n = 1, .ticket = &ticket};
    struct generator_run run;
    if (g->kind->next(g, &ask, &run))
        return false;
    *number = run.first;
    return true;
}

static int run_numbers(uint64_t numbers)
{
    static struct sequence_table t;
    uint64_t n = 0, check = 0;
    int64_t number = 0;
    if (!add_sequence(&t))
        return fprintf(stderr, "inproc: no memory\n"), 1;
    struct generator *g = sequence_table_entry(&t.base, SPAN("orders"), SPAN(""))->generator;
    int64_t begin = now_ns();
    for (; n < numbers && (sequence_generator_more(g, &number) || long_way(g, &number)); n++)
        check ^= (uint64_t)number;
    double seconds = (double)(now_ns() - begin) / 1e9;
    printf("{\"numbers\": %ju, \"rate\": %.0f, \"check\": %ju}\n", (uintmax_t)n,
           (double)n / seconds, (uintmax_t)check);
    sequence_table_clear(&t);
    return 0;
}

static int run_serve(const char *protocol, uint64_t requests, uint64_t depth)
{
    static struct serve s;
    static struct snowflake_generator gen;
    static struct sequence_table sequences;
    struct err e;
    size_t kind = kind_of(protocol);
    if (kind == KINDS || depth < 1 || depth > DEPTH_MAX)
        return fprintf(stderr, "inproc: expected memcached or redis, and a depth of 1..1024\n"), 2;
    struct layout layout = layout_usual;
    if (kinds[kind].layout && layout_parse(span_str(kinds[kind].layout), &layout, &e))
        return fprintf(stderr, "inproc: %s\n", e.text), 1;
    snowflake_generator_init(&gen, s.facts.why);
    snowflake_generator_ahead(&gen, kinds[kind].borrow, kinds[kind].hold, &still.clock);
    snowflake_generator_start(&gen, EPOCH_MS, &layout, 15, 1);
    snowflake_generator_go_on(&gen, 0, 2000);
    if (!add_sequence(&sequences) || issuer_add(&s.issuer, &gen.base, "id:", NULL, 0, &e) ||
        issuer_add(&s.issuer, &sequences.base, "seq:", NULL, 0, &e))
        return fprintf(stderr, "inproc: %s\n", e.text), 1;
    s.clock = &still.clock;
    s.facts.granted = true;
    s.issuer.batch = DEPTH_MAX;
    grant(&gen.ids, 1, START_MS);
    struct net_service *svc = kinds[kind].speaks->make(&s);
    bool ok = svc && svc->session_size <= SESSION &&
              serve_all(svc, make_block(kind, depth), requests, depth, layout.unit_ms);
    if (svc && svc->close)
        svc->close(svc, session);
    free(svc);
    names_clear(&s.issuer.names);
    sequence_table_clear(&sequences);
    return ok ? 0 : 1;
}

/* ---- ids --------------------------------------------------------------------------------------
 */

struct generated {
    uint64_t ids, check; /* check keeps the compiler from leaving the work out */
};

/* The clock is asked before each call where it is real: that is what a caller would have to do. */
static struct generated generate_one(struct snowflake *s, uint64_t ids, bool real)
{
    struct generated g = {0, 0};
    int64_t now = START_MS, until = 0;
    uint64_t id;
    while (g.ids < ids) {
        if (real)
            now = clock_wall_ms(clock_system());
        if (snowflake_next(s, now, 1, &id, &until) == SNOWFLAKE_OK) {
            g.ids++;
            g.check ^= id;
        } else if (!real) {
            now++;
        }
    }
    return g;
}

static struct generated generate_some(struct snowflake *s, uint64_t ids, bool real)
{
    struct generated g = {0, 0};
    int64_t now = START_MS, until = 0;
    uint64_t id;
    uint32_t got;
    while (g.ids < ids) {
        if (real)
            now = clock_wall_ms(clock_system());
        if (snowflake_some(s, now, LAYOUT_SEQUENCES, &id, &got, &until) == SNOWFLAKE_OK) {
            g.ids += got;
            g.check ^= id;
        } else if (!real) {
            now++;
        }
    }
    return g;
}

static int run_ids(bool some, const char *which, uint64_t members, uint64_t ids)
{
    static struct snowflake s;
    bool real = strcmp(which, "real") == 0;
    if (members < 1 || members > MEMBER_MAX || (!real && strcmp(which, "virtual") != 0))
        return fprintf(stderr, "inproc: expected virtual or real, and 1..%d members\n", MEMBER_MAX),
               2;
    snowflake_init(&s, EPOCH_MS, &layout_usual, 15, (uint32_t)members);
    grant(&s, (uint32_t)members, real ? clock_wall_ms(clock_system()) : START_MS);
    int64_t begin = now_ns();
    struct generated g = some ? generate_some(&s, ids, real) : generate_one(&s, ids, real);
    double seconds = (double)(now_ns() - begin) / 1e9;
    printf("{\"ids\": %ju, \"rate\": %.0f, \"check\": %ju}\n", (uintmax_t)g.ids,
           (double)g.ids / seconds, (uintmax_t)g.check);
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t a = 0, b = 0;
    if (argc == 3 && strcmp(argv[1], "numbers") == 0 && dec_u64(span_str(argv[2]), &a))
        return run_numbers(a);
    if (argc != 5)
        goto usage;
    bool serve = strcmp(argv[1], "serve") == 0, some = strcmp(argv[1], "some") == 0;
    if (!dec_u64(span_str(argv[3]), &a) || !dec_u64(span_str(argv[4]), &b))
        goto usage;
    if (serve)
        return run_serve(argv[2], a, b);
    if (some || strcmp(argv[1], "ids") == 0)
        return run_ids(some, argv[2], a, b);
usage:
    fprintf(stderr, "Usage: inproc serve memcached|redis REQUESTS DEPTH\n"
                    "       inproc ids|some virtual|real MEMBERS IDS\n"
                    "       inproc numbers NUMBERS\n");
    return 2;
}
