#include "base/endpoint.h"

#include "base/dec.h"
#include "base/hex.h"

#include <arpa/inet.h>
#include <assert.h>
#include <sys/un.h>

#define NAME_MAX_BYTES 253 /* RFC 1123 */
#define LABEL_MAX      63
#define ZONE_MAX       15 /* netdevice(7): IFNAMSIZ, less the NUL */

static_assert(ENDPOINT_PATH_MAX == sizeof((struct sockaddr_un *)0)->sun_path - 1, "unix(7)");

static enum endpoint_fault wrong(struct endpoint *out, enum endpoint_fault f, struct span part)
{
    out->wrong = part;
    return f;
}

static bool has_nul(struct span s)
{
    return s.n > 0 && memchr(s.p, '\0', s.n);
}

enum endpoint_fault endpoint_read_path(struct span text, struct endpoint *out)
{
    *out = (struct endpoint){.is_unix = true, .path = text};
    bool ok = text.n >= 1 && text.n <= ENDPOINT_PATH_MAX && !has_nul(text);
    return ok ? ENDPOINT_OK : wrong(out, ENDPOINT_PATH, text);
}

/* Host and port apart; without a colon port.p is NULL. */
static enum endpoint_fault cut(struct span text, struct endpoint *out, struct span *port)
{
    size_t colon = text.n;
    *port = span_of(NULL, 0);
    out->bracketed = span_starts(text, SPAN("["));
    if (out->bracketed) {
        const char *end = memchr(text.p, ']', text.n);
        colon = end ? (size_t)(end - text.p) + 1 : text.n;
        if (!end || (colon < text.n && text.p[colon] != ':'))
            return wrong(out, ENDPOINT_BRACKETS, text);
        out->host = span_of(text.p + 1, colon - 2);
    } else {
        while (colon > 0 && text.p[colon - 1] != ':')
            colon--;
        colon = colon > 0 ? colon - 1 : text.n;
        out->host = span_of(text.p, colon);
        if (out->host.n > 0 && memchr(out->host.p, ':', out->host.n))
            return wrong(out, ENDPOINT_BRACKETS, text);
    }
    if (colon < text.n)
        *port = span_skip(text, colon + 1);
    return ENDPOINT_OK;
}

enum endpoint_fault endpoint_read_host(struct span text, struct endpoint *out)
{
    struct span port;
    uint64_t number = 0;
    *out = (struct endpoint){.is_unix = false};
    enum endpoint_fault f = cut(text, out, &port);
    if (f)
        return f;
    if (out->host.n == 0 || out->host.n > ENDPOINT_HOST_MAX || has_nul(out->host))
        return wrong(out, ENDPOINT_HOST, out->host);
    out->has_port = port.p != NULL;
    if (port.p && (!dec_u64(port, &number) || port.n > 5 || number > UINT16_MAX))
        return wrong(out, ENDPOINT_PORT, port);
    out->port = (uint16_t)number;
    return ENDPOINT_OK;
}

enum endpoint_fault endpoint_read(struct span text, struct endpoint *out)
{
    const struct span tcp = SPAN("tcp://"), rooted = SPAN("unix:///"), plain = SPAN("unix:");
    *out = (struct endpoint){.is_unix = false};
    if (span_starts(text, tcp)) {
        enum endpoint_fault f = endpoint_read_host(span_skip(text, tcp.n), out);
        return f || out->has_port ? f : wrong(out, ENDPOINT_PORT, text);
    }
    if (span_starts(text, rooted)) /* "/" alone is no path of a socket */
        return text.n > rooted.n ? endpoint_read_path(span_skip(text, rooted.n - 1), out)
                                 : wrong(out, ENDPOINT_PATH, text);
    if (span_starts(text, plain) && !span_starts(text, SPAN("unix://")))
        return endpoint_read_path(span_skip(text, plain.n), out);
    return wrong(out, ENDPOINT_FORM, text);
}

const char *endpoint_expected(enum endpoint_fault f)
{
    static const char *const words[] = {
        [ENDPOINT_OK] = "an address",
        [ENDPOINT_FORM] = "tcp://HOST:PORT or unix:///PATH",
        [ENDPOINT_BRACKETS] = "an IPv6 address in brackets, [IPV6]:PORT",
        [ENDPOINT_HOST] = "a host of 1 to 255 bytes",
        [ENDPOINT_PORT] = "a port of 0 to 65535",
        [ENDPOINT_PATH] = "a socket path of 1 to 107 bytes",
    };
    return words[f];
}

/* ---- hosts ------------------------------------------------------------------------------------
 */

/* inet_pton wants a string, a span is none. */
bool endpoint_is_numeric(int family, struct span host)
{
    char text[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    if (host.n >= sizeof text || (host.n && memchr(host.p, '\0', host.n)))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    return inet_pton(family, text, &ignored) == 1;
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static bool is_label(struct span label)
{
    for (size_t i = 0; i < label.n; i++)
        if (!is_name_char(label.p[i]))
            return false;
    return label.n >= 1 && label.n <= LABEL_MAX && label.p[0] != '-';
}

/* The number of a network interface, or any name that Linux lets one have: eth0.100 is a VLAN's. */
static bool is_zone(struct span zone)
{
    for (size_t i = 0; i < zone.n; i++)
        if (zone.p[i] <= ' ' || zone.p[i] > '~' || zone.p[i] == '/' || zone.p[i] == ':')
            return false;
    return zone.n >= 1 && zone.n <= ZONE_MAX;
}

/* With or without a zone: fe80::1%eth0 (RFC 4007). */
static bool is_ipv6(struct span host)
{
    struct span zone = host;
    struct span address = span_cut(&zone, '%');
    return endpoint_is_numeric(AF_INET6, address) && (!zone.p || is_zone(zone));
}

/* A part of an IPv4 address, as inet_aton(3) takes it: 1, 01, 0x1. */
static bool is_number(struct span s)
{
    uint64_t number;
    if (!span_starts(s, SPAN("0x")) && !span_starts(s, SPAN("0X")))
        return dec_u64(s, &number);
    for (size_t i = 2; i < s.n; i++)
        if (hex_digit(s.p[i]) < 0)
            return false;
    return true;
}

/* The last label, empty behind a final dot: fully qualified. */
static bool has_labels(struct span host, struct span *last)
{
    struct span rest = host;
    *last = (struct span){NULL, 0};
    if (host.n == 0 || host.n > NAME_MAX_BYTES)
        return false;
    while (rest.p) {
        *last = span_cut(&rest, '.');
        bool ends = last->n == 0 && !rest.p && last->p > host.p;
        if (!ends && !is_label(*last))
            return false;
    }
    return true;
}

bool endpoint_may_resolve(const struct endpoint *p)
{
    struct span last;
    return p->bracketed ? is_ipv6(p->host) : has_labels(p->host, &last);
}

/* A name whose last label is a number would be taken for a broken IPv4 address, so it is one. */
bool endpoint_may_be_host(const struct endpoint *p)
{
    struct span last;
    if (p->bracketed || endpoint_is_numeric(AF_INET, p->host))
        return endpoint_may_resolve(p);
    return has_labels(p->host, &last) && !is_number(last);
}
