#include "wire/mc_text.h"

#include "base/dec.h"
#include "wire/mc_meta.h"

#include <string.h>

#define LONG_INDENT 100 /* spaces before the verb of a long line: memcached allows no more */
#define WORDS_MAX   8   /* more than any command of a fixed number of words has */

/* Parses what follows the verb; req is zeroed but for verb, line and args. */
typedef enum wire_status parse_fn(struct mc_req *req);

static parse_fn parse_get, parse_gat, parse_delta, parse_storage, parse_delete, parse_touch,
    parse_flush_all, parse_verbosity, parse_free;

/* The most frequent first, for the table is searched in order;
 * get is the very first: see is_plain_get. */
static const struct {
    const char *name;
    uint8_t n;
    enum mc_verb verb;
    parse_fn *parse;
} verbs[] = {
    {"get", 3, MC_GET, parse_get},
    {"gets", 4, MC_GETS, parse_get},
    {"set", 3, MC_SET, parse_storage},
    {"incr", 4, MC_INCR, parse_delta},
    {"gat", 3, MC_GAT, parse_gat},
    {"gats", 4, MC_GATS, parse_gat},
    {"mg", 2, MC_META_GET, mc_parse_meta},
    {"ma", 2, MC_META_ARITHMETIC, mc_parse_meta},
    {"mn", 2, MC_META_NOOP, parse_free},
    {"version", 7, MC_VERSION, parse_free},
    {"add", 3, MC_ADD, parse_storage},
    {"decr", 4, MC_DECR, parse_delta},
    {"touch", 5, MC_TOUCH, parse_touch},
    {"delete", 6, MC_DELETE, parse_delete},
    {"replace", 7, MC_REPLACE, parse_storage},
    {"append", 6, MC_APPEND, parse_storage},
    {"prepend", 7, MC_PREPEND, parse_storage},
    {"bget", 4, MC_GET, parse_get}, /* an old word for it, which memcached still takes */
    {"cas", 3, MC_CAS, parse_storage},
    {"stats", 5, MC_STATS, parse_free},
    {"quit", 4, MC_QUIT, parse_free},
    {"flush_all", 9, MC_FLUSH_ALL, parse_flush_all},
    {"verbosity", 9, MC_VERBOSITY, parse_verbosity},
    {"ms", 2, MC_META_SET, mc_parse_meta},
    {"md", 2, MC_META_DELETE, mc_parse_meta},
    {"me", 2, MC_META_DEBUG, mc_parse_meta_debug},
};

#define VERBS (sizeof verbs / sizeof *verbs)

const char *mc_verb_name(enum mc_verb verb)
{
    for (size_t i = 0; i < VERBS; i++)
        if (verbs[i].verb == verb)
            return verbs[i].name;
    return verb == MC_NOOP ? "noop" : verb == MC_SASL ? "sasl" : "unknown";
}

static size_t find_verb(struct span word)
{
    for (size_t i = 0; i < VERBS; i++)
        if (verbs[i].n == word.n && verbs[i].name[0] == (word.p[0] | 0x20) &&
            span_eq_nocase(word, span_of(verbs[i].name, word.n)))
            return i;
    return VERBS;
}

/* memcached suppresses CLIENT_ERROR after noreply, but not ERROR. */
static enum wire_status refuse(struct mc_req *req, struct span error)
{
    req->error = req->noreply ? span_of("", 0) : error;
    return WIRE_BAD;
}

static enum wire_status refuse_format(struct mc_req *req)
{
    return refuse(req, MC_BAD_FORMAT);
}

static enum wire_status refuse_command(struct mc_req *req)
{
    req->error = SPAN("ERROR\r\n");
    return WIRE_BAD;
}

static enum wire_status refuse_exptime(struct mc_req *req)
{
    return refuse(req, SPAN("CLIENT_ERROR invalid exptime argument\r\n"));
}

static struct span skip_spaces(struct span s)
{
    size_t n = 0;
    while (n < s.n && s.p[n] == ' ')
        n++;
    return span_of(s.p + n, s.n - n);
}

bool mc_next_key(struct span *keys, struct span *key)
{
    size_t from = 0, to;
    while (from < keys->n && keys->p[from] == ' ')
        from++;
    for (to = from; to < keys->n && keys->p[to] != ' ';)
        to++;
    if (to == from)
        return false;
    *key = span_of(keys->p + from, to - from);
    *keys = span_of(keys->p + to, keys->n - to);
    return true;
}

size_t mc_split(struct span line, struct span *word, size_t max)
{
    size_t n = 0;
    memset(word, 0, max * sizeof *word);
    while (n < max && mc_next_key(&line, &word[n]))
        n++;
    return n;
}

