/* The supply of sequences: what the configuration defines is made, and pinned. */
#include "sequences_bench.h"

static struct seq_create define[2];

static void define_orders(const struct seq_definition *d)
{
    define[0] = (struct seq_create){.name = "orders", .definition = *d};
    b.define = define;
    b.ndefine = 1;
}

static unsigned times(const char *log, const char *part)
{
    unsigned n = 0;
    for (const char *p = log; (p = strstr(p, part)); p++)
        n++;
    return n;
}

static struct seq_info info_in(const char *pool, const char *name)
{
    struct seq_list all;
    struct coord_reply r;
    struct seq_info out = {.name = ""};
    assert_int_equal(seq_list(b.coord, pool, &all, &r), COORD_OK);
    for (size_t i = 0; i < all.n; i++)
        if (strcmp(all.v[i].name, name) == 0)
            out = all.v[i];
    free(all.v);
    return out;
}

static struct seq_info info_of(const char *name)
{
    return info_in(SETUP_IDENTITY, name);
}

/* The store has lost all of it, and was reopened. */
static void forget_sequences(void)
{
    struct toy *t = toy_of(b.coord);
    t->state.texts = 0;
    memset(t->state.text, 0, sizeof t->state.text);
    (void)snprintf(t->fingerprint, sizeof t->fingerprint, "another");
}

static void what_is_missing_is_made_at_the_start(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    const struct seq_definition few = {.start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST};
    define[1] = (struct seq_create){.name = "few", .definition = few, .has_max = true, .max = 50};
    b.ndefine = 2;
    capture_begin();
    start();
    run();
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence made"), 2);
    assert_int_equal(info_of("orders").definition.rate, d.rate);
    assert_int_equal(info_of("orders").definition.begins_ms, b.clock.ms);
    assert_int_equal(info_of("few").max, 49);
    assert_false(has_file("sequences.page")); /* nobody has asked for numbers */
    assert_int_equal(must_have(0, "orders", 5)->hi, 4);
    assert_int_equal(latest(BLOCKS_MAIL_KNOWN, 0)->increment, 1);
}

/* Each takes two calls, and a store that is far away some seconds for all of them. */
static void numbers_do_not_wait_for_all_that_is_made(void **state)
{
    (void)state;
    static struct seq_create many[20];
    static char names[20][8];
    struct seq_list made;
    struct coord_reply r;
    make_pool();
    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(names[i], sizeof names[i], "s%u", i);
        many[i] = (struct seq_create){.name = names[i], .definition = skipping()};
    }
    b.define = many;
    b.ndefine = 20;
    start();
    tell_open(0, "s15");
    tell_want(0, 5);
    while (!latest(BLOCKS_MAIL_GRANT, 0))
        assert_true(step());
    assert_int_equal(seq_list(b.coord, SETUP_IDENTITY, &made, &r), COORD_OK);
    assert_in_range(made.n, 1, 4);
    free(made.v);
    run();
    assert_int_equal(info_of("s14").definition.rate, skipping().rate);
}

/* By its definition alone all is known of one with periods but which of them is now. */
static void the_time_is_known_once_one_was_made(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = {
        .start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST, .reset = PERIOD_DAY};
    define_orders(&d);
    start();
    assert_int_equal(report()->time_ms, 0);
    run();
    tell_open(0, "orders");
    tell_want(0, 1);
    pass(500);
    assert_int_equal(latest(BLOCKS_MAIL_KNOWN, 0)->lo, PERIOD_DAY);
    assert_true(report()->time_ms + (b.mono - report()->time_mono) == b.clock.ms);
}

/* Who wants its first number does not know that it is strict, and would have no use for it. */
static void no_number_of_a_strict_one_is_taken_for_nobody(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    d.strict = true;
    define_orders(&d);
    start();
    run();
    tell_open(0, "orders");
    tell_want(0, 10);
    run();
    assert_true(latest(BLOCKS_MAIL_KNOWN, 0)->strict);
    tell(&(struct sequences_event){.kind = SEQUENCES_WANT, .want = {.count = 1, .upto = 1}});
    run();
    assert_int_equal(latest(BLOCKS_MAIL_OWN, 0)->lo, 0);
}

