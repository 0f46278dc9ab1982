/*
 * IDs over HTTP: /v1/id/NAME gives them out, /v1/decode/ID takes one apart. id is the name of a
 * kind of generators, and any other kind's stands there likewise.
 *
 * As text, one ID or key=value a line; as JSON where the client accepts it, with IDs as strings,
 * since a JSON number of 63 bits loses its last digits in JavaScript (RFC 8259, 6).
 */
#include "base/dec.h"
#include "base/hex.h"
#include "base/timefmt.h"
#include "serve/http/http_call.h"

#include <stdio.h>

#define KEY_MAX 512 /* bytes of prefix and name; conf allows 50 and 200 */

static bool wants_json(const struct http_call *c)
{
    return http_list_has(c->req->accept, HTTP_TYPE_JSON);
}

/* ---- giving out -------------------------------------------------------------------------------
 */

const struct names_prefix *http_call_kind(const struct serve *s, struct span path,
                                          struct span *name)
{
    if (!span_starts(path, SPAN("/v1/")))
        return NULL;
    *name = span_skip(path, sizeof "/v1/" - 1);
    struct span kind = span_cut(name, '/');
    return name->p ? names_prefix_of_kind(&s->issuer.names, kind) : NULL;
}

/* The part of the name's generator that is asked for: ?date= */
static struct span date_of(const struct http_call *c)
{
    struct span date = span_of("", 0);
    (void)http_query_get(c->req->query, SPAN("date"), &date);
    return date;
}

/* The entry that the path names, without `behind` it, or NULL and *status. */
static struct names_entry *find_name(struct http_call *c, size_t behind, int *status)
{
    char text[KEY_MAX];
    struct buf key;
    struct span arg = c->arg;
    const struct names_prefix *prefix = http_call_kind(c->serve, c->req->path, &arg);
    arg.n -= behind;
    const char *expected =
        prefix && prefix->count > 0 ? "a name of ids.names" : "a name of 1 to 200 printable bytes";
    buf_init(&key, text, sizeof text);
    if (prefix)
        buf_put(&key, prefix->text, prefix->length);
    if (!hex_put_unescaped(&key, arg)) {
        *status = http_call_fail(c, 400, "two hexadecimal digits behind each % of a name", arg);
        return NULL;
    }
    struct names_entry *name = key.failed || !prefix ? NULL
                                                     : names_find_part(&c->serve->issuer.names,
                                                                       buf_span(&key), date_of(c));
    if (!name)
        *status = http_call_fail(c, 404, expected, arg);
    if (name && !access_may(c->serve, &c->access, buf_span(&key))) {
        *status = http_call_fail(c, 403, "a name that this user may have IDs of", arg);
        return NULL;
    }
    return name;
}

/* How many numbers are asked for, of at most so many; or 0 and *status. */
static uint32_t count_of(struct http_call *c, uint32_t most, int *status)
{
    char expected[64];
    struct span value = SPAN("1");
    uint64_t n;
    (void)http_query_get(c->req->query, SPAN("n"), &value);
    if (dec_u64(value, &n) && n >= 1 && n <= most)
        return (uint32_t)n;
    (void)snprintf(expected, sizeof expected, "n from 1 to %u", most);
    *status = http_call_fail(c, 400, expected, value);
    return 0;
}

/* Behind those collected before. */
static void put_ids(struct http_call *c, const struct generator_run *run, bool json)
{
    for (uint32_t i = 0; i < run->n; i++) {
        if (json)
            buf_put_str(c->out, c->session->collected > 0 ? ",\"" : "\"");
        buf_put_i64(c->out, generator_run_at(run, i));
        buf_put_char(c->out, (char)(json ? '"' : '\n'));
        c->session->collected++;
    }
}

static int collect(struct http_call *c, struct names_entry *name, uint32_t n, bool json)
{
    while (c->session->collected < n) {
        struct generator_run run;
        enum issue_status r = issuer_some(&c->serve->issuer, name, c->turn,
                                          n - c->session->collected, &run, &c->step);
        if (r == ISSUE_PARK)
            return HTTP_PARKED;
        if (r != ISSUE_OK && c->session->collected > 0 && refusal_ends(c->serve->issuer.refused))
            break;
        if (r != ISSUE_OK)
            return http_call_refuse(c, c->serve->issuer.refused);
        put_ids(c, &run, json);
    }
    return 200;
}

