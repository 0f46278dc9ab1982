/* The supply of sequences: what it asks, tells and logs. */
#include "lease/period_sweep.h"
#include "lease/said.h"
#include "sequences_bench.h"

/* ---- taking ---------------------------------------------------------------------------------- */

static void without_a_counter_there_is_nothing(void **state)
{
    (void)state;
    make_pool();
    start();
    run();
    assert_false(has_file("sequences.page"));
    assert_false(has_file("sequences.generation"));
    assert_null(sequences_found(b.sequences, 0));
    assert_true(b.supply[1]->kind->proven(b.supply[1]));
    assert_int_equal(b.nmail, 0);
    stop(true);
    assert_true(b.finished);
    assert_false(has_file("sequences.page"));
}

static void a_block_is_asked_for_and_mailed(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    const struct blocks_mail *m = must_have(2, "orders", 10);
    assert_int_equal(latest(BLOCKS_MAIL_KNOWN, 2)->when, 0); /* it has no subs */
    assert_int_equal(m->lo, 0);
    assert_int_equal(m->hi, 9);
    assert_true(m->beyond == SEQ_NUMBER_MAX - 1 - 9); /* of 1 to that, behind the tenth */
    assert_true(has_file("sequences.page"));
    assert_int_equal(report()->takes[SEQ_GRANTED], 1);
    assert_int_equal(report()->time_ms, b.clock.ms);
    assert_int_equal(histogram_total(&report()->take_us), 2); /* what it is, and a block */
    tell_want(2, 20);
    run();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 2)->lo, 10);
}

/* This host was asleep, or that clock was set: who takes little would be in the period of before.
 */
static void the_coordinators_time_is_known_by_renewals_too(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    must_have(0, "orders", 10);
    unsigned granted = (unsigned)report()->takes[SEQ_GRANTED];
    b.clock.ms += 3 * 3600000;
    pass(25000);
    assert_int_equal(report()->takes[SEQ_GRANTED], granted);
    assert_true(report()->time_ms + (b.mono - report()->time_mono) == b.clock.ms);
    b.clock.ms += 3 * 3600000;
    pass(10);
    tell_want(0, 20); /* what this is told is newer */
    run();
    assert_true(report()->time_ms + (b.mono - report()->time_mono) == b.clock.ms);
}

static void what_is_wanted_before_the_pool_is_known_waits(void **state)
{
    (void)state;
    start();
    tell_open(0, "orders");
    tell_want(0, 5);
    capture_begin();
    run();
    (void)capture_end();
    assert_int_equal(b.nmail, 0);
    assert_false(has_file("sequences.page"));
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    pass(60000);
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->hi, 4);
}

static void of_two_wants_that_were_not_heard_the_latter_counts(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    tell_open(0, "orders");
    for (int i = 0; i < 1000; i++)
        tell_want(0, 5);
    tell_want(0, 7);
    run();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->hi, 6);
    assert_int_equal(count(BLOCKS_MAIL_GRANT), 1);
}

static void of_a_strict_sequence_they_add_up(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    d.strict = true;
    make("orders", &d);
    start();
    tell_open(0, "orders");
    tell(&(struct sequences_event){.kind = SEQUENCES_WANT, .want = {.count = 1}});
    run(); /* it is not known yet that it is */
    assert_true(latest(BLOCKS_MAIL_KNOWN, 0)->strict);
    for (int64_t i = 1; i <= 3; i++)
        tell(&(struct sequences_event){.kind = SEQUENCES_WANT, .want = {.count = 2, .upto = i}});
    run();
    assert_int_equal(count(BLOCKS_MAIL_OWN), 1);
    assert_int_equal(latest(BLOCKS_MAIL_OWN, 0)->when, 3);
    assert_int_equal(latest(BLOCKS_MAIL_OWN, 0)->hi, 5);
}

/* An answer that is lost grants the same block again. */
static void a_take_is_repeated_with_its_token(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    assert_int_equal(must_have(0, "orders", 10)->hi, 9);
    tell_want(0, 10);
    toy_of(b.coord)->loses = true;
    capture_begin();
    run();
    toy_of(b.coord)->loses = false;
    pass(10000);
    const char *log = capture_end();
    assert_non_null(strstr(log, "no numbers of sequences can be had"));
    assert_non_null(strstr(log, "numbers of sequences can be had again"));
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, BLOCKS_AWAY);
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, 10);
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->hi, 19);
    assert_true(report()->takes_failed >= 1);
}

