/*
 * What a Redis request is to the rights of a user: see serve/rights.h. By lists of what is allowed,
 * so that a command nobody thought of is OTHER.
 */
#include "serve/redis/redis_through.h"

#include "wire/resp_keys.h"

#include <stdio.h>

#define NO_COMMAND "NOPERM this user has no permissions to run the '%s%s%s' command"
#define NO_KEY     "NOPERM this user has no permissions to access one of the keys used as arguments"

enum here {
    HERE_NOT,
    HERE_OWN,  /* as for everybody: what the client makes of its connection */
    HERE_BOTH, /* likewise, and a link that it has is told: what holds there is the server's to say,
                  and whoever logs in next goes on with it */
    HERE_ALONE, /* we tell it, not the server */
};

static const uint8_t verbs[RESP_VERB_COUNT] = {
    [RESP_AUTH] = HERE_BOTH,  [RESP_COMMAND] = HERE_ALONE, [RESP_DISCARD] = HERE_OWN,
    [RESP_ECHO] = HERE_OWN,   [RESP_EXEC] = HERE_OWN,      [RESP_HELLO] = HERE_BOTH,
    [RESP_INFO] = HERE_ALONE, [RESP_MULTI] = HERE_OWN,     [RESP_PING] = HERE_OWN,
    [RESP_QUIT] = HERE_OWN,   [RESP_RESET] = HERE_BOTH,    [RESP_SELECT] = HERE_BOTH,
    [RESP_TIME] = HERE_ALONE, [RESP_UNWATCH] = HERE_OWN,
};

static enum here here(const struct rds_call *c)
{
    static const struct {
        const char *name;
        enum here here;
    } client[] = {{"getname", HERE_OWN}, {"help", HERE_OWN},     {"id", HERE_OWN},
                  {"info", HERE_OWN},    {"no-touch", HERE_OWN}, {"reply", HERE_BOTH},
                  {"setinfo", HERE_OWN}, {"setname", HERE_BOTH}};
    for (size_t i = 0; rds_is_verb(c, RESP_CLIENT) && i < sizeof client / sizeof *client; i++)
        if (rds_is_sub(c, client[i].name))
            return client[i].here;
    return (enum here)verbs[c->cmd->verb];
}

/* These have keys that stand in other args, or are found only there. */
static bool hides_keys(const struct resp_cmd *cmd)
{
    static const char *const names[] = {"sort", "sort_ro", "georadius", "georadiusbymember",
                                        "migrate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(cmd->name, names[i]) == 0)
            return true;
    return false;
}

/* All keys were seen: of a request that is larger than the input the last arg may be cut, and what
 * tells where there are more keys may be that one, or behind it. Where a count behind the first key
 * (ZUNIONSTORE) is none to us, the server may read it otherwise. */
static unsigned keys_of(const struct rds_call *c, struct resp_range ranges[RESP_RANGES])
{
    unsigned n = resp_key_ranges(c->cmd, c->req, ranges);
    bool movable = c->cmd->flags & RESP_F_MOVABLEKEYS;
    bool uncounted = movable && c->cmd->first > 0 && n < 2 && !hides_keys(c->cmd);
    if ((c->req->truncated && movable) || uncounted)
        return 0;
    for (unsigned i = 0; i < n; i++)
        if (ranges[i].to >= c->req->seen - c->req->truncated)
            return 0;
    return n;
}

/* n: how many ranges of keys there are. */
static enum rights_class class_of(const struct rds_call *c, const struct user *u, unsigned n)
{
    uint32_t flags = c->cmd->flags;
    if (here(c) != HERE_NOT)
        return RIGHTS_HERE;
    if (n == 0 || flags & (RESP_F_ADMIN | RESP_F_PUBSUB) || rds_is_verb(c, RESP_EVAL) ||
        (hides_keys(c->cmd) && u->keys.p))
        return RIGHTS_OTHER;
    return flags & RESP_F_READONLY || rds_is_verb(c, RESP_WATCH) ? RIGHTS_READ : RIGHTS_CHANGE;
}

/* IDs are not the server's: rds_allowed has looked at them. */
static bool keys_allowed(const struct rds_call *c, const struct user *u,
                         const struct resp_range *ranges, unsigned n, bool *ids)
{
    struct resp_walk w = resp_walk_from(c->req, 0);
    struct span arg;
    bool may = true;
    *ids = n > 0;
    for (uint32_t i = 0; may && i < c->req->seen && resp_next_arg(&w, &arg); i++) {
        if (!resp_is_key(ranges, n, i) || names_find(&rds_issuer(c)->names, arg))
            continue;
        *ids = false;
        may = rights_key(u, arg);
    }
    return may;
}

static enum rds_rights refuse(struct rds_call *c, bool key)
{
    char why[160];
    if (key)
        (void)snprintf(why, sizeof why, NO_KEY);
    else
        (void)snprintf(why, sizeof why, NO_COMMAND, c->cmd->name, c->sub ? "|" : "",
                       c->sub ? c->sub->name : "");
    bool parked = rds_through_refuse(c, SERVE_REFUSED, why) == RDS_PARKED;
    return parked ? RDS_RIGHTS_BEHIND : RDS_RIGHTS_REFUSED;
}

/* Of a user who may nothing there. His transaction is here, and what is begun in it is not told. */
static enum rds_rights told(struct rds_call *c)
{
    if (!upstream_owns(c->turn))
        return RDS_RIGHTS_HERE;
    bool begins = rds_is_verb(c, RESP_SELECT) || rds_is_sub(c, "setname");
    return begins && c->ses->multi ? refuse(c, false) : RDS_RIGHTS_PASS;
}

enum rds_rights rds_rights(struct rds_call *c, bool known)
{
    const struct user *u = access_limits(c->svc->serve, &c->ses->access);
    struct resp_range ranges[RESP_RANGES];
    bool multi = c->ses->multi || c->ses->there->multi, ids;
    if (!u)
        return RDS_RIGHTS_PASS;
    if (!known) {
        c->ses->dirty |= c->ses->there->multi;
        return RDS_RIGHTS_HERE;
    }
    unsigned n = keys_of(c, ranges);
    bool may = keys_allowed(c, u, ranges, n, &ids);
    if (ids)
        return RDS_RIGHTS_PASS;
    enum rights_class what = class_of(c, u, n);
    if (!rights_may(u, what) || (here(c) == HERE_ALONE && multi && u->upstream != USER_NONE))
        return refuse(c, false);
    if (!may)
        return refuse(c, true);
    if (u->upstream != USER_NONE)
        return here(c) == HERE_ALONE ? RDS_RIGHTS_HERE : RDS_RIGHTS_PASS;
    return here(c) == HERE_BOTH ? told(c) : RDS_RIGHTS_HERE;
}
