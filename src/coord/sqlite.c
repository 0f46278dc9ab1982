/*
 * The coordinator in an SQLite file on this host: rules.c within transactions.
 *
 * Invariants
 *   - T is this host's clock, read when the transaction has its lock.
 *   - A file is made by init alone. Before each operation the path is compared with the file that
 *     is open (device and inode): one that was deleted, replaced or restored is seen as such.
 *   - The fingerprint is that device and inode and the time of the inode's birth, since inode
 *     numbers are used again. Another one reopens the pool. A file overwritten in place keeps all
 *     three: only a holder that knows more than the table then proves the rewind.
 *   - A transaction that has failed before COMMIT changed nothing; of one that failed in COMMIT
 *     that is not known.
 *
 * URL: sqlite:///PATH or sqlite:PATH, the path taken as it stands.
 */
#include "coord/outcome.h"
#include "coord/rules.h"
#include "coord/sole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#define BUSY     "%s: another sidecar makes the pool just now"
#define TICK_OPS 10000 /* virtual machine instructions between two looks at the deadline */

struct file {
    struct coord base;
    struct clock *clock;
    int64_t timeout_us;
    int64_t deadline_us; /* of the call that runs now; monotonic */
    struct store store;
    struct sole sole;
    char fingerprint[STORE_FINGERPRINT_MAX]; /* of the open file */
    char pool[COORD_POOL_NAME_MAX];
    char who[COORD_WHO_MAX];
    char path[PATH_MAX];
};

