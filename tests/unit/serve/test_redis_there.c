/* What the server behind is told of a client, which the test plays, and what of its answers is
 * followed. */
#include "net/upstream/links.h"
#include "unit/serve/there_rig.h"

/* The client has a link of its own, by a request that changes nothing. */
static int link_of(int client)
{
    say(client, "NEWER\r\n");
    int link = accepted();
    expect(link, "NEWER\r\n");
    say(link, "+NEW\r\n");
    expect(client, "+NEW\r\n");
    return link;
}

/* One request and its reply. */
static void ask(int client, int link, const char *request, const char *reply)
{
    say(client, request);
    expect(link, request);
    say(link, reply);
    expect(client, reply);
}

/* ---- HELLO ------------------------------------------------------------------------------------
 */

#define HELLO_3     "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
#define SET_NAME    "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n"
#define SET_NAME_WE "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nwe\r\n"

#define HELLO_3_REPLY                                                                              \
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n" RDS_VERSION                     \
    "\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n" \
    "$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"

/* Subscribed, a client of RESP2 may ask for nothing else. */
static void expect_proto(int client, int link, uint8_t proto)
{
    static const char in_2[] = "-ERR Can't execute 'echo': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE "
                               "/ PING / QUIT / RESET are allowed in this context\r\n";
    ask(client, link, "SUBSCRIBE c\r\n",
        proto == 3 ? ">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
                   : "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    if (proto == 3) {
        say(client, "ECHO x\r\n");
        expect(client, "$1\r\nx\r\n");
    } else {
        ask(client, link, "ECHO x\r\n", in_2);
    }
    ask(client, link, "UNSUBSCRIBE c\r\n",
        proto == 3 ? ">3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n"
                   : "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n");
}

static void the_protocol_is_what_the_server_has_agreed_to(void **state)
{
    static const struct {
        const char *asked, *reply;
        uint8_t proto;
    } table[] = {
        {"HELLO 3\r\n", "%0\r\n", 3},
        {"HELLO 2 AUTH nobody wrong\r\n", "-WRONGPASS\r\n", 3},
        {"HELLO\r\n", "%0\r\n", 3},
        {"HELLO 2\r\n", "-NOPERM\r\n", 3},
        {"HELLO 2\r\n", "*0\r\n", 2},
        {"HELLO 3 AUTH nobody wrong\r\n", "-WRONGPASS\r\n", 2},
        {"HELLO 3 \"SETNAME\\x00x\" we\r\n", "%0\r\n", 3},
    };
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        ask(client, link, table[i].asked, table[i].reply);
        expect_proto(client, link, table[i].proto);
    }
    (void)close(client);
    (void)close(link);
}

static void what_is_behind_a_hello_waits_for_its_answer(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say(client, "HELLO 3\r\nGET k\r\nECHO x\r\n");
    expect(link, "HELLO 3\r\n");
    expect_silence(link, 20);
    say(link, "%0\r\n");
    expect(link, "GET k\r\n");
    say(link, "_\r\n");
    expect(client, "%0\r\n_\r\n$1\r\nx\r\n");
    say(client, "HELLO 2 x\r\nHELLO 2\r\n"); /* the error is not of the second */
    expect(link, "HELLO 2 x\r\n");
    expect_silence(link, 20);
    ask(client, link, "", "-ERR Syntax error\r\n");
    expect(link, "HELLO 2\r\n");
    ask(client, link, "", "*0\r\n");
    expect_proto(client, link, 2);
    (void)close(client);
    (void)close(link);
}

static void a_transaction_has_none(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say(client, "MULTI\r\nHELLO 3\r\nEXEC\r\n");
    expect(client, "+OK\r\n-ERR HELLO within a transaction is not supported\r\n"
                   "-EXECABORT Transaction discarded because of previous errors.\r\n");
    ask(client, link, "GET k\r\n", "$-1\r\n");
    (void)close(client);
    (void)close(link);
}

