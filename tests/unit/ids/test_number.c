/* Numbers by template: what is looked at before one is spent, and what is written. */
#include "ids/number_generator.h"

#include "coord/period.h"
#include "support/fake_supply.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MONO INT64_C(5000)
#define NOON INT64_C(1795348800000) /* 2026-11-22 12:00 UTC */

_Static_assert(FAKE_DAILY == PERIOD_DAY, "the days of the store are days");

/* ---- the sequences ----------------------------------------------------------------------------
 */

enum {
    QJ,
    POLICY,
    TENANT,
    DAILY,
    AT,
    FEW,
    STRICT,
    THREES,
    LATE,
    PLAIN,
    DASHED,
    SEQUENCES
};

static const char *const forms[SEQUENCES] = {
    [QJ] = "QJ@{seq,width=6}",
    [POLICY] = "@{arg,area,width=3,chars=0-9}-@{arg,unit,width=4,default=0000}-@{seq}",
    [TENANT] = "@{sub,width=1..9,chars=a-z}/@{seq}",
    [DAILY] = "@{date,%Y%m%d}@{seq,width=5}",
    [AT] = "@{worker,width=5}.@{seq}",
    [FEW] = "F@{seq,width=1}",
    [STRICT] = "S@{seq,width=1}",
    [THREES] = "T@{seq,width=1}",
    [LATE] = "L@{seq}",
};

static struct template template[SEQUENCES];

static struct fake_sequence sequences[SEQUENCES] = {
    [QJ] = {.name = "qj", .start = 1, .increment = 1},
    [POLICY] = {.name = "policy", .start = 1, .increment = 1},
    [TENANT] = {.name = "tenant", .start = 1, .increment = 1, .subs = true},
    [DAILY] = {.name = "daily", .start = 1, .increment = 1, .daily = true},
    [AT] = {.name = "at", .start = 1, .increment = 1},
    [FEW] = {.name = "few", .start = 1, .increment = 1},
    [STRICT] = {.name = "strict", .start = 9, .increment = 1, .strict = true},
    [THREES] = {.name = "threes", .start = 2, .increment = 3},
    [LATE] = {.name = "late", .start = 1, .increment = 1, .late = true},
    [PLAIN] = {.name = "plain", .start = 1, .increment = 1},
    [DASHED] = {.name = "--plain", .start = 1, .increment = 1},
};

static void form(int i)
{
    const struct template_frame frame = {.name = span_str(sequences[i].name),
                                         .reset =
                                             sequences[i].daily ? TEMPLATE_DAY : TEMPLATE_NEVER,
                                         .subs = sequences[i].subs,
                                         .first = sequences[i].start,
                                         .last = TEMPLATE_NUMBER_MAX};
    struct err e;
    if (template_parse(&template[i], span_str(forms[i]), &frame, &e))
        fail_msg("%s: %s", forms[i], e.text);
    sequences[i].template = &template[i];
}

/* ---- days -------------------------------------------------------------------------------------
 */

static bool label(int reset, int offset_min, int64_t ms, char out[SEQUENCE_LABEL_MAX])
{
    return period_label((enum period_reset)reset, offset_min, ms, out);
}

static bool find(int reset, int offset_min, struct span text, struct sequence_period *out)
{
    struct period p;
    if (!period_find((enum period_reset)reset, offset_min, text, &p))
        return false;
    *out = (struct sequence_period){p.opens_ms, p.begins_ms, p.ends_ms};
    return true;
}

static bool is_label(struct span text)
{
    struct period p;
    return period_find(PERIOD_DAY, 0, text, &p);
}

static const struct sequence_calendar calendar = {label, find, is_label};

/* ---- who asks ---------------------------------------------------------------------------------
 */

static bool is_held, is_active;

static bool worker(const struct generator *g, unsigned i, struct generator_worker *out)
{
    (void)g;
    *out = (struct generator_worker){.worker = 417, .active = is_active};
    return is_held && i == 0;
}

static const struct generator_kind ids_kind = {.name = "id", .worker = worker};
static const struct generator ids = {.kind = &ids_kind};

static struct sequence_table table;
static struct number_table numbers;
static struct fake_supply supply;
static struct seeded rng;
static struct generator_run got;
static struct generator_ask ask;
static const struct generator *by;
static unsigned cause;
static int64_t ticket;

