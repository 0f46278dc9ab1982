/* Sessions that go from one program to the next. */
#include "unit/serve/redis_rig.h"

static char packed_mem[128 << 10];

static struct span pack(struct rig *r)
{
    struct buf b;
    buf_init(&b, packed_mem, sizeof packed_mem);
    assert_true(r->svc->pack(r->svc, r->session, &b));
    assert_false(b.failed);
    return buf_span(&b);
}

/* The session in another connection, with the input and output that this one has. */
static void carry(struct rig *r)
{
    struct span packed = pack(r);
    struct rds_session *old = r->session;
    rig_connect(r);
    assert_true(r->svc->unpack(r->svc, r->session, packed));
    r->svc->close(r->svc, old);
    free(old);
}

static void what_a_client_has_said_goes_over(void **state)
{
    struct rig *r = *state;
    carry(r); /* before its first request */
    rig_begins(r, "HELLO 3", "%7");
    rig_check(r, "CLIENT SETNAME me", "+OK\r\n");
    rig_check(r, "SELECT 9", "+OK\r\n");
    carry(r);
    rig_check(r, "CLIENT GETNAME", "$2\r\nme\r\n");
    rig_check(r, "CLIENT ID", ":1\r\n");
    assert_int_equal(rig_session(r)->db, 9);
    assert_int_equal(rig_session(r)->proto, 3);
    assert_true(rig_session(r)->since_ms == RIG_MS);
}

static void a_client_id_is_given_out_once(void **state)
{
    struct rig *r = *state;
    rig_check(r, "PING", "+PONG\r\n");
    rig_session(r)->id = 40;
    ((struct rds_service *)(void *)r->svc)->clients = 0;
    carry(r);
    rig_disconnect(r);
    rig_connect(r);
    rig_check(r, "CLIENT ID", ":41\r\n");
}

/* What it has said to the upstream, which has to be there still. */
static void what_was_said_to_the_upstream_goes_over(void **state)
{
    struct rig *r = *state;
    const struct rds_there said = {.multi = true,
                                   .watching = true,
                                   .lapsed = true,
                                   .news = true,
                                   .mute = RDS_MUTE,
                                   .asked = 3,
                                   .unsaid = 2};
    const struct rds_rest rest = {.swallow = {.args_left = 7, .bytes_left = 9},
                                  .passed_on = true,
                                  .owed = true,
                                  .argc = 2000,
                                  .ranges = 2,
                                  .key = {{1, 1, 1}, {5, 1999, 2}}};
    rig_check(r, "PING", "+PONG\r\n");
    rig_session(r)->there = calloc(1, sizeof said);
    assert_non_null(rig_session(r)->there);
    *rig_session(r)->there = said;
    rig_session(r)->rest = calloc(1, sizeof rest);
    assert_non_null(rig_session(r)->rest);
    *rig_session(r)->rest = rest;
    rig_session(r)->passes = true;
    r->svc->upstream = (struct upstream *)(void *)r; /* that it is there is all that is asked */
    carry(r);
    const struct rds_there *t = rig_session(r)->there;
    assert_true(t && rig_session(r)->passes);
    assert_true(t->multi && t->watching && t->lapsed && t->news);
    assert_false(rig_session(r)->watches); /* which is of who has no server behind */
    assert_false(t->ids || t->tunnel || t->merge);
    assert_int_equal(t->mute, RDS_MUTE);
    assert_int_equal(t->asked, 3);
    assert_int_equal(t->unsaid, 2);
    assert_memory_equal(rig_session(r)->rest, &rest, sizeof rest);
    r->svc->upstream = NULL;
    struct span packed = pack(r);
    rig_disconnect(r);
    rig_connect(r);
    assert_false(r->svc->unpack(r->svc, r->session, packed));
}

/* To a server behind the session has said no more than this: it is still what that does. */
static void who_is_only_mute_stays_mute(void **state)
{
    static const uint8_t mute[] = {RDS_MUTE, RDS_MUTE_NEXT};
    struct rig *r = *state;
    r->svc->upstream = (struct upstream *)(void *)r; /* that it is there is all that is asked */
    for (size_t i = 0; i < sizeof mute; i++) {
        rig_disconnect(r);
        rig_connect(r);
        rig_session(r)->there = calloc(1, sizeof *rig_session(r)->there);
        assert_non_null(rig_session(r)->there);
        rig_session(r)->there->mute = mute[i];
        carry(r);
        assert_non_null(rig_session(r)->there);
        assert_int_equal(rig_session(r)->there->mute, mute[i]);
    }
    r->svc->upstream = NULL;
}

