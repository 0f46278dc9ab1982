/*
 * Gets of one key that come one after the other go upstream as one:
 *
 *     requests not sent:  ... [ get a\r\n ]  and  get b\r\n  ->  ... [ get a b\r\n ]
 *     replies expected:   ... a, fresh       and  b          ->  ... a, fresh | b
 *     keys:               ... 1 a            and  1 b        ->  ... 1 a 1 b
 *
 * memcached writes the reply to each request by itself, which costs it, and wakes us for, as much
 * as a few dozen lookups. The reply is taken apart again by FRAME_MC_JOINED.
 *
 * Invariants
 *   - Whatever else is put on the link, or sent, ends the request that others may join.
 *   - No key stands twice in a request: were it set or deleted between the two lookups, one of them
 *     had a value, and nobody could say which.
 */
#include "net/private.h"

#define JOINT_MAX  2000u /* bytes of a request: servers may refuse longer lines … */
#define JOINT_KEYS 64u /* … or have no memory for so many values at once: all would go without */

/* The bit of a key. Two keys that share one cost a request, no more. */
static uint64_t *bit_of(struct joint *j, struct span key, uint64_t *bit)
{
    uint32_t h = span_hash(key);
    h ^= h >> 16;
    *bit = UINT64_C(1) << h % 64;
    return &j->seen[h / 64 % (sizeof j->seen / sizeof *j->seen)];
}

/* Whether the request at the end is of the same verb, and not too long with the key. */
static bool takes(const struct upstream_link *l, struct span verb, struct span key)
{
    uint32_t n = l->joint.n;
    return n > 0 && n + 1 + key.n <= JOINT_MAX && l->joint.keys < JOINT_KEYS &&
           span_starts(span_of(l->out.p + l->out.n - n, n), verb);
}

static bool keep_key(struct upstream_link *l, struct span key)
{
    char n = (char)key.n;
    return kept_add(l->up->net, &l->keys, span_of(&n, 1)) && kept_add(l->up->net, &l->keys, key);
}

bool link_join(struct upstream_link *l, struct span line, struct span key, bool *joined)
{
    struct span verb = span_of(line.p, (size_t)(key.p - line.p));
    struct joint *j = &l->joint;
    uint64_t bit, *word = bit_of(j, key, &bit);
    uint32_t n = 0;
    *joined = takes(l, verb, key) && !(*word & bit);
    if (*joined) {
        line = span_skip(line, verb.n - 1); /* " KEY\r\n" */
        l->out.n -= 2;
        n = j->n - 2;
    } else {
        memset(j->seen, 0, sizeof j->seen);
        j->keys = 0;
    }
    if (!keep_key(l, key) || !link_put(l, line))
        return false;
    *word |= bit;
    j->keys++;
    j->n = n + (uint32_t)line.n;
    return true;
}

struct span link_key(const struct upstream_link *l)
{
    struct span keys = kept_span(&l->keys);
    return span_of(keys.p + 1, (unsigned char)keys.p[0]);
}

void link_drop_key(struct upstream_link *l)
{
    l->keys.at += (uint32_t)link_key(l).n + 1;
    if (l->keys.at == l->keys.n)
        kept_free(l->up->net, &l->keys);
}
