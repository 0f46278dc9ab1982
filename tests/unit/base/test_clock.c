#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

struct stopped {
    struct clock clock;
    int64_t us;
};

static int64_t stopped_us(struct clock *c)
{
    return ((struct stopped *)c)->us;
}

static void milliseconds_round_down(void **state)
{
    (void)state;
    static const int64_t cases[][2] = {
        {0, 0}, {999, 0}, {1000, 1}, {1999, 1}, {-1, -1}, {-999, -1}, {-1000, -1}, {-1001, -2},
    };
    struct stopped s = {{stopped_us, stopped_us}, 0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        s.us = cases[i][0];
        assert_int_equal(clock_wall_ms(&s.clock), cases[i][1]);
        assert_int_equal(clock_wall_us(&s.clock), cases[i][0]);
    }
    s.us = 5999;
    assert_int_equal(clock_mono_ms(&s.clock), 5);
    assert_int_equal(clock_mono_us(&s.clock), 5999);
}

static void wall_time_is_the_systems(void **state)
{
    (void)state;
    int64_t before = (int64_t)time(NULL);
    int64_t us = clock_wall_us(clock_system());
    int64_t after = (int64_t)time(NULL);
    /* time() may lag by a tick of the kernel's coarse clock. */
    assert_true(us >= (before - 1) * 1000000);
    assert_true(us <= (after + 2) * 1000000);
}

static void monotonic_time_rises(void **state)
{
    (void)state;
    struct clock *c = clock_system();
    int64_t first = clock_mono_us(c), last = first;
    while (last < first + 2000) {
        int64_t now = clock_mono_us(c);
        assert_true(now >= last);
        last = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(milliseconds_round_down),
        cmocka_unit_test(wall_time_is_the_systems),
        cmocka_unit_test(monotonic_time_rises),
    };
    return cmocka_run_group_tests_name("base/clock", tests, NULL, NULL);
}
