/*
 * Random operations on sequences, and faults, put to sequences.lua in a real Redis, to the SQLite
 * driver and to a toy store whose transactions are often in conflict: every answer must agree field
 * by field, and all rows in the end. And what it is all for: no index of a counter is given out
 * twice.
 *
 * SEED=n replays a run, OPS=n sets the length of the first, ALONE=n of the second, which has the
 * toy alone.
 *
 * Rounds are of three kinds. In a covered one the coordinator's clock stays within S of a time that
 * never goes back, every loss or rewind changes the fingerprint, and operators say what is true:
 * there no index may be used twice. Its sequences skip, and SQLite is not asked; or they refuse. A
 * wild one breaks all that, and only the answers are compared.
 */
#include "base/int64.h"
#include "seq_rig.h"
#include "support/seeded.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEFAULT_OPS 20000
#else
#define DEFAULT_OPS 60000
#endif

#define ROUND_OPS 300
#define NAMES     3
#define BLOCKS    1024

enum kind {
    KIND_SKIP,
    KIND_REFUSE,
    KIND_WILD,
    KINDS
};

/* What was heard of a take. */
struct block {
    size_t name, sub;
    char period[PERIOD_LABEL_MAX];
    struct coord_token token;
    int64_t gen, turn, lo, hi, n; /* hi below lo: all was given back */
    struct seq_opening opening[PAIR_SIDES];
    struct seq_opening latest;
};

static const char *const names[NAMES] = {"a", "b.c", "d"};
static const char *const subs[3] = {"", "acme", "~"};

static struct {
    struct seeded random;
    uint64_t ops, hows[SEQ_HOWS], checked, reopened, words, templates;
    /* of this round */
    enum kind kind;
    int64_t truth;
    bool made[NAMES], is_void[NAMES];                       /* ever made; set back */
    struct seq_definition definition[NAMES], before[NAMES]; /* before: another template came */
    struct block block[BLOCKS];
    size_t blocks;
    int64_t highest[NAMES];   /* index + 1 that anybody used */
    bool lost_pending, lost;  /* since the pool was asked last; at the latest reopening */
    bool kept[PAIR_BACKUPS];  /* backups that may come back */
    struct seq_want want[64]; /* sent, to arrive once more */
    size_t wants;
    struct seq_return back[64];
    size_t backs;
} run;

static int64_t below(int64_t n)
{
    return seeded_in(&run.random, 0, n - 1);
}

static bool once_in(int64_t n)
{
    return below(n) == 0;
}

static bool wild(int64_t n)
{
    return run.kind == KIND_WILD && once_in(n);
}

/* ---- what must never be ---------------------------------------------------------------------- */

static void check(size_t at)
{
    const struct block *a = &run.block[at];
    if (run.kind == KIND_WILD || run.is_void[a->name])
        return;
    run.checked++;
    for (size_t i = 0; i < run.blocks; i++) {
        const struct block *b = &run.block[i];
        if (i == at || a->name != b->name || a->sub != b->sub || strcmp(a->period, b->period) != 0)
            continue;
        if (a->lo <= b->hi && b->lo <= a->hi)
            fail_msg("after %" PRIu64 " operations: of %s %s \"%s\" %" PRId64 "..%" PRId64
                     " and %" PRId64 "..%" PRId64 " were granted",
                     run.ops, names[a->name], subs[a->sub], a->period, b->lo, b->hi, a->lo, a->hi);
    }
}

/* The latest block of a counter, of which a caller may know. */
static const struct block *some_block(void)
{
    return run.blocks ? &run.block[below((int64_t)run.blocks)] : NULL;
}

/* ---- take ------------------------------------------------------------------------------------ */

static bool same_opening(const struct seq_opening *a, const struct seq_opening *b)
{
    return a->era == b->era && a->topen_ms == b->topen_ms &&
           strcmp(a->fingerprint, b->fingerprint) == 0;
}

