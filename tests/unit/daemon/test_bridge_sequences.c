/*
 * Between the supply of blocks and the table of sequences: each mail does what it says, each event
 * arrives. The keeper runs for real, with a supply that keeps what it is told.
 */
#include "daemon/bridge_sequences.h"
#include "daemon/generators.h"
#include "serve/redis/redis.h"
#include "support/fake_clock.h"
#include "support/fake_coord.h"
#include "support/lease_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define T0 INT64_C(1790000000000)

static struct supply idle, told;
static struct workers_report workers;
static struct sequences_report report, shared;
static struct sequences_event event[64];
static unsigned nevents;

static void ignore(struct supply *s, const void *e)
{
    (void)s;
    (void)e;
}

static void keep(struct supply *s, const void *e)
{
    (void)s;
    assert_true(nevents < 64);
    event[nevents++] = *(const struct sequences_event *)e;
}

static void hear(struct supply *s, int64_t mono)
{
    (void)s;
    (void)mono;
}

static bool stopped;

static void stop(struct supply *s, bool give_back, int64_t mono)
{
    (void)s;
    (void)give_back;
    (void)mono;
    stopped = true;
}

static enum supply_next next(struct supply *s, int64_t mono, int64_t *until)
{
    (void)s;
    (void)mono;
    *until = INT64_MAX;
    return stopped ? SUPPLY_FINISHED : SUPPLY_IDLE;
}

static bool proven(const struct supply *s)
{
    (void)s;
    return true;
}

static const void *report_of(struct supply *s)
{
    return s == &told ? (const void *)&report : &workers;
}

static const struct supply_kind idle_kind = {.tell = ignore,
                                             .hear = hear,
                                             .stop = stop,
                                             .next = next,
                                             .proven = proven,
                                             .report = report_of,
                                             .report_size = sizeof workers};
static const struct supply_kind told_kind = {.tell = keep,
                                             .hear = hear,
                                             .stop = stop,
                                             .next = next,
                                             .proven = proven,
                                             .report = report_of,
                                             .report_size = sizeof report};

static struct fake_clock clock_;
static struct serve serve;
static struct generators generators;
static struct bridge bridge;
static struct conf conf;
static struct fake_coord coord;
static char seq[] = "seq:", none[] = "", id[] = "id:", redis[] = "redis://x";
static uint64_t mark;

static void notify(void *arg)
{
    (void)arg;
}

static int begin(void **state)
{
    (void)state;
    struct err e;
    static struct workers_report workers_shared;
    static struct supply *const supplies[] = {&idle, &told}; /* not copied */
    memset(&serve, 0, sizeof serve);
    memset(&generators, 0, sizeof generators);
    memset(&report, 0, sizeof report);
    nevents = 0;
    stopped = false;
    fake_clock_init(&clock_, T0);
    conf = (struct conf){.ids_prefix = id,
                         .sequences_prefix = seq,
                         .sequences_numbers_prefix = none,
                         .sequences_cache_lasts_us = 60000000,
                         .sequences_cache_max = 1000000,
                         .sequences_counters = 16,
                         .coordinator_url = redis};
    idle = (struct supply){.kind = &idle_kind, .shared = &workers_shared};
    told = (struct supply){.kind = &told_kind, .shared = &shared};
    serve.clock = &clock_.clock;
    serve.issuer.max_wait_us = 100000;
    history_init(&serve.history, clock_mono_us(serve.clock));
    fake_coord_init(&coord, clock_system(), RIG_IDENTITY, 0, FAKE_COORD_WORKERS - 1);
    bridge = (struct bridge){.serve = &serve,
                             .ids = &generators.ids,
                             .sequences = &generators.sequences,
                             .clock = &clock_.clock};
    const struct net_config nc = {.clock = &clock_.clock, .connections = 10};
    const struct keeper_options o = {.supplies = supplies,
                                     .nsupplies = 2,
                                     .coord = &coord.coord,
                                     .clock = clock_system(),
                                     .notify = notify};
    return generators_open(&generators, &conf, &serve, &e) || net_new(&nc, &bridge.net, &e) ||
                   keeper_start(&o, &bridge.keeper, &e)
               ? -1
               : 0;
}

