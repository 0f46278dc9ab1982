/*
 * A page of text cells.
 */
#include "ctl/paint.h"

#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

bool paint_size(struct paint *p, unsigned rows, unsigned cols, bool long_text)
{
    rows = rows > PAINT_ROWS_MAX ? PAINT_ROWS_MAX : rows < 1 ? 1 : rows;
    cols = cols > PAINT_COLS_MAX ? PAINT_COLS_MAX : cols < 1 ? 1 : cols;
    unsigned width = long_text ? PAINT_LONG : cols;
    struct paint_cell *cell = calloc((size_t)rows * width, sizeof *cell);
    paint_free(p);
    if (!cell)
        return false;
    *p = (struct paint){.cell = cell, .rows = rows, .cols = cols, .width = width};
    paint_clear(p);
    return true;
}

void paint_free(struct paint *p)
{
    free(p->cell);
    *p = (struct paint){0};
}

void paint_clear(struct paint *p)
{
    for (size_t i = 0; i < (size_t)p->rows * p->width; i++)
        p->cell[i] = (struct paint_cell){' ', PAINT_PLAIN};
    p->row = p->col = 0;
}

void paint_at(struct paint *p, unsigned row, unsigned col)
{
    p->row = row;
    p->col = col;
}

void paint_next(struct paint *p)
{
    p->row++;
    p->col = 0;
}

void paint_tab(struct paint *p, unsigned col)
{
    p->col = p->col < col ? col : p->col + 1;
}

static void put_cell(struct paint *p, enum paint_style s, uint16_t c)
{
    if (p->row < p->rows && p->col < p->width)
        p->cell[(size_t)p->row * p->width + p->col] = (struct paint_cell){c, (uint8_t)s};
    p->col++;
}

/* The first character of those that cells have. */
static uint16_t take(struct span *text)
{
    uint32_t c = utf8_take_shown(text);
    return (uint16_t)(c <= UINT16_MAX ? c : '?');
}

#define ELLIPSIS 0x2026

static unsigned put_text(struct paint *p, enum paint_style s, const char *text, bool draw)
{
    struct span rest = span_str(text);
    unsigned n = 0;
    for (; rest.n > 0; n++) {
        uint16_t c = take(&rest);
        if (draw)
            put_cell(p, s, c);
    }
    if (draw && p->col > p->width && p->row < p->rows)
        p->cell[(size_t)p->row * p->width + p->width - 1].c = ELLIPSIS;
    return n;
}

#define TEXT_MAX PAINT_LONG

void paint_put(struct paint *p, enum paint_style s, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)put_text(p, s, text, true);
}

void paint_right(struct paint *p, unsigned end, enum paint_style s, const char *fmt, ...)
{
    char text[TEXT_MAX];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    unsigned n = put_text(p, s, text, false);
    p->col = end > n ? end - n : 0;
    (void)put_text(p, s, text, true);
}

void paint_line(struct paint *p, unsigned row, enum paint_style s)
{
    for (unsigned col = 0; row < p->rows && col < p->cols; col++)
        p->cell[(size_t)row * p->width + col].style = (uint8_t)s;
}

/* ---- drawings ---------------------------------------------------------------------------------
 */

#define FULL  0x2588 /* a full block; 0x2589 is of seven eighths, …, 0x258f of one */
#define LOW   0x2581 /* an eighth of the height; 0x2588 is all of it */
#define DOT   0x00b7
#define BLANK ' '

void paint_bar(struct paint *p, enum paint_style s, unsigned width, double fraction)
{
    double f = fraction > 1 ? 1 : fraction > 0 ? fraction : 0;
    unsigned eighths = (unsigned)(f * width * 8 + 0.5);
    if (f > 0 && eighths == 0)
        eighths = 1; /* little is not nothing */
    for (unsigned i = 0; i < width; i++) {
        unsigned here = eighths > 8 * i ? eighths - 8 * i : 0;
        if (here == 0)
            put_cell(p, PAINT_FAINT, DOT);
        else
            put_cell(p, s, (uint16_t)(here >= 8 ? FULL : FULL + 8 - here));
    }
}

void paint_chart(struct paint *p, enum paint_style s, unsigned width, const double *v, unsigned n)
{
    double most = 0;
    unsigned shown = n < width ? n : width;
    for (unsigned i = n - shown; i < n; i++)
        most = v[i] > most ? v[i] : most;
    for (unsigned i = shown; i < width; i++)
        put_cell(p, s, BLANK);
    for (unsigned i = n - shown; i < n; i++) {
        double f = most > 0 && v[i] > 0 ? v[i] / most : 0;
        bool known = !isnan(v[i]);
        put_cell(p, known && f == 0 ? PAINT_FAINT : s,
                 (uint16_t)(known ? LOW + (unsigned)(f * 7 + 0.5) : BLANK));
    }
}

/* ---- showing ----------------------------------------------------------------------------------
 */

char paint_ascii(uint16_t c)
{
    static const char heights[] = "_.-=+*##";
    if (c < 0x80)
        return (char)c;
    if (c >= LOW && c < FULL)
        return heights[c - LOW];
    if (c >= FULL && c <= FULL + 7)
        return '#';
    return c == 0xb5 ? 'u' : c == DOT ? '.' : c == ELLIPSIS ? '~' : c == 0x2265 ? '>' : '-';
}

static void emit(uint16_t c, bool utf8, FILE *out)
{
    if (!utf8 || c < 0x80) {
        (void)putc(paint_ascii(c), out);
    } else if (c < 0x800) {
        (void)putc(0xc0 | c >> 6, out);
        (void)putc(0x80 | (c & 0x3f), out);
    } else {
        (void)putc(0xe0 | c >> 12, out);
        (void)putc(0x80 | (c >> 6 & 0x3f), out);
        (void)putc(0x80 | (c & 0x3f), out);
    }
}

/* Columns up to the last that is not blank. */
static unsigned used_cols(const struct paint *p, unsigned row)
{
    unsigned n = p->width;
    const struct paint_cell *c = p->cell + (size_t)row * p->width;
    while (n > 0 && c[n - 1].c == BLANK)
        n--;
    return n;
}

void paint_plain(const struct paint *p, bool utf8, FILE *out)
{
    unsigned rows = p->rows;
    while (rows > 0 && used_cols(p, rows - 1) == 0)
        rows--;
    for (unsigned row = 0; row < rows; row++) {
        unsigned cols = used_cols(p, row);
        for (unsigned col = 0; col < cols; col++)
            emit(p->cell[(size_t)row * p->width + col].c, utf8, out);
        (void)putc('\n', out);
    }
}
