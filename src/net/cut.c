/*
 * Who was closed for holding up others on a shared link. Asking again would begin on the shared one
 * again, and be cut again: so for a while what its party (net_peer.id) asks for first on each of
 * the next connections goes on a link of its own, if there is room.
 *
 * Not on all of them: an address may have many clients, most of whom need none.
 */
#include "base/log.h"
#include "net/private.h"

#define CUT_US     INT64_C(60000000)
#define CUT_CONNS  64u
#define CUT_SAY_MS 10000

void cut_note(struct upstream *up, const struct conn *c)
{
    int64_t now = upstream_now_us(up);
    uint64_t more = 0;
    struct net_peer peer;
    struct cut *k = NULL;
    peer_of(c->rd.fd, &peer);
    if (log_limit_pass(&up->cuts.said, now / 1000, CUT_SAY_MS, &more))
        log_info("closed a client that took a reply slowly while others waited; what it asks for "
                 "next has an upstream connection of its own",
                 kv_str("protocol", c->svc->name), kv_str("peer", peer.text), kv_u64("more", more));
    for (unsigned i = 0; i < CUTS; i++)
        if (up->cuts.of[i].id[0] == peer.id[0] && up->cuts.of[i].id[1] == peer.id[1])
            k = &up->cuts.of[i];
    if (!k)
        k = &up->cuts.of[up->cuts.at++ % CUTS];
    *k = (struct cut){.id = {peer.id[0], peer.id[1]}, .until_us = now + CUT_US, .left = CUT_CONNS};
    up->cuts.until_us = k->until_us;
}

bool cut_recalls(struct upstream *up, const struct conn *c)
{
    struct net_peer peer;
    int64_t now = upstream_now_us(up);
    if (now >= up->cuts.until_us) /* nobody was, as nearly always */
        return false;
    peer_of(c->rd.fd, &peer);
    for (unsigned i = 0; i < CUTS; i++) {
        struct cut *k = &up->cuts.of[i];
        if (k->id[0] == peer.id[0] && k->id[1] == peer.id[1] && now < k->until_us && k->left > 0) {
            k->left--;
            return true;
        }
    }
    return false;
}
