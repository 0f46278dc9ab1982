#include "auth/users.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A line on its way in. */
struct line {
    const char *file;
    size_t number;
    const char *begin;
    struct err *e;
};

static enum err_code wrong(const struct line *l, const char *at, enum err_code code,
                           const char *expected, const char *found)
{
    return err_set(l->e, code, "%s:%zu:%zu: expected %s, found %s", l->file, l->number,
                   (size_t)(at - l->begin) + 1, expected, found);
}

static bool is_plain(struct span s, const char *without)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '!' || s.p[i] > '~' || strchr(without, s.p[i]))
            return false;
    return true;
}

/* ---- rights -----------------------------------------------------------------------------------
 */

static enum err_code read_globs(const struct line *l, struct span rest, struct span *out)
{
    *out = rest;
    while (rest.p) {
        struct span glob = span_cut(&rest, ',');
        if (glob.n == 0 || glob.n > USERS_GLOB_MAX || !is_plain(glob, ""))
            return wrong(l, glob.p, ERR_INVALID,
                         "a pattern of 1..256 printable bytes without spaces",
                         glob.n ? "something else" : "none");
    }
    return ERR_OK;
}

static enum err_code read_names(const struct line *l, struct user *u, struct span value)
{
    return read_globs(l, value, &u->names);
}

static bool is_field(struct span s)
{
    return span_starts(s, SPAN("names=")) || span_starts(s, SPAN("upstream=")) ||
           span_starts(s, SPAN("keys="));
}

/* They may hold ':', as most keys do: so they are the rest of the line. */
static enum err_code read_keys(const struct line *l, struct user *u, struct span value)
{
    for (size_t i = 0; i < value.n; i++)
        if (is_field(span_skip(value, i + 1)) && value.p[i] == ':')
            return wrong(l, value.p + i + 1, ERR_INVALID, "keys= at the end of the line",
                         "another field behind it");
    return read_globs(l, value, &u->keys);
}

static enum err_code read_upstream(const struct line *l, struct user *u, struct span value)
{
    static const char *const words[] = {
        [USER_NONE] = "none", [USER_READ] = "read", [USER_ALL] = "all"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (span_eq(value, span_str(words[i]))) {
            u->upstream = (enum user_upstream)i;
            return ERR_OK;
        }
    }
    return wrong(l, value.p, ERR_INVALID, "none, read or all", value.n ? "something else" : "none");
}

static const struct {
    const char *name;
    enum err_code (*read)(const struct line *l, struct user *u, struct span value);
} fields[] = {{"names=", read_names}, {"upstream=", read_upstream}, {"keys=", read_keys}};

#define FIELDS (sizeof fields / sizeof *fields)

/* WORD=, be it no field that there is. */
static bool is_word(struct span s)
{
    size_t i = 0;
    while (i < s.n && s.p[i] >= 'a' && s.p[i] <= 'z')
        i++;
    return i < s.n && s.p[i] == '=';
}

size_t users_field_end(struct span line)
{
    size_t i = 0;
    while (i < line.n && !(line.p[i] == ':' && is_word(span_skip(line, i + 1))))
        i++;
    return i;
}

static struct span cut_field(struct span *rest)
{
    struct span field = span_of(rest->p, users_field_end(*rest));
    *rest = field.n < rest->n ? span_skip(*rest, field.n + 1) : span_of(NULL, 0);
    return field;
}

/* What follows the hash. */
static enum err_code read_rights(const struct line *l, struct user *u, struct span rest)
{
    bool seen[FIELDS] = {false};
    while (rest.p) {
        struct span field = rest;
        size_t i = 0;
        while (i < FIELDS && !span_starts(rest, span_str(fields[i].name)))
            i++;
        if (i < FIELDS && fields[i].read == read_keys)
            rest = span_of(NULL, 0);
        else
            field = cut_field(&rest);
        if (i == FIELDS)
            return wrong(l, field.p, ERR_INVALID, "names=GLOB,..., upstream=WORD or keys=GLOB,...",
                         "another field");
        if (seen[i])
            return wrong(l, field.p, ERR_INVALID, "each field once", "it again");
        seen[i] = true;
        enum err_code r = fields[i].read(l, u, span_skip(field, strlen(fields[i].name)));
        if (r)
            return r;
    }
    if (u->keys.p && u->upstream == USER_NONE)
        return wrong(l, u->keys.p, ERR_INVALID,
                     "upstream=read or upstream=all beside keys=", "neither");
    return ERR_OK;
}

/* ---- lines ------------------------------------------------------------------------------------
 */

static enum err_code read_user(const struct line *l, struct users *all, struct span text)
{
    struct user u = {.names = {NULL, 0}};
    struct span name = span_cut(&text, ':'), terms = text, hash = span_cut(&text, ':');
    if (name.n == 0 || name.n > USERS_NAME_MAX || !is_plain(name, ":"))
        return wrong(l, l->begin, ERR_INVALID, "a name of 1..64 printable bytes without spaces",
                     name.n ? "something else" : "none");
    if (!hash.p)
        return wrong(l, name.p + name.n, ERR_INVALID, "NAME:HASH", "no ':'");
    if (!secret_well_formed(hash))
        return wrong(l, hash.p, ERR_INVALID, "a hash, " SECRET_FORMS, "something else");
    if (users_find(all, name))
        return wrong(l, l->begin, ERR_INVALID, "each name once", "it again");
    enum err_code r = read_rights(l, &u, text);
    if (r)
        return r;
    ((char *)(uintptr_t)name.p)[name.n] = '\0'; /* where ':', or the line's end, was */
    ((char *)(uintptr_t)hash.p)[hash.n] = '\0';
    u.name = name.p;
    u.hash = hash.p;
    u.terms = terms;
    all->user[all->n++] = u;
    return ERR_OK;
}

