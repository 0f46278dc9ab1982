#include "lease/sequences.h"

#include "base/clock.h"
#include "base/int64.h"
#include "base/log.h"
#include "lease/blocks_left.h"
#include "lease/period_sweep.h"
#include "lease/places.h"
#include "lease/said.h"
#include "lease/trouble.h"
#include "lease/witness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM_MS 5000 /* no memory: tried again */

static_assert(2 * BLOCKS_MAIL_MAX + 2 <= SUPPLY_MAILS, "places and machine post within it");
static_assert(PLACES_MAILS == BLOCKS_MAIL_MAX, "one half is the places'");
static_assert(sizeof(struct blocks_mail) <= SUPPLY_BODY, "one is the body of a mail");

/* What a call is made for, a row each in `works`. All that may wait for a disk is one, too. */
enum work {
    WORK_NONE,
    WORK_FINISHED,
    WORK_LOSE,   /* the pool is another one */
    WORK_PROVE,  /* it is known whether the area is right */
    WORK_ROOM,   /* the first counter was opened: the area is made */
    WORK_CREATE, /* a sequence of the configuration */
    WORK_TAKE,   /* action */
    WORK_RETURN, /* action */
    WORK_SWEEP,
};

struct sequences {
    struct supply supply;
    struct sequences_options o;
    struct sequences_report shared; /* under the keeper's lock, as is what was told: */
    struct places places;

    struct blockfile file;
    struct blocks blocks; /* once there is a file.page */
    bool runs;            /* … and memory for it */
    bool stopping;
    bool so; /* PROVE: whether it is right */
    enum work work;
    struct blocks_action action;
    struct blocks_outcome outcome;
    struct defined defined;
    size_t creating;          /* which of them */
    struct seq_grant created; /* where outcome.status is COORD_OK */
    int64_t room_due;         /* monotonic ms */
    struct period_sweep sweep;
    struct said said;
    struct trouble trouble;
    struct sequences_report report;
    bool page_lost, undated; /* that was logged */
};

static struct sequences *of(struct supply *s)
{
    return (struct sequences *)(void *)s;
}

static const char *identity(const struct sequences *s)
{
    const char *held = s->blocks.identity;
    return *held ? held : workers_identity(s->o.workers);
}

/* ---- mails ----------------------------------------------------------------------------------- */

static void drop(struct sequences *s, int64_t numbers)
{
    s->report.dropped += (uint64_t)max64(numbers, 0);
}

struct blocks_mail sequences_mail(const struct supply_mail *m)
{
    struct blocks_mail out;
    memcpy(&out, m->body, sizeof out);
    return out;
}

/* ---- proof ----------------------------------------------------------------------------------- */

static void prove(struct sequences *s, bool so, const char *why)
{
    int64_t numbers = blocks_left(&s->blocks, true);
    blocks_prove(&s->blocks, so);
    blockfile_prove(&s->file);
    if (numbers > 0 && so)
        log_info("blocks of numbers taken over", kv_i64("numbers", numbers), kv_str("why", why));
    else if (numbers > 0)
        log_warn("blocks of numbers dropped", kv_i64("numbers", numbers), kv_str("why", why));
    if (!so)
        drop(s, numbers);
}

static bool may_prove(struct sequences *s)
{
    if (!s->runs || s->blocks.proven)
        return false;
    enum workers_word word = witness_word(s->file.page, s->o.workers);
    s->so = word == WORKERS_LATEST;
    return word != WORKERS_UNHEARD;
}

static void tell_proof(struct sequences *s, int64_t mono)
{
    (void)mono;
    prove(s, s->so, s->so ? "nobody has renewed its workerId since" : "nothing proves them");
}

/* ---- the pool -------------------------------------------------------------------------------- */

static bool pool_is_another(const struct sequences *s)
{
    const char *now = workers_identity(s->o.workers);
    return s->runs && *now && strcmp(now, s->blocks.identity) != 0;
}

static void lose(struct sequences *s, int64_t mono)
{
    int64_t numbers = blocks_left(&s->blocks, false);
    blocks_lose(&s->blocks, workers_identity(s->o.workers));
    blocks_prove(&s->blocks, true);
    blockfile_prove(&s->file);
    defined_lose_all(&s->defined, mono);
    if (numbers > 0)
        log_warn("blocks of numbers dropped", kv_i64("numbers", numbers),
                 kv_str("why", "the pool is another one than they were granted by"));
    drop(s, numbers);
}

/* ---- room ------------------------------------------------------------------------------------ */

