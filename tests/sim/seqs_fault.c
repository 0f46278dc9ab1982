/*
 * What happens to sequences alone: what operators do with them, and what goes wrong with them.
 *
 * Operators keep their word: where numbers are given up (set --back), or a name is used again, no
 * older data are put in place any more; and who says above which number to go on knows the highest
 * that was granted to anybody.
 */
#include "sim/seqs.h"

#include "base/int64.h"
#include "sim/fault.h"

#include <stdio.h>
#include <stdlib.h>

#define HOUR_MS INT64_C(3600000)

const char *const seqs_names[SEQS_COUNTS] = {
    [SEQS_SET] = "operator sets a sequence forward",
    [SEQS_SET_BACK] = "operator sets a sequence back, and no older data come",
    [SEQS_DROP] = "operator drops a sequence",
    [SEQS_REUSE] = "operator makes a dropped name again, and no older data come",
    [SEQS_ALTER] = "operator raises a max",
    [SEQS_SWEEP] = "operator closes periods",
    [SEQS_RESERVE] = "operator reserves numbers",
    [SEQS_REOPEN] = "operator says above which number to go on",
    [SEQS_CREATE_AGAIN] = "operator makes a sequence that may be there",
    [SEQS_IN_PLACE] = "rewound under the same fingerprint, where a holder of blocks is heard next",
    [SEQS_CLOCK_DAY] = "coordinator's clock a day ahead while holders take blocks",
    [SEQS_AREA_LOST] = "blocks of the page lost",
    [SEQS_AREA_OLD] = "old copy of the blocks put in their place",
    [SEQS_AREA_CUT] = "blocks of the page cut",
    [SEQS_AREA_FLIP] = "bit of the blocks flipped",
    [SEQS_AREA_BACK] = "blocks put back in place as they were",
    [SEQS_STATE_BACK] = "the whole page put back in place as it was, not on tmpfs",
    [SEQS_STOP] = "SIGTERM, blocks given back",
    [SEQS_RETURN_LATE] = "give-back run again once others had what went back",
    [SEQS_REPLY_LOST] = "reply to a take lost, and others answered before it is repeated",
    [SEQS_KILL_TORN] = "SIGKILL between two stores to the blocks",
    [SEQS_LOST] = "request or reply lost",
    [SEQS_DOUBLED] = "request run again, soon or much later",
    [SEQS_REMADE] = "sequence made again by a sidecar that asked",
    [SEQS_PROVEN_TMPFS] = "page proven by its ctime",
    [SEQS_PROVEN_RENEWAL] = "page proven by a renewal",
    [SEQS_PROVEN_UPGRADE] = "page proven by the program before",
    [SEQS_UNPROVEN] = "page that could not be proven",
    [SEQS_ALIENS] = "nodes with another definition in their cache",
    [SEQS_OTHER_POOL] = "blocks of another pool dropped",
    [SEQS_GIVEN] = "numbers given out",
    [SEQS_GIVEN_STRICT] = "strict numbers given out",
    [SEQS_GIVEN_WHOLE] = "requests for several in a row served",
    [SEQS_WENT_BACK] = "blocks that went back",
};

#define PICK(w, ...)                                                                               \
    ((const int64_t[]){                                                                            \
        __VA_ARGS__})[world_draw(w, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))]

/* ---- an operator's call -----------------------------------------------------------------------
 */

struct order {
    const struct seqs_spec *s;
    const char *identity;
    const struct seq_create *create;
    struct seq_set set;
    const char *period;
    int64_t number, now_ms;
    struct coord_token token;
    struct seq_grant out;
    struct coord_reply reply;
};

static enum coord_status call_create(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_create(c, o->identity, o->create, &o->out, &o->reply);
}

static enum coord_status call_set(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_set(c, o->identity, &o->set, &o->out, &o->reply);
}

static enum coord_status call_drop(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_drop(c, o->identity, o->s->name, &o->out, &o->reply);
}

