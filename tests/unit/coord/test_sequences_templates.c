/*
 * Templates of sequences, and periods that are open behind their ends: of sequences.lua in a real
 * Redis, of an SQLite file and of a toy store.
 */
#include "seq_rig.h"

#define HOUR INT64_C(3600000)

static struct seq_grant g, h;

static struct seq_definition formed(const char *template)
{
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    (void)snprintf(d.template, sizeof d.template, "%s", template);
    return d;
}

/* ---- templates --------------------------------------------------------------------------------
 */

static enum seq_how alter(const char *name, const char *template)
{
    ORDER(&g, seq_alter_template(c, SETUP_IDENTITY, name, template, &one, &reply));
    return g.how;
}

static void refused(const char *name, const char *template, const char *why)
{
    enum coord_status s = COORD_DOWN;
    ASK(s, &g, seq_alter_template(c, SETUP_IDENTITY, name, template, &one, &reply));
    assert_int_equal(s, COORD_REFUSED);
    if (!strstr(reply.err.text, why))
        fail_msg("expected \"%s\" in \"%s\"", why, reply.err.text);
}

static void has_templates(const char *name, size_t n, const char *first, const char *last)
{
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct seq_rows rows = {.n = 0};
        enum coord_status s =
            seq_templates(pair_side(&pair, side), SETUP_IDENTITY, name, &rows, &reply);
        assert_int_equal(s, COORD_OK);
        assert_int_equal(rows.n, n);
        if (n > 0) {
            assert_string_equal(rows.v[0].value, first);
            if (last)
                assert_string_equal(rows.v[n - 1].value, last);
        }
        seq_rows_clear(&rows);
    }
}

static void another_one_comes_in_place_of_it(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", formed("A-@{seq}"), &g);
    (void)take_of("a", 10, 1, &g);
    assert_int_equal(alter("a", "A-@{seq}"), SEQ_KEPT);
    assert_int_equal(alter("a", "B-@{seq}"), SEQ_DONE);
    assert_string_equal(g.definition.template, "B-@{seq}");
    assert_non_null(strstr(g.text, " template=B-@{seq}"));
    has_templates("a", 1, "A-@{seq}", "A-@{seq}");
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 10); /* the counter goes on */
    assert_int_equal(alter("a", "C@{seq,width=7}"), SEQ_DONE);
    has_templates("a", 2, "A-@{seq}", "B-@{seq}");
}

static void it_must_be_apart_from_all_before(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", formed("1@{seq}"), &g);
    refused("a", "@{seq}", "that differs from all"); /* 101 by 1 and by 101 */
    refused("a", "12@{seq}", "that differs from all");
    refused("a", "@{sub}-@{seq}", "sub");
    refused("a", "A-@{seq", "expected");
    refused("a", "", "1 to 255 bytes");
    assert_int_equal(alter("a", "A-@{seq}"), SEQ_DONE);
    refused("a", "a-@{seq}", "that differs from all"); /* where case does not count */
    refused("a", "1@{seq}", "left for another one");
    assert_int_equal(alter("a", "B-@{seq}"), SEQ_DONE);
    refused("a", "11@{seq}", "that differs from all");
    has_templates("a", 2, "1@{seq}", "A-@{seq}");
    ORDER(&g, seq_alter_template(c, SETUP_IDENTITY, "none", "A@{seq}", &one, &reply));
    assert_int_equal(g.how, SEQ_UNKNOWN);
}

/* Where numbers do not begin anew somewhere, those that are past need no room. */
static void it_is_wide_enough_for_what_is_next(void **state)
{
    enum coord_status s = COORD_DOWN;
    (void)state;
    begin(EACH);
    (void)create("a", formed("A@{seq}"), &g);
    (void)take_of("a", 999, 1, &g);
    refused("a", "B@{seq,width=3}", "wide enough for the first number, 1000");
    assert_int_equal(alter("a", "B@{seq,width=4}"), SEQ_DONE);
    struct seq_definition d = formed("A@{seq}");
    d.subs = 3;
    (void)create("b", d, &g);
    struct seq_want w = want_of("b", 999, 2);
    w.sub = "x";
    assert_int_equal(take(&w, &g), SEQ_GRANTED);
    assert_int_equal(alter("b", "B@{seq,width=3}"), SEQ_DONE);
    (void)drop("a", &g);
    struct seq_create in = {.name = "a", .reuse = true, .no_older = true};
    in.definition = formed("C@{seq,width=3}");
    ASK(s, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(s, COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "wide enough"));
    in.definition = formed("C@{seq,width=4}");
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
}