static void of_a_sub_it_says_nothing(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    struct sequences_event e = {.kind = SEQUENCES_OPEN, .of = name_of("orders")};
    define_orders(&d);
    start();
    run();
    (void)snprintf(e.of.sub, sizeof e.of.sub, "acme");
    tell(&e);
    tell_want(0, 10);
    pass(500);
    assert_null(latest(BLOCKS_MAIL_KNOWN, 0));
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_NO_SUBS);
}

static void what_is_there_with_a_beginning_of_its_own_is_kept(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("orders", &d);
    b.clock.ms += 100000;
    define_orders(&d);
    capture_begin();
    start();
    run();
    assert_int_equal(times(capture_end(), "sequence made"), 0);
    assert_int_equal(must_have(0, "orders", 5)->hi, 4);
    assert_int_equal(report()->takes[SEQ_DIFFERS], 0);
}

static void what_differs_is_refused_alone_and_both_are_named_once(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    make("orders", &d);
    make("tickets", &d);
    d.rate = 5000;
    define_orders(&d);
    start();
    capture_begin();
    for (int i = 0; i < 3; i++) {
        tell_open(0, "orders");
        tell_want(0, 5);
        pass(61000);
    }
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence refused"), 1);
    assert_non_null(strstr(log, "expected=\"--start 1 --increment 1 --max-rate 5000\" found=\""));
    assert_non_null(strstr(log, " --max-rate 100000 --begins "));
    assert_int_equal(report()->takes[SEQ_DIFFERS], 3); /* alerts count that */
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_DIFFERS);
    assert_null(latest(BLOCKS_MAIL_GRANT, 0));
    assert_int_equal(must_have(1, "tickets", 5)->hi, 4);
}

/* Unlike one that leaves it open when it began. */
static void another_beginning_that_was_said_is_another_definition(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    make("orders", &d);
    d.begins_ms = b.clock.ms - 100000;
    define_orders(&d);
    start();
    tell_open(0, "orders");
    tell_want(0, 5);
    pass(1000);
    assert_int_equal(report()->takes[SEQ_DIFFERS], 1);
    assert_null(latest(BLOCKS_MAIL_GRANT, 0));
    pass(61000);
    tell_want(0, 5);
    pass(1000);
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_DIFFERS);
    assert_null(latest(BLOCKS_MAIL_GRANT, 0));
}

/* It is said of that one, and not of all. */
static void what_cannot_be_is_named_with_the_reason(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    make("tickets", &d);
    define[0] = (struct seq_create){.name = "few", .definition = d, .has_max = true, .max = 50};
    b.define = define;
    b.ndefine = 1;
    capture_begin();
    start();
    tell_open(0, "few");
    tell_want(0, 5);
    for (int i = 0; i < 10; i++)
        pass(61000);
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence cannot be made sequence=few"), 1);
    assert_int_equal(times(log, "no numbers"), 0);
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, BLOCKS_AWAY);
    assert_int_equal(must_have(1, "tickets", 5)->hi, 4);
}

static void another_pool_has_them_too(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    start();
    must_have(0, "orders", 5);
    int64_t began = info_of("orders").definition.begins_ms;
    make_another_pool();
    capture_begin();
    for (int i = 0; i < 90 && count(BLOCKS_MAIL_LOST) == 0; i++)
        pass(60000);
    pass(61000);
    (void)capture_end();
    assert_int_equal(count(BLOCKS_MAIL_LOST), 1);
    assert_int_equal(info_in(SETUP_IDENTITY_OTHER, "orders").definition.begins_ms, began);
}

static void what_cannot_be_holds_up_no_other(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    define[1] = define[0];
    define[0] = (struct seq_create){.name = "few", .definition = d, .has_max = true, .max = 50};
    b.ndefine = 2;
    capture_begin();
    start();
    run();
    assert_int_equal(times(capture_end(), "sequence cannot be made sequence=few"), 1);
    assert_string_equal(info_of("orders").name, "orders");
}

static void one_that_was_mended_is_served(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    make("orders", &d);
    d.rate = 1000000;
    define_orders(&d);
    capture_begin();
    start();
    tell_open(0, "orders");
    tell_want(0, 5);
    run();
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_DIFFERS);
    struct coord_reply r;
    struct seq_grant g;
    assert_int_equal(seq_drop(b.coord, SETUP_IDENTITY, "orders", &g, &r), COORD_OK);
    struct seq_create in = {.name = "orders", .definition = d, .reuse = true, .no_older = true};
    assert_int_equal(seq_create(b.coord, SETUP_IDENTITY, &in, &g, &r), COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
    for (int i = 0; i < 10; i++) { /* its line has to come beyond what was dropped */
        tell_want(0, 5);
        pass(61000);
    }
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence served again"), 1);
    assert_non_null(latest(BLOCKS_MAIL_GRANT, 0));
}