static void tell_page_lost(struct sequences *s, const char *why)
{
    s->page_lost = true;
    memset(s->report.page, 0, sizeof s->report.page);
    memcpy(s->report.page, why, strnlen(why, sizeof s->report.page - 1));
}

/* Where worker.page is another's, so is the directory, and the sequences.page in it.
 * Without a file what is left of blocks ends with the process, no more. */
static enum err_code make_area(struct sequences *s, struct err *e)
{
    const char *id = workers_identity(s->o.workers);
    unsigned slots = s->o.counters * BLOCKS_SLOTS;
    if (s->file.page)
        return ERR_OK;
    if (s->o.state_dir && !s->page_lost) {
        if (workers_page_stands(s->o.workers, e) && !blockfile_make(&s->file, id, e))
            return ERR_OK;
        log_warn("no state page of sequences: a restart drops what is left of blocks",
                 kv_str("why", e->text));
        tell_page_lost(s, e->text);
    }
    return blockfile_memory(&s->file, slots, id, e);
}

static enum err_code start_machine(struct sequences *s, int64_t mono, struct err *e)
{
    const struct blocks_config conf = {.counters = s->o.counters,
                                       .stop_ms = s->o.stop_ms,
                                       .empty = !s->file.found || s->file.verdict != PAGE_OWN};
    enum err_code r = blocks_init(&s->blocks, &conf, s->file.page, s->o.rng, mono, e);
    s->runs = !r;
    return r;
}

static void make_room(struct sequences *s, int64_t mono)
{
    struct err e;
    if (make_area(s, &e) || start_machine(s, mono, &e)) {
        s->room_due = mono + ROOM_MS;
        log_error("no room for sequences", kv_str("why", e.text));
        return;
    }
    prove(s, true, "");
}

/* ---- takes ----------------------------------------------------------------------------------- */

static void log_trouble(struct sequences *s, enum coord_status status, const struct coord_reply *r,
                        int64_t mono)
{
    const struct trouble_call c = {.kind = LEASE_RENEW,
                                   .status = status,
                                   .answered = coord_answered(status, r),
                                   .why = status == COORD_OK ? "" : r->err.text,
                                   .mono_ms = mono};
    if (!trouble_is_news(&s->trouble, &c))
        return;
    if (s->trouble.status == COORD_OK)
        log_info("numbers of sequences can be had again", kv_str("coordinator", s->o.coord_name));
    else
        log_warn("no numbers of sequences can be had", kv_str("status", coord_status_name(status)),
                 kv_i64("left", blocks_left(&s->blocks, false)), kv_str("why", c.why),
                 kv_str("coordinator", s->o.coord_name), kv_str("pool", s->o.pool_name));
}

static void call_take(struct sequences *s, struct coord *c)
{
    const struct blocks_action *a = &s->action;
    struct blocks_outcome *o = &s->outcome;
    int64_t started = clock_mono_us(s->o.clock);
    o->status =
        seq_take(c, identity(s), &a->by, a->wants, o->grants, a->nitems, &o->opening, &o->reply);
    histogram_add(&s->report.take_us, clock_mono_us(s->o.clock) - started, 1);
}

static void count_takes(struct sequences *s, const struct blocks_outcome *o)
{
    s->report.takes_failed += o->status != COORD_OK;
    for (size_t k = 0; o->status == COORD_OK && k < s->action.nitems; k++)
        s->report.takes[o->grants[k].how]++;
}

/* What is used up meanwhile goes, too, which no mail says. */
static void log_revoked(struct sequences *s, int64_t gone)
{
    bool any = false;
    for (unsigned m = 0; m < s->blocks.nmail; m++)
        any |= s->blocks.mail[m].kind == BLOCKS_MAIL_REVOKE;
    if (!any || gone <= 0)
        return;
    drop(s, gone);
    log_warn("blocks of numbers dropped", kv_i64("numbers", gone),
             kv_str("why", "an operator has set, dropped or reopened their sequence"));
}

