/* Whether the file was set back: the tally in it (tally.h), beside what stands beside it. */
#include "coord/sqlite.h"

#include "base/int64.h"
#include "base/rng.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

/* ---- its rows -------------------------------------------------------------------------------- */

/* All 0 where there is none, or none that can be read: as old as a file can be. */
static void tally_get(struct sql *q, struct tally *out)
{
    sql_run(q, SQL_TALLY_MAKE); /* what was put back may be a file of before */
    sql_run(q, SQL_PAST_MAKE);
    sqlite3_stmt *st = sql_use(q, SQL_TALLY_GET);
    bool good = sql_step(q, st) && sql_number_at(st, 0, &out->tick) &&
                sql_number_at(st, 1, &out->turn) && sql_number_at(st, 2, &out->device) &&
                sql_text_at(st, 3, out->boot, sizeof out->boot);
    sql_done(st);
    if (!good)
        *out = (struct tally){.tick = 0};
    st = sql_use(q, SQL_PAST_GET);
    sql_bind_number(q, st, 1, out->tick);
    if (!sql_step(q, st) || !sql_number_at(st, 1, &out->changes) ||
        !sql_text_at(st, 2, out->inode, sizeof out->inode))
        out->inode[0] = '\0'; /* an earlier program was here since */
    sql_done(st);
}

/* Forgets the transactions before the latest SQLITE_PAST_MAX; but not the one of the highest name
 * beside the file, of which that tick is, nor those since. */
static void tally_set(struct sql *q, const struct tally *t, int64_t beside)
{
    sqlite3_stmt *st = sql_use(q, SQL_TALLY_SET);
    sql_bind_number(q, st, 1, t->tick);
    sql_bind_number(q, st, 2, t->turn);
    sql_bind_number(q, st, 3, t->device);
    sql_bind_text(q, st, 4, t->boot);
    sql_finish(q, st);
    st = sql_use(q, SQL_PAST_SET);
    sql_bind_number(q, st, 1, t->tick);
    sql_bind_number(q, st, 2, t->nonce);
    sql_bind_number(q, st, 3, t->changes);
    sql_bind_text(q, st, 4, t->inode);
    sql_finish(q, st);
    st = sql_use(q, SQL_PAST_DROP);
    sql_bind_number(q, st, 1, min64(t->tick - SQLITE_PAST_MAX, beside - 1));
    sql_bind_number(q, st, 2, t->tick);
    sql_finish(q, st);
}

/* Whether the file has the transaction of that number, and has not forgotten it. */
static bool tally_has(struct sql *q, int64_t tick, int64_t nonce)
{
    sqlite3_stmt *st = sql_use(q, SQL_PAST_GET);
    sql_bind_number(q, st, 1, tick);
    bool there = sql_step(q, st) && sqlite3_column_int64(st, 0) == nonce;
    sql_done(st);
    return there;
}

/* Whether it has none of that number, and would know it: it is not above its latest. */
static bool tally_lacks(struct sql *q, int64_t tick, int64_t nonce)
{
    sqlite3_stmt *st = sql_use(q, SQL_PAST_LACKS);
    sql_bind_number(q, st, 1, tick);
    sql_bind_number(q, st, 2, nonce);
    bool lacks = sql_step(q, st) && sqlite3_column_int64(st, 0) != 0;
    sql_done(st);
    return lacks;
}

/* ---- whether the file was set back ----------------------------------------------------------- */

/* The file has its tick, and another transaction of that tick. */
static bool is_lost(struct sqlite *f, const struct tally_name *name)
{
    return name->torn || (name->nonce > 0 && tally_lacks(&f->sql, name->tick, name->nonce));
}

/* What stands beside is looked at last: whoever left a name there since is known then, and what of
 * the file was put back since shows at the end. */
int sqlite_number(struct sqlite *f)
{
    struct tally t;
    struct tally_name beside;
    f->changes = sqlite_changes(&f->sql);
    tally_get(&f->sql, &t);
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
    tally_set(&f->sql, &t, beside.tick);
    (void)snprintf(f->fingerprint, sizeof f->fingerprint, "%s:%" PRIx64, f->place.inode,
                   (uint64_t)t.turn);
    f->own = (struct tally_name){.tick = t.tick, .nonce = nonce};
    return 0;
}

bool sqlite_stands(struct sqlite *f)
{
    struct place now;
    struct tally_name beside;
    sqlite_forget(&f->sql);
    sql_run(&f->sql, SQL_BEGIN_READ);
    bool there = tally_has(&f->sql, f->own.tick, f->own.nonce) &&
                 beside_look(&f->beside, f->path, &beside) == 0 && !beside.torn &&
                 (beside.nonce == 0 || tally_has(&f->sql, beside.tick, beside.nonce));
    sql_run(&f->sql, SQL_COMMIT);
    return there && place_find(f->path, &now) == 0 && place_same(&now, &f->place);
}
