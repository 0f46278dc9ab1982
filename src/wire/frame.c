#include "wire/frame.h"

#include <string.h>

#define BLOCK_DIGITS 4 /* of the length of a block that is short */

void frame_pass(struct frame *f, struct span in, size_t *at)
{
    size_t n = in.n - *at;
    if (f->left > 0) {
        n = n < f->left ? n : (size_t)f->left;
        f->left -= n;
    } else if (f->skipping && n > 0) {
        const char *end = memchr(in.p + *at, '\n', n);
        n = end ? (size_t)(end - in.p) - *at + 1 : n;
        f->skipping = !end;
    } else {
        n = 0;
    }
    *at += n;
}

/* Bytes of the line at the front, its end included; 0: it is not whole. */
static size_t line_at(struct span in)
{
    const char *end = memchr(in.p, '\n', in.n < FRAME_HOLD ? in.n : FRAME_HOLD);
    return end ? (size_t)(end - in.p) + 1 : 0;
}

/* The same of what memcached says to nearly all that is answered with a line. */
static size_t told_at(struct span in)
{
    static const struct span usual[] = {SPAN("STORED\r\n"), SPAN("DELETED\r\n"),
                                        SPAN("TOUCHED\r\n"), SPAN("NOT_FOUND\r\n")};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (span_starts(in, usual[i]))
            return usual[i].n;
    return in.p[0] >= '0' && in.p[0] <= '9' ? line_at(in) : 0;
}

/* The same of "$3\r\nabc\r\n". Anything but the usual form is left to frame_resp. */
static size_t block_at(struct span in)
{
    size_t i = 1, n = 0;
    while (i < in.n && i <= BLOCK_DIGITS && in.p[i] >= '0' && in.p[i] <= '9')
        n = n * 10 + (size_t)(in.p[i++] - '0');
    bool usual = i > 1 && i + 1 < in.n && in.p[i] == '\r' && in.p[i + 1] == '\n' &&
                 (in.p[1] != '0' || i == 2);
    n += i + 4;
    return usual && n <= in.n ? n : 0;
}

static size_t resp_at(struct span in)
{
    char type = in.p[0];
    if (type == '$' && !span_starts(in, SPAN("$-1\r\n")))
        return block_at(in);
    return type == '$' || type == ':' || type == '+' ? line_at(in) : 0; /* errors are looked at */
}

size_t frame_run(enum frame_kind kind, struct span in, uint32_t max, uint32_t *n)
{
    size_t at = 0, one = 1;
    for (*n = 0; *n < max && at < in.n; ++*n, at += one) {
        struct span rest = span_skip(in, at);
        one = kind == FRAME_RESP ? resp_at(rest) : kind == FRAME_MC_LINE ? told_at(rest) : 0;
        if (one == 0)
            break;
    }
    return at;
}
