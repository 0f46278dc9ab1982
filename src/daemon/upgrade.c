#include "daemon/upgrade.h"

#include "base/log.h"
#include "base/memfile.h"
#include "daemon/heir.h"
#include "net/upstream/upstream.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK_US INT64_C(10000000) /* longest that a check may take */
#define WAIT_US  INT64_C(1000)     /* until the first look at what could not be carried … */
#define WAIT_LOG 5                 /* … doubled so often */
#define WAITS    35                /* so many times: 1 s */
#define HURRIES  7                 /* the same while others wait for it: 0.13 s */
#define SAID_MAX 512               /* bytes of a check's output that are looked at: its end */

/* As run before: the name in argv, unless a directory of PATH has it. /proc/self/exe would name the
 * file that was replaced. */
static void resolve(struct upgrade *u)
{
    char cwd[PATH_MAX];
    const char *name = u->o.argv[0];
    int n;
    if (!strchr(name, '/')) {
        n = (int)readlink("/proc/self/exe", u->path, sizeof u->path - 1);
        u->path[n > 0 ? n : 0] = '\0';
        return;
    }
    if (name[0] == '/' || !getcwd(cwd, sizeof cwd))
        n = snprintf(u->path, sizeof u->path, "%s", name);
    else
        n = snprintf(u->path, sizeof u->path, "%s/%s", cwd, name);
    if (n < 0 || n >= (int)sizeof u->path)
        u->path[0] = '\0';
}

void upgrade_init(struct upgrade *u, const struct upgrade_options *o)
{
    memset(u, 0, sizeof *u);
    u->o = *o;
    u->said = -1;
    resolve(u);
}

static void refuse(struct upgrade *u, const char *why)
{
    u->step = UPGRADE_IDLE;
    u->again = false;
    log_error("upgrade refused, this program goes on", kv_str("program", u->path),
              kv_str("why", why));
    supervisor_not_reloaded(u->o.supervisor, why);
}

/* ---- parcels ----------------------------------------------------------------------------------
 */

static const char parcel_name[] = "sidflake parcel";

static int rehearsal_parcel(struct upgrade *u)
{
    struct buf b;
    if (!memfile_room(&b, PARCEL_MAX))
        return -1;
    parcel_put_head(&b, PARCEL_REHEARSE, (uint64_t)getpid());
    heir_put_place(&b, u->o.page->fd);
    (void)net_pack(u->o.net, PARCEL_REHEARSE, &b);
    int fd = memfile_seal(&b, parcel_name);
    memfile_room_free(&b);
    return fd;
}

/* envp and the variable that names the parcel; the caller frees the array alone. */
static char **with_parcel(char text[64], int fd)
{
    size_t n = 0;
    while (environ[n])
        n++;
    char **envp = calloc(n + 2, sizeof *envp);
    if (!envp)
        return NULL;
    (void)snprintf(text, 64, HEIR_ENV "=%d", fd);
    memcpy(envp, environ, n * sizeof *envp);
    envp[n] = text;
    return envp;
}

/* ---- the check --------------------------------------------------------------------------------
 */

/* The arguments and -t; the caller frees the array alone. */
static char **with_test(char *const *argv)
{
    static char test[] = "-t";
    size_t n = 0;
    while (argv[n])
        n++;
    char **out = calloc(n + 2, sizeof *out);
    if (!out)
        return NULL;
    memcpy(out, argv, n * sizeof *out);
    out[n] = test;
    return out;
}

/* Returns an errno. The child has no signal blocked or ignored, and of our descriptors the parcel.
 */
static int spawn(struct upgrade *u, int parcel, char *const *argv, char *const *envp)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t none, ignored;
    (void)sigemptyset(&none);
    (void)sigemptyset(&ignored);
    (void)sigaddset(&ignored, SIGPIPE);
    (void)sigaddset(&ignored, SIGXFSZ);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &ignored);
    (void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    int r = posix_spawn_file_actions_init(&files);
    if (!r)
        r = posix_spawn_file_actions_adddup2(&files, u->said, STDOUT_FILENO);
    if (!r)
        r = posix_spawn_file_actions_adddup2(&files, u->said, STDERR_FILENO);
    if (!r) /* onto itself: it stays open */
        r = posix_spawn_file_actions_adddup2(&files, parcel, parcel);
    if (!r)
        r = posix_spawn(&u->child, u->path, &files, &attr, argv, envp);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return r;
}

static void took_too_long(void *arg)
{
    struct upgrade *u = arg;
    int64_t took_us = clock_mono_us(u->o.clock) - u->since_us;
    bool another = took_us < CHECK_US / 2; /* one that came before is what the time was for */
    if (u->step != UPGRADE_CHECKING || u->child <= 0 || another)
        return;
    u->late = true;
    (void)kill(u->child, SIGKILL);
}

