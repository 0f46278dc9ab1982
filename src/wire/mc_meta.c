#include "wire/mc_meta.h"

#include "base/base64.h"
#include "base/dec.h"

#define WORDS_MOST 19 /* verb included: memcached takes no more */

#define BAD_TOKEN "CLIENT_ERROR bad token in command line format\r\n"

/* What differs between the four commands that take flags. */
struct rule {
    enum mc_verb verb;
    bool length;       /* a byte count stands between key and flags */
    bool own_errors;   /* says what is wrong with a flag */
    const char *modes; /* that M may name; NULL: it is not looked at */
    const char *told;  /* flags whose answers tell of an item */
    struct span bad_mode, too_many;
};

static const struct rule rules[] = {
    {MC_META_GET,
     false,
     true,
     NULL,
     "stcflh",
     {"", 0},
     SPAN("CLIENT_ERROR options flags are too long\r\n")},
    {MC_META_ARITHMETIC, false, false, "I+D-", "tc",
     SPAN("CLIENT_ERROR invalid mode for ma M token\r\n"),
     SPAN("CLIENT_ERROR options flags too long\r\n")},
    {MC_META_SET, true, true, "EAPRS", "c", SPAN("CLIENT_ERROR invalid mode for ms M token\r\n"),
     SPAN("CLIENT_ERROR options flags too long\r\n")},
    {MC_META_DELETE,
     false,
     false,
     NULL,
     "",
     {"", 0},
     SPAN("CLIENT_ERROR options flags too long\r\n")},
};

static const struct rule *rule_of(enum mc_verb verb)
{
    const struct rule *r = rules;
    while (r->verb != verb)
        r++;
    return r;
}

/* ---- base64 ------------------------------------------------------------------------------------
 */

/* The bytes decoded; 0: not canonical, or empty. */
static size_t decode(struct span in, char out[MC_KEY_MAX])
{
    struct buf b;
    buf_init(&b, out, MC_KEY_MAX);
    return base64_put_decoded(&b, in) && base64_is_canonical(in) ? b.n : 0;
}

struct span mc_meta_key(const struct mc_req *req, char out[MC_KEY_MAX])
{
    return req->meta.base64 ? span_of(out, decode(req->key, out)) : req->key;
}

struct span mc_there_key(struct span word, char out[MC_KEY_MAX])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    size_t n = 0, count = 0, padding = 0;
    bool ended = false;
    for (size_t i = 0; i < word.n; i++) {
        const char *at = memchr(digits, word.p[i], sizeof digits - 1);
        if (!at && word.p[i] != '=')
            continue;
        bits = bits << 6 | (at ? (uint32_t)(at - digits) : 0);
        padding += !at && !ended;
        if (++count % 4 != 0 || ended)
            continue;
        for (unsigned k = 0; k + padding < 3 && n < MC_KEY_MAX; k++)
            out[n++] = (char)(bits >> (16 - 8 * k) & 0xff);
        ended = padding > 0;
    }
    return span_of(out, count % 4 == 0 && padding < 3 ? n : 0);
}

/* ---- flags -------------------------------------------------------------------------------------
 */

enum token {
    UNKNOWN,
    ANY,      /* none, or one that nobody reads */
    SIGNED,   /* int64_t */
    UNSIGNED, /* uint64_t */
    MODE,     /* one letter */
    BASE64,   /* none; the key is decoded */
};

struct flag {
    enum token token;
    struct span error;
};

