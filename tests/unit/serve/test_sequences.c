/*
 * Sequences through all protocols: what each request is answered, with a supply in memory.
 */
#include "base/mark.h"
#include "serve/memcached/memcached.h"
#include "support/fake_supply.h"
#include "unit/serve/login.h"
#include "unit/serve/redis_rig.h"

static const struct fake_sequence sequences[] = {
    {.name = "orders", .start = 1, .increment = 1, .subs = true},
    {.name = "down", .start = 10, .increment = -3},
    {.name = "few", .start = 1, .increment = 1, .top = 2},
    {.name = "strict", .start = 1, .increment = 1, .strict = true},
    {.name = "daily", .start = 1, .increment = 1, .daily = true},
};

static struct sequence_table table;
static struct fake_supply supply;
static struct net_service *memcached, *http;
static struct access who; /* asks by another protocol than Redis' */

static int begin(void **state)
{
    struct rig *r = rig_new(NULL);
    struct err e;
    fake_supply_table(&table, 16);
    memset(&supply, 0, sizeof supply);
    supply.table = &table;
    supply.sequence = sequences;
    supply.nsequences = sizeof sequences / sizeof *sequences;
    supply.time_ms = 100 * FAKE_DAY_MS;
    assert_int_equal(issuer_add(&r->serve.issuer, &table.base, "seq:", NULL, 0, &e), ERR_OK);
    r->serve.services[SERVE_REDIS] = r->svc;
    r->serve.services[SERVE_MEMCACHED] = memcached = protocol_memcached.make(&r->serve);
    r->serve.services[SERVE_HTTP] = http = protocol_http.make(&r->serve);
    assert_true(memcached && http);
    *state = r;
    return 0;
}

static int end(void **state)
{
    free(memcached);
    free(http);
    rig_free(*state);
    sequence_table_clear(&table);
    return 0;
}

static int64_t mono(struct rig *r)
{
    return clock_mono_ms(&r->clock);
}

/* Asks by Redis' protocol; what has to wait is served as often as it takes. */
static void check(struct rig *r, const char *words, const char *expected)
{
    enum net_verdict v = rig_ask(r, words);
    for (int i = 0; i < 10 && v == NET_WAIT; i++) {
        fake_supply_serve(&supply, mono(r));
        v = rig_pump(r);
    }
    assert_int_equal(v, NET_MORE);
    rig_expect(r, expected);
    fake_supply_serve(&supply, mono(r));
}

/* The same of another protocol, to the only request of a connection. */
static const char *answer(struct rig *r, struct net_service *svc, struct span request)
{
    static char text[NET_OUT_MAX];
    struct buf out;
    struct net_step step;
    void *session = calloc(1, svc->session_size);
    assert_non_null(session);
    *(struct access *)session = who;
    buf_init(&out, text, sizeof text - 1);
    struct net_turn turn = {.clock = &r->clock, .wall_ms = RIG_MS, .quota = UINT32_MAX};
    for (int i = 0; i < 10; i++) {
        step = svc->serve(svc, session, request, &turn, &out);
        request = span_skip(request, step.used);
        if (step.verdict == NET_DONE && request.n > 0) {
            net_turn_answered(&turn);
            turn.reply_start = out.n;
            continue;
        }
        if (step.verdict != NET_WAIT)
            break;
        if (!step.partial)
            turn.reply_start = out.n;
        fake_supply_serve(&supply, mono(r));
    }
    assert_true(step.verdict == NET_DONE || step.verdict == NET_CLOSE);
    text[out.n] = '\0';
    if (svc->close)
        svc->close(svc, session);
    free(session);
    fake_supply_serve(&supply, mono(r));
    return text;
}

static void mc(struct rig *r, const char *request, const char *expected)
{
    assert_string_equal(answer(r, memcached, span_str(request)), expected);
}

static void web(struct rig *r, const char *path, const char *status, const char *body)
{
    char request[256];
    (void)snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    const char *text = answer(r, http, span_str(request));
    if (!strstr(text, status) || !strstr(text, body))
        fail_msg("%s: expected %s, %s in:\n%s", path, status, body, text);
}

/* ---- Redis ------------------------------------------------------------------------------------
 */

static void redis_counts(void **state)
{
    struct rig *r = *state;
    check(r, "INCR seq:orders", ":1\r\n");
    check(r, "GET seq:orders", "$1\r\n2\r\n");
    check(r, "INCRBY seq:orders 3", ":5\r\n");
    check(r, "LPOP seq:orders 2", "*2\r\n$1\r\n6\r\n$1\r\n7\r\n");
    check(r, "RPOP seq:orders", "$1\r\n8\r\n");
    check(r, "MGET seq:orders other seq:orders:acme", "*3\r\n$1\r\n9\r\n$-1\r\n$1\r\n1\r\n");
    check(r, "MGET seq:orders id:x", rig_ids("*2\r\n$2\r\n10\r\n", 0, 1));
}

