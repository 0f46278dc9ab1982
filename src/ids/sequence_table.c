#include "ids/sequence_table.h"

#include "base/fnv.h"
#include "ids/sequence_places.h"

#include <stdlib.h>
#include <string.h>

#define UNKNOWN_MAX 64u   /* places of names that nobody is known to have made, at most … */
#define TOLD_MS     1000  /* longest that a want waits for what comes of the one before */
#define UNKNOWN_PER 4u    /* … and one in so many */
#define EVICT_LOOKS 4096u /* at so many it is looked for one to close */
#define LOOK_MS     1000  /* between two looks at what has not changed so far */

void sequence_table_init(struct sequence_table *t, const struct sequence_options *o)
{
    memset(t, 0, sizeof *t);
    t->base.kind = &sequence_table_kind;
    t->options = *o;
    link_init(&t->unknown);
    t->fresh.base.kind = &sequence_kind;
    t->fresh.table = t;
    t->fresh.entry.generator = &t->fresh.base;
}

void sequence_table_clear(struct sequence_table *t)
{
    free(t->place);
    free(t->bucket);
    free(t->queue);
    free(t->family);
    t->place = NULL;
    t->bucket = t->queue = NULL;
    t->family = NULL;
}

/* What is not used is not touched, and so takes no memory. */
static bool prepare(struct sequence_table *t)
{
    if (t->place)
        return true;
    for (t->buckets = 16; t->buckets < t->options.counters;)
        t->buckets *= 2;
    t->place = calloc(t->options.counters, sizeof *t->place);
    t->bucket = calloc(t->buckets, sizeof *t->bucket);
    t->queue = calloc(t->options.counters, sizeof *t->queue);
    t->family = calloc(SEQUENCE_FAMILIES + 1, sizeof *t->family);
    if (t->place && t->bucket && t->queue && t->family)
        return true;
    sequence_table_clear(t);
    return false;
}

/* ---- by name --------------------------------------------------------------------------------- */

/* Whoever makes names collide has a walk of `counters` steps from it at most. */
static uint32_t hash_of(const struct sequence_name *of)
{
    return fnv32_str(of->name) * 31 ^ fnv32_str(of->sub) * 17 ^ fnv32_str(of->period);
}

static bool same(const struct sequence_name *a, const struct sequence_name *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->sub, b->sub) == 0 &&
           strcmp(a->period, b->period) == 0;
}

static struct sequence_generator *find(const struct sequence_table *t, uint32_t hash,
                                       const struct sequence_name *of)
{
    uint32_t at = t->place ? t->bucket[hash & (t->buckets - 1)] : 0;
    for (; at; at = t->place[at - 1].chain) {
        struct sequence_generator *s = &t->place[at - 1];
        if (s->hash == hash && same(&s->of, of))
            return s;
    }
    return NULL;
}

struct sequence_generator *sequence_places_find(const struct sequence_table *t,
                                                const struct sequence_name *of)
{
    return find(t, hash_of(of), of);
}

static void enter(struct sequence_generator *s)
{
    struct sequence_table *t = s->table;
    uint32_t *b = &t->bucket[s->hash & (t->buckets - 1)];
    s->chain = *b;
    *b = sequence_place_of(s) + 1;
}

static void leave(struct sequence_generator *s)
{
    struct sequence_table *t = s->table;
    uint32_t *at = &t->bucket[s->hash & (t->buckets - 1)];
    while (*at != sequence_place_of(s) + 1)
        at = &t->place[*at - 1].chain;
    *at = s->chain;
}

static bool is_name(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && c != '_' && c != '.' && c != '-')
            return false;
    }
    return s.n > 0 && s.n < SEQUENCE_NAME_MAX;
}

static void copy(char *to, struct span s)
{
    if (s.n)
        memcpy(to, s.p, s.n);
    to[s.n] = '\0';
}

