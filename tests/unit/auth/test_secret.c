/* Hashes of passwords: made by other programs (argon2, openssl, Python's crypt), and by us. */
#include "auth/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const of_secret[] = {
    "$argon2id$v=19$m=64,t=1,p=2$c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4",
    "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
    "$5$rounds=1000$abc$Mz4DiYKTnNKbZLo/mIp3d8Y4aQBhv3uhSwxLDy55/Y8",
    ("$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN."
     "Pq.H91p5hVO1"),
};

static void test_matches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof of_secret / sizeof *of_secret; i++) {
        const char *hash = of_secret[i];
        if (!secret_well_formed(span_str(hash)) || !secret_matches(hash, SPAN("secret")))
            fail_msg("%s: expected the hash of \"secret\"", hash);
        assert_false(secret_matches(hash, SPAN("secreT")));
        assert_false(secret_matches(hash, SPAN("secret\0")));
        assert_false(secret_matches(hash, SPAN("")));
        assert_false(secret_matches(hash, span_of(NULL, 0)));
    }
}

/* Longer than what crypt(3) takes. */
static void test_too_long(void **state)
{
    (void)state;
    static char longest[4096];
    memset(longest, 'a', sizeof longest);
    for (size_t i = 0; i < sizeof of_secret / sizeof *of_secret; i++)
        assert_false(secret_matches(of_secret[i], span_of(longest, sizeof longest)));
}

static void test_well_formed(void **state)
{
#define SALT_HASH "c29tZXNhbHQ$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4"
    static const char *const bad[] = {
        "",
        "secret",
        "$argon2i$v=19$m=64,t=1,p=1$" SALT_HASH,
        "$argon2id$v=16$m=64,t=1,p=1$" SALT_HASH,
        "$argon2id$v=19$m=7,t=1,p=1$" SALT_HASH,
        "$argon2id$v=19$m=262145,t=1,p=1$" SALT_HASH,
        "$argon2id$v=19$m=64,t=17,p=1$" SALT_HASH,
        "$argon2id$v=19$m=64,t=0,p=1$" SALT_HASH,
        "$argon2id$v=19$m=262144,t=5,p=1$" SALT_HASH,
        "$argon2id$v=19$m=64,t=1,p=17$" SALT_HASH,
        "$argon2id$v=19$m=64,t=1$" SALT_HASH,
        "$argon2id$v=19$t=1,m=64,p=1$" SALT_HASH,
        "$argon2id$v=19$m=064,t=1,p=1$" SALT_HASH,
        "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ",
        "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$",
        "$argon2id$v=19$m=64,t=1,p=1$c29t$S3Lajg55evZVboE7O39Ij0iCFwMgZQQ4",
        "$argon2id$v=19$m=64,t=1,p=1$" SALT_HASH "=",
        "$argon2id$v=19$m=64,t=1,p=1$" SALT_HASH "$x",
        "$1$saltsalt$0IyaXrmV7.sGNS6tirgqHL",
        "$5$saltsalt",
        "$5$saltsalt$short",
        "$5$rounds=999$abc$Mz4DiYKTnNKbZLo/mIp3d8Y4aQBhv3uhSwxLDy55/Y8",
        "$5$rounds=1000001$abc$Mz4DiYKTnNKbZLo/mIp3d8Y4aQBhv3uhSwxLDy55/Y8",
        "$5$rounds=01000$abc$Mz4DiYKTnNKbZLo/mIp3d8Y4aQBhv3uhSwxLDy55/Y8",
        "$5$a:b$Mz4DiYKTnNKbZLo/mIp3d8Y4aQBhv3uhSwxLDy55/Y8",
        "$5$01234567890123456$Mz4DiYKTnNKbZLo/mIp3d8Y4aQBhv3uhSwxLDy55/Y8",
        "$6$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (secret_well_formed(span_str(bad[i])))
            fail_msg("%s: expected no hash", bad[i]);
    assert_false(secret_well_formed(span_of("$5$salt\0alt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA."
                                            "lpPdS5sA",
                                            55)));
}

static void test_make(void **state)
{
    char one[SECRET_HASH_MAX + 1], two[SECRET_HASH_MAX + 1];
    struct err e;
    (void)state;
    assert_int_equal(secret_make(one, SPAN("pass word"), rng_system(), &e), ERR_OK);
    assert_int_equal(secret_make(two, SPAN("pass word"), rng_system(), &e), ERR_OK);
    assert_string_not_equal(one, two);
    assert_true(secret_well_formed(span_str(one)));
    assert_true(secret_matches(one, SPAN("pass word")));
    assert_false(secret_matches(one, SPAN("pass wore")));
}

/* Neither the parting of name and password nor the key may be blurred. */
static void test_digest(void **state)
{
    static const struct {
        const char *name, *password;
        uint8_t key;
    } cases[] = {{"a", "bc", 0}, {"ab", "c", 0}, {"", "abc", 0}, {"abc", "", 0}, {"a", "bc", 1}};
    uint8_t digest[5][SECRET_DIGEST], again[SECRET_DIGEST];
    (void)state;
    for (size_t i = 0; i < 5; i++) {
        uint8_t key[SECRET_DIGEST] = {cases[i].key};
        struct span name = span_str(cases[i].name), password = span_str(cases[i].password);
        assert_true(secret_digest(key, name, password, digest[i]));
        assert_true(secret_digest(key, name, password, again));
        assert_true(secret_equal(digest[i], again, SECRET_DIGEST));
        for (size_t k = 0; k < i; k++)
            assert_false(secret_equal(digest[i], digest[k], SECRET_DIGEST));
    }
}

static void test_equal(void **state)
{
    (void)state;
    assert_true(secret_equal("abc", "abd", 2));
    assert_false(secret_equal("abc", "abd", 3));
    assert_false(secret_equal("xbc", "abc", 3));
    assert_true(secret_equal("a", "b", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),     cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_well_formed), cmocka_unit_test(test_make),
        cmocka_unit_test(test_digest),      cmocka_unit_test(test_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
