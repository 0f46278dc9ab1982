/*
 * What sidecars ask of sequences, each rule by the one schedule that needs it: of sequences.lua in
 * a real Redis, of an SQLite file and of a toy store. Where numbers skip to a line SQLite is not
 * asked, since it has none.
 */
#include "seq_rig.h"

#define RATE  100
#define BURST 1000 /* of that rate */

static struct seq_grant g, h;

/* From now on, the first block of one number that is granted, within a while. */
static int64_t first_granted(const char *name, uint8_t token)
{
    for (int64_t waited = 0; take_of(name, 1, token, &g) == SEQ_WAIT; waited += g.wait_ms) {
        assert_true(waited < 60000);
        pair.clock.ms += g.wait_ms;
    }
    assert_int_equal(g.how, SEQ_GRANTED);
    return g.lo;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void numbers_count(void **state)
{
    (void)state;
    begin(EACH);
    assert_int_equal(create("a", skipping(RATE), &g), SEQ_DONE);
    assert_int_equal(take_of("a", 10, 1, &g), SEQ_GRANTED);
    assert_true(g.lo == 0 && g.hi == 9 && g.next == 10 && g.gen == 1 && g.turn == 0);
    assert_int_equal(seq_number(&g.definition, g.lo), 1);
    assert_int_equal(take_of("a", 5, 2, &h), SEQ_GRANTED);
    assert_true(h.lo == 10 && h.hi == 14 && h.n == g.n + 1);
    assert_int_equal(take_of("a", 0, 3, &h), SEQ_LOOKED);
    assert_true(h.next == 15 && h.lo == 0 && h.hi == 0);
    assert_int_equal(take_of("b", 1, 3, &h), SEQ_UNKNOWN);
}

static void a_take_that_is_repeated_grants_nothing_new(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", 10, 1, &g);
    assert_int_equal(take_of("a", 10, 1, &h), SEQ_AGAIN);
    assert_true(h.lo == g.lo && h.hi == g.hi && h.n == g.n && h.next == 10);
    assert_int_equal(take_of("a", 0, 1, &h), SEQ_LOOKED);
    (void)take_of("a", 10, 2, &h);
    assert_int_equal(take_of("a", 10, 1, &h), SEQ_GRANTED); /* a gap: another's came between */
    assert_int_equal(h.lo, 20);
}

static void all_or_as_many_as_there_are(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_create in = {
        .name = "a", .definition = lossy(SEQ_LOSS_REFUSE), .has_max = true, .max = 15};
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    struct seq_want w = want_of("a", 10, 1);
    assert_int_equal(take(&w, &g), SEQ_GRANTED);
    w.token = setup_token(2);
    w.whole = true;
    assert_int_equal(take(&w, &g), SEQ_USED_UP);
    w.whole = false;
    assert_int_equal(take(&w, &g), SEQ_GRANTED);
    assert_true(g.lo == 10 && g.hi == 14);
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_USED_UP);
    assert_int_equal(take_of("a", 0, 3, &g), SEQ_USED_UP);
    ORDER(&g, seq_alter(c, SETUP_IDENTITY, "a", 14, &one, &reply));
    assert_int_equal(g.how, SEQ_LOWER);
    ORDER(&g, seq_alter(c, SETUP_IDENTITY, "a", 16, &one, &reply));
    assert_int_equal(g.how, SEQ_DONE);
    assert_int_equal(take_of("a", 5, 3, &g), SEQ_GRANTED);
    assert_true(g.lo == 15 && g.hi == 15);
}

static void a_cycle_begins_again(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_create in = {
        .name = "a", .definition = lossy(SEQ_LOSS_REFUSE), .has_max = true, .max = 5};
    in.definition.strict = in.definition.cycle = true;
    (void)create_as(&in, &g);
    (void)take_of("a", 3, 1, &g);
    assert_int_equal(take_of("a", 3, 2, &g), SEQ_GRANTED);
    assert_true(g.lo == 3 && g.hi == 4);
    assert_int_equal(take_of("a", 2, 3, &g), SEQ_GRANTED);
    assert_true(g.lo == 0 && g.hi == 1);
    struct seq_want w = want_of("a", 4, 4);
    w.whole = true;
    assert_int_equal(take(&w, &g), SEQ_GRANTED);
    assert_true(g.lo == 0 && g.hi == 3);
    w.token = setup_token(5);
    w.count = 6;
    assert_int_equal(take(&w, &g), SEQ_USED_UP);
    ORDER(&g, seq_alter(c, SETUP_IDENTITY, "a", 10, &one, &reply));
    assert_int_equal(g.how, SEQ_LOWER);
}

