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

static struct termios before;
static volatile sig_atomic_t keys; /* stdin is a terminal, and `before` is how it was */
static volatile sig_atomic_t open_now, resized;

static void say(const char *text)
{
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

static void take(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    say("\033[?1049h\033[?25l\033[2J");
    open_now = 1;
}

/* Only what may be called from a handler of signals. */
static void give_back(void)
{
    if (!open_now)
        return;
    open_now = 0;
    say("\033[0m\033[?25h\033[?1049l");
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
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
    (void)signo;
    give_back();
    (void)raise(SIGSTOP);
    take();
    resized = 1;
    errno = saved;
}

static void resize(int signo)
{
    (void)signo;
    resized = 1;
}

static void handle(int signo, void (*with)(int), int flags)
{
    struct sigaction on = {.sa_handler = with, .sa_flags = flags};
    (void)sigaction(signo, &on, NULL);
}

void screen_open(void)
{
    static const int ends[] = {SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGSEGV,
                               SIGABRT, SIGBUS,  SIGFPE, SIGILL};
    keys = tcgetattr(STDIN_FILENO, &before) == 0;
    take();
    (void)atexit(screen_close);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        handle(ends[i], end, 0);
    handle(SIGTSTP, stop, SA_RESTART);
    handle(SIGWINCH, resize, SA_RESTART);
}

void screen_close(void)
{
    give_back();
}

void screen_size(unsigned *rows, unsigned *cols)
{
    struct winsize w = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row > 0 && w.ws_col > 0;
    *rows = known ? w.ws_row : 24;
    *cols = known ? w.ws_col : 80;
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
    resized = 0;
    (void)sigprocmask(SIG_SETMASK, &old, NULL);
    return said;
}
