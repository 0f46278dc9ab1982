#include "coord/sole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TRACE ".sidflake-pool"

/* Opens the directory of the file, once. */
static bool enter(struct sole *s, const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
    if (s->dir >= 0)
        return true;
    s->why = ENAMETOOLONG;
    if (n >= sizeof dir)
        return false;
    memcpy(dir, path, n);
    dir[n] = '\0';
    s->dir = open(n ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s->why = errno;
    return s->dir >= 0;
}

/* Numbers of statfs(2). */
static bool is_of_one_host(int dir)
{
    static const long known[] = {
        0xef53,     /* ext2, ext3, ext4 */
        0x58465342, /* XFS */
        0x9123683e, /* Btrfs */
        0x01021994, /* tmpfs */
        0x794c7630, /* overlayfs */
        0xf2f52010, /* F2FS */
        0x2fc12fc1, /* OpenZFS */
    };
    struct statfs fs;
    if (fstatfs(dir, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if ((long)fs.f_type == known[i])
            return true;
    return false;
}

static bool has_trace(int dir)
{
    return faccessat(dir, TRACE, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

/* The data of a link is in another directory, with other users. */
static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? S_ISLNK(st.st_mode) : errno != ENOENT;
}

enum sole_state sole_look(struct sole *s, const char *path)
{
    if (s->holder || !enter(s, path) || is_link(path) || !is_of_one_host(s->dir))
        return SOLE_UNKNOWN;
    if (flock(s->dir, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? SOLE_OTHERS : SOLE_UNKNOWN;
    if (!has_trace(s->dir))
        return SOLE_FIRST;
    sole_yield(s);
    return SOLE_UNKNOWN;
}

/* 0, or an error of errno(3). */
static int leave_trace(int dir)
{
    int fd = openat(dir, TRACE, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0 || has_trace(dir) ? 0 : why;
}

static bool lock_shared(const struct sole *s)
{
    return flock(s->dir, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

bool sole_join(struct sole *s, const char *path)
{
    if (s->holder || !enter(s, path))
        return true; /* where there is no directory, the file itself will say what is wrong */
    return lock_shared(s);
}

int sole_hold(struct sole *s)
{
    if (s->holder)
        return 0;
    if (s->dir < 0)
        return s->why;
    int is = flock(s->dir, LOCK_SH | LOCK_NB) == 0 ? leave_trace(s->dir) : errno;
    if (is == EWOULDBLOCK || (is != 0 && is_of_one_host(s->dir)))
        return is;
    s->holder = true;
    return 0;
}

void sole_yield(struct sole *s)
{
    if (s->dir >= 0 && !s->holder)
        (void)flock(s->dir, LOCK_UN);
}

void sole_end(struct sole *s)
{
    if (s->dir >= 0)
        (void)close(s->dir);
    *s = SOLE_INIT;
}
