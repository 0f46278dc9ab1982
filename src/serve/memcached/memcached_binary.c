/*
 * The binary protocol: the text commands' meanings with other answers. What would change a key is
 * "not stored", which no client takes for a dead server.
 *
 * As in memcached, a quiet command is silent where nothing is worth saying, which is a miss for a
 * read and a success for all others; errors are always answered.
 */
#include "wire/mc_binary.h"

#include "base/dec.h"
#include "serve/memcached/memcached.h"

#define NONE      ((struct span){"", 0})
#define SASL_LIST 0x20
#define SASL_AUTH 0x21

struct call {
    struct memcached *m;
    struct mcd_session *s;
    struct mcb_req *req;
    struct net_turn *turn;
    struct buf *out;
    size_t used; /* bytes of the request, without what is passed over */
};

static struct net_step done(const struct call *c, enum serve_result r)
{
    serve_count(c->m->serve, SERVE_MEMCACHED, c->req->verb, r);
    return (struct net_step){.verdict = NET_DONE, .used = c->used};
}

static struct names_entry *id_of(const struct call *c)
{
    struct serve *s = c->m->serve;
    return access_may(s, &c->s->access, c->req->key) ? names_find(&s->issuer.names, c->req->key)
                                                     : NULL;
}

static struct net_step error(const struct call *c, enum mcb_status status, enum serve_result r)
{
    mcb_put_error(c->out, c->req, status);
    return done(c, r);
}

/* Temporary, so that no client gives the server up for it. */
static struct net_step fail(const struct call *c)
{
    struct refusal why = c->m->serve->issuer.refused;
    enum mcb_status status = refusal_status(why) == ISSUE_WRONG ? MCB_INVALID : MCB_TEMPORARY;
    mcb_put(c->out, c->req, status, NONE, span_str(refusal_text(why)), 0);
    return done(c, serve_not_issued(refusal_status(why)));
}

/* ---- IDs ---------------------------------------------------------------------------------------
 */

static struct net_step get(struct call *c)
{
    char mem[GENERATOR_TEXT_MAX];
    int64_t id;
    struct net_step step;
    struct names_entry *name = id_of(c);
    enum issue_status r =
        name ? issuer_next(&c->m->serve->issuer, name, c->turn, &id, &step) : ISSUE_MISS;
    if (r == ISSUE_PARK)
        return step;
    if (r == ISSUE_MISS)
        return c->req->quiet ? done(c, SERVE_MISS) : error(c, MCB_NOT_FOUND, SERVE_MISS);
    if (r != ISSUE_OK)
        return fail(c);
    mcb_put_item(c->out, c->req, generator_text(name->generator, id, c->turn->wall_ms, mem),
                 mc_cas(id));
    return done(c, SERVE_OK);
}

static struct net_step touch(struct call *c)
{
    struct net_step step;
    struct names_entry *name = id_of(c);
    enum issue_status r =
        name ? issuer_look(&c->m->serve->issuer, name, c->turn, &step) : ISSUE_MISS;
    if (r == ISSUE_PARK)
        return step;
    if (r == ISSUE_MISS)
        return error(c, MCB_NOT_FOUND, SERVE_MISS);
    if (r != ISSUE_OK)
        return fail(c);
    mcb_put_item(c->out, c->req, NONE, 0);
    return done(c, SERVE_OK);
}

/* A counter that is missing would be created here, unless the expiration says otherwise. */
static struct net_step missing(struct call *c)
{
    bool create = c->req->expiration != UINT32_MAX;
    return error(c, create ? MCB_NOT_STORED : MCB_NOT_FOUND, SERVE_MISS);
}

static struct net_step incr(struct call *c)
{
    int64_t last;
    uint64_t n = c->req->delta;
    struct net_step step;
    struct names_entry *name = id_of(c);
    if (!name)
        return missing(c);
    if (generator_is_text(name->generator))
        return error(c, MCB_NO_NUMBER, SERVE_REFUSED);
    if (!mcd_delta_fits(c->m, name, n))
        return error(c, MCB_INVALID, SERVE_INVALID);
    if (c->req->quiet)
        n = issuer_untold(name, (uint32_t)n);
    enum issue_status r =
        issuer_row(&c->m->serve->issuer, name, c->turn, (uint32_t)n, &last, &step);
    if (r == ISSUE_PARK)
        return step;
    if (r == ISSUE_MISS)
        return missing(c);
    if (r != ISSUE_OK)
        return fail(c);
    if (!c->req->quiet)
        mcb_put_number(c->out, c->req, (uint64_t)last, mc_cas(last));
    return done(c, SERVE_OK);
}

static struct net_step decr(struct call *c)
{
    return id_of(c) ? error(c, MCB_NOT_STORED, SERVE_REFUSED) : missing(c);
}

/* ---- SASL --------------------------------------------------------------------------------------
 */

/* RFC 4616: message = [authzid] NUL authcid NUL passwd. false: it is none. */
static bool split_plain(struct span message, struct span *user, struct span *password)
{
    (void)span_cut(&message, '\0');
    *user = span_cut(&message, '\0');
    *password = message;
    return message.p != NULL;
}

static struct net_step sasl(struct call *c)
{
    struct span user, password;
    if (c->req->opcode == SASL_LIST) {
        mcb_put(c->out, c->req, MCB_OK, NONE, SPAN("PLAIN"), 0);
        return done(c, SERVE_OK);
    }
    enum auth_answer r = AUTH_NO;
    if (c->req->opcode == SASL_AUTH && span_eq(c->req->key, SPAN("PLAIN")) &&
        split_plain(c->req->value, &user, &password))
        r = access_login(c->m->serve, &c->s->access, c->turn, user, password);
    if (r == AUTH_PENDING)
        return (struct net_step){.verdict = NET_HOLD};
    if (r == AUTH_NO)
        return error(c, MCB_AUTH_ERROR, SERVE_REFUSED);
    mcb_put(c->out, c->req, MCB_OK, NONE, SPAN("Authenticated"), 0);
    return done(c, SERVE_OK);
}

