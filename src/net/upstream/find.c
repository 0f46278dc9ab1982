/*
 * Where a server is: its addresses, and where it has a name, how fresh they are.
 *
 *     new link --> found less than FRESH_US ago? --yes--> connects
 *                         | no
 *                         `--> LINK_LOOKING --answer--> connects to what was found
 *                                   |
 *                                   `--no answer, or nobody can say--> connects to what was found
 *                                      before, less than STALE_US ago; else it fails
 *
 * A name that is said not to exist any more is gone at once: its old address may be somebody
 * else's. And who connects to us expects, as directly, to be where the name leads by now: it is
 * asked for again, within FRESH_US, and a shared link that is elsewhere makes way for another.
 */
#include "base/fnv.h"
#include "net/addr.h"
#include "net/upstream/links.h"

#include <stdio.h>
#include <sys/un.h>

#define FRESH_US INT64_C(2000000)  /* an answer serves other links for so long … */
#define STALE_US INT64_C(60000000) /* … and, where there is no other, for so long */

/* ---- the answer -------------------------------------------------------------------------------
 */

/* Where one stands in a list of n; n: nowhere. Its family, and so its length, is among the bytes.
 */
static unsigned stands(const struct sockaddr_storage *list, unsigned n,
                       const struct sockaddr_storage *one, socklen_t len)
{
    unsigned at = 0;
    while (at < n && memcmp(&list[at], one, len) != 0)
        at++;
    return at;
}

/* In whatever order: a name that is to spread who connects has another with each answer. */
static bool are_same(const struct upstream *up, const struct resolved *a)
{
    bool same = up->naddr == a->n;
    for (unsigned i = 0; same && i < a->n; i++)
        same = stands(up->addr, a->n, &a->addr[i], a->len[i]) < a->n &&
               stands(a->addr, a->n, &up->addr[i], up->addr_n[i]) < a->n;
    return same;
}

/* The address in use stays in use if it is still one of them, and so does what becomes of attempts
 * there: else answers that come more often than these end would keep us at one that hangs. */
static void use(struct upstream *up, const struct resolved *a)
{
    up->found_us = upstream_now_us(up);
    up->cut = a->cut;
    if (are_same(up, a))
        return;
    unsigned at = stands(a->addr, a->n, &up->addr[up->at], up->addr_n[up->at]);
    memcpy(up->addr, a->addr, sizeof up->addr);
    memcpy(up->addr_n, a->len, sizeof up->addr_n);
    up->naddr = a->n;
    up->at = at < a->n ? at : 0;
    up->round += at == a->n; /* failures of attempts that are under way are of another list */
    up->missed = 0;
}

static void found(struct ev_loop *loop, struct ev_async *w, int revents)
{
    (void)loop;
    (void)revents;
    struct upstream *up = CONTAINER(w, struct upstream, found);
    struct resolved a;
    if (!resolver_take(up->resolver, &a))
        return;
    up->asking = false;
    if (a.n > 0)
        use(up, &a);
    else if (a.none)
        up->found_us = INT64_MIN;
    find_follow(up);
    struct link left;
    link_take(&left, &up->links);
    while (!link_empty(&left)) {
        struct upstream_link *l =
            CONTAINER(link_take_first(&left, &up->links), struct upstream_link, all);
        if (l->state == LINK_LOOKING && !find_has(up))
            link_fail(l, a.why ? a.why : "it has no address");
        else
            link_found(l);
    }
}

/* By the resolver's thread. */
static void tell_loop(void *arg)
{
    struct upstream *up = arg;
    ev_async_send(up->net->loop, &up->found);
}

/* ---- the question -----------------------------------------------------------------------------
 */

bool find_has(const struct upstream *up)
{
    return !up->resolver ||
           (up->found_us != INT64_MIN && upstream_now_us(up) - up->found_us < STALE_US);
}

static void ask(struct upstream *up)
{
    up->doubted = up->asking; /* its answer may be older than who has come */
    up->asking = true;
    up->asked_us = upstream_now_us(up);
    resolver_ask(up->resolver);
}

bool find_must_ask(struct upstream *up)
{
    bool fresh = up->found_us != INT64_MIN && upstream_now_us(up) - up->found_us < FRESH_US;
    if (!up->resolver || fresh)
        return false;
    ask(up);
    return true;
}

void find_doubt(struct upstream *up)
{
    up->doubted = true;
    find_follow(up);
}

/* ---- following it -----------------------------------------------------------------------------
 */

uint64_t find_place(const struct upstream *up, unsigned i)
{
    return fnv64(&up->addr[i], up->addr_n[i]);
}

static bool leads_to(const struct upstream *up, const struct upstream_link *l)
{
    bool leads = up->cut; /* as far as is known */
    for (unsigned i = 0; i < up->naddr && !leads; i++)
        leads = find_place(up, i) == l->at;
    return leads;
}

/* By clients that come, by answers, and as long as there is something to do: whose place is taken
 * is not sure before there is room for the successor, and that is let in. */
void find_follow(struct upstream *up)
{
    bool shares = false;
    bool may = !up->net->rests && !up->net->draining;
    for (unsigned i = 0; up->resolver && i < UPSTREAM_SHARED; i++) {
        struct upstream_link *l = up->shared[i], *next = up->next[i];
        bool was = up->astray[i];
        shares |= l != NULL;
        if (next && next->at != 0 && !leads_to(up, next)) /* the name has gone on since */
            link_drop(next);
        up->astray[i] = l && l->state == LINK_OPEN && !leads_to(up, l);
        if (up->astray[i] && !was)
            upstream_moved(up);
        if (up->astray[i] && may)
            link_replace(l);
        if (was && !up->astray[i]) { /* who let nobody in was another one */
            up->unready[i] = (struct backoff){0, 0};
            up->stats.unowned_us = 0;
        }
    }
    if (shares && up->doubted && upstream_now_us(up) - up->asked_us >= FRESH_US)
        ask(up);
}

/* ---- life -------------------------------------------------------------------------------------
 */

enum err_code find_begin(struct upstream *up, const struct addr *a, upstream_look_up *look_up,
                         struct err *e)
{
    struct resolved known;
    up->found_us = INT64_MIN;
    up->asked_us = INT64_MIN / 2; /* long ago */
    (void)snprintf(up->host, sizeof up->host, "%s", a->host);
    if (a->is_unix) {
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        (void)snprintf(un.sun_path, sizeof un.sun_path, "%.107s", a->host);
        memcpy(&up->addr[0], &un, sizeof un);
        up->addr_n[0] = sizeof un;
        up->naddr = 1;
        return ERR_OK;
    }
    resolve(NULL, a->host, a->port, true, &known);
    if (known.n > 0) {
        use(up, &known);
        return ERR_OK;
    }
    up->addr_n[0] = carry_reached(up->net, up->text, &up->addr[0]); /* if it still is one of them */
    ev_async_init(&up->found, found);
    enum err_code r = resolver_new(a->host, a->port, look_up, tell_loop, up, &up->resolver, e);
    if (!r)
        ev_async_start(up->net->loop, &up->found);
    return r;
}

void find_end(struct upstream *up)
{
    if (!up->resolver)
        return;
    resolver_free(up->resolver);
    ev_async_stop(up->net->loop, &up->found);
    up->resolver = NULL;
}