/* ---- unknown, refused ------------------------------------------------------------------------ */

static unsigned times(const char *log, const char *part)
{
    unsigned n = 0;
    for (const char *p = log; (p = strstr(p, part)); p++)
        n++;
    return n;
}

static void an_unknown_one_is_named_once_with_the_command(void **state)
{
    (void)state;
    make_pool();
    start();
    capture_begin();
    tell_open(0, "orders");
    tell_want(0, 5);
    run();
    for (int i = 0; i < 5; i++) {
        tell_want(0, 5);
        pass(2000);
    }
    const char *log = capture_end();
    assert_int_equal(times(log, "sidflakectl seq create --coordinator "), 1);
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_UNKNOWN);
    const struct seq_definition d = skipping();
    make("orders", &d);
    capture_begin();
    tell_want(0, 5);
    pass(2000);
    log = capture_end();
    assert_int_equal(times(log, "sequence served again"), 1);
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, 0);
}

static void of_many_unknown_names_one_a_second_is_said(void **state)
{
    (void)state;
    make_pool();
    start();
    capture_begin();
    for (uint32_t i = 0; i < 20; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "none%u", i);
        tell_open(i, name);
        tell_want(i, 1);
    }
    run();
    pass(1500);
    tell_want(7, 1);
    run();
    assert_int_equal(times(capture_end(), "unknown sequence"), 2);
    assert_int_equal(count(BLOCKS_MAIL_REFUSED), 21);
}

/* They would be all that the status page has of the log. */
static void of_names_without_end_few_are_said(void **state)
{
    (void)state;
    make_pool();
    start();
    capture_begin();
    for (uint32_t i = 0; i < 40; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "none%u", i);
        tell_open(i, name);
        tell_want(i, 1);
        run();
        pass(1500);
    }
    assert_in_range(times(capture_end(), "unknown sequence"), 18, 20);
}

/* Clients think of as many as they like: none of them counts as there, and the log says it once. */
static void of_subs_that_cannot_be_nothing_is_known(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    (void)must_have(0, "orders", 5);
    capture_begin();
    for (uint32_t i = 1; i < 10; i++) {
        struct sequences_event e = {.kind = SEQUENCES_OPEN, .counter = i, .of = name_of("orders")};
        (void)snprintf(e.of.sub, sizeof e.of.sub, "s%u", i);
        tell(&e);
        tell_want(i, 1);
        run();
        pass(2000);
        assert_null(latest(BLOCKS_MAIL_KNOWN, i));
        assert_int_equal(latest(BLOCKS_MAIL_REFUSED, i)->how, SEQ_NO_SUBS);
        (void)must_have(0, "orders", 5); /* it is served all the while */
    }
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence asked for what it cannot have"), 1);
    assert_int_equal(times(log, "sequence refused"), 0);
    assert_int_equal(times(log, "served again"), 0);
}

static void one_that_is_used_up_says_what_to_do(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = {.start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST};
    struct coord_reply r;
    struct seq_grant g;
    const struct seq_create in = {.name = "few", .definition = d, .has_max = true, .max = 3};
    assert_int_equal(seq_create(b.coord, SETUP_IDENTITY, &in, &g, &r), COORD_OK);
    start();
    assert_int_equal(must_have(0, "few", 10)->hi, 2);
    capture_begin();
    tell_want(0, 10);
    run();
    assert_non_null(strstr(capture_end(), " few --max M`"));
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_USED_UP);
}

/* Its max has not been reached: others go on, and whoever wants less. */
static void of_too_many_in_a_row_nothing_is_said(void **state)
{
    (void)state;
    struct said said = {.at = {"redis://h", "default", NULL}};
    struct blocks_counter counter = {.of = name_of("few")};
    struct blocks machine = {.counter = &counter, .nmail = 1};
    machine.mail[0] =
        (struct blocks_mail){.kind = BLOCKS_MAIL_REFUSED, .how = SEQ_USED_UP, .hi = 500};
    capture_begin();
    said_mails(&said, &machine, 0);
    assert_int_equal(times(capture_end(), "few"), 0);
    machine.mail[0].hi = 1;
    capture_begin();
    said_mails(&said, &machine, 0);
    assert_int_equal(times(capture_end(), "sequence refused"), 1);
}