/* The program, and what it reads at its start. */
static void look(const struct upgrade *u, struct stat seen[UPGRADE_FILES])
{
    const char *file[UPGRADE_FILES] = {u->path, u->o.file};
    const struct conf *c = u->o.conf ? *u->o.conf : NULL;
    if (c) {
        file[2] = c->auth_users_file;
        file[3] = c->coordinator_password_file;
    }
    for (size_t i = 0; c && i < CONF_PROTOCOLS; i++)
        file[4 + i] = conf_protocol_password_file(c, &conf_protocols[i]);
    memset(seen, 0, UPGRADE_FILES * sizeof *seen);
    for (size_t i = 0; i < UPGRADE_FILES; i++)
        if (file[i])
            (void)stat(file[i], &seen[i]); /* one that is gone is none */
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           same_time(&a->st_mtim, &b->st_mtim) && same_time(&a->st_ctim, &b->st_ctim);
}

/* Be it written over, or another in its place. */
static bool has_changed(const struct upgrade *u)
{
    struct stat now[UPGRADE_FILES];
    look(u, now);
    for (size_t i = 0; i < UPGRADE_FILES; i++)
        if (!same_file(&now[i], &u->seen[i]))
            return true;
    return false;
}

static void check(struct upgrade *u)
{
    char name[64];
    int parcel = rehearsal_parcel(u), why = errno;
    char **argv = with_test(u->o.argv), **envp = with_parcel(name, parcel);
    u->child = 0;
    u->late = false;
    look(u, u->seen);
    u->since_us = clock_mono_us(u->o.clock);
    if (parcel >= 0 && (u->said = memfile_new("sidflake check")) < 0)
        why = errno;
    if (!argv || !envp)
        why = ENOMEM;
    else if (u->said >= 0)
        why = spawn(u, parcel, argv, envp);
    free(argv);
    free(envp);
    if (parcel >= 0)
        (void)close(parcel);
    if (u->child > 0) {
        u->step = UPGRADE_CHECKING;
        net_after(u->o.net, CHECK_US, took_too_long, u);
        return;
    }
    if (u->said >= 0)
        (void)close(u->said);
    u->said = -1;
    refuse(u, strerror(why));
}

/* The end of what the child said, without its last line end; closes the file. */
static void hear(struct upgrade *u, char said[SAID_MAX])
{
    off_t size = lseek(u->said, 0, SEEK_END);
    off_t from = size >= SAID_MAX ? size - SAID_MAX + 1 : 0;
    ssize_t n = pread(u->said, said, SAID_MAX - 1, from);
    said[n > 0 ? n : 0] = '\0';
    for (size_t at = strlen(said); at > 0 && said[at - 1] == '\n'; at--)
        said[at - 1] = '\0';
    (void)close(u->said);
    u->said = -1;
}

static bool ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), m = strlen(tail);
    return n >= m && strcmp(s + n - m, tail) == 0;
}

static void checked(struct upgrade *u, int status)
{
    char said[SAID_MAX], why[SAID_MAX + 64];
    hear(u, said);
    u->child = 0;
    if (u->step != UPGRADE_CHECKING)
        return;
    if (u->again) { /* what was checked may have been replaced since */
        u->again = false;
        check(u);
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && ends_with(said, HEIR_AGREES)) {
        u->step = UPGRADE_PAUSING;
        u->waits = 0;
        keeper_pause(u->o.keeper, true);
        return;
    }
    if (u->late)
        (void)snprintf(why, sizeof why, "its check took longer than %d s: %s",
                       (int)(CHECK_US / 1000000), said);
    else if (WIFSIGNALED(status))
        (void)snprintf(why, sizeof why, "its check was ended by signal %d: %s", WTERMSIG(status),
                       said);
    else if (WEXITSTATUS(status) == 0)
        (void)snprintf(why, sizeof why, "it cannot take over from version %s: restart",
                       SIDFLAKE_VERSION);
    else
        (void)snprintf(why, sizeof why, "its check ended with status %d: %s", WEXITSTATUS(status),
                       said);
    refuse(u, why);
}

void upgrade_child(struct upgrade *u)
{
    int status;
    if (u->child > 0 && waitpid(u->child, &status, WNOHANG) == u->child)
        checked(u, status);
}

void upgrade_ask(struct upgrade *u)
{
    if (u->step != UPGRADE_IDLE) {
        u->again = true;
        return;
    }
    supervisor_reloading(u->o.supervisor, clock_mono_us(u->o.clock));
    log_info("upgrading in place", kv_str("program", u->path));
    check(u);
}

/* ---- the exchange -----------------------------------------------------------------------------
 */

/* on: the records' descriptors stay open over execve. */
static void make_inheritable(struct span in, bool on)
{
    struct parcel_head head;
    struct parcel_record r;
    if (!parcel_head(&in, &head))
        return;
    while (parcel_next(&in, &r))
        if (r.fd >= 0)
            (void)fcntl(r.fd, F_SETFD, on ? 0 : FD_CLOEXEC);
}

