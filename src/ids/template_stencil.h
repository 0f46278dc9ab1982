/*
 * The text of a number, from which those of its hundred follow: they differ in two digits, and in
 * what is checked of these.
 *
 *     INV-20261122-0000004 17 6
 *                          |  '- check, over all before
 *                          '- two
 *
 * Invariants
 *   - What it writes is what template_write does.
 *   - It is of one template and one period. Nothing in it is the caller's, of chance or of the
 *     time, or another base's: templates with such parts have none.
 */
#ifndef SIDFLAKE_IDS_TEMPLATE_STENCIL_H
#define SIDFLAKE_IDS_TEMPLATE_STENCIL_H

#include "ids/template.h"

#include <string.h>

#define TEMPLATE_STENCIL_MAX 48 /* bytes; longer texts have none */

/* Zeroed memory is of no template. */
struct template_stencil {
    const struct template *of;
    char period[TEMPLATE_PERIOD_MAX]; /* label, and zeros behind it */
    uint8_t n, two;
    uint8_t check_at;            /* 0: there is none */
    uint8_t check_from, check_n; /* what it is over, but for what state has */
    struct check_digit check;
    uint64_t state;
    int64_t first; /* of the hundred */
    char text[TEMPLATE_STENCIL_MAX];
};

/* text is what t writes of v, whose period is its label with zeros behind it, up to
 * TEMPLATE_PERIOD_MAX bytes. Where there can be none, *s is as it was. */
void template_stencil_make(struct template_stencil *s, const struct template *t,
                           const struct template_values *v, struct span text);

/* Writes to out, which has room for TEMPLATE_STENCIL_MAX; returns how many bytes it is, 0: that
 * number's text can't be had by it. */
static inline size_t template_stencil_put(const struct template_stencil *s,
                                          const struct template *t,
                                          const char period[TEMPLATE_PERIOD_MAX], int64_t number,
                                          char *out)
{
    uint64_t last = (uint64_t)number - (uint64_t)s->first;
    if (s->of != t || last >= 100 || memcmp(s->period, period, TEMPLATE_PERIOD_MAX) != 0)
        return 0;
    memcpy(out, s->text, TEMPLATE_STENCIL_MAX); /* all: a copy of n would be a call */
    out[s->two] = (char)('0' + last / 10);
    out[s->two + 1] = (char)('0' + last % 10);
    if (s->check_at)
        check_digit_end(&s->check, s->state, span_of(out + s->check_from, s->check_n),
                        out + s->check_at);
    return s->n;
}

#endif