static void redis_counts_down(void **state)
{
    struct rig *r = *state;
    check(r, "GET seq:down", "$2\r\n10\r\n");
    check(r, "INCRBY seq:down 4", ":-2\r\n"); /* 7, 4, 1, -2: all are the caller's */
    check(r, "GET seq:down", "$2\r\n-5\r\n");
    check(r, "LPOP seq:down 2", "*2\r\n$2\r\n-8\r\n$3\r\n-11\r\n");
}

#define NO_SUCH "-ERR no such sequence: sidflakectl seq create none makes it\r\n"

static void redis_misses(void **state)
{
    struct rig *r = *state;
    check(r, "GET seq:none", "$-1\r\n");
    check(r, "INCR seq:none", NO_SUCH);
    check(r, "INCRBY seq:none 5", NO_SUCH);
    check(r, "LPOP seq:none", "$-1\r\n");
    check(r, "LPOP seq:none 2", "*-1\r\n");
    check(r, "SPOP seq:none 2", "*0\r\n");
    check(r, "MGET seq:none seq:orders seq:none2", "*3\r\n$-1\r\n$1\r\n1\r\n$-1\r\n");
    check(r, "EXISTS seq:none seq:orders seq:orders", ":2\r\n");
    check(r, "EXISTS seq:few", ":1\r\n");
    check(r, "TYPE seq:none", "+none\r\n");
    check(r, "TYPE seq:orders", "+string\r\n");
    check(r, "TTL seq:none", ":-2\r\n");
    check(r, "TTL seq:down", ":-1\r\n");
    check(r, "GET seq:orders", "$1\r\n2\r\n"); /* who looked has spent none */
    rig_begins(r, "HELLO 3", "%7\r\n");
    check(r, "GET seq:none", "_\r\n");
    check(r, "INCR seq:none", NO_SUCH);
    assert_int_equal(serve_requests(&r->serve, SERVE_REDIS, SERVE_FAILED), 0);
}

/* A server behind would count them. */
static void no_names(struct rig *r)
{
    char text[300];
    (void)snprintf(text, sizeof text, "INCR seq:orders:%0200d", 1);
    rig_begins(r, text, "-ERR expected seq:NAME");
    rig_begins(r, "INCR seq:", "-ERR expected seq:NAME");
    rig_begins(r, "GET seq:#a", "-ERR expected seq:NAME");
    rig_begins(r, "INCR seq:orders:m\xc3\xbcnchen", "-ERR expected seq:NAME");
    rig_begins(r, "SET seq:orders:m\xc3\xbcnchen 1", "-ERR id key ");
}

/* Some are in hand. */
static void more_than_there_are(struct rig *r, unsigned how, const char *told)
{
    supply.how = how;
    r->turn.waited_us = 0;
    assert_int_equal(rig_ask(r, "INCRBY seq:orders 5000"), NET_WAIT);
    fake_supply_serve(&supply, mono(r));
    r->turn.waited_us = r->serve.issuer.max_wait_us;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, told);
    supply.how = 0;
}

