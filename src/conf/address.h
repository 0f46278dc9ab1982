/*
 * Addresses to listen on or to connect to, as base/endpoint.h reads them, port 0 only to listen at.
 * HOST is an IPv4 address, an [IPv6 address] or a name. A listener's may end in ?auth=MODE, MODE
 * one of conf_auth_names.
 *
 * Pure: nothing is looked up or opened. Source: RFC 1123 for names.
 */
#ifndef SIDFLAKE_CONF_ADDRESS_H
#define SIDFLAKE_CONF_ADDRESS_H

#include "base/span.h"
#include "conf/conf.h"

#include <stdbool.h>
#include <stdint.h>

#define CONF_ADDRESS_FORMS        "tcp://HOST:PORT with a PORT of 1..65535, unix:///PATH or unix:PATH"
#define CONF_ADDRESS_LISTEN_FORMS "tcp://HOST:PORT[?auth=MODE], unix:///PATH or unix:PATH"

/* Spans point into the text that was read. */
struct conf_address {
    struct span bare; /* the text without ?auth= */
    bool own_auth;
    enum conf_auth auth; /* own_auth: of ?auth= */
    bool is_unix;
    struct span host; /* tcp: without brackets */
    uint16_t port;    /* tcp: 0 means any free one */
    struct span path; /* unix: 1..ENDPOINT_PATH_MAX bytes without NUL */
};

/* true and *out set, or false and *out unspecified. */
bool conf_address_parse(struct span text, struct conf_address *out);

/* Only this host can connect: a UNIX socket, 127.0.0.0/8, ::1, or localhost. */
bool conf_address_local(const struct conf_address *a);

/* Whom a listener at this address serves. */
enum conf_auth conf_address_auth(const struct conf_address *a, const struct conf *c);

/* The words of enum conf_auth, ended by NULL. */
extern const char *const conf_auth_names[];

/* For the option table: is this an address? */
bool conf_address_valid(struct span text);

/* The same place: equal path, or equal port (other than 0) and host, whatever its case, and however
 * its numbers are written. */
bool conf_address_same(const struct conf_address *a, const struct conf_address *b);

/* Whoever connects to a finds what listens at b: the same place, or b is 0.0.0.0 or :: and a of
 * this host and that family, or one is localhost and the other 127.0.0.1 or ::1. a as 0.0.0.0 is
 * 127.0.0.1, as :: ::1. Nothing else is looked up, so that false proves nothing. */
bool conf_address_reaches(const struct conf_address *a, const struct conf_address *b);

#endif
