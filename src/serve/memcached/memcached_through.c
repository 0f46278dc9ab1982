/*
 * With an upstream: what is no ID goes to the real memcached. A request that is answered here waits
 * for the replies before it.
 *
 *     canonical       ->  the link that clients share, as it is written in wire/mc_canon.h:
 *                         one request, one reply, which is dropped if it was noreply
 *     anything else   ->  a link of the client's own, as it came; replies that are not expected
 *                         are the client's, too
 *
 * In binary, quiet requests are followed by a NOOP of our own, whose answer is dropped: so each
 * reply is known for what it is, errors included.
 */
#include "serve/memcached/memcached.h"
#include "wire/mc_meta.h"

#include <stdlib.h>

#define VALUE_MAX 512u /* bytes of an ID's lines, with its key and all, at most */

/* A `get` of IDs and others: the others are asked for upstream in one, whose reply passes through
 * with the IDs put in their places. The IDs are drawn first. */
#define NO_NUMBER INT64_MIN /* of a key that is not there */

struct mcd_merge {
    size_t bytes; /* allocated */
    bool sent;
    bool with_cas;
    uint32_t n, given; /* IDs drawn, and those that stand in the reply */
    struct span left;  /* keys that the reply has not come to; while IDs are drawn, those to draw */
    int64_t *id;       /* behind the keys */
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

static struct net_step unavailable(struct mcd_call *c)
{
    enum mc_verb verb = c->req->verb;
    bool wrong = verb != MC_UNKNOWN && c->req->error.n > 0; /* memcached may know what we do not */
    if (upstream_pending(c->turn) > 0)
        return behind();
    if (verb == MC_VERSION || verb == MC_STATS || verb == MC_META_NOOP || wrong)
        return mcd_serve_text(c->m, c->s, c->in, c->turn, c->out);
    if (c->req->body > 0)
        return mcd_begin_swallow(c, MCD_UNAVAILABLE, SERVE_AWAY);
    return mcd_answer(c, MCD_UNAVAILABLE, SERVE_AWAY);
}

/* Of so many words. false: nothing can go there now, and *step is what becomes of the request. */
static bool may_send(struct mcd_call *c, enum upstream_lane lane, uint32_t words,
                     struct net_step *step)
{
    enum upstream_ready is = upstream_ready(c->turn, lane, words);
    if (is == UPSTREAM_BUSY)
        *step = behind();
    else if (is == UPSTREAM_DOWN)
        *step = unavailable(c);
    return is < UPSTREAM_BUSY;
}

/* Begins a request of which whole bytes, n of them here, go upstream as they came: what does not
 * fit into a connection's input follows by stream. */
static struct net_step begin(struct mcd_session *s, struct span in, uint64_t whole,
                             struct net_turn *turn)
{
    size_t here = whole < in.n ? (size_t)whole : in.n;
    upstream_send(turn, span_of(in.p, here));
    s->swallow = (struct mc_swallow){.left = whole - here};
    if (whole > here)
        s->state = s->state == MCD_THROUGH ? MCD_STREAM : MCD_BINARY_STREAM;
    return (struct net_step){
        .verdict = NET_DONE, .used = here, .passed = true, .begun = whole > here};
}

static struct net_step forward_canonical(struct mcd_call *c, const struct mc_canon *q)
{
    struct net_step step;
    if (!may_send(c, UPSTREAM_TEXT, q->words, &step))
        return step;
    upstream_send(c->turn, span_of(q->line, q->n));
    upstream_send(c->turn, q->block);
    upstream_weigh(c->turn, q->words);
    upstream_expect(c->turn, q->reply, 1, q->silent ? UPSTREAM_DROP : 0);
    return passed(c, q->used);
}

/* While it has a part of a block, memcached keeps the replies to what came before it to itself, for
 * as long as the client takes: so those come first. */
static bool must_come_alone(const struct net_turn *turn, uint64_t whole)
{
    return whole > NET_IN_MAX && upstream_pending(turn) > 0;
}

/* It is expected to be answered from its beginning on: an error does not wait for its end. */
static struct net_step forward_odd(struct mcd_call *c, const struct mc_there *there)
{
    uint64_t whole = c->used + there->block;
    struct net_step step;
    if (whole > c->in.n && whole <= NET_IN_MAX)
        return (struct net_step){.verdict = NET_MORE};
    if (must_come_alone(c->turn, whole))
        return behind();
    if (!may_send(c, UPSTREAM_OWN, there->words, &step))
        return step;
    step = begin(c->s, c->in, whole, c->turn);
    upstream_weigh(c->turn, there->words);
    if (there->answers)
        upstream_expect(c->turn, there->reply, 1, 0);
    if (there->listens) /* whatever comes next, comes when it does */
        upstream_expect(c->turn, there->reply, 0, UPSTREAM_PATIENT);
    serve_count(c->m->serve, SERVE_MEMCACHED, c->req->verb, SERVE_PASSED);
    return step;
}

/* Behind a quiet request in binary: what makes its end known. */
static void send_mark(const struct memcached *m, const struct mcd_session *s, struct net_turn *turn)
{
    char noop[MCB_HEADER] = {[0] = MCB_REQUEST, [1] = 0x0a};
    for (size_t i = 0; i < 4; i++)
        noop[12 + i] = (char)(m->svc.nonce >> (24 - 8 * i));
    if (s->state == MCD_BINARY_THROUGH && s->kind == FRAME_MC_NOOP)
        upstream_send(turn, span_of(noop, sizeof noop));
}

/* What follows of a data block. */
static struct net_step stream(struct memcached *m, struct mcd_session *s, struct span in,
                              struct net_turn *turn)
{
    size_t n = in.n < s->swallow.left ? in.n : (size_t)s->swallow.left;
    if (n == 0)
        return (struct net_step){.verdict = NET_MORE, .begun = true};
    enum upstream_ready is = upstream_ready(turn, UPSTREAM_REST, 0);
    if (is == UPSTREAM_BUSY)
        return behind();
    if (is == UPSTREAM_DOWN)
        return (struct net_step){.verdict = NET_CLOSE, .used = in.n};
    upstream_send(turn, span_of(in.p, n));
    s->swallow.left -= n;
    if (s->swallow.left == 0) {
        s->state = s->state == MCD_STREAM ? MCD_THROUGH : MCD_BINARY_THROUGH;
        send_mark(m, s, turn);
    }
    return (struct net_step){
        .verdict = NET_DONE, .used = n, .passed = true, .begun = s->swallow.left > 0};
}

/* ---- get of IDs and others --------------------------------------------------------------------
 */

static struct mcd_merge *begin_merge(struct mcd_call *c)
{
    struct span keys = c->req->keys;
    size_t ids = keys.n / 2 + 1, at = (keys.n + 7) / 8 * 8;
    struct mcd_merge *m = c->s->merge;
    if (m && !m->sent) /* this request's, which was parked: see give_up_merge */
        return m;
    free(m);
    size_t bytes = sizeof *m + at + ids * sizeof *m->id;
    m = c->s->merge = malloc(bytes);
    if (!m)
        return NULL;
    *m =
        (struct mcd_merge){.bytes = bytes, .with_cas = c->req->with_cas, .left = {m->keys, keys.n}};
    memcpy(m->keys, keys.p, keys.n);
    m->id = (int64_t *)(void *)(m->keys + at);
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
            name ? issuer_one_of(&c->m->serve->issuer, name, c->turn, m->n > 0, &m->id[m->n], step)
                 : ISSUE_OK;
        if (r == ISSUE_PARK && c->turn->arrived)
            issuer_ahead(name, c->turn, mcd_alike(rest, key), 1);
        if (r != ISSUE_OK && r != ISSUE_MISS)
            return r;
        if (r == ISSUE_MISS)
            m->id[m->n] = NO_NUMBER;
        m->n += name != NULL;
        m->left = rest;
    }
}

