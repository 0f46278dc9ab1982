#include "coord/tally.h"

#include "base/dec.h"
#include "base/int64.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DIGITS_MAX   15 /* of a tick: more are none of ours */
#define NONCE_DIGITS 16

/* Older than the tally's is the first page, by the distance, since the count begins anew; or the
 * one with the rest of what its transaction wrote. */
static bool is_mixed(const struct tally *t, const struct tally_now *now)
{
    if (t->tick > 0 && !t->inode[0])
        return true;
    return strcmp(now->inode, t->inode) == 0 && (int32_t)(now->changes - (uint32_t)t->changes) < 0;
}

void tally_next(struct tally *t, int64_t known, const struct tally_now *now)
{
    bool old = now->lost || known > t->tick || is_mixed(t, now);
    bool elsewhere = *now->boot && strcmp(now->boot, t->boot) == 0 && now->device != t->device;
    t->tick = max64(known, t->tick) + 1;
    if (old || elsewhere)
        t->turn = t->tick;
    t->device = now->device;
    (void)snprintf(t->boot, sizeof t->boot, "%s", now->boot);
    t->nonce = now->nonce;
    t->changes = (int64_t)now->changes + 1;
    (void)snprintf(t->inode, sizeof t->inode, "%s", now->inode);
}

static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* false: it is no name beside the file. */
static bool parse(const char *name, const char *path, struct tally_name *out)
{
    char lead[NAME_MAX + 16];
    uint64_t tick, nonce = 0;
    int n = snprintf(lead, sizeof lead, ".%s-tally.", base(path));
    if (n < 0 || (size_t)n >= sizeof lead || strncmp(name, lead, (size_t)n) != 0)
        return false;
    struct span rest = span_str(name + n), digits = span_cut(&rest, '.');
    bool good = digits.n <= DIGITS_MAX && dec_u64(digits, &tick) &&
                (!rest.p || (rest.n <= NONCE_DIGITS && dec_u64(rest, &nonce)));
    if (good)
        *out = (struct tally_name){.tick = (int64_t)tick, .nonce = (int64_t)nonce};
    return good;
}

typedef void on_name(int dir, const char *name, const struct tally_name *n, void *arg);

static int walk(int dir, const char *path, on_name *on, void *arg)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int why = errno;
        if (fd >= 0)
            (void)close(fd);
        return why;
    }
    const struct dirent *e;
    errno = 0;
    while ((e = readdir(d)) != NULL) {
        struct tally_name n;
        if (parse(e->d_name, path, &n))
            on(dir, e->d_name, &n, arg);
        errno = 0;
    }
    int why = errno;
    (void)closedir(d);
    return why;
}

void tally_merge(struct tally_name *latest, const struct tally_name *other)
{
    if (other->tick > latest->tick)
        *latest = *other;
    if (other->tick < latest->tick)
        return;
    latest->torn |= other->torn || (latest->nonce && other->nonce && latest->nonce != other->nonce);
    latest->nonce = latest->nonce ? latest->nonce : other->nonce;
}

static void keep_highest(int dir, const char *name, const struct tally_name *n, void *arg)
{
    (void)dir, (void)name;
    tally_merge(arg, n);
}

static void remove_lower(int dir, const char *name, const struct tally_name *n, void *arg)
{
    const int64_t *tick = arg;
    if (n->tick < *tick)
        (void)unlinkat(dir, name, 0); /* another user's may stay */
}

int tally_look(int dir, const char *path, struct tally_name *latest)
{
    *latest = TALLY_NAME_NONE;
    return walk(dir, path, keep_highest, latest);
}

int tally_leave(int dir, const char *path, int64_t tick, int64_t nonce)
{
    char name[NAME_MAX + 48];
    int n =
        snprintf(name, sizeof name, nonce ? ".%s-tally.%" PRId64 ".%" PRId64 : ".%s-tally.%" PRId64,
                 base(path), tick, nonce);
    if (n < 0 || (size_t)n >= sizeof name)
        return ENAMETOOLONG;
    int fd = openat(dir, name, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0444);
    if (fd < 0)
        return errno;
    (void)close(fd);
    return walk(dir, path, remove_lower, &tick);
}