static void take_done(struct sequences *s, int64_t mono)
{
    struct blocks_want wants[BLOCKS_ITEMS];
    struct blocks_was was;
    blocks_note_left(&s->blocks, &s->action, &was);
    for (size_t k = 0; k < s->action.nitems; k++) {
        const struct blocks_counter *c = &s->blocks.counter[s->action.counter[k]];
        wants[k] = c->taking.count > 0 ? c->taking : c->want;
    }
    blocks_done(&s->blocks, &s->action, &s->outcome, mono);
    count_takes(s, &s->outcome);
    log_revoked(s, blocks_gone_since(&s->blocks, &s->action, &was));
    if (s->outcome.status == COORD_OK)
        places_hold_unknown(&s->places, &s->defined, &s->blocks, &s->action, s->outcome.grants,
                            wants, mono);
    said_mails(&s->said, &s->blocks, mono);
    log_trouble(s, s->outcome.status, &s->outcome.reply, mono);
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* false: states of the area from before could still be taken over. */
static bool page_is_dated(struct sequences *s)
{
    struct err e;
    if (!s->blocks.gave_up)
        return true;
    bool failed = blockfile_begin_generation(&s->file, &e) != ERR_OK;
    if (failed && !s->undated)
        log_warn("state page of sequences without a new generation: no block is given back",
                 kv_str("file", s->file.path), kv_str("why", e.text));
    s->undated = failed;
    s->blocks.gave_up = failed;
    return !failed;
}

static void call_return(struct sequences *s, struct coord *c)
{
    const struct blocks_action *a = &s->action;
    struct blocks_outcome *o = &s->outcome;
    if (page_is_dated(s)) {
        o->status = seq_give_back(c, identity(s), a->returns, o->how, a->nitems, &o->reply);
        return;
    }
    o->status = COORD_OK; /* as good as one that came too late */
    for (size_t k = 0; k < a->nitems; k++)
        o->how[k] = SEQ_KEPT;
}

static void return_done(struct sequences *s, int64_t mono)
{
    const struct blocks_outcome *o = &s->outcome;
    int64_t numbers = 0, kept = 0;
    for (size_t k = 0; k < s->action.nitems; k++) {
        const struct seq_return *x = &s->action.returns[k];
        bool back = o->status == COORD_OK && o->how[k] == SEQ_DONE;
        *(back ? &numbers : &kept) += x->hi - x->lo + 1;
    }
    blocks_done(&s->blocks, &s->action, o, mono);
    if (o->status != COORD_OK && o->status != COORD_NOPOOL && o->status != COORD_WRONGPOOL)
        return; /* again */
    s->report.given_back += (uint64_t)numbers;
    drop(s, kept);
    log_info("blocks of numbers given back", kv_i64("numbers", numbers), kv_i64("dropped", kept),
             kv_str("status", coord_status_name(o->status)));
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void call_create(struct sequences *s, struct coord *c)
{
    s->outcome.status = seq_create(c, identity(s), &s->defined.v[s->creating].create, &s->created,
                                   &s->outcome.reply);
}

static void create_done(struct sequences *s, int64_t mono)
{
    struct defined_one *x = &s->defined.v[s->creating];
    enum coord_status status = s->outcome.status;
    defined_done(&s->defined, s->creating, status, &s->created, mono);
    if (status == COORD_REFUSED)
        said_impossible(&s->said, x, s->outcome.reply.err.text);
    else
        log_trouble(s, status, &s->outcome.reply, mono);
    if (status != COORD_OK) {
        places_refuse_held(&s->places, &s->supply, s->creating, status, x->due);
        return;
    }
    if (x->state == DEFINED_REFUSED)
        s->report.takes[s->created.how]++;
    said_defined(&s->said, x, &s->created, mono);
    if (x->state == DEFINED_SO && s->runs)
        places_pin(&s->places, &s->blocks, s->creating, x->text);
}

static void call_sweep(struct sequences *s, struct coord *c)
{
    period_sweep_call(&s->sweep, c, identity(s));
}

/* ---- what is next ---------------------------------------------------------------------------- */

static enum work blocks_work(struct sequences *s, int64_t mono, int64_t *until)
{
    static const enum work of[] = {[BLOCKS_IDLE] = WORK_NONE,
                                   [BLOCKS_TAKE] = WORK_TAKE,
                                   [BLOCKS_RETURN] = WORK_RETURN,
                                   [BLOCKS_FINISHED] = WORK_FINISHED};
    if (!s->runs)
        return s->stopping ? WORK_FINISHED : WORK_NONE;
    if (s->blocks.proven && s->file.fd >= 0)
        witness_store(&s->file, s->o.workers);
    blocks_next(&s->blocks, mono, &s->action);
    places_post(&s->blocks, &s->supply);
    if (s->action.kind == BLOCKS_IDLE)
        *until = min64(*until, s->action.until);
    return of[s->action.kind];
}

/* Before the pool is known there is nobody to ask. */
static enum work other_work(struct sequences *s, int64_t mono, int64_t *until)
{
    if (!*workers_identity(s->o.workers))
        return WORK_NONE;
    if (!s->runs && places_wait(&s->places)) {
        if (mono >= s->room_due)
            return WORK_ROOM;
        *until = min64(*until, s->room_due);
    }
    s->creating = defined_due(&s->defined, mono, until);
    return s->creating != DEFINED_NONE ? WORK_CREATE : WORK_NONE;
}

static enum work choose(struct sequences *s, int64_t mono, int64_t *until)
{
    if (s->stopping)
        return blocks_work(s, mono, until);
    if (pool_is_another(s))
        return WORK_LOSE;
    if (may_prove(s))
        return WORK_PROVE;
    int64_t gone = 0;
    if (places_settle(&s->places, s->runs ? &s->blocks : NULL, &s->defined, &s->supply, mono,
                      &gone))
        *until = mono; /* the loop hears first */
    drop(s, gone);
    bool made = s->work == WORK_CREATE; /* numbers wait for no more than one of the others */
    enum work w = made ? blocks_work(s, mono, until) : other_work(s, mono, until);
    if (w == WORK_NONE)
        w = made ? other_work(s, mono, until) : blocks_work(s, mono, until);
    if (w == WORK_NONE && s->runs && period_sweep_due(&s->sweep, &s->blocks, mono, until))
        w = WORK_SWEEP;
    return w;
}

static enum supply_next next(struct supply *sup, int64_t mono, int64_t *until)
{
    struct sequences *s = of(sup);
    *until = INT64_MAX;
    s->work = choose(s, mono, until);
    return s->work == WORK_NONE       ? SUPPLY_IDLE
           : s->work == WORK_FINISHED ? SUPPLY_FINISHED
                                      : SUPPLY_CALL;
}

/* What each work asks the coordinator, and what becomes of the answer; NULL: nothing. */
static const struct {
    void (*call)(struct sequences *, struct coord *);
    void (*done)(struct sequences *, int64_t mono);
} works[] = {
    [WORK_LOSE] = {NULL, lose},           [WORK_PROVE] = {NULL, tell_proof},
    [WORK_ROOM] = {NULL, make_room},      [WORK_CREATE] = {call_create, create_done},
    [WORK_TAKE] = {call_take, take_done}, [WORK_RETURN] = {call_return, return_done},
    [WORK_SWEEP] = {call_sweep, NULL},
};

static void make_call(struct supply *sup, struct coord *c, int64_t wall)
{
    struct sequences *s = of(sup);
    memset(&s->outcome, 0, sizeof s->outcome);
    s->action.by.now_ms = wall;
    if (works[s->work].call)
        works[s->work].call(s, c);
}

/* Said once: it does not come back. Numbers go on, since what is held is held by this process. */
static void look_at_page(struct sequences *s)
{
    struct err e = {.code = ERR_OK};
    if (s->page_lost || !s->runs || blockfile_stands(&s->file, &e))
        return;
    tell_page_lost(s, e.text);
    log_error("state page of sequences lost: a restart drops what is left of blocks",
              kv_str("file", s->file.path), kv_str("why", e.text));
}

static void done(struct supply *sup, int64_t mono, int64_t wall)
{
    struct sequences *s = of(sup);
    (void)wall;
    if (s->outcome.reply.now_ms > 0) {
        s->report.time_ms = s->outcome.reply.now_ms;
        s->report.time_mono = mono;
    }
    if (works[s->work].done)
        works[s->work].done(s, mono);
    look_at_page(s);
    if (s->runs)
        places_post(&s->blocks, &s->supply);
}

/* ---- the loop's side ------------------------------------------------------------------------- */

static void tell(struct supply *sup, const void *event)
{
    const struct sequences_event *e = event;
    struct places *p = &of(sup)->places;
    if (e->kind == SEQUENCES_OPEN)
        places_tell_open(p, e->counter, &e->of);
    else if (e->kind == SEQUENCES_WANT)
        places_tell_want(p, e->counter, &e->want);
    else
        places_tell_close(p, e->counter);
}

static void hear(struct supply *sup, int64_t mono)
{
    (void)mono;
    places_hear(&of(sup)->places, &of(sup)->defined);
}

static void stop(struct supply *sup, bool give_back, int64_t mono)
{
    struct sequences *s = of(sup);
    s->stopping = true;
    if (s->runs)
        blocks_stop(&s->blocks, give_back, mono);
}

static bool proven(const struct supply *sup)
{
    const struct sequences *s = (const struct sequences *)(const void *)sup;
    return !s->runs || blocks_are_proven(&s->blocks);
}

/* Who takes little would go by the time of hours ago, where this host was asleep meanwhile or the
 * coordinator's clock was set: renewals tell it too. */
static const void *report(struct supply *sup)
{
    struct sequences *s = of(sup);
    workers_time(s->o.workers, &s->report.time_ms, &s->report.time_mono);
    return &s->report;
}

static const struct supply_kind kind = {.tell = tell,
                                        .hear = hear,
                                        .stop = stop,
                                        .next = next,
                                        .call = make_call,
                                        .done = done,
                                        .proven = proven,
                                        .report = report,
                                        .report_size = sizeof(struct sequences_report)};

/* ---- life ------------------------------------------------------------------------------------ */

/* What cannot be taken over costs numbers, and no more: but for the lock, which nobody must share.
 */
static enum err_code find_area(struct sequences *s, int64_t mono, struct err *e)
{
    char owner[ERR_TEXT_MAX];
    struct blocks_action a;
    (void)snprintf(owner, sizeof owner, "%s|%s", s->o.coord_name, s->o.pool_name);
    enum err_code r =
        blockfile_open(&s->file, s->o.state_dir, owner, s->o.counters * BLOCKS_SLOTS, s->o.left, e);
    if (r == ERR_BUSY)
        return r;
    if (r)
        log_warn("state page of sequences not taken over", kv_str("why", e->text));
    if (s->file.found && s->file.verdict != PAGE_OWN)
        log_warn("state page of sequences set aside: what was left of blocks is dropped",
                 kv_str("file", s->file.path), kv_str("why", s->file.why.text));
    if (!s->file.page)
        return ERR_OK;
    if ((r = start_machine(s, mono, e)))
        return r;
    blockfile_looked_at(&s->file);
    places_found(&s->places, &s->blocks, &s->defined);
    s->report.time_ms = blocks_time(&s->blocks, mono);
    s->report.time_mono = mono;
    if (pool_is_another(s))
        lose(s, mono);
    else if (s->file.proven)
        prove(s, true, "the state page is as it was left");
    else if (s->file.in_memory)
        prove(s, false, "somebody has changed the file since, or put a copy in its place");
    blocks_next(&s->blocks, mono, &a); /* nothing is asked for yet: mails of what is proven */
    places_post(&s->blocks, &s->supply);
    return ERR_OK;
}

enum err_code sequences_new(const struct sequences_options *o, int64_t mono, struct sequences **out,
                            struct err *e)
{
    struct sequences *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(e, ERR_NOMEM, "no memory for sequences");
    s->supply.kind = &kind;
    s->supply.shared = &s->shared;
    s->o = *o;
    s->said.at = (struct recovery_place){o->coord_name, o->pool_name, o->password_file};
    s->o.clock = o->clock ? o->clock : clock_system();
    s->file.fd = -1;
    s->room_due = mono;
    period_sweep_init(&s->sweep, o->rng, mono);
    enum err_code r = places_init(&s->places, o->counters, e);
    if (!r)
        r = defined_init(&s->defined, o->define, o->ndefine, o->rng, mono, e);
    if (!r && o->state_dir)
        r = find_area(s, mono, e);
    if (r)
        sequences_free(s);
    else
        *out = s;
    return r;
}

struct supply *sequences_supply(struct sequences *s)
{
    return &s->supply;
}

const struct blocks_name *sequences_found(const struct sequences *s, uint32_t counter)
{
    return s->runs && s->blocks.counter[counter].open ? &s->blocks.counter[counter].of : NULL;
}

void sequences_forget(struct sequences *s, uint32_t counter)
{
    unsigned kept = 0;
    if (!sequences_found(s, counter))
        return;
    drop(s, blocks_left_of(&s->blocks, counter));
    blocks_forget(&s->blocks, counter);
    places_forget(&s->places, counter);
    for (unsigned i = 0; i < s->supply.nmail; i++)
        if (sequences_mail(&s->supply.mail[i]).counter != counter)
            s->supply.mail[kept++] = s->supply.mail[i];
    s->supply.nmail = kept;
}

struct blockfile_left sequences_leave(const struct sequences *s)
{
    return s->runs ? blockfile_leave(&s->file) : (struct blockfile_left){0};
}

void sequences_free(struct sequences *s)
{
    if (!s)
        return;
    blocks_clear(&s->blocks);
    blockfile_close(&s->file);
    defined_clear(&s->defined);
    places_clear(&s->places);
    free(s);
}
