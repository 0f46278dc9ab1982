#include "base/mark.h"
#include "support/fake_supply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MONO INT64_C(5000)
#define WALL INT64_C(1790000000123)

static const struct fake_sequence sequences[] = {
    {.name = "orders", .start = 1, .increment = 1, .subs = true},
    {.name = "down", .start = 10, .increment = -3},
    {.name = "few", .start = 1, .increment = 1, .top = 4},
    {.name = "strict", .start = 1, .increment = 1, .strict = true},
    {.name = "daily", .start = 1, .increment = 1, .daily = true},
    {.name = "small", .start = 1, .increment = 1, .top = 1, .daily = true},
    {.name = "nightly", .start = 1, .increment = 1, .strict = true, .daily = true},
};

static struct sequence_table table;
static struct fake_supply supply;
static int64_t mono, ticket;
static struct generator_ask ask;
static struct generator_run got;
static unsigned cause;

static int begin_with(uint32_t counters)
{
    fake_supply_table(&table, counters);
    memset(&supply, 0, sizeof supply);
    supply.table = &table;
    supply.sequence = sequences;
    supply.nsequences = sizeof sequences / sizeof *sequences;
    mono = MONO;
    ticket = 0;
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with(16);
}

static int end(void **state)
{
    (void)state;
    sequence_table_clear(&table);
    return 0;
}

static struct names_entry *entry(const char *name)
{
    return sequence_table_entry(&table.base, span_str(name), span_of("", 0));
}

static unsigned ask_of(struct generator *g, uint32_t n, bool some)
{
    ask = (struct generator_ask){
        .now_ms = WALL, .mono_ms = mono, .n = n, .ticket = &ticket, .until_ms = INT64_MAX};
    got = (struct generator_run){0};
    cause = some ? g->kind->some(g, &ask, &got) : g->kind->next(g, &ask, &got);
    ticket = cause == 0 ? 0 : ticket;
    return cause;
}

/* One request, asked again once what it wants has come. */
static unsigned take(const char *name, uint32_t n)
{
    if (ask_of(entry(name)->generator, n, false) && sequence_kind.causes[cause].waits) {
        for (int i = 0; i < 4 && cause && sequence_kind.causes[cause].waits; i++) {
            fake_supply_serve(&supply, mono);
            (void)ask_of(entry(name)->generator, n, false);
        }
    }
    fake_supply_serve(&supply, mono);
    ticket = 0;
    return cause;
}

static void gives(const char *name, int64_t number)
{
    assert_int_equal(take(name, 1), 0);
    assert_true(got.first == number);
}

static void refuses(const char *name, unsigned why, const char *text)
{
    assert_int_equal(take(name, 1), why);
    const char *said = refusal_text((struct refusal){entry(name)->generator, why});
    if (!strstr(said, text))
        fail_msg("expected \"%s\" in \"%s\"", text, said);
}

static struct sequence_generator *place_of(const char *name)
{
    struct generator *g = entry(name)->generator;
    return g == &table.fresh.base ? NULL : (struct sequence_generator *)g;
}

/* ---- numbers ----------------------------------------------------------------------------------
 */

static void a_name_is_asked_about_and_then_counts(void **state)
{
    (void)state;
    assert_int_equal(ask_of(entry("orders")->generator, 1, false), SEQUENCE_WAITS);
    assert_true(ask.until_ms == INT64_MAX);
    assert_ptr_equal(entry("orders")->generator, &table.place[0].base);
    fake_supply_serve(&supply, mono);
    assert_int_equal(supply.opens, 1);
    for (int64_t i = 1; i <= 5; i++)
        gives("orders", i);
    assert_int_equal(supply.opens, 1);
    gives("orders:acme", 1);
    gives("orders", 6);
    gives("down", 10);
    gives("down", 7);
    assert_int_equal(take("down", 3), 0);
    assert_true(generator_run_at(&got, 2) == -2 && got.stride == -3);
}

