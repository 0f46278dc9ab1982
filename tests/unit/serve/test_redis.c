#include "unit/serve/redis_rig.h"

/* ---- one reply, whatever it is ----------------------------------------------------------------
 */

/* The reply at the front of s is taken away; false: there is no whole one, or it is none at all. */
static bool take_reply(struct span *s)
{
    const char *cr = s->n ? memchr(s->p, '\r', s->n) : NULL;
    if (!cr || cr + 1 == s->p + s->n || cr[1] != '\n')
        return false;
    char type = s->p[0];
    long n = strtol(s->p + 1, NULL, 10);
    *s = span_skip(*s, (size_t)(cr - s->p) + 2);
    if (strchr("+-:_", type))
        return true;
    if (strchr("$=", type) && n >= 0) {
        if (s->n < (size_t)n + 2)
            return false;
        *s = span_skip(*s, (size_t)n + 2);
    }
    if (!strchr("$=*%~>", type))
        return false;
    for (long i = 0; strchr("*%~>", type) && i < (type == '%' ? 2 * n : n); i++)
        if (!take_reply(s))
            return false;
    return true;
}

/* Every command that Redis knows gets exactly one well-formed reply, in either protocol. */
static void every_command_is_answered(void **state)
{
    struct rig *r = *state;
    size_t n;
    const struct resp_cmd *all = resp_commands(&n);
    for (size_t i = 0; i < 2 * n; i++) {
        const struct resp_cmd *cmd = &all[i / 2];
        char words[256];
        struct buf b;
        int args = cmd->arity < 0 ? -cmd->arity : cmd->arity;
        buf_init(&b, words, sizeof words - 1);
        buf_put_str(&b, cmd->name);
        for (int a = 1; a < args; a++)
            buf_put_str(&b, a == 1 ? " id:a" : " 1");
        words[b.n] = '\0';
        rig_disconnect(r);
        rig_connect(r);
        if (i % 2)
            rig_begins(r, "HELLO 3", "%7\r\n");
        assert_int_equal(rig_ask(r, words), cmd->verb == RESP_QUIT ? NET_CLOSE : NET_MORE);
        struct span reply = buf_span(&r->out);
        if (!take_reply(&reply) || reply.n > 0)
            fail_msg("%s: not one reply: %.*s", words, (int)r->out.n, r->out.p);
        static const char *const feared[] = {"-READONLY", "-MOVED", "-NOPERM", "-ASK"};
        for (size_t f = 0; f < 4; f++)
            assert_false(span_starts(buf_span(&r->out), span_str(feared[f])));
    }
}

static void labels(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RESP_VERB_COUNT - 1; i++)
        assert_non_null(serve_command(SERVE_REDIS, i));
    assert_string_equal(serve_command(SERVE_REDIS, RESP_GET - 1), "get");
    assert_string_equal(serve_command(SERVE_REDIS, RESP_WATCH - 1), "watch");
    assert_string_equal(serve_command(SERVE_REDIS, SERVE_COMMANDS - 1), "other");
    assert_null(serve_command(SERVE_REDIS, RESP_VERB_COUNT - 1));
    assert_null(serve_command(SERVE_REDIS, SERVE_COMMANDS));
}

static void service(void **state)
{
    struct rig *r = *state;
    assert_string_equal(r->svc->name, "redis");
    assert_true(r->svc->session_size <= 256);
    assert_int_equal(span_eq(r->svc->refusal, SPAN("-ERR max number of clients reached\r\n")), 1);
}

/* ---- what is not understood -------------------------------------------------------------------
 */

static void unknown(void **state)
{
    struct rig *r = *state;
    rig_check(r, "FOO a b", "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' \r\n");
    rig_check(r, "GET", "-ERR wrong number of arguments for 'get' command\r\n");
    rig_check(r, "get a b", "-ERR wrong number of arguments for 'get' command\r\n");
    rig_check(r, "CLIENT foo", "-ERR unknown subcommand 'foo'. Try CLIENT HELP.\r\n");
    rig_check(r, "CLIENT", "-ERR wrong number of arguments for 'client' command\r\n");
    rig_check(r, "client setname",
              "-ERR wrong number of arguments for 'client|setname' command\r\n");
    assert_int_equal(rig_counted(r, "other", SERVE_INVALID), 1);
    assert_int_equal(rig_counted(r, "get", SERVE_INVALID), 2);
    assert_int_equal(rig_counted(r, "client", SERVE_INVALID), 3);
}

