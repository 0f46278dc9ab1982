#include "ids/template.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct template_frame frame(enum template_reset reset)
{
    return (struct template_frame){.name = SPAN("orders"),
                                   .reset = reset,
                                   .subs = true,
                                   .first = 1,
                                   .last = TEMPLATE_NUMBER_MAX};
}

static struct template parsed(const char *text, enum template_reset reset)
{
    struct template t;
    struct template_frame f = frame(reset);
    struct err e = {.text = ""};
    if (template_parse(&t, span_str(text), &f, &e))
        fail_msg("%s: %s", text, e.text);
    return t;
}

static struct seeded rng;

static struct template_values values(int64_t number)
{
    rng = seeded_of(3);
    return (struct template_values){.number = number,
                                    .period = "",
                                    .sub = SPAN("acme"),
                                    .worker = 417,
                                    .now_ms = 1780000000123,
                                    .rng = &rng.rng,
                                    .args = SPAN("")};
}

/* What it writes, and reads as the same. */
static void expect_values(const char *text, enum template_reset reset,
                          const struct template_values *v, const char *written)
{
    struct template t = parsed(text, reset);
    struct template_reading r;
    char out[TEMPLATE_OUT_MAX + 1];
    struct err e = {.text = ""};
    size_t n = template_write(&t, v, out, TEMPLATE_OUT_MAX, &e);
    if (!n)
        fail_msg("%s: %s", text, e.text);
    out[n] = '\0';
    assert_string_equal(out, written);
    if (template_read(&t, span_of(out, n), &r, &e))
        fail_msg("%s: %s", out, e.text);
    assert_true(r.number == v->number);
    assert_string_equal(r.period, v->period);
}

static void expect(const char *text, int64_t number, const char *written)
{
    struct template_values v = values(number);
    expect_values(text, TEMPLATE_NEVER, &v, written);
}

static void expect_in(const char *text, enum template_reset reset, const char *period,
                      const char *written)
{
    struct template_values v = values(417);
    v.period = period;
    expect_values(text, reset, &v, written);
}

static void numbers_that_people_use_come_out(void **state)
{
    (void)state;
    struct template_values v = values(1);
    v.args = SPAN("area=010&unit=6541");
    expect_values("@{arg,area,width=3,chars=0-9}-@{arg,unit,width=4,chars=0-9}-@{seq,width=5}",
                  TEMPLATE_NEVER, &v, "010-6541-00001");
    v.args = SPAN("");
    v.period = "2017-03-04";
    expect_values("@{date,%Y%m%d}@{seq,width=5}", TEMPLATE_DAY, &v, "2017030400001");
    expect("QJ@{seq,width=6}", 1, "QJ000001");
    expect("SN-@{seq}-@{check,linear,9,31,10,of=seq}", 417, "SN-417-2");
    v.number = 41;
    v.period = "2026-11-22";
    expect_values("INV-@{date,%Y%m%d}-@{seq,width=5}@{check,damm}", TEMPLATE_DAY, &v,
                  "INV-20261122-000417");
}

static void each_part_writes_its_value(void **state)
{
    (void)state;
    expect("@{seq}", 0, "0");
    expect("@{seq}", TEMPLATE_NUMBER_MAX, "9007199254740991");
    expect("@{seq,base=16}", 255, "FF");
    expect("@{seq,base=32,width=4}", 32 * 31 + 18, "00ZJ");
    expect("@{seq,base=36}", 36 * 36 - 1, "ZZ");
    expect("@{seq,base=58}", 58, "21");
    expect("@{seq,base=58,width=3}", 57, "11z");
    expect("@{seq,base=62}", 61, "z");
    expect("@{name}/@{seq}", 7, "orders/7");
    expect("@{sub}-@{seq}", 7, "acme-7");
    expect("@{seq}-@{worker}", 7, "7-00417");
    expect("@{seq}-@{worker,width=2,base=36}", 7, "7-BL");
    expect("@{seq}-@{ms}", 7, "7-1780000000123");
    expect("a@@b@@{@{seq}", 7, "a@b@{7");
    expect("@{seq}-@{seq,width=3,base=16}", 26, "26-01A");
    expect("9-@{seq,width=3}-12@{check,damm,of=seq}", 572, "9-572-124");
    expect("@{seq,base=36,width=2}-@{seq,width=3}@{check,damm,of=seq}", 572, "FW-5724");
    expect("@{seq,width=20}", TEMPLATE_NUMBER_MAX, "00009007199254740991");
    expect("@{seq,width=16}", 12345678, "0000000012345678");
    expect("@{seq,width=1}", 9, "9");
}

