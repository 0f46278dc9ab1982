/* The SQLite driver and what may be wrong with its file. */
#include "coord/place.h"
#include "coord/tally.h"
#include "sqlite_rig.h"

#include <sys/mount.h>

static sqlite3 *keep_in_wal(struct fixture *f)
{
    struct sqlite3 *other = NULL;
    coord_idle(f->c);
    query(f, "PRAGMA journal_mode = WAL");
    assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "SELECT count(*) FROM pool", NULL, NULL, NULL), SQLITE_OK);
    return other;
}

/* Beside a file that was put back it would be read with it. */
static void a_wal_is_left(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    assert_int_equal(make(f, 1), COORD_OK);
    coord_idle(f->c);
    query(f, "PRAGMA journal_mode = WAL");
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_false(has(f, "-wal"));
    coord_idle(f->c);
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "SELECT count(*) FROM pool", NULL, NULL, NULL), SQLITE_OK);
    assert_false(has(f, "-wal"));
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
}

/* … and where it cannot be left, nothing is asked of that file, and nothing written. */
static void a_file_kept_in_wal_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_pool p;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    query(f, "ALTER TABLE pool DROP COLUMN leap"); /* as of an earlier program */
    query(f, "ALTER TABLE pool DROP COLUMN leapt");
    sqlite3 *other = keep_in_wal(f);
    assert_true(has(f, "-wal"));
    query(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    static char before[1 << 20], after[1 << 20];
    size_t n = read_file(f->db, before, sizeof before);
    assert_int_equal(claim(f, &g), COORD_DOWN);
    coord_says(&f->r, "WAL mode");
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_DOWN);
    assert_int_equal(coord_close(f->c, SETUP_IDENTITY, false, &f->r), COORD_DOWN);
    query(f, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_int_equal(read_file(f->db, after, sizeof after), n);
    assert_memory_equal(before, after, n);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(g.worker, 1);
    assert_int_equal(f->r.era, 1);
}

/* The switch is seen in the transaction, be the file open or not. */
static void a_file_switched_to_wal_while_it_is_open_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct sqlite3 *other = NULL;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(sqlite3_open(f->db, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "PRAGMA journal_mode = WAL", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(claim(f, &g), COORD_DOWN);
    coord_says(&f->r, "WAL mode");
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
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
    assert_int_equal(mkdir(f->db, 0700), 0);
    c = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(coord_init(c, &in, &f->r), COORD_REFUSED);
    coord_says(&f->r, f->db);
    assert_int_equal(rmdir(f->db), 0);
    coord_free(c);
}

static void refuses_a_strangers(struct fixture *f, const char *name)
{
    struct coord_grant g;
    struct coord_pool p;
    char journal[160], link[128], url[160];
    (void)snprintf(journal, sizeof journal, "%s%s", f->db, name);
    (void)snprintf(link, sizeof link, "%s/link", f->dir);
    (void)snprintf(url, sizeof url, "sqlite://%s", link);
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(symlink(f->db, link), 0);
    write_file(journal, "", 0);
    assert_int_equal(chmod(f->dir, 01777), 0);
    assert_int_equal(claim(f, &g), COORD_OK); /* it is ours */
    coord_idle(f->c);
    write_file(journal, "", 0);
    assert_int_equal(chown(journal, 4711, 4711), 0);
    assert_int_equal(claim(f, &g), COORD_REFUSED);
    coord_says(&f->r, "found one of uid 4711");
    coord_idle(f->c);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_REFUSED);
    struct coord *c = setup_open(url, "p", &f->clock.clock);
    assert_int_equal(coord_describe(c, &p, &f->r), COORD_REFUSED);
    coord_free(c);
    assert_int_equal(chown(f->db, 4711, 4711), 0); /* the pool is his */
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_int_equal(chown(f->db, 4712, 4711), 0);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_REFUSED);
    assert_int_equal(chmod(f->db, 0664), 0); /* … or his group's, maybe */
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_int_equal(chmod(f->db, 0644), 0);
    assert_int_equal(chmod(f->dir, 0775), 0); /* who may make files there is trusted */
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_int_equal(unlink(journal), 0);
    assert_int_equal(unlink(link), 0);
    remove_file(f);
    setup_forget_tally(f->dir);
}

/* SQLite would play it back, or read by it. */
static void a_strangers_journal_is_refused(void **state)
{
    if (geteuid() != 0)
        skip();
    refuses_a_strangers(*state, "-journal");
    refuses_a_strangers(*state, "-wal");
    refuses_a_strangers(*state, "-shm");
}