/* A client may ask for one sub that is refused and one that is served in turn. */
static void what_is_refused_and_served_in_turn_is_said_once_a_minute(void **state)
{
    (void)state;
    struct said said = {.at = {"redis://h", "default", NULL}};
    capture_begin();
    for (int64_t mono = 0; mono < 120000; mono += 100) {
        said_refused(&said, "orders", SEQ_TOO_MANY_SUBS, mono);
        said_served(&said, "orders");
    }
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence refused"), 2);
    assert_int_equal(times(log, "sequence served again"), 2);
}

/* Without pool and coordinator either would be taken by another pool. */
static void one_that_has_stopped_names_the_pool_in_both_commands(void **state)
{
    (void)state;
    struct said said = {.at = {"redis://h", "eu", "/etc/pw"}};
    capture_begin();
    said_refused(&said, "orders", SEQ_STOPPED, 0);
    assert_non_null(strstr(capture_end(),
                           "that it has not is said by `sidflakectl pool reopen --nothing-lost "
                           "--coordinator redis://h --password-file /etc/pw --pool eu`, how far "
                           "this one was by `sidflakectl seq reopen --coordinator redis://h "
                           "--password-file /etc/pw --pool eu orders --above N`"));
}

/* Each is a command as it stands, but for its capitals. */
static void what_makes_one_is_told_whole(void **state)
{
    (void)state;
    static const struct {
        const char *url, *name;
        unsigned how;
        const char *told;
    } cases[] = {
        {"redis://h", "new", SEQ_UNKNOWN,
         "--pool eu new --max-rate R`, or --on-loss in place of --max-rate\""},
        {"redis://h", "-new", SEQ_UNKNOWN,
         "--pool eu --max-rate R -- -new`, or --on-loss in place of --max-rate\""},
        {"redis://h", "old", SEQ_DROPPED,
         "--pool eu old --reuse --no-older-data --max-rate R`, or --on-loss"},
        {"redis://h", "--all", SEQ_USED_UP, "--pool eu --max M -- --all`\""},
        {"sqlite:/p.db", "new", SEQ_UNKNOWN, "--pool eu new`\""},
        {"sqlite:/p.db", "-h", SEQ_UNKNOWN, "--pool eu -- -h`\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct said said = {.at = {cases[i].url, "eu", NULL}};
        capture_begin();
        said_refused(&said, cases[i].name, cases[i].how, 0);
        const char *log = capture_end();
        if (!strstr(log, cases[i].told))
            fail_msg("expected %s in %s", cases[i].told, log);
    }
}

static void a_command_that_does_not_fit_is_not_told_in_part(void **state)
{
    (void)state;
    static char url[LOG_LINE_MAX] = "redis://";
    memset(url + strlen(url), 'h', sizeof url - strlen(url) - 1);
    struct said said = {.at = {url, "default", NULL}};
    capture_begin();
    said_refused(&said, "orders", SEQ_UNKNOWN, 0);
    const char *log = capture_end();
    assert_non_null(strstr(log, "there is none: seq create in sidflakectl(1)\""));
    assert_null(strchr(log, '`'));
}

/* ---- places ---------------------------------------------------------------------------------- */

static void a_place_is_free_once_that_is_said(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    make("tickets", &d);
    start();
    must_have(0, "orders", 10);
    tell_close(0);
    run();
    assert_non_null(latest(BLOCKS_MAIL_CLOSED, 0));
    assert_int_equal(report()->dropped, 10);
    b.nmail = 0;
    assert_int_equal(must_have(0, "tickets", 3)->hi, 2);
    killed();
    run();
    assert_string_equal(sequences_found(b.sequences, 0)->name, "tickets");
}

/* One that is under way comes back first. */
static void a_place_is_not_free_while_a_take_is_under_way(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    must_have(0, "orders", 10);
    tell_want(0, 10);
    toy_of(b.coord)->loses = true;
    capture_begin();
    run();
    tell_close(0);
    run();
    assert_null(latest(BLOCKS_MAIL_CLOSED, 0));
    toy_of(b.coord)->loses = false;
    pass(10000);
    (void)capture_end();
    assert_non_null(latest(BLOCKS_MAIL_CLOSED, 0));
    assert_int_equal(b.mail[b.nmail - 1].kind, BLOCKS_MAIL_CLOSED);
    assert_int_equal(report()->dropped, 20);
}

static void one_that_is_closed_before_it_was_heard_is_free_too(void **state)
{
    (void)state;
    make_pool();
    start();
    tell_open(0, "orders");
    tell_want(0, 5);
    tell_close(0);
    run();
    assert_int_equal(count(BLOCKS_MAIL_CLOSED), 1);
    assert_int_equal(count(BLOCKS_MAIL_REFUSED), 0);
}

static void many_that_are_opened_and_closed_at_once_post_in_turns(void **state)
{
    (void)state;
    make_pool();
    start();
    capture_begin();
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < COUNTERS; i++) {
            tell_open(i, "orders");
            tell_want(i, 5);
        }
        run();
        for (uint32_t i = 0; i < COUNTERS; i++)
            tell_close(i);
        run();
        assert_int_equal(count(BLOCKS_MAIL_CLOSED), COUNTERS * (unsigned)(round + 1));
    }
    (void)capture_end();
}

