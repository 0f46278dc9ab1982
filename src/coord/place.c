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

enum coord_status place_check(const char *path, bool create, struct coord_reply *r)
{
    char real[PATH_MAX], journal[PATH_MAX + 16];
    struct stat file, st;
    if (stat(path, &file) != 0 || !realpath(path, real))
        return create ? check_directory(path, r) : COORD_OK;
    (void)snprintf(journal, sizeof journal, "%s-journal", real);
    if (lstat(journal, &st) != 0 || !is_stranger(real, &file, st.st_uid))
        return COORD_OK;
    return outcome_refused(
        r,
        "%s: expected no journal of another user's, which would be played back, "
        "found one of uid %u: remove it, and give the pool a directory of its own",
        journal, st.st_uid);
}

void place_boot(char out[TALLY_BOOT_MAX])
{
    size_t n;
    if (file_load(BOOT_ID_FILE, 0, out, TALLY_BOOT_MAX - 1, &n))
        n = 0;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
}
