/*
 * The terminal, taken over for a live view by ncurses and given back whatever happens.
 *
 * Invariants
 *   - Between screen_open and screen_close stdout is the alternate screen without a cursor, and
 *     stdin, where it is a terminal, gives keys as they are pressed.
 *   - A signal that ends the program gives the terminal back first, also in the middle of a call
 *     that blocks; Ctrl-Z does so for the time of the stop. ncurses may not be called from a
 *     handler: what the terminal is told there was asked of terminfo before.
 *
 * Sources: ncurses(3NCURSES), terminfo(5), termios(3).
 */
#ifndef SIDFLAKE_CTL_SCREEN_H
#define SIDFLAKE_CTL_SCREEN_H

#include "ctl/paint.h"

/* color: where the terminal has colours; else bold, faint and reversed text only. false: terminfo
 * knows no such terminal, and nothing is changed. */
bool screen_open(bool color);
void screen_close(void);

/* Rows and columns of the terminal on stdout; 24 and 80 where it does not say. */
void screen_size(unsigned *rows, unsigned *cols);

/* Shows a page of the terminal's size. utf8: else drawn characters are replaced by those of ASCII.
 * false: the terminal is gone. */
bool screen_show(const struct paint *p, bool utf8);

/* What screen_wait says besides a key. */
enum {
    SCREEN_TIME = 0,      /* the time is up */
    SCREEN_RESIZED = 256, /* draw all again */
    SCREEN_GONE           /* stdin was a terminal, and is at its end */
};

/* Waits for a key, a change of size, or ms to pass. */
int screen_wait(int64_t ms);

#endif
