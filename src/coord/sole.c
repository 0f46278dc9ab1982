#include "coord/sole.h"

#include "base/fnv.h"
#include "coord/tally.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* ---- the directories ------------------------------------------------------------------------- */

void sole_directory(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
    if (n == 0)
        path = ".", n = 1;
    if (n >= PATH_MAX)
        n = PATH_MAX - 1;
    memcpy(out, path, n);
    out[n] = '\0';
}

/* The path from the root, without "." and doubled slashes: the same text for the same words. */
static int absolute(const char *path, char out[PATH_MAX])
{
    size_t n = 0;
    if (*path != '/') {
        if (!getcwd(out, PATH_MAX))
            return errno;
        n = strlen(out);
        n -= n == 1; /* the root alone */
    }
    while (*path) {
        size_t word = strcspn(path, "/");
        bool counts = word > 0 && !(word == 1 && *path == '.');
        if (counts && n + word + 2 > PATH_MAX)
            return ENAMETOOLONG;
        if (counts) {
            out[n] = '/';
            memcpy(out + n + 1, path, word);
            n += word + 1;
        }
        path += word + (path[word] == '/');
    }
    out[n] = '\0';
    return n > 0 ? 0 : EISDIR;
}

/* A hash of what is left of the path below a directory, as an offset in a file. */
static int64_t byte_of(const char *below)
{
    return (int64_t)(fnv64_str(below) >> 2);
}

/* Those above the first may be closed to this user: then the others have to do. */
static int open_chain(struct sole *s, char all[PATH_MAX])
{
    size_t end = strlen(all), most = s->n + SOLE_DEPTH;
    do {
        end = s->n == most - 1 ? 0 : (size_t)((char *)memrchr(all, '/', end) - all);
        char cut = all[end + 1];
        int64_t at = byte_of(all + end + 1);
        all[end + 1] = '\0'; /* with its slash, so that the root has a name, too */
        int dir = open(all, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0 && s->n == 0)
            return errno;
        if (dir >= 0)
            s->lock[s->n++] = (struct sole_lock){dir, at};
        all[end + 1] = cut;
    } while (end > 0);
    return 0;
}

/* The path by its directory's own name, without links and "..". */
static bool resolve(const char *path, char out[PATH_MAX])
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    sole_directory(path, dir);
    if (!realpath(dir, out) || strlen(out) + 1 + strlen(name) >= PATH_MAX)
        return false;
    (void)stpcpy(stpcpy(out + strlen(out), out[1] ? "/" : ""), name);
    return true;
}

/* Others may have another name for the directory, and a link may lead elsewhere tomorrow: so both.
 */
static int open_all(struct sole *s, const char *path)
{
    char written[PATH_MAX], real[PATH_MAX];
    int why = absolute(path, written);
    if (why == 0)
        why = open_chain(s, written);
    if (why == 0 && resolve(path, real) && strcmp(real, written) != 0)
        why = open_chain(s, real);
    return why;
}

static void close_all(struct sole *s)
{
    while (s->n > 0)
        (void)close(s->lock[--s->n].dir);
}

static bool leads_there(const struct sole *s, const char *path)
{
    char dir[PATH_MAX];
    struct stat ours, there;
    sole_directory(path, dir);
    return s->n > 0 && fstat(s->lock[0].dir, &ours) == 0 && stat(dir, &there) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
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

/* The data of a link is in another directory, with other users. */
static bool is_link(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 ? S_ISLNK(st.st_mode) : errno != ENOENT;
}

/* ---- locks and traces ------------------------------------------------------------------------ */

/* 0: somebody else has the byte; 1: nobody has; -1: that cannot be told. */
static int is_free(const struct sole_lock *l)
{
    struct flock at = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = l->at, .l_len = 1};
    if (fcntl(l->dir, F_OFD_GETLK, &at) != 0)
        return -1;
    return at.l_type == F_UNLCK;
}

static int leave_trace(int dir, const char *path)
{
    struct tally_name latest;
    int why = tally_look(dir, path, &latest);
    return why || latest.tick >= 0 ? why : tally_leave(dir, path, 0, 0);
}

/* The locks above the file's directory are taken where they can be: who cannot take them cannot ask
 * for them either, and is not the first. */
static int take_all(const struct sole *s, const char *path)
{
    int why = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct flock at = {
            .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = s->lock[i].at, .l_len = 1};
        if (fcntl(s->lock[i].dir, F_OFD_SETLK, &at) != 0 && i == 0)
            why = errno;
    }
    if (why == 0)
        why = leave_trace(s->lock[0].dir, path);
    return is_of_one_host(s->lock[0].dir) ? why : 0;
}

int sole_enter(struct sole *s, const char *path, int *dir)
{
    if (!leads_there(s, path)) {
        struct sole next = {.holder = s->holder};
        int why = open_all(&next, path);
        if (why == 0 && next.holder)
            why = take_all(&next, path);
        if (why) {
            close_all(&next);
            return why;
        }
        close_all(s);
        *s = next;
    }
    *dir = s->lock[0].dir;
    return 0;
}

enum sole_state sole_look(struct sole *s, const char *path)
{
    int dir;
    struct tally_name latest;
    if (s->holder || sole_enter(s, path, &dir) != 0 || is_link(path) || !is_of_one_host(dir))
        return SOLE_UNKNOWN;
    int all = 1;
    for (size_t i = 0; i < s->n; i++) {
        int one = is_free(&s->lock[i]);
        if (one == 0)
            return SOLE_OTHERS;
        all = one < 0 ? one : all;
    }
    if (all < 0 || tally_look(dir, path, &latest) != 0 || latest.tick >= 0)
        return SOLE_UNKNOWN;
    return SOLE_FIRST;
}

int sole_hold(struct sole *s, const char *path)
{
    int dir;
    int why = sole_enter(s, path, &dir);
    if (why || s->holder)
        return why;
    why = take_all(s, path);
    s->holder = why == 0;
    return why;
}

void sole_end(struct sole *s)
{
    close_all(s);
    *s = SOLE_INIT;
}