static void dates_are_the_periods(void **state)
{
    (void)state;
    expect_in("@{date,%Y-%m-%dT%H:%M:%S}.@{seq}", TEMPLATE_HOUR, "2026-11-22T14",
              "2026-11-22T14:00:00.417");
    expect_in("@{date,%H/%j/%Y}.@{seq}", TEMPLATE_HOUR, "2026-11-22T14", "14/326/2026.417");
    expect_in("@{date,%Y%j}.@{seq}", TEMPLATE_DAY, "2024-12-31", "2024366.417");
    expect_in("@{date,%Y%j}.@{seq}", TEMPLATE_DAY, "2023-12-31", "2023365.417");
    expect_in("@{date,%Y%j}.@{seq}", TEMPLATE_DAY, "2000-03-01", "2000061.417");
    expect_in("@{date,%Y%j}.@{seq}", TEMPLATE_DAY, "2100-03-01", "2100060.417");
    expect_in("@{date,%Y%m%d}.@{seq}", TEMPLATE_MONTH, "2026-11", "20261101.417");
    expect_in("@{date,%Y%j}.@{seq}", TEMPLATE_MONTH, "2026-11", "2026305.417");
    expect_in("@{date,%Y%m%d%j%H%M%S}.@{seq}", TEMPLATE_YEAR, "2026", "20260101001000000.417");
    expect_in("@{date,%Y}@{seq,width=4}@{date,%d,%m}", TEMPLATE_DAY, "2026-11-22", "2026041722,11");
}

static void random_characters_are_of_their_class(void **state)
{
    (void)state;
    struct template t = parsed("@{rand,width=200,chars=a-cX-}@{seq}", TEMPLATE_NEVER);
    struct template_values v = values(7);
    char out[TEMPLATE_OUT_MAX];
    struct err e;
    unsigned seen[128] = {0};
    for (int i = 0; i < 100; i++) {
        assert_int_equal(template_write(&t, &v, out, sizeof out, &e), 201);
        for (int k = 0; k < 200; k++)
            seen[(unsigned)out[k] % 128]++;
    }
    for (const char *p = "abcX-"; *p; p++)
        assert_in_range(seen[(unsigned)*p], 3700, 4300);
    assert_int_equal(seen['d'] + seen['x'] + seen['0'], 0);
}

/* 256 bytes into 68 characters leave 52. */
static void random_characters_are_equally_likely(void **state)
{
    (void)state;
    struct template t = parsed("@{rand,width=200,chars=0-9A-z}@{seq}", TEMPLATE_NEVER);
    struct template_values v = values(7);
    char out[TEMPLATE_OUT_MAX];
    struct err e;
    unsigned last = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(template_write(&t, &v, out, sizeof out, &e), 201);
        for (int k = 0; k < 200; k++)
            last += out[k] >= 'k';
    }
    assert_in_range(last, 4400, 5000); /* 16 of 68 of 20,000; else 3,750 */
}