/* From none on. As many as are kept, and then no more. */
static void there_is_an_end_of_them(void **state)
{
    char template[] = "A-@{seq}";
    (void)state;
    begin(EACH);
    (void)create("a", formed(""), &g);
    for (int i = 0; i <= SEQ_KEPT_MAX; i++, template[0]++)
        assert_int_equal(alter("a", template), SEQ_DONE);
    has_templates("a", SEQ_KEPT_MAX, "A-@{seq}", NULL);
    refused("a", template, "at most 16");
}

/* By who has seen an earlier one. */
static void what_was_seen_must_be_there(void **state)
{
    (void)state;
    begin(EACH);
    char to[SEQ_TEXT_MAX];
    (void)create("a", formed("A-@{seq}"), &h);
    struct seq_definition d = h.definition;
    (void)snprintf(d.template, sizeof d.template, "C-@{seq}");
    const struct seq_order o = {.verb = SEQ_VERB_ALTER,
                                .name = "a",
                                .sub = "",
                                .period = "",
                                .text = h.text,
                                .to = seq_definition_text(to, &d),
                                .gen = h.gen,
                                .index = h.max};
    assert_int_equal(alter("a", "B-@{seq}"), SEQ_DONE);
    ORDER(&g, (memset(&one, 0, sizeof one),
               c->driver->sequences->operate(c, SETUP_IDENTITY, &o, &one, &reply)));
    assert_int_equal(g.how, SEQ_DIFFERS);
    has_templates("a", 1, "A-@{seq}", "A-@{seq}");
}

static struct seq_create again(struct seq_definition d)
{
    return (struct seq_create){.name = "a", .definition = d, .reuse = true, .no_older = true};
}

static void what_a_dropped_one_had_counts(void **state)
{
    enum coord_status s = COORD_DOWN;
    (void)state;
    begin(EACH);
    (void)create("a", formed("A-@{seq}"), &g);
    assert_int_equal(alter("a", "B-@{seq}"), SEQ_DONE);
    (void)take_of("a", 10, 1, &g);
    (void)drop("a", &g);
    struct seq_create in = again(formed("A-@{seq}"));
    ASK(s, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(s, COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "left for another one"));
    in = again(formed("B-@{seq}")); /* it goes on behind it */
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(g.next, 10);
    has_templates("a", 1, "A-@{seq}", "A-@{seq}");
    (void)drop("a", &g);
    in = again(formed(""));
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    has_templates("a", 2, "A-@{seq}", "B-@{seq}");
    refused("a", "B-@{seq}", "left for another one");
    assert_int_equal(alter("a", "C-@{seq}"), SEQ_DONE);
}

