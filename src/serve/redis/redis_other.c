/*
 * What Redis can do with a key, and IDs cannot: writes are refused, reads answered as if the key
 * were of the wrong type, or, where it is no ID, missing.
 */
#include "serve/redis/redis.h"

/* ---- refusals ---------------------------------------------------------------------------------
 */

enum serve_result rds_refuse_write(struct rds_call *c, struct span key)
{
    if (rds_name(c, key))
        return rds_fail(c, SERVE_REFUSED, "ERR id key '%.*s' is read-only", RDS_SHOWN(key));
    return rds_fail(c, SERVE_REFUSED,
                    "ERR key '%.*s' is no id, and no upstream is configured to store it",
                    RDS_SHOWN(key));
}

/* The key that decides: the first that is an ID, else the first. false: there is none. Keys that
 * must be sought in the args may be any of them from the second on: an ID among those is one. */
static bool deciding_key(struct rds_call *c, struct span *key)
{
    uint32_t from = 2, to = c->req->argc - 1, step = 1;
    /* The last arg of a truncated request may be cut. */
    uint32_t seen = c->req->seen - c->req->truncated;
    bool known = resp_keys(c->cmd, c->req->argc, &from, &to, &step), found = false;
    if (!known && !(c->cmd->flags & RESP_F_MOVABLEKEYS))
        return false;
    struct resp_walk w = resp_walk_from(c->req, 0);
    struct span arg;
    for (uint32_t i = 0; i <= to && i < seen && resp_next_arg(&w, &arg); i++) {
        if (i < from || (i - from) % step != 0)
            continue;
        bool is_id = rds_name(c, arg) != NULL;
        if (is_id || !found)
            *key = arg;
        found = true;
        if (is_id)
            break;
    }
    return found;
}

enum serve_result rds_oversized(struct rds_call *c)
{
    struct span key;
    if (c->cmd->verb == RESP_OTHER && c->cmd->flags & RESP_F_WRITE && deciding_key(c, &key))
        return rds_refuse_write(c, key);
    return rds_fail(c, SERVE_REFUSED, "ERR '%s' request is too long: expected at most %d bytes",
                    c->cmd->name, WIRE_IN_MAX);
}

/* ---- reads of keys that hold nothing ----------------------------------------------------------
 */

/* What Redis answers for a missing key. */
enum missing {
    NIL,
    ZERO,
    EMPTY_BULK,
    EMPTY_ARRAY,
    EMPTY_SET,
    EMPTY_MAP,
    NIL_ARRAY,
    NILS,        /* one per arg behind the key */
    NIL_ARRAYS,  /* ditto */
    ZEROS,       /* ditto */
    FIELDS,      /* one zero per three args: GET type offset */
    NIL_OR_NONE, /* with a count, an empty array */
    SCAN_END,
    FIRST_BIT,
    NO_GROUP,
    KEYS_FOUND, /* how many of the keys are IDs: these do exist */
};

/* Reads that are not here are answered with null. */
static const struct read {
    const char *name;
    uint8_t missing; /* enum missing */
    bool string;     /* it reads strings: for an ID key not of the wrong type, but not offered */
} reads[] = {
    {"bitcount", ZERO, true},
    {"bitfield_ro", FIELDS, true},
    {"bitpos", FIRST_BIT, true},
    {"dump", NIL, true},
    {"geohash", NILS, false},
    {"geopos", NIL_ARRAYS, false},
    {"georadius_ro", EMPTY_ARRAY, false},
    {"georadiusbymember_ro", EMPTY_ARRAY, false},
    {"geosearch", EMPTY_ARRAY, false},
    {"getbit", ZERO, true},
    {"getrange", EMPTY_BULK, true},
    {"hexists", ZERO, false},
    {"hgetall", EMPTY_MAP, false},
    {"hkeys", EMPTY_ARRAY, false},
    {"hlen", ZERO, false},
    {"hmget", NILS, false},
    {"hrandfield", NIL_OR_NONE, false},
    {"hscan", SCAN_END, false},
    {"hstrlen", ZERO, false},
    {"hvals", EMPTY_ARRAY, false},
    {"lcs", EMPTY_BULK, true},
    {"llen", ZERO, false},
    {"lpos", NIL_OR_NONE, false},
    {"lrange", EMPTY_ARRAY, false},
    {"pfcount", ZERO, false},
    {"scard", ZERO, false},
    {"sdiff", EMPTY_SET, false},
    {"sinter", EMPTY_SET, false},
    {"sintercard", ZERO, false},
    {"sismember", ZERO, false},
    {"smembers", EMPTY_SET, false},
    {"smismember", ZEROS, false},
    {"sort_ro", EMPTY_ARRAY, false},
    {"sscan", SCAN_END, false},
    {"strlen", ZERO, true},
    {"substr", EMPTY_BULK, true},
    {"sunion", EMPTY_SET, false},
    {"touch", KEYS_FOUND, false},
    {"xlen", ZERO, false},
    {"xpending", NO_GROUP, false},
    {"xrange", EMPTY_ARRAY, false},
    {"xread", NIL_ARRAY, false},
    {"xrevrange", EMPTY_ARRAY, false},
    {"zcard", ZERO, false},
    {"zcount", ZERO, false},
    {"zdiff", EMPTY_ARRAY, false},
    {"zinter", EMPTY_ARRAY, false},
    {"zintercard", ZERO, false},
    {"zlexcount", ZERO, false},
    {"zmscore", NILS, false},
    {"zrandmember", NIL_OR_NONE, false},
    {"zrange", EMPTY_ARRAY, false},
    {"zrangebylex", EMPTY_ARRAY, false},
    {"zrangebyscore", EMPTY_ARRAY, false},
    {"zrevrange", EMPTY_ARRAY, false},
    {"zrevrangebylex", EMPTY_ARRAY, false},
    {"zrevrangebyscore", EMPTY_ARRAY, false},
    {"zscan", SCAN_END, false},
    {"zunion", EMPTY_ARRAY, false},
};

