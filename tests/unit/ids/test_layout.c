#include "ids/layout.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void the_fields_stand_where_the_drawing_says(void **state)
{
    (void)state;
    assert_true(layout_compose(&layout_usual, 0, 0, 0) == 0);
    assert_true(layout_compose(&layout_usual, 0, 0, 1) == 1);
    assert_true(layout_compose(&layout_usual, 0, 1, 0) == UINT64_C(1) << 10);
    assert_true(layout_compose(&layout_usual, 1, 0, 0) == UINT64_C(1) << 25);
    assert_true(layout_compose(&layout_usual, 0, 0, LAYOUT_SEQUENCES - 1) == 0x3FF);
    assert_true(layout_compose(&layout_usual, 0, LAYOUT_WORKERS - 1, 0) == 0x1FFFC00);
    assert_true(layout_compose(&layout_usual, LAYOUT_TIME_MAX, LAYOUT_WORKERS - 1,
                               LAYOUT_SEQUENCES - 1) == (uint64_t)INT64_MAX);
}

static void what_is_composed_is_decomposed(void **state)
{
    (void)state;
    struct seeded rng = seeded_of(1);
    for (int i = 0; i < 100000; i++) {
        int64_t time = seeded_in(&rng, 0, LAYOUT_TIME_MAX);
        uint32_t worker = (uint32_t)seeded_in(&rng, 0, LAYOUT_WORKERS - 1);
        uint32_t sequence = (uint32_t)seeded_in(&rng, 0, LAYOUT_SEQUENCES - 1);
        struct layout_parts p;
        assert_true(layout_decompose(&layout_usual,
                                     layout_compose(&layout_usual, time, worker, sequence), &p));
        assert_true(p.time == time);
        assert_int_equal(p.worker, worker);
        assert_int_equal(p.sequence, sequence);
    }
}

static void ids_sort_by_time_then_worker_then_sequence(void **state)
{
    (void)state;
    assert_true(layout_compose(&layout_usual, 7, LAYOUT_WORKERS - 1, LAYOUT_SEQUENCES - 1) <
                layout_compose(&layout_usual, 8, 0, 0));
    assert_true(layout_compose(&layout_usual, 7, 4, LAYOUT_SEQUENCES - 1) <
                layout_compose(&layout_usual, 7, 5, 0));
    assert_true(layout_compose(&layout_usual, 7, 4, 5) < layout_compose(&layout_usual, 7, 4, 6));
}

static void a_number_with_bit_63_is_no_id(void **state)
{
    (void)state;
    struct layout_parts p;
    assert_false(layout_decompose(&layout_usual, UINT64_C(1) << 63, &p));
    assert_false(layout_decompose(&layout_usual, UINT64_MAX, &p));
    assert_true(layout_decompose(&layout_usual, INT64_MAX, &p));
}

static void the_default_epoch_lasts_until_2034(void **state)
{
    (void)state;
    /* 2026-01-01T00:00:00Z, and 2034-09-17T10:58:26.943Z. */
    assert_true(LAYOUT_EPOCH_DEFAULT_MS == INT64_C(1767225600) * 1000);
    assert_true(layout_end_ms(&layout_usual, LAYOUT_EPOCH_DEFAULT_MS) == INT64_C(2042103506943));
}

/* ---- other layouts ----------------------------------------------------------------------------
 */

static struct layout layout_of(const char *text)
{
    struct layout l;
    struct err e;
    if (layout_parse(span_str(text), &l, &e))
        fail_msg("\"%s\": %s", text, e.text);
    return l;
}

