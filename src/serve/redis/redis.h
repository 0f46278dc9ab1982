/*
 * What the files of the Redis service share: a connection's state, a request under way, and the
 * tables by which requests find their handlers. Names begin with rds_, for redis belongs to
 * hiredis.
 *
 *   resp_parse -> find (command, subcommand, arity) -> held back? (MULTI, subscribed) -> handler
 *
 *   redis.c         dispatch, oversized requests   redis_multi.c   MULTI, EXEC, DISCARD, WATCH
 *   redis_ids.c     commands that give out IDs     redis_pubsub.c  SUBSCRIBE and its kin
 *   redis_keys.c    EXISTS, TTL, SCAN …            redis_client.c  CLIENT
 *   redis_other.c   what is not for IDs            redis_config.c  CONFIG, COMMAND
 *   redis_admin.c   PING, SELECT, TIME …           redis_info.c    INFO
 *   redis_auth.c    AUTH, HELLO, who may what      redis_carry.c   sessions outlive the program
 *   redis_merge.c   MGET of IDs and others
 *   redis_through.c, redis_there.c                 what goes to the upstream
 *   redis_stream.c                                 the same, in pieces
 *   redis_form.c                                   the same, as it usually is
 *   redis_rights.c                                 what of it a user may
 *
 * Sources: redis.io's command reference; replies, error texts and the order of checks compared with
 * Redis 7.0.15. CLIENT SETINFO and NO-TOUCH are those of Redis 7.2.
 *
 * Invariants
 *   - A handler writes one whole reply, from call.start on, or returns RDS_PARKED. Then what it has
 *     written so far stays, session.done says how far it came, and it is called again for the same
 *     request; out->n > start tells it that its header stands there already.
 *   - A refusal takes back what was written of the reply: no reply holds some of the IDs asked for.
 *   - An idle connection owns no memory but its session, unless it is subscribed or within MULTI.
 */
#ifndef SIDFLAKE_SERVE_REDIS_REDIS_H
#define SIDFLAKE_SERVE_REDIS_REDIS_H

#include "net/upstream/upstream.h"
#include "serve/access.h"
#include "serve/greeting.h"
#include "serve/serve.h"
#include "serve/watch/recent.h"
#include "wire/resp_keys.h"

#include <assert.h>
#include <stddef.h>

#define RDS_VERSION  "7.0.15" /* what HELLO and INFO say: clients switch features by it */
#define RDS_NAME_MAX 64       /* bytes of a client's name; Redis has no limit */
#define RDS_DBS      16
#define RDS_RUN_ID   40 /* hex digits */

#define RDS_PARKED SERVE_RESULTS /* of a handler: call.step says for what */

#define RDS_FORMS 8

/* How requests begin that may be forwarded as they are: up to their first key. */
struct rds_form {
    char head[40];
    size_t n;            /* 0: none yet */
    uint32_t args;       /* that follow */
    uint32_t last, step; /* keys among them: numbers 1, 1 + step … last */
    unsigned command;    /* for serve_count */
};

struct rds_forms {
    struct rds_form form[RDS_FORMS];
    unsigned at;   /* the one met last: looked at first */
    unsigned next; /* the one to be given up next */
};

struct rds_service {
    struct net_service net; /* first, for it is what the listener knows */
    struct serve *serve;
    uint64_t clients; /* CLIENT IDs given out */
    char run_id[RDS_RUN_ID + 1];
    struct recent recent;   /* GETs of an ID */
    struct rds_forms forms; /* of what is forwarded */
    struct resp_req req;    /* the request at the front */
    struct resp_req queued; /* one of those that EXEC carries out */
};

struct rds_txn;  /* redis_multi.c: requests queued since MULTI */
struct rds_subs; /* redis_pubsub.c: channels subscribed to */

enum rds_mute {
    RDS_LOUD,
    RDS_MUTE,      /* CLIENT REPLY OFF */
    RDS_MUTE_NEXT, /* CLIENT REPLY SKIP */
};

/* What a connection has to do with the upstream. It is in the midst of nothing while all of this is
 * zero (rds_is_plain); several may hold at once. */