/* Nor is an error told, when the rest of its request comes, to who wanted no reply to it. */
static void what_is_owed_for_half_a_request_goes_over(void **state)
{
    const struct rds_rest rest = {.swallow = {.args_left = 7, .bytes_left = 9},
                                  .passed_on = true,
                                  .argc = 2000,
                                  .ranges = 1,
                                  .key = {{1, 1, 1}}};
    struct rig *r = *state;
    r->svc->upstream = (struct upstream *)(void *)r;
    for (int owed = 0; owed < 2; owed++) {
        rig_disconnect(r);
        rig_connect(r);
        rig_session(r)->there = calloc(1, sizeof *rig_session(r)->there);
        rig_session(r)->rest = calloc(1, sizeof rest);
        assert_true(rig_session(r)->there && rig_session(r)->rest);
        rig_session(r)->there->mute = owed ? RDS_LOUD : RDS_MUTE;
        *rig_session(r)->rest = rest;
        rig_session(r)->rest->owed = owed;
        carry(r);
        assert_true(rig_session(r)->rest && rig_session(r)->rest->passed_on);
        assert_int_equal(rig_session(r)->rest->owed, owed);
    }
    r->svc->upstream = NULL;
}

/* Whether a session that was made by words, with a server behind or without, goes to a program that
 * has one or has none. */
static bool goes_over(struct rig *r, const char *const words[4], bool had, bool has)
{
    struct upstream *behind = (struct upstream *)(void *)r; /* that it is there is all */
    rig_disconnect(r);
    rig_connect(r);
    for (size_t i = 0; i < 4 && words[i]; i++)
        assert_int_equal(rig_ask(r, words[i]), NET_MORE);
    r->svc->upstream = had ? behind : NULL;
    struct span packed = pack(r);
    rig_disconnect(r);
    rig_connect(r);
    r->svc->upstream = has ? behind : NULL;
    bool ok = r->svc->unpack(r->svc, r->session, packed);
    r->svc->upstream = NULL;
    return ok;
}

/* What is in the middle of something when a server behind comes or is gone. */
static void what_was_begun_without_a_server_ends_where_one_comes(void **state)
{
    static const char *const amid[][4] = {
        {"MULTI"},
        {"MULTI", "INCR id:a"},
        {"MULTI", "NONSENSE"},
        {"MULTI", "SET k 1"},
        {"WATCH k"},
        {"WATCH id:a k"},
        {"WATCH id:a", "WATCH k"},
        {"WATCH k", "MULTI", "PING"},
        {"SUBSCRIBE c"},
        {"PSUBSCRIBE c*"},
        {"SSUBSCRIBE c"},
        {"HELLO 3", "SUBSCRIBE c", "GET id:a"},
    };
    static const char *const idle[][4] = {
        {NULL},
        {"GET id:a"},
        {"GET k"},
        {"HELLO 3", "SELECT 9", "CLIENT SETNAME me"},
        {"WATCH id:a"},
        {"WATCH k", "UNWATCH"},
        {"WATCH k", "RESET"},
        {"WATCH k", "MULTI", "EXEC"},
        {"WATCH k", "MULTI", "DISCARD"},
        {"MULTI", "INCR id:a", "EXEC"},
        {"MULTI", "NONSENSE", "EXEC"},
        {"SUBSCRIBE c", "UNSUBSCRIBE c"},
    };
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof amid / sizeof *amid; i++) {
        assert_true(goes_over(r, amid[i], false, false));
        assert_false(goes_over(r, amid[i], false, true));
    }
    assert_true(goes_over(r, amid[0], true, true));
    assert_false(goes_over(r, amid[0], true, false));
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++)
        for (int k = 0; k < 4; k++)
            assert_true(goes_over(r, idle[i], k & 1, k & 2));
}

/* An MGET of IDs and others that waits for the next millisecond with a part of its reply written,
 * and with a server behind would be begun anew. */
static void a_reply_ends_where_it_was_begun(void **state)
{
    struct rig *r = *state;
    char expected[128];
    (void)snprintf(expected, sizeof expected, "*2\r\n$11\r\n%llu\r\n$-1\r\n",
                   (unsigned long long)layout_compose(&layout_usual, 1001, RIG_WORKER, 0));
    r->serve.issuer.batch = 1024;
    rig_check(r, "INCRBY id:a 1024", rig_integer(1023));
    assert_int_equal(rig_ask(r, "MGET id:a k"), NET_QUEUE);
    assert_true(r->step.partial);
    r->svc->upstream = (struct upstream *)(void *)r; /* it is not asked */
    rig_at(r, 1);
    assert_int_equal(rig_pump(r), NET_MORE);
    rig_expect(r, expected);
    r->svc->upstream = NULL;
}

