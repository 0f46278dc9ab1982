#include "serve/watch/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void process_stat(void **state)
{
    (void)state;
    const struct process before = {1, 2, 3, 4, 5, 6};
    struct process p = before;
    struct span good = SPAN("42 (a) b) (c) S 1 42 42 0 -1 4194560 9 8 7 6 5 4 3 2 20 0 3 0 1234 "
                            "987654321 55 18446744073709551615 1 1");
    assert_true(process_parse_stat(good, 4096, &p));
    assert_int_equal(p.threads, 3);
    assert_int_equal(p.virtual_bytes, 987654321);
    assert_int_equal(p.resident_bytes, 55 * 4096);
    assert_int_equal(p.cpu_us, 1);
    static const char *const bad[] = {
        "",
        ")",
        "42 (a)",
        "42 (a) S 1 2 3",
        "42 a S 1 42 42 0 -1 4 9 8 7 6 5 4 3 2 20 0 3 0 1 9 5 1",
        "42 (a) S 1 42 42 0 -1 4 9 8 7 6 5 4 3 2 20 0 x 0 1234 987654321 55 1",
        "42 (a) S 1 42 42 0 -1 4 9 8 7 6 5 4 3 2 20 0 3 0 1234 987654321 9223372036854775807 1",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        p = before;
        assert_false(process_parse_stat(span_str(bad[i]), 4096, &p));
        assert_memory_equal(&p, &before, sizeof p);
    }
}

static void process_now(void **state)
{
    (void)state;
    struct process a, b;
    process_read(&a);
    FILE *file = fopen("/dev/null", "r");
    assert_non_null(file);
    process_read(&b);
    fclose(file);
    assert_int_equal(b.open_fds, a.open_fds + 1);
    assert_true(a.cpu_us >= 0 && b.cpu_us >= a.cpu_us);
    assert_true(a.max_fds >= a.open_fds);
    assert_true(a.virtual_bytes > a.resident_bytes && a.resident_bytes > 65536);
    assert_in_range(a.threads, 1, 8); /* a sanitizer may have its own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_stat),
        cmocka_unit_test(process_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