/* The next one, by which a counter says so, is no index any more, unless that was thought of. */
static void behind_the_last_index_there_is_none(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_create in = {.name = "a", .definition = lossy(SEQ_LOSS_REFUSE)};
    in.definition.start = -10;
    assert_int_equal(create_as(&in, &g), SEQ_DONE);
    assert_int_equal(g.max, seq_last_index(&in.definition));
    const struct seq_set last = {
        .name = "a", .sub = "", .period = "", .number = seq_number(&in.definition, g.max)};
    ORDER(&g, seq_set(c, SETUP_IDENTITY, &last, &one, &reply));
    assert_int_equal(g.how, SEQ_DONE);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED);
    assert_true(g.lo == g.max && g.hi == g.max);
    struct seq_want w = want_of("a", 1, 2);
    w.seen = g.hi + 1;
    assert_int_equal(take(&w, &g), SEQ_USED_UP);
    assert_true(g.next == g.max + 1);
}

static void each_item_comes_to_something_of_its_own(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", skipping(RATE), &g);
    const struct seq_want items[4] = {want_of("a", 3, 1), want_of("none", 3, 2), want_of("a", 2, 3),
                                      want_of("a", 2, 3)};
    static const enum seq_how hows[4] = {SEQ_GRANTED, SEQ_UNKNOWN, SEQ_GRANTED, SEQ_AGAIN};
    static const int64_t los[4] = {0, 0, 3, 3};
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        const struct seq_caller by = {.now_ms = pair.clock.ms};
        struct seq_grant out[4];
        struct seq_opening told;
        assert_int_equal(
            seq_take(pair_side(&pair, side), SETUP_IDENTITY, &by, items, out, 4, &told, &reply),
            COORD_OK);
        for (size_t i = 0; i < 4; i++)
            assert_true(out[i].how == hows[i] && out[i].lo == los[i]);
        assert_true(told.era == 1 && told.topen_ms == T0 && *told.fingerprint);
    }
}

/* ---- rule 1: the line ------------------------------------------------------------------------ */

static void nothing_before_its_beginning(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = skipping(RATE);
    d.begins_ms = T0 + 5000;
    assert_int_equal(create("a", d, &g), SEQ_DONE);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_WAIT);
    assert_int_equal(g.wait_ms, 5000);
    pair.clock.ms += 4999;
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_WAIT);
    pair.clock.ms += 1;
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
}

static void nothing_above_the_line(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    struct seq_want w = want_of("a", BURST + 1, 1);
    w.whole = true;
    assert_int_equal(take(&w, &g), SEQ_WAIT);
    assert_int_equal(g.wait_ms, 1000 / RATE);
    w.whole = false;
    assert_int_equal(take(&w, &g), SEQ_GRANTED);
    assert_true(g.lo == 0 && g.hi == BURST - 1);
    assert_int_equal(take_of("a", 5, 2, &g), SEQ_WAIT);
    assert_int_equal(g.wait_ms, 1000 / RATE);
    pair.clock.ms += 1000 / RATE - 1;
    assert_int_equal(take_of("a", 5, 2, &g), SEQ_WAIT);
    pair.clock.ms += 1;
    assert_int_equal(take_of("a", 5, 2, &g), SEQ_GRANTED);
    assert_true(g.lo == BURST && g.hi == BURST);
}

/* ---- rule 2: the first touch after a reopening ----------------------------------------------- */

static void whatever_was_forgotten_lies_below(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", 1, 1, &g);
    pair_backup(&pair, 0);
    pair.clock.ms += 10000;
    (void)take_of("a", SEQ_BLOCK_MAX, 2, &g); /* up to the line */
    int64_t highest = g.hi;
    pair_restore(&pair, 0, false); /* at the same moment */
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_WAIT);
    assert_int_equal(g.next, BURST + 10 * RATE + 2 * S / 1000 * RATE);
    assert_int_equal(g.wait_ms, 2 * S + 1000 / RATE);
    assert_true(first_granted("a", 3) > highest);
    int64_t second = g.lo;
    /* and once more, of another branch */
    pair_backup(&pair, 1);
    pair.clock.ms += 5000;
    (void)take_of("a", SEQ_BLOCK_MAX, 4, &g);
    highest = g.hi;
    pair_restore(&pair, 0, false);
    assert_true(first_granted("a", 5) > highest);
    pair_restore(&pair, 1, false);
    highest = g.hi;
    assert_true(first_granted("a", 6) > highest && g.lo > second);
}

