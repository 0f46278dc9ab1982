/*
 * The meta commands of the memcached text protocol: a key, flags of one letter, some with a token
 * behind it, and an answer that repeats flags in the order in which they were asked for.
 *
 *     mg key v k O7\r\n              VA 18 kkey O7\r\n940785546685317120\r\n
 *     ms key 2 O8\r\n<data block>    NS O8\r\n
 *
 * Sources: memcached's doc/protocol.txt; errors and corner cases compared with 1.6.18.
 *
 * Invariants
 *   - A line that has an error is answered with the error alone, in spite of q.
 *   - A base64 key is canonical: with its padding, and nothing beside it. So the key as it was sent
 *     is the key as memcached gives it back.
 *   - The byte count of ms is honoured wherever it can be read, as in wire/mc_text.h.
 */
#ifndef SIDFLAKE_WIRE_MC_META_H
#define SIDFLAKE_WIRE_MC_META_H

#include "wire/mc_text.h"

#define MC_OPAQUE_MAX 32 /* bytes of the O flag, its letter included */

/* What mc_parse does with the words behind mg, ma, ms, md, and me. req is zeroed but for verb,
 * line and args; delta is 1 where ma names none. */
enum wire_status mc_parse_meta(struct mc_req *req);
enum wire_status mc_parse_meta_debug(struct mc_req *req);

/* Whether every memcached takes the key for what req takes it: b, where it is there, is a word of
 * its own, and stands where me looks for it. For some look at a flag's letter alone. */
bool mc_meta_is_clear(const struct mc_req *req);

/* The bytes of the key: req->key, or what it decodes to, in out. */
struct span mc_meta_key(const struct mc_req *req, char out[MC_KEY_MAX]);

/* What memcached 1.6 takes for the key behind b, in out; empty: none. It is less strict:
 *   - what is no digit of Base64, and no '=', is passed over; of the others there are 4, 8, …
 *   - '=' is a digit of zeros, wherever it stands. The first four with such a one are the last
 *     that count, and of their three bytes one fewer does for each; with three there is no key.
 * Of what is too long for a key, no more than out has room for. */
struct span mc_there_key(struct span word, char out[MC_KEY_MAX]);

/* What the flags of an answer tell of a value. */
struct mc_item {
    struct span value; /* written only where req asks for it: its length is told by s, too */
    uint64_t cas;
};

/* status and the flags asked for, then, where req asks for it, the value. item: NULL where there
 * is none, so that only k and O are answered. */
void mc_put_meta(struct buf *b, const struct mc_req *req, struct span status,
                 const struct mc_item *item);

#endif
