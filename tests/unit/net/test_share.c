/* Many who ask for more than a shared link takes: whose turn it is. Replies are counted, not time,
 * so that the machine's load is no matter. */
#include "unit/net/upstream_rig.h"

#include <stdlib.h>

#define MOST   2048 /* replies expected there, by all together */
#define LENGTH 2    /* bytes of a request at the server: a letter and its line's end */
#define BACKLOG                                                                                    \
    ((size_t)1 << 22) /* bytes: all that clients may have under way, and what was answered */

static char requests[BACKLOG]; /* at the server, from the first on */
static size_t nheard, nanswered;
static int server, link_fd;

static void hear(void)
{
    struct pollfd p = {.fd = link_fd, .events = POLLIN};
    while (poll(&p, 1, 50) == 1) {
        ssize_t r = recv(link_fd, requests + nheard * LENGTH, BACKLOG - nheard * LENGTH, 0);
        assert_true(r > 0 && r % LENGTH == 0);
        nheard += (size_t)r / LENGTH;
    }
}

static void answer(size_t n)
{
    static char replies[4 * MOST];
    assert_true(n <= nheard - nanswered && n <= MOST);
    for (size_t i = 0; i < n; i++)
        memcpy(replies + 4 * i, "OK\r\n", 4);
    for (size_t at = 0; at < 4 * n;) {
        ssize_t r = send(link_fd, replies + at, 4 * n - at, MSG_NOSIGNAL);
        assert_true(r > 0);
        at += (size_t)r;
    }
    nanswered += n;
}

static size_t count(char letter, size_t from)
{
    size_t n = 0;
    for (size_t i = from; i < nheard; i++)
        n += requests[i * LENGTH] == letter;
    return n;
}

/* n clients, of which each has sent text, times times. The link is theirs. */
static int *crowd(size_t n, const char *text, size_t times)
{
    static char much[1 << 16];
    int *c = calloc(n, sizeof *c);
    assert_true(c && times * strlen(text) < sizeof much);
    much[0] = '\0';
    for (size_t i = 0; i < times; i++)
        memcpy(much + i * strlen(text), text, strlen(text) + 1);
    for (size_t i = 0; i < n; i++) {
        c[i] = dial(&b);
        say(c[i], much);
    }
    link_fd = accepted(server);
    nheard = nanswered = 0;
    hear();
    return c;
}

static void leave(int *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        (void)close(c[i]);
    free(c);
    (void)close(link_fd);
    (void)close(server);
}

static void begin_crowd(void)
{
    struct rlimit rl;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
    rl.rlim_cur = rl.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
    b.conf.connections = 2 * MOST;
    server = listen_at("127.0.0.2");
    start("127.0.0.2");
}

/* However much the others have sent, who asks for little waits for what is under way. */
static void who_comes_to_a_busy_link_is_served(void **state)
{
    (void)state;
    begin_crowd();
    size_t n = 300, most = 0;
    int *c = crowd(n, "share x\n", 2000), good = dial(&b);
    while (nanswered < 10000 || (nheard - nanswered < MOST && nanswered < 20000)) {
        most = nheard - nanswered > most ? nheard - nanswered : most;
        answer(nheard - nanswered < 700 ? nheard - nanswered : 700);
        hear();
    }
    assert_true(most <= MOST);
    size_t asked_at = nanswered;
    say(good, "share h\n");
    hear();
    while (count('h', 0) == 0 && nanswered - asked_at < 4 * MOST) {
        answer(nheard - nanswered < 700 ? nheard - nanswered : 700);
        hear();
    }
    assert_in_range(nanswered - asked_at, 0, MOST);
    (void)close(good);
    leave(c, n);
}

/* On a full link those who wait go on as soon as there is room, and before who asks again. */
static void who_waits_longest_has_the_room(void **state)
{
    (void)state;
    begin_crowd();
    size_t n = MOST + 200;
    int *c = crowd(n, "share a\nshare b\n", 1);
    assert_int_equal(nheard, MOST);
    size_t before = nheard, again = count('b', 0);
    answer(1);
    hear();
    assert_int_equal(nheard, before + 1);
    answer(99);
    hear();
    assert_int_equal(nheard, before + 100);
    assert_int_equal(count('b', 0), again);
    leave(c, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(who_comes_to_a_busy_link_is_served),
        BENCH(who_waits_longest_has_the_room),
    };
    return cmocka_run_group_tests_name("net/share", tests, NULL, NULL);
}
