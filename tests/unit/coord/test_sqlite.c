/* The SQLite driver where it differs from Redis: files. The rules are test_differential's. */
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

static int setup(void **state)
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

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    coord_free(f->c);
    return nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static enum coord_status make(struct fixture *f, uint16_t to)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, to);
    return coord_init(f->c, &in, &f->r);
}

static enum coord_status claim(struct fixture *f, struct coord_grant *g)
{
    return coord_claim(f->c, SETUP_IDENTITY, f->clock.ms, coord_token_new(rng_system()), g, &f->r);
}

static void query(struct fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n), n);
    (void)close(fd);
}

static size_t read_file(const char *path, void *bytes, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, bytes, cap);
    (void)close(fd);
    assert_true(n >= 0 && (size_t)n < cap);
    return (size_t)n;
}

/* ---- nobody's word ----------------------------------------------------------------------------
 */

static enum coord_status make_unattended(struct coord *c, struct coord_reply *r)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    in.unattended = true;
    return coord_init(c, &in, r);
}

static void remove_file(struct fixture *f)
{
    char path[128];
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        (void)snprintf(path, sizeof path, "%s%s", f->db, ends[i]);
        (void)unlink(path);
    }
}

static void fresh_is_not_concluded_beside_a_holder(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord *other = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(make_unattended(f->c, &f->r), COORD_OK);
    assert_int_equal(f->r.era, 1);
    assert_int_equal(claim(f, &g), COORD_OK);
    remove_file(f); /* under a holder */
    assert_int_equal(make_unattended(other, &f->r), COORD_REFUSED);
    coord_says(&f->r, "another sidecar that uses its directory");
    assert_int_equal(access(f->db, F_OK), -1);
    coord_free(f->c); /* it has ended, but what it was granted outlives it in its page */
    f->c = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(make_unattended(other, &f->r), COORD_REFUSED);
    coord_says(&f->r, "a directory that nobody used before");
    coord_free(other);
}

/* Whoever renews may go on, so he is a holder though the answer is that there is no pool. */
static void who_renews_keeps_others_from_being_the_first(void **state)
{
    struct fixture *f = *state;
    struct coord_renewal item = {.worker = 1, .cur = setup_token(1), .nxt = setup_token(1)};
    struct coord *other = setup_open(f->url, "p", &f->clock.clock);
    char trace[128];
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, &item, 1, &f->r), COORD_NOPOOL);
    (void)snprintf(trace, sizeof trace, "%.*s.sidflake-pool",
                   (int)(strrchr(f->db, '/') + 1 - f->db), f->db);
    assert_int_equal(unlink(trace), 0); /* the lock is enough */
    assert_int_equal(make_unattended(other, &f->r), COORD_REFUSED);
    coord_says(&f->r, "another sidecar that uses its directory");
    coord_free(other);
}

static void a_directory_without_room_for_a_trace_gives_no_worker(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    char dir[128];
    (void)snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(f->db, '/') - f->db), f->db);
    assert_int_equal(make(f, 2), COORD_OK);
    coord_free(f->c);
    assert_int_equal(chmod(dir, 0733), 0);
    assert_int_equal(chmod(f->db, 0666), 0);
    bool root = geteuid() == 0;
    if (root)
        assert_int_equal(seteuid(65534), 0);
    else
        assert_int_equal(chmod(dir, 0333), 0);
    f->c = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(claim(f, &g), COORD_REFUSED);
    coord_says(&f->r, "a directory that this user may read, lock");
    if (root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(claim(f, &g), COORD_OK);
}

static void a_link_to_another_directory_is_not_fresh(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(symlink("/nonexistent/pool.db", f->db), 0);
    assert_int_equal(make_unattended(f->c, &f->r), COORD_REFUSED);
    coord_says(&f->r, "where that cannot be told");
    assert_int_equal(unlink(f->db), 0);
    assert_int_equal(make_unattended(f->c, &f->r), COORD_OK);
}

/* ---- the ordinary life ----------------------------------------------------------------------- */

