/*
 * What may go on a connection that clients share: the requests of memcached's text protocol that
 * are understood to the last byte, each in one spelling, which is written here and not passed on.
 * It is a list of what is allowed. All else goes on a connection of the client's own.
 *
 *     in:    get  a b \n                      ->   get a b\r\n
 *            set k 0 0 2 noreply\r\nab\r\n    ->   set k 0 0 2\r\n          and the block as it is
 *
 *     get, gets KEY...                                      values
 *     gat, gats EXPTIME KEY...                              values
 *     set, add, replace, append, prepend
 *                      KEY FLAGS EXPTIME BYTES [noreply]    a line
 *     cas              KEY FLAGS EXPTIME BYTES CAS [noreply]
 *     incr, decr       KEY DELTA [noreply]
 *     delete           KEY [noreply]
 *     touch            KEY EXPTIME [noreply]
 *     version
 *
 *     KEY      1 to 250 bytes of printable ASCII, 0x21 to 0x7e, as all words are
 *     EXPTIME  0 to 2^31 - 1         \
 *     FLAGS    0 to 2^32 - 1          }  digits, without a sign or a leading zero
 *     BYTES    of the block           }
 *     CAS, DELTA  0 to 2^64 - 1      /
 *
 * Invariants
 *   - What is written is one request with exactly one reply, to any version of memcached: noreply
 *     is left out. Meta commands are not here: which of their flags a version knows decides whether
 *     the block behind them is one.
 *   - A line has less than 2,048 bytes, its end included: memcached closes on longer ones. The
 *     block is there, and ends in CRLF.
 *   - What is written reads as itself.
 *
 * Sources: memcached's doc/protocol.txt; words, spaces, ends of lines and limits compared with
 * 1.6.18.
 */
#ifndef SIDFLAKE_WIRE_MC_CANON_H
#define SIDFLAKE_WIRE_MC_CANON_H

#include "wire/frame.h"
#include "wire/mc_text.h"

/* Filled by mc_canon where it returns true. */
struct mc_canon {
    enum mc_verb verb;
    enum frame_kind reply;
    bool silent;       /* noreply: the reply is not for the client */
    struct span keys;  /* in line: one or more, to be walked by mc_next_key; version: empty */
    uint32_t words;    /* of line, its verb included */
    size_t n;          /* bytes of line */
    size_t used;       /* bytes of in: the line as it came, and the block */
    struct span block; /* in in, its CRLF included; or empty */
    char line[MC_LINE_MAX];
};

/* false: what is at the front of in is not such a request, or not whole. */
bool mc_canon(struct span in, struct mc_canon *c);

/* What memcached 1.6 makes of a line, on a connection of the client's own: what it gives in return
 * and what it takes of the bytes behind it. */
struct mc_there {
    bool answers;          /* with one reply; else with none, or with one only sometimes */
    enum frame_kind reply; /* of which kind */
    uint64_t block;        /* bytes of data behind the line, CRLF included: 0, 2 or more */
    uint32_t words;        /* of a get and its kin, the verb included; else 0 */
    bool forgets;          /* a get with a key that is too long: with the error memcached forgets
                            * the replies before it that it has not sent */
    bool listens; /* behind its answer come lines of what happens, and it takes no more requests */
    bool binary;  /* begins with a byte by which, first on a link, that would speak binary */
};

/* in begins with a line, its end included. */
struct mc_there mc_there(struct span in);

/* Whether memcached finds in the line, word for word, what mc_parse has found: who may send it can
 * be told from req. It ends a line at a NUL, and whoever reads numbers takes other white space for
 * their end: there is no control byte, and in a meta command none but printable ASCII. Of req,
 * whose line was parsed to WIRE_REQ. */
bool mc_is_clear(const struct mc_req *req, const struct mc_there *there);

#endif
