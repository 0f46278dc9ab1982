#include "status_rig.h"

#include "net/upstream/links.h"
#include "serve/watch/health.h"

static struct health h;

static void judge(void)
{
    struct history_sample live;
    serve_sample_now(&s, &live);
    memset(&h, '#', sizeof h);
    health_judge(&s, START_MS + elapsed_ms, &live, &h);
}

/* It has one finding, of this state, with this text. */
static void finds(enum health_state state, const char *text)
{
    judge();
    if (h.n != 1)
        fail_msg("expected one finding, \"%s\", found %zu: %s", text, h.n,
                 h.n ? h.finding[h.n - 1].text : "");
    assert_string_equal(h.finding[0].text, text);
    assert_int_equal(h.finding[0].state, state);
    assert_int_equal(h.state, state);
}

static void well(void)
{
    judge();
    if (h.n != 0)
        fail_msg("expected no finding, found \"%s\"", h.finding[0].text);
    assert_int_equal(h.state, HEALTH_OK);
    assert_null(h.ready.by);
}

static void warns(const char *text)
{
    finds(HEALTH_WARN, text);
}

static void all_is_well(void **state)
{
    (void)state;
    well();
    /* A young tenure has little left, and a pool that is one workerId has none free. */
    s.facts.tenure_start_ms = START_MS + elapsed_ms - MINUTES(3);
    s.facts.horizon_ms = MINUTES(24 * 60);
    s.facts.pool_size = 1;
    s.facts.pool_free = 0;
    well();
}

static void no_ids(void **state)
{
    (void)state;
    int64_t last;
    struct snowflake *g = &gen.ids;
    elapsed_ms += MINUTES(46);
    finds(HEALTH_FAIL,
          "each range of time held has ended: the clock jumped ahead, or the coordinator is away");
    assert_int_equal(refusal_status(h.ready), ISSUE_NEVER);
    gen.ahead_ms = MINUTES(2 * 24 * 60); /* it answers: it is not away */
    finds(HEALTH_FAIL, "the clock is above every range of time held: it is 2 d ahead of the "
                       "coordinator's");
    strcpy(s.facts.why, "expected pool a, found pool b");
    finds(HEALTH_FAIL, "each range of time held has ended, and no other can be had: expected pool "
                       "a, found pool b");
    s.facts.why[0] = '\0';
    elapsed_ms -= MINUTES(46);
    assert_true(snowflake_revoke(g, 1, &last) && snowflake_revoke(g, 2, &last));
    s.facts.held = 0;
    s.facts.up = false;
    strcpy(s.facts.why, "connection refused");
    finds(HEALTH_FAIL, "no workerId is held: connection refused");
    gen.away = true;
    finds(HEALTH_FAIL, "no workerId is held, and the coordinator is away: connection refused");
}

static void the_coordinator(void **state)
{
    (void)state;
    s.facts.up = s.facts.serves = false;
    warns("the coordinator is away; IDs can be had until 2026-01-02T00:55:00.000Z, for 45 min");
    strcpy(s.facts.why, "connection refused");
    warns("the coordinator is away: connection refused; IDs can be had until "
          "2026-01-02T00:55:00.000Z, for 45 min");
    s.facts.up = true;
    warns("the coordinator refuses: connection refused; IDs can be had until "
          "2026-01-02T00:55:00.000Z, for 45 min");
    snowflake_extend(&gen.ids, 2, START_MS + elapsed_ms + MINUTES(50)); /* a spare takes over */
    warns("the coordinator refuses: connection refused; IDs can be had until "
          "2026-01-02T01:00:00.000Z, for 50 min");
    s.facts.serves = true; /* what is held is renewed */
    strcpy(s.facts.why, "none is free");
    warns("a workerId is waited for: none is free");
    assert_string_equal(h.finding[0].name, "coordinator");
    /* Before it has said anything, it is not away. */
    s.facts.answered = s.facts.up = s.facts.serves = false;
    s.facts.why[0] = '\0';
    well();
}

