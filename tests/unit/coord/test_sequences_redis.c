/*
 * Sequences in Redis: replicas that have to acknowledge, logins, scripts that are gone; and answers
 * that no sound script gives.
 */
#include "coord/answer.h"
#include "coord/seq_rows.h"
#include "support/coord_says.h"
#include "support/coord_setup.h"
#include "support/redis_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TIMEOUT_MS 500

static struct server master, replica;
static struct coord *c;
static struct coord_reply reply;
static char out[8192];

static struct coord *open_it(const char *userinfo)
{
    char url[SERVER_URL_MAX];
    (void)snprintf(url, sizeof url, "redis://%s127.0.0.1:%d", userinfo, master.port);
    return setup_open_within(url, "p", clock_system(), TIMEOUT_MS);
}

static int setup(void **state)
{
    (void)state;
    server_start(&master, false, NULL);
    c = open_it("");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    coord_free(c);
    server_free(&replica);
    server_free(&master);
    return 0;
}

static void make(uint32_t replicas)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    const struct seq_create seq = {
        .name = "a",
        .definition = {.start = 1, .increment = 1, .rate = 100, .loss = SEQ_LOSS_SKIP}};
    struct seq_grant g;
    in.params.replicas = replicas;
    assert_int_equal(coord_init(c, &in, &reply), COORD_OK);
    assert_int_equal(seq_create(c, SETUP_IDENTITY, &seq, &g, &reply), COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
}