static void redis_errors(void **state)
{
    struct rig *r = *state;
    check(r, "INCRBY seq:orders 2000000",
          "-ERR value is not an integer or out of range: expected 1 to 1000000, found 2000000\r\n");
    check(r, "INCRBY seq:orders 0",
          "-ERR value is not an integer or out of range: expected 1 to 1000000, found 0\r\n");
    check(r, "GET seq:a/b",
          "-ERR expected seq:NAME or seq:NAME:SUB, NAME of 1 to 64 letters, digits, '_', '.' and "
          "'-', SUB of 1 to 100 printable bytes; found \"a/b\"\r\n");
    no_names(r);
    check(r, "GET seq:orders:\xff",
          "-ERR expected seq:NAME or seq:NAME:SUB, NAME of 1 to 64 letters, digits, '_', '.' and "
          "'-', SUB of 1 to 100 printable bytes; found none, or more than 200 bytes, or "
          "another byte\r\n");
    check(r, "INCR seq:few", ":1\r\n");
    check(r, "INCRBY seq:few 3", "-ERR used up: up to its max there are at most 2 in a row\r\n");
    check(r, "LPOP seq:few 12", "*2\r\n$1\r\n2\r\n$1\r\n3\r\n"); /* those that there are */
    check(r, "LPOP seq:few 12", "-ERR used up: max 3 was reached\r\n");
    check(r, "INCR seq:few", "-ERR used up: max 3 was reached\r\n");
    check(r, "GET seq:few:sub", "-ERR the sequence few has no subs\r\n");
    check(r, "SET seq:orders 5", "-ERR id key 'seq:orders' is read-only\r\n");
    supply.how = SEQUENCE_AWAY;
    assert_int_equal(rig_ask(r, "GET seq:orders"), NET_WAIT);
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_WAIT);
    r->turn.waited_us = r->serve.issuer.max_wait_us;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r,
               "-TRYAGAIN no number is in hand, and the coordinator grants none: see the log\r\n");
    supply.how = 0;
    check(r, "GET seq:orders", "$1\r\n1\r\n");
    more_than_there_are(r, SEQUENCE_AWAY,
                        "-TRYAGAIN too few numbers are in hand, and the coordinator grants none: "
                        "see the log\r\n");
    more_than_there_are(r, SEQUENCE_SHUT,
                        "-TRYAGAIN too few numbers are in hand, and the pool is closed\r\n");
    assert_int_equal(rig_ask(r, "GET seq:one-more"), NET_WAIT);
    r->turn.waited_us = r->serve.issuer.max_wait_us;
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, "-LOADING no number is in hand: none has come from the coordinator yet\r\n");
}

/* More of sequences.counters would change nothing for those that are new. */
static void who_is_new_hears_of_those_that_are(void **state)
{
    struct rig *r = *state;
    char line[32], *reply = r->mem;
    for (unsigned i = 0; i < 100 && !strstr(reply, "TRYAGAIN"); i++) { /* nobody answers */
        (void)snprintf(line, sizeof line, "GET seq:new%u", i);
        assert_int_equal(rig_ask(r, line), NET_WAIT);
        r->turn.waited_us = r->serve.issuer.max_wait_us;
        assert_int_equal(rig_pump(r), NET_MORE);
        r->mem[r->out.n] = '\0';
    }
    assert_non_null(strstr(reply, " places for what is not known here yet are being asked about"));
}

/* What was put in between is no other's. */
static void redis_in_a_transaction(void **state)
{
    struct rig *r = *state;
    check(r, "MULTI", "+OK\r\n");
    check(r, "INCR seq:strict", "+QUEUED\r\n");
    check(r, "INCR seq:none", "+QUEUED\r\n");
    check(r, "INCR seq:strict", "+QUEUED\r\n");
    check(r, "EXEC", "*3\r\n:1\r\n" NO_SUCH ":2\r\n");
}

/* All of its requests have arrived: those for one number of the same share a call. */
static void a_transactions_strict_ones_are_asked_for_at_once(void **state)
{
    struct rig *r = *state;
    check(r, "INCR seq:strict", ":1\r\n");
    check(r, "MULTI", "+OK\r\n");
    for (int i = 0; i < 3; i++)
        check(r, "INCRBY seq:strict 1", "+QUEUED\r\n"); /* as some clients have INCR */
    assert_int_equal(rig_ask(r, "EXEC"), NET_WAIT);
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, "*3\r\n:2\r\n:3\r\n:4\r\n");
    check(r, "MULTI", "+OK\r\n");
    for (int i = 0; i < 2; i++)
        check(r, "INCRBY seq:strict 20", "+QUEUED\r\n");
    assert_int_equal(rig_ask(r, "EXEC"), NET_WAIT);
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, "*2\r\n:24\r\n:44\r\n");
    assert_true(r->turn.ticket == 0 && r->turn.keys == 0);
    check(r, "MULTI", "+OK\r\n");
    check(r, "INCR seq:strict", "+QUEUED\r\n");
    check(r, "INCR seq:strict", "+QUEUED\r\n");
    check(r, "INCRBY seq:strict 2", "+QUEUED\r\n");
    check(r, "INCR seq:orders", "+QUEUED\r\n");
    check(r, "INCR seq:strict", "+QUEUED\r\n");
    check(r, "EXEC", "*5\r\n:45\r\n:46\r\n:48\r\n:1\r\n:49\r\n");
}

/* All of them had arrived: none waits for a call of its own. Who comes later does. */
static void pipelined_strict_ones_are_asked_for_at_once(void **state)
{
    struct rig *r = *state;
    static const struct span three =
        SPAN("INCR seq:strict\r\nINCR seq:strict\r\nINCR seq:strict\r\n");
    check(r, "INCR seq:strict", ":1\r\n");
    assert_int_equal(rig_send(r, three), NET_WAIT);
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_send(r, SPAN("INCR seq:strict\r\n")), NET_WAIT);
    rig_expect(r, ":2\r\n:3\r\n:4\r\n");
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, ":5\r\n");
    assert_true(r->turn.ticket == 0);
}

