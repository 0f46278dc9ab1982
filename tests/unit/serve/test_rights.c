/* What a user may of the servers behind. */
#include "login.h"
#include "redis_rig.h"
#include "serve/memcached/memcached.h"
#include "serve/redis/redis_through.h"
#include "wire/mc_binary.h"

static void classes(void **state)
{
    static const bool may[3][2][4] = {
        /* HERE, READ, CHANGE, OTHER: without keys=, with */
        [USER_NONE] = {{true, false, false, false}, {true, false, false, false}},
        [USER_READ] = {{true, true, false, false}, {true, true, false, false}},
        [USER_ALL] = {{true, true, true, true}, {true, true, true, false}},
    };
    (void)state;
    for (int upstream = USER_NONE; upstream <= USER_ALL; upstream++)
        for (int keys = 0; keys < 2; keys++)
            for (int what = RIGHTS_HERE; what <= RIGHTS_OTHER; what++) {
                const struct user u = {.upstream = (enum user_upstream)upstream,
                                       .keys = keys ? SPAN("a*") : span_of(NULL, 0)};
                if (rights_may(&u, (enum rights_class)what) != may[upstream][keys][what])
                    fail_msg("upstream %d, keys %d, class %d", upstream, keys, what);
                assert_true(rights_limited(&u) == (upstream != USER_ALL || keys));
            }
}

static void keys(void **state)
{
    const struct user any = {.upstream = USER_ALL};
    const struct user some = {.upstream = USER_ALL, .keys = SPAN("page:*,x,[ab]?")};
    (void)state;
    assert_true(rights_key(&any, SPAN("page:1")) && rights_key(&any, SPAN("")));
    assert_true(rights_key(&some, SPAN("page:1")) && rights_key(&some, SPAN("x")));
    assert_true(rights_key(&some, SPAN("b\n")) && rights_key(&some, SPAN("page:\0y")));
    assert_false(rights_key(&some, SPAN("X")) || rights_key(&some, SPAN("page")));
    assert_false(rights_key(&some, SPAN("xx")) || rights_key(&some, SPAN("")));
    assert_false(rights_key(&some, SPAN("x\0")));
}

/* ---- requests of eve, who may all of "page:*" -------------------------------------------------
 */

static struct rds_there there;

static int begin(void **state)
{
    struct rig *r = rig_new(NULL);
    there = (struct rds_there){.merge = NULL};
    login_begin(&r->serve);
    login_replace(&r->serve, "eve:" LOGIN_HASH ":upstream=all:keys=page:*\n");
    rig_session(r)->access = (struct access){
        .mode = ACCESS_REQUIRED, .user = auth_user_named(r->serve.auth, SPAN("eve"))->id};
    *state = r;
    return 0;
}

static int end(void **state)
{
    struct rig *r = *state;
    rig_session(r)->there = NULL;
    login_end(&r->serve);
    rig_free(r);
    return 0;
}

static char said[1024]; /* to the request */

/* Of an inline request, as the service asks it. cut: its last arg has not come whole. */
static enum rds_rights redis_of(struct rig *r, const char *line, bool cut)
{
    static struct resp_req req;
    struct span in = span_str(line);
    size_t used;
    struct buf out;
    buf_init(&out, said, sizeof said);
    assert_int_equal(resp_parse(in, &req, &used), WIRE_REQ);
    req.truncated = cut;
    struct rds_call c = {.svc = (struct rds_service *)(void *)r->svc,
                         .ses = rig_session(r),
                         .req = &req,
                         .turn = &r->turn,
                         .out = &out,
                         .raw = {in.p, used}};
    c.ses->there = &there;
    c.ses->dirty = false;
    bool known = rds_find(&c);
    enum rds_rights is = rds_rights(&c, known);
    said[out.n] = '\0';
    return is;
}

static enum rds_rights redis(struct rig *r, const char *line)
{
    return redis_of(r, line, false);
}