/* A clock that stepped back says nothing of the coordinator. */
static void the_coordinator_away_and_the_clock_behind(void **state)
{
    (void)state;
    elapsed_ms = -1000;
    s.facts.up = s.facts.serves = false;
    judge();
    assert_int_equal(h.n, 2);
    assert_string_equal(h.finding[0].name, "ids");
    assert_true(h.ready.by->kind->causes[h.ready.cause].of_clock);
    assert_non_null(strstr(h.finding[1].text, "the coordinator is away; IDs can be had until "));
}

static void the_lease(void **state)
{
    (void)state;
    elapsed_ms += MINUTES(20);
    warns("less than half of the reservation is left: 25 min");
    elapsed_ms -= MINUTES(20);
    s.facts.held = 1;
    warns("1 of 2 workerIds are held");
}

static void the_next_start(void **state)
{
    (void)state;
    strcpy(s.facts.page, "cannot make /x: No space left on device");
    warns(
        "no state page: a restart costs workerIds, and gives no IDs while the coordinator is away: "
        "cannot make /x: No space left on device");
    assert_null(h.ready.by);
}

static void what_a_server_is_set_up_to_lose(void **state)
{
    (void)state;
    s.facts.risk[1] = "the coordinator's Redis keeps nothing over a restart";
    warns("the coordinator's Redis keeps nothing over a restart");
    assert_null(h.ready.by);
}

static void troubles_of_the_last_hour(void **state)
{
    (void)state;
    static const char lost[] = "a workerId was lost: its range was over, somebody else has it, or "
                               "it was released by hand, 7 min ago";
    s.facts.lost_us = START_US + MINUTES(3) * 1000;
    warns(lost);
    s.facts.forgot_us = START_US + MINUTES(1) * 1000;
    judge();
    assert_int_equal(h.n, 2);
    assert_string_equal(h.finding[0].text, "the coordinator forgot what it had granted, 9 min ago");
    assert_string_equal(h.finding[1].text, lost);
    /* What was forgotten two hours ago is not why one is lost now. */
    s.facts.forgot_us -= 2 * HISTORY_SPAN_US;
    warns(lost);
    s.facts.lost_us -= HISTORY_SPAN_US;
    well();
}

static void bounds(void **state)
{
    (void)state;
    s.facts.skew_ms = 1000;
    well();
    s.facts.skew_ms = -1001;
    warns("this clock and the coordinator's are 1 s apart; claims are refused from 2 s");
    s.facts.skew_ms = 0;
    s.facts.pool_free = 3275;
    warns("3,275 of 32,768 workerIds are left in the pool");
    s.facts.pool_free = 3276;
    well();
    s.facts.pool_free = s.facts.era =
        0; /* of a state page, before the coordinator has said a word */
    well();
    s.facts.era = 1;
    warns("0 of 32,768 workerIds are left in the pool");
    s.facts.pool_free = 3276;
    elapsed_ms += LAYOUT_TIME_MAX - MINUTES(24 * 60 * 182);
    s.facts.tenure_start_ms += elapsed_ms;
    snowflake_extend(&gen.ids, 1, START_MS + elapsed_ms + MINUTES(45));
    well();
    elapsed_ms += MINUTES(24 * 60 * 2);
    snowflake_extend(&gen.ids, 1, START_MS + elapsed_ms + MINUTES(45));
    warns("the time field of IDs is used up in 178 d 23 h");
}

/* Of HTTP there are places of their own, which nobody else wants. */
static void connections_that_the_limit_counts(void **state)
{
    (void)state;
    services[SERVE_HTTP].slots = 64;
    services[SERVE_HTTP].connections = 4000;
    services[SERVE_MEMCACHED].connections = 1686;
    services[SERVE_REDIS].connections = 2000;
    well();
    services[SERVE_REDIS].connections = 2001;
    warns("3,687 of at most 4,096 connections are open");
}

#define FIVE_MINUTES_US (MINUTES(5) * 1000)

