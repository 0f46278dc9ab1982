/*
 * What the files of the way to the upstream share: redis_through.c says which requests go there,
 * redis_there.c how, redis_form.c for those that are like one before.
 *
 * Invariant: whoever answers here has seen that no reply is to come from there; else the answer is
 * rds_behind, and the request is served again.
 */
#ifndef SIDFLAKE_SERVE_REDIS_REDIS_THROUGH_H
#define SIDFLAKE_SERVE_REDIS_REDIS_THROUGH_H

#include "serve/redis/redis.h"

static inline bool rds_is_verb(const struct rds_call *c, enum resp_verb v)
{
    return c->cmd && c->cmd->verb == v;
}

static inline bool rds_is_sub(const struct rds_call *c, const char *name)
{
    return c->sub && strcmp(c->sub->name, name) == 0;
}

/* AUTH, and HELLO with AUTH. */
bool rds_has_password(const struct rds_call *c);

/* SUBSCRIBE and its kin. */
bool rds_subscribes(const struct rds_call *c);

/* Commands that may take their time; EXEC does not wait, whatever is in it. */
bool rds_blocks(const struct rds_call *c);

/* A client of RESP2 that is subscribed, or may be when what is under way is answered: what comes
 * for it are not only replies, and Redis allows it few commands. */
bool rds_hears_news(const struct rds_call *c);

/* Remembers how the request begins, which was forwarded, if others that do need not be parsed: of
 * those that may be shared. */
void rds_note_form(struct rds_call *c);

/* ---- redis_rights.c: what the user may there; asked once for each request that is parsed */
enum rds_rights {
    RDS_RIGHTS_PASS, /* it goes where it goes for everybody */
    RDS_RIGHTS_HERE, /* it is answered here */
    RDS_RIGHTS_REFUSED,
    RDS_RIGHTS_BEHIND, /* not yet */
};

/* known: rds_find has found what it is. */
enum rds_rights rds_rights(struct rds_call *c, bool known);

/* Not yet. */
enum serve_result rds_behind(struct rds_call *c);

/* The request is answered here. */
enum serve_result rds_here(struct rds_call *c);

/* Whether there can be an answer here by now; else rds_behind. And what comes of it when it is
 * written: nothing for who wants no replies (CLIENT REPLY). */
bool rds_may_answer(struct rds_call *c);
enum serve_result rds_answered(struct rds_call *c, enum serve_result r);

/* An error, with its code, that also spoils the transaction under way, here or there. */
enum serve_result rds_through_refuse(struct rds_call *c, enum serve_result r, const char *what);

/* The upstream cannot be reached: an error that libraries send the request again for; or the end of
 * the connection, where it is about more than one request, as from a server that is away. */
enum serve_result rds_unavailable(struct rds_call *c);

/* Whether the request may go on the link that clients share. There a reply that is missing, or one
 * too many, is somebody else's; so this is a list of what may, and not of what may not:
 *
 *     canonical (resp.h)    every reader of RESP sees the same requests in these bytes
 *     whole                 within the connection's input
 *     a known command       with an arity that is right
 *     marked as shared      one reply, no state, no waiting: resp_commands.h
 *
 * All else goes on a link of the client's own. */
bool rds_may_share(const struct rds_call *c);

/* The link for a request: see upstream_ready. own: one of the client's own, whatever it is. */
enum upstream_ready rds_ready(struct rds_call *c, bool own);

/* What was agreed upon here has to hold there, too. proto: of RESP, 2 or 3, spoken there; db: to be
 * chosen there, 0: none. */
void rds_send_state(struct rds_call *c, uint8_t proto, uint8_t db);

/* The same before the first request on a link that is no login, of which rds_ready has said is.
 * true: the request has to wait (rds_behind), since where the server refuses the database it would
 * be carried out in another one. */
bool rds_introduce(struct rds_call *c, enum upstream_ready is);

/* The request goes there, as it is. */
enum serve_result rds_there(struct rds_call *c, enum rds_at at);

#endif
