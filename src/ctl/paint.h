/*
 * A page of text cells, painted by a view and then shown: on a terminal by screen.h, elsewhere as
 * plain lines.
 *
 * Invariants
 *   - What does not fit is cut, and text ends in an ellipsis then; nothing is ever written outside.
 *   - A cell is one column: no wide, combining or control characters. Text of somebody else's comes
 *     through ctl_clean.
 *   - Styles are names of meanings; whatever one says stands in words as well.
 */
#ifndef SIDFLAKE_CTL_PAINT_H
#define SIDFLAKE_CTL_PAINT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum paint_style {
    PAINT_PLAIN,
    PAINT_STRONG,
    PAINT_FAINT,
    PAINT_HEAD, /* the bar on top */
    PAINT_GOOD,
    PAINT_WARN,
    PAINT_BAD,
    PAINT_LINE, /* charts */
    PAINT_STYLES
};

struct paint_cell {
    uint16_t c; /* a character of the Basic Multilingual Plane */
    uint8_t style;
};

struct paint {
    struct paint_cell *cell; /* rows * width */
    unsigned rows, cols;
    unsigned width;    /* columns that a line has: cols, or more where nothing is to be cut */
    unsigned row, col; /* where the next text goes */
};

#define PAINT_ROWS_MAX 500u
#define PAINT_COLS_MAX 500u
#define PAINT_LONG     2048u /* columns of a long text */

/* Blank, of that size or the nearest allowed one. false: no memory; then it has no cells.
 * long_text: what is laid out for cols may go on beyond them, where nobody sees an edge: a command
 * that is cut is none. */
bool paint_size(struct paint *p, unsigned rows, unsigned cols, bool long_text);
void paint_free(struct paint *p);

/* Blanks it and begins at the top. */
void paint_clear(struct paint *p);

void paint_at(struct paint *p, unsigned row, unsigned col);
/* Begins the next line. */
void paint_next(struct paint *p);
/* Goes on at col, and at least one blank further on. */
void paint_tab(struct paint *p, unsigned col);

/* UTF-8; bytes that are none become '?', and so does what is no character of a cell. */
void paint_put(struct paint *p, enum paint_style s, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* So that it ends before col end. */
void paint_right(struct paint *p, unsigned end, enum paint_style s, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

/* The whole line in that style. */
void paint_line(struct paint *p, unsigned row, enum paint_style s);

/* width columns of which the fraction is filled; not a number counts as 0. */
void paint_bar(struct paint *p, enum paint_style s, unsigned width, double fraction);

/* The latest of n values, oldest first, against the largest of them; one column each. Gaps where a
 * value is not a number. */
void paint_chart(struct paint *p, enum paint_style s, unsigned width, const double *v, unsigned n);

/* utf8: else drawn characters are replaced by those of ASCII. */
void paint_plain(const struct paint *p, bool utf8, FILE *out);

/* What stands for a character where there is no UTF-8. */
char paint_ascii(uint16_t c);

#endif
