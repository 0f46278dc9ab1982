/* Listeners and connections that go from one loop to another, as from one program to the next. */
#include "net/upstream.h"
#include "support/net_bench.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define ROOM ((size_t)4 << 20)

static struct net_bench a, b; /* the program before, and the next */
static char dir[64], path[96], address[112];
static char *mem;
static struct buf parcel;
static uint64_t lost;
static bool carries; /* whether the toy's sessions can be packed */

static bool pack(const struct net_service *svc, const void *session, struct buf *to)
{
    (void)svc;
    parcel_put_bytes(to, span_of(session, svc->session_size));
    return carries;
}

static bool unpack(struct net_service *svc, void *session, struct span packed)
{
    struct span bytes;
    if (!parcel_get_bytes(&packed, &bytes) || bytes.n != svc->session_size || packed.n > 0)
        return false;
    memcpy(session, bytes.p, bytes.n);
    return true;
}

static void init(struct net_bench *n)
{
    net_bench_init(n);
    n->svc.pack = pack;
    n->svc.unpack = unpack;
}

static int begin(void **state)
{
    (void)state;
    init(&a);
    init(&b);
    carries = true;
    lost = 0;
    mem = malloc(ROOM);
    buf_init(&parcel, mem, ROOM);
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-carry-XXXXXX");
    if (!mem || !mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/s", dir);
    (void)snprintf(address, sizeof address, "unix://%s", path);
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_bench_stop(&a);
    net_bench_stop(&b);
    free(mem);
    (void)unlink(path);
    return rmdir(dir);
}

static void do_pack(struct net_bench *n, void *purpose)
{
    lost = net_pack(n->net, *(enum parcel_purpose *)purpose, &parcel);
}

/* Every descriptor of the records becomes another that stays open over execve, as if this were the
 * next program already. Returns how many there are. */
static unsigned leave(void)
{
    enum parcel_purpose purpose = PARCEL_TAKE;
    struct parcel_record r;
    unsigned n = 0;
    net_bench_call(&a, do_pack, &purpose);
    assert_false(parcel.failed);
    for (struct span in = buf_span(&parcel); parcel_next(&in, &r); n++) {
        int64_t fd = dup(r.fd);
        assert_true(fd >= 0);
        memcpy(mem + (r.body.p - mem) - 16, &fd, sizeof fd);
    }
    return n;
}

static uint64_t taken;

static void do_adopt(struct net_bench *n, void *arg)
{
    (void)arg;
    struct net_service *svc = &n->svc;
    taken = net_adopt(n->net, &svc, 1);
}

/* The next program starts, and the one before is gone. */
static void take_over(const char *where)
{
    net_bench_inherit(&b, buf_span(&parcel), where);
    net_bench_call(&b, do_adopt, NULL);
    net_bench_stop(&a);
}

static void connections_go_on_where_they_were(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    int idle = dial(&a), half = dial(&a), waiting = dial(&a), partial = dial(&a);
    say(idle, "hello\n");
    expect(idle, "hello\n");
    say(half, "wor");
    say(waiting, "wait\nafter\n");
    say(partial, "half\nafter\n");
    NET_AWAIT(net_bench_bytes_in(&a) == 6 + 3 + 11 + 11);
    assert_int_equal(leave(), 5);
    assert_int_equal(lost, 0);
    take_over(NULL);
    assert_int_equal(taken, 4);
    say(idle, "there\n");
    expect(idle, "there\n");
    say(half, "ld\n");
    expect(half, "world\n");
    net_bench_open_gate(&b);
    expect(waiting, "open\nafter\n");
    expect(partial, "half open\nafter\n");
    int fresh = dial(&b);
    say(fresh, "new\n");
    expect(fresh, "new\n");
    assert_int_equal(net_bench_connections(&b), 5);
    assert_int_equal(net_bench_accepted(&b), 1);
    (void)close(idle);
    NET_AWAIT(net_bench_connections(&b) == 4);
}

/* What the kernel did not take, and a close that is to follow it. */
static void output_not_sent_yet_goes_over(void **state)
{
    (void)state;
    char byte;
    size_t n = 0;
    net_bench_start(&a, address);
    int slow = dial(&a);
    for (int i = 0; i < 8; i++)
        say(slow, "big 400000\n");
    say(slow, "close\n");
    NET_AWAIT(net_bench_bytes_in(&a) > 0);
    (void)poll(NULL, 0, 50);
    assert_int_equal(leave(), 2);
    assert_int_equal(lost, 0);
    take_over(address);
    while (read(slow, &byte, 1) == 1 && byte != 'b')
        n++;
    assert_int_equal(n, 8 * 400001);
    expect(slow, "ye\n");
    expect_end(slow);
}

static void a_connection_that_cannot_be_carried_is_told_apart(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    carries = false;
    assert_int_equal(leave(), 1);
    assert_int_equal(lost, 1);
    take_over(NULL);
    assert_int_equal(taken, 0);
    expect_end(fd);
}

static void a_parcel_too_small_leaves_connections_out(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    for (int i = 0; i < 20; i++)
        (void)dial(&a);
    NET_AWAIT(net_bench_connections(&a) == 20);
    parcel.cap = 1500;
    unsigned records = leave();
    assert_true(records > 1 && records < 21 && lost == 21 - records);
    take_over(NULL);
    assert_int_equal(taken, records - 1);
}

static bool is_there(void)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static void a_socket_file_stays_and_takes_a_new_mode(void **state)
{
    (void)state;
    struct stat before, after;
    net_bench_start(&a, address);
    assert_int_equal(lstat(path, &before), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(leave(), 1);
    net_bench_inherit(&b, buf_span(&parcel), address);
    assert_int_equal(lstat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino && (after.st_mode & 0777) == 0600);
    net_bench_call(&b, do_adopt, NULL);
    int fd = dial(&b);
    say(fd, "x\n");
    expect(fd, "x\n");
}

static void a_listener_that_nobody_wants_is_closed_with_its_file(void **state)
{
    (void)state;
    net_bench_start(&a, address);
    assert_int_equal(leave(), 1);
    assert_true(is_there());
    take_over("tcp://127.0.0.1:0");
    assert_false(is_there());
}

/* Somebody has removed the file: nobody could connect any more. */
static void a_listener_whose_file_is_gone_is_made_anew(void **state)
{
    (void)state;
    net_bench_start(&a, address);
    assert_int_equal(leave(), 1);
    assert_int_equal(unlink(path), 0);
    take_over(address);
    assert_true(is_there());
    int fd = dial(&b);
    say(fd, "x\n");
    expect(fd, "x\n");
}

static void a_rehearsal_listens_only_where_nobody_does(void **state)
{
    (void)state;
    struct err e;
    enum parcel_purpose purpose = PARCEL_REHEARSE;
    char bound[160];
    net_bench_start(&a, address);
    net_bench_call(&a, do_pack, &purpose);
    assert_int_equal(net_new(&b.conf, &b.net, &e), ERR_OK);
    net_inherit(b.net, buf_span(&parcel));
    assert_int_equal(net_listen(b.net, span_str(address), &b.door, &b.svc, bound, sizeof bound, &e),
                     ERR_OK);
    assert_string_equal(bound, address);
    net_free(b.net);
    b.net = NULL;
    assert_true(is_there());
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
}

/* Descriptors that were not left to this process: its own, closed ones, and of another kind. */
static void what_was_not_left_is_not_taken(void **state)
{
    (void)state;
    int own = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), pipes[2];
    assert_int_equal(pipe(pipes), 0);
    const int fds[] = {own, pipes[0], 0, 1, 2, -1, 900};
    struct net_service *svc = &b.svc;
    char session[64] = {0};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        size_t at = parcel_begin(&parcel, PARCEL_CONNECTION, fds[i]);
        parcel_put_bytes(&parcel, SPAN("toy"));
        for (int k = 0; k < 5; k++)
            parcel_put_u64(&parcel, 0);
        parcel_put_bytes(&parcel, span_of(session, b.svc.session_size));
        parcel_end(&parcel, at);
    }
    net_bench_inherit(&b, buf_span(&parcel), NULL);
    net_bench_call(&b, do_adopt, NULL);
    (void)svc;
    assert_int_equal(taken, 0);
    assert_true(fcntl(own, F_GETFD) >= 0 && fcntl(2, F_GETFD) >= 0);
    assert_true(fcntl(pipes[0], F_GETFD) < 0); /* it was left, to nobody */
    (void)close(own);
    (void)close(pipes[1]);
}

