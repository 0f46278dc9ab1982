#include "wire/mc_canon.h"

#include "base/dec.h"
#include "wire/mc_binary.h"
#include "wire/mc_meta.h"

#include <string.h>

/* ---- the grammar -------------------------------------------------------------------------------
 */

/* The words behind a verb: k a key, K keys up to the end, e exptime, f flags, b bytes of a block, u
 * a number of 64 bits, N noreply or nothing. */
static const struct row {
    const char *verb;
    uint8_t n;
    enum mc_verb is;
    const char *words;
    enum frame_kind reply;
} rows[] = {
    {"get", 3, MC_GET, "K", FRAME_MC_VALUES},
    {"set", 3, MC_SET, "kfebN", FRAME_MC_LINE},
    {"gets", 4, MC_GETS, "K", FRAME_MC_VALUES},
    {"incr", 4, MC_INCR, "kuN", FRAME_MC_LINE},
    {"delete", 6, MC_DELETE, "kN", FRAME_MC_LINE},
    {"cas", 3, MC_CAS, "kfebuN", FRAME_MC_LINE},
    {"add", 3, MC_ADD, "kfebN", FRAME_MC_LINE},
    {"gat", 3, MC_GAT, "eK", FRAME_MC_VALUES},
    {"gats", 4, MC_GATS, "eK", FRAME_MC_VALUES},
    {"decr", 4, MC_DECR, "kuN", FRAME_MC_LINE},
    {"touch", 5, MC_TOUCH, "keN", FRAME_MC_LINE},
    {"replace", 7, MC_REPLACE, "kfebN", FRAME_MC_LINE},
    {"append", 6, MC_APPEND, "kfebN", FRAME_MC_LINE},
    {"prepend", 7, MC_PREPEND, "kfebN", FRAME_MC_LINE},
    {"bget", 4, MC_GET, "K", FRAME_MC_VALUES},
    {"version", 7, MC_VERSION, "", FRAME_MC_LINE},
};

struct reading {
    const char *at, *end; /* of the line, without its end */
    char *to;             /* where the canonical line goes on */
    struct span word;     /* the latest of it */
    uint64_t block;       /* bytes, CRLF included; 0: none */
    struct mc_canon *c;
};

static inline void skip_spaces(struct reading *r)
{
    while (r->at < r->end && *r->at == ' ')
        r->at++;
}

/* 0x21 to 0x7e */
static bool is_printable(char c)
{
    return (unsigned char)c > ' ' && (unsigned char)c < 0x7f;
}

/* The next word, of 1 to max bytes: it is written, behind a space but at the front. */
static bool word(struct reading *r, size_t max)
{
    skip_spaces(r);
    const char *at = r->at, *end = r->end;
    char *to = r->to;
    if (to > r->c->line)
        *to++ = ' ';
    r->word.p = to;
    while (at < end && is_printable(*at))
        *to++ = *at++;
    size_t n = (size_t)(at - r->at);
    r->word.n = n;
    r->at = at;
    r->to = to;
    r->c->words++;
    return n > 0 && n <= max && (at == end || *at == ' ');
}

static bool number(struct reading *r, uint64_t max, uint64_t *v)
{
    if (!word(r, DEC_U64_MAX))
        return false;
    *v = (uint64_t)(r->word.p[0] - '0'); /* most are one digit */
    if (r->word.n == 1)
        return *v <= 9;
    return r->word.p[0] != '0' && dec_u64(r->word, v) && *v <= max;
}

static bool keys(struct reading *r)
{
    const char *first = NULL;
    do {
        if (!word(r, MC_KEY_MAX))
            return false;
        first = first ? first : r->word.p;
        skip_spaces(r);
    } while (r->at < r->end);
    r->c->keys = span_of(first, (size_t)(r->word.p + r->word.n - first));
    return true;
}

/* Nothing, or the word, which is not written. */
static bool noreply(struct reading *r)
{
    char *to = r->to;
    skip_spaces(r);
    if (r->at == r->end)
        return true;
    r->c->silent = word(r, MC_KEY_MAX) && span_eq(r->word, SPAN("noreply"));
    r->to = to;
    return r->c->silent;
}

