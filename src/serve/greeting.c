#include "serve/greeting.h"

#include "base/dec.h"
#include "net/upstream/upstream.h"
#include "wire/memcached_binary.h"
#include "wire/resp.h"

#define GREETING_MAX 4096 /* bytes: of a user and a password, with what stands around them */
#define SASL_AUTH    0x21

/* Where the password begins in what is in b so far. */
static void put_secret(struct buf *b, struct upstream_greeting *g, struct span password)
{
    g->secret = span_of(b->p + b->n, password.n);
    buf_put_span(b, password);
}

/* AUTH [user] password */
static void put_redis(struct buf *b, struct upstream_greeting *g, struct span user,
                      struct span password)
{
    resp_put_array(b, user.n > 0 ? 3 : 2);
    resp_put_bulk(b, SPAN("AUTH"));
    if (user.n > 0)
        resp_put_bulk(b, user);
    BUF_PUT_LIT(b, "$");
    buf_put_u64(b, password.n);
    BUF_PUT_LIT(b, "\r\n");
    put_secret(b, g, password);
    BUF_PUT_LIT(b, "\r\n");
}

/* As -Y wants it. A memcached that asks for no login keeps the value for no time at all. */
static void put_text(struct buf *b, struct upstream_greeting *g, struct span user,
                     struct span password)
{
    BUF_PUT_LIT(b, "set sidflake:login 0 -1 ");
    buf_put_u64(b, user.n + 1 + password.n);
    BUF_PUT_LIT(b, "\r\n");
    buf_put_span(b, user);
    BUF_PUT_LIT(b, " ");
    put_secret(b, g, password);
    BUF_PUT_LIT(b, "\r\n");
}

/* SASL PLAIN, as -S wants it: a key "PLAIN", a value NUL user NUL password. */
static void put_binary(struct buf *b, struct upstream_greeting *g, struct span user,
                       struct span password)
{
    size_t body = 5 + 2 + user.n + password.n;
    const char header[MCB_HEADER] = {
        MCB_REQUEST, SASL_AUTH, 0, 5, [10] = (char)(body >> 8), [11] = (char)body};
    buf_put(b, header, sizeof header);
    BUF_PUT_LIT(b, "PLAIN");
    buf_put_char(b, '\0');
    buf_put_span(b, user);
    buf_put_char(b, '\0');
    put_secret(b, g, password);
}

static const struct dialect {
    enum serve_protocol protocol;
    enum upstream_lane lane;
    enum frame_kind kind;
    struct span ok;
    size_t words;
    void (*put)(struct buf *b, struct upstream_greeting *g, struct span user, struct span password);
} dialects[] = {
    {SERVE_REDIS, UPSTREAM_TEXT, FRAME_RESP, {"+OK\r\n", 5}, 1, put_redis},
    {SERVE_MEMCACHED, UPSTREAM_TEXT, FRAME_MC_LINE, {"STORED\r\n", 8}, 0, put_text},
    {SERVE_MEMCACHED, UPSTREAM_BINARY, FRAME_MC_BINARY, {"\x81\x21", 2}, MCB_HEADER, put_binary},
};

static bool greet_in(struct net_service *svc, const struct dialect *d, struct span user,
                     struct span password)
{
    char mem[GREETING_MAX];
    struct buf b;
    struct upstream_greeting g = {.kind = d->kind, .ok = d->ok, .words = d->words};
    buf_init(&b, mem, sizeof mem);
    if (password.n > 0)
        d->put(&b, &g, user, password);
    g.bytes = buf_span(&b);
    bool ok = !b.failed && upstream_greet(svc, d->lane, &g);
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
    for (size_t i = 0; i < sizeof dialects / sizeof *dialects && ok; i++)
        if (dialects[i].protocol == p)
            ok = greet_in(svc, &dialects[i], span_str(user), span_str(password));
    return ok ? ERR_OK : err_set(e, ERR_NOMEM, "no memory for a login");
}