static void keys_that_a_command_names_in_other_args(void **state)
{
    assert_int_equal(redis(*state, "GET page:1\r\n"), RDS_RIGHTS_PASS);
    assert_int_equal(redis(*state, "GET other\r\n"), RDS_RIGHTS_REFUSED);
    static const char *const hidden[] = {
        "SORT page:1\r\n",
        "SORT_RO page:1\r\n",
        "GEORADIUS page:g 0 0 1 m\r\n",
        "GEORADIUSBYMEMBER page:g x 1 m\r\n",
        "MIGRATE 127.0.0.1 1 page:1 0 10\r\n",
    };
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        assert_int_equal(redis(*state, hidden[i]), RDS_RIGHTS_REFUSED);
}

/* A script names keys, and may ask for others. */
static void scripts_are_for_whoever_has_all_keys(void **state)
{
    static const char *const scripts[] = {
        "EVAL x 1 page:1\r\n",    "EVALSHA x 1 page:1\r\n",    "FCALL x 1 page:1\r\n",
        "EVAL_RO x 1 page:1\r\n", "EVALSHA_RO x 1 page:1\r\n", "FCALL_RO x 1 page:1\r\n",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        assert_int_equal(redis(*state, scripts[i]), RDS_RIGHTS_REFUSED);
}

/* What has come of it may be a key that is allowed. */
static void a_key_that_is_cut_is_none_that_is_allowed(void **state)
{
    assert_int_equal(redis_of(*state, "SET page:1 valu\r\n", true), RDS_RIGHTS_PASS);
    assert_int_equal(redis_of(*state, "SET page:1\r\n", true), RDS_RIGHTS_HERE);
    assert_int_equal(redis_of(*state, "MGET page:1 page:2\r\n", false), RDS_RIGHTS_PASS);
    assert_int_equal(redis_of(*state, "MGET page:1 page:2\r\n", true), RDS_RIGHTS_REFUSED);
    assert_int_equal(redis(*state, "ZUNION 1 page:1 AGGREGATE SUM\r\n"), RDS_RIGHTS_PASS);
    assert_int_equal(redis_of(*state, "ZUNION 1 page:1 AGGREGATE SUM\r\n", true),
                     RDS_RIGHTS_REFUSED);
}

/* Redis has an error for each; who takes one for a number would find other keys. */
static void a_count_of_keys_that_is_none(void **state)
{
    static const char *const odd[] = {
        "ZUNIONSTORE page:z +1 other\r\n",
        "ZINTERSTORE page:z 1.5 other\r\n",
        "ZDIFFSTORE page:z 4294967297 other\r\n",
        "ZUNIONSTORE page:z 2 page:1\r\n",
    };
    assert_int_equal(redis(*state, "ZUNIONSTORE page:z 1 page:1\r\n"), RDS_RIGHTS_PASS);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        assert_int_equal(redis(*state, odd[i]), RDS_RIGHTS_REFUSED);
}

static void ids_are_no_keys_wherever_they_stand(void **state)
{
    assert_int_equal(redis(*state, "MGET page:1 id:a\r\n"), RDS_RIGHTS_PASS);
    assert_int_equal(redis(*state, "MGET id:a page:1 id:b\r\n"), RDS_RIGHTS_PASS);
    assert_int_equal(redis(*state, "MGET page:1 id:a other\r\n"), RDS_RIGHTS_REFUSED);
}

/* As there: what was rejected since MULTI is not left out, the others carried out. */
static void what_is_rejected_spoils_the_transaction(void **state)
{
    static const struct {
        const char *line;
        enum rds_rights is;
        bool spoils;
    } all[] = {
        {"GET page:1\r\n", RDS_RIGHTS_PASS, false},
        {"GET other\r\n", RDS_RIGHTS_REFUSED, true},
        {"NOSUCH page:1\r\n", RDS_RIGHTS_HERE, true},
        {"GET\r\n", RDS_RIGHTS_HERE, true},
    };
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        there.multi = true;
        assert_int_equal(redis(r, all[i].line), all[i].is);
        assert_int_equal(rig_session(r)->dirty, all[i].spoils);
        there.multi = false;
        assert_int_equal(redis(r, all[i].line), all[i].is);
        assert_false(rig_session(r)->dirty);
    }
}

