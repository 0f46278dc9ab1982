/* The Redis driver against real servers, and against some that are not. */
#include "support/coord_says.h"
#include "support/coord_setup.h"
#include "support/fake_server.h"
#include "support/redis_server.h"

#include <inttypes.h>
#include <resolv.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMEOUT_MS 2000 /* setup_open's */

struct fixture {
    struct server server;
    struct coord *c; /* over the Unix socket */
    struct coord_reply r;
    struct coord_grant g;
    char out[4096];
};

static struct fixture fixture;

static struct coord *open_url(const char *url)
{
    return setup_open(url, "p", clock_system());
}

static int start(void **state, bool aof)
{
    char url[SERVER_URL_MAX];
    struct fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    server_start(&f->server, aof, NULL);
    f->c = open_url(server_url(&f->server, url));
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return start(state, false);
}

static int setup_aof(void **state)
{
    return start(state, true);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    coord_free(f->c);
    server_free(&f->server);
    return 0;
}

#define DO(...) assert_true(SERVER_DO(&f->server, f->out, __VA_ARGS__))

static enum coord_status make(struct fixture *f, const char *identity, enum coord_init_mode mode,
                              uint16_t to)
{
    struct coord_init in = setup_init(identity, mode, to);
    return coord_init(f->c, &in, &f->r);
}

static enum coord_status claim_with(struct fixture *f, struct coord_token t)
{
    return coord_claim(f->c, SETUP_IDENTITY, clock_wall_ms(clock_system()), t, &f->g, &f->r);
}

static enum coord_status claim(struct fixture *f)
{
    return claim_with(f, coord_token_new(rng_system()));
}

static struct coord_renewal renewal_of(const struct coord_grant *g, struct coord_token cur)
{
    return (struct coord_renewal){
        .worker = g->worker, .cur = cur, .nxt = setup_token(0xee), .n = g->n, .hi_ms = g->hi_ms};
}

/* ---- the ordinary life ----------------------------------------------------------------------- */

static void a_full_pool_hands_out_in_order(void **state)
{
    struct fixture *f = *state;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, COORD_WORKERS - 1), COORD_OK);
    assert_int_equal(f->r.free, COORD_WORKERS);
    assert_int_equal(f->r.era, 1);
    DO("LLEN", "sidflake:{p}:free");
    assert_string_equal(f->out, "32768");
    int64_t before = clock_wall_ms(clock_system());
    assert_int_equal(claim_with(f, t), COORD_OK);
    assert_int_equal(f->g.worker, 0);
    assert_int_equal(f->g.lo_ms, 1);
    assert_in_range(f->g.hi_ms, before + 30000, before + 31000);
    assert_int_equal(f->r.free, COORD_WORKERS - 1);
    struct coord_release gone = {
        .worker = 0, .cur = t, .nxt = t, .has_last = true, .last_ms = before};
    assert_int_equal(claim(f), COORD_OK);
    assert_int_equal(f->g.worker, 1);
    assert_int_equal(coord_release(f->c, SETUP_IDENTITY, &gone, &f->r), COORD_OK);
    DO("LINDEX", "sidflake:{p}:free", "-1");
    assert_string_equal(f->out, "0");
    DO("HGET", "sidflake:{p}:who", "1");
    assert_string_equal(f->out, SETUP_WHO);
    assert_int_equal(coord_release(f->c, SETUP_IDENTITY, &gone, &f->r), COORD_LOST);
}

/* Scripts of before take whatever stands there for yes, 0 also. */
static void what_is_not_to_be_taken_over_has_no_field_that_says_so(void **state)
{
    struct fixture *f = *state;
    for (unsigned said = 0; said < 2; said++) {
        struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
        in.identity_said = said;
        DO("FLUSHALL");
        assert_int_equal(coord_init(f->c, &in, &f->r), COORD_OK);
        DO("HEXISTS", "sidflake:{p}:h", "adopt");
        assert_string_equal(f->out, said ? "0" : "1");
    }
}