static void keys_that_are_watched_still_are(void **state)
{
    struct rig *r = *state;
    rig_check(r, "WATCH k", "+OK\r\n");
    carry(r);
    assert_true(rig_session(r)->watches);
    assert_null(rig_session(r)->there);
}

static void a_transaction_goes_on(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    carry(r);
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    carry(r);
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    carry(r);
    rig_check(r, "EXEC", rig_ids("*2\r\n", 0, 2));
    rig_check(r, "MULTI", "+OK\r\n");
    rig_begins(r, "NONSENSE", "-ERR unknown");
    carry(r);
    rig_begins(r, "EXEC", "-EXECABORT");
}

/* What is refused behind the exchange has an error in its own place, not in that of all. */
static void an_exec_goes_on_with_a_request_that_is_refused(void **state)
{
    struct rig *r = *state;
    int64_t last;
    r->serve.issuer.batch = 1024;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "INCRBY id:a 1024", "+QUEUED\r\n");
    rig_check(r, "MGET id:a", "+QUEUED\r\n");
    assert_int_equal(rig_ask(r, "EXEC"), NET_QUEUE);
    carry(r);
    assert_true(snowflake_revoke(&r->gen.ids, 1, &last));
    r->turn.waited_us = r->serve.issuer.max_wait_us;
    assert_int_equal(rig_pump(r), NET_MORE);
    const char *head = rig_both("*2\r\n", rig_integer(1023));
    assert_memory_equal(r->out.p, head, strlen(head));
    assert_memory_equal(r->out.p + strlen(head), "-LOADING ", 9);
}

/* It waits for the next millisecond with a part of its reply written. */
static void an_exec_under_way_goes_on(void **state)
{
    struct rig *r = *state;
    r->serve.issuer.batch = 1024;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "INCRBY id:a 1000", "+QUEUED\r\n");
    rig_check(r, "LPOP id:a 100", "+QUEUED\r\n");
    rig_check(r, "PING", "+QUEUED\r\n");
    assert_int_equal(rig_ask(r, "EXEC"), NET_QUEUE);
    assert_true(r->step.partial);
    carry(r);
    rig_at(r, 1);
    assert_int_equal(rig_pump(r), NET_MORE);
    char expected[8192], first[96];
    (void)snprintf(first, sizeof first, "*3\r\n%s*100\r\n", rig_integer(999));
    struct buf b;
    buf_init(&b, expected, sizeof expected - 1);
    buf_put_str(&b, rig_ids(first, 1000, 24));
    for (uint32_t i = 0; i < 76; i++)
        resp_put_bulk_u64(&b, layout_compose(&layout_usual, 1001, RIG_WORKER, i));
    buf_put_str(&b, "+PONG\r\n");
    expected[b.n] = '\0';
    rig_expect(r, expected);
}

static void subscriptions_go_over(void **state)
{
    struct rig *r = *state;
    rig_begins(r, "SUBSCRIBE one two", "*3\r\n");
    rig_begins(r, "PSUBSCRIBE p*", "*3\r\n");
    carry(r);
    assert_int_equal(rds_subs_count(r->session, RDS_CHANNEL), 2);
    assert_int_equal(rds_subs_count(r->session, RDS_PATTERN), 1);
    rig_check(r, "UNSUBSCRIBE two", "*3\r\n$11\r\nunsubscribe\r\n$3\r\ntwo\r\n:2\r\n");
    rig_begins(r, "SUBSCRIBE three", "*3\r\n$9\r\nsubscribe\r\n$5\r\nthree\r\n:3\r\n");
}

