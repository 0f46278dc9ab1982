/* The keeper with more than one supply: two toys, or workerIds and a toy. To be clean under
 * ThreadSanitizer, too. */
#include "base/log.h"
#include "lease/keeper.h"
#include "lease/supply.h"
#include "lease/workers.h"
#include "support/capture.h"
#include "support/fake_coord.h"
#include "support/lease_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_MS 30000
#define HOUR_MS     INT64_C(3600000)
#define NEVER       INT64_MAX
#define ORDER_MAX   1000

/* ---- a toy ------------------------------------------------------------------------------------
 */

enum toy_event_kind {
    TOY_DUE,  /* a call is due, once */
    TOY_ECHO, /* so many mails are posted by hear */
    TOY_LATE, /* one by next */
};

struct toy_event {
    enum toy_event_kind kind;
    unsigned n;
};

struct toy_report {
    unsigned calls, late;
    bool stopped, give_back;
};

struct toy {
    struct supply supply;
    struct toy_report report, shared;
    struct toy_event inbox[8];
    unsigned ninbox;

    int64_t due, every; /* a call is due then, mono ms; after each again in so many */
    unsigned left;      /* calls that a stop takes */
    unsigned posts;     /* mails that a call brings */
    bool unproven, late;
    unsigned number; /* of the latest mail */
    bool hold;       /* atomic: calls do not return while this holds */
    bool inside;     /* atomic: one is held so */
    unsigned made;   /* atomic: calls so far */
};

static struct bench {
    struct fake_coord coord;
    struct toy toy[2];
    struct supply *supplies[2];
    struct keeper *keeper;
    struct workers *workers;
    struct pagefile file;
    unsigned notified; /* atomic */

    unsigned char order[ORDER_MAX]; /* who had the first calls; the keeper's, to be read as far as
                                       reports tell of them */
    unsigned ncalls;
    bool wrong; /* the keeper's, until it is freed: a call that is none of the interface */

    /* The loop's side. */
    struct keeper_report report;
    struct toy_report seen[2];
    struct workers_report workers_seen;
    unsigned number[2]; /* of the latest mail of each */
    bool disorder;      /* it did not follow the one before */
    unsigned held, extended;
} b;

static struct toy *of(struct supply *s)
{
    return (struct toy *)(void *)s;
}

static void toy_tell(struct supply *s, const void *event)
{
    struct toy *t = of(s);
    assert_true(t->ninbox < sizeof t->inbox / sizeof *t->inbox);
    t->inbox[t->ninbox++] = *(const struct toy_event *)event;
}

static void toy_post(struct toy *t, unsigned n)
{
    while (n-- > 0) {
        t->number++;
        supply_post(&t->supply, &t->number, sizeof t->number);
    }
}

static void toy_hear(struct supply *s, int64_t mono)
{
    struct toy *t = of(s);
    for (unsigned i = 0; i < t->ninbox; i++) {
        if (t->inbox[i].kind == TOY_DUE)
            t->due = mono;
        else if (t->inbox[i].kind == TOY_ECHO)
            toy_post(t, t->inbox[i].n);
        else
            t->late = true;
    }
    t->ninbox = 0;
}

static void toy_stop(struct supply *s, bool give_back, int64_t mono)
{
    struct toy *t = of(s);
    (void)mono;
    b.wrong |= t->report.stopped;
    t->report.stopped = true;
    t->report.give_back = give_back;
}

static enum supply_next toy_next(struct supply *s, int64_t mono, int64_t *until)
{
    struct toy *t = of(s);
    if (t->late) {
        t->late = false;
        t->report.late++;
        toy_post(t, 1);
    }
    if (t->report.stopped && t->left == 0)
        return SUPPLY_FINISHED;
    *until = t->due;
    return mono < t->due ? SUPPLY_IDLE : SUPPLY_CALL;
}

