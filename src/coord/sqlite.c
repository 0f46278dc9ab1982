/* The driver of SQLite pools: what is SQLite's alone of an operation; the rest is transact.c's. */
#include "coord/sqlite.h"
#include "base/buf.h"
#include "base/timefmt.h"
#include "coord/advice.h"
#include "coord/outcome.h"
#include "coord/transact.h"
#include "coord/transact_sequences.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct file {
    struct transact transact; /* first */
    struct sqlite sqlite;
};

static struct sqlite *sqlite_in(struct coord *c)
{
    return &((struct file *)(void *)c)->sqlite;
}

/* ---- who is the first ------------------------------------------------------------------------ */

/* With the command for a shell, whole or not at all. */
static enum coord_status used_before(const struct sqlite *f, const struct coord_init *in,
                                     struct coord_reply *r)
{
    char url[PATH_MAX + 16], epoch[TIMEFMT_MAX], command[448];
    struct layout layout;
    int64_t epoch_ms;
    struct buf b;
    buf_init(&b, command, sizeof command - 1);
    (void)snprintf(url, sizeof url, "sqlite:%s", f->path);
    advice_put_tool(&b, url);
    BUF_PUT_LIT(&b, " pool init --coordinator ");
    advice_put_url(&b, url);
    BUF_PUT_LIT(&b, " --pool ");
    buf_put_word(&b, f->pool);
    if (coord_identity_read(in->identity, &epoch_ms, &layout, NULL) == ERR_OK) {
        BUF_PUT_LIT(&b, " --epoch ");
        buf_put_str(&b, timefmt_rfc3339(epoch, epoch_ms));
        advice_put_layout(&b, &layout);
    }
    advice_put_fresh(&b, url);
    command[b.n] = '\0';
    bool whole = !b.failed && advice_may_be_logged(f->path) && advice_may_be_logged(f->pool);
    return outcome_refused(r,
                           "%.64s: expected a path that nobody used before, found one that was, or "
                           "where that cannot be told: if it was not, make the pool with `%s`, "
                           "else with the command in the log of a sidecar that used it",
                           f->path, whole ? command : "sidflakectl pool init");
}

enum coord_status sqlite_vouch(struct store *s, const struct coord_init *in, struct coord_reply *r)
{
    struct sqlite *f = sqlite_of(s);
    if (!in->unattended || in->mode != COORD_INIT_FRESH)
        return COORD_OK;
    switch (beside_first(&f->beside, f->path)) {
    case SOLE_FIRST:
        return COORD_OK;
    case SOLE_OTHERS:
        return outcome_refused(
            r,
            "%s: expected to be alone where a pool is made, found another "
            "sidecar that uses this file: if \"%s\" is its pool, too, its log has "
            "the command that makes that again, and with coordinator.auto_init "
            "it does so itself; if not, see pool init in sidflakectl(1)",
            f->path, f->pool);
    default:
        return used_before(f, in, r);
    }
}

/* ---- the operations ------------------------------------------------------------------------- */

/* Who is the first is asked before a file is made, and again with it locked (store_ops.vouch):
 * whoever has become a holder in between is seen then, and whoever does so later comes to this file
 * (sole.h). Who comes second is told that there is a pool, if there is. */
static enum coord_status file_init(struct coord *c, const struct coord_init *in,
                                   struct coord_reply *r)
{
    struct sqlite *f = sqlite_in(c);
    if (in->params.replicas > 0)
        return outcome_refused(r, "replicas: expected 0 of an SQLite file, found %" PRIu32,
                               in->params.replicas);
    enum coord_status s = access(f->path, F_OK) == 0 ? COORD_OK : sqlite_vouch(&f->store, in, r);
    return s == COORD_OK ? transact_new(c, in, r) : s;
}

static enum coord_status file_claim(struct coord *c, const char *identity, int64_t caller_ms,
                                    struct coord_token nxt, struct coord_grant *out,
                                    struct coord_reply *r)
{
    struct sqlite *f = sqlite_in(c);
    int fault = beside_hold(&f->beside, f->path); /* before it is known which file is there */
    if (fault == ENOENT)
        return outcome_nopool(r, f->pool);
    if (fault)
        return outcome_refused(r,
                               "%s: expected a directory that this user may read, lock and leave "
                               "files in, found: %s",
                               f->path, strerror(fault));
    return transact_claim(c, identity, caller_ms, nxt, out, r);
}

static enum coord_status file_renew(struct coord *c, const char *identity,
                                    const struct coord_caller *by, struct coord_renewal *items,
                                    size_t n, struct coord_terms *terms, struct coord_reply *r)
{
    struct sqlite *f = sqlite_in(c);
    /* who renews has workerIds, and may go on whatever the answer is */
    (void)beside_hold(&f->beside, f->path);
    return transact_renew(c, identity, by, items, n, terms, r);
}

static enum coord_status file_writes(struct coord *c, struct coord_reply *r)
{
    struct sqlite *f = sqlite_in(c);
    f->deadline_us = clock_mono_us(f->clock) + f->timeout_us;
    return sqlite_writes(f, r);
}

/* ---- life ----------------------------------------------------------------------------------- */

static void file_idle(struct coord *c)
{
    sql_close(&sqlite_in(c)->sql);
}

static void file_free(struct coord *c)
{
    file_idle(c);
    beside_end(&sqlite_in(c)->beside);
    free(c);
}

/* A relative path is led by "./": SQLite gives ":memory:" and the like a meaning of their own. */
static enum err_code set_path(struct sqlite *f, struct span url, struct err *e)
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
    struct file *file = calloc(1, sizeof *file);
    if (!file)
        return err_set(e, ERR_NOMEM, "no memory for a coordinator");
    struct sqlite *f = &file->sqlite;
    enum err_code code = set_path(f, o->url, e);
    if (code) {
        free(file);
        return code;
    }
    transact_init(&file->transact, &coord_sqlite, &f->store, o);
    f->store.ops = &sqlite_ops;
    f->clock = o->clock;
    f->timeout_us = o->timeout_us;
    f->pool = file->transact.pool;
    f->answered = TALLY_NAME_NONE;
    beside_init(&f->beside);
    place_boot(f->boot);
    *out = &file->transact.base;
    return ERR_OK;
}

static const char *const schemes[] = {"sqlite", NULL};

const struct coord_driver coord_sqlite = {
    .schemes = schemes,
    .forms = "sqlite:///PATH",
    .open = file_open,
    .free = file_free,
    .idle = file_idle,
    .writes = file_writes,
    .describe = transact_describe,
    .init = file_init,
    .claim = file_claim,
    .renew = file_renew,
    .release = transact_release,
    .evict = transact_evict,
    .close = transact_close,
    .unclose = transact_unclose,
    .repair = transact_repair,
    .settle = transact_settle,
    .nothing_lost = transact_nothing_lost,
    .clock_was_ahead = transact_clock_was_ahead,
    .snapshot = transact_snapshot,
    .sequences = &transact_sequences,
};