/* Those of memcached 1.6.18. A bad F leaves the latest error as it is, as memcached does. */
static const struct flag flags[128] = {
    ['b'] = {BASE64, SPAN("CLIENT_ERROR error decoding key\r\n")},
    ['c'] = {ANY, {"", 0}},
    ['f'] = {ANY, {"", 0}},
    ['h'] = {ANY, {"", 0}},
    ['k'] = {ANY, {"", 0}},
    ['l'] = {ANY, {"", 0}},
    ['q'] = {ANY, {"", 0}},
    ['s'] = {ANY, {"", 0}},
    ['t'] = {ANY, {"", 0}},
    ['u'] = {ANY, {"", 0}},
    ['v'] = {ANY, {"", 0}},
    ['C'] = {UNSIGNED, SPAN(BAD_TOKEN)},
    ['D'] = {UNSIGNED, SPAN("CLIENT_ERROR invalid numeric delta value\r\n")},
    ['F'] = {UNSIGNED, {NULL, 0}},
    ['I'] = {ANY, {"", 0}},
    ['J'] = {UNSIGNED, SPAN("CLIENT_ERROR invalid numeric initial value\r\n")},
    ['L'] = {ANY, {"", 0}},
    ['M'] = {MODE, SPAN("CLIENT_ERROR incorrect length for M token\r\n")},
    ['N'] = {SIGNED, SPAN(BAD_TOKEN)},
    ['O'] = {ANY, {"", 0}},
    ['P'] = {ANY, {"", 0}},
    ['R'] = {SIGNED, SPAN(BAD_TOKEN)},
    ['T'] = {SIGNED, SPAN(BAD_TOKEN)},
};

static bool token_ok(const struct mc_req *req, enum token kind, struct span token)
{
    char scratch[MC_KEY_MAX];
    int64_t number;
    uint64_t natural;
    switch (kind) {
    case SIGNED:
        return dec_i64(token, &number);
    case UNSIGNED:
        return dec_u64(token, &natural);
    case MODE:
        return token.n == 1;
    case BASE64:
        return decode(req->key, scratch) > 0;
    case ANY:
    case UNKNOWN:
        break;
    }
    return true;
}

static void take(struct mc_req *req, char letter, struct span token)
{
    struct mc_meta *m = &req->meta;
    m->value |= letter == 'v';
    m->quiet |= letter == 'q';
    m->base64 |= letter == 'b';
    m->create |= letter == 'N';
    m->compare |= letter == 'C';
    if (letter == 'M')
        m->mode = token.p[0];
    if (letter == 'D')
        (void)dec_u64(token, &req->delta);
}

/* The error of the first flag that is unknown or named twice, else of the last with a bad token;
 * empty where all are good. */
static struct span take_flags(struct mc_req *req)
{
    struct span rest = req->meta.flags, word, error = {"", 0};
    bool bad = false, seen[128] = {false};
    while (mc_next_key(&rest, &word)) {
        unsigned char letter = (unsigned char)word.p[0];
        if (letter >= 127 || seen[letter])
            return SPAN("CLIENT_ERROR duplicate flag\r\n");
        seen[letter] = true;
        if (flags[letter].token == UNKNOWN)
            return SPAN("CLIENT_ERROR invalid flag\r\n");
        if (token_ok(req, flags[letter].token, span_skip(word, 1))) {
            take(req, (char)letter, span_skip(word, 1));
        } else {
            bad = true;
            error = flags[letter].error.p ? flags[letter].error : error;
        }
    }
    return bad && error.n == 0 ? MC_BAD_FORMAT : error;
}

/* ---- commands ----------------------------------------------------------------------------------
 */

static enum wire_status refuse(struct mc_req *req, struct span error)
{
    req->error = error;
    return WIRE_BAD;
}

static size_t count_words(struct span s)
{
    struct span word;
    size_t n = 0;
    while (mc_next_key(&s, &word))
        n++;
    return n;
}

/* true: there is an opaque, and it is too long to be given back. */
static bool opaque_too_long(struct span rest)
{
    struct span word;
    while (mc_next_key(&rest, &word))
        if (word.p[0] == 'O' && word.n > MC_OPAQUE_MAX)
            return true;
    return false;
}

/* The byte count of ms, taken off the front of *rest. */
static bool take_length(struct mc_req *req, struct span *rest)
{
    struct span word;
    uint64_t bytes;
    if (!mc_next_key(rest, &word) || !dec_u64(word, &bytes) || bytes > MC_BLOCK_MAX)
        return false;
    req->body = bytes + 2;
    return true;
}

