#include "coord/place.h"

#include "base/file.h"
#include "coord/outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
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

void place_boot(char out[TALLY_BOOT_MAX])
{
    size_t n;
    if (file_load(BOOT_ID_FILE, 0, out, TALLY_BOOT_MAX - 1, &n))
        n = 0;
    out[n] = '\0';
    out[strcspn(out, "\n")] = '\0';
}
