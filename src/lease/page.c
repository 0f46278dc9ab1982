#include "lease/page.h"

#include "base/fnv.h"
#include "lease/pair.h"

#include <stddef.h>
#include <string.h>

#define FLAG_RENEWING 1
#define FLAG_AHEAD    2

static const char magic[8] = "SIDFPAGE";

_Static_assert(sizeof(struct page_head) <= 256, "the head keeps to its place");
PAIR_COPY(struct page_copy);
_Static_assert(sizeof(struct page) == PAGE_SIZE_BYTES, "one page");

static uint32_t head_check(const struct page_head *h)
{
    return fnv32(h, offsetof(struct page_head, check));
}

void page_format(struct page *p, const struct page_home *home, uint32_t pid)
{
    memset(p, 0, sizeof *p);
    memcpy(p->head.magic, magic, sizeof magic);
    p->head.version = PAGE_VERSION;
    p->head.slots = PAGE_SLOTS;
    p->head.home = *home;
    p->head.pid = pid;
    p->head.check = head_check(&p->head);
}

bool page_generation_is(const struct page_generation *g, uint64_t there)
{
    const volatile uint64_t *word = g->word;
    return there ? word[0] == there || word[1] == there : !word[0] && !word[1];
}

void page_generation_expect(struct page_generation *g, uint64_t there, uint64_t next)
{
    volatile uint64_t *word = g->word;
    __atomic_store_n(&word[word[0] == there], next, __ATOMIC_RELEASE);
}

bool page_is_of(const struct page *p, uint64_t generation)
{
    return page_generation_is(&p->head.generation, generation);
}

void page_expect(struct page *p, uint64_t there, uint64_t next)
{
    page_generation_expect(&p->head.generation, there, next);
}

int64_t page_floor(const struct page *p)
{
    int64_t ms;
    for (unsigned i = 0; i < PAGE_SLOTS; i++)
        if (mark_is_damaged(&p->slot[i].mark))
            return PAGE_FLOOR_UNKNOWN;
    if (mark_is_damaged(&p->head.floor))
        return PAGE_FLOOR_UNKNOWN;
    return mark_load(&p->head.floor, &ms) ? ms : 0;
}

/* To that of the page replaced, and to each of its marks; NULL: it is unreadable. */
static void raise_floor(struct page *p, const struct page *replaced)
{
    int64_t floor = page_floor(p), ms;
    int64_t theirs = replaced ? page_floor(replaced) : PAGE_FLOOR_UNKNOWN;
    if (theirs > floor)
        floor = theirs;
    for (unsigned i = 0; replaced && i < PAGE_SLOTS; i++)
        if (mark_load(&replaced->slot[i].mark, &ms) && ms > floor)
            floor = ms;
    if (floor > 0)
        mark_store(&p->head.floor, floor);
}

/* Good for the identity that they were stored for alone. */
static void keep_params(struct page *p, const struct page_head *from)
{
    p->head.params = from->params;
    p->head.ahead_ms = from->ahead_ms;
    p->head.least_ms = from->least_ms;
}

void page_clear(struct page *p)
{
    struct page_head old = p->head;
    raise_floor(p, p);
    uint64_t floor = p->head.floor;
    page_format(p, &old.home, old.pid);
    p->head.generation = old.generation;
    keep_params(p, &old);
    p->head.floor = floor;
}

void page_clear_mark(struct page *p, unsigned slot, int64_t last)
{
    int64_t ms;
    if (mark_load(&p->slot[slot].mark, &ms) && ms > page_floor(p))
        mark_store(&p->head.floor, ms);
    mark_store(&p->slot[slot].mark, last);
}

void page_set_identity(struct page *p, const char *identity)
{
    struct page_head h = p->head;
    memset(h.identity, 0, sizeof h.identity);
    memcpy(h.identity, identity, strnlen(identity, sizeof h.identity - 1));
    h.check = head_check(&h);
    p->head = h;
}