/* name[:sub]. false: it can't be one. */
static bool split(struct span key, struct sequence_name *of)
{
    const char *colon = key.n > 0 ? memchr(key.p, ':', key.n) : NULL;
    struct span name = span_of(key.p, colon ? (size_t)(colon - key.p) : key.n);
    struct span sub = colon ? span_skip(key, name.n + 1) : span_of("", 0);
    if (!is_name(name) || (colon && sub.n == 0) || sub.n >= SEQUENCE_SUB_MAX)
        return false;
    copy(of->name, name);
    copy(of->sub, sub);
    return true;
}

static bool is_label(const struct sequence_table *t, struct span part)
{
    return part.n == 0 || (part.n < SEQUENCE_LABEL_MAX && t->options.calendar->is_label(part));
}

static struct names_entry *not_one(struct sequence_table *t, struct span found)
{
    t->fresh.of.name[0] = '\0';
    copy(t->found, span_of(found.p, found.n < sizeof t->found ? found.n : sizeof t->found - 1));
    return &t->fresh.entry;
}

struct names_entry *sequence_table_entry(struct generator *g, struct span name, struct span part)
{
    struct sequence_table *t = (struct sequence_table *)g;
    struct sequence_generator *fresh = &t->fresh;
    t->found[0] = '\0';
    t->found_date = false;
    fresh->entry.issued = 0;
    if (!split(name, &fresh->of))
        return not_one(t, name);
    t->found_date = !is_label(t, part);
    if (t->found_date)
        return not_one(t, part);
    copy(fresh->of.period, part);
    struct sequence_generator *s = sequence_places_find(t, &fresh->of);
    return s ? &s->entry : &fresh->entry;
}

/* ---- what is to be told ---------------------------------------------------------------------- */

void sequence_places_queue(struct sequence_generator *s)
{
    struct sequence_table *t = s->table;
    if (s->queued)
        return;
    s->queued = true;
    t->queue[(t->queue_first + t->queued++) % t->options.counters] = sequence_place_of(s);
}

void sequence_places_look_again(struct sequence_generator *s, int64_t mono)
{
    if (mono < s->look_due)
        return;
    s->look_due = mono + LOOK_MS;
    s->to_look = true;
    sequence_places_queue(s);
}

static bool event_of(struct sequence_generator *s, struct sequence_event *out)
{
    *out = (struct sequence_event){.place = sequence_place_of(s), .of = &s->of};
    if (s->to_open) {
        s->to_open = false;
        out->kind = SEQUENCE_EVENT_OPEN;
    } else if (s->to_close) {
        s->to_close = false;
        out->kind = SEQUENCE_EVENT_CLOSE;
    } else if (s->state == SEQUENCE_OPEN && s->to_look) {
        s->to_look = false;
        out->kind = SEQUENCE_EVENT_WANT;
        out->look = true;
    } else if (s->state == SEQUENCE_OPEN && sequence_asks(&s->numbers, &out->want)) {
        out->kind = SEQUENCE_EVENT_WANT;
        s->told_at = s->numbers.strict ? s->table->mono : 0;
    } else {
        return false;
    }
    return true;
}

/* What a strict one wants adds up until something has come of what it wanted before: so a call is
 * for all who came meanwhile, and of two that follow each other neither takes the other's place.
 * Whatever becomes of a call, nobody waits for that alone. */
static bool is_held(const struct sequence_generator *s)
{
    const struct sequence_table *t = s->table;
    bool stands = s->told_at > 0 && t->mono - s->told_at < TOLD_MS;
    return s->state == SEQUENCE_OPEN && !s->to_open && !s->to_close && s->numbers.ask.count > 0 &&
           (stands || (t->handing_out && sequence_may_wait(&s->numbers)));
}

static void take_first(struct sequence_table *t)
{
    t->place[t->queue[t->queue_first]].queued = false;
    t->queue_first = (t->queue_first + 1) % t->options.counters;
    t->queued--;
}

