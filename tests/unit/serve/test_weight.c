/* What one client may have under way where others wait for it: a request of many keys counts as
 * many, however short its reply is. The test plays the server. */
#include "unit/serve/there_rig.h"

#define KEYS 99
#define MANY 40 /* requests: more than may be under way, and what a client's input holds */
#define MOST 10 /* of those, by the weight of their words */

static int client, link_fd;

/* Known for short replies, of which it may have the most. first: the link is opened for it. */
static int known(const char *request, const char *reply, bool first)
{
    int c = dial(&b);
    for (int i = 0; i < 64; i++) {
        say(c, request);
        if (first && i == 0)
            link_fd = accepted();
        expect(link_fd, request);
        say(link_fd, reply);
        expect(c, reply);
    }
    return c;
}

static void begin_known(const char *request, const char *reply)
{
    client = known(request, reply, true);
}

static void leave(void)
{
    (void)close(client);
    (void)close(link_fd);
}

/* Requests that the server has, by their last bytes, until no more come behind a whole one. */
static size_t under_way(const char *last)
{
    static char got[1 << 20];
    struct pollfd p = {.fd = link_fd, .events = POLLIN};
    size_t n = 0, found = 0, tail = strlen(last);
    while (poll(&p, 1, n >= tail && memcmp(got + n - tail, last, tail) == 0 ? 200 : 10000) == 1) {
        ssize_t r = recv(link_fd, got + n, sizeof got - n, 0);
        assert_true(r > 0);
        n += (size_t)r;
    }
    for (size_t i = 0; i + tail <= n; i++)
        found += memcmp(got + i, last, tail) == 0;
    return found;
}

/* All are served, a few at a time, each with the reply. */
static void comes_in_parts(const char *last, const char *reply)
{
    for (size_t all = 0; all < MANY;) {
        size_t n = under_way(last);
        assert_in_range(n, 1, MOST);
        for (size_t i = 0; i < n; i++)
            say(link_fd, reply);
        for (size_t i = 0; i < n; i++)
            expect(client, reply);
        all += n;
    }
}

/* A get of n keys, the last of which is `last`. */
static const char *get_of(unsigned n, const char *key)
{
    static char mem[80 << 10];
    struct buf text;
    buf_init(&text, mem, sizeof mem);
    buf_printf(&text, "get");
    for (unsigned i = 1; i < n; i++)
        buf_printf(&text, " %s", key);
    buf_printf(&text, " last\r\n");
    buf_put_char(&text, '\0');
    assert_false(text.failed);
    return mem;
}

static void a_get_of_many_keys_counts_as_many(void **state)
{
    const char *text = get_of(KEYS, "k");
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    begin_known("get k\r\n", "END\r\n");
    for (int i = 0; i < MANY; i++)
        say(client, text);
    comes_in_parts("last\r\n", "END\r\n");
    leave();
}

/* Whoever comes waits for all that the server has: it has no more of these than it does at once. */
static void many_who_ask_for_many_keys_have_a_short_line(void **state)
{
    enum {
        CROWD = 30,
        EACH = 10,
        LONG = 45 /* of such requests, and then what one may have under way */
    };
    const char *text = get_of(KEYS, "k");
    int c[CROWD];
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    for (int i = 0; i < CROWD; i++)
        c[i] = known("get k\r\n", "END\r\n", i == 0);
    for (int i = 0; i < CROWD * EACH; i++)
        say(c[i / EACH], text);
    for (size_t all = 0; all < CROWD * EACH;) {
        size_t n = under_way("last\r\n");
        assert_in_range(n, 1, LONG + MOST);
        for (size_t i = 0; i < n; i++)
            say(link_fd, "END\r\n");
        all += n;
    }
    for (int i = 0; i < CROWD * EACH; i++)
        expect(c[i / EACH], "END\r\n");
    int short_ones = known("get k\r\n", "END\r\n", false); /* the line is short again */
    for (int i = 0; i < MANY; i++)
        say(short_ones, "get k\r\n");
    size_t n = 0;
    for (int i = 0; i < 3 && n < MANY; i++)
        n += under_way("get k\r\n");
    assert_int_equal(n, MANY);
    (void)close(short_ones);
    for (int i = 0; i < CROWD; i++)
        (void)close(c[i]);
    (void)close(link_fd);
}

/* Also those of whom it is the first, as of all who come anew for each. */
static void have_a_short_line_anew(const char *text, const char *reply, const char *last)
{
    enum {
        CROWD = 60,
        LONG = 45 /* of such requests: each is a reply that is expected, too */
    };
    int c[CROWD];
    for (int i = 0; i < CROWD; i++) {
        c[i] = dial(&b);
        say(c[i], text);
    }
    for (size_t all = 0; all < CROWD;) {
        size_t n = under_way(last);
        assert_in_range(n, 1, LONG);
        for (size_t i = 0; i < n; i++)
            say(link_fd, reply);
        all += n;
    }
    for (int i = 0; i < CROWD; i++) {
        expect(c[i], reply);
        (void)close(c[i]);
    }
    leave();
}

