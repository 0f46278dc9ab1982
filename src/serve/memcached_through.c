/*
 * With an upstream: what is no ID goes to the real memcached. A request that is answered here waits
 * for the replies before it.
 *
 * Requests that may go unanswered (noreply, quiet ones) are followed by a mark, a VERSION or a NOOP
 * of our own, whose answer is dropped: so each reply is known for what it is, errors included.
 *
 *     set a 0 0 1 noreply ... get b     ->     set ... noreply  version  get b
 *     VALUE b ...                       <-     (or an error)    VERSION  VALUE b ...
 */
#include "serve/memcached.h"
#include "wire/memcached_meta.h"

#include <stdlib.h>

/* A `get` of IDs and others: the others are asked for upstream in one, whose reply passes through
 * with the IDs put in their places. The IDs are drawn first. */
struct mcd_merge {
    bool sent;
    bool with_cas;
    uint32_t n, given; /* IDs drawn, and those that stand in the reply */
    struct span left;  /* keys that the reply has not come to; while IDs are drawn, those to draw */
    uint64_t *id;      /* behind the keys */
    char keys[];
};

static struct net_step behind(void)
{
    return (struct net_step){.verdict = NET_BEHIND};
}

static struct net_step passed(const struct mcd_call *c, size_t used)
{
    serve_count(c->m->serve, SERVE_MEMCACHED, c->req->verb, SERVE_PASSED);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

static bool is_id(const struct memcached *m, struct span key)
{
    return names_find(&m->serve->issuer.names, key) != NULL;
}

/* ---- what it is about -------------------------------------------------------------------------
 */

enum keys {
    KEYS_NONE,
    KEYS_IDS,
    KEYS_FOREIGN,
    KEYS_MIXED
};

static enum keys keys_of(const struct mcd_call *c)
{
    const struct mc_req *req = c->req;
    struct span keys = req->keys, key;
    char mem[MC_KEY_MAX];
    unsigned kinds = KEYS_NONE;
    while (kinds != KEYS_MIXED && mc_next_key(&keys, &key))
        kinds |= is_id(c->m, key) ? KEYS_IDS : KEYS_FOREIGN;
    if (req->keys.n > 0 || req->key.n == 0)
        return (enum keys)kinds;
    return is_id(c->m, req->meta.base64 ? mc_meta_key(req, mem) : req->key) ? KEYS_IDS
                                                                            : KEYS_FOREIGN;
}

static enum frame_kind reply_of(enum mc_verb verb)
{
    switch (verb) {
    case MC_GET:
    case MC_GETS:
    case MC_GAT:
    case MC_GATS:
        return FRAME_MC_VALUES;
    case MC_STATS:
    case MC_UNKNOWN:
        return FRAME_MC_LINES;
    case MC_META_GET:
    case MC_META_ARITHMETIC:
    case MC_META_SET:
    case MC_META_DELETE:
        return FRAME_MC_META;
    default:
        return FRAME_MC_LINE;
    }
}

/* ---- text -------------------------------------------------------------------------------------
 */

/* What makes the end of a request known that may go unanswered. */
static void send_mark(struct net_turn *turn, uint8_t kind)
{
    static const char noop[MCB_HEADER] = {[0] = MCB_REQUEST, [1] = 0x0a};
    if (kind == FRAME_MC_MARK)
        upstream_send(turn, SPAN("version\r\n"));
    else if (kind == FRAME_MC_NOOP)
        upstream_send(turn, span_of(noop, sizeof noop));
}

static void expect(struct net_turn *turn, uint8_t kind)
{
    bool marked = kind == FRAME_MC_MARK || kind == FRAME_MC_NOOP;
    upstream_expect(turn, (enum frame_kind)kind, 1, marked ? UPSTREAM_SILENT : 0);
}

/* Sends what is here of a request; the rest, if there is one, follows by stream. It is expected to
 * be answered from now on: an error does not wait for its end. */
static void send_request(struct mcd_session *s, struct net_turn *turn, struct span here,
                         uint64_t rest)
{
    upstream_send(turn, here);
    expect(turn, s->kind);
    if (rest == 0) {
        send_mark(turn, s->kind);
        return;
    }
    s->swallow = (struct mc_swallow){.left = rest};
    s->state = s->state == MCD_THROUGH ? MCD_STREAM : MCD_BINARY_STREAM;
}

static struct net_step unavailable(struct mcd_call *c)
{
    enum mc_verb verb = c->req->verb;
    if (upstream_pending(c->turn) > 0)
        return behind();
    if (verb == MC_VERSION || verb == MC_STATS || verb == MC_META_NOOP || c->req->error.n > 0)
        return mcd_serve_text(c->m, c->s, c->in, c->turn, c->out);
    if (c->req->body > 0)
        return mcd_begin_swallow(c, MCD_UNAVAILABLE, SERVE_FAILED);
    return mcd_answer(c, MCD_UNAVAILABLE, SERVE_FAILED);
}

/* A request that does not fit into a connection's input goes in pieces, on a link of its own. So
 * does one that is odd: memcached may see other requests in its bytes than we do, and then gives
 * more replies or fewer, which must be nobody else's. */
static struct net_step forward(struct mcd_call *c, bool odd)
{
    const struct mc_req *req = c->req;
    uint64_t whole = c->used + req->body;
    bool streams = whole > NET_IN_MAX, own = streams || odd || req->verb == MC_UNKNOWN;
    if (whole > c->in.n && !streams)
        return (struct net_step){.verdict = NET_MORE};
    switch (upstream_ready(c->turn, own ? UPSTREAM_OWN : UPSTREAM_TEXT)) {
    case UPSTREAM_BUSY:
        return behind();
    case UPSTREAM_DOWN:
        return unavailable(c);
    default:
        break;
    }
    size_t here = whole < c->in.n ? (size_t)whole : c->in.n;
    bool quiet = req->noreply || req->meta.quiet;
    c->s->kind = quiet ? FRAME_MC_MARK : (uint8_t)reply_of(req->verb);
    send_request(c->s, c->turn, span_of(c->in.p, here), whole - here);
    return passed(c, here);
}

/* What follows of a data block. */
static struct net_step stream(struct mcd_session *s, struct span in, struct net_turn *turn)
{
    size_t n = in.n < s->swallow.left ? in.n : (size_t)s->swallow.left;
    if (n == 0)
        return (struct net_step){.verdict = NET_MORE};
    switch (upstream_ready(turn, UPSTREAM_REST)) {
    case UPSTREAM_BUSY:
        return behind();
    case UPSTREAM_DOWN:
        return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
    default:
        break;
    }
    upstream_send(turn, span_of(in.p, n));
    s->swallow.left -= n;
    if (s->swallow.left == 0) {
        s->state = s->state == MCD_STREAM ? MCD_THROUGH : MCD_BINARY_THROUGH;
        send_mark(turn, s->kind);
    }
    return (struct net_step){.verdict = NET_DONE, .used = n, .passed = true};
}

/* ---- get of IDs and others --------------------------------------------------------------------
 */

static struct mcd_merge *begin_merge(struct mcd_call *c)
{
    struct span keys = c->req->keys;
    size_t ids = keys.n / 2 + 1, at = (keys.n + 7) / 8 * 8;
    struct mcd_merge *m = c->s->merge;
    if (m && !m->sent)
        return m;
    free(m);
    m = c->s->merge = malloc(sizeof *m + at + ids * sizeof *m->id);
    if (!m)
        return NULL;
    *m = (struct mcd_merge){.with_cas = c->req->with_cas, .left = {m->keys, keys.n}};
    memcpy(m->keys, keys.p, keys.n);
    m->id = (uint64_t *)(void *)(m->keys + at);
    return m;
}

static enum issue_status draw(struct mcd_call *c, struct mcd_merge *m, struct net_step *step)
{
    for (;;) {
        struct span rest = m->left, key;
        if (!mc_next_key(&rest, &key))
            return ISSUE_OK;
        struct names_entry *name = mcd_id_of(c, key);
        enum issue_status r =
            name ? mcd_issue(c->m, name, c->turn, 1, &m->id[m->n], step) : ISSUE_OK;
        if (r != ISSUE_OK)
            return r;
        m->n += name != NULL;
        m->left = rest;
    }
}

static struct net_step merge(struct mcd_call *c)
{
    struct span rest = c->req->keys, key;
    struct net_step step;
    if (upstream_pending(c->turn) > 0)
        return behind();
    enum upstream_ready is = upstream_ready(c->turn, UPSTREAM_TEXT);
    if (is == UPSTREAM_BUSY)
        return behind();
    struct mcd_merge *m = is == UPSTREAM_DOWN ? NULL : begin_merge(c);
    if (!m)
        return unavailable(c);
    enum issue_status r = draw(c, m, &step);
    if (r == ISSUE_PARK)
        return step;
    m->sent = true;
    if (r != ISSUE_OK)
        return mcd_fail(c, r);
    m->left = span_of(m->keys, rest.n);
    upstream_send(c->turn, span_of(c->req->line.p, (size_t)(rest.p - c->req->line.p)));
    while (mc_next_key(&rest, &key)) {
        if (mcd_id_of(c, key))
            continue;
        upstream_send(c->turn, SPAN(" "));
        upstream_send(c->turn, key);
    }
    upstream_send(c->turn, SPAN("\r\n"));
    upstream_expect(c->turn, FRAME_MC_MERGE, 1, 0);
    return passed(c, c->used);
}

/* The values of the IDs that stand before the key of a VALUE line, or all that are left. */
void mcd_heard(struct net_service *svc, void *session, const struct frame *f, struct buf *out)
{
    const struct memcached *m = (struct memcached *)svc;
    struct mcd_session *s = session;
    struct mcd_merge *g = s->merge;
    struct span line = f->part, key;
    (void)span_cut(&line, ' ');
    struct span upto = span_cut(&line, ' ');
    if (f->kind != FRAME_MC_MERGE || !g)
        return;
    while (mc_next_key(&g->left, &key)) {
        if (is_id(m, key) && g->given < g->n)
            mc_put_value(out, key, g->id[g->given++], g->with_cas);
        else if (f->part.n > 0 && span_eq(key, upto))
            return;
    }
    if (f->part.n == 0) {
        free(g);
        s->merge = NULL;
    }
}

/* ---- which ------------------------------------------------------------------------------------
 */

/* What nearly all requests are, without more ado. 0: it has to be parsed. */
static size_t forward_usual(struct memcached *m, const struct mcd_session *s, struct span in,
                            struct net_turn *turn)
{
    enum mc_verb verb;
    struct span key;
    size_t n = access_passes(m->serve, &s->access) ? mc_usual(in, &verb, &key) : 0;
    if (n == 0 || is_id(m, key))
        return 0;
    struct span line = span_of(in.p, n);
    bool joins = (verb == MC_GET || verb == MC_GETS) && !upstream_owns(turn);
    if (joins ? !upstream_join(turn, UPSTREAM_TEXT, line, key)
              : !upstream_forward(turn, UPSTREAM_TEXT, line, reply_of(verb)))
        return 0;
    serve_count(m->serve, SERVE_MEMCACHED, verb, SERVE_PASSED);
    return n;
}

static struct net_step refuse(struct mcd_call *c)
{
    const struct span why = SPAN("CLIENT_ERROR not allowed to this user\r\n");
    return c->req->body > 0 ? mcd_begin_swallow(c, why, SERVE_REFUSED)
                            : mcd_answer(c, why, SERVE_REFUSED);
}

struct net_step mcd_serve_through(struct memcached *m, struct mcd_session *s, struct span in,
                                  struct net_turn *turn, struct buf *out)
{
    struct mc_req req;
    struct mcd_call c = {.m = m, .s = s, .req = &req, .in = in, .turn = turn, .out = out};
    if (s->state == MCD_STREAM)
        return stream(s, in, turn);
    if (in.n == 0)
        return (struct net_step){.verdict = NET_MORE};
    size_t n = forward_usual(m, s, in, turn);
    if (n > 0)
        return (struct net_step){.verdict = NET_DONE, .used = n, .passed = true};
    enum wire_status status = mc_parse(in, &req, &c.used);
    if (status == WIRE_MORE)
        return (struct net_step){.verdict = NET_MORE};
    enum keys keys = status == WIRE_REQ ? keys_of(&c) : KEYS_NONE;
    if (keys == KEYS_MIXED && !mcd_keys_allowed(&c))
        keys = KEYS_IDS; /* refused there */
    /* Where memcached 1.6 refuses a key of a get, it forgets the reply before that, too. */
    bool refused = status == WIRE_CLOSE || !access_granted(&s->access) ||
                   (status == WIRE_BAD && reply_of(req.verb) == FRAME_MC_VALUES);
    enum mcd_rights may = refused || keys == KEYS_IDS
                              ? MCD_RIGHTS_HERE
                              : mcd_rights(m, &s->access, &req, status == WIRE_REQ);
    if (may == MCD_RIGHTS_REFUSED)
        return upstream_pending(turn) > 0 ? behind() : refuse(&c);
    if (may == MCD_RIGHTS_HERE || req.verb == MC_QUIT)
        return upstream_pending(turn) > 0 ? behind() : mcd_serve_text(m, s, in, turn, out);
    if (status == WIRE_BAD) /* there it has no data block, and may even be known */
        req.body = 0;
    bool odd = status == WIRE_BAD || req.wide ||
               !span_starts(req.line, span_str(mc_verb_name(req.verb))); /* in capitals */
    return keys == KEYS_MIXED ? merge(&c) : forward(&c, odd);
}

/* ---- binary -----------------------------------------------------------------------------------
 */

static struct net_step answer_binary(struct memcached *m, struct mcd_session *s, struct span in,
                                     struct net_turn *turn, struct buf *out)
{
    return upstream_pending(turn) > 0 ? behind() : mcd_serve_binary(m, s, in, turn, out);
}

/* The value of a request that was answered is passed over, without a second answer. */
static struct net_step begin_discard(struct mcd_session *s, const struct mcb_req *req, size_t used)
{
    if (req->body > 0) {
        s->swallow.left = req->body;
        s->state = MCD_DISCARD;
    }
    return (struct net_step){.verdict = NET_DONE, .used = used};
}

/* While the upstream is down we answer for what is about no key. */
static struct net_step unavailable_binary(struct memcached *m, struct mcd_session *s,
                                          const struct mcb_req *req, size_t used,
                                          struct net_turn *turn, struct span in, struct buf *out)
{
    if (upstream_pending(turn) > 0)
        return behind();
    if (req->key.n == 0)
        return mcd_serve_binary(m, s, in, turn, out);
    serve_count(m->serve, SERVE_MEMCACHED, req->verb, SERVE_FAILED);
    mcb_put(out, req, MCB_TEMPORARY, span_of("", 0), SPAN("upstream unavailable"), 0);
    return begin_discard(s, req, used);
}

static struct net_step refuse_binary(struct memcached *m, struct mcd_session *s,
                                     const struct mcb_req *req, size_t used, struct net_turn *turn,
                                     struct buf *out)
{
    if (upstream_pending(turn) > 0)
        return behind();
    serve_count(m->serve, SERVE_MEMCACHED, req->verb, SERVE_REFUSED);
    mcb_put_error(out, req, MCB_AUTH_ERROR);
    return begin_discard(s, req, used);
}

static struct net_step discard(struct mcd_session *s, struct span in)
{
    size_t n = in.n < s->swallow.left ? in.n : (size_t)s->swallow.left;
    if (n == 0)
        return (struct net_step){.verdict = NET_MORE};
    s->swallow.left -= n;
    if (s->swallow.left == 0)
        s->state = MCD_BINARY_THROUGH;
    return (struct net_step){.verdict = NET_DONE, .used = n, .passed = true};
}

struct net_step mcd_binary_through(struct memcached *m, struct mcd_session *s, struct span in,
                                   struct net_turn *turn, struct buf *out)
{
    struct mcb_req req;
    size_t used;
    if (s->state == MCD_DISCARD)
        return discard(s, in);
    if (s->state == MCD_BINARY_STREAM)
        return stream(s, in, turn);
    if (s->passing)
        return mcd_serve_binary(m, s, in, turn, out);
    enum wire_status status = in.n > 0 ? mcb_parse(in, &req, &used) : WIRE_MORE;
    if (status == WIRE_MORE)
        return (struct net_step){.verdict = NET_MORE};
    bool local = status != WIRE_REQ || !access_granted(&s->access) || req.verb == MC_QUIT ||
                 req.verb == MC_SASL || req.verb == MC_NOOP || (req.key.n > 0 && is_id(m, req.key));
    if (local)
        return answer_binary(m, s, in, turn, out);
    enum mcd_rights may = mcd_rights_binary(m, &s->access, &req);
    if (may == MCD_RIGHTS_HERE)
        return answer_binary(m, s, in, turn, out);
    if (may == MCD_RIGHTS_REFUSED)
        return refuse_binary(m, s, &req, used, turn, out);
    uint64_t whole = used + req.body;
    bool streams = whole > NET_IN_MAX;
    if (whole > in.n && !streams)
        return (struct net_step){.verdict = NET_MORE};
    enum upstream_ready is =
        upstream_ready(turn, streams || req.verb == MC_UNKNOWN ? UPSTREAM_OWN : UPSTREAM_BINARY);
    if (is == UPSTREAM_BUSY)
        return behind();
    if (is == UPSTREAM_DOWN)
        return unavailable_binary(m, s, &req, used, turn, in, out);
    size_t here = whole < in.n ? (size_t)whole : in.n;
    s->kind = req.quiet ? FRAME_MC_NOOP : req.verb == MC_STATS ? FRAME_MC_STATS : FRAME_MC_BINARY;
    send_request(s, turn, span_of(in.p, here), whole - here);
    serve_count(m->serve, SERVE_MEMCACHED, req.verb, SERVE_PASSED);
    return (struct net_step){.verdict = NET_DONE, .used = here, .passed = true};
}