static void end_merge(struct mcd_session *s)
{
    free(s->merge);
    s->merge = NULL;
}

/* A request has its answer, whatever it is: IDs that were drawn for it and not sent are nobody's.
 */
static void give_up_merge(struct mcd_session *s)
{
    if (s->merge && !s->merge->sent)
        end_merge(s);
}

/* q: NULL where it is not canonical; words: of all of it. */
static struct net_step merge(struct mcd_call *c, const struct mc_canon *q, uint32_t words)
{
    struct span rest = c->req->keys, key;
    struct span head = q ? span_of(q->line, (size_t)(q->keys.p - q->line))
                         : span_of(c->req->line.p, (size_t)(rest.p - c->req->line.p));
    struct net_step step;
    if (upstream_pending(c->turn) > 0)
        return behind();
    if (!may_send(c, q ? UPSTREAM_TEXT : UPSTREAM_OWN, words, &step))
        return step;
    struct mcd_merge *m = begin_merge(c);
    if (!m)
        return unavailable(c);
    enum issue_status r = draw(c, m, &step);
    if (r == ISSUE_PARK)
        return step;
    m->sent = true;
    if (r != ISSUE_OK)
        return mcd_fail(c);
    m->left = span_of(m->keys, rest.n);
    upstream_send(c->turn, span_of(head.p, head.n - 1)); /* up to a space */
    while (mc_next_key(&rest, &key)) {
        if (mcd_id_of(c, key))
            continue;
        upstream_send(c->turn, SPAN(" "));
        upstream_send(c->turn, key);
    }
    upstream_send(c->turn, SPAN("\r\n"));
    upstream_weigh(c->turn, words - (uint32_t)m->n);
    upstream_expect(c->turn, FRAME_MC_MERGE, 1, 0);
    return passed(c, c->used);
}

