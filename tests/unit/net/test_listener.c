/* Listening: on TCP, on socket files of all kinds, with many connections and few descriptors. */
#include "support/capture.h"
#include "support/net_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct net_bench b;
static char dir[64], path[96], address[112];

static int begin(void **state)
{
    (void)state;
    net_bench_init(&b);
    (void)snprintf(dir, sizeof dir, "/tmp/sidflake-net-XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/s", dir);
    (void)snprintf(address, sizeof address, "unix://%s", path);
    return 0;
}

static int end(void **state)
{
    (void)state;
    net_bench_stop(&b);
    (void)unlink(path);
    return rmdir(dir);
}

static enum err_code listen_again(const char *where, struct err *e)
{
    struct net *n;
    struct net_service svc = b.svc;
    assert_int_equal(net_new(&b.conf, &n, e), ERR_OK);
    enum err_code r =
        net_listen(n, span_str(where), &(struct net_door){.mode = 0600}, &svc, NULL, 0, e);
    net_free(n);
    return r;
}

static bool is_there(void)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ---- socket files -----------------------------------------------------------------------------
 */

static void a_socket_file_is_made_and_removed(void **state)
{
    (void)state;
    struct stat st;
    mode_t before = umask(0777); /* the mode is the one asked for, whatever the umask */
    net_bench_start(&b, address);
    (void)umask(before);
    assert_string_equal(b.address, address);
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 0777, 0600);
    int fd = dial(&b);
    say(fd, "hello\n");
    expect(fd, "hello\n");
    (void)close(fd);
    net_bench_stop(&b);
    assert_false(is_there());
}

/* As a killed process leaves it. */
static void leave_a_stale_socket(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    (void)close(fd);
    assert_true(is_there());
}

static void do_find_lost(struct net_bench *n, void *found)
{
    *(const char **)found = net_lost_file(n->net);
}

static const char *lost(void)
{
    const char *found;
    net_bench_call(&b, do_find_lost, &found);
    return found;
}

/* Nobody can come by it, and nothing else would tell. */
static void a_socket_file_that_is_lost_is_told(void **state)
{
    (void)state;
    char other[112];
    net_bench_start(&b, address);
    assert_null(lost());
    (void)snprintf(other, sizeof other, "%s-moved", path);
    assert_int_equal(rename(path, other), 0);
    assert_string_equal(lost(), path);
    leave_a_stale_socket(); /* another's */
    assert_string_equal(lost(), path);
    assert_int_equal(rename(other, path), 0);
    assert_null(lost());
}

static void modes_are_as_asked_for(void **state)
{
    (void)state;
    static const uint32_t modes[] = {0600, 0660, 0666, 0777, 0640};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct net *n;
        struct err e;
        struct stat st;
        assert_int_equal(net_new(&b.conf, &n, &e), ERR_OK);
        assert_int_equal(net_listen(n, span_str(address), &(struct net_door){.mode = modes[i]},
                                    &b.svc, NULL, 0, &e),
                         ERR_OK);
        assert_int_equal(lstat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, modes[i]);
        net_free(n);
    }
}

static void a_stale_socket_file_is_replaced(void **state)
{
    (void)state;
    leave_a_stale_socket();
    net_bench_start(&b, address);
    int fd = dial(&b);
    say(fd, "hello\n");
    expect(fd, "hello\n");
    (void)close(fd);
}

static void a_socket_in_use_is_left_alone(void **state)
{
    (void)state;
    struct err e;
    net_bench_start(&b, address);
    assert_int_equal(listen_again(address, &e), ERR_BUSY);
    assert_non_null(strstr(e.text, path));
    int fd = dial(&b);
    say(fd, "hello\n");
    expect(fd, "hello\n");
    (void)close(fd);
}

/* Binds, and listens a little later; in another process, as a sidecar that starts beside this one.
 * Returns when it has bound, and has the directory's lock. */
