#include "wire/resp.h"

#include "base/dec.h"
#include "wire/resp_inline.h"

#include <string.h>

/* "*<digits>\r\n" or "$<digits>\r\n". Redis looks for the CR and takes any byte for the LF; so do
 * we. */
struct length_line {
    char mark;
    int64_t min, max;
    const char *invalid, *too_big; /* errors */
};

static const struct length_line count_line = {
    '*',
    INT64_MIN,
    INT32_MAX,
    "-ERR Protocol error: invalid multibulk length\r\n",
    "-ERR Protocol error: too big mbulk count string\r\n",
};

static const struct length_line bulk_line = {
    '$',
    0,
    RESP_BULK_MAX,
    "-ERR Protocol error: invalid bulk length\r\n",
    "-ERR Protocol error: too big bulk count string\r\n",
};

static enum wire_status refuse(struct resp_req *req, const char *error)
{
    req->error = span_str(error);
    return WIRE_CLOSE;
}

static struct span expected_bulk(char mem[64], char got)
{
    struct buf b;
    buf_init(&b, mem, 64);
    BUF_PUT_LIT(&b, "-ERR Protocol error: expected '$', got '");
    buf_put_char(&b, got == '\r' || got == '\n' ? ' ' : got);
    BUF_PUT_LIT(&b, "'\r\n");
    return buf_span(&b);
}

/* The length line at *at by Redis's rules, which take care of what the fast path below does not:
 * lines that are not whole, negative and invalid ones. WIRE_REQ: *value is set and *at behind it.
 */
static enum wire_status read_odd_length(struct span in, size_t *at, const struct length_line *kind,
                                        struct resp_req *req, int64_t *value)
{
    struct span line = span_skip(in, *at);
    bool full = line.n > WIRE_LINE_MAX;
    const char *cr = line.n ? memchr(line.p, '\r', full ? WIRE_LINE_MAX + 1 : line.n) : NULL;
    if (!cr)
        return full ? refuse(req, kind->too_big) : WIRE_MORE;
    size_t n = (size_t)(cr - line.p);
    if (n + 1 >= line.n)
        return WIRE_MORE;
    if (line.p[0] != kind->mark) {
        req->error = expected_bulk(req->scratch, line.p[0]);
        return WIRE_CLOSE;
    }
    if (!dec_canonical_i64(span_of(line.p + 1, n - 1), value) || *value < kind->min ||
        *value > kind->max)
        return refuse(req, kind->invalid);
    *at += n + 2;
    return WIRE_REQ;
}

/* The usual form alone: false, and nothing done, where it is another. */
static inline bool read_plain_length(struct span in, size_t *at, const struct length_line *kind,
                                     int64_t *value)
{
    size_t first = *at + 1, i = first, stop = in.n - *at > 10 ? first + 9 : in.n;
    int64_t v = 0;
    while (i < stop && in.p[i] >= '0' && in.p[i] <= '9')
        v = v * 10 + (in.p[i++] - '0');
    bool plain = i > first && i + 1 < in.n && in.p[i] == '\r' && in.p[i + 1] == '\n' &&
                 in.p[*at] == kind->mark && (in.p[first] != '0' || i == first + 1) &&
                 v <= kind->max;
    if (!plain)
        return false;
    *value = v;
    *at = i + 2;
    return true;
}

static inline enum wire_status read_length(struct span in, size_t *at,
                                           const struct length_line *kind, struct resp_req *req,
                                           int64_t *value)
{
    if (read_plain_length(in, at, kind, value))
        return WIRE_REQ;
    req->canonical = false;
    return read_odd_length(in, at, kind, req, value);
}

/* Whoever reads RESP skips the two bytes behind a bulk, but not everybody looks at them. */
static inline bool ends_line(const char *p)
{
    return p[0] == '\r' && p[1] == '\n';
}

/* So that a web page cannot have a browser send commands to us. */
static bool is_http(struct span name)
{
    return (name.n == 4 && span_eq_nocase(name, SPAN("post"))) ||
           (name.n == 5 && span_eq_nocase(name, SPAN("host:")));
}

