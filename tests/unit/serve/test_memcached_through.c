/* What the server behind memcached's clients is told of binary requests, and on which link; the
 * test plays it. */
#include "serve/memcached/memcached.h"
#include "unit/serve/there_rig.h"

#define NOOP "\x80\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* GET k, with what stands between the extras' length and that of the body. */
#define GET(odd) "\x80\0\0\1\0" odd "\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0k"

#define MISS "\x81\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

static void expect_bytes(int fd, struct span s)
{
    char got[256];
    assert_true(s.n <= sizeof got);
    assert_int_equal(recv(fd, got, s.n, MSG_WAITALL), s.n);
    assert_memory_equal(got, s.p, s.n);
}

static void is_answered(int client, int link, struct span request)
{
    expect_bytes(link, request);
    say_span(link, SPAN(MISS));
    expect_bytes(client, SPAN(MISS));
}

/* What a server makes of them is not known: it might have no reply to them, or two, and then the
 * replies behind it would be given to other clients. */
static void what_nobody_uses_does_not_go_where_clients_share(void **state)
{
    static const struct span odd[] = {
        SPAN(GET("\1\0\0")), /* the data type */
        SPAN(GET("\0\1\0")), /* the vbucket */
        SPAN(GET("\0\0\1")),
    };
    const struct span plain = SPAN(GET("\0\0\0"));
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    int other = dial(&b);
    say_span(other, plain);
    int shared = accepted();
    is_answered(other, shared, plain);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        int client = dial(&b);
        say_span(client, plain);
        is_answered(client, shared, plain);
        say_span(client, odd[i]);
        int own = accepted();
        is_answered(client, own, odd[i]);
        (void)close(client);
        (void)close(own);
    }
    say_span(other, plain);
    is_answered(other, shared, plain);
    (void)close(other);
    (void)close(shared);
}

/* Else who stores what he was sent by others would have them say what he says. */
static void the_value_of_what_is_refused_is_not_read_as_requests(void **state)
{
    static const char set[] =
        "\x80\1\0\1\x08\0\0\0\0\0\0\x39\0\0\0\0\0\0\0\0\0\0\0\0" /* extras, key, and value */
        "\0\0\0\0\0\0\0\0"
        "k" NOOP NOOP;
    static const char refused[] =
        "\x81\1\0\0\0\0\0\x86\0\0\0\x14\0\0\0\0\0\0\0\0\0\0\0\0upstream unavailable";
    static const char noop[] = "\x81\x0a\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    (void)close(server);
    server = -1;
    int client = dial(&b);
    say_span(client, span_of(set, sizeof set - 1));
    expect_bytes(client, span_of(refused, sizeof refused - 1));
    say_span(client, SPAN(NOOP));
    expect_bytes(client, span_of(noop, sizeof noop - 1));
    expect_silence(client, 20);
    (void)close(client);
}

/* The same of text. */
static void the_block_of_what_is_refused_is_not_read_as_requests(void **state)
{
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    (void)close(server);
    server = -1;
    int client = dial(&b);
    say_span(client, SPAN("set k 0 0 14\r\nget id:a\r\nmn\r\n\r\nmn\r\n"));
    expect_bytes(client, SPAN("SERVER_ERROR upstream unavailable\r\nMN\r\n"));
    expect_silence(client, 20);
    (void)close(client);
}

/* That it is no command is memcached's to say. */
static void what_memcached_alone_knows_is_unavailable_while_it_is_away(void **state)
{
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    (void)close(server);
    server = -1;
    int client = dial(&b);
    say_span(client, SPAN("lru_crawler crawl all\r\nwatch\r\nincr k\r\n"));
    expect_bytes(client, SPAN("SERVER_ERROR upstream unavailable\r\n"
                              "SERVER_ERROR upstream unavailable\r\nERROR\r\n"));
    (void)close(client);
}

/* In both protocols the same is answered here, and the same is not. */
static void a_flush_is_unavailable_while_memcached_is_away(void **state)
{
    static const char flush[] = "\x80\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    static const char refused[] =
        "\x81\x08\0\0\0\0\0\x86\0\0\0\x14\0\0\0\0\0\0\0\0\0\0\0\0upstream unavailable";
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    (void)close(server);
    server = -1;
    int client = dial(&b);
    say_span(client, span_of(flush, sizeof flush - 1));
    expect_bytes(client, span_of(refused, sizeof refused - 1));
    (void)close(client);
}