static void memcached_ones_likewise(void **state)
{
    struct rig *r = *state;
    mc(r, "incr seq:strict 1\r\n", "1\r\n");
    unsigned calls = supply.takes;
    mc(r, "incr seq:strict 1\r\nincr seq:strict 1\r\nincr seq:strict 1\r\n", "2\r\n3\r\n4\r\n");
    assert_int_equal(supply.takes, calls + 1);
}

/* All keys of a request have arrived with it, be there others of its bytes behind it or not. */
static void keys_of_strict_ones_are_asked_for_at_once(void **state)
{
    struct rig *r = *state;
    check(r, "MGET seq:strict seq:strict#2 id:x", rig_ids("*3\r\n$1\r\n1\r\n$1\r\n2\r\n", 0, 1));
    mc(r, "get seq:strict\r\n", "VALUE seq:strict 0 1\r\n3\r\nEND\r\n");
    unsigned calls = supply.takes;
    mc(r, "get seq:strict#1 seq:strict#2\r\nget seq:strict#1 seq:strict#2\r\n",
       "VALUE seq:strict#1 0 1\r\n4\r\nVALUE seq:strict#2 0 1\r\n5\r\nEND\r\n"
       "VALUE seq:strict#1 0 1\r\n6\r\nVALUE seq:strict#2 0 1\r\n7\r\nEND\r\n");
    assert_int_equal(supply.takes, calls + 1);
    check(r, "MGET seq:strict seq:strict seq:orders seq:strict",
          "*4\r\n$1\r\n8\r\n$1\r\n9\r\n$1\r\n1\r\n$2\r\n10\r\n"); /* none was a gap */
    assert_true(r->turn.ticket == 0 && r->turn.keys == 0);
}

/* Nor is one of another name behind them answered by what they asked for. */
static void a_key_of_another_name_has_no_part_in_a_ticket(void **state)
{
    struct rig *r = *state;
    struct names_entry other = {0};
    check(r, "INCR seq:strict", ":1\r\n");
    assert_int_equal(rig_ask(r, "MGET seq:strict seq:strict"), NET_WAIT);
    assert_true(r->turn.ticket > 0 && r->turn.keys == 1);
    int64_t ticket = r->turn.ticket;
    r->turn.whose = &other; /* as if that one's, whose rights are gone, were passed over */
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_WAIT);
    assert_true(r->turn.ticket > ticket);
    fake_supply_serve(&supply, mono(r));
    (void)rig_pump(r);
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_MORE);
}

/* Of others that stand behind it nothing is known: they are asked for when it is their turn. */
static void other_requests_are_not_asked_for_with_strict_ones(void **state)
{
    struct rig *r = *state;
    check(r, "INCR seq:strict", ":1\r\n");
    assert_int_equal(rig_send(r, SPAN("INCR seq:strict\r\nINCRBY seq:strict 2\r\n")), NET_WAIT);
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_WAIT);
    rig_expect(r, ":2\r\n");
    fake_supply_serve(&supply, mono(r));
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, ":4\r\n");
}

