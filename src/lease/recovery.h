/*
 * The command that makes a lost pool again, as operators are told it.
 *
 * Invariants
 *   - It carries all that the lost pool was: uuid, epoch, workerIds, times, replicas, settle. The
 *     pool made with a part left out could hand out workerIds of another range, or too early.
 *   - It is told whole or not at all, and not where a log would show it with escapes.
 *   - Where the parameters are not known it carries none: `pool init --after-loss` asks for the
 *     range and, without a horizon, waits as long as any pool can have granted ahead.
 *   - Where no pool was known it carries the epoch of the configuration, if that names one.
 */
#ifndef SIDFLAKE_LEASE_RECOVERY_H
#define SIDFLAKE_LEASE_RECOVERY_H

#include "base/buf.h"
#include "lease/lease.h"

/* What the command is to name beside what the pool was. */
struct recovery_place {
    const char *url; /* of the coordinator, without secrets */
    const char *pool;
    const char *password_file; /* NULL or "": there is no password */
};

/* "sidflakectl pool init ...", for a shell. b is failed where it does not fit. */
void recovery_put_command(struct buf *b, const struct lease *l, const struct recovery_place *at);

/* " --uuid ... --epoch ... --workers ...", all that a pool which is there was made with or has
 * learnt since, to make it elsewhere; the settle is the one that counts at now_ms, coordinator's
 * time. b is failed, too, where its clock was ahead by more than --ahead can say. */
void recovery_put_pool(struct buf *b, const struct coord_pool *p, int64_t now_ms);

/* " --coordinator ... --pool ...", for a shell, behind any command for a pool; likewise. */
void recovery_put_place(struct buf *b, const struct recovery_place *at);

/* "sidflakectl WHAT --coordinator ...", likewise, by the user who can (coord/advice.h). */
void recovery_put_tool(struct buf *b, const char *what, const struct recovery_place *at);

/* "sidflakectl pool reopen --nothing-lost ...", likewise: without pool and coordinator it would be
 * taken by another pool. */
void recovery_put_word(struct buf *b, const struct recovery_place *at);

#endif
