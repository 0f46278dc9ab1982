/*
 * /v1/decode/TEXT takes an ID apart, or a text that a number was written as: with ?seq=NAME as one
 * of that name, else as one of any whose form is known here.
 *
 * As text, key=value a line; as JSON where the client accepts it.
 */
#include "base/dec.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/timefmt.h"
#include "serve/http/http_call.h"

#define TEXT_MAX 512
#define WHY_MAX  2048

/* ---- IDs --------------------------------------------------------------------------------------
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

static void put_id(struct http_call *c, uint64_t id, const struct generator_part *part, int n)
{
    bool json = http_call_wants_json(c);
    c->type = json ? HTTP_TYPE_JSON : c->type;
    buf_printf(c->out, json ? "{\"id\":\"%llu\"" : "id=%llu\n", (unsigned long long)id);
    for (int i = 0; i < n; i++)
        put_part(c, &part[i], json);
    buf_put_str(c->out, json ? "}\n" : "");
}

/* ---- texts ------------------------------------------------------------------------------------
 */

/* {"text":"INV-1","seq":"invoice","number":"1", ... "arguments":{"area":"010"}} */
static void put_json(struct http_call *c, struct span text, const char *kind,
                     const struct generator_reading *r)
{
    c->type = HTTP_TYPE_JSON;
    BUF_PUT_LIT(c->out, "{\"text\":");
    json_put_string(c->out, text);
    buf_printf(c->out, ",\"%s\":", kind);
    json_put_string(c->out, r->of);
    for (unsigned said = 0; said < 2; said++) {
        const char *before = said ? "" : ",";
        buf_put_str(c->out, said ? ",\"arguments\":{" : "");
        for (unsigned i = 0; i < r->n; i++) {
            if (r->part[i].said != (said == 1))
                continue;
            buf_put_str(c->out, before);
            json_put_string(c->out, r->part[i].name);
            buf_put_char(c->out, ':');
            json_put_string(c->out, r->part[i].text);
            before = ",";
        }
    }
    BUF_PUT_LIT(c->out, "}}\n");
}

static void put_lines(struct http_call *c, struct span text, const char *kind,
                      const struct generator_reading *r)
{
    BUF_PUT_LIT(c->out, "text=");
    buf_put_span(c->out, text);
    buf_printf(c->out, "\n%s=", kind);
    buf_put_span(c->out, r->of);
    for (unsigned i = 0; i < r->n; i++) {
        buf_put_str(c->out, r->part[i].said ? "\nargument." : "\n");
        buf_put_span(c->out, r->part[i].name);
        buf_put_char(c->out, '=');
        buf_put_span(c->out, r->part[i].text);
    }
    BUF_PUT_LIT(c->out, "\n");
}

/* Whether this user may have such numbers: others are not told that there are any. */
static bool may_know(const struct http_call *c, const struct generator *g,
                     const struct generator_reading *r)
{
    const struct names *n = &c->serve->issuer.names;
    char mem[TEXT_MAX];
    struct buf key;
    buf_init(&key, mem, sizeof mem);
    for (unsigned i = 0; i < n->n; i++)
        if (n->prefix[i].generator == g)
            buf_put(&key, n->prefix[i].text, n->prefix[i].length);
    buf_put_span(&key, r->of);
    buf_put_str(&key, r->sub.n > 0 ? ":" : "");
    buf_put_span(&key, r->sub);
    return !key.failed && access_may(c->serve, &c->access, buf_span(&key));
}

/* false: no generator knows such a text; what is said of it is of one that this user may know. */
static bool decode_text(struct http_call *c, struct span text, struct span name, struct buf *why)
{
    for (const struct generator *g = c->serve->issuer.generators; g; g = g->after) {
        struct generator_reading r = {.at = 0};
        enum err_code code = ERR_NOT_FOUND;
        size_t said = why->n;
        while (g->kind->read && (code = g->kind->read(g, text, name, &r, why)) != ERR_NOT_FOUND) {
            bool may = may_know(c, g, &r);
            if (may && code == ERR_OK)
                break;
            if (!may)
                buf_truncate(why, said);
            said = why->n;
        }
        if (code != ERR_OK)
            continue;
        if (http_call_wants_json(c))
            put_json(c, text, "seq", &r);
        else
            put_lines(c, text, "seq", &r);
        return true;
    }
    return false;
}

static bool reads_texts(const struct http_call *c)
{
    for (const struct generator *g = c->serve->issuer.generators; g; g = g->after)
        if (g->kind->read)
            return true;
    return false;
}

/* ---- either -----------------------------------------------------------------------------------
 */

int http_call_decode(struct http_call *c)
{
    uint64_t id;
    struct generator_part part[GENERATOR_PARTS];
    char mem[TEXT_MAX], why_mem[WHY_MAX];
    struct buf text, why;
    struct span name = span_of("", 0);
    int n = 0, status = http_call_admit(c);
    if (status != 200)
        return status;
    bool named = http_query_get(c->req->query, SPAN("seq"), &name);
    struct generator *g = !named && dec_u64(c->arg, &id) ? c->serve->issuer.generators : NULL;
    for (; g; g = g->after)
        if (g->kind->decode && (n = g->kind->decode(g, id, part)))
            break;
    if (n < 0)
        return http_call_refuse(c, (struct refusal){g, g->kind->peek(g, c->turn->wall_ms)});
    if (n > 0) {
        put_id(c, id, part, n);
        return 200;
    }
    buf_init(&text, mem, sizeof mem);
    buf_init(&why, why_mem, sizeof why_mem);
    if (hex_put_unescaped(&text, c->arg) && !text.failed &&
        decode_text(c, buf_span(&text), name, &why))
        return 200;
    if (buf_span(&why).n > 0) {
        buf_put_span(c->out, buf_span(&why));
        buf_put_char(c->out, '\n');
        return 400;
    }
    return http_call_fail(c, 400,
                          reads_texts(c) ? "an ID from 0 to 9223372036854775807, or a text of a "
                                           "sequence whose template is known here"
                                         : "an ID from 0 to 9223372036854775807",
                          c->arg);
}