/* Whoever may read it may lock it. */
static void others_may_not_read_it(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    mode_t before = umask(0022);
    assert_int_equal(make(f, 3), COORD_OK);
    (void)umask(before);
    assert_int_equal(stat(f->db, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
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

/* As version 0.1.0 left it; that goes on using it beside us. */
static void a_file_without_the_later_columns_gets_them(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_pool p;
    static const char *const later[] = {"settle", "settle0", "settle_t", "fl0",   "fs0",   "era0",
                                        "more",   "trust",   "lent",     "ahead", "every", "cause",
                                        "fence",  "least",   "leap",     "leapt"};
    char sql[64];
    assert_int_equal(make(f, 3), COORD_OK);
    coord_idle(f->c);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        (void)snprintf(sql, sizeof sql, "ALTER TABLE pool DROP COLUMN %s", later[i]);
        query(f, sql);
    }
    query(f, "DROP TABLE past; DROP TABLE tally");
    setup_forget_tally(f->dir);
    coord_free(f->c);
    f->c = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(f->r.era, 1);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_int_equal(p.later.settle_ms, 0);
    assert_int_equal(coord_pool_settle(&p, f->r.now_ms), p.params.horizon_ms);
    assert_int_equal(coord_settle(f->c, SETUP_IDENTITY, p.params.horizon_ms / 2, &f->r), COORD_OK);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_int_equal(p.later.settle_ms, p.params.horizon_ms / 2);
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

/* Nobody holds a lock then, whom lslocks could tell. */
static void who_takes_too_long_is_not_told_to_look_for_a_lock(void **state)
{
    struct fixture *f = *state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 32767);
    struct coord *c = setup_open_within(f->url, "p", clock_system(), 1);
    assert_int_equal(coord_init(c, &in, &f->r), COORD_DOWN);
    coord_says(&f->r, "expected to be through within 1 ms");
    coord_free(c);
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
    /* Where in a transaction it shows is no difference. */
    for (rlim_t size = 512; size <= 4096; size *= 2) {
        struct rlimit tight = {.rlim_cur = size, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        enum coord_status s = claim(f, &g);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        assert_int_equal(s, COORD_DOWN);
        assert_true(coord_answered(s, &f->r));
        coord_says(&f->r, f->db);
        coord_says(&f->r, "expected the transaction to be written, found ");
    }
    assert_int_equal(claim(f, &g), COORD_OK);
}

/* What a file system with as many inodes does: of a new pool, of an old one, and when there is
 * room. */
static void no_inode_left_is_told_and_survived(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    char filler[128];
    if (mount("none", f->dir, "tmpfs", 0, "size=4m,nr_inodes=20") < 0) {
        print_message("skipped: a file system to fill wants root\n");
        skip();
    }
    enum coord_status made = make(f, 200), claimed = claim(f, &g);
    int fillers = 0;
    for (int fd = 0; fd >= 0; fillers += fd >= 0) {
        (void)snprintf(filler, sizeof filler, "%s/filler%d", f->dir, fillers);
        fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            (void)close(fd);
    }
    enum coord_status full = claim(f, &g);
    struct coord_reply told = f->r;
    (void)unlink(f->db);
    (void)snprintf(filler, sizeof filler, "%s/one-more", f->dir);
    write_file(filler, "", 0); /* in its place */
    enum coord_status none = make(f, 200);
    struct coord_reply why = f->r;
    (void)unlink(filler);
    for (int i = 0; i < fillers; i++) {
        (void)snprintf(filler, sizeof filler, "%s/filler%d", f->dir, i);
        (void)unlink(filler);
    }
    enum coord_status later = make(f, 200);
    coord_idle(f->c);
    coord_free(f->c);
    f->c = NULL;
    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
    assert_int_equal(made, COORD_OK);
    assert_int_equal(claimed, COORD_OK);
    assert_true(fillers > 0);
    coord_came_to(&told, full, COORD_DOWN);
    assert_true(coord_answered(full, &told));
    coord_says(&told, "No space left on device");
    coord_came_to(&why, none, COORD_DOWN);
    coord_says(&why, "No space left on device");
    assert_int_equal(later, COORD_OK);
}

/* ---- hostile contents ------------------------------------------------------------------------ */

/* Cut to its lowest bits each would be a pool of other workerIds, and with no floor at all one
 * would grant what earlier holders still issue from. */
static void a_pool_of_numbers_that_cannot_be_grants_nothing(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    static const char *const odd[] = {
        "w_to = 65539", "w_to = 32768", "w_from = 65536", "k = 65536", "fl = NULL",
        "fs = NULL",    "born = NULL",  "closed = ''",    "s = -1",
    };
    assert_int_equal(make(f, 3), COORD_OK);
    query(f, "CREATE TABLE sound AS SELECT * FROM pool");
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char sql[128];
        (void)snprintf(sql, sizeof sql, "UPDATE pool SET %s", odd[i]);
        query(f, sql);
        if (claim(f, &g) != COORD_REFUSED)
            fail_msg("%s: expected a refusal, found a grant", odd[i]);
        coord_says(&f->r, "sound row");
        query(f, "DELETE FROM pool; INSERT INTO pool SELECT * FROM sound");
    }
    assert_int_equal(claim(f, &g), COORD_OK);
}

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
             "INSERT INTO queue(pool, worker) VALUES(1, 0), (1, 99), (1, -1), (1, NULL),"
             " (1, 4294967299)");
    assert_int_equal(coord_snapshot(f->c, &s, &f->r), COORD_OK);
    assert_int_equal(s.nworkers, 2);
    assert_true(s.workers[0].unreadable);
    assert_true(s.workers[1].unreadable);
    assert_int_equal(s.queue[1], UINT32_MAX);
    assert_int_equal(s.queue[s.nqueue - 1], UINT32_MAX);
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

/* SQLite has one word for that and for a full disk, so both are named. */
static void row_numbers_that_are_used_up_are_told_beside_a_full_disk(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_token t = setup_token(1);
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(coord_claim(f->c, SETUP_IDENTITY, f->clock.ms, t, &g, &f->r), COORD_OK);
    query(f, "UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'queue'");
    struct coord_release gone = {
        .worker = 0, .cur = t, .nxt = t, .has_last = true, .last_ms = SETUP_T0_MS - 1};
    assert_int_equal(coord_release(f->c, SETUP_IDENTITY, &gone, &f->r), COORD_DOWN);
    coord_says(&f->r, "database or disk is full, or row numbers: see seq in sqlite_sequence");
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

/* SQLite's own words, and what to do. */
static void a_damaged_file_is_named(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_snapshot snap;
    assert_int_equal(make(f, 9), COORD_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    query(f, "PRAGMA writable_schema = ON;"
             "UPDATE sqlite_master SET sql = 'CREATE INDEX worker_due ON worker(pool, n) WHERE due"
             " IS NOT NULL' WHERE name = 'worker_due'");
    assert_int_equal(coord_snapshot(f->c, &snap, &f->r), COORD_REFUSED);
    coord_says(&f->r, "worker_due");
    coord_says(&f->r, "remove it");
    coord_idle(f->c);
    assert_int_equal(truncate(f->db, 5000), 0);
    assert_int_equal(claim(f, &g), COORD_REFUSED);
    coord_says(&f->r, "malformed");
    coord_says(&f->r, "remove it");
}

/* A mistyped path is not to cost somebody his file. */
static void somebody_elses_file_is_not_to_be_removed(void **state)
{
    struct fixture *f = *state;
    struct coord_pool p;
    char text[4096];
    memset(text, 'x', sizeof text);
    write_file(f->db, text, sizeof text);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "file is not a database");
    assert_null(strstr(f->r.err.text, "remove"));
}

/* Of all that may keep a file from being opened. */
static void what_cannot_be_opened_says_why(void **state)
{
    struct fixture *f = *state;
    struct coord_pool p;
    assert_int_equal(mkdir(f->db, 0700), 0);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "Is a directory");
    assert_int_equal(rmdir(f->db), 0);
    assert_int_equal(symlink("/dev/zero", f->db), 0);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "expected a file, found a device, a pipe or a socket");
    assert_int_equal(make(f, 1), COORD_REFUSED);
    assert_int_equal(unlink(f->db), 0);
    assert_int_equal(symlink("/dev/full/none", f->db), 0);
    assert_int_equal(make(f, 1), COORD_REFUSED);
    coord_says(&f->r, "Not a directory");
    char url[512];
    struct err e;
    struct coord *c;
    (void)snprintf(url, sizeof url, "sqlite:/tmp/%0*d", TALLY_NAME_MAX + 1, 0);
    struct coord_options o = {
        .url = span_str(url), .pool = SPAN("p"), .timeout_us = 1000000, .clock = &f->clock.clock};
    assert_int_equal(coord_open(&o, &c, &e), ERR_RANGE);
    url[strlen(url) - 1] = '\0';
    o.url = span_str(url);
    assert_int_equal(coord_open(&o, &c, &e), ERR_OK);
    coord_free(c);
}

