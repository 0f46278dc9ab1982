/*
 * How sidflake logs in at the real servers: the greetings of net/upstream/upstream.h, by protocol.
 */
#ifndef SIDFLAKE_SERVE_GREETING_H
#define SIDFLAKE_SERVE_GREETING_H

#include "net/upstream/upstream.h"
#include "serve/serve.h"

/* A login on one lane of the links to a protocol's server. */
struct greeting_form {
    enum upstream_lane lane;
    enum frame_kind kind; /* of its reply, as upstream_greeting; likewise ok and words */
    struct span ok;
    size_t words;
    /* Writes it, user and password by greeting_put_user and _secret. */
    void (*put)(struct buf *b, struct upstream_greeting *g, struct span user, struct span password);
};

/* Append the user, and the password, and note in g where they stand. */
void greeting_put_user(struct buf *b, struct upstream_greeting *g, struct span user);
void greeting_put_secret(struct buf *b, struct upstream_greeting *g, struct span password);

/* New connections to the upstream of a protocol, where it has one, begin with a login. user "": the
 * default one, which memcached has not; password "": no login. Both may be wiped after the call.
 * For memcached neither has a space. ERR_NOMEM: nothing is changed. */
enum err_code serve_greet(struct serve *s, enum serve_protocol p, const char *user,
                          const char *password, struct err *e) MUST_CHECK;

#endif
