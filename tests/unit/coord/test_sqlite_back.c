/* Files that are set back, in place or by another one, and what stands beside them. */
#include "coord/sqlite.h"
#include "sqlite_rig.h"

/* What is put there has one holder less. */
static void set_back(struct fixture *f, void (*put)(struct fixture *, const void *, size_t))
{
    struct coord_grant g;
    static char bytes[1 << 20];
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    size_t n = read_file(f->db, bytes, sizeof bytes);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(g.worker, 1);
    coord_idle(f->c);
    put(f, bytes, n);
}

static void by_copying(struct fixture *f, const void *bytes, size_t n)
{
    write_file(f->db, bytes, n);
}

/* As .restore of sqlite3 does. */
static void by_sqlite(struct fixture *f, const void *bytes, size_t n)
{
    char copy[128];
    sqlite3 *from = NULL, *to = NULL;
    (void)snprintf(copy, sizeof copy, "%s/copy", f->dir);
    write_file(copy, bytes, n);
    assert_int_equal(sqlite3_open(copy, &from), SQLITE_OK);
    assert_int_equal(sqlite3_open(f->db, &to), SQLITE_OK);
    sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
    assert_int_equal(sqlite3_backup_step(b, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(b), SQLITE_OK);
    assert_int_equal(sqlite3_close(from), SQLITE_OK);
    assert_int_equal(sqlite3_close(to), SQLITE_OK);
}

/* Nobody who knows more has renewed: a newcomer is the first to come. */
static void a_file_set_back_in_place_is_seen_at_once(void **state)
{
    struct fixture *f = *state;
    void (*const ways[])(struct fixture *, const void *, size_t) = {by_copying, by_sqlite};
    struct coord_grant g;
    struct coord_pool p;
    for (size_t i = 0; i < 2; i++) {
        set_back(f, ways[i]);
        struct coord *newcomer = setup_open(f->url, "p", &f->clock.clock);
        enum coord_status s =
            coord_claim(newcomer, SETUP_IDENTITY, f->clock.ms, setup_token(9), &g, &f->r);
        coord_free(newcomer);
        assert_int_equal(s, COORD_WAIT);
        assert_int_equal(f->r.era, 2);
        assert_int_equal(claim(f, &g), COORD_WAIT); /* and it is reopened once */
        assert_int_equal(f->r.era, 2);
        assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
        assert_string_equal(coord_pool_cause(&p), "its file was set back to an older state");
        remove_file(f);
    }
}

/* An interrupted copy: all but the last page, where the tally is, which stays as it was. */
static void in_part(struct fixture *f, const void *bytes, size_t n)
{
    int fd = open(f->db, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, n - 4096), n - 4096);
    (void)close(fd);
}

