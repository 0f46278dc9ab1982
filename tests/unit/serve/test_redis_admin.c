#include "unit/serve/redis_rig.h"

#define HELLO2                                                                                     \
    "*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:2\r\n" \
    "$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"          \
    "$7\r\nmodules\r\n*0\r\n"
#define HELLO3                                                                                     \
    "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n"  \
    "$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"          \
    "$7\r\nmodules\r\n*0\r\n"

static void hello(void **state)
{
    struct rig *r = *state;
    rig_check(r, "HELLO", HELLO2);
    rig_check(r, "HELLO 3 AUTH default p SETNAME svc", HELLO3);
    rig_check(r, "HELLO", HELLO3);
    rig_check(r, "CLIENT GETNAME", "$3\r\nsvc\r\n");
    rig_check(r, "HELLO 2", HELLO2);
    rig_check(r, "HELLO 4", "-NOPROTO unsupported protocol version\r\n");
    rig_check(r, "HELLO x", "-ERR Protocol version is not an integer or out of range\r\n");
    rig_check(r, "HELLO 3 FOO", "-ERR Syntax error in HELLO option 'FOO'\r\n");
    rig_check(r, "HELLO 3 AUTH u", "-ERR Syntax error in HELLO option 'AUTH'\r\n");
    rig_check(r, "HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'\r\n");
    rig_check(r, "HELLO 3 SETNAME \x01",
              "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
    rig_check(r, "HELLO", HELLO2); /* none of these changed anything */
}

static void connection(void **state)
{
    struct rig *r = *state;
    rig_check(r, "AUTH a b c", "-ERR syntax error\r\n");
    rig_check(r, "SELECT 0", "+OK\r\n");
    rig_check(r, "SELECT 15", "+OK\r\n");
    rig_check(r, "SELECT 16", "-ERR DB index is out of range\r\n");
    rig_check(r, "SELECT -1", "-ERR DB index is out of range\r\n");
    rig_check(r, "SELECT x", "-ERR value is not an integer or out of range\r\n");
    rig_check(r, "SELECT 99999999999",
              "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n");
    rig_check(r, "PING", "+PONG\r\n");
    rig_check(r, "PING a", "$1\r\na\r\n");
    rig_check(r, "PING a b", "-ERR wrong number of arguments for 'ping' command\r\n");
    rig_check(r, "ECHO 8e0c", "$4\r\n8e0c\r\n");
    r->us = INT64_C(1767225601000042);
    rig_check(r, "TIME", "*2\r\n$10\r\n1767225601\r\n$2\r\n42\r\n");
}

static void reset(void **state)
{
    struct rig *r = *state;
    rig_begins(r, "HELLO 3 SETNAME x", "%7\r\n");
    rig_check(r, "SELECT 3", "+OK\r\n");
    rig_check(r, "MULTI", "+OK\r\n");
    rig_check(r, "GET id:a", "+QUEUED\r\n");
    rig_check(r, "RESET", "+RESET\r\n");
    rig_check(r, "EXEC", "-ERR EXEC without MULTI\r\n");
    rig_check(r, "CLIENT GETNAME", "$-1\r\n");
    assert_int_equal(rig_session(r)->db, 0);
    assert_int_equal(r->gen.ids.stats.issued, 0);
}

/* ---- CLIENT -----------------------------------------------------------------------------------
 */

static void client(void **state)
{
    struct rig *r = *state;
    rig_check(r, "CLIENT ID", ":1\r\n");
    rig_check(r, "CLIENT GETNAME", "$-1\r\n");
    rig_check(r, "client setname svc", "+OK\r\n");
    rig_check(r, "CLIENT GETNAME", "$3\r\nsvc\r\n");
    rig_check(r, "CLIENT SETNAME ", "+OK\r\n");
    rig_check(r, "CLIENT GETNAME", "$-1\r\n");
    char words[256] = "CLIENT SETNAME ";
    memset(words + 15, 'n', 65);
    rig_check(r, words, "-ERR Client name is too long: expected at most 64 bytes, found 65\r\n");
    words[15 + 64] = '\0';
    rig_check(r, words, "+OK\r\n");
    assert_true(rds_name_is_plain(SPAN("!~")) && rds_name_is_plain(SPAN("")));
    assert_false(rds_name_is_plain(SPAN("a b")) || rds_name_is_plain(SPAN("\x7f")));
    rig_check(r, "CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n");
    rig_check(r, "CLIENT SETINFO lib-ver 5.0", "+OK\r\n");
    rig_check(r, "CLIENT SETINFO foo 5.0", "-ERR Unrecognized option 'foo'\r\n");
    rig_check(r, "CLIENT SETINFO lib-ver \x7f",
              "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n");
    rig_check(r, "CLIENT NO-EVICT on", "+OK\r\n");
    rig_check(r, "CLIENT NO-TOUCH OFF", "+OK\r\n");
    rig_check(r, "CLIENT NO-EVICT x", "-ERR syntax error\r\n");
    rig_check(r, "CLIENT GETREDIR", ":-1\r\n");
    rig_check(r, "CLIENT REPLY OFF",
              "-ERR CLIENT REPLY is not supported: every request is answered\r\n");
    rig_check(r, "CLIENT MAINT_NOTIFICATIONS ON",
              "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n");
    rig_begins(r, "CLIENT HELP",
               "*11\r\n+CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
               "+GETNAME\r\n");
}

#define SELF_AT(age, cmd, resp)                                                                    \
    "id=1 addr=0.0.0.0:0 laddr=0.0.0.0:0 fd=-1 name=svc age=" age                                  \
    " idle=0 flags=N db=2 sub=0 psub=0 "                                                           \
    "ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 "    \
    "tot-mem=0 events=r cmd=client|" cmd " user=default redir=-1 resp=" resp "\n\r\n"

#define SELF(cmd, resp) SELF_AT("5", cmd, resp)

static void client_list(void **state)
{
    struct rig *r = *state;
    rig_check(r, "CLIENT SETNAME svc", "+OK\r\n");
    rig_check(r, "SELECT 2", "+OK\r\n");
    rig_at(r, 5999);
    rig_check(r, "CLIENT INFO", "$243\r\n" SELF("info", "2"));
    rig_check(r, "CLIENT LIST", "$243\r\n" SELF("list", "2"));
    rig_check(r, "CLIENT LIST ID 7 1", "$243\r\n" SELF("list", "2"));
    rig_check(r, "CLIENT LIST ID 1 7", "$243\r\n" SELF("list", "2"));
    rig_check(r, "CLIENT LIST ID 7", "$0\r\n\r\n");
    rig_check(r, "CLIENT LIST ID x", "-ERR Invalid client ID\r\n");
    rig_check(r, "CLIENT LIST TYPE normal", "$243\r\n" SELF("list", "2"));
    rig_check(r, "CLIENT LIST TYPE pubsub", "$0\r\n\r\n");
    rig_check(r, "CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'\r\n");
    rig_check(r, "CLIENT LIST FOO", "-ERR syntax error\r\n");
    rig_begins(r, "HELLO 3", "%7\r\n");
    rig_check(r, "CLIENT INFO", "=247\r\ntxt:" SELF("info", "3"));
    rig_at(r, -5999); /* the clock stepped back */
    rig_check(r, "CLIENT INFO", "=247\r\ntxt:" SELF_AT("0", "info", "3"));
    rig_begins(r, "SUBSCRIBE c", ">3\r\n");
    rig_check(r, "CLIENT LIST TYPE normal", "=4\r\ntxt:\r\n");
    rig_begins(r, "CLIENT LIST TYPE pubsub", "=247\r\ntxt:id=1 ");
}

/* Of replies that were errors all are counted, whoever's fault it was. */
static void info_counts_errors(void **state)
{
    struct rig *r = *state;
    static const enum serve_result errors[] = {SERVE_REFUSED, SERVE_INVALID, SERVE_FAILED,
                                               SERVE_AWAY};
    for (size_t i = 0; i < SERVE_RESULTS; i++)
        r->serve.requests[SERVE_REDIS][0][i] = 1000;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        r->serve.requests[SERVE_REDIS][1][errors[i]] = (uint64_t)1 << i;
    assert_int_equal(rig_ask(r, "INFO stats"), NET_MORE);
    r->mem[r->out.n] = '\0';
    assert_non_null(strstr(r->mem, "\r\ntotal_error_replies:4015\r\n"));
    assert_non_null(strstr(r->mem, "\r\nkeyspace_misses:1000\r\n"));
}

static void ids_of_clients(void **state)
{
    struct rig *r = *state;
    rig_check(r, "CLIENT ID", ":1\r\n");
    rig_disconnect(r);
    rig_connect(r);
    rig_check(r, "CLIENT ID", ":2\r\n");
}

/* ---- CONFIG, COMMAND, LATENCY, SLOWLOG --------------------------------------------------------
 */

static void config(void **state)
{
    static const struct serve_setting settings[] = {{"ids.prefix", "id:"},
                                                    {"limits.idle_timeout", "1500ms"}};
    struct rig *r = *state;
    rig_check(r, "CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    rig_check(r, "CONFIG GET appendonly", "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n");
    rig_check(r, "CONFIG GET nosuch", "*0\r\n");
    rig_check(r, "CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
    rig_check(r, "config get MAXCLIENTS data*",
              "*4\r\n$9\r\ndatabases\r\n$2\r\n16\r\n$10\r\nmaxclients\r\n$4\r\n4096\r\n");
    r->serve.settings = settings;
    r->serve.nsettings = 2;
    rig_check(r, "CONFIG GET timeout", "*2\r\n$7\r\ntimeout\r\n$1\r\n2\r\n");
    rig_check(r, "CONFIG GET ids.*", "*2\r\n$10\r\nids.prefix\r\n$3\r\nid:\r\n");
    rig_begins(r, "HELLO 3", "%7\r\n");
    rig_check(r, "CONFIG GET save", "%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
    rig_begins(r, "CONFIG GET *", "%22\r\n");
    rig_check(r, "CONFIG GET", "-ERR wrong number of arguments for 'config|get' command\r\n");
    rig_begins(r, "CONFIG REWRITE", "-ERR ");
    rig_begins(r, "CONFIG GET a b c d e f g h i j k l m n o p", "%0\r\n");
    rig_begins(r, "CONFIG GET a b c d e f g h i j k l m n o p save", "-ERR too many patterns");
}

#define GET_INFO "$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n"

static void command(void **state)
{
    struct rig *r = *state;
    rig_begins(r, "COMMAND", "*240\r\n*10\r\n$3\r\nacl\r\n:-2\r\n*0\r\n");
    rig_check(r, "COMMAND COUNT", ":240\r\n");
    rig_check(r, "COMMAND DOCS get", "*0\r\n");
    rig_check(r, "COMMAND INFO get nosuch",
              "*2\r\n*10\r\n" GET_INFO "*0\r\n*0\r\n*0\r\n*0\r\n$-1\r\n");
    rig_begins(r, "COMMAND INFO", "*240\r\n");
    rig_begins(r, "COMMAND LIST", "*240\r\n$3\r\nacl\r\n$6\r\nappend\r\n");
    rig_check(r, "COMMAND LIST FILTERBY PATTERN ge?", "*1\r\n$3\r\nget\r\n");
    rig_check(r, "COMMAND LIST FILTERBY MODULE m", "*0\r\n");
    rig_check(r, "COMMAND LIST FILTERBY FOO m", "-ERR syntax error\r\n");
    rig_check(r, "COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n");
    rig_begins(r, "HELLO 3", "%7\r\n");
    rig_check(r, "COMMAND DOCS", "%0\r\n");
    rig_begins(r, "COMMAND INFO get", "*1\r\n*10\r\n$3\r\nget\r\n:2\r\n~2\r\n+readonly\r\n");
}

static void diagnostics(void **state)
{
    struct rig *r = *state;
    rig_check(r, "LATENCY LATEST", "*0\r\n");
    rig_check(r, "LATENCY HISTORY command", "*0\r\n");
    rig_check(r, "LATENCY RESET", ":0\r\n");
    rig_check(r, "LATENCY HISTOGRAM", "*0\r\n");
    rig_check(r, "SLOWLOG GET", "*0\r\n");
    rig_check(r, "SLOWLOG GET 10", "*0\r\n");
    rig_check(r, "SLOWLOG GET -2", "-ERR count should be greater than or equal to -1\r\n");
    rig_check(r, "SLOWLOG LEN", ":0\r\n");
    rig_check(r, "SLOWLOG RESET", "+OK\r\n");
}

/* ---- INFO -------------------------------------------------------------------------------------
 */

static void info_has(struct rig *r, const char *words, const char *line, bool expected)
{
    assert_int_equal(rig_ask(r, words), NET_MORE);
    r->mem[r->out.n] = '\0';
    if ((strstr(r->mem, line) != NULL) != expected)
        fail_msg("%s: %s: %s", words, expected ? "not found" : "found", line);
    r->out.n = r->turn.reply_start = 0;
}

static void info(void **state)
{
    static const char *const lines[] = {
        "# Server\r\nredis_version:7.0.15\r\n",
        "\r\n\r\n# Clients\r\nconnected_clients:0\r\n",
        "redis_mode:standalone\r\n",
        "uptime_in_seconds:90061\r\nuptime_in_days:1\r\n",
        "# Persistence\r\nloading:0\r\n",
        "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n",
        "\r\nsidflake_ready:1\r\n",
        "worker0:id=7,active=1,last_ms=1767225600999,ceiling_ms=1767229201000\r\n",
        "used_memory:",
    };
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        info_has(r, "INFO", lines[i], true);
        info_has(r, "info ALL", lines[i], true);
    }
    info_has(r, "INFO server", "# Clients", false);
    info_has(r, "INFO server CLIENTS", "# Clients", true);
    rig_check(r, "INFO keyspace", "$12\r\n# Keyspace\r\n\r\n");
    rig_check(r, "INFO nosuch", "$0\r\n\r\n");
    rig_begins(r, "HELLO 3", "%7\r\n");
    rig_check(r, "INFO keyspace", "=16\r\ntxt:# Keyspace\r\n\r\n");
}

static void info_loading(void **state)
{
    struct rig *r = *state;
    r->serve.facts.granted = r->gen.started = false;
    info_has(r, "INFO", "\r\nloading:1\r\nloading_eta_seconds:1\r\n", true);
    info_has(r, "INFO", "\r\nsidflake_ready:0\r\nsidflake_ready_reason:no workerId is held yet\r\n",
             true);
}

/* As on the page and in /v1/status. */
static void info_coordinator(void **state)
{
    struct rig *r = *state;
    struct serve_facts *f = &r->serve.facts;
    f->answered = f->up = f->serves = false;
    info_has(r, "INFO", "\r\ncoordinator_state:never reached\r\n", true);
    f->answered = true;
    info_has(r, "INFO", "\r\ncoordinator_state:down\r\n", true);
    f->up = true;
    info_has(r, "INFO", "\r\ncoordinator_state:refuses\r\n", true);
    f->serves = true;
    info_has(r, "INFO", "\r\ncoordinator_state:up\r\n", true);
}

static void info_names(void **state)
{
    struct rig *r = *state;
    info_has(r, "INFO", "# Keyspace\r\ndb0:keys=3,expires=0,avg_ttl=0\r\n", true);
}

/* The longest that there can be: every slot held, every text full. */
static void info_fits(void **state)
{
    struct rig *r = *state;
    struct serve_facts *f = &r->serve.facts;
    memset(f->coordinator, 'c', sizeof f->coordinator - 1);
    memset(f->pool, 'p', sizeof f->pool - 1);
    memset(f->identity, 'i', sizeof f->identity - 1);
    memset(r->serve.facts.why, 'w', sizeof r->serve.facts.why - 1);
    f->era = f->pool_free = UINT64_MAX;
    for (uint32_t i = 2; i <= SNOWFLAKE_MEMBERS; i++)
        assert_true(
            snowflake_grant(&r->gen.ids, i, (uint16_t)(32767 - i), RIG_MS, INT64_MAX, NULL));
    memset(r->serve.requests, 0xFF, sizeof r->serve.requests);
    assert_int_equal(rig_ask(r, "INFO"), NET_MORE);
    assert_int_equal(r->out.p[0], '$');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(hello),     RIG_TEST(connection),       RIG_TEST(reset),
        RIG_TEST(client),    RIG_TEST(client_list),      RIG_TEST(ids_of_clients),
        RIG_TEST(config),    RIG_TEST(command),          RIG_TEST(diagnostics),
        RIG_TEST(info),      RIG_TEST(info_loading),     RIG_NAMES_TEST(info_names),
        RIG_TEST(info_fits), RIG_TEST(info_coordinator), RIG_TEST(info_counts_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
