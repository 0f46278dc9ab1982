/*
 * How sidflake logs in at the real servers: the greetings of net/upstream/upstream.h, by protocol.
 */
#ifndef SIDFLAKE_SERVE_GREETING_H
#define SIDFLAKE_SERVE_GREETING_H

#include "serve/serve.h"

/* New connections to the upstream of a protocol, where it has one, begin with a login. user "": the
 * default one, which memcached has not; password "": no login. Both may be wiped after the call.
 * For memcached neither has a space. ERR_NOMEM: nothing is changed. */
enum err_code serve_greet(struct serve *s, enum serve_protocol p, const char *user,
                          const char *password, struct err *e) MUST_CHECK;

#endif
