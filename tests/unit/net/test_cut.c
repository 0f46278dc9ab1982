/* Who was closed for holding up others on the shared link does not begin there again. */
#include "net/private.h"
#include "net/upstream/links.h"
#include "unit/net/upstream_rig.h"

/* A client takes nothing of a large reply, on which another waits: it is closed. */
static void be_cut(int link, int other)
{
    int slow = dial(&b);
    say(slow, "fetch big\n");
    expect(link, "big\n");
    say(other, "share wait\n");
    expect(link, "wait\n");
    say_much(link);
    NET_AWAIT(net_bench_connections(&b) == 1);
    (void)close(slow);
}

static void who_was_cut_has_a_link_of_its_own_next(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), good = -1;
    start("127.0.0.2");
    int old = served_by(two, good = dial(&b), "share");
    be_cut(old, good);
    int shared = accepted(two); /* it took the place of the other */
    for (int i = 0; i < 2; i++) {
        int again = dial(&b);
        (void)close(served_by(two, again, "fetch"));
        (void)close(again);
    }
    (void)close(good);
    (void)close(old);
    (void)close(shared);
    (void)close(two);
}

static void reset(int fd)
{
    struct linger now = {1, 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(fd);
}

/* It was not closed for that, but would have been. */
static void who_went_in_time_has_a_link_of_its_own_next(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), good = -1;
    start("127.0.0.2");
    int old = served_by(two, good = dial(&b), "share"), slow = dial(&b), again = -1;
    say(slow, "fetch big\n");
    expect(old, "big\n");
    say(good, "share wait\n");
    expect(old, "wait\n");
    say_much(old); /* until nothing was taken for a while */
    reset(slow);
    NET_AWAIT(net_bench_connections(&b) == 1);
    int shared = accepted(two); /* it took the place of the other */
    (void)close(served_by(two, again = dial(&b), "fetch"));
    (void)close(again);
    (void)close(good);
    (void)close(old);
    (void)close(shared);
    (void)close(two);
}

/* Nobody waits behind it, but all do who ask while the shared links are to run dry. */
static void who_holds_up_a_rest_is_closed_soon(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), good = -1;
    bool rests = true;
    start("127.0.0.2");
    int old = served_by(two, good = dial(&b), "share"), slow = dial(&b);
    say(slow, "fetch big\n");
    expect(old, "big\n");
    say_much(old);
    int shared = accepted(two);
    pass(300);
    assert_int_equal(net_bench_connections(&b), 2);
    net_bench_call(&b, do_rest, &rests);
    int64_t before = clock_mono_us(clock_system());
    say(good, "share wait\n");
    NET_AWAIT(net_bench_connections(&b) == 1);
    int64_t took = clock_mono_us(clock_system()) - before;
    if (took > 200000)
        fail_msg("it was closed after %lld ms", (long long)took / 1000);
    rests = false;
    net_bench_call(&b, do_rest, &rests);
    expect(shared, "wait\n");
    (void)close(slow);
    (void)close(good);
    (void)close(old);
    (void)close(shared);
    (void)close(two);
}

static void who_comes_later_shares_again(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), good = -1, again = -1, n = 0;
    start("127.0.0.2");
    int old = served_by(two, good = dial(&b), "share");
    be_cut(old, good);
    int shared = accepted(two);
    for (struct pollfd p = {.fd = shared, .events = POLLIN}; poll(&p, 1, 0) == 0; n++) {
        struct pollfd came[] = {{.fd = two, .events = POLLIN}, p};
        assert_true(n <= 100);
        say(again = dial(&b), "share hello\n");
        assert_true(poll(came, 2, 10000) > 0);
        if (came[0].revents)
            (void)close(accepted(two));
        (void)close(again);
    }
    assert_in_range(n, 10, 100);
    (void)close(good);
    (void)close(old);
    (void)close(shared);
    (void)close(two);
}