static void renewals_of_many_are_one_request(void **state)
{
    struct fixture *f = *state;
    struct coord_renewal items[COORD_RENEW_MAX];
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, COORD_RENEW_MAX - 1), COORD_OK);
    for (size_t i = 0; i < COORD_RENEW_MAX; i++) {
        assert_int_equal(claim_with(f, t), COORD_OK);
        items[i] = renewal_of(&f->g, i == 7 ? setup_token(2) : t);
    }
    assert_int_equal(claim(f), COORD_EXHAUSTED);
    assert_int_equal(f->r.free, 0);
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_now(), items, COORD_RENEW_MAX,
                                 setup_terms(), &f->r),
                     COORD_OK);
    for (size_t i = 0; i < COORD_RENEW_MAX; i++)
        assert_int_equal(items[i].how, i == 7 ? COORD_HOW_LOST : COORD_HOW_RENEWED);
    int64_t hi = items[3].hi_ms;
    assert_int_equal(
        coord_renew(f->c, SETUP_IDENTITY, setup_now(), &items[3], 1, setup_terms(), &f->r),
        COORD_OK);
    assert_int_equal(items[3].how, COORD_HOW_AGAIN);
    assert_int_equal(items[3].hi_ms, hi);
}

/* What it would be stamped with, floors and the latest time seen, outlives the fault. */
static void a_pool_is_not_made_by_a_clock_that_is_off(void **state)
{
    struct fixture *f = *state;
    char url[SERVER_URL_MAX];
    const int64_t off[] = {-3600000, -60000, 60000, 86400000};
    for (size_t i = 0; i < 2 * sizeof off / sizeof *off; i++) {
        struct setup_clock clock;
        struct coord_init in = setup_init(
            SETUP_IDENTITY, i % 2 ? COORD_INIT_AFTER_LOSS : COORD_INIT_FRESH, COORD_WORKERS - 1);
        setup_clock_init(&clock, clock_wall_ms(clock_system()) + off[i / 2]);
        struct coord *c = setup_open(server_url(&f->server, url), "p", &clock.clock);
        assert_int_equal(coord_init(c, &in, &f->r), COORD_SKEW);
        coord_says(&f->r, "expected within 2000 ms");
        coord_free(c);
    }
    DO("EXISTS", "sidflake:{p}:h");
    assert_string_equal(f->out, "0");
}

static void refusals_name_both_sides(void **state)
{
    struct fixture *f = *state;
    int64_t now = clock_wall_ms(clock_system());
    assert_int_equal(claim(f), COORD_NOPOOL);
    coord_says(&f->r, "pool \"p\"");
    assert_int_equal(make(f, SETUP_IDENTITY_OTHER, COORD_INIT_FRESH, 0), COORD_OK);
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 0), COORD_EXISTS);
    assert_int_equal(claim(f), COORD_WRONGPOOL);
    coord_says(&f->r, "expected " SETUP_IDENTITY ", found " SETUP_IDENTITY_OTHER);
    DO("HSET", "sidflake:{p}:h", "identity", SETUP_IDENTITY);
    assert_int_equal(coord_claim(f->c, SETUP_IDENTITY, now - 60000, setup_token(1), &f->g, &f->r),
                     COORD_SKEW);
    coord_says(&f->r, "expected within 2000 ms");
    DO("HSET", "sidflake:{p}:h", "tmax", "9000000000000");
    assert_int_equal(claim(f), COORD_BADCLOCK);
    coord_says(&f->r, "2255-03-14");
    DO("HSET", "sidflake:{p}:h", "tmax", "x");
    assert_int_equal(claim(f), COORD_REFUSED);
    coord_says(&f->r, "\"tmax\"");
    DO("HSET", "sidflake:{p}:h", "tmax", "1");
    assert_int_equal(coord_close(f->c, SETUP_IDENTITY, false, &f->r), COORD_OK);
    assert_int_equal(claim(f), COORD_CLOSED);
    DO("HSET", "sidflake:{p}:h", "closed", "0");
    assert_int_equal(claim(f), COORD_OK);
    assert_int_equal(coord_evict(f->c, SETUP_IDENTITY, 0, &f->r), COORD_OK);
    assert_int_equal(claim(f), COORD_WAIT);
    assert_in_range(f->r.wait_ms, 20000, 32001);
    assert_int_equal(coord_evict(f->c, SETUP_IDENTITY, 0, &f->r), COORD_LOST);
}