static void put_drawn(struct mcd_merge *g, struct span key, struct buf *out)
{
    int64_t number = g->id[g->given++];
    if (number != NO_NUMBER)
        mc_put_value(out, key, number, g->with_cas);
}

/* The values of the IDs that stand before the key of a VALUE line, or all that are left: of a long
 * line these are more than a turn's output. */
bool mcd_heard(struct net_service *svc, void *session, const struct frame *f, struct buf *out)
{
    const struct memcached *m = (struct memcached *)svc;
    struct mcd_session *s = session;
    struct mcd_merge *g = s->merge;
    struct span line = f->part, key;
    (void)span_cut(&line, ' ');
    struct span upto = span_cut(&line, ' ');
    if (f->kind != FRAME_MC_MERGE || !g)
        return false;
    while (out->cap - out->n >= VALUE_MAX) {
        if (!mc_next_key(&g->left, &key)) {
            if (f->part.n == 0)
                end_merge(s);
            return false;
        }
        if (is_id(m, key) && g->given < g->n)
            put_drawn(g, key, out);
        else if (span_eq(key, upto))
            return false;
    }
    return true;
}

/* ---- which ------------------------------------------------------------------------------------
 */

static bool has_id(const struct memcached *m, struct span keys)
{
    struct span key;
    while (mc_next_key(&keys, &key))
        if (is_id(m, key))
            return true;
    return false;
}

/* What nearly all requests are, without more ado. false: nothing was done. */
static bool forward_usual(struct memcached *m, const struct mcd_session *s,
                          const struct mc_canon *q, struct net_turn *turn)
{
    if (q->silent || !access_passes(m->serve, &s->access) || has_id(m, q->keys) ||
        !upstream_forward(turn, UPSTREAM_TEXT, span_of(q->line, q->n), q->words, q->reply))
        return false;
    upstream_send(turn, q->block);
    serve_count(m->serve, SERVE_MEMCACHED, q->verb, SERVE_PASSED);
    return true;
}

