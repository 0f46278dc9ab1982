/*
 * The coordinator in an SQLite file on this host: rules.c within transactions.
 *
 * Invariants
 *   - T is this host's clock, read when the transaction has its lock.
 *   - A file is made by init alone. Before each operation the path is compared with the file that
 *     is open (device and inode): one that was deleted, replaced or restored is seen as such.
 *   - The fingerprint is that inode, the time of its birth, since inode numbers are used again, and
 *     the turn of the tally, since a file set back in place keeps both. Another one reopens the
 *     pool. The device's number is good for one boot only, so the tally has it.
 *   - A transaction is answered when its tick stands beside the file (tally.h, beside.h).
 *   - What somebody else keeps in WAL mode is not used: a file put back would not show.
 *   - A transaction that has failed before COMMIT changed nothing; of one that failed in COMMIT
 *     that is not known.
 *
 * URL: sqlite:///PATH or sqlite:PATH, the path taken as it stands.
 */
#include "base/buf.h"
#include "base/file.h"
#include "base/int64.h"
#include "base/rng.h"
#include "base/timefmt.h"
#include "coord/advice.h"
#include "coord/beside.h"
#include "coord/outcome.h"
#include "coord/place.h"
#include "coord/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPLACED "%s: expected one file, found it replaced just now"
#define TICK_OPS 10000 /* virtual machine instructions between two looks at the deadline */

struct file {
    struct coord base;
    struct clock *clock;
    int64_t timeout_us;
    int64_t deadline_us; /* of the call that runs now; monotonic */
    struct store store;
    struct beside beside;
    struct place place; /* of the open file, or of the one before */
    char fingerprint[STORE_FINGERPRINT_MAX];
    char boot[TALLY_BOOT_MAX];  /* "": not known */
    struct tally_name answered; /* the latest in that file that this process was answered */
    struct tally_name own;      /* of the transaction that runs; tick 0: it tells nobody anything */
    uint32_t changes;           /* by SQLite's count, before it */
    char pool[COORD_POOL_NAME_MAX];
    char who[COORD_WHO_MAX];
    char path[PATH_MAX];
};

static struct file *file_of(struct coord *c)
{
    return (struct file *)(void *)c;
}

/* ---- the file ------------------------------------------------------------------------------- */

static int past_deadline(void *arg)
{
    struct file *f = arg;
    return clock_mono_us(f->clock) > f->deadline_us;
}

/* SQLite has the same words for a file, a directory and a file system that cannot be written to. */
static int no_writing(const struct file *f)
{
    char dir[PATH_MAX];
    sole_directory(f->path, dir);
    return access(f->path, W_OK) != 0 || access(dir, W_OK) != 0 ? errno : 0;
}

/* What SQLite's failure comes to, and the end of the connection: the next call opens anew. */
static enum coord_status failed(struct file *f, bool committing, struct coord_reply *r)
{
    int rc = f->store.rc, primary = rc & 0xff;
    char why[sizeof f->store.why];
    memcpy(why, f->store.why, sizeof why);
    store_close(&f->store);
    if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_INTERRUPT)
        return outcome_down(r, ERR_TIMEOUT,
                            "%s: expected a lock within %" PRId64
                            " ms, found %s: lslocks(8) tells by whom",
                            f->path, f->timeout_us / 1000, why);
    if (rc == SQLITE_READONLY_DBMOVED)
        return outcome_down(r, ERR_BUSY, REPLACED, f->path);
    if (primary == SQLITE_CORRUPT)
        return outcome_refused(r,
                               "%s: expected a sound file, found %s: remove it, and nothing beside "
                               "it, and make the pool again by the command in the log of a sidecar "
                               "that used it",
                               f->path, why);
    if (committing)
        return outcome_down(r, ERR_IO, "%s: expected the transaction to be written, found %s",
                            f->path, why);
    int errnum = primary == SQLITE_READONLY ? no_writing(f) : 0;
    return outcome_refused(r, "%s: expected a pool to work on, found %s%s%s", f->path, why,
                           errnum ? ": " : "", errnum ? strerror(errnum) : "");
}

static enum coord_status missing(struct file *f, int errnum, struct coord_reply *r)
{
    if (errnum == ENOENT)
        return outcome_nopool(r, f->pool);
    return outcome_refused(r, "%s: expected a file, found %s", f->path, strerror(errnum));
}