/* Whoever is killed between the two has given out no number that comes again. */
static void what_was_given_out_stands_in_the_mark_before(void **state)
{
    (void)state;
    int64_t number, marked;
    gives("orders", 1);
    const struct sequence_block *b = &place_of("orders")->numbers.block[0];
    assert_true(mark_load(b->mark, &marked) && marked == 1);
    assert_true(sequence_generator_more(entry("orders")->generator, &number));
    assert_int_equal(number, 2);
    assert_true(mark_load(b->mark, &marked) && marked == 2);
    assert_int_equal(ask_of(entry("orders")->generator, 3, true), 0);
    assert_true(mark_load(b->mark, &marked) && marked == 2 + got.n);
}

static void a_million_in_a_row_are_one_grant(void **state)
{
    (void)state;
    gives("orders", 1);
    assert_int_equal(take("orders", 1000000), 0);
    int64_t last = generator_run_at(&got, 999999);
    assert_true(got.first > 1 && last == got.first + 999999);
    gives("orders", last + 1);
    assert_int_equal(sequence_kind.run(entry("orders")->generator, 100), 1000000);
}

static void used_up_says_at_what(void **state)
{
    (void)state;
    for (int64_t i = 1; i <= 5; i++)
        gives("few", i);
    refuses("few", SEQUENCE_USED_UP, "used up: max 5 was reached");
    refuses("few", SEQUENCE_USED_UP, "used up: max 5 was reached");
}

static void too_many_in_a_row_leaves_the_others(void **state)
{
    (void)state;
    gives("few", 1);
    assert_int_equal(take("few", 50), SEQUENCE_USED_UP);
    gives("few", 2);
}

/* ---- names ------------------------------------------------------------------------------------
 */

static void who_only_looks_takes_no_memory(void **state)
{
    (void)state;
    assert_non_null(entry("orders"));
    assert_null(table.place);
    assert_non_null(entry("not/a/name"));
    refuses("not/a/name", SEQUENCE_NAME, "found \"not/a/name\"");
    assert_null(table.place);
}

static void names_are_of_a_form(void **state)
{
    (void)state;
    static const char *const wrong[] = {":acme", "orders:", "a b", "a/b", "a\xc3\xa4"};
    char text[200];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses(wrong[i], SEQUENCE_NAME, "expected seq:NAME or seq:NAME:SUB");
    (void)snprintf(text, sizeof text, "%065d", 1);
    refuses(text, SEQUENCE_NAME, "expected");
    (void)snprintf(text, sizeof text, "orders:%0101d", 1);
    refuses(text, SEQUENCE_NAME, "expected");
    (void)snprintf(text, sizeof text, "orders:%0100d", 1);
    gives(text, 1);
    gives("orders:a:b/c#", 1); /* what '#' is was said before */
    assert_int_equal(supply.opens, 2);
}

static void a_name_that_nobody_made_is_missed(void **state)
{
    (void)state;
    refuses("nobody", SEQUENCE_UNKNOWN, "no such sequence: sidflakectl seq create nobody makes it");
    assert_int_equal(sequence_kind.causes[SEQUENCE_UNKNOWN].status, ISSUE_MISS);
    unsigned takes = supply.takes;
    for (int i = 0; i < 10; i++)
        refuses("nobody", SEQUENCE_UNKNOWN, "");
    assert_int_equal(supply.takes, takes); /* within a second nobody is asked again */
    mono += 1000;
    refuses("nobody", SEQUENCE_UNKNOWN, "");
    assert_int_equal(supply.takes, takes + 1);
    supply.sequence = &(struct fake_sequence){.name = "nobody", .start = 7, .increment = 1};
    supply.nsequences = 1;
    mono += 1000;
    gives("nobody", 7); /* whoever comes then waits for what is so by now */
}

static void a_look_spends_nothing(void **state)
{
    (void)state;
    ticket = 0;
    ask = (struct generator_ask){.now_ms = WALL, .mono_ms = mono, .n = 1, .ticket = &ticket};
    assert_int_equal(sequence_kind.look(entry("orders")->generator, &ask), SEQUENCE_WAITS);
    fake_supply_serve(&supply, mono);
    assert_int_equal(sequence_kind.look(entry("orders")->generator, &ask), 0);
    assert_int_equal(sequence_kind.look(entry("nobody")->generator, &ask), SEQUENCE_WAITS);
    fake_supply_serve(&supply, mono);
    assert_int_equal(sequence_kind.look(entry("nobody")->generator, &ask), SEQUENCE_UNKNOWN);
    assert_int_equal(sequence_kind.look(entry("a/b")->generator, &ask), SEQUENCE_UNKNOWN);
    gives("orders", 1);
}

