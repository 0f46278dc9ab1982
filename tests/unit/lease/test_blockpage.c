#include "lease/blockpage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS 4u

static const struct page_home home = {.boot = "0123456789abcde", .device = 0xFD00, .inode = 4711};
static struct blockpage *p;

static int setup(void **state)
{
    (void)state;
    p = calloc(1, blockpage_size(SLOTS));
    assert_non_null(p);
    blockpage_format(p, SLOTS, &home, "pool");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    free(p);
    return 0;
}

static struct blockpage_record record_of(int64_t seed)
{
    struct blockpage_record r = {.state = PAGE_HELD,
                                 .of = {"orders", "acme", "2026-11-22"},
                                 .gen = seed + 1,
                                 .turn = seed + 2,
                                 .era = seed + 3,
                                 .n = seed + 4,
                                 .opening = 5,
                                 .lo = seed,
                                 .hi = seed + 9,
                                 .start = 1,
                                 .increment = -2,
                                 .definition = 77,
                                 .reset = PERIOD_DAY,
                                 .offset_min = -90};
    memset(r.token.b, (int)seed, sizeof r.token.b);
    return r;
}

static void assert_same(const struct blockpage_record *a, const struct blockpage_record *b)
{
    assert_int_equal(a->state, b->state);
    assert_true(blocks_name_equal(&a->of, &b->of));
    assert_memory_equal(a->token.b, b->token.b, 16);
    assert_true(a->gen == b->gen && a->turn == b->turn && a->era == b->era && a->n == b->n);
    assert_true(a->lo == b->lo && a->hi == b->hi && a->opening == b->opening);
    assert_true(a->start == b->start && a->increment == b->increment);
    assert_true(a->definition == b->definition);
    assert_true(a->reset == b->reset && a->offset_min == b->offset_min);
}

static void what_is_stored_is_there(void **state)
{
    (void)state;
    struct blockpage_record r;
    assert_true(blockpage_load(p, 0, &r));
    assert_int_equal(r.state, PAGE_FREE);
    for (int64_t i = 0; i < 50; i++) {
        const struct blockpage_record want = record_of(i);
        blockpage_store(p, (unsigned)i % SLOTS, &want);
        assert_true(blockpage_load(p, (unsigned)i % SLOTS, &r));
        assert_same(&want, &r);
    }
}

/* Whatever of the copy that does not count was written, without the commit. */
static void a_store_that_was_cut_short_leaves_the_old_record(void **state)
{
    (void)state;
    const struct blockpage_record old = record_of(1), next = record_of(2);
    struct blockpage_slot before, after;
    struct blockpage_record r;
    blockpage_store(p, 0, &old);
    before = p->slot[0];
    blockpage_store(p, 0, &next);
    after = p->slot[0];
    for (size_t n = 0; n <= sizeof after.copy; n += 8) {
        p->slot[0] = before;
        memcpy((void *)&p->slot[0], &after, n);
        assert_true(blockpage_load(p, 0, &r));
        assert_same(&old, &r);
    }
}

static void damage_is_seen(void **state)
{
    (void)state;
    const struct blockpage_record want = record_of(1);
    struct blockpage_record r;
    blockpage_store(p, 0, &want);
    for (size_t i = 0; i < sizeof(struct blockpage_copy); i++) {
        uint8_t *at = p->slot[0].bytes + i;
        *at ^= 0x40;
        assert_false(blockpage_load(p, 0, &r));
        assert_int_equal(r.state, PAGE_FREE);
        *at ^= 0x40;
    }
    assert_true(blockpage_load(p, 0, &r));
    p->slot[0].commit ^= 1;
    assert_false(blockpage_load(p, 0, &r));
}

/* Of right check values all the same: asked of the coordinator it would be refused, and with it
 * whatever else is asked in that call. */
static void what_nobody_can_have_been_granted_is_a_gap(void **state)
{
    (void)state;
    const struct blockpage_record good = record_of(1);
    struct blockpage_record bad[12], r;
    for (size_t i = 0; i < 12; i++)
        bad[i] = good;
    bad[0].gen = -1;
    bad[1].turn = SEQ_INDEX_MAX + 1;
    bad[2].era = INT64_MIN;
    bad[3].n = -5;
    bad[4].lo = -1;
    bad[5].lo = bad[5].hi + 1;
    bad[6].hi = bad[6].lo + SEQ_BLOCK_MAX;
    bad[7].increment = INT64_MIN;
    bad[8].start = INT64_MAX;
    bad[9].of.name[0] = ' ';
    bad[10].of.sub[1] = '\n';
    bad[11].of.period[0] = 'x';
    for (size_t i = 0; i < 12; i++) {
        blockpage_store(p, 0, &bad[i]);
        assert_false(blockpage_load(p, 0, &r));
        assert_int_equal(r.state, PAGE_FREE);
    }
    blockpage_store(p, 0, &good);
    assert_true(blockpage_load(p, 0, &r));
    bad[4].state = PAGE_FREE; /* of what is free nothing is told */
    blockpage_store(p, 0, &bad[4]);
    assert_true(blockpage_load(p, 0, &r));
}

static void an_opening_that_no_call_can_tell_is_none(void **state)
{
    (void)state;
    const struct seq_opening good = {1, 2, "run:1"};
    struct seq_opening bad[3] = {good, good, good}, o;
    uint32_t serial;
    bad[0].era = -1;
    bad[1].topen_ms = SEQ_INDEX_MAX + 1;
    bad[2].fingerprint[0] = '\n';
    (void)blockpage_set_opening(p, &good);
    assert_true(blockpage_opening(p, &o, &serial));
    for (size_t i = 0; i < 3; i++) {
        (void)blockpage_set_opening(p, &bad[i]);
        assert_false(blockpage_opening(p, &o, &serial));
    }
}

