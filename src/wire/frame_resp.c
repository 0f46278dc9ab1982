#include "base/dec.h"
#include "wire/frame.h"

/* Elements are counted, not nested: an aggregate of n owes n more. */

/* ---- header lines -----------------------------------------------------------------------------
 */

/* The line at the front without its end; false: it is not whole. */
static bool header(struct span in, struct span *line)
{
    size_t n = in.n < FRAME_HOLD ? in.n : FRAME_HOLD;
    const char *end = n ? memchr(in.p, '\n', n) : NULL;
    if (!end)
        return false;
    *line = span_of(in.p, (size_t)(end - in.p));
    if (line->n > 0 && end[-1] == '\r')
        line->n--;
    return true;
}

enum shape {
    SHAPE_BAD,
    SHAPE_LINE,
    SHAPE_BLOCK,
    SHAPE_AGGREGATE
};

struct kind {
    uint8_t shape;
    uint8_t each; /* elements for each that the header counts */
    uint8_t more; /* and besides: what an attribute stands before */
};

static struct kind kind_of(char type)
{
    static const struct kind kinds[128] = {
        ['+'] = {SHAPE_LINE, 0, 0},      ['-'] = {SHAPE_LINE, 0, 0},
        [':'] = {SHAPE_LINE, 0, 0},      ['_'] = {SHAPE_LINE, 0, 0},
        [','] = {SHAPE_LINE, 0, 0},      ['#'] = {SHAPE_LINE, 0, 0},
        ['('] = {SHAPE_LINE, 0, 0},      ['$'] = {SHAPE_BLOCK, 0, 0},
        ['!'] = {SHAPE_BLOCK, 0, 0},     ['='] = {SHAPE_BLOCK, 0, 0},
        ['*'] = {SHAPE_AGGREGATE, 1, 0}, ['~'] = {SHAPE_AGGREGATE, 1, 0},
        ['>'] = {SHAPE_AGGREGATE, 1, 0}, ['%'] = {SHAPE_AGGREGATE, 2, 0},
        ['|'] = {SHAPE_AGGREGATE, 2, 1},
    };
    unsigned char c = (unsigned char)type;
    return c < sizeof kinds / sizeof *kinds ? kinds[c] : (struct kind){SHAPE_BAD, 0, 0};
}

/* No server sends more, and sums of it stay far from their end. */
#define LENGTH_MAX INT64_C(0xffffffffffff)

/* The first element of a message or an acknowledgement says what it is. */
static bool is_news(struct frame *f, struct span word)
{
    static const struct {
        const char *word;
        bool ack;
        uint8_t channel;
    } news[] = {
        {"message", false, FRAME_CHANNEL},    {"pmessage", false, FRAME_PATTERN},
        {"smessage", false, FRAME_SHARD},     {"subscribe", true, FRAME_CHANNEL},
        {"psubscribe", true, FRAME_PATTERN},  {"ssubscribe", true, FRAME_SHARD},
        {"unsubscribe", true, FRAME_CHANNEL}, {"punsubscribe", true, FRAME_PATTERN},
        {"sunsubscribe", true, FRAME_SHARD},
    };
    for (size_t i = 0; i < sizeof news / sizeof *news; i++) {
        if (!span_eq(word, span_str(news[i].word)))
            continue;
        f->ack = news[i].ack;
        f->channel = news[i].channel;
        return true;
    }
    return false;
}

/* Channels and patterns are counted together. */
bool frame_note_ack(const struct frame *f, struct frame_subs *s)
{
    uint64_t beside = f->channel == FRAME_SHARD ? 0 : s->n[!f->channel];
    s->n[f->channel] = f->channels > beside ? f->channels - beside : 0;
    return s->n[f->channel] == 0;
}

/* ---- elements ---------------------------------------------------------------------------------
 */

/* The header of the first element is at hand, with the next element's word where that is watched.
 * false: more has to be seen first. */