static pid_t start_beside(void)
{
    int bound[2];
    char c;
    assert_int_equal(pipe(bound), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un un = {.sun_family = AF_UNIX};
        (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
        int lock = open(dir, O_RDONLY | O_DIRECTORY), fd = socket(AF_UNIX, SOCK_STREAM, 0);
        bool good = flock(lock, LOCK_EX) == 0 && bind(fd, (struct sockaddr *)&un, sizeof un) == 0;
        good = good && write(bound[1], "b", 1) == 1;
        (void)poll(NULL, 0, 20);
        good = good && listen(fd, 1) == 0 && close(lock) == 0;
        (void)poll(NULL, 0, 10000);
        _exit(good ? 0 : 1);
    }
    (void)close(bound[1]);
    assert_int_equal(read(bound[0], &c, 1), 1);
    (void)close(bound[0]);
    return pid;
}

static void who_starts_beside_is_waited_for(void **state)
{
    (void)state;
    struct err e;
    pid_t pid = start_beside();
    enum err_code r = listen_again(address, &e);
    (void)kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(r, ERR_BUSY);
    assert_true(is_there());
}

/* By whoever has a use of his own for it. */
static void a_directory_that_stays_locked_keeps_nobody_out(void **state)
{
    (void)state;
    int lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    leave_a_stale_socket();
    net_bench_start(&b, address);
    (void)close(lock);
    int fd = dial(&b);
    say(fd, "hello\n");
    expect(fd, "hello\n");
    (void)close(fd);
}

/* Nobody may connect to it, so whether anybody listens is not known, and not said. */
static void a_socket_that_may_not_be_asked_is_left_alone(void **state)
{
    (void)state;
    struct err e;
    leave_a_stale_socket();
    assert_int_equal(chmod(path, 0), 0);
    uid_t before = geteuid();
    if (before == 0)
        assert_int_equal(chmod(dir, 0777) | seteuid(65534), 0);
    enum err_code r = listen_again(address, &e);
    assert_int_equal(seteuid(before), 0);
    assert_int_equal(r, ERR_IO);
    assert_non_null(strstr(e.text, "cannot ask whether anybody listens on "));
    assert_non_null(strstr(e.text, "Permission denied"));
    assert_true(is_there());
}

/* Its queue is full: connecting fails, though somebody listens. */
static void a_busy_socket_is_not_taken_for_a_stale_one(void **state)
{
    (void)state;
    struct err e;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    int fd[8], listener = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&un, sizeof un), 0);
    assert_int_equal(listen(listener, 0), 0);
    bool full = false;
    for (int i = 0; i < 8; i++) {
        fd[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        full |= connect(fd[i], (struct sockaddr *)&un, sizeof un) < 0 && errno == EAGAIN;
    }
    assert_true(full);
    assert_int_equal(listen_again(address, &e), ERR_BUSY);
    assert_true(is_there());
    for (int i = 0; i < 8; i++)
        (void)close(fd[i]);
    (void)close(listener);
}

static void another_file_is_left_alone(void **state)
{
    (void)state;
    struct err e;
    char found[8] = "";
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, "data", 4), 4);
    (void)close(fd);
    assert_int_equal(listen_again(address, &e), ERR_EXISTS);
    assert_non_null(strstr(e.text, "expected a socket or nothing, found another file"));
    fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, found, sizeof found), 4);
    assert_memory_equal(found, "data", 4);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(listen_again(address, &e), ERR_EXISTS);
    assert_true(is_there());
}

/* What stands there at the end may be a successor's. */
static void only_its_own_file_is_removed(void **state)
{
    (void)state;
    net_bench_start(&b, address);
    assert_int_equal(unlink(path), 0);
    leave_a_stale_socket();
    net_bench_stop(&b);
    assert_true(is_there());
}

static void what_cannot_be_listened_on_is_told(void **state)
{
    (void)state;
    struct err e;
    net_bench_start(&b, NULL);
    assert_int_equal(listen_again(b.address, &e), ERR_BUSY);
    assert_non_null(strstr(e.text, "Address already in use"));
    assert_int_equal(listen_again("unix:///no/such/dir/s", &e), ERR_IO);
    assert_non_null(strstr(e.text, "/no/such/dir/s: No such file"));
    assert_int_equal(listen_again("tcp://no-such-host.invalid:1", &e), ERR_IO);
    assert_non_null(strstr(e.text, "no-such-host.invalid"));
    assert_int_equal(listen_again("nonsense", &e), ERR_INVALID);
}

/* ---- many connections, few descriptors --------------------------------------------------------
 */

static bool have_descriptors(rlim_t n)
{
    struct rlimit rl;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur < n) {
        rl.rlim_cur = n < rl.rlim_max ? n : rl.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &rl);
    }
    return getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur >= n;
}