static enum coord_status call_alter(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_alter(c, o->identity, o->s->name, o->number, &o->out, &o->reply);
}

static enum coord_status call_sweep(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_sweep(c, o->identity, o->s->name, o->period, &o->out, &o->reply);
}

static enum coord_status call_reopen(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_reopen(c, o->identity, o->s->name, o->number, &o->out, &o->reply);
}

static enum coord_status call_reserve(struct coord *c, void *with)
{
    struct order *o = with;
    return seq_reserve(c, o->identity, o->now_ms, o->s->name, "", o->period, o->number, o->token,
                       &o->out, &o->reply);
}

/* What it came to; SEQ_HOWS: nothing that is known. */
static enum seq_how order(struct world *w, const char *what,
                          enum coord_status (*call)(struct coord *, void *), struct order *o)
{
    o->identity = w->identity;
    o->now_ms = max64(server_ms(w->server), 0);
    if (w->down_until > w->now)
        return SEQ_HOWS;
    int64_t called = w->now;
    enum coord_status s = server_do(w->server, o->now_ms, call, o);
    w->seqs->called = called;
    world_note(w, "operator: %s %s: %s, %s", what, o->s->name, coord_status_name(s),
               s == COORD_OK ? seq_how_name(o->out.how) : "");
    if (s == COORD_OK)
        w->stats->seq_how[o->out.how]++;
    server_remember(w->server, w->now);
    return s == COORD_OK ? o->out.how : SEQ_HOWS;
}

static struct seqs_spec *some_spec(struct world *w)
{
    return &w->seqs->spec[world_draw(w, w->seqs->specs)];
}

static const struct seq_definition *definition_of(const struct seqs_spec *s)
{
    return &s->version[s->versions - 1].definition;
}

/* A label that is now, or was, or comes; "": there are none. */
static const char *some_period(struct world *w, const struct seq_definition *d)
{
    static char label[PERIOD_LABEL_MAX];
    label[0] = '\0';
    int64_t at = w->now + PICK(w, 0, 0, 0, -HOUR_MS, HOUR_MS);
    (void)period_label(d->reset, d->offset_min, at, label);
    return label;
}

/* ---- what is made -----------------------------------------------------------------------------
 */

static void draw_definition(struct world *w, struct seq_create *v)
{
    struct seq_definition *d = &v->definition;
    int64_t loss = (int64_t)world_draw(w, 100);
    *d =
        (struct seq_definition){.start = PICK(w, 1, 1, 100, -5), .increment = PICK(w, 1, 1, 3, -2)};
    d->loss = loss < 65 ? SEQ_LOSS_SKIP : loss < 85 ? SEQ_LOSS_REFUSE : SEQ_LOSS_TRUST;
    if (d->loss == SEQ_LOSS_SKIP) {
        d->rate = PICK(w, 1, 100, 100, 1000, 10000, 1000000);
        d->burst = seq_burst(d->rate);
    }
    d->strict = world_chance(w, 35);
    d->subs = world_chance(w, 40) ? world_between(w, 1, SEQS_SUBS) : 0;
    d->reset = world_chance(w, 35) ? PERIOD_HOUR : PERIOD_NEVER;
    d->offset_min = d->reset == PERIOD_HOUR ? (int)PICK(w, 0, 30, -90) : 0;
    d->begins_ms = w->now + PICK(w, -10 * w->set.params.max_skew_ms, -HOUR_MS, 0, 2000, 60000);
    v->has_max = d->loss != SEQ_LOSS_SKIP && world_chance(w, 60);
    v->max = d->start + PICK(w, 20, 300, 5000) * d->increment;
    d->cycle = d->strict && v->has_max && world_chance(w, 30);
    if (world_chance(w, 30))
        d->begins_ms = 0;
}

