#include "coord/address.h"

#include "base/dec.h"

#include <sys/un.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static enum err_code unescape(struct address_secret *out, struct span in, const char *what,
                              struct err *e)
{
    out->n = 0;
    for (size_t i = 0; i < in.n; i++) {
        int c = (unsigned char)in.p[i];
        if (c == '%') {
            int high = in.n - i > 2 ? hex_digit(in.p[i + 1]) : -1;
            int low = high >= 0 ? hex_digit(in.p[i + 2]) : -1;
            if (low < 0)
                return err_set(e, ERR_INVALID,
                               "coordinator url: expected two hex digits after each %% of the %s",
                               what);
            c = high << 4 | low;
            i += 2;
        }
        if (out->n == sizeof out->b)
            return err_set(e, ERR_RANGE, "coordinator url: expected a %s of at most %zu bytes",
                           what, sizeof out->b);
        out->b[out->n++] = (char)c;
    }
    return ERR_OK;
}

static enum err_code parse_userinfo(struct address *a, struct span s, struct err *e)
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

static enum err_code parse_db(struct address *a, struct span s, struct err *e)
{
    uint64_t db;
    if (!dec_u64(s, &db) || db > 65535)
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected a database of 0 to 65535, found \"%.*s\"",
                       shown(s), s.p);
    a->db = (uint32_t)db;
    return ERR_OK;
}

static enum err_code parse_query(struct address *a, struct span query, struct err *e)
{
    if (!query.p)
        return ERR_OK;
    if (span_starts(query, SPAN("db=")))
        return parse_db(a, span_skip(query, 3), e);
    return err_set(e, ERR_INVALID, "coordinator url: expected db=N after the ?, found \"%.*s\"",
                   shown(query), query.p);
}

static enum err_code set_host(struct address *a, struct span host, size_t max, const char *what,
                              struct err *e)
{
    if (host.n == 0 || host.n > max)
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected a %s of 1 to %zu bytes, found %zu", what, max,
                       host.n);
    memcpy(a->host, host.p, host.n);
    a->host[host.n] = '\0';
    return ERR_OK;
}

static enum err_code parse_port(struct address *a, struct span s, struct err *e)
{
    uint64_t port = 6379;
    if (s.p && (!dec_u64(s, &port) || port < 1 || port > 65535))
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected a port of 1 to 65535, found \"%.*s\"", shown(s),
                       s.p);
    a->port = (uint16_t)port;
    return ERR_OK;
}

/* HOST, HOST:PORT, [V6] or [V6]:PORT */
static enum err_code parse_host_port(struct address *a, struct span s, struct err *e)
{
    struct span port = s;
    struct span host;
    if (span_starts(s, SPAN("["))) {
        port = span_skip(s, 1);
        host = span_cut(&port, ']');
        if (!port.p || (port.n > 0 && port.p[0] != ':'))
            return err_set(e, ERR_INVALID, "coordinator url: expected [IPV6]:PORT, found \"%.*s\"",
                           shown(s), s.p);
        port = port.n > 0 ? span_skip(port, 1) : span_of(NULL, 0);
    } else {
        host = span_cut(&port, ':');
    }
    enum err_code code = set_host(a, host, sizeof a->host - 1, "host", e);
    return code ? code : parse_port(a, port, e);
}

static enum err_code parse_tcp(struct address *a, struct span authority, struct span path,
                               struct err *e)
{
    struct span query = path;
    struct span db = span_cut(&query, '?');
    if (path.n > 0 && memchr(path.p, '@', path.n))
        return err_set(
            e, ERR_INVALID,
            "coordinator url: expected / ? and @ of user and password as %%2F %%3F %%40, "
            "found @ after the host");
    enum err_code code = parse_host_port(a, authority, e);
    if (!code && db.n > 1)
        code = parse_db(a, span_skip(db, 1), e);
    return code ? code : parse_query(a, query, e);
}

static enum err_code parse_unix(struct address *a, struct span authority, struct span path,
                                struct err *e)
{
    struct span query = path;
    struct span file = span_cut(&query, '?');
    a->local = true;
    if (authority.n > 0)
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected redis+unix:///PATH, found %zu bytes before the "
                       "path",
                       authority.n);
    enum err_code code =
        set_host(a, file, sizeof((struct sockaddr_un *)0)->sun_path - 1, "socket path", e);
    return code ? code : parse_query(a, query, e);
}

enum err_code address_parse(struct address *a, struct span url, struct err *e)
{
    struct span rest = url;
    struct span scheme = span_cut(&rest, ':');
    memset(a, 0, sizeof *a);
    bool local = span_eq(scheme, SPAN("redis+unix"));
    if ((!local && !span_eq(scheme, SPAN("redis"))) || !span_starts(rest, SPAN("//")))
        return err_set(e, ERR_INVALID,
                       "coordinator url: expected redis://HOST:PORT/DB or redis+unix:///PATH");
    rest = span_skip(rest, 2);
    size_t end = 0;
    while (end < rest.n && rest.p[end] != '/' && rest.p[end] != '?')
        end++;
    struct span authority = span_of(rest.p, end);
    for (size_t i = end; i > 0; i--) {
        if (rest.p[i - 1] != '@')
            continue;
        enum err_code code = parse_userinfo(a, span_of(rest.p, i - 1), e);
        if (code)
            return code;
        authority = span_of(rest.p + i, end - i);
        break;
    }
    struct span path = span_skip(rest, end);
    return local ? parse_unix(a, authority, path, e) : parse_tcp(a, authority, path, e);
}
