/*
 * The terminal, taken over for a live view and given back whatever happens.
 */
#include "ctl/screen.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#define NCURSES_WIDECHAR 1
#include <curses.h>
#include <term.h>

/* ---- taking and giving back -------------------------------------------------------------------
 */

/* What is sent to enter or leave the screen from a handler: capabilities of terminfo. */
struct sequence {
    char text[256];
    size_t n;
};

static struct termios before, during;
static struct sequence enter, leave;
static volatile sig_atomic_t modes; /* stdout's were changed from `before` to `during` */
static volatile sig_atomic_t open_now;
static volatile sig_atomic_t resized; /* and nobody was told */
static volatile sig_atomic_t lost;    /* what is shown is not what ncurses believes */
static bool keys;                     /* stdin is a terminal */
static struct sequence *keeping;      /* where keep() puts */

static int keep(int c)
{
    if (keeping->n < sizeof keeping->text)
        keeping->text[keeping->n++] = (char)c;
    return c;
}

/* names end with NULL. */
static void keep_all(struct sequence *s, const char *const names[])
{
    keeping = s;
    s->n = 0;
    for (; *names; names++) {
        const char *text = tigetstr(*names);
        if (text && text != (const char *)-1) /* it has it */
            (void)tputs(text, 1, keep);
    }
}

/* Only what may be called from a handler of signals, as all that follows up to screen_open. */
static void say(const struct sequence *s)
{
    (void)!write(STDOUT_FILENO, s->text, s->n);
}

static void take_again(void)
{
    if (modes)
        (void)tcsetattr(STDOUT_FILENO, TCSANOW, &during);
    say(&enter);
    open_now = resized = lost = 1;
}

static void give_back(void)
{
    if (!open_now)
        return;
    open_now = 0;
    say(&leave);
    if (modes)
        (void)tcsetattr(STDOUT_FILENO, TCSANOW, &before);
}

/* The signal's own doing follows when it is raised again: the status tells who ended us. */
static void end(int signo)
{
    give_back();
    (void)signal(signo, SIG_DFL);
    (void)raise(signo);
}

static void stop(int signo)
{
    int saved = errno;
    bool was_open = open_now;
    (void)signo;
    give_back();
    (void)raise(SIGSTOP);
    if (was_open)
        take_again();
    errno = saved;
}

static void resize(int signo)
{
    (void)signo;
    resized = lost = 1;
}

static void handle(int signo, void (*with)(int), int flags)
{
    struct sigaction on = {.sa_handler = with, .sa_flags = flags};
    (void)sigaction(signo, &on, NULL);
}

static void handle_all(void)
{
    static const int ends[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGSEGV,
                               SIGABRT, SIGBUS,  SIGFPE, SIGILL};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        handle(ends[i], end, 0);
    handle(SIGTSTP, stop, SA_RESTART);
    handle(SIGWINCH, resize, SA_RESTART);
}

/* ---- colours ----------------------------------------------------------------------------------
 */

static const struct {
    attr_t attributes;
    short color; /* -1: the terminal's own */
} styles[PAINT_STYLES] = {
    [PAINT_PLAIN] = {A_NORMAL, -1},       [PAINT_STRONG] = {A_BOLD, -1},
    [PAINT_FAINT] = {A_DIM, -1},          [PAINT_HEAD] = {A_REVERSE, -1},
    [PAINT_GOOD] = {A_BOLD, COLOR_GREEN}, [PAINT_WARN] = {A_BOLD, COLOR_YELLOW},
    [PAINT_BAD] = {A_BOLD, COLOR_RED},    [PAINT_LINE] = {A_NORMAL, COLOR_CYAN},
};

static bool colored;

static void begin_colors(bool wanted)
{
    colored = wanted && start_color() == OK && has_colors() && use_default_colors() == OK;
    for (short i = 0; colored && i < PAINT_STYLES; i++)
        if (styles[i].color >= 0)
            (void)init_pair((short)(i + 1), styles[i].color, -1);
}

