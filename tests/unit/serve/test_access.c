/* Whom a connection serves, as all services ask it. */
#include "login.h"
#include "support/capture.h"

static struct serve serve;

static int begin(void **state)
{
    (void)state;
    memset(&serve, 0, sizeof serve);
    login_begin(&serve);
    return 0;
}

static int end(void **state)
{
    (void)state;
    login_end(&serve);
    return 0;
}

static struct access of(const char *name)
{
    const struct user *u = auth_user_named(serve.auth, span_str(name));
    return (struct access){.mode = ACCESS_REQUIRED, .user = u ? u->id : 0};
}

/* Requests that are answered or forwarded without a look at their keys. */
static void who_is_looked_at_each_time(void **state)
{
    static const struct {
        const char *rights;
        bool plain, passes;
    } all[] = {
        {":upstream=all", true, true},
        {":names=*:upstream=all", false, true},
        {":upstream=all:keys=*", true, false},
        {":upstream=read", true, false},
        {"", true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char line[256];
        (void)snprintf(line, sizeof line, "eve:" LOGIN_HASH "%s\n", all[i].rights);
        login_replace(&serve, line);
        struct access eve = of("eve");
        if (access_plain(&serve, &eve) != all[i].plain ||
            access_passes(&serve, &eve) != all[i].passes)
            fail_msg("of eve%s", all[i].rights);
    }
    struct access nobody = of("nobody"), any = {.mode = ACCESS_OFF};
    assert_false(access_plain(&serve, &nobody) || access_passes(&serve, &nobody));
    assert_false(access_may(&serve, &nobody, SPAN("id:a")));
    assert_true(access_plain(&serve, &any) && access_passes(&serve, &any));
    assert_false(access_may(&serve, &nobody, SPAN("id:a")));
    assert_true(access_may(&serve, &any, SPAN("id:a")));
}

/* Who keeps a place that others ask for: room.c. */
static void whose_first_password_is_looked_at(void **state)
{
    (void)state;
    struct access a = {.mode = ACCESS_REQUIRED};
    assert_false(access_checked(NULL, &a));
    a.login.ask = (struct auth_ask *)(void *)&a;
    assert_true(access_checked(NULL, &a));
    a.login.refused = 1;
    assert_false(access_checked(NULL, &a));
}

/* Whether eve of the rights `was` is still somebody to a program whose users are `now`. */
static bool goes_over(const char *was, const char *now)
{
    char line[512], mem[1024];
    struct buf b;
    struct access next = {.mode = ACCESS_REQUIRED};
    (void)snprintf(line, sizeof line, "eve:" LOGIN_HASH "%s\n", was);
    login_replace(&serve, line);
    struct access eve = of("eve");
    buf_init(&b, mem, sizeof mem);
    access_pack(&serve, &eve, &b);
    login_replace(&serve, now);
    struct span in = buf_span(&b);
    bool is = access_unpack(&serve, &next, &in);
    assert_true(is == (next.user != 0));
    assert_true(!is || next.user == of("eve").user);
    return is;
}

static void who_may_less_by_now_does_not_go_over(void **state)
{
#define EVE "eve:" LOGIN_HASH
    static const char other[] =
        "$argon2id$v=19$m=64,t=1,p=2$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ5";
    char line[256];
    (void)state;
    assert_true(goes_over("", EVE "\n"));
    assert_true(goes_over(":names=a", EVE ":names=a,b\n"));
    assert_true(goes_over(":upstream=read:keys=a*", EVE ":upstream=all\n"));
    assert_false(goes_over(":names=a,b", EVE ":names=a\n"));
    assert_false(goes_over("", EVE ":names=a\n"));
    assert_false(goes_over(":upstream=all", EVE ":upstream=read\n"));
    assert_false(goes_over(":upstream=all", EVE ":upstream=all:keys=a*\n"));
    assert_false(goes_over("", "bob:" LOGIN_HASH "\n"));
    (void)snprintf(line, sizeof line, "eve:%s\n", other);
    assert_false(goes_over("", line));
#undef EVE
}

static void whoever_is_nobody_goes_over_as_that(void **state)
{
    char mem[64];
    struct buf b;
    struct access nobody = of("nobody"), next = nobody;
    (void)state;
    buf_init(&b, mem, sizeof mem);
    access_pack(&serve, &nobody, &b);
    struct span in = buf_span(&b);
    assert_true(access_unpack(&serve, &next, &in));
    assert_int_equal(next.user, 0);
    assert_int_equal(in.n, 0);
}

/* A line of the log has an end: a name without one would leave no room for where he is. */
static void of_whoever_is_refused_is_told_where_he_is(void **state)
{
    static char name[16384];
    struct access stranger = {.mode = ACCESS_REQUIRED};
    const struct net_turn turn = {.conn = NULL};
    (void)state;
    memset(name, 'x', sizeof name);
    serve.clock = clock_system();
    capture_begin();
    enum auth_answer r =
        access_login(&serve, &stranger, &turn, span_of(name, sizeof name), SPAN(""));
    const char *text = capture_end();
    assert_int_equal(r, AUTH_NO);
    assert_non_null(strstr(text, " peer=? more=0\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_is_looked_at_each_time, begin, end),
        cmocka_unit_test_setup_teardown(whose_first_password_is_looked_at, begin, end),
        cmocka_unit_test_setup_teardown(who_may_less_by_now_does_not_go_over, begin, end),
        cmocka_unit_test_setup_teardown(whoever_is_nobody_goes_over_as_that, begin, end),
        cmocka_unit_test_setup_teardown(of_whoever_is_refused_is_told_where_he_is, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
