/* The SQLite driver where it differs from Redis: files. The rules are test_differential's. */
#include "coord/seq_calls.h"
#include "coord/sqlite.h"
#include "sqlite_rig.h"

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
    int64_t rests = 30000 + coord_params_default.grace_ms;
    assert_int_equal(f->r.wait_ms, rests + 1);
    f->clock.ms += rests;
    assert_int_equal(claim(f, &b), COORD_EXHAUSTED);
    assert_int_equal(f->r.wait_ms, 1);
    f->clock.ms += 1;
    assert_int_equal(claim(f, &b), COORD_OK);
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
    assert_int_equal(coord_close(f->c, SETUP_IDENTITY, false, &f->r), COORD_OK);
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

/* Of the same workerIds: each has its own record, and its own place in queue and index. */
static void nor_do_they_share_workers(void **state)
{
    struct fixture *f = *state;
    struct coord_grant ours, theirs, g;
    struct coord_snapshot snap;
    struct coord_reply r;
    struct coord *other = setup_open(f->url, "q", &f->clock.clock);
    struct coord_init in = setup_init(SETUP_IDENTITY_OTHER, COORD_INIT_FRESH, 0);
    assert_int_equal(make(f, 1), COORD_OK);
    assert_int_equal(coord_init(other, &in, &r), COORD_OK);
    assert_int_equal(claim(f, &ours), COORD_OK);
    f->clock.ms += 1000;
    assert_int_equal(
        coord_claim(other, SETUP_IDENTITY_OTHER, f->clock.ms, setup_token(2), &theirs, &r),
        COORD_OK);
    assert_int_equal(theirs.worker, 0);
    assert_int_equal(ours.worker, 0);
    assert_true(theirs.hi_ms > ours.hi_ms);
    assert_int_equal(coord_claim(other, SETUP_IDENTITY_OTHER, f->clock.ms, setup_token(3), &g, &r),
                     COORD_EXHAUSTED);
    assert_int_equal(coord_snapshot(f->c, &snap, &f->r), COORD_OK);
    assert_int_equal(snap.nworkers, 1);
    assert_true(snap.workers[0].hwm_ms == ours.hi_ms);
    assert_int_equal(snap.nqueue, 1);
    assert_int_equal(snap.nindex, 1);
    assert_int_equal(f->r.free, 1);
    coord_snapshot_clear(&snap);
    /* a hint that is wrong is taken out of the index, and only there */
    query(f, "UPDATE worker SET token = NULL, due = 1"
             " WHERE pool = (SELECT id FROM pool WHERE name = 'p')");
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(coord_snapshot(other, &snap, &r), COORD_OK);
    assert_int_equal(snap.nindex, 1);
    coord_snapshot_clear(&snap);
    coord_free(other);
}

/* As many as are looked at in one go, whom nobody of their own pool reaps. */
static void nor_those_who_are_due(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_reply r;
    struct coord *other = setup_open(f->url, "q", &f->clock.clock);
    struct coord_init in = setup_init(SETUP_IDENTITY_OTHER, COORD_INIT_FRESH, 31);
    struct coord_init one = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 40);
    one.params.worker_from = 40;
    assert_int_equal(coord_init(f->c, &one, &f->r), COORD_OK);
    assert_int_equal(coord_init(other, &in, &r), COORD_OK);
    for (uint8_t i = 0; i < 32; i++)
        assert_int_equal(
            coord_claim(other, SETUP_IDENTITY_OTHER, f->clock.ms, setup_token(i + 1u), &g, &r),
            COORD_OK);
    f->clock.ms += 1000;
    assert_int_equal(claim(f, &g), COORD_OK);
    f->clock.ms = g.hi_ms + (INT64_C(2) * 3600000);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_free(other);
}

static int64_t first_of(struct coord *c, const char *identity, const struct fixture *f)
{
    struct seq_grant g;
    struct coord_reply r;
    assert_int_equal(seq_reserve(c, identity, f->clock.ms, "s", "", "", 10,
                                 coord_token_new(rng_system()), &g, &r),
                     COORD_OK);
    assert_int_equal(g.how, SEQ_GRANTED);
    return seq_number(&g.definition, g.lo);
}

