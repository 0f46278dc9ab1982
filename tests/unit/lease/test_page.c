#include "lease/page.h"
#include "support/seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define LO INT64_C(1780000000000)

static const struct page_home home = {.boot = "0123456789abcde",
                                      .device = 0xFD00,
                                      .inode = 4711,
                                      .coordinator = UINT64_C(0x1122334455667788)};

static struct page_record record_of(unsigned seed)
{
    struct page_record r = {.state = PAGE_HELD,
                            .worker = (uint16_t)(seed % COORD_WORKERS),
                            .renewing = seed % 2 != 0,
                            .ahead = seed % 3 == 0,
                            .n = 17 + seed,
                            .lo_ms = LO + seed,
                            .hi_ms = LO + 30000 + seed};
    memset(r.cur.b, (int)(0x30 + seed % 64), sizeof r.cur.b);
    memset(r.nxt.b, (int)(0x80 + seed % 64), sizeof r.nxt.b);
    return r;
}

static void assert_same(const struct page_record *a, const struct page_record *b)
{
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->worker, b->worker);
    assert_int_equal(a->renewing, b->renewing);
    assert_int_equal(a->ahead, b->ahead);
    assert_memory_equal(a->cur.b, b->cur.b, 16);
    assert_memory_equal(a->nxt.b, b->nxt.b, 16);
    assert_true(a->n == b->n && a->lo_ms == b->lo_ms && a->hi_ms == b->hi_ms);
}

static bool same(const struct page_record *a, const struct page_record *b)
{
    return a->state == b->state && a->worker == b->worker && a->renewing == b->renewing &&
           a->ahead == b->ahead && memcmp(a->cur.b, b->cur.b, 16) == 0 &&
           memcmp(a->nxt.b, b->nxt.b, 16) == 0 && a->n == b->n && a->lo_ms == b->lo_ms &&
           a->hi_ms == b->hi_ms;
}

/* As the keeper does it: the mark first, then the record that makes it count. */
static void put(struct page *p, unsigned slot, const struct page_record *r)
{
    mark_store(&p->slot[slot].mark, r->lo_ms - 1);
    page_store(p, slot, r);
}

static enum page_verdict judge(const struct page *p, struct err *why)
{
    return page_judge(p, &home, why);
}

static void what_is_stored_is_loaded(void **state)
{
    (void)state;
    struct page p;
    struct page_record got;
    struct err why;
    page_format(&p, &home, 99);
    assert_int_equal(judge(&p, &why), PAGE_OWN);
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        assert_true(page_load(&p, i, &got));
        assert_int_equal(got.state, PAGE_FREE);
    }
    for (unsigned times = 0; times < 5; times++) {
        for (unsigned i = 0; i < PAGE_SLOTS; i++) {
            struct page_record r = record_of(i * 100 + times);
            put(&p, i, &r);
            assert_true(page_load(&p, i, &got));
            assert_same(&got, &r);
        }
    }
    assert_int_equal(judge(&p, &why), PAGE_OWN);
    assert_int_equal(p.head.pid, 99);
}

static void the_identity_is_pinned_and_the_rest_stays(void **state)
{
    (void)state;
    struct page p;
    struct err why;
    struct page_record r = record_of(3), got;
    char longer[COORD_IDENTITY_MAX + 20];
    page_format(&p, &home, 1);
    put(&p, 3, &r);
    page_set_identity(&p, "uuid|1767225600000|38.15.10");
    assert_string_equal(p.head.identity, "uuid|1767225600000|38.15.10");
    assert_int_equal(judge(&p, &why), PAGE_OWN);
    page_set_identity(&p, "u");
    assert_string_equal(p.head.identity, "u");
    assert_true(page_load(&p, 3, &got));
    assert_same(&got, &r);
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    page_set_identity(&p, longer); /* cut, and still ended */
    assert_int_equal(strlen(p.head.identity), COORD_IDENTITY_MAX - 1);
    assert_int_equal(judge(&p, &why), PAGE_OWN);
}

/* ---- damage -----------------------------------------------------------------------------------
 */

static void fill(struct page *p)
{
    page_format(p, &home, 4242);
    page_set_identity(p, "11111111-2222-4333-8444-555555555555|1767225600000|38.15.10");
    for (unsigned i = 0; i < 20; i++) {
        struct page_record r = record_of(i);
        for (unsigned again = 0; again <= i % 4; again++) {
            r.n++;
            put(p, i, &r);
        }
        r.state = i % 5 == 0 ? PAGE_LEAVING : i % 7 == 0 ? PAGE_FREE : PAGE_HELD;
        page_store(p, i, &r);
        mark_store(&p->slot[i].mark, r.lo_ms + 5 + i);
    }
}