/* The servers behind: away, or not to be had by some of late. */
static void servers_behind(void **state)
{
    static struct upstream there;
    static struct upstream_link before = {.outdated = true}, after;
    static char at[] = "tcp://127.0.0.1:6379";
    struct upstream_stats *st = &there.stats;
    int64_t now_us = rig_mono(NULL);
    (void)state;
    there.text = at;
    (void)snprintf(there.why, sizeof there.why, "refused");
    services[SERVE_REDIS].upstream = &there;
    *st = (struct upstream_stats){.up = true, .since_us = now_us, .errors = 3, .most = 1500};
    well();
    st->full_us = now_us - 1000000;
    warns("upstream.connections is reached: a client was refused one more than 1,500 to the Redis "
          "behind, 1 s ago");
    assert_string_equal(h.finding[0].name, "upstream.redis");
    assert_null(h.ready.by); /* of no matter to IDs */
    st->full_us = now_us - FIVE_MINUTES_US + 1000;
    judge();
    assert_int_equal(h.n, 1);
    st->full_us = now_us - FIVE_MINUTES_US;
    well();
    st->unshared_us = now_us - FIVE_MINUTES_US + 1000000;
    warns("clients without a connection of their own are told that the Redis behind cannot be "
          "reached: refused (tcp://127.0.0.1:6379), 4 min 59 s ago");
    st->unshared_us = now_us - FIVE_MINUTES_US;
    well();
    (void)snprintf(there.denial, sizeof there.denial, "no room");
    st->unowned_us = now_us - 2000000;
    warns("clients that need a connection of their own get none to the Redis behind: no room "
          "(tcp://127.0.0.1:6379), 2 s ago");
    st->unshared_us = st->full_us = now_us - 1000000; /* of more clients, and of one more */
    judge();
    assert_int_equal(h.n, 2);
    assert_non_null(strstr(h.finding[0].text, "clients without a connection of their own"));
    assert_non_null(strstr(h.finding[1].text, "upstream.connections is reached"));
    st->unshared_us = st->full_us = 0;
    st->unowned_us = now_us - FIVE_MINUTES_US;
    well();
    (void)snprintf(there.fault, sizeof there.fault, "it answers: OOM no memory");
    st->faulty_us = now_us - 3000000;
    warns("requests fail at the Redis behind: it answers: OOM no memory (tcp://127.0.0.1:6379), 3 "
          "s ago");
    st->full_us = now_us - 1000000; /* beside that */
    judge();
    assert_int_equal(h.n, 2);
    st->full_us = 0;
    st->faulty_us = now_us - FIVE_MINUTES_US;
    well();
    there.shared[UPSTREAM_BINARY] = &before;
    warns("the connection to the Redis behind that clients share has an earlier login: one with "
          "the present login takes its place once upstream.connections leaves room for it "
          "(tcp://127.0.0.1:6379)");
    there.unready[UPSTREAM_BINARY].until_us = 1; /* it was tried */
    warns("the connection to the Redis behind that clients share has an earlier login: with the "
          "present one no other was let in; SIGHUP tries again, SIGUSR2 ends it "
          "(tcp://127.0.0.1:6379)");
    st->unowned_us = now_us - 1000000; /* which is why */
    judge();
    assert_int_equal(h.n, 2);
    assert_non_null(strstr(h.finding[0].text, "clients that need a connection of their own"));
    assert_non_null(strstr(h.finding[1].text, "has an earlier login"));
    st->unowned_us = 0;
    there.next[UPSTREAM_BINARY] = &after;
    well();
    there.shared[UPSTREAM_BINARY] = &after;
    there.next[UPSTREAM_BINARY] = NULL;
    well();
    there.astray[UPSTREAM_BINARY] = true;
    warns("the connection to the Redis behind that clients share is where its name leads no more: "
          "where it leads now no other was let in: refused (tcp://127.0.0.1:6379)");
    there.unready[UPSTREAM_BINARY].until_us = 0; /* it was not tried yet */
    well();
    there.astray[UPSTREAM_BINARY] = false;
    *st = (struct upstream_stats){.errors = 1, .since_us = now_us - 7000000};
    warns("the Redis behind cannot be reached for 7 s: refused (tcp://127.0.0.1:6379)");
    st->since_us = 0;
    warns("the Redis behind cannot be reached: refused (tcp://127.0.0.1:6379)");
    st->errors = 0; /* nobody has asked it yet */
    well();
}

