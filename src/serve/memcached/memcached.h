/*
 * What the files of the memcached service share.
 *
 *   memcached.c          who speaks what, and the classic text commands
 *   memcached_meta.c     the meta commands
 *   memcached_binary.c   the binary protocol
 *   memcached_stats.c    stats, in text and binary
 *   memcached_carry.c    sessions that outlive the program
 *   memcached_through.c  what goes to the upstream
 *   memcached_long.c     a line that does so in pieces
 *   memcached_rights.c   what of it a user may
 */
#ifndef SIDFLAKE_SERVE_MEMCACHED_MEMCACHED_H
#define SIDFLAKE_SERVE_MEMCACHED_MEMCACHED_H

#include "net/upstream/upstream.h"
#include "serve/access.h"
#include "serve/greeting.h"
#include "serve/serve.h"
#include "serve/watch/recent.h"
#include "wire/mc_binary.h"
#include "wire/mc_canon.h"

/* What clients are told: the memcached that we answer as. Some tell from it what they may ask for,
 * and libmemcached takes a version that begins with 0 for a broken server. */
#define MCD_VERSION "1.6.18"

/* What `stats` counts from: who asks for `stats reset` sets back what clients see, and no metric.
 */
struct mcd_since {
    uint64_t requests[SERVE_COMMANDS][SERVE_RESULTS];
    uint64_t bytes_in, bytes_out;
};

struct memcached {
    struct net_service svc;
    struct serve *serve;
    struct recent recent;  /* plain gets of one ID */
    struct mc_canon canon; /* of the request at the front: here, since it need not be cleared */
    struct mcd_since since;
};

enum mcd_state {
    MCD_NEW, /* nothing has come */
    MCD_TEXT,
    MCD_SWALLOW, /* text, in a data block */
    MCD_BINARY,  /* the first byte was MCB_REQUEST */

    /* With an upstream. */
    MCD_THROUGH,        /* text */
    MCD_STREAM,         /* text, in a data block that is forwarded */
    MCD_LONG,           /* text, in a line that is forwarded: memcached_long.c */
    MCD_BINARY_THROUGH, /* the first byte was MCB_REQUEST */
    MCD_BINARY_STREAM,  /* binary, in a value that is forwarded */
    MCD_DISCARD,        /* binary, in a value that is not */
};

struct mcd_session {
    struct access access;      /* first */
    size_t done;               /* bytes of the keys of the `get` at the front that are answered */
    struct mc_swallow swallow; /* a data block under way; of binary only .left */
    struct span answer;        /* what its end is answered with: static text, or kept … */
    char *kept;                /* … allocated; NULL: not */
    bool plain;                /* of access_plain; false but with MCD_TEXT */
    uint8_t state;             /* enum mcd_state */
    bool noreply;              /* … or with nothing */
    bool passing;              /* binary: a value is under way */
    uint8_t verb;              /* and what that is counted as */
    uint8_t result;
    uint8_t opcode;          /* binary: of the request, for the answer */
    uint8_t error;           /* binary: enum mcb_status, instead of answer */
    char opaque[4];          /* binary: of the request */
    uint8_t kind;            /* enum frame_kind: of the reply to what is being forwarded */
    struct mcd_merge *merge; /* the latest `get` of IDs and others; NULL: none */
};

struct mcd_call {
    struct memcached *m;
    struct mcd_session *s;
    struct mc_req *req;
    struct span in; /* begins with the request */
    struct net_turn *turn;
    struct buf *out;
    size_t used;              /* bytes of the request's line */
    struct names_entry *name; /* of the latest key that was an ID; NULL: none was */
};

typedef struct net_step mcd_handler(struct mcd_call *); /* of functions, not of a struct */

#define MCD_ONLY_UP     SPAN("CLIENT_ERROR ids only go up\r\n")
#define MCD_NO_NUMBER   SPAN("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n")
#define MCD_UNAVAILABLE SPAN("SERVER_ERROR upstream unavailable\r\n")
#define MCD_NOT_ALLOWED SPAN("CLIENT_ERROR not allowed to this user\r\n")