static void stats_are_ours_while_memcached_is_away(void **state)
{
    static const char stat[] = "\x80\x10\0\x08\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\0settings";
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    (void)close(server);
    server = -1;
    int client = dial(&b);
    say_span(client, span_of(stat, sizeof stat - 1));
    expect_bytes(client, SPAN("\x81\x10\0\0\0\0\0\0\0\0\0\0")); /* all of them: the test has none */
    (void)close(client);
}

/* Of those of one the replies tell the IDs where to stand. */
static void a_get_of_ids_and_others_waits_for_the_one_before_it(void **state)
{
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, SPAN("get id:a k\r\nget l id:b\r\n"));
    int link = accepted();
    expect_bytes(link, SPAN("get k\r\n"));
    expect_silence(link, 50);
    say_span(link, SPAN("END\r\n"));
    expect_to(client, "VALUE id:a 0 ", "\r\nEND\r\n");
    expect_bytes(link, SPAN("get l\r\n"));
    say_span(link, SPAN("END\r\n"));
    expect_to(client, "VALUE id:b 0 ", "\r\nEND\r\n");
    (void)close(client);
    (void)close(link);
}

/* Of a line of 64 KiB, more IDs than a turn's output has room for stand before the other key. */
static void all_ids_of_a_long_line_stand_before_the_other_key(void **state)
{
    enum {
        IDS = 12000
    };
    static char line[IDS * 5 + 16] = "gets", key[] = "VALUE id:a 0 ";
    char tail[4096];
    size_t n = 4;
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start(protocol_memcached.make(&rig->serve));
    for (int i = 0; i < IDS; i++, n += 5)
        memcpy(line + n, " id:a", 5);
    memcpy(line + n, " k\r\nquit\r\n", sizeof " k\r\nquit\r\n");
    int client = dial(&b);
    say_span(client, span_str(line));
    int link = accepted();
    expect_bytes(link, SPAN("gets k\r\n"));
    assert_true(kept() > IDS * sizeof(uint64_t));
    say_span(link, SPAN("VALUE k 0 1 7\r\nx\r\nEND\r\n"));
    assert_in_range(rest_of(client, tail), (size_t)IDS * sizeof key, (size_t)IDS * 80);
    n = strlen(tail);
    assert_string_equal(tail + n - 23, "VALUE k 0 1 7\r\nx\r\nEND\r\n");
    (void)close(client);
    (void)close(link);
}

/* One that is known by its bytes waits its turn as any other. */
static void an_id_does_not_overtake_what_is_due(void **state)
{
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, SPAN("get k\r\n"));
    int link = accepted();
    expect_bytes(link, SPAN("get k\r\n"));
    say_span(link, SPAN("END\r\n"));
    expect_bytes(client, SPAN("END\r\n"));
    for (int i = 0; i < 2; i++) {
        say_span(client, SPAN("get id:a\r\n"));
        expect_to(client, "VALUE id:a 0 ", "\r\nEND\r\n");
    }
    say_span(client, SPAN("get k\r\nget id:a\r\n"));
    expect_bytes(link, SPAN("get k\r\n"));
    say_span(link, SPAN("VALUE k 0 1\r\nx\r\nEND\r\n"));
    expect_bytes(client, SPAN("VALUE k 0 1\r\nx\r\nEND\r\nVALUE id:a 0 "));
    (void)close(client);
    (void)close(link);
}

/* The IDs that were drawn for it are nobody's, and its keys not those of the next. */
static void a_get_that_failed_leaves_nothing_to_the_next(void **state)
{
    (void)state;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, SPAN("get id:a k\r\n"));
    int link = accepted();
    expect_bytes(link, SPAN("get k\r\n"));
    say_span(link, SPAN("SERVER_ERROR out of memory\r\n"));
    expect_bytes(client, SPAN("SERVER_ERROR out of memory\r\n"));
    say_span(client, SPAN("get l id:b\r\n"));
    expect_bytes(link, SPAN("get l\r\n"));
    say_span(link, SPAN("VALUE l 0 1\r\nx\r\nEND\r\n"));
    expect_bytes(client, SPAN("VALUE l 0 1\r\nx\r\nVALUE id:b 0 "));
    (void)close(client);
    (void)close(link);
}