/* The loop's end of a connection over TCP. */
static int other_end(int client)
{
    struct sockaddr_in own = {0}, peer = {0};
    socklen_t n = sizeof own;
    assert_int_equal(getsockname(client, (struct sockaddr *)&own, &n), 0);
    for (int fd = 0; fd < 256; fd++) {
        n = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &n) == 0 && peer.sin_family == AF_INET &&
            peer.sin_port == own.sin_port)
            return fd;
    }
    fail_msg("no connection from port %u", ntohs(own.sin_port));
    return -1;
}

/* By keepalive. But one that stands still in the middle of a reply, as in a debugger, is not gone:
 * TCP_USER_TIMEOUT would end it though its kernel answers. */
static void a_client_that_is_gone_is_noticed_and_one_that_pauses_is_not_closed(void **state)
{
    static const struct {
        int level, name, value;
    } expected[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},      {IPPROTO_TCP, TCP_KEEPIDLE, 60},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},   {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 0},
    };
    (void)state;
    net_bench_start(&b, NULL);
    int c = dial(&b);
    say(c, "x\n");
    expect(c, "x\n");
    int there = other_end(c);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        int value = -1;
        socklen_t n = sizeof value;
        assert_int_equal(getsockopt(there, expected[i].level, expected[i].name, &value, &n), 0);
        assert_int_equal(value, expected[i].value);
    }
    (void)close(c);
}

static void a_thousand_connections_are_served(void **state)
{
    (void)state;
    enum {
        N = 1000
    };
    static int fd[N];
    if (!have_descriptors(2 * N + 100)) {
        print_message("skipped: fewer than %d file descriptors are allowed\n", 2 * N + 100);
        skip();
    }
    b.conf.connections = N;
    net_bench_start(&b, NULL);
    for (int i = 0; i < N; i++)
        fd[i] = dial(&b);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++)
            say(fd[i], "hello\nbig 3\n");
        for (int i = 0; i < N; i++)
            expect(fd[i], "hello\nxxx\n");
    }
    assert_int_equal(net_bench_connections(&b), N);
    for (int i = 0; i < N; i++)
        (void)close(fd[i]);
    NET_AWAIT(net_bench_connections(&b) == 0);
}

static int64_t cpu_ms(void)
{
    struct rusage ru;
    (void)getrusage(RUSAGE_SELF, &ru);
    return (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000 +
           (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1000;
}

static int first_free_descriptor(void)
{
    int fd = dup(0);
    (void)close(fd);
    return fd;
}

static void without_descriptors_it_waits_and_does_not_spin(void **state)
{
    (void)state;
    enum {
        N = 8,
        ROOM = 3
    };
    int fd[N];
    struct rlimit before, few;
    net_bench_start(&b, address);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    for (int i = 0; i < N; i++)
        fd[i] = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)first_free_descriptor() + ROOM;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < N; i++) {
        assert_int_equal(connect(fd[i], (struct sockaddr *)&un, sizeof un), 0);
        say(fd[i], "hello\n");
    }
    for (int i = 0; i < ROOM; i++)
        expect(fd[i], "hello\n");
    expect_silence(fd[ROOM], 150);
    int64_t used = cpu_ms();
    expect_silence(fd[ROOM], 600);
    assert_true(cpu_ms() - used < 200);
    say(fd[0], "still served\n");
    expect(fd[0], "still served\n");
    for (int i = 0; i < N; i++) { /* each that goes makes room for one that waits */
        if (i >= ROOM)
            expect(fd[i], "hello\n");
        (void)shutdown(fd[i], SHUT_RDWR);
    }
    NET_AWAIT(net_bench_accepted(&b) == N);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < N; i++)
        (void)close(fd[i]);
}

static void check_let_in(bool in)
{
    int fd = dial(&b);
    ssize_t n = send(fd, "hello\n", 6, MSG_NOSIGNAL); /* it may be closed by now */
    (void)n;
    if (in)
        expect(fd, "hello\n");
    else
        expect_end(fd);
    (void)close(fd);
}