static void hands_out_and_takes_back(void **state)
{
    struct fixture *f = *state;
    struct coord_grant a, b;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, 2), COORD_OK);
    assert_int_equal(f->r.free, 3);
    assert_int_equal(make(f, 2), COORD_EXISTS);
    coord_says(&f->r, "\"p\"");
    assert_int_equal(coord_claim(f->c, SETUP_IDENTITY, f->clock.ms, t, &a, &f->r), COORD_OK);
    assert_int_equal(a.worker, 0);
    assert_int_equal(a.lo_ms, 1);
    assert_int_equal(a.hi_ms, SETUP_T0_MS + 30000);
    assert_int_equal(claim(f, &b), COORD_OK);
    assert_int_equal(b.worker, 1);
    struct coord_release gone = {
        .worker = 0, .cur = t, .nxt = t, .has_last = true, .last_ms = SETUP_T0_MS - 1};
    assert_int_equal(coord_release(f->c, SETUP_IDENTITY, &gone, &f->r), COORD_OK);
    assert_int_equal(claim(f, &b), COORD_OK);
    assert_int_equal(b.worker, 2);
    assert_int_equal(claim(f, &b), COORD_OK);
    assert_int_equal(b.worker, 0);
    assert_int_equal(b.lo_ms, SETUP_T0_MS);
    assert_int_equal(claim(f, &b), COORD_EXHAUSTED);
    assert_int_equal(f->r.free, 0);
}

static void refusals_name_both_sides(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, 2), COORD_OK);
    assert_int_equal(coord_claim(f->c, SETUP_IDENTITY_OTHER, f->clock.ms, t, &g, &f->r),
                     COORD_WRONGPOOL);
    coord_says(&f->r, SETUP_IDENTITY);
    coord_says(&f->r, SETUP_IDENTITY_OTHER);
    assert_int_equal(coord_claim(f->c, SETUP_IDENTITY, f->clock.ms + 2001, t, &g, &f->r),
                     COORD_SKEW);
    coord_says(&f->r, "within 2000 ms");
    f->clock.ms -= 4001;
    assert_int_equal(claim(f, &g), COORD_BADCLOCK);
    coord_says(&f->r, "2026-05-28");
    f->clock.ms++;
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(coord_close(f->c, SETUP_IDENTITY, &f->r), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_CLOSED);
}

static void a_file_has_no_replicas(void **state)
{
    struct fixture *f = *state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 0);
    in.params.replicas = 1;
    assert_int_equal(coord_init(f->c, &in, &f->r), COORD_REFUSED);
    coord_says(&f->r, "expected 0 of an SQLite file, found 1");
    assert_int_equal(access(f->db, F_OK), -1);
}

static void pools_of_one_file_are_apart(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_reply r;
    struct coord *other = setup_open(f->url, "q", &f->clock.clock);
    struct coord_init in = setup_init(SETUP_IDENTITY_OTHER, COORD_INIT_AFTER_LOSS, 5);
    assert_int_equal(make(f, 0), COORD_OK);
    assert_int_equal(coord_claim(other, SETUP_IDENTITY, f->clock.ms, setup_token(2), &g, &r),
                     COORD_NOPOOL);
    assert_int_equal(coord_init(other, &in, &r), COORD_OK);
    assert_int_equal(r.era, 2);
    assert_int_equal(r.free, 6);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_EXHAUSTED);
    assert_int_equal(coord_claim(other, SETUP_IDENTITY_OTHER, f->clock.ms, setup_token(2), &g, &r),
                     COORD_WAIT);
    assert_int_equal(r.wait_ms, 3600000 + 4000 + 1);
    coord_free(other);
}

static void a_full_pool_is_made_and_shown(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_snapshot s;
    static struct coord_audit a;
    assert_int_equal(make(f, COORD_WORKERS - 1), COORD_OK);
    assert_int_equal(f->r.free, COORD_WORKERS);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_OK);
    assert_int_equal(s.nqueue, COORD_WORKERS - 1);
    assert_int_equal(s.queue[0], 1);
    assert_int_equal(s.nworkers, 1);
    assert_string_equal(s.workers[0].who, SETUP_WHO);
    assert_int_equal(s.nindex, 1);
    assert_int_equal(coord_audit(&s, &a), 0);
    coord_snapshot_clear(&s);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void only_init_makes_a_file(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_pool p;
    char path[128];
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_NOPOOL);
    assert_int_equal(claim(f, &g), COORD_NOPOOL);
    assert_int_not_equal(access(f->db, F_OK), 0);
    assert_int_equal(make(f, 0), COORD_OK);
    assert_int_equal(access(f->db, F_OK), 0);
    (void)snprintf(path, sizeof path, "%s-wal", f->db);
    assert_int_equal(access(path, F_OK), 0);
    coord_idle(f->c);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(claim(f, &g), COORD_OK);
}