/* ---- who makes room ---------------------------------------------------------------------------
 */

static const char *sub(unsigned i)
{
    static char text[32];
    (void)snprintf(text, sizeof text, "orders:s%u", i);
    return text;
}

static void names_that_nobody_made_close_no_others(void **state)
{
    (void)state;
    char text[32];
    for (unsigned i = 0; i < 10; i++)
        gives(sub(i), 1);
    for (unsigned i = 0; i < 500; i++) {
        (void)snprintf(text, sizeof text, "none%u", i);
        refuses(text, SEQUENCE_UNKNOWN, "");
    }
    for (unsigned i = 0; i < 10; i++)
        gives(sub(i), 2);
    assert_int_equal(supply.opens, 510);
    assert_true(table.nunknown <= 4);
    assert_int_equal(table.evicted, 0);
}

static void who_was_not_used_makes_room(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        gives(sub(i), 1);
        assert_int_equal(take(sub(0), 1), 0); /* used again and again: it stays */
    }
    assert_true(got.first == 61);
    assert_true(table.open <= 16);
    assert_int_equal(supply.closes, supply.forgets);
    assert_true(supply.closes >= 44);
}

static void who_waits_is_not_closed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 12; i++)
        gives(sub(i), 1);
    assert_int_equal(ask_of(entry(sub(0))->generator, 500, false), SEQUENCE_SPENT);
    fake_supply_hear(&supply);
    const struct sequence_generator *s = place_of(sub(0));
    supply.place[s - table.place].want.count = 0; /* nobody answers */
    for (unsigned i = 12; i < 60; i++)
        gives(sub(i), 1);
    assert_true(table.evicted > 40);
    assert_ptr_equal(place_of(sub(0)), s);
    assert_int_equal(s->state, SEQUENCE_OPEN);
}

/* Until it is closed there, numbers may come that are its own. */
static void a_place_is_another_ones_once_it_is_closed(void **state)
{
    (void)state;
    int64_t number;
    supply.closes_late = true;
    for (unsigned i = 0; i < 12; i++)
        gives(sub(i), 1);
    gives(sub(12), 1); /* more than there may be: one is closed */
    uint32_t at = 0;
    while (table.place[at].state != SEQUENCE_CLOSING)
        at++;
    struct generator *g = &table.place[at].base;
    struct sequence_name old = table.place[at].of;
    assert_false(sequence_generator_more(g, &number));
    assert_int_equal(ask_of(g, 1, false), SEQUENCE_FULL);
    sequence_table_grant(&table, at, mono,
                         &(struct sequence_block){1, 1, 100, 9, &supply.mark[4000]});
    assert_false(sequence_generator_more(g, &number));
    for (unsigned i = 20; i < 23; i++)
        gives(sub(i), 1);
    (void)ask_of(entry(sub(30))->generator, 1, false);
    assert_int_equal(cause, SEQUENCE_FULL);
    assert_string_equal(table.place[at].of.sub, old.sub);
    fake_supply_close(&supply);
    gives(sub(30), 1);
    assert_string_equal(table.place[at].of.sub, "s30");
}

/* ---- what the coordinator says ----------------------------------------------------------------
 */

static void a_coordinator_that_is_away_is_waited_for(void **state)
{
    (void)state;
    (void)ask_of(entry("orders")->generator, 1, false);
    fake_supply_serve(&supply, mono);
    supply.how = SEQUENCE_AWAY;
    for (int64_t i = 1; i <= 10; i++) /* what is in hand goes on */
        gives("orders", i);
    fake_supply_serve(&supply, mono);
    assert_int_equal(ask_of(entry("orders")->generator, 1, false), SEQUENCE_AWAY);
    assert_true(ask.until_ms == WALL + 1000);
    assert_true(sequence_kind.causes[cause].waits);
    supply.how = 0;
    gives("orders", 11);
}