static void a_journal_that_is_a_pipe_is_not_waited_for(void **state)
{
    static const char *const beside[] = {"-journal", "-wal", "-shm"};
    struct fixture *f = *state;
    struct coord_pool p;
    char name[sizeof f->db + 16];
    assert_int_equal(make(f, 3), COORD_OK);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        (void)snprintf(name, sizeof name, "%s%s", f->db, beside[i]);
        coord_idle(f->c);
        (void)unlink(name);
        assert_int_equal(mkfifo(name, 0600), 0);
        assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_REFUSED);
        coord_says(&f->r, "expected a journal or nothing, found another kind of file");
        assert_int_equal(unlink(name), 0);
        assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    }
}

/* By another name of it SQLite would not play back what was cut short by this one. */
static void a_file_of_two_names_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    char other[128], url[160];
    (void)snprintf(other, sizeof other, "%s/other.db", f->dir);
    (void)snprintf(url, sizeof url, "sqlite://%s", other);
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(link(f->db, other), 0);
    assert_int_equal(claim(f, &g), COORD_REFUSED); /* be the file open or not */
    coord_says(&f->r, "found 2 hard links");
    struct coord *c = setup_open(url, "p", &f->clock.clock);
    struct coord_pool p;
    assert_int_equal(coord_describe(c, &p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "other.db: expected a file of one name");
    coord_free(c);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(g.worker, 1);
    assert_int_equal(f->r.era, 1);
}