/* ---- with a server behind ----------------------------------------------------------------------
 *
 *   up TEXT     TEXT goes there on a link of the client's own, and one line comes back
 *   share TEXT  the same on a link that all share
 */

static int server = -1; /* listens */
static char server_address[64];
static struct net_step (*plain)(struct net_service *, void *, struct span, struct net_turn *,
                                struct buf *);

static struct net_step through(struct net_service *svc, void *session, struct span in,
                               struct net_turn *turn, struct buf *out)
{
    const struct net_step behind = {.verdict = NET_BEHIND};
    bool own = span_starts(in, SPAN("up ")), shared = span_starts(in, SPAN("share "));
    const char *end = in.n ? memchr(in.p, '\n', in.n) : NULL;
    if (!end || (!own && !shared))
        return end && upstream_pending(turn) > 0 ? behind : plain(svc, session, in, turn, out);
    size_t skip = own ? 3 : 6, used = (size_t)(end - in.p) + 1;
    enum upstream_ready is = upstream_ready(turn, own ? UPSTREAM_OWN : UPSTREAM_TEXT);
    if (is == UPSTREAM_BUSY)
        return behind;
    if (is == UPSTREAM_DOWN)
        return (struct net_step){.verdict = NET_CLOSE, .used = used};
    upstream_send(turn, span_of(in.p + skip, used - skip));
    upstream_expect(turn, FRAME_MC_LINE, 1, 0);
    return (struct net_step){.verdict = NET_DONE, .used = used, .passed = true};
}