static void numbers_that_are_revoked_are_not_given_out(void **state)
{
    (void)state;
    gives("orders", 1);
    struct sequence_block *b = &place_of("orders")->numbers.block[0];
    sequence_table_revoke(&table, 0, b->handle, b->lo + 1);
    gives("orders", 2);
    gives("orders", 11);
}

static void after_a_stop_nothing_in_hand_is_given_out(void **state)
{
    (void)state;
    int64_t number;
    gives("orders", 1);
    sequence_table_let_go(&table);
    assert_false(sequence_generator_more(entry("orders")->generator, &number));
    assert_int_equal(ask_of(entry("orders")->generator, 1, false), SEQUENCE_SPENT);
}

static void a_dropped_one_is_missed_and_may_come_again(void **state)
{
    (void)state;
    gives("orders", 1);
    for (uint32_t handle = 1; handle <= supply.handle; handle++)
        sequence_table_revoke(&table, 0, handle, -1);
    sequence_table_refuse(
        &table, 0, &(struct sequence_refusal){SEQUENCE_DROPPED, true, mono + 1000, 1}, false);
    assert_int_equal(table.nunknown, 1);
    assert_int_equal(ask_of(entry("orders")->generator, 1, false), SEQUENCE_DROPPED);
    supply.place[0].known = false;
    mono += 1000;
    assert_int_equal(take("orders", 1), 0);
    assert_int_equal(table.nunknown, 0);
    assert_true(got.first > 20); /* nothing of before */
}

static void what_a_page_had_keeps_its_place(void **state)
{
    (void)state;
    const struct sequence_name of = {"orders", "acme", ""}, other = {"orders", "", ""};
    static uint64_t mark;
    assert_true(sequence_table_adopt(&table, 5, &of));
    supply.place[5] = (struct fake_place){.open = true, .of = of};
    assert_false(sequence_table_adopt(&table, 6, &of));
    assert_false(sequence_table_adopt(&table, 16, &other));
    assert_int_equal(ask_of(entry("orders:acme")->generator, 1, false), SEQUENCE_WAITS);
    sequence_table_known(&table, 5, &(struct sequence_facts){.start = 1, .increment = 1});
    sequence_table_grant(&table, 5, mono, &(struct sequence_block){0, 7, 99, 1, &mark});
    assert_int_equal(ask_of(entry("orders:acme")->generator, 1, false), 0);
    assert_true(got.first == 8);
    gives("orders", 1); /* has another one */
    assert_true(place_of("orders") != place_of("orders:acme"));
}

/* ---- strict -----------------------------------------------------------------------------------
 */

static unsigned strict_ask(int64_t *t)
{
    ticket = *t;
    (void)ask_of(entry("strict")->generator, 1, false);
    *t = ticket;
    return cause;
}

static void who_comes_later_has_no_number_of_an_earlier_call(void **state)
{
    (void)state;
    int64_t one = 0, two = 0, three = 0;
    (void)strict_ask(&one);
    fake_supply_serve(&supply, mono); /* is known, and strict */
    assert_int_equal(strict_ask(&one), SEQUENCE_WAITS);
    assert_int_equal(strict_ask(&two), SEQUENCE_WAITS);
    assert_true(one > 0 && two > one);
    fake_supply_hear(&supply); /* the call goes out */
    assert_int_equal(strict_ask(&three), SEQUENCE_WAITS);
    fake_supply_answer(&supply, mono);
    assert_int_equal(strict_ask(&three), SEQUENCE_WAITS);
    assert_int_equal(strict_ask(&two), 0);
    assert_int_equal(got.first, 1);
    assert_int_equal(strict_ask(&one), 0);
    assert_int_equal(got.first, 2);
    fake_supply_serve(&supply, mono);
    assert_int_equal(strict_ask(&three), 0);
    assert_int_equal(got.first, 3);
}