bool sequence_table_event(struct sequence_table *t, struct sequence_event *out)
{
    for (uint32_t left = t->queued; left > 0; left--) {
        struct sequence_generator *s = &t->place[t->queue[t->queue_first]];
        bool held = is_held(s);
        if (!held && event_of(s, out))
            return true;
        take_first(t);
        if (held)
            sequence_places_queue(s);
    }
    return false;
}

/* ---- closing --------------------------------------------------------------------------------- */

/* The periods of a head, and it, know each other by place. */
static void forget_period(struct sequence_generator *s)
{
    struct sequence_table *t = s->table;
    uint32_t own = sequence_place_of(s) + 1;
    struct sequence_generator *head = s->head ? &t->place[s->head - 1] : NULL;
    if (head && head->present == own)
        head->present = 0;
    if (head && head->next == own)
        head->next = 0;
    if (s->present)
        t->place[s->present - 1].head = 0;
    if (s->next)
        t->place[s->next - 1].head = 0;
    s->head = s->present = s->next = 0;
}

static void leave_family(struct sequence_generator *s)
{
    if (!s->family)
        return;
    s->family->given += (uint64_t)sequence_given(&s->numbers);
    s->family->parked += s->parked;
    s->family->refused += s->refused;
    s->family = NULL;
    link_remove(&s->sibling);
}

void sequence_places_close(struct sequence_generator *s)
{
    struct sequence_table *t = s->table;
    t->open--;
    t->closing++;
    if (!s->live) {
        t->nunknown--;
        link_remove(&s->line);
    }
    s->state = SEQUENCE_CLOSING;
    s->to_close = true;
    sequence_let_go(&s->numbers);
    sequence_table_note(s);
    leave(s);
    forget_period(s);
    leave_family(s);
    sequence_places_queue(s);
}

void sequence_table_closed(struct sequence_table *t, uint32_t place)
{
    struct sequence_generator *s = &t->place[place];
    if (s->state != SEQUENCE_CLOSING)
        return;
    s->state = SEQUENCE_FREE;
    s->chain = t->free;
    t->free = place + 1;
    t->closing--;
}

static bool may_close(const struct sequence_generator *s)
{
    return s->state == SEQUENCE_OPEN && !s->numbers.asked && !s->to_open;
}

/* Since the latest look, which was at some eviction. */
static uint64_t uses(struct sequence_generator *s)
{
    uint64_t used = s->uses + (uint64_t)sequence_given(&s->numbers), n = used - s->seen;
    s->seen = used;
    if (n > 0)
        s->used_at = s->table->evicted;
    return n;
}

/* Of those that were not used for as many evictions, the one that was used least before. */
void sequence_places_evict(struct sequence_table *t, const struct sequence_generator *but)
{
    struct sequence_generator *victim = NULL;
    uint64_t least = 0;
    t->evicted++;
    for (uint32_t i = 0; i < t->top && i < EVICT_LOOKS; i++) {
        struct sequence_generator *s = &t->place[t->hand];
        t->hand = (t->hand + 1) % t->top;
        if (s == but || !s->live || !may_close(s))
            continue;
        uint64_t n = uses(s);
        if (victim &&
            (s->used_at > victim->used_at || (s->used_at == victim->used_at && n >= least)))
            continue;
        victim = s;
        least = n;
    }
    if (victim)
        sequence_places_close(victim);
    else
        t->evicted--;
}