static void a_file_set_back_in_part_is_seen_at_once(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_pool p;
    set_back(f, in_part);
    struct coord *newcomer = setup_open(f->url, "p", &f->clock.clock);
    enum coord_status s =
        coord_claim(newcomer, SETUP_IDENTITY, f->clock.ms, setup_token(9), &g, &f->r);
    coord_free(newcomer);
    assert_int_equal(s, COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_int_equal(p.later.cause, COORD_CAUSE_SET_BACK);
}

/* After the first such statement while it is set. */
static void (*meanwhile)(void);
static const char *meanwhile_after;

static int on_statement(unsigned what, void *unused, void *st, void *ns)
{
    void (*then)(void) = meanwhile;
    (void)what, (void)unused, (void)ns;
    if (!then || strncmp(sqlite3_sql(st), meanwhile_after, strlen(meanwhile_after)) != 0)
        return 0;
    meanwhile = NULL;
    then();
    return 0;
}

static int watch(sqlite3 *db, const char **why, const struct sqlite3_api_routines *api)
{
    (void)why, (void)api;
    return sqlite3_trace_v2(db, SQLITE_TRACE_PROFILE, on_statement, NULL);
}

static struct {
    struct fixture *f;
    char bytes[1 << 20];
    size_t n;
    void (*put)(struct fixture *, const void *, size_t);
    enum coord_status newcomers;
} stopped;

/* Makes a pool, whose file as it is now can be put back that way. */
static void remember(struct fixture *f, void (*put)(struct fixture *, const void *, size_t))
{
    assert_int_equal(make(f, 3), COORD_OK);
    coord_idle(f->c);
    stopped.f = f;
    stopped.n = read_file(f->db, stopped.bytes, sizeof stopped.bytes);
    stopped.put = put;
}

/* Claims, and is stopped after that statement. */
static enum coord_status claim_stopped(struct fixture *f, const char *after, void (*then)(void))
{
    struct coord_grant g;
    struct coord_pool p;
    stopped.f = f;
    assert_int_equal(sqlite3_auto_extension((void (*)(void))watch), SQLITE_OK);
    struct coord *c = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(coord_describe(c, &p, &f->r), COORD_OK); /* opens the file */
    sqlite3_reset_auto_extension();
    meanwhile_after = after;
    meanwhile = then;
    enum coord_status s = coord_claim(c, SETUP_IDENTITY, f->clock.ms, setup_token(8), &g, &f->r);
    coord_free(c);
    assert_null(meanwhile);
    return s;
}

static void set_back_and_go_on(void)
{
    struct fixture *f = stopped.f;
    struct coord_grant g;
    struct coord_reply r;
    stopped.put(f, stopped.bytes, stopped.n);
    struct coord *newcomer = setup_open(f->url, "p", &f->clock.clock);
    stopped.newcomers = coord_claim(newcomer, SETUP_IDENTITY, f->clock.ms, setup_token(9), &g, &r);
    coord_free(newcomer);
}

/* Nothing tells the newcomer of a transaction whose number does not stand beside the file yet; then
 * it is the newcomer's that has that number, and after cp SQLite's count, too. */
static void what_was_set_back_before_its_answer_is_not_answered(void **state)
{
    struct fixture *f = *state;
    void (*const ways[])(struct fixture *, const void *, size_t) = {by_copying, by_sqlite};
    for (size_t i = 0; i < 2; i++) {
        remember(f, ways[i]);
        assert_int_equal(claim_stopped(f, "COMMIT", set_back_and_go_on), COORD_DOWN);
        coord_says(&f->r, "found it set back");
        assert_int_equal(stopped.newcomers, COORD_OK);
        remove_file(f);
        setup_forget_tally(f->dir);
    }
}

static void set_back_and_changed(void)
{
    stopped.put(stopped.f, stopped.bytes, stopped.n);
    query(stopped.f, "UPDATE tally SET device = device + 1");
}

/* By whoever was killed before there was a name: SQLite's count is that of the answer. */
static void what_is_looked_for_is_what_the_file_has(void **state)
{
    struct fixture *f = *state;
    remember(f, by_copying);
    assert_int_equal(claim_stopped(f, "COMMIT", set_back_and_changed), COORD_DOWN);
    coord_says(&f->r, "found it set back");
}

static struct rlimit files;

static void no_more_files(void)
{
    struct rlimit none = {.rlim_cur = 0, .rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
}

/* Two branches of the file from one state, each with a transaction of the same number: the one that
 * is stopped, or killed, before its name stands, and the newcomer's, which is answered. Then the
 * first comes back. */
static void set_back_and_there_again(void)
{
    static char own[1 << 20];
    size_t n = read_file(stopped.f->db, own, sizeof own);
    set_back_and_go_on();
    stopped.put(stopped.f, own, n);
}

/* The same, and the newcomer is answered twice: the highest name is of a later number. */
static void set_back_and_there_again_later(void)
{
    static char own[1 << 20];
    struct coord_grant g;
    struct coord_reply r;
    struct fixture *f = stopped.f;
    size_t n = read_file(f->db, own, sizeof own);
    set_back_and_go_on();
    struct coord *newcomer = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(coord_claim(newcomer, SETUP_IDENTITY, f->clock.ms, setup_token(10), &g, &r),
                     COORD_OK);
    coord_free(newcomer);
    stopped.put(f, own, n);
}

static void another_branch_that_is_farther_is_seen(void **state)
{
    struct fixture *f = *state;
    void (*const ways[])(struct fixture *, const void *, size_t) = {by_copying, by_sqlite};
    struct coord_grant g;
    for (size_t i = 0; i < 2; i++) {
        remember(f, ways[i]);
        assert_int_equal(claim_stopped(f, "COMMIT", set_back_and_there_again_later), COORD_DOWN);
        coord_says(&f->r, "found it set back");
        assert_int_equal(stopped.newcomers, COORD_OK);
        assert_int_equal(claim(f, &g), COORD_WAIT); /* nor is what it was granted given again */
        assert_int_equal(f->r.era, 2);
        remove_file(f);
        setup_forget_tally(f->dir);
    }
}

static void another_branch_with_the_same_number_is_seen(void **state)
{
    struct fixture *f = *state;
    void (*const ways[])(struct fixture *, const void *, size_t) = {by_copying, by_sqlite};
    struct coord_grant g;
    for (size_t i = 0; i < 2; i++) {
        remember(f, ways[i]);
        assert_int_equal(claim_stopped(f, "COMMIT", set_back_and_there_again), COORD_DOWN);
        coord_says(&f->r, "found it set back");
        assert_int_equal(stopped.newcomers, COORD_OK);
        assert_int_equal(claim(f, &g), COORD_WAIT); /* the newcomer's workerId is not given again */
        assert_int_equal(f->r.era, 2);
        assert_int_equal(claim(f, &g), COORD_WAIT);
        assert_int_equal(f->r.era, 2);
        remove_file(f);
        setup_forget_tally(f->dir);
    }
}

static void killed(void)
{
    set_back_and_there_again();
    no_more_files(); /* its name never stands */
}

static void another_branch_with_the_number_of_who_was_killed_is_seen(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    remember(f, by_sqlite);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    enum coord_status s = claim_stopped(f, "COMMIT", killed);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(s, COORD_DOWN);
    assert_int_equal(stopped.newcomers, COORD_OK);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
}

/* Commits that have no name beside: of somebody who was killed, or where none can be made. */
static void claim_unnamed(struct fixture *f, unsigned times)
{
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    for (unsigned i = 0; i < times; i++) {
        enum coord_status s = claim_stopped(f, "COMMIT", no_more_files);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
        assert_int_equal(s, COORD_DOWN);
    }
}

/* Another branch was answered with a number that this one passed without a name: by few or many,
 * and though it was seen since that something else was lost. */
static void what_was_answered_before_unnamed_transactions_is_not_forgotten(void **state)
{
    struct fixture *f = *state;
    static const struct {
        unsigned times;
        const char *sql;
    } table[] = {{2, "SELECT 1"},
                 {SQLITE_PAST_MAX + 6, "SELECT 1"},
                 {2, "UPDATE tally SET device = device + 1"}};
    static char newer[1 << 20];
    struct coord_grant g;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        remember(f, by_copying);
        claim_unnamed(f, table[i].times);
        query(f, table[i].sql);
        claim_unnamed(f, 1);
        size_t n = read_file(f->db, newer, sizeof newer);
        set_back_and_go_on();
        assert_int_equal(stopped.newcomers, COORD_OK);
        by_copying(f, newer, n);
        coord_free(f->c);
        f->c = setup_open(f->url, "p", &f->clock.clock);
        struct coord_pool before, p;
        f->clock.ms += 1000;
        assert_int_equal(coord_describe(f->c, &before, &f->r), COORD_OK);
        assert_int_not_equal(claim(f, &g), COORD_OK);
        assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
        assert_true(p.topen_ms > before.topen_ms); /* reopened */
        remove_file(f);
        setup_forget_tally(f->dir);
    }
}

/* Nobody comes to the largest tick but by a name that was put there, and from then on nothing would
 * show a file that is set back. */
static void the_largest_tick_is_refused(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_init again = setup_init(SETUP_IDENTITY, COORD_INIT_AFTER_LOSS, 0);
    char path[128];
    remember(f, by_copying);
    (void)snprintf(path, sizeof path, "%s/.pool.db-tally.999999999999998.7", f->dir);
    write_file(path, "", 0);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(claim(f, &g), COORD_REFUSED);
        coord_says(&f->r, "make a file .pool.db-tally.0, remove pool.db and all other names");
        remove_file(f); /* not enough */
        assert_int_equal(coord_init(f->c, &again, &f->r), COORD_REFUSED);
    }
    remove_file(f);
    setup_forget_tally(f->dir);
    assert_int_equal(coord_init(f->c, &again, &f->r), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_WAIT);
}

