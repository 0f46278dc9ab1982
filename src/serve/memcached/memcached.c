/*
 * The memcached service: who speaks which protocol, and the classic text commands: what each means
 * for a key that is an ID and for one that is not.
 *
 * A `get` of many keys is answered key by key: what stands in the output is final, so that a
 * request that has to wait in its middle goes on there, and one that fails there ends with an
 * error.
 */
#include "serve/memcached/memcached.h"

#include "base/rng.h"
#include "net/upstream/upstream.h"
#include "wire/mc_meta.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* A `get` hands its output over at this size and goes on; the connection sends it meanwhile. */
#define PART_BYTES ((size_t)48 << 10)

struct net_step mcd_done(const struct mcd_call *c, enum serve_result r)
{
    serve_count(c->m->serve, SERVE_MEMCACHED, c->req->verb, r);
    return (struct net_step){.verdict = NET_DONE, .used = c->used};
}

struct net_step mcd_answer(const struct mcd_call *c, struct span text, enum serve_result r)
{
    if (!c->req->noreply)
        buf_put_span(c->out, text);
    return mcd_done(c, r);
}

struct names_entry *mcd_id_of(const struct mcd_call *c, struct span key)
{
    struct serve *s = c->m->serve;
    return access_may(s, &c->s->access, key) ? names_find(&s->issuer.names, key) : NULL;
}

enum issue_status mcd_look(const struct mcd_call *c, struct names_entry *name,
                           struct net_step *step)
{
    return name ? issuer_look(&c->m->serve->issuer, name, c->turn, step) : ISSUE_MISS;
}

/* To some clients SERVER_ERROR is a server that is gone, which they ask for nothing any more. */
struct net_step mcd_fail(const struct mcd_call *c)
{
    struct refusal why = c->m->serve->issuer.refused;
    bool all = refusal_is_of_all(why);
    if (!c->req->noreply)
        (all ? mc_put_server_error : mc_put_client_error)(c->out, span_str(refusal_text(why)));
    return mcd_done(c, serve_not_issued(refusal_status(why)));
}

bool mcd_delta_fits(const struct memcached *m, const struct names_entry *name, uint64_t n)
{
    return n >= 1 && n <= issuer_run(&m->serve->issuer, name);
}

struct net_step mcd_bad_delta(const struct mcd_call *c, const struct names_entry *name)
{
    char text[96];
    (void)snprintf(text, sizeof text,
                   "CLIENT_ERROR invalid numeric delta argument: expected 1 to %u\r\n",
                   issuer_run(&c->m->serve->issuer, name));
    return mcd_answer(c, span_str(text), SERVE_INVALID);
}

/* ---- reads ------------------------------------------------------------------------------------
 */

uint32_t mcd_alike(struct span keys, struct span key)
{
    uint32_t n = 0;
    struct span next;
    while (mc_next_key(&keys, &next) && names_alike(next, key))
        n++;
    return n;
}

/* One key of a get, before the others. ISSUE_OK: answered, or a miss, which is answered by silence.
 */
static enum issue_status get_one(struct mcd_call *c, struct span key, struct span others, bool *hit,
                                 struct net_step *step)
{
    int64_t id;
    struct names_entry *name = mcd_id_of(c, key);
    if (!name)
        return ISSUE_OK;
    enum issue_status r = issuer_one_of(&c->m->serve->issuer, name, c->turn, *hit, &id, step);
    if (r == ISSUE_OK && generator_is_text(name->generator)) {
        char text[GENERATOR_TEXT_MAX];
        mc_put_text(c->out, key, generator_text(name->generator, id, c->turn->wall_ms, text), id,
                    c->req->with_cas);
        c->name = issuer_may_recall(name, key) ? name : NULL;
    } else if (r == ISSUE_OK) {
        mc_put_value(c->out, key, id, c->req->with_cas);
        c->name = name;
    }
    *hit |= r == ISSUE_OK;
    if (r == ISSUE_PARK && c->turn->arrived)
        issuer_ahead(name, c->turn, mcd_alike(others, key), 1);
    return r == ISSUE_MISS ? ISSUE_OK : r;
}

