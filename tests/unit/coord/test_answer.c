/* What the script's answers come to: right ones, wrong ones, and the raw keys of a snapshot. */
#include "coord/answer.h"
#include "coord/roster.h"

#include "base/dec.h"
#include "support/coord_says.h"
#include "support/coord_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct answer_to to = {"p", SETUP_IDENTITY};

/* Fields separated by commas, "" for none. */
static struct answer answer_of(const char *text)
{
    struct answer a = {.n = 0};
    struct span rest = span_str(text);
    while (rest.p && *text)
        a.f[a.n++] = span_cut(&rest, ',');
    return a;
}

#define T_MS      1780000000000
#define CLAIM_OK  "OK,1780000000000,3,17,0,5,1779999999000,1780000030000,2,1780000000000"
#define RENEW_ITM "renewed,1780000030000,2,1780000000000"

static void numbers_are_strict(void **state)
{
    (void)state;
    int64_t v = -1;
    assert_true(answer_number(SPAN("0"), &v));
    assert_int_equal(v, 0);
    assert_true(answer_number(SPAN("9007199254740991"), &v));
    static const char *const odd[] = {
        "",   "-0", "-1",  "+1",  "01", "1.0", "1e3", "9007199254740992",
        " 1", "1 ", "nan", "inf", "-",  "0x1"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_false(answer_number(span_str(odd[i]), &v));
    assert_int_equal(v, 9007199254740991);
}

static void statuses_have_their_texts(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        enum coord_status status;
        const char *says;
    } cases[] = {
        {"NOPOOL,5", COORD_NOPOOL, "pool \"p\""},
        {"EXISTS,5", COORD_EXISTS, "found one"},
        {"WRONGPOOL,5,other|1|38.15.10", COORD_WRONGPOOL,
         "expected " SETUP_IDENTITY ", found other|1|38.15.10"},
        {"REDISCLOCK,1000,1780000000000", COORD_BADCLOCK,
         "2026-05-28T20:26:40.000Z or later, which it has shown before, found "
         "1970-01-01T00:00:01.000Z"},
        {"SKEW,1780000000000,1779999990000,2000", COORD_SKEW,
         "within 2000 ms of the coordinator's 2026-05-28T20:26:40.000Z, found "
         "2026-05-28T20:26:30.000Z"},
        {"CLOSED,5,2,9,0", COORD_CLOSED, "closed"},
        {"NOINFO,5,no such field", COORD_REFUSED, "run_id and master_replid"},
        {"NOINFO,5,no such field", COORD_REFUSED, "found: no such field"},
        {"REPLICA,5,10.0.0.1:6379", COORD_DOWN,
         "expected a master, found a replica of 10.0.0.1:6379"},
        {"REPLICA,5", COORD_REFUSED, "expected 3 fields, found 2"},
        {"NOINFO,5", COORD_REFUSED, "expected 3 fields, found 2"},
        {"CONFIRM,5,abc,1", COORD_REFUSED, "another answer than a second CONFIRM"},
        {"CONFIRM,5,abc", COORD_REFUSED, "expected 4 fields, found 3"},
        {"CORRUPT,5,tmax", COORD_REFUSED, "sound field of the pool, found \"tmax\""},
        {"BADOP,5,x", COORD_REFUSED, "an operation"},
        {"", COORD_REFUSED, "field 0: expected a status"},
        {"ok,5,1,1,0", COORD_REFUSED, "found \"ok\""},
        {"OK", COORD_REFUSED, "field 1"},
        {"OK,-5,1,1,0", COORD_REFUSED, "decimal number, found \"-5\""},
        {"OK,5,0,1,0", COORD_REFUSED, "an era"},
        {"OK,5,1", COORD_REFUSED, "field 3"},
        {"OK,5,1,1", COORD_REFUSED, "field 4"},
        {"OK,5,1,1,0,1", COORD_REFUSED, "expected 5 fields, found 6"},
        {"WAIT,5,1,1,0", COORD_REFUSED, "OK or LOST"},
        {"NOPOOL,5,6", COORD_REFUSED, "expected 2 fields, found 3"},
        {"WRONGPOOL,5", COORD_REFUSED, "expected 3 fields, found 2"},
        {"SKEW,5,x,1", COORD_REFUSED, "decimal number, found \"x\""},
        {"LOST,5,1,1,0", COORD_LOST, ""},
        {"OK,5,1,1,3", COORD_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct coord_reply r = {0};
        struct answer a = answer_of(cases[i].answer);
        if (answer_plain(&a, &to, &r) != cases[i].status)
            fail_msg("%s: %s", cases[i].answer, r.err.text);
        coord_says(&r, cases[i].says);
    }
}

static void hostile_texts_are_made_printable(void **state)
{
    (void)state;
    struct coord_reply r = {0};
    struct answer a = answer_of("CORRUPT,5,x");
    a.f[2] = SPAN("\x1b[31m\r\nred\x7f");
    assert_int_equal(answer_plain(&a, &to, &r), COORD_REFUSED);
    coord_says(&r, "?[31m??red?");
}

static void claims_are_read(void **state)
{
    (void)state;
    struct coord_reply r = {0};
    struct coord_grant g;
    struct answer a = answer_of(CLAIM_OK);
    assert_int_equal(answer_claim(&a, &to, T_MS, &g, &r), COORD_OK);
    assert_int_equal(g.worker, 5);
    assert_int_equal(g.lo_ms, 1779999999000);
    assert_int_equal(g.hi_ms, 1780000030000);
    assert_int_equal(g.n, 2);
    assert_int_equal(g.t0_ms, T_MS);
    assert_int_equal(r.now_ms, T_MS);
    assert_int_equal(r.era, 3);
    assert_int_equal(r.free, 17);
    a = answer_of("WAIT,1780000000000,3,17,0,250");
    assert_int_equal(answer_claim(&a, &to, T_MS, &g, &r), COORD_WAIT);
    assert_int_equal(r.wait_ms, 250);
    a = answer_of("EXHAUSTED,1780000000000,3,0,0,4711");
    assert_int_equal(answer_claim(&a, &to, T_MS, &g, &r), COORD_EXHAUSTED);
    assert_int_equal(r.wait_ms, 4711);
}

static void claims_out_of_range_are_refused(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "OK,1780000000000,3,17,0,32768,1779999999000,1780000030000,2,1780000000000",
        "OK,1780000000000,3,17,0,5,0,1780000030000,2,1780000000000",
        "OK,1780000000000,3,17,0,5,1780000000001,1780000030000,2,1780000000000",
        "OK,1780000000000,3,17,0,5,1779999999000,1779999998999,2,1780000000000",
        "OK,1780000000000,3,17,0,5,1779999999000,1780090000001,2,1780000000000",
        "OK,1780000000000,3,17,0,5,1779999999000,1780000030000,0,1780000000000",
        "OK,1780000000000,3,17,0,nan,1779999999000,1780000030000,2,1780000000000",
        "OK,1780000000000,3,17,0,5,1779999999000,1780000030000,2",
        CLAIM_OK ",1",
        "WAIT,1780000000000,3,17,0",
        "WAIT,1780000000000,3,17,0,inf",
        "EXHAUSTED,1780000000000,3,17,0",
        "EXHAUSTED,1780000000000,3,17,0,1,1",
        "LOST,1780000000000,3,17,0",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct coord_reply r = {0};
        struct coord_grant g = {.worker = 99};
        struct answer a = answer_of(odd[i]);
        if (answer_claim(&a, &to, T_MS, &g, &r) != COORD_REFUSED || g.worker != 99)
            fail_msg("taken: %s", odd[i]);
        coord_says(&r, "expected");
    }
    struct coord_reply r = {0};
    struct coord_grant g;
    struct answer edge =
        answer_of("OK,1780000000000,3,17,0,32767,1780000000000,1780090000000,1,1780000000000");
    assert_int_equal(answer_claim(&edge, &to, T_MS, &g, &r), COORD_OK);
}