/* Who asks for more by keys than there are has those that there are. */
static void of_several_keys_the_last_ones_are_missing(void **state)
{
    struct rig *r = *state;
    check(r, "MGET seq:few seq:few", "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
    check(r, "MGET seq:few seq:few seq:orders", "*3\r\n$1\r\n3\r\n$-1\r\n$1\r\n1\r\n");
    check(r, "MGET seq:few seq:orders", "-ERR used up: max 3 was reached\r\n");
    mc(r, "get seq:orders seq:few\r\n", "VALUE seq:orders 0 1\r\n2\r\nEND\r\n");
    mc(r, "get seq:few seq:orders\r\n", "CLIENT_ERROR used up: max 3 was reached\r\n");
    check(r, "INCR seq:orders", ":3\r\n"); /* none was lost */
}

/* So many answers of the kind that says why are not so many gaps. */
static void refused_ones_that_share_a_ticket_ask_once(void **state)
{
    struct rig *r = *state;
    struct sequence_event e;
    int64_t asked = 0;
    check(r, "INCR seq:strict", ":1\r\n");
    assert_int_equal(rig_send(r, SPAN("INCR seq:strict\r\nINCR seq:strict\r\n")), NET_WAIT);
    r->turn.waited_us = r->serve.issuer.max_wait_us;
    assert_int_equal(rig_pump(r), NET_WAIT);
    r->turn.waited_us = r->serve.issuer.max_wait_us;
    assert_int_equal(rig_pump(r), NET_MORE);
    while (sequence_table_event(&table, &e))
        asked += e.want.count;
    assert_int_equal(asked, 2);
}

static void redis_info(void **state)
{
    struct rig *r = *state;
    check(r, "INCRBY seq:orders 3", ":3\r\n");
    check(r, "INFO sequences",
          "$111\r\n# "
          "sequences\r\norders:given=3,left=10,last=13,until_max=9007199254740991,block=20,"
          "counters=1,"
          "parked=1,refused=0"
          "\r\n\r\n");
}

static uint64_t parked(struct rig *r, const char *name)
{
    const struct names_entry *e = names_find(&r->serve.issuer.names, span_str(name));
    return ((const struct sequence_generator *)e->generator)->parked;
}

/* However often it has to. */
static void who_has_to_wait_is_counted_once_for_each_name(void **state)
{
    struct rig *r = *state;
    supply.largest = 1;
    check(r, "LPOP seq:orders 4", "*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n");
    assert_int_equal(parked(r, "seq:orders"), 1);
    check(r, "MGET seq:down seq:down seq:down seq:few seq:few",
          "*5\r\n$2\r\n10\r\n$1\r\n7\r\n$1\r\n4\r\n$1\r\n1\r\n$1\r\n2\r\n");
    assert_int_equal(parked(r, "seq:down"), 1);
    assert_int_equal(parked(r, "seq:few"), 1);
    check(r, "EXISTS seq:orders:a seq:orders:b", ":2\r\n");
    assert_int_equal(parked(r, "seq:orders:a"), 1);
    assert_int_equal(parked(r, "seq:orders:b"), 1);
}

/* A request that comes again and again is known by its bytes: of a name that was closed it finds
 * nothing any more. */
static void a_request_that_is_known_again_is_no_other_names(void **state)
{
    struct rig *r = *state;
    char words[64];
    check(r, "GET seq:orders:a", "$1\r\n1\r\n");
    check(r, "GET seq:orders:a", "$1\r\n2\r\n");
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(words, sizeof words, "INCR seq:orders:b%u", i);
        check(r, words, ":1\r\n");
        if (supply.forgets > 0)
            serve_forget(&r->serve);
    }
    assert_true(supply.forgets > 20);
    check(r, "GET seq:orders:a", "$2\r\n31\r\n"); /* its own, behind a gap */
}

/* And of one with periods it finds the present one, whichever that is. */
static void a_request_that_is_known_again_is_of_the_present_period(void **state)
{
    struct rig *r = *state;
    char expected[64];
    for (int day = 100; day < 103; day++) {
        for (int i = 1; i < 300; i++) { /* so many that blocks are large */
            int n = i < 10 ? 1 : i < 100 ? 2 : 3;
            (void)snprintf(expected, sizeof expected, "$%d\r\n%d\r\n", n, i++);
            check(r, "GET seq:daily", expected);
            n = i < 10 ? 1 : i < 100 ? 2 : 3;
            (void)snprintf(expected, sizeof expected, "VALUE seq:daily 0 %d\r\n%d\r\nEND\r\n", n,
                           i);
            mc(r, "get seq:daily\r\n", expected);
        }
        supply.time_ms += FAKE_DAY_MS;
        sequence_table_time(&table, supply.time_ms, mono(r));
    }
}

/* ---- memcached --------------------------------------------------------------------------------
 */

static void memcached_counts(void **state)
{
    struct rig *r = *state;
    mc(r, "get seq:orders\r\n", "VALUE seq:orders 0 1\r\n1\r\nEND\r\n");
    mc(r, "incr seq:orders 1\r\n", "2\r\n");
    mc(r, "incr seq:orders 5\r\n", "7\r\n");
    mc(r, "mg seq:orders v\r\n", "VA 1\r\n8\r\n");
    mc(r, "mg seq:orders s\r\n", "HD s1\r\n");
    mc(r, "ma seq:orders D2 v\r\n", "VA 2\r\n10\r\n");
    mc(r, "get seq:orders#1 seq:none seq:orders#2\r\n",
       "VALUE seq:orders#1 0 2\r\n11\r\nVALUE seq:orders#2 0 2\r\n12\r\nEND\r\n");
    mc(r, "get seq:down\r\n", "VALUE seq:down 0 2\r\n10\r\nEND\r\n");
    mc(r, "incr seq:down 5\r\n", "-5\r\n");
    mc(r, "gets seq:down\r\n", "VALUE seq:down 0 2 9223372036854775800\r\n-8\r\nEND\r\n");
}