/* ---- the rest ----------------------------------------------------------------------------------
 */

static struct net_step stats(struct call *c)
{
    if (mcd_stats(c->m, &c->s->access, c->req->key, c->req, c->out)) {
        struct net_step step = done(c, SERVE_OK);
        step.cost = NET_DEAR;
        return step;
    }
    return error(c, MCB_NOT_FOUND, SERVE_INVALID);
}

static struct net_step version(struct call *c)
{
    mcb_put(c->out, c->req, MCB_OK, NONE, SPAN(MCD_VERSION), 0);
    return done(c, SERVE_OK);
}

static struct net_step noop(struct call *c)
{
    mcb_put(c->out, c->req, MCB_OK, NONE, NONE, 0);
    return done(c, SERVE_OK);
}

static struct net_step quit(struct call *c)
{
    struct net_step step = done(c, SERVE_OK);
    if (!c->req->quiet)
        mcb_put(c->out, c->req, MCB_OK, NONE, NONE, 0);
    step.verdict = NET_CLOSE;
    return step;
}

typedef struct net_step handler(struct call *); /* of functions, not of a struct */

static handler *const handlers[MC_VERB_COUNT] = {
    [MC_GET] = get,   [MC_GAT] = get,         [MC_TOUCH] = touch, [MC_INCR] = incr,
    [MC_DECR] = decr, [MC_VERSION] = version, [MC_STATS] = stats, [MC_NOOP] = noop,
    [MC_QUIT] = quit, [MC_SASL] = sasl, /* others: refusal */
};

/* Whether the session has shown who it is, and may have an ID by this key. Without it memcached
 * answers what concerns the connection. */
static bool admitted(const struct call *c)
{
    enum mc_verb verb = c->req->verb;
    if (verb == MC_SASL || verb == MC_VERSION || verb == MC_QUIT)
        return true;
    return access_granted(&c->s->access) &&
           (c->req->key.n == 0 || access_may(c->m->serve, &c->s->access, c->req->key));
}

/* Why a request without a handler, or with a value that nobody reads, comes to nothing. */
static enum mcb_status refusal(const struct call *c)
{
    if (!admitted(c))
        return MCB_AUTH_ERROR;
    switch (c->req->verb) {
    case MC_UNKNOWN:
        return MCB_UNKNOWN;
    case MC_SASL:
        return MCB_AUTH_ERROR;
    case MC_DELETE:
        return MCB_NOT_FOUND;
    case MC_SET:
    case MC_ADD: /* with a cas unique, as memcached has it: to be compared, so it must be there */
    case MC_REPLACE:
        return !id_of(c) && (c->req->verb == MC_REPLACE || c->req->cas) ? MCB_NOT_FOUND
                                                                        : MCB_NOT_STORED;
    default:
        return MCB_NOT_STORED;
    }
}

/* The rest of a value, or as much of it as has come; then the answer. */
static struct net_step pass(struct memcached *m, struct mcd_session *s, struct span in, size_t used,
                            struct buf *out)
{
    uint64_t left = s->swallow.left, here = in.n - used;
    const struct mcb_req req = {.opcode = s->opcode, .opaque = span_of(s->opaque, 4)};
    if (here < left) {
        s->swallow.left = left - here;
        return (struct net_step){.verdict = NET_MORE, .used = in.n};
    }
    s->swallow.left = 0;
    s->passing = false;
    mcb_put_error(out, &req, (enum mcb_status)s->error);
    serve_count(m->serve, SERVE_MEMCACHED, s->verb, (enum serve_result)s->result);
    return (struct net_step){.verdict = NET_DONE, .used = used + (size_t)left};
}

static struct net_step begin_pass(const struct call *c, struct span in)
{
    struct mcd_session *s = c->s;
    s->swallow.left = c->req->body;
    s->passing = true;
    s->opcode = c->req->opcode;
    memcpy(s->opaque, c->req->opaque.p, sizeof s->opaque);
    s->error = (uint8_t)refusal(c);
    s->verb = (uint8_t)c->req->verb;
    s->result = c->req->verb == MC_UNKNOWN ? SERVE_INVALID : SERVE_REFUSED;
    return pass(c->m, s, in, c->used, c->out);
}

struct net_step mcd_serve_binary(struct memcached *m, struct mcd_session *s, struct span in,
                                 struct net_turn *turn, struct buf *out)
{
    struct mcb_req req;
    struct call c = {.m = m, .s = s, .req = &req, .turn = turn, .out = out};
    if (s->passing)
        return pass(m, s, in, 0, out);
    switch (mcb_parse(in, &req, &c.used)) {
    case WIRE_MORE:
        return (struct net_step){.verdict = NET_MORE};
    case WIRE_REQ:
        break;
    case WIRE_BAD:
    case WIRE_CLOSE:
        if (req.error != MCB_OK)
            mcb_put_error(out, &req, req.error);
        serve_count(m->serve, SERVE_MEMCACHED, MC_UNKNOWN, SERVE_INVALID);
        return (struct net_step){.verdict = NET_CLOSE, .used = c.used};
    }
    if (req.body > 0 || !handlers[req.verb] || !admitted(&c))
        return begin_pass(&c, in);
    return handlers[req.verb](&c);
}