/* Everything that a process taking over would believe. */
static void assert_harmless(const struct page *damaged, const struct page *whole)
{
    assert_memory_equal(damaged->head.identity, whole->head.identity, COORD_IDENTITY_MAX);
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_record a, b;
        int64_t last_a, last_b;
        assert_true(page_load(damaged, i, &a) && page_load(whole, i, &b));
        /* A slot that was zeroed is forgotten: its workerId rests, and nobody issues from it. */
        if (damaged->slot[i].commit == 0 && a.state == PAGE_FREE)
            continue;
        assert_same(&a, &b);
        if (b.state == PAGE_FREE)
            continue;
        assert_true(mark_load(&damaged->slot[i].mark, &last_a));
        assert_true(mark_load(&whole->slot[i].mark, &last_b));
        assert_true(last_a == last_b);
    }
}

static void every_flipped_bit_is_seen_or_harmless(void **state)
{
    (void)state;
    static struct page whole, damaged;
    unsigned seen = 0, harmless = 0;
    fill(&whole);
    for (size_t bit = 0; bit < sizeof whole * 8; bit++) {
        struct err why;
        memcpy(&damaged, &whole, sizeof whole);
        ((uint8_t *)&damaged)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        if (judge(&damaged, &why) != PAGE_OWN) {
            seen++;
            continue;
        }
        harmless++;
        assert_harmless(&damaged, &whole);
    }
    assert_true(seen > 20 * 76 * 8); /* head, and of each slot in use copy, commit and mark */
    assert_true(harmless > 0);
}

static void scribbled_bytes_are_seen_or_harmless(void **state)
{
    (void)state;
    static struct page whole, damaged;
    struct seeded rng = seeded_of(42);
    fill(&whole);
    for (int i = 0; i < 50000; i++) {
        struct err why;
        memcpy(&damaged, &whole, sizeof whole);
        size_t at = (size_t)seeded_in(&rng, 0, sizeof whole - 1);
        size_t n = (size_t)seeded_in(&rng, 1, 64);
        for (size_t k = at; k < at + n && k < sizeof whole; k++)
            ((uint8_t *)&damaged)[k] = seeded_in(&rng, 0, 3) ? (uint8_t)rng_u64(&rng.rng) : 0;
        if (judge(&damaged, &why) == PAGE_OWN)
            assert_harmless(&damaged, &whole);
    }
}

static void any_bytes_can_be_judged(void **state)
{
    (void)state;
    static struct page p;
    struct seeded rng = seeded_of(7);
    for (int i = 0; i < 2000; i++) {
        struct err why;
        struct page_record r;
        rng.rng.fill(&rng.rng, &p, sizeof p);
        assert_int_equal(judge(&p, &why), PAGE_BROKEN);
        fill(&p);
        rng.rng.fill(&rng.rng, &p.slot, sizeof p.slot);
        assert_int_equal(judge(&p, &why), PAGE_BROKEN);
        for (unsigned s = 0; s < PAGE_SLOTS; s++)
            (void)page_load(&p, s, &r);
    }
}

/* ---- a kill in the middle ---------------------------------------------------------------------
 */

/* The bytes that a store changes, in an order that the compiler may have chosen: any order within
 * the copy, since it is torn then and does not count; the commit, one store, at the end. */
static void assert_old_or_new(const struct page *before, const struct page *after, unsigned slot,
                              bool backwards)
{
    static struct page cut;
    struct page_record was, is, got;
    const uint8_t *to = (const uint8_t *)after->slot[slot].copy;
    memcpy(&cut, before, sizeof cut);
    assert_true(page_load(before, slot, &was));
    assert_true(page_load(after, slot, &is));
    size_t n = sizeof cut.slot[slot].copy;
    for (size_t i = 0; i < n; i++) {
        size_t at = backwards ? n - 1 - i : i;
        ((uint8_t *)cut.slot[slot].copy)[at] = to[at];
        assert_true(page_load(&cut, slot, &got));
        assert_same(&got, &was);
    }
    cut.slot[slot].commit = after->slot[slot].commit;
    assert_true(page_load(&cut, slot, &got));
    assert_same(&got, &is);
}

static void a_kill_leaves_the_old_record_or_the_new(void **state)
{
    (void)state;
    static struct page before, after;
    fill(&after);
    for (unsigned slot = 0; slot < PAGE_SLOTS; slot++) {
        for (unsigned i = 0; i < 4; i++) {
            struct page_record r = record_of(1000 + slot * 8 + i);
            r.state = i == 3 ? PAGE_FREE : PAGE_HELD;
            memcpy(&before, &after, sizeof before);
            page_store(&after, slot, &r);
            assert_old_or_new(&before, &after, slot, false);
            assert_old_or_new(&before, &after, slot, true);
        }
    }
}

