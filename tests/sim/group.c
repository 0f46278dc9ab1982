#include "sim/group.h"

#include <stdio.h>

static unsigned new_life(struct group *g, unsigned parent, uint64_t at)
{
    g->lives++;
    g->life[g->lives].parent = parent;
    g->life[g->lives].at = at;
    return g->lives;
}

static bool room(const struct group *g)
{
    return g->lives + 1 < GROUP_LIVES;
}

static void new_run_id(struct group *g, struct member *m)
{
    (void)snprintf(m->data.run_id, sizeof m->data.run_id, "%040llx", (unsigned long long)++g->ids);
}

static void new_replid(struct group *g, struct member *m)
{
    (void)snprintf(m->data.replid, sizeof m->data.replid, "%040llx",
                   (unsigned long long)++g->ids + 0xabcdef);
}

void group_reset(struct group *g, unsigned n)
{
    g->n = n;
    g->reigns = 1;
    g->lives = 0;
    unsigned life = new_life(g, 0, 0);
    for (unsigned i = 0; i < n; i++) {
        struct member *m = &g->member[i];
        int64_t off = m->clock_off;
        dataset_reset(&m->data);
        memset((char *)m + offsetof(struct member, clock_off), 0,
               sizeof *m - offsetof(struct member, clock_off));
        m->clock_off = off;
        m->master = i == 0;
        m->follows = i == 0 ? GROUP_NOBODY : 0;
        m->reign = 1;
        m->life = life;
        new_run_id(g, m);
        new_replid(g, m);
        memcpy(m->data.replid, g->member[0].data.replid, sizeof m->data.replid);
    }
}

bool group_linked(const struct group *g, const struct member *r, const struct member *m)
{
    return m->master && !r->master && !r->cut && r->follows == (uint8_t)(m - g->member) &&
           r->reign == m->reign;
}

void group_catch_up(struct group *g, struct member *r)
{
    const struct member *m = &g->member[r->follows];
    if (r->life == m->life && r->written == m->written)
        return;
    dataset_copy(&r->data, &m->data);
    memcpy(r->data.replid, m->data.replid, sizeof r->data.replid);
    r->life = m->life;
    r->written = m->written;
}

bool group_has(const struct group *g, const struct member *r, const struct member *m, uint64_t n)
{
    return group_linked(g, r, m) && r->life == m->life && r->written >= n;
}

bool group_may_follow(const struct group *g, const struct member *i, const struct member *m)
{
    if (i == m || !m->master || m->reign < i->reign)
        return false;
    return i->master ? m->reign > i->reign : i->follows != (uint8_t)(m - g->member);
}

void group_follow(struct group *g, struct member *i, const struct member *m)
{
    if (i->master)
        i->runs++;
    i->master = i->cut = false;
    i->follows = (uint8_t)(m - g->member);
    i->reign = m->reign;
    group_catch_up(g, i);
}

bool group_promote(struct group *g, struct member *r)
{
    if (!room(g))
        return false;
    r->life = new_life(g, r->life, r->written);
    r->master = true;
    r->cut = false;
    r->follows = GROUP_NOBODY;
    r->reign = ++g->reigns;
    r->counted = 0;
    r->promoted++;
    r->runs++;
    new_replid(g, r);
    return true;
}

void group_depose(struct group *g, struct member *m)
{
    m->master = false;
    m->follows = GROUP_NOBODY;
    group_restart(g, m, true);
}

void group_restart(struct group *g, struct member *m, bool keep_replid)
{
    m->runs++;
    new_run_id(g, m);
    if (!keep_replid)
        new_replid(g, m);
}

bool group_rewound(struct group *g, struct member *m, unsigned life, uint64_t written)
{
    if (!room(g))
        return false;
    m->life = new_life(g, life, written);
    m->written = written;
    return true;
}

bool group_descends(const struct group *g, const struct member *m, unsigned life, uint64_t written)
{
    unsigned at = m->life;
    uint64_t n = m->written;
    for (; at != life && at != 0; at = g->life[at].parent)
        n = g->life[at].at < n ? g->life[at].at : n;
    return at == life && written <= n;
}
