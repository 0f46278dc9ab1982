#include "base/dec.h"
#include "wire/resp.h"

#include <string.h>

/* A type byte, digits of v, CRLF. */
static void put_header(struct buf *b, char type, uint64_t v)
{
    char line[1 + DEC_U64_MAX + 2];
    line[0] = type;
    size_t n = 1 + dec_put_u64(line + 1, v);
    memcpy(line + n, "\r\n", 2);
    buf_put(b, line, n + 2);
}

void resp_put_simple(struct buf *b, struct span text)
{
    buf_put_char(b, '+');
    buf_put_span(b, text);
    BUF_PUT_LIT(b, "\r\n");
}

/* What stands in *b from start on is an error's text: one line, whatever a client put into it. */
static void end_error(struct buf *b, size_t start)
{
    for (size_t i = start; i < b->n; i++)
        if (b->p[i] == '\r' || b->p[i] == '\n')
            b->p[i] = ' ';
    BUF_PUT_LIT(b, "\r\n");
}

void resp_put_error(struct buf *b, struct span text)
{
    size_t start = b->n;
    buf_put_char(b, '-');
    buf_put_span(b, text);
    end_error(b, start);
}

void resp_put_integer(struct buf *b, int64_t v)
{
    char line[2 + DEC_U64_MAX + 2] = ":-";
    size_t n = v < 0 ? 2 : 1;
    n += dec_put_u64(line + n, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
    memcpy(line + n, "\r\n", 2);
    buf_put(b, line, n + 2);
}

void resp_put_bulk(struct buf *b, struct span bytes)
{
    put_header(b, '$', bytes.n);
    buf_put_span(b, bytes);
    BUF_PUT_LIT(b, "\r\n");
}

void resp_put_bulk_u64(struct buf *b, uint64_t v)
{
    char digits[DEC_U64_MAX];
    size_t n = dec_put_u64(digits, v);
    char *start = buf_room(b, 5 + sizeof digits + 2), *at = start;
    if (!at)
        return;
    *at++ = '$';
    if (n >= 10)
        *at++ = (char)('0' + n / 10);
    *at++ = (char)('0' + n % 10);
    memcpy(at, "\r\n", 2);
    memcpy(at + 2, digits, sizeof digits); /* all: a copy of n would be a call */
    memcpy(at + 2 + n, "\r\n", 2);
    buf_took(b, (size_t)(at - start) + 2 + n + 2);
}

/* By itself, so that IDs do not pay for its memory, which is cleared and guarded. */
__attribute__((noinline)) static void put_negative(struct buf *b, int64_t v)
{
    char text[DEC_U64_MAX];
    resp_put_bulk(b, span_of(text, dec_put_i64(text, v)));
}

void resp_put_bulk_i64(struct buf *b, int64_t v)
{
    if (v < 0)
        put_negative(b, v);
    else
        resp_put_bulk_u64(b, (uint64_t)v);
}

void resp_put_null(struct buf *b, int proto)
{
    buf_put_str(b, proto >= 3 ? "_\r\n" : "$-1\r\n");
}

void resp_put_null_array(struct buf *b, int proto)
{
    buf_put_str(b, proto >= 3 ? "_\r\n" : "*-1\r\n");
}

void resp_put_array(struct buf *b, uint64_t n)
{
    put_header(b, '*', n);
}

void resp_put_map(struct buf *b, int proto, uint64_t n)
{
    put_header(b, proto >= 3 ? '%' : '*', proto >= 3 ? n : 2 * n);
}

void resp_put_set(struct buf *b, int proto, uint64_t n)
{
    put_header(b, proto >= 3 ? '~' : '*', n);
}

void resp_put_push(struct buf *b, int proto, uint64_t n)
{
    put_header(b, proto >= 3 ? '>' : '*', n);
}

void resp_put_verbatim(struct buf *b, int proto, struct span text)
{
    if (proto < 3) {
        resp_put_bulk(b, text);
        return;
    }
    put_header(b, '=', text.n + 4);
    BUF_PUT_LIT(b, "txt:");
    buf_put_span(b, text);
    BUF_PUT_LIT(b, "\r\n");
}

/* Redis formats with "%.*s": at most max bytes, and none from a NUL on. */
static struct span printable(struct span s, size_t max)
{
    return span_of(s.p, s.n ? strnlen(s.p, s.n < max ? s.n : max) : 0);
}

void resp_put_unknown(struct buf *b, struct resp_req *req)
{
    const size_t max = 128;
    size_t start = b->n, args = 0;
    struct resp_walk w = resp_walk_from(req, 0);
    struct span arg = {"", 0};
    resp_next_arg(&w, &arg);
    BUF_PUT_LIT(b, "-ERR unknown command '");
    buf_put_span(b, printable(arg, max));
    BUF_PUT_LIT(b, "', with args beginning with: ");
    while (args < max && resp_next_arg(&w, &arg)) {
        struct span cut = printable(arg, max - args);
        buf_put_char(b, '\'');
        buf_put_span(b, cut);
        BUF_PUT_LIT(b, "' ");
        args += cut.n + 3;
    }
    end_error(b, start);
}

void resp_put_wrong_arity(struct buf *b, const struct resp_cmd *cmd)
{
    BUF_PUT_LIT(b, "-ERR wrong number of arguments for '");
    buf_put(b, cmd->name, cmd->name_n);
    BUF_PUT_LIT(b, "' command\r\n");
}
