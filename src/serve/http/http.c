/*
 * The HTTP service: metrics, probes, and IDs for whoever has only curl.
 *
 * A route writes the body; its head comes last, when the length is known, into room kept for it:
 *
 *     reply_start                body
 *      | room for the head ...... | body ... |   while the route writes, or waits for more IDs
 *      | head | body ... |                       when it is done
 *
 * Invariants
 *   - HEAD does what GET does, an ID is spent too, since its Content-Length has to be that of GET.
 *   - What a route has written when it waits holds IDs that were issued: they are kept for the
 *     answer, and dropped, never reused, if the rest is refused.
 *
 * Sources: RFC 9110 (semantics); Kubernetes, "API health endpoints" (?verbose).
 */
#include "net/upstream/upstream.h"
#include "serve/http/http_call.h"
#include "serve/watch/health.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define HEAD_ROOM ((size_t)768) /* bytes; the longest head has about 450 */
#define FOUND_MAX 64            /* bytes of a client's text that an error repeats */

#define TYPE_TEXT    SPAN("text/plain; charset=utf-8")
#define TYPE_HTML    SPAN("text/html; charset=utf-8")
#define TYPE_METRICS SPAN("text/plain; version=0.0.4; charset=utf-8")
#define TYPE_OM      SPAN("application/openmetrics-text; version=1.0.0; charset=utf-8")

struct http {
    struct net_service svc;
    struct serve *serve;
};

enum command {
    METRICS,
    LIVEZ,
    READYZ,
    ID,
    DECODE,
    STATUS,
    STATUS_JSON,
    OTHER,
    COMMANDS
};

struct route {
    const char *path;
    const char *arg; /* what follows the path, for people; "": nothing may */
    enum command command;
    int (*answer)(struct http_call *c); /* a status, or HTTP_PARKED */
    const char *help;
};

/* ---- errors -----------------------------------------------------------------------------------
 */

int http_call_fail(struct http_call *c, int status, const char *expected, struct span found)
{
    buf_truncate(c->out, c->body);
    c->type = TYPE_TEXT;
    BUF_PUT_LIT(c->out, "expected ");
    buf_put_str(c->out, expected);
    BUF_PUT_LIT(c->out, ", found \"");
    buf_put_span(c->out, span_of(found.p, found.n < FOUND_MAX ? found.n : FOUND_MAX));
    buf_put_str(c->out, found.n > FOUND_MAX ? "...\"\n" : "\"\n");
    return status;
}

int http_call_refuse(struct http_call *c, struct refusal why)
{
    buf_truncate(c->out, c->body);
    c->type = TYPE_TEXT;
    buf_put_str(c->out, refusal_text(why));
    buf_put_char(c->out, '\n');
    if (refusal_ends(why))
        return 410;
    enum issue_status s = refusal_status(why);
    return s == ISSUE_MISS ? 404 : s == ISSUE_WRONG ? 400 : 503;
}

static int not_found(struct http_call *c)
{
    return http_call_fail(c, 404, "one of the paths that / lists", c->req->path);
}

/* ---- probes and metrics -----------------------------------------------------------------------
 */

static int metrics(struct http_call *c)
{
    bool om = http_list_has(c->req->accept, SPAN("application/openmetrics-text"));
    struct print *p = &c->serve->prints[om ? PRINT_OPENMETRICS : PRINT_METRICS];
    c->type = om ? TYPE_OM : TYPE_METRICS;
    if (print_put(p, clock_mono_us(c->serve->clock), c->out))
        return 200;
    serve_look_behind(c->serve);
    serve_put_metrics(c->serve, c->out, om);
    print_note(p, c->out, c->body);
    return 200;
}

static bool is_found(const struct health *h, const char *name)
{
    for (size_t i = 0; i < h->n; i++)
        if (strcmp(h->finding[i].name, name) == 0)
            return true;
    return false;
}

/* The servers behind that are well; of the others there is a finding. */
static void put_upstreams(struct http_call *c, const struct health *h)
{
    for (size_t i = 0; i < SERVE_PROTOCOLS; i++) {
        const struct upstream_stats *st = upstream_stats(c->serve->services[i]);
        const char *name = health_upstream((enum serve_protocol)i);
        if (!st || is_found(h, name))
            continue;
        BUF_PUT_LIT(c->out, "[+]");
        buf_put_str(c->out, name);
        buf_put_str(c->out, st->up ? " ok\n" : " not asked for yet\n");
    }
}

