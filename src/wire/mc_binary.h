/*
 * The memcached binary protocol: a header of 24 bytes, then extras, key and value.
 *
 *   0      1        2        4        5   6         8         12       16    24
 *   | 0x80 | opcode | keylen | extlen | 0 | vbucket | bodylen | opaque | cas | extras, key | value
 *   | 0x81 |        |        |        |   | status  |         |        |     |             |
 *   '------------------------------------- mcb_parse --------------------------------------' caller
 *
 * Numbers are big-endian. A connection speaks it if its first byte is MCB_REQUEST.
 *
 * Sources: memcached's doc/protocol-binary.txt; errors and closings as in 1.6.18.
 *
 * Invariants
 *   - A request's value is never stored here, but for that of SASL: the caller lets the bytes of
 *     its body pass.
 *   - The opcode decides what must be there; where something else is, the answer is an error and
 *     the connection is closed, as memcached does, for what follows cannot be known.
 *   - A key may hold any bytes.
 */
#ifndef SIDFLAKE_WIRE_MC_BINARY_H
#define SIDFLAKE_WIRE_MC_BINARY_H

#include "wire/mc_text.h"

#define MCB_REQUEST   ((char)0x80)
#define MCB_HEADER    24   /* bytes */
#define MCB_VALUE_MAX 1024 /* bytes of a value that is handed out: SASL's */

enum mcb_status {
    MCB_OK = 0x00,
    MCB_NOT_FOUND = 0x01,
    MCB_INVALID = 0x04,
    MCB_NOT_STORED = 0x05,
    MCB_NO_NUMBER = 0x06,
    MCB_AUTH_ERROR = 0x20,
    MCB_UNKNOWN = 0x81,
    MCB_TEMPORARY = 0x86,
};

/* Filled by mcb_parse, except after WIRE_MORE. */
struct mcb_req {
    enum mc_verb verb; /* what the opcode is in the text protocol; MC_UNKNOWN: nothing known */
    uint8_t opcode;    /* as it came, for the answer */
    bool quiet;        /* answered only where that is told of each opcode */
    bool canonical;    /* it has exactly one reply, and may go on a connection that clients share */
    bool with_key;     /* GETK and its like: the answer carries the key */
    struct span opaque; /* 4 bytes, for the answer */
    struct span key;    /* 0..MC_KEY_MAX bytes */
    struct span value;  /* SASL: 0..MCB_VALUE_MAX bytes, empty where body is set */
    uint64_t cas;
    uint64_t delta;        /* incr, decr */
    uint32_t expiration;   /* incr, decr: UINT32_MAX means that nothing is to be created */
    uint64_t body;         /* bytes that follow *used and are to be passed over; 0..INT32_MAX */
    enum mcb_status error; /* WIRE_CLOSE: what to answer with; MCB_OK: close without a word */
};

/* WIRE_REQ also for an opcode that is not known: the verb is MC_UNKNOWN then. Never WIRE_BAD. */
enum wire_status mcb_parse(struct span in, struct mcb_req *req, size_t *used);

/* An answer without extras. What is empty is left out; cas 0: none. */
void mcb_put(struct buf *b, const struct mcb_req *req, enum mcb_status status, struct span key,
             struct span value, uint64_t cas);

/* The answer to a read: flags 0, the key where req asks for it, value; with only the flags where
 * value is empty. */
void mcb_put_item(struct buf *b, const struct mcb_req *req, struct span value, uint64_t cas);

void mcb_put_number(struct buf *b, const struct mcb_req *req, uint64_t v, uint64_t cas);

/* An error with memcached's text for it. A read that asks for the key gets that instead. */
void mcb_put_error(struct buf *b, const struct mcb_req *req, enum mcb_status status);

#endif