static bool item(struct reading *r, char what)
{
    uint64_t v;
    switch (what) {
    case 'k':
        if (!word(r, MC_KEY_MAX))
            return false;
        r->c->keys = r->word;
        return true;
    case 'K':
        return keys(r);
    case 'e':
        return number(r, INT32_MAX, &v);
    case 'f':
        return number(r, UINT32_MAX, &v);
    case 'b':
        if (!number(r, MC_BLOCK_MAX, &v))
            return false;
        r->block = v + 2;
        return true;
    case 'u':
        return number(r, UINT64_MAX, &v);
    default:
        return noreply(r);
    }
}

static const struct row *find_row(struct span verb)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].n == verb.n && rows[i].verb[0] == verb.p[0] &&
            memcmp(rows[i].verb, verb.p, verb.n) == 0)
            return &rows[i];
    return NULL;
}

/* The line, but for its end. */
static bool read_line(struct reading *r)
{
    const struct row *row = word(r, sizeof "prepend" - 1) ? find_row(r->word) : NULL;
    if (!row)
        return false;
    r->c->verb = row->is;
    r->c->reply = row->reply;
    for (const char *what = row->words; *what; what++)
        if (!item(r, *what))
            return false;
    skip_spaces(r);
    /* a browser's: see mc_parse */
    return r->at == r->end && !span_starts(r->word, SPAN("HTTP/"));
}

bool mc_canon(struct span in, struct mc_canon *c)
{
    struct reading r = {.c = c, .at = in.p, .to = c->line};
    size_t most = in.n < MC_LINE_MAX - 3 ? in.n : MC_LINE_MAX - 3; /* room for CRLF in its place */
    const char *end = most > 0 ? memchr(in.p, '\n', most) : NULL;
    if (!end)
        return false;
    r.end = end > in.p && end[-1] == '\r' ? end - 1 : end;
    c->silent = false;
    c->words = 0;
    c->keys = c->block = span_of("", 0);
    if (!read_line(&r))
        return false;
    *r.to++ = '\r';
    *r.to++ = '\n';
    c->n = (size_t)(r.to - c->line);
    struct span rest = span_skip(in, (size_t)(end + 1 - in.p));
    if (rest.n < r.block || (r.block > 0 && memcmp(rest.p + r.block - 2, "\r\n", 2) != 0))
        return false;
    c->block = span_of(rest.p, (size_t)r.block);
    c->used = (size_t)(rest.p - in.p) + c->block.n;
    return true;
}

/* ---- what memcached makes of all else ----------------------------------------------------------
 */

#define WORDS_MAX 24

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* As strtol(3) and strtoul(3) read it, of 64 bits: *v is what that wraps to. */
static bool c_number(struct span s, bool is_signed, uint64_t *v)
{
    size_t i = 0;
    uint64_t most;
    while (i < s.n && is_space(s.p[i]))
        i++;
    bool minus = i < s.n && s.p[i] == '-';
    i += i < s.n && (minus || s.p[i] == '+');
    size_t from = i;
    while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
        i++;
    most = !is_signed ? UINT64_MAX : minus ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    if ((i < s.n && !is_space(s.p[i])) || !dec_u64(span_of(s.p + from, i - from), v) || *v > most)
        return false;
    *v = minus ? 0 - *v : *v;
    return is_signed || !(minus && *v > INT64_MAX);
}

/* A count of bytes, cut to 32 bits: 0 where there is no block. */
static uint64_t c_block(struct span s)
{
    uint64_t v;
    if (!c_number(s, true, &v))
        return 0;
    v &= UINT32_MAX;
    return v <= MC_BLOCK_MAX ? v + 2 : 0;
}

/* key flags exptime bytes [cas unique] [noreply]: whatever else may be wrong with it, before the
 * block is taken. */
static void storage(const struct span *w, size_t n, bool cas, struct mc_there *t)
{
    size_t fixed = cas ? 6 : 5;
    uint64_t v;
    if (n < fixed || n > fixed + 1)
        return;
    t->answers = !span_eq(w[n - 1], SPAN("noreply"));
    if (w[1].n <= MC_KEY_MAX && c_number(w[2], false, &v) && c_number(w[3], true, &v) &&
        (!cas || c_number(w[5], false, &v)))
        t->block = c_block(w[4]);
}

