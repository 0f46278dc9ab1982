/* Who is next, on a clock of our own. */
#include "auth/queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    MANY = 2000
};

static struct queue q;
static struct queue_entry e[MANY], bystander, other;

static struct queue_peer peer(uint64_t n)
{
    return (struct queue_peer){{n, ~n}};
}

static void put(struct queue_entry *x, uint64_t who, unsigned refused, int64_t now_us)
{
    struct queue_peer p = peer(who);
    assert_true(queue_put(&q, x, &p, refused, now_us));
}

static int begin(void **state)
{
    (void)state;
    queue_init(&q);
    return 0;
}

static int end(void **state)
{
    struct queue_entry *x;
    (void)state;
    while ((x = queue_any(&q)))
        queue_remove(&q, x);
    for (unsigned i = 0; i < QUEUE_BUCKETS; i++)
        assert_null(q.bucket[i]);
    return 0;
}

static void one_after_the_other(void **state)
{
    (void)state;
    assert_null(queue_take(&q, 0));
    for (int i = 0; i < 10; i++)
        put(&e[i], 1, 0, 0);
    for (int i = 0; i < 10; i++)
        assert_ptr_equal(queue_take(&q, 0), &e[i]);
    assert_null(queue_take(&q, 0));
}

/* Thousands of one party, which come again as soon as they have been answered. */
static void parties_take_turns(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        put(&e[i], 1, 0, 0);
    put(&bystander, 2, 0, 0);
    put(&other, 3, 0, 0);
    struct queue_entry *first = queue_take(&q, 0);
    put(first, 1, 0, 0);
    assert_ptr_equal(queue_take(&q, 0), &bystander);
    assert_ptr_equal(queue_take(&q, 0), &other);
    assert_ptr_not_equal(queue_take(&q, 0), first);
}

/* Of the same party: who has had no wrong answer yet goes before who has. */
static void fresh_ones_first(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++)
        put(&e[i], 1, 1, 0);
    assert_null(queue_take(&q, QUEUE_DELAY_US - 1));
    assert_ptr_equal(queue_take(&q, QUEUE_DELAY_US), &e[0]);
    put(&bystander, 1, 0, QUEUE_DELAY_US);
    assert_ptr_equal(queue_take(&q, QUEUE_DELAY_US), &bystander);
    assert_ptr_equal(queue_take(&q, QUEUE_DELAY_US), &e[1]);
}

/* But these do not wait for ever while others come. */
static void nobody_starves(void **state)
{
    int picks = 0;
    (void)state;
    put(&bystander, 1, 1, 0);
    put(&e[0], 1, 0, 0);
    for (struct queue_entry *x; (x = queue_take(&q, QUEUE_DELAY_US)) != &bystander;) {
        assert_in_range(++picks, 1, 3);
        put(x, 1, 0, 0);
    }
}

static void delays_double(void **state)
{
    (void)state;
    for (unsigned refused = 1; refused <= 255; refused++) {
        unsigned steps = refused < QUEUE_DELAYS ? refused - 1 : QUEUE_DELAYS - 1;
        int64_t due = 7 + (QUEUE_DELAY_US << steps);
        assert_int_equal(queue_due_us(&q), INT64_MAX);
        put(&e[0], 1, refused, 7);
        assert_int_equal(queue_due_us(&q), due);
        assert_null(queue_take(&q, due - 1));
        assert_ptr_equal(queue_take(&q, due), &e[0]);
    }
    put(&e[0], 1, 6, 0);
    put(&e[1], 1, 1, 0);
    assert_int_equal(queue_due_us(&q), QUEUE_DELAY_US);
}

static void what_has_gone_is_forgotten(void **state)
{
    (void)state;
    put(&e[0], 1, 0, 0);
    put(&e[1], 1, 2, 0);
    put(&e[2], 2, 0, 0);
    queue_remove(&q, &e[0]);
    assert_ptr_equal(queue_take(&q, 0), &e[2]);
    queue_remove(&q, &e[1]);
    assert_null(queue_any(&q));
    put(&e[0], 1, 0, 0);
    assert_ptr_equal(queue_any(&q), &e[0]);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_after_the_other), TEST(parties_take_turns), TEST(fresh_ones_first),
        TEST(nobody_starves),      TEST(delays_double),      TEST(what_has_gone_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
