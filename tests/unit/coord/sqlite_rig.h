/*
 * A directory of its own for each test, with a file for pools and somebody who uses it.
 */
#ifndef SIDFLAKE_UNIT_COORD_SQLITE_RIG_H
#define SIDFLAKE_UNIT_COORD_SQLITE_RIG_H

#include "support/coord_says.h"
#include "support/coord_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
    struct setup_clock clock;
    char dir[64];
    char db[96];
    char url[128];
    struct coord *c;
    struct coord_reply r;
};

static inline int setup(void **state)
{
    static struct fixture f;
    memset(&f, 0, sizeof f);
    setup_clock_init(&f.clock, SETUP_T0_MS);
    (void)snprintf(f.dir, sizeof f.dir, "/tmp/sidflake-sqlite-XXXXXX");
    if (!mkdtemp(f.dir))
        return -1;
    (void)snprintf(f.db, sizeof f.db, "%s/pool.db", f.dir);
    (void)snprintf(f.url, sizeof f.url, "sqlite://%s", f.db);
    f.c = setup_open(f.url, "p", &f.clock.clock);
    *state = &f;
    return 0;
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;
    coord_free(f->c);
    return nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline enum coord_status make(struct fixture *f, uint16_t to)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, to);
    return coord_init(f->c, &in, &f->r);
}

static inline enum coord_status claim(struct fixture *f, struct coord_grant *g)
{
    return coord_claim(f->c, SETUP_IDENTITY, f->clock.ms, coord_token_new(rng_system()), g, &f->r);
}

static inline void query(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static inline void write_file(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    (void)close(fd);
}

static inline size_t read_file(const char *path, void *bytes, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, bytes, cap);
    (void)close(fd);
    assert_true(n >= 0 && (size_t)n < cap);
    return (size_t)n;
}

/* Whether there is a file of that name beside it. */
static inline bool has(const struct fixture *f, const char *suffix)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s%s", f->db, suffix);
    return access(path, F_OK) == 0;
}

static inline void remove_file(struct fixture *f)
{
    (void)unlink(f->db);
}

#endif
