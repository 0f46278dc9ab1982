/*
 * K >= 1: answers of the Redis driver count once the replicas have them. Against real masters with
 * real replicas, and against servers that claim things.
 */
#include "coord/remote.h"
#include "support/coord_says.h"
#include "support/coord_setup.h"
#include "support/fake_server.h"
#include "support/redis_server.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define NODES      3
#define TIMEOUT_MS 500
#define TRIES      40 /* of at most TIMEOUT_MS */

struct fixture {
    struct server node[NODES]; /* at first 0 is the master of the others */
    struct coord *c[NODES];    /* over their Unix sockets */
    struct coord_reply r;
    struct coord_grant g;
    char out[8192];
};

static struct fixture fixture;

/* The server is started in time to be counted, and keeps its data over server_again. */
static void start_node(struct fixture *f, size_t i)
{
    char url[SERVER_URL_MAX];
    server_start(&f->node[i], i == 0, NULL);
    f->c[i] = setup_open_within(server_url(&f->node[i], url), "p", clock_system(), TIMEOUT_MS);
}

static int setup(void **state)
{
    struct fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    for (size_t i = 0; i < NODES; i++)
        start_node(f, i);
    for (size_t i = 1; i < NODES; i++)
        server_follow(&f->node[i], &f->node[0]);
    server_wait_followed(&f->node[0], NODES - 1);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < NODES; i++) {
        coord_free(f->c[i]);
        server_signal(&f->node[i], SIGCONT);
        server_free(&f->node[i]);
    }
    return 0;
}

static enum coord_status make(struct fixture *f, uint32_t replicas)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    in.params.replicas = replicas;
    return coord_init(f->c[0], &in, &f->r);
}

static enum coord_status claim(struct fixture *f, size_t node)
{
    return coord_claim(f->c[node], SETUP_IDENTITY, clock_wall_ms(clock_system()), setup_token(1),
                       &f->g, &f->r);
}

static enum coord_status renew(struct fixture *f, size_t node, struct coord_renewal *item)
{
    return coord_renew(f->c[node], SETUP_IDENTITY, setup_now(), item, 1, setup_terms(), &f->r);
}

/* A replica that was away comes back when it likes: asks until the answer is not COORD_DOWN. */
static enum coord_status claim_in_the_end(struct fixture *f, size_t node)
{
    enum coord_status s = COORD_DOWN;
    for (int i = 0; i < TRIES && s == COORD_DOWN; i++) {
        s = claim(f, node);
        if (s == COORD_DOWN)
            (void)usleep(50000);
    }
    return s;
}

/* A field of the pool as this node has it. */
static const char *field(struct fixture *f, size_t node, const char *name)
{
    assert_true(SERVER_DO(&f->node[node], f->out, "HGET", "sidflake:{p}:h", name));
    return f->out;
}

/* ---- the ordinary life ----------------------------------------------------------------------- */

static void answers_count_once_replicas_have_them(void **state)
{
    struct fixture *f = *state;
    struct coord_pool p;
    coord_came_to(&f->r, make(f, 2), COORD_OK);
    assert_int_equal(f->r.free, 10);
    coord_came_to(&f->r, coord_describe(f->c[0], &p, &f->r), COORD_OK);
    assert_int_equal(p.params.replicas, 2);
    assert_int_equal(p.replicas, 2);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    server_kill(&f->node[0]);
    for (size_t i = 1; i < NODES; i++)
        assert_non_null(strstr(field(f, i, "0"), "01010101010101010101010101010101"));
}