static int connect_file(struct file *f, bool create)
{
    struct store *s = &f->store;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    int64_t ms = f->timeout_us / 1000;
    int rc = sqlite3_open_v2(f->path, &s->db, flags, NULL);
    if (rc == SQLITE_OK) {
        (void)sqlite3_extended_result_codes(s->db, 1);
        (void)sqlite3_busy_timeout(s->db, ms > INT_MAX ? INT_MAX : (int)ms);
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)NULL);
        sqlite3_progress_handler(s->db, TICK_OPS, past_deadline, f);
    }
    store_fail(s, rc);
    return rc;
}

/* COORD_OK: open, and the file at the path is the one that was opened. */
static enum coord_status open_file(struct file *f, bool create, struct coord_reply *r)
{
    struct place before = {.inode = ""}, after;
    int errnum = place_find(f->path, &before);
    if (errnum && !(create && errnum == ENOENT))
        return missing(f, errnum, r);
    if (errnum)
        place_make(f->path);
    if (connect_file(f, create) != SQLITE_OK)
        return failed(f, false, r);
    enum store_kind kind = store_prepare(&f->store, create);
    if (kind == STORE_BROKEN)
        return failed(f, false, r);
    if (kind == STORE_FOREIGN) {
        enum coord_status s = outcome_refused(r, "%s: %s", f->path, f->store.why);
        store_close(&f->store);
        return s;
    }
    errnum = place_find(f->path, &after);
    if (kind == STORE_EMPTY || errnum) {
        store_close(&f->store);
        return missing(f, errnum ? errnum : ENOENT, r);
    }
    if (before.inode[0] && !place_same(&before, &after)) {
        store_close(&f->store);
        return outcome_down(r, ERR_BUSY, REPLACED, f->path);
    }
    if (!place_same(&f->place, &after))
        f->answered = TALLY_NAME_NONE;
    f->place = after;
    return COORD_OK;
}

static enum coord_status ready(struct file *f, bool create, struct coord_reply *r)
{
    f->deadline_us = clock_mono_us(f->clock) + f->timeout_us;
    enum coord_status s = place_check(f->path, create, r);
    if (s != COORD_OK)
        return s;
    if (f->store.db) {
        struct place now;
        if (place_find(f->path, &now) == 0 && place_same(&now, &f->place))
            return COORD_OK;
        store_close(&f->store);
    }
    return open_file(f, create, r);
}

/* ---- transactions --------------------------------------------------------------------------- */

enum kind {
    KIND_READ,
    KIND_WRITE,
    KIND_CREATE
};

/* The file has its tick, and another transaction of that tick. */
static bool is_lost(struct file *f, const struct tally_name *name)
{
    return name->torn || (name->nonce > 0 && store_tally_lacks(&f->store, name->tick, name->nonce));
}

/* Numbers the transaction, and knows by that whether the file was set back. 0, or errno. What
 * stands beside is looked at last: whoever left a name there since is known then, and what of the
 * file was put back since shows at the end. */
static int number(struct file *f)
{
    struct tally t;
    struct tally_name beside;
    f->changes = store_changes(&f->store);
    store_tally_get(&f->store, &t);
    int why = beside_look(&f->beside, f->path, &beside);
    int64_t known = max64(beside.tick, f->answered.tick);
    if (why || max64(known, t.tick) >= TALLY_TICK_MAX)
        return why ? why : EOVERFLOW;
    int64_t nonce = (int64_t)(rng_u64(rng_system()) >> 11 | 1);
    bool again = f->answered.tick < t.turn; /* what was lost with it may have been seen then */
    struct tally_now now = {.lost = is_lost(f, &beside) || (!again && is_lost(f, &f->answered)),
                            .device = f->place.device,
                            .boot = f->boot,
                            .inode = f->place.inode,
                            .nonce = nonce,
                            .changes = f->changes};
    tally_next(&t, known, &now);
    store_tally_set(&f->store, &t, beside.tick);
    (void)snprintf(f->fingerprint, sizeof f->fingerprint, "%s:%" PRIx64, f->place.inode,
                   (uint64_t)t.turn);
    f->own = (struct tally_name){.tick = t.tick, .nonce = nonce};
    return 0;
}

/* What it tells to do leaves a name, by which a path that was used is not taken for new. */
static enum coord_status unnumbered(struct file *f, int why, struct coord_reply *r)
{
    const char *name = strrchr(f->path, '/') + 1;
    store_close(&f->store);
    if (why != EOVERFLOW)
        return outcome_down(r, ERR_IO, "%s: expected a directory to list, found %s", f->path,
                            strerror(why));
    return outcome_refused(r,
                           "%s: expected fewer than 10^15 transactions, found a name beside it, or "
                           "the file, that says so many: make a file .%s-tally.0, remove %s and "
                           "all other names that begin with .%s-tally, and make the pool again by "
                           "the command in the log of a sidecar that used it",
                           f->path, name, name, name);
}