/* Unlike IDs, of which one stands for all: what counts is how far it has got. */
static void numbers_that_nobody_is_told_are_counted(void **state)
{
    struct rig *r = *state;
    mc(r, "incr seq:orders 5 noreply\r\nma seq:orders D7 q\r\nincr seq:orders 1\r\n", "13\r\n");
}

/* As for Redis above. */
static void memcached_knows_again_no_other_names(void **state)
{
    struct rig *r = *state;
    char request[64];
    mc(r, "get seq:orders:a\r\n", "VALUE seq:orders:a 0 1\r\n1\r\nEND\r\n");
    mc(r, "get seq:orders:a\r\n", "VALUE seq:orders:a 0 1\r\n2\r\nEND\r\n");
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(request, sizeof request, "incr seq:orders:b%u 1\r\n", i);
        mc(r, request, "1\r\n");
        if (supply.forgets > 0)
            serve_forget(&r->serve);
    }
    mc(r, "get seq:orders:a\r\n", "VALUE seq:orders:a 0 2\r\n31\r\nEND\r\n");
}

static void memcached_misses(void **state)
{
    struct rig *r = *state;
    mc(r, "get seq:none\r\n", "END\r\n");
    mc(r, "incr seq:none 1\r\n", "NOT_FOUND\r\n");
    mc(r, "touch seq:none 1\r\n", "NOT_FOUND\r\n");
    mc(r, "touch seq:orders 1\r\n", "TOUCHED\r\n");
    mc(r, "mg seq:none v\r\n", "EN\r\n");
    mc(r, "mg seq:none s\r\n", "EN\r\n");
    mc(r, "mg seq:none v q\r\nmn\r\n", "MN\r\n");
    mc(r, "ma seq:none v\r\n", "NF\r\n");
    mc(r, "ma seq:none N0 v\r\n", "NS\r\n");
    mc(r, "get seq:a/b\r\n",
       "CLIENT_ERROR expected seq:NAME or seq:NAME:SUB, NAME of 1 to 64 "
       "letters, digits, '_', '.' and '-', SUB of 1 to 100 printable bytes; found "
       "\"a/b\"\r\n");
    assert_int_equal(serve_requests(&r->serve, SERVE_MEMCACHED, SERVE_INVALID), 1);
    assert_int_equal(serve_requests(&r->serve, SERVE_MEMCACHED, SERVE_FAILED), 0);
    mc(r, "incr seq:orders 2000000\r\n",
       "CLIENT_ERROR invalid numeric delta argument: expected 1 to 1000000\r\n");
}

static const char *binary(struct rig *r, uint8_t opcode, const char *key, uint64_t delta)
{
    char packet[128] = {0};
    size_t n = strlen(key), extras = opcode == 0x05 ? 20 : 0;
    packet[0] = (char)0x80;
    packet[1] = (char)opcode;
    packet[3] = (char)n;
    packet[4] = (char)extras;
    packet[11] = (char)(n + extras);
    for (int i = 0; opcode == 0x05 && i < 8; i++)
        packet[24 + i] = (char)(delta >> (56 - 8 * i));
    if (opcode == 0x05)
        memset(packet + 40, 0xff, 4);
    memcpy(packet + 24 + extras, key, n);
    return answer(r, memcached, span_of(packet, 24 + extras + n));
}

static void memcached_binary(void **state)
{
    struct rig *r = *state;
    assert_memory_equal(binary(r, 0x00, "seq:orders", 0) + 28, "1", 1);
    assert_int_equal(binary(r, 0x05, "seq:orders", 2)[31], 3);
    assert_int_equal(binary(r, 0x00, "seq:none", 0)[7], MCB_NOT_FOUND);
    assert_int_equal(binary(r, 0x05, "seq:none", 1)[7], MCB_NOT_FOUND);
    assert_string_equal(binary(r, 0x09, "seq:none", 0), "");
    assert_memory_equal(binary(r, 0x00, "seq:down", 0) + 28, "10", 2);
    assert_memory_equal(binary(r, 0x05, "seq:down", 5) + 24, "\xff\xff\xff\xff\xff\xff\xff\xfb", 8);
}