static void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void toy_call(struct supply *s, struct coord *c, int64_t wall)
{
    struct toy *t = of(s);
    b.wrong |= c != &b.coord.coord || wall <= 0;
    if (b.ncalls < ORDER_MAX)
        b.order[b.ncalls] = t == &b.toy[1];
    b.ncalls++;
    t->report.calls++;
    while (__atomic_load_n(&t->hold, __ATOMIC_SEQ_CST)) {
        __atomic_store_n(&t->inside, true, __ATOMIC_SEQ_CST);
        nap();
    }
    __atomic_store_n(&t->inside, false, __ATOMIC_SEQ_CST);
    (void)__atomic_add_fetch(&t->made, 1, __ATOMIC_SEQ_CST);
}

static void toy_done(struct supply *s, int64_t mono, int64_t wall)
{
    struct toy *t = of(s);
    (void)wall;
    t->due = t->every == NEVER ? NEVER : mono + t->every;
    t->left -= t->report.stopped;
    toy_post(t, t->posts);
}

static bool toy_proven(const struct supply *s)
{
    return !((const struct toy *)(const void *)s)->unproven;
}

static const void *toy_report(struct supply *s)
{
    return &of(s)->report;
}

static const struct supply_kind toy_kind = {.tell = toy_tell,
                                            .hear = toy_hear,
                                            .stop = toy_stop,
                                            .next = toy_next,
                                            .call = toy_call,
                                            .done = toy_done,
                                            .proven = toy_proven,
                                            .report = toy_report,
                                            .report_size = sizeof(struct toy_report)};

/* ---- the bench --------------------------------------------------------------------------------
 */

static int64_t now_ms(void)
{
    return clock_mono_ms(clock_system());
}

/* Two toys that want nothing. */
static int begin(void **state)
{
    (void)state;
    memset(&b, 0, sizeof b);
    log_setup(LOG_LVL_ERROR, LOG_FMT_TEXT);
    fake_coord_init(&b.coord, clock_system(), RIG_IDENTITY, 0, FAKE_COORD_WORKERS - 1);
    for (unsigned i = 0; i < 2; i++) {
        struct toy *t = &b.toy[i];
        *t = (struct toy){.due = NEVER, .every = NEVER};
        t->supply.kind = &toy_kind;
        t->supply.shared = &t->shared;
        b.supplies[i] = &t->supply;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        __atomic_store_n(&b.toy[i].hold, false, __ATOMIC_SEQ_CST);
        if (b.keeper)
            keeper_stop(b.keeper, false);
    }
    keeper_free(b.keeper);
    workers_free(b.workers);
    if (b.workers)
        pagefile_close(&b.file);
    fake_coord_clear(&b.coord);
    return b.wrong ? -1 : 0;
}

static void begin_anew(void **state)
{
    assert_int_equal(end(state), 0);
    assert_int_equal(begin(state), 0);
}

static void notify(void *arg)
{
    (void)arg;
    (void)__atomic_add_fetch(&b.notified, 1, __ATOMIC_SEQ_CST);
}

static void start(void)
{
    struct err e;
    const struct keeper_options o = {.supplies = b.supplies,
                                     .nsupplies = 2,
                                     .coord = &b.coord.coord,
                                     .clock = clock_system(),
                                     .notify = notify};
    if (keeper_start(&o, &b.keeper, &e))
        fail_msg("%s", e.text);
}

/* In the place of the first toy. */
static void with_workers(void)
{
    struct err e;
    struct workers_options o = {.lease = rig_config(),
                                .coord_name = "fake://",
                                .pool_name = "default",
                                .file = &b.file,
                                .rng = rng_system()};
    o.lease.renew_ms = 5;
    o.lease.stop_ms = 400;
    if (pagefile_memory(&b.file, false, &e) || workers_new(&o, now_ms(), &b.workers, &e))
        fail_msg("%s", e.text);
    b.supplies[0] = workers_supply(b.workers);
}

static void take_one(const struct supply_mail *m)
{
    unsigned number;
    assert_true(m->supply < 2);
    if (b.workers && m->supply == 0) {
        const struct lease_mail mail = workers_mail(m);
        b.held += mail.kind == LEASE_MAIL_GRANT;
        b.extended += mail.kind == LEASE_MAIL_EXTEND;
        return;
    }
    memcpy(&number, m->body, sizeof number);
    b.disorder |= number != b.number[m->supply] + 1;
    b.number[m->supply] = number;
}

