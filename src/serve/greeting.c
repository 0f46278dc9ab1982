#include "serve/greeting.h"

#define GREETING_MAX 4096 /* bytes: of a user and a password, with what stands around them */

void greeting_put_user(struct buf *b, struct upstream_greeting *g, struct span user)
{
    g->user = span_of(b->p + b->n, user.n);
    buf_put_span(b, user);
}

void greeting_put_secret(struct buf *b, struct upstream_greeting *g, struct span password)
{
    g->secret = span_of(b->p + b->n, password.n);
    buf_put_span(b, password);
}

static bool greet_in(struct net_service *svc, const struct greeting_form *f, struct span user,
                     struct span password)
{
    char mem[GREETING_MAX];
    struct buf b;
    struct upstream_greeting g = {.kind = f->kind, .ok = f->ok, .words = f->words};
    buf_init(&b, mem, sizeof mem);
    if (password.n > 0)
        f->put(&b, &g, user, password);
    g.bytes = buf_span(&b);
    bool ok = !b.failed && upstream_greet(svc, f->lane, &g);
    explicit_bzero(mem, sizeof mem);
    return ok;
}

enum err_code serve_greet(struct serve *s, enum serve_protocol p, const char *user,
                          const char *password, struct err *e)
{
    struct net_service *svc = s->services[p];
    bool ok = true;
    if (!svc->upstream)
        return ERR_OK;
    for (const struct greeting_form *f = protocol_of(p)->logins; f && f->put && ok; f++)
        ok = greet_in(svc, f, span_str(user), span_str(password));
    return ok ? ERR_OK : err_set(e, ERR_NOMEM, "no memory for a login");
}
