/*
 * Commands that give out IDs. Each asks the issuer for what it needs; where that has to wait, the
 * request is parked, and session.done tells where it goes on.
 */
#include "serve/redis/redis.h"

#include "base/dec.h"

enum serve_result rds_not_issued(struct rds_call *c, enum issue_status s)
{
    static const char *const prefix[] = {[ISSUE_LOADING] = "LOADING",
                                         [ISSUE_AGAIN] = "TRYAGAIN",
                                         [ISSUE_NEVER] = "ERR",
                                         [ISSUE_WRONG] = "ERR",
                                         [ISSUE_MISS] = "ERR"};
    if (s == ISSUE_PARK)
        return RDS_PARKED;
    return rds_fail(c, serve_not_issued(s), "%s %s", prefix[s],
                    refusal_text(rds_issuer(c)->refused));
}

/* By itself, so that numbers do not pay for its memory, which is cleared and guarded. */
__attribute__((noinline)) static void put_text(struct rds_call *c, const struct generator *g,
                                               int64_t number)
{
    char text[GENERATOR_TEXT_MAX];
    resp_put_bulk(c->out, generator_text(g, number, c->turn->wall_ms, text));
}

static void put(struct rds_call *c, const struct names_entry *name, int64_t number)
{
    if (generator_is_text(name->generator))
        put_text(c, name->generator, number);
    else
        resp_put_bulk_i64(c->out, number);
}

enum serve_result rds_get(struct rds_call *c)
{
    int64_t id;
    struct names_entry *name = rds_name(c, c->req->argv[1]);
    enum issue_status s =
        name ? issuer_next(rds_issuer(c), name, c->turn, &id, &c->step) : ISSUE_MISS;
    if (s == ISSUE_MISS) {
        resp_put_null(c->out, c->ses->proto);
        return SERVE_MISS;
    }
    if (s != ISSUE_OK)
        return rds_not_issued(c, s);
    if (c->cmd->verb == RESP_GET && issuer_may_recall(name, c->req->argv[1]))
        c->name = name;
    put(c, name, id);
    return SERVE_OK;
}

/* GETEX K [PERSIST | EX|PX|EXAT|PXAT n]: an ID has no expiry that could be changed, so that the
 * options only have to be well-formed. */
enum serve_result rds_getex(struct rds_call *c)
{
    static const char *const timed[] = {"ex", "px", "exat", "pxat"};
    const struct span *argv = c->req->argv;
    uint32_t argc = c->req->argc;
    int64_t n;
    bool known = argc == 2 || (argc == 3 && span_eq_nocase(argv[2], SPAN("persist")));
    for (size_t i = 0; argc == 4 && i < sizeof timed / sizeof *timed; i++)
        known |= span_eq_nocase(argv[2], span_str(timed[i]));
    if (!known)
        return rds_fail(c, SERVE_INVALID, "ERR syntax error");
    if (argc == 4 && rds_name(c, argv[1])) { /* Redis looks at the number of a key it has */
        if (!rds_integer(c, argv[3], &n))
            return SERVE_INVALID;
        if (n <= 0)
            return rds_fail(c, SERVE_INVALID, "ERR invalid expire time in 'getex' command");
    }
    return rds_get(c);
}

uint32_t rds_alike(struct resp_walk w, struct span key)
{
    char mem[2 * NAMES_LENGTH_MAX]; /* an argument may live until the next is looked at */
    uint32_t n = 0;
    struct span next, name = span_cut(&key, '#');
    if (name.n > sizeof mem)
        return 0;
    memcpy(mem, name.p, name.n);
    name.p = mem;
    while (resp_next_arg(&w, &next) && names_alike(next, name))
        n++;
    return n;
}

/* One ID per key that is one, null for the others. */
enum serve_result rds_mget(struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 1);
    struct span key;
    enum serve_result r = SERVE_MISS;
    if (c->out->n == c->start)
        resp_put_array(c->out, c->req->argc - 1);
    for (uint32_t i = 0; resp_next_arg(&w, &key); i++) {
        int64_t id;
        if (i < c->ses->done)
            continue;
        struct names_entry *name = rds_name(c, key);
        enum issue_status s =
            name ? issuer_one_of(rds_issuer(c), name, c->turn, i > 0, &id, &c->step) : ISSUE_MISS;
        if (s == ISSUE_OK) {
            put(c, name, id);
            r = SERVE_OK;
        } else if (s == ISSUE_MISS) {
            resp_put_null(c->out, c->ses->proto);
        } else {
            if (s == ISSUE_PARK && c->turn->arrived)
                issuer_ahead(name, c->turn, rds_alike(w, key), 1);
            return rds_not_issued(c, s);
        }
        c->ses->done++;
    }
    return r;
}

/* ---- LPOP, RPOP, SPOP, SRANDMEMBER ------------------------------------------------------------
 */

