/* redis+sentinel://: fake sentinels, some of them liars, before real servers. */
#include "support/coord_says.h"
#include "support/coord_setup.h"
#include "support/fake_server.h"
#include "support/redis_server.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TIMEOUT_MS    1200
#define SENTINELS_MAX 8

struct fixture {
    struct server redis;
    struct fake_server sentinel[SENTINELS_MAX];
    size_t sentinels;
    struct coord *c;
    struct coord_reply r;
    struct coord_pool p;
    char names_redis[128]; /* what a sentinel says that knows it */
    char out[4096];
};

static struct fixture fixture;

static void name_server(char out[128], int port)
{
    char digits[16];
    int n = snprintf(digits, sizeof digits, "%d", port);
    (void)snprintf(out, 128, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", n, digits);
}

static int setup(void **state)
{
    struct fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    server_start(&f->redis, false, NULL);
    name_server(f->names_redis, f->redis.port);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    coord_free(f->c);
    for (size_t i = 0; i < f->sentinels; i++)
        fake_server_stop(&f->sentinel[i]);
    server_free(&f->redis);
    return 0;
}

static struct fake_server *add(struct fixture *f, const struct fake_reply *replies)
{
    struct fake_server *s = &f->sentinel[f->sentinels++];
    fake_server_script(s, replies);
    return s;
}

static struct fake_server *add_saying(struct fixture *f, const char *bytes)
{
    return add(f, (const struct fake_reply[]){{"SENTINEL", bytes}, {NULL, NULL}});
}

/* Connects, for connecting is the kernel's, and answers nothing. */
static struct fake_server *add_silent(struct fixture *f)
{
    struct fake_server *s = add_saying(f, "");
    (void)kill(s->pid, SIGSTOP);
    return s;
}

/* All that were added, in their order. */
static void open_with(struct fixture *f, const char *userinfo, const char *tail)
{
    char url[512];
    int n = snprintf(url, sizeof url, "redis+sentinel://%s", userinfo);
    for (size_t i = 0; i < f->sentinels; i++)
        n += snprintf(url + n, sizeof url - (size_t)n, "%s127.0.0.1:%d", i ? "," : "",
                      f->sentinel[i].port);
    (void)snprintf(url + n, sizeof url - (size_t)n, "/%s", tail);
    coord_free(f->c);
    f->c = setup_open_within(url, "p", clock_system(), TIMEOUT_MS);
}

static enum coord_status describe(struct fixture *f)
{
    enum coord_status s = coord_describe(f->c, &f->p, &f->r);
    coord_idle(f->c);
    return s;
}

static void says_port(const struct fixture *f, const struct fake_server *s, const char *what)
{
    char text[64];
    (void)snprintf(text, sizeof text, "127.0.0.1 port %d%s", s->port, what);
    coord_says(&f->r, text);
}

static int64_t took_ms(struct fixture *f, enum coord_status expected)
{
    int64_t began = clock_mono_ms(clock_system());
    coord_came_to(&f->r, describe(f), expected);
    return clock_mono_ms(clock_system()) - began;
}

/* ---- finding it ------------------------------------------------------------------------------ */

static void the_master_is_found_with_its_database(void **state)
{
    struct fixture *f = *state;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    add_saying(f, f->names_redis);
    open_with(f, "", "mymaster?db=3");
    coord_came_to(&f->r, coord_init(f->c, &in, &f->r), COORD_OK);
    open_with(f, "", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
    open_with(f, "", "mymaster?db=3");
    coord_came_to(&f->r, describe(f), COORD_OK);
    assert_string_equal(f->p.identity, SETUP_IDENTITY);
}

/* Within the time of one call, and the next time that one is asked first. */
static void a_silent_sentinel_costs_its_share_once(void **state)
{
    struct fixture *f = *state;
    add_silent(f);
    add_silent(f);
    add_saying(f, f->names_redis);
    open_with(f, "", "mymaster");
    int64_t first = took_ms(f, COORD_NOPOOL);
    assert_in_range(first, TIMEOUT_MS / 4 + TIMEOUT_MS / 4 - 20, TIMEOUT_MS);
    assert_in_range(took_ms(f, COORD_NOPOOL), 0, TIMEOUT_MS / 4 - 20);
}

static void all_silent_is_down_within_the_timeout(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 3; i++)
        add_silent(f);
    open_with(f, "", "mymaster");
    assert_in_range(took_ms(f, COORD_DOWN), TIMEOUT_MS / 2, TIMEOUT_MS + 300);
    coord_says(&f->r, "expected a sentinel to name the master \"mymaster\", found");
    for (size_t i = 0; i < 3; i++)
        says_port(f, &f->sentinel[i], ": expected within");
    assert_int_equal(f->r.err.code, ERR_TIMEOUT);
}

static void a_dead_sentinel_costs_nothing(void **state)
{
    struct fixture *f = *state;
    struct fake_server *dead = add_saying(f, f->names_redis);
    add_saying(f, f->names_redis);
    open_with(f, "", "mymaster");
    fake_server_stop(dead);
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
    fake_server_stop(&f->sentinel[1]);
    coord_came_to(&f->r, describe(f), COORD_DOWN);
    says_port(f, dead, ": Connection refused");
    says_port(f, &f->sentinel[1], ": Connection refused");
}

static void an_unknown_master_is_named(void **state)
{
    struct fixture *f = *state;
    add_saying(f, "*-1\r\n");
    add_saying(f, "$-1\r\n");
    open_with(f, "", "other-name");
    coord_came_to(&f->r, describe(f), COORD_REFUSED);
    coord_says(&f->r, "expected a sentinel to name the master \"other-name\"");
    says_port(f, &f->sentinel[0], ": knows no master of this name");
    says_port(f, &f->sentinel[1], ": knows no master of this name");
    add_saying(f, f->names_redis);
    open_with(f, "", "other-name");
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
}

/* Eight of them say more than a text holds. */
static void many_complaints_are_cut(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < SENTINELS_MAX; i++)
        add_saying(f,
                   "*2\r\n$80\r\n<1234567890123456789012345678901234567890123456789012345678901234"
                   "567890123456789\r\n$1\r\n1\r\n");
    open_with(f, "", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_REFUSED);
    coord_says(&f->r, "; ...");
    assert_true(strlen(f->r.err.text) < ERR_TEXT_MAX);
}