static void where_there_is_no_room_it_shares_all_the_same(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), good = -1;
    owned_max = 1;
    start("127.0.0.2");
    int old = served_by(two, good = dial(&b), "share");
    be_cut(old, good);
    int shared = accepted(two), again = dial(&b); /* the other, good waits there, is the one */
    say(again, "share hello\n");
    expect(shared, "hello\n");
    (void)close(again);
    (void)close(good);
    (void)close(old);
    (void)close(shared);
    (void)close(two);
}

/* It was not in need of one: nothing was sent on it. */
static void who_is_not_let_in_shares_all_the_same(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), good = -1;
    b.svc.probe = probe;
    start("127.0.0.2");
    int old = served_by(two, good = dial(&b), "share");
    be_cut(old, good);
    int shared = let_in(two);
    int again = dial(&b);
    say(again, "share hello\n");
    int own = accepted(two);
    expect(own, "version\r\n");
    say(own, "ERROR Too many open connections\r\n");
    expect(shared, "hello\n");
    say(shared, "STORED\r\n");
    expect(again, "STORED\r\n");
    assert_true(is_up());
    int next = dial(&b); /* for a while nobody else tries */
    say(next, "share hello\n");
    expect(shared, "hello\n");
    say(shared, "STORED\r\n");
    expect(next, "STORED\r\n");
    assert_true(nobody_comes(two));
    say(again, "up one\n"); /* who is in need of one gets it all the same */
    int needed = accepted(two);
    expect(needed, "one\n");
    (void)close(needed);
    (void)close(next);
    (void)close(own);
    (void)close(again);
    (void)close(good);
    (void)close(old);
    (void)close(shared);
    (void)close(two);
}

#define STALLERS 40
#define VALUE    8000000 /* bytes: more than two sockets hold */
#define HOLD_MS  200     /* less than one alone may hold up others */

static void send_value(int link)
{
    static char part[VALUE];
    char head[32];
    (void)snprintf(head, sizeof head, "VALUE big 0 %d\r\n", VALUE);
    say(link, head);
    for (size_t sent = 0; sent < sizeof part;) {
        ssize_t r = send(link, part + sent, sizeof part - sent, MSG_NOSIGNAL);
        assert_true(r > 0);
        sent += (size_t)r;
    }
    say(link, "\r\nEND\r\n");
}

static bool is_over; /* atomic: nobody is held up any more */

/* Until some of the reply has come, and then as long as one may hold up others. */
static void stall(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED) && poll(&p, 1, 10) == 0)
        ;
    if (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        pass(HOLD_MS);
}

static void *go_in_time(void *slow)
{
    for (int i = 0; i < STALLERS; i++) {
        stall(((int *)slow)[i]);
        reset(((int *)slow)[i]);
    }
    return NULL;
}

static void *take_in_time(void *slow)
{
    static char part[1 << 20];
    for (int i = 0; i < STALLERS; i++) {
        int fd = ((int *)slow)[i];
        stall(fd);
        for (ssize_t left = VALUE, r = 1; left > 0 && r > 0; left -= r)
            r = recv(fd, part, sizeof part, 0);
        (void)close(fd);
    }
    return NULL;
}

static void *stay(void *slow)
{
    (void)slow;
    return NULL;
}

/* Each has a little time to take its reply: one after the other they would add it up. */
static void have_little_time_together(void *(*what_they_do)(void *))
{
    int two = listen_at("127.0.0.2"), slow[STALLERS];
    char path[64], text[96];
    pthread_t they;
    (void)snprintf(path, sizeof path, "/tmp/sf-cut-%d.sock", (int)getpid());
    (void)snprintf(text, sizeof text, "unix:%s", path);
    (void)snprintf(address, sizeof address, "tcp://127.0.0.2:%u", port);
    net_bench_start(&b, text); /* a socket that keeps little, and so takes little at once */
    net_bench_call(&b, do_upstream, address);
    int good = dial(&b), link = served_by(two, good, "share");
    for (int i = 0; i < STALLERS; i++) {
        slow[i] = dial(&b);
        say(slow[i], "fetch big\n");
        expect(link, "big\n");
    }
    say(good, "share wait\n");
    expect(link, "wait\n");
    __atomic_store_n(&is_over, false, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&they, NULL, what_they_do, slow), 0);
    int64_t before = clock_mono_us(clock_system());
    for (int i = 0; i < STALLERS; i++)
        send_value(link);
    say(link, "STORED\r\n");
    expect(good, "STORED\r\n");
    int64_t took = clock_mono_us(clock_system()) - before;
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    (void)pthread_join(they, NULL);
    if (took > STALLERS * HOLD_MS * 1000 / 2 + 1000000) /* a busy machine */
        fail_msg("others waited %lld ms for %d clients", (long long)took / 1000, STALLERS);
    (void)unlink(path);
    for (int i = 0; i < STALLERS && what_they_do == stay; i++)
        (void)close(slow[i]);
    (void)close(good);
    (void)close(link);
    (void)close(two);
}