/* Nobody but who knew it can say when it began. */
static void after_a_loss_it_is_made_again_as_it_was(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    start();
    must_have(0, "orders", 5);
    const struct seq_info before = info_of("orders");
    pass(3600000);
    forget_sequences();
    capture_begin();
    pass(60000);
    tell_want(0, 5);
    for (int i = 0; i < 10; i++)
        pass(5000);
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence made"), 1);
    assert_string_equal(info_of("orders").text, before.text);
    for (unsigned i = 0; i < b.nmail; i++)
        assert_false(b.mail[i].kind == BLOCKS_MAIL_REFUSED && b.mail[i].how == SEQ_UNKNOWN);
    assert_true(latest(BLOCKS_MAIL_GRANT, 0)->lo > 1000000); /* above the line */
}

/* By somebody else. */
static void make_anew(int64_t rate)
{
    struct coord_reply r;
    struct seq_grant g;
    struct seq_definition d = skipping();
    d.rate = rate;
    assert_int_equal(seq_drop(b.coord, SETUP_IDENTITY, "orders", &g, &r), COORD_OK);
    const struct seq_create in = {
        .name = "orders", .definition = d, .reuse = true, .no_older = true};
    assert_int_equal(seq_create(b.coord, SETUP_IDENTITY, &in, &g, &r), COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
}

static void assert_refused_otherwise(void)
{
    make_anew(1000000); /* other numbers by that name */
    capture_begin();
    for (int i = 0; i < 20; i++) { /* until its line is there */
        tell_want(0, 5);
        pass(30000);
    }
    (void)capture_end();
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_DIFFERS);
    assert_true(latest(BLOCKS_MAIL_GRANT, 0)->lo < 100);
}

static void what_is_made_anew_otherwise_is_refused(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    start();
    must_have(0, "orders", 5);
    assert_refused_otherwise();
}

/* It begins later, of which the configuration says nothing. */
static void what_is_made_anew_alike_is_served(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    start();
    must_have(0, "orders", 5);
    pass(1000);
    make_anew(d.rate);
    capture_begin();
    for (int i = 0; i < 20; i++) {
        tell_want(0, 5);
        pass(30000);
    }
    (void)capture_end();
    assert_true(latest(BLOCKS_MAIL_GRANT, 0)->lo > 100);
}

static void that_holds_for_what_was_taken_over(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    start();
    must_have(0, "orders", 5);
    killed();
    run();
    assert_refused_otherwise();
}

/* Then somebody has to say. */
static void a_start_after_a_loss_does_not_know_when_it_began(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    define_orders(&d);
    start();
    run();
    forget_sequences();
    pass(60000);
    end_life();
    capture_begin();
    start();
    tell_open(0, "orders");
    tell_want(0, 5);
    run();
    const char *log = capture_end();
    assert_int_equal(times(log, "sequence refused"), 1);
    assert_non_null(
        strstr(log, "expected in its definition --begins, as it was before, or of now "));
    assert_non_null(strstr(log, " orders`"));
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_UNKNOWN);
}

static void one_that_was_dropped_is_not_made_again(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    struct coord_reply r;
    struct seq_grant g;
    define_orders(&d);
    start();
    must_have(0, "orders", 5);
    assert_int_equal(seq_drop(b.coord, SETUP_IDENTITY, "orders", &g, &r), COORD_OK);
    capture_begin();
    tell_want(0, 5);
    run();
    assert_non_null(strstr(capture_end(), "dropped"));
    assert_int_equal(latest(BLOCKS_MAIL_REFUSED, 0)->how, SEQ_DROPPED);
    assert_int_equal(latest(BLOCKS_MAIL_REVOKE, 0)->hi, -1);
    assert_true(info_of("orders").dropped);
}