#define TERMS "120000,2,9,1770000000000,7204000,"

static void renewals_are_read(void **state)
{
    (void)state;
    struct coord_reply r = {0};
    struct coord_terms terms;
    struct coord_renewal items[5] = {{.hi_ms = 1780000000000},
                                     {.hi_ms = 1780000031000},
                                     {.hi_ms = 1780000000000, .n = 7},
                                     {.hi_ms = 1780000000000},
                                     {.hi_ms = 1780000000000}};
    struct answer a =
        answer_of("OK,1780000000000,3,17,0," TERMS RENEW_ITM ",again,1780000031000,9,5,"
                  "LOST,0,0,0,reasserted,1780000000000,3,1780000000000,released,0,0,0");
    assert_int_equal(answer_renew(&a, &to, items, 5, &terms, &r), COORD_OK);
    assert_int_equal(terms.settle_ms, 120000);
    assert_int_equal(terms.worker_from, 2);
    assert_int_equal(terms.worker_to, 9);
    assert_int_equal(terms.born_ms, 1770000000000);
    assert_int_equal(terms.ahead_ms, 7204000);
    assert_int_equal(items[0].how, COORD_HOW_RENEWED);
    assert_int_equal(items[0].hi_ms, 1780000030000);
    assert_int_equal(items[1].how, COORD_HOW_AGAIN);
    assert_int_equal(items[1].n, 9);
    assert_int_equal(items[1].t0_ms, 5);
    assert_int_equal(items[2].how, COORD_HOW_LOST);
    assert_int_equal(items[2].hi_ms, 1780000000000);
    assert_int_equal(items[2].n, 7);
    assert_false(items[2].released);
    assert_int_equal(items[3].how, COORD_HOW_REASSERTED);
    assert_int_equal(items[4].how, COORD_HOW_LOST);
    assert_true(items[4].released);
}