static void what_a_strict_one_wants_adds_up_while_a_call_stands(void **state)
{
    (void)state;
    struct sequence_event e;
    int64_t t[4] = {0};
    (void)strict_ask(&t[0]);
    fake_supply_serve(&supply, mono);
    (void)strict_ask(&t[0]);
    assert_true(sequence_table_event(&table, &e) && e.want.count == 1);
    assert_true(strict_ask(&t[1]) && strict_ask(&t[2]) && !sequence_table_event(&table, &e));
    sequence_table_own(&table, 0, 0, 0, t[0], false);
    assert_true(sequence_table_event(&table, &e) && e.want.count == 2);
    sequence_table_own(&table, 0, 1, 2, t[2], false);
    table.handing_out = true;
    assert_true(strict_ask(&t[3]) && !sequence_table_event(&table, &e)); /* two blocks are there */
    assert_true(strict_ask(&t[0]) == 0 && got.first == 1);
    assert_true(sequence_table_event(&table, &e) && e.want.count == 1);
    t[0] = 0, mono += 1000; /* whatever became of that call */
    assert_true(strict_ask(&t[0]) && sequence_table_event(&table, &e) && e.want.count == 1);
}

/* It keeps its ticket: another would be of a later call each time, for ever. */
static void who_asks_again_has_the_same_ticket(void **state)
{
    (void)state;
    int64_t one = 0;
    (void)strict_ask(&one);
    fake_supply_serve(&supply, mono);
    (void)strict_ask(&one);
    int64_t first = one;
    for (int i = 0; i < 5; i++)
        assert_int_equal(strict_ask(&one), SEQUENCE_WAITS);
    assert_true(one == first);
    assert_true(place_of("strict")->numbers.ask.count == 1);
    assert_int_equal(place_of("strict")->parked, 1);
}

/* A ticket of another counter, or of what had the place before, is none here. */
static void tickets_are_of_one_counter(void **state)
{
    (void)state;
    int64_t one = 0, again;
    (void)strict_ask(&one);
    fake_supply_serve(&supply, mono);
    (void)strict_ask(&one);
    fake_supply_serve(&supply, mono);
    again = one;
    table.place[0].numbers.asked = false;
    table.hand = 0;
    gives("orders", 1);
    while (table.place[0].state == SEQUENCE_OPEN && table.evicted < 40)
        gives(sub((unsigned)table.evicted + 100 * (unsigned)supply.opens), 1);
    assert_int_equal(strict_ask(&again), SEQUENCE_WAITS);
    fake_supply_serve(&supply, mono);
    assert_int_equal(strict_ask(&again), SEQUENCE_WAITS);
    assert_true(again > one);
}

/* ---- periods ----------------------------------------------------------------------------------
 */

#define NOON (100 * FAKE_DAY_MS + FAKE_DAY_MS / 2)

static void at_time(int64_t ms)
{
    mono += ms - supply.time_ms;
    supply.time_ms = ms;
    sequence_table_time(&table, ms, mono);
}

static void the_coordinators_time_decides_the_period(void **state)
{
    (void)state;
    supply.time_ms = NOON; /* the wall clock here is decades ahead */
    for (int64_t i = 1; i <= 300; i++)
        gives("daily", i);
    struct sequence_generator *head = place_of("daily");
    assert_ptr_equal(head->base.kind, &sequence_period_kind);
    assert_string_equal(table.place[head->present - 1].of.period, "d100");
    int64_t size = table.place[head->present - 1].numbers.size;
    at_time(NOON + FAKE_DAY_MS);
    gives("daily", 1);
    assert_string_equal(table.place[head->present - 1].of.period, "d101");
    assert_true(table.place[head->present - 1].numbers.size >= size / 2 && supply.closes == 1);
}

static void its_numbers_are_not_given_out_inline(void **state)
{
    (void)state;
    int64_t number;
    supply.time_ms = NOON;
    gives("daily", 1);
    assert_false(sequence_generator_more(entry("daily")->generator, &number));
}

static void without_the_coordinators_time_there_is_no_period(void **state)
{
    (void)state;
    assert_int_equal(take("daily", 1), SEQUENCE_UNTIMED);
    assert_int_equal(sequence_kind.causes[SEQUENCE_UNTIMED].status, ISSUE_LOADING);
    supply.time_ms = NOON;
    sequence_table_time(&table, NOON, mono);
    gives("daily", 1);
}