/* Comes back only if it failed; returns an errno. The parcel is in its file alone then: what is
 * kept is there twice, and no more. */
static int exchange(struct upgrade *u, struct buf *parcel)
{
    char name[64];
    struct span sealed = {NULL, 0};
    size_t n = parcel->n;
    int fd = memfile_seal(parcel, parcel_name), why = errno;
    char **envp = with_parcel(name, fd);
    if (fd >= 0 && envp && memfile_map(fd, n, &sealed)) {
        if (u->again)
            (void)kill(getpid(), SIGUSR2);
        make_inheritable(sealed, true);
        (void)fcntl(fd, F_SETFD, 0);
        (void)execve(u->path, u->o.argv, envp);
        why = errno;
        make_inheritable(sealed, false);
    } else if (fd >= 0) {
        why = errno;
    }
    memfile_unmap(sealed);
    if (fd >= 0)
        (void)close(fd);
    free(envp);
    return why;
}

static void hold_signals(void *arg);

static void go_on(struct upgrade *u)
{
    u->step = UPGRADE_IDLE;
    u->rests = false;
    heir_signals();
    keeper_pause(u->o.keeper, false);
    upstreams_rest(u->o.net, false);
}

/* The file that they go over in is this process's alone, and closed as soon as it was mapped. */
static void put_logins(const struct auth *auth, struct buf *parcel)
{
    if (!auth)
        return;
    size_t begun = parcel_begin(parcel, PARCEL_LOGINS, -1);
    auth_pack(auth, parcel);
    parcel_end(parcel, begun);
}

/* While some are stuck, and that may be for what their clients do, such as half a value that is
 * sent, all go on. Then nothing is forwarded, and shared links run dry; whoever's own request has
 * not ended by then must not hold up the others. */
static bool must_wait(struct upgrade *u)
{
    uint64_t stuck = net_stuck(u->o.net), expecting = net_expecting(u->o.net);
    if (stuck == 0)
        return false;
    if (u->rests)
        return u->waits++ < (expecting > 0 ? WAITS : HURRIES);
    if (stuck > expecting && u->waits++ < WAITS)
        return true;
    u->rests = true;
    u->waits = 0;
    upstreams_rest(u->o.net, true);
    return true;
}

static void put_blocks(const struct upgrade *u, struct buf *parcel)
{
    if (!u->o.sequences || !u->proven)
        return;
    const struct blockfile_left left = sequences_leave(u->o.sequences);
    heir_put_blocks(parcel, &left);
}

static void try_exchange(void *arg)
{
    struct upgrade *u = arg;
    struct buf b;
    int why = ENOMEM;
    if (u->step != UPGRADE_EXCHANGING)
        return;
    if (must_wait(u)) {
        heir_signals();
        net_after(u->o.net, WAIT_US << (u->waits < WAIT_LOG ? u->waits : WAIT_LOG), hold_signals,
                  u);
        return;
    }
    if (has_changed(u)) { /* what the next program cannot start with would be the end of it */
        go_on(u);
        check(u);
        return;
    }
    if (memfile_room(&b, PARCEL_MAX)) {
        struct pagefile_left left = {.fd = u->o.page->fd,
                                     .page = u->proven ? u->o.page->page : NULL};
        parcel_put_head(&b, PARCEL_TAKE, (uint64_t)getpid());
        heir_put(&b, &left, clock_mono_us(u->o.clock));
        put_blocks(u, &b);
        put_logins(u->o.auth, &b);
        uint64_t lost = net_pack(u->o.net, PARCEL_TAKE, &b);
        if (lost > 0)
            log_warn("connections that cannot be carried are closed", kv_u64("number", lost));
        why = exchange(u, &b);
        memfile_room_free(&b);
    }
    go_on(u);
    refuse(u, strerror(why));
}

static void in_the_next_round(void *arg)
{
    struct upgrade *u = arg;
    if (u->step == UPGRADE_EXCHANGING)
        net_after(u->o.net, 0, try_exchange, u);
}

/* From here on signals wait for the next program's handlers. Those that came before are with the
 * loop, which calls their handlers within its next round; so the exchange is in the one after that,
 * if they have not cancelled it. */
static void hold_signals(void *arg)
{
    struct upgrade *u = arg;
    if (u->step != UPGRADE_EXCHANGING)
        return;
    heir_block();
    net_after(u->o.net, 0, in_the_next_round, u);
}

/* The keeper says it once; what it mails later finds the step changed. */
void upgrade_paused(struct upgrade *u, bool proven)
{
    u->proven = proven;
    if (u->step != UPGRADE_PAUSING)
        return;
    u->step = UPGRADE_EXCHANGING;
    hold_signals(u);
}

void upgrade_cancel(struct upgrade *u)
{
    if (u->step == UPGRADE_CHECKING && u->child > 0)
        (void)kill(u->child, SIGKILL);
    if (u->step >= UPGRADE_PAUSING)
        go_on(u);
    u->step = UPGRADE_IDLE;
}
