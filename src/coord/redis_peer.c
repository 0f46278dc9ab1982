/*
 * Connections to Redis, and the only user of hiredis: its blocking calls, with the waiting done
 * here, since a timeout of the socket bounds one read and not a whole answer.
 *
 * SIGPIPE is ignored by the program: hiredis writes with write(2).
 *
 * Sources: the Redis protocol (RESP2), the commands AUTH, TIME.
 */
#include "coord/redis_peer.h"

#include "base/passfile.h"
#include "coord/outcome.h"
#include "coord/redis_reply.h"
#include "coord/roster.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- replies -------------------------------------------------------------------------------- */

static pthread_once_t bounded_once = PTHREAD_ONCE_INIT;
static redisReplyObjectFunctions plain;
static redisReplyObjectFunctions bounded;

static void *bounded_array(const redisReadTask *task, int n)
{
    return n <= COORD_REDIS_ELEMENTS_MAX ? plain.createArray(task, n) : NULL;
}

static void bounded_init(void)
{
    redisReader *reader = redisReaderCreate();
    if (!reader)
        return;
    plain = *reader->fn;
    bounded = plain;
    bounded.createArray = bounded_array;
    redisReaderFree(reader);
}

void coord_redis_bound(struct redisReader *reader)
{
    (void)pthread_once(&bounded_once, bounded_init);
    if (bounded.createArray)
        reader->fn = &bounded;
}

static bool is_text(const redisReply *r)
{
    return r && (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS);
}

bool coord_redis_answer(const struct redisReply *reply, struct answer *out)
{
    out->n = 0;
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements > ANSWER_FIELDS_MAX)
        return false;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *field = reply->element[i];
        if (!is_text(field))
            return false;
        out->f[out->n++] = span_of(field->str, field->len);
    }
    return true;
}

struct peer_said peer_said(const struct redisReply *reply)
{
    static const enum peer_kind kinds[] = {
        [REDIS_REPLY_STRING] = PEER_TEXT,    [REDIS_REPLY_STATUS] = PEER_TEXT,
        [REDIS_REPLY_ERROR] = PEER_ERROR,    [REDIS_REPLY_ARRAY] = PEER_LIST,
        [REDIS_REPLY_INTEGER] = PEER_NUMBER, [REDIS_REPLY_NIL] = PEER_NIL,
    };
    struct peer_said s = {.kind = PEER_OTHER};
    if (!reply || reply->type < REDIS_REPLY_STRING || reply->type > REDIS_REPLY_ERROR)
        return s;
    s.kind = kinds[reply->type];
    if (s.kind == PEER_TEXT || s.kind == PEER_ERROR)
        s.text = span_of(reply->str, reply->len);
    s.number = s.kind == PEER_NUMBER ? reply->integer : 0;
    s.n = s.kind == PEER_LIST ? reply->elements : 0;
    return s;
}

struct peer_said peer_item(const struct redisReply *reply, size_t i)
{
    return peer_said(i < peer_said(reply).n ? reply->element[i] : NULL);
}

static struct span first_word(const redisReply *reply)
{
    struct span rest = span_of(reply->str, reply->len);
    return span_cut(&rest, ' ');
}

bool peer_is_error(const struct redisReply *reply, const char *code)
{
    return reply->type == REDIS_REPLY_ERROR && span_eq(first_word(reply), span_str(code));
}

/* Errors of a server that will answer later, or of one that is not the master any more; all others
 * are refusals. */
static const char *const passing[] = {"LOADING",  "BUSY",       "MASTERDOWN", "TRYAGAIN",
                                      "READONLY", "NOREPLICAS", "UNBLOCKED",  "IDONTKNOW"};

#define WORDS_MAX 512 /* bytes of an error that are told; those of MISCONF are over 300 */

/* Of an error that may hold the secret the first word is told. */
static struct span words_of(const redisReply *reply, struct span secret)
{
    struct span text = span_of(reply->str, reply->len);
    return passfile_is_told(text, secret) ? first_word(reply) : text;
}

enum coord_status peer_unwanted(const struct redisReply *reply, const char *command,
                                struct span secret, struct coord_reply *r)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return outcome_refused(r, "%s: expected another kind of reply, found type %d", command,
                               reply->type);
    struct span text = words_of(reply, secret);
    int n = (int)(text.n < WORDS_MAX ? text.n : WORDS_MAX);
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        if (peer_is_error(reply, passing[i]))
            return outcome_down(r, ERR_BUSY, "%s: expected an answer, found -%.*s", command, n,
                                text.p);
    }
    return outcome_refused(r, "%s: expected an answer, found -%.*s", command, n, text.p);
}

void peer_forget(struct redisReply **reply)
{
    if (*reply)
        freeReplyObject(*reply);
    *reply = NULL;
}

/* ---- the connection ------------------------------------------------------------------------- */

void peer_drop(struct peer *p)
{
    if (p->context)
        redisFree(p->context);
    p->context = NULL;
}