static void those_who_stall_in_turn_have_little_time_together(void **state)
{
    (void)state;
    have_little_time_together(stay);
}

static void those_who_go_in_time_have_little_time_together(void **state)
{
    (void)state;
    have_little_time_together(go_in_time);
}

static void those_who_take_it_in_time_have_little_time_together(void **state)
{
    (void)state;
    have_little_time_together(take_in_time);
}

/* ---- what is noted, on a clock of our own ------------------------------------------------------
 */

#define SECOND INT64_C(1000000)
#define WHILE  60 /* s that somebody is recalled after being cut … */
#define CONNS  64 /* … on so many connections */

static int64_t now_us;

static int64_t told(struct clock *c)
{
    (void)c;
    return now_us;
}

/* Two clients, of two parties: this process, and whoever comes by loopback. */
struct notes {
    struct clock clock;
    struct net net;
    struct net_service svc;
    struct upstream up;
    struct conn *process, *loopback;
    int other[2]; /* their ends */
};

static int begin_notes(void **state)
{
    static struct notes n;
    static struct conn process, loopback;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof in;
    int pair[2], server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    n = (struct notes){
        .clock = {told, told}, .svc.name = "toy", .process = &process, .loopback = &loopback};
    n.net.conf.clock = &n.clock;
    n.up.net = &n.net;
    n.process->svc = n.loopback->svc = &n.svc;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    n.process->rd.fd = pair[0];
    n.other[0] = pair[1];
    n.other[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&in, size), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &size), 0);
    assert_int_equal(connect(n.other[1], (struct sockaddr *)&in, size), 0);
    n.loopback->rd.fd = accepted(server);
    (void)close(server);
    now_us = 1000 * SECOND;
    *state = &n;
    return 0;
}

static int end_notes(void **state)
{
    struct notes *n = *state;
    (void)close(n->process->rd.fd);
    (void)close(n->loopback->rd.fd);
    (void)close(n->other[0]);
    (void)close(n->other[1]);
    return 0;
}

static void note(struct notes *n, const struct conn *c)
{
    struct net_peer peer;
    peer_of(c->rd.fd, &peer);
    cut_note(&n->up, &peer);
}

/* A later one of another party does not make it longer. */
static void each_has_a_time_of_its_own(void **state)
{
    struct notes *n = *state;
    assert_false(cut_recalls(&n->up, n->process));
    note(n, n->process);
    assert_true(cut_recalls(&n->up, n->process));
    assert_false(cut_recalls(&n->up, n->loopback));
    now_us += (WHILE - 1) * SECOND;
    note(n, n->loopback);
    assert_true(cut_recalls(&n->up, n->process));
    now_us += SECOND;
    assert_false(cut_recalls(&n->up, n->process));
    assert_true(cut_recalls(&n->up, n->loopback));
    now_us += WHILE * SECOND;
    assert_false(cut_recalls(&n->up, n->loopback));
}

/* However often a party is cut, it has one place, and so the others keep theirs. */
static void who_is_cut_again_is_noted_once(void **state)
{
    struct notes *n = *state;
    unsigned recalled = 0;
    note(n, n->loopback);
    for (int i = 0; i < CUTS; i++)
        note(n, n->process);
    while (recalled <= CONNS && cut_recalls(&n->up, n->process))
        recalled++;
    assert_int_equal(recalled, CONNS);
    assert_true(cut_recalls(&n->up, n->loopback));
}