/* What fails no check, since IDs can be had all the same, for whoever reads. */
static void put_findings(struct http_call *c)
{
    struct history_sample live;
    struct health h;
    serve_look_behind(c->serve);
    serve_sample_now(c->serve, &live);
    health_judge(c->serve, c->turn->wall_ms, &live, &h);
    put_upstreams(c, &h);
    for (size_t i = 0; i < h.n; i++) {
        if (h.finding[i].state == HEALTH_FAIL) /* the checks have said it */
            continue;
        BUF_PUT_LIT(c->out, "[!]");
        buf_put_str(c->out, h.finding[i].name);
        BUF_PUT_LIT(c->out, ": ");
        buf_put_str(c->out, h.finding[i].text);
        buf_put_char(c->out, '\n');
    }
}

/* The first n checks, as Kubernetes' API server lists its own. */
static void put_checks(struct http_call *c, struct refusal state, size_t n)
{
    struct health_check check;
    for (size_t i = 0; i < n && health_check(c->serve, i, state, &check); i++) {
        buf_put_str(c->out, check.fails ? "[-]" : "[+]");
        buf_put_str(c->out, check.name);
        if (check.fails) {
            BUF_PUT_LIT(c->out, " failed: ");
            buf_put_str(c->out, refusal_text(state));
            buf_put_char(c->out, '\n');
        } else {
            BUF_PUT_LIT(c->out, " ok\n");
        }
    }
    if (n > 1)
        put_findings(c);
    buf_put_str(c->out, c->path + 1);
    buf_put_str(c->out, !state.by ? " check passed\n" : " check failed\n");
}

/* state: by is NULL where all is well. The first check is liveness. */
static int probe(struct http_call *c, struct refusal state, size_t n)
{
    struct span ignored;
    if (http_query_get(c->req->query, SPAN("verbose"), &ignored))
        put_checks(c, state, n);
    else if (!state.by)
        BUF_PUT_LIT(c->out, "ok");
    else
        return http_call_refuse(c, state);
    return !state.by ? 200 : 503;
}

static int livez(struct http_call *c)
{
    return probe(c, (struct refusal){NULL, 0}, 1);
}

static int readyz(struct http_call *c)
{
    return probe(c, issuer_ready(&c->serve->issuer, c->turn->wall_ms), SIZE_MAX);
}

/* ---- routes -----------------------------------------------------------------------------------
 */

static int status(struct http_call *c);
static int status_json(struct http_call *c);

static const struct route routes[] = {
    {"/metrics", "", METRICS, metrics, "Prometheus text, or OpenMetrics by Accept"},
    {"/livez", "", LIVEZ, livez, "200 while the process serves; ?verbose"},
    {"/readyz", "", READYZ, readyz, "200 when an ID can be had, else 503; ?verbose"},
    {"/healthz", "", READYZ, readyz, "the same"},
    {"/v1/id/", "NAME", ID, http_call_id, "?n=N IDs, one a line, or JSON by Accept"},
    {"/v1/decode/", "ID", DECODE, http_call_decode, "time, workerId, sequence; or JSON by Accept"},
    {"/v1/status", "", STATUS_JSON, status_json, "what the status page tells, as JSON"},
    {"/", "", STATUS, status, "the status page; this list with Accept: text/plain"},
};

static const struct route unknown = {"", "", OTHER, not_found, ""};

static int list(struct http_call *c)
{
    BUF_PUT_LIT(c->out, "sidflake " SIDFLAKE_VERSION "\n");
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        buf_printf(c->out, "%s%-*s %s\n", routes[i].path, (int)(14 - strlen(routes[i].path)),
                   routes[i].arg, routes[i].help);
    const struct names *names = &c->serve->issuer.names;
    for (unsigned i = 0; i < names->n; i++) {
        const struct generator_kind *kind = names->prefix[i].generator->kind;
        if (kind->entry)
            buf_printf(c->out,
                       "/v1/%s/NAME ?n=N numbers, ?block=1 the last of N in a row; /status\n",
                       kind->name);
    }
    return 200;
}

/* The page with a nonce of its own: whoever gets something into it has not seen that before it is
 * written, and a page that is given out again is the same page. */