static struct file *file_of(struct coord *c)
{
    return (struct file *)(void *)c;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* 0 and the fingerprint of what is at the path now, or errno. */
static int identify(const struct file *f, char out[STORE_FINGERPRINT_MAX])
{
    struct statx st;
    if (statx(AT_FDCWD, f->path, 0, STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
        return errno;
    bool born = st.stx_mask & STATX_BTIME;
    (void)snprintf(out, STORE_FINGERPRINT_MAX, "%" PRIx64 ":%" PRIx64 ":%" PRIx64 ".%" PRIx32,
                   (uint64_t)makedev(st.stx_dev_major, st.stx_dev_minor), (uint64_t)st.stx_ino,
                   born ? (uint64_t)st.stx_btime.tv_sec : 0, born ? st.stx_btime.tv_nsec : 0);
    return 0;
}

static int past_deadline(void *arg)
{
    struct file *f = arg;
    return clock_mono_us(f->clock) > f->deadline_us;
}

/* What SQLite's failure comes to, and the end of the connection: the next call opens anew. */
static enum coord_status failed(struct file *f, bool committing, struct coord_reply *r)
{
    int primary = f->store.rc & 0xff;
    char why[sizeof f->store.why];
    memcpy(why, f->store.why, sizeof why);
    store_close(&f->store);
    if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED || primary == SQLITE_INTERRUPT)
        return outcome_down(r, ERR_TIMEOUT, "%s: expected a lock within %" PRId64 " ms, found %s",
                            f->path, f->timeout_us / 1000, why);
    if (committing)
        return outcome_down(r, ERR_IO, "%s: expected the transaction to be written, found %s",
                            f->path, why);
    return outcome_refused(r, "%s: expected a pool to work on, found %s", f->path, why);
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
    char before[STORE_FINGERPRINT_MAX] = "";
    int errnum = identify(f, before);
    if (errnum && !(create && errnum == ENOENT))
        return missing(f, errnum, r);
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
    errnum = identify(f, f->fingerprint);
    if (kind == STORE_EMPTY || errnum) {
        store_close(&f->store);
        return missing(f, errnum ? errnum : ENOENT, r);
    }
    if (*before && strcmp(before, f->fingerprint) != 0) {
        store_close(&f->store);
        return outcome_down(r, ERR_BUSY, "%s: expected one file, found it replaced just now",
                            f->path);
    }
    return COORD_OK;
}

/* SQLite says no more than "unable to open": the directory is what is wrong most often. */
static enum coord_status check_directory(struct file *f, struct coord_reply *r)
{
    char dir[PATH_MAX];
    struct stat st;
    const char *slash = strrchr(f->path, '/');
    size_t n = slash ? (size_t)(slash - f->path) + (slash == f->path) : 0;
    memcpy(dir, f->path, n);
    dir[n] = '\0';
    int errnum = stat(n ? dir : ".", &st) != 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (!errnum)
        return COORD_OK;
    return outcome_refused(r, "%s: expected a directory to make the pool's file in, found %s",
                           n ? dir : ".", strerror(errnum));
}

static enum coord_status ready(struct file *f, bool create, struct coord_reply *r)
{
    f->deadline_us = clock_mono_us(f->clock) + f->timeout_us;
    if (f->store.db) {
        char now[STORE_FINGERPRINT_MAX];
        if (identify(f, now) == 0 && strcmp(now, f->fingerprint) == 0)
            return COORD_OK;
        store_close(&f->store);
    }
    enum coord_status s = create ? check_directory(f, r) : COORD_OK;
    return s == COORD_OK ? open_file(f, create, r) : s;
}

/* ---- transactions --------------------------------------------------------------------------- */

enum kind {
    KIND_READ,
    KIND_WRITE,
    KIND_CREATE
};

/* COORD_OK: *u is ready for its operation, which must be followed by end(). */
static enum coord_status begin(struct file *f, enum kind kind, const char *identity,
                               struct rules *u, struct coord_reply *r)
{
    r->now_ms = clock_wall_ms(f->clock);
    enum coord_status s = ready(f, kind == KIND_CREATE, r);
    if (s != COORD_OK)
        return s;
    store_run(&f->store, kind == KIND_READ ? STORE_BEGIN_READ : STORE_BEGIN);
    if (f->store.rc != SQLITE_OK)
        return failed(f, false, r);
    r->now_ms = clock_wall_ms(f->clock);
    *u = (struct rules){
        .store = &f->store,
        .r = r,
        .name = f->pool,
        .identity = identity,
        .fingerprint = f->fingerprint,
        .now_ms = r->now_ms,
    };
    return COORD_OK;
}

static enum coord_status end(struct file *f, enum coord_status s, struct coord_reply *r)
{
    if (f->store.rc != SQLITE_OK)
        return failed(f, false, r);
    store_run(&f->store, STORE_COMMIT);
    return f->store.rc == SQLITE_OK ? s : failed(f, true, r);
}

/* The same for an operation that makes this process a holder, which it has to be first. */
static enum coord_status end_holding(struct file *f, enum coord_status s, struct coord_reply *r)
{
    int fault = s == COORD_OK && f->store.rc == SQLITE_OK ? sole_hold(&f->sole) : 0;
    if (fault == 0)
        return end(f, s, r);
    store_run(&f->store, STORE_ROLLBACK);
    if (fault == EWOULDBLOCK)
        return outcome_down(r, ERR_BUSY, BUSY, f->path);
    return outcome_refused(r,
                           "%s: expected a directory that this user may read, lock and leave "
                           ".sidflake-pool in, found: %s",
                           f->path, strerror(fault));
}

/* Waits for whoever makes the pool just now: for a transaction. */
static bool join(struct file *f)
{
    const struct timespec ms = {.tv_nsec = 1000000};
    int64_t until_us = clock_mono_us(f->clock) + f->timeout_us;
    while (!sole_join(&f->sole, f->path)) {
        if (clock_mono_us(f->clock) > until_us)
            return false;
        (void)nanosleep(&ms, NULL);
    }
    return true;
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

/* Nobody said that the ID space is fresh, and it may not be. */
static enum coord_status not_fresh(const struct file *f, enum sole_state is, struct coord_reply *r)
{
    if (is == SOLE_OTHERS)
        return outcome_refused(r,
                               "%s: expected to be alone where a pool is made, found another "
                               "sidecar that uses its directory: with coordinator.auto_init it "
                               "makes the pool again",
                               f->path);
    return outcome_refused(r,
                           "%s: expected a directory that nobody used before, found one that was, "
                           "or where that cannot be told: if it was not, make the pool with "
                           "`sidflakectl pool init --fresh`, else with --after-loss",
                           f->path);
}

static enum coord_status file_init(struct coord *c, const struct coord_init *in,
                                   struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    if (in->params.replicas > 0)
        return outcome_refused(r, "replicas: expected 0 of an SQLite file, found %" PRIu32,
                               in->params.replicas);
    if (in->unattended && in->mode == COORD_INIT_FRESH) {
        enum sole_state is = sole_look(&f->sole, f->path);
        if (is != SOLE_FIRST)
            return not_fresh(f, is, r);
    }
    enum coord_status s = begin(f, KIND_CREATE, in->identity, &u, r);
    if (s == COORD_OK)
        s = end(f, rules_init(&u, in), r);
    sole_yield(&f->sole);
    return s;
}

static enum coord_status file_claim(struct coord *c, const char *identity, int64_t caller_ms,
                                    struct coord_token nxt, struct coord_grant *out,
                                    struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    if (!join(f))
        return outcome_down(r, ERR_BUSY, BUSY, f->path);
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    if (s == COORD_OK)
        s = end_holding(f, rules_claim(&u, caller_ms, nxt, f->who, out), r);
    sole_yield(&f->sole);
    return s;
}

static enum coord_status file_renew(struct coord *c, const char *identity,
                                    struct coord_renewal *items, size_t n, struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    if (!join(f))
        return outcome_down(r, ERR_BUSY, BUSY, f->path);
    (void)sole_hold(&f->sole); /* who renews has workerIds, and may go on whatever the answer is */
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    if (s == COORD_OK)
        s = end(f, rules_renew(&u, items, n), r);
    sole_yield(&f->sole);
    return s;
}

static enum coord_status file_release(struct coord *c, const char *identity,
                                      const struct coord_release *item, struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(f, rules_release(&u, item), r) : s;
}

static enum coord_status file_evict(struct coord *c, const char *identity, uint16_t worker,
                                    struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(f, rules_evict(&u, worker), r) : s;
}

static enum coord_status file_close(struct coord *c, const char *identity, struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(f, rules_close(&u), r) : s;
}

static enum coord_status file_repair(struct coord *c, const char *identity, const uint16_t *workers,
                                     size_t n, struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_WRITE, identity, &u, r);
    return s == COORD_OK ? end(f, rules_repair(&u, workers, n), r) : s;
}

static enum coord_status file_snapshot(struct coord *c, struct coord_snapshot *out,
                                       struct coord_reply *r)
{
    struct file *f = file_of(c);
    struct rules u;
    enum coord_status s = begin(f, KIND_READ, NULL, &u, r);
    return s == COORD_OK ? end(f, rules_snapshot(&u, out), r) : s;
}

/* ---- life ----------------------------------------------------------------------------------- */

static void file_idle(struct coord *c)
{
    store_close(&file_of(c)->store);
}

static void file_free(struct coord *c)
{
    file_idle(c);
    sole_end(&file_of(c)->sole);
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
    f->sole = SOLE_INIT;
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
    .repair = file_repair,
    .snapshot = file_snapshot,
};