static void heard(const struct seq_want *w, size_t name, size_t sub, const struct seq_grant *g)
{
    for (size_t i = 0; i < run.blocks; i++) {
        const struct block *b = &run.block[i];
        if (coord_token_equal(b->token, w->token) && g->how == SEQ_AGAIN)
            return; /* nothing that it did not have */
    }
    if (run.blocks == BLOCKS)
        return;
    struct block *b = &run.block[run.blocks++];
    *b = (struct block){.name = name,
                        .sub = sub,
                        .token = w->token,
                        .gen = g->gen,
                        .turn = g->turn,
                        .lo = g->lo,
                        .hi = g->hi,
                        .n = g->n};
    (void)snprintf(b->period, sizeof b->period, "%s", g->period);
    memcpy(b->opening, openings, sizeof b->opening);
    b->latest = opening;
    run.highest[name] = max64(run.highest[name], g->hi + 1);
    check(run.blocks - 1);
}

/* A label of now, of what comes, or of what is over; or of nothing. */
static const char *some_period(size_t name)
{
    static char text[4][PERIOD_LABEL_MAX];
    static size_t turn;
    char *label = text[turn++ % 4];
    const struct seq_definition *d = &run.definition[name];
    int64_t away = (below(6) - 4) * INT64_C(3600000);
    label[0] = '\0';
    if (wild(20))
        (void)snprintf(label, PERIOD_LABEL_MAX, "2026-0%d-31", (int)below(9));
    else if (d->reset != PERIOD_NEVER && once_in(2))
        (void)period_label(d->reset, d->offset_min, run.truth + away, label);
    return label;
}

/* One that it has, mostly. */
static size_t some_sub(size_t name)
{
    return run.definition[name].subs > 0 || once_in(20) ? (size_t)below(3) : 0;
}

static struct seq_want some_want(size_t name, size_t sub)
{
    static char texts[4][SEQ_TEXT_MAX];
    const int64_t sizes[] = {below(3), below(50), below(5000), below(SEQ_BLOCK_MAX + 1)};
    struct seq_want w = {.name = names[name],
                         .sub = subs[sub],
                         .period = some_period(name),
                         .text = "",
                         .count = sizes[below(4)],
                         .whole = once_in(4),
                         .token = coord_token_new(&run.random.rng),
                         .seen = once_in(3) ? below(100000) : 0};
    if (once_in(2) && run.made[name])
        w.text = seq_definition_text(texts[below(4)], &run.definition[name]);
    return w;
}

/* What a caller remembers, or pretends to. Returns whose opening it is. */
static const struct block *remember(struct seq_want *w, size_t name, size_t sub)
{
    const struct block *b = some_block();
    if (!b || b->name != name || b->sub != sub)
        return NULL;
    w->period = b->period;
    w->gen = b->gen;
    w->n = b->n + (wild(4) ? below(3) : 0);
    w->known_before = !same_opening(&b->latest, &opening);
    if (wild(6))
        w->known_before = !w->known_before;
    return b;
}

static int64_t some_clock(void)
{
    const int64_t off[] = {0, below(2 * S + 1) - S, below(8 * S) - 4 * S, below(2 * DAY) - DAY};
    int64_t from = once_in(2) ? run.truth : pair.clock.ms;
    return max64(from + off[once_in(3) ? below(4) : below(2)], 0);
}

/* Whether the latest reopening came with a loss: it is of another store than before. */
static void note_opening(const struct seq_opening *told)
{
    static struct seq_opening last;
    if (same_opening(told, &last))
        return;
    last = *told;
    run.lost = run.lost_pending;
    run.lost_pending = false;
    run.reopened++;
}

static void do_take(void)
{
    size_t name = (size_t)below(NAMES), sub = some_sub(name);
    struct seq_want w = some_want(name, sub);
    const struct block *b = once_in(2) ? remember(&w, name, sub) : NULL;
    bool again = run.wants > 0 && once_in(5), deaf = once_in(6);
    if (again) {
        w = run.want[below((int64_t)(run.wants < 64 ? run.wants : 64))];
        for (name = 0; strcmp(names[name], w.name) != 0; name++)
            ;
        for (sub = 0; strcmp(subs[sub], w.sub) != 0; sub++)
            ;
        w.n = 0;
        deaf = true; /* of a late copy nobody hears */
        b = NULL;
    } else {
        run.want[run.wants % 64] = w;
        run.want[run.wants % 64].text = "";
        run.want[run.wants % 64].period = "";
        run.wants++;
    }
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    struct seq_opening told[PAIR_SIDES] = {{0}};
    struct seq_caller by = {.now_ms = some_clock()};
    const char *identity = wild(30) ? SETUP_IDENTITY_OTHER : SETUP_IDENTITY;
    ASK(s, &g,
        (by.opening = b ? b->opening[side] : (struct seq_opening){.era = 0},
         seq_take(c, identity, &by, &w, &one, 1, &told[side], &reply)));
    if (s != COORD_OK)
        return;
    memcpy(openings, told, sizeof openings);
    opening = told[PAIR_TOY];
    note_opening(&opening);
    run.hows[g.how]++;
    if (!deaf && (g.how == SEQ_GRANTED || g.how == SEQ_AGAIN))
        heard(&w, name, sub, &g);
}

