/*
 * sidflakectl passwd: a line for the users file, and what other commands need to log in.
 */
#include "ctl/ctl.h"

#include "auth/users.h"
#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define TEXT_MAX 2048

/* Without showing what is typed. */
static bool ask(const char *prompt, char *out, size_t cap)
{
    struct termios before, quiet;
    bool terminal = tcgetattr(STDIN_FILENO, &before) == 0;
    if (!terminal)
        return ctl_read_line(stdin, out, cap);
    quiet = before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    (void)fputs(prompt, stderr);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
    bool ok = ctl_read_line(stdin, out, cap);
    (void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
    (void)fputc('\n', stderr);
    return ok;
}

/* Twice on a terminal, where a slip is not seen. */
static int read_new(char *out, size_t cap)
{
    char again[SECRET_PASSWORD_MAX + 3];
    if (!ask("Password: ", out, cap) || !out[0] || strlen(out) > SECRET_PASSWORD_MAX)
        return ctl_fail(CTL_USAGE, "passwd: expected a password of 1..%d bytes",
                        SECRET_PASSWORD_MAX);
    if (!isatty(STDIN_FILENO))
        return CTL_OK;
    bool same = ask("Again: ", again, sizeof again) && strcmp(out, again) == 0;
    explicit_bzero(again, sizeof again);
    return same ? CTL_OK : ctl_fail(CTL_BAD, "passwd: the two are not the same");
}

/* The reader of users files judges the line: what it refuses is not printed. */
static int put_user(const struct ctl_args *a, const char *hash)
{
    char line[TEXT_MAX];
    struct users users;
    struct err e;
    if (strchr(a->rest[0], ':') ||
        (a->names && users_field_end(span_str(a->names)) < strlen(a->names)) ||
        (a->upstream && strchr(a->upstream, ':')))
        return ctl_fail(CTL_USAGE, "passwd: expected no ':' in the name and in --upstream, and in "
                                   "--names none with a word and '=' behind it, where it would "
                                   "begin another field");
    int n = snprintf(line, sizeof line, "%s:%s%s%s%s%s%s%s", a->rest[0], hash,
                     a->names ? ":names=" : "", a->names ? a->names : "",
                     a->upstream ? ":upstream=" : "", a->upstream ? a->upstream : "",
                     a->keys ? ":keys=" : "", a->keys ? a->keys : "");
    if (n < 0 || (size_t)n >= sizeof line)
        return ctl_fail(CTL_USAGE, "passwd: expected at most %zu bytes in all", sizeof line - 1);
    if (users_read(&users, "passwd", span_str(line), &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    bool one = users.n == 1;
    users_clear(&users);
    if (!one)
        return ctl_fail(CTL_USAGE, "passwd: expected a name that does not begin with '#'");
    return puts(line) < 0 || fflush(stdout) ? CTL_BAD : CTL_OK;
}

int ctl_passwd(struct ctl_args *a)
{
    char password[SECRET_PASSWORD_MAX + 3], hash[SECRET_HASH_MAX + 1];
    struct err e;
    int status = read_new(password, sizeof password);
    if (status == CTL_OK && secret_make(hash, span_str(password), rng_system(), &e))
        status = ctl_fail(CTL_BAD, "%s", e.text);
    explicit_bzero(password, sizeof password);
    return status == CTL_OK ? put_user(a, hash) : status;
}

int ctl_password(const struct ctl_args *a, char out[PASSFILE_MAX + 1])
{
    struct err e;
    out[0] = '\0';
    if (a->password_file && passfile_read(a->password_file, "--password-file", true, out, &e))
        return ctl_fail(CTL_USAGE, "%s", e.text);
    return CTL_OK;
}