static void a_layout_has_one_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name, *fields;
    } cases[] = {
        {"sidflake", "38.15.10", "time:38 worker:15 sequence:10"},
        {"38.15.10", "38.15.10", "time:38 worker:15 sequence:10"},
        {"t38.w15.s10", "38.15.10", "time:38 worker:15 sequence:10"},
        {"zero:1 time:38,unit=1ms worker:15 sequence:10", "38.15.10",
         "time:38 worker:15 sequence:10"},
        {"twitter", "t41.w5+5.s12", "time:41 worker:5+5 sequence:12"},
        {"time:41 worker:10 sequence:12", "t41.w10.s12", "time:41 worker:10 sequence:12"},
        {"sonyflake", "t39*10.s8.w16", "time:39,unit=10ms sequence:8 worker:16"},
        {"baidu", "t28*1000.w22.s13", "time:28,unit=1000ms worker:22 sequence:13"},
        {"time:20,unit=7 zero:3 worker:9 zero:20 sequence:1 zero:2", "t20*7.z3.w9.z20.s1.z2",
         "time:20,unit=7ms zero:3 worker:9 zero:20 sequence:1 zero:2"},
        {"time:36,unit=1000ms zero:1 zero:2 sequence:1 worker:11+11", "t36*1000.z3.s1.w11+11",
         "time:36,unit=1000ms zero:3 sequence:1 worker:11+11"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char name[LAYOUT_NAME_MAX], text[LAYOUT_FIELDS_MAX];
        struct layout l = layout_of(cases[i].text);
        assert_string_equal(layout_name(name, &l), cases[i].name);
        assert_string_equal(layout_fields(text, &l), cases[i].fields);
        struct layout of_name = layout_of(name), of_fields = layout_of(text);
        assert_true(layout_equal(&of_name, &l) && layout_equal(&of_fields, &l));
    }
}

static void what_is_no_layout_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "found \"\""},
        {"twiter", "found \"twiter\""},
        {"Twitter", "found \"Twitter\""},
        {"41.10.12", "found \"41\""},
        {"time:41", "found no worker"},
        {"time:41 worker:10", "found no sequence"},
        {"worker:10 sequence:12", "found worker above it"},
        {"sequence:12 time:41 worker:10", "found sequence above it"},
        {"time:41 worker:10 sequence:13", "63 bits at most"},
        {"time:41 zero:1 worker:10 sequence:12", "63 bits at most"},
        {"time:41 time:2 worker:5 sequence:5", "time once"},
        {"time:41 worker:5 worker:5 sequence:5", "worker once"},
        {"time:0 worker:10 sequence:12", "time of 1 to 46 bits, found 0"},
        {"time:47 worker:5 sequence:5", "found 47"},
        {"time:46,unit=2ms worker:5 sequence:5", "2^46 ms at most"},
        {"time:37,unit=1s worker:5 sequence:5", "2^46 ms at most"},
        {"time:30 worker:23 sequence:5", "worker of 1 to 22 bits, found 23"},
        {"time:30 worker:12+11 sequence:5", "found 23"},
        {"time:30 worker:5 sequence:23", "sequence of 1 to 22 bits"},
        {"time:30 worker:5+0 sequence:5", "found \"worker:5+0\""},
        {"time:30 worker:+5 sequence:5", "found \"worker:+5\""},
        {"time:30 worker:5 sequence:5+5", "found \"sequence:5+5\""},
        {"time:30 worker:18446744073709551615+1 sequence:5", "found \"worker:18446744073709551615"},
        {"time:30 worker:1+18446744073709551615 sequence:5",
         "found \"worker:1+1844674407370955161"},
        {"t41.w5+18446744073709551615.s12", "found \"w5+18446744073709551615\""},
        {"time:39,unit=10us worker:8 sequence:16", "found \"time:39,unit=10us\""},
        {"time:39,unit=0ms worker:8 sequence:16", "found \"time:39,unit=0ms\""},
        {"time:30,unit=2s worker:8 sequence:16", "found \"time:30,unit=2s\""},
        {"time:30,unit=1001 worker:8 sequence:16", "unit=1001"},
        {"time:30 worker:8,unit=1ms sequence:16", "found \"worker:8,unit=1ms\""},
        {"time:41  worker:10 sequence:12", "found"},
        {"time:41 worker:10 sequence:12 ", "found"},
        {"time:41 worker:10 sequence:-12", "found \"sequence:-12\""},
        {"t41.w10.s12.", "found"},
        {"t41.w10.s12*10", "found \"s12*10\""},
        {"t41*0.w10.s12", "found \"t41*0\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct layout l = {.time_bits = 99};
        struct err e;
        if (layout_parse(span_str(cases[i].text), &l, &e) == ERR_OK)
            fail_msg("taken: \"%s\"", cases[i].text);
        if (!strstr(e.text, cases[i].says))
            fail_msg("\"%s\": expected \"%s\", found: %s", cases[i].text, cases[i].says, e.text);
        assert_int_equal(l.time_bits, 99);
    }
}

