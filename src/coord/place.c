#include "coord/place.h"

#include "base/file.h"
#include "coord/outcome.h"
#include "coord/sole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

int place_find(const char *path, struct place *out)
{
    struct statx st;
    if (statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
        return errno;
    bool born = st.stx_mask & STATX_BTIME;
    out->device = ((int64_t)st.stx_dev_major << 20 | st.stx_dev_minor) & COORD_NUMBER_MAX;
    (void)snprintf(out->inode, sizeof out->inode, "%" PRIx64 ":%" PRIx64 ".%" PRIx32,
                   (uint64_t)st.stx_ino, born ? (uint64_t)st.stx_btime.tv_sec : 0,
                   born ? st.stx_btime.tv_nsec : 0);
    return 0;
}

bool place_same(const struct place *a, const struct place *b)
{
    return a->device == b->device && strcmp(a->inode, b->inode) == 0;
}

/* Of the file's directory. */
static enum coord_status check_directory(const char *path, struct coord_reply *r)
{
    char dir[PATH_MAX];
    struct stat st;
    sole_directory(path, dir);
    int errnum = stat(dir, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (!errnum)
        return COORD_OK;
    return outcome_refused(r, "%s: expected a directory to make the pool's file in, found %s", dir,
                           strerror(errnum));
}

/* Who may make files in the directory, and not write to the pool's. Of a group's members nothing is
 * known. */
static bool is_stranger(const char *real, const struct stat *file, uid_t who)
{
    char dir[PATH_MAX];
    struct stat st;
    sole_directory(real, dir);
    bool apart =
        stat(dir, &st) == 0 && (st.st_mode & S_IWOTH) && !(file->st_mode & (S_IWGRP | S_IWOTH));
    return apart && who != 0 && who != geteuid() && who != file->st_uid;
}

/* What SQLite plays back when it opens the file, or reads the file by. */
static const char *const beside[] = {"-journal", "-wal", "-shm"};

/* A device is no pool, but read as an empty file. By another name of a file nobody sees the journal
 * of a transaction that was cut short by this one, nor who uses it: what was answered by one name
 * is rolled back by the other. */
static enum coord_status check_names(const char *path, struct coord_reply *r)
{
    struct statx st;
    if (statx(AT_FDCWD, path, 0, STATX_TYPE | STATX_NLINK, &st) != 0 || S_ISDIR(st.stx_mode))
        return COORD_OK; /* of which SQLite has a word */
    if (!S_ISREG(st.stx_mode))
        return outcome_refused(r, "%s: expected a file, found a device, a pipe or a socket", path);
    if (st.stx_nlink > 1)
        return outcome_refused(r,
                               "%s: expected a file of one name, found %u hard links to it, and "
                               "SQLite keeps a journal for each: remove the others",
                               path, st.stx_nlink);
    if (st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
        return outcome_refused(r,
                               "%s: expected a file with its directory, found it mounted alone, "
                               "and its journal would not be beside it: mount the directory",
                               path);
    return COORD_OK;
}

/* To open a pipe might take for ever. */
static enum coord_status check_beside(const char *name, const char *real, const struct stat *file,
                                      struct coord_reply *r)
{
    struct stat st;
    if (lstat(name, &st) != 0)
        return COORD_OK;
    if (!S_ISREG(st.st_mode))
        return outcome_refused(
            r, "%s: expected a journal or nothing, found another kind of file: remove it", name);
    if (is_stranger(real, file, st.st_uid))
        return outcome_refused(
            r,
            "%s: expected no journal of another user's, which would be played back, "
            "found one of uid %u: remove it, and give the pool a directory of its own",
            name, st.st_uid);
    return COORD_OK;
}

enum coord_status place_check(const char *path, bool create, struct coord_reply *r)
{
    char real[PATH_MAX], name[PATH_MAX + 16];
    struct stat file;
    if (stat(path, &file) != 0 || !realpath(path, real))
        return create ? check_directory(path, r) : COORD_OK;
    enum coord_status s = check_names(path, r);
    for (size_t i = 0; i < sizeof beside / sizeof *beside && s == COORD_OK; i++) {
        (void)snprintf(name, sizeof name, "%s%s", real, beside[i]);
        s = check_beside(name, real, &file, r);
    }
    return s;
}

/* Whoever owns the directory can lead us nowhere else: it is open when its owner is asked, and the
 * file is a new one. */
void place_make(const char *path)
{
    char name[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat st;
    sole_directory(path, name);
    int dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
    if (dir >= 0)
        fd = openat(dir, slash ? slash + 1 : path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd >= 0 && geteuid() == 0 && fstat(dir, &st) == 0 && fchown(fd, st.st_uid, st.st_gid) != 0)
        errno = 0; /* then it is root's, as it would be */
    if (fd >= 0)
        (void)close(fd);
    if (dir >= 0)
        (void)close(dir);
}

void place_boot(char out[TALLY_BOOT_MAX])
{
    size_t n;
    if (file_load(BOOT_ID_FILE, 0, out, TALLY_BOOT_MAX - 1, &n))
        n = 0;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
}