/* One branch for which another was put in place, as many changes on, while it was not looked at. */
static void another_branch_is_not_taken_for_what_was_read_before(void **state)
{
    struct fixture *f = *state;
    static char other[1 << 20];
    struct coord_grant g;
    struct coord_release none = {.worker = 2, .cur = setup_token(3), .nxt = setup_token(4)};
    remember(f, by_copying);
    claim_unnamed(f, 1);
    size_t n = read_file(f->db, other, sizeof other);
    by_copying(f, stopped.bytes, stopped.n);
    f->clock.ms += 200000;
    assert_int_equal(claim(f, &g), COORD_OK);
    by_copying(f, other, n);
    assert_int_equal(coord_release(f->c, SETUP_IDENTITY, &none, &f->r), COORD_LOST);
    assert_int_equal(f->r.era, 2);
    f->clock.ms += 1000;
    assert_int_equal(claim(f, &g), COORD_WAIT);
}

/* Whoever was answered knows it without a name beside, too. */
static void another_branch_is_seen_by_who_was_answered(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    remember(f, by_copying);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    setup_forget_tally(f->dir);
    set_back_and_go_on();
    assert_int_equal(stopped.newcomers, COORD_OK);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
}

/* A page of before with the rows of the latest transactions, and all others as they were. */
static void rows_that_are_older_than_the_tally_are_seen(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    query(f, "DELETE FROM past WHERE tick = (SELECT tick FROM tally)");
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
}