/* Verbs that may be followed by noreply: how many words they have with it. */
static const struct {
    const char *verb;
    uint8_t least, most;
} silent[] = {
    {"incr", 3, 4},           {"decr", 3, 4},
    {"delete", 2, 4},         {"touch", 3, 4},
    {"flush_all", 1, 3},      {"verbosity", 2, WORDS_MAX},
    {"cache_memlimit", 2, 4}, {"slabs", 2, WORDS_MAX},
    {"lru", 2, WORDS_MAX},    {"lru_crawler", 2, WORDS_MAX},
};

/* memcached tells apart all words but one of WORDS_MAX, and takes the latest of these for the last.
 */
static void other(const struct span *w, size_t n, struct mc_there *t)
{
    struct span last = w[(n < WORDS_MAX ? n : WORDS_MAX - 1) - 1];
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (span_eq(w[0], span_str(silent[i].verb)))
            t->answers =
                n < silent[i].least || n > silent[i].most || !span_eq(last, SPAN("noreply"));
}

/* Meta commands: an error is told, quiet or not, but none may be. `me` is never quiet. */
static void meta(const struct span *w, size_t n, struct mc_there *t)
{
    bool store = w[0].p[1] == 's', noop = w[0].p[1] == 'n', debug = w[0].p[1] == 'e';
    t->reply = noop ? FRAME_MC_UPTO_MN : FRAME_MC_META;
    if (store && n > 2 && n < 20 && w[1].n <= MC_KEY_MAX)
        t->block = c_block(w[2]);
    for (size_t i = store ? 3 : 2; i < n && !noop && !debug; i++)
        t->answers &= w[i].p[0] != 'q';
}

static void values(struct span line, struct mc_there *t)
{
    struct span key;
    t->reply = FRAME_MC_VALUES;
    for (; mc_next_key(&line, &key); t->words++)
        t->forgets |= key.n > MC_KEY_MAX;
}

static bool is_one_of(struct span word, const char *const *list)
{
    while (*list && !span_eq(word, span_str(*list)))
        list++;
    return *list;
}

struct mc_there mc_there(struct span in)
{
    static const char *const gets[] = {"get", "gets", "gat", "gats", "bget", NULL},
                             *const metas[] = {"mg", "ms", "md", "ma", "mn", "me", NULL},
                             *const stores[] = {"set",    "add",     "replace", "cas",
                                                "append", "prepend", NULL};
    struct mc_there t = {.answers = true, .reply = FRAME_MC_LINE};
    const char *end = memchr(in.p, '\n', in.n);
    struct span line = span_of(in.p, end ? (size_t)(end - in.p) : in.n), words[WORDS_MAX];
    if (line.n > 1 && line.p[line.n - 1] == '\r')
        line.n--;
    line.n = strnlen(line.p, line.n);
    size_t n = mc_split(line, words, WORDS_MAX);
    t.binary = in.n > 0 && in.p[0] == MCB_REQUEST;
    if (is_one_of(words[0], stores)) {
        storage(words, n, span_eq(words[0], SPAN("cas")), &t);
    } else if (is_one_of(words[0], metas)) {
        meta(words, n, &t);
    } else if (is_one_of(words[0], gets)) {
        values(line, &t);
    } else if (n > 0) {
        t.reply = FRAME_MC_LINES;
        t.listens = span_eq(words[0], SPAN("watch"));
        other(words, n, &t);
    }
    return t;
}

bool mc_is_clear(const struct mc_req *req, const struct mc_there *there)
{
    bool is_meta = req->verb >= MC_META_GET && req->verb <= MC_META_DELETE;
    for (size_t i = 0; i < req->line.n; i++) {
        char c = req->line.p[i];
        bool high = (unsigned char)c > 0x7f && !is_meta; /* keys in UTF-8 */
        if (c != ' ' && !is_printable(c) && !high)
            return false;
    }
    /* Were a block longer for us than for memcached, it could hold requests that nobody judged. */
    return req->body == there->block && (!is_meta || mc_meta_is_clear(req));
}