static void longest_and_last_are_known(void **state)
{
    (void)state;
    struct template t = parsed("INV-@{seq,width=5}@{check,mod97-10}", TEMPLATE_NEVER);
    assert_int_equal(template_longest(&t, 1000), 11);
    assert_true(template_last_number(&t) == 99999);
    t = parsed("INV-@{seq}/@{seq,base=36}@{check,mod97-10}", TEMPLATE_NEVER);
    assert_int_equal(template_longest(&t, 9), 4 + 1 + 1 + 1 + 2);
    assert_int_equal(template_longest(&t, 36), 4 + 2 + 1 + 2 + 2);
    assert_int_equal(template_longest(&t, TEMPLATE_NUMBER_MAX), 4 + 16 + 1 + 11 + 2);
    assert_true(template_last_number(&t) == TEMPLATE_NUMBER_MAX);
    t = parsed("@{seq,width=5}@{seq,width=3,base=16}", TEMPLATE_NEVER);
    assert_true(template_last_number(&t) == 4095);
    t = parsed("@{seq,width=64,base=62}", TEMPLATE_NEVER);
    assert_true(template_last_number(&t) == TEMPLATE_NUMBER_MAX);
}

/* ---- what is refused when it is made ----------------------------------------------------------
 */

static void expect_refusal(const char *text, struct template_frame f, enum err_code code,
                           const char *reason)
{
    struct template t;
    struct err e = {.text = ""};
    if (template_parse(&t, span_str(text), &f, &e) != code || !strstr(e.text, reason))
        fail_msg("%s: expected \"%s\", found \"%s\" (%d)", text, reason, e.text, (int)e.code);
}

static void expect_refused(const char *text, const char *reason)
{
    expect_refusal(text, frame(TEMPLATE_NEVER), ERR_INVALID, reason);
}

static void what_could_repeat_is_refused(void **state)
{
    (void)state;
    struct template_frame f = frame(TEMPLATE_NEVER);
    expect_refused("INV", "expected @{seq}, found none");
    expect_refused("@{seq}1@{arg,a,width=1..3}", "text that begins with what neither");
    expect_refused("@{arg,a,width=1..3,chars=a-z}1@{seq}", "text that begins with what neither");
    expect_refused("@{arg,a,width=1..3,chars=a-z}b@{seq}", "text that begins with what neither");
    expect_refused("@{sub}@{seq}", "expected text between @{sub} and @{seq}");
    expect_refused("@{seq}@{sub}", "expected text between @{seq} and @{sub}");
    expect_refused("@{sub,chars=a-z}@{arg,a,width=1,chars=0-9}-@{seq}",
                   "expected text between @{sub} and @{arg}");
    expect_refused("@{sub,chars=0-9-}-@{seq}", "found '-'");
    f.cycle = true;
    expect_refusal("@{seq}", f, ERR_INVALID, "without --cycle");
    f = frame(TEMPLATE_NEVER);
    f.last = -5;
    expect_refusal("@{seq}", f, ERR_INVALID, "not negative, found those down to -5");
    f.first = -7, f.last = 5;
    expect_refusal("@{seq}", f, ERR_INVALID, "not negative, found those down to -7");
    f.first = 100000, f.last = 0;
    expect_refusal("@{seq,width=5}", f, ERR_RANGE, "wide enough for the first number, 100000");
    f.first = 99999;
    struct template t;
    assert_int_equal(template_parse(&t, SPAN("@{seq,width=5}"), &f, NULL), ERR_OK);
}

static void expect_period(const char *text, enum template_reset reset, const char *reason)
{
    expect_refusal(text, frame(reset), ERR_INVALID, reason);
}