static void a_missing_directory_is_named(void **state)
{
    struct fixture *f = *state;
    char url[128];
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 1);
    (void)snprintf(url, sizeof url, "sqlite://%s/none/pool.db", f->dir);
    struct coord *c = setup_open(url, "p", &f->clock.clock);
    assert_int_equal(coord_init(c, &in, &f->r), COORD_REFUSED);
    coord_says(&f->r, "/none: expected a directory");
    coord_says(&f->r, "No such file or directory");
    coord_free(c);
    (void)snprintf(url, sizeof url, "sqlite://%s", f->dir);
    c = setup_open(url, "p", &f->clock.clock);
    assert_int_equal(coord_init(c, &in, &f->r), COORD_REFUSED);
    coord_says(&f->r, f->dir);
    coord_free(c);
}

static void a_deleted_file_is_noticed(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(unlink(f->db), 0);
    assert_int_equal(claim(f, &g), COORD_NOPOOL);
    assert_int_not_equal(access(f->db, F_OK), 0);
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(f->r.era, 1);
}

static void a_restored_file_reopens_the_pool(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    static char bytes[1 << 20];
    char copy[128];
    assert_int_equal(make(f, 3), COORD_OK);
    coord_idle(f->c);
    size_t n = read_file(f->db, bytes, sizeof bytes);
    assert_int_equal(claim(f, &g), COORD_OK);
    (void)snprintf(copy, sizeof copy, "%s/copy", f->dir);
    write_file(copy, bytes, n);
    coord_idle(f->c);
    assert_int_equal(rename(copy, f->db), 0);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    assert_int_equal(f->r.wait_ms, 30000 + 4000 + 1);
}

static void foreign_files_are_left_alone(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    static char bytes[1 << 16];
    query(f, "CREATE TABLE mine(a)");
    size_t n = read_file(f->db, bytes, sizeof bytes);
    assert_int_equal(claim(f, &g), COORD_REFUSED);
    assert_int_equal(make(f, 3), COORD_REFUSED);
    coord_says(&f->r, "expected a pool of version 1");
    char again[1 << 16];
    assert_int_equal(read_file(f->db, again, sizeof again), n);
    assert_memory_equal(again, bytes, n);
    write_file(f->db, "not a database, and long enough to look like a page of one ........", 66);
    assert_int_equal(claim(f, &g), COORD_REFUSED);
    coord_says(&f->r, "not a database");
    assert_int_equal(make(f, 3), COORD_REFUSED);
}

static void an_empty_file_is_no_pool_yet(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    write_file(f->db, "", 0);
    assert_int_equal(claim(f, &g), COORD_NOPOOL);
    assert_int_equal(make(f, 3), COORD_OK);
    query(f, "PRAGMA user_version = 2");
    coord_idle(f->c);
    assert_int_equal(claim(f, &g), COORD_REFUSED);
    coord_says(&f->r, "found version 2");
}