static int end(void **state)
{
    (void)state;
    keeper_stop(bridge.keeper, false);
    keeper_stop(bridge.keeper, false);
    keeper_free(bridge.keeper);
    net_free(bridge.net);
    names_clear(&serve.issuer.names);
    generators_clear(&generators);
    fake_coord_clear(&coord);
    return 0;
}

/* ---- a request --------------------------------------------------------------------------------
 */

static struct net_step step;
static struct net_turn turn;
static int64_t number;

static enum issue_status get(const char *key)
{
    turn.clock = &clock_.clock;
    turn.wall_ms = clock_wall_ms(&clock_.clock);
    turn.quota = UINT32_MAX;
    return issuer_next(&serve.issuer, names_find(&serve.issuer.names, span_str(key)), &turn,
                       &number, &step);
}

static void mail(struct blocks_mail m)
{
    struct supply_mail body = {.supply = SUPPLY_SEQUENCES};
    memcpy(body.body, &m, sizeof m);
    bridge_sequences_take(&bridge, &body, &report);
}

static void ask(const char *key)
{
    turn.ticket = turn.waited_us = 0;
    assert_int_equal(get(key), ISSUE_PARK);
    bridge_settle(&bridge);
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void a_key_is_opened_and_wanted_and_served(void **state)
{
    (void)state;
    ask("seq:orders:acme");
    assert_int_equal(nevents, 2);
    assert_int_equal(event[0].kind, SEQUENCES_OPEN);
    assert_int_equal(event[0].counter, 0);
    assert_string_equal(event[0].of.name, "orders");
    assert_string_equal(event[0].of.sub, "acme");
    assert_string_equal(event[0].of.period, "");
    assert_int_equal(event[1].kind, SEQUENCES_WANT);
    assert_true(event[1].want.count == SEQUENCE_FIRST && !event[1].want.whole);
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN, .start = 100, .increment = -2});
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_GRANT, .handle = 3, .lo = 10, .hi = 14, .given = 2, .mark = &mark});
    assert_int_equal(get("seq:orders:acme"), ISSUE_OK);
    assert_int_equal(number, 100 - 2 * 12);
    int64_t given;
    assert_true(mark_load(&mark, &given) && given == 3);
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_REVOKE, .handle = 3, .hi = 13});
    assert_int_equal(get("seq:orders:acme"), ISSUE_OK);
    assert_int_equal(get("seq:orders:acme"), ISSUE_PARK);
}