static void a_period_that_the_text_does_not_tell_is_refused(void **state)
{
    (void)state;
    static const char less[] = "texts would repeat";
    expect_period("@{seq}", TEMPLATE_YEAR, less);
    expect_period("@{date,%m%d}@{seq}", TEMPLATE_YEAR, less);
    expect_period("@{date,%Y}@{seq}", TEMPLATE_MONTH, less);
    expect_period("@{date,%m}@{seq}", TEMPLATE_MONTH, less);
    expect_period("@{date,%Y%m}@{seq}", TEMPLATE_DAY, less);
    expect_period("@{date,%Y%d}@{seq}", TEMPLATE_DAY, less);
    expect_period("@{date,%m%d}@{seq}", TEMPLATE_DAY, less);
    expect_period("@{date,%j}@{seq}", TEMPLATE_DAY, less);
    expect_period("@{date,%Y%m%d}@{seq}", TEMPLATE_HOUR, less);
    expect_period("@{date,%Y%j}@{seq}", TEMPLATE_HOUR, less);
    expect_period("@{date,%Y%H}@{seq}", TEMPLATE_HOUR, less);
    expect_period("@{date,%Y}@{seq}", TEMPLATE_NEVER, "with --reset hour, day, month or year");
    expect_period("@{date,%G-W%V}@{seq}", TEMPLATE_DAY, "found %G");
    expect_period("@{date,%Y%m%d%I}@{seq}", TEMPLATE_HOUR, "found %I");
    expect_period("@{date,%y%m%d}@{seq}", TEMPLATE_DAY, "found %y");
    expect_period("@{date,%Y%m%d%}@{seq}", TEMPLATE_DAY, "a letter behind %");
    expect_period("@{date}@{seq}", TEMPLATE_DAY, "expected a format");
}

static void check_digits_pass_over_no_letters(void **state)
{
    (void)state;
    expect_refused("@{seq,base=36}@{check,luhn}", "want mod37-2 or mod97-10");
    expect_refused("@{sub}-@{seq}@{check,damm}", "parts of digits alone, found @{sub}");
    expect_refused("@{seq,base=62}@{check,mod37-2}", "small letters");
    expect_refused("@{seq,width=4,base=16}@{check,mod37-2}@{check,mod37-2}@{check,gs1}",
                   "want mod");
    expect_refused("@{check,luhn}@{seq}", "a part that it is over");
    expect_refused("12@{check,luhn}@{seq}", "a part that it is over");
    expect_refused("@{check,luhn,of=seq}@{seq}", "expected @{seq} before");
    for (const char *c = "&#%+"; *c; c++) {
        char wrong[64];
        (void)snprintf(wrong, sizeof wrong, "@{arg,a,width=1,chars=a%cb}@{seq,width=1}", *c);
        expect_refused(wrong, "expected none of & # % +");
    }
    expect_refused("@{seq,base=36}@{check,luhn,of=seq}", "found @{seq} with letters");
    (void)parsed("@{sub}-@{seq}@{check,damm,of=seq}", TEMPLATE_NEVER);
    (void)parsed("ab-@{seq}@{check,mod37-2}@{check,mod97-10}", TEMPLATE_NEVER);
    (void)parsed("@{arg,a,width=2,chars=A-Z}@{check,mod37-2}@{seq}", TEMPLATE_NEVER);
}

