/*
 * What operators do with sequences, and what stops those that do not skip: each rule by the one
 * schedule that needs it, of sequences.lua in a real Redis, of an SQLite file and of a toy store.
 */
#include "seq_rig.h"

#define RATE  100
#define BURST 1000

static struct seq_grant g, h;

static struct seq_create remade(const char *name, struct seq_definition d)
{
    return (struct seq_create){.name = name, .definition = d, .reuse = true, .no_older = true};
}

/* From now on, until an operator's word would be taken. */
static void let_renew(void)
{
    pair.clock.ms += 4 * COORD_EVERY_MS + 2 * S;
}

/* ---- refuse ---------------------------------------------------------------------------------- */

static void it_stops_at_a_reopening(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 10, 1, &g);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_STOPPED);
    assert_int_equal(take_of("a", 0, 2, &g), SEQ_STOPPED);
    assert_int_equal(set_to("a", 100, false, &g), SEQ_STOPPED);
    let_renew();
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 10);
}

/* A word is for one reopening. Those of several are chained where each was seen. */
static void a_word_is_for_one_reopening(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)create("b", lossy(SEQ_LOSS_REFUSE), &g);
    (void)create("c", lossy(SEQ_LOSS_REFUSE), &g);
    pair_restart(&pair);
    (void)take_of("a", 1, 1, &g);
    let_renew();
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED); /* b is idle */
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_STOPPED);
    let_renew();
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_int_equal(take_of("b", 1, 3, &g), SEQ_GRANTED);
    pair_restart(&pair); /* of which nobody says anything */
    (void)take_of("a", 1, 4, &g);
    pair_restart(&pair);
    (void)take_of("a", 1, 4, &g);
    let_renew();
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(take_of("a", 1, 4, &g), SEQ_FORGOTTEN);
    assert_int_equal(take_of("c", 1, 5, &g), SEQ_FORGOTTEN);
}

/* Who is told to say so has nothing left to say where it is not taken, or does not reach as far. */
static void a_word_is_asked_for_where_it_helps(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)create("b", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 1, 1, &g);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_STOPPED); /* not yet taken, but it will be */
    assert_int_equal(drop("b", &g), SEQ_STOPPED);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_FORGOTTEN); /* the one before is not covered */
    assert_int_equal(drop("b", &g), SEQ_FORGOTTEN);
    assert_int_equal(reopen_above("b", 10, &g), SEQ_DONE);
    let_renew();
    assert_int_equal(nothing_lost(), COORD_OK);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_FORGOTTEN);
    assert_int_equal(take_of("b", 1, 3, &g), SEQ_GRANTED);
    pair_restart(&pair);
    assert_int_equal(take_of("b", 1, 4, &g), SEQ_STOPPED); /* the words of two reopenings join */
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_FORGOTTEN);
}