/* By an error where the request can be sent again as it is; else by the end. */
static void who_asks_while_the_server_is_away_is_told_so(void **state)
{
    static const char get[] = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    static const char away[] = "-LOADING sidflake: the server behind is unreachable: ";
    char got[256];
    (void)state;
    start(rig->svc);
    (void)close(server);
    server = -1;
    int client = dial(&b);
    for (int i = 0; i < 2; i++) {
        say(client, get);
        assert_true(recv(client, got, sizeof got, 0) > (ssize_t)sizeof away);
        assert_memory_equal(got, away, sizeof away - 1);
    }
    say(client, "MULTI\r\n");
    expect(client, "+OK\r\n");
    say(client, get);
    expect_end(client);
    (void)close(client);
    client = dial(&b);
    say(client, "GET k\r\n"); /* which goes on a link of its own */
    expect_end(client);
    (void)close(client);
}

/* Somebody listens where the server did. */
static void come_back(const struct sockaddr_in *in)
{
    const int on = 1;
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    assert_int_equal(bind(server, (const struct sockaddr *)in, sizeof *in), 0);
    assert_int_equal(listen(server, 8), 0);
}

/* Any password was right while the server was away: whose requests these are it does not know. */
static void a_login_that_the_server_has_not_seen_is_good_for_nothing_there(void **state)
{
    struct sockaddr_in in;
    socklen_t n = sizeof in;
    static const char *const logins[] = {"AUTH me secret\r\n", "HELLO 2 AUTH me secret\r\n"};
    static const char get[] = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    char got[256];
    (void)state;
    start(rig->svc);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
    (void)close(server);
    int client = dial(&b), other = dial(&b), again[] = {dial(&b), dial(&b)};
    say(client, "AUTH me secret\r\n");
    expect(client, "+OK\r\n");
    say(other, "AUTH a b c\r\nCONFIG GET maxmemory\r\n");
    expect(other, "-ERR syntax error\r\n*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n");
    for (int i = 0; i < 2; i++) {
        say(again[i], logins[i]);
        expect_to(again[i], i ? "*14\r\n" : "+OK\r\n", i ? "modules\r\n*0\r\n" : "+OK\r\n");
    }
    come_back(&in);
    struct pollfd p = {.fd = server, .events = POLLIN};
    do { /* it is not asked for again at once */
        say(other, get);
        p.revents = 0;
        if (poll(&p, 1, 20) == 0)
            assert_true(recv(other, got, sizeof got, 0) > 8);
    } while (!p.revents);
    int link = accepted();
    expect(link, get); /* from who has not logged in */
    say(link, "$-1\r\n");
    expect(other, "$-1\r\n");
    say(client, get);
    expect(client, "-NOAUTH the upstream was down at AUTH: connect again\r\n");
    expect_end(client);
    (void)close(client);
    (void)close(accepted());      /* which it would have had */
    for (int i = 0; i < 2; i++) { /* it is the server's to say from now on */
        say(again[i], logins[i]);
        int its = accepted();
        expect(its, logins[i]);
        (void)close(again[i]);
        (void)close(its);
    }
    (void)close(other);
    (void)close(link);
}

/* As where a client takes late what was answered before, and behind an upgrade. */
static void do_serve_again(struct net_bench *n, void *arg)
{
    (void)arg;
    for (struct link *l = n->net->all.next; l != &n->net->all; l = l->next)
        relay_wake(CONTAINER(l, struct conn, all));
    net_go_on(n->net);
}

/* The request would be carried out in another one. */
static void a_database_that_the_server_refuses_is_nobodys(void **state)
{
    struct sockaddr_in in;
    socklen_t n = sizeof in;
    static const char get[] = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    static const char select[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n";
    static const char *const first[] = {get, "FLUSHDB\r\n", "MULTI\r\nDEL k\r\n",
                                        "MGET k id:a\r\n"};
    int client[sizeof first / sizeof *first];
    char got[256];
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start(rig->svc);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
    (void)close(server);
    server = -1;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        client[i] = dial(&b);
        say(client[i], "SELECT 5\r\n");
        expect(client[i], "+OK\r\n");
    }
    come_back(&in);
    struct pollfd p = {.fd = server, .events = POLLIN};
    do {
        say(client[0], get);
        p.revents = 0;
        if (poll(&p, 1, 20) == 0)
            assert_true(recv(client[0], got, sizeof got, 0) > 8);
    } while (!p.revents);
    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        if (i > 0)
            say(client[i], first[i]);
        int link = accepted();
        expect(link, select);
        p = (struct pollfd){.fd = link, .events = POLLIN};
        assert_int_equal(poll(&p, 1, 20), 0);
        net_bench_call(&b, do_serve_again, NULL);
        assert_int_equal(poll(&p, 1, 20), 0);
        say(link, i == 0 ? "+OK\r\n" : "-ERR DB index is out of range\r\n");
        if (i == 0)
            expect(link, get);
        else
            assert_int_equal(recv(link, got, sizeof got, 0), 0);
        (void)close(client[i]);
        (void)close(link);
    }
}

