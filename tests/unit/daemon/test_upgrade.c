/*
 * An upgrade, step by step. The next program is this one: run with -t, or in the place of a child
 * of the test, it plays what its arguments say. To be clean under ThreadSanitizer, too.
 *
 *   NAME heir ROLE FILE [-t]
 */
#include "base/log.h"
#include "daemon/heir.h"
#include "daemon/upgrade.h"
#include "support/capture.h"
#include "support/fake_coord.h"
#include "support/lease_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 10000
#define HERE        7 /* how a child of the test ends that has not become the next program … */
#define THERE       8 /* … and one that has, and found all as it must be */

/* ---- the next program -------------------------------------------------------------------------
 */

static int rehearse(const char *role, const char *file)
{
    struct heir h;
    struct sigaction pipe;
    sigset_t blocked;
    heir_init(&h);
    if (h.state != HEIR_REHEARSES || sigprocmask(SIG_SETMASK, NULL, &blocked) ||
        sigismember(&blocked, SIGTERM) || sigaction(SIGPIPE, NULL, &pipe) ||
        pipe.sa_handler != SIG_DFL)
        return 99;
    if (strcmp(role, "hangs") == 0)
        (void)pause();
    if (strcmp(role, "dies") == 0)
        (void)kill(getpid(), SIGKILL);
    if (strcmp(role, "fails") == 0) {
        for (int i = 0; i < 1000; i++)
            (void)puts("much is said");
        (void)puts("why it fails\n\n");
        return 3;
    }
    if (strcmp(role, "declines") != 0)
        (void)puts(HEIR_AGREES);
    if (strcmp(role, "babbles") == 0)
        (void)puts("and more");
    if (strcmp(role, "goes") == 0)
        (void)unlink(file);
    return strcmp(role, "regrets") == 0 ? 4 : 0;
}

/* Descriptors that are open: the standard ones, and how many that execve(2) would close. */
static unsigned count_open(unsigned *closing)
{
    unsigned n = 0;
    *closing = 0;
    for (int fd = 0; fd < 1000; fd++) {
        int flags = fcntl(fd, F_GETFD);
        n += flags >= 0;
        *closing += flags >= 0 && flags & FD_CLOEXEC;
    }
    return n;
}

/* What it finds is told in one line. */
static int take_over(const char *file)
{
    struct heir h;
    struct parcel_record r;
    sigset_t waiting, blocked;
    unsigned closing, n[PARCEL_LINK + 1] = {0};
    static struct page proof; /* the bytes in the parcel stand anywhere */
    heir_init(&h);
    if (h.page.page)
        memcpy(&proof, h.page.page, sizeof proof);
    for (struct span in = h.records; parcel_next(&in, &r);)
        n[r.kind <= PARCEL_LINK ? r.kind : 0]++;
    FILE *f = fopen(file, "we");
    if (!f || sigpending(&waiting) || sigprocmask(SIG_SETMASK, NULL, &blocked))
        return 98;
    (void)fprintf(f,
                  "state=%d why=%d version=%s page=%d proof=%d listeners=%u connections=%u "
                  "logins=%u usr2=%d term=%d blocked=%d late=%d",
                  (int)h.state, (int)h.why.code, h.version, h.page.fd >= 0,
                  strcmp(proof.head.identity, RIG_IDENTITY) == 0, n[PARCEL_LISTENER],
                  n[PARCEL_CONNECTION], n[PARCEL_LOGINS], sigismember(&waiting, SIGUSR2),
                  sigismember(&waiting, SIGTERM),
                  sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGCHLD),
                  h.left_us > clock_mono_us(clock_system()) ||
                      h.left_us < clock_mono_us(clock_system()) - 10000000);
    (void)fclose(f);
    unsigned open = count_open(&closing);
    return open == 3u + (unsigned)(h.page.fd >= 0) + n[PARCEL_LISTENER] + n[PARCEL_CONNECTION] &&
                   closing == 0
               ? THERE
               : 97;
}