/* A date's %d is a day's, and text once a month is all that counts. */
static void what_a_dropped_one_had_counts_by_any_reset(void **state)
{
    enum coord_status s = COORD_DOWN;
    (void)state;
    begin(EACH);
    struct seq_definition d = formed("D@{date,%Y%m%d}-@{seq}");
    d.reset = PERIOD_DAY;
    (void)create("a", d, &g);
    (void)take_of("a", 1000, 1, &g);
    (void)drop("a", &g);
    d = formed("D@{date,%Y%m}28-@{seq,base=16}"); /* 1024 as 400 */
    d.reset = PERIOD_MONTH;
    struct seq_create in = again(d);
    ASK(s, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(s, COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "that differs from all"));
    in.definition.template[0] = 'M';
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    d = formed("S@{seq}/@{sub}");
    d.subs = 3;
    (void)drop("a", &g);
    in = again(d);
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    (void)drop("a", &g);
    in = again(formed("S@{seq}"));
    ASK(s, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(s, COORD_REFUSED);
    in = again(formed("T@{seq}"));
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
}

/* Nor is there another end of one that counts down: no text has a sign. */
static void numbers_stay_such_as_are_written(void **state)
{
    enum coord_status s = COORD_DOWN;
    (void)state;
    begin(EACH);
    struct seq_definition d = formed("A-@{seq}");
    d.start = 5;
    d.increment = -1;
    struct seq_create in = {.name = "a", .definition = d, .has_max = true, .max = 3};
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    ASK(s, &g, seq_alter(c, SETUP_IDENTITY, "a", -1, &one, &reply));
    assert_int_equal(s, COORD_REFUSED);
    assert_non_null(strstr(reply.err.text, "not negative"));
    ORDER(&g, seq_alter(c, SETUP_IDENTITY, "a", 0, &one, &reply));
    assert_int_equal(g.how, SEQ_DONE);
}

/* ---- what is open behind its end --------------------------------------------------------------
 */

static struct seq_definition hourly(int64_t back_h)
{
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.reset = PERIOD_HOUR;
    d.back_h = back_h;
    return d;
}

static enum seq_how take_in(const char *period, uint8_t token)
{
    struct seq_want w = want_of("a", 10, token);
    w.period = period;
    return take(&w, &g);
}

static void a_period_is_open_for_so_long_behind_its_end(void **state)
{
    char first[PERIOD_LABEL_MAX];
    struct period p;
    (void)state;
    begin(EACH);
    (void)create("a", hourly(3), &g);
    assert_true(period_label(PERIOD_HOUR, 0, pair.clock.ms, first));
    assert_true(period_find(PERIOD_HOUR, 0, span_str(first), &p));
    assert_int_equal(take_in(first, 1), SEQ_GRANTED);
    pair.clock.ms = p.ends_ms;
    assert_int_equal(take_in(first, 2), SEQ_GRANTED);
    assert_int_equal(g.lo, 10);
    assert_int_equal(take_in("", 3), SEQ_GRANTED); /* who names none has the one that is now */
    assert_true(strcmp(g.period, first) > 0 && g.lo == 0);
    pair.clock.ms = p.ends_ms + 3 * HOUR - 1;
    assert_int_equal(take_in(first, 4), SEQ_GRANTED);
    assert_int_equal(g.lo, 20);
    pair.clock.ms++;
    assert_int_equal(take_in(first, 5), SEQ_CLOSED);
}

static size_t counters(void)
{
    struct seq_counters all;
    assert_int_equal(seq_show(pair_side(&pair, PAIR_REDIS), SETUP_IDENTITY, "a", &all, &reply),
                     COORD_OK);
    free(all.v);
    return all.n;
}

/* Its record goes only where it is closed for good. */
static void what_is_still_open_is_not_swept(void **state)
{
    char first[PERIOD_LABEL_MAX], label[PERIOD_LABEL_MAX];
    struct period p;
    (void)state;
    begin(EACH);
    (void)create("a", hourly(3), &g);
    assert_true(period_label(PERIOD_HOUR, 0, pair.clock.ms, first));
    assert_true(period_find(PERIOD_HOUR, 0, span_str(first), &p));
    (void)take_in(first, 1);
    pair.clock.ms = p.ends_ms + HOUR;
    (void)take_in("", 2);
    assert_int_equal(counters(), 2);
    ORDER(&h, seq_sweep(c, SETUP_IDENTITY, "a", first, &one, &reply));
    assert_int_equal(h.how, SEQ_DONE);
    ORDER(&h, seq_sweep(c, SETUP_IDENTITY, "a", "", &one, &reply));
    assert_int_equal(counters(), 2);
    assert_int_equal(take_in(first, 3), SEQ_GRANTED);
    assert_int_equal(g.lo, 10);
    assert_true(period_label(PERIOD_HOUR, 0, p.ends_ms, label));
    ORDER(&h, seq_sweep(c, SETUP_IDENTITY, "a", label, &one, &reply)); /* an operator's word */
    assert_int_equal(counters(), 1);
    assert_int_equal(take_in(first, 4), SEQ_CLOSED);
}

/* Its line goes on for as long. */
static void a_tombstone_covers_what_is_open_behind(void **state)
{
    (void)state;
    begin(FORGETTING);
    struct seq_definition d = skipping(100);
    d.reset = PERIOD_HOUR;
    d.back_h = 2;
    (void)create("a", d, &g);
    (void)drop("a", &g);
    d.rate = 1000000;
    const struct seq_create in = again(d);
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(g.next, seq_burst(100) + 100 * (65 + 2 * 60) * 60);
}

int main(void)
{
    if (!server_available()) {
        (void)printf("no redis-server\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_one_comes_in_place_of_it),
        cmocka_unit_test(it_must_be_apart_from_all_before),
        cmocka_unit_test(it_is_wide_enough_for_what_is_next),
        cmocka_unit_test(there_is_an_end_of_them),
        cmocka_unit_test(what_was_seen_must_be_there),
        cmocka_unit_test(what_a_dropped_one_had_counts),
        cmocka_unit_test(what_a_dropped_one_had_counts_by_any_reset),
        cmocka_unit_test(numbers_stay_such_as_are_written),
        cmocka_unit_test(a_period_is_open_for_so_long_behind_its_end),
        cmocka_unit_test(what_is_still_open_is_not_swept),
        cmocka_unit_test(a_tombstone_covers_what_is_open_behind),
    };
    return cmocka_run_group_tests_name("coord/sequences_templates", tests, seq_setup, teardown);
}