static void nor_sequences(void **state)
{
    struct fixture *f = *state;
    struct seq_grant g;
    struct seq_list list;
    struct coord_reply r;
    struct coord *other = setup_open(f->url, "q", &f->clock.clock);
    struct coord_init pool = setup_init(SETUP_IDENTITY_OTHER, COORD_INIT_FRESH, 5);
    struct seq_create in = {.name = "s", .definition = {.start = 1, .increment = 1}};
    assert_int_equal(make(f, 5), COORD_OK);
    assert_int_equal(coord_init(other, &pool, &r), COORD_OK);
    assert_int_equal(seq_create(f->c, SETUP_IDENTITY, &in, &g, &r), COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
    assert_true(first_of(f->c, SETUP_IDENTITY, f) == 1);
    assert_int_equal(seq_list(other, SETUP_IDENTITY_OTHER, &list, &r), COORD_OK);
    assert_int_equal(list.n, 0);
    free(list.v);
    in.definition.start = 1000;
    assert_int_equal(seq_create(other, SETUP_IDENTITY_OTHER, &in, &g, &r), COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
    assert_true(first_of(other, SETUP_IDENTITY_OTHER, f) == 1000);
    assert_true(first_of(f->c, SETUP_IDENTITY, f) == 11);
    assert_int_equal(seq_drop(f->c, SETUP_IDENTITY, "s", &g, &r), COORD_OK);
    assert_int_equal(g.how, SEQ_DONE);
    assert_int_equal(seq_sweep(f->c, SETUP_IDENTITY, "s", "", &g, &r), COORD_OK);
    assert_true(first_of(other, SETUP_IDENTITY_OTHER, f) == 1010);
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
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_NOPOOL);
    assert_int_equal(claim(f, &g), COORD_NOPOOL);
    assert_int_not_equal(access(f->db, F_OK), 0);
    assert_int_equal(make(f, 0), COORD_OK);
    assert_int_equal(access(f->db, F_OK), 0);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_false(has(f, "-wal"));
    assert_false(has(f, "-journal"));
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

/* ---- several at once ------------------------------------------------------------------------- */

#define PROCESSES 4
#define CLAIMS    25

static void claim_many(struct fixture *f, int out)
{
    struct coord *c = setup_open_within(f->url, "p", &f->clock.clock, 60000); /* a busy disk */
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

/* ---- waiting for the lock -------------------------------------------------------------------- */

static int longest_us, slept_us;

/* In place of a sleep. */
static int note_sleep(sqlite3_vfs *v, int us)
{
    (void)v;
    longest_us = us > longest_us ? us : longest_us;
    slept_us += us;
    return us;
}

/* However long somebody has waited, he looks as often as those who have just come: or else they
 * take the lock before him, again and again. */
static void all_who_wait_look_equally_often(void **state)
{
    struct fixture *f = *state;
    struct flock reserved = {.l_type = F_WRLCK, .l_start = 0x40000001, .l_len = 1};
    struct coord_grant g;
    sqlite3_vfs *usual = sqlite3_vfs_find(NULL), noting = *usual;
    assert_int_equal(make(f, 2), COORD_OK);
    coord_idle(f->c);
    noting.zName = "noting";
    noting.xSleep = note_sleep;
    assert_int_equal(sqlite3_vfs_register(&noting, 1), SQLITE_OK);
    int fd = open(f->db, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &reserved), 0);
    struct coord *c = setup_open_within(f->url, "p", &f->clock.clock, 5000);
    assert_int_equal(coord_claim(c, SETUP_IDENTITY, f->clock.ms, setup_token(1), &g, &f->r),
                     COORD_DOWN);
    coord_says(&f->r, "expected a lock within 5000 ms");
    assert_in_range(longest_us, 1, 2000);
    assert_in_range(slept_us, 5000000 - 2000, 5000000);
    assert_int_equal(close(fd), 0);
    assert_int_equal(coord_claim(c, SETUP_IDENTITY, f->clock.ms, setup_token(1), &g, &f->r),
                     COORD_OK);
    coord_free(c);
    assert_int_equal(sqlite3_vfs_unregister(&noting), SQLITE_OK);
    assert_int_equal(sqlite3_vfs_register(usual, 1), SQLITE_OK);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(hands_out_and_takes_back),
        TEST(refusals_name_both_sides),
        TEST(a_file_has_no_replicas),
        TEST(pools_of_one_file_are_apart),
        TEST(nor_do_they_share_workers),
        TEST(nor_those_who_are_due),
        TEST(nor_sequences),
        TEST(a_full_pool_is_made_and_shown),
        TEST(only_init_makes_a_file),
        TEST(a_deleted_file_is_noticed),
        TEST(a_restored_file_reopens_the_pool),
        TEST(processes_never_get_the_same_worker),
        TEST(all_who_wait_look_equally_often),
    };
    return cmocka_run_group_tests_name("coord/sqlite", tests, NULL, NULL);
}
