/* Listeners and connections that go from one loop to another, as from one program to the next. */
#include "net/private.h"
#include "unit/net/carry_rig.h"

#include <sys/un.h>

static void do_see_what_is_left(struct net_bench *n, void *arg)
{
    *(size_t *)arg = n->net->left.n;
}

static void connections_go_on_where_they_were(void **state)
{
    (void)state;
    size_t left = 1;
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
    assert_int_equal(not_taken, 0);
    net_bench_call(&b, do_see_what_is_left, &left);
    assert_int_equal(left, 0); /* for who listens later */
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

/* Returns where what came by the door with tag 7 goes on: 0, or the tag there. */
static uint8_t goes_on_by(uint8_t tag, int *fd)
{
    a.door.tag = 7;
    b.door.tag = tag;
    net_bench_start(&a, NULL);
    *fd = dial(&a);
    say(*fd, "x\n");
    expect(*fd, "x\n");
    parcel.n = 0;
    assert_int_equal(leave(), 2);
    b.tag = 0;
    take_over(NULL);
    return taken ? b.tag : 0;
}

/* What a client may do hangs on its door, which may be another by now. */
static void who_came_by_a_door_that_is_gone_is_closed(void **state)
{
    (void)state;
    int fd;
    assert_int_equal(goes_on_by(8, &fd), 0);
    assert_int_equal(b.tag, 0);
    expect_end(fd);
    (void)close(fd);
}

/* So may who is let in by it. */
static void who_may_not_come_by_it_any_more_is_closed(void **state)
{
    (void)state;
    uint32_t own = getuid(), other = own + 1;
    a.door.uids = &own;
    b.door.uids = &other;
    a.door.nuids = b.door.nuids = 1;
    net_bench_start(&a, address);
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    assert_int_equal(leave(), 2);
    take_over(address);
    assert_int_equal(taken, 0);
    expect_end(fd);
    (void)close(fd);
}

static void who_came_by_a_door_goes_on_by_it(void **state)
{
    (void)state;
    int fd;
    assert_int_equal(goes_on_by(7, &fd), 7);
    (void)close(fd);
}

/* What the kernel did not take, and a close that is to follow it. */
static void output_not_sent_yet_goes_over(void **state)
{
    (void)state;
    static char big[400001];
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
    for (int i = 0; i < 8; i++)
        assert_int_equal(recv(slow, big, sizeof big, MSG_WAITALL), sizeof big);
    expect(slow, "bye\n");
    expect_end(slow);
}

static void do_have_little_room(struct net_bench *n, void *arg)
{
    const int few = 4096;
    const struct conn *c = CONTAINER(n->net->all.next, struct conn, all);
    (void)arg;
    assert_int_equal(setsockopt(c->rd.fd, SOL_SOCKET, SO_SNDBUF, &few, sizeof few), 0);
}

/* Of the output of one turn, that closes: what the kernel did not take is written first. */
static void a_close_that_waits_for_its_output_goes_over(void **state)
{
    (void)state;
    static char got[20001];
    net_bench_start(&a, address);
    int slow = dial(&a);
    say(slow, "x\n");
    expect(slow, "x\n");
    net_bench_call(&a, do_have_little_room, NULL);
    say(slow, "big 20000\nclose\n");
    NET_AWAIT(net_bench_bytes_in(&a) == strlen("x\nbig 20000\nclose\n"));
    assert_int_equal(leave(), 2);
    assert_int_equal(lost, 0);
    take_over(address);
    assert_int_equal(recv(slow, got, sizeof got, MSG_WAITALL), sizeof got);
    expect(slow, "bye\n");
    expect_end(slow);
    (void)close(slow);
}

static void do_have_descriptors_come(struct net_bench *n, void *arg)
{
    (void)arg;
    n->net->fds_come = true;
}

/* More than a turn takes: of who sends all before it takes the first reply. */
static void what_was_heard_goes_over(void **state)
{
    (void)state;
    static char big[400001], line[8002], back[sizeof line];
    memset(line, 'x', 8000);
    line[8000] = '\n';
    net_bench_start(&a, address);
    int fd = dial(&a);
    say(fd, "big 400000\n");
    net_bench_call(&a, do_have_descriptors_come, NULL);
    for (int i = 0; i < 199; i++)
        say(fd, line);
    NET_AWAIT(net_bench_bytes_in(&a) > 3 * NET_IN_MAX);
    (void)leave();
    say(fd, line); /* and what was not */
    assert_int_equal(lost, 0);
    take_over(address);
    assert_int_equal(taken, 1);
    assert_int_equal(recv(fd, big, sizeof big, MSG_WAITALL), sizeof big);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(recv(fd, back, 8001, MSG_WAITALL), 8001);
        assert_string_equal(back, line);
    }
    (void)close(fd);
}

