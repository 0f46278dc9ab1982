#include "support/wirefeed.h"

#include "support/pageend.h"
#include "wire/http_request.h"
#include "wire/mc_binary.h"
#include "wire/mc_canon.h"
#include "wire/mc_meta.h"
#include "wire/resp.h"

#include <stdio.h>
#include <stdlib.h>

#define SHORT_STREAM 600 /* bytes: each offset costs a run */
#define TEXT_MAX     300 /* bytes of a span written out */

static void put(struct wirefeed_log *log, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        log->hash = (log->hash ^ (unsigned char)p[i]) * UINT64_C(0x100000001b3);
        if (log->n + 1 < sizeof log->text)
            log->text[log->n++] = p[i];
    }
    log->text[log->n] = '\0';
}

static void put_str(struct wirefeed_log *log, const char *s)
{
    put(log, s, strlen(s));
}

static void put_number(struct wirefeed_log *log, const char *name, uint64_t v)
{
    char text[64];
    snprintf(text, sizeof text, " %s=%llu", name, (unsigned long long)v);
    put_str(log, text);
}

/* Long text is written as its length and a hash, what is not printable as \xHH. */
static void put_text(struct wirefeed_log *log, const char *name, struct span s)
{
    uint64_t hash = 0;
    char hex[8];
    put_str(log, name);
    for (size_t i = 0; i < s.n; i++) {
        hash = (hash ^ (unsigned char)s.p[i]) * UINT64_C(0x100000001b3);
        if (s.n > TEXT_MAX)
            continue;
        if (s.p[i] >= ' ' && s.p[i] <= '~') {
            put(log, s.p + i, 1);
        } else {
            snprintf(hex, sizeof hex, "\\x%02x", (unsigned char)s.p[i]);
            put_str(log, hex);
        }
    }
    if (s.n > TEXT_MAX) {
        put_number(log, "bytes", s.n);
        put_number(log, "hash", hash);
    }
}

static void put_optional(struct wirefeed_log *log, const char *name, struct span s)
{
    if (s.n)
        put_text(log, name, s);
}

/* One peer per stream: what a connection would keep between two reads. */
struct peer {
    enum wirefeed_codec codec;
    struct wirefeed_log *log;
    bool swallowing, closed;
    struct mc_swallow mc_block;
    struct mc_req mc;
    struct mcb_req mcb;
    uint64_t pass; /* bytes of a binary value */
    struct resp_req resp;
    struct http_req http;
};

static void put_error(struct peer *peer, enum wire_status status, struct span error)
{
    put_str(peer->log, status == WIRE_BAD ? "BAD" : "CLOSE");
    if (error.n >= 2 && memcmp(error.p + error.n - 2, "\r\n", 2) == 0)
        error.n -= 2;
    put_optional(peer->log, " ", error);
    peer->closed = status == WIRE_CLOSE;
}

static void log_meta(struct wirefeed_log *log, const struct mc_req *req)
{
    const struct mc_meta *m = &req->meta;
    char scratch[MC_KEY_MAX];
    struct span flags = m->flags, flag;
    for (const char *name = " flags="; mc_next_key(&flags, &flag); name = ",")
        put_text(log, name, flag);
    if (m->base64)
        put_text(log, " decoded=", mc_meta_key(req, scratch));
    if (req->verb == MC_META_ARITHMETIC)
        put_number(log, "delta", req->delta);
    if (m->mode)
        put_text(log, " mode=", span_of(&m->mode, 1));
    put_str(log, m->value ? " value" : "");
    put_str(log, m->quiet ? " quiet" : "");
    put_str(log, m->create ? " create" : "");
    put_str(log, m->compare ? " compare" : "");
}