/* There may be millions, and a server serves nobody while it tells them all. */
static void sequences_are_not_asked_for_with_the_workers(void **state)
{
    struct fixture *f = *state;
    struct coord_snapshot s;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 4), COORD_OK);
    assert_int_equal(claim(f), COORD_OK);
    DO("HSET", "sidflake:{p}:h", "4", "odd");
    DO("EVAL", "redis.call('HSET', KEYS[1], 'num x 1 -', string.rep('x', 4194304))", "1",
       "sidflake:{p}:h");
    DO("CONFIG", "SET", "client-output-buffer-limit", "normal 1048576 0 0");
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_OK);
    DO("CONFIG", "SET", "client-output-buffer-limit", "normal 0 0 0");
    assert_int_equal(s.nworkers, 2);
    assert_true(s.workers[0].held);
    assert_string_equal(s.workers[0].who, SETUP_WHO);
    assert_int_equal(s.workers[1].worker, 4);
    assert_true(s.workers[1].unreadable);
    coord_snapshot_clear(&s);
}

#define TOO_LARGE "9007199254740992"

/* Each is a number to Lua, but for the last; an era that does not rise, and a floor that is none,
 * would undo a reopening. */
static void odd_numbers_of_a_pool_are_refused(void **state)
{
    static const char *const fields[] = {"era", "topen", "fl", "fs", "tmax", "S", "settle"};
    static const char *const odd[] = {"nan", "inf", "-1",      "0x10", "1e3",
                                      "1.5", " 5",  TOO_LARGE, ""};
    struct fixture *f = *state;
    char was[sizeof f->out];
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 4), COORD_OK);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        DO("HGET", "sidflake:{p}:h", fields[i]);
        memcpy(was, f->out, sizeof was);
        for (size_t k = 0; k < sizeof odd / sizeof *odd; k++) {
            DO("HSET", "sidflake:{p}:h", fields[i], odd[k]);
            assert_int_equal(claim(f), COORD_REFUSED);
            coord_says(&f->r, fields[i]);
        }
        DO("HSET", "sidflake:{p}:h", fields[i], was);
    }
    assert_int_equal(claim(f), COORD_OK);
}

/* What no answer can tell makes a record unreadable: the others of a renewal are renewed. */
static void a_record_of_odd_numbers_costs_its_own_holder_alone(void **state)
{
    struct fixture *f = *state;
    struct coord_token t = setup_token(1);
    struct coord_renewal items[2];
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 1), COORD_OK);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(claim_with(f, t), COORD_OK);
        items[i] = renewal_of(&f->g, t);
    }
    DO("EVAL",
       "local r = redis.call('HGET', KEYS[1], '0') "
       "redis.call('HSET', KEYS[1], '0', (string.gsub(r, '%d+$', ARGV[1])))",
       "1", "sidflake:{p}:h", TOO_LARGE);
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_now(), items, 2, setup_terms(), &f->r),
                     COORD_OK);
    assert_int_equal(items[0].how, COORD_HOW_LOST);
    assert_int_equal(items[1].how, COORD_HOW_RENEWED);
}

static void damaged_hints_cost_no_safety(void **state)
{
    struct fixture *f = *state;
    struct coord_snapshot s;
    static struct coord_audit a;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 4), COORD_OK);
    assert_int_equal(claim(f), COORD_OK);
    assert_int_equal(claim(f), COORD_OK);
    DO("DEL", "sidflake:{p}:exp");
    DO("LREM", "sidflake:{p}:free", "0", "4");
    DO("LPUSH", "sidflake:{p}:free", "2", "1", "nan", "inf", "-0", "00", "99", "1e0", "");
    DO("ZADD", "sidflake:{p}:exp", "1", "3", "5", "nan");
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_OK);
    assert_int_equal(coord_audit(&s, &a), 7 + 1 + 2 + 1);
    assert_int_equal(a.strangers, 7);
    assert_int_equal(a.faults[0], 1 << COORD_FAULT_ORPHANED);
    assert_int_equal(a.faults[1], 1 << COORD_FAULT_ORPHANED | 1 << COORD_FAULT_QUEUED);
    assert_int_equal(a.faults[2], 1 << COORD_FAULT_DOUBLED);
    assert_int_equal(a.faults[3], 1 << COORD_FAULT_INDEXED);
    assert_int_equal(a.faults[4], 1 << COORD_FAULT_LOST);
    assert_string_equal(s.workers[1].who, SETUP_WHO);
    coord_snapshot_clear(&s);
    assert_int_equal(claim(f), COORD_OK);
    assert_int_equal(f->g.worker, 2);
    DO("RPUSH", "sidflake:{p}:free", "5",
       "x"); /* none of the pool: those before were passed over */
    const uint16_t all[] = {0, 1, 2, 3, 4};
    assert_int_equal(coord_repair(f->c, SETUP_IDENTITY, all, 5, &f->r), COORD_OK);
    assert_int_equal(f->r.free, 2);
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_OK);
    assert_int_equal(coord_audit(&s, &a), 0);
    coord_snapshot_clear(&s);
    DO("SET", "sidflake:{p}:free", "x");
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_REFUSED);
    coord_says(&f->r, "WRONGTYPE");
    assert_int_equal(claim(f), COORD_REFUSED);
    coord_says(&f->r, "WRONGTYPE");
}