/* ---- give back ------------------------------------------------------------------------------- */

static void do_give_back(void)
{
    struct seq_return item;
    if (run.backs > 0 && once_in(4)) {
        item = run.back[below((int64_t)(run.backs < 64 ? run.backs : 64))];
    } else {
        size_t from = run.blocks > 6 && once_in(2) ? run.blocks - 6 : 0;
        struct block *b =
            run.blocks ? &run.block[from + (size_t)below((int64_t)(run.blocks - from))] : NULL;
        if (!b || b->lo > b->hi)
            return;
        static char periods[64][PERIOD_LABEL_MAX];
        char *period = periods[run.backs % 64];
        memcpy(period, b->period, sizeof b->period);
        item = (struct seq_return){.name = names[b->name],
                                   .sub = subs[b->sub],
                                   .period = period,
                                   .token = b->token,
                                   .gen = b->gen,
                                   .n = b->n,
                                   .lo = b->lo + below(b->hi - b->lo + 1),
                                   .hi = b->hi};
        b->hi = item.lo - 1; /* never given out again, whatever becomes of it */
        run.back[run.backs++ % 64] = item;
    }
    if (wild(5))
        item.token = run.block[below((int64_t)run.blocks)].token;
    if (wild(5))
        item.lo = below(item.hi + 1);
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    ASK(s, &g,
        (memset(&one, 0, sizeof one),
         seq_give_back(c, SETUP_IDENTITY, &item, &one.how, 1, &reply)));
    if (s == COORD_OK)
        run.hows[g.how]++;
}

/* ---- operators ------------------------------------------------------------------------------- */

/* One of those that are apart, or are not; or that its sequence cannot have. "": none. */
static void some_template(struct seq_definition *d)
{
    static const char *const begins[] = {"A-", "B-", "a-", "C-", "AB", "D-", "E-", ""};
    const char *date = d->reset == PERIOD_HOUR && !once_in(9) ? "@{date,%Y%m%d%H}-" : "";
    d->template[0] = '\0';
    if (!once_in(3))
        (void)snprintf(d->template, sizeof d->template, "%s%s@{seq}", begins[below(8)], date);
}

static struct seq_definition some_definition(void)
{
    struct seq_definition d = {
        .start = 1, .increment = 1, .begins_ms = run.truth + below(3000) - 1000};
    bool skips = run.kind == KIND_SKIP || (run.kind == KIND_WILD && once_in(2));
    d.loss = skips                                 ? SEQ_LOSS_SKIP
             : run.kind == KIND_WILD && once_in(2) ? SEQ_LOSS_TRUST
                                                   : SEQ_LOSS_REFUSE;
    d.rate = skips ? (int64_t)(1 + below(once_in(2) ? 30 : 3000)) : 0;
    d.burst = skips ? seq_burst(d.rate) : 0;
    d.subs = once_in(2) ? below(3) : 0;
    d.reset = once_in(3) ? PERIOD_HOUR : PERIOD_NEVER;
    d.offset_min = d.reset == PERIOD_HOUR ? (int)below(61) - 30 : 0;
    d.back_h = d.reset == PERIOD_HOUR && once_in(2) ? 1 + below(3) : 0;
    some_template(&d);
    if (wild(3))
        d.begins_ms = 0;
    if (!skips && wild(3))
        d.strict = d.cycle = true;
    return d;
}

static void order_done(const struct seq_grant *g, enum coord_status s)
{
    if (s == COORD_OK)
        run.hows[g->how]++;
}