static void each_refusal_is_told_as_what_it_is(void **state)
{
    (void)state;
    static const struct {
        unsigned how;
        enum issue_status status; /* PARK: up to max_wait, and then the next */
        enum issue_status after;
    } rows[] = {
        {SEQ_WAIT, ISSUE_PARK, ISSUE_LOADING},         {SEQ_CLOSED, ISSUE_NEVER, ISSUE_NEVER},
        {SEQ_USED_UP, ISSUE_NEVER, ISSUE_NEVER},       {SEQ_STOPPED, ISSUE_NEVER, ISSUE_NEVER},
        {SEQ_UNKNOWN, ISSUE_MISS, ISSUE_MISS},         {SEQ_DROPPED, ISSUE_MISS, ISSUE_MISS},
        {SEQ_DIFFERS, ISSUE_NEVER, ISSUE_NEVER},       {SEQ_NO_SUBS, ISSUE_WRONG, ISSUE_WRONG},
        {SEQ_TOO_MANY_SUBS, ISSUE_NEVER, ISSUE_NEVER}, {SEQ_NO_PERIOD, ISSUE_WRONG, ISSUE_WRONG},
        {SEQ_UNREADABLE, ISSUE_NEVER, ISSUE_NEVER},    {SEQ_UNSAID, ISSUE_NEVER, ISSUE_NEVER},
        {BLOCKS_AWAY, ISSUE_PARK, ISSUE_AGAIN},        {BLOCKS_SHUT, ISSUE_PARK, ISSUE_AGAIN},
        {BLOCKS_BACK, ISSUE_PARK, ISSUE_AGAIN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        turn.waited_us = 0;
        (void)get("seq:orders");
        mail((struct blocks_mail){.kind = BLOCKS_MAIL_REFUSED,
                                  .how = (uint8_t)rows[i].how,
                                  .when = clock_mono_ms(&clock_.clock) + 1000,
                                  .hi = 1});
        assert_int_equal(get("seq:orders"), rows[i].status);
        turn.waited_us = serve.issuer.max_wait_us;
        assert_int_equal(get("seq:orders"), rows[i].after);
        assert_true(refusal_text(serve.issuer.refused)[0]);
    }
}

static void of_what_is_used_up_the_last_number_is_told(void **state)
{
    (void)state;
    ask("seq:orders");
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_REFUSED,
                              .how = SEQ_USED_UP,
                              .when = clock_mono_ms(&clock_.clock) + 1000,
                              .lo = 999,
                              .hi = 1,
                              .start = 1,
                              .increment = 1});
    assert_int_equal(get("seq:orders"), ISSUE_NEVER);
    assert_string_equal(refusal_text(serve.issuer.refused), "used up: max 1000 was reached");
}

/* What ends by itself is over with its time; of what does not, whoever comes hears it while it is
 * asked again. */
static void what_never_changes_is_told_until_its_time_is_over(void **state)
{
    (void)state;
    const struct blocks_mail refused = {.kind = BLOCKS_MAIL_REFUSED, .hi = 1};
    for (int stands = 0; stands < 2; stands++) {
        struct blocks_mail m = refused;
        turn.ticket = turn.waited_us = 0;
        (void)get("seq:orders");
        m.how = stands ? SEQ_STOPPED : SEQ_WAIT;
        m.when = clock_mono_ms(&clock_.clock) + 1000;
        mail(m);
        assert_int_equal(get("seq:orders"), stands ? ISSUE_NEVER : ISSUE_PARK);
        fake_clock_pass(&clock_, 2000000);
        assert_int_equal(get("seq:orders"), ISSUE_PARK);
    }
}

/* Who wants as many as cannot be had is told so, and nobody else. */
static void too_many_in_a_row_are_refused_alone(void **state)
{
    (void)state;
    int64_t last;
    ask("seq:orders");
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN, .start = 1, .increment = 1});
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_REFUSED,
                              .how = SEQ_USED_UP,
                              .when = clock_mono_ms(&clock_.clock) + 1000,
                              .hi = 50});
    struct names_entry *orders = names_find(&serve.issuer.names, SPAN("seq:orders"));
    assert_int_equal(issuer_row(&serve.issuer, orders, &turn, 50, &last, &step), ISSUE_NEVER);
    turn.ticket = 0;
    assert_int_equal(get("seq:orders"), ISSUE_PARK);
}

static void a_strict_one_is_asked_for_with_tickets(void **state)
{
    (void)state;
    ask("seq:strict");
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN, .strict = true, .increment = 1});
    nevents = 0;
    assert_int_equal(get("seq:strict"), ISSUE_PARK);
    int64_t one = turn.ticket;
    turn.ticket = 0;
    assert_int_equal(get("seq:strict"), ISSUE_PARK);
    bridge_settle(&bridge);
    assert_int_equal(nevents, 1);
    assert_true(event[0].want.count == 2 && event[0].want.upto == turn.ticket);
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_OWN, .lo = 5, .hi = 5, .when = event[0].want.upto});
    turn.ticket = one;
    assert_int_equal(get("seq:strict"), ISSUE_OK);
    assert_int_equal(number, 5);
    assert_true(turn.ticket < 0);
}