static void do_grant(struct net_bench *n, void *arg)
{
    (void)n, (void)arg;
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
}

/* The same of one that waited for an ID when the server went. */
static void a_get_that_was_given_up_leaves_nothing_to_the_next(void **state)
{
    const struct linger none = {.l_onoff = 1};
    const int yes = 1;
    struct sockaddr_in in;
    socklen_t n = sizeof in;
    (void)state;
    rig->serve.issuer.max_wait_us = 1000000;
    start(protocol_memcached.make(&rig->serve));
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
    int client = dial(&b);
    say_span(client, SPAN("get k id:a\r\n"));
    int link = accepted();
    expect_silence(client, 200);
    (void)close(server);
    (void)setsockopt(link, SOL_SOCKET, SO_LINGER, &none, sizeof none);
    (void)close(link);
    expect_bytes(client, SPAN("SERVER_ERROR upstream unavailable\r\n"));
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    assert_int_equal(bind(server, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(server, 8), 0);
    net_bench_call(&b, do_grant, NULL);
    (void)poll(NULL, 0, 1200); /* it is tried once a second */
    say_span(client, SPAN("get l id:b\r\n"));
    link = accepted();
    expect_bytes(link, SPAN("get l\r\n"));
    say_span(link, SPAN("VALUE l 0 1\r\nx\r\nEND\r\n"));
    expect_bytes(client, SPAN("VALUE l 0 1\r\nx\r\nVALUE id:b 0 "));
    (void)close(client);
    (void)close(link);
}

/* He was given nothing of it. */
static void who_wanted_no_reply_stays_when_one_breaks_off(void **state)
{
    static char error[600] = "SERVER_ERROR ";
    (void)state;
    memset(error + 13, 'x', sizeof error - 13);
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, SPAN("set k 0 0 1 noreply\r\nx\r\n"));
    int link = accepted();
    expect_bytes(link, SPAN("set k 0 0 1\r\nx\r\n"));
    say_span(link, span_of(error, sizeof error));
    expect_silence(client, 100);
    (void)close(link);
    expect_silence(client, 1200); /* a server that closes at once is tried once a second */
    say_span(client, SPAN("get k\r\n"));
    link = accepted();
    expect_bytes(link, SPAN("get k\r\n"));
    say_span(link, SPAN("END\r\n"));
    expect_bytes(client, SPAN("END\r\n"));
    (void)close(client);
    (void)close(link);
}

/* An error in words would be half a header, and the next reply the rest of it. */
static void who_waits_for_a_packet_is_closed_when_it_will_not_come(void **state)
{
    const struct span plain = SPAN(GET("\0\0\0"));
    char got;
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, plain);
    int link = accepted();
    expect_bytes(link, plain);
    (void)close(link);
    assert_int_equal(recv(client, &got, 1, 0), 0);
    (void)close(client);
}

static char block[100000];

static void comes_after_the_replies(struct span small, struct span reply, struct span large,
                                    struct span stored)
{
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, small);
    say_span(client, large);
    say_span(client, span_of(block, sizeof block - 1000));
    int link = accepted();
    expect_bytes(link, small);
    expect_silence(link, 50);
    say_span(link, reply);
    expect_bytes(client, reply);
    expect_bytes(link, large);
    say_span(client, span_of(block, 1000 + 2));
    for (size_t n = 0; n < sizeof block + 2; n += 2)
        expect_bytes(link, SPAN("xx"));
    say_span(link, stored);
    expect_bytes(client, stored);
    (void)close(client);
    (void)close(link);
}

/* A key that has no room where it could be looked at whole is none. */
static void what_is_no_key_of_a_long_line_is_passed_over(void **state)
{
    static char line[2 * NET_IN_MAX] = "get k ";
    (void)state;
    memset(line + 6, 'x', sizeof line - 9);
    memcpy(line + sizeof line - 3, "\r\n", 3);
    start(protocol_memcached.make(&rig->serve));
    int client = dial(&b);
    say_span(client, span_of(line, sizeof line - 1));
    int link = accepted();
    expect_bytes(link, SPAN("get k \r\n"));
    say_span(link, SPAN("END\r\n"));
    expect_bytes(client, SPAN("CLIENT_ERROR bad command line format\r\n"));
    (void)close(client);
    (void)close(link);
}