static struct read read_of(const struct resp_cmd *cmd)
{
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        if (strcmp(reads[i].name, cmd->name) == 0)
            return reads[i];
    return (struct read){cmd->name, NIL, false};
}

/* n replies alike. */
static void put_each(struct rds_call *c, enum missing what, uint32_t n)
{
    resp_put_array(c->out, n);
    for (uint32_t i = 0; i < n; i++) {
        if (what == NILS)
            resp_put_null(c->out, c->ses->proto);
        else if (what == NIL_ARRAYS)
            resp_put_null_array(c->out, c->ses->proto);
        else
            resp_put_integer(c->out, 0);
    }
}

/* HRANDFIELD, ZRANDMEMBER K count; LPOS K e … COUNT n. */
static bool asks_for_many(struct rds_call *c)
{
    struct resp_walk w = resp_walk_from(c->req, 3);
    struct span arg;
    if (c->cmd->name[0] != 'l')
        return c->req->argc > 2;
    while (resp_next_arg(&w, &arg))
        if (span_eq_nocase(arg, SPAN("count")))
            return true;
    return false;
}

static void put_missing(struct rds_call *c, enum missing what)
{
    static const char *const fixed[] = {[ZERO] = ":0\r\n",
                                        [EMPTY_BULK] = "$0\r\n\r\n",
                                        [EMPTY_ARRAY] = "*0\r\n",
                                        [SCAN_END] = "*2\r\n$1\r\n0\r\n*0\r\n",
                                        [KEYS_FOUND] = NULL};
    int proto = c->ses->proto;
    uint32_t argc = c->req->argc;
    bool zero_bit = argc > 2 && span_eq(c->req->argv[2], SPAN("0"));
    if (fixed[what])
        buf_put_str(c->out, fixed[what]);
    else if (what == NILS || what == NIL_ARRAYS || what == ZEROS || what == FIELDS)
        put_each(c, what, what == FIELDS ? (argc - 2) / 3 : argc - 2);
    else if (what == EMPTY_SET)
        resp_put_set(c->out, proto, 0);
    else if (what == EMPTY_MAP)
        resp_put_map(c->out, proto, 0);
    else if (what == NIL_ARRAY)
        resp_put_null_array(c->out, proto);
    else if (what == FIRST_BIT)
        resp_put_integer(c->out, zero_bit ? 0 : -1);
    else if (what == NIL_OR_NONE && asks_for_many(c))
        resp_put_array(c->out, 0);
    else
        resp_put_null(c->out, proto);
}

static enum serve_result read_key(struct rds_call *c, struct span key)
{
    struct read read = read_of(c->cmd);
    if (read.missing == KEYS_FOUND)
        return rds_exists(c);
    if (rds_name(c, key) && read.string)
        return rds_fail(c, SERVE_REFUSED,
                        "ERR id key '%.*s' holds no value to look at: read it with GET, GETEX, "
                        "GETDEL or MGET",
                        RDS_SHOWN(key));
    if (rds_name(c, key))
        return rds_fail(c, SERVE_REFUSED,
                        "WRONGTYPE Operation against a key holding the wrong kind of value");
    if (read.missing == NO_GROUP)
        return rds_fail(c, SERVE_MISS, "NOGROUP No such key '%.*s' or consumer group '%.*s'",
                        RDS_SHOWN(key), RDS_SHOWN(c->req->argv[2]));
    put_missing(c, (enum missing)read.missing);
    return SERVE_MISS;
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

enum serve_result rds_other(struct rds_call *c)
{
    static const struct {
        const char *name, *reply;
    } fixed[] = {
        {"role", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"},
        {"wait", ":0\r\n"},
        {"asking", "-ERR This instance has cluster support disabled\r\n"},
    };
    struct span key;
    bool keyed = c->cmd->flags & (RESP_F_WRITE | RESP_F_READONLY) && deciding_key(c, &key);
    if (keyed && c->cmd->flags & RESP_F_WRITE)
        return rds_refuse_write(c, key);
    if (keyed)
        return read_key(c, key);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (strcmp(fixed[i].name, c->cmd->name) == 0) {
            buf_put_str(c->out, fixed[i].reply);
            return fixed[i].reply[0] == '-' ? SERVE_REFUSED : SERVE_OK;
        }
    }
    return rds_fail(c, SERVE_REFUSED, "ERR '%s' is not supported: IDs are all there is here",
                    c->cmd->name);
}
