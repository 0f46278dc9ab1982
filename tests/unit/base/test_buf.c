#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A buffer of cap bytes with a byte behind it that must stay as it is. */
struct fixture {
    struct buf b;
    char mem[64];
};

static struct buf *make(struct fixture *f, size_t cap)
{
    memset(f->mem, '#', sizeof f->mem);
    buf_init(&f->b, f->mem, cap);
    return &f->b;
}

static void assert_holds(const struct fixture *f, const char *text)
{
    assert_int_equal(f->b.n, strlen(text));
    assert_memory_equal(f->mem, text, f->b.n);
    assert_int_equal(f->mem[f->b.cap], '#');
}

static void puts_follow_each_other(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 40);
    BUF_PUT_LIT(b, "VALUE ");
    buf_put_span(b, SPAN("id:a"));
    buf_put_char(b, ' ');
    buf_put_u64(b, UINT64_MAX);
    buf_put_str(b, "\r\n");
    buf_put(b, NULL, 0);
    assert_false(b->failed);
    assert_holds(&f, "VALUE id:a 18446744073709551615\r\n");
    assert_true(span_eq(buf_span(b), SPAN("VALUE id:a 18446744073709551615\r\n")));
}

static void signed_numbers(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 60);
    buf_put_i64(b, INT64_MIN);
    buf_put_char(b, ' ');
    buf_put_i64(b, INT64_MAX);
    buf_put_char(b, ' ');
    buf_put_i64(b, 0);
    buf_put_i64(b, -7);
    assert_holds(&f, "-9223372036854775808 9223372036854775807 0-7");
}

static void the_last_byte_can_be_filled(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 4);
    buf_put_str(b, "abcd");
    assert_false(b->failed);
    assert_holds(&f, "abcd");
    buf_put(b, "", 0);
    assert_false(b->failed);
    buf_put_char(b, 'e');
    assert_true(b->failed);
    assert_holds(&f, "abcd");
}

static void what_does_not_fit_writes_nothing(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 3);
    buf_put_str(b, "a");
    buf_put_i64(b, -12);
    assert_true(b->failed);
    assert_holds(&f, "a");
    assert_int_equal(f.mem[1], '#');
}

static void failure_is_sticky(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 4);
    buf_put_str(b, "abcde");
    buf_put_char(b, 'x');
    assert_true(b->failed);
    assert_null(buf_room(b, 0));
    buf_printf(b, "%d", 1);
    assert_holds(&f, "");
}

static void truncating_undoes_a_failure(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 4);
    buf_put_str(b, "abc");
    buf_put_str(b, "de");
    buf_truncate(b, 4);
    assert_true(b->failed);
    buf_truncate(b, 1);
    assert_false(b->failed);
    buf_put_str(b, "xyz");
    assert_holds(&f, "axyz");
}

static void room_is_taken_by_hand(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 8);
    assert_ptr_equal(buf_room(b, 8), f.mem);
    f.mem[0] = 'q';
    buf_took(b, 1);
    assert_null(buf_room(b, 8));
    assert_true(b->failed);
    assert_null(buf_room(b, SIZE_MAX));
    assert_holds(&f, "q");
}

static void printf_is_bounded(void **state)
{
    (void)state;
    struct fixture f;
    struct buf *b = make(&f, 8);
    buf_printf(b, "%s=%d", "k", 7);
    assert_holds(&f, "k=7");
    buf_printf(b, "%s", "12345"); /* fits but for vsnprintf's NUL */
    assert_true(b->failed);
    assert_holds(&f, "k=7");
    buf_truncate(b, 3);
    buf_printf(b, "%s", "1234");
    assert_false(b->failed);
    assert_holds(&f, "k=71234");
}

static void no_memory_at_all(void **state)
{
    (void)state;
    struct buf b;
    buf_init(&b, NULL, 0);
    buf_put(&b, NULL, 0);
    assert_false(b.failed);
    buf_put_char(&b, 'x');
    assert_true(b.failed);
    assert_int_equal(b.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_follow_each_other),
        cmocka_unit_test(signed_numbers),
        cmocka_unit_test(the_last_byte_can_be_filled),
        cmocka_unit_test(what_does_not_fit_writes_nothing),
        cmocka_unit_test(failure_is_sticky),
        cmocka_unit_test(truncating_undoes_a_failure),
        cmocka_unit_test(room_is_taken_by_hand),
        cmocka_unit_test(printf_is_bounded),
        cmocka_unit_test(no_memory_at_all),
    };
    return cmocka_run_group_tests_name("base/buf", tests, NULL, NULL);
}
