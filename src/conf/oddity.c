/* Settings that are allowed, do what they say, and are rarely meant. */
#include "base/file.h"
#include "conf/address.h"
#include "conf/list.h"
#include "conf/load.h"
#include "conf/protocol_options.h"
#include "conf/text.h"

#include <stdio.h>

static bool nobody_served(const struct conf *c)
{
    size_t n = 0;
    for (size_t i = 0; i < CONF_PROTOCOLS; i++)
        n += conf_protocol_listen(c, &conf_protocols[i])->n;
    return n == 0;
}

static bool nobody_connects(const struct conf *c)
{
    return (c->listen_socket_mode & 0222) == 0;
}

/* 0660 that a tool which reads and writes YAML 1.1 has taken for a number arrives as 432, which is
 * read as octal again: 0600 to 0777 become such modes, nobody's, or none at all. */
static bool owner_shut_out(const struct conf *c)
{
    return !nobody_connects(c) && (c->listen_socket_mode & 0200) == 0;
}

static bool any_of_mode(const struct conf *c, const struct conf_list *l, enum conf_auth mode)
{
    struct conf_address a;
    for (size_t i = 0; i < l->n; i++)
        if (conf_address_parse(span_str(l->item[i]), &a) && conf_address_auth(&a, c) == mode)
            return true;
    return false;
}

/* In text a login is a set: nobody could tell it from another that is meant for the server. */
static bool logins_stored(const struct conf *c)
{
    return c->upstream_memcached[0] && any_of_mode(c, &c->listen_memcached, CONF_AUTH_ACCEPT_ANY);
}

/* Whoever need not log in can then write to the pool; with a login of ours it is its rights that
 * say so. */
static bool pool_in_reach(const struct conf *c)
{
    struct conf_address to;
    return conf_judges.is_coordinator &&
           (any_of_mode(c, &c->listen_redis, CONF_AUTH_OFF) ||
            any_of_mode(c, &c->listen_redis, CONF_AUTH_ACCEPT_ANY)) &&
           !c->upstream_redis_password_file[0] && c->upstream_redis[0] &&
           conf_address_parse(span_str(c->upstream_redis), &to) &&
           conf_judges.is_coordinator(c, &to);
}

static bool users_unused(const struct conf *c)
{
    for (size_t i = 0; i < CONF_PROTOCOLS; i++)
        if (any_of_mode(c, conf_protocol_listen(c, &conf_protocols[i]), CONF_AUTH_REQUIRED))
            return false;
    return c->auth_users_file[0] != '\0';
}

static bool any_name(const struct conf *c, bool (*odd)(const struct conf *, size_t))
{
    for (size_t i = 0; i < c->ids_names.n; i++)
        if (odd(c, i))
            return true;
    return false;
}

static bool name_marked(const struct conf *c, size_t i)
{
    return strchr(c->ids_names.item[i], '#') != NULL;
}

static bool name_prefixed(const struct conf *c, size_t i)
{
    struct span prefix = span_str(c->ids_prefix);
    return prefix.n && span_starts(span_str(c->ids_names.item[i]), prefix);
}

static bool name_doubled(const struct conf *c, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->ids_names.item[k], c->ids_names.item[i]) == 0)
            return true;
    return false;
}

static bool names_marked(const struct conf *c)
{
    return any_name(c, name_marked);
}

static bool names_prefixed(const struct conf *c)
{
    return any_name(c, name_prefixed);
}

static bool names_doubled(const struct conf *c)
{
    return any_name(c, name_doubled);
}

static bool nothing_behind(const struct conf *c)
{
    return !c->ids_prefix[0] && c->ids_names.n == 0 && conf_protocol_upstreams(c) > 0;
}

static bool password_masked(const struct conf *c)
{
    return span_eq(conf_text_password(span_str(c->coordinator_url)), SPAN("***"));
}

static bool password_doubled(const struct conf *c)
{
    return c->coordinator_password_file[0] &&
           conf_text_password(span_str(c->coordinator_url)).n > 0;
}

static bool login_unused(const struct conf *c, const struct conf_protocol *p)
{
    return *conf_protocol_password_file(c, p) && !*conf_protocol_upstream(c, p);
}

static bool kept_for_nobody(const struct conf *c)
{
    return c->lease_on_stop == CONF_ON_STOP_KEEP && conf_is_ahead(c);
}

static bool users_shown(const struct conf *c)
{
    return c->auth_users_file[0] && file_is_shown(c->auth_users_file);
}

static bool password_shown(const struct conf *c)
{
    return c->coordinator_password_file[0] && file_is_shown(c->coordinator_password_file);
}

static bool login_shown(const struct conf *c, const struct conf_protocol *p)
{
    const char *path = conf_protocol_password_file(c, p);
    return *path && file_is_shown(path);
}

static bool timeout_late(const struct conf *c)
{
    return c->coordinator_timeout_us >= c->lease_renew_every_us;
}

static bool wait_cut_short(const struct conf *c)
{
    return c->limits_max_wait_us < c->clock_wait_below_us;
}

/* Two links that clients share to each server. */
static bool buffer_large(const struct conf *c)
{
    return c->upstream_buffer * (uint64_t)2 * conf_protocol_upstreams(c) > c->limits_memory;
}