static void those_who_come_anew_have_a_short_line(void **state)
{
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    begin_known("get k\r\n", "END\r\n");
    have_a_short_line_anew(get_of(KEYS, "k"), "END\r\n", "last\r\n");
}

/* The first one that goes on a link of the client's own. */
static void begin_own(const char *request)
{
    int shared = link_fd;
    say(client, request);
    link_fd = accepted();
    (void)close(shared);
}

/* Too long for the link that clients share: on its own it has no more at a time. */
static void a_get_that_cannot_be_shared_counts_as_many(void **state)
{
    const char *text = get_of(KEYS, "a-key-of-nearly-thirty-letters");
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    begin_known("get k\r\n", "END\r\n");
    begin_own(text);
    for (int i = 1; i < MANY; i++)
        say(client, text);
    comes_in_parts("last\r\n", "END\r\n");
    leave();
}

/* Longer than a client's input, and so forwarded key by key. */
static void a_get_that_comes_in_parts_counts_as_many(void **state)
{
    const char *text = get_of(35000, "k");
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    begin_known("get k\r\n", "END\r\n");
    begin_own(text);
    for (int i = 1; i < 5; i++)
        say(client, text);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(under_way("last\r\n"), 1);
        say(link_fd, "END\r\n");
        expect(client, "END\r\n");
    }
    leave();
}

/* noreply takes the long way. */
static void short_requests_count_as_their_replies(void **state)
{
    (void)state;
    start(protocol_memcached.make(&rig->serve));
    begin_known("get k\r\n", "END\r\n");
    for (int i = 0; i < MANY; i++)
        say(client, i % 2 ? "delete k noreply\r\n" : "delete k\r\n");
    size_t n = 0;
    for (int i = 0; i < 3 && n < MANY; i++) /* on a slow machine not all at once */
        n += under_way("delete k\r\n");
    assert_int_equal(n, MANY);
    leave();
}

/* In Redis the first of a form goes the long way, and the others by what is known of it. */
static void ask_redis(const char *name)
{
    say(client, "*100\r\n$6\r\n");
    say(client, name);
    for (int i = 1; i < KEYS; i++)
        say(client, "\r\n$1\r\nk");
    say(client, "\r\n$4\r\nlast\r\n");
}

static void a_request_of_a_known_form_counts_its_keys(void **state)
{
    (void)state;
    start(rig->svc);
    begin_known("*2\r\n$6\r\nEXISTS\r\n$1\r\nk\r\n", ":0\r\n");
    for (int i = 0; i < MANY; i++)
        ask_redis("EXISTS");
    comes_in_parts("last\r\n", ":0\r\n");
    leave();
}

static void those_who_come_anew_have_a_short_line_at_redis(void **state)
{
    char text[1024] = "*100\r\n$6\r\nEXISTS";
    size_t n = strlen(text);
    (void)state;
    start(rig->svc);
    begin_known("*2\r\n$6\r\nEXISTS\r\n$1\r\nk\r\n", ":0\r\n");
    for (int i = 1; i < KEYS; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "\r\n$1\r\nk");
    (void)snprintf(text + n, sizeof text - n, "\r\n$4\r\nlast\r\n");
    have_a_short_line_anew(text, ":0\r\n", "last\r\n");
}

static void a_request_of_another_form_counts_its_keys(void **state)
{
    (void)state;
    start(rig->svc);
    begin_known("*2\r\n$6\r\nEXISTS\r\n$1\r\nk\r\n", ":0\r\n");
    for (unsigned i = 0; i < MANY; i++) {
        char name[] = "exists";
        for (unsigned k = 0; k < 6; k++)
            name[k] = (char)(name[k] - (i >> k & 1 ? 'a' - 'A' : 0));
        ask_redis(name);
    }
    comes_in_parts("last\r\n", ":0\r\n");
    leave();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_get_of_many_keys_counts_as_many, begin, end),
        cmocka_unit_test_setup_teardown(many_who_ask_for_many_keys_have_a_short_line, begin, end),
        cmocka_unit_test_setup_teardown(those_who_come_anew_have_a_short_line, begin, end),
        cmocka_unit_test_setup_teardown(a_get_that_cannot_be_shared_counts_as_many, begin, end),
        cmocka_unit_test_setup_teardown(a_get_that_comes_in_parts_counts_as_many, begin, end),
        cmocka_unit_test_setup_teardown(short_requests_count_as_their_replies, begin, end),
        cmocka_unit_test_setup_teardown(a_request_of_a_known_form_counts_its_keys, begin, end),
        cmocka_unit_test_setup_teardown(those_who_come_anew_have_a_short_line_at_redis, begin, end),
        cmocka_unit_test_setup_teardown(a_request_of_another_form_counts_its_keys, begin, end),
    };
    return cmocka_run_group_tests_name("serve/weight", tests, NULL, NULL);
}