static bool is_key_byte(char c)
{
    return (unsigned char)c > ' ' && c != 0x7f;
}

bool mc_is_key(struct span key)
{
    if (key.n == 0 || key.n > MC_KEY_MAX)
        return false;
    for (size_t i = 0; i < key.n; i++)
        if (!is_key_byte(key.p[i]))
            return false;
    return true;
}

/* All keys must be good before the first is answered: memcached answers such a get with the error
 * alone, and no ID may be spent on it. One pass, since this is the hot path. */
static enum wire_status parse_keys(struct mc_req *req, struct span s)
{
    req->keys = s = skip_spaces(s);
    while (s.n > 0) {
        size_t n = 0;
        while (n < s.n && is_key_byte(s.p[n]))
            n++;
        if (n > MC_KEY_MAX || (n < s.n && s.p[n] != ' '))
            return refuse_format(req);
        if (!req->key.p)
            req->key = span_of(s.p, n);
        s = skip_spaces(span_skip(s, n));
    }
    return req->key.p ? WIRE_REQ : refuse_command(req);
}

static enum wire_status parse_get(struct mc_req *req)
{
    req->with_cas = req->verb == MC_GETS;
    return parse_keys(req, req->args);
}

static enum wire_status parse_gat(struct mc_req *req)
{
    struct span rest = req->args, exptime;
    int64_t ignored;
    req->with_cas = req->verb == MC_GATS;
    if (!mc_next_key(&rest, &exptime))
        return refuse_command(req);
    bool canonical = dec_i64(exptime, &ignored);
    /* memcached takes "+1", and then finds fault with the keys. */
    bool plus = !canonical && exptime.p[0] == '+' &&
                dec_i64(span_of(exptime.p + 1, exptime.n - 1), &ignored);
    if (!canonical && !plus)
        return refuse_exptime(req);
    enum wire_status keys = parse_keys(req, rest);
    return plus && keys == WIRE_REQ ? refuse_exptime(req) : keys;
}

static bool is_noreply(struct span word)
{
    return span_eq(word, SPAN("noreply"));
}

static enum wire_status parse_delta(struct mc_req *req)
{
    struct span word[WORDS_MAX];
    size_t n = mc_split(req->args, word, WORDS_MAX);
    if (n < 2 || n > 3)
        return refuse_command(req);
    req->noreply = is_noreply(word[n - 1]);
    if (!mc_is_key(word[0]))
        return refuse_format(req);
    req->key = word[0];
    if (!dec_u64(word[1], &req->delta))
        return refuse(req, SPAN("CLIENT_ERROR invalid numeric delta argument\r\n"));
    return WIRE_REQ;
}

/* key flags exptime bytes [cas unique] [noreply] */
static enum wire_status parse_storage(struct mc_req *req)
{
    struct span word[WORDS_MAX];
    size_t n = mc_split(req->args, word, WORDS_MAX), fixed = req->verb == MC_CAS ? 5 : 4;
    uint64_t flags, bytes, unique;
    int64_t exptime;
    if (n < fixed || n > fixed + 1)
        return refuse_command(req);
    req->noreply = is_noreply(word[n - 1]);
    if (!dec_u64(word[3], &bytes) || bytes > MC_BLOCK_MAX)
        return refuse_format(req);
    req->body = bytes + 2;
    if (!mc_is_key(word[0]) || !dec_u64(word[1], &flags) || !dec_i64(word[2], &exptime) ||
        (req->verb == MC_CAS && !dec_u64(word[4], &unique)))
        return refuse_format(req);
    req->key = word[0];
    return WIRE_REQ;
}

/* The "0" is a relic: a time in which the key could not be added again. */
static enum wire_status parse_delete(struct mc_req *req)
{
    struct span word[WORDS_MAX];
    size_t n = mc_split(req->args, word, WORDS_MAX);
    if (n < 1 || n > 3)
        return refuse_command(req);
    bool zero = span_eq(word[1], SPAN("0"));
    req->noreply = n > 1 && is_noreply(word[n - 1]);
    if (n > 1 && !(n == 2 ? zero || req->noreply : zero && req->noreply))
        return refuse(req, SPAN("CLIENT_ERROR bad command line format.  "
                                "Usage: delete <key> [noreply]\r\n"));
    if (!mc_is_key(word[0]))
        return refuse_format(req);
    req->key = word[0];
    return WIRE_REQ;
}

static enum wire_status parse_touch(struct mc_req *req)
{
    struct span word[WORDS_MAX];
    size_t n = mc_split(req->args, word, WORDS_MAX);
    int64_t ignored;
    if (n < 2 || n > 3)
        return refuse_command(req);
    req->noreply = is_noreply(word[n - 1]);
    if (!mc_is_key(word[0]))
        return refuse_format(req);
    req->key = word[0];
    return dec_i64(word[1], &ignored) ? WIRE_REQ : refuse_exptime(req);
}