/* Twitter: a tweet of 2022. Discord: the example of its API's reference. Instagram: that of its
 * engineers' article of 2012, user 31341, whose shard is 1341, and the 5,001st row of the table.
 * Sonyflake: the shifts of its README. */
static void presets_read_numbers_of_others(void **state)
{
    (void)state;
    static const struct {
        const char *layout;
        int64_t epoch_ms;
        uint64_t id;
        int64_t unix_ms;
        uint32_t worker, sequence;
    } cases[] = {
        {"twitter", 1288834974657, 1541815603606036480, 1656432460105, 378, 0},
        {"discord", 1420070400000, 175928847299117063, 1462015105796, 32, 7},
        {"instagram", 1314220021721,
         (UINT64_C(73042978279) << 23) + (UINT64_C(1341) << 10) + 5001 % 1024, 1387263000000, 1341,
         905},
        {"sonyflake", 1409529600000, (UINT64_C(123) << 24) + (UINT64_C(5) << 16) + 4660,
         1409529601230, 4660, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct layout l = layout_of(cases[i].layout);
        struct layout_parts p;
        assert_true(layout_decompose(&l, cases[i].id, &p));
        assert_true(cases[i].epoch_ms + p.time == cases[i].unix_ms);
        assert_int_equal(p.worker, cases[i].worker);
        assert_int_equal(p.sequence, cases[i].sequence);
    }
}

static void parts_of_any_layout_come_back(void **state)
{
    (void)state;
    struct seeded rng = seeded_of(3);
    for (int i = 0; i < 20000; i++) {
        char text[LAYOUT_FIELDS_MAX];
        int t = (int)seeded_in(&rng, 1, 36), w = (int)seeded_in(&rng, 1, 13);
        int s = (int)seeded_in(&rng, 1, 12), unit = (int)seeded_in(&rng, 1, 1000);
        bool above = seeded_in(&rng, 0, 1) == 1;
        (void)snprintf(text, sizeof text, "time:%d,unit=%d %s:%d zero:%d %s:%d", t, unit,
                       above ? "sequence" : "worker", above ? s : w, 1 + i % 2,
                       above ? "worker" : "sequence", above ? w : s);
        struct layout l = layout_of(text);
        int64_t ms = seeded_in(&rng, 0, layout_lasts_ms(&l) - 1);
        uint32_t worker = (uint32_t)seeded_in(&rng, 0, layout_workers(&l) - 1);
        uint32_t sequence = (uint32_t)seeded_in(&rng, 0, layout_sequences(&l) - 1);
        struct layout_parts p;
        uint64_t id = layout_compose(&l, ms, worker, sequence);
        assert_true(layout_decompose(&l, id, &p) && id >> 63 == 0);
        assert_true(p.time == layout_unit(&l, ms) && ms - p.time < unit && ms >= p.time);
        assert_int_equal(p.worker, worker);
        assert_int_equal(p.sequence, sequence);
        uint64_t zero = UINT64_C(1) << (above ? w : s); /* the lowest bit that is in no field */
        assert_false(layout_decompose(&l, id | zero, &p));
        assert_false(layout_decompose(&l, id | UINT64_C(1) << 63, &p));
        if (sequence > 0)
            assert_true(id - layout_compose(&l, ms, worker, sequence - 1) ==
                        (uint64_t)layout_stride(&l));
    }
}

/* Texts that are nearly layouts: what is taken has a name, by which it is taken again. */
static void odd_texts_are_no_layouts_or_good_ones(void **state)
{
    (void)state;
    static const char letters[] = "twsz:.,+* =0123456789time:worker:sequence:zero:unit=1ms\0-";
    static const char *const seeds[] = {"time:39,unit=10ms sequence:8 worker:16",
                                        "t20*7.z3.w4+5.s9", "time:41 worker:5+5 sequence:12",
                                        "38.15.10", "z1.t9.s1.w2"};
    struct seeded rng = seeded_of(11);
    unsigned taken = 0;
    for (int i = 0; i < 300000; i++) {
        char text[48], name[LAYOUT_NAME_MAX], fields[LAYOUT_FIELDS_MAX];
        const char *seed = seeds[seeded_in(&rng, 0, 4)];
        size_t n = strlen(seed);
        memcpy(text, seed, n);
        for (int64_t k = seeded_in(&rng, 1, 3); k > 0; k--)
            text[seeded_in(&rng, 0, (int64_t)n - 1)] =
                letters[seeded_in(&rng, 0, (int64_t)sizeof letters - 2)];
        struct layout l, again;
        struct err e;
        if (layout_parse(span_of(text, n), &l, &e))
            continue;
        taken++;
        assert_int_equal(layout_parse(span_str(layout_name(name, &l)), &again, &e), ERR_OK);
        assert_true(layout_equal(&l, &again));
        assert_int_equal(layout_parse(span_str(layout_fields(fields, &l)), &again, &e), ERR_OK);
        assert_true(layout_equal(&l, &again));
        assert_true(l.worker_high < l.worker_bits && l.unit_ms >= 1 && l.unit_ms <= 1000);
        assert_true(l.time_bits + l.time_shift <= 63 && layout_lasts_ms(&l) <= LAYOUT_LASTS_MAX_MS);
    }
    assert_in_range(taken, 1000, 300000);
}

/* Also where only the parts of the workerId are others. */
static void others_are_not_equal(void **state)
{
    static const char *const texts[] = {"38.15.10",
                                        "twitter",
                                        "time:41 worker:10 sequence:12",
                                        "time:41 worker:2+8 sequence:12",
                                        "time:41 worker:5+5 sequence:11 zero:1",
                                        "time:41 sequence:12 worker:5+5",
                                        "time:41,unit=10ms worker:5+5 sequence:12"};
    struct layout l[sizeof texts / sizeof *texts];
    struct err e;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (layout_parse(span_str(texts[i]), &l[i], &e))
            fail_msg("%s", e.text);
        for (size_t k = 0; k < i; k++)
            if (layout_equal(&l[i], &l[k]))
                fail_msg("%s is %s", texts[i], texts[k]);
    }
}