/* The life after the kill stores over the torn copy, and may be killed there, too. */
static void a_torn_copy_is_stored_over(void **state)
{
    (void)state;
    static struct page p;
    page_format(&p, &home, 1);
    struct page_record r = record_of(1), got;
    put(&p, 0, &r);
    for (unsigned i = 2; i < 60; i++) {
        struct page_slot *s = &p.slot[0];
        unsigned other = s->copy[0].version > s->copy[1].version ? 1 : 0;
        memset(&s->copy[other], (int)i, 1 + (i * 7) % sizeof s->copy[other]);
        assert_true(page_load(&p, 0, &got));
        assert_same(&got, &r);
        r = record_of(i);
        page_store(&p, 0, &r);
        assert_true(page_load(&p, 0, &got));
        assert_same(&got, &r);
    }
}

/* ---- whose page it is -------------------------------------------------------------------------
 */

static void a_page_of_another_home_is_foreign(void **state)
{
    (void)state;
    struct page p;
    struct err why;
    struct page_home h;
    fill(&p);
    h = home, h.boot[3] ^= 1;
    assert_int_equal(page_judge(&p, &h, &why), PAGE_FOREIGN);
    assert_non_null(strstr(why.text, "another boot"));
    h = home, h.inode++;
    assert_int_equal(page_judge(&p, &h, &why), PAGE_FOREIGN);
    assert_non_null(strstr(why.text, "copy"));
    h = home, h.born_ns++;
    assert_int_equal(page_judge(&p, &h, &why), PAGE_FOREIGN);
    h = home, h.device++;
    assert_int_equal(page_judge(&p, &h, &why), PAGE_FOREIGN);
    h = home, h.coordinator++;
    assert_int_equal(page_judge(&p, &h, &why), PAGE_FOREIGN);
    assert_non_null(strstr(why.text, "another coordinator"));
}

static uint32_t check_again(const struct page_head *h)
{
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < offsetof(struct page_head, check); i++)
        sum = (sum ^ ((const uint8_t *)h)[i]) * 16777619u;
    return sum;
}

static void another_version_is_broken(void **state)
{
    (void)state;
    struct page p;
    struct err why;
    fill(&p);
    p.head.version = 2;
    p.head.check = check_again(&p.head);
    assert_int_equal(judge(&p, &why), PAGE_BROKEN);
    assert_non_null(strstr(why.text, "expected version 1"));
    assert_non_null(strstr(why.text, "found 2"));
    fill(&p);
    p.head.slots = 12;
    p.head.check = check_again(&p.head);
    assert_int_equal(judge(&p, &why), PAGE_BROKEN);
    fill(&p);
    memcpy(p.head.magic, "SQLite f", 8);
    assert_int_equal(judge(&p, &why), PAGE_BROKEN);
    assert_non_null(strstr(why.text, "SIDFPAGE"));
    fill(&p); /* an identity without an end */
    memset(p.head.identity, 'x', sizeof p.head.identity);
    p.head.check = check_again(&p.head);
    assert_int_equal(judge(&p, &why), PAGE_BROKEN);
}

/* A mark below lo - 1 was never stored by anybody: IDs above it may be somebody else's. */
static void a_mark_below_the_range_is_broken(void **state)
{
    (void)state;
    struct page p;
    struct err why;
    struct page_record r = record_of(8);
    page_format(&p, &home, 1);
    put(&p, 8, &r);
    assert_int_equal(judge(&p, &why), PAGE_OWN);
    mark_store(&p.slot[8].mark, r.lo_ms - 2);
    assert_int_equal(judge(&p, &why), PAGE_BROKEN);
    assert_non_null(strstr(why.text, "slot 8"));
    r.state = PAGE_FREE;
    page_store(&p, 8, &r);
    assert_int_equal(judge(&p, &why), PAGE_OWN);
}

static void the_order_of_copies_is_by_commit(void **state)
{
    (void)state;
    struct page p;
    struct page_record a = record_of(10), b = record_of(11), got;
    page_format(&p, &home, 1);
    put(&p, 0, &a);
    uint64_t first = p.slot[0].commit;
    put(&p, 0, &b);
    p.slot[0].commit = first; /* as it was before the second store */
    assert_true(page_load(&p, 0, &got));
    assert_true(same(&got, &a) && !same(&got, &b));
    p.slot[0].commit = mark_of(77); /* a version that no copy has */
    assert_false(page_load(&p, 0, &got));
    assert_int_equal(got.state, PAGE_FREE);
}