static struct net_step get(struct mcd_call *c)
{
    size_t first =
        c->s->done <= c->req->keys.n ? c->s->done : c->req->keys.n; /* may be inherited */
    struct span keys = span_skip(c->req->keys, first);
    struct span key;
    bool hit = first > 0;
    for (;;) {
        size_t left = keys.n;
        struct net_step step = {.verdict = NET_DONE}; /* used is 0: call again */
        if (!mc_next_key(&keys, &key))
            break;
        enum issue_status r = ISSUE_PARK;
        if (c->out->n < c->turn->reply_start + PART_BYTES)
            r = get_one(c, key, keys, &hit, &step);
        if (r == ISSUE_PARK) {
            c->s->done = c->req->keys.n - left;
            return step;
        }
        if (r != ISSUE_OK) {
            c->s->done = 0;
            return mcd_fail(c);
        }
    }
    c->s->done = 0;
    mc_put_end(c->out);
    return mcd_done(c, hit ? SERVE_OK : SERVE_MISS);
}

/* After a request that was answered. */
static void note_recent(struct mcd_call *c)
{
    const struct mc_req *req = c->req;
    if (req->verb == MC_GET && c->name && req->keys.n == req->key.n)
        recent_note(&c->m->recent, span_of(c->in.p, c->used), req->key, c->name);
}

/* The same of a text, which costs more than the call. */
__attribute__((noinline)) static bool get_recent_text(struct memcached *m,
                                                      const struct recent_request *q,
                                                      struct net_turn *turn, struct buf *out)
{
    int64_t number;
    char mem[GENERATOR_TEXT_MAX];
    if (!issuer_more_text(q->name, turn, &number))
        return false;
    struct span text = generator_text(q->name->generator, number, turn->wall_ms, mem);
    mc_put_text(out, q->key, text, number, false);
    mc_put_end(out);
    serve_count(m->serve, SERVE_MEMCACHED, MC_GET, SERVE_OK);
    return true;
}

/* What get does, for the request noted; false: nothing was done, it has to be parsed. Inline
 * wherever it is called from: a call is a tenth of what it does. */
__attribute__((always_inline)) static inline bool
get_recent(struct memcached *m, struct recent_request *q, struct net_turn *turn, struct buf *out)
{
    int64_t id;
    size_t start = out->n;
    if (!issuer_more(q->name, turn, &id))
        return get_recent_text(m, q, turn, out);
    if (!recent_put(q, id, out) && !recent_put_short(q, id, out)) {
        mc_put_value(out, q->key, id, false);
        mc_put_end(out);
        recent_keep(q, id, out, start, sizeof "\r\nEND\r\n" - 1);
    }
    serve_count(m->serve, SERVE_MEMCACHED, MC_GET, SERVE_OK);
    return true;
}

static struct net_step incr(struct mcd_call *c)
{
    int64_t last;
    struct net_step step;
    struct names_entry *name = mcd_id_of(c, c->req->key);
    if (!name)
        return mcd_answer(c, SPAN("NOT_FOUND\r\n"), SERVE_MISS);
    if (generator_is_text(name->generator))
        return mcd_answer(c, MCD_NO_NUMBER, SERVE_REFUSED);
    if (!mcd_delta_fits(c->m, name, c->req->delta))
        return mcd_bad_delta(c, name);
    uint32_t n = (uint32_t)c->req->delta;
    if (c->req->noreply)
        n = issuer_untold(name, n);
    enum issue_status r = issuer_row(&c->m->serve->issuer, name, c->turn, n, &last, &step);
    if (r == ISSUE_PARK)
        return step;
    if (r == ISSUE_MISS)
        return mcd_answer(c, SPAN("NOT_FOUND\r\n"), SERVE_MISS);
    if (r != ISSUE_OK)
        return mcd_fail(c);
    if (!c->req->noreply)
        mc_put_number(c->out, last);
    return mcd_done(c, SERVE_OK);
}