static void know(struct seqs_spec *s, const struct seq_grant *g)
{
    unsigned i = s->versions - 1;
    s->version[i].definition = g->definition;
    (void)seq_definition_text(s->text[i], &g->definition);
    s->top[i] = g->max;
    /* Another one: later, and of another rate where it has one. */
    s->alien[i] = s->version[i];
    struct seq_definition *d = &s->alien[i].definition;
    d->begins_ms++;
    if (d->rate > 0) {
        d->rate = d->rate == 1 ? 100 : 1;
        d->burst = seq_burst(d->rate);
    }
    (void)seq_definition_text(s->text[SEQS_ALIEN + i], d);
}

static enum seq_how make_version(struct world *w, struct seqs_spec *s, bool reuse)
{
    struct seq_create *v = &s->version[s->versions];
    int64_t start = s->version[0].definition.start, increment = s->version[0].definition.increment;
    draw_definition(w, v);
    if (reuse) { /* so that its indices are those of before */
        v->definition.start = start;
        v->definition.increment = increment;
        v->has_max = v->definition.cycle = false;
        v->definition.begins_ms = max64(v->definition.begins_ms, w->now);
    }
    v->name = s->name;
    v->reuse = v->no_older = reuse;
    struct order o = {.s = s, .create = v};
    enum seq_how how = order(w, "create", call_create, &o);
    v->reuse = v->no_older = false;
    if (how != SEQ_DONE)
        return how;
    s->versions++;
    know(s, &o.out);
    return how;
}

void seqs_draw(struct world *w)
{
    struct seqs *q = w->seqs;
    q->specs = (unsigned)world_between(w, 1, SEQS_SPECS);
    q->lasts_ms = PICK(w, 1000, 1000, 60000);
    q->cache_max = PICK(w, 10, 1000, 1000, 100000);
    q->sizes = (unsigned)PICK(w, 4, 6, 8, 10, 10, 10);
    bool aliens = world_chance(w, 20);
    for (unsigned f = 0; f < SEQS_FAULTS; f++)
        q->weight[f] = world_chance(w, 60);
    q->weight[SEQS_REOPEN] *= 4;
    q->weight[SEQS_IN_PLACE] *= 6;
    q->weight[SEQS_REUSE] *= 6;
    q->weight[SEQS_STATE_BACK] *= 6;
    q->weight[SEQS_AREA_BACK] *= 4;
    q->weight[SEQS_CLOCK_DAY] *= 2;
    q->weight[SEQS_STOP] *= 10;
    q->weight[SEQS_REPLY_LOST] *= 12;
    for (unsigned i = 0; i < q->specs && !w->failed; i++) {
        struct seqs_spec *s = &q->spec[i];
        (void)snprintf(s->name, sizeof s->name, "%c", (char)('k' + (int)i));
        if (make_version(w, s, false) != SEQ_DONE)
            world_fail(w, "cannot make a sequence");
        s->has_alien = aliens && world_chance(w, 60);
    }
    for (unsigned i = 0; i < w->set.nodes; i++) {
        struct seqs_holder *h = &q->holder[i];
        h->tmpfs = world_chance(w, 50);
        h->texts = world_chance(w, 85);
        for (unsigned k = 0; k < q->specs; k++)
            h->alien[k] = q->spec[k].has_alien && world_chance(w, 30);
    }
    if (aliens)
        seqs_count(w, SEQS_ALIENS);
}

/* ---- operators --------------------------------------------------------------------------------
 */

static bool no_older_data(struct world *w)
{
    if (w->set.replicas > 0)
        return false;
    server_forget_copies(w->server);
    return true;
}