static void a_locked_file_is_down_for_no_longer_than_the_timeout(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    sqlite3 *db = NULL;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(sqlite3_open(f->db, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    int64_t start = clock_mono_ms(clock_system());
    assert_int_equal(claim(f, &g), COORD_DOWN);
    int64_t took = clock_mono_ms(clock_system()) - start;
    assert_in_range(took, 1500, 3500);
    coord_says(&f->r, "locked");
    assert_int_equal(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(g.worker, 0);
}

/* A limit on the size of files stands for a full disk. */
static void a_full_disk_is_told_and_survived(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct rlimit old;
    assert_int_equal(make(f, 200), COORD_OK);
    coord_idle(f->c);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, SIG_IGN);
    struct rlimit tight = {.rlim_cur = 4096, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    enum coord_status s = claim(f, &g);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(s == COORD_REFUSED || s == COORD_DOWN);
    coord_says(&f->r, f->db);
    assert_int_equal(claim(f, &g), COORD_OK);
}

/* ---- hostile contents ------------------------------------------------------------------------ */

static void hostile_rows_are_never_handed_out(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_snapshot s;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    query(f, "UPDATE worker SET hwm = -1;"
             "INSERT INTO worker(pool, worker, era, hwm, token, t0, n)"
             " VALUES(1, 1, 1, 5, 'no token', 0, 1);"
             "UPDATE queue SET worker = 'x' WHERE worker = 2;"
             "INSERT INTO queue(pool, worker) VALUES(1, 0), (1, 99), (1, -1), (1, NULL)");
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_OK);
    assert_int_equal(s.nworkers, 2);
    assert_true(s.workers[0].unreadable);
    assert_true(s.workers[1].unreadable);
    assert_int_equal(s.queue[1], UINT32_MAX);
    coord_snapshot_clear(&s);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(g.worker, 3);
    assert_int_equal(claim(f, &g), COORD_EXHAUSTED);
    query(f, "UPDATE pool SET era = 'x'");
    assert_int_equal(claim(f, &g), COORD_REFUSED);
    coord_says(&f->r, "sound row");
    query(f, "UPDATE pool SET era = 1, a = 86400001");
    struct coord_pool p;
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "horizon");
}

static void flipped_bits_crash_nothing(void **state)
{
    struct fixture *f = *state;
    static char good[1 << 18], bad[1 << 18];
    assert_int_equal(make(f, 50), COORD_OK);
    for (int i = 0; i < 20; i++) {
        struct coord_grant g;
        assert_int_equal(claim(f, &g), COORD_OK);
    }
    coord_idle(f->c);
    size_t n = read_file(f->db, good, sizeof good);
    unsigned ended[COORD_DOWN + 1] = {0};
    for (int round = 0; round < 300; round++) {
        struct coord_grant g;
        struct coord_snapshot s;
        memcpy(bad, good, n);
        for (uint64_t i = rng_below(rng_system(), 20) + 1; i > 0; i--)
            bad[rng_below(rng_system(), n)] ^= (char)(1u << rng_below(rng_system(), 8));
        write_file(f->db, bad, round % 10 ? n : (size_t)rng_below(rng_system(), n));
        ended[claim(f, &g)]++;
        if (coord_snapshot(f->c, &s, &f->r) == COORD_OK)
            coord_snapshot_clear(&s);
        coord_idle(f->c);
    }
    assert_true(ended[COORD_REFUSED] > 0);
}

/* ---- several at once ------------------------------------------------------------------------- */

#define PROCESSES 4
#define CLAIMS    25

static void claim_many(struct fixture *f, int out)
{
    struct coord *c = setup_open(f->url, "p", &f->clock.clock);
    for (int i = 0; i < CLAIMS; i++) {
        struct coord_grant g;
        struct coord_reply r;
        enum coord_status s =
            coord_claim(c, SETUP_IDENTITY, f->clock.ms, coord_token_new(rng_system()), &g, &r);
        if (s != COORD_OK || write(out, &g.worker, sizeof g.worker) != sizeof g.worker)
            _exit(1);
        if (i % 5 == 0)
            coord_idle(c);
    }
    coord_free(c);
    _exit(0);
}

static void processes_never_get_the_same_worker(void **state)
{
    struct fixture *f = *state;
    bool seen[PROCESSES * CLAIMS] = {false};
    int ends[2];
    uint16_t w;
    assert_int_equal(make(f, PROCESSES * CLAIMS - 1), COORD_OK);
    coord_idle(f->c);
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0)
            claim_many(f, ends[1]);
    }
    (void)close(ends[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    size_t count = 0;
    while (read(ends[0], &w, sizeof w) == sizeof w) {
        assert_false(seen[w]);
        seen[w] = true;
        count++;
    }
    (void)close(ends[0]);
    assert_int_equal(count, PROCESSES * CLAIMS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(fresh_is_not_concluded_beside_a_holder),
        TEST(who_renews_keeps_others_from_being_the_first),
        TEST(a_link_to_another_directory_is_not_fresh),
        TEST(a_directory_without_room_for_a_trace_gives_no_worker),
        TEST(hands_out_and_takes_back),
        TEST(refusals_name_both_sides),
        TEST(a_file_has_no_replicas),
        TEST(pools_of_one_file_are_apart),
        TEST(a_full_pool_is_made_and_shown),
        TEST(only_init_makes_a_file),
        TEST(a_missing_directory_is_named),
        TEST(a_deleted_file_is_noticed),
        TEST(a_restored_file_reopens_the_pool),
        TEST(foreign_files_are_left_alone),
        TEST(an_empty_file_is_no_pool_yet),
        TEST(a_locked_file_is_down_for_no_longer_than_the_timeout),
        TEST(a_full_disk_is_told_and_survived),
        TEST(hostile_rows_are_never_handed_out),
        TEST(flipped_bits_crash_nothing),
        TEST(processes_never_get_the_same_worker),
    };
    return cmocka_run_group_tests_name("coord/sqlite", tests, NULL, NULL);
}