static void nothing_asked(void **state)
{
    struct rig *r = *state;
    assert_int_equal(rig_send(r, SPAN("\r\n*0\r\n*-1\r\n\n")), NET_MORE);
    rig_expect(r, "");
    assert_int_equal(r->n, 0);
}

static void inline_and_pieces(void **state)
{
    struct rig *r = *state;
    struct span text = SPAN("ping\r\n*2\r\n$4\r\nECHO\r\n$2\r\n\r\n\r\nget \"id:a\"\n");
    for (size_t i = 0; i < text.n; i++)
        assert_int_equal(rig_send(r, span_of(text.p + i, 1)), NET_MORE);
    rig_expect(r, rig_both("+PONG\r\n$2\r\n\r\n\r\n", rig_ids("", 0, 1)));
}

static void protocol_errors(void **state)
{
    struct rig *r = *state;
    assert_int_equal(rig_send(r, SPAN("PING\r\n*1\r\n:1\r\nPING\r\n")), NET_CLOSE);
    rig_expect(r, "+PONG\r\n-ERR Protocol error: expected '$', got ':'\r\n");
    assert_int_equal(rig_counted(r, "other", SERVE_INVALID), 1);
    assert_int_equal(rig_send(r, SPAN("POST / HTTP/1.1\r\nHost: x\r\n")), NET_CLOSE);
    rig_expect(r, "");
}

static void hostile_names(void **state)
{
    struct rig *r = *state;
    assert_int_equal(rig_send(r, SPAN("*3\r\n$3\r\nset\r\n$8\r\na\r\n+OK\r\n\r\n$0\r\n\r\n")),
                     NET_MORE);
    rig_expect(r, "-ERR key 'a  +OK  ' is no id, and no upstream is configured to store it\r\n");
    char words[4096] = "SET ";
    memset(words + 4, 'k', 1000);
    rig_begins(r, strcat(words, " v"), "-ERR key 'kkkkkkkk");
}

/* ---- refusals, closing ------------------------------------------------------------------------
 */

static void refused(void **state)
{
    static const char *const words[] = {"EVAL s 0",   "FCALL f 0", "FLUSHALL",     "FLUSHDB",
                                        "DEBUG x",    "MONITOR",   "SHUTDOWN",     "SYNC",
                                        "PSYNC ? -1", "SAVE",      "SCRIPT LOAD s"};
    struct rig *r = *state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        rig_begins(r, words[i], "-ERR ");
    rig_check(r, "CLUSTER INFO", "-ERR This instance has cluster support disabled\r\n");
    rig_check(r, "READONLY", "-ERR This instance has cluster support disabled\r\n");
    rig_check(r, "READWRITE", "-ERR This instance has cluster support disabled\r\n");
    rig_check(r, "CONFIG SET save 1",
              "-ERR CONFIG SET is not allowed: change the configuration and reload it\r\n");
    rig_check(
        r, "CLIENT TRACKING ON",
        "-ERR client-side caching is not allowed: an ID from a cache would be used twice\r\n");
    rig_check(
        r, "CLIENT CACHING YES",
        "-ERR client-side caching is not allowed: an ID from a cache would be used twice\r\n");
    assert_int_equal(rig_counted(r, "client", SERVE_REFUSED), 2);
    assert_int_equal(rig_counted(r, "eval", SERVE_REFUSED), 2);
}

static void quit(void **state)
{
    struct rig *r = *state;
    assert_int_equal(rig_send(r, SPAN("PING\r\nQUIT\r\nPING\r\n")), NET_CLOSE);
    rig_expect(r, "+PONG\r\n+OK\r\n");
}

/* ---- too much ---------------------------------------------------------------------------------
 */

/* A SET of size bytes behind what was sent before, in reads as net would do them. */
static void set_large(struct rig *r, const char *key, size_t size)
{
    char head[128];
    struct span body, text;
    char *value = malloc(size + 2);
    assert_non_null(value);
    memset(value, 'v', size);
    memcpy(value + size, "\r\n", 2);
    body = span_of(value, size + 2);
    int n = snprintf(head, sizeof head, "*3\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$%zu\r\n", strlen(key),
                     key, size);
    text = span_of(head, (size_t)n);
    assert_int_equal(rig_send(r, text), NET_MORE);
    while (body.n > 0) {
        size_t room = NET_IN_MAX - r->n;
        size_t piece = body.n < room ? body.n : room;
        assert_int_equal(rig_send(r, span_of(body.p, piece)), NET_MORE);
        body = span_skip(body, piece);
    }
    free(value);
}

