/* Descriptors that a client sends along. */
#include "net/passed_fd.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LINGER_S 20

static struct {
    int ours, theirs; /* a unix connection */
    int peer;         /* of a TCP connection that reads nothing */
} at;

static int pair_up(void **state)
{
    (void)state;
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    at.ours = fd[0];
    at.theirs = fd[1];
    at.peer = -1;
    return 0;
}

static int let_go(void **state)
{
    (void)state;
    (void)close(at.theirs);
    if (at.peer >= 0)
        (void)close(at.peer);
    return 0;
}

/* A socket whose last close waits for LINGER_S. */
static int lingering(void)
{
    static const char bytes[1 << 16];
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof to;
    struct linger wait = {.l_onoff = 1, .l_linger = LINGER_S};
    int server = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server, (struct sockaddr *)&to, n), 0);
    assert_int_equal(listen(server, 1), 0);
    assert_int_equal(getsockname(server, (struct sockaddr *)&to, &n), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    at.peer = accept(server, NULL, NULL);
    (void)close(server);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        ;
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &wait, sizeof wait), 0);
    return fd;
}

/* The result of sendmsg: one byte, and the descriptor n times, which is closed here then. */
static ssize_t send_along(int fd, size_t n)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(253 * sizeof fd)];
    } control = {0};
    char byte = 'x';
    struct iovec io = {.iov_base = &byte, .iov_len = 1};
    struct msghdr m = {.msg_iov = &io,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_SPACE(n * sizeof fd)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof fd)};
    for (size_t i = 0; i < n; i++)
        memcpy(CMSG_DATA(c) + i * sizeof fd, &fd, sizeof fd);
    ssize_t r = sendmsg(at.theirs, &m, 0);
    int why = errno;
    if (r > 0)
        (void)close(fd);
    errno = why;
    return r;
}

/* The lowest that is free: whatever is left open moves it. */
static int next_fd(void)
{
    int fd = dup(at.theirs);
    (void)close(fd);
    return fd;
}

static bool waited(int64_t since_us)
{
    return clock_mono_us(clock_system()) - since_us > (int64_t)LINGER_S * 1000000 / 2;
}

static void they_are_closed_at_once(void **state)
{
    (void)state;
    char got[8];
    assert_int_equal(send_along(lingering(), 253), 1);
    int free_fd = next_fd();
    int64_t since = clock_mono_us(clock_system());
    assert_int_equal(passed_fd_recv(at.ours, got, sizeof got), -1);
    assert_int_equal(errno, EPROTO);
    assert_false(waited(since));
    assert_int_equal(next_fd(), free_fd);
    passed_fd_close(at.ours);
}

static void unread_ones_too(void **state)
{
    (void)state;
    assert_int_equal(send(at.theirs, "QUIT\r\n", 6, 0), 6);
    assert_int_equal(send_along(open("/dev/null", O_RDONLY), 1),
                     1); /* behind it there may be more */
    assert_int_equal(send_along(lingering(), 1), 1);
    int64_t since = clock_mono_us(clock_system());
    passed_fd_close(at.ours);
    assert_false(waited(since));
}

static void other_files_are_closed_too(void **state)
{
    (void)state;
    char got[8];
    int fd = open("/dev/null", O_RDONLY);
    assert_int_equal(send_along(fd, 1), 1);
    assert_int_equal(passed_fd_recv(at.ours, got, sizeof got), -1);
    assert_int_equal(next_fd(), fd);
    passed_fd_close(at.ours);
}

static void bytes_alone_are_read_as_by_recv(void **state)
{
    (void)state;
    char got[8];
    assert_int_equal(passed_fd_recv(at.ours, got, sizeof got), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(send(at.theirs, "PING\r\n", 6, 0), 6);
    assert_int_equal(passed_fd_recv(at.ours, got, sizeof got), 6);
    assert_memory_equal(got, "PING\r\n", 6);
    assert_int_equal(shutdown(at.theirs, SHUT_WR), 0);
    assert_int_equal(passed_fd_recv(at.ours, got, sizeof got), 0);
    passed_fd_close(at.ours);
}

static void where_the_kernel_can_it_refuses_them(void **state)
{
    (void)state;
    int fd = open("/dev/null", O_RDONLY);
    bool can = passed_fd_refuse(at.ours);
    ssize_t sent = send_along(fd, 1);
    int why = errno;
    if (sent < 0)
        (void)close(fd);
    passed_fd_close(at.ours);
    if (!can)
        skip();
    assert_int_equal(sent, -1);
    assert_int_equal(why, EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_are_closed_at_once, pair_up, let_go),
        cmocka_unit_test_setup_teardown(unread_ones_too, pair_up, let_go),
        cmocka_unit_test_setup_teardown(other_files_are_closed_too, pair_up, let_go),
        cmocka_unit_test_setup_teardown(bytes_alone_are_read_as_by_recv, pair_up, let_go),
        cmocka_unit_test_setup_teardown(where_the_kernel_can_it_refuses_them, pair_up, let_go),
    };
    return cmocka_run_group_tests_name("net/test_passed_fd", tests, NULL, NULL);
}
