#include "base/dec.h"
#include "wire/frame.h"

#define HEADER_N 24u  /* bytes of a binary packet's header */
#define RESPONSE 0x81 /* its first */

/* ---- text -------------------------------------------------------------------------------------
 */

static struct span word_at(struct span line, unsigned i)
{
    struct span rest = line, word = span_cut(&rest, ' ');
    while (i-- > 0)
        word = rest.p ? span_cut(&rest, ' ') : span_of("", 0);
    return word;
}

/* What a line stands for. */
enum line {
    LINE_END,   /* the frame ends with it */
    LINE_ON,    /* others follow */
    LINE_BLOCK, /* a block follows, and then others */
    LINE_LAST,  /* a block follows, and ends the frame */
    LINE_BAD,   /* it is no such reply */
};

static bool is_error(struct span line)
{
    return span_starts(line, SPAN("ERROR")) || span_starts(line, SPAN("CLIENT_ERROR")) ||
           span_starts(line, SPAN("SERVER_ERROR"));
}

/* A get for which memcached has no memory is answered with this alone: what it had not sent yet of
 * the replies before is forgotten, so that one of those was due, and all behind it would be taken
 * for each other's. */
static bool forgets(struct span line)
{
    return span_starts(line, SPAN("SERVER_ERROR out of memory writing get response"));
}

/* Bytes of the block behind a VALUE or VA line, its end included. */
static bool block_of(struct span line, uint64_t *n)
{
    bool value = span_starts(line, SPAN("VALUE "));
    if (!dec_u64(word_at(line, value ? 3 : 1), n) || *n > UINT32_MAX)
        return false;
    *n += 2;
    return true;
}