static void only_the_first_touch_skips(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    pair.clock.ms += 60000;
    pair_restart(&pair);
    pair.clock.ms += 10;
    int64_t lo = first_granted("a", 1);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_WAIT); /* it stands on the line */
    pair.clock.ms += 60000;
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_int_equal(g.lo, lo + 1);
}

/* A clock that was fast within S granted above the line of a true one. */
static void clocks_wander(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    pair_backup(&pair, 0);
    pair.clock.ms += 10000 + S;
    (void)take_of("a", SEQ_BLOCK_MAX, 1, &g);
    int64_t highest = g.hi;
    pair.clock.ms -= 2 * S; /* slow, and true time goes on */
    pair_restore(&pair, 0, false);
    assert_true(first_granted("a", 2) > highest);
}

/* ---- rule 3: a record that is missing -------------------------------------------------------- */

static enum seq_how take_sub(const char *name, const char *sub, uint8_t token)
{
    struct seq_want w = want_of(name, 1, token);
    w.sub = sub;
    return take(&w, &g);
}

static void a_sub_is_new_unless_a_table_was_lost(void **state)
{
    (void)state;
    begin(FORGETTING);
    struct seq_definition d = skipping(RATE);
    d.subs = 100;
    (void)create("a", d, &g);
    pair.clock.ms += 100000;
    assert_int_equal(take_sub("a", "acme", 1), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
    pair_restart(&pair);
    assert_int_equal(take_sub("a", "other", 2), SEQ_WAIT);
    assert_int_equal(g.next, BURST + 100 * RATE + 2 * S / 1000 * RATE);
    pair.clock.ms += 2 * S + 10;
    d.begins_ms = pair.clock.ms; /* nothing was lost since */
    assert_int_equal(create("b", d, &g), SEQ_DONE);
    assert_int_equal(take_sub("b", "acme", 3), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
}

/* The reopening may have been earlier than it seems. */
static void it_is_new_only_behind_the_margin(void **state)
{
    (void)state;
    begin(FORGETTING);
    struct seq_definition d = skipping(RATE);
    d.subs = 100;
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_UNKNOWN); /* which reopens */
    d.begins_ms = T0 + 2 * S;
    (void)create("a", d, &g);
    d.begins_ms = T0 + 2 * S + 1;
    (void)create("b", d, &g);
    pair.clock.ms += 2 * S + 1;
    assert_int_equal(take_sub("a", "acme", 1), SEQ_WAIT);
    assert_int_equal(take_sub("b", "acme", 2), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
}

/* ---- rule 4: change counts ------------------------------------------------------------------- */

static enum seq_how knowing(int64_t n, bool before, uint8_t token, const struct seq_opening *o)
{
    struct seq_want w = want_of("a", 1, token);
    w.gen = 1;
    w.n = n;
    w.known_before = before;
    assert_int_equal(taken_at(pair.clock.ms, o, &w, &g), COORD_OK);
    return g.how;
}

static void a_silent_rewind_shows(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", 1, 1, &g);
    pair_backup(&pair, 0);
    (void)take_of("a", 500, 2, &h);
    pair_restore(&pair, 0, true);
    assert_int_equal(knowing(g.n, false, 3, &opening), SEQ_GRANTED); /* no more than the table */
    pair_restore(&pair, 0, true);
    assert_int_equal(knowing(h.n, false, 4, &opening), SEQ_WAIT);
    assert_int_equal(opening.era, 2);
    assert_int_equal(described().later.cause, COORD_CAUSE_HOLDER);
    assert_true(first_granted("a", 4) > h.hi);
}

static void what_was_known_before_does_not_reopen(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 1, 1, &g);
    struct seq_opening first = opening;
    pair_restart(&pair);
    assert_int_equal(take_of("a", 1, 2, &h), SEQ_STOPPED);
    assert_int_equal(opening.era, 2);
    assert_int_equal(knowing(g.n, true, 2, &opening), SEQ_STOPPED); /* as much as the table */
    assert_int_equal(described().later.more_era, 0);
    assert_int_equal(knowing(g.n + 1, true, 2, &opening), SEQ_FORGOTTEN);
    assert_int_equal(opening.era, 2);
    assert_int_equal(described().later.more_era, 2);                     /* no word will be taken */
    assert_int_equal(knowing(g.n + 1, false, 2, &first), SEQ_FORGOTTEN); /* of another opening */
    assert_int_equal(opening.era, 2);
}

/* Of an earlier generation, a period whose record may be gone, or of nothing at all. */
static void counts_that_say_nothing(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", 1, 1, &g);
    (void)drop("a", &h);
    struct seq_create in = {
        .name = "a", .definition = skipping(RATE), .reuse = true, .no_older = true};
    assert_int_equal(create_as(&in, &h), SEQ_DONE);
    pair.clock.ms += 600000;
    (void)take_of("a", 1, 1, &h);
    assert_int_equal(h.gen, 2);
    assert_int_equal(knowing(100, false, 2, &opening), SEQ_GRANTED); /* gen 1 */
    assert_int_equal(opening.era, 1);
    struct seq_want w = want_of("gone", 1, 3);
    w.gen = 1;
    w.n = 1; /* a definition that was there is not: something was lost */
    assert_int_equal(taken_at(pair.clock.ms, &opening, &w, &h), COORD_OK);
    assert_int_equal(opening.era, 2);
}

/* ---- rule 5: definitions --------------------------------------------------------------------- */

static void a_definition_never_changes(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", skipping(RATE), &g);
    assert_int_equal(create("a", skipping(RATE), &h), SEQ_KEPT);
    assert_string_equal(h.text, g.text);
    assert_int_equal(create("a", skipping(2 * RATE), &h), SEQ_DIFFERS);
    assert_string_equal(h.text, g.text);
    struct seq_want w = want_of("a", 1, 1);
    w.text = g.text;
    assert_int_equal(take(&w, &h), SEQ_GRANTED);
    assert_string_equal(h.text, g.text);
    char other[SEQ_TEXT_MAX];
    struct seq_definition d = g.definition;
    d.begins_ms++;
    w.text = seq_definition_text(other, &d);
    assert_int_equal(take(&w, &h), SEQ_DIFFERS);
    assert_string_equal(h.text, g.text);
    d.begins_ms--;
    assert_int_equal(create("a", d, &h), SEQ_KEPT); /* with the beginning that it has */
}

/* ---- rule 6: periods ------------------------------------------------------------------------- */

#define HOUR INT64_C(3600000)

/* A day of UTC+1 that begins at 23:00. */
static int64_t midnight;
static void daily(unsigned sides, struct seq_definition d)
{
    struct period p;
    begin(sides);
    assert_true(period_find(PERIOD_DAY, 60, SPAN("2026-05-29"), &p));
    midnight = p.begins_ms;
    pair.clock.ms = midnight - 12 * HOUR;
    init(3);
    d.reset = PERIOD_DAY;
    d.offset_min = 60;
    assert_int_equal(create("a", d, &g), SEQ_DONE);
    assert_string_equal(g.period, "2026-05-28");
}

static enum seq_how take_day(const char *day, uint8_t token)
{
    struct seq_want w = want_of("a", 1, token);
    w.period = day;
    return take(&w, &g);
}

static void each_period_begins_anew(void **state)
{
    (void)state;
    daily(EACH, lossy(SEQ_LOSS_REFUSE));
    assert_int_equal(take_of("a", 7, 1, &g), SEQ_GRANTED);
    assert_string_equal(g.period, "2026-05-28");
    assert_int_equal(take_day("2026-05-29", 2), SEQ_WAIT); /* opens 2 h before it begins */
    assert_int_equal(g.wait_ms, 10 * HOUR);
    pair.clock.ms = midnight - 2 * HOUR;
    assert_int_equal(take_day("2026-05-29", 2), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_GRANTED);
    assert_true(g.lo == 7 && strcmp(g.period, "2026-05-28") == 0);
    pair.clock.ms = midnight - 1;
    assert_int_equal(take_day("2026-05-28", 4), SEQ_GRANTED);
    pair.clock.ms = midnight;
    assert_int_equal(take_day("2026-05-28", 5), SEQ_CLOSED);
    struct seq_want known = want_of("a", 1, 6);
    known.gen = g.gen;
    known.n = 4; /* as yesterday's was: of today's it proves nothing */
    assert_int_equal(taken_at(midnight, &opening, &known, &g), COORD_OK);
    assert_true(g.lo == 1 && strcmp(g.period, "2026-05-29") == 0);
    pair.clock.ms = midnight - 1; /* its end was seen */
    assert_int_equal(take_day("2026-05-28", 7), SEQ_CLOSED);
    assert_int_equal(take_of("a", 1, 8, &g), SEQ_GRANTED);
    assert_string_equal(g.period, "2026-05-29");
    assert_int_equal(take_day("2026-05", 9), SEQ_NO_PERIOD);
    assert_int_equal(take_day("2026-02-30", 9), SEQ_NO_PERIOD);
    (void)create("b", lossy(SEQ_LOSS_REFUSE), &g);
    struct seq_want w = want_of("b", 1, 9);
    w.period = "2026-05-29";
    assert_int_equal(take(&w, &g), SEQ_NO_PERIOD);
}

/* Once it is said that the clock was ahead: what has begun goes on when its time has come. */
static void periods_follow_a_clock_that_was_ahead(void **state)
{
    (void)state;
    enum coord_status s;
    daily(EACH, lossy(SEQ_LOSS_REFUSE));
    pair.clock.ms += 2 * DAY;
    assert_int_equal(take_of("a", 1, 1, &g), SEQ_GRANTED);
    assert_string_equal(g.period, "2026-05-30");
    pair.clock.ms -= 2 * DAY;
    ALL(s, coord_clock_was_ahead(c, SETUP_IDENTITY, &reply));
    assert_int_equal(s, COORD_OK);
    assert_int_equal(take_of("a", 1, 2, &g), SEQ_GRANTED);
    assert_string_equal(g.period, "2026-05-28");
    pair.clock.ms += 2 * DAY;
    assert_int_equal(take_of("a", 1, 3, &g), SEQ_GRANTED);
    assert_string_equal(g.period, "2026-05-30");
    assert_int_equal(g.lo, 1);
}

static void a_period_has_a_line_of_its_own(void **state)
{
    (void)state;
    daily(FORGETTING, skipping(RATE));
    pair.clock.ms = midnight - 2 * HOUR;
    pair_backup(&pair, 0);
    struct seq_want w = want_of("a", SEQ_BLOCK_MAX, 1);
    w.period = "2026-05-29";
    assert_int_equal(take(&w, &g), SEQ_GRANTED);
    assert_int_equal(g.hi, BURST - 1);
    pair_restore(&pair, 0, false); /* its record is missing, and was not */
    int64_t highest = g.hi;
    assert_int_equal(take_day("2026-05-29", 2), SEQ_WAIT);
    assert_int_equal(g.next, BURST + 2 * S / 1000 * RATE);
    assert_true(g.next > highest);
    pair.clock.ms = midnight + 22 * HOUR + 1; /* the next day opened after the reopening */
    assert_int_equal(take_day("2026-05-30", 3), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
}

static void periods_that_are_closed_may_be_forgotten(void **state)
{
    (void)state;
    daily(EACH, lossy(SEQ_LOSS_REFUSE));
    struct seq_counters all;
    (void)take_of("a", 7, 1, &g);
    struct seq_opening before = opening;
    int64_t changes = g.n;
    ORDER(&h, seq_sweep(c, SETUP_IDENTITY, "a", "2026-05-29", &one, &reply));
    assert_int_equal(h.how, SEQ_WAIT);
    pair.clock.ms = midnight;
    (void)take_of("a", 1, 2, &h);
    ORDER(&h, seq_sweep(c, SETUP_IDENTITY, "a", "2026-05-29", &one, &reply));
    assert_int_equal(h.how, SEQ_DONE);
    ORDER(&h, seq_sweep(c, SETUP_IDENTITY, "a", "2026-05-28", &one, &reply)); /* stays closed */
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        assert_int_equal(seq_show(pair_side(&pair, side), SETUP_IDENTITY, "a", &all, &reply),
                         COORD_OK);
        assert_true(all.found && all.n == 1 && strcmp(all.v[0].period, "2026-05-29") == 0);
        assert_string_equal(all.sequence.closed, "2026-05-29");
        free(all.v);
    }
    pair.clock.ms = midnight - 1;
    assert_int_equal(take_day("2026-05-28", 3), SEQ_CLOSED);
    /* whose record is gone is no proof of a loss */
    struct seq_want w = want_of("a", 1, 4);
    w.period = "2026-05-28";
    w.gen = 1;
    w.n = changes;
    assert_int_equal(taken_at(pair.clock.ms, &before, &w, &h), COORD_OK);
    assert_int_equal(h.how, SEQ_CLOSED);
    assert_int_equal(opening.era, 1);
    assert_int_equal(described().later.more_era, 0);
}

/* ---- rule 7: the caller's clock -------------------------------------------------------------- */

/* A clock that was a day ahead for a second. */
static void a_clock_far_ahead_leaves_nothing_above_the_line(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", 1, 1, &g);
    pair.clock.ms += DAY;
    struct seq_want w = want_of("a", SEQ_BLOCK_MAX, 2);
    assert_int_equal(taken_at(T0, NULL, &w, &g), COORD_OK);
    assert_true(g.how == SEQ_GRANTED && g.hi == BURST - 1);
    pair.clock.ms = T0 + 1000;
    w.token = setup_token(3);
    assert_int_equal(taken_at(T0 + 1000, NULL, &w, &g), COORD_OK);
    assert_true(g.how == SEQ_GRANTED && g.lo == BURST);
    /* within 2S the coordinator's counts */
    pair.clock.ms += 60000;
    w.token = setup_token(4);
    assert_int_equal(taken_at(pair.clock.ms - 2 * S, NULL, &w, &g), COORD_OK);
    assert_int_equal(g.hi, BURST - 1 + 61 * RATE);
    pair_restart(&pair);
    assert_int_equal(taken_at(pair.clock.ms - S - 1, NULL, &w, &g), COORD_SKEW);
    assert_int_equal(taken_at(pair.clock.ms - S, NULL, &w, &g), COORD_OK);
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void what_is_on_top_is_taken_back(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", 10, 1, &g);
    assert_int_equal(give_back("a", &g, 1, 4), SEQ_DONE);
    assert_int_equal(give_back("a", &g, 1, 4), SEQ_KEPT); /* a late copy */
    assert_int_equal(take_of("a", 6, 2, &h), SEQ_GRANTED);
    assert_true(h.lo == 4 && h.hi == 9);
    assert_int_equal(give_back("a", &g, 1, 4), SEQ_KEPT); /* as high, and another's */
    assert_int_equal(take_of("a", 3, 3, &h), SEQ_GRANTED);
    assert_int_equal(h.lo, 10);
    assert_int_equal(give_back("a", &h, 3, 11), SEQ_DONE);
    assert_int_equal(take_of("a", 3, 3, &h), SEQ_GRANTED); /* what went back is not told again */
    assert_int_equal(h.lo, 11);
}

/* What the line cuts off ends where the first one did, above another's block. */
static void late_copies_take_nothing_of_others(void **state)
{
    (void)state;
    begin(FORGETTING);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", SEQ_BLOCK_MAX, 1, &g);
    assert_int_equal(give_back("a", &g, 1, 500), SEQ_DONE);
    assert_int_equal(take_of("a", 10, 2, &h), SEQ_GRANTED);
    assert_int_equal(h.lo, 500);
    assert_int_equal(take_of("a", SEQ_BLOCK_MAX, 1, &h), SEQ_GRANTED); /* whom nobody hears */
    assert_true(h.lo == 510 && h.hi == g.hi);
    assert_int_equal(give_back("a", &g, 1, 500), SEQ_KEPT);
}

static void what_is_not_on_top_is_kept(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", skipping(RATE), &g);
    (void)take_of("a", 10, 1, &g);
    struct seq_grant part = g;
    part.hi--;
    assert_int_equal(give_back("a", &part, 1, 4), SEQ_KEPT);
    assert_int_equal(give_back("a", &g, 2, 4), SEQ_KEPT);
    part = g;
    part.gen = 2;
    assert_int_equal(give_back("a", &part, 1, 4), SEQ_KEPT);
    (void)take_of("a", 10, 2, &h);
    assert_int_equal(give_back("a", &g, 1, 4), SEQ_KEPT);
    assert_int_equal(give_back("a", &h, 2, 0), SEQ_DONE); /* both were one's: all of it */
    (void)take_of("a", 1, 3, &h);
    assert_int_equal(h.lo, 0);
    assert_int_equal(give_back("none", &h, 3, 0), SEQ_UNKNOWN);
}

static void not_of_an_earlier_era(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 10, 1, &g);
    pair_restart(&pair);
    assert_int_equal(give_back("a", &g, 1, 4), SEQ_KEPT);
    assert_int_equal(take_of("a", 10, 1, &h), SEQ_STOPPED);
}

/* ---- subs ------------------------------------------------------------------------------------ */

static void subs_are_counted(void **state)
{
    (void)state;
    begin(EACH);
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    (void)create("plain", d, &g);
    assert_int_equal(take_sub("plain", "acme", 1), SEQ_NO_SUBS);
    d.subs = 2;
    (void)create("a", d, &g);
    assert_int_equal(take_sub("a", "acme", 1), SEQ_GRANTED);
    assert_int_equal(take_sub("a", "bolt", 2), SEQ_GRANTED);
    assert_int_equal(g.lo, 0);
    assert_int_equal(take_sub("a", "cog", 3), SEQ_TOO_MANY_SUBS);
    assert_int_equal(take_sub("a", "acme", 4), SEQ_GRANTED);
    assert_int_equal(g.lo, 1);
    assert_int_equal(take_of("a", 1, 5, &g), SEQ_GRANTED); /* its own counter */
    assert_int_equal(g.lo, 0);
}

static void subs_are_counted_by_period(void **state)
{
    (void)state;
    struct seq_definition d = lossy(SEQ_LOSS_REFUSE);
    d.subs = 1;
    daily(EACH, d);
    assert_int_equal(take_sub("a", "acme", 1), SEQ_GRANTED);
    assert_int_equal(take_sub("a", "bolt", 2), SEQ_TOO_MANY_SUBS);
    pair.clock.ms = midnight;
    assert_int_equal(take_sub("a", "bolt", 3), SEQ_GRANTED);
    assert_int_equal(take_sub("a", "acme", 4), SEQ_TOO_MANY_SUBS);
    struct seq_want ahead = want_of("a", 1, 5); /* of both, once the next one may be had */
    ahead.sub = "bolt";
    ahead.period = "2026-05-30";
    pair.clock.ms = midnight + 23 * HOUR;
    assert_int_equal(take(&ahead, &g), SEQ_GRANTED);
    assert_int_equal(take_sub("a", "cog", 6), SEQ_TOO_MANY_SUBS);
    ahead.sub = "cog";
    assert_int_equal(take(&ahead, &g), SEQ_TOO_MANY_SUBS);
}

/* ---- what operators say -----------------------------------------------------------------------
 */

/* The making that was looked at may be gone by the time the order comes. */
static void an_order_is_for_one_making(void **state)
{
    (void)state;
    begin(EACH);
    const struct seq_create again = {
        .name = "a", .definition = lossy(SEQ_LOSS_REFUSE), .reuse = true, .no_older = true};
    (void)create("a", again.definition, &g);
    (void)drop("a", &g);
    assert_int_equal(create_as(&again, &g), SEQ_DONE);
    struct seq_order o = {.verb = SEQ_VERB_DROP,
                          .name = "a",
                          .sub = "",
                          .period = "",
                          .text = "",
                          .to = "",
                          .gen = 1};
    ORDER(&h, c->driver->sequences->operate(c, SETUP_IDENTITY, &o, &one, &reply));
    assert_int_equal(h.how, SEQ_DIFFERS);
    o.gen = 2;
    ORDER(&h, c->driver->sequences->operate(c, SETUP_IDENTITY, &o, &one, &reply));
    assert_int_equal(h.how, SEQ_DONE);
}

/* Whatever sidecars knew before. */
static void how_far_it_was_is_what_an_operator_says(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", lossy(SEQ_LOSS_REFUSE), &g);
    (void)take_of("a", 10, 1, &g);
    pair_restart(&pair);
    struct seq_want w = want_of("a", 1, 2);
    w.seen = 31;
    assert_int_equal(take(&w, &g), SEQ_STOPPED);
    assert_int_equal(reopen_above("a", 20, &g), SEQ_DONE);
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct seq_counters all;
        assert_int_equal(seq_show(pair_side(&pair, side), SETUP_IDENTITY, "a", &all, &reply),
                         COORD_OK);
        assert_true(all.sequence.seen == 0 && all.sequence.top == 20);
        free(all.v);
    }
}