/* A channel of a shard stands where a key does, and is none. */
static void channels_are_no_keys(void **state)
{
    assert_int_equal(redis(*state, "SPUBLISH page:1 x\r\n"), RDS_RIGHTS_REFUSED);
    assert_int_equal(redis(*state, "SSUBSCRIBE page:1\r\n"), RDS_RIGHTS_REFUSED);
    assert_int_equal(redis(*state, "SUBSCRIBE page:1\r\n"), RDS_RIGHTS_REFUSED);
}

static void administration_is_not_of_a_key(void **state)
{
    assert_int_equal(redis(*state, "PFDEBUG GETREG page:1\r\n"), RDS_RIGHTS_REFUSED);
}

/* What is about other connections, or about all that goes to the server, is not about one's own. */
static void of_client_what_is_about_oneself(void **state)
{
    static const char *const own[] = {"CLIENT GETNAME\r\n", "CLIENT ID\r\n", "CLIENT INFO\r\n",
                                      "CLIENT SETNAME x\r\n", "CLIENT REPLY OFF\r\n"};
    static const char *const others[] = {
        "CLIENT LIST\r\n",        "CLIENT KILL x\r\n",      "CLIENT PAUSE 1\r\n",
        "CLIENT UNPAUSE\r\n",     "CLIENT UNBLOCK 1\r\n",   "CLIENT NO-EVICT ON\r\n",
        "CLIENT TRACKING ON\r\n", "CLIENT CACHING YES\r\n", "CLIENT TRACKINGINFO\r\n",
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_int_equal(redis(*state, own[i]), RDS_RIGHTS_PASS);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(redis(*state, others[i]), RDS_RIGHTS_REFUSED);
}

/* Within a transaction there it would be the server that tells. */
static void what_we_tell_is_not_asked_of_the_server(void **state)
{
    static const char *const told[] = {"INFO\r\n", "COMMAND\r\n", "TIME\r\n"};
    struct rds_session *ses = rig_session(*state);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        assert_int_equal(redis(*state, told[i]), RDS_RIGHTS_HERE);
        there.multi = true;
        assert_int_equal(redis(*state, told[i]), RDS_RIGHTS_REFUSED);
        there.multi = false;
        ses->multi = true; /* it would go there with the first that belongs there */
        assert_int_equal(redis(*state, told[i]), RDS_RIGHTS_REFUSED);
        ses->multi = false;
    }
}

static enum mcd_rights memcached(struct rig *r, struct span in)
{
    const struct memcached m = {.serve = &r->serve};
    struct mc_req req;
    size_t used;
    assert_int_equal(mc_parse(in, &req, &used), WIRE_REQ);
    struct mc_there is = mc_there(in);
    return mcd_rights(&m, &rig_session(r)->access, &req, &is);
}

/* Behind a NUL memcached may find another request. */
static void mn_goes_there_as_it_is_alone(void **state)
{
    assert_int_equal(memcached(*state, SPAN("mn\r\n")), MCD_RIGHTS_PASS);
    assert_int_equal(memcached(*state, SPAN("mn \0\r\n")), MCD_RIGHTS_HERE);
    assert_int_equal(memcached(*state, SPAN("mg page:1 v\r\n")), MCD_RIGHTS_PASS);
    assert_int_equal(memcached(*state, SPAN("mg other v\r\n")), MCD_RIGHTS_REFUSED);
    assert_int_equal(memcached(*state, SPAN("mg page:1 v O\0\r\n")), MCD_RIGHTS_UNCLEAR);
}

static enum mcd_rights binary(struct rig *r, unsigned char opcode)
{
    const struct memcached m = {.serve = &r->serve};
    char in[] = "\x80?\0\6\4\0\0\0\0\0\0\xa\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0page:1";
    struct mcb_req req;
    size_t used;
    in[1] = (char)opcode;
    assert_int_equal(mcb_parse(span_of(in, sizeof in - 1), &req, &used), WIRE_REQ);
    return mcd_rights_binary(&m, &rig_session(r)->access, &req);
}