static void renewals_out_of_range_are_refused(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "OK,1780000000000,3,17,0",
        "OK,1780000000000,3,17,0," TERMS "renewed,1780000030000,2",
        "OK,1780000000000,3,17,0," TERMS RENEW_ITM ",1",
        "OK,1780000000000,3,17,0," RENEW_ITM,
        "OK,1780000000000,3,17,0,x,2,9,1,0," RENEW_ITM,
        "OK,1780000000000,3,17,0,120000,2,9,1,x," RENEW_ITM,
        "OK,1780000000000,3,17,0," TERMS "kept,1780000030000,2,1780000000000",
        "OK,1780000000000,3,17,0," TERMS "renewed,1779999999999,2,1780000000000",
        "OK,1780000000000,3,17,0," TERMS "renewed,1780090000001,2,1780000000000",
        "OK,1780000000000,3,17,0," TERMS "renewed,1780000030000,0,1780000000000",
        "OK,1780000000000,3,17,0," TERMS "renewed,1780000030000,x,1780000000000",
        "LOST,1780000000000,3,17,0",
        "WAIT,1780000000000,3,17,0,5",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct coord_reply r = {0};
        struct coord_renewal item = {.hi_ms = 1780000000000};
        struct coord_terms terms;
        struct answer a = answer_of(odd[i]);
        if (answer_renew(&a, &to, &item, 1, &terms, &r) != COORD_REFUSED)
            fail_msg("taken: %s", odd[i]);
        coord_says(&r, "expected");
    }
}

static void a_made_pool_is_read(void **state)
{
    (void)state;
    struct coord_reply r = {0};
    struct answer a = answer_of("OK,5,2,7,1");
    assert_int_equal(answer_init(&a, &to, &r), COORD_OK);
    assert_int_equal(r.era, 2);
    assert_int_equal(r.free, 7);
    static const char *const odd[] = {"OK,5",       "OK,5,2",       "OK,5,2,3",     "OK,5,2,3,0,1",
                                      "OK,5,0,3,0", "LOST,5,1,1,0", "WAIT,5,1,1,0", "OK,5,2,3,x"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        a = answer_of(odd[i]);
        assert_int_equal(answer_init(&a, &to, &r), COORD_REFUSED);
    }
}

