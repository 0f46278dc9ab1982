/*
 * For whom a request is, and on whose behalf a browser sends it. Without this a page of another
 * site reads IDs and the status page through the browser of whoever looks at it: its own name,
 * which it has point to 127.0.0.1 for a moment, is then all that differs.
 *
 * Sources: RFC 9110, 7.4 (421); RFC 6454 (Origin); W3C Fetch Metadata (Sec-Fetch-Site).
 */
#include "serve/http/http_call.h"

#include "base/dec.h"

#include <arpa/inet.h>
#include <unistd.h>

/* "NAME", "NAME:PORT", "[V6]:PORT": cuts the port off. false: what stands there is none. */
static bool cut_port(struct span *host)
{
    const char *six = host->n > 0 && host->p[0] == '[' ? memchr(host->p, ']', host->n) : NULL;
    size_t n = six ? (size_t)(six - host->p) + 1 : 0;
    while (!six && n < host->n && host->p[n] != ':')
        n++;
    struct span port = span_skip(*host, n);
    uint64_t ignored;
    host->n = n;
    return port.n == 0 ||
           (port.p[0] == ':' && (port.n == 1 || dec_u64(span_skip(port, 1), &ignored)));
}

static bool is_address(struct span host)
{
    char text[INET6_ADDRSTRLEN];
    unsigned char mem[sizeof(struct in6_addr)];
    bool six = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    struct span bare = six ? span_of(host.p + 1, host.n - 2) : host;
    if (bare.n == 0 || bare.n >= sizeof text)
        return false;
    memcpy(text, bare.p, bare.n);
    text[bare.n] = '\0';
    return inet_pton(six ? AF_INET6 : AF_INET, text, mem) == 1;
}

/* name: "*.END", or whole. */
static bool is_named(struct span host, const char *name)
{
    struct span own = span_str(name);
    if (!span_starts(own, SPAN("*.")))
        return span_eq_nocase(host, own);
    own = span_skip(own, 1);
    return host.n > own.n && span_eq_nocase(span_skip(host, host.n - own.n), own);
}

static bool is_ours(const struct serve *s, struct span host)
{
    static const char *const usual[] = {"localhost", "*.localhost", "*.svc", "*.svc.cluster.local"};
    char own[256] = "";
    if (!cut_port(&host))
        return false;
    if (!is_address(host) && host.n > 1 && host.p[host.n - 1] == '.')
        host.n--;
    if (host.n == 0 || is_address(host) || !memchr(host.p, '.', host.n))
        return true;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (is_named(host, usual[i]))
            return true;
    for (size_t i = 0; i < s->nhttp_hosts; i++)
        if (is_named(host, s->http_hosts[i]))
            return true;
    (void)gethostname(own, sizeof own - 1);
    return span_eq_nocase(host, span_str(own)) || span_eq_nocase(host, span_str(s->facts.host));
}

/* What the page itself asks for, what is typed, and what is no browser, is not. A link to the
 * status page may be followed: the site that has it sees nothing of what comes. */
static bool is_foreign(const struct http_call *c)
{
    const struct http_req *r = c->req;
    struct span origin = r->origin;
    bool page = c->path[0] == '/' && c->path[1] == '\0';
    if (page && !origin.p && span_eq(r->dest, SPAN("document")))
        return false;
    if (r->site.p && !span_eq(r->site, SPAN("none")) && !span_eq(r->site, SPAN("same-origin")))
        return true;
    if (!origin.p)
        return false;
    if (span_starts(origin, SPAN("http://")))
        return !span_eq_nocase(span_skip(origin, strlen("http://")), r->host);
    return !span_starts(origin, SPAN("https://")) ||
           !span_eq_nocase(span_skip(origin, strlen("https://")), r->host);
}

int http_call_host(struct http_call *c, bool guarded)
{
    if (!is_ours(c->serve, c->req->host))
        return http_call_fail(c, 421, "an address, or a name that listen.http_hosts has, as Host",
                              c->req->host);
    if (guarded && is_foreign(c)) {
        buf_truncate(c->out, c->body);
        BUF_PUT_LIT(c->out, "expected a request of nobody else's page: not given out to other "
                            "sites\n");
        return 403;
    }
    return 200;
}
