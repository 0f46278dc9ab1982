/* Who waits for something at the server that may never come, and has said more meanwhile. */
#include "base/events.h"
#include "net/private.h"
#include "support/capture.h"
#include "unit/net/upstream_rig.h"

#include <pthread.h>
#include <stdlib.h>

#define MUCH   ((size_t)600 << 10) /* bytes: more than sockets hold */
#define LENGTH 20000               /* of a line: a turn takes some, and a part of another */
#define BIT    16000               /* bytes */
#define HELD   8                   /* that hold 180 KB each … */
#define BIG    400001              /* … of so many bytes */
#define OTHERS 90                  /* 200 KB or so of each are more than may be kept */

/* Lines that are answered here, each another one. To be freed. */
static char *lines(void)
{
    char *text = malloc(MUCH + LENGTH + 1);
    assert_non_null(text);
    for (size_t n = 0, i = 0; n < MUCH; i++)
        n += (size_t)snprintf(text + n, LENGTH + 1, "%0*zu\n", LENGTH - 1, i);
    return text;
}

/* A client that waits for something at the server, what it says then, and both ends of its link. */
struct waiting {
    int server, client, link;
    char *much;
};

static struct waiting begin_waiting(void)
{
    struct waiting w = {.server = listen_at("127.0.0.2"), .much = lines()};
    start("127.0.0.2");
    w.client = dial(&b);
    say(w.client, "wait a\n");
    w.link = accepted(w.server);
    expect(w.link, "a\n");
    say(w.client, w.much);
    return w;
}

/* To the last byte: behind much a few may fill a socket. */
static void all_is_heard(const struct waiting *w)
{
    NET_AWAIT(net_bench_bytes_in(&b) >= strlen("wait a\n") + strlen(w->much));
}

static void end_waiting(struct waiting *w)
{
    (void)close(w->client);
    (void)close(w->link);
    (void)close(w->server);
    free(w->much);
}

static void expect_much(int fd, const char *text)
{
    char part[1025];
    for (; *text; text += strlen(part)) {
        (void)snprintf(part, sizeof part, "%s", text);
        expect(fd, part);
    }
}

static void whoever_goes_behind_much_is_noticed(void **state)
{
    (void)state;
    struct waiting w = begin_waiting();
    (void)close(w.client);
    w.client = -1;
    NET_AWAIT(net_bench_connections(&b) == 0);
    expect_end(w.link);
    end_waiting(&w);
}

/* Of a segment that is read in part the kernel counts all, and takes no more: so its last bytes are
 * read, however few. */
static void a_few_bytes_behind_much_are_heard(void **state)
{
    (void)state;
    struct waiting w = begin_waiting();
    all_is_heard(&w);
    for (int i = 0; i < 3; i++) {
        uint64_t heard = net_bench_bytes_in(&b);
        say(w.client, "a few\n");
        NET_AWAIT(net_bench_bytes_in(&b) == heard + strlen("a few\n"));
    }
    end_waiting(&w);
}

static void all_that_was_said_meanwhile_is_answered_in_its_order(void **state)
{
    (void)state;
    struct waiting w = begin_waiting();
    all_is_heard(&w);
    say(w.link, "STORED\r\n");
    expect(w.client, "STORED\r\n");
    expect_much(w.client, w.much);
    say(w.client, "after\n");
    expect(w.client, "after\n");
    end_waiting(&w);
}

/* Of what is too much the rest is read when there is room again. */
static void more_than_is_heard_waits_where_it_is(void **state)
{
    (void)state;
    struct waiting w = begin_waiting();
    size_t n = strlen(w.much), times = NET_HEARD_MAX / n + 1;
    all_is_heard(&w);
    for (size_t i = 1; i < times; i++)
        say(w.client, w.much);
    pass(2500); /* two sweeps */
    assert_in_range(net_bench_bytes_in(&b), n * (times - 1), NET_HEARD_MAX + strlen("wait a\n"));
    say(w.link, "STORED\r\n");
    expect(w.client, "STORED\r\n");
    for (size_t i = 0; i < times; i++)
        expect_much(w.client, w.much);
    end_waiting(&w);
}