/* ---- what must be so before an answer counts ------------------------------------------------- */

static void terms_name_the_replicas(void **state)
{
    (void)state;
    static const struct {
        const char *answer;
        uint32_t acks;
        const char *nonce;
    } cases[] = {
        {"OK,5,1,1,0", 0, ""},     {"OK,5,1,1,3", 3, ""},        {"LOST,5,1,1,100", 100, ""},
        {"WAIT,5,1,1,2,9", 2, ""}, {"EXHAUSTED,5,1,1,2", 2, ""}, {"CLOSED,5,1,1,2", 2, ""},
        {"NOPOOL,5", 0, ""},       {"WRONGPOOL,5,x", 0, ""},     {"CONFIRM,5,abc,1", 1, "abc"},
        {"SKEW,5,4,3", 0, ""},     {"nonsense", 0, ""},          {"", 0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct coord_reply r = {0};
        struct answer_terms t;
        struct answer a = answer_of(cases[i].answer);
        if (answer_terms(&a, &t, &r) != COORD_OK || t.acks != cases[i].acks ||
            !span_eq(t.nonce, span_str(cases[i].nonce)))
            fail_msg("%s: %u acknowledgements, nonce of %zu bytes", cases[i].answer, t.acks,
                     t.nonce.n);
    }
}

/* Read as 0, any of these would make an answer count that no replica has. */
static void terms_out_of_range_are_refused(void **state)
{
    (void)state;
    static const char *const odd[] = {
        "OK,5,1,1",      "OK,5,1,1,",           "OK,5,1,1,-1",  "OK,5,1,1,x",
        "OK,5,1,1,101",  "OK,5,1,1,1e2",        "OK,5",         "LOST,5,1,1,101",
        "CONFIRM,5,abc", "CONFIRM,5,abc,0",     "CONFIRM,5,,1", "CONFIRM,5,abc,x",
        "CONFIRM,5",     "OK,5,1,1,4294967296",
    };
    char longest[300] = "CONFIRM,5,";
    memset(longest + 10, 'a', ANSWER_NONCE_MAX + 1);
    memcpy(longest + 10 + ANSWER_NONCE_MAX + 1, ",1", 3);
    for (size_t i = 0; i <= sizeof odd / sizeof *odd; i++) {
        struct coord_reply r = {0};
        struct answer_terms t;
        const char *text = i < sizeof odd / sizeof *odd ? odd[i] : longest;
        struct answer a = answer_of(text);
        if (answer_terms(&a, &t, &r) != COORD_REFUSED || t.acks > 0 || t.nonce.n > 0)
            fail_msg("taken: %s", text);
        coord_says(&r, "expected");
    }
}

#define DESCRIBED "OK,100,2,3,0," SETUP_IDENTITY ",10,20,15,99,0,"
#define PARAMS    "3600000,30000,120000,2000,60000,0,"

#define LATER "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"

static void descriptions_are_read(void **state)
{
    (void)state;
    struct coord_reply r = {0};
    struct coord_pool p = {.held = 0};
    struct answer a = answer_of(DESCRIBED PARAMS "1,4,7," LATER "2,5,34");
    assert_int_equal(answer_describe(&a, &to, &p, &r), COORD_OK);
    assert_string_equal(p.identity, SETUP_IDENTITY);
    assert_int_equal(p.topen_ms, 10);
    assert_int_equal(p.floor_ms, 20);
    assert_int_equal(p.floor_short_ms, 15);
    assert_int_equal(p.tmax_ms, 99);
    assert_false(p.closed);
    assert_int_equal(p.params.grace_ms, 60000);
    assert_int_equal(p.params.worker_from, 1);
    assert_int_equal(p.params.worker_to, 4);
    assert_int_equal(p.born_ms, 7);
    assert_int_equal(p.later.settle_ms, 1);
    assert_int_equal(p.later.floor_before_ms, 4);
    assert_int_equal(p.later.every_ms, 11);
    assert_int_equal(p.held, 2);
    assert_int_equal(p.replicas, 5);
    assert_int_equal(p.unmet_ms, 34);
    assert_int_equal(p.epoch_ms, 1767225600000);
    static const char *const odd[] = {
        DESCRIBED PARAMS "1,4,7," LATER "2,3",
        DESCRIBED PARAMS "1,4,7," LATER "2,3,0,4",
        DESCRIBED PARAMS "1,32768,7," LATER "2,0,0",
        DESCRIBED PARAMS "5,4,7," LATER "2,0,0",
        DESCRIBED "360000000,30000,120000,2000,60000,0,1,4,7," LATER "2,0,0",
        DESCRIBED "3600000,30000,120000,2000,60000,101,1,4,7," LATER "2,0,0",
        "OK,100,2,3,0,x|1|38.15.10,10,20,15,99,0," PARAMS "1,4,7," LATER "2,0,0",
        "OK,100,2,3,0," SETUP_IDENTITY SETUP_IDENTITY ",10,20,15,99,0," PARAMS "1,4,7," LATER
        "2,0,0",
        DESCRIBED PARAMS "1,4,7,1,2,3,4,5,6,7,8,9,10,11,12,2,5,0",
        "LOST,100,2,3,0",
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        a = answer_of(odd[i]);
        if (answer_describe(&a, &to, &p, &r) != COORD_REFUSED)
            fail_msg("taken: %s", odd[i]);
    }
}

/* ---- snapshots ------------------------------------------------------------------------------- */

#define HASH_POOL                                                                                  \
    "identity," SETUP_IDENTITY ",era,2,topen,10,fl,20,fs,15,fp,xyz,tmax,99,closed,1,A,3600000,"    \
    "A0,30000,D0,120000,S,2000,G,60000,K,0,from,0,to,9,born,7"
#define WORKERS 10
#define TOKEN   "00000000000000000000000000000001"

/* Of field i of a hash: name, value, name, value ... */
static struct span value_of(const struct answer *hash, size_t i)
{
    char digits[DEC_U64_MAX];
    struct span name = i < ROSTER_OWN ? span_str(roster_field(i))
                                      : span_of(digits, dec_put_u64(digits, i - ROSTER_OWN));
    for (size_t k = 0; k + 1 < hash->n; k += 2)
        if (span_eq(hash->f[k], name))
            return hash->f[k + 1];
    return (struct span){NULL, 0};
}

static enum coord_status read_roster(const char *hash, const char *queue, const char *index,
                                     const char *who, struct coord_snapshot *s,
                                     struct coord_reply *r)
{
    struct answer parts[4] = {answer_of(hash), answer_of(queue), answer_of(index), answer_of(who)};
    struct span values[ROSTER_OWN + WORKERS];
    const struct roster in = {.hash = {values, ROSTER_OWN + WORKERS},
                              .queue = {parts[1].f, parts[1].n},
                              .index = {parts[2].f, parts[2].n},
                              .who = {parts[3].f, parts[3].n},
                              .now_ms = 100};
    for (size_t i = 0; i < ROSTER_OWN + WORKERS; i++)
        values[i] = value_of(&parts[0], i);
    memset(s, 0, sizeof *s);
    memset(r, 0, sizeof *r);
    return roster_read(&in, &to, s, r);
}

static void snapshots_are_read(void **state)
{
    (void)state;
    struct coord_snapshot s;
    struct coord_reply r;
    assert_int_equal(read_roster(HASH_POOL ",7,2 50 " TOKEN " 40 3,3,1 60 - 0 1,5,junk",
                                 "3,9,x,3,07,32767,32768", "7,y,5,1", "7,{},3,,8,{},z,{}", &s, &r),
                     COORD_OK);
    assert_true(s.pool.closed);
    assert_int_equal(s.pool.held, 4);
    assert_int_equal(r.free, 7);
    assert_int_equal(s.nworkers, 3);
    assert_int_equal(s.workers[0].worker, 3);
    assert_false(s.workers[0].held);
    assert_true(s.workers[0].stale);
    assert_null(s.workers[0].who);
    assert_int_equal(s.workers[1].worker, 5);
    assert_true(s.workers[1].unreadable);
    assert_int_equal(s.workers[2].worker, 7);
    assert_true(s.workers[2].held);
    assert_false(s.workers[2].stale);
    assert_int_equal(s.workers[2].hwm_ms, 50);
    assert_int_equal(s.workers[2].t0_ms, 40);
    assert_int_equal(s.workers[2].n, 3);
    assert_string_equal(s.workers[2].who, "{}");
    const uint32_t queue[] = {3, 9, UINT32_MAX, 3, UINT32_MAX, 32767, UINT32_MAX};
    assert_int_equal(s.nqueue, 7);
    assert_memory_equal(s.queue, queue, sizeof queue);
    const uint16_t index[] = {1, 5, 7};
    assert_int_equal(s.nindex, 3);
    assert_memory_equal(s.index, index, sizeof index);
    coord_snapshot_clear(&s);
}

static void records_of_another_form_are_unreadable(void **state)
{
    (void)state;
    static const char *const odd[] = {"",           "1 2 - 3",     "1 2 - 3 4 5",
                                      "1 2  3 4",   " 1 2 - 3 4",  "1 2 - 3 4 ",
                                      "1 -2 - 3 4", "1 2 - 3 1e9", "9007199254740992 2 - 3 4"};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct coord_snapshot s;
        struct coord_reply r;
        char hash[512];
        (void)snprintf(hash, sizeof hash, HASH_POOL ",4,%s", odd[i]);
        assert_int_equal(read_roster(hash, "", "", "", &s, &r), COORD_OK);
        assert_int_equal(s.nworkers, 1);
        if (!s.workers[0].unreadable || s.workers[0].held || s.workers[0].hwm_ms)
            fail_msg("taken: %s", odd[i]);
        coord_snapshot_clear(&s);
    }
}