static enum coord_status take(struct coord *from, uint8_t token, struct seq_grant *g)
{
    const struct seq_caller by = {.now_ms = clock_wall_ms(clock_system())};
    const struct seq_want w = {
        .name = "a", .sub = "", .period = "", .text = "", .count = 10, .token = setup_token(token)};
    struct seq_opening opening;
    return seq_take(from, SETUP_IDENTITY, &by, &w, g, 1, &opening, &reply);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void a_grant_counts_once_replicas_have_it(void **state)
{
    (void)state;
    struct seq_grant g;
    server_start(&replica, false, NULL);
    server_follow(&replica, &master);
    server_wait_followed(&master, 1);
    make(1);
    assert_int_equal(take(c, 1, &g), COORD_OK);
    assert_int_equal(g.how, SEQ_GRANTED);
    server_kill(&replica);
    assert_int_equal(take(c, 2, &g), COORD_DOWN);
    coord_says(&reply, "WAIT: expected 1 replicas to acknowledge");
    assert_true(g.hi == 0 && g.n == 0);
    server_again(&replica);
    server_follow(&replica, &master);
    server_wait_followed(&master, 1);
    assert_int_equal(take(c, 2, &g), COORD_OK);
    assert_int_equal(g.how, SEQ_AGAIN); /* the master had granted it */
    assert_int_equal(g.lo, 10);
}

/* A sidecar whose clock is wrong has those of its definitions that are there: nothing is decided.
 */
static void one_that_is_there_is_kept_by_any_clock(void **state)
{
    (void)state;
    struct setup_clock clock;
    struct seq_create seq = {
        .name = "a",
        .definition = {.start = 1, .increment = 1, .rate = 100, .loss = SEQ_LOSS_SKIP}};
    struct seq_grant g;
    char url[SERVER_URL_MAX];
    make(0);
    setup_clock_init(&clock, clock_wall_ms(clock_system()) + 3600000);
    struct coord *off = setup_open(server_url(&master, url), "p", &clock.clock);
    assert_int_equal(seq_create(off, SETUP_IDENTITY, &seq, &g, &reply), COORD_OK);
    assert_int_equal(g.how, SEQ_KEPT);
    assert_int_equal(g.gen, 1);
    assert_int_equal(g.definition.rate, 100);
    seq.definition.rate++;
    assert_int_equal(seq_create(off, SETUP_IDENTITY, &seq, &g, &reply), COORD_SKEW);
    seq.name = "b";
    assert_int_equal(seq_create(off, SETUP_IDENTITY, &seq, &g, &reply), COORD_SKEW);
    coord_free(off);
}

/* It may be written to, and has a copy of what was counted. */
static void a_replica_grants_nothing(void **state)
{
    (void)state;
    struct seq_grant g;
    char url[SERVER_URL_MAX];
    make(0);
    assert_int_equal(take(c, 1, &g), COORD_OK);
    server_start(&replica, false, NULL);
    server_follow(&replica, &master);
    server_wait_followed(&master, 1);
    assert_true(SERVER_DO(&replica, out, "CONFIG", "SET", "replica-read-only", "no"));
    struct coord *there = setup_open(server_url(&replica, url), "p", clock_system());
    assert_int_equal(take(there, 2, &g), COORD_DOWN);
    coord_says(&reply, "expected a master, found a replica of 127.0.0.1:");
    assert_true(g.hi == 0 && g.n == 0);
    server_follow(&replica, NULL);
    assert_int_equal(take(there, 2, &g), COORD_OK);
    coord_free(there);
}

/* sequences.lua is longer than what a server takes of strangers before it says so. */
static void a_missing_password_is_told(void **state)
{
    (void)state;
    struct seq_grant g;
    make(0);
    assert_true(SERVER_DO(&master, out, "CONFIG", "SET", "requirepass", "pw"));
    struct coord *stranger = open_it("");
    assert_int_equal(take(stranger, 1, &g), COORD_REFUSED);
    coord_says(&reply, "found -NOAUTH Authentication required; name a password in the URL");
    coord_free(stranger);
    struct coord *known = open_it(":pw@");
    assert_int_equal(take(known, 1, &g), COORD_OK);
    coord_free(known);
}

static void scripts_that_are_gone_are_sent_again(void **state)
{
    (void)state;
    struct seq_grant g;
    struct coord_pool p;
    make(0);
    assert_int_equal(take(c, 1, &g), COORD_OK);
    assert_true(SERVER_DO(&master, out, "SCRIPT", "FLUSH"));
    assert_int_equal(take(c, 2, &g), COORD_OK);
    assert_int_equal(g.lo, 10);
    assert_int_equal(coord_describe(c, &p, &reply), COORD_OK); /* the other one */
    assert_int_equal(take(c, 3, &g), COORD_OK);
}

/* ---- answers --------------------------------------------------------------------------------- */

#define ITEMS 2

#define TEXT                                                                                       \
    "start=1 increment=1 begins=5 rate=0 burst=0 subs=0 reset=never offset=0 loss=trust "          \
    "order=sidecar cycle=no"

static const char *const sound[ANSWER_HEAD + ANSWER_OPENING + ITEMS * ANSWER_GRANT] = {
    "OK",    "1780000000000",
    "3",     "4",
    "0",     "1770000000000",
    "print", "granted",
    "",      "1",
    "0",     "",
    "1000",  "10",
    "19",    "2",
    "20",    "0",
    "0",     "0",
    "0",     "wait",
    TEXT,    "1",
    "0",     "2026",
    "1000",  "0",
    "0",     "2",
    "20",    "7",
    "3",     "2",
    "1",
};

static struct answer answer_of(const char *const *fields, size_t n)
{
    struct answer a = {.n = n};
    for (size_t i = 0; i < n; i++)
        a.f[i] = span_str(fields[i]);
    return a;
}

static const struct answer_to to = {"p", SETUP_IDENTITY};
static const struct seq_want wants[ITEMS] = {
    {.text = "start=0 increment=2 begins=5 rate=0 burst=0 subs=0 reset=never offset=0 loss=refuse"
             " order=sidecar cycle=no"},
    {.text = ""},
};

static enum coord_status read_take(const struct answer *a, struct seq_grant *g)
{
    struct seq_opening o;
    memset(&reply, 0, sizeof reply);
    memset(g, 0, ITEMS * sizeof *g);
    return answer_take(a, &to, wants, g, ITEMS, &o, &reply);
}

static void a_sound_answer_is_read(void **state)
{
    (void)state;
    struct seq_grant g[ITEMS];
    struct answer a = answer_of(sound, sizeof sound / sizeof *sound);
    assert_int_equal(read_take(&a, g), COORD_OK);
    assert_true(g[0].how == SEQ_GRANTED && g[0].lo == 10 && g[0].hi == 19 && g[0].n == 2);
    assert_string_equal(g[0].text, wants[0].text);
    assert_true(g[1].how == SEQ_WAIT && g[1].wait_ms == 7 && g[1].revoked.turn == 3);
    assert_true(g[1].revoked.era == 2 && g[1].revoked.from == 1);
    assert_string_equal(g[1].period, "2026");
    assert_string_equal(g[1].text, sound[ANSWER_HEAD + ANSWER_OPENING + ANSWER_GRANT + 1]);
}

static void what_no_script_says_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "x", "-1", "9007199254740992", "01", "1e3"};
    static const size_t texts[] = {1, 4}; /* of an item: definition and period */
    struct seq_grant g[ITEMS];
    size_t first = ANSWER_HEAD + ANSWER_OPENING, n = sizeof sound / sizeof *sound;
    for (size_t i = 0; i < n; i++) {
        size_t at = i < first ? SIZE_MAX : (i - first) % ANSWER_GRANT;
        for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
            struct answer a = answer_of(sound, n);
            if (i == first - 1 || at == texts[0] || at == texts[1])
                continue;
            a.f[i] = span_str(bad[k]);
            assert_int_equal(read_take(&a, g), COORD_REFUSED);
            assert_true(*reply.err.text != '\0');
        }
        struct answer shorter = answer_of(sound, i);
        assert_int_equal(read_take(&shorter, g), COORD_REFUSED);
    }
    static const char longer[] = "2026-11-22T141";
    struct answer a = answer_of(sound, n);
    a.f[first + 4] = span_str(longer);
    assert_int_equal(read_take(&a, g), COORD_REFUSED);
    char text[SEQ_TEXT_MAX + 1];
    memset(text, 'x', SEQ_TEXT_MAX);
    text[SEQ_TEXT_MAX] = '\0';
    a = answer_of(sound, n);
    a.f[first + 1] = span_str(text);
    assert_int_equal(read_take(&a, g), COORD_REFUSED);
    a = answer_of(sound, n);
    a.f[first - 1] = span_str(text); /* the fingerprint */
    assert_int_equal(read_take(&a, g), COORD_REFUSED);
}

