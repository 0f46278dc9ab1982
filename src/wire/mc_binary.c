#include "wire/mc_binary.h"

#include <string.h>

#define RESPONSE ((char)0x81)

/* What may come behind a header. */
enum {
    KEY = 1,      /* there must be a key; without KEY and MAY_KEY there must be none */
    MAY_KEY = 2,  /* there may be one */
    VALUE = 4,    /* there may be a value, which nobody reads */
    HAND_OUT = 8, /* there may be a value, which is for the caller */
    MAY_EXT = 16, /* the extras may be missing */
    QUIET = 32,
    WITH_KEY = 64,
    SHARED = 128, /* has one reply, whatever becomes of it, and leaves nothing behind */
};

struct shape {
    uint8_t verb; /* enum mc_verb; MC_UNKNOWN: no such opcode */
    uint8_t ext;  /* bytes of extras */
    uint8_t has;
};

#define GET   KEY
#define STORE KEY | VALUE
#define AUTH  KEY | HAND_OUT

static const struct shape shapes[256] = {
    [0x00] = {MC_GET, 0, GET | SHARED},
    [0x01] = {MC_SET, 8, STORE | SHARED},
    [0x02] = {MC_ADD, 8, STORE | SHARED},
    [0x03] = {MC_REPLACE, 8, STORE | SHARED},
    [0x04] = {MC_DELETE, 0, KEY | SHARED},
    [0x05] = {MC_INCR, 20, KEY | SHARED},
    [0x06] = {MC_DECR, 20, KEY | SHARED},
    [0x07] = {MC_QUIT, 0, 0},
    [0x08] = {MC_FLUSH_ALL, 4, MAY_EXT},
    [0x09] = {MC_GET, 0, GET | QUIET},
    [0x0a] = {MC_NOOP, 0, 0},
    [0x0b] = {MC_VERSION, 0, SHARED},
    [0x0c] = {MC_GET, 0, GET | WITH_KEY | SHARED},
    [0x0d] = {MC_GET, 0, GET | WITH_KEY | QUIET},
    [0x0e] = {MC_APPEND, 0, STORE | SHARED},
    [0x0f] = {MC_PREPEND, 0, STORE | SHARED},
    [0x10] = {MC_STATS, 0, MAY_KEY},
    [0x11] = {MC_SET, 8, STORE | QUIET},
    [0x12] = {MC_ADD, 8, STORE | QUIET},
    [0x13] = {MC_REPLACE, 8, STORE | QUIET},
    [0x14] = {MC_DELETE, 0, KEY | QUIET},
    [0x15] = {MC_INCR, 20, KEY | QUIET},
    [0x16] = {MC_DECR, 20, KEY | QUIET},
    [0x17] = {MC_QUIT, 0, QUIET},
    [0x18] = {MC_FLUSH_ALL, 4, MAY_EXT | QUIET},
    [0x19] = {MC_APPEND, 0, STORE | QUIET},
    [0x1a] = {MC_PREPEND, 0, STORE | QUIET},
    [0x1c] = {MC_TOUCH, 4, GET | SHARED},
    [0x1d] = {MC_GAT, 4, GET | SHARED},
    [0x1e] = {MC_GAT, 4, GET | QUIET},
    [0x20] = {MC_SASL, 0, 0},
    [0x21] = {MC_SASL, 0, AUTH},
    [0x22] = {MC_SASL, 0, AUTH},
    [0x23] = {MC_GAT, 4, GET | WITH_KEY | SHARED},
    [0x24] = {MC_GAT, 4, GET | WITH_KEY | QUIET},
};