/* What was put in the place of such a file does not show, and neither its tally. */
static enum coord_status kept_in_wal(struct file *f, struct coord_reply *r)
{
    store_close(&f->store);
    return outcome_down(
        r, ERR_BUSY,
        "%s: expected a file with a journal, found one that another program (a "
        "shell, a replicator, an earlier build) keeps in WAL mode: nothing is read or "
        "written until that closes it",
        f->path);
}

/* COORD_OK: *u is ready for its operation, which must be followed by end(). */
static enum coord_status begin(struct file *f, enum kind kind, const char *identity,
                               struct rules *u, struct coord_reply *r)
{
    r->now_ms = clock_wall_ms(f->clock);
    enum coord_status s = ready(f, kind == KIND_CREATE, r);
    if (s != COORD_OK)
        return s;
    store_forget(&f->store); /* another file of as many changes may have been put there since */
    store_run(&f->store, kind == KIND_READ ? STORE_BEGIN_READ : STORE_BEGIN);
    if (f->store.rc != SQLITE_OK)
        return failed(f, false, r);
    if (!store_has_journal(&f->store) && f->store.rc == SQLITE_OK)
        return kept_in_wal(f, r);
    f->own.tick = 0;
    int fault = kind == KIND_READ ? 0 : number(f);
    if (fault)
        return unnumbered(f, fault, r);
    r->now_ms = clock_wall_ms(f->clock);
    *u = (struct rules){
        .store = &f->store,
        .r = r,
        .name = f->pool,
        .identity = identity,
        .who = f->who,
        .fingerprint = f->fingerprint,
        .now_ms = r->now_ms,
        .caller_ms = r->now_ms,
    };
    return COORD_OK;
}

/* What was committed is still in the file, of which it now shows beside if it is set back; and what
 * shows there is in the file, whose lock keeps it as it is. */
static bool stands(struct file *f)
{
    struct place now;
    struct tally_name beside;
    store_forget(&f->store);
    store_run(&f->store, STORE_BEGIN_READ);
    bool there = store_tally_has(&f->store, f->own.tick, f->own.nonce) &&
                 beside_look(&f->beside, f->path, &beside) == 0 && !beside.torn &&
                 (beside.nonce == 0 || store_tally_has(&f->store, beside.tick, beside.nonce));
    store_run(&f->store, STORE_COMMIT);
    return there && place_find(f->path, &now) == 0 && place_same(&now, &f->place);
}

static enum coord_status set_back(struct file *f, struct coord_reply *r)
{
    store_close(&f->store);
    return outcome_down(r, ERR_BUSY,
                        "%s: expected to find there what was written, found it set back, or "
                        "written to %d times since",
                        f->path, STORE_PAST_MAX);
}

static enum coord_status end(struct file *f, enum coord_status s, struct coord_reply *r)
{
    /* What was read of two states, one put there since it began, would be written as one. */
    bool as_begun = f->own.tick == 0 || store_changes(&f->store) == f->changes;
    if (f->store.rc != SQLITE_OK)
        return failed(f, false, r);
    if (!as_begun)
        return set_back(f, r);
    store_run(&f->store, STORE_COMMIT);
    if (f->store.rc != SQLITE_OK)
        return failed(f, true, r);
    if (f->own.tick == 0)
        return s;
    int fault = beside_leave(&f->beside, f->path, f->own.tick, f->own.nonce);
    if (fault) {
        store_close(&f->store);
        return outcome_down(r, ERR_IO, "%s: expected a directory to leave a file in, found %s",
                            f->path, strerror(fault));
    }
    bool there = stands(f);
    if (f->store.rc != SQLITE_OK)
        return failed(f, true, r);
    if (!there)
        return set_back(f, r);
    f->answered = f->own;
    return s;
}

/* ---- the operations ------------------------------------------------------------------------- */

static enum coord_status file_describe(struct coord *c, struct coord_pool *pool,
                                       struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_READ, NULL, &u, r);
    return s == COORD_OK ? end(f, rules_describe(&u, pool), r) : s;
}

