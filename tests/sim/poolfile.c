#include "sim/poolfile.h"

#include "sim/poolvfs.h"
#include "support/coord_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static _Noreturn void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "simulated file: %s: %s\n", what, why);
    abort();
}

/* ---- the connection that is open --------------------------------------------------------------
 * The driver keeps its own to itself, so each one says when it is opened, and when it is closed. */

static sqlite3 *connection; /* NULL: none is open */

/* Small pages: a transaction changes a row here and there, and writes whole ones. */
#define SETTINGS "PRAGMA page_size = 1024"

static void no_function(sqlite3_context *c, int n, sqlite3_value **v)
{
    (void)c, (void)n, (void)v;
}

static void on_close(void *unused)
{
    (void)unused;
    connection = NULL;
}

static int on_open(sqlite3 *db, char **why, const void *unused)
{
    (void)why, (void)unused;
    if (connection)
        die("open", "expected one connection at a time, found two");
    connection = db;
    int rc = sqlite3_create_function_v2(db, "watched", 0, SQLITE_UTF8, NULL, no_function, NULL,
                                        NULL, on_close);
    return rc ? rc : sqlite3_exec(db, SETTINGS, NULL, NULL, NULL);
}

void poolfile_mapped(bool mapped)
{
    if (poolvfs_use(mapped) != SQLITE_OK)
        die("sqlite3_vfs_register", "failed");
}

/* ---- life ------------------------------------------------------------------------------------ */

void poolfile_open(struct poolfile *f)
{
    const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(f->dir, sizeof f->dir, "%s/sidflake-sim-XXXXXX", tmp);
    if (!mkdtemp(f->dir))
        die(f->dir, strerror(errno));
    (void)snprintf(f->path, sizeof f->path, "%s/pool.db", f->dir);
    connection = NULL; /* one of before a fork is the parent's */
    if (sqlite3_auto_extension((void (*)(void))on_open) != SQLITE_OK)
        die("sqlite3_auto_extension", "failed");
}

static void remove_with(const struct poolfile *f, const char *suffix)
{
    char path[sizeof f->path + 8];
    (void)snprintf(path, sizeof path, "%s%s", f->path, suffix);
    (void)unlink(path);
}

void poolfile_close(struct poolfile *f)
{
    remove_with(f, "");
    remove_with(f, "-journal");
    setup_forget_tally(f->dir);
    (void)rmdir(f->dir);
}

bool poolfile_exists(const struct poolfile *f)
{
    return access(f->path, W_OK) == 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void read_all(const struct poolfile *f, struct poolfile_copy *c)
{
    struct stat st;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0)
        die(f->path, strerror(errno));
    c->n = (size_t)st.st_size;
    c->bytes = sqlite3_malloc64(c->n + 1);
    if (!c->bytes || read(fd, c->bytes, c->n) != (ssize_t)c->n)
        die(f->path, "cannot be read");
    (void)close(fd);
}

bool poolfile_copy(const struct poolfile *f, struct poolfile_copy *c)
{
    poolfile_drop(c);
    if (!poolfile_exists(f))
        return false;
    if (!connection) {
        read_all(f, c);
        return true;
    }
    sqlite3_int64 n;
    c->bytes = sqlite3_serialize(connection, "main", &n, 0);
    if (!c->bytes)
        die(f->path, sqlite3_errmsg(connection));
    c->n = (size_t)n;
    return true;
}

void poolfile_drop(struct poolfile_copy *c)
{
    sqlite3_free(c->bytes);
    *c = (struct poolfile_copy){NULL, 0};
}

static void write_all(const char *path, int flags, const struct poolfile_copy *c)
{
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | flags, 0600);
    if (fd < 0 || write(fd, c->bytes, c->n) != (ssize_t)c->n)
        die(path, strerror(errno));
    (void)close(fd);
}

/* Beside the file first, so that it gets another inode than the one it replaces. */
void poolfile_replace(struct poolfile *f, struct coord *driver, const struct poolfile_copy *c)
{
    char fresh[sizeof f->path + 8];
    (void)snprintf(fresh, sizeof fresh, "%s.new", f->path);
    write_all(fresh, O_CREAT, c);
    poolfile_remove(f, driver);
    if (rename(fresh, f->path) < 0)
        die(fresh, strerror(errno));
}

void poolfile_overwrite(struct poolfile *f, const struct poolfile_copy *c)
{
    if (connection)
        die(f->path, "expected nobody to have it open");
    write_all(f->path, 0, c);
}

/* ---- damage ---------------------------------------------------------------------------------- */

void poolfile_remove(struct poolfile *f, struct coord *driver)
{
    coord_idle(driver);
    remove_with(f, "");
}

void poolfile_forget(struct poolfile *f, struct coord *driver)
{
    poolfile_remove(f, driver);
    setup_forget_tally(f->dir);
}

void poolfile_query(struct poolfile *f, struct coord *driver, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    coord_idle(driver);
    if (sqlite3_open_v2(f->path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
        sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
        die(sql, why ? why : "?");
    (void)sqlite3_close(db);
}
