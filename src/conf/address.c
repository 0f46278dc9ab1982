#include "conf/address.h"

#include "base/endpoint.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

const char *const conf_auth_names[] = {"off", "accept_any", "required", NULL};

/* Takes "?auth=MODE" off the end; false: there is no such mode. */
static bool cut_auth(struct span *text, struct conf_address *out)
{
    const struct span key = SPAN("?auth=");
    const char *at = text->n ? memmem(text->p, text->n, key.p, key.n) : NULL;
    if (!at)
        return true;
    struct span word = span_skip(*text, (size_t)(at - text->p) + key.n);
    text->n = (size_t)(at - text->p);
    out->own_auth = true;
    for (unsigned i = 0; conf_auth_names[i]; i++) {
        out->auth = (enum conf_auth)i;
        if (span_eq(word, span_str(conf_auth_names[i])))
            return true;
    }
    return false;
}

bool conf_address_parse(struct span text, struct conf_address *out)
{
    struct endpoint p;
    *out = (struct conf_address){.is_unix = false};
    if (!cut_auth(&text, out))
        return false;
    out->bare = text;
    if (endpoint_read(text, &p) || (!p.is_unix && !endpoint_may_be_host(&p)))
        return false;
    out->is_unix = p.is_unix;
    out->host = p.host;
    out->port = p.port;
    out->path = p.path;
    return true;
}

/* ::ffff:127.0.0.1 is as local as 127.0.0.1. */
static bool is_loopback6(struct span host)
{
    struct in6_addr a;
    char text[INET6_ADDRSTRLEN];
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(AF_INET6, text, &a) == 1 &&
           (IN6_IS_ADDR_LOOPBACK(&a) || (IN6_IS_ADDR_V4MAPPED(&a) && a.s6_addr[12] == 127));
}

bool conf_address_local(const struct conf_address *a)
{
    if (a->is_unix || span_eq_nocase(a->host, SPAN("localhost")))
        return true;
    if (endpoint_is_numeric(AF_INET6, a->host))
        return is_loopback6(a->host);
    return endpoint_is_numeric(AF_INET, a->host) && span_starts(a->host, SPAN("127."));
}

enum conf_auth conf_address_auth(const struct conf_address *a, const struct conf *c)
{
    return a->own_auth ? a->auth : c->auth_mode;
}

bool conf_address_valid(struct span text)
{
    struct conf_address ignored;
    return conf_address_parse(text, &ignored);
}

/* An address in numbers, however it is written; one of IPv4 as ::ffff:A.B.C.D. */
static bool numbers_of(struct span host, struct in6_addr *out)
{
    char text[sizeof "::ffff:" + INET6_ADDRSTRLEN];
    if (host.n == 0 || host.n >= INET6_ADDRSTRLEN)
        return false;
    (void)snprintf(text, sizeof text, "%s%.*s", endpoint_is_numeric(AF_INET, host) ? "::ffff:" : "",
                   (int)host.n, host.p);
    return inet_pton(AF_INET6, text, out) == 1;
}

static bool same_host(struct span a, struct span b)
{
    struct in6_addr x, y;
    if (numbers_of(a, &x) && numbers_of(b, &y))
        return IN6_ARE_ADDR_EQUAL(&x, &y);
    return span_eq_nocase(a, b);
}

bool conf_address_same(const struct conf_address *a, const struct conf_address *b)
{
    if (a->is_unix != b->is_unix)
        return false;
    if (a->is_unix)
        return span_eq(a->path, b->path);
    return a->port != 0 && a->port == b->port && same_host(a->host, b->host);
}

static bool is_wildcard(struct span host)
{
    return same_host(host, SPAN("0.0.0.0")) || same_host(host, SPAN("::"));
}

/* Where one comes to who connects there: to any address is to this host. */
static struct span dialled(struct span host)
{
    if (!is_wildcard(host))
        return host;
    return same_host(host, SPAN("::")) ? SPAN("::1") : SPAN("127.0.0.1");
}

/* One of them is the name of the other, as in every /etc/hosts. */
static bool is_localhost(struct span name, struct span host)
{
    return span_eq_nocase(name, SPAN("localhost")) &&
           (same_host(host, SPAN("127.0.0.1")) || same_host(host, SPAN("::1")));
}

/* Each wildcard listens for its own family alone (IPV6_V6ONLY), and a mapped address is IPv4. */
static bool is_of_family(struct span host, struct span wildcard)
{
    struct in6_addr ip;
    if (!numbers_of(host, &ip)) /* localhost */
        return true;
    return IN6_IS_ADDR_V4MAPPED(&ip) == same_host(wildcard, SPAN("0.0.0.0"));
}

bool conf_address_reaches(const struct conf_address *a, const struct conf_address *b)
{
    struct conf_address to = *a;
    to.host = dialled(a->host);
    if (conf_address_same(&to, b))
        return true;
    if (a->is_unix || b->is_unix || a->port == 0 || a->port != b->port)
        return false;
    return (is_wildcard(b->host) && conf_address_local(&to) && is_of_family(to.host, b->host)) ||
           is_localhost(to.host, b->host) || is_localhost(b->host, to.host);
}