static void log_memcached(struct peer *peer, enum wire_status status)
{
    struct mc_req *req = &peer->mc;
    struct span keys = req->keys, key;
    if (status != WIRE_REQ) {
        put_error(peer, status, req->error);
    } else {
        put_str(peer->log, "REQ ");
        put_str(peer->log, mc_verb_name(req->verb));
        put_optional(peer->log, " key=", req->key);
        for (const char *name = " keys="; mc_next_key(&keys, &key); name = ",")
            put_text(peer->log, name, key);
        if (req->verb == MC_STATS || req->verb == MC_VERBOSITY)
            put_optional(peer->log, " args=", req->args);
        if (req->verb == MC_INCR || req->verb == MC_DECR)
            put_number(peer->log, "delta", req->delta);
        log_meta(peer->log, req);
        put_str(peer->log, req->with_cas ? " cas" : "");
        put_str(peer->log, req->noreply ? " noreply" : "");
    }
    if (req->body)
        put_number(peer->log, "body", req->body);
    put_str(peer->log, "\n");
    peer->mc_block = (struct mc_swallow){.left = req->body};
    peer->swallowing = req->body > 0;
}

static void log_binary(struct peer *peer, enum wire_status status)
{
    const struct mcb_req *req = &peer->mcb;
    put_str(peer->log, status == WIRE_REQ ? "REQ " : "CLOSE");
    peer->closed = status != WIRE_REQ;
    if (status == WIRE_REQ) {
        put_str(peer->log, mc_verb_name(req->verb));
        put_number(peer->log, "opcode", req->opcode);
        put_optional(peer->log, " key=", req->key);
        put_optional(peer->log, " value=", req->value);
        put_str(peer->log, req->quiet ? " quiet" : "");
        put_str(peer->log, req->with_key ? " with_key" : "");
        if (req->cas)
            put_number(peer->log, "cas", req->cas);
        if (req->verb == MC_INCR || req->verb == MC_DECR) {
            put_number(peer->log, "delta", req->delta);
            put_number(peer->log, "expiration", req->expiration);
        }
        if (req->body)
            put_number(peer->log, "body", req->body);
    } else if (req->error) {
        put_number(peer->log, "error", req->error);
    }
    if (status == WIRE_REQ || req->error)
        put_optional(peer->log, " opaque=", req->opaque);
    put_str(peer->log, "\n");
    peer->pass = req->body;
    peer->swallowing = req->body > 0;
}

/* What the caller does with a value that nobody reads. */
static size_t pass(struct peer *peer, struct span in)
{
    size_t n = in.n < peer->pass ? in.n : (size_t)peer->pass;
    peer->pass -= n;
    peer->swallowing = peer->pass > 0;
    return n;
}

static void log_resp(struct peer *peer, enum wire_status status)
{
    struct resp_req *req = &peer->resp;
    struct resp_walk w = resp_walk_from(req, 0);
    struct span arg;
    uint32_t n = 0;
    if (status != WIRE_REQ) {
        put_error(peer, status, req->error);
    } else if (req->argc == 0) {
        put_str(peer->log, "EMPTY");
    } else {
        put_str(peer->log, req->inline_cmd ? "INLINE" : "REQ");
        put_number(peer->log, "argc", req->argc);
        for (; resp_next_arg(&w, &arg); n++)
            put_text(peer->log, " ", arg);
        if (n != req->seen)
            abort();
        put_str(peer->log, req->truncated ? " truncated" : "");
        peer->swallowing = req->truncated;
    }
    put_str(peer->log, "\n");
}

static void log_http(struct peer *peer, enum wire_status status)
{
    struct http_req *req = &peer->http;
    if (status != WIRE_REQ) {
        put_str(peer->log, "CLOSE");
        put_number(peer->log, "status", (uint64_t)req->status);
        peer->closed = true;
    } else {
        put_str(peer->log, req->method == HTTP_HEAD ? "REQ HEAD" : "REQ GET");
        put_text(peer->log, " ", req->path);
        if (req->query.p)
            put_text(peer->log, "?", req->query);
        put_optional(peer->log, " host=", req->host);
        put_optional(peer->log, " accept=", req->accept);
        put_str(peer->log, req->keep_alive ? " keep" : "");
    }
    put_str(peer->log, "\n");
}