static const struct {
    enum conf_option_id id;
    bool (*odd)(const struct conf *);
    const char *text;
    /* Instead of id and odd, of each protocol: its password_file is blamed. With rest the path of
     * its upstream stands between text and that. */
    bool (*login_odd)(const struct conf *, const struct conf_protocol *);
    const char *rest;
} oddities[] = {
    {CONF_LISTEN_MEMCACHED, nobody_served, "no list has an address: no client can connect"},
    {CONF_LISTEN_SOCKET_MODE, nobody_connects,
     "no write permission for anybody: no client can connect to a UNIX socket"},
    {CONF_LISTEN_SOCKET_MODE, owner_shut_out,
     "others can connect to a UNIX socket, and its owner cannot: 0660 without quotation marks "
     "becomes 432 on its way through some tools"},
    {CONF_AUTH_USERS_FILE, users_unused, "no listener requires users: nobody has to log in"},
    {CONF_AUTH_USERS_FILE, users_shown,
     "everybody on this host may read the file, and try passwords on its hashes: chmod 0600 or "
     "0640"},
    {CONF_UPSTREAM_MEMCACHED, logins_stored,
     "where auth is accept_any, what logs in in memcached's text protocol is a set like any other: "
     "its password is stored there"},
    {CONF_UPSTREAM_REDIS, pool_in_reach,
     "it is the coordinator's Redis, too: whoever connects here can delete the pool, and have IDs "
     "given out twice"},
    {CONF_IDS_PREFIX, nothing_behind,
     "it is empty, so that every key is an ID: none is asked for at the servers behind"},
    {CONF_IDS_NAMES, names_marked,
     "a name with '#' is never asked for: '#' ends the name in a key"},
    {CONF_IDS_NAMES, names_prefixed,
     "a name begins with ids.prefix, which is not part of the name"},
    {CONF_IDS_NAMES, names_doubled, "a name is given twice"},
    {CONF_COORDINATOR_URL, password_masked,
     "the password is \"***\", which --dump-config writes instead of the real one"},
    {CONF_COORDINATOR_PASSWORD_FILE, password_doubled,
     "the URL has a password, too: the file's is used"},
    {.login_odd = login_unused, .text = "there is no ", .rest = " to log in at"},
    {CONF_COORDINATOR_PASSWORD_FILE, password_shown,
     "everybody on this host may read the file: chmod 0600 or 0640"},
    {.login_odd = login_shown,
     .text = "everybody on this host may read the file: chmod 0600 or 0640"},
    {CONF_UPSTREAM_BUFFER, buffer_large,
     "what the links that clients share keep, two to each server, may be more than limits.memory"},
    {CONF_COORDINATOR_TIMEOUT, timeout_late,
     "not below lease.renew_every: one slow answer delays the next renewal"},
    {CONF_LEASE_ON_STOP, kept_for_nobody,
     "with ids.overflow: borrow or clock.on_rollback: hold the next start takes over no workerId: "
     "what is kept rests until its range ends, and is better returned"},
    {CONF_LIMITS_MAX_WAIT, wait_cut_short,
     "below clock.wait_below: a clock that steps back by more than this makes requests fail"},
};

/* The place is blamed as for an error, only that nothing fails. */
static enum err_code warn(struct conf_load *l, enum conf_option_id id, const char *text)
{
    struct err line;
    struct conf_load said = *l;
    said.e = &line;
    (void)err_set(&line, ERR_OK, "%s: %s", conf_options[id].path, text);
    if (l->source[id] == CONF_SOURCE_FILE)
        (void)conf_load_blame(&said, id, CONF_WHOLE_VALUE, ERR_OK);
    return conf_list_add(&l->conf->warnings, span_str(line.text), l->e);
}

static enum err_code warn_logins(struct conf_load *l, size_t row)
{
    const char *rest = oddities[row].rest;
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < CONF_PROTOCOLS && !rc; i++) {
        const struct conf_protocol *p = &conf_protocols[i];
        char text[ERR_TEXT_MAX];
        if (!oddities[row].login_odd(l->conf, p))
            continue;
        (void)snprintf(text, sizeof text, "%s%s%s", oddities[row].text,
                       rest ? p->upstream->path : "", rest ? rest : "");
        rc = warn(l, conf_option_id(p->password_file), text);
    }
    return rc;
}

/* As make install leaves it, and a password was written into it. */
static bool url_shown(const struct conf_load *l)
{
    return l->name && l->source[CONF_COORDINATOR_URL] == CONF_SOURCE_FILE &&
           conf_text_password(span_str(l->conf->coordinator_url)).n > 0 && file_is_shown(l->name);
}

enum err_code conf_check_oddities(struct conf_load *l)
{
    enum err_code rc = ERR_OK;
    for (size_t i = 0; i < sizeof oddities / sizeof *oddities && !rc; i++) {
        if (oddities[i].login_odd)
            rc = warn_logins(l, i);
        else if (oddities[i].odd(l->conf))
            rc = warn(l, oddities[i].id, oddities[i].text);
    }
    if (!rc && url_shown(l))
        rc =
            warn(l, CONF_COORDINATOR_URL,
                 "everybody on this host may read the file, and the password in it: chmod 0640, or "
                 "coordinator.password_file");
    return rc;
}
