/* Connecting to a server: what this host lacks for it, what cannot be reached, and what is left
 * behind. */
#include "net/upstream/links.h"
#include "unit/net/upstream_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/syscall.h>

enum {
    CROWD = 8,
    FOR_EVER = 100 /* attempts */
};

static _Atomic unsigned attempts;
static _Atomic unsigned from, to; /* which of them fail; to: the first behind those */
static _Atomic int error;         /* with that */
static _Atomic int last;          /* descriptor of one that did not, or -1 */
static _Atomic int taken;         /* the same, which is somebody else's by now, or -1 */

/* In the place of libc's, for the test and the loop: only that makes such as do not block. */
int socket(int domain, int type, int protocol)
{
    if (!(type & SOCK_NONBLOCK))
        return (int)syscall(SYS_socket, domain, type, protocol);
    unsigned at = attempts++;
    if (at < from || at >= to) {
        int fd = (int)syscall(SYS_socket, domain, type, protocol);
        last = fd;
        return fd;
    }
    if (last >= 0 && taken < 0 && fcntl(last, F_GETFD) < 0)
        taken = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, last);
    errno = at < FOR_EVER ? error : EACCES;
    return -1;
}

static int64_t wall_us(struct clock *c)
{
    (void)c;
    return clock_wall_us(clock_system());
}

static int64_t mono_us(struct clock *c)
{
    (void)c;
    return 1000000;
}

static struct clock standing = {wall_us, mono_us}; /* what is held back is for good */

static void fail_at(unsigned first, unsigned behind, int with)
{
    attempts = 0;
    from = first;
    to = behind;
    error = with;
    taken = last = -1;
}

static int begin_well(void **state)
{
    fail_at(0, 0, 0);
    return begin(state);
}

/* It says nothing about the server. */
static void what_we_lack_is_told_and_holds_back_nobody(void **state)
{
    static const int lacking[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, EADDRNOTAVAIL, EAGAIN};
    (void)state;
    int two = listen_at("127.0.0.2");
    b.conf.clock = &standing;
    start("127.0.0.2");
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        int c = dial(&b);
        fail_at(0, UINT_MAX, lacking[i]);
        say(c, "up one\n");
        expect(c, "down\n");
        assert_why(strerror(lacking[i]));
        assert_int_equal(attempts, 1);
        assert_int_equal(stats()->unowned, i + 1);
        assert_true(stats()->unowned_us > 0);
        fail_at(0, 0, 0);
        (void)close(served_by(two, c, "up"));
        assert_true(is_up());
        assert_int_equal(stats()->unowned_us, 0);
        (void)close(c);
    }
    (void)close(two);
}

static void do_look_at_denial(struct net_bench *n, void *arg)
{
    (void)arg;
    (void)snprintf(why, sizeof why, "%s", upstream_denial(&n->svc));
}

/* Who shares is served all the same. */
static void what_we_lack_for_a_clients_own_is_told_and_counted(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), d = dial(&b), link = served_by(two, c, "share");
    fail_at(0, UINT_MAX, EADDRNOTAVAIL);
    say(d, "up one\n");
    expect(d, "down\n");
    assert_true(is_up());
    assert_int_equal(stats()->unowned, 1);
    assert_true(stats()->unowned_us > 0);
    net_bench_call(&b, do_look_at_denial, NULL);
    assert_string_equal(why, strerror(EADDRNOTAVAIL));
    fail_at(0, 0, 0);
    (void)close(served_by(two, d, "up"));
    assert_int_equal(stats()->unowned_us, 0);
    (void)close(link);
    (void)close(c);
    (void)close(d);
    (void)close(two);
}

static void do_make_loud(struct net_bench *n, void *arg)
{
    (void)arg;
    CONTAINER(n->net->all.next, struct conn, all)->relay->loud = true;
}

/* Who would only have held up others is served as they are. */
static void what_we_lack_for_one_that_could_share_is_nobodys_loss(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    net_bench_call(&b, do_make_loud, NULL);
    fail_at(0, UINT_MAX, EMFILE);
    say(c, "share two\n");
    expect(link, "two\n");
    assert_int_equal(attempts, 1);
    assert_why(strerror(EMFILE));
    assert_int_equal(stats()->unowned, 0);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

/* Else who is refused one meanwhile would hardly ever be who tried, and it would be told nowhere.
 */
static void who_could_share_does_not_try_again_what_cannot_be_reached(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2");
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "share");
    net_bench_call(&b, do_make_loud, NULL);
    fail_at(0, UINT_MAX, ECONNREFUSED);
    say(c, "share two\n");
    expect(link, "two\n");
    assert_int_equal(stats()->unowned, 0);
    pass(100); /* until it may be tried */
    say(c, "share three\n");
    expect(link, "three\n");
    assert_int_equal(attempts, 1);
    int own = dial(&b);
    say(own, "up one\n");
    expect(own, "down\n");
    assert_int_equal(attempts, 2);
    assert_int_equal(stats()->unowned, 1);
    assert_true(stats()->unowned_us > 0);
    (void)close(link);
    (void)close(own);
    (void)close(c);
    (void)close(two);
}

static void what_cannot_be_reached_is_told_and_not_tried_again_at_once(void **state)
{
    (void)state;
    b.conf.clock = &standing;
    start("127.0.0.2");
    int c = dial(&b);
    fail_at(0, UINT_MAX, ENETUNREACH);
    for (int i = 0; i < 2; i++) {
        say(c, "up one\n");
        expect(c, "down\n");
        assert_why(strerror(ENETUNREACH));
        assert_int_equal(attempts, 1);
    }
    assert_true(!is_up() && stats()->since_us > 0);
    (void)close(c);
}

