#include "sim/poolvfs.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPPED ((size_t)64 << 20) /* of address space: no simulated pool is near it */

/* A file that is open: of the pool it is mapped, of a journal only the bytes below count. */
struct file {
    sqlite3_file base;
    unsigned char *at; /* NULL: the journal */
    sqlite3_int64 n;   /* bytes, as SQLite and fstat() see them */
    int fd;
    dev_t dev;
    ino_t ino;
    char path[128];
};

/* The journal of the connection that is open: kept between transactions, gone when n is 0. */
static struct {
    unsigned char *at;
    sqlite3_int64 n, room;
    int there;
} journal;

static struct file *file_of(sqlite3_file *f)
{
    return (struct file *)(void *)f;
}

static unsigned char *bytes_of(const struct file *f)
{
    return f->at ? f->at : journal.at;
}

static sqlite3_int64 *size_of(struct file *f)
{
    return f->at ? &f->n : &journal.n;
}

/* ---- an open file ---------------------------------------------------------------------------- */

static int file_close(sqlite3_file *base)
{
    struct file *f = file_of(base);
    if (f->at) {
        (void)munmap(f->at, MAPPED);
        (void)close(f->fd);
    }
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *to, int want, sqlite3_int64 from)
{
    struct file *f = file_of(base);
    sqlite3_int64 left = *size_of(f) - from;
    int n = left <= 0 ? 0 : left < want ? (int)left : want;
    if (n > 0)
        memcpy(to, bytes_of(f) + from, (size_t)n);
    memset((char *)to + n, 0, (size_t)(want - n));
    return n == want ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

/* Room for n bytes; what is new is zero. */
static int grow(struct file *f, sqlite3_int64 n)
{
    if (f->at) {
        if (n > (sqlite3_int64)MAPPED || ftruncate(f->fd, n) != 0)
            return SQLITE_FULL;
        f->n = n;
        return SQLITE_OK;
    }
    if (n > journal.room) {
        sqlite3_int64 room = n * 2;
        unsigned char *at = realloc(journal.at, (size_t)room);
        if (!at)
            return SQLITE_FULL;
        journal.at = at;
        journal.room = room;
    }
    memset(journal.at + journal.n, 0, (size_t)(n - journal.n));
    journal.n = n;
    return SQLITE_OK;
}

static int file_write(sqlite3_file *base, const void *from, int n, sqlite3_int64 to)
{
    struct file *f = file_of(base);
    if (to + n > *size_of(f)) {
        int rc = grow(f, to + n);
        if (rc)
            return rc;
    }
    memcpy(bytes_of(f) + to, from, (size_t)n);
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 n)
{
    struct file *f = file_of(base);
    if (f->at && ftruncate(f->fd, n) != 0)
        return SQLITE_IOERR_TRUNCATE;
    *size_of(f) = n;
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags)
{
    (void)base, (void)flags;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *n)
{
    *n = *size_of(file_of(base));
    return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level)
{
    (void)base, (void)level;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *base, int *held)
{
    (void)base;
    *held = 0;
    return SQLITE_OK;
}

/* Another file in its place is what a driver has to see: SQLite's own question, too. */
static int file_control(sqlite3_file *base, int op, void *arg)
{
    const struct file *f = file_of(base);
    if (op != SQLITE_FCNTL_HAS_MOVED)
        return SQLITE_NOTFOUND;
    struct stat st;
    *(int *)arg = f->at && (stat(f->path, &st) != 0 || st.st_ino != f->ino || st.st_dev != f->dev);
    return SQLITE_OK;
}

static int file_sector(sqlite3_file *base)
{
    (void)base;
    return 512;
}

static int file_kind(sqlite3_file *base)
{
    (void)base;
    return 0;
}

static const sqlite3_io_methods methods = {
    .iVersion = 1,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_lock,
    .xCheckReservedLock = file_reserved,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_kind,
};

/* ---- names ----------------------------------------------------------------------------------- */

static int map_pool(struct file *f, int flags)
{
    int how = O_RDWR | O_CLOEXEC | (flags & SQLITE_OPEN_CREATE ? O_CREAT : 0);
    struct stat st;
    f->fd = open(f->path, how, 0600);
    if (f->fd < 0 || fstat(f->fd, &st) != 0)
        return SQLITE_CANTOPEN;
    void *at = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
    if (at == MAP_FAILED)
        return SQLITE_CANTOPEN;
    f->at = at;
    f->n = st.st_size;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    return SQLITE_OK;
}

static int vfs_open(sqlite3_vfs *v, sqlite3_filename name, sqlite3_file *base, int flags, int *took)
{
    (void)v;
    struct file *f = file_of(base);
    memset(f, 0, sizeof *f);
    if (took)
        *took = flags;
    if (flags & SQLITE_OPEN_MAIN_DB) {
        (void)snprintf(f->path, sizeof f->path, "%s", name);
        int rc = map_pool(f, flags);
        if (rc)
            return rc;
    } else if (flags & SQLITE_OPEN_MAIN_JOURNAL) {
        journal.n = 0;
        journal.there = 1;
    } else {
        return SQLITE_CANTOPEN;
    }
    f->base.pMethods = &methods;
    return SQLITE_OK;
}

static int is_journal(const char *name)
{
    size_t n = strlen(name), tail = sizeof "-journal" - 1;
    return n > tail && strcmp(name + n - tail, "-journal") == 0;
}

static int vfs_delete(sqlite3_vfs *v, const char *name, int sync)
{
    (void)v, (void)sync;
    if (!is_journal(name))
        return unlink(name) == 0 ? SQLITE_OK : SQLITE_IOERR_DELETE;
    journal.n = 0;
    journal.there = 0;
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *v, const char *name, int flags, int *is)
{
    (void)v, (void)flags;
    *is = is_journal(name) ? journal.there : 0; /* no log is ever made */
    return SQLITE_OK;
}

static int vfs_path(sqlite3_vfs *v, const char *name, int room, char *out)
{
    (void)v;
    (void)snprintf(out, (size_t)room, "%s", name);
    return SQLITE_OK;
}

int poolvfs_use(bool use)
{
    static sqlite3_vfs own; /* the clock, randomness and sleep are SQLite's */
    static sqlite3_vfs *theirs;
    if (!theirs && !(theirs = sqlite3_vfs_find(NULL)))
        return SQLITE_ERROR;
    if (!own.zName) {
        own = *theirs;
        own.pNext = NULL;
        own.szOsFile = (int)sizeof(struct file);
        own.zName = "pool";
        own.xOpen = vfs_open;
        own.xDelete = vfs_delete;
        own.xAccess = vfs_access;
        own.xFullPathname = vfs_path;
    }
    return sqlite3_vfs_register(use ? &own : theirs, 1);
}
