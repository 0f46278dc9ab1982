/*
 * A machine and the process on it. What keeper.c, workers.c and bridge.c do with threads and
 * mailboxes is done here in steps; all they decide is left to the lease machine and the generator.
 */
#include "sim/seqs.h"

#include <stdio.h>
#include <stdlib.h>

bool node_runs(const struct world *w, const struct node *n)
{
    return n->alive && n->stopped_until <= w->now;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void deliver(struct node *n)
{
    if (n->mails + n->lease.nmail > NODE_MAILS) {
        (void)fprintf(stderr, "node: expected at most %d mails, found more\n", NODE_MAILS);
        abort();
    }
    memcpy(n->mail + n->mails, n->lease.mail, n->lease.nmail * sizeof *n->mail);
    n->mails += n->lease.nmail;
    n->lease.nmail = 0;
}

/* What pagefile_begin_generation does; false: it could not. */
static bool begin_generation(struct world *w, struct node *n)
{
    if (!n->has_file)
        return true;
    if (w->set.weight[FAULT_PAGE_FULL] && world_chance(w, 10)) {
        world_count(w, FAULT_PAGE_FULL);
        return false;
    }
    uint64_t next = ++w->inodes;
    page_expect(&n->page, n->generation, next);
    n->generation = next;
    return true;
}

bool node_page_is_own(const struct node *n)
{
    struct err why;
    return n->has_file && !n->cut && page_judge(&n->page, &n->home, &why) == PAGE_OWN &&
           page_is_of(&n->page, n->generation);
}

/* What pagefile_inherit does with what it finds. true: the page is ours, and is gone on with. */
static bool open_page(struct world *w, struct node *n)
{
    struct pagefile *f = &n->file;
    bool heir = n->heir;
    n->heir = false;
    f->fd = -1;
    f->path = NULL;
    f->page = &n->page;
    f->found = n->has_dir && n->has_file;
    f->verdict = PAGE_BROKEN;
    f->proven = false;
    if (f->found && !n->cut) {
        f->old = n->page;
        f->verdict = page_judge(&n->page, &n->home, &f->why);
        if (f->verdict == PAGE_OWN && !node_page_is_own(n))
            f->verdict = PAGE_FOREIGN;
    }
    n->refused = w->set.fixed && f->found &&
                 (f->verdict == PAGE_BROKEN || page_floor(&f->old) == PAGE_FLOOR_UNKNOWN);
    if (n->refused)
        return false;
    bool left = n->proof && memcmp(&n->handed, &n->page, sizeof n->page) == 0;
    n->proof = false;
    if (f->found && f->verdict == PAGE_OWN) {
        f->proven = left;
        if (!heir)
            (void)begin_generation(w, n);
        return true;
    }
    struct page_home nowhere = {0};
    n->home.inode = ++w->inodes;
    page_format(&n->page, n->has_dir ? &n->home : &nowhere, n->life);
    page_expect(&n->page, 0, n->generation);
    if (f->found)
        page_replace(&n->page, f->verdict == PAGE_BROKEN ? NULL : &f->old);
    n->has_file = n->has_dir;
    n->cut = false;
    (void)begin_generation(w, n);
    return false;
}

/* What the node goes on above. A page that was lost, or is an older one, does not tell. */
static bool tells_of(const struct world *w, const struct node *n, uint64_t id)
{
    struct layout_parts p;
    return w->set.hold && layout_decompose(&w->set.lease.layout, id, &p) &&
           n->lease.latest_ms >= WORLD_EPOCH + p.time;
}

void node_start(struct world *w, struct node *n)
{
    n->alive = true;
    n->stopping = n->stop_due = n->gen_started = false;
    n->urge_renewal = n->urge_claim = false;
    n->stopped_until = 0;
    n->life++;
    n->mails = n->nretired = 0;
    n->phase = KEEPER_READY;
    n->due_mono = INT64_MIN;
    memset(&n->gen, 0, sizeof n->gen);
    memset(n->tenure, 0xff, sizeof n->tenure);
    bool own = open_page(w, n);
    if (n->refused) {
        world_note(w, "node %u does not start: its page is broken", node_number(w, n));
        n->alive = false;
        return;
    }
    if (!own)
        memset(n->granted, 0, sizeof n->granted);
    memset(n->before, 0, sizeof n->before);
    world_note(w, "node %u starts: page %s", node_number(w, n),
               !n->file.found                    ? "none"
               : own                             ? "own"
               : n->file.verdict == PAGE_FOREIGN ? "foreign"
                                                 : "broken");
    lease_init(&n->lease, &w->set.lease, &n->file, &w->rng, node_mono(w, n));
    if (!tells_of(w, n, n->last_id))
        n->last_id = 0;
    n->trust = (struct snowflake_trust){
        .ms = n->lease.latest_ms, .mono_ms = node_mono(w, n), .skew_ms = w->set.params.max_skew_ms};
    w->stats->takeovers += own && lease_held(&n->lease) > 0;
    w->stats->proven += n->file.proven && lease_held(&n->lease) > 0;
    deliver(n);
    seqs_started(w, n);
    ledger_check(w, n);
}

void node_kill(struct world *w, struct node *n)
{
    n->alive = false;
    seqs_killed(w, n);
    if (!n->has_dir)
        n->has_file = false;
    ledger_pages_changed();
}

/* What upgrade.c does while the keeper rests, and heir.c after it. */
void node_upgrade(struct world *w, struct node *n)
{
    n->handed = n->page;
    n->proof = lease_proven(&n->lease);
    n->heir = true;
    seqs_handed(w, n);
    node_kill(w, n);
    node_start(w, n);
}

void node_term(struct world *w, struct node *n, bool give_back)
{
    if (n->stopping)
        return;
    n->stopping = n->stop_due = true;
    n->give_back = give_back;
    seqs_told_to_stop(w, n);
    n->due_mono = INT64_MIN;
}

/* ---- the keeper ------------------------------------------------------------------------------ */

static void take_requests(struct node *n, int64_t mono)
{
    for (unsigned i = 0; i < n->nretired; i++)
        lease_retire(&n->lease, n->retired[i], mono);
    if (n->urge_renewal)
        lease_urge_renewal(&n->lease, mono);
    if (n->urge_claim)
        lease_urge_claim(&n->lease, mono);
    if (n->stop_due)
        lease_stop(&n->lease, n->give_back, mono);
    n->stop_due = n->urge_renewal = n->urge_claim = false;
    n->nretired = 0;
}

static const char *const action_names[] = {
    [LEASE_IDLE] = "idle",       [LEASE_DESCRIBE] = "describe", [LEASE_INIT] = "init",
    [LEASE_CLAIM] = "claim",     [LEASE_RENEW] = "renew",       [LEASE_RELEASE] = "release",
    [LEASE_FINISHED] = "finish",
};

static void decide(struct world *w, struct node *n)
{
    int64_t mono = node_mono(w, n);
    take_requests(n, mono);
    lease_next(&n->lease, mono, &n->action);
    if (n->action.kind == LEASE_IDLE) {
        n->due_mono = n->action.until;
        return;
    }
    if (n->action.kind == LEASE_FINISHED && !seqs_finished(w, n)) {
        n->due_mono = mono + 10; /* the other supply has something to give back */
        return;
    }
    world_note(w, "node %u decides to %s", node_number(w, n), action_names[n->action.kind]);
    if (n->action.kind == LEASE_FINISHED)
        node_kill(w, n);
    else
        n->phase = KEEPER_SEND;
}

/* As in workers.c. */
static bool page_is_dated(struct world *w, struct node *n)
{
    if (n->lease.gave_up)
        n->lease.gave_up = !begin_generation(w, n);
    return !n->lease.gave_up;
}

/* Before a release is sent; without a new generation it is not. */
static void date_page(struct world *w, struct node *n)
{
    static const struct lease_outcome unsent = {.status = COORD_LOST};
    if (n->phase != KEEPER_SEND || n->action.kind != LEASE_RELEASE || page_is_dated(w, n))
        return;
    lease_done(&n->lease, &n->action, &unsent, node_mono(w, n), node_wall(w, n));
    deliver(n);
    n->phase = KEEPER_READY;
    n->due_mono = INT64_MIN;
}

void node_keep(struct world *w, struct node *n)
{
    if (n->phase == KEEPER_READY) {
        decide(w, n);
        date_page(w, n);
        ledger_check(w, n);
    } else if (n->phase == KEEPER_SEND) {
        net_send(w, n);
    }
}

static void note_answer(const struct world *w, const struct node *n, const struct lease_action *a,
                        const struct lease_outcome *o)
{
    if (!w->trace)
        return;
    world_note(w, "node %u hears of its %s: %s", node_number(w, n), action_names[a->kind],
               coord_status_name(o->status));
    if (a->kind == LEASE_CLAIM && o->status == COORD_OK)
        world_note(w, "  workerId %u, %lld..%lld, n %llu", o->grant.worker,
                   (long long)(o->grant.lo_ms - WORLD_EPOCH),
                   (long long)(o->grant.hi_ms - WORLD_EPOCH), (unsigned long long)o->grant.n);
    static const char *const hows[] = {"LOST", "renewed", "again", "reasserted"};
    for (size_t i = 0; a->kind == LEASE_RENEW && o->status == COORD_OK && i < a->nitems; i++)
        world_note(w, "  workerId %u %s, up to %lld, n %llu", a->items[i].worker,
                   hows[a->items[i].how], (long long)(a->items[i].hi_ms - WORLD_EPOCH),
                   (unsigned long long)a->items[i].n);
}

/* The yardstick of I2 is what replies said, not what the lease machine made of it. */
static void book(struct world *w, struct node *n, const struct lease_action *a,
                 const struct lease_outcome *o)
{
    w->stats->status[o->status]++;
    if (o->status != COORD_OK)
        return;
    for (unsigned i = 0; a->kind == LEASE_CLAIM && i < n->lease.nmail; i++)
        if (n->lease.mail[i].kind == LEASE_MAIL_GRANT) {
            n->before[o->grant.worker] = n->granted[o->grant.worker];
            n->granted[o->grant.worker] =
                (struct range){o->grant.worker, o->grant.lo_ms, o->grant.hi_ms};
            w->stats->grants++;
        }
    for (size_t i = 0; a->kind == LEASE_RENEW && i < a->nitems; i++) {
        struct range *g = &n->granted[a->items[i].worker];
        w->stats->renewals[a->items[i].how]++;
        if (a->items[i].how != COORD_HOW_LOST && a->items[i].hi_ms > g->hi)
            g->hi = a->items[i].hi_ms;
    }
}

void node_answer(struct world *w, struct node *n, const struct server_call *call)
{
    static const struct lease_outcome down = {.status = COORD_DOWN};
    const struct lease_action *a = call ? &call->action : &n->action;
    const struct lease_outcome *o = call ? &call->outcome : &down;
    note_answer(w, n, a, o);
    lease_done(&n->lease, a, o, node_mono(w, n), node_wall(w, n));
    if (lease_heard_of_all(&n->lease, a, o))
        n->trust = (struct snowflake_trust){
            o->reply.now_ms, node_mono(w, n), w->set.params.max_skew_ms,
            n->lease.described ? n->lease.pool.params.first_horizon_ms : 0};
    (void)page_is_dated(w, n);
    book(w, n, a, o);
    seqs_renewed(w, n, a, o);
    deliver(n);
    n->phase = KEEPER_READY;
    n->due_mono = INT64_MIN;
    ledger_check(w, n);
}

/* ---- a kill between two stores --------------------------------------------------------------- */

/* Copies what differs, byte by byte, as long as *left lasts. */
static void copy_some(void *to, const void *from, size_t n, uint64_t *left)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    for (size_t i = 0; i < n; i++) {
        if (t[i] == f[i])
            continue;
        if (*left == 0)
            return;
        --*left;
        t[i] = f[i];
    }
}

