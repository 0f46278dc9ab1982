#include "lease/pair.h"

#include "base/mark.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct record {
    uint64_t version;
    uint64_t value;
    uint32_t some;
    uint32_t check;
};
PAIR_COPY(struct record);

static struct record copy[2];
static volatile uint64_t commit;

static int begin(void **state)
{
    (void)state;
    memset(copy, 0, sizeof copy);
    commit = 0;
    return 0;
}

static const struct record *current(void)
{
    return pair_current(&commit, copy, sizeof *copy);
}

static struct record *fill_in(uint64_t value)
{
    struct record *r = pair_begin(&commit, copy, sizeof *copy);
    r->value = value;
    return r;
}

static void store(uint64_t value)
{
    pair_commit(&commit, fill_in(value), sizeof *copy);
}

static void there_is_none_before_the_first(void **state)
{
    (void)state;
    assert_null(current());
    (void)fill_in(7);
    assert_null(current());
    store(7);
    assert_non_null(current());
}

static void the_latest_one_counts(void **state)
{
    (void)state;
    for (uint64_t v = 1; v < 100; v++) {
        store(v);
        assert_int_equal(current()->value, v);
        assert_int_equal(current()->version, v);
    }
}

/* Whoever is killed meanwhile leaves what counted. */
static void what_is_filled_in_does_not_count(void **state)
{
    (void)state;
    for (uint64_t v = 1; v < 10; v++) {
        store(v);
        struct record *next = fill_in(100 + v);
        assert_ptr_not_equal(next, current());
        assert_int_equal(current()->value, v);
        memset(next, (int)v, sizeof *next);
        assert_int_equal(current()->value, v);
    }
}

static void nothing_is_left_of_what_was_in_the_copy(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct record *r = fill_in(1);
        r->some = 5;
        pair_commit(&commit, r, sizeof *r);
    }
    const struct record *r = fill_in(0);
    assert_int_equal(r->some, 0);
    assert_int_equal(r->value, 0);
    assert_int_equal(r->version, 3);
}

/* Each byte of it, and of its commit. */
static void what_is_damaged_does_not_count(void **state)
{
    (void)state;
    store(1);
    store(2);
    uint8_t *bytes = (uint8_t *)(uintptr_t)current();
    for (size_t i = 0; i < sizeof(struct record); i++) {
        bytes[i] ^= 1;
        assert_null(current());
        bytes[i] ^= 1;
    }
    for (unsigned bit = 0; bit < 64; bit++) {
        commit ^= UINT64_C(1) << bit;
        assert_null(current());
        commit ^= UINT64_C(1) << bit;
    }
    assert_int_equal(current()->value, 2);
}

/* As whoever was killed before the commit leaves it: whole, and of a version to come. */
static void a_commit_names_its_copy(void **state)
{
    (void)state;
    store(1);
    uint64_t before = commit;
    store(2);
    commit = before;
    assert_int_equal(current()->value, 1);
    store(3);
    assert_int_equal(current()->value, 3);
}

static void after_damage_a_store_counts(void **state)
{
    (void)state;
    store(1);
    store(2);
    commit ^= 1;
    store(3);
    assert_int_equal(current()->value, 3);
}

#define TEST(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(there_is_none_before_the_first),   TEST(the_latest_one_counts),
        TEST(what_is_filled_in_does_not_count), TEST(nothing_is_left_of_what_was_in_the_copy),
        TEST(what_is_damaged_does_not_count),   TEST(a_commit_names_its_copy),
        TEST(after_damage_a_store_counts),
    };
    return cmocka_run_group_tests_name("lease/pair", tests, NULL, NULL);
}