static void the_pools_parameters_are_remembered_and_damage_to_them_is_seen(void **state)
{
    static struct page p, other;
    struct coord_params got, want = coord_params_default;
    int64_t settle, least, ahead;
    (void)state;
    page_format(&p, &home, 1);
    assert_false(
        page_params(&p, &got, &settle, &least, &ahead)); /* as in a page of version 0.1.0 */
    want.horizon_ms = 24 * 3600 * 1000;
    want.replicas = 2;
    want.worker_from = 100;
    want.worker_to = 199;
    page_set_identity(&p, "x|1|38.15.10");
    page_set_params(&p, &want, 600000, 0, 0);
    assert_true(page_params(&p, &got, &settle, &least, &ahead));
    page_set_identity(&p, "y|1|38.15.10"); /* as by a version that leaves them there */
    assert_false(page_params(&p, &got, &settle, &least, &ahead));
    page_set_identity(&p, "x|1|38.15.10");
    assert_true(page_params(&p, &got, &settle, &least, &ahead));
    assert_memory_equal(&got, &want, sizeof want);
    assert_int_equal(settle, 600000);
    struct err why;
    assert_int_equal(judge(&p, &why), PAGE_OWN);
    for (size_t i = 0; i < sizeof(struct page_params); i++) {
        ((uint8_t *)&p.head.params)[i] ^= 0x40;
        assert_false(page_params(&p, &got, &settle, &least, &ahead));
        ((uint8_t *)&p.head.params)[i] ^= 0x40;
    }
    p.head.params.settle_ms = 0; /* as an earlier version stores it: the check is another one */
    assert_false(page_params(&p, &got, &settle, &least, &ahead));
    page_set_params(&p, &want, 0, 0, 0); /* the horizon: as every earlier version has it */
    assert_true(page_params(&p, &got, &settle, &least, &ahead) && settle == 0);
    page_set_params(&p, &want, 25 * 3600 * 1000, 0,
                    0); /* nor is a settle that cannot be believed */
    assert_true(page_params(&p, &got, &settle, &least, &ahead) && settle == 0);
    page_set_params(&p, &want, 0, 0, 90000000);
    assert_true(page_params(&p, &got, &settle, &least, &ahead) && ahead == COORD_AHEAD_MAX_MS);
    page_set_params(&p, &want, 0, 0, 80000000);
    assert_true(page_params(&p, &got, &settle, &least, &ahead) && ahead == 80000000);
    page_format(&other, &home, 1);
    page_replace(&other, &p);
    assert_true(page_params(&other, &got, &settle, &least, &ahead) && ahead == 80000000);
    p.head.ahead_ms = 0; /* as an earlier version leaves it to a later one: the check is another */
    assert_false(page_params(&p, &got, &settle, &least, &ahead));
    static const struct {
        int64_t settle, least, kept;
    } cases[] = {{600000, 30000, 30000}, {600000, 599999, 599999}, {600000, 600000, 0},
                 {600000, 29999, 0},     {600000, -1, 0},          {0, 600000, 600000},
                 {0, 86400000, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        page_set_params(&p, &want, cases[i].settle, cases[i].least, 80000000);
        assert_true(page_params(&p, &got, &settle, &least, &ahead));
        assert_int_equal(least, cases[i].kept);
        assert_true(settle == cases[i].settle && ahead == 80000000);
    }
    page_set_params(&p, &want, 600000, 30000, 0);
    page_format(&other, &home, 1);
    page_replace(&other, &p);
    assert_true(page_params(&other, &got, &settle, &least, &ahead) && least == 30000);
    p.head.least_ms = 30001;
    assert_false(page_params(&p, &got, &settle, &least, &ahead));
    p.head.least_ms = 0;
    assert_false(page_params(&p, &got, &settle, &least, &ahead));
    want.horizon_ms = 25 * 3600 * 1000; /* whole, but of no pool that can be */
    page_set_params(&p, &want, 600000, 0, 0);
    assert_false(page_params(&p, &got, &settle, &least, &ahead));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_is_loaded),
        cmocka_unit_test(the_identity_is_pinned_and_the_rest_stays),
        cmocka_unit_test(every_flipped_bit_is_seen_or_harmless),
        cmocka_unit_test(scribbled_bytes_are_seen_or_harmless),
        cmocka_unit_test(any_bytes_can_be_judged),
        cmocka_unit_test(a_kill_leaves_the_old_record_or_the_new),
        cmocka_unit_test(a_torn_copy_is_stored_over),
        cmocka_unit_test(a_page_of_another_home_is_foreign),
        cmocka_unit_test(another_version_is_broken),
        cmocka_unit_test(a_mark_below_the_range_is_broken),
        cmocka_unit_test(the_order_of_copies_is_by_commit),
        cmocka_unit_test(the_pools_parameters_are_remembered_and_damage_to_them_is_seen),
    };
    return cmocka_run_group_tests_name("lease/page", tests, NULL, NULL);
}