/* However few of them the program before let wait. */
static void an_inherited_listener_has_room_for_a_crowd(void **state)
{
    int fds[8];
    struct parcel_record r;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)state;
    net_bench_start(&a, address);
    assert_int_equal(leave(), 1);
    struct span in = buf_span(&parcel);
    assert_true(parcel_next(&in, &r));
    assert_int_equal(listen(r.fd, 1), 0);
    net_bench_inherit(&b, buf_span(&parcel), address);
    net_bench_halt(&b, NULL, NULL); /* nobody is accepted */
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&un, sizeof un), 0);
    }
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        (void)close(fds[i]);
}

static void do_count_stuck(struct net_bench *n, void *stuck)
{
    *(uint64_t *)stuck = net_stuck(n->net);
}

static uint64_t count_stuck(void)
{
    uint64_t stuck = 99;
    net_bench_call(&a, do_count_stuck, &stuck);
    return stuck;
}

static void a_connection_that_cannot_be_carried_is_told_apart(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    assert_int_equal(count_stuck(), 0);
    carries = false;
    assert_int_equal(count_stuck(), 1);
    assert_int_equal(leave(), 1);
    assert_int_equal(lost, 1);
    take_over(NULL);
    assert_int_equal(taken, 0);
    expect_end(fd);
}

/* As execve would close it as the kernel does, with the descriptors that are unread on it. */
static void where_descriptors_come_the_next_program_closes_it(void **state)
{
    (void)state;
    struct parcel_record r = {.fd = -1};
    net_bench_start(&a, address);
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    net_bench_call(&a, do_have_descriptors_come, NULL);
    carries = false;
    assert_int_equal(leave(), 2);
    assert_int_equal(lost, 1);
    for (struct span in = buf_span(&parcel); parcel_next(&in, &r);)
        continue;
    assert_true(fcntl(r.fd, F_GETFD) >= 0);
    take_over(address);
    assert_true(taken == 0 && not_taken == 0);
    assert_int_equal(fcntl(r.fd, F_GETFD), -1);
    expect_end(fd);
    (void)close(fd);
}

#define SO_PASSRIGHTS 83 /* asm-generic/socket.h of Linux 6.16 */

/* As the program before does not know it. */
static void do_let_descriptors_come(struct net_bench *n, void *arg)
{
    const int on = 1;
    const struct conn *c = CONTAINER(n->net->all.next, struct conn, all);
    *(bool *)arg = setsockopt(c->rd.fd, SOL_SOCKET, SO_PASSRIGHTS, &on, sizeof on) == 0;
}

static void do_see_whether_they_come(struct net_bench *n, void *arg)
{
    int *on = arg;
    socklen_t size = sizeof *on;
    const struct conn *c = CONTAINER(n->net->all.next, struct conn, all);
    assert_int_equal(getsockopt(c->rd.fd, SOL_SOCKET, SO_PASSRIGHTS, on, &size), 0);
}