static void an_operator_says_how_far_it_was(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.subs = 10;
    d.start = 100;
    d.increment = 10;
    (void)create("a", d, &g);
    (void)take_of("a", 10, 1, &g); /* 100..190 */
    struct seq_want sub = want_of("a", 1, 2), seen = want_of("a", 1, 3);
    sub.sub = "acme";
    (void)take(&sub, &h);
    pair_restart(&pair);
    seen.seen = 31; /* it was granted more than the table knows */
    assert_int_equal(take(&seen, &g), SEQ_STOPPED);
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct seq_counters all;
        assert_int_equal(seq_show(pair_side(&pair, side), SETUP_IDENTITY, "a", &all, &reply),
                         COORD_OK);
        assert_true(all.n == 2 && all.sequence.seen == 31 && all.sequence.top == 10);
        free(all.v);
    }
    assert_int_equal(reopen_above("a", 400, &g), SEQ_DONE); /* the next is 410 */
    assert_true(g.turn > 0 && g.revoked.turn == g.turn && g.revoked.from == 31);
    assert_int_equal(take_of("a", 1, 4, &g), SEQ_GRANTED);
    assert_true(g.lo == 31 && g.turn == g.revoked.turn);
    sub.token = setup_token(5);
    assert_int_equal(take(&sub, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 31);
    sub.token = setup_token(6);
    sub.sub = "new";
    assert_int_equal(take(&sub, &g), SEQ_GRANTED); /* it may have been one that was lost */
    assert_int_equal(g.lo, 31);
    assert_int_equal(take_of("a", 1, 7, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 32);
    assert_int_equal(reopen_above("a", 50, &g), SEQ_DONE); /* nothing goes back */
    assert_int_equal(take_of("a", 1, 8, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 33);
    assert_int_equal(g.revoked.from, 0);
    (void)create("s", skipping(RATE), &g);
    assert_int_equal(reopen_above("none", 50, &g), SEQ_UNKNOWN);
}

static void periods_behind_a_reopening_begin_anew(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.reset = PERIOD_DAY;
    (void)create("a", d, &g);
    (void)take_of("a", 10, 1, &g);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_STOPPED);
    assert_int_equal(reopen_above("a", 50, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 50);
    pair.clock.ms += DAY;
    assert_int_equal(take_of("a", 1, 4, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
}

/* By a clock that is behind the one that was lost it may have opened before. */
static void a_period_that_opens_within_the_margin_does_not(void **state)
{
    (void)state;
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    struct seq_want w = want_of("a", 1, 2);
    struct period next;
    char label[PERIOD_LABEL_MAX];
    begin(EACH);
    d.reset = PERIOD_DAY;
    assert_true(period_label(PERIOD_DAY, 0, T0 + DAY, label));
    assert_true(period_find(PERIOD_DAY, 0, span_str(label), &next));
    (void)create("a", d, &g);
    pair.clock.ms = next.opens_ms - 2 * S;
    pair_restart(&pair);
    assert_int_equal(reopen_above("a", 50, &g), SEQ_DONE);
    pair.clock.ms = next.opens_ms;
    w.period = label;
    assert_int_equal(take(&w, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 50);
}

/* Its numbers may be lower than what the operator says was given out. */
static void what_was_taken_before_is_not_given_back(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 10, 1, &g);
    (void)reopen_above("a", 50, &h);
    assert_int_equal(give_back("a", &g, 1, 0), SEQ_KEPT);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 50);
}

/* A retry of a take from before is no word on what was given out since. */
static void a_repeat_of_before_grants_anew(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 10, 1, &g);
    pair_restart(&pair);
    (void)take_of("a", 10, 1, &g);
    (void)reopen_above("a", 20, &g);
    assert_int_equal(take_of("a", 10, 1, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 20);
}

/* ---- trust ----------------------------------------------------------------------------------- */

static void it_goes_on_unless_a_loss_shows(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", lossy(SEQ_LOSS_TRUST), &g);
    (void)take_of("a", 10, 1, &g);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 10, 2, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 10);
    struct seq_want w = want_of("a", 1, 3);
    w.gen = 1;
    w.n = g.n + 1;
    assert_int_equal(taken_at(pair.clock.ms, &opening, &w, &h), COORD_OK);
    assert_int_equal(h.how, SEQ_FORGOTTEN);
    assert_int_equal(opening.era, 3);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 10, 4, &g), SEQ_FORGOTTEN); /* it stays so */
    assert_int_equal(reopen_above("a", 50, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 10, 4, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 50);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 10, 5, &g), SEQ_GRANTED);
    enum coord_status s;
    ALL(s, coord_close(c, SETUP_IDENTITY, true, &reply));
    ALL(s, coord_unclose(c, SETUP_IDENTITY, 1000, &reply)); /* others were granted elsewhere */
    assert_int_equal(s, COORD_OK);
    assert_int_equal(take_of("a", 10, 6, &g), SEQ_FORGOTTEN);
}