static bool set(struct world *w, bool back)
{
    struct seqs_spec *s = some_spec(w);
    const struct seq_definition *d = definition_of(s);
    int64_t index = back ? (int64_t)world_draw(w, (uint64_t)s->highest + 1)
                         : s->highest + PICK(w, 0, 1, 50, 900, 20000);
    bool sub = d->subs > 0 && world_chance(w, 50);
    if (index > seq_last_index(d) || (back && !no_older_data(w)))
        return false;
    struct order o = {.s = s,
                      .set = {.name = s->name,
                              .sub = sub ? "a" : "",
                              .period = some_period(w, d),
                              .number = seq_number(d, index),
                              .back = back,
                              .no_older = back}};
    enum seq_how how = order(w, back ? "set --back" : "set", call_set, &o);
    if (how != SEQ_DONE)
        return false;
    s->highest = max64(s->highest, index);
    if (back) {
        /* Within 2S a turn that was lost may have had this number, too. */
        s->is_void |= s->back_turn > 0 || o.out.turn <= s->turns;
        s->back_turn = o.out.turn;
        s->losses = w->losses;
        server_forget_copies(w->server);
    }
    s->turns = max64(s->turns, o.out.turn);
    return true;
}

static bool fault_set(struct world *w)
{
    return set(w, false);
}

static bool fault_set_back(struct world *w)
{
    return world_chance(w, 30) && set(w, true);
}

static bool fault_drop(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    if (!world_chance(w, 30) || order(w, "drop", call_drop, &o) != SEQ_DONE)
        return false;
    w->seqs->spec[o.s - w->seqs->spec].dropped = true;
    return true;
}

static bool fault_reuse(struct world *w)
{
    struct seqs_spec *s = some_spec(w);
    if (!s->dropped || s->versions == SEQS_VERSIONS || !no_older_data(w) ||
        make_version(w, s, true) != SEQ_DONE)
        return false;
    server_forget_copies(w->server);
    s->dropped = false;
    s->reused_at[s->versions - 1] = w->losses;
    return true;
}

static bool fault_alter(struct world *w)
{
    struct seqs_spec *s = some_spec(w);
    struct seq_create *v = &s->version[s->versions - 1];
    struct order o = {.s = s};
    if (!v->has_max || v->definition.cycle)
        return false;
    o.number = v->max + world_between(w, 0, 300) * v->definition.increment;
    if (order(w, "alter", call_alter, &o) == SEQ_HOWS)
        return false;
    s->top[s->versions - 1] =
        max64(s->top[s->versions - 1], seq_max_index(&v->definition, o.number));
    v->max = o.out.how == SEQ_DONE ? o.number : v->max;
    return o.out.how == SEQ_DONE;
}

static bool fault_sweep(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    o.period = world_chance(w, 30) ? "" : some_period(w, definition_of(o.s));
    return order(w, "sweep", call_sweep, &o) == SEQ_DONE;
}

static bool reserve(struct world *w, struct order *o)
{
    o->token = coord_token_new(&w->rng);
    if (order(w, "reserve", call_reserve, o) != SEQ_GRANTED)
        return false;
    unsigned spec = (unsigned)(o->s - w->seqs->spec);
    seqs_ledger_granted(w, spec, &o->out);
    seqs_ledger_reserved(w, spec, &o->out);
    return true;
}

static bool fault_reserve(struct world *w)
{
    struct order o = {.s = some_spec(w), .number = world_between(w, 1, 50)};
    o.period = some_period(w, definition_of(o.s));
    return reserve(w, &o);
}

static bool fault_reopen(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    const struct seq_definition *d = definition_of(o.s);
    o.number = o.s->highest > 0 ? seq_number(d, o.s->highest - 1) : d->start - d->increment;
    int64_t *turns = &w->seqs->spec[o.s - w->seqs->spec].turns;
    bool done = order(w, "reopen", call_reopen, &o) == SEQ_DONE;
    *turns = max64(*turns, o.out.turn);
    return done;
}

static bool fault_create_again(struct world *w)
{
    struct order o = {.s = some_spec(w)};
    o.create = &o.s->version[o.s->versions - 1];
    if (o.s->dropped)
        return false;
    enum seq_how how = order(w, "create", call_create, &o);
    return how == SEQ_DONE || how == SEQ_KEPT;
}