static void what_is_taken_over_is_sent_no_descriptors_any_more(void **state)
{
    (void)state;
    bool can;
    int on = 1;
    net_bench_start(&a, address);
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    net_bench_call(&a, do_let_descriptors_come, &can);
    if (!can)
        skip();
    assert_int_equal(leave(), 2);
    take_over(address);
    assert_int_equal(taken, 1);
    net_bench_call(&b, do_see_whether_they_come, &on);
    assert_int_equal(on, 0);
    (void)close(fd);
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

/* Not even that it could not be carried: the others are, all the same. */
static void a_parcel_without_any_room_is_a_good_one(void **state)
{
    (void)state;
    enum parcel_purpose purpose = PARCEL_REHEARSE;
    net_bench_start(&a, NULL);
    net_bench_call(&a, do_pack, &purpose);
    parcel.cap = parcel.n + 8;
    parcel.n = 0;
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    net_bench_call(&a, do_have_descriptors_come, NULL);
    assert_int_equal(leave(), 1);
    assert_int_equal(lost, 1);
    (void)close(fd);
}

/* However much is kept for it: the first has just as much as those have who come first. */
static void a_connection_is_carried_once(void **state)
{
    (void)state;
    char much[8001] = "";
    net_bench_start(&a, NULL);
    int fds[] = {dial(&a), dial(&a)};
    say(fds[0], memset(much, 'x', 4096));
    say(fds[1], memset(much, 'x', 8000));
    NET_AWAIT(net_bench_bytes_in(&a) == 4096 + 8000);
    assert_int_equal(leave(), 3);
    assert_int_equal(lost, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void do_have_no_descriptors_come(struct net_bench *n, void *arg)
{
    (void)arg;
    n->net->fds_come = false;
}

/* Of the records one does not fit: that of who has said so much, and taken nothing. */
static void who_keeps_little_has_room_before(const char *much)
{
    net_bench_start(&a, address); /* a socket that keeps little */
    net_bench_call(&a, do_have_no_descriptors_come, NULL);
    int large = dial(&a);
    say(large, much);
    NET_AWAIT(net_bench_bytes_in(&a) == strlen(much));
    int small = dial(&a);
    say(small, "wor");
    NET_AWAIT(net_bench_bytes_in(&a) == strlen(much) + 3);
    enum parcel_purpose purpose = PARCEL_TAKE;
    net_bench_call(&a, do_pack, &purpose);
    assert_int_equal(lost, 0);
    parcel.cap = parcel.n - 1;
    parcel.n = 0;
    assert_int_equal(count_stuck(), 0); /* to wait would not help */
    assert_int_equal(leave(), 2);
    assert_int_equal(lost, 1);
    take_over(address);
    assert_int_equal(taken, 1);
    say(small, "ld\n");
    expect(small, "world\n");
    (void)close(small);
    (void)close(large);
}

static void who_has_said_little_has_room_before_who_has_said_much(void **state)
{
    char much[8001] = "";
    (void)state;
    who_keeps_little_has_room_before(memset(much, 'x', 8000));
}

static void who_has_taken_all_has_room_before_who_has_not(void **state)
{
    (void)state;
    who_keeps_little_has_room_before("big 400000\nbig 400000\nbig 400000\n");
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
    net_bench_inherit(&b, buf_span(&parcel), "tcp://127.0.0.1:0");
    net_bench_call(&b, do_adopt, NULL);
    assert_false(is_there());
    net_bench_stop(&a);
}

static void leave_listener(uint64_t dev, uint64_t ino)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    size_t at = parcel_begin(&parcel, PARCEL_LISTENER, fd);
    parcel_put_bytes(&parcel, SPAN("toy"));
    parcel_put_bytes(&parcel, span_str(address));
    parcel_put_bytes(&parcel, span_str(path));
    parcel_put_u64(&parcel, dev);
    parcel_put_u64(&parcel, ino);
    parcel_end(&parcel, at);
}

/* Equal numbers on two file systems are two files. */
static void a_file_that_is_another_stays(void **state)
{
    (void)state;
    struct stat st;
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(fstat(fd, &st), 0);
    leave_listener(st.st_dev + 1, st.st_ino);
    leave_listener(st.st_dev, st.st_ino + 1);
    net_bench_inherit(&b, buf_span(&parcel), NULL);
    net_bench_call(&b, do_adopt, NULL);
    assert_true(is_there());
    (void)close(fd);
}

/* Who connects meanwhile waits there. */
static void a_listener_without_a_file_is_taken(void **state)
{
    (void)state;
    net_bench_start(&a, NULL);
    assert_int_equal(leave(), 1);
    int fd = dial(&a);
    say(fd, "x\n");
    take_over(NULL);
    expect(fd, "x\n");
    (void)close(fd);
}

/* Who waits there speaks that one's protocol. */
static void a_listener_of_another_service_is_not_taken(void **state)
{
    (void)state;
    struct parcel_record r;
    net_bench_start(&a, NULL);
    assert_int_equal(leave(), 1);
    int fd = dial(&a);
    b.svc.name = "other";
    take_over(NULL);
    expect_end(fd);
    struct span in = buf_span(&parcel);
    assert_true(parcel_next(&in, &r));
    assert_int_equal(fcntl(r.fd, F_GETFD), -1);
    (void)close(fd);
}

/* By its address, not by its service alone. */
static void a_listener_is_taken_for_no_other(void **state)
{
    (void)state;
    struct stat st;
    char other[112], where[128];
    (void)snprintf(other, sizeof other, "%s/t", dir);
    (void)snprintf(where, sizeof where, "unix://%s", other);
    net_bench_start(&a, address);
    assert_int_equal(leave(), 1);
    take_over(where);
    assert_false(is_there());
    assert_int_equal(lstat(other, &st), 0);
    int fd = dial(&b);
    say(fd, "x\n");
    expect(fd, "x\n");
    (void)close(fd);
    net_bench_stop(&b);
    (void)unlink(other);
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
    struct parcel_record r;
    net_bench_start(&a, address);
    int fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    net_bench_call(&a, do_pack, &purpose);
    struct span in = buf_span(&parcel);
    assert_true(parcel_next(&in, &r) && !parcel_next(&in, &r)); /* connections stay */
    assert_int_equal(net_new(&b.conf, &b.net, &e), ERR_OK);
    net_inherit(b.net, buf_span(&parcel));
    assert_int_equal(net_listen(b.net, span_str(address), &b.door, &b.svc, bound, sizeof bound, &e),
                     ERR_OK);
    assert_string_equal(bound, address);
    net_free(b.net);
    b.net = NULL;
    assert_true(is_there());
    (void)close(fd);
    fd = dial(&a);
    say(fd, "x\n");
    expect(fd, "x\n");
    (void)close(fd);
}

/* A connection that is left with n bytes 'y' of output, the last held of which belong to a reply
 * that is not whole. Returns the client's end. */
static int leave_one(size_t n, size_t held)
{
    int ends[2];
    char session[64] = {0}, *out = malloc(n);
    assert_non_null(out);
    memset(out, 'y', n);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(fcntl(ends[1], F_SETFD, FD_CLOEXEC), 0);
    size_t at = parcel_begin(&parcel, PARCEL_CONNECTION, ends[0]);
    parcel_put_bytes(&parcel, SPAN("toy"));
    parcel_put_u64(&parcel, 0);
    parcel_put_u64(&parcel, held);
    parcel_put_u64(&parcel, 0);
    parcel_put_bytes(&parcel, SPAN("next\n"));
    parcel_put_bytes(&parcel, span_of(out, n));
    parcel_put_bytes(&parcel, span_of(session, b.svc.session_size));
    parcel_end(&parcel, at);
    free(out);
    return ends[1];
}

/* As a client's that takes a long reply slowly, which is all here: upstream.buffer may be more than
 * a turn can write. */
static void output_of_any_size_is_taken_over(void **state)
{
    (void)state;
    static char got[3 * NET_OUT_MAX];
    size_t n = 0;
    int slow = leave_one(sizeof got, 0), held = leave_one(NET_OUT_MAX + 1, NET_OUT_MAX + 1);
    int more = leave_one(5, 6); /* than there is */
    assert_false(parcel.failed);
    net_bench_inherit(&b, buf_span(&parcel), address);
    net_bench_call(&b, do_adopt, NULL);
    assert_int_equal(taken, 1);
    assert_int_equal(not_taken, 2);
    while (n < sizeof got) {
        ssize_t r = read(slow, got + n, sizeof got - n);
        assert_true(r > 0);
        n += (size_t)r;
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(got[i], 'y');
    expect(slow, "next\n");
    expect_end(held); /* no turn could have left that */
    expect_end(more);
    (void)close(slow);
    (void)close(held);
    (void)close(more);
}

static bool unpack_nothing(struct net_service *svc, void *session, struct span packed)
{
    (void)svc, (void)session, (void)packed;
    return false;
}

static void is_closed(void)
{
    int fd = leave_one(0, 0);
    net_bench_inherit(&b, buf_span(&parcel), address);
    net_bench_call(&b, do_adopt, NULL);
    assert_int_equal(taken, 0);
    assert_int_equal(not_taken, 1);
    expect_end(fd);
    (void)close(fd);
}

static void whose_session_cannot_be_had_is_closed(void **state)
{
    (void)state;
    b.svc.unpack = unpack_nothing;
    is_closed();
}

/* The address is another service's by now, or the record none of ours. */
static void who_comes_to_a_service_that_takes_nobody_over_is_closed(void **state)
{
    (void)state;
    b.svc.unpack = NULL;
    is_closed();
}

/* Descriptors that were not left to this process: its own, closed ones, and of another kind. */
static void what_was_not_left_is_not_taken(void **state)
{
    (void)state;
    const struct sockaddr_un any = {.sun_family = AF_UNIX};
    int own[2], packets[2], pipes[2], listens = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, own), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, packets), 0);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(bind(listens, (const struct sockaddr *)&any, sizeof any.sun_family), 0);
    assert_int_equal(listen(listens, 1), 0);
    const int fds[] = {own[0], packets[0], pipes[0], listens, 0, 1, 2, -1, 900};
    char session[64] = {0};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++) {
        size_t at = parcel_begin(&parcel, PARCEL_CONNECTION, fds[i]);
        parcel_put_bytes(&parcel, SPAN("toy"));
        for (int k = 0; k < 5; k++) /* the third is the door's tag: these may be sockets */
            parcel_put_u64(&parcel, k == 2 && fds[i] <= STDERR_FILENO ? 9 : 0);
        parcel_put_bytes(&parcel, span_of(session, b.svc.session_size));
        parcel_end(&parcel, at);
    }
    net_bench_inherit(&b, buf_span(&parcel), address);
    net_bench_call(&b, do_adopt, NULL);
    assert_int_equal(taken, 0);
    assert_true(fcntl(own[0], F_GETFD) >= 0 && fcntl(STDERR_FILENO, F_GETFD) >= 0);
    assert_true(fcntl(pipes[0], F_GETFD) < 0); /* it was left, to nobody */
    (void)close(own[0]);
    (void)close(own[1]);
    (void)close(packets[1]);
    (void)close(pipes[1]);
}