/* ---- liars ----------------------------------------------------------------------------------- */

static void what_is_no_address_is_refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *bytes;
        enum coord_status status;
        const char *says;
    } cases[] = {
        {"+OK\r\n", COORD_REFUSED, "another reply"},
        {":5\r\n", COORD_REFUSED, "another reply"},
        {"*0\r\n", COORD_REFUSED, "another reply"},
        {"*1\r\n$1\r\nh\r\n", COORD_REFUSED, "another reply"},
        {"*3\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\n1\r\n", COORD_REFUSED, "another reply"},
        {"*2\r\n:1\r\n:2\r\n", COORD_REFUSED, "another reply"},
        {"*2\r\n*1\r\n$1\r\nh\r\n$1\r\n1\r\n", COORD_REFUSED, "another reply"},
        {"*2\r\n$-1\r\n$-1\r\n", COORD_REFUSED, "another reply"},
        {"*2\r\n$0\r\n\r\n$1\r\n1\r\n", COORD_REFUSED, "found \"\" and \"1\""},
        {"*2\r\n$3\r\na b\r\n$1\r\n1\r\n", COORD_REFUSED, "found \"a b\""},
        {"*2\r\n$3\r\na\nb\r\n$1\r\n1\r\n", COORD_REFUSED, "found \"a?b\""},
        {"*2\r\n$3\r\na\0b\r\n$1\r\n1\r\n", COORD_DOWN, "within"}, /* strlen ends it: cut short */
        {"*2\r\n$2\r\n/s\r\n$1\r\n1\r\n", COORD_REFUSED, "found \"/s\""},
        {"*2\r\n$1\r\nh\r\n$1\r\n0\r\n", COORD_REFUSED, "and \"0\""},
        {"*2\r\n$1\r\nh\r\n$5\r\n65536\r\n", COORD_REFUSED, "and \"65536\""},
        {"*2\r\n$1\r\nh\r\n$2\r\n-1\r\n", COORD_REFUSED, "and \"-1\""},
        {"*2\r\n$1\r\nh\r\n$0\r\n\r\n", COORD_REFUSED, "and \"\""},
        {"*2\r\n$1\r\nh\r\n$20\r\n18446744073709551617\r\n", COORD_REFUSED, "and \"18446744\""},
        {"-ERR unknown command 'SENTINEL'\r\n", COORD_REFUSED, "unknown command"},
        {"-IDONTKNOW x\r\n", COORD_DOWN, "IDONTKNOW"},
        {"*2147483647\r\n", COORD_DOWN, "answer of"},
        {"HTTP/1.1 400 Bad Request\r\n\r\n", COORD_DOWN, "answer of"},
        {NULL, COORD_DOWN, "closed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake_server *s = add_saying(f, cases[i].bytes);
        open_with(f, "", "mymaster");
        enum coord_status found = describe(f);
        if (found != cases[i].status)
            fail_msg("case %zu: %s, %s", i, coord_status_name(found), f->r.err.text);
        coord_says(&f->r, cases[i].says);
        says_port(f, s, "");
        fake_server_stop(s);
        f->sentinels = 0;
    }
}