/* ---- the coordinator --------------------------------------------------------------------------
 */

static struct node *about_to_take(struct world *w)
{
    unsigned from = (unsigned)world_draw(w, w->set.nodes);
    for (unsigned i = 0; i < w->set.nodes; i++) {
        struct node *n = &w->node[(from + i) % w->set.nodes];
        struct seqs_holder *h = seqs_of(w, n);
        if (node_runs(w, n) && h->has_b && h->phase == KEEPER_READY)
            seqs_keep_once(w, n);
        if (node_runs(w, n) && h->phase == KEEPER_SEND && h->action.kind == BLOCKS_TAKE)
            return n;
    }
    return NULL;
}

/* A count of this opening that is above the record's. */
static bool proves_rewind(struct world *w, const struct node *n)
{
    const struct seqs_holder *h = seqs_of(w, n);
    const struct blocks_action *a = &h->action;
    struct server *s = w->server;
    char fp[DATASET_TEXT_MAX + 1];
    if (a->by.opening.era != server_number(s, "era") ||
        a->by.opening.topen_ms != server_number(s, "topen") || !server_field(s, "fp", fp) ||
        strcmp(fp, a->by.opening.fingerprint) != 0)
        return false;
    for (size_t i = 0; i < a->nitems; i++) {
        const struct seq_want *t = &a->wants[i];
        char name[200], text[DATASET_TEXT_MAX + 1];
        long long changes;
        (void)snprintf(name, sizeof name, "num %s %lld %s%s%s", t->name, (long long)t->gen,
                       *t->period ? t->period : "-", *t->sub ? " " : "", t->sub);
        if (t->n > 0 && !t->known_before && server_field(s, name, text) &&
            sscanf(text, "%*d %*d %lld", &changes) == 1 && t->n > changes)
            return true;
    }
    return false;
}

/* As fault_redis_in_place. */
static bool fault_in_place(struct world *w)
{
    struct server *s = w->server;
    struct node *n = about_to_take(w);
    const struct server_copy *c = fault_old_copy(w);
    if (!c || s->sqlite || !n || w->waiting || node_wall(w, n) < 0 || !fault_may_lose(w))
        return false;
    server_backup(s, SERVER_OLD - 1, w->now);
    if (c != &s->old[SERVER_OLD - 1] && !server_rewind_in_place(s, c))
        return false;
    int64_t era = server_number(s, "era");
    if (!proves_rewind(w, n)) {
        (void)server_rewind_in_place(s, &s->old[SERVER_OLD - 1]);
        return false;
    }
    world_note(w, "coordinator goes back to %lld, in place", (long long)(c->at_ms - WORLD_EPOCH));
    enum coord_status status = seqs_call_first(w, n);
    if (server_number(s, "era") > era)
        return true;
    if (status == COORD_OK)
        world_fail(w, "a rewind that a holder of blocks has proven goes unnoticed");
    (void)server_rewind_in_place(s, &s->old[SERVER_OLD - 1]);
    return false;
}

/* As fault_redis_clock_day. */
static bool fault_clock_day(struct world *w)
{
    const struct coord_params *p = &w->set.params;
    struct server *s = w->server;
    int64_t before = s->at->clock_off;
    bool called = false;
    if (w->wild || w->waiting || w->down_until > w->now)
        return false;
    s->at->clock_off = 24 * HOUR_MS + world_between(w, 0, p->horizon_ms);
    for (unsigned i = 0; i < 3; i++) {
        struct node *n = about_to_take(w);
        if (!n || llabs(n->wall_off) > p->max_skew_ms)
            continue;
        (void)seqs_call_first(w, n);
        called = true;
    }
    s->at->clock_off = before;
    if (!s->sqlite && server_number(s, "tmax") > server_ms(s) + 2 * p->max_skew_ms)
        world_fail(w, "the coordinator's clock was a day ahead, and is believed");
    return called;
}

