/* A pool's file that one reaches by a symbolic link, and another by its own name. */
#include "sqlite_rig.h"

#include "coord/beside.h"

#include <string.h>

struct by_link {
    char dir[80], path[128];
    struct coord *c;
};

static int set_link(struct fixture *f, struct by_link *l, const char *to)
{
    (void)unlink(l->path);
    return symlink(to ? to : f->db, l->path);
}

/* links/pool.db, beside the file of the fixture, and somebody who comes by it. */
static void come_by_link(struct fixture *f, struct by_link *l, const char *to)
{
    char url[160];
    (void)snprintf(l->dir, sizeof l->dir, "%s/links", f->dir);
    (void)snprintf(l->path, sizeof l->path, "%s/other.db", l->dir);
    (void)snprintf(url, sizeof url, "sqlite://%s", l->path);
    assert_int_equal(mkdir(l->dir, 0700), 0);
    assert_int_equal(set_link(f, l, to), 0);
    l->c = setup_open(url, "p", &f->clock.clock);
}

static enum coord_status claim_of(struct fixture *f, struct coord *c, struct coord_grant *g)
{
    enum coord_status s =
        coord_claim(c, SETUP_IDENTITY, f->clock.ms, coord_token_new(rng_system()), g, &f->r);
    coord_idle(c);
    return s;
}

static enum coord_status claim_anew(struct fixture *f, const char *path, struct coord_grant *g)
{
    char url[160];
    (void)snprintf(url, sizeof url, "sqlite://%s", path);
    struct coord *c = setup_open(url, "p", &f->clock.clock);
    enum coord_status s = claim_of(f, c, g);
    coord_free(c);
    return s;
}

/* Whoever of the two was answered last, a newcomer by either name sees that the file is older. */
static void a_file_set_back_is_seen_by_each_of_its_names(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct by_link l;
    static char bytes[1 << 20];
    come_by_link(f, &l, NULL);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(make(f, 3), COORD_OK);
        coord_idle(f->c);
        size_t n = read_file(f->db, bytes, sizeof bytes);
        assert_int_equal(claim_of(f, i & 1 ? f->c : l.c, &g), COORD_OK);
        write_file(f->db, bytes, n);
        assert_int_equal(claim_anew(f, i & 2 ? f->db : l.path, &g), COORD_WAIT);
        assert_int_equal(f->r.era, 2);
        remove_file(f);
        setup_forget_tally(f->dir);
        setup_forget_tally(l.dir);
    }
    coord_free(l.c);
}

/* The first file has all that it was answered itself, and not what was answered in between. */
static void a_link_that_led_elsewhere_tells_that_the_file_is_older(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct by_link l;
    static char bytes[1 << 20];
    char second[128];
    (void)snprintf(second, sizeof second, "%s/second.db", f->dir);
    assert_int_equal(make(f, 3), COORD_OK);
    coord_idle(f->c);
    write_file(second, bytes, read_file(f->db, bytes, sizeof bytes));
    come_by_link(f, &l, NULL);
    assert_int_equal(claim_of(f, l.c, &g), COORD_OK);
    assert_int_equal(set_link(f, &l, second), 0);
    f->clock.ms += 40000;
    (void)claim_of(f, l.c, &g); /* another file reopens the pool … */
    f->clock.ms += 40000;
    assert_int_equal(claim_of(f, l.c, &g), COORD_OK);
    assert_int_equal(set_link(f, &l, NULL), 0);
    assert_int_equal(claim_anew(f, l.path, &g), COORD_WAIT); /* … and so does the way back */
    assert_int_equal(f->r.era, 2);
    coord_free(l.c);
}

/* The file is gone, and the trace too: its holder lives, and came by a link, be it one that led
 * elsewhere when it came. */
static void who_came_by_a_link_is_seen_by_who_comes_by_the_file(void **state)
{
    struct fixture *f = *state;
    struct coord_grant g;
    struct by_link l;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    in.unattended = true;
    assert_int_equal(make(f, 3), COORD_OK);
    coord_idle(f->c);
    come_by_link(f, &l, "/nonexistent/pool.db");
    assert_int_equal(claim_of(f, l.c, &g), COORD_NOPOOL);
    assert_int_equal(set_link(f, &l, "../pool.db"), 0);
    assert_int_equal(claim_of(f, l.c, &g), COORD_OK);
    remove_file(f);
    setup_forget_tally(f->dir);
    assert_int_equal(coord_init(f->c, &in, &f->r), COORD_REFUSED);
    coord_says(&f->r, "found another sidecar");
    coord_free(l.c);
    setup_forget_tally(f->dir);
    assert_int_equal(coord_init(f->c, &in, &f->r), COORD_OK);
}

static void links_are_followed_to_their_end(void **state)
{
    struct fixture *f = *state;
    struct beside b;
    char first[128], second[128], want[160];
    struct tally_name latest;
    (void)snprintf(first, sizeof first, "%s/first", f->dir);
    (void)snprintf(second, sizeof second, "%s/second", f->dir);
    (void)snprintf(want, sizeof want, "%s/./third", f->dir);
    beside_init(&b);
    assert_int_equal(symlink("second", first), 0);
    assert_int_equal(symlink("./third", second), 0);
    assert_int_equal(beside_look(&b, first, &latest), 0);
    assert_int_equal(latest.tick, -1);
    assert_string_equal(b.real, want);
    assert_int_equal(beside_leave(&b, first, 7, 0), 0);
    assert_int_equal(beside_look(&b, want, &latest), 0);
    assert_int_equal(latest.tick, 7);
    assert_string_equal(b.real, "");
    assert_int_equal(unlink(second), 0);
    assert_int_equal(symlink("first", second), 0);
    assert_int_equal(beside_look(&b, first, &latest), ELOOP);
    assert_int_equal(beside_hold(&b, first), ELOOP);
    beside_end(&b);
}

/* It asks for no workerId after the turn: what it does is enough. */
static void a_holder_is_one_where_the_link_leads_to_by_now(void **state)
{
    struct fixture *f = *state;
    struct beside holder, newcomer;
    char link[128], there[128];
    struct tally_name latest;
    (void)snprintf(link, sizeof link, "%s/link", f->dir);
    (void)snprintf(there, sizeof there, "%s/there", f->dir);
    beside_init(&holder);
    beside_init(&newcomer);
    assert_int_equal(symlink("here", link), 0);
    assert_int_equal(beside_hold(&holder, link), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("there", link), 0);
    assert_int_equal(beside_first(&newcomer, there), SOLE_FIRST);
    assert_int_equal(beside_look(&holder, link, &latest), 0);
    assert_int_equal(beside_first(&newcomer, there), SOLE_OTHERS);
    beside_end(&holder);
    beside_end(&newcomer);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_file_set_back_is_seen_by_each_of_its_names),
        TEST(a_link_that_led_elsewhere_tells_that_the_file_is_older),
        TEST(who_came_by_a_link_is_seen_by_who_comes_by_the_file),
        TEST(links_are_followed_to_their_end),
        TEST(a_holder_is_one_where_the_link_leads_to_by_now),
    };
    return cmocka_run_group_tests_name("coord/beside", tests, NULL, NULL);
}