static void rows_are_read(void **state)
{
    (void)state;
    static const char *const fields[] = {"OK", "1", "3", "4", "0", "96", "0", "k", "v", "l", "w"};
    struct seq_rows rows = {.n = 0};
    int64_t cursor, told;
    struct answer a = answer_of(fields, 11);
    assert_int_equal(answer_rows(&a, &to, &cursor, &told, &rows, &reply), COORD_OK);
    assert_true(rows.n == 2 && cursor == 96 && told == 0 && rows.opening.era == 3);
    a.n = 10;
    assert_int_equal(answer_rows(&a, &to, &cursor, &told, &rows, &reply), COORD_REFUSED);
    a.n = 6;
    assert_int_equal(answer_rows(&a, &to, &cursor, &told, &rows, &reply), COORD_REFUSED);
    a = answer_of(fields, 11);
    a.f[5] = SPAN("x");
    assert_int_equal(answer_rows(&a, &to, &cursor, &told, &rows, &reply), COORD_REFUSED);
    seq_rows_clear(&rows);
    enum seq_how how[1];
    static const char *const back[] = {"OK", "1", "3", "4", "0", "kept"};
    a = answer_of(back, 6);
    assert_int_equal(answer_back(&a, &to, how, 1, &reply), COORD_OK);
    assert_int_equal(how[0], SEQ_KEPT);
    a.f[5] = SPAN("granted");
    assert_int_equal(answer_back(&a, &to, how, 1, &reply), COORD_REFUSED);
    static const char *const more[] = {"OK", "1", "3", "4", "0", "kept", "kept"};
    a = answer_of(more, 7);
    assert_int_equal(answer_back(&a, &to, how, 1, &reply), COORD_REFUSED);
}

/* ---- what a driver says ---------------------------------------------------------------------- */