static void a_mark_begins_anew_with_its_block(void **state)
{
    (void)state;
    struct blockpage_record r = record_of(1);
    blockpage_store(p, 0, &r);
    assert_int_equal(blockpage_given(p, 0, 10), 0);
    mark_store(&p->slot[0].mark, 4);
    blockpage_store(p, 0, &r); /* its hi was cut, say */
    assert_int_equal(blockpage_given(p, 0, 10), 4);
    assert_int_equal(blockpage_given(p, 0, 3), 3);
    r.state = PAGE_LEAVING;
    blockpage_store(p, 0, &r);
    assert_int_equal(blockpage_given(p, 0, 10), 4);
    r.state = PAGE_FREE;
    blockpage_store(p, 0, &r);
    r.state = PAGE_HELD;
    blockpage_store(p, 0, &r);
    assert_int_equal(blockpage_given(p, 0, 10), 0);
    p->slot[0].mark ^= 1;
    assert_int_equal(blockpage_given(p, 0, 10), 10);
}

static void an_area_is_judged_by_its_head(void **state)
{
    (void)state;
    struct err why;
    struct page_home other = home;
    size_t size = blockpage_size(SLOTS);
    assert_int_equal(blockpage_judge(p, size, &home, &why), PAGE_OWN);
    assert_int_equal(blockpage_judge(p, size - 1, &home, &why), PAGE_BROKEN);
    assert_non_null(strstr(why.text, "bytes")); /* the version is what it was */
    assert_null(strstr(why.text, "version"));
    assert_int_equal(blockpage_judge(p, 10, &home, &why), PAGE_BROKEN);
    other.inode++;
    assert_int_equal(blockpage_judge(p, size, &other, &why), PAGE_FOREIGN);
    p->head.identity[0] ^= 1;
    assert_int_equal(blockpage_judge(p, size, &home, &why), PAGE_BROKEN);
    p->head.version++;
    assert_int_equal(blockpage_judge(p, size, &home, &why), PAGE_BROKEN);
    p->head.magic[0] = 'X';
    assert_int_equal(blockpage_judge(p, size, &home, &why), PAGE_BROKEN);
}

static void openings_are_numbered(void **state)
{
    (void)state;
    struct seq_opening a = {7, 1000, "run:1"}, b = {7, 1000, "run:2"}, out;
    uint32_t serial;
    assert_false(blockpage_opening(p, &out, &serial));
    assert_int_equal(serial, 0);
    assert_int_equal(blockpage_set_opening(p, &a), 1);
    assert_int_equal(blockpage_set_opening(p, &a), 1);
    assert_int_equal(blockpage_set_opening(p, &b), 2);
    assert_true(blockpage_opening(p, &out, &serial));
    assert_true(serial == 2 && blockpage_same_opening(&out, &b));
    b.topen_ms++;
    assert_int_equal(blockpage_set_opening(p, &b), 3);
    b.era++;
    assert_int_equal(blockpage_set_opening(p, &b), 4);
    p->head.opening[0].of.era ^= 1; /* which of them counts is not known here */
    p->head.opening[1].of.era ^= 1;
    assert_false(blockpage_opening(p, &out, &serial));
    assert_int_equal(blockpage_set_opening(p, &a), 5);
}

static void the_coordinators_time_goes_on_with_the_monotonic_clock(void **state)
{
    (void)state;
    int64_t ms;
    assert_false(blockpage_time(p, 1000, &ms));
    assert_int_equal(ms, 0);
    blockpage_set_time(p, 5000000, 1000);
    assert_true(blockpage_time(p, 1000, &ms) && ms == 5000000);
    assert_true(blockpage_time(p, 1300, &ms) && ms == 5000300);
    assert_false(blockpage_time(p, 999, &ms)); /* of no earlier time of this boot */
    blockpage_set_time(p, 4000000, 2000);      /* it was set back */
    assert_true(blockpage_time(p, 2001, &ms) && ms == 4000001);
    p->head.time[0].ms ^= 1;
    p->head.time[1].ms ^= 1;
    assert_false(blockpage_time(p, 2001, &ms));
    blockpage_set_time(p, 4000000, 2000);
    blockpage_clear(p, SLOTS, "another");
    assert_false(blockpage_time(p, 2001, &ms));
}

/* What it says of its size may be anybody's by then. */
static void one_that_was_written_over_is_emptied_as_large_as_it_was(void **state)
{
    (void)state;
    const struct blockpage_record r = {
        .state = PAGE_HELD, .of = {.name = "orders"}, .hi = 99, .increment = 1};
    struct blockpage_record found;
    blockpage_store(p, SLOTS - 1, &r);
    p->head.slots = UINT32_MAX;
    blockpage_clear(p, SLOTS, "another");
    assert_int_equal(p->head.slots, SLOTS);
    assert_string_equal(p->head.identity, "another");
    (void)blockpage_load(p, SLOTS - 1, &found);
    assert_int_equal(found.state, PAGE_FREE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_stored_is_there, setup, teardown),
        cmocka_unit_test_setup_teardown(a_store_that_was_cut_short_leaves_the_old_record, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(damage_is_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(what_nobody_can_have_been_granted_is_a_gap, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_opening_that_no_call_can_tell_is_none, setup, teardown),
        cmocka_unit_test_setup_teardown(a_mark_begins_anew_with_its_block, setup, teardown),
        cmocka_unit_test_setup_teardown(an_area_is_judged_by_its_head, setup, teardown),
        cmocka_unit_test_setup_teardown(openings_are_numbered, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_was_written_over_is_emptied_as_large_as_it_was,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_coordinators_time_goes_on_with_the_monotonic_clock,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