static void snapshots_are_read_of_replicated_pools(void **state)
{
    struct fixture *f = *state;
    struct coord_snapshot s;
    coord_came_to(&f->r, make(f, 2), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    coord_came_to(&f->r, coord_snapshot(f->c[0], &s, &f->r), COORD_OK);
    assert_int_equal(s.pool.params.replicas, 2);
    assert_int_equal(s.nworkers, 1);
    assert_int_equal(s.nqueue, 9);
    coord_snapshot_clear(&s);
}

/* Each is asked again as the lease machine does, with the same tokens. */
static void a_paused_replica_stops_every_answer(void **state)
{
    struct fixture *f = *state;
    struct coord_release gone = {.worker = 0, .cur = setup_token(2), .nxt = setup_token(2)};
    coord_came_to(&f->r, make(f, 2), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    struct coord_renewal item = setup_renewal(&f->g, 1, 2);
    server_signal(&f->node[2], SIGSTOP);
    int64_t began = clock_mono_ms(clock_system());
    coord_came_to(&f->r, renew(f, 0, &item), COORD_DOWN);
    assert_in_range(clock_mono_ms(clock_system()) - began, TIMEOUT_MS / 2, TIMEOUT_MS + 500);
    coord_says(&f->r, "WAIT: expected 2 replicas to acknowledge, found 1");
    assert_int_equal(item.hi_ms, f->g.hi_ms);
    coord_came_to(&f->r, renew(f, 0, &item), COORD_DOWN);
    coord_came_to(&f->r, coord_release(f->c[0], SETUP_IDENTITY, &gone, &f->r), COORD_DOWN);
    struct coord_grant before = f->g;
    coord_came_to(&f->r, claim(f, 0), COORD_DOWN);
    assert_int_equal(f->g.hi_ms, 0);
    /* It was recorded all the same, so nobody else gets that range. */
    assert_non_null(strstr(field(f, 0, "1"), "01010101010101010101010101010101"));
    server_signal(&f->node[2], SIGCONT);
    f->g = before;
    coord_came_to(&f->r, claim_in_the_end(f, 0), COORD_OK);
    assert_int_not_equal(f->g.worker, 1);
    coord_came_to(&f->r, coord_release(f->c[0], SETUP_IDENTITY, &gone, &f->r), COORD_LOST);
}

/* Twice max-skew goes by before the replicas have it, and meanwhile a range ends: what is granted
 * begins above the time at which it was asked for first. */
static void a_late_confirmation_is_no_clock_that_differs(void **state)
{
    struct fixture *f = *state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    char url[SERVER_URL_MAX], record[64];
    struct coord *patient =
        setup_open_within(server_url(&f->node[0], url), "p", clock_system(), 10000);
    in.params.replicas = 2;
    in.params.max_skew_ms = 500;
    coord_came_to(&f->r, coord_init(patient, &in, &f->r), COORD_OK);
    assert_true(SERVER_DO(&f->node[0], f->out, "HSET", "sidflake:{p}:h", "sure", "0"));
    (void)snprintf(record, sizeof record, "1 %" PRId64 " - 0 1",
                   clock_wall_ms(clock_system()) + 500);
    assert_true(SERVER_DO(&f->node[0], f->out, "HSET", "sidflake:{p}:h", "0", record));
    server_signal(&f->node[2], SIGSTOP);
    pid_t later = fork();
    if (later == 0) {
        (void)usleep(1000000);
        server_signal(&f->node[2], SIGCONT);
        _exit(0);
    }
    int64_t asked = clock_wall_ms(clock_system());
    enum coord_status s = coord_claim(patient, SETUP_IDENTITY, asked, setup_token(1), &f->g, &f->r);
    coord_free(patient);
    assert_int_equal(waitpid(later, NULL, 0), later);
    coord_came_to(&f->r, s, COORD_OK);
    assert_in_range(f->r.now_ms - asked, 500, 10000);
    assert_int_equal(f->g.worker, 0);
    assert_true(f->g.lo_ms > asked);
}

static void a_renewal_repeated_is_the_same_one(void **state)
{
    struct fixture *f = *state;
    coord_came_to(&f->r, make(f, 2), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    struct coord_renewal item = setup_renewal(&f->g, 1, 2);
    server_signal(&f->node[1], SIGSTOP);
    coord_came_to(&f->r, renew(f, 0, &item), COORD_DOWN);
    server_signal(&f->node[1], SIGCONT);
    enum coord_status s = COORD_DOWN;
    for (int i = 0; i < TRIES && s == COORD_DOWN; i++)
        s = renew(f, 0, &item);
    assert_int_equal(s, COORD_OK);
    assert_int_equal(item.how, COORD_HOW_AGAIN);
    assert_int_equal(item.n, f->g.n + 1);
    assert_true(item.hi_ms >= f->g.hi_ms);
}

static void no_pool_is_made_on_one_server_alone(void **state)
{
    struct fixture *f = *state;
    struct coord_pool p;
    server_follow(&f->node[1], NULL);
    server_follow(&f->node[2], NULL);
    server_wait_followed(&f->node[0], 0);
    coord_came_to(&f->r, make(f, 1), COORD_DOWN);
    coord_says(&f->r, "no pool was made (");
    coord_says(&f->r, "expected 1 replicas to acknowledge, found 0");
    coord_came_to(&f->r, coord_describe(f->c[0], &p, &f->r), COORD_NOPOOL);
    server_follow(&f->node[1], &f->node[0]);
    server_wait_followed(&f->node[0], 1);
    coord_came_to(&f->r, make(f, 1), COORD_OK);
    coord_came_to(&f->r, claim_in_the_end(f, 0), COORD_OK);
    server_follow(&f->node[1], NULL);
    server_wait_followed(&f->node[0], 0);
    coord_came_to(&f->r, coord_describe(f->c[0], &p, &f->r), COORD_OK);
    assert_int_equal(p.params.replicas, 1);
    assert_int_equal(p.replicas, 0);
    coord_came_to(&f->r, make(f, 1), COORD_EXISTS);
    coord_came_to(&f->r, claim(f, 0), COORD_DOWN);
}

/* ---- another server, or the same one again --------------------------------------------------- */

/* It takes the pool for new only with the replicas, and writes nothing but a mark before. */
static void a_restarted_master_waits_for_its_replicas(void **state)
{
    struct fixture *f = *state;
    char tmax[64];
    coord_came_to(&f->r, make(f, 1), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    struct coord_renewal item = setup_renewal(&f->g, 1, 2);
    (void)snprintf(tmax, sizeof tmax, "%.32s", field(f, 0, "tmax"));
    for (size_t i = 1; i < NODES; i++)
        server_signal(&f->node[i], SIGSTOP);
    server_kill(&f->node[0]);
    server_again(&f->node[0]);
    coord_came_to(&f->r, claim(f, 0), COORD_DOWN);
    coord_says(&f->r, "expected 1 replicas");
    coord_came_to(&f->r, renew(f, 0, &item), COORD_DOWN);
    assert_string_equal(field(f, 0, "era"), "1");
    assert_string_equal(field(f, 0, "tmax"), tmax);
    for (size_t i = 1; i < NODES; i++)
        server_signal(&f->node[i], SIGCONT);
    coord_came_to(&f->r, claim_in_the_end(f, 0), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    assert_in_range(f->r.wait_ms, 25000, 36001);
    coord_came_to(&f->r, renew(f, 0, &item), COORD_OK);
    assert_int_equal(item.how, COORD_HOW_REASSERTED);
    assert_int_equal(f->r.era, 2);
}

/*
 * A split: 1 is made a master while 2 still follows 0. Until 2 has changed sides the old master is
 * the one whose answers count; from then on the new one is. Never both.
 */
static void of_two_masters_one_counts(void **state)
{
    struct fixture *f = *state;
    coord_came_to(&f->r, make(f, 1), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    struct coord_grant held = f->g;
    server_follow(&f->node[1], NULL);
    server_wait_followed(&f->node[0], 1);
    coord_came_to(&f->r, claim(f, 1), COORD_DOWN);
    coord_says(&f->r, "expected 1 replicas to acknowledge, found 0");
    assert_string_equal(field(f, 1, "era"), "1");
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    assert_int_equal(f->r.era, 1);

    server_follow(&f->node[2], &f->node[1]);
    server_wait_followed(&f->node[1], 1);
    coord_came_to(&f->r, claim_in_the_end(f, 1), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    struct coord_renewal item = setup_renewal(&held, 1, 2);
    coord_came_to(&f->r, renew(f, 1, &item), COORD_OK);
    assert_int_equal(item.how, COORD_HOW_REASSERTED);
    coord_came_to(&f->r, claim(f, 0), COORD_DOWN);
    item = setup_renewal(&held, 1, 3);
    coord_came_to(&f->r, renew(f, 0, &item), COORD_DOWN);
    assert_int_equal(item.hi_ms, held.hi_ms);
}

/* Nor is its LOST, by which a holder would stop, nor what it says to a release. */
static void a_lone_master_takes_nothing_away(void **state)
{
    struct fixture *f = *state;
    coord_came_to(&f->r, make(f, 1), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    struct coord_renewal item = setup_renewal(&f->g, 7, 8); /* not the holder's tokens */
    struct coord_release gone = {.worker = 0, .cur = setup_token(7), .nxt = setup_token(8)};
    coord_came_to(&f->r, renew(f, 0, &item), COORD_OK);
    assert_int_equal(item.how, COORD_HOW_LOST);
    server_follow(&f->node[1], NULL);
    server_follow(&f->node[2], NULL);
    server_wait_followed(&f->node[0], 0);
    item = setup_renewal(&f->g, 7, 8);
    coord_came_to(&f->r, renew(f, 0, &item), COORD_DOWN);
    coord_came_to(&f->r, coord_release(f->c[0], SETUP_IDENTITY, &gone, &f->r), COORD_DOWN);
    coord_came_to(&f->r, coord_evict(f->c[0], SETUP_IDENTITY, 9, &f->r), COORD_DOWN);
    coord_came_to(&f->r, coord_close(f->c[0], SETUP_IDENTITY, false, &f->r), COORD_DOWN);
    coord_came_to(&f->r, claim(f, 0), COORD_DOWN); /* closed it is, but who knows that? */
    coord_came_to(&f->r, claim(f, 1), COORD_DOWN);
    coord_says(&f->r, "WAIT");
    server_follow(&f->node[0], &f->node[1]);
    server_wait_followed(&f->node[1], 1);
    coord_came_to(&f->r, claim_in_the_end(f, 1), COORD_WAIT);
    coord_came_to(&f->r, claim(f, 0), COORD_DOWN);
    coord_says(&f->r, "expected a master, found a replica of 127.0.0.1:");
}

/* Whoever is not heard asks again, with another token: each time a workerId would be gone. */
static void a_claim_that_nobody_listens_to_takes_nothing(void **state)
{
    struct fixture *f = *state;
    coord_came_to(&f->r, make(f, 1), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    server_follow(&f->node[1], NULL);
    server_follow(&f->node[2], NULL);
    server_wait_followed(&f->node[0], 0);
    for (unsigned i = 0; i < 3; i++) {
        coord_came_to(&f->r, claim(f, 0), COORD_DOWN);
        coord_says(&f->r, "WAIT: expected 1 replicas to acknowledge, found 0");
    }
    assert_true(SERVER_DO(&f->node[0], f->out, "LLEN", "sidflake:{p}:free"));
    assert_string_equal(f->out, "9");
    server_follow(&f->node[1], &f->node[0]);
    server_wait_followed(&f->node[0], 1);
    coord_came_to(&f->r, claim_in_the_end(f, 0), COORD_OK);
    assert_int_equal(f->g.worker, 1);
}

/* ---- replicas that may be written to ----------------------------------------------------------
 */

static void make_writable(struct fixture *f, size_t node)
{
    assert_true(SERVER_DO(&f->node[node], f->out, "CONFIG", "SET", "replica-read-only", "no"));
}

/* Nor is it reopened: of a copy it looks like a failover. */
static void a_writable_replica_grants_nothing(void **state)
{
    struct fixture *f = *state;
    struct coord_pool p;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    char master[64];
    (void)snprintf(master, sizeof master, "expected a master, found a replica of 127.0.0.1:%d",
                   f->node[0].port);
    in.replicas_said = true;
    make_writable(f, 1);
    coord_came_to(&f->r, coord_init(f->c[1], &in, &f->r), COORD_DOWN);
    coord_came_to(&f->r, coord_init(f->c[0], &in, &f->r), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    const struct coord_grant held = f->g;
    struct coord_renewal item = setup_renewal(&held, 1, 2);
    server_wait_followed(&f->node[0], NODES - 1);
    coord_came_to(&f->r, claim(f, 1), COORD_DOWN);
    coord_says(&f->r, master);
    assert_true(coord_answered(COORD_DOWN, &f->r));
    coord_came_to(&f->r, renew(f, 1, &item), COORD_DOWN);
    assert_int_equal(item.hi_ms, held.hi_ms);
    coord_came_to(&f->r, coord_describe(f->c[1], &p, &f->r), COORD_DOWN);
    coord_says(&f->r, master);
    assert_string_equal(field(f, 1, "era"), "1");
    coord_came_to(&f->r, renew(f, 0, &item), COORD_OK);
}

/* Connections stay when a master is told to follow another one, and when a replica is promoted. */
static void a_master_that_is_deposed_grants_nothing_more(void **state)
{
    struct fixture *f = *state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    in.replicas_said = true;
    coord_came_to(&f->r, coord_init(f->c[0], &in, &f->r), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    struct coord_renewal item = setup_renewal(&f->g, 1, 2);
    server_wait_followed(&f->node[0], NODES - 1);
    make_writable(f, 0);
    server_follow(&f->node[1], NULL);
    server_follow(&f->node[0], &f->node[1]);
    coord_came_to(&f->r, renew(f, 0, &item), COORD_DOWN);
    coord_says(&f->r, "expected a master, found a replica of");
    coord_came_to(&f->r, claim(f, 0), COORD_DOWN);
    coord_came_to(&f->r, renew(f, 1, &item), COORD_OK);
    assert_int_equal(item.how, COORD_HOW_REASSERTED);
}

/* The answer is held up on its way, while somebody makes the master a replica of another, and a
 * master again, whom that one follows: it counts what is not in its data any more. */
static void a_master_that_was_a_replica_meanwhile_counts_nothing(void **state)
{
    struct fixture *f = *state;
    struct courier *c = &((struct remote *)(void *)f->c[0])->courier;
    struct coord_renewal item;
    struct coord_reply r;
    coord_came_to(&f->r, make(f, 1), COORD_OK);
    coord_came_to(&f->r, claim(f, 0), COORD_OK);
    item = setup_renewal(&f->g, 1, 2);
    coord_came_to(&f->r, renew(f, 0, &item),
                  COORD_OK); /* the connection is there, and its script */
    server_follow(&f->node[1], NULL);
    server_follow(&f->node[0], &f->node[1]);
    server_wait_followed(&f->node[1], 1);
    server_follow(&f->node[0], NULL);
    server_follow(&f->node[1], &f->node[0]);
    server_wait_followed(&f->node[0], NODES - 1);
    courier_start(c);
    assert_int_equal(courier_wait(c, 1, &r), COORD_DOWN);
    coord_says(&r, "expected the replicas of one history");
}

/* ---- servers that claim things --------------------------------------------------------------- */

#define SHA     "$40\r\n0123456789012345678901234567890123456789\r\n"
#define TIME    "$13\r\n1780000000000\r\n"
#define TEXT(t) "+" t "\r\n"
#define GRANT(k)                                                                                   \
    "*10\r\n" TEXT("OK") TIME TEXT("1") TEXT("5") TEXT(k) TEXT("7") TEXT("1779999999000")          \
        TEXT("1780000030000") TEXT("1") TIME
#define HISTORY(x)        /* 31 digits */ "$71\r\n# Replication\r\nmaster_replid:012345678" x "\r\n\r\n"
#define ONE               HISTORY("9012345678901234567890123456789")
#define OTHER             HISTORY("9012345678901234567890123456780")
#define CONFIRM(nonce, k) "*4\r\n" TEXT("CONFIRM") TIME TEXT(nonce) TEXT(k)

struct script {
    struct fake_reply reply[8];
    enum coord_status status;
    const char *says;
};

/* knows: that replicas have to acknowledge. */
static void follow_script(const struct script *s, bool knows, size_t i)
{
    struct fake_server fake;
    struct coord_grant g;
    struct coord_reply r;
    char url[64];
    fake_server_script(&fake, s->reply);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", fake.port);
    struct coord *c = setup_open(url, "p", clock_system());
    if (knows)
        (void)courier_counts(&((struct remote *)(void *)c)->courier);
    enum coord_status got = coord_claim(c, SETUP_IDENTITY, 1780000000000, setup_token(1), &g, &r);
    coord_free(c);
    fake_server_stop(&fake);
    if (got != s->status || !strstr(r.err.text, s->says) || (got != COORD_OK && g.hi_ms != 0))
        fail_msg("script %zu: %s, %s", i, coord_status_name(got), r.err.text);
}

#define LOAD                                                                                       \
    {                                                                                              \
        "SCRIPT", SHA                                                                              \
    }

static void every_count_but_enough_is_down_or_refused(void **state)
{
    (void)state;
    static const struct script scripts[] = {
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("0")}}, COORD_OK, ""},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", ":2\r\n"}}, COORD_OK, ""},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", ":3\r\n"}}, COORD_OK, ""},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", ":1\r\n"}},
         COORD_DOWN,
         "expected 2 replicas to"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", ":-1\r\n"}},
         COORD_DOWN,
         "found -1"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", "+2\r\n"}}, COORD_REFUSED, "WAIT"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", "*1\r\n:2\r\n"}},
         COORD_REFUSED,
         "WAIT"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", NULL}}, COORD_DOWN, "closed"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", "-UNBLOCKED x\r\n"}},
         COORD_DOWN,
         "UNBLOCKED"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("2")}, {"WAIT", "-NOPERM x\r\n"}},
         COORD_REFUSED,
         "WAIT"},
        {{LOAD,
          {"INFO", ONE},
          {"EVALSHA", GRANT("2")},
          {"WAIT", "-ERR WAIT cannot be used with replica instances.\r\n"}},
         COORD_DOWN,
         "found a replica"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("101")}, {"WAIT", ":200\r\n"}},
         COORD_REFUSED,
         "replicas"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", GRANT("-1")}, {"WAIT", ":1\r\n"}},
         COORD_REFUSED,
         "decimal"},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        follow_script(&scripts[i], true, i);
}