/* What watches keys is a transaction of the server's from its MULTI on, and no longer than that. */
static void a_transaction_is_there_while_keys_are_watched(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    ask(client, link, "WATCH k\r\n", "+OK\r\n");
    ask(client, link, "MULTI\r\n", "+OK\r\n");
    ask(client, link, "DISCARD\r\n", "+OK\r\n");
    ask(client, link, "WATCH k\r\n", "+OK\r\n");
    ask(client, link, "UNWATCH\r\n", "+OK\r\n");
    say(client, "MULTI\r\n");
    expect(client, "+OK\r\n");
    expect_silence(link, 20);
    (void)close(client);
    (void)close(link);
}

/* A link that is fresh begins with the login. What was agreed upon before is repeated behind it,
 * with the next request, in the protocol that there is then. */
static void what_was_agreed_upon_is_repeated_behind_a_login(void **state)
{
    static const struct {
        const char *asked, *reply, *repeated;
    } table[] = {
        {"HELLO 2 AUTH nobody wrong\r\n", "-WRONGPASS\r\n", HELLO_3 SET_NAME},
        {"AUTH wrong\r\n", "-WRONGPASS\r\n", HELLO_3 SET_NAME},
        {"HELLO 3 AUTH default p\r\n", "%0\r\n", SET_NAME},
        {"HELLO 2 AUTH default p\r\n", "*0\r\n", SET_NAME},
        {"HELLO 3 AUTH default p SETNAME we\r\n", "%0\r\n", SET_NAME_WE},
    };
    (void)state;
    start(rig->svc);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char hello[sizeof HELLO_3_REPLY];
        int client = dial(&b);
        say(client, "HELLO 3\r\n");
        assert_int_equal(recv(client, hello, sizeof hello, 0), sizeof HELLO_3_REPLY - 1);
        say(client, "CLIENT SETNAME me\r\n");
        expect(client, "+OK\r\n");
        say(client, table[i].asked);
        int link = accepted();
        expect(link, table[i].asked);
        say(link, table[i].reply);
        expect(client, table[i].reply);
        say(client, "HELLO\r\n");
        expect(link, table[i].repeated);
        say(link, table[i].repeated[1] == '2' ? "%0\r\n+OK\r\n" : "+OK\r\n");
        expect(link, "HELLO\r\n");
        say(link, "%0\r\n");
        expect(client, "%0\r\n");
        ask(client, link, "GET k\r\n", "$1\r\nv\r\n"); /* once */
        (void)close(client);
        (void)close(link);
    }
}

/* By the server's rules. */
static void who_may_not_say_his_name_does_without(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b);
    say(client, "CLIENT SETNAME me\r\n");
    expect(client, "+OK\r\n");
    say(client, "NEWER\r\n");
    int link = accepted();
    expect(link, SET_NAME "NEWER\r\n");
    say(link, "-NOPERM\r\n+NEW\r\n");
    expect(client, "+NEW\r\n");
    (void)close(client);
    (void)close(link);
}

/* Who is asked for a login that is ours, and then for one of the server's, is the server's client
 * in one protocol. */
static void a_login_here_tells_the_server_of_the_protocol(void **state)
{
    char hello[sizeof HELLO_3_REPLY];
    (void)state;
    mode = ACCESS_ANY;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say(client, "HELLO 3 AUTH me any\r\n");
    expect(link, HELLO_3);
    say(link, "%0\r\n"); /* not for the client */
    assert_int_equal(recv(client, hello, sizeof hello, 0), sizeof HELLO_3_REPLY - 1);
    expect_proto(client, link, 3);
    (void)close(client);
    (void)close(link);
}

/* ---- behind MONITOR ---------------------------------------------------------------------------
 */

#define APART " not supported behind MONITOR, SYNC, PSYNC and REPLCONF: connect again\r\n"

