#include "coord/redis_url.h"

#include "base/dec.h"
#include "base/endpoint.h"
#include "base/hex.h"

#include <assert.h>
#include <stdio.h>

#define REDIS_PORT    6379
#define SENTINEL_PORT 26379

static_assert(REDIS_URL_HOST_MAX > ENDPOINT_HOST_MAX, "and NUL");

static enum err_code unescape(struct redis_url_secret *out, struct span in, const char *what,
                              struct err *e)
{
    struct buf b;
    buf_init(&b, out->b, sizeof out->b);
    if (!hex_put_unescaped(&b, in))
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected two hex digits after each %% of the %s", what);
    if (b.failed)
        return err_set(e, ERR_RANGE, "coordinator url: expected a %s of at most %zu bytes", what,
                       sizeof out->b);
    out->n = b.n;
    return ERR_OK;
}

static enum err_code parse_userinfo(struct redis_url *a, struct span s, struct err *e)
{
    struct span password = s;
    struct span user = span_cut(&password, ':');
    enum err_code code = unescape(&a->user, user, "user", e);
    return code ? code : unescape(&a->password, password, "password", e);
}

static int shown(struct span s)
{
    return (int)(s.n < 80 ? s.n : 80);
}

static enum err_code parse_db(struct redis_url *a, struct span s, struct err *e)
{
    uint64_t db;
    if (!dec_u64(s, &db) || db > 65535)
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected a database of 0 to 65535, found \"%.*s\"",
                       shown(s), s.p);
    a->db = (uint32_t)db;
    return ERR_OK;
}

static enum err_code parse_query(struct redis_url *a, struct span query, struct err *e)
{
    if (!query.p)
        return ERR_OK;
    if (span_starts(query, SPAN("db=")))
        return parse_db(a, span_skip(query, 3), e);
    return err_set(e, ERR_INVALID, "coordinator url: expected db=N after the ?, found \"%.*s\"",
                   shown(query), query.p);
}

static enum err_code unfit(enum endpoint_fault f, struct span wrong, struct err *e)
{
    const char *expected = f == ENDPOINT_PORT ? "a port of 1 to 65535" : endpoint_expected(f);
    return err_set(e, ERR_INVALID, "coordinator url: expected %s, found \"%.*s\"", expected,
                   shown(wrong), wrong.p ? wrong.p : "");
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT */
static enum err_code parse_node(struct redis_url *a, struct span s, uint16_t port_otherwise,
                                struct err *e)
{
    struct endpoint p;
    if (a->nodes == REDIS_URL_NODES_MAX)
        return err_set(e, ERR_RANGE, "coordinator url: expected at most %d sentinels, found more",
                       REDIS_URL_NODES_MAX);
    enum endpoint_fault f = endpoint_read_host(s, &p);
    if (f)
        return unfit(f, p.wrong, e);
    if (!endpoint_may_resolve(&p))
        return err_set(
            e, ERR_INVALID,
            "coordinator url: expected the name or the address of a host, found \"%.*s\"",
            shown(p.host), p.host.p);
    if (p.has_port && p.port == 0)
        return unfit(ENDPOINT_PORT, SPAN("0"), e);
    struct redis_url_node *n = &a->node[a->nodes++];
    memcpy(n->host, p.host.p, p.host.n);
    n->host[p.host.n] = '\0';
    n->port = p.has_port ? p.port : port_otherwise;
    return ERR_OK;
}

static enum err_code parse_tcp(struct redis_url *a, struct span authority, struct span path,
                               struct err *e)
{
    struct span query = path;
    struct span db = span_cut(&query, '?');
    enum err_code code = parse_node(a, authority, REDIS_PORT, e);
    if (!code && db.n > 1)
        code = parse_db(a, span_skip(db, 1), e);
    return code ? code : parse_query(a, query, e);
}

static enum err_code parse_unix(struct redis_url *a, struct span authority, struct span path,
                                struct err *e)
{
    struct span query = path;
    struct span file = span_cut(&query, '?');
    if (authority.n > 0)
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected redis+unix:///PATH, found %zu bytes before the "
                       "path",
                       authority.n);
    struct endpoint p;
    enum endpoint_fault f = endpoint_read_path(file, &p);
    if (f)
        return unfit(f, p.wrong, e);
    a->nodes = 1;
    memcpy(a->node[0].host, file.p, file.n);
    return parse_query(a, query, e);
}

static bool is_master(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '-' || c == '_'))
            return false;
    }
    return s.n > 0 && s.n < REDIS_URL_MASTER_MAX;
}

static enum err_code parse_sentinel(struct redis_url *a, struct span authority, struct span path,
                                    struct err *e)
{
    struct span query = path;
    struct span master = span_cut(&query, '?');
    enum err_code code = ERR_OK;
    while (authority.p && !code)
        code = parse_node(a, span_cut(&authority, ','), SENTINEL_PORT, e);
    if (code)
        return code;
    if (master.n > 0)
        master = span_skip(master, 1);
    if (!is_master(master))
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected /MASTER after the sentinels, the master's name "
                       "of 1 to %d letters, digits, '.', '-' and '_', found \"%.*s\"",
                       REDIS_URL_MASTER_MAX - 1, shown(master), master.n ? master.p : "");
    memcpy(a->master, master.p, master.n);
    return parse_query(a, query, e);
}

static const struct {
    const char *scheme;
    bool path_may_hold_at; /* an @ after the host is no slip of a password */
    enum err_code (*parse)(struct redis_url *, struct span authority, struct span path,
                           struct err *);
} forms[] = {
    {"redis", false, parse_tcp},
    {"redis+unix", true, parse_unix},
    {"redis+sentinel", false, parse_sentinel},
};

/* What follows "//" of the URL. */
static enum err_code parse_rest(struct redis_url *a, size_t form, struct span rest, struct err *e)
{
    size_t end = 0;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    struct span authority = span_of(rest.p, end);
    struct span path = span_skip(rest, end);
    for (size_t i = end; i > 0; i--) {
        if (rest.p[i - 1] != '@')
            continue;
        enum err_code code = parse_userinfo(a, span_of(rest.p, i - 1), e);
        if (code)
            return code;
        authority = span_of(rest.p + i, end - i);
        break;
    }
    if (!forms[form].path_may_hold_at && path.n > 0 && memchr(path.p, '@', path.n))
        return err_set(
            e, ERR_INVALID,
            "coordinator url: expected / ? and @ of user and password as %%2F %%3F %%40, "
            "found @ after the host");
    return forms[form].parse(a, authority, path, e);
}

enum err_code redis_url_parse(struct redis_url *a, struct span url, struct err *e)
{
    struct span rest = url;
    struct span scheme = span_cut(&rest, ':');
    memset(a, 0, sizeof *a);
    for (size_t i = 0; span_starts(rest, SPAN("//")) && i < sizeof forms / sizeof *forms; i++) {
        if (span_eq(scheme, span_str(forms[i].scheme)))
            return parse_rest(a, i, span_skip(rest, 2), e);
    }
    return err_set(e, ERR_INVALID,
                   "coordinator url: expected redis://HOST:PORT/DB, redis+unix:///PATH or "
                   "redis+sentinel://HOST:PORT,…/MASTER");
}

char *redis_url_text(char out[REDIS_URL_TEXT_MAX], const struct redis_url_node *n)
{
    if (n->port == 0)
        (void)snprintf(out, REDIS_URL_TEXT_MAX, "%s", n->host);
    else
        (void)snprintf(out, REDIS_URL_TEXT_MAX, "%s port %u", n->host, n->port);
    return out;
}