/* n in a row, of which the last is told. */
static int collect_block(struct http_call *c, struct names_entry *name, uint32_t n, bool json)
{
    struct generator_run run = {0, 0, 1};
    enum issue_status r = issuer_row(&c->serve->issuer, name, c->turn, n, &run.first, &c->step);
    if (r == ISSUE_PARK) {
        buf_truncate(c->out, c->body); /* the route begins anew */
        return HTTP_PARKED;
    }
    if (r != ISSUE_OK)
        return http_call_refuse(c, c->serve->issuer.refused);
    put_ids(c, &run, json);
    return 200;
}

/* NAME/status, of a name that is a generator of its own; how long that is, or 0. */
static size_t status_at_end(const struct http_call *c)
{
    static const char status[] = "/status";
    size_t n = sizeof status - 1;
    struct span name;
    const struct names_prefix *p = http_call_kind(c->serve, c->req->path, &name);
    bool is =
        p && p->generator->kind->entry && name.n > n && memcmp(name.p + name.n - n, status, n) == 0;
    return is ? n : 0;
}

static int put_status(struct http_call *c, struct names_entry *name)
{
    const struct generator *g = name->generator;
    enum issue_status r = issuer_look(&c->serve->issuer, name, c->turn, &c->step);
    if (r == ISSUE_PARK)
        return HTTP_PARKED;
    if (r != ISSUE_OK)
        return http_call_refuse(c, c->serve->issuer.refused);
    c->type = HTTP_TYPE_JSON;
    const char *before = "{";
    for (unsigned i = 0; i < g->kind->nfigures; i++) {
        const struct generator_figure *f = &g->kind->figures[i];
        int64_t v = f->member ? f->value(g, c->turn->wall_ms) : GENERATOR_UNKNOWN;
        if (v == GENERATOR_UNKNOWN)
            continue;
        buf_printf(c->out, "%s\"%s\":%lld", before, f->member, (long long)v);
        before = ",";
    }
    BUF_PUT_LIT(c->out, "}\n");
    return 200;
}

static bool wants_block(const struct http_call *c)
{
    struct span value;
    return http_query_get(c->req->query, SPAN("block"), &value) && !span_eq(value, SPAN("0"));
}

int http_call_id(struct http_call *c)
{
    bool json = wants_json(c), block = wants_block(c);
    size_t behind = status_at_end(c);
    int status = http_call_admit(c);
    struct names_entry *name = status == 200 ? find_name(c, behind, &status) : NULL;
    if (!name)
        return status;
    if (behind > 0)
        return put_status(c, name);
    const struct issuer *issuer = &c->serve->issuer;
    uint32_t n = count_of(c, block ? issuer_run(issuer, name) : issuer->batch, &status);
    if (n == 0)
        return status;
    if (json)
        c->type = HTTP_TYPE_JSON;
    if (json && c->session->collected == 0)
        BUF_PUT_LIT(c->out, "{\"ids\":[");
    status = block ? collect_block(c, name, n, json) : collect(c, name, n, json);
    if (json && status == 200)
        BUF_PUT_LIT(c->out, "]}\n");
    return status;
}

/* ---- taking apart -----------------------------------------------------------------------------
 */

static void put_part(struct http_call *c, const struct generator_part *p, bool json)
{
    char text[TIMEFMT_MAX];
    buf_printf(c->out, json ? ",\"%s\":" : "%s=", p->name);
    if (p->is_time)
        buf_printf(c->out, json ? "\"%s\"" : "%s", timefmt_rfc3339(text, p->value));
    else
        buf_put_i64(c->out, p->value);
    buf_put_str(c->out, json ? "" : "\n");
}

int http_call_decode(struct http_call *c)
{
    uint64_t id;
    struct generator_part part[GENERATOR_PARTS];
    bool json = wants_json(c);
    int n = 0, status = http_call_admit(c);
    if (status != 200)
        return status;
    struct generator *g = dec_u64(c->arg, &id) ? c->serve->issuer.generators : NULL;
    for (; g; g = g->after)
        if (g->kind->decode && (n = g->kind->decode(g, id, part)))
            break;
    if (n == 0)
        return http_call_fail(c, 400, "an ID from 0 to 9223372036854775807", c->arg);
    if (n < 0)
        return http_call_refuse(c, (struct refusal){g, g->kind->peek(g, c->turn->wall_ms)});
    c->type = json ? HTTP_TYPE_JSON : c->type;
    buf_printf(c->out, json ? "{\"id\":\"%llu\"" : "id=%llu\n", (unsigned long long)id);
    for (int i = 0; i < n; i++)
        put_part(c, &part[i], json);
    buf_put_str(c->out, json ? "}\n" : "");
    return 200;
}