/* As many clients do with a pipeline. A unix socket holds a few hundred KiB, and we as much. */
static void who_sends_all_before_it_takes_the_first_is_heard(void **state)
{
    (void)state;
    char dir[] = "/tmp/sidflake-blocked-XXXXXX", path[64], where[80];
    char *much = lines();
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/s", dir);
    (void)snprintf(where, sizeof where, "unix://%s", path);
    net_bench_start(&b, where);
    int client = dial(&b);
    for (int i = 0; i < 4; i++)
        say(client, much);
    for (int i = 0; i < 4; i++)
        expect_much(client, much);
    (void)close(client);
    (void)unlink(path);
    (void)rmdir(dir);
    free(much);
}

/* Each as a user of its own. */
static int dial_as(const char *login)
{
    int fd = dial(&b);
    say(fd, login);
    expect(fd, "welcome\n");
    return fd;
}

/* memory: bytes that may be kept. */
static void start_with(size_t memory)
{
    char path[64];
    (void)snprintf(path, sizeof path, "unix:///tmp/sidflake-heard-%ld", (long)getpid());
    b.conf.memory = memory;
    net_bench_start(&b, path);
}

/* What is kept for others, who take nothing either, is not in its way: they keep more. */
static void it_is_heard_though_others_keep_all_that_may_be(void **state)
{
    (void)state;
    char *much = lines();
    int others[OTHERS];
    b.strangers = true;
    start_with((size_t)8 << 20);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = dial_as("login 1\n");
        say(others[i], "big 400000\n");
    }
    NET_AWAIT(net_bench_ended(&b, NET_END_MEMORY) > 0);
    int client = dial_as("login 2\n");
    (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){.tv_sec = 20},
                     sizeof(struct timeval));
    for (int i = 0; i < 3; i++)
        say(client, much);
    for (int i = 0; i < 3; i++)
        expect_much(client, much);
    (void)close(client);
    for (int i = 0; i < OTHERS; i++)
        (void)close(others[i]);
    free(much);
}

/* One that says all before it takes anything, in a thread of its own. */
struct sayer {
    pthread_t thread;
    int fd;
    const char *much;
    int times;
    bool answered;
    _Atomic bool over;
};

static bool is_next(int fd, const char *text)
{
    char part[4096];
    for (size_t n = strlen(text), some; n > 0; n -= some, text += some) {
        some = n < sizeof part ? n : sizeof part;
        if (recv(fd, part, some, MSG_WAITALL) != (ssize_t)some || memcmp(part, text, some) != 0)
            return false;
    }
    return true;
}

static void *say_all(void *arg)
{
    struct sayer *s = arg;
    bool ok = true;
    for (int i = 0; i < s->times; i++)
        ok = ok && send(s->fd, s->much, strlen(s->much), MSG_NOSIGNAL) == (ssize_t)strlen(s->much);
    for (int i = 0; i < s->times; i++)
        ok = ok && is_next(s->fd, s->much);
    s->answered = ok;
    s->over = true;
    return NULL;
}

