#include "base/err.h"

#include <errno.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void set_stores_code_and_text(void **state)
{
    (void)state;
    struct err e = {ERR_OK, ""};
    assert_int_equal(err_set(&e, ERR_RANGE, "expected 1..%d, found %s", 9, "12"), ERR_RANGE);
    assert_int_equal(e.code, ERR_RANGE);
    assert_string_equal(e.text, "expected 1..9, found 12");
}

static void null_wants_only_the_code(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_BUSY, "%s", "held"), ERR_BUSY);
    assert_int_equal(err_errno(NULL, ENOENT, "open %s", "x"), ERR_IO);
}

static void errno_is_spelled_out(void **state)
{
    (void)state;
    struct err e;
    assert_int_equal(err_errno(&e, ENOENT, "cannot open %s", "page"), ERR_IO);
    assert_int_equal(e.code, ERR_IO);
    assert_string_equal(e.text, "cannot open page: No such file or directory");
}

static void long_texts_are_cut(void **state)
{
    (void)state;
    struct {
        struct err e;
        char after[8];
    } m = {.after = "intact"};
    char longer[2 * ERR_TEXT_MAX];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';

    (void)err_set(&m.e, ERR_INVALID, "%s", longer);
    assert_int_equal(strlen(m.e.text), ERR_TEXT_MAX - 1);
    (void)err_errno(&m.e, EIO, "%s", longer);
    assert_int_equal(strlen(m.e.text), ERR_TEXT_MAX - 1);
    (void)err_errno(&m.e, EIO, "%.*s", ERR_TEXT_MAX - 4, longer);
    assert_int_equal(strlen(m.e.text), ERR_TEXT_MAX - 1);
    assert_string_equal(m.e.text + ERR_TEXT_MAX - 4, ": I");
    assert_string_equal(m.after, "intact");
}

static void a_text_can_wrap_itself(void **state)
{
    (void)state;
    struct err e;
    (void)err_set(&e, ERR_CORRUPT, "bad check bits");
    assert_int_equal(err_set(&e, ERR_CORRUPT, "page of %s: %s", "w7", e.text), ERR_CORRUPT);
    assert_string_equal(e.text, "page of w7: bad check bits");
    (void)err_errno(&e, EIO, "again: %s", e.text);
    assert_string_equal(e.text, "again: page of w7: bad check bits: Input/output error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(set_stores_code_and_text), cmocka_unit_test(null_wants_only_the_code),
        cmocka_unit_test(errno_is_spelled_out),     cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(a_text_can_wrap_itself),
    };
    return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
