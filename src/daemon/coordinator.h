/*
 * The coordinator that a configuration names.
 */
#ifndef SIDFLAKE_DAEMON_COORDINATOR_H
#define SIDFLAKE_DAEMON_COORDINATOR_H

#include "conf/address.h"
#include "conf/conf.h"
#include "coord/coord.h"
#include "daemon/heir.h"

/* As coord_open: connects to nothing. who: JSON about this holder; "": none. Reads the password's
 * file, as h does; NULL: nobody was before. */
enum err_code coordinator_open(const struct conf *c, const char *who, const struct heir *h,
                               struct coord **out, struct err *e) MUST_CHECK;

/* Whether its driver could read the URL, for conf_judges. */
enum err_code coordinator_judge(struct span url, struct err *e) MUST_CHECK;

/* Whether it is a definition, likewise. */
enum err_code coordinator_judge_sequence(struct span line, struct err *e) MUST_CHECK;

/* Whether coordinator_open would take the configuration, likewise. */
enum err_code coordinator_check(const struct conf *c, struct err *e) MUST_CHECK;

/* Whether a client that is let through to there can write to the pool, likewise: no SQLite, and no
 * Redis that sentinels name. */
bool coordinator_is_there(const struct conf *c, const struct conf_address *there);

/* Whether what listens here is what c takes for the store of the pool, likewise. */
bool coordinator_is_here(const struct conf *c, const struct conf_address *here);

#endif