static bool is_dropped(size_t name)
{
    struct seq_counters all;
    struct coord *c = alone ? pair.toy : pair_side(&pair, PAIR_TOY);
    enum coord_status s = seq_show(c, SETUP_IDENTITY, names[name], &all, &reply);
    bool dropped = s == COORD_OK && all.found && all.sequence.dropped;
    if (s == COORD_OK)
        free(all.v);
    return dropped;
}

/* As it was made first: after a loss it is made again so; and as another behind a tombstone alone.
 */
static void do_create(void)
{
    size_t name = (size_t)below(NAMES);
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    bool reuse = once_in(4) && (run.kind == KIND_WILD || !run.made[name] || is_dropped(name));
    struct seq_definition d = run.definition[name];
    if (!run.made[name] || reuse || wild(4))
        d = some_definition();
    const struct seq_create in = {.name = names[name],
                                  .definition = d,
                                  .has_max = run.kind == KIND_WILD && d.loss != SEQ_LOSS_SKIP,
                                  .max = 1 + below(30000),
                                  .fresh = wild(3),
                                  .reuse = reuse,
                                  .no_older = reuse};
    ASK(s, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    order_done(&g, s);
    if (s != COORD_OK || g.how != SEQ_DONE)
        return;
    /* A name that was made once is made as it was then, or behind its tombstone. */
    if (run.made[name] && reuse)
        memset(run.kept, 0, sizeof run.kept);
    run.made[name] = true;
    run.definition[name] = g.definition;
}

static void do_set(void)
{
    size_t name = (size_t)below(NAMES), sub = some_sub(name);
    bool back = once_in(6);
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    const struct seq_set in = {.name = names[name],
                               .sub = subs[sub],
                               .period = some_period(name),
                               .number = below(once_in(2) ? 30000 : 1000000),
                               .back = back,
                               .no_older = back};
    ASK(s, &g, seq_set(c, SETUP_IDENTITY, &in, &one, &reply));
    order_done(&g, s);
    run.is_void[name] |= back && s == COORD_OK && g.how == SEQ_DONE;
}

/* From one definition to another, by its driver alone: it counts where the former is there. */
static void alter_from(size_t name, const struct seq_definition *from,
                       const struct seq_definition *to)
{
    char text[SEQ_TEXT_MAX], next[SEQ_TEXT_MAX] = "none";
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    struct seq_order o = {.verb = SEQ_VERB_ALTER,
                          .name = names[name],
                          .sub = "",
                          .period = "",
                          .text = seq_definition_text(text, from),
                          .to = wild(9) ? next : seq_definition_text(next, to),
                          .gen = 1 + below(2),
                          .index = once_in(4) ? below(30000) : SEQ_INDEX_MAX - 1,
                          .kept = below(SEQ_KEPT_MAX)};
    ASK(s, &g,
        (memset(&one, 0, sizeof one),
         c->driver->sequences->operate(c, SETUP_IDENTITY, &o, &one, &reply)));
    order_done(&g, s);
    if (s == COORD_OK && g.how == SEQ_DONE)
        run.definition[name] = *to;
}

/* The template of a sequence, which some time ago was another one, or is. */
static void do_template(void)
{
    size_t name = (size_t)below(NAMES);
    struct seq_definition to = run.definition[name];
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    if (!run.made[name])
        return;
    some_template(&to);
    if (once_in(3)) {
        alter_from(name, &run.before[name], &to);
        return;
    }
    run.before[name] = run.definition[name];
    if (once_in(3)) {
        alter_from(name, &run.definition[name], &to);
        return;
    }
    ASK(s, &g, seq_alter_template(c, SETUP_IDENTITY, names[name], to.template, &one, &reply));
    order_done(&g, s);
    if (s == COORD_OK && g.how == SEQ_DONE) {
        run.definition[name] = to;
        run.templates++;
    }
}

static void do_order(void)
{
    size_t name = (size_t)below(NAMES);
    int64_t what = below(8), number = below(30000), true_one = run.highest[name];
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    const char *id = SETUP_IDENTITY, *period = some_period(name);
    if (run.kind != KIND_WILD)
        number = true_one;
    if (what == 0 && once_in(3))
        ASK(s, &g, seq_drop(c, id, names[name], &one, &reply));
    else if (what < 3)
        ASK(s, &g, seq_sweep(c, id, names[name], period, &one, &reply));
    else if (what < 4)
        ASK(s, &g, seq_alter(c, id, names[name], number + 50000, &one, &reply));
    else
        ASK(s, &g, seq_reopen(c, id, names[name], number, &one, &reply));
    order_done(&g, s);
}

/* An operator's word, where it is true, or where nobody minds. */
static void do_word(void)
{
    enum coord_status s = COORD_DOWN;
    struct seq_grant g = {0};
    struct seq_want w = some_want(0, 0);
    struct seq_opening told;
    const struct seq_caller by = {.now_ms = pair.clock.ms};
    w.count = 0;
    ASK(s, &g, seq_take(c, SETUP_IDENTITY, &by, &w, &one, 1, &told, &reply));
    if (s != COORD_OK)
        return;
    note_opening(&told);
    if (run.kind != KIND_WILD && run.lost)
        return;
    ASK(s, &g, (memset(&one, 0, sizeof one), coord_nothing_lost(c, SETUP_IDENTITY, &reply)));
    run.words += s == COORD_OK;
}

/* ---- time and faults ------------------------------------------------------------------------- */

static void do_pass(void)
{
    const int64_t steps[] = {below(20), below(3000), below(120000), below(4000000)};
    run.truth += steps[below(4)];
    pair.clock.ms = run.truth + (once_in(2) ? below(2 * S + 1) - S : 0);
    if (wild(20))
        pair.clock.ms += below(DAY) - DAY / 2;
}

/* A name of its own, after all that, by somebody who does not say when it begins. */
static void do_create_late(void)
{
    struct seq_grant g = {0};
    enum coord_status s = COORD_DOWN;
    const struct seq_create in = {
        .name = "late", .definition = {.start = 1, .increment = 1, .loss = SEQ_LOSS_REFUSE}};
    ASK(s, &g, seq_create(c, SETUP_IDENTITY, &in, &one, &reply));
    order_done(&g, s);
}

/* The same of the toy alone. */
static void restart(void)
{
    static uint64_t lives;
    if (!alone)
        pair_restart(&pair);
    else
        (void)snprintf(toy_of(pair.toy)->fingerprint, STORE_FINGERPRINT_MAX, "life%" PRIu64,
                       ++lives);
}

static void backup(size_t slot)
{
    if (alone)
        pair.kept[slot] = toy_of(pair.toy)->state;
    else
        pair_backup(&pair, slot);
}

static void restore(size_t slot, bool in_place)
{
    if (!alone) {
        pair_restore(&pair, slot, in_place);
        return;
    }
    toy_of(pair.toy)->state = pair.kept[slot];
    if (!in_place)
        restart();
}

static void do_fault(void)
{
    size_t slot = (size_t)below(PAIR_BACKUPS);
    if (once_in(6)) {
        restart();
    } else if (once_in(2)) {
        backup(slot);
        run.kept[slot] = true;
    } else if (run.kept[slot]) {
        restore(slot, wild(2));
        run.lost_pending = true;
    }
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static bool read_rows(struct coord *c, const char *prefix, struct seq_rows *rows)
{
    do {
        if (c->driver->sequences->rows(c, SETUP_IDENTITY, prefix, rows, &reply) != COORD_OK)
            return false;
    } while (rows->cursor > 0 || rows->told > 0);
    seq_rows_sort(rows);
    return true;
}

static void same_rows(const char *prefix)
{
    struct seq_rows rows[PAIR_SIDES] = {{.n = 0}};
    size_t first = asked & ONE(PAIR_SQLITE) ? PAIR_SQLITE : PAIR_REDIS;
    for (size_t side = 0; side < PAIR_SIDES; side++) {
        struct coord *c = pair_side(&pair, side);
        if (!(asked >> side & 1u))
            continue;
        if (!read_rows(c, prefix, &rows[side]))
            break;
        if (rows[side].n != rows[first].n)
            fail_msg("after %" PRIu64 " operations: %zu rows, and %zu", run.ops, rows[side].n,
                     rows[first].n);
        for (size_t i = 0; i < rows[side].n; i++) {
            assert_string_equal(rows[side].v[i].key, rows[first].v[i].key);
            assert_string_equal(rows[side].v[i].value, rows[first].v[i].value);
        }
    }
    for (size_t side = 0; side < PAIR_SIDES; side++)
        seq_rows_clear(&rows[side]);
}

static void make_pool(void)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    if (alone) {
        toy_of(pair.toy)->state.made = false;
        assert_int_equal(coord_init(pair.toy, &in, &reply), COORD_OK);
    } else {
        init(3);
    }
}

static void begin_round(void)
{
    run.kind = (enum kind)below(KINDS);
    run.truth = pair.clock.ms = SETUP_T0_MS;
    run.blocks = run.wants = run.backs = 0;
    run.lost = run.lost_pending = false;
    memset(run.made, 0, sizeof run.made);
    memset(run.is_void, 0, sizeof run.is_void);
    memset(run.before, 0, sizeof run.before);
    memset(run.highest, 0, sizeof run.highest);
    memset(run.kept, 0, sizeof run.kept);
    asked = alone ? ONE(PAIR_TOY) : run.kind == KIND_REFUSE ? EACH : FORGETTING;
    make_pool();
    for (size_t i = 0; i < NAMES; i++)
        do_create();
}

static void one_operation(void)
{
    static void (*const acts[])(void) = {
        do_take, do_take, do_take,  do_take,      do_take,      do_take,  do_take,   do_take,
        do_take, do_take, do_take,  do_take,      do_take,      do_take,  do_take,   do_take,
        do_pass, do_pass, do_pass,  do_give_back, do_give_back, do_order, do_create, do_create,
        do_set,  do_word, do_fault, do_template,  do_template,
    };
    run.ops++;
    acts[below(sizeof acts / sizeof *acts)]();
}

static void all_rows_agree(void)
{
    same_rows("seq ");
    for (size_t i = 0; i < NAMES; i++) {
        char prefix[32];
        (void)snprintf(prefix, sizeof prefix, "num %s ", names[i]);
        same_rows(prefix);
        (void)snprintf(prefix, sizeof prefix, "tpl %s ", names[i]);
        same_rows(prefix);
    }
}

static void play(uint64_t seed, uint64_t ops)
{
    printf("SEED=%" PRIu64 "\n", seed);
    memset(&run, 0, sizeof run);
    run.random = seeded_of(seed);
    while (run.ops < ops) {
        begin_round();
        for (size_t i = 0; i < ROUND_OPS; i++)
            one_operation();
        do_create_late();
        if (!alone)
            all_rows_agree();
    }
    for (enum seq_how h = SEQ_GRANTED; h < SEQ_HOWS; h++)
        printf("  %-14s %" PRIu64 "\n", seq_how_name(h), run.hows[h]);
    printf("  checked %" PRIu64 ", reopened %" PRIu64 ", words %" PRIu64 ", templates %" PRIu64
           "\n",
           run.checked, run.reopened, run.words, run.templates);
    assert_true(run.checked > ops / 20 && run.templates >= ops / 1000);
}

static void all_answer_alike_and_nothing_is_twice(void **state)
{
    uint64_t ops = setup_wanted("OPS", DEFAULT_OPS);
    (void)state;
    play(setup_wanted("SEED", rng_u64(rng_system()) % 1000000000), ops);
    for (enum seq_how h = SEQ_GRANTED; h < SEQ_HOWS && ops >= DEFAULT_OPS; h++)
        assert_true(run.hows[h] > 0 || h == SEQ_UNREADABLE || h == SEQ_UNSAID);
}

/* By itself it is much faster: more schedules of losses. */
static void nothing_is_twice_in_a_store_that_forgets(void **state)
{
    (void)state;
    alone = true;
    toy_of(pair.toy)->conflicts_of_8 = 0;
    play(setup_wanted("SEED", rng_u64(rng_system()) % 1000000000),
         setup_wanted("ALONE", 10 * DEFAULT_OPS));
}

int main(void)
{
    if (!server_available()) {
        (void)printf("no redis-server\n");
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_answer_alike_and_nothing_is_twice),
        cmocka_unit_test(nothing_is_twice_in_a_store_that_forgets),
    };
    return cmocka_run_group_tests_name("coord/differential_sequences", tests, seq_setup, teardown);
}
