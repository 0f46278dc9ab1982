/* The memcached service without sockets: bytes in, exact bytes out. */
#include "memcached_rig.h"

/* ---- reads ------------------------------------------------------------------------------------
 */

static void get_gives_an_id_per_key(void **state)
{
    (void)state;
    expect("get id:orders\r\n", "VALUE id:orders 0 11\r\n" ID0 "\r\nEND\r\n");
    expect("get id:a id:a#2\r\n",
           "VALUE id:a 0 11\r\n" ID1 "\r\nVALUE id:a#2 0 11\r\n" ID2 "\r\nEND\r\n");
    expect("get orders\r\n", "END\r\n");
    expect("get id:\r\n", "END\r\n");
    expect("get x id:a y\r\n", "VALUE id:a 0 11\r\n33554439171\r\nEND\r\n");
    assert_int_equal(serve.issuer.names.prefix[0].other.issued, 4);
    assert_int_equal(counted(MC_GET, SERVE_OK), 3);
    assert_int_equal(counted(MC_GET, SERVE_MISS), 2);
}

/* The get answered last is known again by its bytes; what is nearly it must not be taken for it. */
static void a_get_repeated_is_answered_alike(void **state)
{
    (void)state;
    for (uint64_t first = 0; first < 18; first += 9) {
        char id[9][16];
        for (uint64_t i = 0; i < 9; i++)
            (void)snprintf(id[i], sizeof id[i], "%llu", 33554439168ULL + first + i);
        char answer[200];
#define ONE(key, i)                                                                                \
    (snprintf(answer, sizeof answer, "VALUE %s 0 11\r\n%s\r\nEND\r\n", (key), id[(i)]), answer)
        expect("get id:a\r\n", ONE("id:a", 0));
        expect("get id:a\r\n", ONE("id:a", 1));
        expect("get id:a\n", ONE("id:a", 2));
        expect("get id:ab\r\n", ONE("id:ab", 3));
        expect("get x\r\n", "END\r\n");
        for (unsigned i = 4; i < 8; i += 2) {
            (void)snprintf(answer, sizeof answer,
                           "VALUE id:a 0 11\r\n%s\r\nVALUE id:b 0 11\r\n%s\r\nEND\r\n", id[i],
                           id[i + 1]);
            expect("get id:a id:b\r\n", answer);
        }
        expect("add id:a 0 0 10\r\nget id:a\r\n\r\n", "NOT_STORED\r\n");
        expect("get id:a\r\n", ONE("id:a", 8));
#undef ONE
    }
    assert_int_equal(serve.issuer.names.prefix[0].other.issued, 18);
    assert_int_equal(counted(MC_GET, SERVE_OK), 14);
    assert_int_equal(counted(MC_GET, SERVE_MISS), 2);
}

/* Replies are made from earlier ones: IDs of one time must not show up at another. */
static void a_get_repeated_follows_the_time(void **state)
{
    (void)state;
    for (int64_t ms = 1000; ms < 1200; ms += 7) {
        turn.wall_ms = EPOCH + ms;
        for (uint32_t i = 0; i < 4; i++) {
            char answer[100];
            (void)snprintf(answer, sizeof answer, "VALUE id:a 0 11\r\n%llu\r\nEND\r\n",
                           (unsigned long long)layout_compose(&layout_usual, ms, 7, i));
            expect("get id:a\r\n", answer);
        }
    }
}

static void verbs_of_reading_differ_as_memcacheds_do(void **state)
{
    (void)state;
    expect("gets id:a\r\n", "VALUE id:a 0 11 " ID0 "\r\n" ID0 "\r\nEND\r\n");
    expect("gets id:a\r\n", "VALUE id:a 0 11 " ID1 "\r\n" ID1 "\r\nEND\r\n");
    expect("gat 60 id:a\r\n", "VALUE id:a 0 11\r\n" ID2 "\r\nEND\r\n");
    expect("gats 0 id:a\r\n", "VALUE id:a 0 11 33554439171\r\n33554439171\r\nEND\r\n");
    expect("GET id:a  \n", "VALUE id:a 0 11\r\n33554439172\r\nEND\r\n");
    expect("Gets id:a\r\n", "VALUE id:a 0 11 33554439173\r\n33554439173\r\nEND\r\n");
    expect("gets a\r\n", "END\r\n");
    expect("gat 0 a\r\n", "END\r\n");
}

