/*
 * Numbers by template over Redis and memcached: requests that are known again by their bytes are
 * answered as any others. Over HTTP: what is encoded stays where it is.
 */
#include "ids/number_generator.h"
#include "serve/memcached/memcached.h"
#include "serve/protocol.h"
#include "support/fake_supply.h"
#include "unit/serve/login.h"
#include "unit/serve/redis_rig.h"

#define TEMPLATES 3

static struct template templates[TEMPLATES];
static struct fake_sequence sequences[TEMPLATES] = {
    {.name = "few", .start = 1, .increment = 1, .template = &templates[0]},
    {.name = "area", .start = 1, .increment = 1, .template = &templates[1]},
    {.name = "tenant", .start = 1, .increment = 1, .subs = true, .template = &templates[2]},
};

static struct sequence_table table;
static struct number_table numbers;
static struct fake_supply supply;
static struct net_service *memcached, *http;
static void *talk; /* session of memcached's */

static void begin_talk(enum access_mode mode)
{
    talk = calloc(1, memcached->session_size);
    assert_non_null(talk);
    memcached->open(memcached, talk, (uint8_t)mode);
}

static void end_talk(void)
{
    memcached->close(memcached, talk);
    free(talk);
}

static int begin(void **state)
{
    static const char *const texts[TEMPLATES] = {
        "F@{seq,width=3}", "@{arg,a,width=1,default=x}-@{seq,width=8}", "@{sub,width=1..9}/@{seq}"};
    struct rig *r = rig_new(NULL);
    struct err e;
    for (size_t i = 0; i < TEMPLATES; i++) {
        struct template_frame f = {.name = span_str(sequences[i].name),
                                   .subs = sequences[i].subs,
                                   .first = 1,
                                   .last = TEMPLATE_NUMBER_MAX};
        assert_int_equal(template_parse(&templates[i], span_str(texts[i]), &f, &e), ERR_OK);
    }
    fake_supply_table(&table, 16);
    number_table_init(&numbers, &table, &r->gen.base, NULL, "no:");
    supply = (struct fake_supply){.table = &table,
                                  .sequence = sequences,
                                  .nsequences = TEMPLATES,
                                  .time_ms = 100 * FAKE_DAY_MS};
    assert_int_equal(issuer_add(&r->serve.issuer, &table.base, "seq:", NULL, 0, &e), ERR_OK);
    assert_int_equal(issuer_add(&r->serve.issuer, &numbers.base, "no:", NULL, 0, &e), ERR_OK);
    r->serve.services[SERVE_REDIS] = r->svc;
    r->serve.services[SERVE_MEMCACHED] = memcached = protocol_memcached.make(&r->serve);
    r->serve.services[SERVE_HTTP] = http = protocol_http.make(&r->serve);
    assert_true(memcached && http);
    begin_talk(ACCESS_OFF);
    *state = r;
    return 0;
}

static int end(void **state)
{
    end_talk();
    free(memcached);
    free(http);
    rig_free(*state);
    number_table_clear(&numbers);
    sequence_table_clear(&table);
    return 0;
}

/* Whoever waits has what he waits for; a place that was closed meanwhile is another's. */
static void go_on(struct rig *r, enum net_verdict v)
{
    unsigned forgets = supply.forgets;
    if (v == NET_HOLD)
        login_wait();
    else
        fake_supply_serve(&supply, clock_mono_ms(&r->clock));
    if (supply.forgets > forgets)
        serve_forget(&r->serve);
}

static void check(struct rig *r, const char *words, const char *expected)
{
    enum net_verdict v = rig_ask(r, words);
    for (int i = 0; i < 10 && (v == NET_WAIT || v == NET_HOLD); i++) {
        go_on(r, v);
        v = rig_pump(r);
    }
    assert_int_equal(v, NET_MORE);
    rig_expect(r, expected);
    go_on(r, v);
}

/* The same of memcached. */
static void mc(struct rig *r, const char *request, const char *expected)
{
    static char text[NET_OUT_MAX];
    struct net_turn turn = {.clock = &r->clock, .wall_ms = RIG_MS, .quota = UINT32_MAX};
    struct span in = span_str(request);
    struct buf out;
    buf_init(&out, text, sizeof text - 1);
    for (int i = 0; i < 20 && in.n > 0; i++) {
        struct net_step step = memcached->serve(memcached, talk, in, &turn, &out);
        in = span_skip(in, step.used);
        if (step.verdict == NET_DONE)
            net_turn_answered(&turn);
        if (step.verdict == NET_DONE || !step.partial)
            turn.reply_start = out.n;
        go_on(r, step.verdict);
    }
    text[out.n] = '\0';
    assert_string_equal(text, expected);
}