static void memcached_stats(void **state)
{
    struct rig *r = *state;
    mc(r, "incr seq:orders 3\r\n", "3\r\n");
    mc(r, "stats sequences\r\n",
       "STAT orders:given 3\r\nSTAT orders:left 10\r\nSTAT orders:last 13\r\n"
       "STAT orders:until_max 9007199254740991\r\n"
       "STAT orders:block 20\r\nSTAT orders:counters 1\r\n"
       "STAT orders:parked 1\r\nSTAT orders:refused 0\r\nEND\r\n");
}

/* Their names, too, are for those alone who may have numbers of them. */
static void a_user_sees_what_he_may_have(void **state)
{
    struct rig *r = *state;
    mc(r, "incr seq:orders 3\r\n", "3\r\n");
    mc(r, "incr seq:down 1\r\n", "10\r\n");
    login_begin(&r->serve);
    const struct user *bob = auth_user_named(r->serve.auth, SPAN("bob"));
    who = (struct access){.mode = ACCESS_REQUIRED, .user = bob->id};
    const char *text = answer(r, memcached, SPAN("stats sequences\r\n"));
    assert_non_null(strstr(text, "STAT orders:given 3\r\n"));
    assert_null(strstr(text, "down"));
    rig_session(r)->access = who;
    assert_int_equal(rig_ask(r, "INFO sequences"), NET_MORE);
    r->mem[r->out.n] = '\0';
    assert_non_null(strstr(r->mem, "orders:given=3,"));
    assert_null(strstr(r->mem, "down"));
    who = (struct access){.mode = ACCESS_OFF};
    login_end(&r->serve);
}

/* ---- HTTP -------------------------------------------------------------------------------------
 */

static void http_counts(void **state)
{
    struct rig *r = *state;
    web(r, "/v1/seq/orders", " 200 ", "\r\n\r\n1\n");
    web(r, "/v1/seq/orders?n=3", " 200 ", "\r\n\r\n2\n3\n4\n");
    web(r, "/v1/seq/orders?n=3&block=1", " 200 ", "\r\n\r\n7\n");
    web(r, "/v1/seq/orders:acme", " 200 ", "\r\n\r\n1\n");
    web(r, "/v1/seq/orders:acme?n=2&block=0", " 200 ", "\r\n\r\n2\n3\n");
    web(r, "/v1/seq/down?n=5", " 200 ", "\r\n\r\n10\n7\n4\n1\n-2\n");
    web(r, "/v1/seq/none", " 404 ", "no such sequence: sidflakectl seq create none makes it\n");
    web(r, "/v1/seq/none?n=4&block=1", " 404 ", "no such sequence");
    web(r, "/v1/seq/orders?n=1000001&block=1", " 400 ", "expected n from 1 to 1000000");
    web(r, "/v1/seq/orders?n=500000&block=1", " 200 ", "\n");
    web(r, "/v1/seq/a%2Fb", " 400 ", "expected seq:NAME");
    web(r, "/v1/seq/few?n=4", " 200 ", "\r\n\r\n1\n2\n3\n"); /* as many as there are */
    web(r, "/v1/seq/few?n=4", " 410 Gone\r\n", "used up");
    web(r, "/v1/id/x?n=2&block=1", " 200 ", "\n");
}

static void http_tells_one(void **state)
{
    struct rig *r = *state;
    web(r, "/v1/seq/orders?n=3&block=1", " 200 ", "\r\n\r\n3\n");
    web(r, "/v1/seq/orders/status", " 200 ",
        "{\"given\":3,\"left\":10,\"next\":4,\"last\":13,\"block_size\":20}\n");
    web(r, "/v1/seq/orders", " 200 ", "\r\n\r\n4\n");
    web(r, "/v1/seq/orders/status", " 200 ",
        "{\"given\":4,\"left\":29,\"next\":5,\"last\":33,\"block_size\":20}\n");
    web(r, "/v1/seq/none/status", " 404 ", "no such sequence");
    web(r, "/v1/id/x/status", " 200 ", "\n"); /* a name of IDs like any other */
}

static void http_takes_a_date(void **state)
{
    struct rig *r = *state;
    web(r, "/v1/seq/daily", " 200 ", "\r\n\r\n1\n");
    web(r, "/v1/seq/daily?date=d100", " 200 ", "\r\n\r\n2\n");
    web(r, "/v1/seq/daily?date=d99", " 200 ", "\r\n\r\n1\n");
    web(r, "/v1/seq/daily?date=d99999999999999", " 400 ", "expected the date of a period");
    web(r, "/v1/seq/a%2Fb?date=x", " 400 ", "expected seq:NAME");
    unsigned opens = supply.opens;
    web(r, "/v1/seq/daily?date=x", " 400 ",
        "expected the date of a period, such as 2026-11-22; found \"x\"");
    web(r, "/v1/seq/daily/status?date=x", " 400 ", "expected the date of a period");
    assert_int_equal(supply.opens, opens); /* the coordinator never hears of it */
    web(r, "/v1/seq/orders?date=d99", " 400 ", "the sequence orders has no period \"d99\"");
    web(r, "/v1/id/x?date=d99", " 404 ", "expected");
}