static void take(void)
{
    struct supply_mail mails[32];
    void *const reports[] = {b.workers ? (void *)&b.workers_seen : (void *)&b.seen[0], &b.seen[1]};
    size_t n;
    do {
        n = keeper_take(b.keeper, mails, 32, &b.report, reports);
        for (size_t i = 0; i < n; i++)
            take_one(&mails[i]);
    } while (n == 32);
}

/* Takes mails until the condition holds. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t until_ = now_ms() + PATIENCE_MS;                                                   \
        for (take(); !(condition); take()) {                                                       \
            if (now_ms() > until_)                                                                 \
                fail_msg("never came: %s", #condition);                                            \
            nap();                                                                                 \
        }                                                                                          \
    } while (0)

static void tell(size_t i, enum toy_event_kind kind, unsigned n)
{
    const struct toy_event e = {.kind = kind, .n = n};
    keeper_tell(b.keeper, i, &e);
}

static void always_due(struct toy *t)
{
    t->due = INT64_MIN;
    t->every = 0;
}

static void hold(struct toy *t, bool on)
{
    __atomic_store_n(&t->hold, on, __ATOMIC_SEQ_CST);
}

static bool inside(struct toy *t)
{
    return __atomic_load_n(&t->inside, __ATOMIC_SEQ_CST);
}

/* While the keeper could go on. */
static void linger(void)
{
    for (int i = 0; i < 30; i++)
        nap();
    take();
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void two_that_are_always_due_take_turns_and_the_first_begins(void **state)
{
    (void)state;
    always_due(&b.toy[0]);
    always_due(&b.toy[1]);
    start();
    AWAIT(b.seen[0].calls >= 20 && b.seen[1].calls >= 20);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(b.order[i], i % 2);
    assert_true(histogram_total(&b.report.requests) >= 40);
}

static void workerids_are_held_and_renewed_beside_one_that_is_always_due(void **state)
{
    (void)state;
    with_workers();
    always_due(&b.toy[1]);
    start();
    AWAIT(b.held == 2 && b.extended >= 10);
    assert_true(b.seen[1].calls >= 10);
    assert_int_equal(b.workers_seen.held, 2);
    keeper_stop(b.keeper, true);
    AWAIT(b.report.finished);
    for (unsigned w = 0; w < FAKE_COORD_WORKERS; w++)
        assert_false(b.coord.worker[w].held);
    assert_int_equal(b.workers_seen.held, 0);
    assert_true(b.seen[1].stopped && b.seen[1].give_back);
}

/* It hangs, fails, and is to be tried again in an hour. */
static void one_that_fails_costs_the_other_that_call_and_no_more(void **state)
{
    (void)state;
    b.toy[0].due = INT64_MIN;
    b.toy[0].every = HOUR_MS;
    always_due(&b.toy[1]);
    hold(&b.toy[0], true);
    start();
    AWAIT(inside(&b.toy[0]));
    linger();
    assert_int_equal(b.seen[1].calls, 0);
    hold(&b.toy[0], false);
    AWAIT(b.seen[1].calls >= 20);
    assert_int_equal(b.seen[0].calls, 1);
}

static void nor_do_failing_calls_to_the_coordinator_hold_up_a_toy(void **state)
{
    (void)state;
    with_workers();
    for (int i = 0; i < FAKE_COORD_FAULTS; i++)
        fake_coord_fail(&b.coord, FAKE_DESCRIBE, COORD_DOWN, false);
    always_due(&b.toy[1]);
    start();
    AWAIT(b.seen[1].calls >= 100 && fake_coord_count(&b.coord, FAKE_DESCRIBE) >= 3);
    assert_int_equal(b.held, 0);
    keeper_stop(b.keeper, true);
    AWAIT(b.report.finished);
}

/* Nothing is taken meanwhile, which would wake it. */
static void it_sleeps_until_the_first_of_them_is_due(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        if (i > 0)
            begin_anew(state);
        b.toy[i].due = now_ms() + 20;
        b.toy[i].every = 20;
        b.toy[!i].due = now_ms() + HOUR_MS;
        start();
        for (int64_t until = now_ms() + PATIENCE_MS; now_ms() < until;) {
            if (__atomic_load_n(&b.toy[i].made, __ATOMIC_SEQ_CST) >= 3)
                break;
            nap();
        }
        take();
        assert_true(__atomic_load_n(&b.toy[i].made, __ATOMIC_SEQ_CST) >= 3);
        assert_int_equal(b.seen[!i].calls, 0);
        (void)pthread_mutex_lock(&b.coord.lock);
        assert_true(b.coord.idles >= 1); /* and gives its connection up for that */
        (void)pthread_mutex_unlock(&b.coord.lock);
    }
}