/* A store of 8 bytes is there whole or not at all. */
static void copy_cell(volatile uint64_t *to, const volatile uint64_t *from, uint64_t *left)
{
    if (*to == *from || *left == 0)
        return;
    --*left;
    *to = *from;
}

void node_kill_torn(struct world *w, struct node *n, const struct server_call *call)
{
    struct page torn = n->page;
    uint64_t there = n->generation;
    uint64_t left = world_draw(w, 2) ? world_draw(w, 8) : world_draw(w, 200);
    if (call)
        node_answer(w, n, call);
    else {
        decide(w, n);
        date_page(w, n);
    }
    copy_some(&torn.head, &n->page.head, offsetof(struct page_head, generation), &left);
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_slot *to = &torn.slot[i];
        const struct page_slot *from = &n->page.slot[i];
        copy_cell(&to->mark, &from->mark, &left);
        copy_some(to->copy, from->copy, sizeof to->copy, &left);
        copy_cell(&to->commit, &from->commit, &left);
    }
    for (unsigned i = 0; i < 2; i++)
        copy_cell(&torn.head.generation.word[i], &n->page.head.generation.word[i], &left);
    if (left == 0)
        n->generation = there; /* last of all, another file takes the place of that one */
    n->page = torn;
    node_kill(w, n);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void take_one(struct world *w, struct node *n, const struct lease_mail *m)
{
    struct snowflake *g = &n->gen;
    int64_t last;
    switch (m->kind) {
    case LEASE_MAIL_POOL:
        if (!n->gen_started) {
            snowflake_init(g, n->lease.pool.epoch_ms, &n->lease.pool.layout, w->set.wait_below_ms,
                           w->set.lease.active);
            n->ahead = (struct snowflake_ahead){.borrow = w->set.borrow, .hold = w->set.hold};
            snowflake_ahead_init(&n->ahead, g, m->last_ms);
        }
        n->gen_started = true;
        break;
    case LEASE_MAIL_GRANT:
        if (snowflake_grant(g, m->handle, m->worker, m->last_ms, m->hi_ms, m->mark))
            ledger_open(w, n, m);
        else if (n->nretired < NODE_RETIRED)
            n->retired[n->nretired++] = m->handle;
        break;
    case LEASE_MAIL_EXTEND:
        snowflake_extend(g, m->handle, m->hi_ms);
        break;
    case LEASE_MAIL_REVOKE:
        (void)snowflake_revoke(g, m->handle, &last);
        break;
    case LEASE_MAIL_RETIRE:
        if (snowflake_revoke(g, m->handle, &last) && n->nretired < NODE_RETIRED)
            n->retired[n->nretired++] = m->handle;
        break;
    }
}