/* The one that stands longest, so that those which ask for it are answered first. */
static void evict_unknown(struct sequence_table *t)
{
    for (struct link *l = t->unknown.next; l != &t->unknown; l = l->next) {
        struct sequence_generator *s = CONTAINER(l, struct sequence_generator, line);
        if (may_close(s)) {
            sequence_places_close(s);
            return;
        }
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

uint32_t sequence_places_unknown_max(const struct sequence_table *t)
{
    uint32_t share = t->options.counters / UNKNOWN_PER;
    return share > UNKNOWN_MAX ? UNKNOWN_MAX : share > 0 ? share : 1;
}

static struct sequence_generator *free_place(struct sequence_table *t)
{
    if (t->free) {
        struct sequence_generator *s = &t->place[t->free - 1];
        t->free = s->chain;
        return s;
    }
    return t->top < t->options.counters ? &t->place[t->top++] : NULL;
}

static void begin(struct sequence_table *t, struct sequence_generator *s,
                  const struct sequence_name *of)
{
    bool queued = s->queued; /* what it had to tell was told */
    memset(s, 0, sizeof *s);
    s->base.kind = &sequence_kind;
    s->entry.generator = &s->base;
    s->table = t;
    copy(s->of.name, span_str(of->name)); /* without what may stand behind them */
    copy(s->of.sub, span_str(of->sub));
    copy(s->of.period, span_str(of->period));
    s->hash = hash_of(of);
    s->state = SEQUENCE_OPEN;
    s->beyond = -1;
    s->queued = queued;
    link_init(&s->sibling);
    link_init(&s->line);
    sequence_init(&s->numbers, t->options.lasts_ms, t->options.max, t->mono);
    s->numbers.tickets = s->ticket_base = t->tickets;
    s->used_at = t->evicted;
    t->open++;
    t->nunknown++;
    link_append(&t->unknown, &s->line);
    enter(s);
}

struct sequence_generator *sequence_places_open(struct sequence_table *t,
                                                const struct sequence_name *of,
                                                const struct sequence_generator *head)
{
    if (!head && t->nunknown >= sequence_places_unknown_max(t)) {
        if (t->closing == 0)
            evict_unknown(t);
        return NULL;
    }
    struct sequence_generator *s = free_place(t);
    if (!s) {
        if (t->closing == 0)
            sequence_places_evict(t, head);
        return NULL;
    }
    begin(t, s, of);
    s->to_open = true;
    if (head)
        sequence_places_set_live(s, true);
    sequence_places_queue(s);
    return s;
}

bool sequence_table_adopt(struct sequence_table *t, uint32_t place, const struct sequence_name *of)
{
    if (!prepare(t) || place >= t->options.counters || place < t->top ||
        sequence_places_find(t, of))
        return false;
    for (; t->top < place; t->top++) {
        t->place[t->top].chain = t->free;
        t->free = t->top + 1;
    }
    t->top++;
    begin(t, &t->place[place], of);
    t->place[place].adopted = true;
    sequence_places_set_live(&t->place[place], true);
    return true;
}

/* ---- families -------------------------------------------------------------------------------- */

static struct sequence_family *add_family(struct sequence_table *t, uint32_t i, const char *name)
{
    struct sequence_family *f = &t->family[i];
    struct generator **at = &t->base.after;
    f->base.kind = &sequence_family_kind;
    f->base.label = f->name;
    copy(f->name, span_str(name));
    link_init(&f->members);
    while (*at && (*at)->kind == &sequence_family_kind && *at != &t->family[SEQUENCE_FAMILIES].base)
        at = &(*at)->after;
    f->base.after = *at;
    *at = &f->base;
    return f;
}

static struct sequence_family *family_of(struct sequence_table *t, const char *name)
{
    for (uint32_t i = 0; i < t->families; i++)
        if (strcmp(t->family[i].name, name) == 0)
            return &t->family[i];
    if (t->families < SEQUENCE_FAMILIES)
        return add_family(t, t->families++, name);
    if (!t->others)
        (void)add_family(t, SEQUENCE_FAMILIES, "other");
    t->others = true;
    return &t->family[SEQUENCE_FAMILIES];
}

void sequence_places_show(struct sequence_generator *s)
{
    if (s->family)
        return;
    s->family = family_of(s->table, s->of.name);
    link_append(&s->family->members, &s->sibling);
}

void sequence_places_set_live(struct sequence_generator *s, bool live)
{
    struct sequence_table *t = s->table;
    if (s->live == live)
        return;
    s->live = live;
    if (!live) {
        t->nunknown++;
        link_append(&t->unknown, &s->line);
        return;
    }
    t->nunknown--;
    link_remove(&s->line);
    sequence_places_show(s);
}

void sequence_places_make_room(struct sequence_table *t, const struct sequence_generator *but)
{
    if (t->open - t->nunknown > t->options.counters - sequence_places_unknown_max(t) &&
        t->closing == 0)
        sequence_places_evict(t, but);
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct sequence_generator *find_whole(const struct sequence_table *t, const char *name)
{
    struct sequence_name of = {.name = ""};
    copy(of.name, span_str(name));
    return sequence_places_find(t, &of);
}

/* Who asks for its subs need not have asked for it. */
void sequence_places_note_subless(const struct sequence_generator *s)
{
    struct sequence_table *t = s->table;
    struct sequence_generator *whole = find_whole(t, s->of.name);
    if (!whole && (t->free || t->top < t->options.counters)) {
        struct sequence_name of = {.name = ""};
        copy(of.name, span_str(s->of.name));
        whole = sequence_places_open(t, &of, s);
        sequence_places_make_room(t, whole);
    }
    if (whole && whole->formed && !whole->subless)
        sequence_places_look_again(whole, t->mono); /* it was made anew */
    else if (whole)
        whole->subless = whole->sub_asked = true;
}

/* Clients think of as many subs as they like, and what is not known here yet shares few places: one
 * that there can't be takes none, and no call, but for the first, of which the log has to know. */
static enum sequence_cause open_sub(struct sequence_table *t, struct sequence_generator **s)
{
    struct sequence_generator *whole = find_whole(t, t->fresh.of.name);
    if (whole && whole->subless && whole->sub_asked) {
        sequence_places_look_again(whole, t->mono);
        return SEQUENCE_NO_SUBS;
    }
    *s = sequence_places_open(t, &t->fresh.of, NULL);
    if (whole && *s)
        whole->sub_asked = true;
    return *s ? SEQUENCE_GIVEN : SEQUENCE_FULL;
}

static enum sequence_cause open_fresh(struct sequence_table *t, struct sequence_generator **s)
{
    if (t->found[0] || !t->fresh.of.name[0])
        return t->found_date ? SEQUENCE_DATE : SEQUENCE_NAME;
    if (!prepare(t))
        return SEQUENCE_UNMADE;
    *s = sequence_places_find(t, &t->fresh.of);
    if (*s)
        return SEQUENCE_GIVEN;
    if (t->fresh.of.sub[0])
        return open_sub(t, s);
    *s = sequence_places_open(t, &t->fresh.of, NULL);
    return *s ? SEQUENCE_GIVEN : SEQUENCE_FULL;
}

enum sequence_cause sequence_table_place(struct sequence_generator **g, int64_t mono,
                                         int64_t *until_mono)
{
    struct sequence_generator *s = *g;
    struct sequence_table *t = s->table;
    enum sequence_cause cause = SEQUENCE_GIVEN;
    *until_mono = INT64_MAX;
    t->mono = mono;
    if (s == &t->fresh)
        cause = open_fresh(t, &s);
    if (cause)
        return cause;
    if (s->state != SEQUENCE_OPEN)
        return SEQUENCE_FULL;
    s->uses++;
    *g = s;
    if (s->base.kind == &sequence_period_kind)
        return sequence_period_present(s, mono, g);
    return sequence_period_is_ahead(s, mono, until_mono) ? SEQUENCE_LATER : SEQUENCE_GIVEN;
}

void sequence_table_note(struct sequence_generator *g)
{
    struct sequence_table *t = g->table;
    if (g->numbers.tickets > t->tickets)
        t->tickets = g->numbers.tickets;
    t->dropped += (uint64_t)g->numbers.dropped;
    g->numbers.dropped = 0;
    if (g->numbers.ask.count > 0)
        sequence_places_queue(g);
}