struct rds_there {
    struct rds_merge *merge; /* the mixed MGET under way; NULL: none */
    bool multi;              /* the transaction under way is its */
    bool ids;                /* the one under way here holds IDs */
    bool watching;           /* keys */
    bool news;               /* acknowledgements of SUBSCRIBE may be on their way */
    bool lapsed;             /* a password was taken for right while it was down */
    bool tunnel;             /* what comes from there is passed on, uninterpreted */
    uint8_t mute;            /* of enum rds_mute */
    /* Protocols, 2 or 3; 0: there is none of it. */
    uint8_t asked;  /* by a HELLO under way: spoken if the reply is no error; spoken as before
                     * while a SELECT is that is repeated there: its database may be refused */
    uint8_t unsaid; /* spoken there, where a login came first: what else was agreed upon here is
                     * yet to be said */
    uint8_t zero[7];
};

static_assert(offsetof(struct rds_there, zero) + sizeof((struct rds_there){0}.zero) ==
                  sizeof(struct rds_there),
              "rds_is_plain compares no padding");

/* What the next request means hangs on no request before it: whatever field is added to struct
 * rds_there counts. */
static inline bool rds_is_plain(const struct rds_there *t)
{
    static const struct rds_there nothing;
    return memcmp(t, &nothing, sizeof nothing) == 0;
}

/* What follows of a request that is larger than a connection's input. */
struct rds_rest {
    struct resp_swallow swallow;
    bool passed_on; /* else the request was refused */
    /* Where it is passed on. */
    bool owed;                          /* a reply to it is expected */
    uint32_t argc;                      /* of the request */
    uint32_t ranges;                    /* of keys, of which what follows may hold some */
    struct resp_range key[RESP_RANGES]; /* by the numbers of args */
};

/* Zeroed at accept, set up by the first request. */
struct rds_session {
    struct access access;  /* first */
    uint64_t id;           /* CLIENT ID; 0: no request yet */
    bool plain;            /* of access_plain: a GET has no other meaning than for others */
    bool forwards;         /* the same: a foreign request of a known form has not */
    int64_t since_ms;      /* Unix ms of the first request */
    struct rds_txn *txn;   /* NULL: nothing queued */
    struct rds_subs *subs; /* NULL: subscribed to nothing */
    struct rds_rest *rest; /* NULL, but while a truncated request is read through */
    uint32_t done;         /* elements of the parked reply that are written */
    uint8_t proto;         /* 2 or 3 */
    uint8_t db;            /* 0..RDS_DBS - 1; every one holds the same */
    uint8_t name_n;
    bool multi : 1;          /* after MULTI, before EXEC, DISCARD or RESET */
    bool passes : 1;         /* something was forwarded: see rds_through */
    bool watches : 1;        /* keys that are no IDs, here, where nothing changes them */
    bool dirty;              /* a request since MULTI was rejected: EXEC aborts */
    struct rds_there *there; /* NULL: nothing of it was asked for */
    char name[RDS_NAME_MAX];
};

struct rds_sub;
struct rds_verb;

struct rds_call {
    struct rds_service *svc;
    struct rds_session *ses;
    struct resp_req *req;
    struct net_turn *turn;
    struct buf *out;
    struct span raw;            /* the request as it came, as far as it is consumed */
    size_t start;               /* where in out the reply begins */
    struct net_step step;       /* set by whoever returns RDS_PARKED */
    bool close;                 /* close the connection after the reply */
    const struct resp_cmd *cmd; /* NULL: no such command */
    const struct rds_verb *verb;
    const struct rds_sub *sub; /* NULL: the command has no subcommands */
    struct names_entry *name;  /* of a plain GET that was answered at once; else NULL */
};

/* A subcommand, found by argv[1] in either case. A table of them ends with a NULL name. */
struct rds_sub {
    const char *name; /* lower case */
    int8_t arity;     /* as in resp_cmd: args of the whole request, at least so many if negative */
    enum serve_result (*fn)(struct rds_call *c); /* NULL: refusal is the answer */
    const char *refusal;                         /* error without '-' */
    uint8_t at;                                  /* CLIENT only: of enum rds_at */
};

/* Who answers a command that names no key, where there is an upstream. On which link it goes there
 * is said by rds_may_share. */
enum rds_at {
    RDS_PASS,   /* the upstream */
    RDS_BEST,   /* the upstream; while it is down, we */
    RDS_STATE,  /* we, and once the client has a link of its own, the upstream */
    RDS_TUNNEL, /* the upstream, whose answer may never end */
    RDS_HERE,   /* we */
};

enum rds_when {
    RDS_IN_MULTI = 1 << 0,   /* carried out at once within MULTI, not queued */
    RDS_SUBSCRIBED = 1 << 1, /* allowed to a RESP2 client that is subscribed */
};

