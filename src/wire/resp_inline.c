#include "wire/resp_inline.h"

#include "base/hex.h"

#include <stdbool.h>

/* isspace() of the C locale: between words. */
static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Redis ends a word at fewer bytes than it skips between words. */
static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Writes what the escape at s (backslash and at least one byte) stands for; returns its length. */
static size_t unescape(struct span s, struct buf *mem)
{
    static const char from[] = "nrtba", to[] = "\n\r\t\b\a";
    if (s.n >= 4 && s.p[1] == 'x' && hex_digit(s.p[2]) >= 0 && hex_digit(s.p[3]) >= 0) {
        buf_put_char(mem, (char)(hex_digit(s.p[2]) * 16 + hex_digit(s.p[3])));
        return 4;
    }
    const char *known = memchr(from, s.p[1], sizeof from - 1);
    buf_put_char(mem, known ? to[known - from] : s.p[1]);
    return 2;
}

/* Copies the quoted text that *line begins with; false if it does not end as it must. */
static bool unquote(struct span *line, struct buf *mem)
{
    char quote = *line->p;
    struct span s = span_skip(*line, 1);
    while (s.n > 0 && *s.p != quote) {
        size_t n = 1;
        if (*s.p == '\\' && s.n > 1 && (quote == '"' || s.p[1] == '\''))
            n = unescape(s, mem);
        else
            buf_put_char(mem, *s.p);
        s = span_skip(s, n);
    }
    if (s.n == 0)
        return false;
    *line = span_skip(s, 1);
    return line->n == 0 || is_space(*line->p);
}

/* A word with a quote in it; the n bytes before that are plain. */
static enum resp_word copy_word(struct span *line, size_t n, struct buf *mem, struct span *word)
{
    size_t start = mem->n;
    buf_put(mem, line->p, n);
    *line = span_of(line->p + n, line->n - n);
    if (!unquote(line, mem))
        return RESP_WORD_UNBALANCED;
    if (mem->failed)
        return RESP_WORD_TOO_LONG;
    *word = span_of(mem->p + start, mem->n - start);
    return RESP_WORD_OK;
}

enum resp_word resp_inline_word(struct span *line, struct buf *mem, struct span *word)
{
    size_t n = 0;
    while (line->n > 0 && is_space(*line->p))
        *line = span_skip(*line, 1);
    if (line->n == 0)
        return RESP_WORD_END;
    while (n < line->n && !ends_word(line->p[n]) && line->p[n] != '"' && line->p[n] != '\'')
        n++;
    if (n < line->n && !ends_word(line->p[n]))
        return copy_word(line, n, mem, word);
    *word = span_of(line->p, n);
    *line = span_skip(*line, n);
    return RESP_WORD_OK;
}
