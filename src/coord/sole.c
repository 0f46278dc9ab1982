#include "coord/sole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#define TRACE    ".sidflake-pool"
#define BOOT_ID  "/proc/sys/kernel/random/boot_id"
#define BOOT_MAX 64

/* Opens the directory of the file, once. */
static bool enter(struct sole *s, const char *path)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
    if (s->dir >= 0)
        return true;
    if (n >= sizeof dir)
        return false;
    memcpy(dir, path, n);
    dir[n] = '\0';
    s->dir = open(n ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

static ssize_t read_at(int dir, const char *name, char out[BOOT_MAX])
{
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, out, BOOT_MAX);
    (void)close(fd);
    return n;
}

/* Whose trace there is. */
static enum sole_state trace_of(int dir)
{
    char now[BOOT_MAX], then[BOOT_MAX];
    ssize_t m = read_at(dir, TRACE, then), absent = m < 0 && errno == ENOENT;
    ssize_t n = read_at(AT_FDCWD, BOOT_ID, now);
    if (absent)
        return SOLE_FIRST;
    return n > 0 && n == m && memcmp(now, then, (size_t)n) == 0 ? SOLE_ALONE : SOLE_UNKNOWN;
}

enum sole_state sole_look(struct sole *s, const char *path)
{
    if (s->holder)
        return SOLE_HOLDER;
    if (!enter(s, path) || !is_of_one_host(s->dir))
        return SOLE_UNKNOWN;
    if (flock(s->dir, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? SOLE_OTHERS : SOLE_UNKNOWN;
    enum sole_state is = trace_of(s->dir);
    if (is == SOLE_UNKNOWN)
        sole_yield(s);
    return is;
}

/* A whole trace or none: a torn one would be of another boot, which is the careful side. */
static void leave_trace(int dir)
{
    char boot[BOOT_MAX];
    ssize_t n = read_at(AT_FDCWD, BOOT_ID, boot);
    if (n <= 0 || trace_of(dir) == SOLE_ALONE)
        return;
    int fd = openat(dir, TRACE, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0)
        return;
    (void)(write(fd, boot, (size_t)n) + 1);
    (void)close(fd);
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

bool sole_hold(struct sole *s)
{
    if (s->holder || s->dir < 0)
        return true;
    if (!lock_shared(s))
        return false;
    leave_trace(s->dir);
    s->holder = true;
    return true;
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
