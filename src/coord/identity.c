/* The pure parts of coord.h: tokens, identities, and a URL without its secrets. */
#include "coord/coord.h"

#include "base/buf.h"
#include "base/dec.h"

#include <inttypes.h>

/* ---- tokens --------------------------------------------------------------------------------- */

static const char hex[] = "0123456789abcdef";

struct coord_token coord_token_new(struct rng *r)
{
    struct coord_token t;
    r->fill(r, t.b, sizeof t.b);
    return t;
}

bool coord_token_equal(struct coord_token a, struct coord_token b)
{
    return memcmp(a.b, b.b, sizeof a.b) == 0;
}

char *coord_token_text(char out[COORD_TOKEN_TEXT], struct coord_token t)
{
    for (size_t i = 0; i < sizeof t.b; i++) {
        out[2 * i] = hex[t.b[i] >> 4];
        out[2 * i + 1] = hex[t.b[i] & 15];
    }
    out[2 * sizeof t.b] = '\0';
    return out;
}

/* -1: not a lower-case hex digit. */
static int digit(char c)
{
    const char *at = c ? strchr(hex, c) : NULL;
    return at ? (int)(at - hex) : -1;
}

bool coord_token_parse(struct span s, struct coord_token *out)
{
    struct coord_token t;
    if (s.n != 2 * sizeof t.b)
        return false;
    for (size_t i = 0; i < sizeof t.b; i++) {
        int high = digit(s.p[2 * i]);
        int low = digit(s.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        t.b[i] = (uint8_t)(high << 4 | low);
    }
    *out = t;
    return true;
}

/* ---- identities ----------------------------------------------------------------------------- */

char *coord_uuid_new(char out[COORD_UUID_TEXT], struct rng *rng)
{
    uint8_t r[16];
    char *to = out;
    rng->fill(rng, r, sizeof r);
    r[6] = (uint8_t)((r[6] & 0x0f) | 0x40); /* version 4 */
    r[8] = (uint8_t)((r[8] & 0x3f) | 0x80); /* variant 10 */
    for (unsigned i = 0; i < sizeof r; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *to++ = '-';
        *to++ = hex[r[i] >> 4];
        *to++ = hex[r[i] & 15];
    }
    *to = '\0';
    return out;
}

/* RFC 9562, section 4: 8-4-4-4-12 hex digits; lower case, so that one pool has one spelling. */
static bool is_uuid(struct span s)
{
    if (s.n != 36)
        return false;
    for (size_t i = 0; i < s.n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s.p[i] != '-' : digit(s.p[i]) < 0)
            return false;
    }
    return true;
}

/* 9999-12-31T23:59:59.999Z: the last time that RFC 3339 can write. */
#define EPOCH_MAX_MS INT64_C(253402300799999)

enum err_code coord_identity_make(char out[COORD_IDENTITY_MAX], struct span uuid, int64_t epoch_ms,
                                  const struct layout *layout, struct err *e)
{
    char name[LAYOUT_NAME_MAX];
    struct buf b;
    if (!is_uuid(uuid))
        return err_set(e, ERR_INVALID,
                       "uuid of the pool: expected 8-4-4-4-12 lower-case hex digits, found %zu "
                       "characters of another form",
                       uuid.n);
    if (epoch_ms < 0 || epoch_ms > EPOCH_MAX_MS)
        return err_set(e, ERR_RANGE, "epoch: expected 0 to %" PRId64 " ms, found %" PRId64,
                       EPOCH_MAX_MS, epoch_ms);
    buf_init(&b, out, COORD_IDENTITY_MAX);
    buf_put_span(&b, uuid);
    buf_put_char(&b, '|');
    buf_put_i64(&b, epoch_ms);
    buf_put_char(&b, '|');
    buf_put_str(&b, layout_name(name, layout));
    buf_put_char(&b, '\0');
    return ERR_OK;
}

/* One layout has one name: another spelling of it would be another identity. */
static bool read_layout(struct span name, struct layout *out)
{
    char again[LAYOUT_NAME_MAX];
    return name.n < LAYOUT_NAME_MAX && layout_parse(name, out, NULL) == ERR_OK &&
           span_eq(name, span_str(layout_name(again, out)));
}

enum err_code coord_identity_read(const char *identity, int64_t *epoch_ms, struct layout *layout,
                                  struct err *e)
{
    struct span rest = {identity, strnlen(identity, COORD_IDENTITY_MAX)};
    struct span uuid = span_cut(&rest, '|');
    struct span epoch = rest.p ? span_cut(&rest, '|') : rest;
    struct layout l;
    int64_t ms;
    if (!is_uuid(uuid) || !dec_canonical_i64(epoch, &ms) || ms < 0 || ms > EPOCH_MAX_MS ||
        !rest.p || !read_layout(rest, &l))
        return err_set(e, ERR_INVALID,
                       "identity: expected UUID|EPOCH_MS|LAYOUT, as 38.15.10 or t41.w10.s12, found "
                       "\"%.*s\"",
                       COORD_IDENTITY_MAX, identity);
    *epoch_ms = ms;
    *layout = l;
    return ERR_OK;
}

/* ---- URLs ----------------------------------------------------------------------------------- */

/* Where user and password end, counted from the front of what follows "://"; 0: there are none.
 * A password may hold an unescaped '/' or '@' by mistake: rather too much is taken than shown. */
static size_t userinfo(struct span scheme, struct span rest)
{
    if (span_eq(scheme, SPAN("sqlite")) || (rest.n > 0 && rest.p[0] == '/'))
        return 0;
    bool path = span_eq(scheme, SPAN("redis+unix"));
    for (size_t i = rest.n; i > 0; i--) {
        if (rest.p[i - 1] == '@' && (!path || (i < rest.n && rest.p[i] == '/')))
            return i;
    }
    return 0;
}

enum err_code coord_url_public(struct span url, char *out, size_t cap)
{
    struct buf b;
    struct span rest = url;
    struct span scheme = span_cut(&rest, ':');
    buf_init(&b, out, cap);
    if (rest.p && span_starts(rest, SPAN("//"))) {
        rest = span_skip(rest, 2);
        buf_put_span(&b, scheme);
        BUF_PUT_LIT(&b, "://");
        buf_put_span(&b, span_skip(rest, userinfo(scheme, rest)));
    } else {
        buf_put_span(&b, url);
    }
    buf_put_char(&b, '\0');
    if (!b.failed)
        return ERR_OK;
    if (cap > 0)
        out[0] = '\0';
    return ERR_RANGE;
}

bool coord_same_space(const char *a, const char *b)
{
    const char *x = strchr(a, '|');
    const char *y = strchr(b, '|');
    return x && y ? strcmp(x, y) == 0 : x == y;
}