/* Reads the count of K [count] as Redis does; false: the error is written. */
static bool pop_count(struct rds_call *c, int64_t *n)
{
    bool list = c->cmd->verb == RESP_LPOP || c->cmd->verb == RESP_RPOP;
    bool either_sign = c->cmd->verb == RESP_SRANDMEMBER;
    if (c->req->argc > 3) {
        (void)(list ? rds_wrong_arity(c) : rds_fail(c, SERVE_INVALID, "ERR syntax error"));
        return false;
    }
    bool number = dec_canonical_i64(c->req->argv[2], n);
    if (number && *n >= 0)
        return true;
    if (number && either_sign && *n >= -INT64_MAX) {
        *n = -*n; /* as many, with repetitions allowed: IDs never repeat */
        return true;
    }
    (void)rds_fail(c, SERVE_INVALID,
                   !either_sign ? "ERR value is out of range, must be positive"
                   : number     ? "ERR value is out of range, value must between "
                                  "-9223372036854775807 and 9223372036854775807"
                                : "ERR value is not an integer or out of range");
    return false;
}

static enum serve_result pop_missing(struct rds_call *c)
{
    int proto = c->ses->proto;
    if (c->req->argc == 2)
        resp_put_null(c->out, proto);
    else if (c->cmd->verb == RESP_SPOP)
        resp_put_set(c->out, proto, 0);
    else if (c->cmd->verb == RESP_SRANDMEMBER)
        resp_put_array(c->out, 0);
    else
        resp_put_null_array(c->out, proto);
    return SERVE_MISS;
}

static void put_count(struct buf *b, const struct rds_call *c, uint32_t n)
{
    if (c->cmd->verb == RESP_SPOP)
        resp_put_set(b, c->ses->proto, n);
    else
        resp_put_array(b, n);
}

/* How many are taken of n that a request asks for; fewer behind CLIENT REPLY OFF or SKIP. */
static uint32_t taken(const struct rds_call *c, const struct names_entry *name, uint32_t n)
{
    const struct rds_there *there = c->ses->there;
    return there && there->mute != RDS_LOUD ? issuer_untold(name, n) : n;
}

/* As of a list that has fewer than are wanted: with n it began, and no more came. */
static enum serve_result pop_fewer(struct rds_call *c, uint32_t n)
{
    char text[2][DEC_U64_MAX + 3];
    struct buf was, is;
    buf_init(&was, text[0], sizeof text[0]);
    buf_init(&is, text[1], sizeof text[1]);
    put_count(&was, c, n);
    put_count(&is, c, c->ses->done);
    char *reply = c->out->p + c->start;
    size_t behind = c->out->n - c->start - was.n;
    memcpy(reply, is.p, is.n);
    memmove(reply + is.n, reply + was.n, behind);
    buf_truncate(c->out, c->start + is.n + behind);
    return SERVE_OK;
}

static enum serve_result pop_many(struct rds_call *c, struct names_entry *name, uint32_t n)
{
    struct rds_session *ses = c->ses;
    if (c->out->n == c->start)
        put_count(c->out, c, n);
    while (ses->done < n) {
        struct generator_run run;
        enum issue_status s =
            issuer_some(rds_issuer(c), name, c->turn, n - ses->done, &run, &c->step);
        if (s == ISSUE_MISS && ses->done == 0) {
            buf_truncate(c->out, c->start);
            return pop_missing(c);
        }
        if (s != ISSUE_OK && s != ISSUE_PARK && ses->done > 0 && !c->out->failed &&
            refusal_leaves_some(rds_issuer(c)->refused))
            return pop_fewer(c, n);
        if (s != ISSUE_OK)
            return rds_not_issued(c, s);
        for (uint32_t i = 0; i < run.n; i++)
            put(c, name, generator_run_at(&run, i));
        ses->done += run.n;
    }
    return SERVE_OK;
}

enum serve_result rds_pop(struct rds_call *c)
{
    int64_t n = 0;
    if (c->req->argc > 2 && !pop_count(c, &n))
        return SERVE_INVALID;
    struct names_entry *name = rds_name(c, c->req->argv[1]);
    if (!name)
        return pop_missing(c);
    if (c->req->argc == 2)
        return rds_get(c);
    if (n > rds_issuer(c)->batch)
        return rds_fail(c, SERVE_INVALID, "ERR value is out of range, must be between 0 and %u",
                        rds_issuer(c)->batch);
    return pop_many(c, name, n > 0 ? taken(c, name, (uint32_t)n) : 0);
}

/* ---- INCR, INCRBY -----------------------------------------------------------------------------
 */

/* INCRBY K n gives the last of n numbers in a row: all of them are the caller's. Where there are
 * none of that name it is an error: Redis never answers INCR with null, and its clients trip. */
enum serve_result rds_incr(struct rds_call *c)
{
    struct span key = c->req->argv[1];
    int64_t n = 1;
    int64_t last;
    if (c->req->argc > 2 && !rds_integer(c, c->req->argv[2], &n))
        return SERVE_INVALID;
    struct names_entry *name = rds_name(c, key);
    if (!name)
        return rds_refuse_write(c, key);
    if (generator_is_text(name->generator))
        return rds_fail(c, SERVE_INVALID, "ERR value is not an integer or out of range");
    if (n < 1 || n > issuer_run(rds_issuer(c), name))
        return rds_fail(c, SERVE_INVALID,
                        "ERR value is not an integer or out of range: expected 1 to %u, found %lld",
                        issuer_run(rds_issuer(c), name), (long long)n);
    uint32_t row = taken(c, name, (uint32_t)n);
    enum issue_status s = issuer_row(rds_issuer(c), name, c->turn, row, &last, &c->step);
    if (s != ISSUE_OK)
        return rds_not_issued(c, s);
    resp_put_integer(c->out, last);
    return SERVE_OK;
}