/* All that comes up to the end. */
static void expect_last(int client, const char *text)
{
    expect(client, text);
    expect_end(client);
    (void)close(client);
}

static void behind_monitor_an_answer_from_here_is_the_last(void **state)
{
    static const char *const asked[] = {
        "AUTH\r\n",
        "AUTH a b c\r\n",
        "HELLO 3 AUTH a\r\n",
        "HELLO x AUTH a b\r\n",
        "HELLO 3 \"AUTH\\x00x\" a b\r\n", /* as Redis reads it */
    };
    (void)state;
    start(rig->svc);
    mode = ACCESS_ANY;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int client = dial(&b);
        say(client, "AUTH x\r\n");
        expect(client, "+OK\r\n");
        say(client, "MONITOR\r\n");
        int link = accepted();
        expect(link, "MONITOR\r\n");
        say(link, "+OK\r\n");
        expect(client, "+OK\r\n");
        say(client, asked[i]);
        expect_last(client, "-ERR a login is" APART);
        (void)close(link);
    }
}

static void behind_monitor_the_replies_that_are_due_come_first(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say(client, "BLPOP k 0\r\nMONITOR\r\nINCR id:a\r\n");
    expect(link, "BLPOP k 0\r\nMONITOR\r\n");
    expect_silence(client, 20);
    say(link, "*-1\r\n+OK\r\n");
    expect_last(client, "*-1\r\n+OK\r\n-ERR an ID key is" APART);
    (void)close(link);
    client = dial(&b), link = link_of(client);
    say(client, "CLIENT REPLY OFF\r\nMONITOR\r\nINCR id:a\r\n"); /* none are wanted */
    expect_last(client, "");
    (void)close(link);
}

/* Redis waits with the one for what it does for others, and with the other for the data. */
static void a_sign_of_life_comes_before_the_answer(void **state)
{
    static const char *const asked[] = {"PSYNC ? -1\r\n", "SYNC\r\n"};
    (void)state;
    start(rig->svc);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        int client = dial(&b);
        say(client, asked[i]);
        int link = accepted();
        expect(link, asked[i]);
        say(link, "\n");
        expect(client, "\n");
        say(link, "\n+FULLRESYNC x 0\r\n");
        expect(client, "\n+FULLRESYNC x 0\r\n");
        (void)close(client);
        (void)close(link);
    }
}

