/* Requests known again by their bytes. */
#include "serve/watch/recent.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct recent recent;
static struct names_entry name;

static struct span line(char key)
{
    static char text[8][16];
    static unsigned next;
    char *p = text[next++ % 8];
    memcpy(p, "get id:?\r\n", 10);
    p[7] = key;
    return span_of(p, 10);
}

static void note(char key)
{
    struct span s = line(key);
    recent_note(&recent, s, span_of(s.p + 4, 4), &name);
}

static void four_are_known_however_often_one_is_noted(void **state)
{
    (void)state;
    recent_init(&recent);
    assert_null(recent_find(&recent, line('a')));
    for (char key = 'a'; key <= 'd'; key++)
        note(key);
    for (int i = 0; i < 9; i++)
        note('a');
    for (char key = 'a'; key <= 'd'; key++) {
        const struct recent_request *q = recent_find(&recent, line(key));
        assert_non_null(q);
        assert_int_equal(q->n, 10);
        assert_int_equal(q->key.n, 4);
        assert_int_equal(q->key.p[3], key);
    }
    note('e');
    assert_non_null(recent_find(&recent, line('e')));
    assert_null(recent_find(&recent, line('a')));
}

static struct recent_request *known(void)
{
    recent_init(&recent);
    note('a');
    return recent_find(&recent, line('a'));
}

/* As a service does it. Returns whether the reply had to be written in full. */
static bool reply(struct recent_request *q, int64_t id, struct buf *out)
{
    char text[RECENT_REPLY + 1];
    size_t start = out->n;
    if (recent_put(q, id, out) || recent_put_short(q, id, out))
        return false;
    int n = snprintf(text, sizeof text, "VALUES %" PRId64 "\r\nEND\r\n", id);
    buf_put(out, text, (size_t)n);
    recent_keep(q, id, out, start, sizeof "\r\nEND\r\n" - 1);
    return true;
}

static void check_reply(struct recent_request *q, int64_t id, bool in_full)
{
    char mem[512], want[RECENT_REPLY];
    struct buf out;
    buf_init(&out, mem, sizeof mem);
    buf_put(&out, "before", 6);
    int n = snprintf(want, sizeof want, "beforeVALUES %" PRId64 "\r\nEND\r\n", id);
    assert_int_equal(reply(q, id, &out), in_full);
    assert_int_equal(out.n, n);
    assert_memory_equal(mem, want, (size_t)n);
}

static void a_reply_differs_in_its_last_digits_alone(void **state)
{
    (void)state;
    struct recent_request *q = known();
    check_reply(q, INT64_C(6875412345678901234), true);
    check_reply(q, INT64_C(6875412345678901235), false);
    check_reply(q, INT64_C(6875412345699999999), false);
    check_reply(q, INT64_C(6875412345600000000), false);
    check_reply(q, INT64_C(6875412345700000000), true);
    check_reply(q, INT64_C(6875412345699999999), true);
    check_reply(q, INT64_MAX, true);
    check_reply(q, INT64_C(100000000), true); /* the least that has eight digits to change */
    check_reply(q, INT64_C(199999999), false);
    check_reply(q, INT64_C(1000000000), true);
    int64_t id = INT64_C(6875412345678901234);
    for (int i = 0; i < 20000; i++) { /* steps of workerId and time among them */
        int64_t next = id + (INT64_C(1) << i % 27);
        check_reply(q, next, next / RECENT_RANGE != (int64_t)q->base / RECENT_RANGE);
        id = next;
    }
}

static void short_numbers_differ_in_their_digits_alone(void **state)
{
    (void)state;
    struct recent_request *q = known();
    static const struct {
        int64_t number;
        bool in_full;
    } rows[] = {
        {0, true},         {1, false},        {9, false},   {10, true},
        {11, false},       {99, false},       {100, true},  {99999998, true},
        {99999999, false}, {10000000, false}, {7, true},    {-1, true},
        {-10, true},       {5, false},        {1234, true}, {9999, false},
        {1000, false},     {999, true},       {0, true},    {INT64_C(6875412345678901234), true},
        {100, true},       {100000000, true}, {101, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_reply(q, rows[i].number, rows[i].in_full);
    for (int64_t n = 0; n < 120000; n++)
        check_reply(q, n, n == 0 || n == 10 || n == 100 || n == 1000 || n == 10000 || n == 100000);
}

static void another_request_has_another_reply(void **state)
{
    (void)state;
    check_reply(known(), INT64_C(6875412345678901234), true);
    for (char key = 'b'; key <= 'e'; key++)
        note(key);
    check_reply(recent_find(&recent, line('e')), INT64_C(6875412345678901235), true);
}

static void a_full_output_is_left_alone(void **state)
{
    (void)state;
    char mem[RECENT_REPLY];
    struct buf out;
    struct recent_request *q = known();
    buf_init(&out, mem, 20);
    assert_true(reply(q, INT64_C(6875412345678901234), &out)); /* does not fit, is not kept */
    assert_true(out.failed && out.n == 0);
    check_reply(q, INT64_C(6875412345678901235), true);
    assert_false(recent_put(q, INT64_C(6875412345678901236), &out));
    assert_int_equal(out.n, 0);
    buf_init(&out, mem, sizeof mem - 1);
    assert_false(recent_put(q, INT64_C(6875412345678901236), &out));
    assert_false(out.failed);
    buf_init(&out, mem, sizeof mem);
    assert_true(recent_put(q, INT64_C(6875412345678901236), &out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_are_known_however_often_one_is_noted),
        cmocka_unit_test(a_reply_differs_in_its_last_digits_alone),
        cmocka_unit_test(short_numbers_differ_in_their_digits_alone),
        cmocka_unit_test(another_request_has_another_reply),
        cmocka_unit_test(a_full_output_is_left_alone),
    };
    return cmocka_run_group_tests_name("serve/recent", tests, NULL, NULL);
}