/* From its latest time on it has all of both again. */
static void who_is_cut_again_is_noted_anew(void **state)
{
    struct notes *n = *state;
    unsigned recalled = 0;
    note(n, n->process);
    assert_true(cut_recalls(&n->up, n->process));
    now_us += (WHILE - 1) * SECOND;
    note(n, n->process);
    now_us += (WHILE - 1) * SECOND;
    while (recalled <= CONNS && cut_recalls(&n->up, n->process))
        recalled++;
    assert_int_equal(recalled, CONNS);
}

/* ---- what a pause is charged, on the same clock ------------------------------------------------
 */

#define MS INT64_C(1000)

/* A shared link with a reply to this process, behind which that to whoever comes by loopback waits.
 */
struct shared {
    struct notes *notes;
    struct upstream_link link;
    struct relay slow, other;
    struct expect behind;
};

static void begin_shared(struct shared *s, struct notes *n)
{
    *s = (struct shared){.notes = n, .slow.c = n->process, .other.c = n->loopback};
    s->behind = (struct expect){.r = &s->other, .n = 1};
    s->link.up = &n->up;
    s->link.fifo = &s->behind;
    s->link.fifo_n = s->link.fifo_cap = 1;
    link_init(&s->link.waiters);
    link_init(&n->net.resting);
    n->process->state = CONN_FLUSHING;
}

/* The other waits so long, while so many bytes are taken. */
static void hold_up(struct shared *s, int64_t us, uint32_t taken)
{
    static char bytes;
    s->notes->process->out = (struct kept){.p = &bytes, .n = taken};
    cut_pause_begins(&s->link, &s->slow, now_us);
    now_us += us;
    s->notes->process->out = (struct kept){.p = NULL};
    cut_pause_ends(&s->link, now_us);
}

/* Also of who is so quick that none of it is charged: else it would have the others wait for as
 * long as it finds something to ask for. */
static void pauses_add_up(void **state)
{
    struct shared s;
    begin_shared(&s, *state);
    for (int i = 1; i <= 4; i++) {
        hold_up(&s, 60 * MS, 4000000);
        assert_int_equal(s.slow.held_us, i * 60 * MS);
        assert_int_equal(s.slow.slow_us, 0);
    }
}

/* Until then they have as long as one of them may hold up others: none is in a hurry for less. */
static void what_is_held_up_for_a_quarter_of_a_second_in_all_begins_a_hurry(void **state)
{
    struct shared s;
    begin_shared(&s, *state);
    hold_up(&s, 200 * MS, 0);
    assert_false(cut_hurries(&s.notes->up, now_us));
    hold_up(&s, 100 * MS, 0);
    assert_true(cut_hurries(&s.notes->up, now_us));
}

#define NOTES(f) cmocka_unit_test_setup_teardown(f, begin_notes, end_notes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BENCH(who_was_cut_has_a_link_of_its_own_next),
        BENCH(who_went_in_time_has_a_link_of_its_own_next),
        BENCH(who_holds_up_a_rest_is_closed_soon),
        BENCH(who_comes_later_shares_again),
        BENCH(where_there_is_no_room_it_shares_all_the_same),
        BENCH(who_is_not_let_in_shares_all_the_same),
        BENCH(those_who_stall_in_turn_have_little_time_together),
        BENCH(those_who_go_in_time_have_little_time_together),
        BENCH(those_who_take_it_in_time_have_little_time_together),
        NOTES(each_has_a_time_of_its_own),
        NOTES(who_is_cut_again_is_noted_once),
        NOTES(who_is_cut_again_is_noted_anew),
        NOTES(pauses_add_up),
        NOTES(what_is_held_up_for_a_quarter_of_a_second_in_all_begins_a_hurry),
    };
    return cmocka_run_group_tests_name("net/cut", tests, NULL, NULL);
}