void peer_allow(struct peer *p, int64_t us)
{
    p->began_us = clock_mono_us(p->clock);
    p->deadline_us = p->began_us + us;
    p->may_read = PEER_READ_MAX;
}

int64_t peer_left_us(const struct peer *p)
{
    int64_t left = p->deadline_us - clock_mono_us(p->clock);
    return left > 0 ? left : 0;
}

/* At least 1 ms, for 0 means for ever to setsockopt(2). */
static struct timeval left_timeval(const struct peer *p)
{
    int64_t left = peer_left_us(p);
    int64_t us = left < 1000 ? 1000 : left;
    return (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (long)(us % 1000000)};
}

static enum coord_status unreachable(const struct peer *p, const char *doing, const char *why,
                                     struct coord_reply *r)
{
    char at[REDIS_URL_TEXT_MAX];
    return outcome_down(r, ERR_IO, "%s %s: %s", doing, redis_url_text(at, &p->at), why);
}

static enum coord_status timed_out(const struct peer *p, const char *doing, struct coord_reply *r)
{
    char why[64];
    (void)snprintf(why, sizeof why, "expected within %" PRId64 " ms, found nothing",
                   (p->deadline_us - p->began_us) / 1000);
    (void)unreachable(p, doing, why, r);
    r->err.code = ERR_TIMEOUT;
    return COORD_DOWN;
}

static enum coord_status failed(const struct peer *p, const char *doing, struct coord_reply *r)
{
    if (p->context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT))
        return timed_out(p, doing, r);
    if (p->context->err != REDIS_ERR_PROTOCOL)
        return unreachable(p, doing, p->context->errstr, r);
    char why[sizeof p->context->errstr + 64];
    (void)snprintf(why, sizeof why, "expected a Redis server's, found: %s", p->context->errstr);
    return unreachable(p, doing, why, r);
}

/* Of this thread alone: a resolver that is silent would be asked for 20 s, whatever the deadline.
 * resolv.conf is read here each time, or glibc would read it later, over what is set. */
static void hurry_resolver(struct timeval left)
{
    if (res_init() != 0)
        return;
    _res.retrans = left.tv_sec < 1 ? 1 : (int)left.tv_sec; /* s, for each server */
    _res.retry = 1;
    _res.options |= RES_NORELOAD;
}

enum coord_status peer_join(struct peer *p, struct coord_reply *r)
{
    if (p->at.port != 0)
        hurry_resolver(left_timeval(p));
    p->context = p->at.port == 0 ? redisConnectUnixWithTimeout(p->at.host, left_timeval(p))
                                 : redisConnectWithTimeout(p->at.host, p->at.port, left_timeval(p));
    if (!p->context)
        return outcome_down(r, ERR_NOMEM, "no memory for a connection");
    if (p->context->err) {
        enum coord_status s = failed(p, "connection to", r);
        peer_drop(p);
        return s;
    }
    (void)fcntl(p->context->fd, F_SETFD, FD_CLOEXEC);
    coord_redis_bound(p->context->reader);
    return COORD_OK;
}

bool peer_ready(const struct peer *p)
{
    if (!p->context)
        return false;
    struct pollfd in = {.fd = p->context->fd, .events = POLLIN};
    return poll(&in, 1, 0) == 0;
}

/* What fails here leaves the connection in no known state. */
static enum coord_status gone(struct peer *p, enum coord_status s)
{
    peer_drop(p);
    return s;
}

enum coord_status peer_put(struct peer *p, int argc, const char **argv, struct coord_reply *r)
{
    if (redisAppendCommandArgv(p->context, argc, argv, NULL) != REDIS_OK)
        return gone(p, failed(p, "request to", r));
    return COORD_OK;
}

enum coord_status peer_send(struct peer *p, struct coord_reply *r)
{
    int done = 0;
    (void)redisSetTimeout(p->context, left_timeval(p));
    while (!done) {
        if (peer_left_us(p) == 0)
            return gone(p, timed_out(p, "request to", r));
        if (redisBufferWrite(p->context, &done) != REDIS_OK)
            return gone(p, failed(p, "request to", r));
    }
    return COORD_OK;
}

/* What has come, into the reader. */
static enum coord_status read_some(struct peer *p, struct coord_reply *r)
{
    size_t had = p->context->reader->len;
    if (redisBufferRead(p->context) != REDIS_OK)
        return gone(p, failed(p, "answer of", r));
    size_t got = p->context->reader->len - had;
    if (got > p->may_read)
        return gone(p, unreachable(p, "answer of", "expected an end of it, found none", r));
    p->may_read -= got;
    return COORD_OK;
}