static void set_back_only(void)
{
    stopped.put(stopped.f, stopped.bytes, stopped.n);
}

/* By somebody who takes no heed of locks: it would be read in part from the one, in part from the
 * other. */
static void what_is_set_back_within_a_transaction_is_not_written(void **state)
{
    struct fixture *f = *state;
    const char *const after[] = {"SELECT tick", "DELETE FROM past", "SELECT id, identity"};
    struct coord_grant g;
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        remember(f, by_copying);
        assert_int_equal(claim(f, &g), COORD_OK);
        coord_idle(f->c);
        assert_int_equal(claim_stopped(f, after[i], set_back_only), COORD_DOWN);
        assert_int_equal(claim(f, &g), COORD_WAIT);
        assert_int_equal(f->r.era, 2);
        remove_file(f);
        setup_forget_tally(f->dir);
    }
}

/* As cp does before it writes. */
static void cut_short(void)
{
    assert_int_equal(truncate(stopped.f->db, 0), 0);
}

static void what_is_cut_short_within_a_transaction_is_told(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    remember(f, by_copying);
    assert_int_equal(claim_stopped(f, "UPDATE worker SET who", cut_short), COORD_DOWN);
    coord_says(&f->r, "expected the transaction to be written, found it cut short");
    by_copying(f, stopped.bytes, stopped.n);
    assert_int_equal(claim(f, &g), COORD_OK); /* what was to be written is not missed */
}

static void put_another_there(void)
{
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s/copy", stopped.f->dir);
    write_file(copy, stopped.bytes, stopped.n);
    assert_int_equal(rename(copy, stopped.f->db), 0);
}

/* It was written to a file that is at the path no more: what is there now does not have it. */
static void what_was_written_to_a_file_that_was_replaced_is_not_answered(void **state)
{
    struct fixture *f = *state;
    remember(f, by_copying);
    assert_int_equal(claim_stopped(f, "COMMIT", put_another_there), COORD_DOWN);
    coord_says(&f->r, "found it set back");
}

static void go_on_for_long(void)
{
    struct coord_grant g;
    struct coord_reply r;
    struct coord *newcomer = setup_open(stopped.f->url, "p", &stopped.f->clock.clock);
    for (unsigned i = 0; i < SQLITE_PAST_MAX - 1; i++)
        (void)coord_claim(newcomer, SETUP_IDENTITY, stopped.f->clock.ms, setup_token(9), &g, &r);
    coord_free(newcomer);
}

