#include "base/endpoint.h"

#include "base/dec.h"

#include <assert.h>
#include <sys/un.h>

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