static unsigned noted(const struct recent *recent)
{
    unsigned n = 0;
    for (unsigned i = 0; i < RECENT_REQUESTS; i++)
        n += recent->request[i].n != SIZE_MAX;
    return n;
}

static unsigned known(const struct rig *r)
{
    return noted(&((const struct rds_service *)(const void *)r->svc)->recent);
}

/* Whoever is looked for by name leaves nothing of this. */
static void begin_looking(void)
{
    table.found[0] = '?';
}

static bool was_looked_for(void)
{
    return table.found[0] != '?';
}

static void up_to_the_width_and_no_further(void **state)
{
    struct rig *r = *state;
    char text[32];
    for (int n = 1; n <= 999; n++) {
        (void)snprintf(text, sizeof text, "$4\r\nF%03d\r\n", n);
        check(r, n % 10 ? "GET no:few" : "LPOP no:few", text);
        assert_int_equal(known(r), 1);
    }
    for (int i = 0; i < 3; i++)
        check(r, "GET no:few",
              "-ERR used up: the template of the sequence few takes numbers up to 999: sidflakectl "
              "seq alter few --template TEXT\r\n");
    check(r, "GET seq:few", "$4\r\n1000\r\n");
}

static void arguments_are_the_requests_own(void **state)
{
    struct rig *r = *state;
    check(r, "GET no:area", "$10\r\nx-00000001\r\n");
    check(r, "GET no:area?a=b", "$10\r\nb-00000002\r\n");
    check(r, "GET no:area", "$10\r\nx-00000003\r\n");
    check(r, "GET no:area?a=c", "$10\r\nc-00000004\r\n");
    check(r, "GET no:area?a=b", "$10\r\nb-00000005\r\n");
    check(r, "GET no:area#1", "$10\r\nx-00000006\r\n");
    assert_int_equal(known(r), 2);
}

static void within_a_transaction_it_is_queued(void **state)
{
    struct rig *r = *state;
    check(r, "GET no:few", "$4\r\nF001\r\n");
    check(r, "MULTI", "+OK\r\n");
    check(r, "GET no:few", "+QUEUED\r\n");
    check(r, "EXEC", "*1\r\n$4\r\nF002\r\n");
    check(r, "GET no:few", "$4\r\nF003\r\n");
}

static void nobody_is_looked_for_who_is_known(void **state)
{
    struct rig *r = *state;
    check(r, "GET no:few", "$4\r\nF001\r\n");
    mc(r, "get no:few\r\n", "VALUE no:few 0 4\r\nF002\r\nEND\r\n");
    begin_looking();
    check(r, "GET no:few", "$4\r\nF003\r\n");
    mc(r, "get no:few\r\nget no:few\r\n",
       "VALUE no:few 0 4\r\nF004\r\nEND\r\nVALUE no:few 0 4\r\nF005\r\nEND\r\n");
    assert_false(was_looked_for());
    mc(r, "gets no:few\r\n", "VALUE no:few 0 4 6\r\nF006\r\nEND\r\n");
    assert_true(was_looked_for());
}

static void memcached_has_arguments_of_each_request(void **state)
{
    struct rig *r = *state;
    mc(r, "get no:area\r\nget no:area?a=b\r\nget no:area\r\n",
       "VALUE no:area 0 10\r\nx-00000001\r\nEND\r\n"
       "VALUE no:area?a=b 0 10\r\nb-00000002\r\nEND\r\n"
       "VALUE no:area 0 10\r\nx-00000003\r\nEND\r\n");
    assert_int_equal(noted(&((const struct memcached *)(const void *)memcached)->recent), 1);
}

/* A place that was closed is another counter's, which has texts of its own. */
static void one_that_made_room_is_looked_for_again(void **state)
{
    struct rig *r = *state;
    char words[64];
    for (int n = 1; n <= 4; n += 2) {
        (void)snprintf(words, sizeof words, "$3\r\na/%d\r\n", n);
        check(r, "GET no:tenant:a", words);
        (void)snprintf(words, sizeof words, "VALUE no:tenant:a 0 3\r\na/%d\r\nEND\r\n", n + 1);
        mc(r, "get no:tenant:a\r\n", words);
    }
    for (unsigned i = 0; i < 40; i++) {
        (void)snprintf(words, sizeof words, "INCR seq:tenant:b%u", i);
        check(r, words, ":1\r\n");
    }
    assert_true(supply.forgets > 20);
    check(r, "GET no:tenant:a", "$4\r\na/31\r\n"); /* its own, behind a gap */
    mc(r, "get no:tenant:a\r\n", "VALUE no:tenant:a 0 4\r\na/32\r\nEND\r\n");
}