static struct net_step touch(struct mcd_call *c)
{
    struct net_step step;
    enum issue_status r = mcd_look(c, mcd_id_of(c, c->req->key), &step);
    if (r == ISSUE_PARK)
        return step;
    if (r == ISSUE_MISS)
        return mcd_answer(c, SPAN("NOT_FOUND\r\n"), SERVE_MISS);
    return r == ISSUE_OK ? mcd_answer(c, SPAN("TOUCHED\r\n"), SERVE_OK) : mcd_fail(c);
}

/* ---- refused writes ---------------------------------------------------------------------------
 */

#define READ_ONLY SPAN("CLIENT_ERROR id key is read-only\r\n")

/* The answer to a storage command, due when its data block has been swallowed. CLIENT_ERROR, since
 * clients take SERVER_ERROR for a dead server. */
static struct span storage_answer(const struct mcd_call *c)
{
    bool id = mcd_id_of(c, c->req->key) != NULL;
    switch (c->req->verb) {
    case MC_ADD:
        return SPAN("NOT_STORED\r\n");
    case MC_SET:
        return id ? READ_ONLY
                  : SPAN(
                        "CLIENT_ERROR key is no id, and no upstream is configured to store it\r\n");
    case MC_CAS:
        return id ? READ_ONLY : SPAN("NOT_FOUND\r\n");
    default: /* replace, append, prepend: of what is not there */
        return id ? READ_ONLY : SPAN("NOT_STORED\r\n");
    }
}

/* The rest of a data block, or as much of it as has come. */
static struct net_step swallow(struct memcached *m, struct mcd_session *s, struct span in,
                               size_t used, struct buf *out)
{
    bool ended = false, bad = false;
    used += mc_swallow(&s->swallow, span_skip(in, used), &ended, &bad);
    if (!ended)
        return (struct net_step){.verdict = NET_MORE, .used = used};
    bad &= s->result != SERVE_INVALID; /* of two errors the first is told */
    if (!s->noreply)
        buf_put_span(out, bad ? MC_BAD_CHUNK : s->answer);
    s->state = m->svc.upstream ? MCD_THROUGH : MCD_TEXT;
    free(s->kept);
    s->kept = NULL;
    serve_count(m->serve, SERVE_MEMCACHED, s->verb,
                bad ? SERVE_INVALID : (enum serve_result)s->result);
    return (struct net_step){.verdict = NET_DONE, .used = used};
}

struct net_step mcd_begin_swallow(struct mcd_call *c, struct span text, enum serve_result r)
{
    struct mcd_session *s = c->s;
    s->swallow = (struct mc_swallow){.left = c->req->body};
    s->state = MCD_SWALLOW;
    s->noreply = c->req->noreply;
    s->answer = text;
    s->verb = (uint8_t)c->req->verb;
    s->result = (uint8_t)r;
    return swallow(c->m, s, c->in, c->used, c->out);
}

static struct net_step decr(struct mcd_call *c)
{
    return mcd_id_of(c, c->req->key) ? mcd_answer(c, MCD_ONLY_UP, SERVE_REFUSED)
                                     : mcd_answer(c, SPAN("NOT_FOUND\r\n"), SERVE_MISS);
}

static struct net_step remove_key(struct mcd_call *c)
{
    return mcd_answer(c, SPAN("NOT_FOUND\r\n"), SERVE_REFUSED);
}

