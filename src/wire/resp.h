/*
 * The Redis protocol, RESP2 and RESP3: requests in, replies out, and the table of commands.
 *
 *     *2\r\n$3\r\nGET\r\n$9\r\nid:orders\r\n     multibulk: what clients send
 *     get id:orders\r\n                          inline: what people type
 *
 * Sources: redis.io "Redis serialization protocol specification"; limits, error texts and corner
 * cases compared with Redis 7.0.15 (networking.c, sds.c sdssplitargs).
 *
 * Invariants
 *   - Limits are those of Redis: WIRE_LINE_MAX for an inline line and for a length line,
 *     RESP_BULK_MAX for a bulk, INT32_MAX for the count of args. Any breach closes.
 *   - A request that does not fit into WIRE_IN_MAX is given out all the same, marked truncated, so
 *     that it can be refused by name; its remainder is swallowed piece by piece, never stored.
 *   - Spans point into `in`, but for quoted words of an inline line and errors, which may lie in
 *     the request's own scratch: a struct resp_req is not to be copied.
 *
 * Where we differ from Redis: quoted words of one inline line may have RESP_SCRATCH bytes together;
 * a NUL is a byte like any other; an overlong line is refused even if it came in one piece.
 */
#ifndef SIDFLAKE_WIRE_RESP_H
#define SIDFLAKE_WIRE_RESP_H

#include "base/buf.h"
#include "base/span.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESP_ARGV     16                   /* args reachable by index */
#define RESP_SCRATCH  1024                 /* bytes for quoted inline words and errors */
#define RESP_BULK_MAX (INT64_C(512) << 20) /* bytes; Redis's proto-max-bulk-len */

/* The remainder of a truncated request. Filled by resp_parse. */
struct resp_swallow {
    uint64_t args_left;  /* args whose length line has not been read through */
    uint64_t bytes_left; /* of the arg under way, its CRLF included */
    uint8_t header_n;    /* bytes of the length line under way in header */
    char header[24];     /* no valid length line is longer */
    struct span error;   /* with *bad: the whole answer, as in resp_req */
    char error_text[64];
};

/* Filled by resp_parse, except after WIRE_MORE. About 1.5 KiB: keep one per thread. */
struct resp_req {
    uint32_t argc;   /* args the client announced. 0: an empty line or "*0", no request at all:
                      * answer nothing, as Redis */
    uint32_t seen;   /* args in argv and rest: argc unless truncated; the last may then be cut */
    uint32_t whole;  /* of these, args that are not cut */
    bool inline_cmd; /* for the differences Redis makes; args are read the same way */
    bool truncated;  /* the request is too big: refuse it, then run swallow over what follows */
    bool canonical;  /* it stands there as resp_put_array and resp_put_bulk would write it: the
                      * digits of numbers, no sign and no zero before them, CRLF behind each line
                      * and each bulk; so every reader of RESP sees the same in it */
    struct span argv[RESP_ARGV]; /* the first args; those from seen on are unspecified */
    struct span rest;            /* raw text of the args from RESP_ARGV on: see resp_walk_from */
    struct span error; /* with WIRE_BAD, WIRE_CLOSE: the whole answer with CRLF, or empty */
    struct resp_swallow swallow; /* only if truncated */
    size_t fore;                 /* likewise: bytes of in before the first arg that is not whole */
    size_t scratch_n;            /* bytes of scratch that argv uses */
    char scratch[RESP_SCRATCH];
};

/* Never answers WIRE_BAD: Redis closes after each protocol error. A first word POST or Host:
 * closes without a word. */
enum wire_status resp_parse(struct span in, struct resp_req *req, size_t *used);

/* The bulk at *at of in, if it is canonical, and *at behind it. false, and nothing done: it is not
 * there whole, or needs resp_parse to judge it. */
bool resp_next_bulk(struct span in, size_t *at, struct span *arg);

/* Walks all args from number first (at most RESP_ARGV) on, beyond argv too:
 *     struct resp_walk w = resp_walk_from(req, 1);
 *     while (resp_next_arg(&w, &arg)) …
 * An arg of an inline request from number RESP_ARGV on lives until the next call only. */
struct resp_walk {
    struct resp_req *req;
    uint32_t i; /* number of the next arg */
    struct span rest;
};
struct resp_walk resp_walk_from(struct resp_req *req, uint32_t first);
bool resp_next_arg(struct resp_walk *w, struct span *arg);

/* Consumes what of in belongs to the request and returns how many bytes that were. *done: it has
 * ended. *bad: it broke the protocol; send s->error and close. */
size_t resp_swallow(struct resp_swallow *s, struct span in, bool *done, bool *bad);

/* An option, in either case: whether Redis takes arg for it, which compares them as C strings. */
static inline bool resp_is_word(struct span arg, const char *word)
{
    return span_eq_nocase(span_cut(&arg, '\0'), span_str(word));
}

/* Commands. The order of the enum means nothing; RESP_OTHER is a command that Redis knows and we
 * treat like its kin, by flags. */
