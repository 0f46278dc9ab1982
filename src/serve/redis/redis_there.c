/*
 * The way of a Redis request to the upstream: on which link, what has to be known of the replies
 * for them to be told apart, and what the two sides have to know of each other.
 */
#include "serve/redis/redis_through.h"

#include "base/dec.h"
#include <stdlib.h>

/* ---- here -------------------------------------------------------------------------------------
 */

enum serve_result rds_behind(struct rds_call *c)
{
    c->step = (struct net_step){.verdict = NET_BEHIND};
    return RDS_PARKED;
}

bool rds_may_answer(struct rds_call *c)
{
    bool skips = c->ses->there->mute == RDS_MUTE_NEXT && upstream_owns(c->turn);
    return upstream_pending(c->turn) == 0 &&
           !(skips && upstream_ready(c->turn, UPSTREAM_OWN, 0) == UPSTREAM_BUSY);
}

enum serve_result rds_answered(struct rds_call *c, enum serve_result r)
{
    struct rds_there *t = c->ses->there;
    if (r == RDS_PARKED || t->mute == RDS_LOUD)
        return r;
    buf_truncate(c->out, c->start);
    if (t->mute == RDS_MUTE_NEXT && upstream_owns(c->turn))
        upstream_send(c->turn, SPAN("*1\r\n$4\r\nPING\r\n")); /* the one that is skipped there */
    t->mute = t->mute == RDS_MUTE_NEXT ? RDS_LOUD : t->mute;
    return r;
}

enum serve_result rds_here(struct rds_call *c)
{
    return rds_may_answer(c) ? rds_answered(c, rds_request(c)) : rds_behind(c);
}

enum serve_result rds_through_refuse(struct rds_call *c, enum serve_result r, const char *what)
{
    if (!rds_may_answer(c))
        return rds_behind(c);
    c->ses->dirty |= c->ses->there->multi;
    return rds_answered(c, rds_reject(c, rds_fail(c, r, "%s", what)));
}

/* Whether nothing is lost by an error but its reply: the request could be sent again as it is. */
static bool stands_alone(const struct rds_call *c)
{
    const struct rds_session *ses = c->ses;
    const struct rds_there *t = ses->there;
    return rds_may_share(c) && !ses->multi && !t->multi && !t->watching && !t->news && !t->tunnel &&
           t->mute == RDS_LOUD && !upstream_subscribed(c->turn);
}

/* Clients know two ways in which a server tells them that it is away. A connection that closes:
 * they connect again, and subscribe again. And LOADING: they send the request again, and keep the
 * connection, on which IDs go on. */
enum serve_result rds_unavailable(struct rds_call *c)
{
    const char *why = upstream_why(&c->svc->net);
    if (upstream_pending(c->turn) > 0)
        return rds_behind(c);
    if (stands_alone(c))
        return rds_reject(c, rds_fail(c, SERVE_AWAY,
                                      "LOADING sidflake: the server behind is unreachable: %s",
                                      *why ? why : "no connection"));
    buf_truncate(c->out, c->start);
    c->close = true;
    return rds_reject(c, SERVE_AWAY);
}

/* ---- there ------------------------------------------------------------------------------------
 */

static void put_command(struct buf *b, const char *name, struct span arg)
{
    resp_put_array(b, 2);
    resp_put_bulk(b, span_str(name));
    resp_put_bulk(b, arg);
}

/* What was agreed upon here has to hold there. */
void rds_send_state(struct rds_call *c, uint8_t proto, uint8_t db)
{
    const struct rds_session *ses = c->ses;
    bool hello = ses->proto != proto;
    char mem[RDS_NAME_MAX + 128];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    if (hello)
        put_command(&b, "HELLO", ses->proto == 3 ? SPAN("3") : SPAN("2"));
    if (db > 0) {
        BUF_PUT_LIT(&b, "*2\r\n$6\r\nSELECT\r\n");
        resp_put_bulk_u64(&b, db);
    }
    if (ses->name_n > 0) {
        BUF_PUT_LIT(&b, "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n");
        resp_put_bulk(&b, span_of(ses->name, ses->name_n));
    }
    upstream_send(c->turn, buf_span(&b));
    if (ses->there->mute != RDS_LOUD) /* it was said there before: to none of it there is a reply */
        return;
    if (db > 0)
        ses->there->asked = ses->proto;
    upstream_expect(c->turn, FRAME_RESP, hello, UPSTREAM_SKIP);
    upstream_expect(c->turn, FRAME_RESP, db > 0, UPSTREAM_SKIP | UPSTREAM_TELL);
    upstream_expect(c->turn, FRAME_RESP, ses->name_n > 0, /* who may not say it does without */
                    UPSTREAM_SKIP | UPSTREAM_FORGIVE);
}

bool rds_introduce(struct rds_call *c, enum upstream_ready is)
{
    struct rds_there *t = c->ses->there;
    uint8_t spoken = is == UPSTREAM_FRESH ? 2 : t->unsaid;
    if (spoken)
        rds_send_state(c, spoken, c->ses->db);
    t->unsaid = 0;
    return spoken && t->asked > 0;
}