/* ---- the program before -----------------------------------------------------------------------
 */

/* A supply that wants nothing. */
static struct idle {
    struct supply supply;
    bool stopped, unproven;
} idle;

static void on_event(struct supply *s, const void *event)
{
    (void)s;
    (void)event;
}

static void hear(struct supply *s, int64_t mono)
{
    (void)s;
    (void)mono;
}

static void stop(struct supply *s, bool give_back, int64_t mono)
{
    (void)s;
    (void)give_back;
    (void)mono;
    idle.stopped = true;
}

static enum supply_next next(struct supply *s, int64_t mono, int64_t *until)
{
    (void)s;
    (void)mono;
    *until = INT64_MAX;
    return idle.stopped ? SUPPLY_FINISHED : SUPPLY_IDLE;
}

static void call(struct supply *s, struct coord *c, int64_t wall)
{
    (void)s;
    (void)c;
    (void)wall;
}

static void done(struct supply *s, int64_t mono, int64_t wall)
{
    (void)s;
    (void)mono;
    (void)wall;
}

static bool proven(const struct supply *s)
{
    (void)s;
    return !idle.unproven;
}

static const void *report(struct supply *s)
{
    return s;
}

static const struct supply_kind idle_kind = {.tell = on_event,
                                             .hear = hear,
                                             .stop = stop,
                                             .next = next,
                                             .call = call,
                                             .done = done,
                                             .proven = proven,
                                             .report = report};

static struct bench {
    struct fake_coord coord;
    struct supply *supplies[1];
    struct keeper *keeper;
    struct net *net;
    struct net_service svc;
    struct pagefile page;
    struct supervisor supervisor;
    struct upgrade u;
    char *argv[6];
    char dir[64], program[PATH_MAX], file[96], self[PATH_MAX];
    int manager; /* what the supervisor tells */
    int client;

    bool (*over)(void); /* the loop ends when this holds … */
    unsigned rounds;    /* … or after so many ms */
    void (*when_paused)(void);
    unsigned asked, terms, packs, refuse; /* refuse: so many packs of a session fail */
} b;

static struct net_step serve(struct net_service *svc, void *session, struct span in,
                             struct net_turn *turn, struct buf *out)
{
    (void)svc;
    (void)session;
    (void)turn;
    (void)out;
    return (struct net_step){.verdict = in.n > 0 ? NET_DONE : NET_MORE, .used = in.n};
}

static bool pack(const struct net_service *svc, const void *session, struct buf *to)
{
    (void)svc;
    (void)session;
    (void)to;
    return b.packs++ >= b.refuse;
}

static void wake(void *arg)
{
    net_notify(arg);
}

static void mail_came(void *arg)
{
    (void)arg;
    struct supply_mail mail;
    struct keeper_report r;
    void *const reports[] = {NULL};
    (void)keeper_take(b.keeper, &mail, 1, &r, reports);
    if (!r.paused)
        return;
    if (b.when_paused)
        b.when_paused();
    upgrade_paused(&b.u, r.proven);
}

static void on_child(void *arg, int signo)
{
    (void)arg;
    (void)signo;
    upgrade_child(&b.u);
}

static void on_upgrade(void *arg, int signo)
{
    (void)arg;
    (void)signo;
    b.asked++;
    upgrade_ask(&b.u);
}

static void on_term(void *arg, int signo)
{
    (void)arg;
    (void)signo;
    b.terms++;
    upgrade_cancel(&b.u);
}

static void look(void *arg)
{
    (void)arg;
    if (b.over() || b.rounds-- == 0)
        net_break(b.net);
}

static void hear_as_manager(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    int n =
        snprintf(un.sun_path + 1, sizeof un.sun_path - 1, "sidflake-upgrade-%ld", (long)getpid());
    b.manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (b.manager < 0 || bind(b.manager, (const struct sockaddr *)(const void *)&un, len))
        abort();
    un.sun_path[0] = '@';
    if (setenv("NOTIFY_SOCKET", un.sun_path, 1))
        abort();
    supervisor_init(&b.supervisor);
    (void)unsetenv("NOTIFY_SOCKET");
}