/* ---- HTTP -------------------------------------------------------------------------------------
 */

static void web(struct rig *r, const char *path, const char *status, const char *body)
{
    static char text[NET_OUT_MAX];
    char request[256];
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    struct net_turn turn = {.clock = &r->clock, .wall_ms = RIG_MS, .quota = UINT32_MAX};
    struct buf out;
    struct net_step step = {.verdict = NET_WAIT};
    void *session = calloc(1, http->session_size);
    assert_non_null(session);
    buf_init(&out, text, sizeof text - 1);
    for (int i = 0, used = 0; i < 10 && step.verdict == NET_WAIT; i++) {
        step = http->serve(http, session, span_of(request + used, (size_t)(n - used)), &turn, &out);
        used += (int)step.used;
        fake_supply_serve(&supply, clock_mono_ms(&r->clock));
    }
    text[out.n] = '\0';
    if (!strstr(text, status) || !strstr(text, body))
        fail_msg("%s: expected %s, %s in:\n%s", path, status, body, text);
    free(session);
}

/* Who passes on what somebody says encodes it, and has one argument of it, or an error. */
static void what_is_encoded_divides_nothing(void **state)
{
    struct rig *r = *state;
    static const char *const wrong[] = {"/v1/no/area?a=b%26date=1970-01-01",
                                        "/v1/no/area?a=b%23c",
                                        "/v1/no/area%3Fa=b",
                                        "/v1/no/area%23?a=b",
                                        "/v1/no/few?%26",
                                        "/v1/no/area?a%3Db",
                                        "/v1/no/area?a%3Db=c",
                                        "/v1/no/tenant:a%3Fn=2"};
    web(r, "/v1/no/area?a=%62", " 200 ", "\r\n\r\nb-00000001\n");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        web(r, wrong[i], " 400 ", "expected neither %3F nor %23 in a name");
    web(r, "/v1/no/area?a=%2", " 400 ", "expected two hexadecimal digits");
    web(r, "/v1/no/area?%61=c", " 200 ", "\r\n\r\nc-00000002\n");
    web(r, "/v1/no/tenant%3Aa", " 200 ", "\r\n\r\na/1\n");
    web(r, "/v1/no/area?a=b%3Dc", " 400 ", "a: expected 1 to 1 characters"); /* all of it is a's */
}

/* Nothing that a key or a query says is passed over, and no number is spent on it. */
static void what_nobody_reads_is_refused(void **state)
{
    struct rig *r = *state;
    static const char *const once = "expected n, block and date at most once";
    char key[256];
    (void)snprintf(key, sizeof key, "GET no:area?a=%0200d", 1);
    check(r, "GET no:area?a=b", "$10\r\nb-00000001\r\n");
    for (int i = 0; i < 2; i++) {
        check(r, "GET no:area?a=b&n=2",
              "-ERR expected arguments of the sequence's template, or date=, found \"n\"\r\n");
        check(r, "LPOP no:area?sub=x&a=b 2",
              "-ERR expected arguments of the sequence's template, or date=, found \"sub\"\r\n");
        mc(r, "get no:area?block=1&a=b\r\n",
           "CLIENT_ERROR expected arguments of the sequence's template, or date=, found "
           "\"block\"\r\n");
        check(
            r, key,
            "-ERR expected no:NAME or no:NAME:SUB, and ?ARGUMENT=VALUE behind it; NAME of 1 to 64 "
            "letters, digits, '_', '.' and '-', SUB of 1 to 100 printable bytes; found none, or "
            "more than 200 bytes, or another byte\r\n");
        check(r, "GET no:few?date=&date=", "-ERR date: expected once, found twice\r\n");
        web(r, "/v1/no/area?a=b&%6E=2", " 400 ", "found \"n\"");
        web(r, "/v1/no/area?a=b&n=2&n=2", " 400 ", once);
        web(r, "/v1/no/few?date=&date=", " 400 ", once);
        web(r, "/v1/seq/area?block=0&block=1", " 400 ", once);
        web(r, "/v1/no/tenant:a?sub=a", " 400 ", "found \"sub\"");
        web(r, "/v1/seq/tenant?n=1&sub=a", " 400 ", "expected the sub behind a ':' of the name");
    }
    web(r, "/v1/no/area?n=2&a=b&block=0", " 200 ", "\r\n\r\nb-00000002\nb-00000003\n");
    web(r, "/v1/no/area?a=b&", " 200 ", "\r\n\r\nb-00000004\n");
}

