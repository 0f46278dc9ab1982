/*
 * IDs over HTTP: /v1/id/NAME gives them out, /v1/decode/ID takes one apart.
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

/* The entry that the path names, or NULL and *status. */
static struct names_entry *find_name(struct http_call *c, int *status)
{
    char text[KEY_MAX];
    struct buf key;
    struct names *names = &c->serve->issuer.names;
    const char *expected =
        names->count > 0 ? "a name of ids.names" : "a name of 1 to 200 printable bytes";
    buf_init(&key, text, sizeof text);
    buf_put(&key, names->prefix, names->prefix_length);
    if (!hex_put_unescaped(&key, c->arg)) {
        *status = http_call_fail(c, 400, "two hexadecimal digits behind each % of a name", c->arg);
        return NULL;
    }
    struct names_entry *name = key.failed ? NULL : names_find(names, buf_span(&key));
    if (!name)
        *status = http_call_fail(c, 404, expected, c->arg);
    if (name && !access_may(c->serve, &c->access, buf_span(&key))) {
        *status = http_call_fail(c, 403, "a name that this user may have IDs of", c->arg);
        return NULL;
    }
    return name;
}

/* How many IDs are asked for, or 0 and *status. */
static uint32_t count_of(struct http_call *c, int *status)
{
    char expected[64];
    struct span value = SPAN("1");
    uint64_t n;
    uint32_t batch = c->serve->issuer.batch;
    (void)http_query_get(c->req->query, SPAN("n"), &value);
    if (dec_u64(value, &n) && n >= 1 && n <= batch)
        return (uint32_t)n;
    (void)snprintf(expected, sizeof expected, "n from 1 to %u", batch);
    *status = http_call_fail(c, 400, expected, value);
    return 0;
}

/* IDs from first on, behind those collected before. */
static void put_ids(struct http_call *c, uint64_t first, uint32_t n, bool json)
{
    for (uint32_t i = 0; i < n; i++) {
        if (json)
            buf_put_str(c->out, c->session->collected > 0 ? ",\"" : "\"");
        buf_put_u64(c->out, first + i);
        buf_put_char(c->out, (char)(json ? '"' : '\n'));
        c->session->collected++;
    }
}

static int collect(struct http_call *c, struct names_entry *name, uint32_t n, bool json)
{
    while (c->session->collected < n) {
        uint64_t first;
        uint32_t got;
        enum issue_status r = issuer_some(&c->serve->issuer, c->turn, n - c->session->collected,
                                          &first, &got, &c->step);
        if (r == ISSUE_PARK)
            return HTTP_PARKED;
        if (r != ISSUE_OK)
            return http_call_refuse(c, r);
        name->issued += got;
        put_ids(c, first, got, json);
    }
    return 200;
}

int http_call_id(struct http_call *c)
{
    bool json = wants_json(c);
    int status = http_call_admit(c);
    struct names_entry *name = status == 200 ? find_name(c, &status) : NULL;
    if (!name)
        return status;
    uint32_t n = count_of(c, &status);
    if (n == 0)
        return status;
    if (json)
        c->type = HTTP_TYPE_JSON;
    if (json && c->session->collected == 0)
        BUF_PUT_LIT(c->out, "{\"ids\":[");
    status = collect(c, name, n, json);
    if (json && status == 200)
        BUF_PUT_LIT(c->out, "]}\n");
    return status;
}

/* ---- taking apart -----------------------------------------------------------------------------
 */

int http_call_decode(struct http_call *c)
{
    uint64_t id;
    struct layout_parts parts;
    char time[TIMEFMT_MAX];
    bool json = wants_json(c);
    int status = http_call_admit(c);
    if (status != 200)
        return status;
    if (!dec_u64(c->arg, &id) || !layout_decompose(id, &parts))
        return http_call_fail(c, 400, "an ID from 0 to 9223372036854775807", c->arg);
    if (!c->serve->issuer.started) /* no pool, no epoch */
        return http_call_refuse(c, ISSUE_LOADING);
    int64_t unix_ms = c->serve->issuer.gen.epoch_ms + parts.time;
    c->type = json ? HTTP_TYPE_JSON : c->type;
    buf_printf(c->out,
               json ? "{\"id\":\"%llu\",\"time\":\"%s\",\"unix_ms\":%lld,\"worker\":%u,"
                      "\"sequence\":%u}\n"
                    : "id=%llu\ntime=%s\nunix_ms=%lld\nworker=%u\nsequence=%u\n",
               (unsigned long long)id, timefmt_rfc3339(time, unix_ms), (long long)unix_ms,
               parts.worker, parts.sequence);
    return 200;
}
