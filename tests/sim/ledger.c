#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- every ID ---------------------------------------------------------------------------------
 * By (time, workerId): how many sequences were used, and by whom. */

#define CELLS 65536u

struct cell {
    uint64_t key; /* ID without its sequence */
    uint32_t generation;
    uint32_t used; /* sequences below are taken */
    int16_t tenure;
};

static struct cell cells[CELLS];
static uint32_t generation;
static unsigned ncells;

void ledger_clear(void)
{
    ncells = 0;
    ledger_pages_changed();
    if (++generation == 0) {
        memset(cells, 0, sizeof cells);
        generation = 1;
    }
}

static struct cell *cell_of(uint64_t key)
{
    uint32_t i = (uint32_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 48);
    while (cells[i % CELLS].generation == generation && cells[i % CELLS].key != key)
        i++;
    struct cell *c = &cells[i % CELLS];
    if (c->generation == generation)
        return c;
    if (++ncells > CELLS / 2) {
        (void)fprintf(stderr, "ledger: expected at most %u milliseconds used, found more\n",
                      CELLS / 2);
        abort();
    }
    *c = (struct cell){.key = key, .generation = generation, .tenure = -1};
    return c;
}

/* ---- I1 ---------------------------------------------------------------------------------------
 */

static unsigned page_ranges(const struct page *p, struct range *out)
{
    unsigned n = 0;
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_record r;
        int64_t last;
        if (page_load(p, i, &r) && r.state == PAGE_HELD && mark_load(&p->slot[i].mark, &last))
            out[n++] = (struct range){r.worker, last + 1, r.hi_ms};
    }
    return n;
}

/* What dead nodes left in their pages, judged once. */
static struct {
    uint64_t known; /* as of these changes */
    unsigned n;
    struct range r[PAGE_SLOTS];
} left[WORLD_NODES];
static uint64_t changes = 1;

void ledger_pages_changed(void)
{
    changes++;
}

static unsigned left_ranges(const struct world *w, const struct node *n, struct range *out)
{
    unsigned i = node_number(w, n);
    if (left[i].known != changes) {
        bool own = node_page_is_own(n);
        left[i].n = own ? page_ranges(&n->page, left[i].r) : 0;
        left[i].known = changes;
    }
    memcpy(out, left[i].r, left[i].n * sizeof *out);
    return left[i].n;
}

unsigned ledger_ranges(const struct world *w, const struct node *n, struct range out[NODE_RANGES])
{
    unsigned k = 0;
    if (!n->alive)
        return left_ranges(w, n, out);
    for (unsigned i = 0; i < LEASE_SLOTS; i++) {
        const struct page_record *r = &n->lease.slot[i].rec;
        int64_t last;
        if (n->back && n->lease.slot[i].unproven)
            continue;
        if (r->state != PAGE_HELD || !mark_load(&n->page.slot[i].mark, &last))
            continue;
        /* A mark below the floor is of the slot's holder before, and believed by nobody. */
        out[k++] = (struct range){r->worker, last < r->lo_ms ? r->lo_ms : last + 1, r->hi_ms};
    }
    for (unsigned i = 0; !n->stopping && i < n->gen.nmembers; i++) {
        const struct snowflake_member *m = &n->gen.member[i];
        int64_t next = m->used < n->gen.sequences ? m->last : m->last + 1;
        out[k++] = (struct range){m->worker, next, m->hi};
    }
    return k;
}

static bool overlap(const struct range *a, const struct range *b)
{
    return a->worker == b->worker && a->lo <= b->hi && b->lo <= a->hi && a->lo <= a->hi &&
           b->lo <= b->hi;
}

static void broken(struct world *w, const struct node *n, const struct range *a, const char *whose,
                   unsigned other, const struct range *b)
{
    world_fail(w,
               "I1: workerId %u: node %u may issue in %lld..%lld, and %s node %u in %lld..%lld "
               "(less %lld)",
               a->worker, node_number(w, n), (long long)(a->lo - WORLD_EPOCH),
               (long long)(a->hi - WORLD_EPOCH), whose, other, (long long)(b->lo - WORLD_EPOCH),
               (long long)(b->hi - WORLD_EPOCH), (long long)WORLD_EPOCH);
}