static void all_of_a_full_pool_is_repaired_in_parts(void **state)
{
    struct fixture *f = *state;
    static uint16_t all[200];
    for (uint16_t i = 0; i < 200; i++)
        all[i] = i;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 199), COORD_OK);
    DO("DEL", "sidflake:{p}:free");
    assert_int_equal(coord_repair(f->c, SETUP_IDENTITY, all, 200, &f->r), COORD_OK);
    assert_int_equal(f->r.free, 200);
}

/* ---- restarts and losses --------------------------------------------------------------------- */

static void a_killed_server_with_its_data_reopens(void **state)
{
    struct fixture *f = *state;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    assert_int_equal(claim_with(f, t), COORD_OK);
    struct coord_renewal item = renewal_of(&f->g, t);
    server_kill(&f->server);
    assert_int_equal(claim(f), COORD_DOWN);
    coord_says(&f->r, f->server.socket);
    server_again(&f->server);
    assert_int_equal(claim(f), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    assert_in_range(f->r.wait_ms, 30000, 36001);
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &f->r),
                     COORD_OK);
    assert_int_equal(item.how, COORD_HOW_REASSERTED);
    assert_true(item.hi_ms >= f->r.now_ms + 30000);
    assert_int_equal(f->r.era, 2);
}

/* The holder goes on, and the new pool becomes the one it knew. */
static void holder_outlives_the_loss(struct fixture *f, const struct coord_grant *g,
                                     struct coord_token t)
{
    struct coord_renewal item = renewal_of(g, t);
    struct coord_pool p;
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &f->r),
                     COORD_NOPOOL);
    assert_int_equal(make(f, SETUP_IDENTITY_OTHER, COORD_INIT_AFTER_LOSS, 3), COORD_OK);
    assert_int_equal(f->r.era, 2);
    assert_int_equal(
        coord_renew(f->c, SETUP_IDENTITY_EPOCH, setup_now(), &item, 1, setup_terms(), &f->r),
        COORD_WRONGPOOL);
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &f->r),
                     COORD_OK);
    assert_int_equal(item.how, COORD_HOW_REASSERTED);
    assert_true(item.hi_ms >= g->hi_ms);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_string_equal(p.identity, SETUP_IDENTITY);
    assert_int_equal(p.held, 1);
    assert_int_equal(claim(f), COORD_WAIT);
    assert_in_range(f->r.wait_ms, 3500000, 3606001);
}

static void a_killed_server_without_its_data_is_made_anew(void **state)
{
    struct fixture *f = *state;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    assert_int_equal(claim_with(f, t), COORD_OK);
    struct coord_grant g = f->g;
    server_kill(&f->server);
    server_again(&f->server);
    holder_outlives_the_loss(f, &g, t);
}

static void a_flushed_server_is_made_anew(void **state)
{
    struct fixture *f = *state;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    assert_int_equal(claim_with(f, t), COORD_OK);
    DO("FLUSHALL");
    holder_outlives_the_loss(f, &f->g, t);
}

