/*
 * Commands about the connection and the server that need no more than a few lines each.
 */
#include "serve/redis/redis.h"

#include "base/dec.h"

static void put_text(struct buf *b, const char *s)
{
    resp_put_bulk(b, span_str(s));
}

/* ---- SELECT, PING, ECHO, TIME, QUIT, RESET -----------------------------------------------------
 */

enum serve_result rds_select(struct rds_call *c)
{
    int64_t db;
    if (!rds_integer(c, c->req->argv[1], &db))
        return SERVE_INVALID;
    if (db < INT32_MIN || db > INT32_MAX)
        return rds_fail(c, SERVE_INVALID, "ERR value is out of range, value must between %d and %d",
                        INT32_MIN, INT32_MAX);
    if (db < 0 || db >= RDS_DBS)
        return rds_fail(c, SERVE_INVALID, "ERR DB index is out of range");
    c->ses->db = (uint8_t)db;
    return rds_ok(c);
}

enum serve_result rds_ping(struct rds_call *c)
{
    struct span text = c->req->argc > 1 ? c->req->argv[1] : SPAN("");
    if (c->req->argc > 2)
        return rds_wrong_arity(c);
    if (c->ses->subs && c->ses->proto == 2) {
        resp_put_array(c->out, 2);
        put_text(c->out, "pong");
        resp_put_bulk(c->out, text);
    } else if (c->req->argc > 1) {
        resp_put_bulk(c->out, text);
    } else {
        BUF_PUT_LIT(c->out, "+PONG\r\n");
    }
    return SERVE_OK;
}

enum serve_result rds_echo(struct rds_call *c)
{
    resp_put_bulk(c->out, c->req->argv[1]);
    return SERVE_OK;
}

enum serve_result rds_time(struct rds_call *c)
{
    int64_t us = clock_wall_us(c->turn->clock);
    uint64_t since_1970 = us > 0 ? (uint64_t)us : 0;
    resp_put_array(c->out, 2);
    resp_put_bulk_u64(c->out, since_1970 / 1000000);
    resp_put_bulk_u64(c->out, since_1970 % 1000000);
    return SERVE_OK;
}

enum serve_result rds_quit(struct rds_call *c)
{
    c->close = true;
    return rds_ok(c);
}

enum serve_result rds_reset(struct rds_call *c)
{
    rds_multi_end(c->ses);
    rds_subs_end(c->ses);
    access_logout(&c->ses->access);
    rds_set_name(c->ses, SPAN(""));
    c->ses->db = 0;
    c->ses->proto = 2;
    BUF_PUT_LIT(c->out, "+RESET\r\n");
    return SERVE_OK;
}

/* ---- LATENCY, SLOWLOG: nothing is ever recorded -----------------------------------------------
 */

static enum serve_result nothing(struct rds_call *c)
{
    resp_put_array(c->out, 0);
    return SERVE_OK;
}

static enum serve_result nothing_map(struct rds_call *c)
{
    resp_put_map(c->out, c->ses->proto, 0);
    return SERVE_OK;
}

static enum serve_result zero(struct rds_call *c)
{
    resp_put_integer(c->out, 0);
    return SERVE_OK;
}

static enum serve_result doctor(struct rds_call *c)
{
    resp_put_verbatim(c->out, c->ses->proto,
                      SPAN("Latency is not monitored here: see the metrics page, "
                           "request_duration_seconds.\n"));
    return SERVE_OK;
}

const struct rds_sub rds_latency_subs[] = {
    {"doctor", 2, doctor, NULL},   {"graph", 3, NULL, "ERR LATENCY GRAPH is not supported"},
    {"help", 2, rds_help, NULL},   {"histogram", -2, nothing_map, NULL},
    {"history", 3, nothing, NULL}, {"latest", 2, nothing, NULL},
    {"reset", -2, zero, NULL},     {.name = NULL},
};

static enum serve_result slowlog_get(struct rds_call *c)
{
    int64_t n;
    if (c->req->argc > 3)
        return rds_wrong_arity(c);
    if (c->req->argc == 3 && (!dec_canonical_i64(c->req->argv[2], &n) || n < -1))
        return rds_fail(c, SERVE_INVALID, "ERR count should be greater than or equal to -1");
    return nothing(c);
}

const struct rds_sub rds_slowlog_subs[] = {
    {"get", -2, slowlog_get, NULL},
    {"help", 2, rds_help, NULL},
    {"len", 2, zero, NULL},
    {"reset", 2, rds_ok, NULL},
    {.name = NULL},
};
