/*
 * The connection to Redis, and the only user of hiredis: its blocking calls, with the waiting done
 * here, since a timeout of the socket bounds one read and not a whole answer.
 *
 * SIGPIPE is ignored by the program: hiredis writes with write(2).
 *
 * Sources: the Redis protocol (RESP2), the commands AUTH, SELECT, SCRIPT LOAD, EVALSHA, MULTI.
 */
#include "coord/courier.h"

#include "coord/outcome.h"
#include "coord/redis_reply.h"

#include <errno.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern const char pool_lua[]; /* made from pool.lua */
extern const size_t pool_lua_len;

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

static struct span first_word(const redisReply *reply)
{
    struct span rest = span_of(reply->str, reply->len);
    return span_cut(&rest, ' ');
}

static bool is_error(const redisReply *reply, const char *code)
{
    return reply->type == REDIS_REPLY_ERROR && span_eq(first_word(reply), span_str(code));
}

/* Errors of a server that will answer later; all others are refusals. */
static const char *const passing[] = {"LOADING", "BUSY", "MASTERDOWN", "TRYAGAIN"};

/* What a reply of the wrong kind comes to. quoted: the text holds nothing that was sent. */
static enum coord_status unwanted(const redisReply *reply, const char *command, bool quoted,
                                  struct coord_reply *r)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return outcome_refused(r, "%s: expected another kind of reply, found type %d", command,
                               reply->type);
    struct span text = quoted ? span_of(reply->str, reply->len) : first_word(reply);
    int n = (int)(text.n < 256 ? text.n : 256);
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) {
        if (is_error(reply, passing[i]))
            return outcome_down(r, ERR_BUSY, "%s: expected an answer, found -%.*s", command, n,
                                text.p);
    }
    return outcome_refused(r, "%s: expected an answer, found -%.*s", command, n, text.p);
}

/* ---- the connection ------------------------------------------------------------------------- */

void courier_drop(struct courier *c)
{
    if (c->context)
        redisFree(c->context);
    c->context = NULL;
}

static int64_t left_us(struct courier *c)
{
    int64_t left = c->deadline_us - clock_mono_us(c->clock);
    return left > 0 ? left : 0;
}

/* At least 1 ms, for 0 means for ever to setsockopt(2). */
static struct timeval left_timeval(struct courier *c)
{
    int64_t us = left_us(c) < 1000 ? 1000 : left_us(c);
    return (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (long)(us % 1000000)};
}

static enum coord_status unreachable(struct courier *c, const char *doing, const char *why,
                                     struct coord_reply *r)
{
    if (c->at.local)
        return outcome_down(r, ERR_IO, "%s %s: %s", doing, c->at.host, why);
    return outcome_down(r, ERR_IO, "%s %s port %u: %s", doing, c->at.host, c->at.port, why);
}

static enum coord_status timed_out(struct courier *c, const char *doing, struct coord_reply *r)
{
    char why[64];
    (void)snprintf(why, sizeof why, "expected within %" PRId64 " ms, found nothing",
                   c->timeout_us / 1000);
    (void)unreachable(c, doing, why, r);
    r->err.code = ERR_TIMEOUT;
    return COORD_DOWN;
}

static enum coord_status failed(struct courier *c, const char *doing, struct coord_reply *r)
{
    if (c->context->err == REDIS_ERR_IO && (errno == EAGAIN || errno == ETIMEDOUT))
        return timed_out(c, doing, r);
    return unreachable(c, doing, c->context->errstr, r);
}

static enum coord_status flush(struct courier *c, struct coord_reply *r)
{
    int done = 0;
    (void)redisSetTimeout(c->context, left_timeval(c));
    while (!done) {
        if (left_us(c) == 0)
            return timed_out(c, "request to", r);
        if (redisBufferWrite(c->context, &done) != REDIS_OK)
            return failed(c, "request to", r);
    }
    return COORD_OK;
}

/* *reply is the caller's to free. */
static enum coord_status receive(struct courier *c, redisReply **reply, struct coord_reply *r)
{
    *reply = NULL;
    for (;;) {
        void *got = NULL;
        if (redisGetReplyFromReader(c->context, &got) != REDIS_OK)
            return failed(c, "answer of", r);
        if (got) {
            *reply = got;
            return COORD_OK;
        }
        int64_t ms = (left_us(c) + 999) / 1000;
        struct pollfd p = {.fd = c->context->fd, .events = POLLIN};
        int ready = ms > 0 ? poll(&p, 1, ms > INT32_MAX ? INT32_MAX : (int)ms) : 0;
        if (ready == 0)
            return timed_out(c, "answer of", r);
        if (ready > 0 && redisBufferRead(c->context) != REDIS_OK)
            return failed(c, "answer of", r);
    }
}