static void a_flushed_script_is_loaded_again(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    DO("SCRIPT", "FLUSH");
    assert_int_equal(claim(f), COORD_OK);
    assert_int_equal(f->g.worker, 0);
    DO("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    (void)usleep(20000);
    assert_int_equal(claim(f), COORD_OK);
    assert_int_equal(f->g.worker, 1);
    coord_idle(f->c);
    DO("CLIENT", "LIST", "TYPE", "normal");
    assert_null(strstr(f->out, "cmd=evalsha"));
    assert_int_equal(claim(f), COORD_OK);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static enum coord_status describe_url(struct fixture *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

static enum coord_status describe_url(struct fixture *f, const char *fmt, ...)
{
    char url[256];
    struct coord_pool p;
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(url, sizeof url, fmt, ap);
    va_end(ap);
    struct coord *c = open_url(url);
    enum coord_status s = coord_describe(c, &p, &f->r);
    coord_free(c);
    return s;
}

static void users_and_passwords_are_sent(void **state)
{
    struct fixture *f = *state;
    int port = f->server.port;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    DO("ACL", "SETUSER", "app", "on", ">p@ss/w:d", "~*", "+@all");
    DO("ACL", "SETUSER", "weak", "on", ">weak", "~*", "+ping");
    DO("ACL", "SETUSER", "late", "on", ">late", "~*", "+@all", "-time");
    DO("CONFIG", "SET", "requirepass", "s3cret");
    assert_int_equal(describe_url(f, "redis://:s3cret@127.0.0.1:%d", port), COORD_OK);
    assert_int_equal(describe_url(f, "redis://app:p%%40ss%%2Fw%%3Ad@127.0.0.1:%d", port), COORD_OK);
    assert_int_equal(describe_url(f, "redis+unix://app:p%%40ss%%2Fw%%3Ad@%s", f->server.socket),
                     COORD_OK);
    assert_int_equal(describe_url(f, "redis://127.0.0.1:%d", port), COORD_REFUSED);
    coord_says(&f->r, "found -NOAUTH Authentication required; name a password in the URL");
    assert_int_equal(describe_url(f, "redis://:hunter2@127.0.0.1:%d", port), COORD_REFUSED);
    coord_says(&f->r, "AUTH: expected an answer, found -WRONGPASS invalid username-password pair "
                      "or user is disabled; the password is that of the URL, for the user "
                      "default: the URL names none");
    assert_null(strstr(f->r.err.text, "hunter2"));
    assert_int_equal(describe_url(f, "redis://app:hunter2@127.0.0.1:%d", port), COORD_REFUSED);
    coord_says(&f->r, "the password is that of the URL");
    assert_null(strstr(f->r.err.text, "default"));
    assert_int_equal(describe_url(f, "redis://weak:weak@127.0.0.1:%d", port), COORD_REFUSED);
    coord_says(&f->r, "found -NOPERM ");
    coord_says(&f->r, "; sidflake.yaml(5) has the rights that are needed");
    /* Of what a script may not do, which is refused in other words. */
    assert_int_equal(describe_url(f, "redis://late:late@127.0.0.1:%d", port), COORD_REFUSED);
    assert_null(strstr(f->r.err.text, "NOPERM"));
    coord_says(&f->r, "; sidflake.yaml(5) has the rights that are needed");
}

/* A claim has more words than Redis takes of a stranger, and its script is known there: what it
 * answers is not NOAUTH. */
static void a_login_that_is_wanted_from_now_on_is_told_as_one(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    assert_int_equal(claim(f), COORD_OK);
    DO("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    DO("CONFIG", "SET", "requirepass", "s3cret");
    enum coord_status s = claim(f);
    if (s == COORD_DOWN) /* that connection was ended */
        s = claim(f);
    assert_int_equal(s, COORD_REFUSED);
    coord_says(&f->r, "; name a password in the URL");
}

static void a_password_may_come_from_elsewhere(void **state)
{
    struct fixture *f = *state;
    char url[64];
    struct err e;
    struct coord *c;
    struct coord_pool p;
    DO("CONFIG", "SET", "requirepass", "s3cret");
    (void)snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%d", f->server.port);
    const struct coord_options o = {.url = span_str(url),
                                    .pool = SPAN("p"),
                                    .password = SPAN("s3cret"),
                                    .timeout_us = 1000000,
                                    .clock = clock_system()};
    assert_int_equal(coord_open(&o, &c, &e), ERR_OK);
    assert_int_equal(coord_describe(c, &p, &f->r), COORD_NOPOOL);
    coord_free(c);
}

/* Which of them is wrong: the file's, where there is one, hides the URL's. */
static void a_wrong_password_is_told_with_the_place_it_came_from(void **state)
{
    struct fixture *f = *state;
    char url[64], path[64];
    struct err e;
    struct coord *c;
    struct coord_pool p;
    DO("CONFIG", "SET", "requirepass", "s3cret");
    (void)snprintf(url, sizeof url, "redis://:s3cret@127.0.0.1:%d", f->server.port);
    (void)snprintf(path, sizeof path, "/tmp/sidflake-password-%d", (int)getpid());
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("hunter2\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
    struct coord_options o = {.url = span_str(url),
                              .pool = SPAN("p"),
                              .password = SPAN("hunter2"),
                              .password_file = path,
                              .password_of = "coordinator.password_file",
                              .timeout_us = 1000000,
                              .clock = clock_system()};
    assert_int_equal(coord_open(&o, &c, &e), ERR_OK);
    assert_int_equal(coord_describe(c, &p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "disabled; the password is that of coordinator.password_file /tmp/");
    assert_null(strstr(f->r.err.text, "hunter2"));
    coord_free(c);
    (void)unlink(path);
    o.password = SPAN("");
    o.password_file = NULL;
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", f->server.port);
    o.url = span_str(url);
    assert_int_equal(coord_open(&o, &c, &e), ERR_OK);
    assert_int_equal(coord_describe(c, &p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "required; name a password in coordinator.password_file");
    coord_free(c);
}

static void databases_are_apart(void **state)
{
    struct fixture *f = *state;
    int port = f->server.port;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    assert_int_equal(describe_url(f, "redis://127.0.0.1:%d", port), COORD_OK);
    assert_int_equal(describe_url(f, "redis://localhost:%d/0", port), COORD_OK);
    assert_int_equal(describe_url(f, "redis://127.0.0.1:%d/3", port), COORD_NOPOOL);
    assert_int_equal(describe_url(f, "redis+unix://%s?db=3", f->server.socket), COORD_NOPOOL);
    assert_int_equal(describe_url(f, "redis://127.0.0.1:%d/99", port), COORD_REFUSED);
    coord_says(&f->r, "SELECT: expected an answer, found -ERR DB index is out of range; the "
                      "database is that of the URL");
    assert_null(strstr(strchr(f->r.err.text, ';') + 1, ";"));
}

static int64_t since(int64_t start)
{
    return clock_mono_ms(clock_system()) - start;
}

static void a_stopped_server_is_down_within_the_timeout(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 3), COORD_OK);
    server_signal(&f->server, SIGSTOP);
    int64_t began = clock_mono_ms(clock_system());
    assert_int_equal(claim(f), COORD_DOWN);
    assert_in_range(since(began), TIMEOUT_MS - 100, TIMEOUT_MS + 500);
    assert_int_equal(f->r.err.code, ERR_TIMEOUT);
    coord_says(&f->r, "within 2000 ms");
    began = clock_mono_ms(clock_system());
    assert_int_equal(describe_url(f, "redis://127.0.0.1:%d", f->server.port), COORD_DOWN);
    assert_in_range(since(began), TIMEOUT_MS - 100, TIMEOUT_MS + 500);
    server_signal(&f->server, SIGCONT);
    assert_int_equal(claim(f), COORD_OK);
    /* The claim that was cut short was run too, but more than S after its caller's clock. */
    assert_int_equal(f->g.worker, 0);
}

static void an_absent_server_is_named(void **state)
{
    struct fixture *f = *state;
    int port = f->server.port;
    server_kill(&f->server);
    assert_int_equal(describe_url(f, "redis://127.0.0.1:%d", port), COORD_DOWN);
    coord_says(&f->r, "127.0.0.1 port");
    coord_says(&f->r, "refused");
    assert_int_equal(describe_url(f, "redis://no-such-host.invalid"), COORD_DOWN);
    coord_says(&f->r, "no-such-host.invalid");
    assert_int_equal(describe_url(f, "redis+unix:///nonexistent/s"), COORD_DOWN);
    coord_says(&f->r, "/nonexistent/s");
}

/* What glibc asks it by, in this thread, after whatever resolv.conf says. */
static void a_silent_resolver_is_left_within_the_timeout(void **state)
{
    struct fixture *f = *state;
    for (unsigned again = 0; again < 2; again++) {
        assert_int_equal(describe_url(f, "redis://localhost:%d", f->server.port), COORD_NOPOOL);
        assert_in_range(_res.retrans, 1, TIMEOUT_MS / 1000);
        assert_int_equal(_res.retry, 1);
        assert_true(_res.options & RES_NORELOAD);
    }
}

static void a_busy_server_is_down_and_a_full_one_refuses(void **state)
{
    struct fixture *f = *state;
    enum coord_status s = COORD_OK;
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, 60), COORD_OK);
    DO("CONFIG", "SET", "maxmemory", "1");
    /* Redis looks at its memory a moment later. */
    for (int i = 0; i < 50 && s == COORD_OK; i++) {
        (void)usleep(10000);
        s = claim(f);
    }
    assert_int_equal(s, COORD_REFUSED);
    coord_says(&f->r, "-OOM");
    DO("CONFIG", "SET", "maxmemory", "0", "busy-reply-threshold", "50");
    pid_t pid = fork();
    if (pid == 0) {
        (void)SERVER_DO(&f->server, f->out, "EVAL", "while true do end", "0");
        _exit(0);
    }
    (void)usleep(300000);
    assert_int_equal(claim(f), COORD_DOWN);
    coord_says(&f->r, "-BUSY");
    DO("SCRIPT", "KILL");
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(claim(f), COORD_OK);
}

/* ---- servers that are none ------------------------------------------------------------------- */

static enum coord_status claim_from_fake(struct fixture *f, const char *bytes, size_t n, int delay)
{
    struct fake_server fake;
    char url[64];
    fake_server_start(&fake, bytes, n, delay);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", fake.port);
    struct coord *c = open_url(url);
    enum coord_status s =
        coord_claim(c, SETUP_IDENTITY, clock_wall_ms(clock_system()), setup_token(1), &f->g, &f->r);
    coord_free(c);
    fake_server_stop(&fake);
    return s;
}

/* One that does not know AUTH quotes what it was sent, maybe not all of it. */
static void no_word_of_a_server_tells_the_password(void **state)
{
    static const char *const replies[] = {
        "-ERR unknown command 'AUTH', with args beginning with: 'a-long-pa'\r\n",
        "-ERR what is a-long-password-of-ours-of-more-than-a-few\r\n",
        "-ERR what is a-long-password-o...\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
        struct fake_server fake;
        struct coord_reply r;
        struct coord_pool p;
        char url[96];
        fake_server_start(&fake, replies[i], strlen(replies[i]), 0);
        (void)snprintf(url, sizeof url, "redis://:a-long-password-of-ours@127.0.0.1:%d", fake.port);
        struct coord *c = open_url(url);
        assert_int_equal(coord_describe(c, &p, &r), COORD_REFUSED);
        coord_free(c);
        fake_server_stop(&fake);
        coord_says(&r, "AUTH: expected an answer, found -ERR; the password");
        assert_null(strstr(r.err.text, "a-long"));
    }
}

static void hostile_servers_are_survived(void **state)
{
    struct fixture f;
    (void)state;
    static const struct {
        const char *bytes;
        enum coord_status status;
    } cases[] = {
        {"", COORD_DOWN},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", COORD_DOWN},
        {"*2147483647\r\n", COORD_DOWN},
        {"*1048577\r\n", COORD_DOWN},
        {"$-2\r\n", COORD_DOWN},
        {"*-5\r\n", COORD_DOWN},
        {"+OK\r\n", COORD_REFUSED},
        {"$40\r\n0123456789012345678901234567890123456789\r\n", COORD_REFUSED},
        {"$-1\r\n", COORD_REFUSED},
        {"*0\r\n", COORD_REFUSED},
        {":1\r\n", COORD_REFUSED},
        {"-NOSCRIPT x\r\n", COORD_REFUSED},
        {"-LOADING x\r\n", COORD_DOWN},
        {"-MASTERDOWN x\r\n", COORD_DOWN},
        {"-TRYAGAIN x\r\n", COORD_DOWN},
        {"-READONLY x\r\n", COORD_DOWN},
        {"-NOREPLICAS x\r\n", COORD_DOWN},
        {"-UNBLOCKED x\r\n", COORD_DOWN},
        {"-NOPERM x\r\n", COORD_REFUSED},
        {"-\r\n", COORD_REFUSED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&f, 0, sizeof f);
        enum coord_status s = claim_from_fake(&f, cases[i].bytes, strlen(cases[i].bytes), 0);
        if (s != cases[i].status || f.r.err.text[0] == '\0')
            fail_msg("%s: %s, %s", cases[i].bytes, coord_status_name(s), f.r.err.text);
        if (cases[i].bytes[0] == 'H')
            coord_says(&f.r, ": expected a Redis server's, found: Protocol error, got \"H\"");
    }
}

/* Each byte comes in time, the answer never does. */
static void a_dripping_server_is_down_within_the_timeout(void **state)
{
    struct fixture f;
    char drip[128];
    (void)state;
    (void)memcpy(drip, "$100\r\n", 6);
    memset(drip + 6, 'x', sizeof drip - 6);
    int64_t began = clock_mono_ms(clock_system());
    assert_int_equal(claim_from_fake(&f, drip, sizeof drip, 100), COORD_DOWN);
    assert_in_range(since(began), TIMEOUT_MS - 100, TIMEOUT_MS + 500);
    assert_int_equal(f.r.err.code, ERR_TIMEOUT);
}

/* ---- what it costs the server ---------------------------------------------------------------- */

#define COST_CALLS 5000

static void print_cost(struct fixture *f, const char *what)
{
    DO("INFO", "commandstats");
    const char *line = strstr(f->out, "cmdstat_evalsha:");
    const char *cost = line ? strstr(line, "usec_per_call=") : NULL;
    assert_non_null(cost);
    double us = strtod(cost + sizeof "usec_per_call=" - 1, NULL);
    printf("%s: %.1f us of the server's time\n", what, us);
    assert_true(us < 2000);
    DO("CONFIG", "RESETSTAT");
}

static void claims_and_renewals_are_cheap(void **state)
{
    struct fixture *f = *state;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, SETUP_IDENTITY, COORD_INIT_FRESH, COORD_WORKERS - 1), COORD_OK);
    DO("CONFIG", "RESETSTAT");
    for (int i = 0; i < COST_CALLS; i++)
        assert_int_equal(claim_with(f, t), COORD_OK);
    print_cost(f, "claim");
    struct coord_renewal item = renewal_of(&f->g, t);
    for (int i = 0; i < COST_CALLS; i++) {
        assert_int_equal(
            coord_renew(f->c, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &f->r),
            COORD_OK);
        assert_int_equal(item.how, COORD_HOW_RENEWED);
        item.cur = item.nxt;
        item.nxt = coord_token_new(rng_system());
    }
    print_cost(f, "renew");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_full_pool_hands_out_in_order),
        TEST(what_is_not_to_be_taken_over_has_no_field_that_says_so),
        TEST(renewals_of_many_are_one_request),
        TEST(a_pool_is_not_made_by_a_clock_that_is_off),
        TEST(refusals_name_both_sides),
        TEST(sequences_are_not_asked_for_with_the_workers),
        TEST(damaged_hints_cost_no_safety),
        TEST(odd_numbers_of_a_pool_are_refused),
        TEST(a_record_of_odd_numbers_costs_its_own_holder_alone),
        TEST(all_of_a_full_pool_is_repaired_in_parts),
        cmocka_unit_test_setup_teardown(a_killed_server_with_its_data_reopens, setup_aof, teardown),
        TEST(a_killed_server_without_its_data_is_made_anew),
        TEST(a_flushed_server_is_made_anew),
        TEST(a_flushed_script_is_loaded_again),
        TEST(users_and_passwords_are_sent),
        TEST(a_login_that_is_wanted_from_now_on_is_told_as_one),
        TEST(a_password_may_come_from_elsewhere),
        TEST(a_wrong_password_is_told_with_the_place_it_came_from),
        TEST(databases_are_apart),
        TEST(a_stopped_server_is_down_within_the_timeout),
        TEST(an_absent_server_is_named),
        TEST(a_busy_server_is_down_and_a_full_one_refuses),
        cmocka_unit_test_setup_teardown(a_silent_resolver_is_left_within_the_timeout, setup,
                                        teardown),
        cmocka_unit_test(no_word_of_a_server_tells_the_password),
        cmocka_unit_test(hostile_servers_are_survived),
        cmocka_unit_test(a_dripping_server_is_down_within_the_timeout),
        TEST(claims_and_renewals_are_cheap),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/redis", tests, NULL, NULL);
}
