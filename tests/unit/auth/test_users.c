/* The users file: what is read, and the place that is blamed. */
#include "auth/users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Well-formed, of no password that anybody knows. */
#define ARGON2                                                                                     \
    "$argon2id$v=19$m=64,t=1,p=2$c29tZXNhbHQ$"                                                     \
    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define CRYPT5 "$5$saltsalt$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

static struct users read_good(const char *text)
{
    struct users u;
    struct err e;
    if (users_read(&u, "f", span_str(text), &e))
        fail_msg("expected users, found %s", e.text);
    return u;
}

static void test_fields(void **state)
{
    struct users u = read_good("# who\r\n\r\na:" CRYPT5 "\r\nb@x:" ARGON2 ":names=o,inv-*  \n"
                               "c:" CRYPT5 ":names=*");
    (void)state;
    assert_int_equal(u.n, 3);
    assert_string_equal(u.user[0].name, "a");
    assert_string_equal(u.user[0].hash, CRYPT5);
    assert_null(u.user[0].names.p);
    assert_ptr_equal(users_find(&u, SPAN("b@x")), &u.user[1]);
    assert_string_equal(u.user[1].hash, ARGON2);
    assert_true(span_eq(u.user[1].names, SPAN("o,inv-*")));
    assert_null(users_find(&u, SPAN("b")));
    assert_null(users_find(&u, SPAN("")));
    users_clear(&u);
}

static void test_rights(void **state)
{
    struct users u =
        read_good("a:" CRYPT5 ":upstream=all\nb:" CRYPT5
                  ":upstream=read:names=o:keys=page:*,x\nc:" CRYPT5 ":names=o:upstream=none\n"
                  "d:" CRYPT5 ":names=o:acme,*::x,p:upstream:upstream=read:keys=k:\n");
    (void)state;
    assert_int_equal(u.user[0].upstream, USER_ALL);
    assert_null(u.user[0].keys.p);
    assert_int_equal(u.user[1].upstream, USER_READ);
    assert_true(span_eq(u.user[1].names, SPAN("o")));
    assert_true(span_eq(u.user[1].keys, SPAN("page:*,x")));
    assert_int_equal(u.user[2].upstream, USER_NONE);
    assert_true(span_eq(u.user[3].names, SPAN("o:acme,*::x,p:upstream"))); /* of subs */
    assert_int_equal(u.user[3].upstream, USER_READ);
    assert_true(span_eq(u.user[3].keys, SPAN("k:")));
    users_clear(&u);
}

/* Whether a user of the second line may all that one of the first may. */
static void test_keep(void **state)
{
    static const struct {
        const char *old, *now;
        bool keeps;
    } cases[] = {
        {"", "", true},
        {"", ":names=a", false},
        {":names=a", "", true},
        {":names=a,b", ":names=b,c,a", true},
        {":names=a,b", ":names=a", false},
        {":names=a,b:c", ":names=b:c,a:upstream=read", true},
        {":names=a:b", ":names=a", false},
        {"", ":upstream=read", true},
        {":upstream=all", ":upstream=read", false},
        {":upstream=read", "", false},
        {":upstream=read", ":upstream=all:keys=a", false},
        {":upstream=read:keys=a", ":upstream=all:keys=b,a", true},
        {":upstream=read:keys=a", ":upstream=all", true},
        {":upstream=read:keys=a,b", ":upstream=all:keys=a", false},
        {":upstream=none", ":upstream=all:keys=a", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512], other[512];
        (void)snprintf(text, sizeof text, "a:" CRYPT5 "%s\n", cases[i].old);
        (void)snprintf(other, sizeof other, "a:" CRYPT5 "%s\na2:" ARGON2 "%s\n", cases[i].now,
                       cases[i].now);
        struct users old = read_good(text), now = read_good(other);
        if (users_keep(old.user[0].terms, &now.user[0]) != cases[i].keeps)
            fail_msg("%s -> %s: expected %d", cases[i].old, cases[i].now, cases[i].keeps);
        assert_false(users_keep(old.user[0].terms, &now.user[1]));
        users_clear(&old);
        users_clear(&now);
    }
}

