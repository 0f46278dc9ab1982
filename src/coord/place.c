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

/* Of the directory of the path. */
static enum coord_status check_directory(const char *path, bool create, struct coord_reply *r)
{
    char dir[PATH_MAX];
    struct stat st;
    sole_directory(path, dir);
    int errnum = stat(dir, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
    if (errnum && create)
        return outcome_refused(r, "%s: expected a directory to make the pool's file in, found %s",
                               dir, strerror(errnum));
    if (errnum || !(st.st_mode & S_IWOTH))
        return COORD_OK;
    return outcome_refused(r,
                           "%s: expected a directory in which only those make files who may write "
                           "to the pool's, found that everybody may (mode %04o): use a directory "
                           "of its own",
                           dir, (unsigned)st.st_mode & 07777);
}

enum coord_status place_check(const char *path, bool create, struct coord_reply *r)
{
    char real[PATH_MAX];
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && (st.st_mode & S_IWOTH))
        return COORD_OK;
    enum coord_status s = check_directory(path, create && !there, r);
    return s == COORD_OK && there && realpath(path, real) ? check_directory(real, false, r) : s;
}

void place_boot(char out[TALLY_BOOT_MAX])
{
    size_t n;
    if (file_load(BOOT_ID_FILE, 0, out, TALLY_BOOT_MAX - 1, &n))
        n = 0;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
}
