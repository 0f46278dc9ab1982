/*
 * An upgrade in place: the program at the path that this one was started from, which may be a newer
 * one by now, takes its place in the same process. As systemd's daemon-reexec.
 *
 *   SIGUSR2 -> CHECKING    a child runs the program with -t, and says that it could take over
 *           -> PAUSING     the keeper comes to rest: no call to the coordinator is under way
 *           -> EXCHANGING  signals are held back; those that came before are dealt with
 *           -> execve      sockets, connections and the state page go over in a parcel (heir.h)
 *
 * Invariants
 *   - The loop serves until the last step, which waits for nothing.
 *   - Whatever fails before leaves everything as it was, and is logged and told to systemd.
 *   - Listening sockets are never closed, so that no connection is refused; the lock of the state
 *     page is never released.
 *   - What is kept for connections is there twice at most: here and in the parcel, then in the
 *     parcel and in the next program. Limits on the memory of the process count on it.
 *   - No signal is lost: one that the loop has not told of yet may be the SIGTERM that ends us.
 *   - Nothing is issued after the copy of the page that proves to the next program what it holds.
 */
#ifndef SIDFLAKE_DAEMON_UPGRADE_H
#define SIDFLAKE_DAEMON_UPGRADE_H

#include "auth/auth.h"
#include "base/clock.h"
#include "conf/protocol_options.h"
#include "daemon/supervisor.h"
#include "lease/keeper.h"
#include "lease/sequences.h"
#include "net/net.h"

#include <limits.h>
#include <sys/stat.h>

#define UPGRADE_FILES (4 + CONF_PROTOCOLS)

enum upgrade_step {
    UPGRADE_IDLE,
    UPGRADE_CHECKING,
    UPGRADE_PAUSING,
    UPGRADE_EXCHANGING,
};

struct upgrade_options {
    char *const *argv; /* of main, ends with NULL */
    const char *file;  /* the configuration; NULL: there is none */
    /* In effect: a reload leads to another one. NULL: it names no files. */
    const struct conf *const *conf;
    struct net *net;
    const struct auth *auth; /* NULL: nobody logs in */
    struct keeper *keeper;
    const struct pagefile *page;
    const struct sequences *sequences; /* NULL: there are none */
    struct supervisor *supervisor;
    struct clock *clock;
};

struct upgrade {
    struct upgrade_options o;
    char path[PATH_MAX]; /* of the program, absolute */
    enum upgrade_step step;
    pid_t child;      /* CHECKING; 0: none */
    int said;         /* CHECKING: memory file with its output; else -1 */
    int64_t since_us; /* CHECKING: monotonic */
    bool late;        /* CHECKING: the child was ended, since it took too long */
    bool again;       /* asked for while one was under way: the program may have changed since */
    bool proven;      /* EXCHANGING: as the keeper says */
    bool rests;       /* EXCHANGING: nothing is forwarded any more */
    unsigned waits;   /* EXCHANGING: for connections that cannot be carried as they are now */
    /* From CHECKING on: the program, and what it reads, as they were when they were checked. */
    struct stat seen[UPGRADE_FILES];
};

/* After everything else has been started. The directory of the process must not have changed since
 * the program was run. */
void upgrade_init(struct upgrade *u, const struct upgrade_options *o);

/* Events of the loop; after upgrade_init. SIGUSR2, SIGCHLD, and the keeper's report says so. */
void upgrade_ask(struct upgrade *u);
void upgrade_child(struct upgrade *u);
void upgrade_paused(struct upgrade *u, bool proven);

/* The process is going to end: what is under way is given up. Nothing to do is no error. */
void upgrade_cancel(struct upgrade *u);

#endif