/* A counter that n gives out from, a strict one where it has any. */
static bool some_counter(struct world *w, const struct node *n, struct blocks_name *of)
{
    const struct seqs_holder *h = seqs_of(w, n);
    const struct seqs_place *found = NULL;
    unsigned from = (unsigned)world_draw(w, SEQS_PLACES);
    for (unsigned k = 0; k < SEQS_PLACES; k++) {
        const struct seqs_place *p = &h->place[(from + k) % SEQS_PLACES];
        if (p->open && !p->open_due && !p->closing &&
            (!found || !(found->known && found->s.strict)))
            found = p;
    }
    if (found)
        *of = h->b.counter[found - h->place].of;
    return found != NULL;
}

/* Somebody asks n for a number, and the take that it makes for it comes to the server, whose reply
 * is lost. */
static bool lose_reply(struct world *w, struct node *n, struct blocks_name *of)
{
    static struct seqs_call lost;
    struct seqs_holder *h = seqs_of(w, n);
    if (!node_runs(w, n) || n->stopping || !h->has_b)
        return false;
    if (h->phase == KEEPER_WAIT)
        seqs_round_trip(w, n);
    if (w->failed || !node_runs(w, n) || !some_counter(w, n, of))
        return false;
    seqs_request(w, n, of);
    seqs_serve(w, n);
    if (!w->failed && h->phase == KEEPER_READY)
        seqs_keep_once(w, n);
    if (w->failed || !node_runs(w, n) || h->phase != KEEPER_SEND || h->action.kind != BLOCKS_TAKE)
        return false;
    seqs_copy_call(w, n, &lost);
    seqs_run_copy(w, &lost);
    seqs_time_out(w, n);
    return !w->failed;
}

/* Others are answered before that take is repeated, and who comes meanwhile must not share it. */
static bool fault_reply_lost(struct world *w)
{
    unsigned from = (unsigned)world_draw(w, w->set.nodes);
    struct node *n = NULL;
    struct blocks_name of;
    for (unsigned i = 0; i < w->set.nodes && !n && w->down_until <= w->now && !w->failed; i++)
        if (lose_reply(w, &w->node[(from + i) % w->set.nodes], &of))
            n = &w->node[(from + i) % w->set.nodes];
    if (!n)
        return false;
    for (unsigned i = 0; i < 3 * w->set.nodes && !w->failed; i++) {
        struct node *other = &w->node[i % w->set.nodes];
        if (other == n || !node_runs(w, other) || other->stopping)
            continue;
        seqs_request(w, other, &of);
        seqs_live(w, other);
    }
    if (w->failed || !node_runs(w, n) || n->stopping)
        return true;
    seqs_hang_up(w, n);
    for (unsigned i = 0; i < 3; i++)
        seqs_request(w, n, &of);
    seqs_serve(w, n);
    w->now += max64(seqs_of(w, n)->b.call_due - node_mono(w, n), 0); /* it is due again */
    for (unsigned i = 0; i < 3 && !w->failed; i++)
        seqs_live(w, n);
    return true;
}

/* ---- the page ---------------------------------------------------------------------------------
 */

static struct seqs_holder *dead_with_area(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    return !n->alive && h->has_file ? h : NULL;
}

static bool fault_area_lost(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (h)
        h->has_file = false;
    return h != NULL;
}

/* Another file. */
static bool fault_area_old(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (!h || !h->has_backup)
        return false;
    h->area = h->backup;
    h->inode = ++w->inodes;
    h->ctime = (int64_t)++w->inodes;
    return true;
}

static bool fault_area_cut(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (h)
        memset(h->area.bytes, 0, 8);
    return h != NULL;
}

