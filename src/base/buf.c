#include "base/buf.h"

#include "base/dec.h"

#include <stdarg.h>
#include <stdio.h>

void buf_put_str(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

void buf_put_u64(struct buf *b, uint64_t v)
{
    char digits[DEC_U64_MAX];
    buf_put(b, digits, dec_put_u64(digits, v));
}

void buf_put_i64(struct buf *b, int64_t v)
{
    char text[1 + DEC_U64_MAX] = "-"; /* sign and digits go in one put, so both or neither fit */
    size_t sign = v < 0;
    buf_put(b, text, sign + dec_put_u64(text + sign, sign ? 0 - (uint64_t)v : (uint64_t)v));
}

void buf_put_decimal(struct buf *b, int64_t v, unsigned decimals)
{
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v, unit = 1;
    while (decimals-- > 0)
        unit *= 10;
    if (v < 0)
        buf_put_char(b, '-');
    buf_put_u64(b, rest / unit);
    rest %= unit;
    if (rest > 0)
        buf_put_char(b, '.');
    for (; rest > 0; rest %= unit) {
        unit /= 10;
        buf_put_char(b, (char)('0' + rest / unit));
    }
}

void buf_put_word(struct buf *b, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_./:@%+=,";
    if (word[0] && word[strspn(word, plain)] == '\0') {
        buf_put_str(b, word);
        return;
    }
    buf_put_char(b, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            buf_put_str(b, "'\\'");
        buf_put_char(b, *word);
    }
    buf_put_char(b, '\'');
}

void buf_put_operand(struct buf *b, const char *name, const char *more)
{
    bool behind = *name == '-';
    if (!behind && *name)
        buf_put_char(b, ' ');
    buf_put_str(b, behind ? more : name);
    if (behind)
        BUF_PUT_LIT(b, " -- ");
    buf_put_str(b, behind ? name : more);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    size_t room = b->failed ? 0 : b->cap - b->n;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(room ? b->p + b->n : NULL, room, fmt, ap);
    va_end(ap);
    /* vsnprintf wants a byte for its NUL: a text that fills the room to the last byte fails too. */
    if (n < 0 || (size_t)n >= room)
        b->failed = true;
    else
        b->n += (size_t)n;
}
