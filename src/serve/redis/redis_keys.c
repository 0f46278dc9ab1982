/*
 * Questions about keys, which give out no ID: whether a key is one, and which there are.
 */
#include "serve/redis/redis.h"

#include "base/dec.h"
#include "base/glob.h"

#define SCAN_COUNT_MAX 1000 /* keys of one SCAN: its COUNT is a hint */

/* ---- about ID keys ----------------------------------------------------------------------------
 */

/* ISSUE_OK: there is one, ISSUE_MISS: none. */
static enum issue_status look(struct rds_call *c, struct span key)
{
    struct names_entry *name = rds_name(c, key);
    return name ? issuer_look(rds_issuer(c), name, c->turn, &c->step) : ISSUE_MISS;
}

enum serve_result rds_exists(struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span key;
    int64_t n = 0;
    while (resp_next_arg(&w, &key)) {
        enum issue_status s = look(c, key);
        if (s != ISSUE_OK && s != ISSUE_MISS)
            return rds_not_issued(c, s);
        n += s == ISSUE_OK;
    }
    resp_put_integer(c->out, n);
    return n > 0 ? SERVE_OK : SERVE_MISS;
}

enum serve_result rds_type(struct rds_call *c)
{
    enum issue_status s = look(c, c->req->argv[1]);
    if (s != ISSUE_OK && s != ISSUE_MISS)
        return rds_not_issued(c, s);
    resp_put_simple(c->out, s == ISSUE_OK ? SPAN("string") : SPAN("none"));
    return s == ISSUE_OK ? SERVE_OK : SERVE_MISS;
}

/* TTL, PTTL, EXPIRETIME, PEXPIRETIME: an ID key never expires. */
enum serve_result rds_ttl(struct rds_call *c)
{
    enum issue_status s = look(c, c->req->argv[1]);
    if (s != ISSUE_OK && s != ISSUE_MISS)
        return rds_not_issued(c, s);
    resp_put_integer(c->out, s == ISSUE_OK ? -1 : -2);
    return s == ISSUE_OK ? SERVE_OK : SERVE_MISS;
}

/* ---- which keys there are: the configured names, for any other cannot be listed ---------------
 */

enum serve_result rds_dbsize(struct rds_call *c)
{
    resp_put_integer(c->out, (int64_t)rds_issuer(c)->names.count);
    return SERVE_OK;
}

/* The key of entry number i, in mem, which has room for any. */
struct key {
    char mem[512];
    struct span s;
};

static struct span key_of(const struct rds_call *c, size_t i, struct key *k)
{
    const struct names_prefix *prefix;
    const struct names_entry *entry = names_at(&rds_issuer(c)->names, i, &prefix);
    struct buf b;
    buf_init(&b, k->mem, sizeof k->mem);
    buf_put(&b, prefix->text, prefix->length);
    buf_put(&b, entry->text, entry->length);
    k->s = buf_span(&b);
    return k->s;
}

static bool pattern_ok(struct rds_call *c, struct span pattern)
{
    if (pattern.n <= GLOB_MAX)
        return true;
    (void)rds_fail(c, SERVE_INVALID,
                   "ERR the pattern is too long: expected at most %d bytes, found %zu", GLOB_MAX,
                   pattern.n);
    return false;
}

/* Counts the keys from entry `from` to before `to` that match, and writes them if put. */
static uint64_t match_keys(struct rds_call *c, const struct glob *pattern, size_t from, size_t to,
                           bool put)
{
    struct key k;
    uint64_t n = 0;
    for (size_t i = from; i < to; i++) {
        if (!glob_has(pattern, key_of(c, i, &k)))
            continue;
        n++;
        if (put)
            resp_put_bulk(c->out, k.s);
    }
    return n;
}

static void put_keys(struct rds_call *c, struct span pattern, size_t from, size_t to)
{
    struct glob g;
    glob_init(&g, pattern);
    resp_put_array(c->out, match_keys(c, &g, from, to, false));
    (void)match_keys(c, &g, from, to, true);
}

enum serve_result rds_keys(struct rds_call *c)
{
    struct span pattern = c->req->argv[1];
    if (!pattern_ok(c, pattern))
        return SERVE_INVALID;
    put_keys(c, pattern, 0, rds_issuer(c)->names.count);
    return SERVE_OK;
}

struct scan {
    struct span pattern;
    int64_t count;
    bool strings; /* TYPE allows them */
};

/* One option of SCAN and its value; false: the error is written. */
static bool scan_option(struct rds_call *c, struct scan *s, struct span option, struct span value)
{
    if (span_eq_nocase(option, SPAN("match"))) {
        s->pattern = value;
        return pattern_ok(c, value);
    }
    if (span_eq_nocase(option, SPAN("type"))) {
        s->strings = span_eq_nocase(value, SPAN("string"));
        return true;
    }
    bool count = span_eq_nocase(option, SPAN("count"));
    if (count && !rds_integer(c, value, &s->count))
        return false;
    if (count && s->count >= 1)
        return true;
    (void)rds_fail(c, SERVE_INVALID, "ERR syntax error");
    return false;
}

/* The cursor is the number of the next entry: the table never changes. */
enum serve_result rds_scan(struct rds_call *c)
{
    struct scan s = {.pattern = SPAN("*"), .count = 10, .strings = true};
    struct resp_walk w = resp_walk_from(c->req, 2);
    struct span option, value;
    uint64_t from;
    size_t count = rds_issuer(c)->names.count;
    if (!dec_u64(c->req->argv[1], &from))
        return rds_fail(c, SERVE_INVALID, "ERR invalid cursor");
    while (resp_next_arg(&w, &option)) {
        if (!resp_next_arg(&w, &value))
            return rds_fail(c, SERVE_INVALID, "ERR syntax error");
        if (!scan_option(c, &s, option, value))
            return SERVE_INVALID;
    }
    size_t first = from < count ? (size_t)from : count;
    size_t step = s.count < SCAN_COUNT_MAX ? (size_t)s.count : SCAN_COUNT_MAX;
    size_t end = count - first > step ? first + step : count;
    resp_put_array(c->out, 2);
    resp_put_bulk_u64(c->out, end < count ? end : 0);
    put_keys(c, s.pattern, first, s.strings ? end : first);
    return SERVE_OK;
}

enum serve_result rds_randomkey(struct rds_call *c)
{
    struct key k;
    size_t count = rds_issuer(c)->names.count;
    if (count == 0)
        resp_put_null(c->out, c->ses->proto);
    else
        resp_put_bulk(c->out, key_of(c, (size_t)(uint64_t)c->turn->wall_ms % count, &k));
    return SERVE_OK;
}