/* ---- given back ------------------------------------------------------------------------------ */

static void what_is_on_top_goes_back_at_a_stop(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    const struct blocks_mail *m = must_have(0, "orders", 10);
    mark_store(m->mark, 4);
    capture_begin();
    stop(true);
    assert_non_null(strstr(capture_end(), "blocks of numbers given back numbers=6"));
    assert_true(b.finished);
    assert_int_equal(report()->given_back, 6);
    killed();
    run();
    assert_null(sequences_found(b.sequences, 0));
    assert_int_equal(must_have(0, "orders", 10)->lo, 4);
}

/* An earlier copy of the page, put over it, has fewer of them than were given out. */
static void what_was_given_out_is_known_beside_the_page(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    const struct blocks_mail *m = must_have(0, "orders", 10);
    mark_store(m->own, 7);
    mark_store(m->mark, 2);
    stop(true);
    assert_true(b.finished);
    assert_int_equal(report()->given_back, 3);
    killed();
    run();
    assert_int_equal(must_have(0, "orders", 10)->lo, 7);
}

/* Nor does it stand still, as where some are still in hand. */
static void what_is_used_up_makes_room_whatever_the_page_says(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    int64_t next = 0;
    for (int i = 0; i < 3; i++) {
        const struct blocks_mail *m = must_have(0, "orders", 10 * (i + 1));
        assert_int_equal(m->lo, next);
        next = m->hi + 1;
        mark_store(m->own, m->hi - m->lo + 1);
        mark_store(m->mark, 1);
    }
}

/* As the coordinator hears it: in the page it is LEAVING, which no earlier state outlives. */
static void states_of_before_are_worth_nothing_when_it_goes_back(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    must_have(0, "orders", 10);
    copy("sequences.page", "copy");
    stop(true);
    end_life();
    copy("copy", "sequences.page");
    capture_begin();
    start();
    assert_non_null(strstr(capture_end(), "set aside"));
    run();
    assert_null(sequences_found(b.sequences, 0));
}

static void without_a_new_generation_nothing_goes_back(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    must_have(0, "orders", 10);
    assert_int_equal(unlink(path_of("sequences.generation")), 0);
    capture_begin();
    stop(true);
    const char *log = capture_end();
    assert_non_null(strstr(log, "no block is given back"));
    assert_true(b.finished);
    assert_int_equal(report()->given_back, 0);
    assert_int_equal(report()->dropped, 10);
    end_life();
    capture_begin();
    start();
    run();
    (void)capture_end();
    assert_int_equal(must_have(0, "orders", 10)->lo, 10);
}

static void without_giving_back_all_stays_for_the_next_start(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    const struct blocks_mail *m = must_have(0, "orders", 10);
    mark_store(m->mark, 4);
    stop(false);
    assert_true(b.finished);
    killed();
    run();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->given, 4);
}

/* ---- the pool -------------------------------------------------------------------------------- */