static void a_hash_without_a_pool_makes_no_snapshot(void **state)
{
    (void)state;
    struct coord_snapshot s;
    struct coord_reply r;
    assert_int_equal(read_roster("", "1", "", "", &s, &r), COORD_NOPOOL);
    assert_int_equal(read_roster("7,2 50 - 40 3", "", "", "", &s, &r), COORD_REFUSED);
    coord_says(&r, "a field era");
    assert_int_equal(read_roster(HASH_POOL ",era", "", "", "", &s, &r), COORD_OK);
    coord_snapshot_clear(&s);
}

static void a_pool_made_again_with_others_meanwhile_is_asked_once_more(void **state)
{
    (void)state;
    struct coord_snapshot s;
    struct coord_reply r;
    static const char *const others[] = {"to,8,", "to,10,", "from,1,"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char hash[512];
        (void)snprintf(hash, sizeof hash, "%s" HASH_POOL, others[i]);
        assert_int_equal(read_roster(hash, "", "", "", &s, &r), COORD_DOWN);
        coord_says(&r, "made again meanwhile");
        coord_snapshot_clear(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(statuses_have_their_texts),
        cmocka_unit_test(hostile_texts_are_made_printable),
        cmocka_unit_test(claims_are_read),
        cmocka_unit_test(claims_out_of_range_are_refused),
        cmocka_unit_test(renewals_are_read),
        cmocka_unit_test(renewals_out_of_range_are_refused),
        cmocka_unit_test(a_made_pool_is_read),
        cmocka_unit_test(terms_name_the_replicas),
        cmocka_unit_test(terms_out_of_range_are_refused),
        cmocka_unit_test(descriptions_are_read),
        cmocka_unit_test(snapshots_are_read),
        cmocka_unit_test(records_of_another_form_are_unreadable),
        cmocka_unit_test(a_hash_without_a_pool_makes_no_snapshot),
        cmocka_unit_test(a_pool_made_again_with_others_meanwhile_is_asked_once_more),
    };
    return cmocka_run_group_tests_name("coord/answer", tests, NULL, NULL);
}