static void let_them_say_all(const char *much, int times)
{
    const struct timeval patience = {.tv_sec = 120};
    struct sayer sayers[24];
    unsigned answered = 0;
    for (size_t i = 0; i < 24; i++) {
        sayers[i] = (struct sayer){.fd = dial(&b), .much = much, .times = times};
        (void)setsockopt(sayers[i].fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        (void)setsockopt(sayers[i].fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        assert_int_equal(pthread_create(&sayers[i].thread, NULL, say_all, &sayers[i]), 0);
    }
    for (size_t i = 0; i < 24; i++) {
        (void)pthread_join(sayers[i].thread, NULL);
        answered += sayers[i].answered;
        (void)close(sayers[i].fd);
    }
    assert_int_equal(answered, 24);
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 0);
}

/* Together they say three times what may be kept: one after the other is heard to its end. */
static void clients_of_one_party_do_not_wait_for_each_other(void **state)
{
    (void)state;
    char *much = lines();
    start_with((size_t)16 << 20);
    let_them_say_all(much, 3);
    free(much);
}

/* Half of what may be kept is little more than is ever heard of one. */
static void there_is_room_for_one_in_half_of_it(void **state)
{
    (void)state;
    char *much = lines();
    start_with((size_t)9 << 20);
    let_them_say_all(much, 6);
    free(much);
}

/* Who was heard, the second of them as the one at a time, and then takes nothing. */
static void they_wait_for_one_of_them_only_a_while(void **state)
{
    (void)state;
    char *much = lines();
    start_with((size_t)16 << 20);
    int mute[2] = {dial(&b), dial(&b)};
    for (int i = 0; i < 12; i++)
        say(mute[i / 6], much);
    let_them_say_all(much, 3);
    (void)close(mute[0]);
    (void)close(mute[1]);
    free(much);
}

/* Two that were heard, the second as the one at a time, and take nothing: they go on a little at a
 * time. */
static void begin_a_little_at_a_time(int *mute, int (*comes)(void), const char *much)
{
    start_with((size_t)16 << 20);
    for (int i = 0; i < 2; i++) {
        mute[i] = comes();
        for (int times = 0; times < 6; times++)
            say(mute[i], much);
    }
}

/* By enough to be heard to their end, and not by as much as is ever heard of one. */
static void go_on(const int *mute, size_t n, int ms, struct sayer *s)
{
    char more[3001] = "";
    memset(more, 'x', sizeof more - 1);
    for (; ms > 0 && !s->over; ms -= 100) {
        for (size_t i = 0; i < n; i++)
            say(mute[i], more);
        pass(100);
    }
}

static void begin_saying(struct sayer *s, int fd, const char *much)
{
    *s = (struct sayer){.fd = fd, .much = much, .times = 6};
    assert_int_equal(pthread_create(&s->thread, NULL, say_all, s), 0);
}

static void end_saying(struct sayer *s)
{
    (void)pthread_join(s->thread, NULL);
    (void)close(s->fd);
    assert_true(s->answered);
}

static int come_as_one(void)
{
    return dial_as("login 1\n");
}

static int come(void)
{
    return dial(&b);
}

/* He is favoured among his own alone. */
static void nobody_waits_for_one_of_another_party(void **state)
{
    (void)state;
    char *much = lines();
    struct sayer s;
    int mute[2];
    b.strangers = true;
    begin_a_little_at_a_time(mute, come_as_one, much);
    (void)close(mute[0]);
    mute[0] = dial_as("login 2\n"); /* they keep more now */
    for (int times = 0; times < 6; times++)
        say(mute[0], much);
    begin_saying(&s, dial_as("login 2\n"), much);
    go_on(mute + 1, 1, 10000, &s);
    bool soon = s.over;
    (void)close(mute[0]);
    (void)close(mute[1]);
    end_saying(&s);
    assert_true(soon);
    free(much);
}

/* We do not hear him: that is no silence of his. */
static void who_waits_to_be_heard_is_not_idle(void **state)
{
    (void)state;
    char *much = lines();
    struct sayer s;
    int mute[2];
    b.conf.idle_timeout_us = 2000000;
    begin_a_little_at_a_time(mute, come, much);
    begin_saying(&s, dial(&b), much);
    go_on(mute, 2, 5000, &s);
    for (int i = 0; i < 2; i++)
        (void)close(mute[i]);
    end_saying(&s);
    assert_int_equal(net_bench_ended(&b, NET_END_IDLE), 0);
    free(much);
}

enum {
    PIECES = 20,
    PIECE = 16000 /* bytes: more than would be left where it is */
};

/* Where something was heard more may be about to come: a client that says much is not heard a
 * second for each piece. */
static void what_comes_piece_by_piece_is_heard_soon(void **state)
{
    static char piece[PIECE + 1];
    (void)state;
    struct waiting w = begin_waiting();
    all_is_heard(&w);
    memset(piece, 'x', PIECE);
    int64_t before = clock_mono_us(clock_system());
    for (int i = 0; i < PIECES; i++) {
        uint64_t heard = net_bench_bytes_in(&b);
        say(w.client, piece);
        NET_AWAIT(net_bench_bytes_in(&b) >= heard + PIECE);
    }
    int64_t took = clock_mono_us(clock_system()) - before;
    if (took > PIECES * INT64_C(500000))
        fail_msg("%d pieces were heard in %lld ms", PIECES, (long long)took / 1000);
    end_waiting(&w);
}

/* What may take any time is over then: a request behind it has no longer than others. */
static void what_is_asked_behind_it_has_a_time_again(void **state)
{
    (void)state;
    timeout_us = 3000000;
    int server = listen_at("127.0.0.2");
    start("127.0.0.2");
    int client = dial(&b);
    say(client, "wait a\n");
    int link = accepted(server);
    expect(link, "a\n");
    say(link, "STORED\r\n");
    expect(client, "STORED\r\n");
    say(client, "up b\n");
    expect(link, "b\n");
    expect_end(client);
    (void)close(client);
    (void)close(link);
    (void)close(server);
}

static const struct conn *favoured_of(const struct net *n)
{
    for (const struct link *l = n->all.next; n->nfavoured > 0 && l != &n->all; l = l->next)
        if (memory_favours(CONTAINER(l, struct conn, all)))
            return CONTAINER(l, struct conn, all);
    return NULL;
}

static void look_who_is_favoured(struct net_bench *n, void *arg)
{
    *(const struct conn **)arg = favoured_of(n->net);
}

static const struct conn *who_is_favoured(void)
{
    const struct conn *c = NULL;
    net_bench_call(&b, look_who_is_favoured, &c);
    return c;
}

static void hold_more(int *fds, int n)
{
    uint64_t heard = net_bench_bytes_in(&b);
    for (int i = 0; i < n; i++) {
        fds[i] = dial_as("login 1\n");
        say(fds[i], "big 400000\n");
        heard += strlen("login 1\nbig 400000\n");
    }
    NET_AWAIT(net_bench_bytes_in(&b) == heard);
}

static void hold_much(int fds[HELD], size_t memory)
{
    b.strangers = true;
    start_with(memory);
    hold_more(fds, HELD);
}

static void say_a_bit(int fd)
{
    char bit[BIT + 1] = "";
    memset(bit, 'x', BIT);
    say(fd, bit);
}

static void say_what_is_heard(int fd)
{
    uint64_t heard = net_bench_bytes_in(&b);
    say_a_bit(fd);
    NET_AWAIT(net_bench_bytes_in(&b) >= heard + BIT);
}

static void ask_much(int fd)
{
    uint64_t heard = net_bench_bytes_in(&b);
    say(fd, "big 400000\n");
    NET_AWAIT(net_bench_bytes_in(&b) > heard);
}

/* One who is heard as the one at a time, of a party that keeps less than half of what may be kept:
 * with what it may say next it could be more. */
static void let_one_be_favoured(int fds[HELD])
{
    hold_much(fds, (size_t)4100 << 10);
    while (!who_is_favoured())
        say_what_is_heard(fds[0]);
}

static void hang_up(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        (void)close(fds[i]);
}

/* And neither is closed. */
static void let_another_say_much(const char *login)
{
    const struct timeval patience = {.tv_sec = 20};
    char *much = lines();
    int client = dial_as(login);
    (void)setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    say(client, much);
    say(client, much);
    assert_true(is_next(client, much) && is_next(client, much));
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 0);
    (void)close(client);
    free(much);
}