/* One message, NUL-terminated; "": there is none. */
static const char *told(void)
{
    static char text[1024];
    ssize_t n = recv(b.manager, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void start(const char *role)
{
    struct err e = {.text = ""};
    struct net_config nc = {.clock = clock_system(), .connections = 10};
    const struct net_door door = {.mode = 0600};
    char address[112];
    (void)snprintf(address, sizeof address, "unix://%s/s", b.dir);
    if (net_new(&nc, &b.net, &e) || net_on_signal(b.net, SIGCHLD, on_child, NULL, &e) ||
        net_on_signal(b.net, SIGUSR2, on_upgrade, NULL, &e) ||
        net_on_signal(b.net, SIGTERM, on_term, NULL, &e) ||
        net_listen(b.net, span_str(address), &door, &b.svc, NULL, 0, &e))
        abort();
    net_on_notify(b.net, mail_came, NULL);
    net_every(b.net, 1000, look, NULL);
    idle =
        (struct idle){.supply.kind = &idle_kind, .supply.shared = &idle, .unproven = idle.unproven};
    b.supplies[0] = &idle.supply;
    const struct keeper_options o = {.supplies = b.supplies,
                                     .nsupplies = 1,
                                     .coord = &b.coord.coord,
                                     .clock = clock_system(),
                                     .notify = wake,
                                     .arg = b.net};
    if (keeper_start(&o, &b.keeper, &e))
        abort();
    static char word[] = "heir", name[32];
    (void)snprintf(name, sizeof name, "%s", role);
    b.argv[0] = b.program;
    b.argv[1] = word;
    b.argv[2] = name;
    b.argv[3] = b.file;
    upgrade_init(&b.u, &(struct upgrade_options){.argv = b.argv,
                                                 .net = b.net,
                                                 .keeper = b.keeper,
                                                 .page = &b.page,
                                                 .supervisor = &b.supervisor,
                                                 .clock = clock_system()});
}

static int begin(void **state)
{
    (void)state;
    struct err e;
    memset(&b, 0, sizeof b);
    memset(&idle, 0, sizeof idle);
    b.client = b.manager = -1;
    b.rounds = PATIENCE_MS;
    log_setup(LOG_LVL_INFO, LOG_FMT_TEXT);
    (void)signal(SIGPIPE, SIG_IGN);
    fake_coord_init(&b.coord, clock_system(), RIG_IDENTITY, 0, 1);
    b.svc = (struct net_service){.name = "toy", .session_size = 8, .serve = serve, .pack = pack};
    (void)snprintf(b.dir, sizeof b.dir, "/tmp/sidflake-up-XXXXXX");
    if (!mkdtemp(b.dir))
        return -1;
    (void)snprintf(b.program, sizeof b.program, "%s/program", b.dir);
    (void)snprintf(b.file, sizeof b.file, "%s/said", b.dir);
    ssize_t n = readlink("/proc/self/exe", b.self, sizeof b.self - 1);
    if (n < 0 || symlink(b.self, b.program) ||
        pagefile_inherit(&b.page, b.dir, "c", PAGEFILE_SAVES_WAITING, NULL, &e))
        return -1;
    page_set_identity(b.page.page, RIG_IDENTITY);
    hear_as_manager();
    return 0;
}

static int end(void **state)
{
    (void)state;
    static const char *const names[] = {"program", "said", "s", "worker.page", "worker.generation"};
    char path[128];
    for (int i = 0; i < 2 && b.keeper; i++)
        keeper_stop(b.keeper, false);
    keeper_free(b.keeper);
    net_free(b.net);
    fake_coord_clear(&b.coord);
    supervisor_clear(&b.supervisor);
    pagefile_close(&b.page);
    (void)close(b.manager);
    if (b.client >= 0)
        (void)close(b.client);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", b.dir, names[i]);
        (void)unlink(path);
    }
    return rmdir(b.dir);
}

/* Runs the loop until the condition holds. */
static void run(bool (*over)(void))
{
    b.over = over;
    net_run(b.net);
    if (!over())
        abort();
}

static bool is_idle(void)
{
    return b.u.step == UPGRADE_IDLE && !b.u.child;
}

static bool is_checking(void)
{
    return b.u.step == UPGRADE_CHECKING;
}

static bool one_is_connected(void)
{
    return b.svc.connections == 1;
}

static void connect_one(void)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s/s", b.dir);
    b.client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(b.client, (const struct sockaddr *)(const void *)&un, sizeof un))
        abort();
    run(one_is_connected);
}

