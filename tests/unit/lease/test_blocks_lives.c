/* Sidecars that hold blocks, against a store that restarts and forgets, with messages that are
 * lost, late and doubled, and kills: no number twice, and rising within each of them. */
#include "support/blocks_rig.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_number_twice_and_all_rise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