static uint64_t number(const char *p, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

static bool fits(const struct shape *s, size_t ext, size_t key, uint64_t value)
{
    return (ext == s->ext || (ext == 0 && s->has & MAY_EXT)) &&
           (key > 0 ? s->has & (KEY | MAY_KEY) : !(s->has & KEY)) &&
           (value == 0 || s->has & (VALUE | HAND_OUT));
}

static enum wire_status refuse(struct mcb_req *req, size_t *used, size_t all, enum mcb_status error)
{
    req->error = error;
    *used = all;
    return WIRE_CLOSE;
}

/* The lengths are those of the header, and fit together. */
static void take_body(const struct shape *s, struct mcb_req *req, struct span extras)
{
    req->verb = (enum mc_verb)s->verb;
    req->quiet = s->has & QUIET;
    req->with_key = s->has & WITH_KEY;
    if (extras.n == 20) {
        req->delta = number(extras.p, 8);
        req->expiration = (uint32_t)number(extras.p + 16, 4);
    }
}

enum wire_status mcb_parse(struct span in, struct mcb_req *req, size_t *used)
{
    *used = 0;
    *req = (struct mcb_req){.verb = MC_UNKNOWN};
    if (in.n > 0 && in.p[0] != MCB_REQUEST)
        return refuse(req, used, in.n, MCB_OK);
    if (in.n < MCB_HEADER)
        return WIRE_MORE;
    const struct shape *s = &shapes[(unsigned char)in.p[1]];
    size_t key = number(in.p + 2, 2), ext = (unsigned char)in.p[4];
    uint64_t body = number(in.p + 8, 4);
    req->opcode = (uint8_t)in.p[1];
    req->opaque = span_of(in.p + 12, 4);
    req->cas = number(in.p + 16, 8);
    if (key + ext > body)
        return refuse(req, used, in.n, MCB_UNKNOWN);
    uint64_t value = body - key - ext;
    if (body > INT32_MAX) /* negative to memcached, which then passes nothing over */
        return refuse(req, used, in.n, MCB_INVALID);
    if (key > MC_KEY_MAX || (s->verb != MC_UNKNOWN && !fits(s, ext, key, value)))
        return refuse(req, used, in.n, MCB_INVALID);
    bool hand_out = s->has & HAND_OUT && value <= MCB_VALUE_MAX;
    size_t want = MCB_HEADER + ext + key + (hand_out ? (size_t)value : 0);
    if (in.n < want)
        return WIRE_MORE;
    take_body(s, req, span_of(in.p + MCB_HEADER, ext));
    req->key = span_of(in.p + MCB_HEADER + ext, key);
    req->value = span_of(req->key.p + key, hand_out ? (size_t)value : 0);
    req->body = hand_out ? 0 : value;
    /* the data type and the vbucket, which nobody uses, are 0 */
    req->canonical = s->has & SHARED && memcmp(in.p + 5, "\0\0\0", 3) == 0;
    *used = want;
    return WIRE_REQ;
}

/* ---- answers -----------------------------------------------------------------------------------
 */

static char *append(char *at, uint64_t v, size_t bytes)
{
    for (size_t i = bytes; i-- > 0; v >>= 8)
        at[i] = (char)(v & 0xff);
    return at + bytes;
}

/* The header, and extras of zeros. */
static void put_header(struct buf *b, const struct mcb_req *req, enum mcb_status status, size_t ext,
                       size_t key, size_t value, uint64_t cas)
{
    char *at = buf_room(b, MCB_HEADER + ext + key + value);
    if (!at)
        return;
    *at++ = RESPONSE;
    at = append(at, req->opcode, 1);
    at = append(at, key, 2);
    at = append(at, ext, 1);
    at = append(at, 0, 1);
    at = append(at, (uint64_t)status, 2);
    at = append(at, ext + key + value, 4);
    memcpy(at, req->opaque.p, 4);
    at = append(at + 4, cas, 8);
    append(at, 0, ext);
    buf_took(b, MCB_HEADER + ext);
}

void mcb_put(struct buf *b, const struct mcb_req *req, enum mcb_status status, struct span key,
             struct span value, uint64_t cas)
{
    put_header(b, req, status, 0, key.n, value.n, cas);
    buf_put_span(b, key);
    buf_put_span(b, value);
}

void mcb_put_item(struct buf *b, const struct mcb_req *req, struct span value, uint64_t cas)
{
    struct span key = req->with_key ? req->key : span_of("", 0);
    put_header(b, req, MCB_OK, 4, key.n, value.n, cas);
    buf_put_span(b, key);
    buf_put_span(b, value);
}

void mcb_put_number(struct buf *b, const struct mcb_req *req, uint64_t v, uint64_t cas)
{
    char bytes[8];
    append(bytes, v, sizeof bytes);
    mcb_put(b, req, MCB_OK, span_of("", 0), span_of(bytes, sizeof bytes), cas);
}

static const struct {
    enum mcb_status status;
    const char *text;
} texts[] = {
    {MCB_NOT_FOUND, "Not found"},
    {MCB_INVALID, "Invalid arguments"},
    {MCB_NOT_STORED, "Not stored."},
    {MCB_AUTH_ERROR, "Auth failure."},
    {MCB_NO_NUMBER, "Non-numeric server-side value for incr or decr"},
    {MCB_UNKNOWN, "Unknown command"},
    {MCB_TEMPORARY, "Temporary failure"},
};

void mcb_put_error(struct buf *b, const struct mcb_req *req, enum mcb_status status)
{
    const struct span none = {"", 0};
    size_t i = 0;
    while (i < sizeof texts / sizeof *texts - 1 && texts[i].status != status)
        i++;
    if (status == MCB_NOT_FOUND && req->with_key)
        mcb_put(b, req, status, req->key, none, 0);
    else
        mcb_put(b, req, status, none, span_str(texts[i].text), 0);
}