static void make_again(unsigned sides, enum coord_init_mode mode)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, mode, 3);
    enum coord_status s;
    begin(sides);
    pair_wipe(&pair, true);
    ALL(s, coord_init(c, &in, &reply));
    assert_int_equal(s, COORD_OK);
}

static void a_pool_made_again_trusts_nobody(void **state)
{
    (void)state;
    make_again(FORGETTING, COORD_INIT_AFTER_LOSS);
    struct seq_definition d = lossy(SEQ_LOSS_TRUST);
    assert_int_equal(create("a", d, &g), SEQ_NO_BEGIN);
    d.begins_ms = T0 - DAY;
    assert_int_equal(create("a", d, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_FORGOTTEN);
    assert_int_equal(reopen_above("a", 1000, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 1000);
}

/* Other workerIds say nothing of the sequences that a lost pool may have had. */
static void a_pool_of_a_range_of_its_own_is_new_to_no_sequence(void **state)
{
    (void)state;
    make_again(FORGETTING, COORD_INIT_RANGE);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE), line = skipping(RATE);
    assert_int_equal(create("a", d, &g), SEQ_NO_BEGIN);
    d.begins_ms = line.begins_ms = T0 - DAY;
    assert_int_equal(create("a", d, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_FORGOTTEN);
    assert_int_equal(create("b", line, &g), SEQ_DONE);
    pair.clock.ms += 60000;
    assert_int_equal(take_of("b", 1, 2, &g), SEQ_GRANTED);
    assert_true(g.lo >= RATE * (DAY / 1000));
}

/* ---- create ---------------------------------------------------------------------------------- */

static void what_happens_after_a_loss_is_said(void **state)
{
    (void)state;
    begin(FORGETTING);
    assert_int_equal(create("a", lossy(SEQ_LOSS_UNSAID), &g), SEQ_UNSAID);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_UNKNOWN);
    asked = ONE(PAIR_SQLITE);
    assert_int_equal(create("a", lossy(SEQ_LOSS_UNSAID), &g), SEQ_DONE);
    assert_int_equal(g.definition.loss, SEQ_LOSS_REFUSE);
    assert_int_equal(create("a", lossy(SEQ_LOSS_UNSAID), &g), SEQ_KEPT);
}

/* SQLite has no line and no skip: an older file in its place stops it. */
static void sqlite_stops_whatever_is_said(void **state)
{
    (void)state;
    begin(ONE(PAIR_SQLITE));
    (void)create("a", skipping(RATE), &g);
    (void)create("b", lossy(SEQ_LOSS_TRUST), &g);
    assert_int_equal(take_of("a", BURST + 1, 1, &g), SEQ_GRANTED);
    assert_int_equal(g.hi, BURST);
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_STOPPED);
    assert_int_equal(take_of("b", 1, 2, &g), SEQ_STOPPED);
    assert_int_equal(reopen_above("a", 5000, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 5000);
}

/* The same file with what it held before, which shows by what stands beside it. */
static void an_older_file_in_its_place_shows(void **state)
{
    (void)state;
    static char bytes[1 << 20];
    begin(ONE(PAIR_SQLITE));
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    coord_idle(pair.sqlite);
    FILE *f = fopen(pair.db, "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    (void)fclose(f);
    (void)take_of("a", 500, 1, &g);
    coord_idle(pair.sqlite);
    f = fopen(pair.db, "r+b");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    (void)fclose(f);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_FORGOTTEN);
    assert_int_equal(opening.era, 2);
    let_renew();
    assert_int_equal(coord_nothing_lost(pair.sqlite, SETUP_IDENTITY, &reply), COORD_REFUSED);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_FORGOTTEN);
    assert_int_equal(reopen_above("a", 500, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 500);
}

static void a_pool_that_was_reopened_wants_a_beginning(void **state)
{
    (void)state;
    begin(FORGETTING);
    pair.clock.ms += DAY;
    pair_restart(&pair);
    struct seq_create in = {.name = "a", .definition = skipping(RATE)};
    assert_int_equal(create_as(&in, &g), SEQ_NO_BEGIN);
    in.fresh = true;
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(g.definition.begins_ms, pair.clock.ms);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
    in.name = "b";
    in.fresh = false;
    in.definition.begins_ms = T0; /* it was there, and is lost: its numbers lie below the line */
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(take_of("b", 1, 2, &g), SEQ_WAIT);
    assert_int_equal(g.next, BURST + (DAY + 2 * S) / 1000 * RATE);
}

/* ---- drop ------------------------------------------------------------------------------------ */

static void a_tombstone_covers_what_was_given_out(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.subs = 10;
    (void)create("a", d, &g);
    (void)take_of("a", 10, 1, &g);
    struct seq_want sub = want_of("a", 25, 2);
    sub.sub = "acme";
    (void)take(&sub, &g); /* 1..25 */
    assert_int_equal(drop("a", &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_DROPPED);
    assert_int_equal(drop("a", &g), SEQ_DROPPED);
    assert_int_equal(create("a", d, &g), SEQ_DROPPED);
    struct seq_create in = remade("a", d);
    in.no_older = false;
    assert_int_equal(create_as(&in, &g), SEQ_DROPPED);
    in.no_older = true;
    in.definition.start = 2;
    in.definition.increment = 3; /* 2, 5, ... 26 */
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(g.gen, 2);
    assert_int_equal(take_of("a", 1, 4, &g), SEQ_GRANTED);
    assert_int_equal(seq_number(&g.definition, g.lo), 26);
    sub.token = setup_token(5);
    assert_int_equal(take(&sub, &g), SEQ_GRANTED);
    assert_int_equal(seq_number(&g.definition, g.lo), 26);
    in.definition.increment = -3;
    (void)drop("a", &g);
    enum coord_status s = COORD_DOWN;
    ASK(s, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(s, COORD_REFUSED); /* the other way round there is no behind */
}

/* Who looked before the other had made it. */
static void two_make_it_at_once(void **state)
{
    (void)state;
    char text[SEQ_TEXT_MAX];
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    begin(EACH);
    assert_int_equal(create("a", d, &g), SEQ_DONE);
    enum coord_status s = COORD_DOWN;
    struct seq_order o = {.verb = SEQ_VERB_CREATE,
                          .name = "a",
                          .sub = "",
                          .period = "",
                          .to = "",
                          .text = seq_definition_text(text, &d),
                          .index = seq_last_index(&d)};
    ASK(s, &h, c->driver->sequences->operate(c, SETUP_IDENTITY, &o, &one, &reply));
    assert_int_equal(s, COORD_OK);
    assert_int_equal(h.how, SEQ_KEPT);
    assert_int_equal(h.gen, g.gen);
    d.start++;
    o.text = seq_definition_text(text, &d);
    ASK(s, &h, c->driver->sequences->operate(c, SETUP_IDENTITY, &o, &one, &reply));
    assert_int_equal(h.how, SEQ_DIFFERS);
}

static void a_tombstone_covers_what_was_lost(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    pair_backup(&pair, 0);
    pair.clock.ms += 60000;
    (void)take_of("a", SEQ_BLOCK_MAX, 1, &g);
    pair_restore(&pair, 0, false);
    assert_int_equal(drop("a", &h), SEQ_DONE);
    struct seq_create in = remade("a", skipping(1000 * RATE));
    in.fresh = true;
    assert_int_equal(create_as(&in, &h), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 2, &h), SEQ_GRANTED);
    assert_true(h.lo > g.hi);
}

/* Of a sequence that does not skip the rows say how far it was, where they are sound. */
static void what_is_stopped_has_no_tombstone(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    pair_backup(&pair, 0);
    (void)take_of("a", 500, 1, &g);
    pair_restore(&pair, 0, false);
    assert_int_equal(drop("a", &h), SEQ_STOPPED);
    assert_int_equal(reopen_above("a", 500, &h), SEQ_DONE);
    assert_int_equal(drop("a", &h), SEQ_DONE);
    struct seq_create in = remade("a", lossy(SEQ_LOSS_REFUSE));
    in.fresh = true;
    assert_int_equal(create_as(&in, &h), SEQ_DONE);
    assert_int_equal(h.next, 500);
}

/* Data of before the drop came back, and went again: what they granted has no tombstone. */
static void a_tombstone_of_another_branch(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    (void)create("b", lossy(SEQ_LOSS_REFUSE), &g);
    pair_backup(&pair, 0);
    (void)drop("a", &g);
    (void)drop("b", &g);
    pair_backup(&pair, 1);
    pair_restore(&pair, 0, false);
    pair.clock.ms += 60000;
    (void)take_of("b", 1, 1, &g);
    (void)reopen_above("b", 1, &g);
    assert_int_equal(take_of("b", 700, 2, &g), SEQ_GRANTED);
    pair.clock.ms += 60000;
    assert_int_equal(take_of("a", SEQ_BLOCK_MAX, 3, &g), SEQ_GRANTED);
    pair_restore(&pair, 1, false);
    struct seq_create in = remade("b", lossy(SEQ_LOSS_REFUSE));
    in.fresh = true;
    assert_int_equal(create_as(&in, &h), SEQ_STOPPED);
    assert_int_equal(reopen_above("b", 701, &h), SEQ_DONE);
    assert_int_equal(create_as(&in, &h), SEQ_DONE);
    assert_int_equal(h.next, 701);
    in.name = "a";
    in.definition = skipping(1000 * RATE);
    assert_int_equal(create_as(&in, &h), SEQ_DONE);
    assert_true(h.next > g.hi);
}

static void a_tombstone_of_periods(void **state)
{
    (void)state;
    begin(FORGETTING);
    struct seq_definition d = skipping(1);
    d.reset = PERIOD_HOUR;
    (void)create("a", d, &g);
    (void)drop("a", &g);
    struct seq_create in = remade("a", d);
    enum coord_status status; /* by a line like that one's it had no number in any hour */
    ASK(status, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(status, COORD_REFUSED);
    in.definition.rate = 13;
    ASK(status, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(status, COORD_REFUSED);
    in.definition.rate = 14; /* in five minutes it is there */
    ASK(status, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(status, COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
    assert_int_equal(g.next, BURST + 65 * 60); /* a whole one, from its opening on */
}

/* It has no line, and nothing in it is made up for. */
static void a_tombstone_that_cannot_be_forgotten(void **state)
{
    (void)state;
    begin(ONE(PAIR_SQLITE));
    struct seq_definition d = skipping(1);
    d.reset = PERIOD_HOUR;
    (void)create("a", d, &g);
    (void)take_of("a", 10, 1, &h);
    (void)drop("a", &g);
    const struct seq_create in = remade("a", d);
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(g.next, 10);
}

/* It may come to hours whose names were used, be it said meanwhile that it was not as far. */
static void a_tombstone_of_periods_by_another_clock(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.reset = PERIOD_HOUR;
    (void)create("a", d, &g);
    (void)take_of("a", 10, 1, &h);
    (void)drop("a", &g);
    d.offset_min = -60;
    const struct seq_create in = remade("a", d);
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(reopen_above("a", 5, &g), SEQ_DONE);
    pair.clock.ms += 40 * 60000;
    assert_int_equal(take_of("a", 10, 2, &g), SEQ_GRANTED);
    assert_true(strcmp(g.period, h.period) == 0 && g.lo == 10);
}

static void what_was_dropped_is_swept(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.subs = 10;
    (void)create("a", d, &g);
    struct seq_want sub = want_of("a", 1, 2);
    sub.sub = "acme";
    (void)take(&sub, &g);
    (void)create("ab", d, &g);
    (void)drop("a", &g);
    ORDER(&g, seq_sweep(c, SETUP_IDENTITY, "a", "", &one, &reply));
    assert_int_equal(g.how, SEQ_DONE);
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct seq_counters all;
        struct coord *c = pair_side(&pair, side);
        assert_int_equal(seq_show(c, SETUP_IDENTITY, "a", &all, &reply), COORD_OK);
        assert_true(all.found && all.sequence.dropped && all.n == 0);
        free(all.v);
        assert_int_equal(seq_show(c, SETUP_IDENTITY, "ab", &all, &reply), COORD_OK);
        assert_true(all.found && all.n == 1);
        free(all.v);
    }
}

/* ---- set ------------------------------------------------------------------------------------- */

static void set_goes_forward(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.increment = 10; /* 1, 11, 21 ... */
    (void)create("a", d, &g);
    (void)take_of("a", 3, 1, &h);
    assert_int_equal(set_to("a", 95, false, &g), SEQ_DONE);
    assert_true(g.turn > 0 && g.revoked.turn == g.turn && g.revoked.from == 0);
    assert_int_equal(take_of("a", 3, 1, &g), SEQ_GRANTED); /* not again: that one is revoked */
    assert_int_equal(seq_number(&g.definition, g.lo), 101);
    assert_int_equal(give_back("a", &h, 1, 0), SEQ_KEPT);
    assert_int_equal(set_to("a", 101, false, &g), SEQ_LOWER);
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct seq_counters all;
        assert_int_equal(seq_show(pair_side(&pair, side), SETUP_IDENTITY, "a", &all, &reply),
                         COORD_OK);
        assert_true(all.n == 1 && all.v[0].gaps == 7 && all.v[0].next == 13);
        free(all.v);
    }
}

static void set_goes_back_by_two_words(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 100, 1, &g);
    struct seq_set in = {.name = "a", .sub = "", .period = "", .number = 5, .back = true};
    ORDER(&g, seq_set(c, SETUP_IDENTITY, &in, &one, &reply));
    assert_int_equal(g.how, SEQ_LOWER);
    assert_int_equal(set_to("a", 5, true, &g), SEQ_DONE);
    assert_int_equal(give_back("a", &g, 1, 0), SEQ_KEPT);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_true(g.lo == 4 && g.turn == g.revoked.turn);
    (void)drop("a", &g); /* and what was given up stays covered */
    struct seq_create again = remade("a", lossy(SEQ_LOSS_REFUSE));
    (void)create_as(&again, &g);
    assert_int_equal(g.next, 100);
}

static void set_goes_up_to_the_line(void **state)
{
    (void)state;
    begin(FORGETTING);
    struct seq_create in = {.name = "a", .definition = skipping(RATE)};
    (void)create_as(&in, &g);
    assert_int_equal(set_to("a", BURST, false, &g), SEQ_DONE); /* index BURST - 1 */
    assert_int_equal(set_to("a", BURST + 1 + RATE, false, &g), SEQ_WAIT);
    assert_int_equal(g.wait_ms, 1010);
    pair.clock.ms += 1010;
    assert_int_equal(set_to("a", BURST + 1 + RATE, false, &g), SEQ_DONE);
    assert_int_equal(set_to("a", SEQ_NUMBER_MAX, false, &g), SEQ_WAIT);
    assert_int_equal(reopen_above("a", 50, &g), SEQ_NOT_STOPPED);
}

/* Who missed the first of two revocations is told of both. */
static void revocations_add_up(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)set_to("a", 50, false, &g);
    int64_t first = g.turn;
    pair_restart(&pair);
    (void)take_of("a", 1, 1, &g);
    assert_int_equal(reopen_above("a", 99, &g), SEQ_DONE);
    int64_t second = g.turn;
    assert_true(second > first && g.revoked.turn == second && g.revoked.from == 0);
    (void)set_to("a", 500, false, &g);
    assert_true(g.turn > second && g.revoked.turn == g.turn && g.revoked.from == 0);
}

/* Blocks of a branch that is lost were granted in turns and eras of their own. */
static void a_turn_that_was_lost_is_an_earlier_one(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    pair_backup(&pair, 0);
    (void)set_to("a", 50, false, &g);
    pair_restart(&pair);
    (void)take_of("a", 1, 1, &g);
    (void)reopen_above("a", 99, &g);
    assert_int_equal(take_of("a", 10, 2, &h), SEQ_GRANTED);
    int64_t era = opening.era;
    pair.clock.ms += 2 * S + 1; /* between two reopenings, one of which loses the other */
    pair_restore(&pair, 0, false);
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_STOPPED);
    assert_int_equal(reopen_above("a", 60, &g), SEQ_DONE);
    assert_true(opening.era <= era && h.turn < g.revoked.turn && era < g.revoked.era &&
                h.hi >= g.revoked.from);
}

/* ---- reserve --------------------------------------------------------------------------------- */

static void numbers_for_who_is_no_sidecar(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_create in = {
        .name = "a", .definition = lossy(SEQ_LOSS_REFUSE), .has_max = true, .max = 100};
    (void)create_as(&in, &g);
    ORDER(&g, seq_reserve(c, SETUP_IDENTITY, pair.clock.ms, "a", "", "", 60, setup_token(1), &one,
                          &reply));
    assert_true(g.how == SEQ_GRANTED && g.lo == 0 && g.hi == 59);
    ORDER(&g, seq_reserve(c, SETUP_IDENTITY, pair.clock.ms, "a", "", "", 60, setup_token(2), &one,
                          &reply));
    assert_int_equal(g.how, SEQ_USED_UP); /* all or nothing */
    ORDER(&g, seq_reserve(c, SETUP_IDENTITY, pair.clock.ms, "a", "", "", 60, setup_token(1), &one,
                          &reply));
    assert_int_equal(g.how, SEQ_AGAIN);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void all_are_listed(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    (void)create("b", d, &g);
    d.subs = 1000;
    (void)create("a", d, &g);
    enum {
        SUBS = 40
    }; /* more would not fit into the toy */
    for (int i = 0; i < SUBS; i++) {
        char name[16];
        struct seq_want w = want_of("a", 1, (uint8_t)(i + 1));
        (void)snprintf(name, sizeof name, "s%02d", i);
        w.sub = name;
        assert_int_equal(take(&w, &g), SEQ_GRANTED);
    }
    asked = ONE(PAIR_REDIS);
    for (int i = 0; i < 700; i++) { /* its hash becomes a table, which is read in parts */
        char name[16];
        struct seq_want w = want_of("a", 1, (uint8_t)i);
        (void)snprintf(name, sizeof name, "t%03d", i);
        w.sub = name;
        assert_int_equal(take(&w, &g), SEQ_GRANTED);
    }
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct seq_list list;
        struct seq_counters all;
        struct coord *c = pair_side(&pair, side);
        assert_int_equal(seq_list(c, SETUP_IDENTITY, &list, &reply), COORD_OK);
        assert_int_equal(list.n, 2);
        assert_true(strcmp(list.v[0].name, "a") == 0 && strcmp(list.v[1].name, "b") == 0);
        assert_true(list.v[0].definition.subs == 1000 && list.v[0].top == 1);
        free(list.v);
        assert_int_equal(seq_show(c, SETUP_IDENTITY, "a", &all, &reply), COORD_OK);
        assert_int_equal(all.n, 1 + SUBS + (side == PAIR_REDIS ? 700 : 0));
        assert_string_equal(all.v[1].sub, "s00");
        assert_true(!all.v[1].stale && all.v[1].next == 1 && all.v[1].n == 1);
        assert_string_equal(all.v[all.n - 1].sub, side == PAIR_REDIS ? "t699" : "s39");
        free(all.v);
        assert_int_equal(seq_show(c, SETUP_IDENTITY, "none", &all, &reply), COORD_OK);
        assert_true(!all.found && all.n == 0);
        free(all.v);
        assert_int_equal(seq_list(c, SETUP_IDENTITY_OTHER, &list, &reply), COORD_WRONGPOOL);
    }
    (void)drop("a", &g);
    ORDER(&g, seq_sweep(c, SETUP_IDENTITY, "a", "", &one, &reply));
    struct seq_counters all;
    assert_int_equal(seq_show(pair.redis, SETUP_IDENTITY, "a", &all, &reply), COORD_OK);
    assert_int_equal(all.n, 0);
    free(all.v);
}

/* However much there is else in the pool. Of an earlier making something may be left. */
static void of_a_plain_one_the_only_row_is_looked_at(void **state)
{
    (void)state;
    static char out[1 << 16];
    struct seq_counters all;
    begin(ONE(PAIR_REDIS));
    (void)create("a", lossy(SEQ_LOSS_TRUST), &g);
    assert_int_equal(take_of("a", 5, 1, &g), SEQ_GRANTED);
    assert_true(SERVER_DO(&pair.server, out, "CONFIG", "RESETSTAT"));
    assert_int_equal(seq_show(pair.redis, SETUP_IDENTITY, "a", &all, &reply), COORD_OK);
    assert_true(all.n == 1 && all.v[0].next == 5 && all.v[0].gen == 1 && !all.v[0].unreadable);
    free(all.v);
    assert_true(SERVER_DO(&pair.server, out, "INFO", "commandstats"));
    assert_null(strstr(out, "cmdstat_hscan"));
}

int main(void)
{
    if (!server_available()) {
        (void)printf("no redis-server\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_stops_at_a_reopening),
        cmocka_unit_test(a_word_is_for_one_reopening),
        cmocka_unit_test(a_word_is_asked_for_where_it_helps),
        cmocka_unit_test(an_operator_says_how_far_it_was),
        cmocka_unit_test(periods_behind_a_reopening_begin_anew),
        cmocka_unit_test(a_period_that_opens_within_the_margin_does_not),
        cmocka_unit_test(what_was_taken_before_is_not_given_back),
        cmocka_unit_test(a_repeat_of_before_grants_anew),
        cmocka_unit_test(it_goes_on_unless_a_loss_shows),
        cmocka_unit_test(a_pool_made_again_trusts_nobody),
        cmocka_unit_test(a_pool_of_a_range_of_its_own_is_new_to_no_sequence),
        cmocka_unit_test(what_happens_after_a_loss_is_said),
        cmocka_unit_test(sqlite_stops_whatever_is_said),
        cmocka_unit_test(an_older_file_in_its_place_shows),
        cmocka_unit_test(a_pool_that_was_reopened_wants_a_beginning),
        cmocka_unit_test(a_tombstone_covers_what_was_given_out),
        cmocka_unit_test(two_make_it_at_once),
        cmocka_unit_test(a_tombstone_covers_what_was_lost),
        cmocka_unit_test(what_is_stopped_has_no_tombstone),
        cmocka_unit_test(a_tombstone_of_another_branch),
        cmocka_unit_test(a_tombstone_of_periods),
        cmocka_unit_test(a_tombstone_that_cannot_be_forgotten),
        cmocka_unit_test(a_tombstone_of_periods_by_another_clock),
        cmocka_unit_test(what_was_dropped_is_swept),
        cmocka_unit_test(set_goes_forward),
        cmocka_unit_test(set_goes_back_by_two_words),
        cmocka_unit_test(set_goes_up_to_the_line),
        cmocka_unit_test(revocations_add_up),
        cmocka_unit_test(a_turn_that_was_lost_is_an_earlier_one),
        cmocka_unit_test(numbers_for_who_is_no_sidecar),
        cmocka_unit_test(all_are_listed),
        cmocka_unit_test(of_a_plain_one_the_only_row_is_looked_at),
    };
    return cmocka_run_group_tests_name("coord/sequences_operator", tests, seq_setup, teardown);
}