static enum wire_status finish(struct resp_req *req)
{
    if (req->seen > 0 && is_http(req->argv[0]))
        return refuse(req, "");
    return WIRE_REQ;
}

/* The input ends within the request, at or behind `at`, in the arg that is number req->seen. That
 * is nothing to worry about until the block is full; then it is given out as far as it goes.
 * bytes_left: of an arg whose length is known, what is to come, CRLF included; else 0. */
static enum wire_status cut_short(struct span in, size_t at, struct resp_req *req,
                                  uint64_t bytes_left)
{
    struct resp_swallow *s = &req->swallow;
    bool done, bad;
    req->canonical = false; /* what is still to come may be anything */
    if (in.n < WIRE_IN_MAX)
        return WIRE_MORE;
    *s = (struct resp_swallow){.args_left = req->argc - req->seen, .bytes_left = bytes_left};
    if (bytes_left == 0)
        resp_swallow(s, span_skip(in, at), &done, &bad);
    else
        bad = false;
    if (bad) {
        req->error = s->error;
        return WIRE_CLOSE;
    }
    req->truncated = true;
    return finish(req);
}

static enum wire_status read_args(struct span in, size_t *at, struct resp_req *req)
{
    for (uint32_t i = 0; i < req->argc; i++) {
        size_t start = req->fore = *at;
        int64_t n;
        enum wire_status status = read_length(in, at, &bulk_line, req, &n);
        if (status == WIRE_CLOSE)
            return status;
        if (status == WIRE_MORE)
            return cut_short(in, start, req, 0);
        size_t have = in.n - *at, want = (size_t)n + 2;
        req->seen = i + 1;
        req->whole = have < want ? i : i + 1;
        if (i < RESP_ARGV)
            req->argv[i] = span_of(in.p + *at, have < (size_t)n ? have : (size_t)n);
        else if (i == RESP_ARGV)
            req->rest = span_skip(in, start);
        if (have < want)
            return cut_short(in, in.n, req, want - have);
        *at += want;
        req->canonical &= ends_line(in.p + *at - 2);
    }
    return finish(req);
}

static enum wire_status parse_multibulk(struct span in, struct resp_req *req, size_t *used)
{
    int64_t argc;
    size_t at = 0;
    enum wire_status status = read_length(in, &at, &count_line, req, &argc);
    if (status == WIRE_REQ && argc > 0) {
        req->argc = (uint32_t)argc;
        status = read_args(in, &at, req);
    }
    if (status == WIRE_REQ)
        *used = req->truncated ? in.n : at;
    if (req->rest.p)
        req->rest.n = (size_t)(in.p + (req->truncated ? in.n : at) - req->rest.p);
    return status;
}

static enum wire_status read_words(struct span line, struct resp_req *req)
{
    enum resp_word got;
    struct buf mem;
    struct span word, left = line;
    buf_init(&mem, req->scratch, sizeof req->scratch);
    while ((got = resp_inline_word(&line, &mem, &word)) == RESP_WORD_OK) {
        if (req->seen < RESP_ARGV) {
            req->argv[req->seen] = word;
            req->scratch_n = mem.n;
        } else {
            if (req->seen == RESP_ARGV)
                req->rest = left;
            buf_truncate(&mem, req->scratch_n);
        }
        req->argc = req->whole = ++req->seen;
        left = line;
    }
    if (got == RESP_WORD_UNBALANCED)
        return refuse(req, "-ERR Protocol error: unbalanced quotes in request\r\n");
    if (got == RESP_WORD_TOO_LONG)
        return refuse(req, "-ERR Protocol error: too big inline request\r\n");
    return finish(req);
}

static enum wire_status parse_inline(struct span in, struct resp_req *req, size_t *used)
{
    bool full = in.n > WIRE_LINE_MAX;
    const char *end = memchr(in.p, '\n', full ? WIRE_LINE_MAX + 1 : in.n);
    if (!end && full)
        return refuse(req, "-ERR Protocol error: too big inline request\r\n");
    if (!end)
        return WIRE_MORE;
    struct span line = span_of(in.p, (size_t)(end - in.p));
    *used = line.n + 1;
    if (line.n > 0 && line.p[line.n - 1] == '\r')
        line.n--;
    req->inline_cmd = true;
    req->canonical = false;
    return read_words(line, req);
}

