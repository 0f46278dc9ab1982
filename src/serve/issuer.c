#include "serve/issuer.h"

#define EXPECT_MAX 1000 /* requests, or keys, behind one that waits, that are asked for with it */
#define HAD_SOME   (-2) /* ticket: what the request asks for now it was counted for before */

enum err_code issuer_add(struct issuer *i, struct generator *g, const char *prefix,
                         char *const *list, size_t count, struct err *e)
{
    struct generator **at = &i->generators;
    enum err_code r = names_add(&i->names, g, prefix, list, count, e);
    if (r)
        return r;
    while (*at && *at != g)
        at = &(*at)->after;
    *at = g;
    return ERR_OK;
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

static struct net_step wait_for(enum net_verdict verdict, int64_t until_ms)
{
    return (struct net_step){.verdict = verdict, .until_ms = until_ms};
}

/* Its request was answered, one key of it, or a part of what it wants; others may have the same.
 * One that waits for more of that name is none more that has to wait. */
static void end_ticket(struct net_turn *turn, const struct names_entry *name)
{
    if (turn->keys > 0) {
        turn->keys--;
    } else if (turn->shared == 0 && turn->ticket != 0) {
        turn->ticket = HAD_SOME;
        turn->whose = name;
    }
}

/* What of it is of another name than what follows has no part in that. */
static void begin_ticket(struct net_turn *turn, const struct names_entry *name)
{
    if ((turn->keys > 0 || turn->ticket == HAD_SOME) && turn->whose != name)
        turn->ticket = turn->keys = 0;
}

/* What only queues does so without a limit; anything else waits up to max_wait. */
static enum issue_status hold_up(struct issuer *i, const struct names_entry *name, unsigned cause,
                                 int64_t until, struct net_turn *turn, struct net_step *step)
{
    const struct generator *g = name->generator;
    const struct generator_cause *c = &g->kind->causes[cause];
    if (c->status == ISSUE_PARK) {
        *step = wait_for(NET_QUEUE, until);
        return ISSUE_PARK;
    }
    if (!c->waits || turn->waited_us >= i->max_wait_us) {
        i->refused = (struct refusal){g, cause};
        end_ticket(turn, name);
        return c->status;
    }
    *step = wait_for(NET_WAIT, until);
    return ISSUE_PARK;
}

/* A clock behind the latest number is time lost: as much of it as this request is going to wait. */
static void count_wait(struct issuer *i, const struct generator_cause *c, int64_t until,
                       int64_t now, const struct net_turn *turn)
{
    int64_t us, left = i->max_wait_us - turn->waited_us;
    if (!c->of_clock)
        return;
    us = (until - now) * 1000;
    if (c->status != ISSUE_PARK && us > left)
        us = left;
    if (us > 0)
        i->waited_us += (uint64_t)us;
}

/* ---- issuing ----------------------------------------------------------------------------------
 */

/* next or some of a kind: of functions, not of a struct */
typedef unsigned issue_fn(struct generator *g, struct generator_ask *ask,
                          struct generator_run *out);

/* Requests that are pipelined have all arrived: they need not wait for one answer each. */
static void expect(struct generator *g, const struct generator_ask *ask, struct net_turn *turn)
{
    uint32_t n = net_turn_like(turn, EXPECT_MAX);
    if (n > 0 && g->kind->expect(g, ask, n))
        turn->shared = n;
}

/* So have the keys of one request. */
void issuer_ahead(struct names_entry *name, struct net_turn *turn, uint32_t keys, uint32_t each)
{
    struct generator *g = name->generator;
    struct generator_ask ask = {.n = each, .ticket = &turn->ticket};
    uint32_t n = keys < EXPECT_MAX ? keys : EXPECT_MAX;
    if (n == 0 || !g->kind->expect(g, &ask, (turn->shared + 1) * n))
        return;
    turn->keys = turn->keys_each = n;
    turn->whose = name;
}

static void arrive(struct generator *g, const struct generator_ask *ask, struct net_turn *turn)
{
    turn->arrived = true;
    turn->keys = turn->keys_each = 0;
    expect(g, ask, turn);
}

static enum issue_status issue(struct issuer *i, struct names_entry *name, issue_fn *fn,
                               struct net_turn *turn, uint32_t n, struct generator_run *out,
                               struct net_step *step)
{
    struct generator *g = name->generator;
    struct generator_ask ask = {
        .now_ms = turn->wall_ms, .n = n, .ticket = &turn->ticket, .until_ms = INT64_MAX};
    begin_ticket(turn, name);
    int64_t before = turn->ticket;
    turn->arrived = false;
    if (g->kind->by_mono)
        ask.mono_ms = clock_mono_ms(turn->clock);
    unsigned cause = fn(g, &ask, out);
    if (cause) {
        int64_t now = clock_wall_ms(turn->clock);
        if (now != turn->wall_ms) {
            ask.now_ms = turn->wall_ms = now;
            cause = fn(g, &ask, out);
        }
        count_wait(i, &g->kind->causes[cause], ask.until_ms, now, turn);
        if (turn->ticket != before && turn->ticket > 0 && g->kind->expect)
            arrive(g, &ask, turn);
    }
    if (cause)
        return hold_up(i, name, cause, ask.until_ms, turn, step);
    end_ticket(turn, name);
    turn->quota -= out->n < turn->quota ? out->n : turn->quota;
    name->issued += out->n;
    return ISSUE_OK;
}

static bool used_up(const struct net_turn *turn, struct net_step *step)
{
    if (turn->quota > 0)
        return false;
    *step = wait_for(NET_YIELD, 0);
    return true;
}

enum issue_status issuer_row(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                             uint32_t n, int64_t *last, struct net_step *step)
{
    struct generator_run out;
    if (used_up(turn, step))
        return ISSUE_PARK;
    enum issue_status r = issue(i, name, name->generator->kind->next, turn, n, &out, step);
    if (r == ISSUE_OK)
        *last = generator_run_at(&out, n - 1);
    return r;
}

bool issuer_more_text(struct names_entry *name, struct net_turn *turn, int64_t *number)
{
    struct generator *g = name->generator;
    if (!g->kind->more || turn->quota == 0)
        return false;
    if (turn->mono_ms == 0)
        turn->mono_ms = clock_mono_ms(turn->clock);
    if (!g->kind->more(g, turn->wall_ms, turn->mono_ms, number))
        return false;
    turn->quota--;
    name->issued++;
    return true;
}

enum issue_status issuer_next(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                              int64_t *number, struct net_step *step)
{
    if (issuer_more(name, turn, number))
        return ISSUE_OK;
    return issuer_row(i, name, turn, 1, number, step);
}

enum issue_status issuer_some(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                              uint32_t max, struct generator_run *out, struct net_step *step)
{
    if (used_up(turn, step))
        return ISSUE_PARK;
    uint32_t n = max < turn->quota ? max : turn->quota;
    return issue(i, name, name->generator->kind->some, turn, n, out, step);
}

enum issue_status issuer_look(struct issuer *i, struct names_entry *name, struct net_turn *turn,
                              struct net_step *step)
{
    struct generator *g = name->generator;
    struct generator_ask ask = {
        .now_ms = turn->wall_ms, .n = 1, .ticket = &turn->ticket, .until_ms = INT64_MAX};
    if (!g->kind->look)
        return ISSUE_OK;
    begin_ticket(turn, name);
    ask.mono_ms = clock_mono_ms(turn->clock);
    unsigned cause = g->kind->look(g, &ask);
    if (cause)
        return hold_up(i, name, cause, ask.until_ms, turn, step);
    end_ticket(turn, name);
    return ISSUE_OK;
}

struct refusal issuer_ready(const struct issuer *i, int64_t wall_ms)
{
    for (struct generator *g = i->generators; g; g = g->after) {
        unsigned cause = g->kind->peek(g, wall_ms);
        if (cause && g->kind->causes[cause].check)
            return (struct refusal){g, cause};
    }
    return (struct refusal){NULL, 0};
}