/* The keeper goes on, and signals come. */
static void assert_goes_on(void)
{
    struct supply_mail mail;
    struct keeper_report r = {.paused = true};
    void *const reports[] = {NULL};
    sigset_t blocked;
    for (int i = 0; i < PATIENCE_MS && r.paused; i++, (void)poll(NULL, 0, 1))
        (void)keeper_take(b.keeper, &mail, 1, &r, reports);
    assert_false(r.paused);
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &blocked), 0);
    assert_false(sigismember(&blocked, SIGTERM) || sigismember(&blocked, SIGUSR2));
    assert_int_equal(b.u.step, UPGRADE_IDLE);
    assert_int_equal(b.u.said, -1);
    assert_false(b.u.again || b.u.rests);
}

static void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("expected \"%s\", found \"%s\"", part, text);
}

/* Asks; what is logged and told has this reason. */
static void assert_refused(const char *why)
{
    unsigned closing, after, open = count_open(&closing);
    char log[4096];
    capture_begin();
    upgrade_ask(&b.u);
    run(is_idle);
    (void)snprintf(log, sizeof log, "%.4000s", capture_end());
    assert_says(log, "upgrade refused, this program goes on");
    assert_says(log, why);
    assert_says(told(), "RELOADING=1\nMONOTONIC_USEC=");
    const char *text = told();
    assert_says(text, "READY=1\nSTATUS=upgrade refused: ");
    assert_says(text, why);
    assert_goes_on();
    assert_int_equal(count_open(&after), open);
    assert_int_equal(after, closing);
}

/* ---- refused ----------------------------------------------------------------------------------
 */

static void a_program_that_cannot_take_over_is_refused(void **state)
{
    static const char *const roles[][2] = {
        {"dies", "its check was ended by signal 9"},
        {"fails", "its check ended with status 3: "},
        {"regrets", "its check ended with status 4: "},
        {"declines", "it cannot take over from version " SIDFLAKE_VERSION ": restart"},
        {"babbles", "it cannot take over from version "},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (i > 0)
            assert_true(end(state) == 0 && begin(state) == 0);
        start(roles[i][0]);
        assert_refused(roles[i][1]);
        assert_refused(roles[i][1]); /* once more: nothing is left of the first time */
    }
}

/* A line is a line there: what follows a line end would be another word to the manager. */
static void a_reason_of_several_lines_is_one_to_the_manager(void **state)
{
    (void)state;
    start("fails");
    capture_begin();
    upgrade_ask(&b.u);
    run(is_idle);
    (void)capture_end();
    (void)told();
    const char *text = told();
    assert_says(text, "READY=1\nSTATUS=upgrade refused: its check ended with status 3: ");
    assert_null(strchr(text + sizeof "READY=1", '\n'));
}

static void a_program_that_is_not_there_is_refused(void **state)
{
    (void)state;
    start("agrees");
    assert_int_equal(unlink(b.program), 0);
    assert_refused("No such file or directory");
}

static void one_that_is_gone_after_its_check_is_refused(void **state)
{
    (void)state;
    start("goes");
    connect_one();
    for (int i = 0; i < 3; i++) {
        assert_refused("No such file or directory");
        assert_int_equal(b.svc.connections, 1);
        assert_int_equal(symlink(b.self, b.program), 0);
    }
}