/* Whose numbers are in hand does not hang on what somebody does to the file. */
static void a_page_that_is_written_over_is_no_other_pool(void **state)
{
    (void)state;
    char all[sizeof(struct blockpage) + 2 * sizeof(struct blockpage_slot)];
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    must_have(0, "orders", 10);
    FILE *f = fopen(path_of("sequences.page"), "r+b");
    assert_non_null(f);
    memset(all, 0xa5, sizeof all);
    assert_int_equal(fwrite(all, sizeof all, 1, f), 1);
    assert_int_equal(fclose(f), 0);
    pass(60000);
    capture_begin();
    must_have(0, "orders", 20);
    assert_non_null(strstr(capture_end(), "state page of sequences lost"));
    assert_int_equal(count(BLOCKS_MAIL_LOST), 0);
    assert_int_equal(report()->dropped, 0);
}

static void another_pool_has_other_numbers(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    must_have(0, "orders", 10);
    stop(false);
    end_life();
    make_another_pool();
    start();
    capture_begin();
    for (int i = 0; i < 60 && count(BLOCKS_MAIL_LOST) == 0; i++)
        pass(60000);
    const char *log = capture_end();
    assert_int_equal(count(BLOCKS_MAIL_LOST), 1);
    assert_non_null(strstr(log, "the pool is another one"));
    assert_int_equal(report()->dropped, 10);
    assert_int_equal(b.mail[b.nmail - 1].kind, BLOCKS_MAIL_LOST);
    assert_true(b.supply[1]->kind->proven(b.supply[1]));
    struct seq_definition later = d;
    later.begins_ms = b.clock.ms; /* that pool was reopened */
    make_in(SETUP_IDENTITY_OTHER, "orders", &later);
    for (int i = 0; i < 3; i++) {
        tell_want(0, 5);
        pass(5000);
    }
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->hi - latest(BLOCKS_MAIL_GRANT, 0)->lo, 4);
}

/* By the answer that brings others, too. */
static void what_is_revoked_counts_as_dropped(void **state)
{
    struct seq_grant g;
    struct coord_reply r;
    const struct seq_set ahead = {.name = "orders", .sub = "", .period = "", .number = 1000};
    (void)state;
    make_pool();
    const struct seq_definition d = {.start = 1, .increment = 1, .loss = SEQ_LOSS_REFUSE};
    make("orders", &d);
    start();
    must_have(0, "orders", 10);
    assert_int_equal(seq_set(b.coord, SETUP_IDENTITY, &ahead, &g, &r), COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
    tell_want(0, 50);
    run();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, 999);
    assert_int_equal(report()->dropped, 10);
}

static void periods_that_are_over_are_swept_now_and_then(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    d.reset = PERIOD_DAY;
    make("daily", &d);
    start();
    struct blocks_name n = name_of("daily");
    assert_true(period_label(PERIOD_DAY, 0, b.clock.ms, n.period));
    tell(&(struct sequences_event){.kind = SEQUENCES_OPEN, .counter = 0, .of = n});
    tell_want(0, 5);
    run();
    assert_non_null(latest(BLOCKS_MAIL_GRANT, 0));
    struct seq_counters all;
    struct coord_reply r;
    for (int i = 0; i < 3 * 24 * 6; i++) {
        pass(600000);
        tell_want(0, 5);
        run();
    }
    assert_int_equal(seq_show(b.coord, SETUP_IDENTITY, "daily", &all, &r), COORD_OK);
    assert_int_equal(all.n, 0);
    assert_true(strcmp(all.sequence.closed, n.period) > 0);
    /* who counts in yesterday's still may */
    assert_true(period_label(PERIOD_DAY, 0, b.clock.ms - SWEEP_KEPT_MS, n.period));
    assert_true(strcmp(all.sequence.closed, n.period) <= 0);
    free(all.v);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void without_a_directory_blocks_end_with_the_process(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    b.no_dir = true;
    start();
    must_have(0, "orders", 10);
    assert_false(has_file("sequences.page"));
    assert_string_equal(report()->page, "");
    killed();
    run();
    assert_int_equal(must_have(0, "orders", 10)->lo, 10);
}

/* The directory is another sidecar's by then, or nobody's. */
static void where_the_state_page_is_gone_none_of_blocks_is_made(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    start();
    assert_int_equal(rename(path_of("worker.page"), path_of("copy")), 0);
    capture_begin();
    must_have(0, "orders", 10);
    assert_non_null(strstr(capture_end(), "no state page of sequences"));
    assert_false(has_file("sequences.page"));
    assert_string_not_equal(report()->page, "");
}

#define SEQ(f) cmocka_unit_test_setup_teardown(f, begin_tmpfs, end)

/* More of it than its line of so many a second allows: refused, served, and refused again. */
static void ask_for_much(uint32_t place, unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        for (unsigned m = 0; m < b.nmail; m++) /* all is given out */
            if (b.mail[m].kind == BLOCKS_MAIL_GRANT && b.mail[m].counter == place)
                mark_store(b.mail[m].mark, b.mail[m].hi - b.mail[m].lo + 1);
        tell_want(place, 1000);
        run();
        tell_want(place, 1000);
        pass(1000);
    }
}

