/*
 * Which args of a request are keys, also for the commands whose keys have to be sought; and whether
 * it blocks.
 *
 *     EVAL script 2 k1 k2 arg ...      XREAD COUNT 1 STREAMS k1 k2 id1 id2      SORT k ... STORE k
 *
 * Sources: redis.io's command reference (key specifications); COMMAND GETKEYS of Redis 7.0.15.
 *
 * Invariants
 *   - What does not parse names no key: the server has an error for it.
 *   - Of a truncated request only the args that are whole are looked at.
 */
#ifndef SIDFLAKE_WIRE_RESP_KEYS_H
#define SIDFLAKE_WIRE_RESP_KEYS_H

#include "wire/resp.h"

#define RESP_RANGES 2

/* Keys are the args from, from + step, … up to and with to. */
struct resp_range {
    uint32_t from, to, step;
};

/* How many ranges there are: 0..RESP_RANGES. */
unsigned resp_key_ranges(const struct resp_cmd *cmd, struct resp_req *req,
                         struct resp_range out[RESP_RANGES]);

/* The same for what follows of a truncated request, the args from req->whole on: all of them, where
 * what tells the keys may stand there, too. cmd NULL: of a command that is not known the first. */
unsigned resp_rest_ranges(const struct resp_cmd *cmd, struct resp_req *req,
                          struct resp_range out[RESP_RANGES]);

/* Whether the server may take any time for it: a blocking command, XREAD and its kin only with
 * BLOCK, or where that may stand in what is not seen or not known. */
bool resp_blocks(const struct resp_cmd *cmd, struct resp_req *req);

/* Whether arg number i is in one of n ranges. */
bool resp_is_key(const struct resp_range *ranges, unsigned n, uint32_t i);

#endif