static bool is_long_get(struct span in)
{
    return in.n >= WIRE_LINE_MAX && !memchr(in.p, '\n', WIRE_LINE_MAX) &&
           (span_starts(in, SPAN("get ")) || span_starts(in, SPAN("gets ")));
}

static struct net_step refuse(struct mcd_call *c, enum mcd_rights may)
{
    const struct span unclear =
        SPAN("CLIENT_ERROR not allowed to this user: not in a form in which it can be judged\r\n");
    const struct span why = may == MCD_RIGHTS_UNCLEAR ? unclear : MCD_NOT_ALLOWED;
    return c->req->body > 0 ? mcd_begin_swallow(c, why, SERVE_REFUSED)
                            : mcd_answer(c, why, SERVE_REFUSED);
}

/* Whether any word of the line may be an ID to memcached, which ends words at a NUL, too. */
static bool may_name_id(const struct memcached *m, struct span line)
{
    char mem[MC_KEY_MAX];
    struct span word, key;
    while (mc_next_key(&line, &word)) {
        word.n = strnlen(word.p, word.n);
        key = mc_there_key(word, mem);
        key.n = strnlen(key.p, key.n);
        if (is_id(m, word) || is_id(m, key))
            return true;
    }
    return false;
}

/* What memcached may take for a request about an ID is answered here, with the block that it would
 * take, or we. */
static struct net_step refuse_odd(struct mcd_call *c, const struct mc_there *there)
{
    struct mc_req *req = c->req;
    struct span why = req->error.n > 0 || req->noreply ? req->error : MC_BAD_FORMAT;
    req->body = req->body > 0 ? req->body : there->block;
    return req->body > 0 ? mcd_begin_swallow(c, why, SERVE_INVALID)
                         : mcd_answer(c, why, SERVE_INVALID);
}

/* A request that is not forwarded without more ado; q: NULL where it is not canonical. */
__attribute__((noinline)) static struct net_step
serve_parsed(struct memcached *m, struct mcd_session *s, struct span in, const struct mc_canon *q,
             struct net_turn *turn, struct buf *out)
{
    struct mc_req req;
    struct mcd_call c = {.m = m, .s = s, .req = &req, .in = in, .turn = turn, .out = out};
    enum wire_status status = mc_parse(in, &req, &c.used);
    if (status == WIRE_MORE)
        return (struct net_step){.verdict = NET_MORE};
    enum keys keys = status == WIRE_REQ ? keys_of(&c) : KEYS_NONE;
    if (keys == KEYS_MIXED && !mcd_keys_allowed(&c))
        keys = KEYS_IDS; /* refused there */
    if (status == WIRE_CLOSE && is_long_get(in) && access_granted(&s->access))
        return mcd_begin_long(&c);
    struct mc_there there = mc_there(in);
    bool ours = status == WIRE_REQ && req.verb == MC_STATS && mcd_stats_are_ours(m, req.args);
    bool refused = ours || status == WIRE_CLOSE || !access_granted(&s->access) || there.forgets ||
                   there.binary ||
                   s->done > 0 || /* begun here, maybe before there was an upstream */
                   (status == WIRE_BAD && !access_passes(m->serve, &s->access));
    enum mcd_rights may =
        refused || keys == KEYS_IDS ? MCD_RIGHTS_HERE : mcd_rights(m, &s->access, &req, &there);
    if (may >= MCD_RIGHTS_REFUSED)
        return upstream_pending(turn) > 0 ? behind() : refuse(&c, may);
    if (may == MCD_RIGHTS_HERE || req.verb == MC_QUIT)
        return upstream_pending(turn) > 0 ? behind() : mcd_serve_text(m, s, in, turn, out);
    if (keys == KEYS_MIXED)
        return merge(&c, q, there.words);
    bool clear = q || (status == WIRE_REQ && mc_is_clear(&req, &there));
    if (!clear && may_name_id(m, req.line))
        return upstream_pending(turn) > 0 ? behind() : refuse_odd(&c, &there);
    /* On its own link others may have gone before whose replies are not expected. */
    bool as_it_is = !q || (q->silent && upstream_owns(turn));
    return as_it_is ? forward_odd(&c, &there) : forward_canonical(&c, q);
}