static void a_request_half_read_through_goes_on(void **state)
{
    struct rig *r = *state;
    static char big[2 * NET_IN_MAX];
    int n = snprintf(big, sizeof big, "*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$%u\r\n", NET_IN_MAX);
    memset(big + n, 'x', sizeof big - (size_t)n);
    assert_int_equal(rig_send(r, span_of(big, NET_IN_MAX)), NET_MORE);
    assert_non_null(rig_session(r)->rest);
    carry(r);
    assert_int_equal(rig_send(r, span_of(big, (size_t)n)), NET_MORE);
    r->out.n = r->turn.reply_start = 0;
    carry(r);
    assert_int_equal(rig_send(r, SPAN("\r\n$2")), NET_MORE); /* within a length line */
    carry(r);
    assert_int_equal(rig_send(r, SPAN("\r\nxx\r\n")), NET_MORE);
    assert_null(rig_session(r)->rest);
    rig_check(r, "PING", "+PONG\r\n");
}

/* Cut short, or of another version, it is refused, and nothing leaks. */
static void what_is_not_understood_is_refused(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    struct span whole = pack(r);
    for (size_t n = 0; n <= whole.n; n++) {
        rig_disconnect(r);
        rig_connect(r);
        assert_true(r->svc->unpack(r->svc, r->session, span_of(whole.p, n)) == (n == whole.n));
    }
    rig_disconnect(r);
    rig_connect(r);
    packed_mem[0]++;
    assert_false(r->svc->unpack(r->svc, r->session, whole));
}

/* What would be found there by the MULTI after it. */
static void requests_of_no_transaction_are_refused(void **state)
{
    struct rig *r = *state;
    uint64_t multi, none = 0;
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    struct span whole = pack(r);
    /* behind it: dirty, the length of the requests, and these, of which GET is the first word */
    char *requests = memmem(packed_mem, whole.n, "*2\r\n$3\r\nGET", 11);
    assert_non_null(requests);
    char *at = requests - 3 * sizeof multi;
    memcpy(&multi, at, sizeof multi);
    assert_int_equal(multi, 1);
    memcpy(at, &none, sizeof none);
    rig_disconnect(r);
    rig_connect(r);
    assert_false(r->svc->unpack(r->svc, r->session, whole));
}

/* A name that ends behind them, and a kind that is none. */
static void subscriptions_that_are_not_whole_are_refused(void **state)
{
    struct rig *r = *state;
    rig_begins(r, "SUBSCRIBE one two", "*3\r\n");
    struct span whole = pack(r);
    char *two = memmem(packed_mem, whole.n, "two", 3);
    assert_non_null(two);
    for (int i = 1; i <= 3; i++) {
        rig_disconnect(r);
        rig_connect(r);
        two[-i] = (char)(two[-i] + RDS_CHANNELS); /* the first that is none */
        assert_false(r->svc->unpack(r->svc, r->session, whole));
        two[-i] = (char)(two[-i] - RDS_CHANNELS);
    }
    rig_disconnect(r);
    rig_connect(r);
    assert_true(r->svc->unpack(r->svc, r->session, whole));
}

/* A channel may have no name, or fill all the place that there is for names. */
static void subscriptions_of_any_length_go_over(void **state)
{
    static char line[5 << 10];
    const uint64_t most = 4096;
    struct rig *r = *state;
    assert_int_equal(rig_send(r, SPAN("*2\r\n$9\r\nSUBSCRIBE\r\n$0\r\n\r\n")), NET_MORE);
    rig_expect(r, "*3\r\n$9\r\nsubscribe\r\n$0\r\n\r\n:1\r\n");
    carry(r);
    assert_int_equal(rds_subs_count(r->session, RDS_CHANNEL), 1);
    rig_check(r, "RESET", "+RESET\r\n");
    (void)snprintf(line, sizeof line, "SUBSCRIBE %0*d", (int)most - 3, 0);
    rig_begins(r, line, "*3\r\n");
    carry(r);
    assert_int_equal(rds_subs_count(r->session, RDS_CHANNEL), 1);
    /* | bytes of all names | kind | length: 2 bytes | name |; of one byte more */
    struct span whole = pack(r);
    char *at = memmem(packed_mem, whole.n, &most, sizeof most);
    assert_non_null(at);
    memcpy(at, &(uint64_t){most + 1}, sizeof most);
    at += sizeof most;
    at[2]++;
    at += 3;
    memmove(at + 1, at, whole.n - (size_t)(at - packed_mem));
    rig_disconnect(r);
    rig_connect(r);
    assert_false(r->svc->unpack(r->svc, r->session, span_of(packed_mem, whole.n + 1)));
}

/* ---- parcels that nobody writes, and of programs before ----------------------------------------
 */

/* Words of a parcel, from its end. */
enum tail {
    OWED = 1,
    STEP,
    TO,
    FROM,
    RANGES,
    ARGC,
    BEHIND,
    MUTE,
    BITS,
    PASSES,
    HEADER_N,
    BYTES_LEFT,
    ARGS_LEFT,
    SWALLOWS,
};