static int begin(void **state)
{
    (void)state;
    fake_supply_table(&table, 32);
    table.options.calendar = &calendar;
    rng = seeded_of(1);
    number_table_init(&numbers, &table, &ids, &rng.rng, "no:");
    supply = (struct fake_supply){
        .table = &table, .sequence = sequences, .nsequences = SEQUENCES, .time_ms = NOON};
    sequence_table_time(&table, NOON, MONO);
    is_held = is_active = true;
    ticket = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    number_table_clear(&numbers);
    sequence_table_clear(&table);
    return 0;
}

static struct generator *found(const char *name, const char *part)
{
    return number_table_kind.entry(&numbers.base, span_str(name), span_str(part))->generator;
}

static unsigned once(const char *name, const char *part, uint32_t n)
{
    struct generator *g = found(name, part);
    ask = (struct generator_ask){
        .now_ms = NOON, .mono_ms = MONO, .n = n, .ticket = &ticket, .until_ms = INT64_MAX};
    got = (struct generator_run){0};
    by = g;
    return cause = g->kind->some(g, &ask, &got);
}

/* One request, asked again as long as that helps. */
static unsigned take_of(const char *name, const char *part, uint32_t n)
{
    for (int i = 0; i < 5 && once(name, part, n) && by->kind->causes[cause].waits; i++)
        fake_supply_serve(&supply, MONO);
    fake_supply_serve(&supply, MONO);
    ticket = 0;
    return cause;
}

static void gives_of(const char *name, const char *part, const char *text)
{
    char out[GENERATOR_TEXT_MAX];
    assert_int_equal(take_of(name, part, 1), 0);
    size_t n = by->kind->write(by, got.first, NOON, out);
    if (n != strlen(text) || memcmp(out, text, n) != 0)
        fail_msg("expected %s, found %.*s", text, (int)n, out);
}

static void gives(const char *name, const char *text)
{
    gives_of(name, "", text);
}

static void refuses(const char *name, unsigned why, enum issue_status status, const char *text)
{
    struct refusal r;
    assert_int_equal(take_of(name, "", 1), why);
    r = (struct refusal){by, cause};
    assert_int_equal(refusal_status(r), status);
    if (!strstr(refusal_text(r), text))
        fail_msg("expected \"%s\" in \"%s\"", text, refusal_text(r));
}