static enum wire_status parse_flush_all(struct mc_req *req)
{
    struct span word[WORDS_MAX];
    size_t n = mc_split(req->args, word, WORDS_MAX);
    int64_t ignored;
    if (n > 2)
        return refuse_command(req);
    req->noreply = n > 0 && is_noreply(word[n - 1]);
    if (n > (req->noreply ? 1 : 0) && !dec_i64(word[0], &ignored))
        return refuse_exptime(req);
    return WIRE_REQ;
}

static enum wire_status parse_verbosity(struct mc_req *req)
{
    struct span word[WORDS_MAX];
    size_t n = mc_split(req->args, word, WORDS_MAX);
    uint64_t ignored;
    if (n == 0)
        return refuse_command(req);
    req->noreply = is_noreply(word[n - 1]);
    return dec_u64(word[0], &ignored) ? WIRE_REQ : refuse_format(req);
}

static enum wire_status parse_free(struct mc_req *req)
{
    (void)req;
    return WIRE_REQ;
}

static bool is_http(struct span line)
{
    const struct span http = SPAN("HTTP/");
    while (line.n > 0 && line.p[line.n - 1] == ' ')
        line.n--;
    const char *space = line.n ? memrchr(line.p, ' ', line.n) : NULL;
    return span_starts(space ? span_skip(line, (size_t)(space - line.p) + 1) : line, http);
}

static struct span first_word(struct span s)
{
    struct span word = {"", 0};
    mc_next_key(&s, &word);
    return word;
}

/* The end of a line that does not end within MC_LINE_MAX, or NULL with *verdict set: wait for a
 * get's, close all others. */
static const char *find_long_end(struct span in, enum wire_status *verdict)
{
    size_t verb;
    *verdict = WIRE_MORE;
    if (in.n < MC_LINE_MAX)
        return NULL;
    *verdict = WIRE_CLOSE;
    if (skip_spaces(in).p > in.p + LONG_INDENT)
        return NULL;
    verb = find_verb(first_word(span_of(in.p, MC_LINE_MAX)));
    if (verb == VERBS || (verbs[verb].parse != parse_get && verbs[verb].parse != parse_gat))
        return NULL;
    if (in.n < WIRE_LINE_MAX)
        *verdict = WIRE_MORE;
    return memchr(in.p, '\n', in.n < WIRE_LINE_MAX ? in.n : WIRE_LINE_MAX);
}

/* Nearly all requests are this one, so it is not looked up. */
static bool is_plain_get(struct span line)
{
    return span_starts(line, SPAN("get "));
}

static enum wire_status parse_line(struct mc_req *req)
{
    struct span word = is_plain_get(req->line) ? span_of(req->line.p, 3) : first_word(req->line);
    size_t verb = is_plain_get(req->line) ? 0 : find_verb(word);
    if (is_http(req->line))
        return WIRE_CLOSE;
    if (verb == VERBS)
        return refuse_command(req);
    req->verb = verbs[verb].verb;
    req->args = span_skip(req->line, (size_t)(word.p + word.n - req->line.p));
    return verbs[verb].parse(req);
}

enum wire_status mc_parse(struct span in, struct mc_req *req, size_t *used)
{
    enum wire_status status = WIRE_MORE;
    const char *end = NULL;
    *used = 0;
    if (in.n > 0)
        end = memchr(in.p, '\n', in.n < MC_LINE_MAX ? in.n : MC_LINE_MAX);
    if (!end && in.n > 0)
        end = find_long_end(in, &status);
    *req = (struct mc_req){.verb = MC_UNKNOWN, .error = {"", 0}};
    if (end) {
        req->line = span_of(in.p, (size_t)(end - in.p));
        *used = req->line.n + 1;
        if (req->line.n > 0 && end[-1] == '\r')
            req->line.n--;
        status = parse_line(req);
    }
    if (status == WIRE_CLOSE)
        *used = in.n;
    return status;
}

size_t mc_swallow(struct mc_swallow *s, struct span in, bool *done, bool *bad)
{
    size_t n = in.n < s->left ? in.n : (size_t)s->left;
    uint64_t left = s->left - n;
    /* Of the last two bytes those that are in this piece: the last one is at n - 1 if left is 0. */
    if (s->left >= 2 && left < 2 && in.p[n - 2 + left] != '\r')
        s->bad = true;
    if (s->left >= 1 && left == 0 && in.p[n - 1] != '\n')
        s->bad = true;
    s->left = left;
    *done = left == 0;
    *bad = *done && s->bad;
    return n;
}
