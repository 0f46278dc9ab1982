/*
 * sidflakectl: how it speaks, and reads an answer.
 */
#include "ctl/ctl.h"

#include "base/timefmt.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SAID_MAX (2 * ERR_TEXT_MAX) /* bytes of one message; longer ones are cut */

/* All messages go through here: words of a coordinator, a sidecar or a file may be among them, and
 * what does not show would speak to the terminal. */
static void put_shown(struct span text)
{
    while (text.n > 0) {
        const char *from = text.p;
        if (utf8_take_shown(&text) == '?')
            (void)fputc('?', stderr);
        else
            (void)fwrite(from, 1, (size_t)(text.p - from), stderr);
    }
}

static void tell(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

static void tell(const char *fmt, va_list ap)
{
    char text[SAID_MAX];
    (void)vsnprintf(text, sizeof text, fmt, ap);
    put_shown(span_str(text));
}

int ctl_fail(int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fputs("sidflakectl: ", stderr);
    tell(fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    return status;
}

int ctl_flush(int status)
{
    if (!ferror(stdout) && fflush(stdout) == 0)
        return status;
    return ctl_fail(CTL_BAD, "cannot write to standard output");
}

int ctl_print_json(int status, json_t *j)
{
    if (!j)
        return ctl_fail(CTL_BAD, "no memory for an answer");
    /* In ASCII: a holder's own object may have what speaks to the terminal. */
    int r = json_dumpf(j, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII);
    json_decref(j);
    if (r == 0 && putchar('\n') != EOF)
        return ctl_flush(status);
    return ctl_fail(CTL_BAD, "cannot write to standard output");
}

char *ctl_word(void)
{
    static char text[16][CTL_WORD_MAX];
    static unsigned turn;
    return text[turn++ % 16];
}

const char *ctl_time(int64_t unix_ms)
{
    return timefmt_rfc3339(ctl_word(), unix_ms);
}

const char *ctl_span(int64_t ms)
{
    static const struct {
        int64_t ms;
        const char *name, *smaller;
        int64_t smaller_ms;
    } units[] = {
        {86400000, "d", "h", 3600000}, {3600000, "h", "min", 60000}, {60000, "min", "s", 1000}};
    char *out = ctl_word();
    const char *sign = ms < 0 ? "-" : "";
    uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        uint64_t unit = (uint64_t)units[i].ms, smaller = (uint64_t)units[i].smaller_ms;
        if (v < unit)
            continue;
        (void)snprintf(out, CTL_WORD_MAX, "%s%llu %s %llu %s", sign, (unsigned long long)(v / unit),
                       units[i].name, (unsigned long long)(v % unit / smaller), units[i].smaller);
        return out;
    }
    (void)snprintf(out, CTL_WORD_MAX, "%s%llu.%03llu s", sign, (unsigned long long)(v / 1000),
                   (unsigned long long)(v % 1000));
    return out;
}

const char *ctl_duration(int64_t ms)
{
    return timefmt_duration(ctl_word(), ms * 1000);
}

const char *ctl_number(uint64_t n)
{
    char *out = ctl_word();
    char *at = out + CTL_WORD_MAX - 1;
    *at = '\0';
    for (unsigned digits = 0; digits == 0 || n > 0; digits++, n /= 10) {
        if (digits > 0 && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + n % 10);
    }
    return at;
}

char *ctl_clean(char *out, size_t cap, struct span text)
{
    size_t n = text.n < cap - 1 ? text.n : cap - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = text.p[i] >= ' ' && text.p[i] <= '~' ? text.p[i] : '?';
    out[n] = '\0';
    return out;
}

bool ctl_read_line(FILE *f, char *out, size_t cap)
{
    if (!fgets(out, (int)cap, f))
        return false;
    size_t n = strcspn(out, "\r\n");
    bool whole = out[n] != '\0' || n + 1 == cap || feof(f);
    out[n] = '\0';
    return whole;
}

int ctl_confirm(const struct ctl_args *a, const char *command, const char *question)
{
    if (a->yes)
        return CTL_OK;
    if (!isatty(STDIN_FILENO))
        return ctl_fail(CTL_USAGE, "%s: expected --yes where there is no terminal to ask on",
                        command);
    return ctl_ask(question);
}

bool ctl_read_answer(char *out, size_t cap)
{
    size_t n = 0;
    int c;
    while ((c = getchar()) != EOF && c != '\n') {
        if (n + 1 < cap)
            out[n] = (char)c;
        n++;
    }
    out[n < cap ? n : 0] = '\0';
    return n < cap && strlen(out) == n && (n > 0 || c == '\n');
}

int ctl_ask(const char *question)
{
    char answer[8];
    put_shown(span_str(question));
    (void)fputs(" [y/N] ", stderr);
    if (ctl_read_answer(answer, sizeof answer) && (answer[0] == 'y' || answer[0] == 'Y'))
        return CTL_OK;
    return ctl_fail(CTL_BAD, "nothing was changed");
}

/* ---- progress ---------------------------------------------------------------------------------
 */

#define QUIET_US    INT64_C(1000000)
#define TERMINAL_US INT64_C(100000)
#define LOG_US      INT64_C(10000000)

void ctl_progress_begin(struct ctl_progress *p, bool quiet)
{
    int64_t now = clock_mono_us(clock_system());
    *p = (struct ctl_progress){
        .began_us = now, .shown_us = now, .terminal = isatty(STDERR_FILENO) == 1, .quiet = quiet};
}

void ctl_progress_show(struct ctl_progress *p, const char *fmt, ...)
{
    int64_t now = clock_mono_us(clock_system());
    va_list ap;
    if (p->quiet || now - p->began_us < QUIET_US ||
        (p->terminal && p->drawn && now - p->shown_us < TERMINAL_US) ||
        (!p->terminal && now - p->shown_us < LOG_US))
        return;
    p->shown_us = now;
    p->drawn = true;
    (void)fputs(p->terminal ? "\r\033[K" : "sidflakectl: ", stderr);
    va_start(ap, fmt);
    tell(fmt, ap);
    va_end(ap);
    (void)fputs(p->terminal ? "" : "\n", stderr);
    (void)fflush(stderr);
}

void ctl_progress_end(struct ctl_progress *p)
{
    if (p->terminal && p->drawn)
        (void)fputs("\r\033[K", stderr);
    p->drawn = false;
}
