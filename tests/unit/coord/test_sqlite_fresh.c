/* Pools that are made unattended: only where nobody can have used the file before. */
#include "sqlite_rig.h"

static enum coord_status make_unattended(struct coord *c, struct coord_reply *r)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    in.unattended = true;
    return coord_init(c, &in, r);
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
    coord_says(&f->r,
               "another sidecar that uses this file: if \"p\" is its pool, too, its log has");
    assert_int_equal(access(f->db, F_OK), -1);
    coord_free(f->c); /* it has ended, but what it was granted outlives it in its page */
    f->c = setup_open(f->url, "p", &f->clock.clock);
    assert_int_equal(make_unattended(other, &f->r), COORD_REFUSED);
    coord_says(&f->r, "a path that nobody used before");
    coord_free(other);
}

/* Whoever renews may go on, so he is a holder though the answer is that there is no pool. */
static void who_renews_keeps_others_from_being_the_first(void **state)
{
    struct fixture *f = *state;
    struct coord_renewal item = {.worker = 1, .cur = setup_token(1), .nxt = setup_token(1)};
    struct coord *other = setup_open(f->url, "p", &f->clock.clock);
    char trace[128];
    assert_int_equal(coord_renew(f->c, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &f->r),
                     COORD_NOPOOL);
    (void)snprintf(trace, sizeof trace, "%s/.pool.db-tally.0", f->dir);
    assert_int_equal(unlink(trace), 0); /* the lock is enough */
    assert_int_equal(make_unattended(other, &f->r), COORD_REFUSED);
    coord_says(&f->r, "another sidecar that uses this file");
    coord_free(other);
}

