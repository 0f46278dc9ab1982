/* What begins as a request before it did: its keys are looked at all the same, and the state that
 * its client is in. */
#include "unit/serve/there_rig.h"

#define GET(n, key)        "*2\r\n$3\r\nGET\r\n$" #n "\r\n" key "\r\n"
#define SET(n, key, value) "*3\r\n$3\r\nSET\r\n$" #n "\r\n" key "\r\n" value "\r\n"
#define MGET(key)          "*3\r\n$4\r\nMGET\r\n$1\r\nk\r\n" key "\r\n"

static int client, own;

/* A client with a link of its own, and the forms of GET, SET and MGET of two keys. */
static int begin_known(void **state)
{
    static const char *const known[] = {GET(1, "k"), SET(1, "k", "$1\r\nv"), MGET("$1\r\nl")};
    int rc = begin(state);
    snowflake_extend(&rig->gen.ids, 1, clock_wall_ms(clock_system()) + 3600000);
    start(rig->svc);
    client = dial(&b);
    say(client, "NEWER\r\n");
    own = accepted();
    expect(own, "NEWER\r\n");
    say(own, "+NEW\r\n");
    expect(client, "+NEW\r\n");
    for (int i = 0; i < 6; i++) {
        say(client, known[i % 3]);
        expect(own, known[i % 3]);
        say(own, "+1\r\n");
        expect(client, "+1\r\n");
    }
    return rc;
}

static int end_known(void **state)
{
    (void)close(client);
    (void)close(own);
    return end(state);
}

/* A value may look like one: it is no key. */
static void an_id_is_from_here(void **state)
{
    char got[20];
    (void)state;
    say(client, GET(4, "id:a"));
    expect(client, "$18\r\n");
    assert_int_equal(recv(client, got, sizeof got, MSG_WAITALL), sizeof got);
    say(client, SET(4, "id:a", "$1\r\nv"));
    expect(client, "-ERR ");
    expect_silence(own, 20);
    say(client, SET(1, "k", "$4\r\nid:a"));
    expect(own, SET(1, "k", "$4\r\nid:a"));
}

static void an_id_among_others_is_from_here(void **state)
{
    (void)state;
    say(client, MGET("$4\r\nid:a"));
    expect(own, "*2\r\n$4\r\nMGET\r\n$1\r\nk\r\n");
    say(own, "*1\r\n$1\r\nx\r\n");
    expect(client, "*2\r\n$1\r\nx\r\n$18\r\n");
}

/* More IDs than a millisecond has: the request waits for the next one, and what it has drawn by
 * then is its own, once. */
static void more_ids_than_a_millisecond_has_are_drawn_once(void **state)
{
    enum {
        IDS = LAYOUT_SEQUENCES + 100
    };
    static char text[64 * IDS], got[64 * IDS];
    struct buf asked;
    (void)state;
    buf_init(&asked, text, sizeof text);
    buf_printf(&asked, "*%d\r\n$4\r\nMGET\r\n", IDS + 2);
    for (int i = 0; i < IDS; i++)
        BUF_PUT_LIT(&asked, "$4\r\nid:a\r\n");
    BUF_PUT_LIT(&asked, "$1\r\nk\r\n");
    say_span(client, buf_span(&asked));
    expect(own, "*2\r\n$4\r\nMGET\r\n$1\r\nk\r\n");
    say(own, "*1\r\n$1\r\nx\r\n");
    expect(client, "*1125\r\n");
    for (int i = 0; i < IDS; i++) {
        char *one = got + (size_t)i * 25;
        assert_int_equal(recv(client, one, 25, MSG_WAITALL), 25);
        assert_memory_equal(one, "$18\r\n", 5);
        assert_true(i == 0 || memcmp(one - 25, one, 25) < 0);
    }
    expect(client, "$1\r\nx\r\n");
    say(client, "ECHO x\r\n"); /* nothing more */
    expect(client, "$1\r\nx\r\n");
}

static void what_is_mute_has_no_reply(void **state)
{
    (void)state;
    say(client, "CLIENT REPLY OFF\r\n");
    expect(own, "CLIENT REPLY OFF\r\n");
    say(client, GET(1, "k"));
    expect(own, GET(1, "k"));
    say(client, "CLIENT REPLY ON\r\n");
    expect(own, "CLIENT REPLY ON\r\n");
    say(own, "+OK\r\n");
    expect(client, "+OK\r\n");
    say(client, "ECHO x\r\n"); /* answered here, once nothing is due from there */
    expect(client, "$1\r\nx\r\n");
}

static void what_is_behind_a_hello_waits(void **state)
{
    (void)state;
    say(client, "HELLO 3\r\n");
    expect(own, "HELLO 3\r\n");
    say(client, GET(1, "k"));
    expect_silence(own, 20);
    say(own, "%0\r\n");
    expect(own, GET(1, "k"));
}

static void within_multi_it_is_queued(void **state)
{
    (void)state;
    say(client, "MULTI\r\n");
    expect(client, "+OK\r\n");
    say(client, GET(1, "k"));
    expect(own, "*1\r\n$5\r\nMULTI\r\n" GET(1, "k"));
}

/* A client that has shared the link with others, and speaks RESP3 from then on. */
static void another_protocol_has_a_link_of_its_own(void **state)
{
    (void)state;
    int other = dial(&b), link = -1;
    say(other, GET(1, "k"));
    int shared = accepted();
    expect(shared, GET(1, "k"));
    say(shared, "$1\r\n0\r\n");
    expect(other, "$1\r\n0\r\n");
    say(other, "HELLO 3\r\n");
    expect_to(other, "%7\r\n", "*0\r\n");
    say(other, GET(1, "k"));
    link = accepted();
    expect(link, "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n" GET(1, "k"));
    (void)close(other);
    (void)close(link);
    (void)close(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_id_is_from_here, begin_known, end_known),
        cmocka_unit_test_setup_teardown(an_id_among_others_is_from_here, begin_known, end_known),
        cmocka_unit_test_setup_teardown(more_ids_than_a_millisecond_has_are_drawn_once, begin_known,
                                        end_known),
        cmocka_unit_test_setup_teardown(another_protocol_has_a_link_of_its_own, begin_known,
                                        end_known),
        cmocka_unit_test_setup_teardown(what_is_mute_has_no_reply, begin_known, end_known),
        cmocka_unit_test_setup_teardown(what_is_behind_a_hello_waits, begin_known, end_known),
        cmocka_unit_test_setup_teardown(within_multi_it_is_queued, begin_known, end_known),
    };
    return cmocka_run_group_tests_name("serve/redis_form", tests, NULL, NULL);
}