/* The tenure that a live member of n issues under is no other's. */
static bool same_tenure(const struct node *n, unsigned node, const struct tenure *t,
                        uint16_t worker)
{
    if (n->alive && t->life == n->life && t->node == node)
        for (unsigned i = 0; i < n->gen.nmembers; i++)
            if (n->gen.member[i].handle == t->handle && n->gen.member[i].worker == worker)
                return true;
    return false;
}

static void check_used(struct world *w, const struct node *n, const struct range *r)
{
    unsigned me = node_number(w, n);
    for (unsigned i = 0; i < w->ntenure; i++) {
        const struct tenure *t = &w->tenure[i];
        struct range used = {t->worker, t->first, t->last};
        if (t->used && overlap(r, &used) && !same_tenure(n, me, t, r->worker))
            broken(w, n, r, "IDs were issued on", t->node, &used);
    }
}

/* What all nodes but n may issue in. */
struct others {
    unsigned n;
    struct {
        unsigned node;
        struct range r;
    } of[WORLD_NODES * NODE_RANGES];
};

static const struct others *others_of(const struct world *w, const struct node *n)
{
    static struct others o;
    struct range theirs[NODE_RANGES];
    o.n = 0;
    for (unsigned i = 0; i < w->set.nodes; i++) {
        unsigned k = &w->node[i] == n ? 0 : ledger_ranges(w, &w->node[i], theirs);
        for (unsigned j = 0; j < k; j++) {
            o.of[o.n].node = i;
            o.of[o.n++].r = theirs[j];
        }
    }
    return &o;
}

static void check_range(struct world *w, const struct node *n, const struct range *r,
                        const struct others *o)
{
    for (unsigned i = 0; i < o->n; i++)
        if (overlap(r, &o->of[i].r))
            broken(w, n, r, "so may", o->of[i].node, &o->of[i].r);
    check_used(w, n, r);
}

void ledger_check_range(struct world *w, const struct node *n, const struct range *r)
{
    check_range(w, n, r, others_of(w, n));
}

void ledger_check(struct world *w, struct node *n)
{
    struct range ours[NODE_RANGES];
    unsigned k = ledger_ranges(w, n, ours);
    const struct others *o = k > 0 ? others_of(w, n) : NULL;
    for (unsigned i = 0; i < k && !w->failed; i++) {
        const struct range *g = &n->granted[ours[i].worker % WORLD_WORKERS];
        if (n->alive && ours[i].hi > g->hi)
            world_fail(w, "I2: node %u may issue up to %lld with workerId %u, granted up to %lld",
                       node_number(w, n), (long long)(ours[i].hi - WORLD_EPOCH), ours[i].worker,
                       (long long)(g->hi - WORLD_EPOCH));
        check_range(w, n, &ours[i], o);
    }
}

int64_t ledger_latest(const struct world *w, const struct node *n)
{
    int64_t latest = 0;
    for (unsigned i = 0; i < w->ntenure; i++) {
        const struct tenure *t = &w->tenure[i];
        if (t->used && &w->node[t->node] == n && t->last > latest)
            latest = t->last;
    }
    return latest;
}

/* ---- I2 ---------------------------------------------------------------------------------------
 */

void ledger_open(struct world *w, struct node *n, const struct lease_mail *m)
{
    unsigned i = m->handle % LEASE_SLOTS;
    if (w->ntenure == WORLD_TENURES) {
        (void)fprintf(stderr, "ledger: expected at most %u grants, found more\n", WORLD_TENURES);
        abort();
    }
    n->tenure[i] = (int16_t)w->ntenure;
    n->tenure_of[i] = m->handle;
    w->tenure[w->ntenure++] = (struct tenure){
        .worker = m->worker, .node = (uint8_t)(n - w->node), .life = n->life, .handle = m->handle};
}