static bool is_warned_of(unsigned warning)
{
    char text[200];
    struct buf out;
    buf_init(&out, text, sizeof text);
    const struct generator *g = bridge.sequences->base.after;
    return g->kind->warnings[warning].say(g, clock_wall_ms(&clock_.clock), &out);
}

static void that_one_is_at_its_max_rate_is_warned_of(void **state)
{
    (void)state;
    ask("seq:orders");
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN, .increment = 1});
    struct blocks_mail m = {.kind = BLOCKS_MAIL_REFUSED, .how = SEQ_WAIT, .hi = 1};
    mail(m);
    assert_false(is_warned_of(2));
    m.lo = 50;
    m.how = SEQ_USED_UP;
    mail(m);
    assert_false(is_warned_of(2));
    m.how = SEQ_WAIT;
    mail(m);
    assert_true(is_warned_of(2));
}

/* given: it was heard whether it has any. */
static void whether_it_has_subs_is_told(void **state)
{
    (void)state;
    static const struct {
        uint32_t given;
        int64_t subs;
        enum issue_status second;
    } cases[] = {{0, 0, ISSUE_PARK}, {1, 5, ISSUE_PARK}, {1, 0, ISSUE_WRONG}};
    ask("seq:orders");
    turn.ticket = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "seq:orders:s%zu", i);
        mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN,
                                  .increment = 1,
                                  .given = cases[i].given,
                                  .when = cases[i].subs});
        assert_int_equal(get("seq:orders:first"), ISSUE_PARK);
        assert_int_equal(get(key), cases[i].second);
    }
}

/* Of numbers in a row nothing is left over for others: it would be out of order. */
static void those_in_a_row_are_for_who_wants_as_many(void **state)
{
    (void)state;
    int64_t last, others = 0, own;
    ask("seq:strict");
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN, .strict = true, .increment = 1});
    struct names_entry *strict = names_find(&serve.issuer.names, SPAN("seq:strict"));
    assert_int_equal(issuer_row(&serve.issuer, strict, &turn, 5, &last, &step), ISSUE_PARK);
    own = turn.ticket;
    turn.ticket = others;
    assert_int_equal(issuer_row(&serve.issuer, strict, &turn, 3, &last, &step), ISSUE_PARK);
    others = turn.ticket;
    bridge_settle(&bridge);
    const struct blocks_want *want = &event[nevents - 1].want;
    assert_true(want->count == 8 && want->whole && want->most == 5 && want->upto == others);
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_OWN, .lo = 5, .hi = 9, .when = others, .given = 1});
    assert_int_equal(issuer_row(&serve.issuer, strict, &turn, 3, &last, &step), ISSUE_PARK);
    turn.ticket = own;
    assert_int_equal(issuer_row(&serve.issuer, strict, &turn, 5, &last, &step), ISSUE_OK);
    assert_int_equal(last, 9);
}

static void a_place_that_was_closed_is_forgotten(void **state)
{
    (void)state;
    char key[32];
    for (int i = 0; i < 5; i++) { /* four may be asked about */
        (void)snprintf(key, sizeof key, "seq:none%d", i);
        turn.ticket = 0;
        (void)get(key);
        bridge_settle(&bridge);
        mail((struct blocks_mail){.kind = BLOCKS_MAIL_REFUSED,
                                  .counter = (uint32_t)i,
                                  .how = SEQ_UNKNOWN,
                                  .when = INT64_MAX,
                                  .hi = 1});
    }
    assert_int_equal(event[nevents - 1].kind, SEQUENCES_CLOSE);
    assert_int_equal(event[nevents - 1].counter, 0);
    struct net_service *svc = protocol_redis.make(&serve);
    assert_non_null(svc);
    serve.services[SERVE_REDIS] = svc;
    struct recent_request *known = ((struct rds_service *)svc)->recent.request;
    known->n = RECENT_LEAST;
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_CLOSED, .counter = 0});
    assert_true(known->n == SIZE_MAX);
    serve.services[SERVE_REDIS] = NULL;
    free(svc);
    ask("seq:none4");
    assert_int_equal(event[nevents - 2].kind, SEQUENCES_OPEN);
    assert_int_equal(event[nevents - 2].counter, 0);
}

