/*
 * Where replies end: what a relay has to know of the bytes that a server sends, and no more.
 *
 *     bytes of the server      frame_fn        frame_fn
 *     [ reply ........ ][ reply ]   ->  used, DONE  ->  used, DONE  ...
 *
 * Invariants
 *   - Bounded state, whatever the size or the nesting of a reply: no stack, no copy.
 *   - What is reported used belongs to the frame under way, in order. A rest of less than
 *     FRAME_HOLD bytes may be left, to be shown again with more behind it; a longer one never is.
 *   - Cut anywhere, a stream gives the same frames as whole.
 *
 * Sources: redis.io "Redis serialization protocol specification" and RESP3 by antirez; memcached's
 * doc/protocol.txt.
 */
#ifndef SIDFLAKE_WIRE_FRAME_H
#define SIDFLAKE_WIRE_FRAME_H

#include "base/span.h"

#include <stdint.h>

#define FRAME_HOLD 512 /* bytes: of a header line, which has to be seen whole */

/* What is expected. */
enum frame_kind {
    FRAME_RESP,        /* one reply; pushes of RESP3 that come before it are told apart */
    FRAME_RESP_MERGE,  /* the same, an array of bulks: each told before it begins, see part */
    FRAME_RESP_TUNNEL, /* whatever comes, for ever */
    FRAME_MC_LINE,     /* one line */
    FRAME_MC_VALUES,   /* of get and its kin: values, then END or an error */
    FRAME_MC_MERGE,    /* the same: each told before it begins */
    FRAME_MC_LINES,    /* of stats and its kin: lines, then END, or one line of another kind */
    FRAME_MC_META,     /* one meta reply: a line, or VA and a block */
    FRAME_MC_UPTO_MN,  /* any number of replies, then MN: quiet requests have some of them; or the
                        * error of a server that has no mn, or not yet */
    FRAME_MC_ANY,      /* one reply of whatever kind, or one packet: what comes unasked */
    FRAME_MC_BINARY,   /* one packet */
    FRAME_MC_STATS,    /* packets, up to an empty or a failed one */
    FRAME_MC_NOOP,     /* any number of packets, then our own NOOP's, which is dropped: see nonce */
    FRAME_KINDS
};

/* What a client of Redis can subscribe to. */
enum frame_channel {
    FRAME_CHANNEL,
    FRAME_PATTERN,
    FRAME_SHARD,
    FRAME_CHANNELS
};

/* How many of each a connection is subscribed to, as its acknowledgements have said. */
struct frame_subs {
    uint64_t n[FRAME_CHANNELS];
};

enum frame_verdict {
    FRAME_MORE, /* the frame goes on */
    FRAME_PART, /* merges: a part begins behind used; see part */
    FRAME_DONE, /* it has ended */
    FRAME_BAD,  /* that is not the protocol */
};

struct frame {
    uint8_t kind;  /* of enum frame_kind; the caller's to set */
    bool watch;    /* RESP: messages and acknowledgements of RESP2, too, are pushes; the caller's */
    bool own;      /* it is all for one client, whatever it is; the caller's. Else what is no such
                    * reply as is expected is BAD, and of RESP a push: it is somebody else's */
    bool begun;    /* some of it was used */
    bool skipping; /* up to and with the end of the line */
    bool merging;  /* RESP: the header of a merge is read; memcached: its part was told */

    uint32_t nonce; /* FRAME_MC_NOOP: the opaque of our own; the caller's */

    uint64_t need;  /* RESP: elements to come */
    uint64_t left;  /* bytes of a block to come, its end included */
    uint64_t parts; /* RESP: of the latest that was told */

    /* Of a frame that is DONE. */
    bool error;        /* an error reply */
    bool push;         /* RESP: no reply to any request */
    char type;         /* RESP: of its first element */
    bool ack;          /* RESP: a push that acknowledges SUBSCRIBE or one of its kin … */
    uint8_t channel;   /* with ack: of enum frame_channel */
    uint64_t channels; /* with ack: what it says is subscribed to now */

    /* Of each call. */
    size_t drop;      /* the last so many of the bytes used are not for the client */
    struct span part; /* FRAME_PART: the header line of what comes behind, or of the array that was
                         dropped; empty at the end */
};

/* Begins the next frame. */
static inline void frame_start(struct frame *f, enum frame_kind kind, bool watch)
{
    *f = (struct frame){.kind = (uint8_t)kind, .watch = watch, .need = 1};
}

/* f is DONE and an ack: notes what it says. true: nothing of its kind is subscribed to any more. */
bool frame_note_ack(const struct frame *f, struct frame_subs *subs);

static inline bool frame_subscribed(const struct frame_subs *s)
{
    return (s->n[FRAME_CHANNEL] | s->n[FRAME_PATTERN] | s->n[FRAME_SHARD]) != 0;
}

typedef enum frame_verdict frame_fn(struct frame *f, struct span in, size_t *used);

/* By f->kind. */
frame_fn frame_resp, frame_memcached;

/* What nearly all replies are, many at a time: how many bytes the frames at the front of in have,
 * as far as they are there whole, and are one line or one short block each; *n: how many they are,
 * at most max. Where 0 are, and for what may be watched or skipped, there is frame_fn. */
size_t frame_run(enum frame_kind kind, struct span in, uint32_t max, uint32_t *n);

/* For frame_*.c: takes what in has, from *at on, of a block or a line that is under way; a frame is
 * never within both. */
void frame_pass(struct frame *f, struct span in, size_t *at);

#endif
