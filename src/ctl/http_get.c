/*
 * sidflakectl: one GET of a sidecar's HTTP listener. As HTTP/1.0, so that the answer ends with the
 * connection and is not chunked.
 */
#include "ctl/http_get.h"

#include "base/clock.h"
#include "base/dec.h"
#include "net/addr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static enum err_code parse_url(const char *url, struct addr *out, struct err *e)
{
    char tcp[320];
    struct span rest = span_str(url);
    bool http = span_starts(rest, SPAN("http://"));
    if (http) {
        rest = span_skip(rest, 7);
        struct span host = span_cut(&rest, '/');
        (void)snprintf(tcp, sizeof tcp, "tcp://%.*s", (int)(host.n < 300 ? host.n : 300), host.p);
    }
    if (!addr_parse(http ? span_str(tcp) : rest, out, e))
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "--connect: expected http://HOST:PORT or unix:///PATH, found \"%.200s\"", url);
}

static enum err_code send_all(int fd, const char *text, size_t n, struct err *e)
{
    while (n > 0) {
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return err_errno(e, errno, "cannot send a request");
        text += sent;
        n -= (size_t)sent;
    }
    return ERR_OK;
}

/* To the end of the connection. *text is the caller's, also on failure. */
static enum err_code receive_all(int fd, int64_t until_us, char **text, size_t *n, struct err *e)
{
    size_t cap = 0;
    for (;;) {
        if (*n + 1 >= cap) {
            cap = cap ? 2 * cap : 32768;
            char *more = cap <= CTL_HTTP_BYTES_MAX ? realloc(*text, cap) : NULL;
            if (!more)
                return err_set(e, ERR_NOMEM, "expected an answer of less than %u bytes, found more",
                               CTL_HTTP_BYTES_MAX);
            *text = more;
        }
        ssize_t got = recv(fd, *text + *n, cap - *n - 1, 0);
        if (got == 0)
            return ERR_OK;
        if (clock_mono_us(clock_system()) > until_us || (got < 0 && errno == EAGAIN))
            return err_set(e, ERR_TIMEOUT, "expected an answer in time, found none");
        if (got < 0 && errno != EINTR)
            return err_errno(e, errno, "cannot read the answer");
        *n += got > 0 ? (size_t)got : 0;
    }
}

/* "HTTP/1.1 200 OK", and what follows the empty line. */
static enum err_code split(char *text, size_t n, struct ctl_http *out, struct err *e)
{
    struct span line = span_of(text, n);
    uint64_t status;
    const char *body = memmem(text, n, "\r\n\r\n", 4);
    struct span version = span_cut(&line, ' ');
    if (n == 0)
        return err_set(e, ERR_INVALID,
                       "expected an answer of HTTP/1, found none: the connection was closed");
    if (!body || !span_starts(version, SPAN("HTTP/1.")) ||
        !dec_u64(span_cut(&line, ' '), &status) || status > 999)
        return err_set(e, ERR_INVALID, "expected an answer of HTTP/1, found another");
    out->status = (int)status;
    out->n = n - (size_t)(body + 4 - text);
    memmove(text, body + 4, out->n);
    text[out->n] = '\0';
    out->body = text;
    return ERR_OK;
}

static enum err_code ask(int fd, const char *path, const char *login, int64_t until_us,
                         struct ctl_http *out, struct err *e)
{
    char request[256 + CTL_HTTP_LOGIN_MAX]; /* path is one of ours */
    char *text = NULL;
    size_t n = 0;
    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.0\r\nHost: sidflake\r\nAccept: application/json\r\n"
                          "%s%s%s\r\n",
                          path, *login ? "Authorization: Basic " : "", login, *login ? "\r\n" : "");
    enum err_code code = send_all(fd, request, (size_t)length, e);
    explicit_bzero(request, sizeof request);
    if (!code)
        code = receive_all(fd, until_us, &text, &n, e);
    if (!code)
        code = split(text, n, out, e);
    if (code)
        free(text);
    return code;
}

enum err_code ctl_http_get(const char *url, const char *path, const char *login, int64_t timeout_us,
                           struct ctl_http *out, struct err *e)
{
    struct addr addr;
    int fd;
    *out = (struct ctl_http){0};
    enum err_code code = parse_url(url, &addr, e);
    if (code)
        return code;
    code = addr_connect(&addr, timeout_us, &fd, e);
    if (code)
        return code == ERR_INVALID ? ERR_IO : code;
    code = ask(fd, path, login, clock_mono_us(clock_system()) + timeout_us, out, e);
    (void)close(fd);
    return code;
}