static void what_is_no_template_is_refused(void **state)
{
    (void)state;
    struct template_frame f = frame(TEMPLATE_NEVER);
    char text[TEMPLATE_TEXT_MAX + 2];
    expect_refusal("", f, ERR_RANGE, "1 to 255 characters, found 0");
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    expect_refusal(text, f, ERR_RANGE, "found 256");
    text[251] = '\0';
    expect_refusal(text, f, ERR_RANGE, "at most 250 characters");
    memcpy(text, "@{seq}", 6);
    text[6 + 250 - 15] = '\0';
    expect_refusal(text, f, ERR_RANGE, "at most 250 characters in what it writes, found up to 251");
    text[6 + 250 - 16] = '\0';
    assert_int_equal(template_longest(&(struct template){0}, 1), 0);
    (void)parsed(text, TEMPLATE_NEVER);
    expect_refused("a b@{seq}", "found byte 0x20 at 2");
    expect_refused("\xc3\xa9@{seq}", "found byte 0xc3 at 1");
    expect_refused("@{arg,a,width=1,chars=\x7f}@{seq}", "byte 0x7f");
    expect_refused("a@b@{seq}", "expected @{PART} or @@");
    expect_refused("@{seq", "expected @{PART} or @@");
    expect_refused("@", "expected @{PART} or @@");
    expect_refused("@{}", "expected date, seq, arg");
    expect_refused("@{Seq}", "found \"Seq\"");
    expect_refused("@{seq,5}", "expected width= base=, found \"5\"");
    expect_refused("@{seq,chars=0-9}", "expected width= base=, found \"chars=0-9\"");
    expect_refused("@{seq,width=0}", "width: expected a number from 1 to 250, found \"0\"");
    expect_refused("@{seq,width=1..5}", "width: expected a number from 1 to 250, found \"1..5\"");
    expect_refused("@{seq,width=}", "width: expected");
    expect_refused("@{seq,width=5,width=5}", "expected once");
    expect_refused("@{seq,base=8}", "base: expected 10, 16, 32, 36, 58 or 62, found \"8\"");
    expect_refusal("@{seq,width=65}", f, ERR_RANGE, "at most 64");
    expect_refused("@{name,x}@{seq}", "expected nothing, found \"x\"");
    expect_refused("@{arg,a}@{seq}", "expected width=");
    expect_refused("@{arg,a-b,width=1}@{seq}", "expected a name");
    expect_refused("@{arg,date,width=1}@{seq}", "neither date, n, block nor sub");
    expect_refused("@{arg,a,width=3..2}@{seq}", "LEAST..MOST, found \"3..2\"");
    expect_refused("@{arg,a,width=3.2}@{seq}", "LEAST..MOST, found \"3.2\"");
    expect_refused("@{arg,a,width=3...4}@{seq}", "LEAST..MOST");
    expect_refused("@{arg,a,width=1,chars=z-a}@{seq}", "chars: expected");
    expect_refused("@{arg,a,width=1,chars=}@{seq}", "chars: expected");
    expect_refused("@{arg,a,width=1,chars=!-~}@{seq}", "none of & # % +");
    expect_refused("@{arg,a,width=2,default=abc}@{seq}", "default: expected");
    expect_refused("@{arg,a,width=2,default=}@{seq}", "default: expected");
    expect_refused("@{arg,a,width=2,chars=0-9,default=ab}@{seq}", "default: expected");
    expect_refused("@{rand}@{seq}", "expected width=");
    expect_refused("@{seq}@{check}", "expected luhn, gs1");
    expect_refused("@{seq}@{check,crc}", "found \"crc\"");
    expect_refused("@{seq}@{check,luhn,1}", "expected of=, found \"1\"");
    expect_refused("@{seq}@{check,linear,9,31}", "expected linear,A,B,C");
    expect_refused("@{seq}@{check,linear,9,0,10}", "expected linear,A,B,C");
    expect_refused("@{seq}@{check,linear,9,31,1000000001}", "expected linear,A,B,C");
    expect_refused("@{seq}@{check,damm,of=sub}", "of: expected seq");
    expect_refusal("@{sub,width=101}@{seq}", f, ERR_RANGE, "at most 100");
    f.subs = false;
    expect_refusal("@{sub}-@{seq}", f, ERR_INVALID, "with --subs");
}

static void at_most_32_steps(void **state)
{
    (void)state;
    struct template t;
    struct template_frame f = frame(TEMPLATE_NEVER);
    char text[256] = "";
    for (int i = 0; i < 32; i++)
        strcat(text, i % 2 ? "-" : "@{seq}");
    struct err e;
    f.last = 9;
    assert_int_equal(template_parse(&t, span_str(text), &f, &e), ERR_RANGE); /* too long */
    text[0] = '\0';
    for (int i = 0; i < 16; i++)
        strcat(text, "@{seq,width=1}-");
    assert_int_equal(template_parse(&t, span_str(text), &f, &e), ERR_OK);
    assert_int_equal(t.n, 32);
    strcat(text, "@{seq}");
    expect_refusal(text, f, ERR_RANGE, "at most 32 parts");
}