/* They have waited for its addresses. */
static void of_many_who_cannot_be_connected_one_tries_them(void **state)
{
    int c[CROWD];
    (void)state;
    b.conf.clock = &standing;
    name_is("127.0.0.2", "127.0.0.3", 0);
    be_silent(true);
    start("server.example");
    fail_at(0, UINT_MAX, ENETUNREACH);
    for (int i = 0; i < CROWD; i++) {
        uint64_t before = net_bench_bytes_in(&b);
        c[i] = dial(&b);
        say(c[i], "up one\n");
        NET_AWAIT(net_bench_bytes_in(&b) > before);
    }
    be_silent(false);
    for (int i = 0; i < CROWD; i++)
        expect(c[i], "down\n");
    assert_int_equal(attempts, 2);
    for (int i = 0; i < CROWD; i++)
        (void)close(c[i]);
}

/* As where there is no IPv6. */
static void an_address_of_a_kind_that_we_have_none_of_is_followed_by_the_next(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), three = listen_at("127.0.0.3");
    name_is("127.0.0.2", "127.0.0.3", 0);
    start("server.example");
    int c = dial(&b), d = dial(&b);
    fail_at(0, UINT_MAX, EADDRNOTAVAIL);
    say(c, "up one\n");
    expect(c, "down\n");
    assert_int_equal(attempts, 2); /* each once */
    fail_at(0, 1, EADDRNOTAVAIL);
    int link = served_by(three, d, "up");
    (void)close(link);
    (void)close(c);
    (void)close(d);
    (void)close(two);
    (void)close(three);
}

static int lowest_free(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    (void)close(fd);
    return fd;
}

static void start_where_nobody_listens(void)
{
    (void)close(listen_at("127.0.0.2")); /* its port */
    name_is("127.0.0.2", "127.0.0.3", 0);
    start("server.example");
}

static void what_was_tried_in_vain_leaves_no_descriptor(void **state)
{
    (void)state;
    start_where_nobody_listens();
    int c = dial(&b);
    say(c, "hello\n");
    expect(c, "hello\n");
    int before = lowest_free();
    fail_at(0, 0, 0);
    say(c, "up one\n");
    expect(c, "down\n");
    assert_int_equal(attempts, 2);
    assert_int_equal(lowest_free(), before);
    (void)close(c);
}

/* A path where nobody listens is refused at once. */
static void what_is_refused_at_once_leaves_no_descriptor(void **state)
{
    char nowhere[] = "unix:///nowhere/s";
    (void)state;
    net_bench_start(&b, NULL);
    net_bench_call(&b, do_upstream, nowhere);
    int c = dial(&b);
    say(c, "hello\n");
    expect(c, "hello\n");
    int before = lowest_free();
    say(c, "up one\n");
    expect(c, "down\n");
    assert_why(strerror(ENOENT));
    assert_int_equal(lowest_free(), before);
    (void)close(c);
}

/* The next address could not even be begun with, and the descriptor of the first is somebody else's
 * by then. */
static void what_was_closed_is_not_closed_again(void **state)
{
    (void)state;
    start_where_nobody_listens();
    int c = dial(&b);
    fail_at(1, UINT_MAX, EMFILE);
    say(c, "up one\n");
    expect(c, "down\n");
    assert_int_equal(attempts, 2);
    assert_true(taken >= 0 && taken == last);
    assert_true(fcntl(taken, F_GETFD) >= 0);
    (void)close(taken);
    (void)close(c);
}

static void do_look_at_delay(struct net_bench *n, void *arg)
{
    const struct upstream *up = n->svc.upstream;
    const struct upstream_link *l = CONTAINER(up->links.next, struct upstream_link, all);
    socklen_t size = sizeof(int);
    assert_int_equal(getsockopt(l->rd.fd, IPPROTO_TCP, TCP_NODELAY, arg, &size), 0);
}

static void what_is_sent_waits_for_no_acknowledgement(void **state)
{
    (void)state;
    int two = listen_at("127.0.0.2"), none = 0;
    start("127.0.0.2");
    int c = dial(&b), link = served_by(two, c, "up");
    net_bench_call(&b, do_look_at_delay, &none);
    assert_true(none);
    (void)close(link);
    (void)close(c);
    (void)close(two);
}

#define DIAL(f) cmocka_unit_test_setup_teardown(f, begin_well, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIAL(what_we_lack_is_told_and_holds_back_nobody),
        DIAL(what_we_lack_for_a_clients_own_is_told_and_counted),
        DIAL(what_we_lack_for_one_that_could_share_is_nobodys_loss),
        DIAL(who_could_share_does_not_try_again_what_cannot_be_reached),
        DIAL(what_cannot_be_reached_is_told_and_not_tried_again_at_once),
        DIAL(of_many_who_cannot_be_connected_one_tries_them),
        DIAL(an_address_of_a_kind_that_we_have_none_of_is_followed_by_the_next),
        DIAL(what_was_tried_in_vain_leaves_no_descriptor),
        DIAL(what_is_refused_at_once_leaves_no_descriptor),
        DIAL(what_was_closed_is_not_closed_again),
        DIAL(what_is_sent_waits_for_no_acknowledgement),
    };
    return cmocka_run_group_tests_name("net/dial", tests, NULL, NULL);
}
