/* Names and passwords, and the thread that checks them. */
#include "auth/auth.h"
#include "base/clock.h"
#include "base/parcel.h"

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

/* An answer's place among those that are remembered comes of the key. Of keys at random one in a
 * few hundred has two of a test's passwords in one place, and the second displaces the first. */
static void use_a_key_that_is_known(void)
{
    const char key[SECRET_DIGEST] = {1};
    char mem[64];
    struct buf b;
    buf_init(&b, mem, sizeof mem);
    parcel_put_bytes(&b, span_of(key, sizeof key));
    auth_unpack(a, buf_span(&b));
}

static int begin(void **state)
{
    struct users u = users_of("ann:" SECRET "\nbob:" CRYPT ":names=x\n");
    struct err e;
    (void)state;
    (void)sem_init(&answered, 0, 0);
    assert_int_equal(auth_new(&u, notify, NULL, &a, &e), ERR_OK);
    assert_int_equal(u.n, 0);
    use_a_key_that_is_known();
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

/* What connection l of that party is told now. */
static enum auth_answer once(struct auth_login *l, uint64_t party, const char *name,
                             const char *password, uint32_t *id)
{
    const struct auth_question q = {
        .name = span_str(name), .password = span_str(password), .peer = {{party, 0}}, .who = l};
    return auth_check(a, l, &q, id);
}

/* Who is told of an answer next; NULL: nobody yet. */
static struct auth_login *told(void)
{
    void *who = NULL;
    return auth_answered(a, &who) ? who : NULL;
}

/* The answer to a connection of its own, however long it takes; *slow: it had to be waited for. */
static enum auth_answer ask(const char *name, const char *password, uint32_t *id, bool *slow)
{
    enum auth_answer r;
    struct auth_login l = {.ask = NULL};
    *slow = false;
    *id = 0;
    while ((r = once(&l, 1, name, password, id)) == AUTH_PENDING) {
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
    static struct auth_login old[21];
    memset(old, 0, sizeof old);
    for (int i = 0; i < 20; i++) {
        char password[16];
        (void)snprintf(password, sizeof password, "p%d", i);
        assert_int_equal(once(&old[i], 1, "ann", password, &id), AUTH_PENDING);
    }
    assert_int_equal(once(&old[20], 1, "ann", "secret", &id), AUTH_PENDING);
    auth_replace(a, &other);
    for (int i = 0; i < 21; i++) {
        enum auth_answer r;
        while ((r = once(&old[i], 1, "ann", i < 20 ? "wrong" : "secret", &id)) == AUTH_PENDING)
            wait_answer();
        assert_int_equal(r, i < 20 ? AUTH_NO : AUTH_YES);
    }
    check("ann", "p1", AUTH_NO, true);
    check("ann", "secret", AUTH_YES, false);
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
    assert_int_equal(once(&(struct auth_login){.ask = NULL}, 1, "ann", "secret", &id),
                     AUTH_PENDING);
    (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* for it to begin */
    auth_replace(a, &other);
    check("ann", "secret", AUTH_NO, true);
    check("ann", "other", AUTH_YES, true);
}

/* Each is told of its own answer, once, and of nobody else's. */
static void test_told(void **state)
{
    enum {
        N = 100
    };
    static struct auth_login l[N];
    unsigned times[N] = {0};
    uint32_t id;
    (void)state;
    memset(l, 0, sizeof l);
    for (int i = 0; i < N; i++) {
        char password[16];
        (void)snprintf(password, sizeof password, "p%d", i);
        assert_int_equal(once(&l[i], 1, "ann", password, &id), AUTH_PENDING);
    }
    for (unsigned left = N; left > 0;) {
        struct auth_login *who = told();
        if (!who) {
            wait_answer();
            continue;
        }
        char password[16];
        (void)snprintf(password, sizeof password, "p%d", (int)(who - l));
        assert_int_equal(once(who, 1, "ann", password, &id), AUTH_NO);
        assert_null(who->ask);
        assert_int_equal(++times[who - l], 1);
        left--;
    }
    assert_null(told());
}

/* A question that has changed meanwhile is another one. */
static void test_other_question(void **state)
{
    struct auth_login l = {.ask = NULL};
    uint32_t id = 0;
    (void)state;
    assert_int_equal(once(&l, 1, "ann", "secret", &id), AUTH_PENDING);
    while (told() != &l)
        wait_answer();
    assert_int_equal(once(&l, 1, "ann", "other", &id), AUTH_PENDING);
    while (told() != &l)
        wait_answer();
    assert_int_equal(once(&l, 1, "ann", "other", &id), AUTH_NO);
    assert_int_equal(id, 0);
}

/* Connections that guess without end, each anew as soon as it was told: others log in meanwhile, by
 * another party at once, and by the same when each of these has had a check. */
static void test_guessing(void **state)
{
    enum {
        N = 40
    };
    struct users slow =
        users_of("eve:$argon2id$v=19$m=8192,t=4,p=1$c29tZXNhbHQ$"
                 "pZFwD26TasTmNEoaHqZzemrts7a4Bfvk\nann:" SECRET "\nbob:" CRYPT "\n");
    static struct auth_login l[N];
    struct auth_login ann = {.ask = NULL}, bob = {.ask = NULL};
    char password[16];
    uint32_t id;
    unsigned guesses = 0, before_ann = 0, before_bob = 0;
    (void)state;
    memset(l, 0, sizeof l);
    auth_replace(a, &slow);
    for (int i = 0; i < N; i++) {
        (void)snprintf(password, sizeof password, "g%u", i);
        (void)once(&l[i], 1, "eve", password, &id);
    }
    (void)once(&ann, 2, "ann", "secret", &id);
    (void)once(&bob, 1, "bob", "secret", &id);
    while (before_ann == 0 || before_bob == 0) {
        struct auth_login *who = told();
        if (!who) {
            wait_answer();
            continue;
        }
        if (who == &ann)
            before_ann = guesses + 1;
        if (who == &bob)
            before_bob = guesses + 1;
        if (who == &ann || who == &bob)
            continue;
        guesses++;
        (void)snprintf(password, sizeof password, "g%u", (unsigned)(who - l));
        (void)once(who, 1, "eve", password, &id); /* AUTH_NO, and then the next */
        (void)snprintf(password, sizeof password, "n%u", guesses);
        (void)once(who, 1, "eve", password, &id);
    }
    assert_in_range(before_ann, 1, 4);
    assert_in_range(before_bob, 1, N + N / 3 + 2);
    assert_int_equal(once(&ann, 2, "ann", "secret", &id), AUTH_YES);
    assert_int_equal(once(&bob, 1, "bob", "secret", &id), AUTH_YES);
    for (int i = 0; i < N; i++)
        auth_forget(a, &l[i]);
}

/* Each wrong answer delays the next one of the same connection, a right one is told at once. */
static void test_delay(void **state)
{
    struct auth_login l = {.ask = NULL}, fresh = {.ask = NULL};
    uint32_t id;
    (void)state;
    check("ann", "wrong", AUTH_NO, true);
    check("ann", "secret", AUTH_YES, true);
    assert_int_equal(once(&l, 1, "ann", "wrong", &id), AUTH_NO);
    assert_int_equal(l.refused, 1);
    assert_int_equal(once(&fresh, 1, "ann", "wrong", &id), AUTH_NO);
    int64_t before = clock_mono_us(clock_system());
    assert_int_equal(once(&l, 1, "ann", "wrong", &id), AUTH_PENDING);
    while (once(&l, 1, "ann", "wrong", &id) == AUTH_PENDING)
        wait_answer();
    assert_true(clock_mono_us(clock_system()) - before >= QUEUE_DELAY_US);
    assert_int_equal(l.refused, 2);
    before = clock_mono_us(clock_system()); /* and longer each time */
    assert_int_equal(once(&l, 1, "ann", "wrong", &id), AUTH_PENDING);
    while (once(&l, 1, "ann", "wrong", &id) == AUTH_PENDING)
        wait_answer();
    assert_true(clock_mono_us(clock_system()) - before >= 2 * QUEUE_DELAY_US);
    assert_int_equal(l.refused, 3);
    assert_int_equal(once(&l, 1, "ann", "secret", &id), AUTH_YES);
    assert_int_equal(l.refused, 0);
}

/* A connection that closes in each state of its question. */
static void test_forget(void **state)
{
    static struct auth_login l[6];
    uint32_t id;
    (void)state;
    memset(l, 0, sizeof l);
    for (int i = 0; i < 5; i++) {
        char password[16];
        (void)snprintf(password, sizeof password, "p%d", i);
        (void)once(&l[i], 1, "ann", password, &id);
    }
    l[5].refused = 5;
    (void)once(&l[5], 1, "ann", "wrong", &id); /* delayed */
    auth_forget(a, &l[4]);                     /* waits */
    auth_forget(a, &l[0]);                     /* runs, perhaps */
    while (told() != &l[2])
        wait_answer();
    auth_forget(a, &l[2]); /* told */
    wait_answer();
    auth_forget(a, &l[3]); /* answered, perhaps */
    auth_forget(a, &l[5]);
    auth_forget(a, &l[5]);
    check("bob", "secret", AUTH_YES, true);
}

/* What a wrong password for that name costs in time of the processor: the least of three questions,
 * since the processor's clock tells of what else the machine does, too. */
static clock_t cost(const char *name, const char *password)
{
    clock_t least = 0;
    for (int i = 0; i < 3; i++) {
        char again[16];
        uint32_t id;
        bool waited;
        clock_t before = clock();
        (void)snprintf(again, sizeof again, "%s%d", password, i);
        assert_int_equal(ask(name, again, &id, &waited), AUTH_NO);
        clock_t is = clock() - before;
        if (i == 0 || is < least)
            least = is;
    }
    return least;
}

/* A name that nobody has is compared with the hash of one that somebody has, always the same one's,
 * and by no means always the same for all names. */
static void test_stand_in(void **state)
{
    static const char text[] = "ann:" SECRET "\nslow:$argon2id$v=19$m=16384,t=1,p=1$c29tZXNhbHQ$"
                               "pZFwD26TasTmNEoaHqZzemrts7a4Bfvk\n";
    unsigned slow[2] = {0};
    bool was[16];
    (void)state;
    for (int life = 0; life < 2; life++) {
        struct users u = users_of(text);
        auth_replace(a, &u);
        clock_t half = cost("slow", life ? "x" : "y") / 2;
        assert_in_range(cost("ann", life ? "x" : "y"), 0, half);
        for (unsigned i = 0; i < 16; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "n%u", i);
            bool is = cost(name, life ? "x" : "y") > half;
            if (life == 1)
                assert_true(was[i] == is);
            was[i] = is;
            slow[life] += is;
        }
    }
    assert_in_range(slow[0], 1, 15);
}

/* What a program leaves to the next one: known passwords stay so, if the user is the same. */
static void test_pack(void **state)
{
    struct users others = users_of("bob:" SECRET "\nann:" SECRET "\n");
    char mem[1024];
    struct buf b;
    struct err e;
    (void)state;
    check("ann", "secret", AUTH_YES, true);
    check("bob", "secret", AUTH_YES, true);
    buf_init(&b, mem, sizeof mem);
    auth_pack(a, &b);
    auth_free(a);
    assert_int_equal(auth_new(&others, notify, NULL, &a, &e), ERR_OK);
    auth_unpack(a, buf_span(&b));
    check("ann", "secret", AUTH_YES, false);
    check("bob", "secret", AUTH_YES, true); /* the hash is another */
    check("ann", "wrong", AUTH_NO, true);
    for (size_t n = 0; n < b.n; n++)
        auth_unpack(a, span_of(mem, n));
}

/* What is left when the daemon ends. */
static void test_free_meanwhile(void **state)
{
    uint32_t id;
    (void)state;
    (void)once(&(struct auth_login){.ask = NULL}, 1, "ann", "secret", &id);
    (void)once(&(struct auth_login){.ask = NULL}, 1, "bob", "secret", &id);
    (void)once(&(struct auth_login){.refused = 6}, 1, "bob", "x", &id);
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
        TEST(test_told),
        TEST(test_other_question),
        TEST(test_guessing),
        TEST(test_delay),
        TEST(test_forget),
        TEST(test_stand_in),
        TEST(test_pack),
        TEST(test_free_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