static struct span trimmed(struct span s)
{
    while (s.n > 0 && (s.p[s.n - 1] == '\r' || s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static enum err_code read_lines(struct users *u, struct line l, struct span rest)
{
    enum err_code r = ERR_OK;
    while (rest.p && !r) {
        struct span text = trimmed(span_cut(&rest, '\n'));
        l.number++;
        l.begin = text.p;
        if (text.n == 0 || text.p[0] == '#')
            continue;
        if (u->n == USERS_MAX)
            return wrong(&l, l.begin, ERR_RANGE, "at most 1024 users", "more");
        r = read_user(&l, u, text);
    }
    return r;
}

enum err_code users_read(struct users *u, const char *name, struct span text, struct err *e)
{
    *u = (struct users){.mem = malloc(text.n + 1), .user = calloc(USERS_MAX, sizeof *u->user)};
    if (!u->mem || !u->user) {
        users_clear(u);
        return err_set(e, ERR_NOMEM, "no memory for the users of %s", name);
    }
    if (text.n)
        memcpy(u->mem, text.p, text.n);
    u->mem[text.n] = '\0';
    enum err_code r = read_lines(u, (struct line){.file = name, .e = e}, span_of(u->mem, text.n));
    if (r) {
        users_clear(u);
        return r;
    }
    struct user *fit = realloc(u->user, (u->n + !u->n) * sizeof *fit);
    if (fit)
        u->user = fit;
    return ERR_OK;
}

/* A line that was cut may grant more than the whole one, and be as well-formed. */
static enum err_code check_whole(const char *path, const char *mem, size_t n, struct err *e)
{
    if (n == 0 || mem[n - 1] == '\n')
        return ERR_OK;
    return err_set(e, ERR_INVALID,
                   "%s: expected a line end at the end, found none: the file may have been cut",
                   path);
}

static enum err_code load_from(struct users *u, const char *path, char *mem, struct err *e)
{
    size_t n = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    enum err_code r;
    if (fd < 0 || file_read(fd, mem, USERS_FILE_MAX + 1, &n))
        r = err_errno(e, errno, "%s: expected a readable users file, found", path);
    else if (file_is_pipe(fd)) /* empty as long as nobody writes: all would be sent away */
        r = err_set(e, ERR_INVALID, "%s: expected a users file, found a pipe", path);
    else if (n > USERS_FILE_MAX)
        r = err_set(e, ERR_RANGE, "%s: expected at most %u bytes, found more", path,
                    USERS_FILE_MAX);
    else if (!(r = file_check_guarded(fd, path, e)) && !(r = check_whole(path, mem, n, e)))
        r = users_read(u, path, span_of(mem, n), e);
    if (fd >= 0)
        (void)close(fd);
    explicit_bzero(mem, n);
    return r;
}

enum err_code users_load(struct users *u, const char *path, struct err *e)
{
    *u = (struct users){.n = 0};
    if (!path[0])
        return ERR_OK;
    char *mem = malloc(USERS_FILE_MAX + 1);
    if (!mem)
        return err_set(e, ERR_NOMEM, "no memory to read %s", path);
    enum err_code r = load_from(u, path, mem, e);
    free(mem);
    return r;
}

void users_clear(struct users *u)
{
    free(u->user);
    free(u->mem);
    *u = (struct users){.n = 0};
}

struct user *users_find(const struct users *u, struct span name)
{
    for (size_t i = 0; i < u->n; i++)
        if (span_eq(span_str(u->user[i].name), name))
            return &u->user[i];
    return NULL;
}

/* ---- what a user may, then and now ------------------------------------------------------------
 */

static bool has_glob(struct span globs, struct span glob)
{
    while (globs.p)
        if (span_eq(span_cut(&globs, ','), glob))
            return true;
    return false;
}

/* Every pattern of old is among those of now. NULL patterns: any. */
static bool globs_keep(struct span old, struct span now)
{
    if (!now.p)
        return true;
    if (!old.p)
        return false;
    while (old.p)
        if (!has_glob(now, span_cut(&old, ',')))
            return false;
    return true;
}

bool users_keep(struct span terms, const struct user *u)
{
    struct err e;
    struct user old = {.names = {NULL, 0}};
    struct span hash = span_cut(&terms, '\0');
    const struct line l = {.file = "", .begin = hash.p, .e = &e};
    return span_eq(hash, span_str(u->hash)) && !read_rights(&l, &old, terms) &&
           globs_keep(old.names, u->names) && old.upstream <= u->upstream &&
           (old.upstream == USER_NONE || globs_keep(old.keys, u->keys));
}
