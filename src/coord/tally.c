#include "coord/tally.h"

#include "base/dec.h"
#include "base/int64.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS_MAX 15 /* of a tick: more are none of ours, and no sum overflows */
#define TICK_MAX   INT64_C(999999999999999)

/* The first page is older than the tally's. By the distance, since the count begins anew. */
static bool is_mixed(const struct tally *t, const struct tally_now *now)
{
    return strcmp(now->inode, t->inode) == 0 && (int32_t)(now->changes - (uint32_t)t->changes) < 0;
}

void tally_next(struct tally *t, int64_t known, const struct tally_now *now)
{
    bool old = known > t->tick || is_mixed(t, now);
    bool elsewhere = *now->boot && strcmp(now->boot, t->boot) == 0 && now->device != t->device;
    t->tick = min64(max64(known, t->tick), TICK_MAX - 1) + 1;
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

/* The number in a name beside the file; -1: it is another name. */
static int64_t number_of(const char *name, const char *path)
{
    char lead[NAME_MAX + 16];
    uint64_t tick;
    int n = snprintf(lead, sizeof lead, ".%s-tally.", base(path));
    if (n < 0 || (size_t)n >= sizeof lead || strncmp(name, lead, (size_t)n) != 0)
        return -1;
    struct span digits = span_str(name + n);
    return digits.n <= DIGITS_MAX && dec_u64(digits, &tick) ? (int64_t)tick : -1;
}

/* As far as those who made it may write to the pool's file, whom it says everything. Of a group
 * that says nothing: a directory may give it to whatever is made there. */
static bool may_write(const struct stat *by, const struct stat *file)
{
    return by->st_uid == file->st_uid || (file->st_mode & S_IWOTH);
}

static bool counts(int dir, const char *name, const char *path)
{
    struct stat all, one, file;
    if (fstat(dir, &all) != 0 || !(all.st_mode & S_IWOTH))
        return true;
    if (fstatat(dir, name, &one, AT_SYMLINK_NOFOLLOW) != 0)
        return false;
    return one.st_uid == 0 || one.st_uid == geteuid() ||
           (fstatat(dir, base(path), &file, AT_SYMLINK_NOFOLLOW) == 0 && may_write(&one, &file));
}

/* Calls on() with each name beside the file that counts. */
static int walk(int dir, const char *path, void (*on)(int dir, const char *name, int64_t n, void *),
                void *arg)
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
        int64_t n = number_of(e->d_name, path);
        if (n >= 0 && counts(dir, e->d_name, path))
            on(dir, e->d_name, n, arg);
        errno = 0;
    }
    int why = errno;
    (void)closedir(d);
    return why;
}

static void keep_highest(int dir, const char *name, int64_t n, void *arg)
{
    int64_t *latest = arg;
    (void)dir, (void)name;
    if (n > *latest)
        *latest = n;
}

static void remove_lower(int dir, const char *name, int64_t n, void *arg)
{
    const int64_t *tick = arg;
    if (n < *tick)
        (void)unlinkat(dir, name, 0); /* another user's may stay */
}

int tally_look(int dir, const char *path, int64_t *latest)
{
    *latest = -1;
    return walk(dir, path, keep_highest, latest);
}

int tally_leave(int dir, const char *path, int64_t tick)
{
    char name[NAME_MAX + 32];
    int n = snprintf(name, sizeof name, ".%s-tally.%lld", base(path), (long long)tick);
    if (n < 0 || (size_t)n >= sizeof name)
        return ENAMETOOLONG;
    int fd = openat(dir, name, O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0444);
    if (fd < 0)
        return errno;
    (void)close(fd);
    return walk(dir, path, remove_lower, &tick);
}
