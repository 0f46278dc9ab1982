/* Names and passwords, and the thread that checks them. */
#include "auth/auth.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* Both of "secret". */
#define SECRET "$argon2id$v=19$m=64,t=1,p=2$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4"
#define CRYPT  "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"

static sem_t answered;
static struct auth *a;

static void notify(void *arg)
{
    (void)arg;
    (void)sem_post(&answered);
}

static struct users users_of(const char *text)
{
    struct users u;
    struct err e;
    if (users_read(&u, "f", span_str(text), &e))
        fail_msg("expected users, found %s", e.text);
    return u;
}

static int begin(void **state)
{
    struct users u = users_of("ann:" SECRET "\nbob:" CRYPT ":names=x\n");
    struct err e;
    (void)state;
    (void)sem_init(&answered, 0, 0);
    assert_int_equal(auth_new(&u, notify, NULL, &a, &e), ERR_OK);
    assert_int_equal(u.n, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    auth_free(a);
    return sem_destroy(&answered);
}

static void wait_answer(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    assert_int_equal(sem_timedwait(&answered, &until), 0);
}

/* The answer, however long it takes; *slow: it had to be waited for. */
static enum auth_answer ask(const char *name, const char *password, uint32_t *id, bool *slow)
{
    enum auth_answer r;
    uint64_t ticket = 0;
    *slow = false;
    *id = 0;
    while ((r = auth_check(a, span_str(name), span_str(password), &ticket, id)) == AUTH_PENDING) {
        *slow = true;
        wait_answer();
    }
    return r;
}

static void check(const char *name, const char *password, enum auth_answer want, bool want_slow)
{
    uint32_t id;
    bool slow;
    enum auth_answer r = ask(name, password, &id, &slow);
    if (r != want || slow != want_slow || (id != 0) != (r == AUTH_YES))
        fail_msg("%s:%s: expected %d, slow %d, found %d, slow %d, id %u", name, password, want,
                 want_slow, r, slow, id);
}

static void test_check(void **state)
{
    (void)state;
    check("ann", "wrong", AUTH_NO, true);
    check("ann", "wrong", AUTH_NO, false);
    check("ann", "secret", AUTH_YES, true);
    check("ann", "secret", AUTH_YES, false);
    check("ann", "wrong", AUTH_NO, false);
    check("bob", "secret", AUTH_YES, true);
    check("bob", "", AUTH_NO, true);
    check("", "", AUTH_NO, true);
}

/* As slow as a known name, even with a password that is right for somebody. */
static void test_unknown(void **state)
{
    (void)state;
    check("eve", "secret", AUTH_NO, true);
    check("eve", "secret", AUTH_NO, false);
    check("ann", "secret", AUTH_YES, true);
}

static void test_too_long(void **state)
{
    char text[SECRET_PASSWORD_MAX + 2];
    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    check("ann", text, AUTH_NO, false);
    check(text, "secret", AUTH_NO, false);
    text[sizeof text - 2] = '\0';
    check("ann", text, AUTH_NO, true);
}

static void test_user(void **state)
{
    uint32_t ann, bob;
    bool slow;
    (void)state;
    assert_int_equal(ask("ann", "secret", &ann, &slow), AUTH_YES);
    assert_int_equal(ask("bob", "secret", &bob, &slow), AUTH_YES);
    assert_int_not_equal(ann, bob);
    assert_string_equal(auth_user(a, ann)->name, "ann");
    assert_true(span_eq(auth_user(a, bob)->names, SPAN("x")));
    assert_null(auth_user(a, 0));
    assert_null(auth_user(a, 99));
    assert_null(auth_user(NULL, 1));
}

static void test_replace(void **state)
{
    struct users same = users_of("new:" CRYPT "\nann:" SECRET "\nbob:" SECRET "\n");
    struct users less = users_of("ann:" SECRET ":names=y\n");
    struct users more = users_of("ann:" SECRET ":names=x,y\n");
    struct users nobody = users_of("");
    uint32_t ann, bob, id;
    bool slow;
    (void)state;
    assert_int_equal(ask("ann", "secret", &ann, &slow), AUTH_YES);
    assert_int_equal(ask("bob", "secret", &bob, &slow), AUTH_YES);
    auth_replace(a, &same);
    assert_string_equal(auth_user(a, ann)->name, "ann");
    assert_null(auth_user(a, bob)); /* the hash is another */
    check("ann", "secret", AUTH_YES, false);
    assert_int_equal(ask("bob", "secret", &id, &slow), AUTH_YES);
    assert_true(slow && id != bob);
    auth_replace(a, &less);
    assert_null(auth_user(a, ann));
    assert_int_equal(ask("ann", "secret", &ann, &slow), AUTH_YES);
    assert_false(slow); /* the password is the same */
    auth_replace(a, &more);
    assert_true(span_eq(auth_user(a, ann)->names, SPAN("x,y")));
    auth_replace(a, &nobody);
    assert_null(auth_user(a, ann));
    check("ann", "secret", AUTH_NO, false);
}

/* A check under way when the users change says nothing about the new ones. */
static void test_replace_meanwhile(void **state)
{
    struct users other = users_of("ann:" CRYPT "\n");
    uint32_t id;
    (void)state;
    for (int i = 0; i < 20; i++) {
        char password[16];
        (void)snprintf(password, sizeof password, "p%d", i);
        assert_int_equal(auth_check(a, SPAN("ann"), span_str(password), &(uint64_t){0}, &id),
                         AUTH_PENDING);
    }
    assert_int_equal(auth_check(a, SPAN("ann"), SPAN("secret"), &(uint64_t){0}, &id), AUTH_PENDING);
    auth_replace(a, &other);
    assert_int_equal(auth_check(a, SPAN("ann"), SPAN("p1"), &(uint64_t){0}, &id), AUTH_PENDING);
    check("ann", "p1", AUTH_NO, true);
    check("ann", "secret", AUTH_YES, true);
}

/* A right password of the old users, whose check ends under the new ones. */
static void test_replace_while_running(void **state)
{
    struct users slow = users_of(
        "ann:$argon2id$v=19$m=8192,t=4,p=1$c29tZXNhbHQ$pZFwD26TasTmNEoaHqZzemrts7a4Bfvk\n");
    struct users other = users_of("ann:$5$saltsalt$kmJUCIm73946uXVnGZjCdBUolDZJ3cOBx5hc3E.xjEC\n");
    uint32_t id;
    (void)state;
    auth_replace(a, &slow);
    assert_int_equal(auth_check(a, SPAN("ann"), SPAN("secret"), &(uint64_t){0}, &id), AUTH_PENDING);
    (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* for it to begin */
    auth_replace(a, &other);
    check("ann", "secret", AUTH_NO, true);
    check("ann", "other", AUTH_YES, true);
}

/* More at once than there is room for: each gets its answer in the end. */
static void test_many(void **state)
{
    bool done[100] = {false};
    uint64_t ticket[100] = {0};
    unsigned left = 100;
    (void)state;
    while (left > 0) {
        for (int i = 0; i < 100; i++) {
            char password[16];
            uint32_t id;
            (void)snprintf(password, sizeof password, "p%d", i);
            if (done[i] ||
                auth_check(a, SPAN("ann"), span_str(password), &ticket[i], &id) == AUTH_PENDING)
                continue;
            done[i] = true;
            left--;
        }
        if (left > 0)
            wait_answer();
    }
}

/* Who asks again is known by the ticket alone, until there is an answer. */
static void test_tickets(void **state)
{
    uint64_t ticket[40] = {0};
    uint32_t id;
    (void)state;
    for (int i = 0; i < 40; i++) {
        char password[16];
        (void)snprintf(password, sizeof password, "p%d", i);
        (void)auth_check(a, SPAN("ann"), span_str(password), &ticket[i], &id);
    }
    for (int i = 0; i < 40; i++)
        while (auth_check(a, SPAN("ann"), SPAN("other"), &ticket[i], &id) == AUTH_PENDING)
            wait_answer();
    for (int i = 0; i < 40; i++)
        assert_int_equal(ticket[i], 0);
}

/* What is left when the daemon ends. */
static void test_free_meanwhile(void **state)
{
    uint32_t id;
    (void)state;
    assert_int_equal(auth_check(a, SPAN("ann"), SPAN("secret"), &(uint64_t){0}, &id), AUTH_PENDING);
    assert_int_equal(auth_check(a, SPAN("bob"), SPAN("secret"), &(uint64_t){0}, &id), AUTH_PENDING);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_check),
        TEST(test_unknown),
        TEST(test_too_long),
        TEST(test_user),
        TEST(test_replace),
        TEST(test_replace_meanwhile),
        TEST(test_replace_while_running),
        TEST(test_many),
        TEST(test_tickets),
        TEST(test_free_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
