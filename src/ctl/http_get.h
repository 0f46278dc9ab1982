/*
 * sidflakectl: one GET of a sidecar's HTTP listener.
 *
 * Invariant: an answer is bounded in size and time.
 */
#ifndef SIDFLAKE_CTL_HTTP_GET_H
#define SIDFLAKE_CTL_HTTP_GET_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define CTL_HTTP_BYTES_MAX (1u << 20)

struct ctl_http {
    int status; /* 200, 503, … */
    char *body; /* n bytes and NUL; the caller frees it */
    size_t n;
};

/* What an Authorization header needs at most: user and password in Base64. */
#define CTL_HTTP_LOGIN_MAX 2048

/* url: http://HOST:PORT[/…], tcp://HOST:PORT or unix:///PATH; path: "/v1/status"; login: the
 * credentials of the Basic scheme (RFC 7617), or "". ERR_INVALID: the URL is none of these. */
enum err_code ctl_http_get(const char *url, const char *path, const char *login, int64_t timeout_us,
                           struct ctl_http *out, struct err *e) MUST_CHECK;

#endif
