#include "support/fake_supply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static int64_t figure(const struct sequence_table *t, const char *metric)
{
    const struct generator *g = t->base.after;
    for (unsigned i = 0; i < g->kind->nfigures; i++)
        if (strcmp(g->kind->figures[i].metric, metric) == 0)
            return g->kind->figures[i].value(g, 0);
    return -1;
}

static void the_time_until_the_max_is_shown(void **state)
{
    static const char metric[] = "sidflake_sequence_used_up_seconds";
    struct sequence_table t;
    (void)state;
    sequence_table_init(&t, &(struct sequence_options){.counters = 16,
                                                       .lasts_ms = 60000,
                                                       .max = 1000,
                                                       .prefix = "seq:",
                                                       .calendar = &fake_calendar});
    assert_true(sequence_table_adopt(&t, 0, &(struct sequence_name){.name = "few", .sub = "a"}));
    assert_true(sequence_table_adopt(&t, 1, &(struct sequence_name){.name = "few", .sub = "b"}));
    assert_true(figure(&t, metric) == GENERATOR_UNKNOWN);
    sequence_table_beyond(&t, 0, 100000);
    assert_true(figure(&t, metric) == GENERATOR_UNKNOWN); /* nobody takes any */
    t.place[0].numbers.rate = 0.25;
    assert_int_equal(figure(&t, metric), 400);
    sequence_table_beyond(&t, 1, SEQUENCE_TOP); /* it has no end */
    t.place[1].numbers.rate = 1e15;
    assert_int_equal(figure(&t, metric), 400);
    sequence_table_beyond(&t, 1, 2000);
    t.place[1].numbers.rate = 1;
    assert_int_equal(figure(&t, metric), 2);
    t.place[1].numbers.rate = 0.001;
    assert_int_equal(figure(&t, metric), 400);
    sequence_table_beyond(&t, 1, 0); /* there is none left, whatever the rate */
    t.place[1].numbers.rate = 0;
    assert_int_equal(figure(&t, metric), 0);
    sequence_table_clear(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_time_until_the_max_is_shown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