/* A pool at another coordinator is not lost, and not to be made here. */
void page_replace(struct page *p, const struct page *replaced)
{
    raise_floor(p, replaced);
    if (!replaced || replaced->head.home.coordinator != p->head.home.coordinator)
        return;
    page_set_identity(p, replaced->head.identity);
    keep_params(p, &replaced->head);
}

/* With the identity: a version that knows of no parameters leaves them where they are when the pool
 * is another one. */
static uint32_t params_check(const struct page_head *h)
{
    const struct page_params *p = &h->params;
    uint32_t check = fnv32(h->identity, sizeof h->identity);
    check = fnv32_on(check, p, offsetof(struct page_params, check));
    check = p->settle_ms ? fnv32_on(check, &p->settle_ms, sizeof p->settle_ms) : check;
    check = h->ahead_ms ? fnv32_on(check, &h->ahead_ms, sizeof h->ahead_ms) : check;
    return h->least_ms ? fnv32_on(check, &h->least_ms, sizeof h->least_ms) : check;
}

/* Data of the time of one that is no shorter needs nothing that the pool's own does not. */
static bool least_fits(const struct coord_params *p, int64_t settle_ms, int64_t ms)
{
    return coord_params_settle(p, ms) && ms < (settle_ms ? settle_ms : p->horizon_ms);
}

void page_set_params(struct page *p, const struct coord_params *params, int64_t settle_ms,
                     int64_t least_ms, int64_t ahead_ms)
{
    struct page_head h = p->head;
    h.params = (struct page_params){
        .horizon_ms = params->horizon_ms,
        .first_horizon_ms = params->first_horizon_ms,
        .mature_after_ms = params->mature_after_ms,
        .max_skew_ms = params->max_skew_ms,
        .grace_ms = params->grace_ms,
        .replicas = params->replicas,
        .worker_from = params->worker_from,
        .worker_to = params->worker_to,
        .settle_ms = coord_params_settle(params, settle_ms) ? (uint32_t)settle_ms : 0};
    h.ahead_ms = (uint32_t)(ahead_ms < COORD_AHEAD_MAX_MS ? ahead_ms : COORD_AHEAD_MAX_MS);
    h.least_ms = least_fits(params, h.params.settle_ms, least_ms) ? (uint32_t)least_ms : 0;
    h.params.check = params_check(&h);
    p->head.params = h.params;
    p->head.ahead_ms = h.ahead_ms;
    p->head.least_ms = h.least_ms;
}

bool page_params(const struct page *p, struct coord_params *out, int64_t *settle_ms,
                 int64_t *least_ms, int64_t *ahead_ms)
{
    const struct page_params *from = &p->head.params;
    struct coord_params params = {.horizon_ms = from->horizon_ms,
                                  .first_horizon_ms = from->first_horizon_ms,
                                  .mature_after_ms = from->mature_after_ms,
                                  .max_skew_ms = from->max_skew_ms,
                                  .grace_ms = from->grace_ms,
                                  .replicas = from->replicas,
                                  .worker_from = from->worker_from,
                                  .worker_to = from->worker_to};
    struct err e;
    if (from->check != params_check(&p->head) || coord_params_check(&params, &e) ||
        !coord_params_settle(&params, from->settle_ms) ||
        !least_fits(&params, from->settle_ms, p->head.least_ms))
        return false;
    *out = params;
    *settle_ms = from->settle_ms;
    *least_ms = p->head.least_ms;
    *ahead_ms = p->head.ahead_ms;
    return true;
}

/* The copy that counts, if it can be. */
static const struct page_copy *current(const struct page_slot *s)
{
    const struct page_copy *c = pair_current(&s->commit, s->copy, sizeof *c);
    return c && c->state <= PAGE_LEAVING && c->worker < COORD_WORKERS ? c : NULL;
}