/* ---- what is refused when it is written -------------------------------------------------------
 */

static void expect_error(const char *text, const struct template_values *v, enum err_code code,
                         const char *reason, bool before)
{
    struct template t = parsed(text, TEMPLATE_NEVER);
    char out[TEMPLATE_OUT_MAX];
    struct err e = {.text = ""};
    assert_int_equal(template_write(&t, v, out, sizeof out, &e), 0);
    assert_int_equal(e.code, code);
    if (!strstr(e.text, reason))
        fail_msg("%s: expected \"%s\", found \"%s\"", text, reason, e.text);
    assert_int_equal(template_check(&t, v, &e), before ? code : ERR_OK);
}

static void what_does_not_fit_is_an_error_and_never_cut(void **state)
{
    (void)state;
    struct template_values v = values(100000);
    expect_error("@{seq,width=5}", &v, ERR_RANGE, "from 0 to 99999", false);
    v.number = -1;
    expect_error("@{seq,width=5}", &v, ERR_RANGE, "found -1", false);
    v = values(7);
    v.period = "2026";
    expect_error("@{seq,width=5}", &v, ERR_INVALID, "expected a period of 0", false);
    v = values(7);
    v.worker = 1000;
    expect_error("@{seq,width=5}@{worker,width=3}", &v, ERR_RANGE, "found 1000", true);
    v.worker = -1;
    expect_error("@{seq,width=5}@{worker,width=3}", &v, ERR_NOT_FOUND, "none held", true);
    v.now_ms = INT64_C(10000000000000);
    expect_error("@{seq,width=5}@{ms}", &v, ERR_RANGE, "13 digits", false);
    v.sub = SPAN("a-b");
    expect_error("@{sub}-@{seq}", &v, ERR_INVALID, "found \"a-b\"", true);
    v.sub = SPAN("");
    expect_error("@{sub}-@{seq}", &v, ERR_INVALID, "sub: expected 1 to 100", true);
    v.sub = SPAN("abcd");
    expect_error("@{sub,width=3}-@{seq}", &v, ERR_INVALID, "sub: expected 3 to 3", true);
    struct template t = parsed("@{seq}-12345", TEMPLATE_NEVER);
    char out[TEMPLATE_OUT_MAX];
    struct err e;
    v = values(7);
    assert_int_equal(template_write(&t, &v, out, 21, &e), 0);
    assert_int_equal(e.code, ERR_RANGE);
    assert_int_equal(template_write(&t, &v, out, 22, &e), 7);
}

static void expect_args(const char *args, const char *written, const char *reason)
{
    static const char text[] = "@{arg,a,width=2,chars=0-9}-@{arg,b,width=1..4,default=x}-@{seq}";
    struct template_values v = values(7);
    v.args = span_str(args);
    if (written)
        expect_values(text, TEMPLATE_NEVER, &v, written);
    else
        expect_error(text, &v, ERR_INVALID, reason, true);
}

static void arguments_are_the_callers(void **state)
{
    (void)state;
    expect_args("a=01", "01-x-7", NULL);
    expect_args("b=Q9&a=01", "01-Q9-7", NULL);
    expect_args("date=2026-11-22&a=01", "01-x-7", NULL);
    expect_args("a=01&n=5", NULL, "found \"n\"");
    expect_args("block=1&a=01", NULL, "found \"block\"");
    expect_args("a=01&sub=q", NULL, "found \"sub\"");
    expect_args("date=2026-11-22&a=01&date=2026-11-22", NULL, "date: expected once, found twice");
    expect_args("a=01&&b=", NULL, "found \"\"");
    expect_args("", NULL, "expected ?a=");
    expect_args("b=x", NULL, "expected ?a=");
    expect_args("a", NULL, "a: expected 2 to 2 characters");
    expect_args("a=1", NULL, "a: expected 2 to 2 characters");
    expect_args("a=0x", NULL, "a: expected 2 to 2 characters");
    expect_args("a=01&b=", NULL, "b: expected 1 to 4");
    expect_args("a=01&b=12345", NULL, "b: expected 1 to 4");
    expect_args("a=01&b=1-2", NULL, "b: expected 1 to 4");
    expect_args("a=01&c=1", NULL, "found \"c\"");
    expect_args("a=01&A=01", NULL, "found \"A\"");
    expect_args("a=01&a=02", NULL, "a: expected once, found twice");
}