/* Whoever had the latest call. */
static void after_a_sleep_the_first_in_the_list_goes_first(void **state)
{
    (void)state;
    start();
    tell(0, TOY_DUE, 0);
    AWAIT(b.seen[0].calls == 1);
    keeper_pause(b.keeper, true);
    AWAIT(b.report.paused);
    tell(1, TOY_DUE, 0);
    tell(0, TOY_DUE, 0);
    linger();
    assert_int_equal(b.seen[0].calls + b.seen[1].calls, 1);
    keeper_pause(b.keeper, false);
    AWAIT(b.seen[0].calls == 2 && b.seen[1].calls == 1);
    assert_int_equal(b.order[1], 0);
    assert_int_equal(b.order[2], 1);
}

static void a_stop_waits_for_each_of_them(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        if (i > 0)
            begin_anew(state);
        b.toy[i].due = INT64_MIN;
        b.toy[i].every = 5; /* it sleeps between them */
        b.toy[i].left = 3;
        hold(&b.toy[i], true);
        start();
        AWAIT(inside(&b.toy[i]));
        keeper_stop(b.keeper, i == 0);
        hold(&b.toy[i], false);
        AWAIT(b.report.finished);
        assert_int_equal(b.seen[i].calls, 4);
        assert_int_equal(b.seen[!i].calls, 0);
        for (unsigned k = 0; k < 2; k++)
            assert_true(b.seen[k].stopped && b.seen[k].give_back == (i == 0));
    }
}

static void a_second_stop_waits_for_none(void **state)
{
    (void)state;
    b.toy[0].left = b.toy[1].left = 1;
    b.toy[0].due = b.toy[1].due = now_ms() + HOUR_MS;
    start();
    keeper_stop(b.keeper, true);
    linger();
    assert_false(b.report.finished);
    keeper_stop(b.keeper, true);
    AWAIT(b.report.finished);
    assert_int_equal(b.seen[0].calls + b.seen[1].calls, 0);
}

static void it_rests_once_the_call_of_either_is_back_and_before_the_other_has_one(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        if (i > 0)
            begin_anew(state);
        always_due(&b.toy[0]);
        always_due(&b.toy[1]);
        hold(&b.toy[i], true);
        start();
        AWAIT(inside(&b.toy[i]));
        keeper_pause(b.keeper, true);
        linger();
        assert_false(b.report.paused);
        unsigned other = b.seen[!i].calls;
        assert_int_equal(other, i);
        hold(&b.toy[i], false);
        AWAIT(b.report.paused);
        linger();
        assert_int_equal(b.seen[i].calls, 1);
        assert_int_equal(b.seen[!i].calls, other);
        keeper_pause(b.keeper, false);
        AWAIT(b.seen[0].calls > 3 && b.seen[1].calls > 3 && !b.report.paused);
    }
}

static void what_it_rests_with_is_proven_if_all_of_it_is(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        if (i > 0)
            begin_anew(state);
        if (i < 2)
            b.toy[i].unproven = true;
        start();
        keeper_pause(b.keeper, true);
        AWAIT(b.report.paused);
        assert_int_equal(b.report.proven, i == 2);
    }
}