/* The coordinator is away: whoever was found says what periods there are. */
static void after_a_start_what_was_found_tells_the_period(void **state)
{
    (void)state;
    const struct sequence_name of = {"daily", "", "d100"};
    static uint64_t mark;
    assert_true(sequence_table_adopt(&table, 2, &of));
    supply.place[2] = (struct fake_place){.open = true, .of = of};
    sequence_table_known(&table, 2,
                         &(struct sequence_facts){.start = 1, .increment = 1, .reset = FAKE_DAILY});
    sequence_table_grant(&table, 2, mono, &(struct sequence_block){0, 7, 99, 1, &mark});
    assert_int_equal(ask_of(entry("daily")->generator, 1, false), SEQUENCE_UNTIMED);
    sequence_table_time(&table, NOON, mono); /* as the page has it */
    assert_int_equal(ask_of(entry("daily")->generator, 1, false), 0);
    assert_int_equal(got.first, 8);
    assert_int_equal(place_of("daily")->present, 3);
}

static void nobody_waits_when_a_period_begins(void **state)
{
    (void)state;
    supply.time_ms = NOON;
    for (int64_t i = 1; i <= 300; i++)
        gives("daily", i);
    int64_t size = table.place[place_of("daily")->present - 1].numbers.size;
    at_time(101 * FAKE_DAY_MS - 7200001);
    gives("daily", 301);
    assert_int_equal(place_of("daily")->next, 0);
    at_time(101 * FAKE_DAY_MS - 7200000);
    gives("daily", 302);
    const struct sequence_generator *next = &table.place[place_of("daily")->next - 1];
    assert_string_equal(next->of.period, "d101");
    assert_true(next->numbers.nblocks == 1 && next->numbers.size >= size);
    at_time(101 * FAKE_DAY_MS - 1);
    gives("daily", 303);
    at_time(101 * FAKE_DAY_MS);
    assert_int_equal(ask_of(entry("daily")->generator, 1, false), 0);
    assert_true(got.first == 1 && place_of("daily")->next == 0);
}

/* The next one's tickets begin where those of all were when it was opened. */
static void who_waits_as_a_period_begins_arrives_in_it(void **state)
{
    (void)state;
    supply.time_ms = 101 * FAKE_DAY_MS - 60000;
    for (int64_t i = 1; i <= 5; i++)
        gives("nightly", i);
    assert_true(place_of("nightly")->next > 0);
    (void)ask_of(entry("nightly")->generator, 1, false);
    assert_int_equal(cause, SEQUENCE_SPENT);
    fake_supply_hear(&supply); /* the answer comes when the day is over */
    at_time(101 * FAKE_DAY_MS);
    assert_int_equal(ask_of(entry("nightly")->generator, 1, false), SEQUENCE_WAITS);
    fake_supply_answer(&supply, mono);
    fake_supply_serve(&supply, mono);
    assert_int_equal(ask_of(entry("nightly")->generator, 1, false), 0);
    assert_int_equal(got.first, 1);
}

static void a_clock_that_is_corrected_does_not_turn_the_day_back(void **state)
{
    (void)state;
    supply.time_ms = 101 * FAKE_DAY_MS - 60000;
    gives("daily", 1);
    gives("daily", 2);
    at_time(101 * FAKE_DAY_MS + 5);
    gives("daily", 1);
    sequence_table_time(&table, supply.time_ms = 101 * FAKE_DAY_MS - 900, mono);
    gives("daily", 2);
    supply.time_ms = NOON - FAKE_DAY_MS; /* it was wrong by more than that */
    sequence_table_time(&table, supply.time_ms, mono);
    gives("daily", 1);
    assert_string_equal(table.place[place_of("daily")->present - 1].of.period, "d99");
}