/* ---- what observes ----------------------------------------------------------------------------
 */

static void pages_show_sequences(void **state)
{
    static char page[1 << 20];
    struct rig *r = *state;
    struct buf out;
    check(r, "INCRBY seq:orders 3", ":3\r\n");
    table.told.takes[SEQUENCE_TAKE_GRANTED] = 7;
    buf_init(&out, page, sizeof page - 1);
    serve_put_metrics(&r->serve, &out, false);
    page[out.n] = '\0';
    static const char *const lines[] = {
        "sidflake_sequence_given_total{name=\"orders\"} 3\n",
        "sidflake_sequence_takes_total{outcome=\"granted\"} 7\n",
        "sidflake_sequence_takes_total{outcome=\"looked\"} 0\n",
        "sidflake_sequence_take_seconds_bucket{le=\"+Inf\"} 0\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(page, lines[i]))
            fail_msg("expected \"%s\" in:\n%s", lines[i], page);
    const char *head = strstr(page, "# TYPE sidflake_sequence_takes");
    assert_true(head && !strstr(head + 1, "# TYPE sidflake_sequence_takes counter"));
    assert_null(strstr(page, "prefix=\"seq:\""));
    buf_init(&out, page, sizeof page - 1);
    serve_put_status_json(&r->serve, &out);
    page[out.n] = '\0';
    assert_non_null(strstr(page, "\"sequences\":[{\"name\":\"orders\",\"given\":3,"));
}

static bool status_has(struct rig *r, const char *text)
{
    static char page[1 << 20];
    struct buf out;
    buf_init(&out, page, sizeof page - 1);
    serve_put_status_json(&r->serve, &out);
    page[out.n] = '\0';
    return strstr(page, text);
}

/* Nor are reads that missed too many beside them. */
static void numbers_are_no_ids(void **state)
{
    struct rig *r = *state;
    check(r, "INCRBY seq:orders 150", ":150\r\n");
    assert_true(status_has(r, "\"issued_total\":0,\"exhausted_total\":0"));
    assert_true(status_has(r, "\"ids_issued\":0,"));
    r->serve.requests[SERVE_REDIS][0][SERVE_MISS] = 140;
    assert_false(status_has(r, "keys that are no IDs"));
    r->serve.requests[SERVE_REDIS][0][SERVE_MISS] = 151;
    assert_true(status_has(r, "keys that are no IDs"));
}

static void none_was_asked_for(void **state)
{
    struct rig *r = *state;
    for (unsigned i = 0; i < 4; i++)
        rig_begins(r, "GET id:x", "$");
    check(r, "EXISTS id:x", ":1\r\n");
    assert_null(table.place);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(redis_counts),
        TEST(redis_counts_down),
        TEST(redis_misses),
        TEST(redis_errors),
        TEST(who_is_new_hears_of_those_that_are),
        TEST(redis_in_a_transaction),
        TEST(a_transactions_strict_ones_are_asked_for_at_once),
        TEST(pipelined_strict_ones_are_asked_for_at_once),
        TEST(keys_of_strict_ones_are_asked_for_at_once),
        TEST(a_key_of_another_name_has_no_part_in_a_ticket),
        TEST(memcached_ones_likewise),
        TEST(other_requests_are_not_asked_for_with_strict_ones),
        TEST(of_several_keys_the_last_ones_are_missing),
        TEST(refused_ones_that_share_a_ticket_ask_once),
        TEST(redis_info),
        TEST(who_has_to_wait_is_counted_once_for_each_name),
        TEST(a_request_that_is_known_again_is_no_other_names),
        TEST(a_request_that_is_known_again_is_of_the_present_period),
        TEST(memcached_counts),
        TEST(numbers_that_nobody_is_told_are_counted),
        TEST(memcached_knows_again_no_other_names),
        TEST(memcached_misses),
        TEST(memcached_binary),
        TEST(memcached_stats),
        TEST(a_user_sees_what_he_may_have),
        TEST(http_counts),
        TEST(http_tells_one),
        TEST(http_takes_a_date),
        TEST(pages_show_sequences),
        TEST(numbers_are_no_ids),
        TEST(none_was_asked_for),
    };
    return cmocka_run_group_tests_name("serve/sequences", tests, NULL, NULL);
}