static void put_page(struct http_call *c)
{
    struct serve *s = c->serve;
    struct print *p = &s->prints[PRINT_STATUS];
    if (print_put(p, clock_mono_us(s->clock), c->out))
        return;
    (void)snprintf(s->nonce, sizeof s->nonce, "%016" PRIx64 "%016" PRIx64, rng_u64(s->rng),
                   rng_u64(s->rng));
    serve_look_behind(s);
    serve_put_status(s, s->nonce, c->out);
    print_note(p, c->out, c->body);
}

/* The status shows what is logged, so where there are users it is for them alone. */
static int admit_to_status(struct http_call *c)
{
    return c->session->access.mode == ACCESS_REQUIRED ? http_call_admit(c) : 200;
}

static int status_json(struct http_call *c)
{
    struct serve *s = c->serve;
    struct print *p = &s->prints[PRINT_STATUS_JSON];
    int admitted = admit_to_status(c);
    if (admitted != 200)
        return admitted;
    c->type = HTTP_TYPE_JSON;
    if (print_put(p, clock_mono_us(s->clock), c->out))
        return 200;
    serve_look_behind(s);
    serve_put_status_json(s, c->out);
    print_note(p, c->out, c->body);
    return 200;
}

/* Nothing but what the page itself holds may style it or run in it, and nobody may frame it. */
static int status(struct http_call *c)
{
    int admitted = admit_to_status(c);
    if (admitted != 200)
        return admitted;
    if (http_list_has(c->req->accept, SPAN("text/plain")))
        return list(c);
    put_page(c);
    buf_printf(&c->more,
               "Content-Security-Policy: default-src 'none'; style-src 'nonce-%s'; "
               "script-src 'nonce-%s'; img-src data:; connect-src 'self'; base-uri 'none'; "
               "form-action 'none'; frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n",
               c->serve->nonce, c->serve->nonce);
    c->type = TYPE_HTML;
    return 200;
}

/* A kind whose name is not in the table answers as `id` does. */
static const struct route *find_route(const struct serve *s, struct span path)
{
    static const struct route other_kind = {"", "NAME", ID, http_call_id, ""};
    struct span name;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        struct span own = span_str(routes[i].path);
        if (routes[i].arg[0] ? span_starts(path, own) : span_eq(path, own))
            return &routes[i];
    }
    return http_call_kind(s, path, &name) ? &other_kind : &unknown;
}

static const char *command_label(unsigned index)
{
    static const char *const names[COMMANDS] = {
        [METRICS] = "metrics",         [LIVEZ] = "livez",
        [READYZ] = "readyz",           [ID] = "id",
        [DECODE] = "decode",           [STATUS] = "status",
        [STATUS_JSON] = "status_json", [OTHER] = "other",
    };
    return index < COMMANDS ? names[index] : NULL;
}

/* ---- the service ------------------------------------------------------------------------------
 */

static enum serve_result result_of(int status)
{
    static const struct {
        int status;
        enum serve_result result;
    } table[] = {
        {200, SERVE_OK},      {404, SERVE_MISS},    {405, SERVE_REFUSED}, {401, SERVE_REFUSED},
        {403, SERVE_REFUSED}, {421, SERVE_REFUSED}, {501, SERVE_REFUSED}, {500, SERVE_FAILED},
        {503, SERVE_FAILED},  {410, SERVE_FAILED},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].status == status)
            return table[i].result;
    return SERVE_INVALID;
}

static struct span header_of(int status)
{
    if (status == 401)
        return SPAN("WWW-Authenticate: Basic realm=\"sidflake\", charset=\"UTF-8\"\r\n");
    return status == 503 ? SPAN("Retry-After: 1\r\n") : SPAN("");
}

/* Puts the head before the body, and both to where the reply begins. Returns the status sent. */
static int frame(struct http_call *c, int status)
{
    char head[HEAD_ROOM];
    struct buf h;
    if (c->out->failed)
        status = http_call_fail(c, 500, "an answer that fits the output", SPAN("a longer one"));
    size_t length = c->out->n - c->body, start = c->body - HEAD_ROOM;
    buf_init(&h, head, sizeof head);
    buf_put_span(&c->more, header_of(status));
    http_put_head(&h, status, c->type, length, c->req->keep_alive, buf_span(&c->more));
    buf_truncate(c->out, c->req->method == HTTP_HEAD ? c->body : c->out->n);
    length = c->out->n - c->body;
    memcpy(c->out->p + start, head, h.n);
    memmove(c->out->p + start + h.n, c->out->p + c->body, length);
    buf_truncate(c->out, start + h.n + length);
    return status;
}