static void speak(struct rds_session *ses, uint8_t proto)
{
    struct rds_there *t = ses->there;
    ses->proto = proto;
    t->unsaid = t->unsaid ? proto : 0;
}

/* HELLO [proto] [AUTH user password] [SETNAME name]
 * Redis takes its options one by one, and the protocol last: not behind one that it refuses, as it
 * may a login. Who wants no replies is believed, as nothing tells. heard: there will be a reply. */
static void follow_hello(struct rds_call *c, bool heard)
{
    struct resp_walk w = resp_walk_from(c->req, 2);
    struct span option, value;
    int64_t proto = c->ses->proto;
    if (heard) /* also by one that will be refused: its reply is not the next one's */
        c->ses->there->asked = c->ses->proto;
    if (c->req->argc > 1 && (!dec_canonical_i64(c->req->argv[1], &proto) || proto < 2 || proto > 3))
        return;
    while (resp_next_arg(&w, &option)) {
        bool auth = resp_is_word(option, "auth");
        if ((!auth && !resp_is_word(option, "setname")) || !resp_next_arg(&w, &value) ||
            (auth ? !resp_next_arg(&w, &value) : !rds_name_is_plain(value)))
            return;
        if (!auth && !rds_name_fault(value))
            rds_set_name(c->ses, value);
    }
    if (heard)
        c->ses->there->asked = (uint8_t)proto;
    else
        speak(c->ses, (uint8_t)proto);
}

/* HELLO, SELECT and their kin change what we know, too; the upstream says what comes of it. */
static void follow(struct rds_call *c, bool heard)
{
    if (rds_is_verb(c, RESP_HELLO))
        follow_hello(c, heard);
    if (rds_is_verb(c, RESP_SELECT))
        (void)rds_select(c);
    if (rds_is_sub(c, "setname"))
        (void)c->sub->fn(c);
    buf_truncate(c->out, c->start);
}

bool rds_subscribes(const struct rds_call *c)
{
    return c->verb->when == RDS_SUBSCRIBED && c->cmd->verb != RESP_PING;
}

bool rds_hears_news(const struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    if (upstream_pending(c->turn) == 0)
        t->news = false;
    return c->ses->proto == 2 && (t->news || upstream_subscribed(c->turn));
}

/* CLIENT REPLY, and what it has the upstream keep back. Returns the replies to come. */
static uint32_t expect_loud(struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    bool refused = c->ses->proto == 2 && upstream_subscribed(c->turn);
    struct span arg = rds_is_sub(c, "reply") && !refused ? c->req->argv[2] : span_of("", 0);
    bool skip = resp_is_word(arg, "skip"), off = resp_is_word(arg, "off");
    if (resp_is_word(arg, "on")) {
        t->mute = RDS_LOUD;
        return 1;
    }
    if (off || (skip && t->mute != RDS_MUTE))
        t->mute = off ? RDS_MUTE : RDS_MUTE_NEXT;
    else if (t->mute == RDS_MUTE_NEXT)
        t->mute = RDS_LOUD;
    else if (t->mute == RDS_LOUD)
        return 1;
    return 0;
}

/* SUBSCRIBE and its kin have an acknowledgement for each name, or an error. CLIENT REPLY keeps back
 * errors, but no acknowledgements: what comes behind has to wait for those, since whether Redis
 * takes it depends on them. Where it refuses without a word, that waits in vain, and the link ends.
 */
static void expect_acks(struct rds_call *c)
{
    struct rds_there *t = c->ses->there;
    t->mute = t->mute == RDS_MUTE ? RDS_MUTE : RDS_LOUD;
    t->news = true;
    upstream_expect_acks(c->turn, c->req->argc > 1 ? c->req->argc - 1 : UPSTREAM_ACKS_ALL);
}

/* What SYNC and PSYNC are answered with is no RESP: a line's end each second while there are no
 * data yet. But within a transaction, or while subscribed, they are requests like others. */
static bool is_sync(const struct rds_call *c)
{
    return strcmp(c->cmd->name, "sync") == 0 || strcmp(c->cmd->name, "psync") == 0;
}

/* The request was sent. Returns whether a reply is to come. */
static bool expect_reply(struct rds_call *c, enum rds_at at)
{
    if (c->ses->there->tunnel || (at == RDS_TUNNEL && is_sync(c)))
        return false;
    bool news = rds_hears_news(c);
    if (rds_subscribes(c)) {
        expect_acks(c);
        return c->ses->there->mute == RDS_LOUD;
    }
    uint32_t n = expect_loud(c);
    upstream_expect(c->turn, FRAME_RESP, n,
                    (rds_blocks(c) ? UPSTREAM_PATIENT : 0u) | (news ? UPSTREAM_NEWS : 0u) |
                        (rds_is_verb(c, RESP_HELLO) ? UPSTREAM_TELL : 0u));
    return n > 0;
}

