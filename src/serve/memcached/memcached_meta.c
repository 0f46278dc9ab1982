/*
 * The meta commands. An ID is a value that is new with each look at it: nobody has fetched it
 * before, it has no flags and never expires. Flags that would change it (T, N, R, C, I …) are taken
 * and do nothing.
 */
#include "wire/mc_meta.h"

#include "base/dec.h"
#include "serve/memcached/memcached.h"

#include <stdlib.h>

/* status and two flags: a key and an opaque, as long as they may be */
#define STORED_ROOM (2 + 2 + MC_KEY_MAX + 2 + 1 + MC_OPAQUE_MAX + 3 + 2)

static struct names_entry *id_of(const struct mcd_call *c)
{
    char scratch[MC_KEY_MAX];
    return mcd_id_of(c, mc_meta_key(c->req, scratch));
}

static struct net_step put_id(struct mcd_call *c, const struct names_entry *name, int64_t id)
{
    char mem[GENERATOR_TEXT_MAX];
    struct span text = generator_text(name->generator, id, c->turn->wall_ms, mem);
    struct mc_item item = {text, mc_cas(id)};
    mc_put_meta(c->out, c->req, c->req->meta.value ? SPAN("VA") : SPAN("HD"), &item);
    return mcd_done(c, SERVE_OK);
}

static struct net_step no_value(struct mcd_call *c)
{
    if (!c->req->meta.quiet)
        mc_put_meta(c->out, c->req, SPAN("EN"), NULL);
    return mcd_done(c, SERVE_MISS);
}

/* q is for misses: an ID is answered all the same. */
struct net_step mcd_meta_get(struct mcd_call *c)
{
    int64_t id;
    struct net_step step;
    struct names_entry *name = id_of(c);
    if (!name)
        return no_value(c);
    if (!c->req->meta.value) {
        enum issue_status there = mcd_look(c, name, &step);
        if (there == ISSUE_PARK)
            return step;
        if (there != ISSUE_OK)
            return there == ISSUE_MISS ? no_value(c) : mcd_fail(c);
        char mem[GENERATOR_TEXT_MAX]; /* one that is as long as those of now */
        const struct generator *g = name->generator;
        int64_t example = g->kind->example(g, c->turn->wall_ms);
        struct mc_item item = {generator_text(g, example, c->turn->wall_ms, mem), 0};
        mc_put_meta(c->out, c->req, SPAN("HD"), &item);
        return mcd_done(c, SERVE_OK);
    }
    enum issue_status r = issuer_next(&c->m->serve->issuer, name, c->turn, &id, &step);
    if (r == ISSUE_PARK)
        return step;
    if (r == ISSUE_MISS)
        return no_value(c);
    return r == ISSUE_OK ? put_id(c, name, id) : mcd_fail(c);
}

static struct net_step missing(struct mcd_call *c, struct span status)
{
    mc_put_meta(c->out, c->req, status, NULL);
    return mcd_done(c, SERVE_MISS);
}

/* q is for success. */
struct net_step mcd_meta_arithmetic(struct mcd_call *c)
{
    int64_t last;
    uint64_t n = c->req->delta;
    struct net_step step;
    struct names_entry *name = id_of(c);
    struct span none = c->req->meta.create ? SPAN("NS") : SPAN("NF");
    if (!name)
        return missing(c, none);
    if (c->req->meta.mode == 'D' || c->req->meta.mode == '-')
        return mcd_answer(c, MCD_ONLY_UP, SERVE_REFUSED);
    if (generator_is_text(name->generator))
        return mcd_answer(c, MCD_NO_NUMBER, SERVE_REFUSED);
    if (!mcd_delta_fits(c->m, name, n))
        return mcd_bad_delta(c, name);
    if (c->req->meta.quiet)
        n = issuer_untold(name, (uint32_t)n);
    enum issue_status r =
        issuer_row(&c->m->serve->issuer, name, c->turn, (uint32_t)n, &last, &step);
    if (r == ISSUE_PARK)
        return step;
    if (r == ISSUE_MISS)
        return missing(c, none);
    if (r != ISSUE_OK)
        return mcd_fail(c);
    return c->req->meta.quiet ? mcd_done(c, SERVE_OK) : put_id(c, name, last);
}

struct net_step mcd_meta_noop(struct mcd_call *c)
{
    return mcd_answer(c, SPAN("MN\r\n"), SERVE_OK);
}

/* There is nothing stored to be looked at. */
struct net_step mcd_meta_debug(struct mcd_call *c)
{
    return mcd_answer(c, SPAN("EN\r\n"), SERVE_MISS);
}

struct net_step mcd_meta_delete(struct mcd_call *c)
{
    mc_put_meta(c->out, c->req, SPAN("NF"), NULL);
    return mcd_done(c, SERVE_REFUSED);
}

/* "NF" where a cas unique is to be compared with that of a key that isn't there. */
static struct span stored_status(const struct mcd_call *c)
{
    char mode = c->req->meta.mode;
    bool compared = c->req->meta.compare && (mode == 0 || mode == 'S' || mode == 'R');
    return compared && !id_of(c) ? SPAN("NF") : SPAN("NS");
}

/* The answer repeats flags of a line that is gone when the data block has come to its end: so it is
 * kept for as long as the block takes. */
struct net_step mcd_meta_set(struct mcd_call *c)
{
    char text[STORED_ROOM];
    const struct mc_item none = {{"", 0}, 0};
    struct mcd_session *s = c->s;
    struct buf b;
    buf_init(&b, text, sizeof text);
    mc_put_meta(&b, c->req, stored_status(c), &none);
    struct net_step step = mcd_begin_swallow(c, buf_span(&b), SERVE_REFUSED);
    if (step.verdict == NET_DONE)
        return step;
    s->kept = malloc(b.n);
    if (!s->kept)
        return (struct net_step){.verdict = NET_CLOSE, .used = step.used};
    memcpy(s->kept, b.p, b.n);
    s->answer.p = s->kept;
    return step;
}