static bool fault_area_flip(struct world *w)
{
    struct seqs_holder *h = dead_with_area(w);
    if (!h)
        return false;
    size_t slot = 1024 + world_draw(w, SEQS_SLOTS) * sizeof(struct blockpage_slot);
    size_t at = world_chance(w, 40)
                    ? slot + offsetof(struct blockpage_slot, commit) + world_draw(w, 16)
                    : slot + world_draw(w, sizeof(struct blockpage_slot));
    uint8_t *byte = &h->area.bytes[world_chance(w, 80) ? at : world_draw(w, SEQS_AREA)];
    *byte ^= (uint8_t)(1u << world_draw(w, 8));
    return true;
}

/* The blocks of this file, as they were; of this life, or as they were before some went back, which
 * takes a new generation. */
static bool has_state_of_before(const struct seqs_holder *h)
{
    return h->has_file && h->has_backup &&
           (h->backup.generation == h->generation || h->backup_returns != h->returns);
}

static void put_back(struct world *w, struct seqs_holder *h)
{
    h->area = h->backup;
    h->ctime = (int64_t)++w->inodes;
}

/* Its witness is a token that was renewed since. */
static bool is_older(const struct node *n, const struct seqs_holder *h)
{
    const struct seqs_witness *x = &h->backup.witness;
    struct page_record r;
    return h->backup_returns != h->returns || !x->known || !page_load(&n->page, x->slot, &r) ||
           r.state != PAGE_HELD || !coord_token_equal(r.cur, x->token);
}

static void find_before(struct world *w, struct node *n)
{
    if (n->alive)
        node_kill(w, n);
    put_back(w, seqs_of(w, n));
    world_note(w, "node %u finds its blocks as they were before", node_number(w, n));
    node_start(w, n);
    seqs_live(w, n);
    if (n->alive && world_chance(w, 30))
        node_upgrade(w, n);
}

static bool fault_area_back(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    if (!n->has_dir || !has_state_of_before(h) || !(h->tmpfs || is_older(n, h)))
        return false;
    find_before(w, n);
    return true;
}

/* Its call has come to a server that may give again what went back, and comes once more. */
static void return_late(struct world *w, struct seqs_call *c)
{
    const struct seq_return *r = &c->action.returns[0];
    unsigned i = 0;
    while (i + 1 < w->seqs->specs && strcmp(w->seqs->spec[i].name, r->name) != 0)
        i++;
    if (*r->sub == '\0' && r->hi - r->lo < SEQ_BLOCK_MAX) {
        struct order o = {.s = &w->seqs->spec[i], .period = r->period};
        o.number = r->hi - r->lo + 1;
        (void)reserve(w, &o);
    }
    seqs_run_copy(w, c);
    seqs_count(w, SEQS_RETURN_LATE);
}

static void remember(const struct node *n, struct seqs_holder *h)
{
    h->backup = h->area;
    h->backup_page = n->page;
    h->backup_returns = h->returns;
    h->has_backup = true;
}

/* Given back, and the next one starts, where all goes well. Or it is killed once the blocks went
 * back, its workerIds not yet, and the blocks are put back as they were. */
static bool fault_stop(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    if (!node_runs(w, n) || n->stopping)
        return false;
    if (world_chance(w, 50)) { /* with a block of which nothing was given out */
        seqs_serve(w, n);
        seqs_keep(w, n);
    }
    if (w->failed || !node_runs(w, n))
        return false;
    world_note(w, "node %u is told to end", node_number(w, n));
    remember(n, h);
    node_term(w, n, true);
    seqs_keep(w, n);
    bool went = !w->failed && h->has_b && h->returns != h->backup_returns &&
                h->action.kind == BLOCKS_RETURN;
    if (went && world_chance(w, 30) && w->down_until <= w->now) {
        static struct seqs_call again;
        seqs_copy_call(w, n, &again);
        return_late(w, &again);
    }
    if (!w->failed && h->has_file && h->returns != h->backup_returns && world_chance(w, 30)) {
        find_before(w, n);
        return true;
    }
    for (unsigned i = 0; i < 6 && world_chance(w, 85) && !w->failed; i++) {
        for (unsigned k = 0; k < 4 && !w->failed; k++)
            seqs_live(w, world_some_node(w)); /* who may be given what went back */
        (void)seqs_net_step(w);
        if (node_runs(w, n))
            seqs_keep(w, n);
        if (node_runs(w, n))
            schedule_keep(w, n);
        w->now += world_between(w, 0, 150); /* it may be repeated */
    }
    return true;
}

