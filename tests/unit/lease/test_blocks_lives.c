/* Sidecars that hold blocks, against a store that restarts and forgets, with messages that are
 * lost, late and doubled, and kills: no number twice, and rising within each of them. */
#include "support/blocks_rig.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 400
#define STEPS  3000
#define LATE   6 /* messages that are still under way */

struct late {
    bool is;
    struct blocks_action a; /* its strings are replaced by the rig's */
};

static struct brig rig;
static struct late late[LATE];

static bool chance(int64_t in)
{
    return seeded_in(&rig.rng, 1, in) == 1;
}

/* A message is a copy: what it names outlives the machine that sent it. */
static struct blocks_action copy_of(const struct blocks_action *a)
{
    struct blocks_action out = *a;
    for (size_t i = 0; i < a->nitems; i++) {
        const struct blocks_name *of = brig_name(a->counter[i]);
        out.wants[i].name = out.returns[i].name = of->name;
        out.wants[i].sub = out.returns[i].sub = of->sub;
        out.wants[i].period = out.returns[i].period = of->period;
        out.wants[i].text = "";
    }
    return out;
}

static void deliver(const struct blocks_action *a, struct blocks_outcome *o)
{
    if (a->kind == BLOCKS_TAKE)
        brig_take(&rig, a, o);
    else
        brig_return(&rig, a, o);
}

static void keep_late(const struct blocks_action *a)
{
    struct late *l = &late[seeded_in(&rig.rng, 0, LATE - 1)];
    *l = (struct late){true, copy_of(a)};
}

static void deliver_late(void)
{
    struct blocks_outcome ignored;
    struct late *l = &late[seeded_in(&rig.rng, 0, LATE - 1)];
    if (l->is)
        deliver(&l->a, &ignored);
    l->is = l->is && chance(2);
}

/* One call; the request, its reply or both may come to nothing, or come twice. */
static enum blocks_action_kind call(struct brig_holder *h)
{
    struct blocks_action a;
    struct blocks_outcome o = {0}, twice;
    brig_next(h, &a);
    if (a.kind != BLOCKS_TAKE && a.kind != BLOCKS_RETURN)
        return a.kind;
    bool lost = chance(8), reply_lost = chance(8);
    if (chance(8))
        keep_late(&a);
    if (chance(10))
        deliver_late();
    if (!lost)
        deliver(&a, &o);
    if (!lost && chance(10))
        deliver(&a, &twice);
    if (lost || reply_lost)
        o = (struct blocks_outcome){.status = COORD_DOWN};
    brig_done(h, &a, &o);
    if (chance(10))
        brig_done(h, &a, &o); /* heard twice */
    return a.kind;
}

static void stop(struct brig_holder *h)
{
    blocks_stop(&h->m, !chance(3), rig.mono);
    for (unsigned i = 0; i < 20 && call(h) != BLOCKS_FINISHED; i++)
        brig_pass(&rig, 100);
    brig_start(h, !chance(5));
}

static void lose_data(void)
{
    struct brig_table *saved = &rig.store.saved[seeded_in(&rig.rng, 0, 3)];
    static const struct brig_table empty;
    if (chance(2))
        *saved = rig.store.table;
    else
        brig_reopen(&rig, chance(4) ? &empty : saved);
}

static void step(void)
{
    struct brig_holder *h = &rig.holder[seeded_in(&rig.rng, 0, rig.nholders - 1)];
    int64_t index, dice = seeded_in(&rig.rng, 1, 1000);
    if (dice <= 560)
        (void)brig_get(h, (unsigned)seeded_in(&rig.rng, 0, BRIG_COUNTERS - 1),
                       chance(5) ? seeded_in(&rig.rng, 2, 40) : 1, &index);
    else if (dice <= 900)
        (void)call(h);
    else if (dice <= 970)
        brig_pass(&rig, seeded_in(&rig.rng, 0, 60));
    else if (dice <= 980)
        brig_start(h, true); /* killed */
    else if (dice <= 983)
        brig_start(h, false); /* killed, and its page with it */
    else if (dice <= 990)
        stop(h);
    else if (dice <= 993)
        lose_data();
    else
        deliver_late();
}