static void who_keeps_less_than_another_party_does_not_wait_for_it(void **state)
{
    (void)state;
    int fds[HELD];
    let_one_be_favoured(fds);
    const struct conn *c = who_is_favoured();
    let_another_say_much("login 2\n");
    assert_ptr_equal(who_is_favoured(), c); /* it was not only a while */
    hang_up(fds, HELD);
}

static void *speak_on(void *arg)
{
    while (send(*(int *)arg, "x", 1, MSG_NOSIGNAL) == 1)
        (void)usleep(500000);
    return NULL;
}

static void who_goes_on_with_a_byte_at_a_time_keeps_nobody_waiting(void **state)
{
    (void)state;
    int fds[HELD];
    pthread_t thread;
    let_one_be_favoured(fds);
    assert_int_equal(pthread_create(&thread, NULL, speak_on, &fds[0]), 0);
    let_another_say_much("login 1\n");
    (void)shutdown(fds[0], SHUT_WR);
    (void)pthread_join(thread, NULL);
    hang_up(fds, HELD);
}

/* And one who does go on is heard to its end, though another waits. */
static void who_goes_on_with_much_is_heard_to_its_end(void **state)
{
    (void)state;
    int fds[HELD];
    char *much = lines();
    struct sayer s = {.much = much, .times = 1};
    let_one_be_favoured(fds);
    const struct conn *c = who_is_favoured();
    s.fd = dial_as("login 1\n");
    assert_int_equal(pthread_create(&s.thread, NULL, say_all, &s), 0);
    for (int i = 0; i < 7; i++) {
        for (int n = 0; n < 5; n++)
            say_a_bit(fds[0]);
        pass(1000);
    }
    assert_ptr_equal(who_is_favoured(), c);
    assert_false(s.over);
    (void)shutdown(fds[0], SHUT_WR);
    hang_up(fds, HELD);
    end_saying(&s);
    free(much);
}

