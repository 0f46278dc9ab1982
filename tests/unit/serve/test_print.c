/* Answers that are kept while they are asked for often. */
#include "serve/print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct print prints[PRINTS];
static char mem[64];
static struct buf out;
static unsigned written;

static void ask(int64_t now_us)
{
    buf_init(&out, mem, sizeof mem);
    BUF_PUT_LIT(&out, "before ");
    if (print_put(&prints[0], now_us, &out))
        return;
    size_t start = out.n;
    buf_printf(&out, "page %u", ++written);
    print_note(&prints[0], &out, start);
}

static void assert_page(unsigned n)
{
    char want[64];
    struct buf w;
    buf_init(&w, want, sizeof want);
    buf_printf(&w, "before page %u", n);
    assert_int_equal(out.n, w.n);
    assert_memory_equal(out.p, want, w.n);
}

static int clear(void **state)
{
    (void)state;
    print_tidy(prints, INT64_MAX);
    memset(prints, 0, sizeof prints);
    written = 0;
    return 0;
}

static void now_and_then_it_is_written_anew(void **state)
{
    (void)state;
    for (unsigned i = 1; i <= 100; i++) {
        ask(PRINT_US * (int64_t)i);
        assert_page(i);
        assert_null(prints[0].p);
    }
}

static void again_and_again_the_latest_is_given_out(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++)
        ask(PRINT_US + i);
    assert_int_equal(written, PRINT_FRESH);
    assert_page(PRINT_FRESH);
    ask(2 * PRINT_US - 1);
    assert_page(PRINT_FRESH);
    ask(2 * PRINT_US);
    assert_page(PRINT_FRESH + 1);
}

static void nothing_is_kept_for_long(void **state)
{
    (void)state;
    for (unsigned i = 0; i < PRINT_FRESH; i++)
        ask(PRINT_US);
    print_tidy(prints, 2 * PRINT_US - 1);
    assert_non_null(prints[0].p);
    print_tidy(prints, 2 * PRINT_US);
    assert_null(prints[0].p);
}

static void what_did_not_fit_is_not_kept(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2 * PRINT_FRESH; i++) {
        buf_init(&out, mem, 3);
        assert_false(print_put(&prints[0], PRINT_US, &out));
        BUF_PUT_LIT(&out, "long");
        print_note(&prints[0], &out, 0);
    }
    assert_null(prints[0].p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(now_and_then_it_is_written_anew, clear, clear),
        cmocka_unit_test_setup_teardown(again_and_again_the_latest_is_given_out, clear, clear),
        cmocka_unit_test_setup_teardown(nothing_is_kept_for_long, clear, clear),
        cmocka_unit_test_setup_teardown(what_did_not_fit_is_not_kept, clear, clear),
    };
    return cmocka_run_group_tests_name("serve/print", tests, NULL, NULL);
}