/* Who waits for it hears that it takes longer. */
static void while_nobody_answers_it_is_asked_again(void **state)
{
    (void)state;
    make_pool();
    const struct seq_definition d = skipping();
    start();
    run();
    end_life();
    define_orders(&d);
    start(); /* the state page names the pool */
    toy_of(b.coord)->loses = true;
    capture_begin();
    tell_open(0, "orders");
    tell_want(0, 5);
    for (int i = 0; i < 4; i++)
        pass(1000);
    const struct blocks_mail *m = latest(BLOCKS_MAIL_REFUSED, 0);
    assert_non_null(m);
    assert_true(m->how == BLOCKS_AWAY && m->keeps_on && m->when > b.mono - 4000);
    toy_of(b.coord)->loses = false;
    pass(61000);
    assert_non_null(strstr(capture_end(), "no numbers of sequences can be had"));
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->hi, 4);
}

/* However many there are, one call tells that nobody answers, and who waits for any hears of it. */
static void after_an_outage_all_are_had_within_seconds(void **state)
{
    (void)state;
    make_pool();
    start();
    run();
    end_life();
    const struct seq_definition d = {.start = 1, .increment = 1, .loss = SEQ_LOSS_TRUST};
    define_orders(&d);
    define[1] = (struct seq_create){.name = "few", .definition = d};
    b.ndefine = 2;
    start();
    toy_of(b.coord)->loses = true;
    capture_begin();
    tell_open(0, "orders");
    tell_open(1, "few");
    tell_want(0, 5);
    tell_want(1, 5);
    for (int i = 0; i < 600; i++)
        pass(1000);
    const struct blocks_mail *m[] = {latest(BLOCKS_MAIL_REFUSED, 0),
                                     latest(BLOCKS_MAIL_REFUSED, 1)};
    assert_true(m[0] && m[0]->how == BLOCKS_AWAY && m[0]->keeps_on);
    assert_true(m[1] && m[1]->how == BLOCKS_AWAY && m[1]->when == m[0]->when);
    toy_of(b.coord)->loses = false;
    pass(6000);
    (void)capture_end();
    assert_non_null(latest(BLOCKS_MAIL_GRANT, 0));
    assert_non_null(latest(BLOCKS_MAIL_GRANT, 1));
}

/* Taken over before it is known what the pool has: pinned once it is. */
static void what_was_taken_over_is_pinned_too(void **state)
{
    (void)state;
    make_pool();
    struct seq_definition d = skipping();
    make("orders", &d);
    start();
    must_have(0, "orders", 5);
    end_life();
    define_orders(&d);
    start();
    run();
    tell_open(0, "orders"); /* it is there already */
    tell_want(0, 5);
    run();
    assert_int_equal(latest(BLOCKS_MAIL_GRANT, 0)->lo, 5);
    assert_int_equal(count(BLOCKS_MAIL_GRANT), 2);
}

#define SEQ(f) cmocka_unit_test_setup_teardown(f, begin_tmpfs, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SEQ(what_is_missing_is_made_at_the_start),
        SEQ(numbers_do_not_wait_for_all_that_is_made),
        SEQ(the_time_is_known_once_one_was_made),
        SEQ(of_a_sub_it_says_nothing),
        SEQ(no_number_of_a_strict_one_is_taken_for_nobody),
        SEQ(what_is_there_with_a_beginning_of_its_own_is_kept),
        SEQ(what_differs_is_refused_alone_and_both_are_named_once),
        SEQ(what_cannot_be_is_named_with_the_reason),
        SEQ(what_cannot_be_holds_up_no_other),
        SEQ(another_beginning_that_was_said_is_another_definition),
        SEQ(another_pool_has_them_too),
        SEQ(one_that_was_mended_is_served),
        SEQ(after_a_loss_it_is_made_again_as_it_was),
        SEQ(what_is_made_anew_otherwise_is_refused),
        SEQ(what_is_made_anew_alike_is_served),
        SEQ(that_holds_for_what_was_taken_over),
        SEQ(a_start_after_a_loss_does_not_know_when_it_began),
        SEQ(one_that_was_dropped_is_not_made_again),
        SEQ(while_nobody_answers_it_is_asked_again),
        SEQ(after_an_outage_all_are_had_within_seconds),
        SEQ(what_was_taken_over_is_pinned_too),
    };
    return cmocka_run_group_tests_name("lease/sequences_defined", tests, NULL, NULL);
}