static void take(int fd, size_t n)
{
    static char all[BIG + BIT + 1];
    assert_int_equal(recv(fd, all, n, MSG_WAITALL), n);
}

static void keep_percent(struct net_bench *n, void *percent)
{
    n->net->conf.memory = n->net->bytes * 100 / *(const size_t *)percent;
}

/* So many of one party keep much, and fewer of another, who each say a bit before they take
 * replies; all together keep so many percent of what may be kept. Returns how many are heard. */
static uint64_t are_heard_beside(int holders, int n, size_t percent)
{
    int fds[50], others[5];
    b.conf.login_timeout_us = 200000; /* so there is a sweep each 100 ms */
    b.strangers = true;
    start_with((size_t)64 << 20);
    hold_more(fds, holders);
    for (int i = 0; i < n; i++) {
        others[i] = dial_as("login 2\n");
        ask_much(others[i]);
    }
    net_bench_call(&b, keep_percent, &percent);
    uint64_t before = net_bench_bytes_in(&b);
    for (int i = 0; i < n; i++)
        say_a_bit(others[i]);
    NET_AWAIT(net_bench_bytes_in(&b) > before);
    (void)poll(NULL, 0, 500);
    uint64_t heard = net_bench_bytes_in(&b) - before;
    for (int i = 0; i < n; i++)
        say(others[i], "\n");
    for (int i = 0; i < n; i++)
        take(others[i], BIG + BIT + 1);
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 0);
    hang_up(others, n);
    hang_up(fds, holders);
    return heard / BIT;
}

/* It would come to keep most by what it is heard, and have connections closed for what the other
 * says next. */
static void of_a_party_that_keeps_less_one_is_heard_above_a_quarter(void **state)
{
    (void)state;
    assert_int_equal(are_heard_beside(8, 5, 65), 1);
}

static void of_a_party_that_keeps_less_all_are_heard_below_it(void **state)
{
    (void)state;
    assert_int_equal(are_heard_beside(8, 2, 55), 2);
}

/* Of five parties each would have its quarter. */
static void of_a_party_that_keeps_less_one_is_heard_where_all_keep_three_quarters(void **state)
{
    (void)state;
    assert_int_equal(are_heard_beside(8, 2, 80), 1);
}

static void of_a_party_that_keeps_little_all_are_heard_even_then(void **state)
{
    (void)state;
    assert_int_equal(are_heard_beside(50, 2, 78), 2);
}

struct seen_sweep {
    const struct conn *favoured;
    int64_t due_us; /* from now */
};

static void look_at_the_sweep(struct net_bench *n, void *arg)
{
    *(struct seen_sweep *)arg = (struct seen_sweep){
        favoured_of(n->net), n->net->sweep_due_us - clock_mono_us(n->net->conf.clock)};
}

/* The one who waits was looked at before it, in the same sweep. */
static void who_waits_is_heard_soon_after_the_favoured_has_all(void **state)
{
    (void)state;
    int fds[HELD], *last = &fds[HELD - 1];
    struct seen_sweep at;
    b.conf.login_timeout_us = 600000; /* so there is one each 300 ms */
    hold_much(fds, (size_t)2300 << 10);
    say_what_is_heard(*last);
    const struct conn *c = who_is_favoured();
    assert_non_null(c);
    say_a_bit(fds[0]);
    say(*last, "\n");
    take(*last, BIG + BIT + 1);
    do
        net_bench_call(&b, look_at_the_sweep, &at);
    while (at.favoured == c && poll(NULL, 0, 1) == 0);
    assert_true(at.favoured || at.due_us < 150000);
    NET_AWAIT(who_is_favoured());
    hang_up(fds, HELD);
}

