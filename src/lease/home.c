#include "lease/home.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"

enum err_code home_read_boot(struct page_home *home, struct err *e)
{
    char text[64];
    int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(e, errno, "cannot open " BOOT_ID_FILE);
    ssize_t n = read(fd, text, sizeof text);
    (void)close(fd);
    if (n < 36)
        return err_set(e, ERR_IO, BOOT_ID_FILE ": expected 36 characters, found %zd", n);
    unsigned nibbles = 0;
    memset(home->boot, 0, sizeof home->boot);
    for (const char *c = text; c < text + n && nibbles < 32; c++) {
        int v = *c >= '0' && *c <= '9' ? *c - '0' : *c >= 'a' && *c <= 'f' ? *c - 'a' + 10 : -1;
        if (v >= 0) {
            home->boot[nibbles / 2] = (uint8_t)(home->boot[nibbles / 2] << 4 | v);
            nibbles++;
        }
    }
    if (nibbles != 32)
        return err_set(e, ERR_IO, BOOT_ID_FILE ": expected 32 hex digits, found %u", nibbles);
    return ERR_OK;
}

bool home_read_file(int fd, const char *path, struct page_home *home)
{
    struct stat st;
    struct statx stx = {0};
    if ((fd < 0 ? lstat(path, &st) : fstat(fd, &st)) < 0)
        return false;
    int r = fd < 0 ? statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME, &stx)
                   : statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &stx);
    home->device = st.st_dev;
    home->inode = st.st_ino;
    home->born_ns = 0;
    if (r == 0 && stx.stx_mask & STATX_BTIME)
        home->born_ns = (uint64_t)stx.stx_btime.tv_sec * 1000000000 + stx.stx_btime.tv_nsec;
    return true;
}

bool home_is_at(int fd, const char *path, int64_t *bytes, struct err *why)
{
    struct stat ours, there;
    if (fstat(fd, &ours) < 0 || lstat(path, &there) < 0)
        (void)err_errno(why, errno, "cannot find %s", path);
    else if (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
        (void)err_set(why, ERR_INVALID, "another file was put in its place");
    else {
        *bytes = ours.st_size;
        return true;
    }
    return false;
}
