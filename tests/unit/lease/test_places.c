/* What the loop tells of counters, until it is heard. */
#include "lease/places.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Told in a row, and heard at once: neither takes the other's place. */
static void a_look_and_numbers_are_both_wanted(void **state)
{
    static const struct blocks_want look = {.look = true}, numbers = {.count = 10};
    static const struct blocks_want *const told[][2] = {{&look, &numbers}, {&numbers, &look}};
    struct places p;
    struct defined d = {.n = 0};
    struct err e;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(places_init(&p, 4, &e), ERR_OK);
        places_tell_open(&p, 0, &(struct blocks_name){.name = "a"});
        places_tell_want(&p, 0, told[i][0]);
        places_tell_want(&p, 0, told[i][1]);
        places_hear(&p, &d);
        assert_true(p.v[0].wants && p.v[0].want.look);
        assert_int_equal(p.v[0].want.count, 10);
        places_clear(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_look_and_numbers_are_both_wanted),
    };
    return cmocka_run_group_tests_name("lease/places", tests, NULL, NULL);
}
