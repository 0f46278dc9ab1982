#include "base/parcel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Two records; the bytes are the caller's to free, in a block of their exact size. */
static struct span parcel(void)
{
    static char mem[1024];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    parcel_put_head(&b, PARCEL_TAKE, 4711);
    size_t at = parcel_begin(&b, PARCEL_LISTENER, 7);
    parcel_put_bytes(&b, SPAN("redis"));
    parcel_put_u64(&b, UINT64_MAX);
    parcel_end(&b, at);
    at = parcel_begin(&b, PARCEL_STORY, -1);
    parcel_end(&b, at);
    assert_false(b.failed);
    char *copy = malloc(b.n);
    assert_non_null(copy);
    memcpy(copy, mem, b.n);
    return span_of(copy, b.n);
}

static void what_is_put_in_comes_out(void **state)
{
    (void)state;
    struct span whole = parcel(), in = whole, text;
    struct parcel_head head;
    struct parcel_record r;
    uint64_t v;
    assert_true(parcel_head(&in, &head));
    assert_true(head.version == PARCEL_VERSION && head.purpose == PARCEL_TAKE && head.pid == 4711);
    assert_true(parcel_next(&in, &r));
    assert_true(r.kind == PARCEL_LISTENER && r.fd == 7);
    assert_true(parcel_get_bytes(&r.body, &text) && span_eq(text, SPAN("redis")));
    assert_true(parcel_get_u64(&r.body, &v) && v == UINT64_MAX);
    assert_int_equal(r.body.n, 0);
    assert_false(parcel_get_u64(&r.body, &v));
    assert_true(parcel_next(&in, &r));
    assert_true(r.kind == PARCEL_STORY && r.fd == -1 && r.body.n == 0);
    assert_false(parcel_next(&in, &r));
    free((void *)(uintptr_t)whole.p);
}

/* Read to the end whatever is missing, in blocks of their exact size. */
static void a_parcel_cut_anywhere_is_read_no_further(void **state)
{
    (void)state;
    struct span whole = parcel();
    for (size_t n = 0; n < whole.n; n++) {
        char *cut = malloc(n ? n : 1);
        struct parcel_head head;
        struct parcel_record r;
        unsigned records = 0;
        assert_non_null(cut);
        memcpy(cut, whole.p, n);
        struct span in = span_of(cut, n);
        for (bool more = parcel_head(&in, &head); more && parcel_next(&in, &r);)
            records++;
        assert_true(records < 2);
        free(cut);
    }
    free((void *)(uintptr_t)whole.p);
}

static void lengths_and_descriptors_that_cannot_be_are_none(void **state)
{
    (void)state;
    char mem[64];
    struct buf b;
    struct parcel_record r;
    uint64_t v;
    static const uint64_t bad[] = {9, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        buf_init(&b, mem, sizeof mem);
        parcel_put_u64(&b, 1);
        parcel_put_u64(&b, 3);
        parcel_put_u64(&b, bad[i]);
        buf_put(&b, "12345678", 8);
        struct span in = buf_span(&b);
        assert_false(parcel_next(&in, &r));
    }
    for (size_t i = 1; i < sizeof bad / sizeof *bad; i++) {
        buf_init(&b, mem, sizeof mem);
        parcel_put_u64(&b, 1);
        parcel_put_u64(&b, bad[i]);
        parcel_put_u64(&b, 0);
        struct span in = buf_span(&b);
        assert_true(parcel_next(&in, &r) && r.fd == -1);
    }
    struct span in = span_of("\1\0\0\0\0\0\0\0", 8);
    assert_false(parcel_get_upto(&in, 0, &v));
}

static void one_that_does_not_fit_fails(void **state)
{
    (void)state;
    char mem[70];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    parcel_put_head(&b, PARCEL_TAKE, 1);
    size_t before = b.n;
    size_t at = parcel_begin(&b, PARCEL_PAGE, 3);
    parcel_put_bytes(&b, SPAN("twenty bytes of text"));
    parcel_end(&b, at);
    assert_true(b.failed);
    buf_truncate(&b, before);
    at = parcel_begin(&b, PARCEL_PAGE, 3);
    parcel_end(&b, at);
    assert_false(b.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_put_in_comes_out),
        cmocka_unit_test(a_parcel_cut_anywhere_is_read_no_further),
        cmocka_unit_test(lengths_and_descriptors_that_cannot_be_are_none),
        cmocka_unit_test(one_that_does_not_fit_fails),
    };
    return cmocka_run_group_tests_name("base/parcel", tests, NULL, NULL);
}