static void put_word(struct span parcel, unsigned from_end, uint64_t v)
{
    memcpy(packed_mem + parcel.n - from_end * sizeof v, &v, sizeof v);
}

static bool is_taken(struct rig *r, struct span parcel)
{
    rig_disconnect(r);
    rig_connect(r);
    return r->svc->unpack(r->svc, r->session, parcel);
}

/* Of who has a server behind, and a request with one range of keys on its way there. */
static struct span pack_streaming(struct rig *r, uint8_t header_n)
{
    const struct rds_rest rest = {.swallow = {.args_left = 7, .header_n = header_n, .header = "$"},
                                  .passed_on = true,
                                  .owed = true,
                                  .argc = 2000,
                                  .ranges = 1,
                                  .key = {{1, 1, 1}}};
    r->svc->upstream = (struct upstream *)(void *)r; /* that it is there is all that is asked */
    rig_disconnect(r);
    rig_connect(r);
    rig_session(r)->there = calloc(1, sizeof *rig_session(r)->there);
    rig_session(r)->rest = calloc(1, sizeof rest);
    assert_true(rig_session(r)->there && rig_session(r)->rest);
    *rig_session(r)->rest = rest;
    return pack(r);
}

/* What would be read or written where nothing is, divided by 0, or have a key pass that is an ID.
 */
static void numbers_that_cannot_be_are_refused(void **state)
{
    static const struct {
        enum tail which;
        uint64_t v;
    } all[] = {
        {OWED, 2},
        {STEP, 0},
        {STEP, 1ULL << 32},
        {TO, 1ULL << 32},
        {FROM, 1ULL << 32},
        {RANGES, RESP_RANGES + 1},
        {ARGC, 6}, /* of which 7 are to come */
        {ARGC, 1ULL << 31},
        {MUTE, RDS_MUTE_NEXT + 1},
        {BITS, 1 << 11},
        {BITS, 1 << 6 | 1 << 7},
        {BITS, 1 << 6 | 1 << 9}, /* RESP1 is asked for, and is to be told */
        {PASSES, 2},
        {SWALLOWS, 2},
    };
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct span whole = pack_streaming(r, 0);
        put_word(whole, all[i].which, all[i].v);
        if (is_taken(r, whole))
            fail_msg("number %zu", i);
    }
    assert_true(is_taken(r, pack_streaming(r, 0)));
    struct span whole = pack_streaming(r, 0);
    put_word(whole, ARGC, 7); /* its first word has not come whole */
    assert_true(is_taken(r, whole));
    r->svc->upstream = NULL;
}

/* One more byte of it has a place. */
static void a_length_line_that_fills_its_place_is_refused(void **state)
{
    static const struct resp_swallow s;
    struct rig *r = *state;
    assert_true(is_taken(r, pack_streaming(r, sizeof s.header - 1)));
    assert_false(is_taken(r, pack_streaming(r, sizeof s.header)));
    r->svc->upstream = NULL;
}

static void what_follows_of_no_request_is_refused(void **state)
{
    struct rig *r = *state;
    r->svc->upstream = (struct upstream *)(void *)r;
    rig_session(r)->there = calloc(1, sizeof *rig_session(r)->there);
    assert_non_null(rig_session(r)->there);
    struct span whole = pack(r);
    put_word(whole, 5, 2); /* 0: there is none, 1: there is */
    assert_false(is_taken(r, whole));
    put_word(whole, 5, 0);
    assert_true(is_taken(r, whole));
    put_word(whole, 3, 1 << 6);
    assert_false(is_taken(r, whole));
    r->svc->upstream = NULL;
}

/* Behind version, CLIENT ID, time, elements done and protocol. */
static void a_name_or_database_that_cannot_be_is_refused(void **state)
{
    struct rig *r = *state;
    uint64_t n = RDS_NAME_MAX + 1, db = RDS_DBS;
    char *at = packed_mem + 5 * sizeof n;
    rig_check(r, "SELECT 15", "+OK\r\n");
    rds_set_name(rig_session(r), span_of("0123456789abcdef0123456789abcdef"
                                         "0123456789abcdef0123456789abcdef",
                                         RDS_NAME_MAX));
    carry(r);
    assert_int_equal(rig_session(r)->name_n, RDS_NAME_MAX);
    struct span whole = pack(r);
    memcpy(at, &db, sizeof db);
    assert_false(is_taken(r, whole));
    memcpy(at, &(uint64_t){15}, sizeof db);
    assert_true(is_taken(r, whole));
    memcpy(at + sizeof db, &n, sizeof n);
    at += 2 * sizeof n + RDS_NAME_MAX;
    memmove(at + 1, at, whole.n - (size_t)(at - packed_mem));
    assert_false(is_taken(r, span_of(packed_mem, whole.n + 1)));
}

