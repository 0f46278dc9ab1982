/*
 * The real servers behind the services, as the configuration names them, and the logins there.
 */
#ifndef SIDFLAKE_DAEMON_BEHIND_H
#define SIDFLAKE_DAEMON_BEHIND_H

#include "conf/conf.h"
#include "daemon/heir.h"
#include "net/net.h"
#include "serve/serve.h"

/* Gives the services of s those that are configured, for as long as n lives. Reads the files of
 * passwords, as h does. */
enum err_code behind_open(struct net *n, struct serve *s, const struct conf *c,
                          const struct heir *h, struct err *e) MUST_CHECK;

/* New connections to them begin with these logins, whose files are read again. An error: nothing is
 * changed. */
enum err_code behind_greet(struct serve *s, const struct conf *c, struct err *e) MUST_CHECK;

/* Whether behind_greet is all that a change of this option takes. */
bool behind_is_login(const char *path);

#endif