/* One of the lines that alone are a reply, of requests that go on shared links. */
static bool is_plain(struct span line)
{
    static const char *const words[] = {"STORED",  "NOT_STORED", "EXISTS", "NOT_FOUND",
                                        "DELETED", "TOUCHED",    "OK"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (span_eq(line, span_str(words[i])))
            return true;
    return (line.n > 0 && line.p[0] >= '0' && line.p[0] <= '9') ||
           span_starts(line, SPAN("VERSION "));
}

/* On a shared link there are replies of two kinds only. */
static enum line strictly(const struct frame *f, struct span line)
{
    if (is_error(line))
        return forgets(line) ? LINE_BAD : LINE_END;
    if (f->kind == FRAME_MC_LINE)
        return is_plain(line) ? LINE_END : LINE_BAD;
    if (f->kind != FRAME_MC_VALUES && f->kind != FRAME_MC_MERGE)
        return LINE_BAD;
    return span_starts(line, SPAN("VALUE ")) ? LINE_BLOCK
           : span_eq(line, SPAN("END"))      ? LINE_END
                                             : LINE_BAD;
}

/* Lines of stats and its kin. */
static bool is_listed(struct span line)
{
    return span_starts(line, SPAN("STAT ")) || span_starts(line, SPAN("ITEM ")) ||
           span_starts(line, SPAN("PREFIX ")) || span_starts(line, SPAN("key="));
}

/* What mn is answered with where no MN comes: by a server that lets nobody in before a login, or
 * has no meta commands. As the first line alone: before MN errors of quiet requests may stand. */
static bool no_mn(const struct frame *f, struct span line)
{
    return !f->begun &&
           (span_eq(line, SPAN("CLIENT_ERROR unauthenticated")) || span_eq(line, SPAN("ERROR")));
}

/* A block is never taken for lines, whatever is expected: else an answer from here could come to
 * stand within it. */
static enum line leniently(const struct frame *f, struct span line)
{
    bool value = span_starts(line, SPAN("VALUE "));
    uint64_t n;
    bool block = (value || span_starts(line, SPAN("VA "))) && block_of(line, &n);
    switch (f->kind) {
    case FRAME_MC_VALUES:
    case FRAME_MC_MERGE:
        return block ? LINE_BLOCK : LINE_END;
    case FRAME_MC_LINES:
        return block ? LINE_LAST : is_listed(line) ? LINE_ON : LINE_END;
    case FRAME_MC_UPTO_MN:
        return block                                         ? LINE_BLOCK
               : span_eq(line, SPAN("MN")) || no_mn(f, line) ? LINE_END
                                                             : LINE_ON;
    default:
        return block ? LINE_LAST : LINE_END;
    }
}

/* A merge tells of each value before it is used, and of the end. */
static bool tells(struct frame *f, struct span line)
{
    if (f->kind != FRAME_MC_MERGE || f->merging || is_error(line))
        return false;
    f->merging = true;
    f->part = span_starts(line, SPAN("VALUE ")) ? line : span_of("", 0);
    return true;
}

/* The line at the front of rest, which is not empty. *n: bytes used, 0 if more has to be seen. */
static enum frame_verdict text_line(struct frame *f, struct span rest, size_t *n)
{
    size_t seen = rest.n < FRAME_HOLD ? rest.n : FRAME_HOLD;
    const char *end = memchr(rest.p, '\n', seen);
    *n = 0;
    if (!end && rest.n < FRAME_HOLD)
        return FRAME_MORE;
    struct span line = span_of(rest.p, end ? (size_t)(end - rest.p) : seen);
    if (end && line.n > 0 && end[-1] == '\r')
        line.n--;
    enum line is = f->own ? leniently(f, line) : strictly(f, line);
    bool block = is == LINE_BLOCK || is == LINE_LAST;
    if (is == LINE_BAD || (block && (!end || !block_of(line, &f->left))))
        return FRAME_BAD;
    if (tells(f, line)) {
        f->left = 0;
        return FRAME_PART;
    }
    f->merging = false;
    f->begun = true;
    f->error = is_error(line);
    f->skipping = !end;
    f->need = is == LINE_ON || is == LINE_BLOCK;
    *n = end ? (size_t)(end - rest.p) + 1 : seen;
    return FRAME_MORE;
}

/* Takes what in has of a block, from *at on. false: it does not end in CRLF; however it is cut,
 * what stands before the wrong byte is used. */
static bool take_block(struct frame *f, struct span in, size_t *at)
{
    static const char end[] = {'\n', '\r'}; /* by how many are left */
    while (f->left > 0 && *at < in.n) {
        size_t n = in.n - *at;
        if (f->left <= 2 && in.p[*at] != end[f->left - 1])
            return false;
        if (f->left <= 2)
            n = 1;
        else if (n > f->left - 2)
            n = (size_t)(f->left - 2);
        *at += n;
        f->left -= n;
    }
    return true;
}

/* ---- binary -----------------------------------------------------------------------------------
 */

static uint32_t be(const char *p, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

/* The header of a packet at the front of rest; see text_line. */
static enum frame_verdict packet(struct frame *f, struct span rest, size_t *n)
{
    enum {
        NOOP = 0x0a
    };
    *n = 0;
    if (rest.n < HEADER_N)
        return (unsigned char)rest.p[0] == RESPONSE ? FRAME_MORE : FRAME_BAD;
    uint32_t body = be(rest.p + 8, 4), status = be(rest.p + 6, 2);
    bool mark = f->kind == FRAME_MC_NOOP && rest.p[1] == NOOP && be(rest.p + 12, 4) == f->nonce;
    if ((unsigned char)rest.p[0] != RESPONSE ||
        (mark && body > 0)) /* a mark is dropped, all of it */
        return FRAME_BAD;
    *n = HEADER_N;
    f->begun = true;
    f->left = body;
    f->error = status != 0;
    f->need = (f->kind == FRAME_MC_STATS && body > 0 && status == 0) ||
              (f->kind == FRAME_MC_NOOP && !mark);
    if (mark)
        f->drop = HEADER_N;
    return FRAME_MORE;
}

/* ---- both -------------------------------------------------------------------------------------
 */

static bool is_binary(const struct frame *f, struct span in)
{
    return f->kind >= FRAME_MC_BINARY ||
           (f->kind == FRAME_MC_ANY && (unsigned char)in.p[0] == RESPONSE);
}

enum frame_verdict frame_memcached(struct frame *f, struct span in, size_t *used)
{
    size_t at = 0, n = 1;
    enum frame_verdict v = FRAME_MORE;
    f->drop = 0;
    *used = 0;
    while (v == FRAME_MORE && n > 0 && at < in.n) {
        if (f->kind < FRAME_MC_BINARY && !f->own && !take_block(f, in, &at)) {
            v = FRAME_BAD;
            break;
        }
        frame_pass(f, in, &at);
        struct span rest = span_skip(in, at);
        n = 0;
        if (f->left == 0 && !f->skipping && f->need > 0 && rest.n > 0)
            v = is_binary(f, rest) ? packet(f, rest, &n) : text_line(f, rest, &n);
        at += n;
    }
    if (v == FRAME_MORE && f->begun && f->left == 0 && !f->skipping && f->need == 0)
        v = FRAME_DONE;
    *used = at;
    return v;
}