void page_store(struct page *p, unsigned slot, const struct page_record *r)
{
    struct page_slot *s = &p->slot[slot];
    struct page_copy *c = pair_begin(&s->commit, s->copy, sizeof *c);
    c->n = r->n;
    c->lo_ms = r->lo_ms;
    c->hi_ms = r->hi_ms;
    memcpy(c->cur, r->cur.b, sizeof c->cur);
    memcpy(c->nxt, r->nxt.b, sizeof c->nxt);
    c->worker = r->worker;
    c->state = (uint8_t)r->state;
    c->flags = (uint8_t)((r->renewing ? FLAG_RENEWING : 0) | (r->ahead ? FLAG_AHEAD : 0));
    pair_commit(&s->commit, c, sizeof *c);
}

bool page_load(const struct page *p, unsigned slot, struct page_record *out)
{
    const struct page_copy *c = current(&p->slot[slot]);
    memset(out, 0, sizeof *out);
    if (!c)
        return p->slot[slot].commit == 0;
    out->state = (enum page_state)c->state;
    out->worker = c->worker;
    out->renewing = c->flags & FLAG_RENEWING;
    out->ahead = c->flags & FLAG_AHEAD;
    memcpy(out->cur.b, c->cur, sizeof c->cur);
    memcpy(out->nxt.b, c->nxt, sizeof c->nxt);
    out->n = c->n;
    out->lo_ms = c->lo_ms;
    out->hi_ms = c->hi_ms;
    return true;
}

bool page_holds(const struct page *p)
{
    struct page_record r;
    for (unsigned i = 0; i < PAGE_SLOTS; i++)
        if (page_load(p, i, &r) && r.state == PAGE_HELD)
            return true;
    return false;
}

static enum page_verdict judge_slots(const struct page *p, struct err *why)
{
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        struct page_record r;
        int64_t last;
        if (!page_load(p, i, &r)) {
            (void)err_set(why, ERR_CORRUPT, "the record of slot %u is damaged", i);
            return PAGE_BROKEN;
        }
        if (r.state == PAGE_FREE)
            continue;
        if (!mark_load(&p->slot[i].mark, &last) || last + 1 < r.lo_ms) {
            (void)err_set(why, ERR_CORRUPT, "slot %u (workerId %u) has a damaged last time", i,
                          r.worker);
            return PAGE_BROKEN;
        }
    }
    return PAGE_OWN;
}

enum page_verdict page_judge(const struct page *p, const struct page_home *home, struct err *why)
{
    const struct page_head *h = &p->head;
    if (memcmp(h->magic, magic, sizeof magic) != 0) {
        (void)err_set(why, ERR_CORRUPT, "this is no state page: expected it to begin \"SIDFPAGE\"");
        return PAGE_BROKEN;
    }
    if (h->version != PAGE_VERSION || h->slots != PAGE_SLOTS) {
        (void)err_set(why, ERR_UNSUPPORTED, "expected version %u with %u slots, found %u with %u",
                      PAGE_VERSION, PAGE_SLOTS, h->version, h->slots);
        return PAGE_BROKEN;
    }
    if (h->check != head_check(h) || h->identity[sizeof h->identity - 1] != '\0') {
        (void)err_set(why, ERR_CORRUPT, "the head's check value does not match its contents");
        return PAGE_BROKEN;
    }
    enum page_verdict v = judge_slots(p, why);
    if (v != PAGE_OWN)
        return v;
    const char *other = NULL;
    if (memcmp(h->home.boot, home->boot, sizeof home->boot) != 0)
        other = "it is of another boot of this machine, or of another machine";
    else if (h->home.device != home->device || h->home.inode != home->inode ||
             h->home.born_ns != home->born_ns)
        other = "it is a copy: another file was written by the process that held it";
    else if (h->home.coordinator != home->coordinator)
        other = "it belongs to another coordinator or pool";
    if (!other)
        return PAGE_OWN;
    (void)err_set(why, ERR_INVALID, "%s", other);
    return PAGE_FOREIGN;
}
