/* What a user may of the servers behind. */
#include "serve/rights.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void classes(void **state)
{
    static const bool may[3][2][4] = {
        /* HERE, READ, CHANGE, OTHER: without keys=, with */
        [USER_NONE] = {{true, false, false, false}, {true, false, false, false}},
        [USER_READ] = {{true, true, false, false}, {true, true, false, false}},
        [USER_ALL] = {{true, true, true, true}, {true, true, true, false}},
    };
    (void)state;
    for (int upstream = USER_NONE; upstream <= USER_ALL; upstream++)
        for (int keys = 0; keys < 2; keys++)
            for (int what = RIGHTS_HERE; what <= RIGHTS_OTHER; what++) {
                const struct user u = {.upstream = (enum user_upstream)upstream,
                                       .keys = keys ? SPAN("a*") : span_of(NULL, 0)};
                if (rights_may(&u, (enum rights_class)what) != may[upstream][keys][what])
                    fail_msg("upstream %d, keys %d, class %d", upstream, keys, what);
                assert_true(rights_limited(&u) == (upstream != USER_ALL || keys));
            }
}

static void keys(void **state)
{
    const struct user any = {.upstream = USER_ALL};
    const struct user some = {.upstream = USER_ALL, .keys = SPAN("page:*,x,[ab]?")};
    (void)state;
    assert_true(rights_key(&any, SPAN("page:1")) && rights_key(&any, SPAN("")));
    assert_true(rights_key(&some, SPAN("page:1")) && rights_key(&some, SPAN("x")));
    assert_true(rights_key(&some, SPAN("b\n")) && rights_key(&some, SPAN("page:\0y")));
    assert_false(rights_key(&some, SPAN("X")) || rights_key(&some, SPAN("page")));
    assert_false(rights_key(&some, SPAN("xx")) || rights_key(&some, SPAN("")));
    assert_false(rights_key(&some, SPAN("x\0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes), cmocka_unit_test(keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