static void become(struct rig *r, const char *line)
{
    login_replace(&r->serve, line);
    rig_session(r)->access.user = auth_user_named(r->serve.auth, SPAN("eve"))->id;
}

/* A get that sets the time for which an item is kept changes it. */
static void to_read_is_not_to_touch(void **state)
{
    static const struct span changes[] = {SPAN("gat 0 page:1\r\n"),    SPAN("gats 0 page:1\r\n"),
                                          SPAN("touch page:1 0\r\n"),  SPAN("mg page:1 v T0\r\n"),
                                          SPAN("mg page:1 v N30\r\n"), SPAN("mg page:1 v R30\r\n")};
    static const unsigned char opcodes[] = {0x1c, 0x1d, 0x1e, 0x23, 0x24};
    struct rig *r = *state;
    for (int all = 1; all >= 0; all--) {
        for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
            assert_int_equal(memcached(r, changes[i]), all ? MCD_RIGHTS_PASS : MCD_RIGHTS_REFUSED);
        for (size_t i = 0; i < sizeof opcodes; i++)
            assert_int_equal(binary(r, opcodes[i]), all ? MCD_RIGHTS_PASS : MCD_RIGHTS_REFUSED);
        become(r, "eve:" LOGIN_HASH ":upstream=read:keys=page:*\n");
    }
    assert_int_equal(memcached(r, SPAN("gets page:1\r\n")), MCD_RIGHTS_PASS);
    assert_int_equal(memcached(r, SPAN("mg page:1 v O1 t\r\n")), MCD_RIGHTS_PASS);
}

/* Of a get whose other keys are allowed. */
static void an_id_is_no_key_of_memcacheds(void **state)
{
    assert_int_equal(memcached(*state, SPAN("get page:1 id:a\r\n")), MCD_RIGHTS_PASS);
    assert_int_equal(memcached(*state, SPAN("get id:a page:1 other\r\n")), MCD_RIGHTS_REFUSED);
}

static void to_watch_is_to_read(void **state)
{
    struct rig *r = *state;
    become(r, "eve:" LOGIN_HASH ":upstream=read:keys=page:*\n");
    assert_int_equal(redis(r, "WATCH page:1\r\n"), RDS_RIGHTS_PASS);
    assert_int_equal(redis(r, "WATCH other\r\n"), RDS_RIGHTS_REFUSED);
    assert_int_equal(redis(r, "SET page:1 x\r\n"), RDS_RIGHTS_REFUSED);
}

static void who_has_nothing_there_says_nothing_there(void **state)
{
    struct rig *r = *state;
    become(r, "eve:" LOGIN_HASH "\n");
    assert_int_equal(memcached(r, SPAN("mn\r\n")), MCD_RIGHTS_HERE);
    assert_int_equal(memcached(r, SPAN("mg page:1 v\r\n")), MCD_RIGHTS_REFUSED);
    assert_int_equal(redis(r, "PING\r\n"), RDS_RIGHTS_HERE);
    assert_int_equal(redis(r, "GET id:a\r\n"), RDS_RIGHTS_PASS);
    rig_session(r)->multi = true; /* whose transaction goes nowhere */
    assert_int_equal(redis(r, "INFO\r\n"), RDS_RIGHTS_HERE);
    rig_session(r)->multi = false;
}

/* Wherever a key stands, it is one that may be read. */
static void who_reads_all_keys_reads_those_that_are_hidden(void **state)
{
    static const char *const reads[] = {"SORT_RO x BY w_* GET o_*\r\n",
                                        "XREAD COUNT 1 STREAMS x 0\r\n", "ZUNION 1 x\r\n"};
    struct rig *r = *state;
    assert_int_equal(redis(r, "XREAD COUNT 1 STREAMS page:1 0\r\n"), RDS_RIGHTS_PASS);
    assert_int_equal(redis(r, "XREAD COUNT 1 STREAMS page:1 x 0 0\r\n"), RDS_RIGHTS_REFUSED);
    become(r, "eve:" LOGIN_HASH ":upstream=read\n");
    for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
        assert_int_equal(redis(r, reads[i]), RDS_RIGHTS_PASS);
    assert_int_equal(redis(r, "SORT x STORE y\r\n"), RDS_RIGHTS_REFUSED);
}