static void a_confirmation_is_asked_for_once_and_counted_twice(void **state)
{
    (void)state;
    static const struct script scripts[] = {
        {{LOAD,
          {"INFO", ONE},
          {"EVALSHA", CONFIRM("ab", "1")},
          {"EVALSHA", GRANT("1")},
          {"WAIT", ":1\r\n"}},
         COORD_OK,
         ""},
        {{LOAD,
          {"INFO", ONE},
          {"EVALSHA", CONFIRM("ab", "1")},
          {"EVALSHA", GRANT("1")},
          {"WAIT", ":0\r\n"}},
         COORD_DOWN,
         "found 0"},
        {{LOAD,
          {"INFO", ONE},
          {"EVALSHA", CONFIRM("ab", "1")},
          {"EVALSHA", GRANT("1")},
          {"WAIT", ":1\r\n"},
          {"WAIT", ":0\r\n"}},
         COORD_DOWN,
         "found 0"},
        {{LOAD,
          {"INFO", ONE},
          {"EVALSHA", CONFIRM("ab", "1")},
          {"EVALSHA", CONFIRM("cd", "1")},
          {"EVALSHA", GRANT("1")},
          {"WAIT", ":1\r\n"}},
         COORD_DOWN,
         "found another"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", CONFIRM("ab", "0")}, {"WAIT", ":1\r\n"}},
         COORD_REFUSED,
         "replicas"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", CONFIRM("", "1")}, {"WAIT", ":1\r\n"}},
         COORD_REFUSED,
         "nonce"},
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        follow_script(&scripts[i], true, i);
}

/* Whoever renews a page begins with that: he asks for the history, and says it again. */
static void who_did_not_know_says_it_again(void **state)
{
    (void)state;
    static const struct script one = {
        {LOAD, {"EVALSHA", GRANT("1")}, {"INFO", ONE}, {"EVALSHA", GRANT("1")}, {"WAIT", ":1\r\n"}},
        COORD_OK,
        ""};
    follow_script(&one, false, 0);
}

static void acknowledgements_of_another_history_count_for_nothing(void **state)
{
    (void)state;
#define REST                                                                                       \
    {"EVALSHA", GRANT("1")},                                                                       \
    {                                                                                              \
        "WAIT", ":1\r\n"                                                                           \
    }
    static const struct script scripts[] = {
        {{LOAD, {"INFO", ONE}, {"INFO", ONE}, REST}, COORD_OK, ""},
        {{LOAD, {"INFO", ONE}, {"INFO", OTHER}, REST}, COORD_DOWN, "replicas of one history"},
        {{LOAD, {"INFO", ONE}, {"INFO", "$0\r\n\r\n"}, REST}, COORD_REFUSED, "INFO replication"},
        {{LOAD, {"INFO", ONE}, {"INFO", ":1\r\n"}, REST}, COORD_REFUSED, "INFO replication"},
        {{LOAD, {"INFO", "$17\r\nmaster_replid:012\r\n"}, REST}, COORD_REFUSED, "INFO replication"},
        {{LOAD, {"INFO", "-NOPERM x\r\n"}, REST}, COORD_REFUSED, "INFO replication"},
    };
#undef REST
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        follow_script(&scripts[i], true, i);
}

/* Whether the pool is there is told as far as it is known. */
static void a_pool_half_made_says_so(void **state)
{
    (void)state;
    static const struct script scripts[] = {
        {{LOAD,
          {"INFO", ONE},
          {"EVALSHA", CONFIRM("ab", "1")},
          {"WAIT", ":1\r\n"},
          {"EVALSHA", "*5\r\n" TEXT("OK") TIME TEXT("1") TEXT("10") TEXT("1")},
          {"WAIT", ":0\r\n"}},
         COORD_DOWN,
         "the pool was made, but on this server alone (WAIT: expected 1"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", CONFIRM("ab", "1")}, {"WAIT", ":0\r\n"}},
         COORD_DOWN,
         "no pool was made (WAIT: expected 1"},
        {{LOAD,
          {"INFO", ONE},
          {"EVALSHA", CONFIRM("ab", "1")},
          {"WAIT", ":1\r\n"},
          {"EVALSHA", NULL}},
         COORD_DOWN,
         "answer of"},
        {{LOAD, {"INFO", ONE}, {"EVALSHA", NULL}}, COORD_DOWN, "answer of"},
    };
    struct fixture *f = &fixture;
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        struct fake_server fake;
        char url[64];
        fake_server_script(&fake, scripts[i].reply);
        (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", fake.port);
        f->c[0] = setup_open(url, "p", clock_system());
        enum coord_status s = make(f, 1);
        coord_free(f->c[0]);
        fake_server_stop(&fake);
        coord_came_to(&f->r, s, scripts[i].status);
        if (strncmp(f->r.err.text, scripts[i].says, strlen(scripts[i].says)) != 0)
            fail_msg("script %zu: %s", i, f->r.err.text);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(answers_count_once_replicas_have_them),
        TEST(snapshots_are_read_of_replicated_pools),
        TEST(a_paused_replica_stops_every_answer),
        TEST(a_late_confirmation_is_no_clock_that_differs),
        TEST(a_renewal_repeated_is_the_same_one),
        TEST(no_pool_is_made_on_one_server_alone),
        TEST(a_restarted_master_waits_for_its_replicas),
        TEST(of_two_masters_one_counts),
        TEST(a_lone_master_takes_nothing_away),
        TEST(a_claim_that_nobody_listens_to_takes_nothing),
        TEST(a_writable_replica_grants_nothing),
        TEST(a_master_that_is_deposed_grants_nothing_more),
        TEST(a_master_that_was_a_replica_meanwhile_counts_nothing),
        cmocka_unit_test(every_count_but_enough_is_down_or_refused),
        cmocka_unit_test(a_pool_half_made_says_so),
        cmocka_unit_test(a_confirmation_is_asked_for_once_and_counted_twice),
        cmocka_unit_test(who_did_not_know_says_it_again),
        cmocka_unit_test(acknowledgements_of_another_history_count_for_nothing),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/replicas", tests, NULL, NULL);
}