static size_t swallow(struct peer *peer, struct span in)
{
    bool done, bad;
    size_t used;
    if (peer->codec == WIREFEED_MEMCACHED_BINARY)
        return pass(peer, in);
    if (peer->codec == WIREFEED_MEMCACHED)
        used = mc_swallow(&peer->mc_block, in, &done, &bad);
    else
        used = resp_swallow(&peer->resp.swallow, in, &done, &bad);
    if (done && !bad)
        put_str(peer->log, "SWALLOWED\n");
    if (bad && peer->codec == WIREFEED_MEMCACHED)
        put_str(peer->log, "SWALLOWED bad\n");
    if (bad && peer->codec == WIREFEED_RESP) {
        put_error(peer, WIRE_CLOSE, peer->resp.swallow.error);
        put_str(peer->log, "\n");
    }
    peer->swallowing = !done && !bad;
    return used;
}

/* The keys of both, word by word. */
static bool same_keys(struct span a, struct span b)
{
    struct span x = {NULL, 0}, y = {NULL, 0};
    bool more;
    do
        more = mc_next_key(&a, &x);
    while (more == mc_next_key(&b, &y) && span_eq(x, y) && more);
    return !more;
}

/* What is canonical is one request, the same when it is parsed, and when it is read again as it was
 * written; to memcached, too, it is one that is answered, with that block. */
static void check_canon(struct span in, const struct mc_req *req, enum wire_status status,
                        size_t used)
{
    static char written[WIRE_IN_MAX + MC_LINE_MAX];
    struct mc_canon c, again;
    if (!mc_canon(in, &c))
        return;
    struct span keys = req->keys.n > 0 ? req->keys : req->key;
    if (status != WIRE_REQ || c.verb != req->verb || c.silent != req->noreply ||
        c.used != used + req->body || c.used > in.n || c.block.n != req->body ||
        c.block.p + c.block.n != in.p + c.used || !same_keys(c.keys, keys))
        abort();
    memcpy(written, c.line, c.n);
    memcpy(written + c.n, c.block.p, c.block.n);
    struct span whole = {written, c.n + c.block.n};
    struct mc_there there = mc_there(whole);
    if (c.n >= MC_LINE_MAX || memchr(c.line, '\n', c.n) != c.line + c.n - 1 ||
        !mc_canon(whole, &again) || again.silent || again.used != whole.n || again.n != c.n ||
        memcmp(again.line, c.line, c.n) != 0 || again.verb != c.verb || again.reply != c.reply ||
        !there.answers || there.forgets || there.block != c.block.n)
        abort();
}

/* The same of the args of a request, one by one. */
static void check_bulks(struct span in, const struct resp_req *req, enum wire_status status)
{
    if (status != WIRE_REQ || req->inline_cmd || req->argc == 0)
        return;
    size_t at = (size_t)(req->argv[0].p + req->argv[0].n - in.p) + 2;
    struct span arg;
    for (uint32_t i = 1; i < req->argc && i < RESP_ARGV && resp_next_bulk(in, &at, &arg); i++)
        if (i >= req->seen || arg.p != req->argv[i].p || arg.n != req->argv[i].n)
            abort();
}

static enum wire_status parse(struct peer *peer, struct span in, size_t *used)
{
    enum wire_status status;
    switch (peer->codec) {
    case WIREFEED_MEMCACHED:
        status = mc_parse(in, &peer->mc, used);
        check_canon(in, &peer->mc, status, *used);
        return status;
    case WIREFEED_MEMCACHED_BINARY:
        return mcb_parse(in, &peer->mcb, used);
    case WIREFEED_RESP:
        status = resp_parse(in, &peer->resp, used);
        check_bulks(in, &peer->resp, status);
        return status;
    case WIREFEED_HTTP:
        break;
    }
    return http_parse(in, &peer->http, used);
}

