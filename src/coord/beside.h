/*
 * What stands beside an SQLite pool's file: who uses it (sole.h) and how far it is (tally.h), by
 * each name that it has.
 *
 * SQLite follows a symbolic link at the path. So one may come by the link and another by the file,
 * and both must find what the other left:
 *
 *     links/pool.db ──> data/pool.db       links/.pool.db-tally.105
 *                                           data/.pool.db-tally.105
 *
 * The link's name is not given up for the file's: where a link leads to another file and back, only
 * what stands beside the link tells that the first file is older than what was answered.
 *
 * Invariants
 *   - All is done at both names, and what counts is the highest tick, or the first failure.
 *   - Links are followed anew with each call. Who is a holder is one at the new name before it
 *     leaves the old one.
 *   - A link in the middle of a chain of links has no name of its own here; hard links have none at
 *     all, and SQLite has a -wal for each of them.
 *
 * Functions return 0, or an error of errno(3). path: of the pool's file, the same in all calls.
 */
#ifndef SIDFLAKE_COORD_BESIDE_H
#define SIDFLAKE_COORD_BESIDE_H

#include "coord/sole.h"
#include "coord/tally.h"

#define BESIDE_NAMES 2 /* the path, and what links there lead to */

struct beside {
    char real[PATH_MAX]; /* where links at the path led; "": there was none */
    struct sole sole[BESIDE_NAMES];
    int dir[BESIDE_NAMES]; /* of the names when the tally was looked at, the soles'; -1: none */
};

void beside_init(struct beside *b);

/* Whether somebody is the first there: of a link that cannot be told. */
enum sole_state beside_first(struct beside *b, const char *path);

/* sole_hold at each name. */
int beside_hold(struct beside *b, const char *path);

/* *latest: of all that stands beside any name. */
int beside_look(struct beside *b, const char *path, struct tally_name *latest);

/* Leaves a name where beside_look was. */
int beside_leave(const struct beside *b, const char *path, int64_t tick, int64_t nonce);

/* At the end. */
void beside_end(struct beside *b);

#endif