static bool begin(struct frame *f, struct span line, struct span in, size_t line_n)
{
    struct span word;
    bool array =
        line.n == 2 && line.p[1] > '2' && (line.p[0] == '>' || (f->watch && line.p[0] == '*'));
    f->type = line.p[0];
    f->error = f->type == '-' || f->type == '!';
    f->push = f->type == '>';
    if (!array)
        return true;
    struct span rest = span_skip(in, line_n);
    if (!header(rest, &word))
        return false;
    size_t at = (size_t)(word.p + word.n - rest.p) + 2;
    if (word.n < 2 || word.n > 3 || word.p[0] != '$' || word.p[1] == '-')
        return true; /* no bulk, or one that is longer than any of the words */
    uint64_t n = 0;
    if (!dec_u64(span_skip(word, 1), &n) || n > 16)
        return true;
    if (rest.n < at + n)
        return false;
    f->push |= is_news(f, span_of(rest.p + at, (size_t)n));
    return true;
}

/* Takes the element whose header is line. */
static enum frame_verdict take(struct frame *f, struct span line)
{
    struct kind kind = kind_of(line.p[0]);
    int64_t n = 0;
    f->need--;
    if (f->ack && f->need == 0 && line.p[0] == ':')
        (void)dec_u64(span_skip(line, 1), &f->channels);
    if (kind.shape == SHAPE_LINE)
        return FRAME_MORE;
    if (!dec_canonical_i64(span_skip(line, 1), &n) || n < -1 || n > LENGTH_MAX)
        return FRAME_BAD;
    if (kind.shape == SHAPE_BLOCK && n >= 0)
        f->left = (uint64_t)n + 2;
    if (kind.shape == SHAPE_AGGREGATE && n > 0)
        f->need += (uint64_t)n * kind.each;
    f->need += kind.more;
    return f->need > (uint64_t)LENGTH_MAX ? FRAME_BAD : FRAME_MORE;
}

/* A merge tells of each element before it is used, and of the end. */
static bool tells(struct frame *f, struct span line)
{
    if (!f->merging || f->parts == f->need + 1)
        return false;
    f->parts = f->need + 1;
    f->part = line;
    return true;
}

/* The header of an array that is merged with others: theirs takes its place. */
static enum frame_verdict merge(struct frame *f, struct span line, size_t n)
{
    if (f->kind != FRAME_RESP_MERGE || f->merging || line.p[0] != '*')
        return FRAME_MORE;
    f->merging = true;
    f->part = line;
    f->drop = n;
    return FRAME_PART;
}

/* The element at the front of rest, which is not empty; *n: bytes used, 0 if more has to be seen.
 */
static enum frame_verdict element(struct frame *f, struct span rest, size_t *n)
{
    struct span line = span_of(rest.p, 1); /* of a long text */
    bool whole = header(rest, &line);
    enum shape shape = (enum shape)kind_of(rest.p[0]).shape;
    bool stray = rest.p[0] == '>' && !f->own; /* it would be taken for part of somebody's reply */
    *n = 0;
    if (shape == SHAPE_BAD || stray || (!whole && shape != SHAPE_LINE && rest.n >= FRAME_HOLD))
        return FRAME_BAD;
    if (!whole && rest.n < FRAME_HOLD)
        return FRAME_MORE;
    size_t line_n = whole ? (size_t)((char *)memchr(rest.p, '\n', rest.n) - rest.p) + 1 : 1;
    if (!f->begun && !begin(f, line, rest, line_n))
        return FRAME_MORE;
    if (tells(f, line))
        return FRAME_PART;
    f->begun = true;
    f->skipping = !whole;
    if (take(f, line) == FRAME_BAD)
        return FRAME_BAD;
    *n = line_n;
    return merge(f, line, line_n);
}

enum frame_verdict frame_resp(struct frame *f, struct span in, size_t *used)
{
    size_t at = 0, n = 1;
    enum frame_verdict v = FRAME_MORE;
    f->drop = 0;
    if (f->kind == FRAME_RESP_TUNNEL)
        at = in.n;
    while (v == FRAME_MORE && n > 0 && at < in.n) {
        frame_pass(f, in, &at);
        n = 0;
        if (f->left == 0 && !f->skipping && f->need > 0 && at < in.n)
            v = element(f, span_skip(in, at), &n);
        at += n;
    }
    if (v == FRAME_MORE && f->left == 0 && !f->skipping && f->need == 0)
        v = tells(f, span_of("", 0)) ? FRAME_PART : FRAME_DONE;
    *used = at;
    return v;
}