static bool is_token(const char *text, struct coord_token t)
{
    char hex[2 * sizeof t.b + 1];
    for (size_t i = 0; i < sizeof t.b; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", t.b[i]);
    return strcmp(text, hex) == 0;
}

/* The coordinator has another token of each workerId that this page holds: with the same one, be it
 * that it went back, too, what was given out meanwhile is not closed. */
static bool was_renewed_since(struct world *w, const struct page *p)
{
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_record r;
        char name[8], text[DATASET_TEXT_MAX + 1], token[40];
        if (!page_load(p, i, &r) || r.state != PAGE_HELD)
            continue;
        (void)snprintf(name, sizeof name, "%u", r.worker);
        if (server_field(w->server, name, text) && sscanf(text, "%*d %*d %39s", token) == 1 &&
            (is_token(token, r.cur) || (r.renewing && is_token(token, r.nxt))))
            return false;
    }
    return true;
}

static bool fault_state_back(struct world *w)
{
    struct node *n = world_some_node(w);
    struct seqs_holder *h = seqs_of(w, n);
    if (w->server->sqlite || h->tmpfs || w->set.replicas > 0 || !has_state_of_before(h) ||
        !fault_may_put_back(w, n, &h->backup_page) ||
        !(h->backup_returns != h->returns || was_renewed_since(w, &h->backup_page)))
        return false;
    if (n->alive)
        node_kill(w, n);
    put_back(w, h);
    h->back = true;
    h->back_losses = w->losses;
    fault_put_back(w, n, &h->backup_page);
    return true;
}

/* ---- which ------------------------------------------------------------------------------------
 */

static bool (*const faults[SEQS_FAULTS])(struct world *) = {
    [SEQS_SET] = fault_set,
    [SEQS_SET_BACK] = fault_set_back,
    [SEQS_DROP] = fault_drop,
    [SEQS_REUSE] = fault_reuse,
    [SEQS_ALTER] = fault_alter,
    [SEQS_SWEEP] = fault_sweep,
    [SEQS_RESERVE] = fault_reserve,
    [SEQS_REOPEN] = fault_reopen,
    [SEQS_CREATE_AGAIN] = fault_create_again,
    [SEQS_IN_PLACE] = fault_in_place,
    [SEQS_CLOCK_DAY] = fault_clock_day,
    [SEQS_AREA_LOST] = fault_area_lost,
    [SEQS_AREA_OLD] = fault_area_old,
    [SEQS_AREA_CUT] = fault_area_cut,
    [SEQS_AREA_FLIP] = fault_area_flip,
    [SEQS_AREA_BACK] = fault_area_back,
    [SEQS_STATE_BACK] = fault_state_back,
    [SEQS_STOP] = fault_stop,
    [SEQS_REPLY_LOST] = fault_reply_lost,
};

void seqs_fault(struct world *w)
{
    uint64_t sum = 0;
    for (unsigned f = 0; f < SEQS_FAULTS; f++)
        sum += faults[f] ? w->seqs->weight[f] : 0;
    uint64_t at = sum > 0 ? world_draw(w, sum) : 0;
    for (unsigned f = 0; f < SEQS_FAULTS && sum > 0; f++) {
        uint64_t weight = faults[f] ? w->seqs->weight[f] : 0;
        if (at < weight) {
            if (faults[f](w))
                seqs_count(w, (enum seqs_count)f);
            break;
        }
        at -= weight;
    }
    ledger_pages_changed();
}