/* It has all its replies: what it has begun to ask for since is not what others wait for. */
static void who_has_all_replies_keeps_nobody_waiting(void **state)
{
    (void)state;
    int fds[HELD], *last = &fds[HELD - 1];
    b.conf.login_timeout_us = 200000; /* so there is a sweep each 100 ms */
    b.conf.request_timeout_us = 60000000;
    hold_much(fds, (size_t)2300 << 10);
    say_what_is_heard(*last);
    const struct conn *c = who_is_favoured();
    assert_non_null(c);
    say_a_bit(fds[0]);
    say(*last, "\nhalf a requ");
    uint64_t heard = net_bench_bytes_in(&b);
    int64_t before = clock_mono_us(clock_system());
    take(*last, BIG + BIT + 1);
    NET_AWAIT(net_bench_bytes_in(&b) >= heard + BIT);
    int64_t took = clock_mono_us(clock_system()) - before;
    if (took > 2000000)
        fail_msg("the next is heard after %lld ms", (long long)took / 1000);
    assert_ptr_not_equal(who_is_favoured(), c);
    hang_up(fds, HELD);
}

static void leave_no_room(struct net_bench *n, void *unused)
{
    (void)unused;
    n->net->conf.memory = n->net->bytes + BIT;
}

static void that_there_is_no_room_for_one_is_told(void **state)
{
    (void)state;
    int fds[HELD];
    struct event e;
    b.conf.login_timeout_us = 200000;
    hold_much(fds, (size_t)32 << 20);
    net_bench_call(&b, leave_no_room, NULL);
    uint64_t before = events_latest(), heard = net_bench_bytes_in(&b);
    capture_begin();
    say_a_bit(fds[0]);
    NET_AWAIT(events_latest() > before);
    (void)capture_end();
    assert_true(events_get(events_latest(), &e));
    assert_non_null(strstr(e.msg, "wait for each other"));
    assert_int_equal(net_bench_bytes_in(&b), heard);
    take(fds[1], BIG); /* it makes room */
    NET_AWAIT(net_bench_bytes_in(&b) == heard + BIT);
    assert_int_equal(net_bench_ended(&b, NET_END_MEMORY), 0);
    hang_up(fds, HELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(whoever_goes_behind_much_is_noticed),
        BENCH(a_few_bytes_behind_much_are_heard),
        BENCH(all_that_was_said_meanwhile_is_answered_in_its_order),
        BENCH(more_than_is_heard_waits_where_it_is),
        BENCH(who_sends_all_before_it_takes_the_first_is_heard),
        BENCH(it_is_heard_though_others_keep_all_that_may_be),
        BENCH(clients_of_one_party_do_not_wait_for_each_other),
        BENCH(there_is_room_for_one_in_half_of_it),
        BENCH(they_wait_for_one_of_them_only_a_while),
        BENCH(nobody_waits_for_one_of_another_party),
        BENCH(who_keeps_less_than_another_party_does_not_wait_for_it),
        BENCH(who_goes_on_with_a_byte_at_a_time_keeps_nobody_waiting),
        BENCH(who_goes_on_with_much_is_heard_to_its_end),
        BENCH(of_a_party_that_keeps_less_one_is_heard_above_a_quarter),
        BENCH(of_a_party_that_keeps_less_all_are_heard_below_it),
        BENCH(of_a_party_that_keeps_less_one_is_heard_where_all_keep_three_quarters),
        BENCH(of_a_party_that_keeps_little_all_are_heard_even_then),
        BENCH(who_waits_is_heard_soon_after_the_favoured_has_all),
        BENCH(who_has_all_replies_keeps_nobody_waiting),
        BENCH(that_there_is_no_room_for_one_is_told),
        BENCH(who_waits_to_be_heard_is_not_idle),
        BENCH(what_comes_piece_by_piece_is_heard_soon),
        BENCH(what_is_asked_behind_it_has_a_time_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