/* ---- reading ----------------------------------------------------------------------------------
 */

static void expect_unread(const char *text, enum template_reset reset, const char *found,
                          enum err_code code, const char *reason)
{
    struct template t = parsed(text, reset);
    struct template_reading r;
    struct err e = {.text = ""};
    assert_int_equal(template_read(&t, span_str(found), &r, &e), code);
    if (!strstr(e.text, reason))
        fail_msg("%s: expected \"%s\", found \"%s\"", found, reason, e.text);
}

static void a_text_is_taken_apart(void **state)
{
    (void)state;
    struct template t =
        parsed("@{sub}/@{date,%Y%m%d}-@{arg,unit,width=2}@{seq,width=5}@{check,mod97-10,of=seq}",
               TEMPLATE_DAY);
    struct template_reading r;
    struct err e = {.text = ""};
    struct span text = SPAN("acme/20261122-Q10041711");
    if (template_read(&t, text, &r, &e))
        fail_msg("%s", e.text);
    assert_true(r.number == 417);
    assert_string_equal(r.period, "2026-11-22");
    assert_true(span_eq(r.sub, SPAN("acme")));
    assert_int_equal(r.n, 7);
    assert_int_equal(r.part[0].kind, TEMPLATE_SUB);
    assert_int_equal(r.part[4].kind, TEMPLATE_ARG);
    assert_true(span_eq(r.part[4].name, SPAN("unit")));
    assert_true(span_eq(r.part[4].text, SPAN("Q1")));
    assert_int_equal(r.part[6].kind, TEMPLATE_CHECK);
    assert_true(span_eq(r.part[6].text, SPAN("11")));
}

static void a_text_of_another_form_is_none(void **state)
{
    (void)state;
    static const char day[] = "INV-@{date,%Y%m%d}-@{seq,width=5}@{check,damm}";
    expect_unread(day, TEMPLATE_DAY, "INV-20261122-004173", ERR_CORRUPT,
                  "check digit \"6\" by damm at character 19, found \"3\"");
    expect_unread(day, TEMPLATE_DAY, "INV-20261122-001476", ERR_CORRUPT, "found \"6\"");
    expect_unread(day, TEMPLATE_DAY, "INW-20261122-004176", ERR_INVALID, "expected \"INV-\" at");
    expect_unread(day, TEMPLATE_DAY, "INV-20261122-0041766", ERR_INVALID, "the text's end");
    expect_unread(day, TEMPLATE_DAY, "INV-20261122-00417", ERR_INVALID, "1 characters of @{check}");
    expect_unread(day, TEMPLATE_DAY, "INV-2026112x-004176", ERR_INVALID, "2 characters of @{date}");
    expect_unread(day, TEMPLATE_DAY, "", ERR_INVALID, "expected \"INV-\" at character 1");
    static const char plain[] = "@{date,%Y%m%d}-@{seq}";
    expect_unread(plain, TEMPLATE_DAY, "20260229-1", ERR_INVALID, "a day that there is");
    expect_unread(plain, TEMPLATE_DAY, "20261301-1", ERR_INVALID, "a day that there is");
    expect_unread(plain, TEMPLATE_DAY, "20260001-1", ERR_INVALID, "a day that there is");
    expect_unread(plain, TEMPLATE_DAY, "20260100-1", ERR_INVALID, "a day that there is");
    expect_unread(plain, TEMPLATE_DAY, "19690101-1", ERR_INVALID, "a day that there is");
    expect_unread(plain, TEMPLATE_DAY, "20260101-01", ERR_INVALID, "expected \"1\"");
    expect_unread(plain, TEMPLATE_DAY, "20260101-9007199254740992", ERR_INVALID, "2^53-1");
    expect_unread("@{date,%Y%j}-@{seq}", TEMPLATE_DAY, "2026366-1", ERR_INVALID, "a day that");
    expect_unread("@{date,%Y%j}-@{seq}", TEMPLATE_DAY, "2026000-1", ERR_INVALID, "a day that");
    expect_unread("@{date,%Y%j}-@{seq}", TEMPLATE_MONTH, "2026306-1", ERR_INVALID, "\"305\"");
    expect_unread("@{date,%Y%j%m%d}-@{seq}", TEMPLATE_DAY, "20263261121-1", ERR_INVALID, "\"325\"");
    expect_unread("@{date,%Y%m%d%H}-@{seq}", TEMPLATE_HOUR, "2026112224-1", ERR_INVALID, "an hour");
    expect_unread("@{date,%Y%m}-@{seq}", TEMPLATE_YEAR, "202602-1", ERR_INVALID, "\"01-\"");
    expect_unread("@{seq}-@{seq,base=16}", TEMPLATE_NEVER, "26-1B", ERR_INVALID,
                  "expected \"1A\", by what stands elsewhere in it, at character 4");
}