/* ---- what the wrappers refuse ---------------------------------------------------------------- */

static void what_nobody_may_ask(void **state)
{
    (void)state;
    begin(EACH);
    (void)create("a", skipping(RATE), &g);
    char many[SEQ_NAME_MAX + 8];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    struct seq_want bad[] = {
        want_of("", 1, 1),
        want_of("a b", 1, 1),
        want_of(many, 1, 1),
        want_of("a", -1, 1),
        want_of("a", SEQ_BLOCK_MAX + 1, 1),
        want_of("a", 1, 1),
        want_of("a", 1, 1),
        want_of("a", 1, 1),
        want_of("a", 1, 1),
    };
    bad[5].sub = "x y";
    bad[6].period = "today";
    bad[7].text = "a\nb";
    bad[8].n = -1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(taken_at(pair.clock.ms, NULL, &bad[i], &h), COORD_REFUSED);
        assert_true(*reply.err.text && h.how == 0 && h.hi == 0);
    }
    struct seq_want w = want_of("a", 1, 1);
    const struct seq_caller by = {.now_ms = pair.clock.ms};
    struct seq_opening told;
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct coord *c = pair_side(&pair, side);
        assert_int_equal(seq_take(c, SETUP_IDENTITY, &by, &w, &h, 0, &told, &reply), COORD_REFUSED);
        assert_int_equal(seq_take(c, SETUP_IDENTITY_OTHER, &by, &w, &h, 1, &told, &reply),
                         COORD_WRONGPOOL);
        assert_int_equal(coord_close(c, SETUP_IDENTITY, false, &reply), COORD_OK);
        assert_int_equal(seq_take(c, SETUP_IDENTITY, &by, &w, &h, 1, &told, &reply), COORD_CLOSED);
        assert_int_equal(coord_unclose(c, SETUP_IDENTITY, 0, &reply), COORD_OK);
    }
    struct coord *none = setup_open("static:1", "p", &pair.clock.clock);
    assert_int_equal(seq_take(none, SETUP_IDENTITY, &by, &w, &h, 1, &told, &reply), COORD_REFUSED);
    coord_free(none);
}