static void who_may_not_connect_is_logged_once_in_a_while(void **state)
{
    (void)state;
    uint32_t other = 4000000000;
    char line[256];
    b.door = (struct net_door){.uids = &other, .nuids = 1, .mode = 0600};
    net_bench_start(&b, address);
    capture_begin();
    check_let_in(false);
    check_let_in(false);
    const char *text = capture_end();
    (void)snprintf(line, sizeof line,
                   "a process is refused by auth.allow_uids and auth.allow_gids protocol=toy "
                   "address=%s peer=\"uid %u pid %ld\"",
                   address, getuid(), (long)getpid());
    const char *at = strstr(text, line);
    if (!at)
        fail_msg("expected %s in\n%s", line, text);
    assert_null(strstr(at + 1, "a process is refused"));
}

static void peers_are_let_in_by_user_and_group(void **state)
{
    (void)state;
    uint32_t user = getuid(), group = getgid(), other = 4000000000;
    const struct {
        struct net_door door;
        bool in;
    } cases[] = {
        {{.uids = &user, .nuids = 1}, true},
        {{.uids = &other, .nuids = 1}, false},
        {{.gids = &group, .ngids = 1}, true},
        {{.gids = &other, .ngids = 1}, false},
        {{.uids = &other, .nuids = 1, .gids = &group, .ngids = 1}, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        net_bench_init(&b);
        b.door = cases[i].door;
        b.door.mode = 0600;
        net_bench_start(&b, address);
        check_let_in(cases[i].in);
        net_bench_stop(&b);
        assert_int_equal(b.svc.refused, !cases[i].in);
    }
    net_bench_init(&b);
    b.door.uids = &other; /* nobody to ask over TCP */
    b.door.nuids = 1;
    net_bench_start(&b, NULL);
    check_let_in(true);
}

static void peers_are_let_in_by_supplementary_group(void **state)
{
    (void)state;
    gid_t own[64];
    uint32_t extra = 12345;
    int n = getgroups(64, own);
    if (geteuid() != 0 || n < 0 || setgroups(1, &extra) != 0)
        skip();
    b.door.gids = &extra;
    b.door.ngids = 1;
    net_bench_start(&b, address);
    check_let_in(true);
    assert_int_equal(setgroups((size_t)n, own), 0);
    check_let_in(false);
}

static void a_session_is_told_its_door(void **state)
{
    (void)state;
    b.door.tag = 7;
    net_bench_start(&b, address);
    int fd = dial(&b);
    say(fd, "hello\n");
    expect(fd, "hello\n");
    assert_int_equal(b.tag, 7);
    (void)close(fd);
}

static unsigned kernel_allows(void)
{
    unsigned n = 0;
    FILE *f = fopen("/proc/sys/net/core/somaxconn", "r");
    if (f) {
        (void)!fscanf(f, "%u", &n);
        (void)fclose(f);
    }
    return n;
}

/* Over TCP, who finds no room among those who wait sends again after a second: a probe, too. */
static void who_comes_in_a_crowd_finds_room_to_wait(void **state)
{
    static int fds[700];
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)state;
    if (kernel_allows() < 700)
        skip();
    net_bench_start(&b, address);
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", path);
    net_bench_halt(&b, NULL, NULL); /* nobody is accepted */
    for (size_t i = 0; i < 700; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&un, sizeof un), 0);
    }
    for (size_t i = 0; i < 700; i++)
        (void)close(fds[i]);
}

#define NET(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        NET(a_socket_file_is_made_and_removed),
        NET(a_socket_file_that_is_lost_is_told),
        NET(modes_are_as_asked_for),
        NET(a_stale_socket_file_is_replaced),
        NET(a_socket_in_use_is_left_alone),
        NET(who_starts_beside_is_waited_for),
        NET(a_directory_that_stays_locked_keeps_nobody_out),
        NET(a_socket_that_may_not_be_asked_is_left_alone),
        NET(a_busy_socket_is_not_taken_for_a_stale_one),
        NET(another_file_is_left_alone),
        NET(only_its_own_file_is_removed),
        NET(what_cannot_be_listened_on_is_told),
        NET(who_may_not_connect_is_logged_once_in_a_while),
        NET(peers_are_let_in_by_user_and_group),
        NET(peers_are_let_in_by_supplementary_group),
        NET(a_session_is_told_its_door),
        NET(a_client_that_is_gone_is_noticed_and_one_that_pauses_is_not_closed),
        NET(a_thousand_connections_are_served),
        NET(who_comes_in_a_crowd_finds_room_to_wait),
        NET(without_descriptors_it_waits_and_does_not_spin),
    };
    return cmocka_run_group_tests_name("net/listener", tests, NULL, NULL);
}