static void a_file_mounted_alone_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_pool p;
    char other[128], url[160];
    (void)snprintf(other, sizeof other, "%s/other.db", f->dir);
    (void)snprintf(url, sizeof url, "sqlite://%s", other);
    assert_int_equal(make(f, 3), COORD_OK);
    write_file(other, "", 0);
    if (mount(f->db, other, NULL, MS_BIND, NULL) < 0)
        skip();
    struct coord *c = setup_open(url, "p", &f->clock.clock);
    enum coord_status s = coord_describe(c, &p, &f->r);
    coord_free(c);
    assert_int_equal(umount(other), 0);
    assert_int_equal(s, COORD_REFUSED);
    coord_says(&f->r, "mount the directory");
    assert_int_equal(claim(f, &g), COORD_OK);
}

/* A copy of a whole file system, mounted over the first one, has the same inodes and births. */
static void a_place_is_a_device_and_an_inode_with_its_birth(void **state)
{
    const struct place here = {.device = 1, .inode = "2:3.4"};
    const struct place others[] = {{.device = 2, .inode = "2:3.4"},
                                   {.device = 1, .inode = "2:3.5"}};
    (void)state;
    assert_true(place_same(&here, &here));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(place_same(&here, &others[i]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_wal_is_left),
        TEST(a_file_kept_in_wal_is_not_used),
        TEST(a_file_switched_to_wal_while_it_is_open_is_not_used),
        TEST(a_missing_directory_is_named),
        TEST(a_strangers_journal_is_refused),
        TEST(others_may_not_read_it),
        TEST(foreign_files_are_left_alone),
        TEST(an_empty_file_is_no_pool_yet),
        TEST(a_file_without_the_later_columns_gets_them),
        TEST(a_locked_file_is_down_for_no_longer_than_the_timeout),
        TEST(who_takes_too_long_is_not_told_to_look_for_a_lock),
        TEST(a_full_disk_is_told_and_survived),
        TEST(no_inode_left_is_told_and_survived),
        TEST(a_pool_of_numbers_that_cannot_be_grants_nothing),
        TEST(hostile_rows_are_never_handed_out),
        TEST(row_numbers_that_are_used_up_are_told_beside_a_full_disk),
        TEST(flipped_bits_crash_nothing),
        TEST(a_damaged_file_is_named),
        TEST(somebody_elses_file_is_not_to_be_removed),
        TEST(what_cannot_be_opened_says_why),
        TEST(a_journal_that_is_a_pipe_is_not_waited_for),
        TEST(a_file_of_two_names_is_not_used),
        TEST(a_file_mounted_alone_is_not_used),
        TEST(a_place_is_a_device_and_an_inode_with_its_birth),
    };
    return cmocka_run_group_tests_name("coord/sqlite_file", tests, NULL, NULL);
}
