/*
 * A bounded buffer that is written to its end and never grows by itself.
 *
 *      p            p+n                p+cap
 *      |  written   |  room            |
 *
 * Invariants
 *   - n <= cap, always.
 *   - Failure is sticky: a put that does not fit writes nothing and sets failed; so does every
 *     later one. The writer checks once, at the end. buf_truncate below the point of failure is
 *     the only way back.
 *   - The memory belongs to whoever called buf_init.
 */
#ifndef SIDFLAKE_BASE_BUF_H
#define SIDFLAKE_BASE_BUF_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

struct buf {
    char *p;
    size_t n;   /* bytes written */
    size_t cap; /* bytes in all */
    bool failed;
};

static inline void buf_init(struct buf *b, void *mem, size_t cap)
{
    *b = (struct buf){mem, 0, cap, false};
}

static inline struct span buf_span(const struct buf *b)
{
    return (struct span){b->p, b->n};
}

/* n bytes to be written by the caller, or NULL (and failed) where they do not fit. The caller says
 * with buf_took how many of them it has filled. */
static inline char *buf_room(struct buf *b, size_t n)
{
    if (b->failed || b->cap - b->n < n) {
        b->failed = true;
        return NULL;
    }
    return b->p + b->n;
}

static inline void buf_took(struct buf *b, size_t n)
{
    b->n += n;
}

/* Forgets everything after the first n bytes, and a failure with it. */
static inline void buf_truncate(struct buf *b, size_t n)
{
    if (n <= b->n) {
        b->n = n;
        b->failed = false;
    }
}

static inline void buf_put(struct buf *b, const void *p, size_t n)
{
    char *to = n > 0 ? buf_room(b, n) : NULL; /* nothing always fits, even where p is NULL */
    if (to) {
        memcpy(to, p, n);
        b->n += n;
    }
}

static inline void buf_put_span(struct buf *b, struct span s)
{
    buf_put(b, s.p, s.n);
}

static inline void buf_put_char(struct buf *b, char c)
{
    buf_put(b, &c, 1);
}

#define BUF_PUT_LIT(b, literal) buf_put((b), "" literal, sizeof(literal) - 1)

void buf_put_str(struct buf *b, const char *s);
void buf_put_u64(struct buf *b, uint64_t v);
void buf_put_i64(struct buf *b, int64_t v);
/* v counts units of 10^-decimals (0..9): 1500 with 3 decimals is written 1.5. */
void buf_put_decimal(struct buf *b, int64_t v, unsigned decimals);
void buf_put_word(struct buf *b, const char *word); /* quoted, where a shell would split it */
/* What follows a command of ours: " NAME MORE", or " MORE -- NAME" where the name would be taken
 * for an option. more: "", or options, with a space before each. */
void buf_put_operand(struct buf *b, const char *name, const char *more);

/* For cold paths only: the hot ones use the puts above. */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