/* One command, one reply. What is not COORD_OK has dropped the connection. */
static enum coord_status request(struct courier *c, int argc, const char **argv, const size_t *len,
                                 redisReply **reply, struct coord_reply *r)
{
    enum coord_status s;
    *reply = NULL;
    if (redisAppendCommandArgv(c->context, argc, argv, len) != REDIS_OK)
        s = failed(c, "request to", r);
    else
        s = flush(c, r);
    if (s == COORD_OK)
        s = receive(c, reply, r);
    if (s != COORD_OK)
        courier_drop(c);
    return s;
}

/* A command of the connection's own, which must be answered by +OK. */
static enum coord_status greet(struct courier *c, int argc, const char **argv, const size_t *len,
                               struct coord_reply *r)
{
    redisReply *reply;
    enum coord_status s = request(c, argc, argv, len, &reply, r);
    if (s != COORD_OK)
        return s;
    if (reply->type != REDIS_REPLY_STATUS || strcmp(reply->str, "OK") != 0) {
        /* An unknown command is quoted in full by the server, password and all. */
        s = unwanted(reply, argv[0], false, r);
        courier_drop(c);
    }
    freeReplyObject(reply);
    return s;
}

static enum coord_status authenticate(struct courier *c, struct coord_reply *r)
{
    const struct address_secret *user = &c->at.user;
    const struct address_secret *pass = &c->at.password;
    if (user->n == 0 && pass->n == 0)
        return COORD_OK;
    const char *argv[3] = {"AUTH", user->b, pass->b};
    size_t len[3] = {4, user->n, pass->n};
    if (user->n > 0)
        return greet(c, 3, argv, len, r);
    argv[1] = pass->b;
    len[1] = pass->n;
    return greet(c, 2, argv, len, r);
}

static enum coord_status choose_db(struct courier *c, struct coord_reply *r)
{
    char db[16];
    if (c->at.db == 0)
        return COORD_OK;
    (void)snprintf(db, sizeof db, "%" PRIu32, c->at.db);
    const char *argv[2] = {"SELECT", db};
    const size_t len[2] = {6, strlen(db)};
    return greet(c, 2, argv, len, r);
}

static enum coord_status join(struct courier *c, struct coord_reply *r)
{
    c->context = c->at.local ? redisConnectUnixWithTimeout(c->at.host, left_timeval(c))
                             : redisConnectWithTimeout(c->at.host, c->at.port, left_timeval(c));
    if (!c->context)
        return outcome_down(r, ERR_NOMEM, "no memory for a connection");
    if (c->context->err) {
        enum coord_status s = failed(c, "connection to", r);
        courier_drop(c);
        return s;
    }
    (void)fcntl(c->context->fd, F_SETFD, FD_CLOEXEC);
    coord_redis_bound(c->context->reader);
    enum coord_status s = authenticate(c, r);
    return s == COORD_OK ? choose_db(c, r) : s;
}

/* Every call begins here. A kept connection with anything to read has been closed by the server, or
 * carries what nobody asked for. */
static enum coord_status begin(struct courier *c, struct coord_reply *r)
{
    c->deadline_us = clock_mono_us(c->clock) + c->timeout_us;
    if (c->context) {
        struct pollfd p = {.fd = c->context->fd, .events = POLLIN};
        if (poll(&p, 1, 0) != 0)
            courier_drop(c);
    }
    return c->context ? COORD_OK : join(c, r);
}

void courier_clear(struct courier *c)
{
    (void)courier_end(c, COORD_DOWN);
    explicit_bzero(&c->at, sizeof c->at);
}

/* ---- the script ----------------------------------------------------------------------------- */

static enum coord_status load(struct courier *c, struct coord_reply *r)
{
    const char *argv[3] = {"SCRIPT", "LOAD", pool_lua};
    const size_t len[3] = {6, 4, pool_lua_len};
    redisReply *reply;
    enum coord_status s = request(c, 3, argv, len, &reply, r);
    if (s != COORD_OK)
        return s;
    if (reply->type == REDIS_REPLY_STRING && reply->len == COURIER_SHA1_TEXT) {
        memcpy(c->sha, reply->str, COURIER_SHA1_TEXT);
    } else {
        s = unwanted(reply, "SCRIPT LOAD", true, r);
        courier_drop(c);
    }
    freeReplyObject(reply);
    return s;
}