static void truncated(void **state)
{
    struct rig *r = *state;
    set_large(r, "id:a", 300000);
    rig_expect(r, "-ERR id key 'id:a' is read-only\r\n");
    assert_null(rig_session(r)->rest);
    set_large(r, "foo", 70000);
    rig_expect(r, "-ERR key 'foo' is no id, and no upstream is configured to store it\r\n");
    rig_check(r, "GET id:a", rig_ids("", 0, 1));
}

/* A full block of input: what it begins with, and filling. To be freed. */
static char *full_block(struct span begin)
{
    char *block = malloc(NET_IN_MAX);
    assert_non_null(block);
    memset(block, 'x', NET_IN_MAX);
    memcpy(block, begin.p, begin.n);
    return block;
}

static void send_block(struct rig *r, struct span begin)
{
    char *block = full_block(begin);
    assert_int_equal(rig_send(r, span_of(block, NET_IN_MAX)), NET_MORE);
    free(block);
}

/* The key itself may be what is too long: then it must not be judged by its first half. */
static void truncated_elsewhere(void **state)
{
    struct rig *r = *state;
    send_block(r, SPAN("*3\r\n$3\r\nSET\r\n$80000\r\nid:"));
    rig_expect(r, "-ERR 'set' request is too long: expected at most 67584 bytes\r\n");
    assert_non_null(rig_session(r)->rest);
    rig_disconnect(r); /* frees it */
    rig_connect(r);
    send_block(r, SPAN("*2\r\n$4\r\nECHO\r\n$80000\r\n"));
    rig_expect(r, "-ERR 'echo' request is too long: expected at most 67584 bytes\r\n");
    rig_disconnect(r);
    rig_connect(r);
    send_block(r, SPAN("*2\r\n$80000\r\nGET"));
    assert_true(span_starts(buf_span(&r->out), SPAN("-ERR unknown command 'GETxxx")));
}

static void truncated_within_multi(void **state)
{
    struct rig *r = *state;
    rig_check(r, "MULTI", "+OK\r\n");
    set_large(r, "id:a", 300000);
    rig_expect(r, "-ERR id key 'id:a' is read-only\r\n");
    rig_check(r, "EXEC", "-EXECABORT Transaction discarded because of previous errors.\r\n");
}

/* What follows a truncated request breaks the protocol: its error follows the refusal. */
static void truncated_and_broken(void **state)
{
    struct rig *r = *state;
    struct span begin = SPAN("*9\r\n$3\r\nSET\r\n$4\r\nid:a\r\n$67600\r\n");
    char rest[256];
    size_t left = 67600 - (NET_IN_MAX - begin.n);
    send_block(r, begin);
    memset(rest, 'x', left);
    memcpy(rest + left, "\r\n:\r\n", 5);
    assert_int_equal(rig_send(r, span_of(rest, left + 5)), NET_CLOSE);
    rig_expect(r,
               "-ERR id key 'id:a' is read-only\r\n-ERR Protocol error: expected '$', got ':'\r\n");
    assert_null(rig_session(r)->rest);
}

/* A reply that does not fit is replaced by an error, and the connection goes on. */
static void reply_too_long(void **state)
{
    struct rig *r = *state;
    char *text = malloc(64000);
    struct buf b;
    assert_non_null(text);
    buf_init(&b, text, 64000);
    resp_put_array(&b, 6002);
    BUF_PUT_LIT(&b, "$7\r\nCOMMAND\r\n$4\r\nINFO\r\n");
    for (int i = 0; i < 6000; i++)
        BUF_PUT_LIT(&b, "$4\r\neval\r\n");
    assert_false(b.failed);
    assert_int_equal(rig_send(r, SPAN("PING\r\n")), NET_MORE);
    assert_int_equal(rig_send(r, buf_span(&b)), NET_MORE);
    rig_expect(r, "+PONG\r\n-ERR the reply is too long: expected at most 524281 bytes\r\n");
    rig_check(r, "PING", "+PONG\r\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(every_command_is_answered),
        RIG_TEST(labels),
        RIG_TEST(service),
        RIG_TEST(unknown),
        RIG_TEST(nothing_asked),
        RIG_TEST(inline_and_pieces),
        RIG_TEST(protocol_errors),
        RIG_TEST(hostile_names),
        RIG_TEST(refused),
        RIG_TEST(quit),
        RIG_TEST(truncated),
        RIG_TEST(truncated_elsewhere),
        RIG_TEST(truncated_within_multi),
        RIG_TEST(truncated_and_broken),
        RIG_TEST(reply_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