/* The time by which days are counted is the coordinator's: the clock here is a year behind. */
static void periods_are_those_of_the_coordinators_time(void **state)
{
    (void)state;
    ask("seq:daily");
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_KNOWN, .start = 1, .increment = 1, .lo = PERIOD_DAY, .hi = 60});
    report.time_ms = T0 + INT64_C(365) * 86400000;
    report.time_mono = clock_mono_ms(&clock_.clock);
    bridge_sequences_note(&bridge, &report);
    nevents = 0;
    assert_int_equal(get("seq:daily"), ISSUE_PARK);
    bridge_settle(&bridge);
    char label[PERIOD_LABEL_MAX];
    assert_true(period_label(PERIOD_DAY, 60, report.time_ms, label));
    assert_int_equal(event[0].kind, SEQUENCES_OPEN);
    assert_string_equal(event[0].of.period, label);
    assert_int_equal(event[1].kind, SEQUENCES_WANT);
    assert_int_equal(event[1].counter, event[0].counter);
}

/* Of a date that the request has named it is that one's mistake; else the coordinator's clock is
 * ahead, and somebody has to know. */
static void a_period_that_is_over_is_whose_mistake_it_is(void **state)
{
    (void)state;
    const struct span key = SPAN("seq:daily"), date = SPAN("2026-05-01");
    struct names_entry *named = names_find_part(&serve.issuer.names, key, date);
    turn.clock = &clock_.clock;
    turn.quota = UINT32_MAX;
    assert_int_equal(issuer_next(&serve.issuer, named, &turn, &number, &step), ISSUE_PARK);
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_REFUSED, .how = SEQ_CLOSED, .when = INT64_MAX, .hi = 1});
    named = names_find_part(&serve.issuer.names, key, date);
    assert_int_equal(issuer_next(&serve.issuer, named, &turn, &number, &step), ISSUE_WRONG);
    assert_string_equal(refusal_text(serve.issuer.refused), "the period 2026-05-01 is over");
    turn.ticket = 0;
    (void)get("seq:daily");
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_KNOWN, .counter = 1, .start = 1, .increment = 1, .lo = PERIOD_DAY});
    report.time_ms = T0;
    report.time_mono = clock_mono_ms(&clock_.clock);
    bridge_sequences_note(&bridge, &report);
    (void)get("seq:daily");
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_REFUSED, .counter = 2, .how = SEQ_CLOSED, .when = INT64_MAX, .hi = 1});
    assert_int_equal(get("seq:daily"), ISSUE_NEVER);
}

static void what_is_reported_is_shown(void **state)
{
    (void)state;
    const struct sequence_told *t = &generators.sequences.told;
    for (unsigned how = 0; how < SEQ_HOWS; how++)
        report.takes[how] = 1;
    report.takes_failed = 7;
    report.given_back = 8;
    report.dropped = 9;
    bridge_sequences_note(&bridge, &report);
    bridge_sequences_note(&bridge, &report); /* totals */
    assert_int_equal(t->takes[SEQUENCE_TAKE_GRANTED], 2);
    assert_int_equal(t->takes[SEQUENCE_TAKE_LOOKED], 1);
    assert_int_equal(t->takes[SEQUENCE_TAKE_LATER], 1);
    assert_int_equal(t->takes[SEQUENCE_TAKE_USED_UP], 1);
    assert_int_equal(t->takes[SEQUENCE_TAKE_UNKNOWN], 2);
    assert_int_equal(t->takes[SEQUENCE_TAKE_MISTAKEN], 3);
    assert_int_equal(t->takes[SEQUENCE_TAKE_REFUSED], SEQ_HOWS - 10);
    assert_int_equal(t->takes[SEQUENCE_TAKE_FAILED], 7);
    assert_true(t->given_back == 8 && t->dropped == 9);
}