static void a_period_that_is_named_is_had_once_it_has_begun(void **state)
{
    (void)state;
    supply.time_ms = NOON;
    gives("daily", 1);
    struct names_entry *e = sequence_table_entry(&table.base, SPAN("daily"), SPAN("d100"));
    assert_int_equal(ask_of(e->generator, 1, false), 0);
    assert_int_equal(got.first, 2);
    e = sequence_table_entry(&table.base, SPAN("daily"), SPAN("d99"));
    assert_int_equal(ask_of(e->generator, 1, false), SEQUENCE_WAITS);
    fake_supply_serve(&supply, mono);
    e = sequence_table_entry(&table.base, SPAN("daily"), SPAN("d99"));
    assert_int_equal(ask_of(e->generator, 1, false), 0);
    assert_int_equal(got.first, 1);
    e = sequence_table_entry(&table.base, SPAN("daily"), SPAN("d101"));
    (void)ask_of(e->generator, 1, false);
    fake_supply_serve(&supply, mono);
    e = sequence_table_entry(&table.base, SPAN("daily"), SPAN("d101"));
    assert_int_equal(ask_of(e->generator, 1, false), SEQUENCE_LATER);
    assert_true(ask.until_ms == WALL + FAKE_DAY_MS / 2);
    e = sequence_table_entry(&table.base, SPAN("orders"), SPAN("d101"));
    (void)ask_of(e->generator, 1, false);
    fake_supply_serve(&supply, mono);
    e = sequence_table_entry(&table.base, SPAN("orders"), SPAN("d101"));
    assert_int_equal(ask_of(e->generator, 1, false), SEQUENCE_NO_PERIOD);
}

static void a_sequence_that_has_periods_no_more_is_asked_about_anew(void **state)
{
    (void)state;
    static const struct fake_sequence anew = {.name = "daily", .start = 50, .increment = 1};
    supply.time_ms = NOON;
    gives("daily", 1);
    supply.sequence = &anew;
    supply.nsequences = 1;
    memset(supply.counter, 0, sizeof supply.counter);
    supply.ncounters = 0;
    at_time(NOON + FAKE_DAY_MS); /* the next block is of a day that there is not */
    gives("daily", 50);
    gives("daily", 51);
    assert_ptr_equal(place_of("daily")->base.kind, &sequence_kind);
}

static void what_is_told_is_of_the_present_period(void **state)
{
    (void)state;
    supply.time_ms = NOON;
    gives("small", 1);
    gives("small", 2);
    refuses("small", SEQUENCE_USED_UP, "used up: max 2 was reached");
    const struct generator *g = entry("small")->generator;
    assert_int_equal(g->kind->figures[0].value(g, WALL), 2);
}

/* With places as few as can be: heads, their days, and what else is asked for. */
static void periods_make_room_like_others(void **state)
{
    (void)state;
    end(state);
    (void)begin_with(4);
    int64_t latest = 0;
    supply.time_ms = NOON;
    for (unsigned i = 0; i < 60; i++) {
        at_time(NOON + i * FAKE_DAY_MS / 3);
        assert_int_equal(take(sub(i), 1), 0);
        assert_int_equal(take("daily", 1), 0);
        latest = got.first;
        assert_int_equal(take("daily", 1), 0);
        assert_true(got.first == latest + 1);
    }
    assert_true(table.open <= 4);
}

/* ---- what is shown ----------------------------------------------------------------------------
 */

static const struct sequence_family *family(const char *name)
{
    for (const struct generator *g = &table.base; g; g = g->after)
        if (g->label && strcmp(g->label, name) == 0)
            return (const struct sequence_family *)g;
    return NULL;
}

static int64_t figure(const struct sequence_family *f, const char *metric)
{
    for (unsigned i = 0; f && i < f->base.kind->nfigures; i++) {
        const struct generator_figure *g = &f->base.kind->figures[i];
        if (g->metric && strcmp(g->metric, metric) == 0)
            return g->value(&f->base, WALL);
    }
    return -1;
}