/* Others have gone on from it. */
static void what_others_wrote_since_is_no_harm(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(make(f, 3), COORD_OK);
    coord_idle(f->c);
    assert_int_equal(claim_stopped(f, "COMMIT", go_on_for_long), COORD_OK);
}

/* VACUUM in place and .restore of what is there lose nothing; a file made anew from one has an
 * inode of its own, and a count. */
static void a_file_written_anew_was_not_set_back(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_pool p;
    static char bytes[1 << 20];
    char text[192];
    assert_int_equal(make(f, 5), COORD_OK);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(claim(f, &g), COORD_OK);
    query(f, "VACUUM");
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    by_sqlite(f, bytes, read_file(f->db, bytes, sizeof bytes));
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(f->r.era, 1);
    coord_idle(f->c);
    (void)snprintf(text, sizeof text, "VACUUM INTO '%s/anew'", f->dir);
    query(f, text);
    (void)snprintf(text, sizeof text, "%s/anew", f->dir);
    assert_int_equal(rename(text, f->db), 0);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(coord_describe(f->c, &p, &f->r), COORD_OK);
    assert_int_equal(p.later.cause, COORD_CAUSE_MOVED);
}

/* A file that is known to be older is no matter for a bet, nor for an operator's word. */
static void what_is_known_to_be_older_does_not_settle(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    static char bytes[1 << 20];
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    in.settle_ms = 30000;
    assert_int_equal(coord_init(f->c, &in, &f->r), COORD_OK);
    coord_idle(f->c);
    size_t n = read_file(f->db, bytes, sizeof bytes);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    f->clock.ms += 300000; /* too late for a short floor */
    by_copying(f, bytes, n);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_true(f->r.wait_ms > 3600000);
    f->clock.ms += 600000;
    assert_int_not_equal(coord_nothing_lost(f->c, SETUP_IDENTITY, &f->r), COORD_OK);
    coord_says(&f->r, "knows more");
}

/* The directory's files were all set back, and what stood beside taken away. */
static void whoever_was_answered_sees_it_too(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    set_back(f, by_copying);
    setup_forget_tally(f->dir);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
}

/* How much was answered from one file says nothing of another, which its inode tells already. */
static void another_file_was_not_set_back(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct coord_pool pool;
    static char bytes[1 << 20];
    char copy[128];
    assert_int_equal(make(f, 9), COORD_OK);
    coord_idle(f->c);
    size_t n = read_file(f->db, bytes, sizeof bytes);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    (void)snprintf(copy, sizeof copy, "%s/copy", f->dir);
    write_file(copy, bytes, n);
    setup_forget_tally(f->dir);
    assert_int_equal(rename(copy, f->db), 0);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(coord_describe(f->c, &pool, &f->r), COORD_OK);
    assert_int_equal(pool.later.cause, COORD_CAUSE_MOVED);
}

static char replacement[128], replaced[128];

/* Called by SQLite whenever a file has been opened. */
static int replace_it(sqlite3 *db, const char **why, const struct sqlite3_api_routines *api)
{
    (void)db, (void)why, (void)api;
    return rename(replacement, replaced) == 0 || errno == ENOENT ? SQLITE_OK : SQLITE_ERROR;
}

static void a_file_replaced_while_it_is_opened_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    static char bytes[1 << 20];
    assert_int_equal(make(f, 9), COORD_OK);
    coord_idle(f->c);
    size_t n = read_file(f->db, bytes, sizeof bytes);
    (void)snprintf(replacement, sizeof replacement, "%s/copy", f->dir);
    (void)snprintf(replaced, sizeof replaced, "%s", f->db);
    write_file(replacement, bytes, n);
    struct coord_pool p;
    assert_int_equal(sqlite3_auto_extension((void (*)(void))replace_it), SQLITE_OK);
    enum coord_status s = coord_describe(f->c, &p, &f->r); /* which writes nothing */
    sqlite3_reset_auto_extension();
    assert_int_equal(s, COORD_DOWN);
    coord_says(&f->r, "found it replaced just now");
    assert_int_equal(claim(f, &g), COORD_WAIT); /* the next one finds what is there */
    assert_int_equal(f->r.era, 2);
}

