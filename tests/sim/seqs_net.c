/*
 * The calls about sequences: sent, run by the server at some time, once or twice, and answered at
 * another. As net.c, for the other supply of a node.
 */
#include "sim/seqs.h"

static struct seqs_flight *slot(struct world *w)
{
    struct seqs_flight *all = w->seqs->flight;
    for (unsigned i = 0; i < SEQS_FLIGHTS; i++)
        if (!all[i].used)
            return &all[i];
    struct seqs_flight *f = &all[world_draw(w, SEQS_FLIGHTS)];
    return f->running ? &all[f == all] : f;
}

static bool awaited(const struct world *w, const struct seqs_flight *f)
{
    const struct node *n = &w->node[f->node];
    const struct seqs_holder *h = seqs_of(w, n);
    return f->call.kind != SEQS_CREATE && n->alive && n->life == f->life &&
           h->phase == KEEPER_WAIT && h->serial == f->serial;
}

/* What the action names is the machine's, and the call may outlive it. */
void seqs_copy_call(struct world *w, const struct node *n, struct seqs_call *c)
{
    const struct seqs_holder *h = seqs_of(w, n);
    c->kind = h->action.kind == BLOCKS_TAKE ? SEQS_TAKE : SEQS_RETURN;
    c->action = h->action;
    c->wall_ms = node_wall(w, n) < 0 ? 0 : node_wall(w, n);
    memcpy(c->identity, n->lease.identity, sizeof c->identity);
    for (size_t i = 0; i < c->action.nitems; i++) {
        const struct blocks_counter *counter = &h->b.counter[c->action.counter[i]];
        c->of[i] = counter->of;
        memcpy(c->text[i], counter->text, strlen(counter->text) + 1);
    }
}

/* A copy of a call names its own copies. */
static void name_items(struct seqs_call *c)
{
    for (size_t i = 0; i < c->action.nitems; i++) {
        struct seq_want *t = &c->action.wants[i];
        struct seq_return *r = &c->action.returns[i];
        t->name = r->name = c->of[i].name;
        t->sub = r->sub = c->of[i].sub;
        t->period = r->period = c->of[i].period;
        t->text = c->text[i];
    }
}

static struct seqs_flight *depart(struct world *w, const struct node *n)
{
    struct seqs_flight *f = slot(w);
    f->used = true;
    f->answered = f->running = false;
    f->side = failover_side(w, &w->node[node_number(w, n)]);
    f->node = (uint8_t)node_number(w, n);
    f->life = n->life;
    f->serial = seqs_of(w, n)->serial;
    if (n->partitioned || (w->set.weight[FAULT_NET_LOST_REQUEST] && world_chance(w, 4))) {
        seqs_count(w, SEQS_LOST);
        f->used = false;
    }
    return f;
}

void seqs_send(struct world *w, struct node *n)
{
    struct seqs_holder *h = seqs_of(w, n);
    h->serial++;
    h->phase = KEEPER_WAIT;
    h->returns += h->action.kind == BLOCKS_RETURN;
    seqs_copy_call(w, n, &depart(w, n)->call);
}

/* Nobody waits for it: what came of it shows at the next take. */
void seqs_send_create(struct world *w, struct node *n, unsigned spec, unsigned text)
{
    const struct seqs_spec *s = &w->seqs->spec[spec];
    struct seqs_call *c = &depart(w, n)->call;
    c->kind = SEQS_CREATE;
    c->action.nitems = 0;
    c->spec = spec;
    c->create = text < SEQS_ALIEN ? s->version[text] : s->alien[text - SEQS_ALIEN];
    c->wall_ms = node_wall(w, n) < 0 ? 0 : node_wall(w, n);
    memcpy(c->identity, n->lease.identity, sizeof c->identity);
}

/* ---- the server -------------------------------------------------------------------------------
 */

static enum coord_status take(struct coord *c, void *with)
{
    struct seqs_call *k = with;
    struct blocks_outcome *o = &k->outcome;
    k->action.by.now_ms = k->wall_ms;
    return seq_take(c, k->identity, &k->action.by, k->action.wants, o->grants, k->action.nitems,
                    &o->opening, &o->reply);
}

static enum coord_status give_back(struct coord *c, void *with)
{
    struct seqs_call *k = with;
    return seq_give_back(c, k->identity, k->action.returns, k->outcome.how, k->action.nitems,
                         &k->outcome.reply);
}

static enum coord_status create(struct coord *c, void *with)
{
    struct seqs_call *k = with;
    return seq_create(c, k->identity, &k->create, &k->outcome.grants[0], &k->outcome.reply);
}

static enum coord_status (*const calls[])(struct coord *, void *) = {
    [SEQS_TAKE] = take, [SEQS_RETURN] = give_back, [SEQS_CREATE] = create};

unsigned seqs_spec_of(const struct world *w, const char *name)
{
    unsigned i = 0;
    while (i + 1 < w->seqs->specs && strcmp(w->seqs->spec[i].name, name) != 0)
        i++;
    return i;
}