static void one_at_its_max_rate_is_said_until_it_no_longer_is(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    d.rate = 50;
    make("slow", &d);
    d.reset = PERIOD_DAY;
    make("day", &d);
    start();
    capture_begin();
    (void)must_have(0, "slow", 1000);
    ask_for_much(0, 100);
    const char *log = capture_end();
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->lo, 50);
    assert_int_equal(times(log, "warn  sequence at its max rate sequence=slow rate=50 why="), 1);
    assert_int_equal(times(log, "seq show"), 1);
    assert_int_equal(times(log, "sequence "), 1);
    capture_begin();
    pass(60000);
    ask_for_much(0, 3);
    log = capture_end();
    assert_int_equal(times(log, "sequence at its max rate"), 1);
    /* one of tomorrow is not */
    struct sequences_event e = {.kind = SEQUENCES_OPEN, .counter = 1, .of = name_of("day")};
    assert_true(period_label(PERIOD_DAY, 0, b.clock.ms + 86400000, e.of.period));
    capture_begin();
    tell(&e);
    tell_want(1, 1);
    run();
    log = capture_end();
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 1)->how, SEQ_WAIT);
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 1)->lo, 0);
    assert_int_equal(times(log, "sequence "), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEQ(without_a_counter_there_is_nothing),
        SEQ(a_block_is_asked_for_and_mailed),
        SEQ(one_at_its_max_rate_is_said_until_it_no_longer_is),
        SEQ(the_coordinators_time_is_known_by_renewals_too),
        SEQ(what_is_wanted_before_the_pool_is_known_waits),
        SEQ(of_two_wants_that_were_not_heard_the_latter_counts),
        SEQ(of_a_strict_sequence_they_add_up),
        SEQ(a_take_is_repeated_with_its_token),
        SEQ(an_unknown_one_is_named_once_with_the_command),
        SEQ(of_many_unknown_names_one_a_second_is_said),
        SEQ(of_names_without_end_few_are_said),
        SEQ(of_subs_that_cannot_be_nothing_is_known),
        SEQ(one_that_is_used_up_says_what_to_do),
        SEQ(of_too_many_in_a_row_nothing_is_said),
        SEQ(what_is_refused_and_served_in_turn_is_said_once_a_minute),
        SEQ(one_that_has_stopped_names_the_pool_in_both_commands),
        SEQ(what_makes_one_is_told_whole),
        SEQ(a_command_that_does_not_fit_is_not_told_in_part),
        SEQ(a_place_is_free_once_that_is_said),
        SEQ(a_place_is_not_free_while_a_take_is_under_way),
        SEQ(one_that_is_closed_before_it_was_heard_is_free_too),
        SEQ(many_that_are_opened_and_closed_at_once_post_in_turns),
        SEQ(what_is_on_top_goes_back_at_a_stop),
        SEQ(what_was_given_out_is_known_beside_the_page),
        SEQ(what_is_used_up_makes_room_whatever_the_page_says),
        SEQ(states_of_before_are_worth_nothing_when_it_goes_back),
        SEQ(without_a_new_generation_nothing_goes_back),
        SEQ(without_giving_back_all_stays_for_the_next_start),
        SEQ(a_page_that_is_written_over_is_no_other_pool),
        SEQ(another_pool_has_other_numbers),
        SEQ(what_is_revoked_counts_as_dropped),
        SEQ(periods_that_are_over_are_swept_now_and_then),
        SEQ(without_a_directory_blocks_end_with_the_process),
        SEQ(where_the_state_page_is_gone_none_of_blocks_is_made),
    };
    return cmocka_run_group_tests_name("lease/sequences", tests, NULL, NULL);
}