/* rm -r, mv, or a mount: the first holder goes on with what he has. */
static void fresh_is_not_concluded_where_the_directory_is_a_new_one(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    char away[80];
    struct coord *other = setup_open(f->url, "p", &f->clock.clock);
    (void)snprintf(away, sizeof away, "%s/../%s.away", f->dir, strrchr(f->dir, '/') + 1);
    assert_int_equal(make_unattended(f->c, &f->r), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(rename(f->dir, away), 0);
    assert_int_equal(mkdir(f->dir, 0700), 0);
    enum coord_status s = make_unattended(other, &f->r);
    coord_free(other);
    assert_int_equal(nftw(away, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    assert_int_equal(s, COORD_REFUSED);
    coord_says(&f->r, "another sidecar that uses this file");
    assert_int_equal(access(f->db, F_OK), -1);
}

/* The clock is read between the two looks at who else is there. */
static struct coord *comes_between;

static int64_t wall_meanwhile(struct clock *c)
{
    struct coord_renewal item = {.worker = 1, .cur = setup_token(1), .nxt = setup_token(1)};
    struct coord *other = comes_between;
    struct coord_reply r;
    comes_between = NULL;
    if (other)
        (void)coord_renew(other, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &r);
    return ((struct setup_clock *)(void *)c)->ms * 1000;
}

static void fresh_is_not_concluded_beside_one_who_came_between(void **state)
{
    struct fixture *f = *state;
    struct setup_clock another;
    setup_clock_init(&another, SETUP_T0_MS);
    struct coord *other = setup_open(f->url, "p", &another.clock);
    f->clock.clock.wall_us = wall_meanwhile;
    comes_between = other;
    enum coord_status s = make_unattended(f->c, &f->r);
    assert_null(comes_between);
    coord_free(other);
    assert_int_equal(s, COORD_REFUSED);
    coord_says(&f->r, "another sidecar that uses this file");
}

/* Its range may have been a part of an ID space, which nobody knows any more. */
static void a_pool_that_was_lost_before_its_first_holder_is_not_made_fresh(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(make(f, 3), COORD_OK);
    remove_file(f);
    assert_int_equal(make_unattended(f->c, &f->r), COORD_REFUSED);
    coord_says(&f->r, "a path that nobody used before");
}

/* The pool is to have the epoch that the sidecar insists on. */
static void the_command_for_a_path_that_was_used_is_one_for_a_shell(void **state)
{
    struct fixture *f = *state;
    char path[200], long_path[700], expected[200];
    struct coord_init in = setup_init(SETUP_IDENTITY_EPOCH, COORD_INIT_FRESH, 3);
    in.unattended = true;
    (void)snprintf(path, sizeof path, "sqlite:%s/.its a pool-tally.4", f->dir);
    int fd = open(path + strlen("sqlite:"), O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(path, sizeof path, "sqlite:%s/its a pool", f->dir);
    struct coord *c = setup_open(path, "p", &f->clock.clock);
    assert_int_equal(coord_init(c, &in, &f->r), COORD_REFUSED);
    (void)snprintf(expected, sizeof expected,
                   "`sidflakectl pool init --coordinator 'sqlite:%s/its a pool' --pool p "
                   "--epoch 2023-11-14T22:13:20.000Z --fresh`",
                   f->dir);
    coord_says(&f->r, expected);
    coord_free(c);
    (void)snprintf(path, sizeof path, "sqlite:%s/.it's-tally.4", f->dir);
    fd = open(path + strlen("sqlite:"), O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(path, sizeof path, "sqlite:%s/it's", f->dir);
    c = setup_open(path, "p", &f->clock.clock); /* which a log would show otherwise */
    assert_int_equal(coord_init(c, &in, &f->r), COORD_REFUSED);
    assert_null(strstr(f->r.err.text, "--fresh"));
    coord_free(c);
    (void)snprintf(long_path, sizeof long_path, "sqlite:%s/%0600d/pool.db", f->dir, 0);
    c = setup_open(long_path, "p", &f->clock.clock); /* a half of it is told by none */
    assert_int_equal(coord_init(c, &in, &f->r), COORD_REFUSED);
    assert_null(strstr(f->r.err.text, "--fresh"));
    coord_free(c);
}

static void two_files_of_one_directory_are_two_pools(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    char url[160];
    (void)snprintf(url, sizeof url, "sqlite://%s/two.db", f->dir);
    struct coord *two = setup_open(url, "p", &f->clock.clock);
    assert_int_equal(make_unattended(f->c, &f->r), COORD_OK);
    assert_int_equal(claim(f, &g), COORD_OK);
    assert_int_equal(make_unattended(f->c, &f->r), COORD_EXISTS); /* somebody was quicker */
    assert_int_equal(make_unattended(two, &f->r), COORD_OK);
    coord_free(two);
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

/* The command that a log has is typed by root, and who serves is another user. */
static void what_root_makes_is_the_directorys_owners(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct stat st;
    if (geteuid() != 0)
        skip();
    assert_int_equal(chown(f->dir, 4711, 4712), 0);
    assert_int_equal(make(f, 3), COORD_OK);
    assert_int_equal(stat(f->db, &st), 0);
    assert_int_equal(st.st_uid, 4711);
    assert_int_equal(st.st_gid, 4712);
    coord_idle(f->c);
    assert_int_equal(seteuid(4711), 0);
    enum coord_status s = claim(f, &g);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(s, COORD_OK);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(fresh_is_not_concluded_beside_a_holder),
        TEST(who_renews_keeps_others_from_being_the_first),
        TEST(a_link_to_another_directory_is_not_fresh),
        TEST(fresh_is_not_concluded_where_the_directory_is_a_new_one),
        TEST(fresh_is_not_concluded_beside_one_who_came_between),
        TEST(a_pool_that_was_lost_before_its_first_holder_is_not_made_fresh),
        TEST(the_command_for_a_path_that_was_used_is_one_for_a_shell),
        TEST(two_files_of_one_directory_are_two_pools),
        TEST(what_root_makes_is_the_directorys_owners),
        TEST(a_directory_without_room_for_a_trace_gives_no_worker),
    };
    return cmocka_run_group_tests_name("coord/sqlite_fresh", tests, NULL, NULL);
}