/* One request, or one piece of what is to be swallowed. Returns the bytes used; 0: needs more. */
static size_t step(struct peer *peer, struct span in)
{
    static void (*const log_of[])(struct peer *, enum wire_status) = {
        [WIREFEED_MEMCACHED] = log_memcached,
        [WIREFEED_MEMCACHED_BINARY] = log_binary,
        [WIREFEED_RESP] = log_resp,
        [WIREFEED_HTTP] = log_http,
    };
    size_t used;
    if (peer->swallowing)
        return swallow(peer, in);
    enum wire_status status = parse(peer, in, &used);
    if (used > in.n || (status == WIRE_MORE) != (used == 0) ||
        (status == WIRE_MORE && in.n >= WIRE_IN_MAX))
        abort();
    if (status == WIRE_MORE)
        return 0;
    log_of[peer->codec](peer, status);
    return used;
}

static size_t next_piece(struct wirefeed_cut *cut, size_t at)
{
    if (at == 0 && cut->first)
        return cut->first;
    if (cut->seed == 0)
        return cut->piece;
    cut->seed ^= cut->seed << 13;
    cut->seed ^= cut->seed >> 7;
    cut->seed ^= cut->seed << 17;
    return 1 + (size_t)(cut->seed % cut->piece);
}

/* The block's bytes stand at the guard, so new ones push the old ones down. */
static struct span receive(struct pageend *block, struct span have, struct span *stream, size_t n)
{
    char *to;
    n = n < stream->n ? n : stream->n;
    n = n < WIRE_IN_MAX - have.n ? n : WIRE_IN_MAX - have.n;
    to = pageend_tail(block, have.n + n);
    memmove(to, have.p, have.n);
    if (n)
        memcpy(to + have.n, stream->p, n);
    *stream = span_skip(*stream, n);
    return span_of(to, have.n + n);
}

void wirefeed_run(enum wirefeed_codec codec, struct span stream, struct wirefeed_cut cut,
                  struct wirefeed_log *log)
{
    static struct pageend block;
    static struct peer peer;
    size_t whole = stream.n, used;
    if (!block.map)
        pageend_init(&block, WIRE_IN_MAX);
    struct span have = {pageend_tail(&block, 0), 0};
    peer = (struct peer){.codec = codec, .log = log};
    *log = (struct wirefeed_log){.hash = UINT64_C(0xcbf29ce484222325)};
    while (stream.n > 0 && !peer.closed) {
        have = receive(&block, have, &stream, next_piece(&cut, whole - stream.n));
        while (have.n > 0 && !peer.closed && (used = step(&peer, have)) > 0)
            have = span_skip(have, used);
    }
    if (have.n > 0 && !peer.closed) {
        put_str(log, "LEFT");
        put_number(log, "bytes", have.n);
        put_str(log, "\n");
    }
}

void wirefeed_compare(enum wirefeed_codec codec, struct span stream, struct wirefeed_cut cut,
                      const struct wirefeed_log *whole)
{
    static struct wirefeed_log log;
    wirefeed_run(codec, stream, cut, &log);
    if (log.hash == whole->hash)
        return;
    fprintf(stderr, "cut (first %zu, piece %zu, seed %llu):\n%s\nwhole:\n%s\n", cut.first,
            cut.piece, (unsigned long long)cut.seed, log.text, whole->text);
    abort();
}

void wirefeed_check(enum wirefeed_codec codec, struct span stream, uint64_t seed,
                    struct wirefeed_log *log)
{
    const size_t all = SIZE_MAX;
    wirefeed_run(codec, stream, (struct wirefeed_cut){0, all, 0}, log);
    if (stream.n <= SHORT_STREAM) {
        wirefeed_compare(codec, stream, (struct wirefeed_cut){0, 1, 0}, log);
        for (size_t at = 1; at < stream.n; at++)
            wirefeed_compare(codec, stream, (struct wirefeed_cut){at, all, 0}, log);
    }
    for (size_t piece = stream.n / 97 + 2; piece < stream.n; piece = piece * 5 + 1)
        wirefeed_compare(codec, stream, (struct wirefeed_cut){0, piece, seed | 1}, log);
}