/* With the command for a shell, whole or not at all. */
static enum coord_status used_before(const struct file *f, const struct coord_init *in,
                                     struct coord_reply *r)
{
    char url[PATH_MAX + 16], epoch[TIMEFMT_MAX], command[448];
    int64_t epoch_ms;
    struct buf b;
    buf_init(&b, command, sizeof command - 1);
    (void)snprintf(url, sizeof url, "sqlite:%s", f->path);
    advice_put_tool(&b, url);
    BUF_PUT_LIT(&b, " pool init --coordinator ");
    advice_put_url(&b, url);
    BUF_PUT_LIT(&b, " --pool ");
    buf_put_word(&b, f->pool);
    BUF_PUT_LIT(&b, " --epoch ");
    if (coord_identity_epoch(in->identity, &epoch_ms, NULL) == ERR_OK)
        buf_put_str(&b, timefmt_rfc3339(epoch, epoch_ms));
    BUF_PUT_LIT(&b, " --fresh");
    command[b.n] = '\0';
    return outcome_refused(r,
                           "%.64s: expected a path that nobody used before, found one that was, or "
                           "where that cannot be told: if it was not, make the pool with `%s`, "
                           "else with the command in the log of a sidecar that used it",
                           f->path, b.failed ? "sidflakectl pool init" : command);
}

/* Unless somebody said that the ID space is fresh, nobody may have used it. */
static enum coord_status check_fresh(struct file *f, const struct coord_init *in,
                                     struct coord_reply *r)
{
    if (!in->unattended || in->mode != COORD_INIT_FRESH)
        return COORD_OK;
    switch (beside_first(&f->beside, f->path)) {
    case SOLE_FIRST:
        return COORD_OK;
    case SOLE_OTHERS:
        return outcome_refused(r,
                               "%s: expected to be alone where a pool is made, found another "
                               "sidecar that uses this file: its log has the command that makes "
                               "the pool again, and with coordinator.auto_init it does so itself",
                               f->path);
    default:
        return used_before(f, in, r);
    }
}

/* Who is the first is asked before a file is made, and again with it locked: whoever has become a
 * holder in between is seen then, and whoever does so later comes to this file (sole.h). Who comes
 * second is told that there is a pool, if there is. */
static enum coord_status file_init(struct coord *c, const struct coord_init *in,
                                   struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    if (in->params.replicas > 0)
        return outcome_refused(r, "replicas: expected 0 of an SQLite file, found %" PRIu32,
                               in->params.replicas);
    enum coord_status s = access(f->path, F_OK) == 0 ? COORD_OK : check_fresh(f, in, r);
    if (s == COORD_OK)
        s = begin(f, KIND_CREATE, in->identity, &u, r);
    if (s != COORD_OK)
        return s;
    s = rules_init(&u, in);
    if (s != COORD_OK || (s = check_fresh(f, in, r)) == COORD_OK)
        return end(f, s, r);
    store_run(&f->store, STORE_ROLLBACK);
    return s;
}

static enum coord_status file_claim(struct coord *c, const char *identity, int64_t caller_ms,
                                    struct coord_token nxt, struct coord_grant *out,
                                    struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    int fault = beside_hold(&f->beside, f->path); /* before it is known which file is there */
    if (fault == ENOENT)
        return outcome_nopool(r, f->pool);
    if (fault)
        return outcome_refused(r,
                               "%s: expected a directory that this user may read, lock and leave "
                               "files in, found: %s",
                               f->path, strerror(fault));
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    u.caller_ms = caller_ms;
    return s == COORD_OK ? end(f, rules_claim(&u, nxt, out), r) : s;
}

static enum coord_status file_renew(struct coord *c, const char *identity,
                                    const struct coord_caller *by, struct coord_renewal *items,
                                    size_t n, struct coord_terms *terms, struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    /* who renews has workerIds, and may go on whatever the answer is */
    (void)beside_hold(&f->beside, f->path);
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    u.caller_ms = by->now_ms;
    return s == COORD_OK ? end(f, rules_renew(&u, by, items, n, terms), r) : s;
}

