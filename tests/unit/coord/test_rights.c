/*
 * A Redis that hides what the protocol needs, and one that allows no more than it needs: the rights
 * are those of the manual page, read from there.
 */
#include "coord/seq_calls.h"
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

#define MANUAL     "packaging/man/sidflake.yaml.5"
#define TIMEOUT_MS 3000

struct fixture {
    struct server redis, replica;
    struct fake_server sentinel;
    struct coord *c;
    struct coord_reply r;
    struct coord_grant g;
    struct coord_pool p;
    char out[4096];
};

static struct fixture fixture;

static struct coord *open_as(const struct fixture *f, const char *userinfo)
{
    char url[128];
    (void)snprintf(url, sizeof url, "redis://%s127.0.0.1:%d", userinfo, f->redis.port);
    return setup_open_within(url, "default", clock_system(), TIMEOUT_MS);
}

static int start(void **state, const char *const *args)
{
    struct fixture *f = &fixture;
    memset(f, 0, sizeof *f);
    server_start(&f->redis, false, args);
    f->c = open_as(f, "");
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return start(state, NULL);
}

static int setup_without_info(void **state)
{
    static const char *const args[] = {"--rename-command", "INFO", "", NULL};
    return start(state, args);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    coord_free(f->c);
    fake_server_stop(&f->sentinel);
    server_free(&f->replica);
    server_free(&f->redis);
    return 0;
}

static enum coord_status make(struct fixture *f, struct coord *c)
{
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    return coord_init(c, &in, &f->r);
}

/* ---- servers that hide ----------------------------------------------------------------------- */

/* Neither is a pool made there, nor one used that was made before. */
static void is_refused(struct fixture *f, struct coord *c, const char *why)
{
    assert_int_equal(make(f, c), COORD_REFUSED);
    coord_says(&f->r, "INFO, asked by a script: expected run_id and master_replid");
    coord_says(&f->r, why);
    assert_true(SERVER_DO(&f->redis, f->out, "DBSIZE"));
    assert_string_equal(f->out, "0");
}

static void info_renamed_is_refused(void **state)
{
    struct fixture *f = *state;
    is_refused(f, f->c, "Unknown Redis command");
}

static void info_forbidden_is_refused(void **state)
{
    struct fixture *f = *state;
    struct coord *c = open_as(f, "poor:pw@");
    assert_true(SERVER_DO(&f->redis, f->out, "ACL", "SETUSER", "poor", "on", ">pw", "~*", "+@all",
                          "-info"));
    is_refused(f, c, "can't run this command");
    /* One that was made before is refused by each operation. */
    assert_int_equal(make(f, f->c), COORD_OK);
    assert_int_equal(coord_describe(c, &f->p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "expected run_id and master_replid");
    assert_int_equal(
        coord_claim(c, SETUP_IDENTITY, clock_wall_ms(clock_system()), setup_token(1), &f->g, &f->r),
        COORD_REFUSED);
    coord_says(&f->r, "expected run_id and master_replid");
    coord_free(c);
}

/* INFO is there, but not all of it: so it is with some managed servers. */
static void an_info_that_lacks_fields_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct fake_reply replies[] = {
        {"SCRIPT", "$40\r\n0123456789012345678901234567890123456789\r\n"},
        {"EVALSHA", "*3\r\n$6\r\nNOINFO\r\n$13\r\n1780000000000\r\n$13\r\nno such field\r\n"},
        {NULL, NULL}};
    char url[64];
    fake_server_script(&f->sentinel, replies);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", f->sentinel.port);
    struct coord *c = setup_open(url, "p", clock_system());
    is_refused(f, c, "found: no such field");
    assert_int_equal(coord_describe(c, &f->p, &f->r), COORD_REFUSED);
    coord_says(&f->r, "found: no such field");
    coord_free(c);
}

extern const char pool_lua[];

/* The script, with a server that says info of itself. */
static void script_with_info(char *out, size_t cap, const char *info)
{
    static const char *const asks[] = {"call('INFO', 'replication')", "call('INFO', 'server')"};
    const char *rest = pool_lua;
    size_t n = 0;
    for (size_t i = 0; i < 2; i++) {
        const char *at = strstr(rest, asks[i]);
        assert_non_null(at);
        n += (size_t)snprintf(out + n, cap - n, "%.*s'%s'", (int)(at - rest), rest, info);
        assert_true(n < cap);
        rest = at + strlen(asks[i]);
    }
    n += (size_t)snprintf(out + n, cap - n, "%s", rest);
    assert_true(n < cap);
}

#define RUN_ID "run_id:0123456789012345678901234567890123456789 "
#define REPLID "master_replid:0123456789012345678901234567890123456789"

