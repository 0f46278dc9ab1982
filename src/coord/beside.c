#include "coord/beside.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as in the kernel */

/* One link further than `at`; 0: at is none. */
static int follow_one(const char *at, char out[PATH_MAX], bool *is_link)
{
    char to[PATH_MAX];
    size_t lead = 0;
    ssize_t n = readlink(at, to, sizeof to);
    *is_link = n > 0;
    if (n <= 0)
        return 0;
    const char *slash = strrchr(at, '/');
    if (to[0] != '/' && slash)
        lead = (size_t)(slash - at) + 1;
    if (lead + (size_t)n >= PATH_MAX)
        return ENAMETOOLONG;
    memmove(out, at, lead); /* at may be out */
    memcpy(out + lead, to, (size_t)n);
    out[lead + (size_t)n] = '\0';
    return 0;
}

/* Where links at the path lead, be there a file or not; "": there is none. */
static int follow(const char *path, char out[PATH_MAX])
{
    bool is_link = true;
    out[0] = '\0';
    for (unsigned i = 0; i < LINKS_MAX; i++) {
        int why = follow_one(i ? out : path, out, &is_link);
        if (why || !is_link)
            return why;
    }
    return ELOOP;
}

/* Takes note of where the path leads now. */
static int turn(struct beside *b, const char *path)
{
    char now[PATH_MAX];
    int why = follow(path, now), dir;
    if (why || strcmp(now, b->real) == 0)
        return why;
    struct sole next = {.holder = now[0] && b->sole[0].holder};
    if (now[0])
        why = sole_enter(&next, now, &dir);
    if (why) {
        sole_end(&next);
        return why;
    }
    sole_end(&b->sole[1]);
    b->sole[1] = next;
    memcpy(b->real, now, strlen(now) + 1);
    return 0;
}

static const char *name_of(const struct beside *b, const char *path, size_t i)
{
    return i == 0 ? path : b->real;
}

static size_t names(const struct beside *b)
{
    return b->real[0] ? BESIDE_NAMES : 1;
}

void beside_init(struct beside *b)
{
    *b = (struct beside){.sole = {SOLE_INIT, SOLE_INIT}, .dir = {-1, -1}};
}

enum sole_state beside_first(struct beside *b, const char *path)
{
    return sole_look(&b->sole[0], path);
}

int beside_hold(struct beside *b, const char *path)
{
    int why = turn(b, path);
    for (size_t i = 0; why == 0 && i < names(b); i++)
        why = sole_hold(&b->sole[i], name_of(b, path, i));
    return why;
}

int beside_look(struct beside *b, const char *path, struct tally_name *latest)
{
    struct tally_name one;
    int why = turn(b, path);
    *latest = TALLY_NAME_NONE;
    b->dir[1] = -1;
    for (size_t i = 0; why == 0 && i < names(b); i++) {
        why = sole_enter(&b->sole[i], name_of(b, path, i), &b->dir[i]);
        if (why == 0)
            why = tally_look(b->dir[i], name_of(b, path, i), &one);
        if (why == 0)
            tally_merge(latest, &one);
    }
    return why;
}

int beside_leave(const struct beside *b, const char *path, int64_t tick, int64_t nonce)
{
    int why = 0;
    for (size_t i = 0; why == 0 && i < names(b); i++)
        why = tally_leave(b->dir[i], name_of(b, path, i), tick, nonce);
    return why;
}

void beside_end(struct beside *b)
{
    for (size_t i = 0; i < BESIDE_NAMES; i++)
        sole_end(&b->sole[i]);
    beside_init(b);
}