/* In Redis's words. */
static void what_is_refused_says_why(void **state)
{
    struct rig *r = *state;
    assert_int_equal(redis(r, "GET other\r\n"), RDS_RIGHTS_REFUSED);
    assert_string_equal(said, "-NOPERM this user has no permissions to access one of the keys used "
                              "as arguments\r\n");
    assert_int_equal(redis(r, "FLUSHALL\r\n"), RDS_RIGHTS_REFUSED);
    assert_string_equal(said,
                        "-NOPERM this user has no permissions to run the 'flushall' command\r\n");
    assert_int_equal(redis(r, "CLIENT LIST\r\n"), RDS_RIGHTS_REFUSED);
    assert_string_equal(
        said, "-NOPERM this user has no permissions to run the 'client|list' command\r\n");
}

/* It is the key that stands there, and not how it is written. */
static void keys_in_base64(void **state)
{
    struct rig *r = *state;
    assert_int_equal(memcached(r, SPAN("mg cGFnZTox v b\r\n")), MCD_RIGHTS_PASS);
    become(r, "eve:" LOGIN_HASH ":upstream=all:keys=c*\n");
    assert_int_equal(memcached(r, SPAN("mg cGFnZTox v b\r\n")), MCD_RIGHTS_REFUSED);
    assert_int_equal(memcached(r, SPAN("md cGFnZTox b\r\n")), MCD_RIGHTS_REFUSED);
    assert_int_equal(memcached(r, SPAN("me cGFnZTox b\r\n")), MCD_RIGHTS_REFUSED);
    assert_int_equal(memcached(r, SPAN("mg cGFnZTox v\r\n")), MCD_RIGHTS_PASS);
}

static void keys_of_binary_requests(void **state)
{
    static const struct span all[] = {
        SPAN("\x80\0\0\6\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\0\0\0\0\0page:1"),
        SPAN("\x80\0\0\6\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\0\0\0\0\0Page:1"),
        SPAN("\x80\4\0\6\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\0\0\0\0\0page:1"),
        SPAN("\x80\4\0\6\0\0\0\0\0\0\0\6\0\0\0\0\0\0\0\0\0\0\0\0other1"),
    };
    struct rig *r = *state;
    const struct memcached m = {.serve = &r->serve};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct mcb_req req;
        size_t used;
        assert_int_equal(mcb_parse(all[i], &req, &used), WIRE_REQ);
        assert_int_equal(mcd_rights_binary(&m, &rig_session(r)->access, &req),
                         i % 2 ? MCD_RIGHTS_REFUSED : MCD_RIGHTS_PASS);
    }
}

#define EVE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes),
        cmocka_unit_test(keys),
        EVE(keys_that_a_command_names_in_other_args),
        EVE(scripts_are_for_whoever_has_all_keys),
        EVE(a_key_that_is_cut_is_none_that_is_allowed),
        EVE(a_count_of_keys_that_is_none),
        EVE(ids_are_no_keys_wherever_they_stand),
        EVE(what_is_rejected_spoils_the_transaction),
        EVE(channels_are_no_keys),
        EVE(of_client_what_is_about_oneself),
        EVE(what_we_tell_is_not_asked_of_the_server),
        EVE(administration_is_not_of_a_key),
        EVE(to_watch_is_to_read),
        EVE(who_has_nothing_there_says_nothing_there),
        EVE(who_reads_all_keys_reads_those_that_are_hidden),
        EVE(what_is_refused_says_why),
        EVE(keys_in_base64),
        EVE(keys_of_binary_requests),
        EVE(mn_goes_there_as_it_is_alone),
        EVE(to_read_is_not_to_touch),
        EVE(an_id_is_no_key_of_memcacheds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