enum wire_status resp_parse(struct span in, struct resp_req *req, size_t *used)
{
    enum wire_status status;
    *used = 0;
    if (in.n == 0)
        return WIRE_MORE;
    req->argc = req->seen = req->whole = 0;
    req->inline_cmd = req->truncated = false;
    req->canonical = true;
    req->rest = req->error = (struct span){NULL, 0};
    req->scratch_n = 0;
    status = in.p[0] == '*' ? parse_multibulk(in, req, used) : parse_inline(in, req, used);
    if (status == WIRE_CLOSE)
        *used = in.n;
    return status;
}

bool resp_next_bulk(struct span in, size_t *at, struct span *arg)
{
    size_t i = *at;
    int64_t n;
    if (i >= in.n || !read_plain_length(in, &i, &bulk_line, &n) || in.n - i < (size_t)n + 2 ||
        !ends_line(in.p + i + n))
        return false;
    *arg = span_of(in.p + i, (size_t)n);
    *at = i + (size_t)n + 2;
    return true;
}

struct resp_walk resp_walk_from(struct resp_req *req, uint32_t first)
{
    return (struct resp_walk){req, first, req->rest};
}

/* What resp_parse has accepted needs no second judgement; only a truncated request can end within
 * an arg. */
static bool next_bulk(struct resp_walk *w, struct span *arg)
{
    size_t at = 0;
    int64_t n;
    const char *cr = w->rest.n ? memchr(w->rest.p, '\r', w->rest.n) : NULL;
    if (!cr || !dec_canonical_i64(span_of(w->rest.p + 1, (size_t)(cr - w->rest.p) - 1), &n))
        return false;
    at = (size_t)(cr - w->rest.p) + 2;
    struct span body = span_skip(w->rest, at < w->rest.n ? at : w->rest.n);
    *arg = span_of(body.p, body.n < (size_t)n ? body.n : (size_t)n);
    w->rest = span_skip(body, body.n < (size_t)n + 2 ? body.n : (size_t)n + 2);
    return true;
}

static bool next_word(struct resp_walk *w, struct span *arg)
{
    struct resp_req *req = w->req;
    struct buf mem;
    buf_init(&mem, req->scratch + req->scratch_n, sizeof req->scratch - req->scratch_n);
    return resp_inline_word(&w->rest, &mem, arg) == RESP_WORD_OK;
}

bool resp_next_arg(struct resp_walk *w, struct span *arg)
{
    if (w->i >= w->req->seen)
        return false;
    if (w->i < RESP_ARGV)
        *arg = w->req->argv[w->i];
    else if (!(w->req->inline_cmd ? next_word(w, arg) : next_bulk(w, arg)))
        return false;
    w->i++;
    return true;
}

/* One more byte of a length line. false: the line breaks the protocol. */
static bool take_header(struct resp_swallow *s, char c)
{
    int64_t n;
    s->header[s->header_n++] = c;
    s->error = span_str(bulk_line.invalid);
    if (s->header[0] != '$') {
        s->error = expected_bulk(s->error_text, s->header[0]);
        return false;
    }
    if (s->header_n < 2 || s->header[s->header_n - 2] != '\r')
        return s->header_n < sizeof s->header;
    if (!dec_canonical_i64(span_of(s->header + 1, s->header_n - 3u), &n) || n < bulk_line.min ||
        n > bulk_line.max)
        return false;
    s->header_n = 0;
    s->args_left--;
    s->bytes_left = (uint64_t)n + 2;
    return true;
}

size_t resp_swallow(struct resp_swallow *s, struct span in, bool *done, bool *bad)
{
    size_t at = 0;
    *bad = false;
    for (;;) {
        size_t n = in.n - at < s->bytes_left ? in.n - at : (size_t)s->bytes_left;
        s->bytes_left -= n;
        at += n;
        *done = s->bytes_left == 0 && s->args_left == 0;
        if (*done || at == in.n)
            return at;
        if (!take_header(s, in.p[at++])) {
            *bad = true;
            return at;
        }
    }
}
