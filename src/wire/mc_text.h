/*
 * The memcached text protocol: one line, for storage commands followed by a data block. The meta
 * commands are those of wire/mc_meta.h, the binary protocol is wire/mc_binary.h.
 *
 *     set key flags exptime bytes [noreply]\r\n   <data block>\r\n
 *     '-------------- mc_parse ------------'      '- mc_swallow -'
 *
 * Sources: memcached's doc/protocol.txt; error texts and corner cases compared with 1.6.18.
 *
 * Invariants
 *   - Lines end with \n or \r\n; words are parted by one or more spaces; verbs are accepted in
 *     either case.
 *   - A key handed out has 1..MC_KEY_MAX bytes, none of them a space or an ASCII control character.
 *   - A line must end within its first MC_LINE_MAX bytes, that of get, gets, gat and gats within
 *     WIRE_LINE_MAX; else the connection closes without a word, as memcached does.
 *   - A line whose last word begins with "HTTP/" closes, so that no browser can be made to speak
 *     to us.
 *   - Data blocks are never stored here: the caller runs mc_swallow over them as they arrive.
 *
 * Where memcached leaves the data block of a storage command with a bad key, flags or exptime to be
 * read as commands, its byte count is honoured here: one request, one answer.
 */
#ifndef SIDFLAKE_WIRE_MC_TEXT_H
#define SIDFLAKE_WIRE_MC_TEXT_H

#include "base/buf.h"
#include "base/span.h"
#include "wire/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MC_KEY_MAX   250                       /* bytes; protocol.txt, "Keys" */
#define MC_LINE_MAX  2048                      /* bytes, end of line included */
#define MC_BLOCK_MAX ((uint64_t)INT32_MAX - 2) /* largest byte count memcached takes */

enum mc_verb {
    MC_UNKNOWN, /* never in a WIRE_REQ */
    MC_GET,
    MC_GETS,
    MC_GAT,
    MC_GATS,
    MC_INCR,
    MC_DECR,
    MC_SET,
    MC_ADD,
    MC_REPLACE,
    MC_APPEND,
    MC_PREPEND,
    MC_CAS,
    MC_DELETE,
    MC_TOUCH,
    MC_FLUSH_ALL,
    MC_STATS,
    MC_VERSION,
    MC_VERBOSITY,
    MC_QUIT,
    MC_META_GET,
    MC_META_ARITHMETIC,
    MC_META_NOOP,
    MC_META_DEBUG,
    MC_META_SET,
    MC_META_DELETE,
    MC_NOOP, /* of the binary protocol alone, as is SASL */
    MC_SASL,
    MC_VERB_COUNT
};

/* What a meta command asks for by flags. */
struct mc_meta {
    struct span flags; /* the text of all flags, to be walked by mc_next_key */
    char mode;         /* of M, as sent; 0: none */
    bool value;        /* v */
    bool quiet;        /* q */
    bool base64;       /* b: the key is as sent, mc_meta_key decodes it */
    bool create;       /* N: what is missing is to be made */
    bool compare;      /* C: only if the cas unique is this */
};

/* Filled by mc_parse, except after WIRE_MORE. What a verb does not use is empty, 0 or false. */
struct mc_req {
    enum mc_verb verb;
    bool with_cas;    /* gets, gats: the answer carries the cas unique */
    bool noreply;     /* answer nothing, not even an error; error is empty then */
    struct span line; /* the whole line without its end */
    struct span key;  /* get*, gat*: the first key */
    struct span keys; /* get*, gat*: the text of all keys, to be walked by mc_next_key */
    struct span args; /* everything after the verb, leading and trailing spaces included */
    uint64_t delta;   /* incr, decr, ma */
    struct mc_meta meta;
    uint64_t body;     /* bytes of data block, its CRLF included, that follow *used and are to be
                        * swallowed: 0, or 2..MC_BLOCK_MAX + 2. Also set with WIRE_BAD */
    struct span error; /* static; the whole answer with CRLF, or empty */
};

enum wire_status mc_parse(struct span in, struct mc_req *req, size_t *used);

/* Takes the next key off *keys. false at the end; *key is untouched then. */
bool mc_next_key(struct span *keys, struct span *key);

/* The words of line as memcached cuts them, at most max of them: one more than a command may have
 * is enough to refuse it. Returns how many there are; those that are not there are empty. */
size_t mc_split(struct span line, struct span *word, size_t max);

/* Whether key may be one of a text command. */
bool mc_is_key(struct span key);

/* The verb in lower case, as a label; "unknown" for MC_UNKNOWN and anything out of range. */
const char *mc_verb_name(enum mc_verb verb);

/* A data block on its way through. Zero-initialise and set left to mc_req.body. */
struct mc_swallow {
    uint64_t left; /* bytes still to come, CRLF included */
    bool bad;      /* the block's end, as far as seen, is not CRLF */
};

/* Consumes what of in belongs to the block and returns how many bytes that were. *done: the block
 * has ended; *bad is then true if it did not end in CRLF, for which memcached answers
 * MC_BAD_CHUNK and goes on behind it. */
size_t mc_swallow(struct mc_swallow *s, struct span in, bool *done, bool *bad);

#define MC_BAD_FORMAT SPAN("CLIENT_ERROR bad command line format\r\n")
#define MC_BAD_CHUNK  SPAN("CLIENT_ERROR bad data chunk\r\n")

/* Replies. A writer that finds no room leaves *b failed; see base/buf.h. */

/* The cas unique of a number: itself, without the sign, which clients' do not have. */
static inline uint64_t mc_cas(int64_t number)
{
    return (uint64_t)number & INT64_MAX;
}

/* "VALUE key 0 len [cas]", the ID, both with CRLF. Wants
 * MC_VALUE_ROOM(key.n) bytes of room, though it may use less. */
void mc_put_value(struct buf *b, struct span key, int64_t number, bool with_cas);
/* The same of a number that is written otherwise. */
void mc_put_text(struct buf *b, struct span key, struct span text, int64_t number, bool with_cas);
#define MC_VALUE_ROOM(key_n) ((key_n) + 64)

static inline void mc_put_end(struct buf *b)
{
    BUF_PUT_LIT(b, "END\r\n");
}

void mc_put_number(struct buf *b, int64_t v);

/* name must be one word; control characters in value are replaced by spaces. */
void mc_put_stat(struct buf *b, struct span name, struct span value);

/* "SERVER_ERROR why", and of this request alone "CLIENT_ERROR why"; control characters are
 * replaced by spaces. */
void mc_put_server_error(struct buf *b, struct span why);
void mc_put_client_error(struct buf *b, struct span why);

#endif
