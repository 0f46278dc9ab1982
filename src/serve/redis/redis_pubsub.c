/*
 * Subscriptions. Nothing is published here, but clients open a connection to subscribe and wait for
 * the acknowledgements, with Redis's counts; so names are remembered, each as
 *
 *     | kind: 1 byte | length: 2 bytes | name |
 */
#include "serve/redis/redis.h"

#include <stdlib.h>

#define SUBS_BYTES (4u << 10) /* searched from end to end */
#define ENTRY      3u         /* bytes before the name */

struct rds_subs {
    uint32_t n;                   /* of bytes */
    uint32_t count[RDS_CHANNELS]; /* by kind */
    char bytes[];
};

static enum rds_channel kind_of(const struct rds_call *c)
{
    enum resp_verb verb = (enum resp_verb)c->cmd->verb;
    if (verb == RESP_PSUBSCRIBE || verb == RESP_PUNSUBSCRIBE)
        return RDS_PATTERN;
    return verb == RESP_SSUBSCRIBE || verb == RESP_SUNSUBSCRIBE ? RDS_SHARD : RDS_CHANNEL;
}

uint32_t rds_subs_count(const struct rds_session *ses, enum rds_channel kind)
{
    return ses->subs ? ses->subs->count[kind] : 0;
}

void rds_subs_end(struct rds_session *ses)
{
    free(ses->subs);
    ses->subs = NULL;
}

/* ---- the set ----------------------------------------------------------------------------------
 */

/* The entry at *at; *at is moved behind it. */
static enum rds_channel entry_at(const struct rds_subs *s, uint32_t *at, struct span *name)
{
    const unsigned char *p = (const unsigned char *)s->bytes + *at;
    *name = span_of(s->bytes + *at + ENTRY, (size_t)p[1] << 8 | p[2]);
    *at += ENTRY + (uint32_t)name->n;
    return (enum rds_channel)p[0];
}

/* true: found, from *from to before *to. Without a name, the first of its kind. */
static bool find(const struct rds_subs *s, enum rds_channel kind, const struct span *name,
                 uint32_t *from, uint32_t *to)
{
    struct span at_hand;
    for (*to = 0; s && *to < s->n;) {
        *from = *to;
        if (entry_at(s, to, &at_hand) == kind && (!name || span_eq(*name, at_hand)))
            return true;
    }
    return false;
}

/* There is room for it. */
static void add(struct rds_subs *s, enum rds_channel kind, struct span name)
{
    uint32_t from, to;
    if (find(s, kind, &name, &from, &to))
        return;
    char *p = s->bytes + s->n;
    p[0] = (char)kind;
    p[1] = (char)(name.n >> 8);
    p[2] = (char)(name.n & 0xFF);
    memcpy(p + ENTRY, name.p, name.n);
    s->n += ENTRY + (uint32_t)name.n;
    s->count[kind]++;
}

/* ---- the commands -----------------------------------------------------------------------------
 */

/* Shards are counted apart. name: NULL for null. */
static void acknowledge(struct rds_call *c, enum rds_channel kind, const struct span *name)
{
    const struct rds_session *ses = c->ses;
    resp_put_push(c->out, ses->proto, 3);
    resp_put_bulk(c->out, span_of(c->cmd->name, c->cmd->name_n));
    if (name)
        resp_put_bulk(c->out, *name);
    else
        resp_put_null(c->out, ses->proto);
    resp_put_integer(c->out, kind == RDS_SHARD ? rds_subs_count(ses, RDS_SHARD)
                                               : rds_subs_count(ses, RDS_CHANNEL) +
                                                     rds_subs_count(ses, RDS_PATTERN));
}