enum wire_status mc_parse_meta(struct mc_req *req)
{
    const struct rule *rule = rule_of(req->verb);
    struct span rest = req->args, error;
    req->delta = 1;
    if (!mc_next_key(&rest, &req->key))
        return refuse(req, SPAN("ERROR\r\n"));
    if ((rule->length && !take_length(req, &rest)) || !mc_is_key(req->key))
        return refuse(req, MC_BAD_FORMAT);
    if (1 + count_words(req->args) > WORDS_MOST)
        return refuse(req, rule->too_many);
    req->meta.flags = rest;
    error = take_flags(req);
    if (error.n > 0)
        return refuse(req, rule->own_errors ? error
                                            : SPAN("CLIENT_ERROR invalid or duplicate flag\r\n"));
    if (rule->modes && req->meta.mode && !strchr(rule->modes, req->meta.mode))
        return refuse(req, rule->bad_mode);
    if (opaque_too_long(rest))
        return refuse(req, SPAN("CLIENT_ERROR opaque token too long\r\n"));
    return WIRE_REQ;
}

/* Of me's flags only the first is looked at, and only for b. */
enum wire_status mc_parse_meta_debug(struct mc_req *req)
{
    char scratch[MC_KEY_MAX];
    struct span rest = req->args, word;
    if (!mc_next_key(&rest, &req->key) || !mc_is_key(req->key))
        return refuse(req, MC_BAD_FORMAT);
    req->meta.base64 = mc_next_key(&rest, &word) && span_eq(word, SPAN("b"));
    if (req->meta.base64 && decode(req->key, scratch) == 0)
        return refuse(req, MC_BAD_FORMAT);
    return WIRE_REQ;
}

bool mc_meta_is_clear(const struct mc_req *req)
{
    struct span rest = req->args, word;
    bool base64 = false;
    (void)mc_next_key(&rest, &word); /* the key itself */
    while (mc_next_key(&rest, &word)) {
        if (word.p[0] == 'b' && word.n > 1)
            return false;
        base64 |= word.p[0] == 'b';
    }
    return base64 == req->meta.base64;
}

/* ---- the answer --------------------------------------------------------------------------------
 */

static void put_key(struct buf *b, const struct mc_req *req)
{
    BUF_PUT_LIT(b, " k");
    buf_put_span(b, req->key);
    if (req->meta.base64)
        BUF_PUT_LIT(b, " b");
}

/* An ID is new, lasts for ever and has no flags. */
static void put_told(struct buf *b, char letter, const struct mc_item *item)
{
    buf_put_char(b, ' ');
    buf_put_char(b, letter);
    if (letter == 's')
        buf_put_u64(b, item->value.n);
    else if (letter == 'c')
        buf_put_u64(b, item->cas);
    else if (letter == 't')
        BUF_PUT_LIT(b, "-1");
    else
        buf_put_char(b, '0');
}

void mc_put_meta(struct buf *b, const struct mc_req *req, struct span status,
                 const struct mc_item *item)
{
    const char *told = item ? rule_of(req->verb)->told : "";
    struct span rest = req->meta.flags, word;
    bool value = item && req->meta.value && req->verb != MC_META_SET;
    buf_put_span(b, status);
    if (value) {
        buf_put_char(b, ' ');
        buf_put_u64(b, item->value.n);
    }
    while (mc_next_key(&rest, &word)) {
        if (word.p[0] == 'k')
            put_key(b, req);
        else if (strchr(told, word.p[0]))
            put_told(b, word.p[0], item);
        if (word.p[0] == 'O') {
            buf_put_char(b, ' ');
            buf_put_span(b, word);
        }
    }
    BUF_PUT_LIT(b, "\r\n");
    if (value) {
        buf_put_span(b, item->value);
        BUF_PUT_LIT(b, "\r\n");
    }
}
