#include "base/dec.h"
#include "wire/mc_text.h"

#include <string.h>

static char *append(char *at, const char *p, size_t n)
{
    memcpy(at, p, n);
    return at + n;
}

#define APPEND_LIT(at, literal) append((at), literal, sizeof(literal) - 1)

/* The number is written where it is to stand behind a length of two digits, as an ID's is. */
void mc_put_value(struct buf *b, struct span key, int64_t number, bool with_cas)
{
    char *start = buf_room(b, MC_VALUE_ROOM(key.n)), *at = start;
    if (!at)
        return;
    at = APPEND_LIT(at, "VALUE ");
    if (key.n)
        at = append(at, key.p, key.n);
    at = APPEND_LIT(at, " 0 ");
    char *digits = at + 2 + (with_cas ? 1 : 2);
    size_t n = dec_put_i64(digits, number);
    if (n < 10)
        digits = memmove(digits - 1, digits, n);
    else
        *at++ = n < 20 ? '1' : '2';
    *at++ = (char)('0' + n % 10);
    if (with_cas)
        *at = ' ';
    else
        memcpy(at, "\r\n", 2);
    at = APPEND_LIT(digits + n, "\r\n");
    if (with_cas && number < 0) { /* its cas takes the place of its digits */
        at = APPEND_LIT(digits + dec_put_u64(digits, mc_cas(number)), "\r\n");
        at = APPEND_LIT(at + dec_put_i64(at, number), "\r\n");
    } else if (with_cas) {
        at = append(at, digits, n);
        at = APPEND_LIT(at, "\r\n");
    }
    buf_took(b, (size_t)(at - start));
}

void mc_put_text(struct buf *b, struct span key, struct span text, int64_t number, bool with_cas)
{
    BUF_PUT_LIT(b, "VALUE ");
    buf_put_span(b, key);
    BUF_PUT_LIT(b, " 0 ");
    buf_put_u64(b, text.n);
    if (with_cas) {
        buf_put_char(b, ' ');
        buf_put_i64(b, number);
    }
    BUF_PUT_LIT(b, "\r\n");
    buf_put_span(b, text);
    BUF_PUT_LIT(b, "\r\n");
}

void mc_put_number(struct buf *b, int64_t v)
{
    char line[DEC_U64_MAX + 2];
    size_t n = dec_put_i64(line, v);
    memcpy(line + n, "\r\n", 2);
    buf_put(b, line, n + 2);
}

/* Text from outside must not end the line early. */
static void put_text(struct buf *b, struct span text)
{
    char *to = buf_room(b, text.n);
    if (!to)
        return;
    for (size_t i = 0; i < text.n; i++)
        to[i] = (unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f ? ' ' : text.p[i];
    buf_took(b, text.n);
}

void mc_put_stat(struct buf *b, struct span name, struct span value)
{
    BUF_PUT_LIT(b, "STAT ");
    buf_put_span(b, name);
    buf_put_char(b, ' ');
    put_text(b, value);
    BUF_PUT_LIT(b, "\r\n");
}

static void put_error(struct buf *b, struct span whose, struct span why)
{
    buf_put_span(b, whose);
    put_text(b, why);
    BUF_PUT_LIT(b, "\r\n");
}

void mc_put_server_error(struct buf *b, struct span why)
{
    put_error(b, SPAN("SERVER_ERROR "), why);
}

void mc_put_client_error(struct buf *b, struct span why)
{
    put_error(b, SPAN("CLIENT_ERROR "), why);
}