static void an_info_that_tells_nothing_is_refused(void **state)
{
    struct fixture *f = *state;
    static char script[1 << 15];
    static const struct {
        const char *info, *answer;
    } cases[] = {
        {RUN_ID "role:master " REPLID, "NOPOOL"},
        {RUN_ID REPLID, "REPLICA\n"},
        {RUN_ID "role:slave " REPLID, "nobody"},
        {RUN_ID "role:slave master_host:fe80::1 master_port:7 " REPLID, "fe80::1:7"},
        {RUN_ID "role:masterly " REPLID, "REPLICA\n"},
        {"run_id:0000000000000000000000000000000000000000 role:master " REPLID, "NOINFO"},
        {RUN_ID "role:master master_replid:0000000000000000000000000000000000000000", "NOINFO"},
        {"run_id:1 role:master " REPLID, "NOINFO"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        script_with_info(script, sizeof script, cases[i].info);
        assert_true(SERVER_DO(&f->redis, f->out, "EVAL", script, "4", "h", "f", "e", "w",
                              "describe", "", ""));
        assert_non_null(strstr(f->out, cases[i].answer));
    }
}

/* ---- the least rights ------------------------------------------------------------------------ */

#define WORDS_MAX 64

struct rights {
    char text[1 << 16];
    const char *word[WORDS_MAX]; /* what follows "ACL SETUSER sidflake", of all lines */
    size_t n;
    size_t sidecar; /* the first of them are the sidecars', the rest sidflakectl's */
};

static const struct rights *read_manual(void)
{
    static struct rights w;
    const char *const mark = "ACL SETUSER sidflake ";
    FILE *file = fopen(MANUAL, "r");
    assert_non_null(file);
    memset(&w, 0, sizeof w);
    w.text[fread(w.text, 1, sizeof w.text - 1, file)] = '\0';
    (void)fclose(file);
    char *lines = NULL;
    for (char *line = strtok_r(w.text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
        char *words = NULL;
        if (strcmp(line, ".Ed") == 0 && w.sidecar == 0)
            w.sidecar = w.n;
        if (strncmp(line, mark, strlen(mark)) != 0)
            continue;
        for (char *t = strtok_r(line + strlen(mark), " ", &words); t;
             t = strtok_r(NULL, " ", &words)) {
            assert_true(w.n < WORDS_MAX);
            w.word[w.n++] = t;
        }
    }
    assert_true(w.sidecar > 10 && w.n > w.sidecar);
    return &w;
}

/* The user with the first n words, but for the one to leave out. */
static void grant(struct fixture *f, const struct rights *w, size_t n, size_t leave_out)
{
    const char *argv[WORDS_MAX + 8] = {"ACL", "SETUSER", "sidflake", "reset"};
    int argc = 4;
    for (size_t i = 0; i < n; i++) {
        if (i != leave_out)
            argv[argc++] = strcmp(w->word[i], ">PASSWORD") == 0 ? ">pw" : w->word[i];
    }
    if (!server_command(&f->redis, f->out, sizeof f->out, argc, argv))
        fail_msg("ACL SETUSER: %s", f->out);
}

/* What goes wrong for a sidecar, or NULL. */
static const char *use_as_sidecar(struct fixture *f, struct coord *c)
{
    struct coord_token t = setup_token(1);
    int64_t now = clock_wall_ms(clock_system());
    if (coord_describe(c, &f->p, &f->r) != COORD_OK)
        return "describe";
    if (coord_claim(c, SETUP_IDENTITY, now, t, &f->g, &f->r) != COORD_OK)
        return "claim";
    struct coord_renewal item = {
        .worker = f->g.worker, .cur = t, .nxt = setup_token(2), .n = f->g.n, .hi_ms = f->g.hi_ms};
    if (coord_renew(c, SETUP_IDENTITY, setup_now(), &item, 1, setup_terms(), &f->r) != COORD_OK)
        return "renew";
    const struct seq_caller by = {.now_ms = now};
    const struct seq_want want = {
        .name = "a", .sub = "", .period = "", .text = "", .count = 1, .token = t};
    struct seq_grant block;
    struct seq_opening opening;
    if (seq_take(c, SETUP_IDENTITY, &by, &want, &block, 1, &opening, &f->r) != COORD_OK)
        return "take";
    struct coord_release gone = {
        .worker = f->g.worker, .cur = item.nxt, .nxt = item.nxt, .has_last = true, .last_ms = 1};
    return coord_release(c, SETUP_IDENTITY, &gone, &f->r) == COORD_OK ? NULL : "release";
}

static const char *use_as_operator(struct fixture *f, struct coord *c)
{
    struct coord_snapshot s;
    const uint16_t all[] = {0, 1, 2};
    (void)SERVER_DO(&f->redis, f->out, "FLUSHALL");
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    in.params.replicas = 1;
    if (coord_init(c, &in, &f->r) != COORD_OK)
        return "init";
    const char *bad = use_as_sidecar(f, c);
    if (bad)
        return bad;
    if (coord_repair(c, SETUP_IDENTITY, all, 3, &f->r) != COORD_OK)
        return "repair";
    const struct seq_create make = {
        .name = "a", .definition = {.increment = 1, .loss = SEQ_LOSS_REFUSE, .subs = 1}};
    struct seq_grant made;
    if (seq_create(c, SETUP_IDENTITY, &make, &made, &f->r) != COORD_OK || made.how != SEQ_DONE ||
        seq_drop(c, SETUP_IDENTITY, "a", &made, &f->r) != COORD_OK ||
        seq_sweep(c, SETUP_IDENTITY, "a", "", &made, &f->r) != COORD_OK)
        return "sequences";
    if (coord_evict(c, SETUP_IDENTITY, 7, &f->r) != COORD_LOST)
        return "evict";
    if (coord_snapshot(c, &s, &f->r) != COORD_OK)
        return "snapshot";
    coord_snapshot_clear(&s);
    return coord_close(c, SETUP_IDENTITY, false, &f->r) == COORD_OK ? NULL : "close";
}

/* A new connection by way of a sentinel to another database, and a script that is not loaded. */
static const char *use(struct fixture *f, const char *(*as)(struct fixture *, struct coord *))
{
    char url[128];
    (void)SERVER_DO(&f->redis, f->out, "SCRIPT", "FLUSH");
    (void)snprintf(url, sizeof url, "redis+sentinel://sidflake:pw@127.0.0.1:%d/mymaster?db=3",
                   f->sentinel.port);
    struct coord *c = setup_open_within(url, "default", clock_system(), TIMEOUT_MS);
    const char *bad = as(f, c);
    coord_free(c);
    return bad;
}

static void prepare(struct fixture *f)
{
    char named[128];
    char digits[16];
    int n = snprintf(digits, sizeof digits, "%d", f->redis.port);
    (void)snprintf(named, sizeof named, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", n, digits);
    const struct fake_reply replies[] = {{"SENTINEL", named}, {NULL, NULL}};
    fake_server_script(&f->sentinel, replies);
    server_start(&f->replica, false, NULL);
    server_follow(&f->replica, &f->redis);
    server_wait_followed(&f->redis, 1);
}

static void the_rights_of_the_manual_are_enough_and_needed(void **state)
{
    struct fixture *f = *state;
    const struct rights *w = read_manual();
    prepare(f);
    grant(f, w, w->n, SIZE_MAX);
    const char *bad = use(f, use_as_operator);
    if (bad)
        fail_msg("sidflakectl, %s: %s", bad, f->r.err.text);
    for (size_t i = 0; i < w->n; i++) {
        grant(f, w, w->n, i);
        if (w->word[i][0] == '+' && !use(f, use_as_operator))
            fail_msg("expected a need of %s, found none", w->word[i]);
    }
}

static void sidecars_need_no_more_than_their_part(void **state)
{
    struct fixture *f = *state;
    const struct rights *w = read_manual();
    prepare(f);
    grant(f, w, w->n, SIZE_MAX);
    assert_null(use(f, use_as_operator));
    (void)SERVER_DO(&f->redis, f->out, "FLUSHALL");
    struct coord_init in = setup_init(SETUP_IDENTITY, COORD_INIT_FRESH, 9);
    in.params.replicas = 1;
    char url[128];
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d/3", f->redis.port);
    struct coord *c = setup_open_within(url, "default", clock_system(), TIMEOUT_MS);
    assert_int_equal(coord_init(c, &in, &f->r), COORD_OK);
    coord_free(c);
    grant(f, w, w->sidecar, SIZE_MAX);
    const char *bad = use(f, use_as_sidecar);
    if (bad)
        fail_msg("sidecar, %s: %s", bad, f->r.err.text);
    for (size_t i = 0; i < w->n; i++) {
        if (strncmp(w->word[i], "~", 1) == 0)
            assert_string_equal(w->word[i], "~sidflake:{default}:*");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_info_that_tells_nothing_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(info_renamed_is_refused, setup_without_info, teardown),
        TEST(info_forbidden_is_refused),
        TEST(an_info_that_lacks_fields_is_refused),
        TEST(the_rights_of_the_manual_are_enough_and_needed),
        TEST(sidecars_need_no_more_than_their_part),
    };
    (void)signal(SIGPIPE, SIG_IGN);
    if (!server_available()) {
        (void)fprintf(stderr, "skipped: no redis-server\n");
        return 0;
    }
    return cmocka_run_group_tests_name("coord/rights", tests, NULL, NULL);
}