/* ---- the screen -------------------------------------------------------------------------------
 */

static bool begin_curses(bool color)
{
    static SCREEN *screen; /* for as long as we live: ncurses cannot free it safely */
    screen = newterm(NULL, stdout, stdin);
    if (!screen)
        return false;
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)curs_set(0);
    begin_colors(color);
    (void)tcgetattr(STDOUT_FILENO, &during);
    return true;
}

bool screen_open(bool color)
{
    static const char *const enters[] = {"smcup", "civis", "clear", NULL};
    static const char *const leaves[] = {"sgr0", "op", "cnorm", "rmcup", NULL};
    sigset_t stops, old;
    int error;
    if (setupterm(NULL, STDOUT_FILENO, &error) != OK)
        return false;
    keep_all(&enter, enters);
    keep_all(&leave, leaves);
    keys = isatty(STDIN_FILENO) == 1;
    modes = tcgetattr(STDOUT_FILENO, &before) == 0;
    open_now = 1;
    /* Ctrl-Z waits until `during` is known: take_again sets it. */
    (void)sigemptyset(&stops);
    (void)sigaddset(&stops, SIGTSTP);
    (void)sigprocmask(SIG_BLOCK, &stops, &old);
    handle_all(); /* before ncurses, which leaves them alone then */
    open_now = begin_curses(color);
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    if (open_now)
        (void)atexit(screen_close);
    return open_now;
}

void screen_close(void)
{
    if (!open_now)
        return;
    (void)endwin();
    open_now = 0;
}

void screen_size(unsigned *rows, unsigned *cols)
{
    struct winsize w = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0;
    *rows = known ? w.ws_row : 24;
    *cols = known ? w.ws_col : 80;
}

bool screen_show(const struct paint *p, bool utf8)
{
    if (lost || LINES != (int)p->rows || COLS != (int)p->cols) {
        lost = 0;
        (void)resize_term((int)p->rows, (int)p->cols);
        (void)clearok(stdscr, TRUE);
    }
    for (unsigned row = 0; row < p->rows; row++) {
        for (unsigned col = 0; col < p->cols; col++) {
            const struct paint_cell *c = &p->cell[(size_t)row * p->width + col];
            wchar_t text[] = {utf8 ? c->c : (wchar_t)paint_ascii(c->c), L'\0'};
            bool paired = colored && styles[c->style].color >= 0;
            cchar_t cell;
            (void)setcchar(&cell, text, styles[c->style].attributes,
                           (short)(paired ? c->style + 1 : 0), NULL);
            /* ERR in the last corner, where it has written all the same. */
            (void)mvadd_wch((int)row, (int)col, &cell);
        }
    }
    (void)move(0, 0);
    return refresh() == OK;
}

static int read_key(void)
{
    unsigned char c;
    ssize_t n = read(STDIN_FILENO, &c, 1);
    if (n == 1)
        return c;
    return n < 0 && errno == EINTR ? -1 : SCREEN_GONE;
}

int screen_wait(int64_t ms)
{
    int64_t until = clock_mono_ms(clock_system()) + ms;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    sigset_t winch, old;
    int said = -1;
    /* Blocked between looking at the flag and waiting, or a change there would be seen late. */
    (void)sigemptyset(&winch);
    (void)sigaddset(&winch, SIGWINCH);
    (void)sigprocmask(SIG_BLOCK, &winch, &old);
    while (said < 0) {
        int64_t left = until - clock_mono_ms(clock_system());
        struct timespec t = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        if (resized)
            said = SCREEN_RESIZED;
        else if (left <= 0)
            said = SCREEN_TIME;
        else if (ppoll(&in, keys ? 1 : 0, &t, &old) > 0)
            said = read_key();
    }
    if (said == SCREEN_RESIZED)
        resized = 0;
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return said;
}
