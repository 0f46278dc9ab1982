#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Hands out the given numbers, one per fill. */
struct scripted {
    struct rng rng;
    const uint64_t *next;
};

static void scripted_fill(struct rng *r, void *out, size_t n)
{
    struct scripted *s = (struct scripted *)r;
    assert_int_equal(n, sizeof *s->next);
    memcpy(out, s->next++, n);
}

static uint64_t below(const uint64_t *script, uint64_t bound, size_t *drawn)
{
    struct scripted s = {{scripted_fill}, script};
    uint64_t v = rng_below(&s.rng, bound);
    *drawn = (size_t)(s.next - script);
    return v;
}

static void u64_is_what_was_filled(void **state)
{
    (void)state;
    const uint64_t script[] = {UINT64_C(0x0123456789abcdef)};
    struct scripted s = {{scripted_fill}, script};
    assert_true(rng_u64(&s.rng) == script[0]);
}

static void below_takes_the_remainder(void **state)
{
    (void)state;
    size_t drawn;
    assert_int_equal(below((const uint64_t[]){7}, 10, &drawn), 7);
    assert_int_equal(below((const uint64_t[]){12345}, 10, &drawn), 5);
    assert_int_equal(below((const uint64_t[]){12345}, 1, &drawn), 0);
    assert_int_equal(drawn, 1);
}

static void below_draws_again_in_the_short_last_stretch(void **state)
{
    (void)state;
    size_t drawn;
    /* 2^64 - 1 = 6148914691236517205 * 3: the last whole stretch of 3 ends there. */
    assert_int_equal(below((const uint64_t[]){UINT64_MAX, 5}, 3, &drawn), 2);
    assert_int_equal(drawn, 2);
    assert_int_equal(below((const uint64_t[]){UINT64_MAX - 1}, 3, &drawn), 2);
    assert_int_equal(drawn, 1);
    /* With a bound just above 2^63 nearly half of all numbers are beyond the one whole stretch. */
    const uint64_t bound = (UINT64_C(1) << 63) + 1;
    assert_true(below((const uint64_t[]){bound, UINT64_MAX, bound - 1}, bound, &drawn) ==
                bound - 1);
    assert_int_equal(drawn, 3);
}

static void the_system_fills_every_byte(void **state)
{
    (void)state;
    /* A byte left alone in 64 fills of a true random source has a chance of 2^-512. */
    unsigned char mem[48], seen[48] = {0};
    for (int round = 0; round < 64; round++) {
        memset(mem, 0, sizeof mem);
        rng_system()->fill(rng_system(), mem + 1, sizeof mem - 2);
        for (size_t i = 0; i < sizeof mem; i++)
            seen[i] |= mem[i];
    }
    assert_int_equal(seen[0], 0);
    assert_int_equal(seen[sizeof mem - 1], 0);
    for (size_t i = 1; i < sizeof mem - 1; i++)
        assert_int_not_equal(seen[i], 0);
    rng_system()->fill(rng_system(), mem, 0);
}

static void the_system_reaches_every_value(void **state)
{
    (void)state;
    unsigned count[5] = {0};
    for (int i = 0; i < 5000; i++) {
        uint64_t v = rng_below(rng_system(), 5);
        assert_true(v < 5);
        count[v]++;
    }
    for (size_t i = 0; i < 5; i++)
        assert_in_range(count[i], 700, 1300); /* 1000 expected, over 10 standard deviations */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(u64_is_what_was_filled),
        cmocka_unit_test(below_takes_the_remainder),
        cmocka_unit_test(below_draws_again_in_the_short_last_stretch),
        cmocka_unit_test(the_system_fills_every_byte),
        cmocka_unit_test(the_system_reaches_every_value),
    };
    return cmocka_run_group_tests_name("base/rng", tests, NULL, NULL);
}