enum coord_status peer_take(struct peer *p, struct redisReply **reply, struct coord_reply *r)
{
    *reply = NULL;
    for (;;) {
        void *got = NULL;
        if (redisGetReplyFromReader(p->context, &got) != REDIS_OK)
            return gone(p, failed(p, "answer of", r));
        if (got) {
            *reply = got;
            return COORD_OK;
        }
        int64_t ms = (peer_left_us(p) + 999) / 1000;
        struct pollfd in = {.fd = p->context->fd, .events = POLLIN};
        int ready = ms > 0 ? poll(&in, 1, ms > INT32_MAX ? INT32_MAX : (int)ms) : 0;
        if (ready == 0)
            return gone(p, timed_out(p, "answer of", r));
        enum coord_status s = ready > 0 ? read_some(p, r) : COORD_OK;
        if (s != COORD_OK)
            return s;
    }
}

enum coord_status peer_ask(struct peer *p, int argc, const char **argv, const size_t *len,
                           struct redisReply **reply, struct coord_reply *r)
{
    *reply = NULL;
    if (redisAppendCommandArgv(p->context, argc, argv, len) != REDIS_OK)
        return gone(p, failed(p, "request to", r));
    enum coord_status s = peer_send(p, r);
    return s == COORD_OK ? peer_take(p, reply, r) : s;
}

enum coord_status peer_greet(struct peer *p, int argc, const char **argv, const size_t *len,
                             struct span secret, struct coord_reply *r)
{
    redisReply *reply;
    enum coord_status s = peer_ask(p, argc, argv, len, &reply, r);
    if (s != COORD_OK)
        return s;
    if (reply->type != REDIS_REPLY_STATUS || strcmp(reply->str, "OK") != 0)
        s = gone(p, peer_unwanted(reply, argv[0], secret, r));
    freeReplyObject(reply);
    return s;
}

enum coord_status peer_login(struct peer *p, const struct redis_url_secret *user,
                             const struct redis_url_secret *password, struct coord_reply *r)
{
    if (user->n == 0 && password->n == 0)
        return COORD_OK;
    const char *argv[3] = {"AUTH", user->b, password->b};
    size_t len[3] = {4, user->n, password->n};
    struct span secret = span_of(password->b, password->n);
    if (user->n > 0)
        return peer_greet(p, 3, argv, len, secret, r);
    argv[1] = password->b;
    len[1] = password->n;
    return peer_greet(p, 2, argv, len, secret, r);
}

/* ---- the snapshot --------------------------------------------------------------------------- */

enum {
    SNAP_HASH,
    SNAP_QUEUE,
    SNAP_INDEX,
    SNAP_WHO,
    SNAP_TIME,
    SNAP_PARTS
};

/* Spans of the strings in an array; NULL entries for what is none. */
static bool list_of(const redisReply *reply, struct roster_list *out)
{
    out->n = 0;
    out->v = calloc(reply->elements + 1, sizeof *out->v);
    if (!out->v)
        return false;
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *e = reply->element[i];
        out->v[out->n++] = is_text(e) ? span_of(e->str, e->len) : (struct span){NULL, 0};
    }
    return true;
}

static bool time_of(const redisReply *reply, int64_t *ms)
{
    int64_t s;
    int64_t us;
    if (reply->elements != 2 || !is_text(reply->element[0]) || !is_text(reply->element[1]) ||
        !answer_number(span_of(reply->element[0]->str, reply->element[0]->len), &s) ||
        !answer_number(span_of(reply->element[1]->str, reply->element[1]->len), &us) ||
        s >= COORD_NUMBER_MAX / 1000 || us >= 1000000)
        return false;
    *ms = s * 1000 + us / 1000;
    return true;
}

enum coord_status coord_redis_roster(const struct redisReply *said, uint16_t from,
                                     const struct answer_to *to, struct coord_snapshot *out,
                                     struct coord_reply *r)
{
    struct roster in = {.from = from};
    if (said->type != REDIS_REPLY_ARRAY)
        return peer_unwanted(said, "snapshot", PEER_NO_SECRET, r);
    if (said->elements != SNAP_PARTS)
        return outcome_refused(r, "snapshot: expected %d parts, found %zu", SNAP_PARTS,
                               said->elements);
    for (size_t i = 0; i < SNAP_PARTS; i++) {
        const redisReply *part = said->element[i];
        if (!part)
            return outcome_refused(r, "snapshot: expected %d parts, found %zu", SNAP_PARTS, i);
        if (part->type != REDIS_REPLY_ARRAY)
            return peer_unwanted(part, "snapshot", PEER_NO_SECRET, r);
    }
    if (!time_of(said->element[SNAP_TIME], &in.now_ms))
        return outcome_refused(r, "TIME: expected seconds and microseconds, found another");
    enum coord_status s = COORD_OK;
    if (!list_of(said->element[SNAP_HASH], &in.hash) ||
        !list_of(said->element[SNAP_QUEUE], &in.queue) ||
        !list_of(said->element[SNAP_INDEX], &in.index) ||
        !list_of(said->element[SNAP_WHO], &in.who))
        s = outcome_down(r, ERR_NOMEM, "no memory for a snapshot");
    if (s == COORD_OK)
        s = roster_read(&in, to, out, r);
    free(in.hash.v);
    free(in.queue.v);
    free(in.index.v);
    free(in.who.v);
    return s;
}