/* Where it is refused, or queued, what is answered here waits for that. */
static void a_sync_that_is_none_has_a_reply(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say(client, "MULTI\r\nSYNC\r\nECHO x\r\nGET id:a\r\n");
    expect(link, "*1\r\n$5\r\nMULTI\r\nSYNC\r\nECHO x\r\n");
    say(link, "+OK\r\n+QUEUED\r\n");
    expect(client, "+OK\r\n+QUEUED\r\n");
    expect_silence(client, 20);
    say(link, "+QUEUED\r\n");
    expect(client, "+QUEUED\r\n-ERR an ID key cannot be used in a transaction");
    (void)close(client);
    (void)close(link);
    client = dial(&b), link = link_of(client);
    ask(client, link, "SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    say(client, "SYNC\r\nQUIT\r\n");
    expect(link, "SYNC\r\n");
    expect_silence(client, 20);
    say(link, "-ERR Can't execute 'sync'\r\n");
    expect_last(client, "-ERR Can't execute 'sync'\r\n+OK\r\n");
    (void)close(link);
}

/* ---- CLIENT REPLY -----------------------------------------------------------------------------
 */

/* Redis refuses it to who is subscribed, and keeps that back: it waits for the acknowledgements. */
static void who_is_mute_and_subscribed_is_known_before_he_is_loud(void **state)
{
    static const char in[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
    static const char gone[] = "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n";
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say(client, "CLIENT REPLY OFF\r\nSUBSCRIBE c\r\nCLIENT REPLY ON\r\nUNSUBSCRIBE c\r\n"
                "CLIENT REPLY ON\r\nECHO x\r\n");
    expect(link, "CLIENT REPLY OFF\r\nSUBSCRIBE c\r\n");
    expect_silence(link, 20);
    say(link, in);
    expect(client, in);
    expect(link, "CLIENT REPLY ON\r\nUNSUBSCRIBE c\r\n");
    expect_silence(link, 20);
    say(link, gone);
    expect(client, gone);
    expect(link, "CLIENT REPLY ON\r\n");
    expect_silence(client, 20);
    say(link, "+OK\r\n");
    expect(client, "+OK\r\n$1\r\nx\r\n");
    (void)close(client);
    (void)close(link);
}

/* What is skipped is the next request alone, here as there. */
static void what_is_skipped_is_one_request(void **state)
{
    static const char acks[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
                               "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:0\r\n";
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say(client, "CLIENT REPLY SKIP\r\nRESET\r\nECHO x\r\n");
    expect(link, "CLIENT REPLY SKIP\r\n*1\r\n$4\r\nPING\r\n*1\r\n$5\r\nRESET\r\n");
    say(link, "+RESET\r\n");
    expect(client, "$1\r\nx\r\n");
    say(client, "CLIENT REPLY SKIP\r\nSUBSCRIBE c\r\nUNSUBSCRIBE c\r\nECHO y\r\n");
    expect(link, "CLIENT REPLY SKIP\r\nSUBSCRIBE c\r\nUNSUBSCRIBE c\r\n");
    say(link, acks);
    expect(client, acks);
    expect(client, "$1\r\ny\r\n");
    (void)close(client);
    (void)close(link);
}

/* ---- of more than 64 KiB ----------------------------------------------------------------------
 */

static char mem[1 << 18];

/* MGET of many keys, of which the first and the last are said. */
static struct span longer(struct buf *req, const char *first, const char *last)
{
    const uint32_t keys = 20000;
    buf_init(req, mem, sizeof mem);
    resp_put_array(req, keys + 3);
    resp_put_bulk(req, SPAN("MGET"));
    resp_put_bulk(req, span_str(first));
    for (uint32_t i = 0; i < keys; i++)
        resp_put_bulk(req, SPAN("key"));
    resp_put_bulk(req, span_str(last));
    assert_false(req->failed);
    return buf_span(req);
}

/* MSET of few keys, which does not wait here for a request that blocks; of the last one, NULL:
 * bytes that are no request. */
static struct span larger(struct buf *req, const char *last)
{
    enum {
        KEYS = 5,
        VALUE = 40000
    };
    static const char value[VALUE];
    buf_init(req, mem, sizeof mem);
    resp_put_array(req, 1 + 2 * (KEYS + 1));
    resp_put_bulk(req, SPAN("MSET"));
    for (int i = 0; i < KEYS; i++) {
        resp_put_bulk(req, SPAN("key"));
        resp_put_bulk(req, span_of(value, VALUE));
    }
    if (last) {
        resp_put_bulk(req, span_str(last));
        resp_put_bulk(req, SPAN("value"));
    } else
        buf_put_str(req, "x\r\n");
    assert_false(req->failed);
    return buf_span(req);
}

/* At least n bytes come there. */
static void take(int link, size_t n)
{
    char got[4096];
    for (size_t sum = 0; sum < n;) {
        ssize_t more = recv(link, got, sizeof got, 0);
        assert_true(more > 0);
        sum += (size_t)more;
    }
}

/* BLPOP, then such a request, whatever stands between: what the client hears, with the reply to
 * BLPOP, which comes last. */
static void heard_of(const char *between, const char *last, const char *why)
{
    char got[4096], expected[256];
    struct buf req;
    int client = dial(&b), link = link_of(client);
    (void)snprintf(got, sizeof got, "BLPOP k 0\r\n%s", between);
    say(client, got);
    expect(link, got);
    say_span(client, larger(&req, last));
    take(link, 150000);
    expect_silence(client, 50);
    say(link, "*-1\r\n");
    (void)snprintf(expected, sizeof expected, "*-1\r\n%s", why);
    expect_last(client, expected);
    (void)close(link);
}

static void the_replies_before_a_long_one_come_first(void **state)
{
    static const char too_late[] =
        "-ERR an ID key cannot be used in a request of more than 64 KiB\r\n";
    static const char broken[] = "-ERR Protocol error: expected '$', got 'x'\r\n";
    (void)state;
    start(rig->svc);
    heard_of("", "id:a", too_late);
    heard_of("CLIENT REPLY SKIP\r\n", "id:a", "");
    heard_of("CLIENT REPLY OFF\r\n", "id:a", "");
    heard_of("", NULL, broken);
    heard_of("CLIENT REPLY OFF\r\n", NULL, "");
}

/* Where no reply is told from what else comes, so that none is waited for. */
static void behind_monitor_a_long_one_ends_with_an_error(void **state)
{
    static const char *const said[] = {"MONITOR\r\n", "CLIENT REPLY OFF\r\nMONITOR\r\n"};
    (void)state;
    start(rig->svc);
    for (int mute = 0; mute < 2; mute++) {
        struct buf req;
        int client = dial(&b), link = link_of(client);
        say(client, said[mute]);
        expect(link, said[mute]);
        if (!mute)
            ask(client, link, "", "+OK\r\n");
        say_span(client, larger(&req, "id:a"));
        take(link, 150000);
        expect_last(client, mute ? ""
                                 : "-ERR an ID key cannot be used in a request of more than 64 "
                                   "KiB\r\n");
        (void)close(link);
    }
}

/* It is the last of its request, and not ended by its length line. */
static void a_value_that_comes_in_pieces_is_no_request(void **state)
{
    static char value[150000], got[sizeof mem];
    struct buf req;
    (void)state;
    for (size_t i = 0; i < sizeof value; i++)
        value[i] = "PING\r\n"[i % 6];
    buf_init(&req, mem, sizeof mem);
    resp_put_array(&req, 3);
    resp_put_bulk(&req, SPAN("SET"));
    resp_put_bulk(&req, SPAN("k"));
    resp_put_bulk(&req, span_of(value, sizeof value));
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say_span(client, buf_span(&req));
    assert_int_equal(recv(link, got, req.n, MSG_WAITALL), req.n);
    assert_memory_equal(got, mem, req.n);
    expect_silence(client, 20);
    ask(client, link, "", "+OK\r\n");
    ask(client, link, "NEWER\r\n", "+NEW\r\n");
    (void)close(client);
    (void)close(link);
}

/* What is refused after one that was passed on is dropped here. */
static void a_long_one_that_is_refused_stays_here(void **state)
{
    struct buf req;
    (void)state;
    start(rig->svc);
    int client = dial(&b), link = link_of(client);
    say_span(client, longer(&req, "key", "key"));
    take(link, req.n);
    say(link, "*0\r\n");
    expect(client, "*0\r\n");
    say_span(client, longer(&req, "id:a", "key"));
    expect(client, "-ERR");
    say(client, "NEWER\r\n");
    expect(link, "NEWER\r\n");
    (void)close(client);
    (void)close(link);
}

static void what_breaks_the_protocol_is_told_behind_what_is_due(void **state)
{
    (void)state;
    start(rig->svc);
    int client = dial(&b);
    say(client, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*x\r\n");
    int link = accepted();
    expect(link, "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    say(link, "$1\r\nx\r\n");
    expect_last(client, "$1\r\nx\r\n-ERR Protocol error: invalid multibulk length\r\n");
    (void)close(link);
}

/* Inline, with a prefix of one letter: more IDs than a turn's output has room for. */
static void all_ids_of_a_long_line_have_their_places(void **state)
{
    enum {
        IDS = 21200,
        LEFT = 29
    };
    static char line[(IDS + 2 * LEFT) * 3 + 64] = "MGET";
    const size_t id = sizeof "$18\r\n\r\n" - 1 + 18, bulk = sizeof "$1\r\nx\r\n" - 1;
    char tail[4096];
    struct buf request;
    struct err e;
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    assert_int_equal(issuer_add(&rig->serve.issuer, &rig->gen.base, "i", NULL, 0, &e), ERR_OK);
    start(rig->svc);
    buf_init(&request, line, sizeof line - 1);
    request.n = 4;
    for (int i = 0; i < IDS + 2 * LEFT; i++)
        buf_put_str(&request, i == IDS ? " k ia" : i == IDS + LEFT ? " l ia" : " ia");
    BUF_PUT_LIT(&request, "\r\nQUIT\r\n");
    assert_false(request.failed);
    int client = dial(&b);
    say_span(client, buf_span(&request));
    int link = accepted();
    expect(link, "*3\r\n$4\r\nMGET\r\n$1\r\nk\r\n$1\r\nl\r\n");
    assert_true(kept() > IDS * 2 * sizeof(uint64_t));
    say_span(link, SPAN("*2\r\n$1\r\nx\r\n$1\r\ny\r\n"));
    expect(client, "*21260\r\n");
    assert_int_equal(rest_of(client, tail),
                     (IDS + 2 * LEFT) * id + 2 * bulk + sizeof "+OK\r\n" - 1);
    const char *y = tail + strlen(tail) - (sizeof "+OK\r\n" - 1) - LEFT * id - bulk;
    assert_memory_equal(y, "$1\r\ny\r\n", bulk);
    assert_memory_equal(y - LEFT * id - bulk, "$1\r\nx\r\n", bulk);
    (void)close(client);
    (void)close(link);
}

/* The IDs that were drawn for it are nobody's, and its keys not those of the next. */
static void an_mget_that_failed_leaves_nothing_to_the_next(void **state)
{
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start(rig->svc);
    int client = dial(&b);
    say(client, "MGET id:a k\r\n");
    int link = accepted();
    expect(link, "*2\r\n$4\r\nMGET\r\n$1\r\nk\r\n");
    say(link, "-NOPERM no\r\n");
    expect(client, "-NOPERM no\r\n");
    say(client, "MGET l id:a m\r\n");
    expect(link, "*3\r\n$4\r\nMGET\r\n$1\r\nl\r\n$1\r\nm\r\n");
    say(link, "*2\r\n$1\r\nx\r\n$1\r\ny\r\n");
    expect(client, "*3\r\n$1\r\nx\r\n$");
    (void)close(client);
    (void)close(link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_protocol_is_what_the_server_has_agreed_to, begin, end),
        cmocka_unit_test_setup_teardown(what_is_behind_a_hello_waits_for_its_answer, begin, end),
        cmocka_unit_test_setup_teardown(a_transaction_has_none, begin, end),
        cmocka_unit_test_setup_teardown(who_asks_while_the_server_is_away_is_told_so, begin, end),
        cmocka_unit_test_setup_teardown(
            a_login_that_the_server_has_not_seen_is_good_for_nothing_there, begin, end),
        cmocka_unit_test_setup_teardown(a_database_that_the_server_refuses_is_nobodys, begin, end),
        cmocka_unit_test_setup_teardown(a_transaction_is_there_while_keys_are_watched, begin, end),
        cmocka_unit_test_setup_teardown(what_was_agreed_upon_is_repeated_behind_a_login, begin,
                                        end),
        cmocka_unit_test_setup_teardown(who_may_not_say_his_name_does_without, begin, end),
        cmocka_unit_test_setup_teardown(a_login_here_tells_the_server_of_the_protocol, begin, end),
        cmocka_unit_test_setup_teardown(behind_monitor_an_answer_from_here_is_the_last, begin, end),
        cmocka_unit_test_setup_teardown(behind_monitor_the_replies_that_are_due_come_first, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_sign_of_life_comes_before_the_answer, begin, end),
        cmocka_unit_test_setup_teardown(a_sync_that_is_none_has_a_reply, begin, end),
        cmocka_unit_test_setup_teardown(what_is_skipped_is_one_request, begin, end),
        cmocka_unit_test_setup_teardown(who_is_mute_and_subscribed_is_known_before_he_is_loud,
                                        begin, end),
        cmocka_unit_test_setup_teardown(the_replies_before_a_long_one_come_first, begin, end),
        cmocka_unit_test_setup_teardown(behind_monitor_a_long_one_ends_with_an_error, begin, end),
        cmocka_unit_test_setup_teardown(a_value_that_comes_in_pieces_is_no_request, begin, end),
        cmocka_unit_test_setup_teardown(a_long_one_that_is_refused_stays_here, begin, end),
        cmocka_unit_test_setup_teardown(what_breaks_the_protocol_is_told_behind_what_is_due, begin,
                                        end),
        cmocka_unit_test_setup_teardown(all_ids_of_a_long_line_have_their_places, begin, end),
        cmocka_unit_test_setup_teardown(an_mget_that_failed_leaves_nothing_to_the_next, begin, end),
    };
    return cmocka_run_group_tests_name("serve/redis_there", tests, NULL, NULL);
}
