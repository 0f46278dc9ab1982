#include "sim/cases.h"

#define SECOND INT64_C(1000)

/* Floors that are soon passed, and youth that is not; five members, so K = 2. */
static struct setting setting(uint16_t workers)
{
    struct setting s = {.params = coord_params_default,
                        .lease = {.active = 1, .renew_ms = 5 * SECOND, .layout = layout_usual},
                        .nodes = 3,
                        .replicas = GROUP_MAX - 1,
                        .catch_up_percent = 100};
    s.params.worker_to = (uint16_t)(workers - 1);
    s.params.max_skew_ms = 1;
    s.params.first_horizon_ms = 15001;
    s.params.mature_after_ms = 120 * SECOND;
    s.params.horizon_ms = 120 * SECOND;
    s.params.grace_ms = 0;
    s.params.replicas = GROUP_MAX / 2;
    return s;
}

static void begin_with(struct world *w, const struct setting *s)
{
    schedule_begin(w, 0, s);
    for (unsigned i = 0; i < GROUP_MAX; i++)
        w->server->group.member[i].clock_off = 0;
    for (unsigned i = 0; i < s->nodes; i++) {
        w->node[i].wall_off = 0;
        w->node[i].has_dir = true;
    }
}

static void begin(struct world *w, uint16_t workers)
{
    struct setting s = setting(workers);
    begin_with(w, &s);
}

/* Node i starts, and talks to that member. */
static void start(struct world *w, unsigned i, uint8_t side)
{
    w->node[i].side = side;
    node_start(w, &w->node[i]);
}

static void pass(struct world *w, int64_t ms)
{
    for (int64_t end = w->now + ms; w->now < end && !w->failed; w->now += SECOND)
        for (unsigned i = 0; i < w->set.nodes && !w->failed; i++) {
            if (!node_runs(w, &w->node[i]))
                continue;
            schedule_keep(w, &w->node[i]);
            node_serve(w, &w->node[i]);
        }
}

static struct member *promoted(struct world *w, unsigned i)
{
    struct group *g = &w->server->group;
    world_note(w, "replica %u is promoted", i);
    if (!group_promote(g, &g->member[i]))
        world_fail(w, "expected a life for a new master, found none left");
    return &g->member[i];
}

static void follow(struct world *w, unsigned i, const struct member *m)
{
    group_follow(&w->server->group, &w->server->group.member[i], m);
}

static void expect(struct world *w, bool good, const char *what)
{
    if (!good)
        world_fail(w, "expected %s, found otherwise", what);
}

/* Until the master was sure of its replicas within the last second, where it keeps count of that.
 */
static void pass_until_sure(struct world *w)
{
    for (unsigned i = 0; i < 60 && server_number(w->server, "sure") <= w->now - SECOND; i++)
        pass(w, SECOND);
}

static bool mature(const struct node *n)
{
    for (unsigned i = 0; i < LEASE_SLOTS; i++)
        if (n->lease.slot[i].rec.state == PAGE_HELD && !n->lease.slot[i].young)
            return true;
    return false;
}

/*
 *  member 0: master ----------------------> renewals of node 1, which count for nothing
 *         1: replica ...................................... promoted: claim of node 2
 *         2: replica .... promoted: node 0 claims, and is mature
 *         3, 4: follow 0, then 2, then 1
 *
 * What member 1 has is new, for its master wrote until the end; yet it lacks what counted. So the
 * age of its latest write does not tell how old is what it lost.
 */
static void deposed(struct world *w)
{
    begin(w, 2);
    start(w, 1, 0);
    pass(w, 10 * SECOND);
    pass_until_sure(w);
    struct member *m = promoted(w, 2);
    follow(w, 3, m);
    follow(w, 4, m);
    start(w, 0, 2);
    for (unsigned i = 0; i < 160 && !mature(&w->node[0]); i++)
        pass(w, SECOND);
    expect(w, mature(&w->node[0]), "node 0 to hold a workerId for long");
    m = promoted(w, 1);
    follow(w, 3, m);
    follow(w, 4, m);
    start(w, 2, 1);
    pass(w, 60 * SECOND);
    expect(w, w->node[2].lease.described, "node 2 to know the pool");
}

static enum coord_status init_again(struct world *w, struct member *m)
{
    struct coord_init in = {.params = w->set.params, .mode = COORD_INIT_AFTER_LOSS};
    memcpy(in.identity, w->identity, sizeof in.identity);
    w->server->at = m;
    enum coord_status s = server_init(w->server, &in);
    world_note(w, "the operator makes the pool again: %s", coord_status_name(s));
    return s;
}

/*
 *  member 0: master ---------------------------------------> node 0 is granted more and more
 *         2: promoted, empty: init, not acknowledged ........ init; claim of node 2
 *         3, 4: follow 0 ...................................., then 2
 *
 * The floor of a pool made after a loss must be above all that was granted until the old master's
 * end, and that had not come yet when the operator first tried.
 */