static void check(struct world *w, const struct seqs_call *c)
{
    for (size_t i = 0; i < c->action.nitems; i++) {
        unsigned spec = seqs_spec_of(w, c->of[i].name);
        if (c->kind == SEQS_TAKE && c->outcome.grants[i].how == SEQ_GRANTED)
            seqs_ledger_granted(w, spec, &c->outcome.grants[i]);
        /* Of one that too few replicas had acknowledged nothing was heard before. */
        if (c->kind == SEQS_TAKE && c->outcome.grants[i].how == SEQ_AGAIN)
            seqs_ledger_again(w, spec, &c->outcome.grants[i]);
        if (c->kind == SEQS_RETURN && c->outcome.how[i] == SEQ_DONE)
            seqs_ledger_returned(w, spec, &c->action.returns[i]);
    }
    if (c->kind == SEQS_CREATE && c->outcome.grants[0].how == SEQ_DONE)
        seqs_count(w, SEQS_REMADE);
}

static void run_call(struct world *w, struct seqs_call *c)
{
    struct server *s = w->server;
    name_items(c);
    memset(&c->outcome, 0, sizeof c->outcome);
    int64_t called = w->now;
    c->outcome.status = server_do(s, c->wall_ms, calls[c->kind], c);
    w->seqs->called = called;
    w->stats->calls++;
    world_digest(w, c->outcome.status);
    if (c->outcome.status == COORD_OK)
        check(w, c);
    if (!s->sqlite || world_chance(w, 20))
        server_remember(s, w->now);
}

void seqs_run_copy(struct world *w, struct seqs_call *c)
{
    bool waits = w->waiting;
    w->waiting = true; /* nothing comes between */
    run_call(w, c);
    w->waiting = waits;
}

static void run(struct world *w, struct seqs_flight *f)
{
    bool late = (w->set.weight[FAULT_NET_LATE] || w->set.weight[FAULT_NET_DOUBLED]) &&
                world_chance(w, w->set.copies_percent);
    struct seqs_flight *copy = late ? slot(w) : f;
    if (copy != f) {
        *copy = *f;
        seqs_count(w, SEQS_DOUBLED);
    }
    w->server->at = &w->server->group.member[f->side];
    f->running = true;
    run_call(w, &f->call);
    f->running = false;
    f->answered = true;
    static const char *const names[] = {"take", "give-back", "creation"};
    world_note(w, "server %u runs a %s of node %u: %s", f->side, names[f->call.kind], f->node,
               coord_status_name(f->call.outcome.status));
}

/* Its place is not another call's before it was heard. */
static void hear(struct world *w, struct seqs_flight *f, bool torn)
{
    struct node *n = &w->node[f->node];
    f->used = f->running = true;
    name_items(&f->call);
    if (torn)
        seqs_kill_torn(w, n, &f->call);
    else
        seqs_answer(w, n, &f->call.action, &f->call.outcome);
    f->used = f->running = false;
}

static void answer(struct world *w, struct seqs_flight *f)
{
    bool lost = w->set.weight[FAULT_NET_LOST_REPLY] && world_chance(w, 12);
    f->used = false;
    if (!awaited(w, f))
        return;
    if (!node_runs(w, &w->node[f->node])) {
        f->used = true; /* it lies in the socket's buffer */
    } else if (lost) {
        seqs_count(w, SEQS_LOST);
    } else if (w->set.weight[FAULT_KILL_TORN] && world_chance(w, 3)) {
        seqs_count(w, SEQS_KILL_TORN);
        hear(w, f, true);
    } else {
        hear(w, f, false);
    }
}

static bool up(const struct world *w)
{
    return w->down_until <= w->now;
}

bool seqs_net_step(struct world *w)
{
    unsigned from = (unsigned)world_draw(w, SEQS_FLIGHTS);
    for (unsigned i = 0; i < SEQS_FLIGHTS; i++) {
        struct seqs_flight *f = &w->seqs->flight[(from + i) % SEQS_FLIGHTS];
        if (!f->used || f->running)
            continue;
        if (f->answered)
            answer(w, f);
        else if (up(w))
            run(w, f);
        return true;
    }
    return false;
}

void seqs_round_trip(struct world *w, struct node *n)
{
    struct seqs_holder *h = seqs_of(w, n);
    for (unsigned i = 0; i < SEQS_FLIGHTS && h->phase == KEEPER_WAIT && n->alive; i++) {
        struct seqs_flight *f = &w->seqs->flight[i];
        if (!f->used || f->running || !awaited(w, f) || f->node != node_number(w, n))
            continue;
        if (!f->answered && up(w))
            run(w, f);
        if (f->used && f->answered && !w->failed)
            answer(w, f);
    }
    if (n->alive && h->phase == KEEPER_WAIT && node_runs(w, n))
        seqs_time_out(w, n);
}

enum coord_status seqs_call_first(struct world *w, struct node *n)
{
    static struct seqs_call call;
    seqs_copy_call(w, n, &call);
    seqs_run_copy(w, &call);
    seqs_answer(w, n, &call.action, &call.outcome);
    return call.outcome.status;
}