static void a_host_too_long_is_refused(void **state)
{
    struct fixture *f = *state;
    char bytes[512] = "*2\r\n$256\r\n";
    size_t n = strlen(bytes);
    memset(bytes + n, 'h', 256);
    memcpy(bytes + n + 256, "\r\n$1\r\n1\r\n", sizeof "\r\n$1\r\n1\r\n");
    add_saying(f, bytes);
    open_with(f, "", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_REFUSED);
    coord_says(&f->r, "expected host and port, found \"hhhh");
}

/* ---- passwords ------------------------------------------------------------------------------- */

static void a_sentinel_gets_the_password_only_if_it_asks(void **state)
{
    struct fixture *f = *state;
    const struct fake_reply open[] = {{"SENTINEL", f->names_redis}, {"AUTH", NULL}, {NULL, NULL}};
    const struct fake_reply closed[] = {{"SENTINEL", "-NOAUTH Authentication required.\r\n"},
                                        {"AUTH", "+OK\r\n"},
                                        {"SENTINEL", f->names_redis},
                                        {NULL, NULL}};
    assert_true(SERVER_DO(&f->redis, f->out, "CONFIG", "SET", "requirepass", "s3cret"));
    add(f, open);
    open_with(f, ":s3cret@", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
    fake_server_stop(&f->sentinel[--f->sentinels]);
    add(f, closed);
    open_with(f, ":s3cret@", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
}

static void a_sentinel_that_takes_no_password_of_ours_is_named(void **state)
{
    struct fixture *f = *state;
    const struct fake_reply closed[] = {{"SENTINEL", "-NOAUTH Authentication required.\r\n"},
                                        {"AUTH", "-WRONGPASS invalid: s3cret\r\n"},
                                        {NULL, NULL}};
    add(f, closed);
    open_with(f, "", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_REFUSED);
    says_port(f, &f->sentinel[0], ": SENTINEL: expected an answer, found -NOAUTH");
    coord_says(&f->r, "; name a password in the URL");
    open_with(f, "user:s3cret@", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_REFUSED);
    says_port(f, &f->sentinel[0], ": AUTH: expected an answer, found -WRONGPASS");
    assert_null(strstr(f->r.err.text, "s3cret"));
}

static void the_master_says_who_named_it(void **state)
{
    struct fixture *f = *state;
    assert_true(SERVER_DO(&f->redis, f->out, "CONFIG", "SET", "requirepass", "s3cret"));
    add_saying(f, f->names_redis);
    open_with(f, ":wrong@", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_REFUSED);
    coord_says(&f->r, "master \"mymaster\" by the sentinel 127.0.0.1 port ");
    says_port(f, &f->sentinel[0], ": AUTH: expected an answer, found -WRONGPASS");
    server_kill(&f->redis);
    coord_came_to(&f->r, describe(f), COORD_DOWN);
    coord_says(&f->r, "master \"mymaster\" by the sentinel 127.0.0.1 port ");
    coord_says(&f->r, ": connection to 127.0.0.1 port ");
}

/* ---- failovers ------------------------------------------------------------------------------- */

static void what_is_no_master_is_not_used(void **state)
{
    struct fixture *f = *state;
    struct server master;
    char names_master[128];
    server_start(&master, false, NULL);
    server_follow(&f->redis, &master);
    server_wait_followed(&master, 1);
    name_server(names_master, master.port);
    add_saying(f, f->names_redis);
    add_saying(f, names_master);
    open_with(f, "", "mymaster");
    coord_came_to(&f->r, describe(f), COORD_DOWN);
    coord_says(&f->r, "ROLE: expected master, found slave");
    says_port(f, &f->sentinel[0], ": ROLE");
    /* Whoever named it is not asked first again. */
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
    server_follow(&f->redis, NULL);
    server_free(&master);
    coord_came_to(&f->r, describe(f), COORD_DOWN);
    coord_came_to(&f->r, describe(f), COORD_NOPOOL);
}

static void a_role_that_is_hidden_is_refused(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *bytes;
        const char *says;
    } cases[] = {
        {"-NOPERM this user has no permissions to run the 'role' command\r\n", "'role' command"},
        {"+master\r\n", "expected a list that begins with a role"},
        {"*1\r\n:1\r\n", "expected a list that begins with a role"},
        {"*0\r\n", "expected a list that begins with a role"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fake_server redis;
        char named[128];
        const struct fake_reply replies[] = {{"ROLE", cases[i].bytes}, {NULL, NULL}};
        fake_server_script(&redis, replies);
        name_server(named, redis.port);
        add_saying(f, named);
        open_with(f, "", "mymaster");
        coord_came_to(&f->r, describe(f), COORD_REFUSED);
        coord_says(&f->r, "ROLE");
        coord_says(&f->r, cases[i].says);
        fake_server_stop(&redis);
        fake_server_stop(&f->sentinel[--f->sentinels]);
    }
}

/* One sentinel is cut off together with the old master, and goes on naming it. */
static void a_stale_sentinel_is_left_for_another(void **state)
{
    struct fixture *f = *state;
    struct server next, replica;
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 3);
    struct coord_grant g;
    char names_next[128];
    in.params.replicas = 1;
    server_start(&next, false, NULL);
    server_start(&replica, false, NULL);
    server_follow(&next, &f->redis);
    server_wait_followed(&f->redis, 1);
    name_server(names_next, next.port);
    add_saying(f, f->names_redis);
    add_saying(f, names_next);
    open_with(f, "", "mymaster");
    coord_came_to(&f->r, coord_init(f->c, &in, &f->r), COORD_OK);
    server_follow(&next, NULL);
    server_follow(&replica, &next);
    server_wait_followed(&next, 1);
    int64_t now = clock_wall_ms(clock_system());
    coord_came_to(&f->r, coord_claim(f->c, SETUP_IDENTITY, now, setup_token(1), &g, &f->r),
                  COORD_DOWN);
    coord_says(&f->r, "WAIT: expected 1 replicas to acknowledge, found 0");
    says_port(f, &f->sentinel[0], ": WAIT");
    now = clock_wall_ms(clock_system());
    coord_came_to(&f->r, coord_claim(f->c, SETUP_IDENTITY, now, setup_token(1), &g, &f->r),
                  COORD_WAIT);
    assert_int_equal(f->r.era, 2);
    server_free(&replica);
    server_free(&next);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_master_is_found_with_its_database),
        TEST(a_silent_sentinel_costs_its_share_once),
        TEST(all_silent_is_down_within_the_timeout),
        TEST(a_dead_sentinel_costs_nothing),
        TEST(an_unknown_master_is_named),
        TEST(many_complaints_are_cut),
        TEST(what_is_no_address_is_refused),
        TEST(a_host_too_long_is_refused),
        TEST(a_sentinel_gets_the_password_only_if_it_asks),
        TEST(a_sentinel_that_takes_no_password_of_ours_is_named),
        TEST(the_master_says_who_named_it),
        TEST(what_is_no_master_is_not_used),
        TEST(a_role_that_is_hidden_is_refused),
        TEST(a_stale_sentinel_is_left_for_another),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/sentinel", tests, NULL, NULL);
}
