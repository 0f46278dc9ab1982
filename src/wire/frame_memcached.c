#include "base/dec.h"
#include "wire/frame.h"

#define HEADER_N 24u /* bytes of a binary packet's header */

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
    LINE_MARK,  /* the frame ends with it, and it is dropped */
};

static enum line line_of(const struct frame *f, struct span line)
{
    bool value = span_starts(line, SPAN("VALUE "));
    switch (f->kind) {
    case FRAME_MC_VALUES:
    case FRAME_MC_MERGE:
        return value ? LINE_BLOCK : LINE_END;
    case FRAME_MC_LINES:
        return span_starts(line, SPAN("STAT ")) || span_starts(line, SPAN("ITEM ")) ||
                       span_starts(line, SPAN("PREFIX ")) || span_starts(line, SPAN("key="))
                   ? LINE_ON
                   : LINE_END;
    case FRAME_MC_META:
        return span_starts(line, SPAN("VA ")) ? LINE_LAST : LINE_END;
    case FRAME_MC_MARK:
        return span_starts(line, SPAN("VERSION "))       ? LINE_MARK
               : value || span_starts(line, SPAN("VA ")) ? LINE_BLOCK
                                                         : LINE_ON;
    default:
        return LINE_END;
    }
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

static bool is_error(struct span line)
{
    return span_starts(line, SPAN("ERROR")) || span_starts(line, SPAN("CLIENT_ERROR")) ||
           span_starts(line, SPAN("SERVER_ERROR"));
}

/* A get for which memcached has no memory is answered with this alone: what it had not sent yet of
 * the replies before is forgotten, so that one of those was due, and all behind it would be taken
 * for each other's. */
static bool forgets(const struct frame *f, struct span line)
{
    bool get = f->kind >= FRAME_MC_VALUES && f->kind <= FRAME_MC_MERGE;
    return !get && span_starts(line, SPAN("SERVER_ERROR out of memory writing get response"));
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
    size_t whole = end ? (size_t)(end - rest.p) + 1 : seen;
    enum line is = line_of(f, line);
    bool header = is != LINE_END && is != LINE_ON; /* has to be seen whole */
    if ((header && !end) || forgets(f, line))
        return FRAME_BAD;
    if ((is == LINE_BLOCK || is == LINE_LAST) && !block_of(line, &f->left))
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
    *n = whole;
    if (is == LINE_MARK)
        f->drop = whole;
    return FRAME_MORE;
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
        return (unsigned char)rest.p[0] == 0x81 ? FRAME_MORE : FRAME_BAD;
    uint32_t body = be(rest.p + 8, 4), status = be(rest.p + 6, 2);
    bool mark = f->kind == FRAME_MC_NOOP && rest.p[1] == NOOP;
    if ((unsigned char)rest.p[0] != 0x81 || (mark && body > 0)) /* a mark is dropped, all of it */
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

enum frame_verdict frame_memcached(struct frame *f, struct span in, size_t *used)
{
    size_t at = 0, n = 1;
    enum frame_verdict v = FRAME_MORE;
    bool binary = f->kind >= FRAME_MC_BINARY;
    f->drop = 0;
    while (v == FRAME_MORE && n > 0 && at < in.n) {
        frame_pass(f, in, &at);
        n = 0;
        if (f->left == 0 && !f->skipping && f->need > 0 && at < in.n)
            v = binary ? packet(f, span_skip(in, at), &n) : text_line(f, span_skip(in, at), &n);
        at += n;
    }
    if (v == FRAME_MORE && f->begun && f->left == 0 && !f->skipping && f->need == 0)
        v = FRAME_DONE;
    *used = at;
    return v;
}
