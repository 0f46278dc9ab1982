#include "unit/serve/redis_rig.h"

#include "base/glob.h"

#include <time.h>

static void questions(void **state)
{
    struct rig *r = *state;
    rig_check(r, "EXISTS id:a x id:a", ":2\r\n");
    rig_check(r, "EXISTS x", ":0\r\n");
    rig_check(r, "TOUCH id:a x", ":1\r\n");
    rig_check(r, "TYPE id:a", "+string\r\n");
    rig_check(r, "TYPE x", "+none\r\n");
    static const char *const ttls[] = {"TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"};
    for (size_t i = 0; i < 4; i++) {
        char words[32];
        (void)snprintf(words, sizeof words, "%s id:a", ttls[i]);
        rig_check(r, words, ":-1\r\n");
        (void)snprintf(words, sizeof words, "%s x", ttls[i]);
        rig_check(r, words, ":-2\r\n");
    }
    assert_int_equal(r->gen.ids.stats.issued, 0);
}

/* As hits and misses are, of whatever is asked. */
static void questions_are_counted_by_what_is_found(void **state)
{
    static const char *const asked[] = {"exists", "type", "ttl"};
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        char words[32];
        (void)snprintf(words, sizeof words, "%s id:a", asked[i]);
        assert_int_equal(rig_ask(r, words), NET_MORE);
        (void)snprintf(words, sizeof words, "%s x", asked[i]);
        for (int n = 0; n < 2; n++)
            assert_int_equal(rig_ask(r, words), NET_MORE);
        assert_int_equal(rig_counted(r, asked[i], SERVE_OK), 1);
        assert_int_equal(rig_counted(r, asked[i], SERVE_MISS), 2);
    }
}

static void any_name(void **state)
{
    struct rig *r = *state;
    rig_check(r, "DBSIZE", ":0\r\n");
    rig_check(r, "KEYS *", "*0\r\n");
    rig_check(r, "SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n");
    rig_check(r, "RANDOMKEY", "$-1\r\n");
}

