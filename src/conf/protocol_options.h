/*
 * What each protocol has in the configuration: a row each.
 *
 * The daemon finds a row by the name that serve/protocol.h has for the protocol: this is the one
 * link between the two tables. Checks and oddities go over this one, in its order.
 */
#ifndef SIDFLAKE_CONF_PROTOCOL_OPTIONS_H
#define SIDFLAKE_CONF_PROTOCOL_OPTIONS_H

#include "conf/conf.h"
#include "conf/option.h"

struct conf_protocol {
    const char *name;
    const struct conf_option *listen; /* a list of addresses */
    /* NULL: it has no connections of its own, see net_service.slots. */
    const struct conf_option *slots;
    /* Where others than this host can reach it, and need not log in, it gives out no IDs. One that
     * does not look after itself may not listen there at all, but for listen.allow_unprotected. */
    bool guards_itself;
    /* All, or all NULL: it has no server behind. */
    const struct conf_option *upstream, *user, *password_file;
    bool
        words; /* what logs in there is words: a user and a password without spaces, both or none */
};

#define CONF_PROTOCOLS 3

extern const struct conf_protocol conf_protocols[CONF_PROTOCOLS];

/* NULL: there is none of this name. */
const struct conf_protocol *conf_protocol_find(const char *name);

/* Where it listens. */
const struct conf_list *conf_protocol_listen(const struct conf *c, const struct conf_protocol *p);

/* 0: none of its own. */
unsigned conf_protocol_slots(const struct conf *c, const struct conf_protocol *p);

/* "": there is none. */
const char *conf_protocol_upstream(const struct conf *c, const struct conf_protocol *p);
const char *conf_protocol_user(const struct conf *c, const struct conf_protocol *p);
const char *conf_protocol_password_file(const struct conf *c, const struct conf_protocol *p);

/* As conf_password, of the server behind. ERR_INVALID, too: words, and it has a space or control
 * character. */
enum err_code conf_protocol_password(const struct conf *c, const struct conf_protocol *p,
                                     char out[PASSFILE_MAX + 1], struct err *e) MUST_CHECK;

/* How many of them have a server behind. */
unsigned conf_protocol_upstreams(const struct conf *c);

#endif