enum resp_verb {
    RESP_OTHER,
    RESP_AUTH,
    RESP_CLIENT,
    RESP_CLUSTER,
    RESP_COMMAND,
    RESP_CONFIG,
    RESP_DBSIZE,
    RESP_DEBUG,
    RESP_DISCARD,
    RESP_ECHO,
    RESP_EVAL, /* eval, evalsha, fcall and their _ro twins */
    RESP_EXEC,
    RESP_EXISTS,
    RESP_EXPIRETIME,
    RESP_FLUSH, /* flushall, flushdb */
    RESP_GET,
    RESP_GETDEL,
    RESP_GETEX,
    RESP_HELLO,
    RESP_INCR,
    RESP_INCRBY,
    RESP_INFO,
    RESP_KEYS,
    RESP_LATENCY,
    RESP_LPOP,
    RESP_MGET,
    RESP_MONITOR,
    RESP_MULTI,
    RESP_PEXPIRETIME,
    RESP_PING,
    RESP_PSUBSCRIBE,
    RESP_PTTL,
    RESP_PUNSUBSCRIBE,
    RESP_QUIT,
    RESP_RANDOMKEY,
    RESP_READONLY, /* readonly, readwrite: commands of a cluster */
    RESP_RESET,
    RESP_RPOP,
    RESP_SCAN,
    RESP_SELECT,
    RESP_SHUTDOWN,
    RESP_SLOWLOG,
    RESP_SPOP,
    RESP_SRANDMEMBER,
    RESP_SSUBSCRIBE,
    RESP_SUBSCRIBE,
    RESP_SUNSUBSCRIBE,
    RESP_SYNC, /* sync, psync, replconf */
    RESP_TIME,
    RESP_TTL,
    RESP_TYPE,
    RESP_UNSUBSCRIBE,
    RESP_UNWATCH,
    RESP_WATCH,
    RESP_VERB_COUNT
};

/* Redis's command flags, as COMMAND names them: resp_flag_name(i) is the name of 1 << i. */
enum resp_flag {
    RESP_F_WRITE = 1 << 0,
    RESP_F_READONLY = 1 << 1,
    RESP_F_DENYOOM = 1 << 2,
    RESP_F_ADMIN = 1 << 3,
    RESP_F_PUBSUB = 1 << 4,
    RESP_F_NOSCRIPT = 1 << 5,
    RESP_F_BLOCKING = 1 << 6,
    RESP_F_LOADING = 1 << 7,
    RESP_F_STALE = 1 << 8,
    RESP_F_SKIP_MONITOR = 1 << 9,
    RESP_F_SKIP_SLOWLOG = 1 << 10,
    RESP_F_ASKING = 1 << 11,
    RESP_F_FAST = 1 << 12,
    RESP_F_NO_AUTH = 1 << 13,
    RESP_F_NO_MULTI = 1 << 14,
    RESP_F_MOVABLEKEYS =
        1 << 15, /* keys must be sought in the args: first, last, step are not all */
    RESP_F_ALLOW_BUSY = 1 << 16,
    RESP_F_NO_ASYNC_LOADING = 1 << 17,
    RESP_F_NO_MANDATORY_KEYS = 1 << 18
};
#define RESP_FLAGS 19

struct resp_cmd {
    char name[24];  /* lower case, padded with NULs */
    uint8_t name_n; /* bytes, 1..23 */
    uint8_t verb;   /* enum resp_verb */
    int8_t arity;   /* args, name included; negative: at least so many */
    int8_t first;   /* number of the first key in argv; 0: no keys */
    int8_t last;    /* of the last key; negative: counted from the end, -1 being the last arg */
    int8_t step;    /* from key to key */
    uint32_t flags; /* of enum resp_flag */
    bool shared;    /* may go on a connection that clients share: see resp_commands.h */
};

/* In either case. NULL if Redis 7.0 has no such command. */
const struct resp_cmd *resp_lookup(struct span name);

/* All commands, sorted by name. */
const struct resp_cmd *resp_commands(size_t *n);

/* i < RESP_FLAGS. */
const char *resp_flag_name(unsigned i);

/* true if argc is what cmd takes. */
static inline bool resp_arity_ok(const struct resp_cmd *cmd, uint32_t argc)
{
    return cmd->arity >= 0 ? argc == (uint32_t)cmd->arity : argc >= (uint32_t)-cmd->arity;
}

/* The keys of a request: numbers *from, *from + step … *to. false if the table knows of none, as
 * with those of RESP_F_MOVABLEKEYS that have only such. */
bool resp_keys(const struct resp_cmd *cmd, uint32_t argc, uint32_t *from, uint32_t *to,
               uint32_t *step);

/* Replies. proto is 2 or 3, as agreed by HELLO. A writer that finds no room leaves *b failed; see
 * base/buf.h. Those of RESP3 types write in RESP2 what Redis does. */
void resp_put_simple(struct buf *b, struct span text); /* must hold no CR or LF */
void resp_put_error(struct buf *b, struct span text); /* "ERR …", without '-'; CR, LF to spaces */
void resp_put_integer(struct buf *b, int64_t v);
void resp_put_bulk(struct buf *b, struct span bytes);
void resp_put_bulk_u64(struct buf *b, uint64_t v);
void resp_put_bulk_i64(struct buf *b, int64_t v);
void resp_put_null(struct buf *b, int proto);
void resp_put_null_array(struct buf *b, int proto);
void resp_put_array(struct buf *b, uint64_t n);          /* n elements are to follow */
void resp_put_map(struct buf *b, int proto, uint64_t n); /* n pairs; RESP2: array of 2n */
void resp_put_set(struct buf *b, int proto, uint64_t n);
void resp_put_push(struct buf *b, int proto, uint64_t n);
void resp_put_verbatim(struct buf *b, int proto, struct span text); /* as "txt" */

/* "-ERR unknown command 'x', with args beginning with: 'a' 'b' ", as Redis cuts it. */
void resp_put_unknown(struct buf *b, struct resp_req *req);

/* "-ERR wrong number of arguments for 'x' command" */
void resp_put_wrong_arity(struct buf *b, const struct resp_cmd *cmd);

#endif