static void configured_names(void **state)
{
    struct rig *r = *state;
    rig_check(r, "DBSIZE", ":3\r\n");
    rig_check(r, "KEYS *", "*3\r\n$9\r\nid:orders\r\n$8\r\nid:users\r\n$11\r\nid:invoices\r\n");
    rig_check(r, "KEYS id:u*", "*1\r\n$8\r\nid:users\r\n");
    rig_check(r, "KEYS orders", "*0\r\n");
    rig_check(r, "SCAN 0",
              "*2\r\n$1\r\n0\r\n*3\r\n$9\r\nid:orders\r\n$8\r\nid:users\r\n"
              "$11\r\nid:invoices\r\n");
    rig_check(r, "SCAN 0 COUNT 2", "*2\r\n$1\r\n2\r\n*2\r\n$9\r\nid:orders\r\n$8\r\nid:users\r\n");
    rig_check(r, "SCAN 2 COUNT 2 match *o*", "*2\r\n$1\r\n0\r\n*1\r\n$11\r\nid:invoices\r\n");
    rig_check(r, "SCAN 18446744073709551615 COUNT 9223372036854775807", "*2\r\n$1\r\n0\r\n*0\r\n");
    rig_check(r, "SCAN 0 TYPE hash", "*2\r\n$1\r\n0\r\n*0\r\n");
    rig_check(r, "SCAN 0 COUNT 1 TYPE String", "*2\r\n$1\r\n1\r\n*1\r\n$9\r\nid:orders\r\n");
    rig_begins(r, "RANDOMKEY", "$");
    rig_check(r, "EXISTS id:orders id:foo", ":1\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 0);
}

/* COUNT is a hint, and one reply has no more than 1,000 names: others are not to wait for more. */
static void a_scan_of_many_names_comes_in_parts(void **state)
{
    enum {
        NAMES = 1002
    };
    static char text[NAMES][16];
    static char *names[NAMES + 1];
    for (int i = 0; i < NAMES; i++) {
        (void)snprintf(text[i], sizeof text[i], "n%04d", i);
        names[i] = text[i];
    }
    struct rig *r = rig_new(names);
    *state = r;
    rig_begins(r, "SCAN 0 COUNT 1000", "*2\r\n$4\r\n1000\r\n*1000\r\n$8\r\nid:n0000\r\n");
    rig_begins(r, "SCAN 0 COUNT 9223372036854775807", "*2\r\n$4\r\n1000\r\n*1000\r\n");
    rig_check(r, "SCAN 1000 COUNT 5000",
              "*2\r\n$1\r\n0\r\n*2\r\n$8\r\nid:n1000\r\n$8\r\nid:n1001\r\n");
    rig_begins(r, "SCAN 2 COUNT 1001", "*2\r\n$1\r\n0\r\n*1000\r\n");
}

static void scan_errors(void **state)
{
    struct rig *r = *state;
    rig_check(r, "SCAN x", "-ERR invalid cursor\r\n");
    rig_check(r, "SCAN 0 COUNT 0", "-ERR syntax error\r\n");
    rig_check(r, "SCAN 0 COUNT x", "-ERR value is not an integer or out of range\r\n");
    rig_check(r, "SCAN 0 MATCH", "-ERR syntax error\r\n");
    rig_check(r, "SCAN 0 FOO 1", "-ERR syntax error\r\n");
    rig_check(r, "SCAN 0 FOO x", "-ERR syntax error\r\n");
    char words[200] = "KEYS ";
    memset(words + 5, '*', 129);
    rig_check(r, words, "-ERR the pattern is too long: expected at most 128 bytes, found 129\r\n");
}

/* ---- missing keys, as Redis 7.0.15 answers them -----------------------------------------------
 */

static const struct {
    const char *words, *resp2, *resp3; /* resp3 NULL: the same */
} missing[] = {
    {"BITCOUNT a", ":0\r\n", NULL},
    {"BITFIELD_RO a GET u8 0", "*1\r\n:0\r\n", NULL},
    {"BITPOS a 1", ":-1\r\n", NULL},
    {"BITPOS a 0", ":0\r\n", NULL},
    {"DUMP a", "$-1\r\n", "_\r\n"},
    {"GEODIST a b c", "$-1\r\n", "_\r\n"},
    {"GEOHASH a b c", "*2\r\n$-1\r\n$-1\r\n", "*2\r\n_\r\n_\r\n"},
    {"GEOPOS a b", "*1\r\n*-1\r\n", "*1\r\n_\r\n"},
    {"GETBIT a 1", ":0\r\n", NULL},
    {"GETRANGE a 0 1", "$0\r\n\r\n", NULL},
    {"HEXISTS a b", ":0\r\n", NULL},
    {"HGET a b", "$-1\r\n", "_\r\n"},
    {"HGETALL a", "*0\r\n", "%0\r\n"},
    {"HKEYS a", "*0\r\n", NULL},
    {"HMGET a b c", "*2\r\n$-1\r\n$-1\r\n", "*2\r\n_\r\n_\r\n"},
    {"HRANDFIELD a", "$-1\r\n", "_\r\n"},
    {"HRANDFIELD a 3", "*0\r\n", NULL},
    {"HSCAN a 0", "*2\r\n$1\r\n0\r\n*0\r\n", NULL},
    {"LINDEX a 0", "$-1\r\n", "_\r\n"},
    {"LPOS a b", "$-1\r\n", "_\r\n"},
    {"LPOS a b COUNT 2", "*0\r\n", NULL},
    {"LRANGE a 0 -1", "*0\r\n", NULL},
    {"SINTERCARD 1 a", ":0\r\n", NULL},
    {"SMEMBERS a", "*0\r\n", "~0\r\n"},
    {"SMISMEMBER a b c", "*2\r\n:0\r\n:0\r\n", NULL},
    {"SUNION a b", "*0\r\n", "~0\r\n"},
    {"STRLEN a", ":0\r\n", NULL},
    {"XPENDING a g", "-NOGROUP No such key 'a' or consumer group 'g'\r\n", NULL},
    {"XREAD STREAMS a 0", "*-1\r\n", "_\r\n"},
    {"ZMSCORE a b", "*1\r\n$-1\r\n", "*1\r\n_\r\n"},
    {"ZRANGE a 0 -1", "*0\r\n", NULL},
    {"ZSCORE a b", "$-1\r\n", "_\r\n"},
    {"ZUNION 1 a", "*0\r\n", NULL},
    {"MGET a", "*1\r\n$-1\r\n", "*1\r\n_\r\n"},
    {"ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", NULL},
    {"WAIT 0 0", ":0\r\n", NULL},
};

static void reads_of_missing_keys(void **state)
{
    struct rig *r = *state;
    const size_t n = sizeof missing / sizeof *missing;
    for (size_t i = 0; i < n; i++)
        rig_check(r, missing[i].words, missing[i].resp2);
    rig_begins(r, "HELLO 3", "%7\r\n");
    for (size_t i = 0; i < n; i++)
        rig_check(r, missing[i].words, missing[i].resp3 ? missing[i].resp3 : missing[i].resp2);
}

static void reads_of_id_keys(void **state)
{
    static const char *const wrong[] = {"HGET id:a f",          "LRANGE id:a 0 1", "SMEMBERS id:a",
                                        "ZSCORE id:a m",        "XLEN id:a",       "SINTER a id:a",
                                        "XREAD STREAMS id:a 0", "ZUNION 2 b id:a", "LLEN id:a"};
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        rig_check(r, wrong[i],
                  "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    rig_check(r, "STRLEN id:a",
              "-ERR id key 'id:a' holds no value to look at: read it with GET, GETEX, GETDEL or "
              "MGET\r\n");
    assert_int_equal(r->gen.ids.stats.issued, 0);
}

static void writes(void **state)
{
    static const char *const ids[] = {
        "SET id:a 1",   "DEL x id:a",      "APPEND id:a 1", "DECR id:a",    "EXPIRE id:a 1",
        "LPUSH id:a 1", "MSET x 1 id:a 2", "RENAME x id:a", "BLPOP id:a 0", "LMPOP 1 id:a LEFT",
        "SADD id:a 1",  "XADD id:a * f v", "GETSET id:a 1", "COPY id:a x",  "PERSIST id:a"};
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        rig_check(r, ids[i], "-ERR id key 'id:a' is read-only\r\n");
    rig_check(r, "SET x 1", "-ERR key 'x' is no id, and no upstream is configured to store it\r\n");
    /* a value that looks like a key is none */
    rig_check(r, "MSET x id:a y id:b",
              "-ERR key 'x' is no id, and no upstream is configured to store it\r\n");
    rig_check(r, "ZUNIONSTORE d 1 x",
              "-ERR key 'd' is no id, and no upstream is configured to store it\r\n");
    assert_int_equal(rig_counted(r, "other", SERVE_REFUSED), 18);
}

/* ---- patterns ---------------------------------------------------------------------------------
 */

static void check_glob(const char *pattern, const char *s, bool expected)
{
    struct glob g;
    glob_init(&g, span_str(pattern));
    if (glob_has(&g, span_str(s)) != glob_match(span_str(pattern), span_str(s), false))
        fail_msg("%s and %s: as a glob otherwise", pattern, s);
    if (glob_match(span_str(pattern), span_str(s), false) != expected)
        fail_msg("%s %s %s", pattern, expected ? "does not match" : "matches", s);
}

static void globs(void **state)
{
    (void)state;
    static const char *const yes[][2] = {
        {"*", ""},          {"", ""},        {"a*c", "abbc"},
        {"a*c", "acbc"},    {"***a", "a"},   {"a?c", "abc"},
        {"[abc]", "b"},     {"[^abc]", "d"}, {"[a-c]x", "bx"},
        {"[c-a]x", "bx"},   {"\\*", "*"},    {"a\\", "a\\"},
        {"[\\]]", "]"},     {"[ab", "b"},    {"*a*b*c", "xaybzc"},
        {"[\\\\a-c]", "b"}, {"[a-]", "_"},   {"h[^]ello", "hello"},
        {"*[0-9]", "x9"},   {"[^", "x"},
    };
    static const char *const no[][2] = {
        {"", "a"},    {"?", ""},  {"a*c", "acb"}, {"[abc]", "d"},    {"[^a-c]", "b"},
        {"\\*", "a"}, {"a", "A"}, {"[", "["},     {"*a*b*c", "cba"}, {"abc", "ab"},
    };
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        check_glob(yes[i][0], yes[i][1], strcmp(yes[i][0], "h[^]ello") != 0);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        check_glob(no[i][0], no[i][1], false);
    assert_true(glob_match(SPAN("MAX*[A-C]\\D"), SPAN("maxbD"), true));
    assert_false(glob_match(SPAN("MAX*"), SPAN("maxbD"), false));
}

/* Exponential for a matcher that tries every star anew. */
static void glob_is_quick(void **state)
{
    (void)state;
    char s[201];
    memset(s, 'a', 200);
    s[200] = '\0';
    check_glob("a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", s, false);
}

/* By a fixed seed. */
static unsigned draw(unsigned bound)
{
    static uint64_t x = 1;
    x = x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(x >> 33) % bound;
}

static void some(char *to, size_t n, const char *from)
{
    for (size_t i = 0; i < n; i++)
        to[i] = from[draw((unsigned)strlen(from))];
    to[n] = '\0';
}

/* Long patterns are made of pieces of the text, or they would never match. */
static void a_glob_matches_as_one_text_does(void **state)
{
    (void)state;
    char pattern[GLOB_MAX + 1], s[251];
    for (int i = 0; i < 20000; i++) {
        bool is_long = i % 4 == 0;
        size_t n = draw(is_long ? 250 : 8), at = 0;
        some(s, n, "ab-");
        some(pattern, draw(9), "aabb**??[]^-\\");
        for (size_t k = 0; is_long && at < GLOB_MAX && k < n; k++) {
            unsigned how = draw(20);
            pattern[at++] = how == 0 ? '*' : how == 1 ? '?' : s[k];
            k += how == 0 ? draw(10) : 0;
            pattern[at] = '\0';
        }
        check_glob(pattern, s, glob_match(span_str(pattern), span_str(s), false));
    }
}

/* Of a thousand long names, as many as there may be, whatever the pattern. */
static clock_t time_of(const char *pattern)
{
    struct glob g;
    char s[201];
    unsigned found = 0;
    clock_t begun = clock();
    some(s, 200, "abcdefgh");
    glob_init(&g, span_str(pattern));
    for (int i = 0; i < 1000; i++)
        found += glob_has(&g, span_str(s));
    assert_true(found == 0 || found == 1000);
    return clock() - begun;
}

static void no_pattern_is_dear(void **state)
{
    (void)state;
    static const char dear[] = "*[a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h]"
                               "[a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h][a-h]!";
    clock_t cheap = 0, all = 0;
    for (int i = 0; i < 10; i++) {
        cheap += time_of("*");
        all += time_of(dear);
    }
    assert_true(all < 8 * cheap);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(questions),
        RIG_TEST(questions_are_counted_by_what_is_found),
        RIG_TEST(any_name),
        RIG_NAMES_TEST(configured_names),
        RIG_TEST(scan_errors),
        cmocka_unit_test_teardown(a_scan_of_many_names_comes_in_parts, rig_teardown),
        RIG_TEST(reads_of_missing_keys),
        RIG_TEST(reads_of_id_keys),
        RIG_TEST(writes),
        cmocka_unit_test(globs),
        cmocka_unit_test(glob_is_quick),
        cmocka_unit_test(a_glob_matches_as_one_text_does),
        cmocka_unit_test(no_pattern_is_dear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