static void the_other_pools_of_a_file_set_back_are_reopened_too(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    static char bytes[1 << 20];
    struct coord *other = setup_open(f->url, "q", &f->clock.clock);
    struct coord_init in = setup_init(SETUP_IDENTITY_OTHER, COORD_INIT_FRESH, 5);
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(coord_init(other, &in, &f->r), COORD_OK);
    coord_idle(f->c);
    coord_idle(other);
    size_t n = read_file(f->db, bytes, sizeof bytes);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_idle(f->c);
    write_file(f->db, bytes, n);
    assert_int_equal(claim(f, &g), COORD_WAIT);
    enum coord_status s =
        coord_claim(other, SETUP_IDENTITY_OTHER, f->clock.ms, setup_token(2), &g, &f->r);
    coord_free(other);
    assert_int_equal(s, COORD_WAIT);
    assert_int_equal(f->r.era, 2);
}

/* A crash between the commit and what is left beside; a disk that lost it; files of before. */
static void a_sound_file_is_never_taken_for_an_old_one(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    char path[128];
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_free(f->c);
    f->c = setup_open(f->url, "p", &f->clock.clock);
    setup_forget_tally(f->dir);
    (void)snprintf(path, sizeof path, "%s/.pool.db-tally.1", f->dir);
    write_file(path, "", 0);
    assert_int_equal(claim(f, &g), COORD_OK);
    coord_free(f->c);
    f->c = setup_open(f->url, "p", &f->clock.clock);
    setup_forget_tally(f->dir);
    assert_int_equal(claim(f, &g), COORD_OK);
    setup_forget_tally(f->dir);
    query(f, "DROP TABLE tally");
    coord_free(f->c);
    f->c = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(f->r.era, 1);
}

/* A reboot gives devices other numbers, and loses nothing; within one boot it is another disk. */
static void a_device_is_known_by_its_number_within_one_boot(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    query(f, "UPDATE tally SET device = device + 1, boot = 'before'");
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(f->r.era, 1);
    query(f, "UPDATE tally SET device = device + 1");
    assert_int_equal(claim(f, &g), COORD_WAIT);
    assert_int_equal(f->r.era, 2);
}

static void what_cannot_stand_beside_is_not_answered(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    enum coord_status s = claim_stopped(f, "COMMIT", no_more_files);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(s, COORD_DOWN);
    coord_says(&f->r, "a directory to leave a file in");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_file_set_back_in_place_is_seen_at_once),
        TEST(a_file_set_back_in_part_is_seen_at_once),
        TEST(what_was_set_back_before_its_answer_is_not_answered),
        TEST(another_branch_with_the_same_number_is_seen),
        TEST(another_branch_that_is_farther_is_seen),
        TEST(another_branch_with_the_number_of_who_was_killed_is_seen),
        TEST(what_was_answered_before_unnamed_transactions_is_not_forgotten),
        TEST(another_branch_is_seen_by_who_was_answered),
        TEST(what_is_looked_for_is_what_the_file_has),
        TEST(the_largest_tick_is_refused),
        TEST(another_branch_is_not_taken_for_what_was_read_before),
        TEST(rows_that_are_older_than_the_tally_are_seen),
        TEST(what_is_set_back_within_a_transaction_is_not_written),
        TEST(what_is_cut_short_within_a_transaction_is_told),
        TEST(what_was_written_to_a_file_that_was_replaced_is_not_answered),
        TEST(what_others_wrote_since_is_no_harm),
        TEST(a_file_written_anew_was_not_set_back),
        TEST(what_is_known_to_be_older_does_not_settle),
        TEST(whoever_was_answered_sees_it_too),
        TEST(another_file_was_not_set_back),
        TEST(a_file_replaced_while_it_is_opened_is_not_used),
        TEST(the_other_pools_of_a_file_set_back_are_reopened_too),
        TEST(a_sound_file_is_never_taken_for_an_old_one),
        TEST(a_device_is_known_by_its_number_within_one_boot),
        TEST(what_cannot_stand_beside_is_not_answered),
    };
    return cmocka_run_group_tests_name("coord/sqlite", tests, NULL, NULL);
}