/* ---- users ------------------------------------------------------------------------------------
 */

#define USERS                                                                                      \
    "ann:" LOGIN_HASH "\neve:" LOGIN_HASH ":names=area\nacme:" LOGIN_HASH ":names=*:acme\n"
#define NOT_ALLOWED(key, user) "-ERR id key '" key "' is not allowed to user '" user "'\r\n"

static int begin_users(void **state)
{
    int status = begin(state);
    struct rig *r = *state;
    login_begin(&r->serve);
    login_replace(&r->serve, USERS);
    r->svc->open(r->svc, r->session, ACCESS_REQUIRED);
    end_talk();
    begin_talk(ACCESS_REQUIRED);
    return status;
}

static int end_users(void **state)
{
    struct rig *r = *state;
    login_end(&r->serve);
    return end(state);
}

/* Nor is a right got by what no template looks at. */
static void rights_are_to_what_stands_before_the_arguments(void **state)
{
    struct rig *r = *state;
    check(r, "AUTH eve secret", "+OK\r\n");
    check(r, "GET no:area?a=b", "$10\r\nb-00000001\r\n");
    check(r, "GET no:area#1?a=b", "$10\r\nx-00000002\r\n");
    check(r, "GET no:few", NOT_ALLOWED("no:few", "eve"));
    check(r, "AUTH acme secret", "+OK\r\n");
    check(r, "GET no:tenant:acme?date=", "$6\r\nacme/1\r\n");
    check(r, "GET no:tenant:zoo?sub=:acme", NOT_ALLOWED("no:tenant:zoo?sub=:acme", "acme"));
    check(r, "GET no:tenant:zoo#:acme", NOT_ALLOWED("no:tenant:zoo#:acme", "acme"));
    mc(r, "set any 0 0 10\r\neve secret\r\nget no:area?a=c\r\n",
       "STORED\r\nVALUE no:area?a=c 0 10\r\nc-00000003\r\nEND\r\n");
}

static void what_is_known_to_others_is_no_right(void **state)
{
    struct rig *r = *state;
    static const char no[] = "CLIENT_ERROR id key is not allowed to this user\r\n";
    check(r, "GET no:few", "-NOAUTH Authentication required.\r\n");
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "GET no:few", "$4\r\nF001\r\n");
    check(r, "GET no:few", "$4\r\nF002\r\n");
    mc(r, "set any 0 0 10\r\nann secret\r\nget no:few\r\n",
       "STORED\r\nVALUE no:few 0 4\r\nF003\r\nEND\r\n");
    begin_looking();
    mc(r, "get no:few\r\n", "VALUE no:few 0 4\r\nF004\r\nEND\r\n");
    check(r, "GET no:few", "$4\r\nF005\r\n");
    assert_false(was_looked_for());
    end_talk();
    begin_talk(ACCESS_REQUIRED);
    mc(r, "get no:few\r\n", "CLIENT_ERROR unauthenticated\r\n");
    mc(r, "set any 0 0 10\r\neve secret\r\nget no:few\r\n", rig_both("STORED\r\n", no));
    mc(r, "get no:few\r\n", no);
    check(r, "AUTH eve secret", "+OK\r\n");
    check(r, "GET no:few", NOT_ALLOWED("no:few", "eve"));
    check(r, "RESET", "+RESET\r\n");
    check(r, "GET no:few", "-NOAUTH Authentication required.\r\n");
    check(r, "AUTH ann secret", "+OK\r\n");
    check(r, "GET no:few", "$4\r\nF006\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(up_to_the_width_and_no_further, begin, end),
        cmocka_unit_test_setup_teardown(arguments_are_the_requests_own, begin, end),
        cmocka_unit_test_setup_teardown(within_a_transaction_it_is_queued, begin, end),
        cmocka_unit_test_setup_teardown(nobody_is_looked_for_who_is_known, begin, end),
        cmocka_unit_test_setup_teardown(memcached_has_arguments_of_each_request, begin, end),
        cmocka_unit_test_setup_teardown(one_that_made_room_is_looked_for_again, begin, end),
        cmocka_unit_test_setup_teardown(what_is_encoded_divides_nothing, begin, end),
        cmocka_unit_test_setup_teardown(what_nobody_reads_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(rights_are_to_what_stands_before_the_arguments, begin_users,
                                        end_users),
        cmocka_unit_test_setup_teardown(what_is_known_to_others_is_no_right, begin_users,
                                        end_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