#define CARRY(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CARRY(connections_go_on_where_they_were),
        CARRY(who_came_by_a_door_that_is_gone_is_closed),
        CARRY(who_may_not_come_by_it_any_more_is_closed),
        CARRY(who_came_by_a_door_goes_on_by_it),
        CARRY(output_not_sent_yet_goes_over),
        CARRY(a_close_that_waits_for_its_output_goes_over),
        CARRY(what_was_heard_goes_over),
        CARRY(a_connection_that_cannot_be_carried_is_told_apart),
        CARRY(where_descriptors_come_the_next_program_closes_it),
        CARRY(what_is_taken_over_is_sent_no_descriptors_any_more),
        CARRY(a_parcel_too_small_leaves_connections_out),
        CARRY(a_parcel_without_any_room_is_a_good_one),
        CARRY(a_connection_is_carried_once),
        CARRY(who_has_said_little_has_room_before_who_has_said_much),
        CARRY(who_has_taken_all_has_room_before_who_has_not),
        CARRY(a_socket_file_stays_and_takes_a_new_mode),
        CARRY(an_inherited_listener_has_room_for_a_crowd),
        CARRY(a_listener_that_nobody_wants_is_closed_with_its_file),
        CARRY(a_file_that_is_another_stays),
        CARRY(a_listener_without_a_file_is_taken),
        CARRY(a_listener_of_another_service_is_not_taken),
        CARRY(a_listener_is_taken_for_no_other),
        CARRY(a_listener_whose_file_is_gone_is_made_anew),
        CARRY(a_rehearsal_listens_only_where_nobody_does),
        CARRY(output_of_any_size_is_taken_over),
        CARRY(whose_session_cannot_be_had_is_closed),
        CARRY(who_comes_to_a_service_that_takes_nobody_over_is_closed),
        CARRY(what_was_not_left_is_not_taken),
    };
    return cmocka_run_group_tests_name("net/carry", tests, NULL, NULL);
}