/* They wrote neither whether there is a server behind, nor whether a reply is owed. */
static void programs_before_said_less(void **state)
{
    struct rig *r = *state;
    struct span whole = pack_streaming(r, 0);
    put_word(whole, BEHIND, 0);
    assert_true(is_taken(r, span_of(whole.p, whole.n - sizeof(uint64_t))));
    assert_true(rig_session(r)->rest && rig_session(r)->rest->owed);
    for (unsigned mute = RDS_LOUD; mute <= RDS_MUTE; mute += RDS_MUTE - RDS_LOUD) {
        rig_disconnect(r);
        rig_connect(r);
        rig_session(r)->there = calloc(1, sizeof *rig_session(r)->there);
        assert_non_null(rig_session(r)->there);
        rig_session(r)->there->multi = mute == RDS_LOUD;
        rig_session(r)->there->mute = (uint8_t)mute;
        whole = pack(r);
        memset(packed_mem + whole.n - sizeof(uint64_t), 0, sizeof(uint64_t));
        assert_true(is_taken(r, whole));
        assert_int_equal(rig_session(r)->there->multi, mute == RDS_LOUD);
    }
    r->svc->upstream = NULL;
}

/* Where the server behind is gone, nobody is left who skips replies; of what was forwarded nothing
 * is. And who has said nothing there takes no memory for it. */
static void what_is_only_there_is_not_had_without(void **state)
{
    struct rig *r = *state;
    r->svc->upstream = (struct upstream *)(void *)r;
    rig_session(r)->there = calloc(1, sizeof *rig_session(r)->there);
    assert_non_null(rig_session(r)->there);
    carry(r);
    assert_null(rig_session(r)->there);
    assert_false(rig_session(r)->passes || rig_session(r)->watches);
    rig_session(r)->passes = true;
    struct span whole = pack(r);
    r->svc->upstream = NULL;
    assert_true(is_taken(r, whole));
    assert_false(rig_session(r)->passes || rig_session(r)->watches || rig_session(r)->there);
    rig_session(r)->there = calloc(1, sizeof *rig_session(r)->there);
    assert_non_null(rig_session(r)->there);
    rig_session(r)->there->mute = RDS_MUTE;
    r->svc->upstream = (struct upstream *)(void *)r;
    whole = pack(r);
    r->svc->upstream = NULL;
    assert_false(is_taken(r, whole));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(what_a_client_has_said_goes_over),
        RIG_TEST(what_was_said_to_the_upstream_goes_over),
        RIG_TEST(who_is_only_mute_stays_mute),
        RIG_TEST(what_is_owed_for_half_a_request_goes_over),
        RIG_TEST(what_was_begun_without_a_server_ends_where_one_comes),
        RIG_TEST(a_reply_ends_where_it_was_begun),
        RIG_TEST(keys_that_are_watched_still_are),
        RIG_TEST(a_client_id_is_given_out_once),
        RIG_TEST(a_transaction_goes_on),
        RIG_TEST(an_exec_goes_on_with_a_request_that_is_refused),
        RIG_TEST(an_exec_under_way_goes_on),
        RIG_TEST(subscriptions_go_over),
        RIG_TEST(a_request_half_read_through_goes_on),
        RIG_TEST(requests_of_no_transaction_are_refused),
        RIG_TEST(subscriptions_that_are_not_whole_are_refused),
        RIG_TEST(what_is_not_understood_is_refused),
        RIG_TEST(subscriptions_of_any_length_go_over),
        RIG_TEST(numbers_that_cannot_be_are_refused),
        RIG_TEST(a_length_line_that_fills_its_place_is_refused),
        RIG_TEST(what_follows_of_no_request_is_refused),
        RIG_TEST(a_name_or_database_that_cannot_be_is_refused),
        RIG_TEST(programs_before_said_less),
        RIG_TEST(what_is_only_there_is_not_had_without),
    };
    return cmocka_run_group_tests_name("serve/redis_carry", tests, NULL, NULL);
}
