/*
 * With an upstream: a `get` that is longer than a connection's input, as of thousands of keys at
 * once. It goes on a link of the client's own, key by key as they come:
 *
 *     get k1 k2 ... | k2001 k2002 ... | k4001\r\n
 *     ->  "get" " k1 k2 ..." " k2001 ..." " k4001" "\r\n", and one reply is expected
 *
 * memcached says nothing before the line has ended. So what is found out meanwhile, that a key is
 * an ID, none at all or not for this user, can still be all that the client is told: the line is
 * ended where it is, and what memcached has to say is dropped.
 */
#include "serve/memcached/memcached.h"

#define LONG_MAX ((uint64_t)1 << 20) /* bytes of such a line: memcached keeps all of it */
#define KEYS_MIN (WIRE_LINE_MAX / (MC_KEY_MAX + 1)) /* that it has */

#define WITH_IDS SPAN("CLIENT_ERROR ids are not among so many keys: get them by a shorter line\r\n")

struct net_step mcd_begin_long(struct mcd_call *c)
{
    struct mcd_session *s = c->s;
    struct span verb = span_str(span_starts(c->in, SPAN("gets ")) ? "gets" : "get");
    const struct user *u = access_limits(c->m->serve, &s->access);
    bool may = !u || rights_may(u, RIGHTS_READ);
    enum upstream_ready is = may ? upstream_ready(c->turn, UPSTREAM_OWN, KEYS_MIN) : UPSTREAM_DOWN;
    if (is == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    s->state = MCD_LONG;
    s->swallow.left = LONG_MAX;
    s->answer = !may ? MCD_NOT_ALLOWED : is == UPSTREAM_DOWN ? MCD_UNAVAILABLE : span_of(NULL, 0);
    s->kind = is == UPSTREAM_DOWN ? 0 : FRAME_MC_VALUES;
    if (s->kind)
        upstream_send(c->turn, verb);
    return (struct net_step){.verdict = NET_DONE, .used = verb.n, .passed = true, .begun = true};
}

/* What is wrong with the keys; empty: nothing. *n: how many were looked at. */
static struct span judge(const struct memcached *m, const struct mcd_session *s, struct span keys,
                         uint32_t *n)
{
    const struct user *u = access_limits(m->serve, &s->access);
    struct span key;
    for (*n = 0; mc_next_key(&keys, &key); ++*n) {
        if (!mc_is_key(key))
            return MC_BAD_FORMAT;
        if (names_find(&m->serve->issuer.names, key))
            return WITH_IDS;
        if (u && !rights_key(u, key))
            return MCD_NOT_ALLOWED;
    }
    return span_of(NULL, 0);
}

/* Up to the end of the line, or of the last key that is there whole; 0: more has to come. */
static size_t whole_keys(struct span in, const char *end)
{
    const char *space = memrchr(in.p, ' ', in.n);
    if (end)
        return (size_t)(end - in.p);
    if (!space && in.n > MC_KEY_MAX + 1) /* no key, nor one and the CR of the line's end */
        return in.n;
    return space ? (size_t)(space - in.p) + 1 : 0;
}

static struct net_step finish(struct memcached *m, struct mcd_session *s, struct net_turn *turn,
                              struct buf *out)
{
    bool refused = s->answer.n > 0;
    if (s->kind) {
        upstream_send(turn, SPAN("\r\n"));
        upstream_expect(turn, FRAME_MC_VALUES, 1, refused ? UPSTREAM_DROP : 0);
        s->kind = 0;
    }
    if (refused && upstream_pending(turn) > 0)
        return (struct net_step){.verdict = NET_BEHIND};
    buf_put_span(out, s->answer);
    serve_count(m->serve, SERVE_MEMCACHED, MC_GET, refused ? SERVE_INVALID : SERVE_PASSED);
    s->answer = span_of(NULL, 0);
    s->swallow.left = 0;
    s->state = MCD_THROUGH;
    return (struct net_step){.verdict = NET_DONE, .used = 1, .passed = !refused};
}

struct net_step mcd_serve_long(struct memcached *m, struct mcd_session *s, struct span in,
                               struct net_turn *turn, struct buf *out)
{
    const char *end = in.n > 0 ? memchr(in.p, '\n', in.n) : NULL;
    size_t n = in.n > 0 ? whole_keys(in, end) : 0;
    struct span keys = span_of(in.p, n);
    if (n == 0 && !end)
        return (struct net_step){.verdict = NET_MORE, .begun = true};
    if (n > s->swallow.left)
        return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
    if (s->kind) {
        enum upstream_ready is = upstream_ready(turn, UPSTREAM_REST, 0);
        if (is == UPSTREAM_BUSY)
            return (struct net_step){.verdict = NET_BEHIND};
        if (is == UPSTREAM_DOWN)
            return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
    }
    if (n == 0)
        return finish(m, s, turn, out);
    if (keys.p[n - 1] == '\r')
        keys.n--;
    uint32_t words = 0;
    if (s->answer.n == 0)
        s->answer = judge(m, s, keys, &words);
    if (s->answer.n == 0) {
        upstream_send(turn, keys);
        upstream_weigh(turn, words);
    }
    s->swallow.left -= n;
    return (struct net_step){.verdict = NET_DONE, .used = n, .passed = true, .begun = true};
}