static void what_is_shown_never_falls_and_has_few_names(void **state)
{
    (void)state;
    static struct fake_sequence many[100];
    static char name[100][8];
    for (unsigned i = 0; i < 30; i++)
        gives(sub(i), 1); /* some are closed meanwhile */
    assert_int_equal(figure(family("orders"), "sidflake_sequence_given"), 30);
    assert_true(figure(family("orders"), "sidflake_sequence_left") > 0);
    assert_null(family("nobody"));
    refuses("nobody", SEQUENCE_UNKNOWN, "");
    assert_null(family("nobody"));
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name[i], sizeof name[i], "n%u", i);
        many[i] = (struct fake_sequence){.name = name[i], .start = 1, .increment = 1};
    }
    supply.sequence = many;
    supply.nsequences = 100;
    for (unsigned i = 0; i < 100; i++)
        gives(name[i], 1);
    unsigned n = 0;
    for (const struct generator *g = table.base.after; g; g = g->after)
        n++;
    assert_int_equal(n, SEQUENCE_FAMILIES + 1);
    assert_int_equal(figure(family("other"), "sidflake_sequence_given"), 100 - 63);
    assert_int_equal(figure(family("n3"), "sidflake_sequence_given"), 1);
}

static void the_counter_that_ends_first_is_shown(void **state)
{
    static const char metric[] = "sidflake_sequence_until_max";
    (void)state;
    gives(sub(0), 1);
    gives(sub(1), 1);
    assert_true(figure(family("orders"), metric) == SEQUENCE_TOP);
    uint32_t a = (uint32_t)(place_of(sub(0)) - table.place);
    uint32_t b = (uint32_t)(place_of(sub(1)) - table.place);
    sequence_table_beyond(&table, a, 70);
    assert_int_equal(figure(family("orders"), metric), 70);
    sequence_table_beyond(&table, b, 0);
    assert_int_equal(figure(family("orders"), metric), 0);
    sequence_table_beyond(&table, b, -1);
    assert_int_equal(figure(family("orders"), metric), 70);
    sequence_table_beyond(&table, table.options.counters, 5); /* too late: not open */
}

static void waits_and_refusals_are_counted_once(void **state)
{
    (void)state;
    gives("few", 1);
    for (int i = 0; i < 3; i++)
        refuses("few:sub", SEQUENCE_NO_SUBS, "has no subs");
    const struct sequence_generator *s = place_of("few:sub");
    assert_int_equal(s->refused, 3);
    assert_int_equal(s->parked, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_name_is_asked_about_and_then_counts),
        TEST(what_was_given_out_stands_in_the_mark_before),
        TEST(a_million_in_a_row_are_one_grant),
        TEST(used_up_says_at_what),
        TEST(too_many_in_a_row_leaves_the_others),
        TEST(who_only_looks_takes_no_memory),
        TEST(names_are_of_a_form),
        TEST(a_name_that_nobody_made_is_missed),
        TEST(a_look_spends_nothing),
        TEST(names_that_nobody_made_close_no_others),
        TEST(who_was_not_used_makes_room),
        TEST(who_waits_is_not_closed),
        TEST(a_place_is_another_ones_once_it_is_closed),
        TEST(a_coordinator_that_is_away_is_waited_for),
        TEST(numbers_that_are_revoked_are_not_given_out),
        TEST(after_a_stop_nothing_in_hand_is_given_out),
        TEST(a_dropped_one_is_missed_and_may_come_again),
        TEST(what_a_page_had_keeps_its_place),
        TEST(who_comes_later_has_no_number_of_an_earlier_call),
        TEST(what_a_strict_one_wants_adds_up_while_a_call_stands),
        TEST(who_asks_again_has_the_same_ticket),
        TEST(tickets_are_of_one_counter),
        TEST(the_coordinators_time_decides_the_period),
        TEST(its_numbers_are_not_given_out_inline),
        TEST(without_the_coordinators_time_there_is_no_period),
        TEST(after_a_start_what_was_found_tells_the_period),
        TEST(nobody_waits_when_a_period_begins),
        TEST(who_waits_as_a_period_begins_arrives_in_it),
        TEST(a_clock_that_is_corrected_does_not_turn_the_day_back),
        TEST(a_period_that_is_named_is_had_once_it_has_begun),
        TEST(a_sequence_that_has_periods_no_more_is_asked_about_anew),
        TEST(what_is_told_is_of_the_present_period),
        TEST(periods_make_room_like_others),
        TEST(what_is_shown_never_falls_and_has_few_names),
        TEST(the_counter_that_ends_first_is_shown),
        TEST(waits_and_refusals_are_counted_once),
    };
    return cmocka_run_group_tests_name("ids/sequence_table", tests, NULL, NULL);
}