static void test_bad(void **state)
{
    static const struct {
        const char *text, *error;
    } cases[] = {
        {"a", "f:1:2: expected NAME:HASH, found no ':'"},
        {"#\n\n:" CRYPT5, "f:3:1: expected a name of 1..64 printable bytes without spaces, found "
                          "none"},
        {"a b:" CRYPT5, "f:1:1: expected a name of 1..64 printable bytes without spaces, found "
                        "something else"},
        {"a:plain", "f:1:3: expected a hash, " SECRET_FORMS ", found something else"},
        {"a:", "f:1:3: expected a hash, " SECRET_FORMS ", found something else"},
        {"a:" CRYPT5 "\na:" ARGON2, "f:2:1: expected each name once, found it again"},
        {"a:" CRYPT5 ":x=1",
         "f:1:59: expected names=GLOB,..., upstream=WORD or keys=GLOB,..., found "
         "another field"},
        {"a:" CRYPT5 ":", "f:1:59: expected names=GLOB,..., upstream=WORD or keys=GLOB,..., found "
                          "another field"},
        {"a:" CRYPT5 ":names=a:names=b", "f:1:67: expected each field once, found it again"},
        {"a:" CRYPT5 ":names=a:b,c:key=d",
         "f:1:71: expected names=GLOB,..., upstream=WORD or keys=GLOB,..., found another field"},
        {"a:" CRYPT5 ":upstream=", "f:1:68: expected none, read or all, found none"},
        {"a:" CRYPT5 ":upstream=write", "f:1:68: expected none, read or all, found something else"},
        {"a:" CRYPT5 ":keys=x",
         "f:1:64: expected upstream=read or upstream=all beside keys=, found "
         "neither"},
        {"a:" CRYPT5 ":upstream=read:keys=", "f:1:78: expected a pattern of 1..256 printable bytes "
                                             "without spaces, found none"},
        {"a:" CRYPT5 ":upstream=read:keys=x:y:names=b",
         "f:1:82: expected keys= at the end of the line, found another field behind it"},
        {"a:" CRYPT5 ":names=", "f:1:65: expected a pattern of 1..256 printable bytes without "
                                "spaces, found none"},
        {"a:" CRYPT5 ":names=a,,b", "f:1:67: expected a pattern of 1..256 printable bytes without "
                                    "spaces, found none"},
        {"a:" CRYPT5 ":names=a b", "f:1:65: expected a pattern of 1..256 printable bytes without "
                                   "spaces, found something else"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct users u;
        struct err e = {.text = "no error"};
        enum err_code r = users_read(&u, "f", span_str(cases[i].text), &e);
        if (r == ERR_OK || strcmp(e.text, cases[i].error) != 0)
            fail_msg("%s:\nexpected %s\nfound    %s", cases[i].text, cases[i].error, e.text);
        assert_int_equal(u.n, 0);
        assert_null(u.user);
        assert_null(u.mem);
    }
}

static void test_too_many(void **state)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    struct users u;
    struct err e;
    (void)state;
    for (unsigned i = 0; i < USERS_MAX; i++)
        (void)fprintf(f, "u%u:%s\n", i, CRYPT5);
    (void)fflush(f);
    assert_int_equal(users_read(&u, "f", span_of(text, n), &e), ERR_OK);
    assert_int_equal(u.n, USERS_MAX);
    users_clear(&u);
    (void)fprintf(f, "one more:x\n");
    assert_int_equal(fclose(f), 0);
    assert_int_equal(users_read(&u, "f", span_of(text, n), &e), ERR_RANGE);
    assert_string_equal(e.text, "f:1025:1: expected at most 1024 users, found more");
    free(text);
}

static void test_load(void **state)
{
    struct users u;
    struct err e;
    char path[] = "/tmp/sidflake-users-XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(users_load(&u, "", &e), ERR_OK);
    assert_int_equal(u.n, 0);
    assert_int_equal(users_load(&u, path, &e), ERR_OK);
    assert_int_equal(u.n, 0);
    users_clear(&u);
    assert_int_equal(write(fd, "a:" CRYPT5 "\n", sizeof CRYPT5 + 2), sizeof CRYPT5 + 2);
    assert_int_equal(users_load(&u, path, &e), ERR_OK);
    assert_int_equal(u.n, 1);
    users_clear(&u);
    assert_int_equal(fchmod(fd, 0620), 0);
    assert_int_equal(users_load(&u, path, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, ": expected a file that nobody but its owner may write to, "
                                   "found mode 0620"));
    assert_int_equal(fchmod(fd, 0602), 0);
    assert_int_equal(users_load(&u, path, &e), ERR_INVALID);
    assert_int_equal(u.n, 0);
    assert_int_equal(fchmod(fd, 0644), 0);
    assert_int_equal(users_load(&u, path, &e), ERR_OK);
    users_clear(&u);
    assert_int_equal(ftruncate(fd, USERS_FILE_MAX + 1), 0);
    assert_int_equal(users_load(&u, path, &e), ERR_RANGE);
    (void)close(fd);
    (void)unlink(path);
    assert_int_equal(users_load(&u, path, &e), ERR_IO);
    assert_int_equal(users_load(&u, "/tmp", &e), ERR_IO);
    /* To which nobody writes, which is as if it were empty: that would send all users away. */
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(users_load(&u, path, &e), ERR_INVALID);
    assert_non_null(strstr(e.text, ": expected a users file, found a pipe"));
    (void)unlink(path);
    assert_null(u.user);
}

/* What a line that is cut would grant: more, most of all where a field is gone. */
static void test_cut(void **state)
{
    static const char whole[] =
        "a:" CRYPT5 "\n# b\nb:" ARGON2 ":names=o:acme:upstream=all:keys=page:*:x\r\n";
    struct users u;
    struct err e;
    char path[] = "/tmp/sidflake-users-XXXXXX";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    for (size_t n = 1; n < sizeof whole; n++) {
        assert_int_equal(pwrite(fd, whole + n - 1, 1, (off_t)n - 1), 1);
        enum err_code r = users_load(&u, path, &e);
        if (whole[n - 1] == '\n' ? r != ERR_OK : r != ERR_INVALID || u.n > 0)
            fail_msg("%.*s: %d", (int)n, whole, r);
        if (r)
            assert_non_null(strstr(e.text, ": expected a line end at the end, found none: the file "
                                           "may have been cut"));
        users_clear(&u);
    }
    (void)close(fd);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields), cmocka_unit_test(test_rights),   cmocka_unit_test(test_keep),
        cmocka_unit_test(test_bad),    cmocka_unit_test(test_too_many), cmocka_unit_test(test_load),
        cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
