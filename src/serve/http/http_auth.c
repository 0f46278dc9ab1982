/*
 * Who asks over HTTP: the Basic scheme (RFC 7617), for each request anew.
 */
#include "base/base64.h"
#include "serve/http/http_call.h"

#define CREDENTIALS_MAX 768 /* bytes of name, ':' and password */

/* false: the header holds no name and password. */
static bool credentials(struct span header, struct buf *b, struct span *name, struct span *password)
{
    struct span scheme = span_cut(&header, ' ');
    while (header.n > 0 && header.p[0] == ' ')
        header = span_skip(header, 1);
    if (!span_eq_nocase(scheme, SPAN("basic")) || !header.p || !base64_put_decoded(b, header))
        return false;
    *password = buf_span(b);
    *name = span_cut(password, ':');
    return password->p != NULL;
}

static enum auth_answer login(struct http_call *c)
{
    char text[CREDENTIALS_MAX];
    struct buf b;
    struct span name, password;
    enum auth_answer r = AUTH_NO;
    buf_init(&b, text, sizeof text);
    if (credentials(c->req->authorization, &b, &name, &password))
        r = access_login(c->serve, &c->access, c->turn, name, password);
    c->session->access = c->access;
    explicit_bzero(text, sizeof text);
    return r;
}

int http_call_admit(struct http_call *c)
{
    c->access = c->session->access;
    if (c->access.mode < ACCESS_REQUIRED)
        return 200;
    if (c->access.mode == ACCESS_CLOSED) {
        BUF_PUT_LIT(c->out, "expected a listener that others cannot reach, auth.mode required or "
                            "listen.allow_unprotected: IDs are not given out here\n");
        return 403;
    }
    switch (login(c)) {
    case AUTH_YES:
        return 200;
    case AUTH_PENDING:
        c->step = (struct net_step){.verdict = NET_HOLD};
        return HTTP_PARKED;
    case AUTH_NO:
        break;
    }
    buf_truncate(c->out, c->body);
    BUF_PUT_LIT(c->out, "expected the name and password of a user (Basic)\n");
    return 401;
}