static void no_number_twice_and_all_rise(void **state)
{
    (void)state;
    const char *seed = getenv("SEED");
    uint64_t first = seed ? strtoull(seed, NULL, 10) : 1;
    unsigned long given = 0;
    for (uint64_t n = first; n < first + (seed ? 1 : ROUNDS); n++) {
        memset(late, 0, sizeof late);
        brig_init(&rig, 2 + (unsigned)(n % 7), n);
        for (unsigned i = 0; i < STEPS; i++)
            step();
        given += rig.ngiven;
        brig_clear(&rig);
    }
    print_message("# %lu numbers\n", given);
    assert_true(given > (seed ? 100 : ROUNDS * 1000));
}

/* ---- strict ---------------------------------------------------------------------------------- */

#define WAITING 6 /* requests of a holder at most */

struct request {
    int64_t ticket, n, floor; /* what somebody had been answered when it came */
};

static struct request waiting[BRIG_HOLDERS][WAITING];

static void arrive(unsigned who, int64_t answered)
{
    struct request *q = waiting[who];
    if (!rig.holder[who].seq[0].strict)
        return;
    for (unsigned i = 0; i < WAITING; i++)
        if (q[i].ticket == 0) {
            q[i].n = chance(4) ? seeded_in(&rig.rng, 2, 5) : 1;
            q[i].floor = answered;
            q[i].ticket = sequence_arrive(&rig.holder[who].seq[0], q[i].n);
            return;
        }
}

/* As the loop resumes who waits; some have gone. */
static void serve(unsigned who, int64_t *answered)
{
    struct brig_holder *h = &rig.holder[who];
    for (unsigned i = 0; i < WAITING; i++) {
        struct request *q = &waiting[who][i];
        int64_t index;
        if (q->ticket > 0 && chance(6))
            q->ticket = 0;
        if (q->ticket == 0 ||
            sequence_strict(&h->seq[0], rig.mono, &q->ticket, q->n, &index) != SEQUENCE_OK)
            continue;
        if (index <= q->floor)
            fail_msg("expected above %" PRId64 ", which was answered before, found %" PRId64,
                     q->floor, index);
        rig.may_fall = true; /* requests that wait together have no order */
        brig_watch(h, 0, index, q->n);
        q->ticket = 0;
        *answered = index + q->n - 1 > *answered ? index + q->n - 1 : *answered;
    }
}

static void strict_step(int64_t *answered)
{
    unsigned who = (unsigned)seeded_in(&rig.rng, 0, rig.nholders - 1);
    int64_t index, dice = seeded_in(&rig.rng, 1, 1000);
    struct brig_holder *h = &rig.holder[who];
    if (dice <= 400)
        arrive(who, *answered);
    else if (dice <= 700)
        (void)call(h);
    else if (dice <= 900)
        serve(who, answered);
    else if (dice <= 980)
        brig_pass(&rig, seeded_in(&rig.rng, 0, 60));
    else if (dice <= 985) {
        brig_start(h, chance(2));
        memset(waiting[who], 0, sizeof waiting[who]);
    } else if (dice <= 988)
        brig_reopen(&rig, &rig.store.table);
    else if (!h->seq[0].strict)
        (void)sequence_next(&h->seq[0], rig.mono, 1, &index);
}

static void who_asks_after_an_answer_gets_a_higher_number(void **state)
{
    (void)state;
    unsigned long given = 0;
    for (uint64_t n = 1; n <= ROUNDS; n++) {
        int64_t answered = -1;
        memset(late, 0, sizeof late);
        memset(waiting, 0, sizeof waiting);
        brig_init(&rig, 2 + (unsigned)(n % 3), n);
        rig.store.definition.strict = true;
        (void)seq_definition_text(rig.store.text, &rig.store.definition);
        for (unsigned i = 0; i < STEPS; i++)
            strict_step(&answered);
        given += rig.ngiven;
        brig_clear(&rig);
    }
    print_message("# %lu strict numbers\n", given);
    assert_true(given > ROUNDS * 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_twice_and_all_rise),
        cmocka_unit_test(who_asks_after_an_answer_gets_a_higher_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