static void open_server(void)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof in;
    server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&in, sizeof in), 0);
    assert_int_equal(listen(server, 8), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&in, &n), 0);
    (void)snprintf(server_address, sizeof server_address, "tcp://127.0.0.1:%u", ntohs(in.sin_port));
}

static int begin_behind(void **state)
{
    int r = begin(state);
    open_server();
    plain = a.svc.serve;
    a.svc.serve = b.svc.serve = through;
    a.svc.frame = b.svc.frame = frame_memcached;
    return r;
}

static int end_behind(void **state)
{
    (void)close(server);
    return end(state);
}

static void do_upstream(struct net_bench *n, void *arg)
{
    struct err e;
    struct upstream_config c = {
        .address = span_str(arg), .timeout_us = 30000000, .buffer = 1 << 16};
    assert_int_equal(upstream_new(n->net, &n->svc, &c, &e), ERR_OK);
}

static void do_rest(struct net_bench *n, void *arg)
{
    upstreams_rest(n->net, *(bool *)arg);
}

/* As take_over, with a server behind. */
static void take_over_behind(void)
{
    net_bench_inherit(&b, buf_span(&parcel), NULL);
    net_bench_call(&b, do_upstream, server_address);
    net_bench_call(&b, do_adopt, NULL);
    net_bench_stop(&a);
}

static int accepted(void)
{
    int fd = accept(server, NULL, NULL);
    assert_true(fd >= 0);
    return fd;
}

static void a_link_goes_over_with_what_is_expected(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int idle = dial(&a), waiting = dial(&a);
    say(idle, "up hello\n");
    int first = accepted();
    expect(first, "hello\n");
    say(first, "there\r\n");
    expect(idle, "there\r\n");
    say(waiting, "up one\nup two\nlocal\n");
    int second = accepted();
    expect(second, "one\ntwo\n");
    assert_int_equal(leave(), 5);
    assert_int_equal(lost, 0);
    take_over_behind();
    assert_int_equal(taken, 2);
    say(second, "1\r\n2\r\n");
    expect(waiting, "1\r\n2\r\nlocal\n");
    say(idle, "up again\n");
    expect(first, "again\n");
    say(first, "yes\r\n");
    expect(idle, "yes\r\n");
    (void)close(idle);
    expect_end(first);
    (void)close(second);
    expect_end(waiting);
}

static void half_a_reply_is_not_carried(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up one\nlocal\n");
    int link = accepted();
    expect(link, "one\n");
    say(link, "hal");
    for (int left = 3000; lost == 0 && left > 0; left--) { /* in the kernel it would be carried */
        (void)poll(NULL, 0, 10);
        parcel.n = 0;
        (void)leave();
    }
    assert_int_equal(lost, 1);
    say(link, "f\r\n");
    expect(fd, "half\r\nlocal\n");
}

