#include "reply.h"

#include <stdbool.h>
#include <string.h>

#define ID_DIGITS_MAX 19u /* of 2^63 - 1 */

/* What is still to be read of a reply. */
struct rest {
    const char *p, *end;
};

static void keep_text(struct reply *out, const char *p, size_t n)
{
    size_t len = n < REPLY_TEXT_MAX - 1 ? n : REPLY_TEXT_MAX - 1;
    memcpy(out->text, p, len);
    out->text[len] = '\0';
    for (size_t i = 0; i < len; i++)
        if (out->text[i] < ' ' || out->text[i] > '~')
            out->text[i] = '.';
}

/* A line without its end; false where there is no whole one. */
static bool take_line(struct rest *r, const char **line, size_t *n)
{
    const char *lf = memchr(r->p, '\n', (size_t)(r->end - r->p));
    if (!lf || lf == r->p || lf[-1] != '\r')
        return false;
    *line = r->p;
    *n = (size_t)(lf - r->p) - 1;
    r->p = lf + 1;
    return true;
}

static bool number(const char *p, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    if (n == 0 || n > ID_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (uint64_t)(p[i] - '0');
    }
    *out = v;
    return v <= (uint64_t)INT64_MAX;
}

/* The ID of a block of len bytes and its line end. */
static enum reply_status take_block(struct rest *r, uint64_t len, struct reply *out)
{
    if (len > ID_DIGITS_MAX || out->n == REPLY_IDS_MAX)
        return REPLY_BAD;
    if ((size_t)(r->end - r->p) < len + 2)
        return REPLY_MORE;
    if (!number(r->p, len, &out->id[out->n]) || memcmp(r->p + len, "\r\n", 2) != 0)
        return REPLY_BAD;
    out->n++;
    r->p += len + 2;
    return REPLY_IDS;
}

static enum reply_status take_bulk(struct rest *r, struct reply *out)
{
    const char *line;
    size_t n;
    uint64_t len;
    if (!take_line(r, &line, &n))
        return REPLY_MORE;
    if (line[0] != '$' || !number(line + 1, n - 1, &len))
        return REPLY_BAD;
    return take_block(r, len, out);
}

static enum reply_status take_resp(struct rest *r, struct reply *out)
{
    struct rest ahead = *r;
    const char *line;
    size_t n;
    uint64_t count = 0;
    if (!take_line(&ahead, &line, &n))
        return REPLY_MORE;
    if (line[0] == '-') {
        keep_text(out, line + 1, n - 1);
        *r = ahead;
        return REPLY_REFUSED;
    }
    if (line[0] == ':') {
        out->n = 1;
        *r = ahead;
        return number(line + 1, n - 1, &out->id[0]) ? REPLY_IDS : REPLY_BAD;
    }
    if (line[0] == '$')
        return take_bulk(r, out);
    if (line[0] != '*' || !number(line + 1, n - 1, &count) || count == 0)
        return REPLY_BAD;
    *r = ahead;
    enum reply_status s = REPLY_IDS;
    for (uint64_t i = 0; i < count && s == REPLY_IDS; i++)
        s = take_bulk(r, out);
    return s;
}

/* "VALUE KEY FLAGS LEN" */
static bool value_length(const char *line, size_t n, uint64_t *len)
{
    size_t digits = 0;
    if (n < 6 || memcmp(line, "VALUE ", 6) != 0)
        return false;
    while (digits < n && line[n - 1 - digits] != ' ')
        digits++;
    return number(line + n - digits, digits, len);
}

static bool begins(const char *line, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static enum reply_status take_memcached(struct rest *r, struct reply *out)
{
    for (;;) {
        const char *line;
        size_t n;
        uint64_t len;
        if (!take_line(r, &line, &n))
            return REPLY_MORE;
        if (n == 3 && memcmp(line, "END", 3) == 0)
            return out->n > 0 ? REPLY_IDS : REPLY_BAD;
        if (begins(line, n, "SERVER_ERROR ")) {
            keep_text(out, line, n);
            return REPLY_REFUSED;
        }
        if (!value_length(line, n, &len))
            return REPLY_BAD;
        enum reply_status s = take_block(r, len, out);
        if (s != REPLY_IDS)
            return s;
    }
}

static enum reply_status read_with(enum reply_status (*take)(struct rest *, struct reply *),
                                   const char *p, size_t n, struct reply *out)
{
    struct rest r = {p, p + n};
    out->n = 0;
    enum reply_status s = take(&r, out);
    out->used = (size_t)(r.p - p);
    if (s == REPLY_BAD)
        keep_text(out, p, n);
    if (s != REPLY_IDS)
        out->n = 0;
    return s;
}

enum reply_status reply_resp(const char *p, size_t n, struct reply *out)
{
    return read_with(take_resp, p, n, out);
}

enum reply_status reply_memcached(const char *p, size_t n, struct reply *out)
{
    return read_with(take_memcached, p, n, out);
}