static struct net_step park(struct http_call *c)
{
    c->step.partial = c->session->collected > 0;
    if (!c->step.partial)
        buf_truncate(c->out, c->body - HEAD_ROOM);
    return c->step;
}

/* Room for the head, unless a reply under way has it already. */
static void begin(struct http_call *c)
{
    c->body = c->turn->reply_start + HEAD_ROOM;
    if (c->session->collected > 0)
        return;
    buf_truncate(c->out, c->turn->reply_start);
    if (buf_room(c->out, HEAD_ROOM))
        buf_took(c->out, HEAD_ROOM);
}

/* Probes are for whoever asks, by whatever name. */
static int admit_site(struct http_call *c, const struct route *r)
{
    if (r->command == LIVEZ || r->command == READYZ)
        return 200;
    return http_call_host(c, r->command == ID || r->command == STATUS || r->command == STATUS_JSON);
}

static struct net_step serve_one(struct net_service *svc, void *session, struct span in,
                                 struct net_turn *turn, struct buf *out)
{
    struct serve *s = ((struct http *)svc)->serve;
    struct http_req req;
    struct http_call c = {.serve = s, .session = session, .req = &req, .turn = turn, .out = out};
    size_t used;
    enum wire_status w = http_parse(in, &req, &used);
    if (w == WIRE_MORE)
        return (struct net_step){.verdict = NET_MORE};
    if (w != WIRE_REQ) {
        buf_put_span(out, req.error);
        serve_count(s, SERVE_HTTP, OTHER, result_of(req.status));
        return (struct net_step){.verdict = NET_CLOSE, .used = used};
    }
    const struct route *r = find_route(s, req.path);
    c.path = r->path;
    c.arg = span_skip(req.path, strlen(r->path));
    c.type = TYPE_TEXT;
    buf_init(&c.more, c.more_text, sizeof c.more_text);
    begin(&c);
    if (out->failed) /* not even a head fits: nothing can be said */
        return (struct net_step){.verdict = NET_CLOSE, .used = used};
    int status = admit_site(&c, r);
    if (status == 200)
        status = r->answer(&c);
    if (status == HTTP_PARKED)
        return park(&c);
    serve_count(s, SERVE_HTTP, r->command, result_of(frame(&c, status)));
    c.session->collected = 0;
    return (struct net_step){
        .verdict = req.keep_alive ? NET_DONE : NET_CLOSE, .used = used, .cost = NET_DEAR};
}

static void closed(struct net_service *svc, void *session)
{
    access_close(((struct http *)svc)->serve, &((struct http_session *)session)->access);
}

static bool stands(const struct net_service *svc, const void *session)
{
    return access_stands(((const struct http *)svc)->serve,
                         &((const struct http_session *)session)->access);
}

/* ---- for the program that takes over -----------------------------------------------------------
 */

#define PACKED 1 /* version of what follows it */

/* What stands of a reply under way is this program's alone. */
static bool pack(const struct net_service *svc, const void *session, struct buf *parcel)
{
    (void)svc;
    parcel_put_u64(parcel, PACKED);
    return ((const struct http_session *)session)->collected == 0;
}

static bool unpack(struct net_service *svc, void *session, struct span packed)
{
    (void)svc;
    (void)session;
    uint64_t version;
    return parcel_get_u64(&packed, &version) && version == PACKED && packed.n == 0;
}

static_assert(offsetof(struct http_session, access) == 0, "access_open and the others take it");

static struct net_service *make(struct serve *s)
{
    struct http *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->serve = s;
    h->svc = (struct net_service){
        .name = protocol_http.name,
        .session_size = sizeof(struct http_session),
        .serve = serve_one,
        .open = access_open,
        .close = closed,
        .stands = stands,
        .pack = pack,
        .unpack = unpack,
        .refusal = SPAN("HTTP/1.1 503 Service Unavailable\r\n"
                        "Content-Type: text/plain; charset=utf-8\r\n"
                        "Content-Length: 26\r\n"
                        "Retry-After: 1\r\n"
                        "Connection: close\r\n\r\n"
                        "too many open connections\n"),
    };
    return &h->svc;
}

const struct protocol protocol_http = {
    .name = "http",
    .title = "HTTP",
    .make = make,
    .command = command_label,
};