static void the_last_minutes(void **state)
{
    (void)state;
    s.requests[SERVE_REDIS][3][SERVE_FAILED] = 1;
    warns("1 request for IDs or numbers failed in the last 5 minutes");
    s.requests[SERVE_REDIS][3][SERVE_FAILED] = 1200;
    s.requests[SERVE_HTTP][1][SERVE_FAILED] = 7; /* /readyz */
    warns("1,200 requests for IDs or numbers failed in the last 5 minutes");
    serve_sample(&s);
    elapsed_ms += MINUTES(4);
    warns("1,200 requests for IDs or numbers failed in the last 5 minutes");
    serve_sample(&s);
    elapsed_ms += MINUTES(2);
    well();
    gen.ids.stats.rotations = 3;
    well();
    gen.ids.stats.rotations = 4;
    serve_sample(&s);
    elapsed_ms += MINUTES(2);
    s.facts.tenure_start_ms = START_MS + elapsed_ms;
    warns("the clock keeps stepping back: 4 workerIds were given up within an hour");
    gen.ids.stats.exhausted = 120 * 51 * 5;
    gen.ids.stats.rotations = 0;
    memset(&s.history, 0, sizeof s.history);
    history_init(&s.history, START_US + (elapsed_ms - MINUTES(2)) * 1000);
    s.requests[SERVE_REDIS][3][SERVE_FAILED] = 0;
    warns("requests queue for the next millisecond, 255 times a second: more active workerIds "
          "would help");
}

/* A prefix that is mistyped, not the odd key that is none. */
static void reads_of_what_is_no_id(void **state)
{
    (void)state;
    s.requests[SERVE_MEMCACHED][3][SERVE_MISS] = 99;
    well();
    s.requests[SERVE_REDIS][3][SERVE_MISS] = 100005;
    s.requests[SERVE_HTTP][3][SERVE_MISS] = 7; /* paths */
    warns("100,104 reads in the last 5 minutes were of keys that are no IDs: those begin with "
          "\"id:\"");
    assert_string_equal(h.finding[0].name, "misses");
    gen.ids.stats.issued = 100104;
    well();
    gen.ids.stats.issued = 0;
    struct history_sample live;
    serve_sample_now(&s, &live);
    live.counted = 100104;
    health_judge(&s, START_MS + elapsed_ms, &live, &h);
    assert_int_equal(h.n, 0);
}

/* A second generator of the same kind, under a prefix of its own, whose range ends earlier. */
static void of_two_generators_the_one_that_ends_first(void **state)
{
    static struct snowflake_generator other;
    struct generator_counts sum;
    (void)state;
    snowflake_generator_init(&other, s.facts.why);
    snowflake_generator_start(&other, LAYOUT_EPOCH_DEFAULT_MS, &layout_usual, 15, 1);
    assert_int_equal(issuer_add(&s.issuer, &other.base, "no:", NULL, 0, NULL), ERR_OK);
    assert_true(snowflake_grant(&other.ids, 1, 9, START_MS - 1, START_MS + MINUTES(15), NULL));
    s.facts.up = s.facts.serves = false;
    warns("the coordinator is away; IDs can be had until 2026-01-02T00:15:00.000Z, for 5 min");
    s.facts.up = s.facts.serves = true;
    gen.ids.stats.rollbacks = 2;
    other.ids.stats.rollbacks = 3;
    generators_count(s.issuer.generators, &sum);
    assert_int_equal(sum.rollbacks, 5);
    s.facts.horizon_ms = MINUTES(8);
    s.requests[SERVE_REDIS][3][SERVE_MISS] = 100;
    warns("100 reads in the last 5 minutes were of keys that are no IDs: those begin with \"id:\", "
          "\"no:\"");
}