static void the_time_of_a_layout_ends(void **state)
{
    (void)state;
    static const struct {
        const char *layout;
        int64_t years;
    } cases[] = {{"twitter", 69}, {"discord", 69}, {"instagram", 34}, {"sonyflake", 174},
                 {"baidu", 8},    {"js53", 87},    {"rack", 69},      {"sidflake", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct layout l = layout_of(cases[i].layout);
        assert_int_equal(layout_lasts_ms(&l) / INT64_C(31556952000), cases[i].years);
        struct layout_parts p;
        assert_true(layout_end_ms(&l, 0) == layout_lasts_ms(&l) - 1);
        uint64_t last = layout_compose(&l, layout_end_ms(&l, 0), layout_workers(&l) - 1,
                                       layout_sequences(&l) - 1);
        assert_true(layout_decompose(&l, last, &p) && last >> 63 == 0);
    }
    struct layout longest = layout_of("time:46 worker:5 sequence:5"); /* the year 2527 */
    assert_true(layout_end_ms(&longest, LAYOUT_EPOCH_DEFAULT_MS) == INT64_C(17592186044415));
    struct layout js = layout_of("js53"); /* exact as a double */
    assert_true(layout_compose(&js, layout_end_ms(&js, 0), 255, 127) == (UINT64_C(1) << 53) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fields_stand_where_the_drawing_says),
        cmocka_unit_test(what_is_composed_is_decomposed),
        cmocka_unit_test(ids_sort_by_time_then_worker_then_sequence),
        cmocka_unit_test(a_number_with_bit_63_is_no_id),
        cmocka_unit_test(the_default_epoch_lasts_until_2034),
        cmocka_unit_test(a_layout_has_one_name),
        cmocka_unit_test(what_is_no_layout_is_told),
        cmocka_unit_test(presets_read_numbers_of_others),
        cmocka_unit_test(parts_of_any_layout_come_back),
        cmocka_unit_test(odd_texts_are_no_layouts_or_good_ones),
        cmocka_unit_test(others_are_not_equal),
        cmocka_unit_test(the_time_of_a_layout_ends),
    };
    return cmocka_run_group_tests_name("ids/layout", tests, NULL, NULL);
}