/* The same counter's bare numbers. */
static int64_t bare(const char *name)
{
    struct generator *g =
        sequence_table_entry(&table.base, span_str(name), span_of("", 0))->generator;
    ask = (struct generator_ask){
        .now_ms = NOON, .mono_ms = MONO, .n = 1, .ticket = &ticket, .until_ms = INT64_MAX};
    for (int i = 0; i < 3 && g->kind->next(g, &ask, &got); i++) {
        fake_supply_serve(&supply, MONO);
        g = sequence_table_entry(&table.base, span_str(name), span_of("", 0))->generator;
    }
    ticket = 0;
    return got.first;
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void one_counter_has_both(void **state)
{
    (void)state;
    gives("qj", "QJ000001");
    assert_int_equal(bare("qj"), 2);
    gives("qj", "QJ000003");
    gives("qj?date=", "QJ000004"); /* no date */
    assert_int_equal(found("qj", "")->kind->run(found("qj", ""), 100), 1);
    gives("tenant:acme", "acme/1");
    gives("tenant:zoo", "zoo/1");
    gives("tenant:acme", "acme/2");
}

static void arguments_are_looked_at_before(void **state)
{
    (void)state;
    gives("policy?area=010&unit=6541", "010-6541-1");
    for (int i = 0; i < 3; i++) {
        refuses("policy", NUMBER_WRONG, ISSUE_WRONG, "area");
        refuses("policy?area=01", NUMBER_WRONG, ISSUE_WRONG, "area");
        refuses("policy?area=010&x=1", NUMBER_WRONG, ISSUE_WRONG, "\"x\"");
        refuses("tenant", NUMBER_WRONG, ISSUE_WRONG, "sub");
        refuses("tenant:ACME", NUMBER_WRONG, ISSUE_WRONG, "sub");
    }
    gives("policy?area=010", "010-0000-2");
    static const char *const others[] = {"n", "block", "sub"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char key[64], why[64];
        (void)snprintf(key, sizeof key, "policy?area=011&%s=1", others[i]);
        (void)snprintf(why, sizeof why, "template, or date=, found \"%s\"", others[i]);
        refuses(key, NUMBER_WRONG, ISSUE_WRONG, why);
    }
    refuses("qj?date=&date=", NUMBER_WRONG, ISSUE_WRONG, "date: expected once");
    gives("policy?area=011", "011-0000-3");
    refuses("policy", NUMBER_WRONG, ISSUE_WRONG, "area"); /* none of those before stays */
}

static void one_without_a_template_is_refused(void **state)
{
    (void)state;
    refuses("plain", NUMBER_PLAIN, ISSUE_WRONG, "plain has no template");
    assert_int_equal(bare("plain"), 1);
    refuses("none", SEQUENCE_UNKNOWN, ISSUE_MISS, "sidflakectl seq create none makes it");
    refuses("-n", SEQUENCE_UNKNOWN, ISSUE_MISS, "sidflakectl seq create -- -n makes it");
    numbers.sequences->options.forgets = true;
    refuses("none", SEQUENCE_UNKNOWN, ISSUE_MISS,
            "create none --max-rate R, or --on-loss in place of --max-rate, makes it");
    refuses("-n", SEQUENCE_UNKNOWN, ISSUE_MISS, "seq create --max-rate R -- -n, or --on-loss");
    refuses("--plain", NUMBER_PLAIN, ISSUE_WRONG, "seq alter --template TEXT -- --plain");
    refuses("a/b", SEQUENCE_NAME, ISSUE_WRONG, "no:NAME");
    refuses("qj:acme", SEQUENCE_NO_SUBS, ISSUE_WRONG, "subs");
}

/* At a start only numbers are known. */
static void whether_there_is_a_template_is_asked_for(void **state)
{
    (void)state;
    assert_int_equal(bare("late"), 1);
    const struct sequence_generator *late = numbers.sequences->place;
    uint64_t refused = late->refused, parked = late->parked;
    assert_int_equal(once("late", "", 1), NUMBER_UNFORMED);
    assert_true(late->refused == refused && late->parked == parked + 1); /* it waits */
    assert_int_equal(refusal_status((struct refusal){by, cause}), ISSUE_LOADING);
    assert_non_null(strstr(refusal_text((struct refusal){by, cause}), "not known yet"));
    assert_int_equal(once("late", "", 1), NUMBER_UNFORMED);
    assert_int_equal(supply.place[0].look, false);
    fake_supply_hear(&supply);
    assert_true(supply.place[0].look);
    fake_supply_answer(&supply, MONO);
    ticket = 0;
    assert_int_equal(once("late", "", 1), 0);
    assert_int_equal(got.first, 2);
    gives("late", "L3");
}

static void a_workerid_has_to_be_held(void **state)
{
    (void)state;
    is_active = false;
    refuses("at", NUMBER_HOMELESS, ISSUE_LOADING, "workerId");
    is_held = false;
    refuses("at", NUMBER_HOMELESS, ISSUE_LOADING, "workerId");
    is_held = is_active = true;
    gives("at", "00417.1");
    numbers.ids = NULL;
    refuses("at", NUMBER_HOMELESS, ISSUE_LOADING, "workerId");
}

static void what_is_too_wide_is_not_spent(void **state)
{
    (void)state;
    gives("few", "F1");
    assert_int_equal(take_of("few", "", 5), 0);
    assert_true(got.n >= 1 && got.n <= 5);
    while (got.first + got.n <= 9) {
        assert_int_equal(take_of("few", "", 50), 0);
        assert_true(got.first + got.n <= 10);
    }
    for (int i = 0; i < 3; i++)
        refuses("few", NUMBER_WIDE, ISSUE_NEVER, "takes numbers up to 9");
    assert_true(refusal_ends((struct refusal){by, cause}));
    assert_int_equal(bare("few"), 10); /* the counter goes on */
    gives("threes", "T2");
    assert_int_equal(take_of("threes", "", 9), 0);
    while (got.first + 3 * (got.n - 1) < 8)
        assert_int_equal(take_of("threes", "", 9), 0);
    assert_int_equal(got.first + 3 * (got.n - 1), 8);
    refuses("threes", NUMBER_WIDE, ISSUE_NEVER, "up to 9");
    assert_int_equal(bare("threes"), 11);
}

/* Though numbers are in hand, so that none is asked for. */
static void one_that_is_too_wide_learns_of_a_wider_template(void **state)
{
    static struct template wider;
    const struct template_frame frame = {
        .name = SPAN("few"), .first = 1, .last = TEMPLATE_NUMBER_MAX};
    struct err e;
    (void)state;
    gives("few", "F1");
    while (take_of("few", "", 50) == 0)
        ;
    assert_int_equal(cause, NUMBER_WIDE);
    assert_int_equal(template_parse(&wider, SPAN("G@{seq,width=3}"), &frame, &e), ERR_OK);
    sequences[FEW].template = &wider;
    refuses("few", NUMBER_WIDE, ISSUE_NEVER, "up to 9"); /* it was asked just now */
    refuses("few", NUMBER_WIDE, ISSUE_NEVER, "up to 9");
    ask.mono_ms = MONO + 1000;
    assert_int_equal(by->kind->some(found("few", ""), &ask, &got), NUMBER_WIDE);
    fake_supply_serve(&supply, MONO + 1000);
    ticket = 0;
    gives("few", "G010");
    sequences[FEW].template = &template[FEW];
}

/* A strict one's number is not known before. */
static void a_strict_one_has_no_text_that_is_too_wide(void **state)
{
    (void)state;
    gives("strict", "S9");
    refuses("strict", NUMBER_WIDE, ISSUE_NEVER, "up to 9");
    refuses("strict", NUMBER_WIDE, ISSUE_NEVER, "up to 9");
}

/* Nor has one of several. */
static void of_strict_ones_none_is_too_wide(void **state)
{
    (void)state;
    assert_int_equal(take_of("strict", "", 3), NUMBER_WIDE);
    assert_int_equal(got.first, 9);
    assert_int_equal(got.n, 3);
}

/* By the counter, whatever the clock says. */
static void the_date_is_the_periods(void **state)
{
    (void)state;
    gives("daily", "2026112200001");
    gives("daily?date=2017-03-04", "2017030400001");
    gives_of("daily?date=2017-03-04", "2017-03-05", "2017030500001");
}

/* Of one that is known again, at so many ms behind noon; "": it has to be asked for as any other.
 */
static void gives_again(struct generator *g, int64_t ms, const char *text)
{
    char out[GENERATOR_TEXT_MAX];
    int64_t number;
    size_t n = 0;
    if (number_kind.more(g, NOON, MONO + ms, &number))
        n = number_kind.write(g, number, NOON, out);
    if (n != strlen(text) || memcmp(out, text, n) != 0)
        fail_msg("%d ms behind noon: expected \"%s\", found \"%.*s\"", (int)ms, text, (int)n, out);
}

/* Numbers of the next day wait by then: nobody has to be asked as the day ends. */
static void known_again_it_has_the_text_of_the_day_that_is(void **state)
{
    const int64_t midnight = FAKE_DAY_MS / 2, before = midnight - 3600000;
    (void)state;
    gives("daily", "2026112200001");
    struct generator *g = found("daily", "");
    gives_again(g, 0, "2026112200002");
    gives_again(g, before, "2026112200003");
    supply.time_ms = NOON + before;
    fake_supply_serve(&supply, MONO + before);
    gives_again(g, midnight - 1, "2026112200004");
    gives_again(g, midnight, "2026112300001");
    gives_again(g, midnight - 1, "2026112300002"); /* a reading that is older */
    gives_again(g, 3 * midnight, "");
}

static void known_again_it_is_what_the_template_takes(void **state)
{
    (void)state;
    gives("at", "00417.1");
    struct generator *g = found("at", "");
    gives_again(g, 0, "00417.2");
    is_held = false;
    gives_again(g, 0, "");
    is_held = true;
    gives_again(g, 0, "00417.3"); /* none was spent on it */
    gives("policy?area=010", "010-0000-1");
    gives_again(found("policy?area=010", ""), 0, ""); /* what another has said is not his */
}

static enum err_code reads(const char *text, const char *name, const char *of, const char *said)
{
    struct generator_reading r = {.at = 0};
    char mem[400];
    struct buf why;
    buf_init(&why, mem, sizeof mem);
    enum err_code code = number_table_read(&numbers.base, span_str(text), span_str(name), &r, &why);
    buf_put_char(&why, '\0');
    if (of[0] && !span_eq(r.of, span_str(of)))
        fail_msg("%s: expected %s, found %.*s", text, of, (int)r.of.n, r.of.p);
    if (!strstr(mem, said))
        fail_msg("%s: expected \"%s\" in \"%s\"", text, said, mem);
    return code;
}

static void texts_are_read_by_the_templates_that_are_known(void **state)
{
    (void)state;
    assert_int_equal(reads("QJ000001", "", "", ""), ERR_NOT_FOUND);
    gives("qj", "QJ000001");
    gives("few", "F1");
    assert_int_equal(reads("QJ000001", "", "qj", ""), ERR_OK);
    assert_int_equal(reads("F1", "", "few", ""), ERR_OK);
    assert_int_equal(reads("F1", "few", "few", ""), ERR_OK);
    assert_int_equal(reads("F1", "qj", "qj", "no number of the sequence qj: expected \"QJ\""),
                     ERR_CORRUPT);
    assert_int_equal(reads("F1", "policy", "", ""), ERR_NOT_FOUND);
}

static int64_t until_width(const struct generator *g)
{
    for (unsigned i = 0; i < g->kind->nfigures; i++)
        if (strcmp(g->kind->figures[i].member, "until_width") == 0)
            return g->kind->figures[i].value(g, NOON);
    return -1;
}

static void what_is_shown_is_the_sequences(void **state)
{
    struct generator_counts c;
    (void)state;
    gives("few", "F1");
    struct generator *g = found("few", "");
    g->kind->count(g, &c);
    assert_true(c.issued == 0 && c.counted == 0);
    assert_int_equal(until_width(g), 8);
}

static void what_is_told_of_one_is_of_its_present_period(void **state)
{
    char out[GENERATOR_TEXT_MAX];
    (void)state;
    gives("daily", "2026112200001");
    struct generator *g = found("daily", "");
    assert_int_equal(g->kind->look(g, &ask), 0);
    size_t n = g->kind->write(g, g->kind->example(g, NOON), NOON, out);
    assert_true(span_eq(span_of(out, n), SPAN("2026112200002")));
    assert_int_equal(until_width(g), 99998);
    gives("tenant:acme", "acme/1");
    assert_true(until_width(found("tenant:acme", "")) == GENERATOR_UNKNOWN);
    gives("daily", "2026112200002");
}

static bool warns(const struct generator *family, const char *text)
{
    char mem[200];
    struct buf b;
    bool any = false;
    for (unsigned i = 0; i < family->kind->nwarnings; i++) {
        buf_init(&b, mem, sizeof mem - 1);
        if (!family->kind->warnings[i].say(family, NOON, &b))
            continue;
        mem[b.n] = '\0';
        assert_string_equal(mem, text);
        any = true;
    }
    return any;
}

static void one_that_is_too_wide_is_warned_of(void **state)
{
    (void)state;
    gives("few", "F1");
    const struct generator *family = table.base.after;
    assert_false(warns(family, ""));
    assert_int_equal(take_of("few", "", 8), 0);
    assert_true(warns(family, "sequence few: used up: its template takes numbers up to 9: "
                              "sidflakectl seq alter few --template TEXT"));
    assert_int_equal(bare("few"), 10); /* the counter goes on */
    assert_true(warns(family, "sequence few: used up: its template takes numbers up to 9: "
                              "sidflakectl seq alter few --template TEXT"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_counter_has_both),
        TEST(arguments_are_looked_at_before),
        TEST(one_without_a_template_is_refused),
        TEST(whether_there_is_a_template_is_asked_for),
        TEST(a_workerid_has_to_be_held),
        TEST(what_is_too_wide_is_not_spent),
        TEST(one_that_is_too_wide_learns_of_a_wider_template),
        TEST(a_strict_one_has_no_text_that_is_too_wide),
        TEST(of_strict_ones_none_is_too_wide),
        TEST(the_date_is_the_periods),
        TEST(known_again_it_has_the_text_of_the_day_that_is),
        TEST(known_again_it_is_what_the_template_takes),
        TEST(texts_are_read_by_the_templates_that_are_known),
        TEST(what_is_shown_is_the_sequences),
        TEST(what_is_told_of_one_is_of_its_present_period),
        TEST(one_that_is_too_wide_is_warned_of),
    };
    for (int i = 0; i < SEQUENCES; i++)
        if (forms[i])
            form(i);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