/* ---- alter ------------------------------------------------------------------------------------
 */

static void expect_apart(const char *a, const char *b, bool are)
{
    struct template one = parsed(a, TEMPLATE_NEVER), two = parsed(b, TEMPLATE_NEVER);
    assert_int_equal(template_apart(&one, &two), are);
    assert_int_equal(template_apart(&two, &one), are);
}

static void templates_are_apart_by_a_literal_at_a_fixed_place(void **state)
{
    (void)state;
    expect_apart("@{seq}", "1@{seq}", false); /* 1 + 01 */
    expect_apart("1@{seq}", "2@{seq}", true);
    expect_apart("A@{seq}", "a@{seq}", false); /* where case is ignored */
    expect_apart("A@{seq,width=3}B", "A@{seq,width=3}C", true);
    expect_apart("A@{seq}B", "A@{seq}C", true); /* from the end */
    expect_apart("A@{seq}B@{check,luhn}", "A@{seq}C@{check,luhn}", true);
    expect_apart("A@{seq}B", "A@{seq}C@{check,luhn}", false);
    expect_apart("A@{seq}.@{arg,x,width=1..2}", "A@{seq}-@{arg,x,width=1..2}", false);
    expect_apart("@{seq,width=2}A@{seq}", "@{seq,width=3}B@{seq}", false);
    expect_apart("@{seq}-1@{seq}-2", "@{seq}-3@{seq}-2", false);
    expect_apart("@{name}@{seq}", "orders@{seq}", false);
    expect_apart("@{name}@{seq}", "order-@{seq}", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_that_people_use_come_out),
        cmocka_unit_test(each_part_writes_its_value),
        cmocka_unit_test(dates_are_the_periods),
        cmocka_unit_test(random_characters_are_of_their_class),
        cmocka_unit_test(random_characters_are_equally_likely),
        cmocka_unit_test(longest_and_last_are_known),
        cmocka_unit_test(what_could_repeat_is_refused),
        cmocka_unit_test(a_period_that_the_text_does_not_tell_is_refused),
        cmocka_unit_test(check_digits_pass_over_no_letters),
        cmocka_unit_test(what_is_no_template_is_refused),
        cmocka_unit_test(at_most_32_steps),
        cmocka_unit_test(what_does_not_fit_is_an_error_and_never_cut),
        cmocka_unit_test(arguments_are_the_callers),
        cmocka_unit_test(a_text_is_taken_apart),
        cmocka_unit_test(a_text_of_another_form_is_none),
        cmocka_unit_test(templates_are_apart_by_a_literal_at_a_fixed_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