static struct tenure *tenure_of(struct world *w, const struct node *n, uint16_t worker)
{
    const struct snowflake_member *m = n->gen.cur;
    unsigned i = m ? m->handle % LEASE_SLOTS : 0;
    if (!m || m->worker != worker || n->tenure[i] < 0 || n->tenure_of[i] != m->handle)
        return NULL;
    return &w->tenure[n->tenure[i]];
}

/* now: of the ID, the first ms of its unit. */
static void use(struct world *w, struct tenure *t, uint64_t first, uint32_t count, int64_t now)
{
    struct layout_parts p;
    (void)layout_decompose(&w->set.lease.layout, first, &p);
    uint32_t sequence = p.sequence;
    struct cell *c = cell_of(layout_compose(&w->set.lease.layout, p.time, p.worker, 0));
    if (sequence < c->used)
        world_fail(w, "duplicate: ID %llu was issued by node %u before, now by node %u",
                   (unsigned long long)first, w->tenure[c->tenure].node, t->node);
    if (t->used && now < t->last)
        world_fail(w, "I2: node %u issues at %lld after %lld with workerId %u", t->node,
                   (long long)(now - WORLD_EPOCH), (long long)(t->last - WORLD_EPOCH), t->worker);
    c->used = sequence + count;
    c->tenure = (int16_t)(t - w->tenure);
    if (!t->used)
        t->first = now;
    t->used = true;
    t->last = now;
}

/* IDs of one life rise, unless its clock stepped back by wait_below or more. */
static void check_order(struct world *w, const struct node *n, uint64_t first, int64_t time)
{
    struct layout_parts last;
    (void)layout_decompose(&w->set.lease.layout, n->last_id, &last);
    int64_t back = last.time - time;
    if (first <= n->last_id && (w->set.hold || back == 0 || back < w->set.wait_below_ms))
        world_fail(w, "order: node %u issued ID %llu after %llu", node_number(w, n),
                   (unsigned long long)first, (unsigned long long)n->last_id);
}

void ledger_issued(struct world *w, struct node *n, uint64_t first, uint32_t count, int64_t now)
{
    struct layout_parts a, b;
    unsigned me = node_number(w, n);
    w->stats->ids += count;
    world_digest(w, first + count);
    const struct layout *l = &w->set.lease.layout;
    uint64_t latest = first + (count - 1) * (uint64_t)layout_stride(l);
    bool sound = layout_decompose(l, first, &a) && layout_decompose(l, latest, &b);
    int64_t clock = layout_unit(l, now - WORLD_EPOCH);
    if (!sound || a.worker != b.worker || a.time != b.time ||
        (a.time != clock && !w->set.lease.ahead)) {
        world_fail(w, "I2: node %u made ID %llu and %u more at %lld", me, (unsigned long long)first,
                   count - 1, (long long)(now - WORLD_EPOCH));
        return;
    }
    struct tenure *t = a.worker < WORLD_WORKERS ? tenure_of(w, n, (uint16_t)a.worker) : NULL;
    if (!t) {
        world_fail(w, "I2: node %u issued with workerId %u, which it was not granted", me,
                   a.worker);
        return;
    }
    w->stats->ahead += a.time > clock ? count : 0;
    now = WORLD_EPOCH + a.time;
    const struct range *g = &n->granted[a.worker], *h = &n->before[a.worker];
    if ((now < g->lo || now > g->hi) && (now < h->lo || now > h->hi))
        world_fail(w, "I2: node %u issued at %lld with workerId %u, granted %lld..%lld", me,
                   (long long)(now - WORLD_EPOCH), a.worker, (long long)(g->lo - WORLD_EPOCH),
                   (long long)(g->hi - WORLD_EPOCH));
    check_order(w, n, first, a.time);
    n->last_id = latest;
    use(w, t, first, count, now);
}