/* How requests of a verb are answered: by a handler, a table of subcommands, or a refusal. */
struct rds_verb {
    const char *label; /* of requests_total */
    enum serve_result (*fn)(struct rds_call *c);
    const struct rds_sub *subs;
    const char *refusal; /* error without '-' */
    uint8_t when;        /* of enum rds_when */
    uint8_t at;          /* of enum rds_at; CLIENT: by subcommand */
    bool dear;           /* one may take as long as dozens of others */
};

/* ---- redis.c */

/* Looks the request up; false: it is rejected, and the error is written. */
bool rds_find(struct rds_call *c);

/* Carries out what rds_find has found, and counts it. */
enum serve_result rds_run(struct rds_call *c);

/* Answers a request here. */
enum serve_result rds_request(struct rds_call *c);

/* Where requests of its command are counted: for serve_count. */
unsigned rds_counted(const struct rds_call *c);

/* Counts what rds_run never sees, and spoils the transaction under way. */
enum serve_result rds_reject(struct rds_call *c, enum serve_result r);

/* Replaces what stands of the reply by an error, "ERR …" without '-'; returns r. */
enum serve_result rds_fail(struct rds_call *c, enum serve_result r, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* "+OK". */
enum serve_result rds_ok(struct rds_call *c);

/* "wrong number of arguments …" where the table's arity could not tell. */
enum serve_result rds_wrong_arity(struct rds_call *c);

/* HELP of a command with subcommands. */
enum serve_result rds_help(struct rds_call *c);

/* A part of what a client sent, for "%.*s" in an error. */
#define RDS_SHOWN(s) ((s).n < 128 ? (int)(s).n : 128), (s).p

/* A number as Redis wants it; false: the error is written. */
bool rds_integer(struct rds_call *c, struct span arg, int64_t *v);

static inline struct issuer *rds_issuer(const struct rds_call *c)
{
    return &c->svc->serve->issuer;
}

static inline struct names_entry *rds_name(const struct rds_call *c, struct span key)
{
    struct serve *s = c->svc->serve;
    return access_may(s, &c->ses->access, key) ? names_find(&s->issuer.names, key) : NULL;
}

/* ---- redis_ids.c */
enum serve_result rds_get(struct rds_call *c);
enum serve_result rds_getex(struct rds_call *c);
enum serve_result rds_mget(struct rds_call *c);
/* How many keys right behind that one, which w came by last, are of its name. */
uint32_t rds_alike(struct resp_walk w, struct span key);
enum serve_result rds_pop(struct rds_call *c);
enum serve_result rds_incr(struct rds_call *c);

/* The answer where no ID could be had; or RDS_PARKED. */
enum serve_result rds_not_issued(struct rds_call *c, enum issue_status s);

/* ---- redis_keys.c */
enum serve_result rds_exists(struct rds_call *c);
enum serve_result rds_type(struct rds_call *c);
enum serve_result rds_ttl(struct rds_call *c);
enum serve_result rds_dbsize(struct rds_call *c);
enum serve_result rds_keys(struct rds_call *c);
enum serve_result rds_scan(struct rds_call *c);
enum serve_result rds_randomkey(struct rds_call *c);

/* ---- redis_other.c */

/* A write to a key: "… is read-only", or "… is no id". */
enum serve_result rds_refuse_write(struct rds_call *c, struct span key);

/* A request that is larger than a connection's input. */
enum serve_result rds_oversized(struct rds_call *c);

/* RESP_OTHER: writes, reads of other types, and what only a database has. */
enum serve_result rds_other(struct rds_call *c);

/* ---- redis_multi.c */
enum serve_result rds_multi(struct rds_call *c);
enum serve_result rds_exec(struct rds_call *c);
enum serve_result rds_discard(struct rds_call *c);
enum serve_result rds_watch(struct rds_call *c);
enum serve_result rds_unwatch(struct rds_call *c);

/* Within MULTI: "+QUEUED", counted when it is carried out; or an error. */
enum serve_result rds_queue(struct rds_call *c);

/* Ends the transaction and frees what was queued. */
void rds_multi_end(struct rds_session *ses);

/* Requests queued; -1 outside of MULTI. */
int rds_multi_length(const struct rds_session *ses);

/* ---- redis_through.c: with an upstream */

/* Answers a request here or there. */
enum serve_result rds_through(struct rds_call *c);

/* A request without a word, of a session that has there. */
struct net_step rds_blank(struct rds_session *ses, struct span raw, struct net_turn *turn);

/* As net_service.heard. */
bool rds_heard(struct net_service *net, void *session, const struct frame *f, struct buf *out);

/* Forgets the upstream. */
void rds_through_end(struct rds_session *ses);

/* ---- redis_stream.c: a request that is larger than a connection's input */

/* Before it is sent there: as far as its args are whole, c->raw, and that is what is consumed of
 * it. The remainder follows by rds_stream. Nothing is to be done for others. false: no memory. */
bool rds_begin_stream(struct rds_call *c);
struct net_step rds_stream(struct rds_service *svc, struct rds_session *ses, struct span in,
                           struct net_turn *turn, struct buf *out);

/* ---- redis_form.c */

/* The session's forwards, after each request that was parsed. */
bool rds_forwards(const struct rds_service *svc, const struct rds_session *ses,
                  const struct net_turn *turn);

/* Forwards the request at the front for such a session. false: nothing was done, it has to be
 * parsed. */
bool rds_forward(struct rds_service *svc, struct span in, struct net_turn *turn,
                 struct net_step *step);

/* ---- redis_merge.c: MGET of IDs and others */

/* A link is ready, and nothing is expected on it. SERVE_PASSED: what others have is on its way. */
enum serve_result rds_merge(struct rds_call *c);
/* As net_service.heard, of a reply to it. */
bool rds_merge_part(struct rds_session *ses, const struct frame *f, struct buf *out);
void rds_merge_end(struct rds_session *ses);
/* A request has its answer, whatever it is: IDs that were drawn for it and not sent are nobody's.
 */
void rds_merge_give_up(struct rds_session *ses);

/* Bytes allocated for each. */
size_t rds_multi_holds(const struct rds_session *ses);
size_t rds_subs_holds(const struct rds_session *ses);
size_t rds_merge_holds(const struct rds_session *ses);

/* The requests queued, as they came. */
struct span rds_multi_bytes(const struct rds_session *ses);

/* ---- redis_pubsub.c: subscriptions are acknowledged and remembered; nothing is ever published */
enum rds_channel {
    RDS_CHANNEL,
    RDS_PATTERN,
    RDS_SHARD,
    RDS_CHANNELS
};

enum serve_result rds_subscribe(struct rds_call *c);
enum serve_result rds_unsubscribe(struct rds_call *c);
void rds_subs_end(struct rds_session *ses);
uint32_t rds_subs_count(const struct rds_session *ses, enum rds_channel kind);

/* ---- redis_carry.c: for the program that takes over */
bool rds_pack(const struct net_service *svc, const void *session, struct buf *parcel);
bool rds_unpack(struct net_service *svc, void *session, struct span packed);

/* Each takes its part from the front of *in; false: it is not understood. */
void rds_multi_pack(const struct rds_session *ses, struct buf *parcel);
bool rds_multi_unpack(struct rds_session *ses, struct span *in);
void rds_subs_pack(const struct rds_session *ses, struct buf *parcel);
bool rds_subs_unpack(struct rds_session *ses, struct span *in);

/* ---- redis_auth.c */
enum serve_result rds_hello(struct rds_call *c);
enum serve_result rds_auth(struct rds_call *c);
/* Whether the session has shown who it is, and may have the IDs that the request's keys name;
 * false: the error is written. */
bool rds_allowed(struct rds_call *c);

/* ---- redis_admin.c */
enum serve_result rds_select(struct rds_call *c);
enum serve_result rds_ping(struct rds_call *c);
enum serve_result rds_echo(struct rds_call *c);
enum serve_result rds_time(struct rds_call *c);
enum serve_result rds_quit(struct rds_call *c);
enum serve_result rds_reset(struct rds_call *c);
extern const struct rds_sub rds_latency_subs[], rds_slowlog_subs[];

/* ---- redis_client.c */
extern const struct rds_sub rds_client_subs[];

/* Whether Redis takes it for a name, however long it is. */
bool rds_name_is_plain(struct span name);

/* NULL: it may be a client's name; else the error. */
const char *rds_name_fault(struct span name);
void rds_set_name(struct rds_session *ses, struct span name);

/* ---- redis_config.c */
extern const struct rds_sub rds_config_subs[], rds_command_subs[];
enum serve_result rds_command(struct rds_call *c);

/* ---- redis_info.c */
enum serve_result rds_info(struct rds_call *c);

/* ---- redis_greeting.c: as protocol.logins */
extern const struct greeting_form rds_logins[];

#endif