static void incr_gives_the_last_of_a_block(void **state)
{
    (void)state;
    expect("incr id:a 1\r\n", ID0 "\r\n");
    expect("incr id:a 2\r\n", ID2 "\r\n");
    expect("incr id:a 1021\r\n", "33554440191\r\n");
    expect("incr a 1\r\n", "NOT_FOUND\r\n");
    turn.wall_ms = T0 + 1;
    expect("incr id:a 1024\r\n", "33587994623\r\n");
    assert_true(layout_compose(&layout_usual, 1001, 7, 1023) == 33587994623);
    static const char *const bad[] = {"0", "1025", "4294967297", "18446744073709551615"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char request[64];
        (void)snprintf(request, sizeof request, "incr id:a %s\r\n", bad[i]);
        expect(request, "CLIENT_ERROR invalid numeric delta argument: expected 1 to 1024\r\n");
    }
    serve.issuer.batch = 64; /* limits.batch */
    expect("incr id:a 65\r\n", "CLIENT_ERROR invalid numeric delta argument: expected 1 to 64\r\n");
    expect("incr id:a 65 noreply\r\n", "");
    expect("incr id:a x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n");
    expect("incr id:a -1\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n");
    assert_int_equal(serve.issuer.names.prefix[0].other.issued, 2048);
    turn.wall_ms = T0 + 2;
    expect("incr id:a 1 noreply\r\nget b\r\n", "END\r\n");
    assert_int_equal(serve.issuer.names.prefix[0].other.issued, 2049);
    expect("incr id:a 64 noreply\r\nget b\r\n", "END\r\n"); /* that nobody is told */
    assert_int_equal(serve.issuer.names.prefix[0].other.issued, 2050);
}

static void names_may_be_configured(void **state)
{
    (void)state;
    char orders[] = "orders", users[] = "users", *list[] = {orders, users};
    begin_named("", list, 2);
    expect("get orders users#1 other\r\n",
           "VALUE orders 0 11\r\n" ID0 "\r\nVALUE users#1 0 11\r\n" ID1 "\r\nEND\r\n");
    expect("incr other 1\r\n", "NOT_FOUND\r\n");
    assert_int_equal(serve.issuer.names.prefix[0].entry[0].issued, 1);
    assert_int_equal(serve.issuer.names.prefix[0].entry[1].issued, 1);
}

/* ---- writes -----------------------------------------------------------------------------------
 */

static void storage_commands_are_swallowed_and_refused(void **state)
{
    (void)state;
    static const char *const verbs[] = {"set", "replace", "append", "prepend"};
    for (size_t i = 0; i < 4; i++) {
        char request[80];
        (void)snprintf(request, sizeof request, "%s id:a 0 0 5\r\nget x\r\n", verbs[i]);
        expect(request, "CLIENT_ERROR id key is read-only\r\n");
    }
    expect("cas id:a 0 0 2 99\r\nab\r\n", "CLIENT_ERROR id key is read-only\r\n");
    expect("add id:a 0 0 2\r\nab\r\n", "NOT_STORED\r\n");
    expect("set id:a 0 0 0\r\n\r\n", "CLIENT_ERROR id key is read-only\r\n");
    expect("set id:a 1 2 3 noreply\r\nabc\r\n", "");
    assert_int_equal(gen.ids.stats.issued, 0);
    assert_int_equal(counted(MC_SET, SERVE_REFUSED), 3);
}