static enum coord_status file_release(struct coord *c, const char *identity,
                                      const struct coord_release *item, struct coord_reply *r)
{
    struct rules u;
    enum coord_status s = begin(file_of(c), KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(file_of(c), rules_release(&u, item), r) : s;
}

static enum coord_status file_evict(struct coord *c, const char *identity, uint16_t worker,
                                    struct coord_reply *r)
{
    struct rules u;
    enum coord_status s = begin(file_of(c), KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(file_of(c), rules_evict(&u, worker), r) : s;
}

static enum coord_status file_close(struct coord *c, const char *identity, bool moved,
                                    struct coord_reply *r)
{
    struct rules u;
    enum coord_status s = begin(file_of(c), KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(file_of(c), rules_close(&u, moved), r) : s;
}

static enum coord_status file_unclose(struct coord *c, const char *identity, bool back,
                                      struct coord_reply *r)
{
    struct rules u;
    enum coord_status s = begin(file_of(c), KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(file_of(c), rules_unclose(&u, back), r) : s;
}

static enum coord_status file_repair(struct coord *c, const char *identity, const uint16_t *workers,
                                     size_t n, struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(f, rules_repair(&u, workers, n), r) : s;
}

static enum coord_status file_settle(struct coord *c, const char *identity, int64_t settle_ms,
                                     struct coord_reply *r)
{
    struct rules u;
    enum coord_status s = begin(file_of(c), KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(file_of(c), rules_settle(&u, settle_ms), r) : s;
}

static enum coord_status file_nothing_lost(struct coord *c, const char *identity,
                                           struct coord_reply *r)
{
    struct rules u;
    enum coord_status s = begin(file_of(c), KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(file_of(c), rules_nothing_lost(&u), r) : s;
}

static enum coord_status file_snapshot(struct coord *c, struct coord_snapshot *out,
                                       struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_READ, NULL, &u, r);
    if (s != COORD_OK)
        return s;
    store_check(&f->store);
    return end(f, rules_snapshot(&u, out), r);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void file_idle(struct coord *c)
{
    store_close(&file_of(c)->store);
}

static void file_free(struct coord *c)
{
    file_idle(c);
    beside_end(&file_of(c)->beside);
    free(file_of(c));
}

/* A relative path is led by "./": SQLite gives ":memory:" and the like a meaning of their own. */
static enum err_code set_path(struct file *f, struct span url, struct err *e)
{
    struct span path = span_skip(url, sizeof "sqlite:" - 1);
    if (span_starts(path, SPAN("//")))
        path = span_skip(path, 2);
    bool rooted = path.n > 0 && path.p[0] == '/';
    bool marked = span_starts(span_skip(url, sizeof "sqlite:" - 1), SPAN("//"));
    if (path.n == 0 || (marked && !rooted) || path.p[path.n - 1] == '/')
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected sqlite:///PATH or sqlite:PATH of a file, found "
                       "\"%.*s\"",
                       (int)(url.n < 128 ? url.n : 128), url.p);
    if (path.n > sizeof f->path - 16)
        return err_set(e, ERR_RANGE,
                       "coordinator url: expected a path of at most %zu bytes, "
                       "found %zu",
                       sizeof f->path - 16, path.n);
    (void)snprintf(f->path, sizeof f->path, "%s%.*s", rooted ? "" : "./", (int)path.n, path.p);
    size_t name = strlen(strrchr(f->path, '/') + 1);
    if (name > TALLY_NAME_MAX)
        return err_set(e, ERR_RANGE,
                       "coordinator url: expected a file name of at most %d bytes, found %zu",
                       TALLY_NAME_MAX, name);
    return ERR_OK;
}

static enum err_code file_open(const struct coord_options *o, struct coord **out, struct err *e)
{
    struct file *f = calloc(1, sizeof *f);
    if (!f)
        return err_set(e, ERR_NOMEM, "no memory for a coordinator");
    enum err_code code = set_path(f, o->url, e);
    if (code) {
        free(f);
        return code;
    }
    f->base.driver = &coord_sqlite;
    beside_init(&f->beside);
    f->answered = TALLY_NAME_NONE;
    place_boot(f->boot);
    f->clock = o->clock;
    f->timeout_us = o->timeout_us;
    memcpy(f->pool, o->pool.p, o->pool.n);
    if (o->who.n > 0)
        memcpy(f->who, o->who.p, o->who.n);
    *out = &f->base;
    return ERR_OK;
}

static const char *const schemes[] = {"sqlite", NULL};

const struct coord_driver coord_sqlite = {
    .schemes = schemes,
    .open = file_open,
    .free = file_free,
    .idle = file_idle,
    .describe = file_describe,
    .init = file_init,
    .claim = file_claim,
    .renew = file_renew,
    .release = file_release,
    .evict = file_evict,
    .close = file_close,
    .unclose = file_unclose,
    .repair = file_repair,
    .settle = file_settle,
    .nothing_lost = file_nothing_lost,
    .snapshot = file_snapshot,
};
