/*
 * Lines of meta commands, one request each, and what is answered to their flags.
 *
 *   | which command, and whether there is an item | the words behind it, up to the input's end |
 *
 * The promises: a line is read or refused, and never held back; a base64 key decodes to what
 * encodes to it again; an answer is one line, or two with a value, fits, and has the opaque as it
 * came.
 */
#include "feed.h"

#include "support/pageend.h"
#include "wire/mc_meta.h"

#define LINE_MAX_ 2000
#define REPLY_MAX 800 /* "VA", 17 flags of which one is a key and one an opaque, a value */

enum {
    READ,
    REFUSED,
    DECODED,
    PLACES
};

static const char *const verbs[] = {"mg ", "ma ", "ms ", "md ", "me ", "mn "};

static void encode(struct span in, char out[MC_KEY_MAX * 2])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < in.n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < in.n ? (unsigned char)in.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            *out++ = i + k > in.n ? '=' : digits[v >> (18 - 6 * k) & 63];
    }
    *out = '\0';
}

static void check_key(const struct mc_req *req)
{
    char scratch[MC_KEY_MAX], again[MC_KEY_MAX * 2];
    struct span key = mc_meta_key(req, scratch);
    if (!req->meta.base64) {
        feed_must(key.p == req->key.p && key.n == req->key.n, "a plain key is as it was sent");
        return;
    }
    feed_reached(DECODED);
    feed_must(key.n > 0 && key.n <= MC_KEY_MAX * 3 / 4, "a decoded key has a length");
    encode(key, again);
    feed_must(span_eq(span_str(again), req->key), "a key decodes to what encodes to it");
}

static bool has_word(struct span words, struct span want)
{
    struct span word;
    while (mc_next_key(&words, &word))
        if (span_eq(word, want))
            return true;
    return false;
}

static void check_reply(const struct mc_req *req, const struct mc_item *item)
{
    char mem[REPLY_MAX];
    struct buf b;
    struct span flags = req->meta.flags, flag;
    bool two = item && req->meta.value && req->verb != MC_META_SET;
    size_t lines = 0;
    buf_init(&b, mem, sizeof mem);
    mc_put_meta(&b, req, SPAN("VA"), item);
    feed_must(!b.failed, "an answer fits");
    for (size_t i = 0; i < b.n; i++)
        lines += b.p[i] == '\n';
    feed_must(lines == (two ? 2 : 1) && b.p[b.n - 1] == '\n', "an answer has its lines");
    const char *end = memchr(b.p, '\n', b.n);
    feed_must(end && end > b.p && end[-1] == '\r', "a line ends in CRLF");
    struct span line = span_of(b.p, (size_t)(end - 1 - b.p)); /* may hold CR, from the opaque */
    while (mc_next_key(&flags, &flag))
        feed_must(flag.p[0] != 'O' || has_word(line, flag), "the opaque comes back");
}

static void check(const struct mc_req *req, bool with_item)
{
    const struct mc_item item = {SPAN("9223372036854775807"), INT64_MAX};
    feed_must(mc_is_key(req->key), "a key is one");
    check_key(req);
    if (req->verb != MC_META_DEBUG)
        check_reply(req, with_item ? &item : NULL);
}

const char *fuzz_unreached(void)
{
    static const char *const names[PLACES] = {"expected a line that is read, found none",
                                              "expected a line that is refused, found none",
                                              "expected a base64 key, found none"};
    return feed_unreached(names, PLACES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pageend block;
    struct feed in = {data, size};
    unsigned which = feed_u8(&in);
    const char *verb = verbs[which / 2 % (sizeof verbs / sizeof *verbs)];
    size_t n = in.n < LINE_MAX_ ? in.n : LINE_MAX_, used;
    const uint8_t *end = n ? memchr(in.p, '\n', n) : NULL;
    struct mc_req req;
    if (!block.map)
        pageend_init(&block, WIRE_IN_MAX);
    n = end ? (size_t)(end - in.p) : n;
    char *line = pageend_tail(&block, 3 + n + 1);
    memcpy(line, verb, 3);
    if (n > 0)
        memcpy(line + 3, in.p, n);
    line[3 + n] = '\n';
    enum wire_status status = mc_parse(span_of(line, 3 + n + 1), &req, &used);
    feed_must(status != WIRE_MORE && used == 3 + n + 1, "a line is dealt with");
    if (status == WIRE_REQ && req.verb != MC_META_NOOP) {
        feed_reached(READ);
        check(&req, which & 1);
    } else if (status == WIRE_BAD) {
        feed_reached(REFUSED);
        feed_must(req.error.n > 0, "a refusal says why");
    }
    return 0;
}