bool rds_blocks(const struct rds_call *c)
{
    static const char *const others[] = {"wait", "waitaof"};
    bool known = c->cmd && resp_blocks(c->cmd, c->req);
    for (size_t i = 0; c->req->seen > 0 && i < sizeof others / sizeof *others; i++)
        known |= span_eq_nocase(c->req->argv[0], span_str(others[i]));
    return known;
}

bool rds_may_share(const struct rds_call *c)
{
    return c->req->canonical && c->cmd && c->cmd->shared && resp_arity_ok(c->cmd, c->req->argc);
}

enum upstream_ready rds_ready(struct rds_call *c, bool own)
{
    const struct rds_session *ses = c->ses;
    own =
        own || !rds_may_share(c) || ses->db > 0 || ses->proto == 3 || ses->there->mute != RDS_LOUD;
    return upstream_ready(c->turn, own ? UPSTREAM_OWN : UPSTREAM_TEXT, c->req->argc);
}

/* While the upstream is down any password is right, for those who want IDs; what it is good for
 * there is not known. */
static enum serve_result here_for_now(struct rds_call *c)
{
    struct access *a = &c->ses->access;
    uint8_t mode = a->mode;
    bool auth = rds_is_verb(c, RESP_AUTH) || rds_is_verb(c, RESP_HELLO);
    if (auth && mode == ACCESS_OFF)
        a->mode = ACCESS_ANY;
    enum serve_result r = rds_here(c);
    a->mode = mode;
    c->ses->there->lapsed |= auth && r == SERVE_OK;
    return r;
}

enum serve_result rds_there(struct rds_call *c, enum rds_at at)
{
    struct rds_session *ses = c->ses;
    enum upstream_ready is = rds_ready(c, false);
    bool auth = rds_is_verb(c, RESP_AUTH) || rds_is_verb(c, RESP_HELLO);
    if (is == UPSTREAM_BUSY)
        return rds_behind(c);
    bool ours = at == RDS_BEST && (!c->sub || c->sub->fn); /* CONFIG SET is not */
    if (is == UPSTREAM_DOWN)
        return ours ? here_for_now(c) : rds_unavailable(c);
    if (ses->there->lapsed && !auth) {
        c->close = true;
        return upstream_pending(c->turn) > 0
                   ? rds_behind(c)
                   : rds_fail(c, SERVE_AWAY, "NOAUTH the upstream was down at AUTH: connect again");
    }
    ses->passes = true;
    bool login = rds_has_password(c);
    if (login && is == UPSTREAM_FRESH)
        ses->there->unsaid = 2;
    else if (!login && rds_introduce(c, is))
        return rds_behind(c);
    if (!rds_begin_stream(c))
        c->close = true;
    upstream_send(c->turn, c->raw);
    upstream_weigh(c->turn, c->req->argc);
    bool heard = expect_reply(c, at);
    if (ses->rest)
        ses->rest->owed = heard;
    if (!ses->there->tunnel && (ses->proto == 3 || !upstream_subscribed(c->turn)))
        follow(c, heard); /* else Redis refuses what it follows */
    if (at == RDS_TUNNEL) {
        upstream_tunnel(c->turn);
        ses->there->tunnel = true;
    }
    rds_note_form(c);
    serve_count(c->svc->serve, SERVE_REDIS, rds_counted(c), SERVE_PASSED);
    return SERVE_PASSED;
}

/* Redis has no answer to it, but takes it for the request that CLIENT REPLY SKIP was about, and
 * from a replica for a sign of life. */
struct net_step rds_blank(struct rds_session *ses, struct span raw, struct net_turn *turn)
{
    struct net_step done = {.verdict = NET_DONE, .used = raw.n};
    if (ses->there->mute != RDS_MUTE_NEXT && !ses->there->tunnel)
        return done;
    enum upstream_ready is = upstream_ready(turn, UPSTREAM_OWN, 0);
    if (is == UPSTREAM_BUSY)
        return (struct net_step){.verdict = NET_BEHIND};
    if (is != UPSTREAM_DOWN)
        upstream_send(turn, raw);
    if (ses->there->mute == RDS_MUTE_NEXT)
        ses->there->mute = RDS_LOUD;
    return done;
}

/* ---- between requests -------------------------------------------------------------------------
 */

/* The reply to a HELLO has ended. */
static void agreed(struct rds_session *ses, const struct frame *f)
{
    struct rds_there *t = ses->there;
    if (t->asked && !f->error)
        speak(ses, t->asked);
    t->asked = 0;
}

bool rds_heard(struct net_service *net, void *session, const struct frame *f, struct buf *out)
{
    (void)net;
    if (f->kind == FRAME_RESP_MERGE)
        return rds_merge_part(session, f, out);
    if (((struct rds_session *)session)->there)
        agreed(session, f);
    return false;
}

void rds_through_end(struct rds_session *ses)
{
    rds_merge_end(ses);
    free(ses->there);
    ses->there = NULL;
}
