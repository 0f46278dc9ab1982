#include "coord/sentinel.h"

#include "base/buf.h"
#include "base/dec.h"
#include "coord/outcome.h"

#include <ctype.h>
#include <stdio.h>

/* An IPv4 or IPv6 address, or a name where sentinels are configured to resolve them. */
static bool is_host(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c > 0x7e || (!isalnum(c) && !memchr(".-_:%", c, 5)))
            return false;
    }
    return s.n > 0 && s.n < REDIS_URL_HOST_MAX;
}

/* Whose word the error is goes before it. */
static enum coord_status said_by(const char *who, enum coord_status s, struct coord_reply *r)
{
    struct err e = r->err;
    return s == COORD_DOWN ? outcome_down(r, e.code, "%s: %s", who, e.text)
                           : outcome_refused(r, "%s: %s", who, e.text);
}

/* What the answer to get-master-addr-by-name comes to, host and port or nil. *out is filled where
 * it is COORD_OK: a host of 1 to REDIS_URL_HOST_MAX - 1 bytes, a port of 1 to 65535. */
static enum coord_status named(const struct redisReply *reply, struct redis_url_node *out,
                               struct coord_reply *r)
{
    uint64_t port;
    struct peer_said all = peer_said(reply);
    struct peer_said host = peer_item(reply, 0);
    struct peer_said digits = peer_item(reply, 1);
    if (all.kind == PEER_ERROR)
        return peer_unwanted(reply, "SENTINEL", PEER_NO_SECRET, r);
    if (all.kind == PEER_NIL)
        return outcome_refused(r, "knows no master of this name");
    if (all.n != 2 || host.kind != PEER_TEXT || digits.kind != PEER_TEXT)
        return outcome_refused(r, "expected host and port, found another reply");
    if (!is_host(host.text) || !dec_u64(digits.text, &port) || port < 1 || port > 65535)
        return outcome_refused(r, "expected host and port, found \"%.*s\" and \"%.*s\"",
                               (int)(host.text.n < 48 ? host.text.n : 48), host.text.p,
                               (int)(digits.text.n < 8 ? digits.text.n : 8), digits.text.p);
    memcpy(out->host, host.text.p, host.text.n);
    out->host[host.text.n] = '\0';
    out->port = (uint16_t)port;
    return COORD_OK;
}

/* *closed: this sentinel wants a password first. */
static enum coord_status ask(struct peer *p, const struct redis_url *a, struct redis_url_node *out,
                             bool *closed, struct coord_reply *r)
{
    char who[REDIS_URL_TEXT_MAX];
    const char *argv[3] = {"SENTINEL", "get-master-addr-by-name", a->master};
    struct redisReply *reply;
    enum coord_status s = peer_ask(p, 3, argv, NULL, &reply, r);
    if (s != COORD_OK)
        return s;
    *closed = peer_is_error(reply, "NOAUTH");
    s = named(reply, out, r);
    peer_forget(&reply);
    return s == COORD_OK ? s : said_by(redis_url_text(who, &p->at), s, r);
}

static enum coord_status ask_one(struct peer *p, const struct redis_url *a,
                                 struct redis_url_node *out, struct coord_reply *r)
{
    char who[REDIS_URL_TEXT_MAX];
    bool closed = false;
    enum coord_status s = peer_join(p, r);
    if (s == COORD_OK)
        s = ask(p, a, out, &closed, r);
    if (closed && a->password.n > 0) {
        s = peer_login(p, &a->user, &a->password, r);
        if (s == COORD_REFUSED)
            s = said_by(redis_url_text(who, &p->at), s, r);
        if (s == COORD_OK)
            s = ask(p, a, out, &closed, r);
    }
    peer_drop(p);
    return s;
}

#define COMPLAINTS_MAX 768 /* bytes: what follows says the same again, most likely */

enum coord_status sentinel_find(struct sentinel *s, const struct redis_url *a, struct peer *master,
                                struct coord_reply *r)
{
    char said[COMPLAINTS_MAX];
    struct buf b;
    enum coord_status all = COORD_DOWN;
    buf_init(&b, said, sizeof said - sizeof "; ...");
    for (size_t i = 0; i < a->nodes; i++) {
        size_t which = (s->first + i) % a->nodes;
        struct peer p = {.at = a->node[which], .clock = master->clock};
        peer_allow(&p, peer_left_us(master) / (int64_t)(a->nodes - i + 1));
        enum coord_status one = ask_one(&p, a, &master->at, r);
        if (one == COORD_OK) {
            s->first = which;
            return COORD_OK;
        }
        if (one == COORD_REFUSED)
            all = COORD_REFUSED;
        buf_printf(&b, "%s%s", i ? "; " : "", r->err.text);
    }
    char what[REDIS_URL_MASTER_MAX + 64];
    (void)snprintf(what, sizeof what, "expected a sentinel to name the master \"%s\", found",
                   a->master);
    (void)err_set(&r->err, r->err.code, "%.*s%s", (int)b.n, said, b.failed ? "; ..." : "");
    return said_by(what, all, r);
}

enum coord_status sentinel_confirm(struct peer *master, struct coord_reply *r)
{
    const char *argv[1] = {"ROLE"};
    struct redisReply *reply;
    enum coord_status s = peer_ask(master, 1, argv, NULL, &reply, r);
    if (s != COORD_OK)
        return s;
    struct peer_said role = peer_item(reply, 0);
    if (peer_said(reply).kind == PEER_ERROR)
        s = peer_unwanted(reply, "ROLE", PEER_NO_SECRET, r);
    else if (role.kind != PEER_TEXT)
        s = outcome_refused(r,
                            "ROLE: expected a list that begins with a role, found another reply");
    else if (!span_eq(role.text, SPAN("master")))
        s = outcome_down(r, ERR_BUSY,
                         "ROLE: expected master, found %.*s: a failover may be under way",
                         (int)(role.text.n < 16 ? role.text.n : 16), role.text.p);
    if (s != COORD_OK)
        peer_drop(master);
    peer_forget(&reply);
    return s;
}

void sentinel_doubt(struct sentinel *s, const struct redis_url *a)
{
    s->first = (s->first + 1) % a->nodes;
}

enum coord_status sentinel_blame(const struct sentinel *s, const struct redis_url *a,
                                 enum coord_status status, struct coord_reply *r)
{
    char at[REDIS_URL_TEXT_MAX];
    char who[REDIS_URL_TEXT_MAX + REDIS_URL_MASTER_MAX + 32];
    (void)snprintf(who, sizeof who, "master \"%s\" by the sentinel %s", a->master,
                   redis_url_text(at, &a->node[s->first]));
    return said_by(who, status, r);
}