/* Room for all of the request's names; false: the error is written. */
static bool make_room(struct rds_call *c)
{
    struct rds_subs *s = c->ses->subs, *larger;
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span name;
    size_t n = s ? s->n : 0;
    while (resp_next_arg(&w, &name))
        n += ENTRY + name.n;
    if (n > SUBS_BYTES) {
        (void)rds_fail(c, SERVE_REFUSED,
                       "ERR too many subscriptions: expected at most %u bytes of channel names",
                       SUBS_BYTES);
        return false;
    }
    larger = realloc(s, sizeof *s + n);
    if (!larger) {
        (void)rds_fail(c, SERVE_FAILED, "ERR out of memory");
        return false;
    }
    if (!s)
        memset(larger, 0, sizeof *larger);
    c->ses->subs = larger;
    return true;
}

enum serve_result rds_subscribe(struct rds_call *c)
{
    enum rds_channel kind = kind_of(c);
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span name;
    if (!make_room(c))
        return SERVE_REFUSED;
    while (resp_next_arg(&w, &name)) {
        add(c->ses->subs, kind, name);
        acknowledge(c, kind, &name);
    }
    return SERVE_OK;
}

/* Removes the entry from .. to, and acknowledges that; name may lie in it. */
static void leave(struct rds_call *c, enum rds_channel kind, uint32_t from, uint32_t to,
                  const struct span *name)
{
    struct rds_subs *s = c->ses->subs;
    s->count[kind]--;
    acknowledge(c, kind, name);
    memmove(s->bytes + from, s->bytes + to, s->n - to);
    s->n -= to - from;
}

static void leave_all(struct rds_call *c, enum rds_channel kind)
{
    struct span name;
    uint32_t from, to;
    if (!find(c->ses->subs, kind, NULL, &from, &to))
        acknowledge(c, kind, NULL);
    while (find(c->ses->subs, kind, NULL, &from, &to)) {
        uint32_t at = from;
        (void)entry_at(c->ses->subs, &at, &name);
        leave(c, kind, from, to, &name);
    }
}

/* Without names, from all of the kind. */
enum serve_result rds_unsubscribe(struct rds_call *c)
{
    enum rds_channel kind = kind_of(c);
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span name;
    uint32_t from, to;
    if (c->req->argc == 1)
        leave_all(c, kind);
    while (resp_next_arg(&w, &name)) {
        if (find(c->ses->subs, kind, &name, &from, &to))
            leave(c, kind, from, to, &name);
        else
            acknowledge(c, kind, &name);
    }
    if (c->ses->subs && c->ses->subs->n == 0)
        rds_subs_end(c->ses);
    return SERVE_OK;
}

/* ---- for the program that takes over -----------------------------------------------------------
 */

void rds_subs_pack(const struct rds_session *ses, struct buf *parcel)
{
    parcel_put_bytes(parcel,
                     ses->subs ? span_of(ses->subs->bytes, ses->subs->n) : span_of(NULL, 0));
}

/* Entries that are whole, of kinds that there are. */
static bool whole(struct span bytes, uint32_t count[RDS_CHANNELS])
{
    while (bytes.n > 0) {
        const unsigned char *p = (const unsigned char *)bytes.p;
        if (bytes.n < ENTRY || p[0] >= RDS_CHANNELS)
            return false;
        size_t n = ENTRY + ((size_t)p[1] << 8 | p[2]);
        if (bytes.n < n)
            return false;
        count[p[0]]++;
        bytes = span_skip(bytes, n);
    }
    return true;
}

bool rds_subs_unpack(struct rds_session *ses, struct span *in)
{
    uint32_t count[RDS_CHANNELS] = {0};
    struct span bytes;
    if (!parcel_get_bytes(in, &bytes) || bytes.n > SUBS_BYTES || !whole(bytes, count))
        return false;
    if (bytes.n == 0)
        return true;
    struct rds_subs *s = malloc(sizeof *s + bytes.n);
    if (!s)
        return false;
    s->n = (uint32_t)bytes.n;
    memcpy(s->count, count, sizeof s->count);
    memcpy(s->bytes, bytes.p, bytes.n);
    ses->subs = s;
    return true;
}

size_t rds_subs_holds(const struct rds_session *ses)
{
    return ses->subs ? sizeof *ses->subs + ses->subs->n : 0;
}