/* The ends of a call: counted as r, answered with text or the refusal of an ID. */
struct net_step mcd_done(const struct mcd_call *c, enum serve_result r);
struct net_step mcd_answer(const struct mcd_call *c, struct span text, enum serve_result r);
struct net_step mcd_fail(const struct mcd_call *c);

/* Whether so many IDs can be asked for at once; else mcd_bad_delta is the answer in text. */
bool mcd_delta_fits(const struct memcached *m, const struct names_entry *name, uint64_t n);
struct net_step mcd_bad_delta(const struct mcd_call *c, const struct names_entry *name);

/* NULL: key is no ID. */
struct names_entry *mcd_id_of(const struct mcd_call *c, struct span key);
/* How many keys at the front of these are of the name of that one. */
uint32_t mcd_alike(struct span keys, struct span key);

/* As issuer_look; name NULL: ISSUE_MISS. */
enum issue_status mcd_look(const struct mcd_call *c, struct names_entry *name,
                           struct net_step *step);

/* Whether the request's user may have all of its keys that are IDs. */
bool mcd_keys_allowed(const struct mcd_call *c);

/* Swallows what has come of the request's data block. text, its answer, must be static, unless all
 * of the block has come: NET_DONE. */
struct net_step mcd_begin_swallow(struct mcd_call *c, struct span text, enum serve_result r);

mcd_handler mcd_meta_get, mcd_meta_arithmetic, mcd_meta_noop, mcd_meta_debug, mcd_meta_set,
    mcd_meta_delete;

/* One request, or a piece of a value to be passed over, of a connection that speaks binary. */
struct net_step mcd_serve_binary(struct memcached *m, struct mcd_session *s, struct span in,
                                 struct net_turn *turn, struct buf *out);

/* For the program that takes over: memcached_carry.c. */
bool mcd_pack(const struct net_service *svc, const void *session, struct buf *parcel);
bool mcd_unpack(struct net_service *svc, void *session, struct span packed);
/* One request, or a piece of one, where there is an upstream. */
struct net_step mcd_serve_through(struct memcached *m, struct mcd_session *s, struct span in,
                                  struct net_turn *turn, struct buf *out);
struct net_step mcd_binary_through(struct memcached *m, struct mcd_session *s, struct span in,
                                   struct net_turn *turn, struct buf *out);

/* A get whose line is longer than WIRE_LINE_MAX, from its beginning; and behind that. */
struct net_step mcd_begin_long(struct mcd_call *c);
struct net_step mcd_serve_long(struct memcached *m, struct mcd_session *s, struct span in,
                               struct net_turn *turn, struct buf *out);

/* Bytes of the session's merge. */
size_t mcd_merge_holds(const struct mcd_session *s);

/* As net_service.heard. */
bool mcd_heard(struct net_service *svc, void *session, const struct frame *f, struct buf *out);

/* What the user may of what is no ID; asked once for each request that is parsed. */
enum mcd_rights {
    MCD_RIGHTS_PASS, /* it goes where it goes for everybody */
    MCD_RIGHTS_HERE, /* it is answered here */
    MCD_RIGHTS_REFUSED,
    MCD_RIGHTS_UNCLEAR, /* refused, since it cannot be told: see mc_is_clear */
};
/* Of a request that was understood. */
enum mcd_rights mcd_rights(const struct memcached *m, const struct access *a,
                           const struct mc_req *req, const struct mc_there *there);
enum mcd_rights mcd_rights_binary(const struct memcached *m, const struct access *a,
                                  const struct mcb_req *req);

/* One text request, answered here. */
struct net_step mcd_serve_text(struct memcached *m, struct mcd_session *s, struct span in,
                               struct net_turn *turn, struct buf *out);

/* Whether `stats` with these words is answered here, whatever is behind. */
bool mcd_stats_are_ours(const struct memcached *m, struct span words);

/* Answers `stats` with its words, as far as they are for who, and to binary, where that isn't NULL;
 * false: there is no such form, and nothing was written. */
bool mcd_stats(struct memcached *m, const struct access *who, struct span words,
               const struct mcb_req *binary, struct buf *out);

/* memcached_greeting.c: as protocol.logins, and as in struct net_service. */
extern const struct greeting_form mcd_logins[];
extern const struct span mcd_refusals[], mcd_faults[];

#endif