struct net_step mcd_serve_through(struct memcached *m, struct mcd_session *s, struct span in,
                                  struct net_turn *turn, struct buf *out)
{
    struct mc_canon *q = &m->canon;
    if (s->state == MCD_STREAM)
        return stream(m, s, in, turn);
    if (s->state == MCD_LONG)
        return mcd_serve_long(m, s, in, turn, out);
    if (in.n == 0)
        return (struct net_step){.verdict = NET_MORE};
    bool canonical = mc_canon(in, q);
    if (canonical && forward_usual(m, s, q, turn))
        return (struct net_step){.verdict = NET_DONE, .used = q->used, .passed = true};
    struct net_step step = serve_parsed(m, s, in, canonical ? q : NULL, turn, out);
    if (step.used > 0)
        give_up_merge(s);
    return step;
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

/* While the upstream is down we answer what we answer in text: see unavailable. */
static struct net_step unavailable_binary(struct memcached *m, struct mcd_session *s,
                                          const struct mcb_req *req, size_t used,
                                          struct net_turn *turn, struct span in, struct buf *out)
{
    if (upstream_pending(turn) > 0)
        return behind();
    if (req->verb == MC_VERSION || req->verb == MC_STATS)
        return mcd_serve_binary(m, s, in, turn, out);
    serve_count(m->serve, SERVE_MEMCACHED, req->verb, SERVE_AWAY);
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
        return stream(m, s, in, turn);
    if (s->passing)
        return mcd_serve_binary(m, s, in, turn, out);
    enum wire_status status = in.n > 0 ? mcb_parse(in, &req, &used) : WIRE_MORE;
    if (status == WIRE_MORE)
        return (struct net_step){.verdict = NET_MORE};
    /* Of an opcode that it does not know memcached passes key and extras over twice, and begins to
     * read within the request behind it: nobody knows what comes of it. */
    bool local = status != WIRE_REQ || !access_granted(&s->access) || req.verb == MC_UNKNOWN ||
                 req.verb == MC_QUIT || req.verb == MC_SASL || req.verb == MC_NOOP ||
                 (req.verb == MC_STATS && mcd_stats_are_ours(m, req.key)) ||
                 (req.key.n > 0 && is_id(m, req.key));
    if (local)
        return answer_binary(m, s, in, turn, out);
    enum mcd_rights may = mcd_rights_binary(m, &s->access, &req);
    if (may == MCD_RIGHTS_HERE)
        return answer_binary(m, s, in, turn, out);
    if (may == MCD_RIGHTS_REFUSED)
        return refuse_binary(m, s, &req, used, turn, out);
    uint64_t whole = used + req.body;
    if (whole > in.n && whole <= NET_IN_MAX)
        return (struct net_step){.verdict = NET_MORE};
    if (must_come_alone(turn, whole))
        return behind();
    bool shared = whole <= NET_IN_MAX && req.canonical;
    enum upstream_ready is = upstream_ready(turn, shared ? UPSTREAM_BINARY : UPSTREAM_OWN, 0);
    if (is == UPSTREAM_BUSY)
        return behind();
    if (is == UPSTREAM_DOWN)
        return unavailable_binary(m, s, &req, used, turn, in, out);
    s->kind = req.quiet ? FRAME_MC_NOOP : req.verb == MC_STATS ? FRAME_MC_STATS : FRAME_MC_BINARY;
    struct net_step step = begin(s, in, whole, turn);
    upstream_expect(turn, (enum frame_kind)s->kind, 1, 0);
    send_mark(m, s, turn);
    serve_count(m->serve, SERVE_MEMCACHED, req.verb, SERVE_PASSED);
    return step;
}

size_t mcd_merge_holds(const struct mcd_session *s)
{
    return s->merge ? s->merge->bytes : 0;
}