static void a_link_to_another_server_is_closed_with_its_client(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a), old = server;
    say(fd, "up one\n");
    int link = accepted();
    expect(link, "one\n");
    assert_int_equal(leave(), 3);
    open_server();
    take_over_behind();
    assert_int_equal(taken, 0);
    expect_end(fd);
    expect_end(link);
    (void)close(old);
}

/* The last record is of a link, and ends with how many replies of which kind are expected how. */
static void a_reply_that_cannot_be_carried_is_not_taken(void **state)
{
    const uint64_t line = FRAME_MC_LINE, merge = FRAME_MC_MERGE;
    (void)state;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int fd = dial(&a);
    say(fd, "up one\n");
    int link = accepted();
    expect(link, "one\n");
    assert_int_equal(leave(), 3);
    char *kind = mem + parcel.n - 24; /* and behind it flags and acknowledgements */
    assert_memory_equal(kind, &line, sizeof line);
    memcpy(kind, &merge, sizeof merge);
    take_over_behind();
    assert_int_equal(taken, 0);
    expect_end(fd);
    expect_end(link);
}

/* What is pending is answered, the rest waits; should the next program fail, it goes on. */
static void at_rest_nothing_is_forwarded(void **state)
{
    (void)state;
    bool rest = true;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    int one = dial(&a), two = dial(&a), local = dial(&a);
    say(one, "share one\n");
    int link = accepted();
    expect(link, "one\n");
    net_bench_call(&a, do_rest, &rest);
    say(one, "share more\n");
    say(two, "share two\nlocal\n");
    say(local, "id\n");
    expect(local, "id\n");
    expect_silence(link, 50);
    assert_int_equal(leave(), 3);
    assert_int_equal(lost, 1);
    say(link, "1\r\n");
    expect(one, "1\r\n");
    expect_silence(link, 50);
    parcel.n = 0;
    assert_int_equal(leave(), 4);
    assert_int_equal(lost, 0);
    rest = false;
    net_bench_call(&a, do_rest, &rest);
    char got[9] = "";
    for (size_t n = 0; n < 9;) {
        ssize_t r = read(link, got + n, sizeof got - n);
        assert_true(r > 0);
        n += (size_t)r;
    }
    assert_true(memcmp(got, "two\nmore\n", 9) == 0 || memcmp(got, "more\ntwo\n", 9) == 0);
    say(link, "1\r\n1\r\n");
    expect(one, "1\r\n");
    expect(two, "1\r\nlocal\n");
}

/* What waited goes over as input, and is forwarded by the next program. */
static void what_rests_is_carried(void **state)
{
    (void)state;
    bool rest = true;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_upstream, server_address);
    net_bench_call(&a, do_rest, &rest);
    int fd = dial(&a);
    say(fd, "share one\nlocal\nup two\n");
    NET_AWAIT(net_bench_bytes_in(&a) > 0);
    assert_int_equal(leave(), 2);
    assert_int_equal(lost, 0);
    take_over_behind();
    int link = accepted();
    expect(link, "one\n");
    say(link, "1\r\n");
    expect(fd, "1\r\nlocal\n");
    int own = accepted();
    expect(own, "two\n");
    say(own, "2\r\n");
    expect(fd, "2\r\n");
}

#define BEHIND(f) cmocka_unit_test_setup_teardown(f, begin_behind, end_behind)
#define CARRY(f)  cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CARRY(connections_go_on_where_they_were),
        CARRY(output_not_sent_yet_goes_over),
        CARRY(a_connection_that_cannot_be_carried_is_told_apart),
        CARRY(a_parcel_too_small_leaves_connections_out),
        CARRY(a_socket_file_stays_and_takes_a_new_mode),
        CARRY(a_listener_that_nobody_wants_is_closed_with_its_file),
        CARRY(a_listener_whose_file_is_gone_is_made_anew),
        CARRY(a_rehearsal_listens_only_where_nobody_does),
        CARRY(what_was_not_left_is_not_taken),
        BEHIND(a_link_goes_over_with_what_is_expected),
        BEHIND(half_a_reply_is_not_carried),
        BEHIND(a_link_to_another_server_is_closed_with_its_client),
        BEHIND(a_reply_that_cannot_be_carried_is_not_taken),
        BEHIND(at_rest_nothing_is_forwarded),
        BEHIND(what_rests_is_carried),
    };
    return cmocka_run_group_tests_name("net/carry", tests, NULL, NULL);
}