/* Whoever waits for the word that it rests hears it, also where it had not woken in between. */
static void that_it_rests_is_told_after_each_pause(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 1000; i++) {
        unsigned before = __atomic_load_n(&b.notified, __ATOMIC_SEQ_CST);
        keeper_pause(b.keeper, true);
        AWAIT(__atomic_load_n(&b.notified, __ATOMIC_SEQ_CST) != before);
        AWAIT(b.report.paused);
        keeper_pause(b.keeper, false);
    }
}

/* Also those that no call has brought. */
static void mails_and_events_are_each_ones_own_and_in_order(void **state)
{
    (void)state;
    start();
    tell(1, TOY_ECHO, 3);
    AWAIT(b.number[1] == 3);
    assert_int_equal(b.number[0], 0);
    tell(0, TOY_LATE, 0);
    AWAIT(b.number[0] == 1);
    assert_true(b.seen[0].late == 1 && b.seen[1].late == 0);
    assert_int_equal(b.seen[0].calls + b.seen[1].calls, 0);
    tell(0, TOY_ECHO, SUPPLY_MAILS);
    tell(1, TOY_ECHO, SUPPLY_MAILS);
    AWAIT(b.number[0] == SUPPLY_MAILS + 1 && b.number[1] == SUPPLY_MAILS + 3);
    assert_false(b.disorder);
}

/* The loop is away for long, and takes up where it was. */
static void no_mail_of_either_is_lost_while_nobody_takes(void **state)
{
    (void)state;
    always_due(&b.toy[0]);
    always_due(&b.toy[1]);
    b.toy[0].posts = 7;
    b.toy[1].posts = SUPPLY_MAILS;
    start();
    for (int i = 0; i < 20; i++) {
        linger();
        assert_false(b.disorder);
    }
    assert_true(b.number[0] >= 7 && b.number[1] >= SUPPLY_MAILS);
}

/* Said where two halves of the nodes could grant: replicas that are connected, and that must. */
static bool warns_of_halves(uint64_t connected, uint32_t must)
{
    with_workers();
    b.coord.pool.replicas = connected;
    b.coord.pool.params.replicas = must;
    log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
    capture_begin();
    start();
    AWAIT(b.held > 0);
    const char *text = capture_end();
    log_setup(LOG_LVL_ERROR, LOG_FMT_TEXT);
    return strstr(text, "a failover may repeat IDs") != NULL;
}

static void replicas_that_suffice_are_not_warned_of(void **state)
{
    (void)state;
    assert_false(warns_of_halves(2, 1));
}

static void fewer_than_half_that_acknowledge_are_warned_of(void **state)
{
    (void)state;
    assert_true(warns_of_halves(3, 1));
}

static void replicas_of_which_none_acknowledges_are_warned_of(void **state)
{
    (void)state;
    assert_true(warns_of_halves(1, 0));
}

#define SUPPLY(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SUPPLY(two_that_are_always_due_take_turns_and_the_first_begins),
        SUPPLY(workerids_are_held_and_renewed_beside_one_that_is_always_due),
        SUPPLY(one_that_fails_costs_the_other_that_call_and_no_more),
        SUPPLY(nor_do_failing_calls_to_the_coordinator_hold_up_a_toy),
        SUPPLY(it_sleeps_until_the_first_of_them_is_due),
        SUPPLY(after_a_sleep_the_first_in_the_list_goes_first),
        SUPPLY(a_stop_waits_for_each_of_them),
        SUPPLY(a_second_stop_waits_for_none),
        SUPPLY(it_rests_once_the_call_of_either_is_back_and_before_the_other_has_one),
        SUPPLY(what_it_rests_with_is_proven_if_all_of_it_is),
        SUPPLY(that_it_rests_is_told_after_each_pause),
        SUPPLY(mails_and_events_are_each_ones_own_and_in_order),
        SUPPLY(no_mail_of_either_is_lost_while_nobody_takes),
        SUPPLY(replicas_that_suffice_are_not_warned_of),
        SUPPLY(fewer_than_half_that_acknowledge_are_warned_of),
        SUPPLY(replicas_of_which_none_acknowledges_are_warned_of),
    };
    return cmocka_run_group_tests_name("lease/supply", tests, NULL, NULL);
}
