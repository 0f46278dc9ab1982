/*
 * The state page that the configuration asks for: where it is, and whether the sidecar may run
 * without one.
 */
#ifndef SIDFLAKE_DAEMON_STATE_PAGE_H
#define SIDFLAKE_DAEMON_STATE_PAGE_H

#include "conf/conf.h"
#include "lease/pagefile.h"

/* owner: as pagefile_inherit's coordinator; left: likewise. Where it may run without, what cannot
 * be opened is one line in the log, and the page is in memory. On success the caller closes *f. */
enum err_code state_page_open(struct pagefile *f, const struct conf *c, const char *owner,
                              const struct pagefile_left *left, struct err *e) MUST_CHECK;

/* Whether state_page_open would open it, as pagefile_test says. ERR_OK, with *warned: it would not,
 * and the sidecar may run without; *e says what it would log. */
enum err_code state_page_test(const struct conf *c, const char *owner, bool *warned,
                              struct err *e) MUST_CHECK;

#endif