static void a_lifetime_that_is_over_does_not_end_soon(void **state)
{
    (void)state;
    elapsed_ms = layout_end_ms(&layout_usual, LAYOUT_EPOCH_DEFAULT_MS) - START_MS + MINUTES(1);
    judge();
    assert_int_equal(h.state, HEALTH_FAIL);
    for (size_t i = 0; i < h.n; i++)
        assert_string_not_equal(h.finding[i].name, "lifetime");
}

static void before_the_pool_is_known_no_time_of_an_id_is(void **state)
{
    struct generator_part parts[GENERATOR_PARTS];
    (void)state;
    uint64_t id = layout_compose(&layout_usual, MINUTES(1), 7, 1);
    assert_int_equal(gen.base.kind->decode(&gen.base, id, parts), 4);
    gen.started = false;
    assert_int_equal(gen.base.kind->decode(&gen.base, id, parts), -1);
}

static bool clock_fails(struct refusal ready)
{
    struct health_check c;
    assert_true(health_check(&s, 2, ready, &c));
    assert_string_equal(c.name, "clock");
    return c.fails;
}

/* The clock fails whenever it is the reason. */
static void the_clock_is_the_reason(void **state)
{
    (void)state;
    judge();
    assert_false(clock_fails(h.ready));
    elapsed_ms += MINUTES(46);
    judge();
    assert_int_equal(h.ready.cause, SNOWFLAKE_CEILING);
    assert_false(clock_fails(h.ready)); /* nobody answers: it is not the clock */
    gen.ahead_ms = MINUTES(2 * 24 * 60);
    assert_true(clock_fails(h.ready));
    gen.ahead_ms = 0;
    const struct refusal epoch = {&gen.base, SNOWFLAKE_EPOCH};
    elapsed_ms = LAYOUT_EPOCH_DEFAULT_MS - START_MS - 1;
    assert_true(clock_fails(epoch));
    elapsed_ms = LAYOUT_TIME_MAX; /* the time field is used up */
    assert_false(clock_fails(epoch));
}

/* All at once: each is said, and the worst comes first. */
static void everything(void **state)
{
    (void)state;
    struct serve_facts *f = &s.facts;
    int64_t last;
    assert_true(snowflake_revoke(&gen.ids, 1, &last));
    elapsed_ms = LAYOUT_TIME_MAX - MINUTES(60 * 24 * 2);
    f->held = 1;
    f->up = f->serves = false;
    f->skew_ms = INT32_MIN;
    f->pool_free = 0;
    f->forgot_us = f->lost_us = rig_mono(NULL);
    memset(s.facts.why, 'x', sizeof s.facts.why - 1);
    memset(f->page, 'x', sizeof f->page - 1);
    f->risk[0] = f->risk[1] = f->page;
    gen.ids.stats.rotations = UINT32_MAX;
    gen.ids.stats.exhausted = UINT32_MAX;
    s.requests[SERVE_REDIS][3][SERVE_FAILED] = UINT64_MAX;
    s.requests[SERVE_REDIS][3][SERVE_MISS] = UINT32_MAX;
    history_init(&s.history, rig_mono(NULL) - 1000000);
    judge();
    assert_int_equal(h.state, HEALTH_FAIL);
    assert_int_equal(h.finding[0].state, HEALTH_FAIL);
    assert_in_range(h.n, 12, HEALTH_FINDINGS_MAX);
    for (size_t i = 0; i < h.n; i++)
        assert_in_range(strlen(h.finding[i].text), 10, sizeof h.finding[i].text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_is_well),
        TEST(no_ids),
        TEST(the_coordinator),
        TEST(the_coordinator_away_and_the_clock_behind),
        TEST(the_lease),
        TEST(bounds),
        TEST(troubles_of_the_last_hour),
        TEST(the_next_start),
        TEST(everything),
        TEST(servers_behind),
        TEST(the_last_minutes),
        TEST(connections_that_the_limit_counts),
        TEST(reads_of_what_is_no_id),
        TEST(of_two_generators_the_one_that_ends_first),
        TEST(a_lifetime_that_is_over_does_not_end_soon),
        TEST(before_the_pool_is_known_no_time_of_an_id_is),
        TEST(the_clock_is_the_reason),
        TEST(what_a_server_is_set_up_to_lose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