int main(void)
{
    if (!server_available()) {
        (void)printf("no redis-server\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_count),
        cmocka_unit_test(a_take_that_is_repeated_grants_nothing_new),
        cmocka_unit_test(all_or_as_many_as_there_are),
        cmocka_unit_test(a_cycle_begins_again),
        cmocka_unit_test(behind_the_last_index_there_is_none),
        cmocka_unit_test(each_item_comes_to_something_of_its_own),
        cmocka_unit_test(nothing_before_its_beginning),
        cmocka_unit_test(nothing_above_the_line),
        cmocka_unit_test(whatever_was_forgotten_lies_below),
        cmocka_unit_test(only_the_first_touch_skips),
        cmocka_unit_test(clocks_wander),
        cmocka_unit_test(a_sub_is_new_unless_a_table_was_lost),
        cmocka_unit_test(it_is_new_only_behind_the_margin),
        cmocka_unit_test(a_silent_rewind_shows),
        cmocka_unit_test(what_was_known_before_does_not_reopen),
        cmocka_unit_test(counts_that_say_nothing),
        cmocka_unit_test(a_definition_never_changes),
        cmocka_unit_test(each_period_begins_anew),
        cmocka_unit_test(periods_follow_a_clock_that_was_ahead),
        cmocka_unit_test(a_period_has_a_line_of_its_own),
        cmocka_unit_test(periods_that_are_closed_may_be_forgotten),
        cmocka_unit_test(a_clock_far_ahead_leaves_nothing_above_the_line),
        cmocka_unit_test(what_is_on_top_is_taken_back),
        cmocka_unit_test(late_copies_take_nothing_of_others),
        cmocka_unit_test(what_is_not_on_top_is_kept),
        cmocka_unit_test(not_of_an_earlier_era),
        cmocka_unit_test(subs_are_counted),
        cmocka_unit_test(subs_are_counted_by_period),
        cmocka_unit_test(an_order_is_for_one_making),
        cmocka_unit_test(how_far_it_was_is_what_an_operator_says),
        cmocka_unit_test(what_nobody_may_ask),
    };
    return cmocka_run_group_tests_name("coord/sequences", tests, seq_setup, teardown);
}