static void made_again(struct world *w)
{
    begin(w, 1);
    start(w, 0, 0);
    pass(w, 60 * SECOND);
    expect(w, lease_held(&w->node[0].lease) == 1, "node 0 to hold a workerId");
    struct member *m = promoted(w, 2);
    follow(w, 1, m);
    w->server->at = m;
    server_restart_empty(w->server, false);
    expect(w, init_again(w, m) == COORD_DOWN, "an init that too few replicas acknowledge");
    pass(w, 100 * SECOND);
    follow(w, 3, m);
    follow(w, 4, m);
    enum coord_status s = init_again(w, m);
    expect(w, s == COORD_OK || s == COORD_EXISTS, "the pool to be there");
    start(w, 2, 2);
    pass(w, 40 * SECOND);
}

/* Node 0 holds a workerId for long, which a copy of the coordinator calls free, and a settle is as
 * short as it can be. */
static struct node *grant_behind_copy(struct world *w, bool borrow)
{
    struct setting s = setting(1);
    s.replicas = s.params.replicas = 0;
    s.settle_ms = s.params.first_horizon_ms;
    s.lease.ahead = s.lease.rising = s.hold = true;
    s.lease.stop_ms = 5 * SECOND;
    s.borrow = borrow;
    if (layout_parse(SPAN("time:35,unit=1s worker:8 sequence:2"), &s.lease.layout, NULL))
        world_fail(w, "no layout");
    begin_with(w, &s);
    server_backup(w->server, 0, w->now);
    start(w, 0, 0);
    pass(w, 200 * SECOND); /* long ranges, and no gap that is short */
    expect(w, mature(&w->node[0]), "node 0 to hold a workerId for long");
    return &w->node[0];
}

static void issue_all(struct world *w, struct node *n)
{
    for (unsigned i = 0; i < 1000 && !w->failed; i++)
        node_serve(w, n);
}

static void put_copy_back(struct world *w)
{
    if (!server_restart(w->server, &w->server->old[0], false))
        world_fail(w, "expected a copy, found none");
    start(w, 1, 0);
}

static void claim_by_another(struct world *w)
{
    for (unsigned i = 0; i < 60 && !w->failed; i++) {
        pass(w, SECOND);
        node_serve(w, &w->node[1]);
    }
    expect(w, lease_held(&w->node[1].lease) == 1, "node 1 to have the workerId");
}

/*
 *  coordinator: copied ............. put back: it calls the workerId free
 *       node 0: claims, goes ahead as far as it can, gives it back, is gone
 *       node 1:                                    claims, once settle has passed
 *
 * Nobody is left to be heard, so the bet is won though what was granted, and used, ended by
 * horizon.
 */
static void ahead_and_gone(struct world *w, bool borrow, int64_t clock_ahead)
{
    struct node *n = grant_behind_copy(w, borrow);
    n->wall_off = clock_ahead;
    issue_all(w, n);
    expect(w, !borrow || n->gen.last_ms > w->now, "IDs above the time");
    node_term(w, n, true);
    pass(w, 5 * SECOND);
    expect(w, !n->alive, "node 0 to have given it back");
    put_copy_back(w);
    claim_by_another(w);
}

/*
 *  coordinator: copied ............. put back: it calls the workerId free
 *       node 0: claims, is cut off ............. goes ahead as far as it can, is gone
 *       node 1:                           asks ................ claims, once settle has passed
 *
 * It was cut off for less than settle, so the bet is won; what it was lent is as of before.
 */
static void borrowed_since_and_gone(struct world *w)
{
    struct node *n = grant_behind_copy(w, true);
    n->partitioned = true;
    put_copy_back(w);
    pass(w, 12 * SECOND);
    issue_all(w, n);
    expect(w, n->gen.last_ms > w->now - 2 * SECOND, "IDs though it is cut off");
    node_kill(w, n);
    n->has_file = false; /* and so is its page */
    claim_by_another(w);
}

static void borrowed_and_gone(struct world *w)
{
    ahead_and_gone(w, true, 0);
}

static void fast_and_gone(struct world *w)
{
    ahead_and_gone(w, false, 60 * SECOND);
}

static void (*const cases[CASES])(struct world *) = {deposed, made_again, borrowed_and_gone,
                                                     fast_and_gone, borrowed_since_and_gone};

const char *const case_names[CASES] = {
    "a deposed master's replica is promoted after a reign that it knows nothing of",
    "a pool is made again on a new master while the old one goes on",
    "a holder that borrowed is gone, and the coordinator lost that it ever was",
    "a holder whose clock was fast is gone, and the coordinator lost that it ever was",
    "a holder that is cut off borrows what the coordinator lost that it lends, and is gone",
};

bool case_run(struct world *w, unsigned i)
{
    cases[i](w);
    return !w->failed;
}