static void that_a_restart_finds_nothing_is_warned_of(void **state)
{
    (void)state;
    char text[ERR_TEXT_MAX + 128];
    const struct generator *g = &generators.sequences.base;
    const struct generator_warning *w = g->kind->warnings;
    for (unsigned lost = 0; lost < 2; lost++) {
        struct buf b;
        buf_init(&b, text, sizeof text - 1);
        (void)snprintf(report.page, sizeof report.page, "%s", lost ? "it is full" : "");
        bridge_sequences_note(&bridge, &report);
        assert_int_equal(w->say(g, 0, &b), lost);
        text[b.n] = '\0';
        assert_string_equal(text, lost
                                      ? "no state page of sequences: a restart leaves a gap in the "
                                        "numbers: it is full"
                                      : "");
    }
}

static void nothing_is_given_out_once_it_goes_back(void **state)
{
    (void)state;
    ask("seq:orders");
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN, .start = 1, .increment = 1});
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_GRANT, .handle = 3, .lo = 0, .hi = 99, .mark = &mark});
    assert_int_equal(get("seq:orders"), ISSUE_OK);
    bridge_let_go(&bridge);
    assert_int_equal(get("seq:orders"), ISSUE_PARK);
    int64_t given;
    assert_true(mark_load(&mark, &given) && given == 1);
}

static void another_pool_has_other_numbers(void **state)
{
    (void)state;
    ask("seq:orders");
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_KNOWN, .start = 1, .increment = 1});
    mail((struct blocks_mail){
        .kind = BLOCKS_MAIL_GRANT, .handle = 3, .lo = 0, .hi = 99, .mark = &mark});
    mail((struct blocks_mail){.kind = BLOCKS_MAIL_LOST, .counter = UINT32_MAX});
    assert_int_equal(get("seq:orders"), ISSUE_PARK);
}

/* static:N has no store, and an empty prefix no sequences: such a key is any other. */
static void without_sequences_there_are_none(void **state)
{
    (void)state;
    struct err e;
    struct serve other = {.clock = serve.clock};
    struct generators closed = {0};
    struct conf c = conf;
    char fixed[] = "static:3", empty[] = "";
    assert_true(generators_have_sequences(&c));
    c.coordinator_url = fixed;
    assert_false(generators_have_sequences(&c));
    c = conf;
    c.sequences_prefix = empty;
    assert_int_equal(generators_open(&closed, &c, &other, &e), ERR_OK);
    assert_null(names_find(&other.issuer.names, SPAN("seq:orders")));
    names_clear(&other.issuer.names);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_key_is_opened_and_wanted_and_served),
        TEST(each_refusal_is_told_as_what_it_is),
        TEST(of_what_is_used_up_the_last_number_is_told),
        TEST(what_never_changes_is_told_until_its_time_is_over),
        TEST(too_many_in_a_row_are_refused_alone),
        TEST(a_strict_one_is_asked_for_with_tickets),
        TEST(that_one_is_at_its_max_rate_is_warned_of),
        TEST(whether_it_has_subs_is_told),
        TEST(those_in_a_row_are_for_who_wants_as_many),
        TEST(a_place_that_was_closed_is_forgotten),
        TEST(periods_are_those_of_the_coordinators_time),
        TEST(a_period_that_is_over_is_whose_mistake_it_is),
        TEST(what_is_reported_is_shown),
        TEST(that_a_restart_finds_nothing_is_warned_of),
        TEST(nothing_is_given_out_once_it_goes_back),
        TEST(another_pool_has_other_numbers),
        TEST(without_sequences_there_are_none),
    };
    return cmocka_run_group_tests_name("daemon/bridge_sequences", tests, NULL, NULL);
}