/* However it ends: a CR that comes without its LF is no part of a key that is as long as it may
 * be. */
static void the_last_key_of_a_long_line_is_whole(void **state)
{
    enum {
        FILLER = 2 * NET_IN_MAX / 3 * 3
    };
    static const char *const ends[][2] = {{"\r\n", ""}, {"\n", ""}, {"\r", "\n"}};
    static char line[FILLER + 8], got[FILLER + 8];
    static char key[MC_KEY_MAX + 1];
    (void)state;
    memcpy(line, "get", 3);
    for (size_t at = 3; at < FILLER; at += 3)
        memcpy(line + at, " kk", 3);
    memcpy(line + FILLER, " ", 1);
    memset(key, 'x', MC_KEY_MAX);
    start(protocol_memcached.make(&rig->serve));
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int client = dial(&b);
        say_span(client, span_of(line, FILLER + 1));
        int link = accepted();
        assert_int_equal(recv(link, got, FILLER + 1, MSG_WAITALL), FILLER + 1);
        assert_memory_equal(got, line, FILLER + 1);
        say_span(client, span_of(key, MC_KEY_MAX));
        say(client, ends[i][0]);
        if (*ends[i][1])
            expect_silence(link, 50);
        say(client, ends[i][1]);
        expect(link, key);
        expect(link, "\r\n");
        say(link, "END\r\n");
        expect(client, "END\r\n");
        (void)close(client);
        (void)close(link);
    }
}

/* Else it keeps them back for as long as the client takes to send the rest. */
static void replies_come_before_memcached_waits_for_a_block(void **state)
{
    (void)state;
    memset(block, 'x', sizeof block);
    comes_after_the_replies(SPAN("mg k v\r\n"), SPAN("EN\r\n"), SPAN("set k 0 0 100000\r\n"),
                            SPAN("STORED\r\n"));
}

static void nor_for_a_packet(void **state)
{
    (void)state;
    memset(block, 'x', sizeof block);
    comes_after_the_replies(SPAN(GET("\0\0\1")), SPAN(MISS),
                            SPAN("\x80\1\0\1\x08\0\0\0\0\1\x86\xab\0\0\0\0\0\0\0\0\0\0\0\0"
                                 "\0\0\0\0\0\0\0\0k"),
                            SPAN("\x81\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_nobody_uses_does_not_go_where_clients_share, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_value_of_what_is_refused_is_not_read_as_requests, begin,
                                        end),
        cmocka_unit_test_setup_teardown(what_memcached_alone_knows_is_unavailable_while_it_is_away,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_flush_is_unavailable_while_memcached_is_away, begin, end),
        cmocka_unit_test_setup_teardown(stats_are_ours_while_memcached_is_away, begin, end),
        cmocka_unit_test_setup_teardown(the_block_of_what_is_refused_is_not_read_as_requests, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_get_of_ids_and_others_waits_for_the_one_before_it, begin,
                                        end),
        cmocka_unit_test_setup_teardown(all_ids_of_a_long_line_stand_before_the_other_key, begin,
                                        end),
        cmocka_unit_test_setup_teardown(what_is_no_key_of_a_long_line_is_passed_over, begin, end),
        cmocka_unit_test_setup_teardown(the_last_key_of_a_long_line_is_whole, begin, end),
        cmocka_unit_test_setup_teardown(replies_come_before_memcached_waits_for_a_block, begin,
                                        end),
        cmocka_unit_test_setup_teardown(nor_for_a_packet, begin, end),
        cmocka_unit_test_setup_teardown(an_id_does_not_overtake_what_is_due, begin, end),
        cmocka_unit_test_setup_teardown(a_get_that_failed_leaves_nothing_to_the_next, begin, end),
        cmocka_unit_test_setup_teardown(a_get_that_was_given_up_leaves_nothing_to_the_next, begin,
                                        end),
        cmocka_unit_test_setup_teardown(who_wanted_no_reply_stays_when_one_breaks_off, begin, end),
        cmocka_unit_test_setup_teardown(who_waits_for_a_packet_is_closed_when_it_will_not_come,
                                        begin, end),
    };
    return cmocka_run_group_tests_name("serve/memcached_through", tests, NULL, NULL);
}