static struct net_step flush_all(struct mcd_call *c)
{
    return mcd_answer(c, SPAN("CLIENT_ERROR flush_all not allowed\r\n"), SERVE_REFUSED);
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

static struct net_step stats(struct mcd_call *c)
{
    if (mcd_stats(c->m, &c->s->access, c->req->args, NULL, c->out)) {
        struct net_step step = mcd_done(c, SERVE_OK);
        step.cost = NET_DEAR;
        return step;
    }
    return mcd_answer(c, SPAN("ERROR\r\n"), SERVE_INVALID);
}

static struct net_step version(struct mcd_call *c)
{
    return mcd_answer(c, SPAN("VERSION " MCD_VERSION "\r\n"), SERVE_OK);
}

static struct net_step verbosity(struct mcd_call *c)
{
    return mcd_answer(c, SPAN("OK\r\n"), SERVE_OK);
}

static struct net_step quit(struct mcd_call *c)
{
    struct net_step step = mcd_done(c, SERVE_OK);
    step.verdict = NET_CLOSE;
    return step;
}

static mcd_handler *const handlers[MC_VERB_COUNT] = {
    [MC_GET] = get,
    [MC_GETS] = get,
    [MC_GAT] = get,
    [MC_GATS] = get,
    [MC_INCR] = incr,
    [MC_DECR] = decr,
    [MC_DELETE] = remove_key,
    [MC_TOUCH] = touch,
    [MC_FLUSH_ALL] = flush_all,
    [MC_STATS] = stats,
    [MC_VERSION] = version,
    [MC_VERBOSITY] = verbosity,
    [MC_QUIT] = quit,
    [MC_META_GET] = mcd_meta_get,
    [MC_META_ARITHMETIC] = mcd_meta_arithmetic,
    [MC_META_NOOP] = mcd_meta_noop,
    [MC_META_DEBUG] = mcd_meta_debug,
    [MC_META_SET] = mcd_meta_set,
    [MC_META_DELETE] = mcd_meta_delete,
    /* storage commands: storage_answer, after their data block */
};

/* ---- who may ----------------------------------------------------------------------------------
 */

#define LOGIN_MAX ((uint64_t)2048) /* bytes of "user password" */

/* Refuses a request and what belongs to it. */
static struct net_step refuse(struct mcd_call *c, struct span why)
{
    return c->req->body > 0 ? mcd_begin_swallow(c, why, SERVE_REFUSED)
                            : mcd_answer(c, why, SERVE_REFUSED);
}

/* As memcached -Y wants it: a set of any key, whose value is "user password". */
static struct net_step login(struct mcd_call *c)
{
    struct span rest = span_skip(c->in, c->used), name, password;
    if (c->req->verb == MC_QUIT)
        return quit(c);
    if (c->req->verb != MC_SET || c->req->body > LOGIN_MAX)
        return refuse(c, SPAN("CLIENT_ERROR unauthenticated\r\n"));
    if (rest.n < c->req->body)
        return (struct net_step){.verdict = NET_MORE};
    rest.n = (size_t)c->req->body - 2;
    if (memcmp(rest.p + rest.n, "\r\n", 2) != 0)
        return refuse(c, MC_BAD_CHUNK);
    c->used += (size_t)c->req->body;
    if (!mc_next_key(&rest, &name) || !mc_next_key(&rest, &password))
        return mcd_answer(c, SPAN("CLIENT_ERROR bad authentication token format\r\n"),
                          SERVE_INVALID);
    switch (access_login(c->m->serve, &c->s->access, c->turn, name, password)) {
    case AUTH_YES:
        return mcd_answer(c, SPAN("STORED\r\n"), SERVE_OK);
    case AUTH_NO:
        return mcd_answer(c, SPAN("CLIENT_ERROR authentication failure\r\n"), SERVE_REFUSED);
    case AUTH_PENDING:
        break;
    }
    return (struct net_step){.verdict = NET_HOLD};
}

bool mcd_keys_allowed(const struct mcd_call *c)
{
    const struct access *a = &c->s->access;
    struct span keys = c->req->keys, key;
    char scratch[MC_KEY_MAX];
    if (a->mode < ACCESS_REQUIRED || c->req->key.n == 0)
        return true;
    if (!keys.p)
        return access_may(c->m->serve, a, mc_meta_key(c->req, scratch));
    while (mc_next_key(&keys, &key))
        if (!access_may(c->m->serve, a, key))
            return false;
    return true;
}

/* A request that was understood. */
static struct net_step carry_out(struct mcd_call *c)
{
    if (!access_granted(&c->s->access))
        return login(c);
    if (!mcd_keys_allowed(c))
        return refuse(c, SPAN("CLIENT_ERROR id key is not allowed to this user\r\n"));
    if (!handlers[c->req->verb])
        return mcd_begin_swallow(c, storage_answer(c), SERVE_REFUSED);
    struct net_step step = handlers[c->req->verb](c);
    if (step.verdict == NET_DONE && step.used > 0)
        note_recent(c);
    return step;
}

static struct net_step parse(struct memcached *m, struct mcd_session *s, struct span in,
                             struct net_turn *turn, struct buf *out)
{
    struct mc_req req;
    struct mcd_call c = {.m = m, .s = s, .req = &req, .in = in, .turn = turn, .out = out};
    switch (mc_parse(in, &req, &c.used)) {
    case WIRE_MORE:
        return (struct net_step){.verdict = NET_MORE};
    case WIRE_CLOSE:
        buf_put_span(out, req.error);
        serve_count(m->serve, SERVE_MEMCACHED, MC_UNKNOWN, SERVE_INVALID);
        return (struct net_step){.verdict = NET_CLOSE, .used = c.used};
    case WIRE_BAD:
        if (!access_granted(&s->access))
            return refuse(&c, SPAN("CLIENT_ERROR unauthenticated\r\n"));
        if (req.body > 0)
            return mcd_begin_swallow(&c, req.error, SERVE_INVALID);
        return mcd_answer(&c, req.error, SERVE_INVALID);
    case WIRE_REQ:
        turn->front = span_of(in.p, c.used);
        turn->behind = span_skip(in, c.used);
        break;
    }
    return carry_out(&c);
}

/* Not inline, so that the usual request does not pay for this one's frame. */
__attribute__((noinline)) struct net_step mcd_serve_text(struct memcached *m, struct mcd_session *s,
                                                         struct span in, struct net_turn *turn,
                                                         struct buf *out)
{
    struct net_step step = parse(m, s, in, turn, out);
    step.begun = s->swallow.left > 0;
    s->plain = s->state == MCD_TEXT && access_plain(m->serve, &s->access);
    return step;
}

static enum mcd_state first_state(const struct memcached *m, char first)
{
    if (first == MCB_REQUEST)
        return m->svc.upstream ? MCD_BINARY_THROUGH : MCD_BINARY;
    return m->svc.upstream ? MCD_THROUGH : MCD_TEXT;
}

static struct net_step through(struct memcached *m, struct mcd_session *s, struct span in,
                               struct net_turn *turn, struct buf *out)
{
    bool here = s->state == MCD_THROUGH && upstream_pending(turn) == 0 &&
                access_plain(m->serve, &s->access);
    struct recent_request *q = here ? recent_find(&m->recent, in) : NULL;
    if (q && get_recent(m, q, turn, out))
        return (struct net_step){.verdict = NET_DONE, .used = q->n};
    return mcd_serve_through(m, s, in, turn, out);
}

/* All but a text request's begin, of a session that is plain. */
static struct net_step serve_any(struct memcached *m, struct mcd_session *s, struct span in,
                                 struct net_turn *turn, struct buf *out)
{
    if (s->state == MCD_SWALLOW)
        return swallow(m, s, in, 0, out);
    if (in.n == 0)
        return (struct net_step){.verdict = NET_MORE};
    if (s->state == MCD_NEW)
        s->state = (uint8_t)first_state(m, in.p[0]);
    if (s->state == MCD_TEXT)
        return mcd_serve_text(m, s, in, turn, out);
    if (s->state == MCD_BINARY)
        return mcd_serve_binary(m, s, in, turn, out);
    return s->state >= MCD_BINARY_THROUGH ? mcd_binary_through(m, s, in, turn, out)
                                          : through(m, s, in, turn, out);
}

__attribute__((noinline)) static struct net_step serve_other(struct memcached *m,
                                                             struct mcd_session *s, struct span in,
                                                             struct net_turn *turn, struct buf *out)
{
    struct net_step step = serve_any(m, s, in, turn, out);
    step.begun = s->swallow.left > 0;
    return step;
}

static struct net_step serve_one(struct net_service *svc, void *session, struct span in,
                                 struct net_turn *turn, struct buf *out)
{
    struct memcached *m = (struct memcached *)svc;
    struct mcd_session *s = session;
    if (!s->plain)
        return serve_other(m, s, in, turn, out);
    struct recent_request *q = recent_find(&m->recent, in);
    if (q && get_recent(m, q, turn, out))
        return (struct net_step){.verdict = NET_DONE, .used = q->n};
    return mcd_serve_text(m, s, in, turn, out);
}

static size_t holds(const struct net_service *svc, const void *session)
{
    const struct mcd_session *s = session;
    (void)svc;
    return (s->kept ? s->answer.n : 0) + mcd_merge_holds(s);
}

static bool stands(const struct net_service *svc, const void *session)
{
    return access_stands(((const struct memcached *)svc)->serve,
                         &((const struct mcd_session *)session)->access);
}

static void close_session(struct net_service *svc, void *session)
{
    struct mcd_session *s = session;
    access_close(((struct memcached *)svc)->serve, &s->access);
    free(s->kept);
    free(s->merge);
}

static unsigned speaks(const void *session)
{
    const struct mcd_session *s = session;
    bool binary = s->state == MCD_BINARY || s->state >= MCD_BINARY_THROUGH;
    return binary ? UPSTREAM_BINARY : UPSTREAM_TEXT;
}

static_assert(MC_VERB_COUNT <= SERVE_COMMANDS, "every verb is counted apart");

static const char *command_label(unsigned index)
{
    return index < MC_VERB_COUNT ? mc_verb_name((enum mc_verb)index) : NULL;
}

static void forget(struct net_service *svc)
{
    recent_init(&((struct memcached *)svc)->recent);
}

static_assert(offsetof(struct mcd_session, access) == 0, "access_open and the others take it");

static struct net_service *make(struct serve *serve)
{
    struct memcached *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    static const struct upstream_greeting probe[] = {
        [UPSTREAM_TEXT] = {.bytes = SPAN("version\r\n"),
                           .kind = FRAME_MC_LINE,
                           .ok = SPAN("VERSION ")},
        [UPSTREAM_BINARY] = {.bytes = SPAN("\x80\x0a\0\0\0\0\0\0\0\0\0\0"
                                           "\0\0\0\0\0\0\0\0\0\0\0\0"),
                             .kind = FRAME_MC_BINARY,
                             .ok = SPAN("\x81\x0a"),
                             .words = MCB_HEADER}};
    m->serve = serve;
    recent_init(&m->recent);
    m->svc = (struct net_service){
        .name = protocol_memcached.name,
        .session_size = sizeof(struct mcd_session),
        .serve = serve_one,
        .open = access_open,
        .stranger = access_stranger,
        .user = access_user,
        .checked = access_checked,
        .holds = holds,
        .close = close_session,
        .stands = stands,
        .pack = mcd_pack,
        .unpack = mcd_unpack,
        .frame = frame_memcached,
        .probe = probe,
        .refusals = mcd_refusals,
        .faults = mcd_faults,
        .alien = SPAN("-"), /* an error of Redis, with the client's words in it */
        .unasked = FRAME_MC_ANY,
        .nonce = (uint32_t)rng_u64(rng_system()),
        .speaks = speaks,
        .lost = MCD_UNAVAILABLE,
        .heard = mcd_heard,
        .refusal = SPAN("SERVER_ERROR too many open connections\r\n"),
    };
    return &m->svc;
}

const struct protocol protocol_memcached = {
    .name = "memcached",
    .title = "memcached",
    .make = make,
    .forget = forget,
    .command = command_label,
    .for_ids = true,
    .logins = mcd_logins,
};
