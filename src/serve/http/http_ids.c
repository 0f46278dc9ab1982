/*
 * IDs over HTTP: /v1/id/NAME gives them out. id is the name of a kind of generators, and any other
 * kind's stands there likewise.
 *
 * As text, one ID or key=value a line; as JSON where the client accepts it, with IDs as strings,
 * since a JSON number of 63 bits loses its last digits in JavaScript (RFC 8259, 6).
 */
#include "base/dec.h"
#include "base/hex.h"
#include "base/json.h"
#include "serve/http/http_call.h"

#include <stdio.h>

#define KEY_MAX 512 /* bytes of prefix and name; conf allows 50 and 200 */

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

/* The part of the name's generator that is asked for: ?date=, which is in a text's key as it is. */
static struct span date_of(const struct http_call *c, bool is_text)
{
    struct span date = span_of("", 0);
    if (is_text)
        return date;
    (void)http_query_get(c->req->query, SPAN("date"), &date);
    return date;
}

static size_t count_char(struct span s, char c)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += s.p[i] == c;
    return n;
}

/* Percent-decodes it behind the key. Of marks, which divide a key, there are those alone that stand
 * there as themselves: who encodes what somebody says, has one argument of it, and all of it. NULL:
 * it is there; else what was expected. */
static const char *put_decoded(struct buf *key, struct span s, const char *marks)
{
    size_t before = buf_span(key).n;
    if (!hex_put_unescaped(key, s))
        return "two hexadecimal digits behind each % of a name";
    for (; *marks; marks++)
        if (count_char(span_skip(buf_span(key), before), *marks) != count_char(s, *marks))
            return "neither %3F nor %23 in a name, neither %26 nor %23 in an argument, and no "
                   "%3D in the name of one";
    return NULL;
}

/* What the query says to the template: all but what is asked of the route itself. As put_decoded;
 * *said is where it is wrong. */
static const char *put_arguments(struct buf *key, struct span query, struct span *said)
{
    const char *wrong = NULL;
    for (char before = '?'; query.p && !wrong;) {
        struct span value = span_cut(&query, '&');
        *said = value;
        struct span name = span_cut(&value, '=');
        if (span_eq(name, SPAN("n")) || span_eq(name, SPAN("block")))
            continue;
        buf_put_char(key, before);
        before = '&';
        wrong = put_decoded(key, name, "&#=");
        if (!value.p)
            continue;
        buf_put_char(key, '=');
        wrong = wrong ? wrong : put_decoded(key, value, "&#");
    }
    return wrong;
}

/* Of generators by name: what the route reads of a query is said once, and a sub where it is read;
 * what is more of a text's is for its template to say. NULL: so it is. */
static const char *check_query(struct span all, bool is_text)
{
    static const char *const once[] = {"n", "block", "date"};
    struct span query = all, ignored;
    if (!is_text && http_query_get(query, SPAN("sub"), &ignored))
        return "the sub behind a ':' of the name";
    while (query.p) {
        struct span rest = span_cut(&query, '&'), name = span_cut(&rest, '=');
        for (size_t i = 0; i < sizeof once / sizeof *once; i++)
            if (span_eq(name, span_str(once[i])) && http_query_get(query, name, &ignored))
                return "n, block and date at most once";
    }
    return NULL;
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
    bool is_text = prefix && generator_is_text(prefix->generator);
    struct span said = c->req->query;
    const char *wrong =
        prefix && prefix->generator->kind->entry ? check_query(said, is_text) : NULL;
    if (!wrong) {
        said = arg;
        wrong = put_decoded(&key, arg, is_text ? "?#" : "");
    }
    if (is_text && !wrong && c->req->query.n > 0)
        wrong = put_arguments(&key, c->req->query, &said);
    if (wrong) {
        *status = http_call_fail(c, 400, wrong, said);
        return NULL;
    }
    struct names_entry *name =
        key.failed || !prefix
            ? NULL
            : names_find_part(&c->serve->issuer.names, buf_span(&key), date_of(c, is_text));
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
static void put_ids(struct http_call *c, const struct names_entry *name,
                    const struct generator_run *run, bool json)
{
    for (uint32_t i = 0; i < run->n; i++) {
        char mem[GENERATOR_TEXT_MAX];
        struct span text =
            generator_text(name->generator, generator_run_at(run, i), c->turn->wall_ms, mem);
        if (json && c->session->collected > 0)
            buf_put_char(c->out, ',');
        if (json)
            json_put_string(c->out, text);
        else
            buf_put_span(c->out, text);
        buf_put_str(c->out, json ? "" : "\n");
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
        if (r != ISSUE_OK && c->session->collected > 0 &&
            refusal_leaves_some(c->serve->issuer.refused))
            break;
        if (r != ISSUE_OK)
            return http_call_refuse(c, c->serve->issuer.refused);
        put_ids(c, name, &run, json);
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
    put_ids(c, name, &run, json);
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
    bool json = http_call_wants_json(c), block = wants_block(c);
    size_t behind = status_at_end(c);
    int status = http_call_admit(c);
    struct names_entry *name = status == 200 ? find_name(c, behind, &status) : NULL;
    if (!name)
        return status;
    if (behind > 0)
        return put_status(c, name);
    const struct issuer *issuer = &c->serve->issuer;
    if (block && generator_is_text(name->generator))
        return http_call_fail(c, 400, "no block of what has a text each", SPAN("block"));
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