static enum coord_status evalsha(struct courier *c, int argc, const char **argv, size_t *len,
                                 struct coord_reply *r)
{
    enum coord_status s = COORD_OK;
    if (!c->sha[0])
        s = load(c, r);
    argv[COURIER_ARG_SCRIPT] = c->sha;
    len[COURIER_ARG_SCRIPT] = COURIER_SHA1_TEXT;
    return s == COORD_OK ? request(c, argc, argv, len, &c->reply, r) : s;
}

enum coord_status courier_script(struct courier *c, int argc, const char **argv, size_t *len,
                                 struct answer *a, struct coord_reply *r)
{
    enum coord_status s = begin(c, r);
    if (s == COORD_OK)
        s = evalsha(c, argc, argv, len, r);
    if (s == COORD_OK && is_error(c->reply, "NOSCRIPT")) {
        freeReplyObject(c->reply);
        c->reply = NULL;
        c->sha[0] = '\0';
        s = evalsha(c, argc, argv, len, r);
    }
    if (s == COORD_OK && !coord_redis_answer(c->reply, a))
        s = unwanted(c->reply, "EVALSHA", true, r);
    return s;
}

enum coord_status courier_end(struct courier *c, enum coord_status s)
{
    if (c->reply)
        freeReplyObject(c->reply);
    c->reply = NULL;
    if (s == COORD_REFUSED || s == COORD_DOWN)
        courier_drop(c);
    return s;
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

enum coord_status coord_redis_roster(const struct redisReply *exec, const struct answer_to *to,
                                     struct coord_snapshot *out, struct coord_reply *r)
{
    struct roster in = {0};
    if (!exec || exec->type != REDIS_REPLY_ARRAY || exec->elements != SNAP_PARTS)
        return outcome_refused(r, "EXEC: expected an array of %d replies, found another",
                               SNAP_PARTS);
    for (size_t i = 0; i < SNAP_PARTS; i++) {
        const redisReply *part = exec->element[i];
        if (!part)
            return outcome_refused(r, "EXEC: expected %d replies, found %zu", SNAP_PARTS, i);
        if (part->type != REDIS_REPLY_ARRAY)
            return unwanted(part, "snapshot", true, r);
    }
    if (!time_of(exec->element[SNAP_TIME], &in.now_ms))
        return outcome_refused(r, "TIME: expected seconds and microseconds, found another");
    enum coord_status s = COORD_OK;
    if (!list_of(exec->element[SNAP_HASH], &in.hash) ||
        !list_of(exec->element[SNAP_QUEUE], &in.queue) ||
        !list_of(exec->element[SNAP_INDEX], &in.index) ||
        !list_of(exec->element[SNAP_WHO], &in.who))
        s = outcome_down(r, ERR_NOMEM, "no memory for a snapshot");
    if (s == COORD_OK)
        s = roster_read(&in, to, out, r);
    free(in.hash.v);
    free(in.queue.v);
    free(in.index.v);
    free(in.who.v);
    return s;
}

#define SNAP_COMMANDS (SNAP_PARTS + 2) /* MULTI … EXEC */

static enum coord_status send_snapshot(struct courier *c, struct coord_reply *r)
{
    const char *const commands[SNAP_COMMANDS][4] = {
        {"MULTI"},
        {"HGETALL", c->key[0]},
        {"LRANGE", c->key[1], "0", "-1"},
        {"ZRANGE", c->key[2], "0", "-1"},
        {"HGETALL", c->key[3]},
        {"TIME"},
        {"EXEC"},
    };
    for (size_t i = 0; i < SNAP_COMMANDS; i++) {
        const char *argv[4];
        int argc = 0;
        while (argc < 4 && commands[i][argc]) {
            argv[argc] = commands[i][argc];
            argc++;
        }
        if (redisAppendCommandArgv(c->context, argc, argv, NULL) != REDIS_OK)
            return failed(c, "request to", r);
    }
    return flush(c, r);
}

enum coord_status courier_snapshot(struct courier *c, const struct answer_to *to,
                                   struct coord_snapshot *out, struct coord_reply *r)
{
    enum coord_status s = begin(c, r);
    if (s == COORD_OK)
        s = send_snapshot(c, r);
    for (int i = 0; i < SNAP_COMMANDS && s == COORD_OK; i++) {
        if (c->reply)
            freeReplyObject(c->reply);
        s = receive(c, &c->reply, r);
        if (s == COORD_OK && c->reply->type == REDIS_REPLY_ERROR)
            s = unwanted(c->reply, "snapshot", true, r);
    }
    if (s == COORD_OK)
        s = coord_redis_roster(c->reply, to, out, r);
    return courier_end(c, s);
}