static void take_mails(struct world *w, struct node *n)
{
    unsigned k = world_chance(w, 65) ? n->mails : (unsigned)world_draw(w, n->mails + 1u);
    for (unsigned i = 0; i < k; i++)
        take_one(w, n, &n->mail[i]);
    memmove(n->mail, n->mail + k, (n->mails - k) * sizeof *n->mail);
    n->mails -= k;
    if (k > 0)
        ledger_check(w, n);
}

static void ask(struct world *w, struct node *n, uint32_t count, bool some)
{
    int64_t now = node_wall(w, n), until;
    uint64_t first;
    if (count > n->gen.sequences && n->gen.sequences > 0)
        count = n->gen.sequences;
    uint32_t got = count;
    struct snowflake_clock clock = snowflake_believed(&n->ahead, &n->trust, now, node_mono(w, n));
    enum snowflake_status s =
        w->set.lease.ahead
            ? snowflake_ahead_issue(&n->ahead, &n->gen, clock, count, some, &first, &got, &until)
        : some ? snowflake_some(&n->gen, now, count, &first, &got, &until)
               : snowflake_next(&n->gen, now, count, &first, &until);
    if (s == SNOWFLAKE_OK)
        ledger_issued(w, n, first, got, now);
    if (w->trace && s == SNOWFLAKE_OK)
        world_note(w, "node %u issues %u with workerId %u", node_number(w, n), got,
                   n->gen.last_worker);
}

static void settle(struct world *w, struct node *n)
{
    struct snowflake *g = &n->gen;
    for (unsigned i = 0; i < g->nretired && n->nretired < NODE_RETIRED; i++) {
        world_note(w, "node %u rotates", node_number(w, n));
        n->retired[n->nretired++] = g->retired[i].handle;
        w->stats->rotations++;
        n->due_mono = INT64_MIN;
    }
    g->nretired = 0;
    n->urge_renewal |= g->wants_renewal;
    n->urge_claim |= g->wants_worker;
    if (g->wants_renewal || g->wants_worker)
        n->due_mono = INT64_MIN;
    g->wants_renewal = g->wants_worker = false;
}

void node_serve(struct world *w, struct node *n)
{
    static const uint16_t sizes[] = {1, 1, 1, 1, 2, 3, 10, 500, 1023, 1024};
    take_mails(w, n);
    if (!n->gen_started || n->stopping)
        return;
    for (uint64_t k = world_draw(w, 4); k > 0 && !w->failed; k--)
        ask(w, n, sizes[world_draw(w, sizeof sizes / sizeof *sizes)], world_chance(w, 30));
    settle(w, n);
}