/* So many descriptors are left, and no more. */
static void leave_descriptors(rlim_t n)
{
    int last = dup(STDERR_FILENO);
    struct rlimit rl;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
    (void)close(last);
    rl.rlim_cur = (rlim_t)last + n;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

static struct rlimit descriptors;

static void leave_none(void)
{
    leave_descriptors(0);
}

static void without_descriptors_it_is_refused_at_each_step(void **state)
{
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    start("agrees");
    for (rlim_t left = 0; left < 2; left++) {
        capture_begin();
        leave_descriptors(left);
        errno = 0;
        upgrade_ask(&b.u);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
        char log[4096];
        (void)snprintf(log, sizeof log, "%.4000s", capture_end());
        assert_says(log, "Too many open files");
        assert_goes_on();
        (void)told();
        (void)told();
    }
    b.when_paused = leave_none;
    capture_begin();
    upgrade_ask(&b.u);
    run(is_idle);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    assert_says(capture_end(), "Too many open files");
    assert_goes_on();
}

/* ---- given up ---------------------------------------------------------------------------------
 */

static void a_check_that_is_given_up_ends(void **state)
{
    (void)state;
    start("hangs");
    capture_begin();
    upgrade_ask(&b.u);
    run(is_checking);
    pid_t child = b.u.child;
    assert_int_equal(kill(child, 0), 0);
    upgrade_cancel(&b.u);
    run(is_idle);
    (void)capture_end();
    assert_true(kill(child, 0) < 0 && errno == ESRCH);
    assert_goes_on();
}

static bool is_pausing(void)
{
    return b.u.step == UPGRADE_PAUSING;
}

static void deaf(void *arg)
{
    (void)arg;
}

static void a_pause_that_is_given_up_ends(void **state)
{
    (void)state;
    start("agrees");
    capture_begin();
    upgrade_ask(&b.u);
    net_on_notify(b.net, deaf, NULL); /* the keeper's word does not come yet */
    run(is_pausing);
    upgrade_cancel(&b.u);
    net_on_notify(b.net, mail_came, NULL);
    (void)capture_end();
    assert_goes_on();
    upgrade_paused(&b.u, true); /* that word, late */
    assert_int_equal(b.u.step, UPGRADE_IDLE);
}

static void a_cancel_of_nothing_is_nothing(void **state)
{
    (void)state;
    start("agrees");
    upgrade_cancel(&b.u);
    assert_goes_on();
}

static void ask_to_end(void)
{
    assert_int_equal(kill(getpid(), SIGTERM), 0);
}

static bool was_told_to_end(void)
{
    return b.terms > 0;
}

/* It came just before signals were held back: it is heard, and the process stays what it is. */
static void a_signal_to_end_comes_before_the_exchange(void **state)
{
    (void)state;
    start("agrees");
    b.when_paused = ask_to_end;
    capture_begin();
    upgrade_ask(&b.u);
    run(was_told_to_end);
    b.when_paused = NULL;
    (void)capture_end();
    assert_goes_on();
}

/* ---- asked for again --------------------------------------------------------------------------
 */

static void what_changed_while_it_was_checked_is_checked_anew(void **state)
{
    (void)state;
    start("agrees");
    capture_begin();
    upgrade_ask(&b.u);
    pid_t child = b.u.child;
    upgrade_ask(&b.u);
    assert_int_equal(b.u.child, child);
    assert_true(b.u.again);
    static char fails[] = "fails";
    b.argv[2] = fails;
    run(is_idle);
    assert_says(capture_end(), "its check ended with status 3: ");
    assert_goes_on();
}

/* ---- the exchange: in a child of the test -----------------------------------------------------
 */

static void ask_again(void)
{
    upgrade_ask(&b.u);
}

static bool never(void)
{
    return false;
}

/* What the next program says of itself. */
static const char *exchanged(void)
{
    static char text[512];
    int status;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        start("agrees");
        if (b.refuse || b.svc.unpack) /* a client, where a test has sessions in mind */
            connect_one();
        int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (dup2(nowhere, STDERR_FILENO) < 0)
            _exit(HERE);
        upgrade_ask(&b.u);
        b.over = never;
        b.rounds = PATIENCE_MS;
        net_run(b.net);
        _exit(HERE);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != THERE)
        fail_msg("expected the next program to end with %d, found status %x", THERE,
                 (unsigned)status);
    int fd = open(b.file, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static bool unpack(struct net_service *svc, void *session, struct span packed)
{
    (void)svc;
    (void)session;
    (void)packed;
    return true;
}

static void all_goes_over_and_nothing_else_is_open(void **state)
{
    (void)state;
    b.svc.unpack = unpack;
    assert_string_equal(exchanged(), "state=2 why=0 version=" SIDFLAKE_VERSION
                                     " page=1 proof=1 listeners=1 connections=1 logins=0 usr2=0 "
                                     "term=0 blocked=1 late=0");
}

static void what_is_not_proven_goes_over_without_proof(void **state)
{
    (void)state;
    idle.unproven = true;
    assert_says(exchanged(), "page=1 proof=0 listeners=1 connections=0");
}

/* The next program sees to it: what is at the path may have changed since the check. */
static void who_asks_meanwhile_asks_the_next_program(void **state)
{
    (void)state;
    b.when_paused = ask_again;
    assert_says(exchanged(), "usr2=1 term=0 blocked=1");
}

static int64_t took_ms(const char **text)
{
    int64_t before = clock_mono_ms(clock_system());
    *text = exchanged();
    return clock_mono_ms(clock_system()) - before;
}

/* Its client is within a request: it is waited for … */
static void a_connection_that_cannot_be_carried_is_waited_for(void **state)
{
    (void)state;
    b.refuse = 8;
    assert_says(exchanged(), "connections=1");
}

/* … a second, and what others wait for a moment. */
static void but_not_for_ever(void **state)
{
    (void)state;
    const char *text;
    b.refuse = UINT32_MAX;
    int64_t ms = took_ms(&text);
    assert_says(text, "listeners=1 connections=0");
    assert_true(ms >= 900 && ms < 10000);
}

static void without_a_file_for_the_page_none_goes_over(void **state)
{
    (void)state;
    struct err e;
    pagefile_close(&b.page);
    assert_int_equal(pagefile_memory(&b.page, false, &e), ERR_OK);
    assert_says(exchanged(), "page=0 proof=0");
}

#define UPGRADE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "heir") == 0)
        return argc > 4 ? rehearse(argv[2], argv[0]) : take_over(argv[3]);
    for (int fd = STDERR_FILENO + 1; fd < 1000; fd++) /* of whoever runs the tests … */
        (void)close(fd);
    sigset_t none; /* … as are the signals that are blocked */
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    const struct CMUnitTest tests[] = {
        UPGRADE(a_program_that_cannot_take_over_is_refused),
        UPGRADE(a_reason_of_several_lines_is_one_to_the_manager),
        UPGRADE(a_program_that_is_not_there_is_refused),
        UPGRADE(one_that_is_gone_after_its_check_is_refused),
        UPGRADE(without_descriptors_it_is_refused_at_each_step),
        UPGRADE(a_check_that_is_given_up_ends),
        UPGRADE(a_pause_that_is_given_up_ends),
        UPGRADE(a_cancel_of_nothing_is_nothing),
        UPGRADE(a_signal_to_end_comes_before_the_exchange),
        UPGRADE(what_changed_while_it_was_checked_is_checked_anew),
        UPGRADE(all_goes_over_and_nothing_else_is_open),
        UPGRADE(what_is_not_proven_goes_over_without_proof),
        UPGRADE(who_asks_meanwhile_asks_the_next_program),
        UPGRADE(a_connection_that_cannot_be_carried_is_waited_for),
        UPGRADE(but_not_for_ever),
        UPGRADE(without_a_file_for_the_page_none_goes_over),
    };
    return cmocka_run_group_tests_name("daemon/upgrade", tests, NULL, NULL);
}