static struct seq_grant said;

static enum coord_status say(struct coord *base, const char *identity, const struct seq_caller *by,
                             const struct seq_want *items, struct seq_grant *grants, size_t n,
                             struct seq_opening *opening, struct coord_reply *r)
{
    (void)base, (void)identity, (void)by, (void)items, (void)n, (void)opening, (void)r;
    grants[0] = said;
    return COORD_OK;
}

static const struct seq_driver liar = {.take = say};
static const struct coord_driver lying = {.sequences = &liar};

static int parts;

static enum coord_status say_more(struct coord *base, const char *identity, const char *prefix,
                                  struct seq_rows *rows, struct coord_reply *r)
{
    (void)base, (void)identity, (void)prefix, (void)r;
    parts++;
    rows->cursor = 7;
    return COORD_OK;
}

static void a_list_without_an_end_is_given_up(void **state)
{
    (void)state;
    static const struct seq_driver endless = {.rows = say_more};
    static const struct coord_driver of = {.sequences = &endless};
    struct coord fake = {.driver = &of};
    struct seq_list list;
    struct seq_counters all;
    assert_int_equal(seq_list(&fake, SETUP_IDENTITY, &list, &reply), COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "expected an end"));
    assert_int_equal(parts, SEQ_PARTS_MAX);
    free(list.v);
    assert_int_equal(seq_show(&fake, SETUP_IDENTITY, "a", &all, &reply), COORD_REFUSED);
    assert_int_equal(parts, 2 * SEQ_PARTS_MAX);
    free(all.v);
}

static enum coord_status told(struct seq_grant g)
{
    struct coord fake = {.driver = &lying};
    struct seq_grant got;
    said = g;
    (void)snprintf(said.text, sizeof said.text, "%s", wants[0].text);
    return take(&fake, 1, &got);
}

static void a_block_that_cannot_be_is_refused(void **state)
{
    (void)state;
    const struct seq_grant good = {.how = SEQ_GRANTED, .gen = 1, .max = 1000, .lo = 10, .hi = 19};
    struct seq_grant g = good;
    assert_int_equal(told(g), COORD_OK);
    g.hi = 20; /* ten were asked for */
    assert_int_equal(told(g), COORD_REFUSED);
    g.how = SEQ_AGAIN; /* of this one the count is not known */
    assert_int_equal(told(g), COORD_OK);
    g.hi = g.lo + SEQ_BLOCK_MAX;
    g.max = SEQ_BLOCK_MAX * 2;
    assert_int_equal(told(g), COORD_REFUSED);
    g = good;
    g.hi = 9;
    assert_int_equal(told(g), COORD_REFUSED);
    g = good;
    g.max = 18;
    assert_int_equal(told(g), COORD_REFUSED);
    g = good;
    g.how = SEQ_WAIT;
    g.wait_ms = 5;
    assert_int_equal(told(g), COORD_REFUSED);
    g.lo = g.hi = 0;
    assert_int_equal(told(g), COORD_OK);
    g.wait_ms = 0;
    assert_int_equal(told(g), COORD_REFUSED);
    g = good;
    g.gen = 0; /* of which sequence? */
    assert_int_equal(told(g), COORD_REFUSED);
    g = good;
    g.max = SEQ_INDEX_MAX; /* with an increment of 2 its number is none */
    assert_int_equal(told(g), COORD_REFUSED);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_grant_counts_once_replicas_have_it),
        TEST(one_that_is_there_is_kept_by_any_clock),
        TEST(a_replica_grants_nothing),
        TEST(a_missing_password_is_told),
        TEST(scripts_that_are_gone_are_sent_again),
        cmocka_unit_test(a_sound_answer_is_read),
        cmocka_unit_test(what_no_script_says_is_refused),
        cmocka_unit_test(rows_are_read),
        cmocka_unit_test(a_list_without_an_end_is_given_up),
        cmocka_unit_test(a_block_that_cannot_be_is_refused),
    };
    if (!server_available()) {
        (void)printf("no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/sequences_redis", tests, NULL, NULL);
}