static void storage_commands_for_other_keys(void **state)
{
    (void)state;
    expect("set a 0 0 1\r\nx\r\n",
           "CLIENT_ERROR key is no id, and no upstream is configured to store it\r\n");
    expect("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    expect("replace a 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    expect("append a 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    expect("prepend a 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    expect("cas a 0 0 1 5\r\nx\r\n", "NOT_FOUND\r\n");
}

static void the_other_writes_are_refused(void **state)
{
    (void)state;
    expect("decr id:a 1\r\n", "CLIENT_ERROR ids only go up\r\n");
    expect("decr a 1\r\n", "NOT_FOUND\r\n");
    expect("delete id:a\r\n", "NOT_FOUND\r\n");
    expect("delete a\r\n", "NOT_FOUND\r\n");
    expect("touch id:a 0\r\n", "TOUCHED\r\n");
    expect("touch a 0\r\n", "NOT_FOUND\r\n");
    expect("flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n");
    expect("flush_all 10\r\n", "CLIENT_ERROR flush_all not allowed\r\n");
    expect("decr id:a 1 noreply\r\ndelete id:a noreply\r\ntouch id:a 0 noreply\r\n"
           "flush_all noreply\r\n",
           "");
    assert_int_equal(gen.ids.stats.issued, 0);
}

static void data_blocks_may_come_in_pieces_of_any_size(void **state)
{
    (void)state;
    static char block[300000];
    memset(block, '\n', sizeof block);
    feed("set id:a 0 0 300000\r\n", 21);
    assert_int_equal(step.verdict, NET_MORE);
    for (size_t at = 0; at < sizeof block; at += 997) {
        feed(block + at, sizeof block - at < 997 ? sizeof block - at : 997);
        assert_int_equal(input_n, 0); /* nothing of it is kept */
        assert_true(step.begun);      /* limits.request_timeout holds for it */
    }
    feed("\r", 1);
    check_output("a block", "");
    feed("\nget id:a\r\n", 11);
    check_output("its end",
                 "CLIENT_ERROR id key is read-only\r\nVALUE id:a 0 11\r\n" ID0 "\r\nEND\r\n");
}

static void a_bad_block_is_told_and_the_connection_goes_on(void **state)
{
    (void)state;
    expect("set id:a 0 0 2\r\nabXYget x\r\n", "CLIENT_ERROR bad data chunk\r\nEND\r\n");
    expect("set id:a 0 0 2 noreply\r\nabXYget x\r\n", "END\r\n");
    expect("set id:\x01 0 0 2\r\nab\r\nget x\r\n",
           "CLIENT_ERROR bad command line format\r\nEND\r\n");
}

/* ---- the rest ---------------------------------------------------------------------------------
 */

static void version_is_digits_and_dots(void **state)
{
    (void)state;
    expect("version\r\n", "VERSION " MCD_VERSION "\r\n");
    for (const char *c = MCD_VERSION; *c; c++)
        assert_true((*c >= '0' && *c <= '9') || *c == '.');
    assert_true(MCD_VERSION[0] != '0'); /* libmemcached takes that for a broken server */
    expect("verbosity 1\r\n", "OK\r\n");
    expect("verbosity 1 noreply\r\n", "");
}

static void quit_closes_and_answers_nothing(void **state)
{
    (void)state;
    feed("get x\r\nquit\r\nget id:a\r\n", 23);
    assert_int_equal(step.verdict, NET_CLOSE);
    check_output("quit", "END\r\n");
    assert_int_equal(gen.ids.stats.issued, 0);
}

static void what_is_not_understood_is_told(void **state)
{
    (void)state;
    char long_key[400];
    expect("nonsense\r\n", "ERROR\r\n");
    expect("\r\n", "ERROR\r\n");
    expect("get\r\n", "ERROR\r\n");
    expect("incr id:a\r\n", "ERROR\r\n");
    expect("stats nonsense\r\n", "ERROR\r\n");
    expect("get id:a\x01\r\n", "CLIENT_ERROR bad command line format\r\n");
    (void)snprintf(long_key, sizeof long_key, "get id:%0248d\r\n", 0);
    expect(long_key, "CLIENT_ERROR bad command line format\r\n");
    (void)snprintf(long_key, sizeof long_key, "get id:%0201d\r\n", 0);
    expect(long_key, "END\r\n"); /* a key, but no name */
    assert_int_equal(gen.ids.stats.issued, 0);
}

static void browsers_and_endless_lines_are_closed(void **state)
{
    (void)state;
    feed("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    assert_int_equal(step.verdict, NET_CLOSE);
    check_output("HTTP", "");
    begin(NULL);
    char line[2048];
    memset(line, 'x', sizeof line);
    feed(line, sizeof line);
    assert_int_equal(step.verdict, NET_CLOSE);
    check_output("a long line", "");
}

/* ---- waiting and failing ----------------------------------------------------------------------
 */

static void no_id_is_an_error_and_never_a_miss(void **state)
{
    (void)state;
    take_worker_away();
    feed("get id:a\r\n", 10);
    assert_int_equal(step.verdict, NET_WAIT);
    check_output("get", "");
    turn.waited_us = 100000;
    run();
    check_output("get", "SERVER_ERROR no workerId is held yet\r\n");
    assert_int_equal(step.verdict, NET_MORE);
    (void)strcpy(serve.facts.why, "two\r\nlines");
    expect("incr id:a 1\r\n", "SERVER_ERROR no workerId is held: two  lines\r\n");
    expect("incr id:a 1 noreply\r\n", "");
    assert_int_equal(counted(MC_GET, SERVE_FAILED), 1);
    assert_int_equal(counted(MC_INCR, SERVE_FAILED), 2);
    expect("get a\r\n", "END\r\n"); /* other keys do not care */
}

static void a_get_goes_on_where_it_had_to_wait(void **state)
{
    (void)state;
    expect("incr id:a 1022\r\n", "33554440189\r\n");
    feed("get id:a id:b id:c x id:d\r\nget y\r\n", 34);
    assert_int_equal(step.verdict, NET_QUEUE);
    assert_true(step.until_ms == T0 + 1);
    check_output("the first part",
                 "VALUE id:a 0 11\r\n33554440190\r\nVALUE id:b 0 11\r\n33554440191\r\n");
    run(); /* too early: nothing is given twice */
    assert_int_equal(step.verdict, NET_QUEUE);
    check_output("still", "");
    fake_clock_step(&clock_, 1);
    turn.wall_ms = T0 + 1;
    run();
    check_output("the rest", "VALUE id:c 0 11\r\n33587993600\r\nVALUE id:d 0 11\r\n33587993601\r\n"
                             "END\r\nEND\r\n");
}

static void a_get_that_fails_in_its_middle_ends_with_the_error(void **state)
{
    (void)state;
    turn.quota = 2;
    feed("get id:a id:b id:c id:d\r\nget id:y\r\n", 35);
    assert_int_equal(step.verdict, NET_YIELD);
    check_output("the first part", "VALUE id:a 0 11\r\n" ID0 "\r\nVALUE id:b 0 11\r\n" ID1 "\r\n");
    take_worker_away();
    turn.quota = 5;
    turn.waited_us = 100000;
    run();
    check_output("the rest", "SERVER_ERROR no workerId is held yet\r\n"
                             "SERVER_ERROR no workerId is held yet\r\n");
    expect("get id:a\r\n", "SERVER_ERROR no workerId is held yet\r\n"); /* nothing is left over */
}

/* 64 KiB of keys make more output than the connection likes to hold: it is handed over in parts. */
static void the_longest_get_is_answered_in_parts(void **state)
{
    (void)state;
    static char request[65536];
    size_t n = 4, keys = 0;
    memcpy(request, "get ", 4);
    for (; n + 7 < sizeof request - 2; n += 5, keys++)
        memcpy(request + n, "id:a ", 5);
    memcpy(request + n, "\r\n", 2);
    memcpy(input, request, n + 2);
    input_n = n + 2;
    size_t values = 0, parts = 0;
    char *in = malloc(input_n);
    assert_non_null(in);
    memcpy(in, input, input_n);
    for (bool more = true; more; parts++) {
        step = svc->serve(svc, session, span_of(in, input_n), &turn, &out);
        assert_true(out.n < 64 * 1024);
        more = step.used == 0;
        if (step.verdict == NET_QUEUE) {
            fake_clock_pass(&clock_, 1000);
            turn.wall_ms++;
        }
        for (size_t i = 0; i + 6 <= out.n; i++)
            values += memcmp(out.p + i, "VALUE ", 6) == 0;
        if (more)
            buf_truncate(&out, 0);
    }
    free(in);
    assert_memory_equal(out.p + out.n - 5, "END\r\n", 5);
    assert_int_equal(values, keys);
    assert_true(parts > 8);
    assert_int_equal(gen.ids.stats.issued, keys);
}

/* ---- stats ------------------------------------------------------------------------------------
 */

static void expect_stat(const char *line)
{
    assert_true(out.n + 1 < sizeof output);
    output[out.n] = '\0';
    if (!strstr(output, line))
        fail_msg("no \"%s\" in \"%s\"", line, output);
}

static void stats_tell_what_happened(void **state)
{
    (void)state;
    (void)strcpy(serve.facts.coordinator, "redis://h:1/0");
    (void)strcpy(serve.facts.pool, "default");
    serve.facts.held = 2;
    serve.facts.up = serve.facts.serves = true;
    serve.facts.era = 5;
    serve.max_connections = 77;
    serve.started_mono_us = clock_.us_mono - 65000000;
    expect("get id:a x\r\nget x\r\nincr id:a 1\r\nincr x 1\r\nset id:a 0 0 1\r\nx\r\n",
           "VALUE id:a 0 11\r\n" ID0 "\r\nEND\r\nEND\r\n" ID1
           "\r\nNOT_FOUND\r\nCLIENT_ERROR id key is read-only\r\n");
    feed("stats\r\n", 7); /* whose pool has not been described: only the era is told */
    assert_null(memmem(out.p, out.n, "pool_era", 8));
    memcpy(serve.facts.identity, "i", 2);
    feed("stats\r\n", 7);
    static const char *const lines[] = {
        "STAT version " MCD_VERSION "\r\n",
        "STAT sidflake_version " SIDFLAKE_VERSION "\r\n",
        "STAT uptime 65\r\n",
        "STAT time 1767225601\r\n",
        "STAT pointer_size 64\r\n",
        "STAT max_connections 77\r\n",
        "STAT curr_connections 0\r\n",
        "STAT cmd_get 2\r\n",
        "STAT cmd_set 1\r\n",
        "STAT get_hits 1\r\n",
        "STAT get_misses 1\r\n",
        "STAT incr_hits 1\r\n",
        "STAT incr_misses 1\r\n",
        "STAT sidflake_ready 1\r\n",
        "STAT sidflake_ids_issued 2\r\n",
        "STAT sidflake_workers_held 2\r\n",
        "STAT sidflake_worker_0_active 7\r\n",
        "STAT sidflake_worker_0_ceiling 2026-01-01T01:00:01",
        "STAT sidflake_pool_era 5\r\n",
        "STAT sidflake_coordinator redis://h:1/0\r\n",
        "STAT sidflake_coordinator_up 1\r\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        expect_stat(lines[i]);
    assert_memory_equal(out.p, "STAT pid ", 9);
    assert_memory_equal(out.p + out.n - 7, "\r\nEND\r\n", 7);
}

static void stats_have_forms(void **state)
{
    (void)state;
    static const struct serve_setting settings[] = {{"maxconns", "4096"}, {"batch", "1024"}};
    serve.settings = settings;
    serve.nsettings = 2;
    svc->connections = 3;
    expect("stats settings\r\n", "STAT maxconns 4096\r\nSTAT batch 1024\r\nEND\r\n");
    expect("STATS  Conns \r\n", "STAT memcached 3\r\nEND\r\n");
    expect("stats items\r\n", "END\r\n");
    expect("stats slabs\r\n", "STAT active_slabs 0\r\nSTAT total_malloced 0\r\nEND\r\n");
    expect("stats sizes\r\n", "STAT sizes_status disabled\r\nEND\r\n");
    expect("stats detail on\r\nstats detail off\r\nstats detail dump\r\n", "OK\r\nOK\r\nEND\r\n");
    expect("stats detail\r\nstats detailx\r\nstats foo\r\n",
           "CLIENT_ERROR usage: stats detail on|off|dump\r\nERROR\r\nERROR\r\n");
    expect("stats cachedump 1 1\r\n", "CLIENT_ERROR stats cachedump not allowed\r\n");
    svc->bytes_in = 100;
    svc->bytes_out = 200;
    expect("get x\r\nstats reset\r\n", "END\r\nRESET\r\n");
    svc->bytes_in += 3;
    svc->bytes_out += 5;
    feed("stats\r\n", 7);
    static const char *const lines[] = {"STAT bytes_read 3\r\n", "STAT bytes_written 5\r\n",
                                        "STAT cmd_get 0\r\n", "STAT get_misses 0\r\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        expect_stat(lines[i]);
    assert_int_equal(counted(MC_GET, SERVE_MISS), 1); /* a metric never falls */
}

/* ---- cut anywhere -----------------------------------------------------------------------------
 */

static void byte_by_byte_is_the_same_as_at_once(void **state)
{
    (void)state;
    static const char conversation[] = "get id:a id:b\r\nset id:a 0 0 7\r\nget id:\r\n"
                                       "incr id:a 3\r\n\r\ngets x id:a\r\nadd q 0 0 0\r\n\r\n"
                                       "set id:a 0 0 1\r\nxyzget id:a\r\nversion\r\ndelete a\r\n";
    check_byte_by_byte(conversation, sizeof conversation - 1);
}

static void every_verb_has_a_label(void **state)
{
    (void)state;
    assert_string_equal(serve_command(SERVE_MEMCACHED, MC_GET), "get");
    assert_string_equal(serve_command(SERVE_MEMCACHED, MC_UNKNOWN), "unknown");
    assert_null(serve_command(SERVE_MEMCACHED, MC_VERB_COUNT));
    assert_true(MC_VERB_COUNT <= SERVE_COMMANDS);
    for (unsigned i = 1; i < MC_VERB_COUNT; i++)
        assert_string_not_equal(serve_command(SERVE_MEMCACHED, i), "unknown");
    assert_string_equal(svc->name, "memcached");
    assert_true(span_eq(svc->refusal, SPAN("SERVER_ERROR too many open connections\r\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        MC(get_gives_an_id_per_key),
        MC(a_get_repeated_is_answered_alike),
        MC(a_get_repeated_follows_the_time),
        MC(verbs_of_reading_differ_as_memcacheds_do),
        MC(incr_gives_the_last_of_a_block),
        MC(names_may_be_configured),
        MC(storage_commands_are_swallowed_and_refused),
        MC(storage_commands_for_other_keys),
        MC(the_other_writes_are_refused),
        MC(data_blocks_may_come_in_pieces_of_any_size),
        MC(a_bad_block_is_told_and_the_connection_goes_on),
        MC(version_is_digits_and_dots),
        MC(quit_closes_and_answers_nothing),
        MC(what_is_not_understood_is_told),
        MC(browsers_and_endless_lines_are_closed),
        MC(no_id_is_an_error_and_never_a_miss),
        MC(a_get_goes_on_where_it_had_to_wait),
        MC(a_get_that_fails_in_its_middle_ends_with_the_error),
        MC(the_longest_get_is_answered_in_parts),
        MC(stats_tell_what_happened),
        MC(stats_have_forms),
        MC(byte_by_byte_is_the_same_as_at_once),
        MC(every_verb_has_a_label),
    };
    return cmocka_run_group_tests_name("serve/memcached", tests, NULL, NULL);
}
